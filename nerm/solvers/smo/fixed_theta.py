"""The SMO at fixed theta: a compiled loop of pair steps, and its state.

Every atom psi_j has a conjugate a u + (q/2) u^2 on an interval, with a the bend of the atom: hinge, pinball,
identity and absolute value with q = 0, squared hinge and Huber functions with q > 0. Let mu be the total
weight of the squared l2 terms, lambda = mu * divisor, and K the Gram matrix. At fixed theta the dual, times
the problem's divisor, is

::

    max over a   sum_i h_i(a_i) - (1 / 2 lambda) a' K a        subject to   sum_i a_i = 0,
    h_i(a) = max { - sum_j W_ji psi_j*(-beta_ji) :  sum_j W_ji t_ji beta_ji = a, all beta_ji in their domains
    },

where block j has the multipliers beta_j, the targets t_j and the weights W_j = factor * share * weights; the
share is theta, 1 - theta or 1. The offset of a row is added to the bend a. The variable a_i is called the
level of row i.

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

from functools import partial
from typing import NamedTuple

import numpy as np

from nerm.certify.multipliers import Multipliers, multipliers_at
from nerm.model.blocks import EPS, scaled_weights, term_weights, two_sided
from nerm.model.problem import Problem
from nerm.solvers.linalg.compiled import compiled
from nerm.typing import Floats

TINY = float(np.finfo(float).tiny)
HUGE = float(np.finfo(float).max) ** 0.5
SMALLEST_TARGET = float(np.finfo(float).tiny) ** 0.5  # squares of bend / target overflow for smaller targets


class Segments:
    """The segments of every h_i at fixed theta, for J blocks and n rows.

    At the score f, block j contributes x_ji(f) = W t (bend - t f) / q to the level a_i, clipped to W t times
    its domain. As f falls, x_ji grows between two scores, its start and its end; both are bend / t if q = 0.
    These scores of all blocks and the score 0, in decreasing order, are the P = 2J + 1 points of a row. Every
    x_ji is linear in a_i between two points.

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
        self._blocks = problem.blocks
        self.theta = theta
        self.thetas = np.full(len(two_sided(problem)), theta)
        self._weights = np.stack(scaled_weights(problem, self.thetas))
        targets = np.stack([block.targets for block in self._blocks])
        t = self._targets = np.where(np.abs(targets) < SMALLEST_TARGET, 0.0, targets)
        self._domains = np.array([block.domain for block in self._blocks])[:, :, None]
        bends, self._q = np.array([block.atom.facts.quadratic for block in self._blocks]).T[:, :, None]
        self._bends = bends + np.stack([block.offsets for block in self._blocks])
        low, high = self._domains[:, 0], self._domains[:, 1]
        self._rates = self._weights * t  # the change of a_i per unit of each multiplier
        count, n = t.shape
        ends, scores = np.zeros((2, count, 2, n))  # the contribution and the score at start and end
        for k, at in enumerate((np.where(t > 0, low, high), np.where(t > 0, high, low))):
            np.multiply(self._rates, at, out=ends[:, k], where=self._rates != 0)
            margin = self._bends - np.multiply(self._q, at, out=np.zeros_like(t), where=self._q > 0)
            np.divide(margin, t, out=scores[:, k], where=t != 0)
        scores = np.vstack([scores.reshape(-1, n), np.zeros((1, n))])
        order = np.argsort(-scores, axis=0, kind="stable")
        points = np.take_along_axis(scores, order, axis=0)
        place = np.argsort(order, axis=0)[:-1].reshape(count, 2, n)
        numbers, (start, end) = np.arange(len(order))[:, None], np.swapaxes(place, 0, 1)[:, :, None]
        inside = (start < numbers) & (numbers < end)
        x = np.where(numbers <= start, ends[:, :1], ends[:, 1:])
        x = np.where(inside, self._contributions(np.where(inside.any(axis=0), points, 0.0)), x)
        levels = np.maximum.accumulate(x.sum(axis=0), axis=0)
        active = (start < numbers[1:]) & (numbers[:-1] < end)
        jumps = active & (self._q == 0)[:, None]
        square = self._rates * t
        density = np.divide(square, self._q, out=np.zeros_like(t), where=self._q > 0)[:, None] * active
        density *= ~jumps.any(axis=0)
        total = density.sum(axis=0)
        inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        left = np.isfinite(levels[:-1])
        self.breaks = np.ascontiguousarray(levels.T)
        pad = partial(np.pad, pad_width=((0, 0), (1, 1)))
        self.anchors = pad(np.where(left, levels[:-1], levels[1:]).T)
        self.rates = pad(inverse.T)
        self.slopes = pad(
            np.where(left, points[:-1], points[1:]).T, constant_values=((0, 0), (np.inf, -np.inf))
        )
        # On segment k the contribution of block j is _bases + _parts * (a - anchor), (J, P - 1, n).
        self._bases = np.where(left, x[:, :-1], x[:, 1:])
        self._parts = density * inverse + jumps

    def _contributions(self, scores: Floats) -> Floats:
        """Return x_ji at the scores, (J, ..., n); at a jump, one of the possible values."""
        shape = len(self._q), *(1,) * (scores.ndim - 1), -1
        t, bends, q, low, high, rates = (
            part.reshape(shape)
            for part in (self._targets, self._bends, self._q, *np.swapaxes(self._domains, 0, 1), self._rates)
        )
        with np.errstate(over="ignore", invalid="ignore"):
            beta = np.clip((bends - t * scores) / np.maximum(q, TINY), low, high)
            return np.where(rates == 0, 0.0, rates * beta)

    def multipliers(self, a: Floats, scores: Floats) -> Multipliers:
        """Return the multipliers that attain the maximum in every h_i(a_i).

        A multiplier whose target or weight is 0 does not change a; it is computed from the row's score
        (`nerm.certify.multipliers.multipliers_at`).
        """
        k = (self.breaks[:, 1:-1] < a[:, None]).sum(axis=1)
        rows = np.arange(len(a))
        x = self._bases[:, k, rows] + self._parts[:, k, rows] * (a - self.anchors[rows, 1 + k])
        idle = multipliers_at(self._blocks, scores)
        found = np.divide(x, self._rates, out=idle, where=self._rates != 0)
        return Multipliers(np.clip(found, self._domains[:, 0], self._domains[:, 1]), self.thetas)

    def gain(self, multipliers: Multipliers) -> float:
        """Return sum_i h_i(a_i), given the multipliers beta that attain it.

        Each term is -psi*(-beta) = bend * beta - (q/2) beta^2, times its weight.
        """
        beta = multipliers.rows
        return float(np.sum(self._weights * beta * (self._bends - 0.5 * self._q * beta)))

    def balanced(self, a: Floats, scores: Floats) -> Floats:
        """Return levels, (n,), within their bounds and with sum 0, near the levels a.

        They have the least cost for these scores, (n,): if a_i changes, the dual changes at the rate slope of
        h_i minus score. If the sum is positive, levels decrease to those at the scores raised by some z;
        else they increase to those at the scores lowered by z. Bisection finds z. Rows that jump at z move in
        their order.
        """
        a = np.clip(a, self.breaks[:, 0], self.breaks[:, -1])
        excess = float(a.sum())
        if excess == 0:
            return np.asarray(a)
        sign, nearer = (1.0, np.minimum) if excess > 0 else (-1.0, np.maximum)

        def moved(z: float) -> Floats:
            return nearer(a, self._contributions(scores + sign * z).sum(axis=0))

        low, high = -1.0, 1.0
        while sign * moved(high).sum() > 0 and high < HUGE:
            high *= 2
        while sign * moved(low).sum() <= 0 and low > -HUGE:
            low *= 2
        while high - low > EPS * max(abs(low), abs(high)):
            middle = low + (high - low) / 2
            low, high = (middle, high) if sign * moved(middle).sum() > 0 else (low, middle)
        near = moved(low)
        room = np.abs(near - moved(high))
        return np.asarray(near - sign * np.clip(abs(near.sum()) - (np.cumsum(room) - room), 0.0, room))


def theta_range(problem: Problem) -> tuple[float, float]:
    """Return the ends of the interval of thetas for which some feasible a has sum 0.

    This is [0, 1] if 0 is a feasible multiplier of both sides. It is not for the identity: the two sides then
    contribute a fixed amount proportional to `|2 theta - 1|` to a, which the risk must balance. At theta =
    1/2 this amount is 0, so 1/2 is always in the interval.
    """
    if all(block.domain[0] <= 0 <= block.domain[1] for block in problem.blocks if block.side):
        return 0.0, 1.0

    def sums(theta: float) -> Floats:
        breaks = Segments(problem, theta).breaks
        return np.array([-breaks[:, 0].sum(), breaks[:, -1].sum()])  # both are >= 0 if sum a = 0 is possible

    inside = sums(0.5)
    ends = list[float]()
    for theta in (0.0, 1.0):
        outside = sums(theta)
        short = outside < 0
        finite = np.minimum(inside[short], HUGE)  # if infinite, all thetas but the end are in the interval
        shares = np.minimum(finite / (finite - outside[short]), 1 - EPS)
        ends.append(0.5 + float(shares.min(initial=1.0)) * (theta - 0.5))
    return ends[0], ends[1]


BATCH = 1000  # the duality gap and the clock are checked after this many pair steps, or after n if larger


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
    """Increase a_i and decrease a_j by the same amount; return the amount.

    The amount maximises the dual, which is quadratic in it between breaks, and linear if its curvature is 0
    (two equal rows). It is at most the distance to the next break of h_i or h_j. `curvature` is that of
    a' K a / (2 lambda); the rates of h_i and h_j are added.
    """
    top = set_slopes(i, at)[1]
    bottom = set_slopes(j, at)[0]
    curvature += at.rise_rate[i] + at.fall_rate[j]
    slope = (at.rise[i] - at.G[i]) - (at.fall[j] - at.G[j])
    most = min(top - at.a[i], at.a[j] - bottom)
    step = slope / curvature if curvature * most > slope else most
    at.a[i] = top if step == top - at.a[i] else at.a[i] + step
    at.a[j] = bottom if step == at.a[j] - bottom else at.a[j] - step
    set_slopes(i, at)
    set_slopes(j, at)
    return step


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
    """Primal and dual values at one state of the SMO, times the problem's divisor.

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
        Levels to start from, (n,); they are clipped to their bounds.
    G
        K a / lambda, (n,), if it is known.
    """

    def __init__(
        self, problem: Problem, segments: Segments, gram: Floats, a: Floats, G: Floats | None = None
    ) -> None:
        self.problem, self.segments, self.gram = problem, segments, gram
        self.theta = segments.theta
        self.lam = problem.divisor * sum(weight for weight, _ in problem.regularizers)
        breaks = self.segments.breaks
        nearest = np.take_along_axis(breaks, np.abs(breaks - a[:, None]).argmin(axis=1)[:, None], axis=1)[
            :, 0
        ]
        snap = 16 * EPS * np.abs(np.where(np.isfinite(breaks), breaks, 0.0)).max(axis=1)
        a = np.where(np.abs(a - nearest) <= snap, nearest, np.clip(a, breaks[:, 0], breaks[:, -1]))
        G = gram @ a / self.lam if G is None else G.copy()
        rise, fall, rise_rate, fall_rate = np.empty((4, len(a)))
        parts = breaks, self.segments.anchors, self.segments.slopes, self.segments.rates
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

    def best_intercept(self, b: float) -> float:
        """Return b or another intercept, whichever has the smaller objective.

        The other intercept is the one in [m, M] at which C+ = C-, if there is one.
        """
        pairs = zip(term_weights(self.problem), self.problem.blocks, strict=True)
        sides = [(block.side * factor, block) for factor, block in pairs if block.side]

        def difference(b: float) -> float:
            return sum(factor * block.total(self.at.G + b) for factor, block in sides)

        ends = self.optimal_intercepts()
        if not (np.isfinite(ends).all() and difference(ends[0]) * difference(ends[1]) < 0):
            return b
        from scipy.optimize import brentq  # takes long to import

        other = float(brentq(difference, *ends, xtol=TINY, rtol=EPS**0.5))
        return min(b, other, key=lambda at: _larger(self._totals(at)))

    def standing(self) -> Standing:
        """Return the current values.

        The primal value is taken at the better of two intercepts (`best_intercept`); the inner gap and the
        slope are taken at the midpoint of [m, M].
        """
        at, theta = self.at, self.theta
        ends = [end for end in self.optimal_intercepts() if np.isfinite(end)]
        middle = sum(ends) / len(ends) if ends else 0.0
        b = self.best_intercept(middle)
        alone, plus, minus = self._totals(middle)
        half_norm = 0.5 * float(at.a @ at.G)
        primal = _larger(self._totals(b)) + half_norm
        dual = self.segments.gain(self.segments.multipliers(at.a, at.G + b)) - half_norm
        mixed = alone + theta * plus + (1 - theta) * minus
        return Standing(b, primal, dual, mixed + half_norm - dual, plus - minus)

    def _totals(self, intercept: float) -> tuple[float, float, float]:
        """Return three weighted sums at this intercept, times the problem's divisor.

        They are the sum of the blocks that are whole terms, the sum of C+, and the sum of C-.
        """
        sums = {0: 0.0, 1: 0.0, -1: 0.0}
        for factor, block in zip(term_weights(self.problem), self.problem.blocks, strict=True):
            sums[block.side] += factor * block.total(self.at.G + intercept)
        return sums[0], sums[1], sums[-1]

    def advance(self, steps: int) -> int:
        """Take pair steps until the violation m - M is a tenth of its present value.

        Return the number of steps: at most `steps`, and at most the larger of BATCH and the number of rows.
        """
        epsilon = max(self.violation / 10, 16 * EPS * (1.0 + float(np.abs(self.at.G).max())))
        return int(run(self.at, self.gram, self.lam, epsilon, min(steps, max(BATCH, len(self.at.a)))))


def _larger(totals: tuple[float, float, float]) -> float:
    alone, plus, minus = totals
    return alone + max(plus, minus)
