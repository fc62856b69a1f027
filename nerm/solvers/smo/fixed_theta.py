"""The SMO at fixed theta: a compiled loop of pair steps, and its state.

Every atom psi_j has the conjugate bend u + (q/2) u^2 on an interval, where bend and q are numbers: hinge,
pinball, identity and absolute value with q = 0, squared hinge and Huber functions with q > 0. Let mu be the
total weight of the squared l2 terms, lambda = mu * divisor, and K the Gram matrix. At fixed theta the dual,
times the problem's divisor, is

::

    max over a   sum_i h_i(a_i) - (1 / 2 lambda) a' K a        subject to   sum_i a_i = 0,
    h_i(a) = max { - sum_j W_ji psi_j*(-beta_ji) :  sum_j W_ji t_ji beta_ji = a, all beta_ji in their domains
    },

where block j has the multipliers beta_j, the targets t_j and the weights W_j = factor * share * weights; the
share is theta, 1 - theta or 1. The offset of a row is added to the bend. The variable a_i, the weighted dual
variable of row i, is called its level.

h_i is concave and piecewise quadratic, and its slope at a_i is the score at which the derivatives of the
atoms of row i add up to -a_i. So the slope falls from segment to segment (`Segments`): it is constant on a
segment that belongs to a kink of an atom, and falls at a constant rate where atoms are curved. At the optimum
the score f_i lies in the superdifferential of h_i at a_i. This form has n variables. The form of the paper
has 3n: there pairs inside one row have no curvature, and 1 / v is infinite at v = 0.

Let G = K a / lambda, the scores without intercept. Let rise_i and fall_i be the slopes of h_i to the right
and to the left of a_i (-inf and +inf at the ends of its domain). The dual value grows at the rate rise_i -
G_i if a_i increases and falls at the rate fall_i - G_i if a_i decreases. A feasible a is optimal if and only
if

::

    m(a) = max_i (rise_i - G_i)  <=  M(a) = min_j (fall_j - G_j),

and then every b in [m, M] is an optimal intercept. The paper states this test; in this form it is necessary
and sufficient.

A pair step increases one level a_i and decreases another a_j. The pair is selected by second-order
information (WSS2 of LIBSVM).
"""

from typing import NamedTuple

import numpy as np

from nerm.certify.multipliers import Multipliers, multipliers_between
from nerm.model.blocks import EPS, shares, term_weights, two_sided
from nerm.model.problem import Problem
from nerm.solvers.linalg.compiled import compiled
from nerm.typing import Floats

TINY = float(np.finfo(float).tiny)
SMALLEST_TARGET = float(np.finfo(float).tiny) ** 0.5  # squares of bend / target overflow for smaller targets


class Segments:
    """The segments of every h_i at fixed theta, for J blocks and n rows.

    At the score f, block j contributes x_ji(f) = W t (bend - t f) / q to the level a_i, clipped to W t times
    its domain. As f falls, x_ji grows between two scores, its start and its end; both are
    bend / t if q = 0.
    These scores of all blocks and the score 0, in decreasing order, are the P = 2J + 1 points of a row.

    Attributes
    ----------
    thetas : (K,) array
        theta of the two-sided term; K is 1 if there is one, else 0.
    breaks : (n, P) array
        The level a_i at each point, increasing. The first and the last are the ends of the domain of h_i.
    anchors, slopes, rates : (n, P + 1) arrays
        The slope of h_i between breaks k - 1 and k is slopes - rates (a_i - anchors), entry k. The first and
        the last entry are for levels outside of the domain: the slopes are +inf and -inf.

    """

    def __init__(self, problem: Problem, theta: float) -> None:
        blocks = problem.blocks
        self.theta = theta
        self.thetas = np.full(len(two_sided(problem)), theta)
        self.sides = np.array([block.side for block in blocks])
        self.shares = shares(blocks, self.thetas)
        self.weights = term_weights(problem)[:, None] * np.stack([block.weights for block in blocks])
        targets = np.stack([block.targets for block in blocks])
        t = np.where(np.abs(targets) < SMALLEST_TARGET, 0.0, targets)
        low, high = np.array([block.domain for block in blocks]).T[:, :, None]
        bends, q = np.array([block.atom.facts.quadratic for block in blocks]).T[:, :, None]
        bends = bends + np.stack([block.offsets for block in blocks])
        self._atoms = t, bends, q, low, high
        rates = self.shares[:, None] * self.weights * t  # change of a_i per unit of a multiplier
        count, n = t.shape
        ends, scores = np.zeros((2, count, 2, n))  # the contribution and the score at start and end
        for k, at in enumerate((np.where(t > 0, low, high), np.where(t > 0, high, low))):
            np.multiply(rates, at, out=ends[:, k], where=rates != 0)
            margin = bends - np.multiply(q, at, out=np.zeros_like(t), where=q > 0)
            np.divide(margin, t, out=scores[:, k], where=t != 0)
        scores = np.vstack([scores.reshape(-1, n), np.zeros((1, n))])
        order = np.argsort(-scores, axis=0, kind="stable")
        points = np.take_along_axis(scores, order, axis=0)
        place = np.argsort(order, axis=0)[:-1].reshape(count, 2, n)
        numbers, (start, end) = np.arange(len(order))[:, None], np.swapaxes(place, 0, 1)[:, :, None]
        inside = (start < numbers) & (numbers < end)
        x = np.where(numbers <= start, ends[:, :1], ends[:, 1:])
        for j in np.flatnonzero(q):
            with np.errstate(over="ignore", invalid="ignore"):  # some points are infinite
                between = rates[j] * np.clip((bends[j] - t[j] * points) / q[j], low[j], high[j])
            x[j] = np.where(inside[j], np.where(rates[j] == 0, 0.0, between), x[j])
        levels = np.maximum.accumulate(x.sum(axis=0), axis=0)
        active = (start < numbers[1:]) & (numbers[:-1] < end)
        jumps = (active & (q == 0)[:, None]).any(axis=0)
        density = np.divide(rates * t, q, out=np.zeros_like(t), where=q > 0)[:, None] * active
        total = np.where(jumps, 0.0, density.sum(axis=0))
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        left = np.isfinite(levels[:-1])
        self.breaks = np.ascontiguousarray(levels.T)
        self.anchors, self.rates, self.slopes = np.zeros((3, n, len(points) + 1))
        self.anchors[:, 1:-1] = np.where(left, levels[:-1], levels[1:]).T
        self.rates[:, 1:-1] = inverse.T
        self.slopes[:, 1:-1] = np.where(left, points[:-1], points[1:]).T
        self.slopes[:, 0], self.slopes[:, -1] = np.inf, -np.inf

    def values(self, scores: Floats) -> Floats:
        """Return the sum of each block at these scores, times the weight of its term, (J,).

        The value of an atom at the margin m is the maximum of u m - bend u - (q/2) u^2 over its slopes u.
        """
        t, bends, q, low, high = self._atoms
        with np.errstate(over="ignore", invalid="ignore"):
            m = t * scores - bends
            if not q.any():  # the maximum is at an end
                return np.sum(self.weights * np.maximum(-low * m, -high * m), axis=1)
            u = np.clip(m / np.maximum(q, TINY), -high, -low)
            values = u * (m - 0.5 * q * u)
            return np.sum(np.where(self.weights > 0, self.weights * values, 0.0), axis=1)

    @property
    def can_balance(self) -> bool:
        """Whether some levels within their bounds have sum 0.

        With the identity as surrogate this holds at some thetas only.
        """
        return bool(self.breaks[:, 0].sum() <= 0 <= self.breaks[:, -1].sum())

    def feasible(self, a: Floats) -> Floats:
        """Return levels within their bounds and with sum 0, near the levels a, (n,).

        The levels are clipped, then moved in proportion to their distances: towards 0, and if that is not
        enough, towards their bounds. Levels within rounding of a break are set to it.
        """
        low, high = self.breaks[:, 0], self.breaks[:, -1]
        a, least = np.clip(a, low, high), np.clip(0.0, low, high)
        for bottom, top in ((least, least), (low, high)):
            excess = float(a.sum())
            goal = np.clip(bottom if excess > 0 else top, a - abs(excess), a + abs(excess))
            slack = np.maximum(a - goal, 0.0) if excess > 0 else np.minimum(a - goal, 0.0)
            a = a - min(1.0, excess / (slack.sum() or 1.0)) * slack
        places = np.abs(self.breaks - a[:, None]).argmin(axis=1)[:, None]
        nearest = np.take_along_axis(self.breaks, places, axis=1)[:, 0]
        snap = 16 * EPS * np.abs(np.where(np.isfinite(self.breaks), self.breaks, 0.0)).max(axis=1)
        return np.where(np.abs(a - nearest) <= snap, nearest, a)


BATCH = 1000  # the duality gap and the clock are checked after this many pair steps


class Levels(NamedTuple):
    """The state of the compiled loop for n rows: levels, scores, and slopes of h_i.

    numba writes the name of this class into its cache on disk: delete __pycache__ after a change.

    Attributes
    ----------
    a, G
        The level of every row, and its score without intercept, (n,).
    rise, fall
        The slope of h_i to the right and to the left of a_i, (n,).
    rise_rate, fall_rate
        The rates at which these slopes decrease, (n,).
    breaks, anchors, slopes, rates
        As in `Segments`.
    """

    a: Floats
    G: Floats
    rise: Floats
    fall: Floats
    rise_rate: Floats
    fall_rate: Floats
    breaks: Floats
    anchors: Floats
    slopes: Floats
    rates: Floats


@compiled()
def set_slopes(i, at):  # type: ignore[no-untyped-def]
    """Set rise and fall of row i; return the nearest breaks of h_i around a_i.

    The first break is below a_i, the second above.
    """
    count = at.breaks.shape[1]
    k = 0
    while k < count and at.breaks[i, k] < at.a[i]:
        k += 1
    before = at.breaks[i, max(k - 1, 0)]
    at.fall_rate[i] = at.rates[i, k]
    at.fall[i] = at.slopes[i, k] - at.rates[i, k] * (at.a[i] - at.anchors[i, k])
    while k < count and at.breaks[i, k] <= at.a[i]:
        k += 1
    at.rise_rate[i] = at.rates[i, k]
    at.rise[i] = at.slopes[i, k] - at.rates[i, k] * (at.a[i] - at.anchors[i, k])
    return before, at.breaks[i, min(k, count - 1)]


@compiled()
def set_all_slopes(at):  # type: ignore[no-untyped-def]
    """Set rise and fall of every row."""
    for i in range(len(at.a)):
        set_slopes(i, at)


@compiled()
def pair_step(i, j, curvature, at):  # type: ignore[no-untyped-def]
    """Increase a_i and decrease a_j by the amount that maximises the dual; return the amount.

    The dual is concave in the amount: quadratic between breaks of h_i and h_j, or linear if its curvature is
    0 (two equal rows). So the step goes from break to break as long as the dual increases. `curvature` is
    that of a' K a / (2 lambda); the rates of h_i and h_j are added.
    """
    total = 0.0
    while True:
        top = set_slopes(i, at)[1]
        bottom = set_slopes(j, at)[0]
        slope = (at.rise[i] - at.G[i]) - (at.fall[j] - at.G[j]) - curvature * total
        if not slope > 0.0:
            return total
        most = min(top - at.a[i], at.a[j] - bottom)
        rate = curvature + at.rise_rate[i] + at.fall_rate[j]
        step = slope / rate if rate * most > slope else most
        at.a[i] = top if step == top - at.a[i] else at.a[i] + step
        at.a[j] = bottom if step == at.a[j] - bottom else at.a[j] - step
        total += step
        if step < most:
            set_slopes(i, at)
            set_slopes(j, at)
            return total


@compiled()
def run(at, K, lam, epsilon, max_steps):  # type: ignore[no-untyped-def]
    """Take pair steps until m - M <= epsilon; return the number of steps.

    At most `max_steps` are taken. `at` is a `Levels`, `K` the Gram matrix and `lam` lambda; m and M are
    defined in the module.
    """
    n = len(at.a)
    diagonal = np.empty(n)  # next to each other in memory, unlike in K
    curved = np.empty(n)  # the diagonal plus lambda times the rate of h_k below a_k
    for k in range(n):
        diagonal[k] = K[k, k]
        curved[k] = diagonal[k] + lam * at.fall_rate[k]
    least = max(TINY, EPS * diagonal.max())
    for done in range(max_steps):
        # First index: i = argmax (rise - G).
        i, best = -1, -np.inf
        for k in range(n):
            value = at.rise[k] - at.G[k]
            if value > best:
                best, i = value, k
        # Second index: the largest second-order gain slope^2 / curvature among j with fall_j - G_j < best.
        j, gain, lowest = -1, 0.0, np.inf
        mine = diagonal[i] + lam * at.rise_rate[i]
        for k in range(n):
            value = at.fall[k] - at.G[k]
            lowest = min(lowest, value)
            slope = best - value
            if slope > 0.0:
                score = slope * slope / max(mine + curved[k] - 2.0 * K[i, k], least)
                if score > gain:
                    gain, j = score, k
        if j < 0 or best - lowest <= epsilon:
            return done
        curvature = max(0.0, diagonal[i] + diagonal[j] - 2.0 * K[i, j]) / lam
        step = pair_step(i, j, curvature, at) / lam
        for k in range(n):
            at.G[k] += step * (K[i, k] - K[j, k])
        for k in (i, j):
            curved[k] = diagonal[k] + lam * at.fall_rate[k]
    return max_steps


class Standing(NamedTuple):
    """The primal and the dual value at one state of the SMO, times the problem's divisor.

    Attributes
    ----------
    intercept : float
        The intercept b of the primal value.
    primal, dual : float
        The objective of the whole problem, and the dual value at the current theta.
    inner_gap : float
        The duality gap of the problem at fixed theta, which more pair steps can close. The rest of `primal -
        dual` can only be closed by a change of theta.
    slope : float
        The derivative of the dual in theta: the weight of the two-sided term times C+ - C-.
    """

    intercept: float
    primal: float
    dual: float
    inner_gap: float
    slope: float

    @property
    def gap(self) -> float:
        """The duality gap."""
        return self.primal - self.dual


class FixedTheta:
    """The SMO at one theta: levels a, scores G without intercept, and their values.

    Parameters
    ----------
    problem, segments
        The problem, and its concave functions h_i at the fixed theta.
    gram
        The Gram matrix K, (n, n).
    a
        Levels to start from, (n,), before `Segments.feasible`.
    G
        K a / lambda, (n,), if it is known.
    """

    def __init__(
        self, problem: Problem, segments: Segments, gram: Floats, a: Floats, G: Floats | None = None
    ) -> None:
        self.problem, self.segments, self.gram = problem, segments, gram
        self.theta = segments.theta
        self.lam = problem.divisor * sum(weight for weight, _ in problem.regularizers)
        a = segments.feasible(a)
        G = gram @ a / self.lam if G is None else G.copy()
        rise, fall, rise_rate, fall_rate = np.empty((4, len(a)))
        parts = segments.breaks, segments.anchors, segments.slopes, segments.rates
        self.at = Levels(a, G, rise, fall, rise_rate, fall_rate, *parts)
        set_all_slopes(self.at)

    def optimal_intercepts(self) -> tuple[float, float]:
        """Return m and M, which the module defines.

        If a is optimal at this theta, every b in [m, M] is an optimal intercept.
        """
        return float((self.at.rise - self.at.G).max()), float((self.at.fall - self.at.G).min())

    @property
    def violation(self) -> float:
        """The violation m - M of the optimality condition; at most 0 if a is optimal."""
        m, M = self.optimal_intercepts()
        return m - M

    def standing(self) -> Standing:
        """Return the current primal value, dual value and gaps.

        h_i(a_i) is the sum of the atoms at a score that attains it, plus a_i times the score. The inner gap
        and the slope are taken at the midpoint of [m, M]; the primal value too, unless most of the gap is due
        to C+ - C-. Then the intercept between m and M at which C+ = C- is tried.
        """
        ends = [end for end in self.optimal_intercepts() if np.isfinite(end)]
        b = sum(ends) / len(ends) if ends else 0.0
        half_norm = 0.5 * float(self.at.a @ self.at.G)
        attained = self._attained()
        shares, sides = self.segments.shares, self.segments.sides
        dual = float(shares @ self.segments.values(attained) + self.at.a @ attained) - half_norm
        values = self.segments.values(self.at.G + b)
        mixed, slope = float(shares @ values), float(sides @ values)
        inner = mixed + half_norm - dual
        rest = slope * (1 - self.theta if slope > 0 else -self.theta)  # max(C+, C-) instead of the mixture
        if rest > inner and len(ends) == 2 and self._lead(ends[0]) * self._lead(ends[1]) < 0:
            from scipy.optimize import brentq  # takes long to import

            other = float(brentq(self._lead, *ends, rtol=EPS**0.5))
            primal = float(shares @ self.segments.values(self.at.G + other)) + half_norm
            if primal < mixed + rest + half_norm:
                return Standing(other, primal, dual, inner, slope)
        return Standing(b, mixed + rest + half_norm, dual, inner, slope)

    def _lead(self, intercept: float) -> float:
        """Return the derivative of the dual in theta at this intercept: eta (C+ - C-)."""
        return float(self.segments.sides @ self.segments.values(self.at.G + intercept))

    def _attained(self) -> Floats:
        """Return scores, (n,), at which h_i(a_i) is attained.

        They lie between the slopes of h_i to the right and to the left of a_i.
        """
        rise, fall = self.at.rise, self.at.fall
        with np.errstate(invalid="ignore"):  # both are infinite in a row with one level only
            low = np.where(np.isfinite(rise), rise, fall - 1 - np.abs(fall))
            high = np.where(np.isfinite(fall), fall, rise + 1 + np.abs(rise))
        middle = 0.5 * (low + high)
        return np.where(np.isnan(middle), 0.0, middle)

    def multipliers(self) -> Multipliers:
        """Return multipliers whose weighted sums are the levels, at the scores of `_attained`.

        At a kink they are combined from the slopes on both sides of it.
        """
        scores = self._attained()
        width = 16 * EPS * (1 + np.abs(scores))
        around = scores - width, scores + width
        return multipliers_between(self.problem, self.at.a, self.segments.thetas, *around)

    def advance(self, steps: int) -> int:
        """Take pair steps until the violation m - M is a tenth of its present value.

        Return the number of steps: at most `steps` and at most BATCH.
        """
        epsilon = max(self.violation / 10, 16 * EPS * (1.0 + float(np.abs(self.at.G).max())))
        return int(run(self.at, self.gram, self.lam, epsilon, min(steps, BATCH)))
