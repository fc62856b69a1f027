"""The SMO at fixed theta: a compiled loop of pair steps, and its state.

Every atom psi_j consists of two straight lines that meet at a bend (`facts.bend`): hinge, pinball, identity,
absolute value. Let mu be the total weight of the squared l2 terms, lambda = mu * divisor, and K the Gram
matrix. At fixed theta the dual, times the problem's divisor, is

::

    max over a   sum_i h_i(a_i) - (1 / 2 lambda) a' K a        subject to   sum_i a_i = 0,
    h_i(a) = max { - sum_j W_ji psi_j*(-beta_ji) :  sum_j W_ji t_ji beta_ji = a, all beta_ji in their domains
    },

where block j has the multipliers beta_j, the targets t_j and the weights W_j = factor * share * weights; the
share is theta, 1 - theta or 1. The variable a_i is called the level of row i.

The conjugate psi_j* is linear on its domain. So h_i is concave and piecewise linear, with one segment per
block: its slope is bend_j / t_ji, its width is `W_ji |t_ji|` times the length of the domain, and the segments
are sorted by decreasing slope. A slope is also the score at which that atom bends. At the optimum the score
f_i lies in the superdifferential of h_i at a_i. This form has n variables. The form of the paper has 3n:
there pairs inside one row have no curvature, and 1 / v is infinite at v = 0.

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

import numba
import numpy as np
from scipy.optimize import brentq

from nerm.certify.multipliers import Multipliers, multipliers_at
from nerm.model.blocks import EPS, scaled_weights, term_weights, two_sided
from nerm.model.problem import Problem
from nerm.typing import Floats

SMALLEST_TARGET = float(np.finfo(float).tiny) ** 0.5  # squares of bend / target overflow for smaller targets


class Segments:
    """The segments of every h_i at fixed theta, for J blocks and n rows.

    The segments of a row are sorted by decreasing slope, segments of width 0 last.

    Attributes
    ----------
    thetas : (K,) array
        theta of the two-sided term; K is 1 if there is one, else 0.
    breaks : (n, J + 1) array
        In each row, the smallest possible a_i, then the end of each segment.
    slopes : (n, J + 2) array
        In each row +inf, then the slope of each segment (-inf if its width is 0), then -inf.

    """

    def __init__(self, problem: Problem, theta: float) -> None:
        self._blocks = problem.blocks
        self.thetas = np.full(len(two_sided(problem)), theta)
        self._weights = np.stack(scaled_weights(problem, self.thetas))
        targets = np.stack([block.targets for block in self._blocks])
        self._targets = np.where(np.abs(targets) < SMALLEST_TARGET, 0.0, targets)
        self._domains = np.array([block.domain for block in self._blocks])[:, :, None]
        self._bends = np.array([[float(block.atom.facts.bend or 0.0)] for block in self._blocks])
        rates = self._weights * self._targets  # the change of a_i per unit of each multiplier
        widths = np.abs(rates) * np.diff(self._domains, axis=1)[:, 0]
        slopes = np.divide(self._bends, self._targets, out=np.zeros_like(rates), where=self._targets != 0)
        slopes = np.where(widths > 0, slopes, -np.inf)
        self._order = np.argsort(-slopes, axis=0, kind="stable").T
        low = (rates[:, None] * self._domains).min(axis=1).sum(axis=0)
        ends = np.cumsum(np.take_along_axis(widths.T, self._order, axis=1), axis=1)
        self.breaks = low[:, None] + np.pad(ends, ((0, 0), (1, 0)))
        inner = np.take_along_axis(slopes.T, self._order, axis=1)
        self.slopes = np.pad(inner, ((0, 0), (1, 1)), constant_values=((0, 0), (np.inf, -np.inf)))

    def _filled(self, a: Floats) -> Floats:
        """Return the length of the part of each segment below a_i, (n, J)."""
        return np.clip(a[:, None] - self.breaks[:, :-1], 0.0, np.diff(self.breaks, axis=1))

    def multipliers(self, a: Floats, scores: Floats) -> Multipliers:
        """Return the multipliers that attain the maximum in every h_i(a_i).

        A multiplier whose target or weight is 0 does not change a; it is computed from the row's score
        (`nerm.certify.multipliers.multipliers_at`).
        """
        filled = np.empty(self._order.shape)
        np.put_along_axis(filled, self._order, self._filled(a), axis=1)
        rates = np.abs(self._weights * self._targets)
        idle = multipliers_at(self._blocks, scores)
        raised = np.divide(filled.T, rates, out=np.zeros_like(rates), where=rates > 0)
        first, last = self._domains[:, 0], self._domains[:, 1]
        # If a grows, a multiplier with a positive target grows from its lower end; the others decrease.
        rows = np.where(rates > 0, np.where(self._targets > 0, first + raised, last - raised), idle)
        return Multipliers(np.clip(rows, first, last), self.thetas)

    def gain(self, multipliers: Multipliers) -> float:
        """Return sum_i h_i(a_i), given the multipliers beta that attain it.

        Each term is -psi*(-beta) = bend * beta + psi(bend), times its weight.
        """
        bends = zip(self._blocks, self._bends, strict=True)
        at_bend = np.array([block.atom.value(bend) for block, bend in bends])
        return float(np.sum(self._weights * (self._bends * multipliers.rows + at_bend)))

    def balanced(self, a: Floats, scores: Floats) -> Floats:
        """Return levels, (n,), within their bounds and with sum 0, near the levels a.

        They have the least cost for these scores, (n,): if a_i changes along a segment, the dual changes at
        the rate slope minus score. So segments are emptied (if the sum is positive) or filled (if it is
        negative), in the order of increasing cost.
        """
        filled = self._filled(a)
        excess = float(self.breaks[:, 0].sum() + filled.sum())
        sign = 1.0 if excess > 0 else -1.0
        cost = sign * (self.slopes[:, 1:-1] - scores[:, None])
        room = filled if excess > 0 else np.diff(self.breaks, axis=1) - filled
        order = np.argsort(np.where(room > 0, cost, np.inf), axis=None, kind="stable")
        before = np.cumsum(room.ravel()[order]) - room.ravel()[order]
        moved = np.zeros(room.size)
        moved[order] = np.clip(abs(excess) - before, 0.0, room.ravel()[order])
        return self.breaks[:, 0] + (filled - sign * moved.reshape(room.shape)).sum(axis=1)


def theta_range(problem: Problem) -> tuple[float, float]:
    """Return the ends of the interval of thetas for which some feasible a has sum 0.

    This is [0, 1] if 0 is a feasible multiplier of both sides. It is not for the identity: the two sides then
    contribute a fixed amount proportional to `|2 theta - 1|` to a, which the risk must balance. At theta =
    1/2 this amount is 0, so 1/2 is always in the interval.
    """

    def sums(theta: float) -> Floats:
        breaks = Segments(problem, theta).breaks
        return np.array([-breaks[:, 0].sum(), breaks[:, -1].sum()])  # both are >= 0 if sum a = 0 is possible

    inside = sums(0.5)
    ends = list[float]()
    for theta in (0.0, 1.0):
        outside = sums(theta)
        short = outside < 0
        shares = inside[short] / (inside[short] - outside[short])
        ends.append(0.5 + float(shares.min(initial=1.0)) * (theta - 0.5))
    return ends[0], ends[1]


TINY = float(np.finfo(float).tiny)
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
    breaks, slopes
        As in `Segments`.
    """

    a: Floats
    G: Floats
    rise: Floats
    fall: Floats
    breaks: Floats
    slopes: Floats


@numba.njit(cache=True)
def set_slopes(i, at):  # type: ignore[no-untyped-def]
    """Set rise and fall of row i; return the nearest breaks of h_i around a_i.

    The first break is below a_i, the second above.
    """
    count = at.breaks.shape[1]
    k = 0
    while k < count and at.breaks[i, k] < at.a[i]:
        k += 1
    before = at.breaks[i, max(k - 1, 0)]
    at.fall[i] = at.slopes[i, k]
    while k < count and at.breaks[i, k] <= at.a[i]:
        k += 1
    at.rise[i] = at.slopes[i, k]
    return before, at.breaks[i, min(k, count - 1)]


@numba.njit(cache=True)
def set_all_slopes(at):  # type: ignore[no-untyped-def]
    """Set rise and fall of every row."""
    for i in range(len(at.a)):
        set_slopes(i, at)


@numba.njit(cache=True)
def pair_step(i, j, curvature, at):  # type: ignore[no-untyped-def]
    """Increase a_i and decrease a_j by the same amount; return the amount.

    The amount maximises the dual, which is quadratic in it between breaks, and linear if the curvature is 0
    (two equal rows). It is at most the distance to the next break of h_i or h_j.
    """
    top = set_slopes(i, at)[1]
    bottom = set_slopes(j, at)[0]
    slope = (at.rise[i] - at.G[i]) - (at.fall[j] - at.G[j])
    most = min(top - at.a[i], at.a[j] - bottom)
    step = slope / curvature if curvature * most > slope else most
    at.a[i] = top if step == top - at.a[i] else at.a[i] + step
    at.a[j] = bottom if step == at.a[j] - bottom else at.a[j] - step
    set_slopes(i, at)
    set_slopes(j, at)
    return step


@numba.njit(cache=True)
def run(at, K, lam, epsilon, max_steps):  # type: ignore[no-untyped-def]
    """Take pair steps until m - M <= epsilon; return the number of steps.

    At most `max_steps` are taken. `at` is a `Levels`, `K` the Gram matrix and `lam` lambda; m and M are
    defined in the module.
    """
    n = len(at.a)
    diagonal = np.empty(n)  # next to each other in memory, unlike in K
    for k in range(n):
        diagonal[k] = K[k, k]
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
        for k in range(n):
            value = at.fall[k] - at.G[k]
            lowest = min(lowest, value)
            slope = best - value
            if slope > 0.0:
                score = slope * slope / max(diagonal[i] + diagonal[k] - 2.0 * K[i, k], least)
                if score > gain:
                    gain, j = score, k
        if j < 0 or best - lowest <= epsilon:
            return done
        curvature = max(0.0, diagonal[i] + diagonal[j] - 2.0 * K[i, j]) / lam
        step = pair_step(i, j, curvature, at) / lam
        for k in range(n):
            at.G[k] += step * (K[i, k] - K[j, k])
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
    problem, theta
        The problem, and the fixed theta.
    gram
        The Gram matrix K, (n, n).
    a
        Levels to start from, (n,); they are clipped to their bounds.
    G
        K a / lambda, (n,), if it is known.
    """

    def __init__(
        self, problem: Problem, theta: float, gram: Floats, a: Floats, G: Floats | None = None
    ) -> None:
        self.problem, self.theta, self.gram = problem, theta, gram
        self.segments = Segments(problem, theta)
        self.lam = problem.divisor * sum(weight for weight, _ in problem.regularizers)
        breaks = self.segments.breaks
        nearest = np.take_along_axis(breaks, np.abs(breaks - a[:, None]).argmin(axis=1)[:, None], axis=1)[
            :, 0
        ]
        snap = 16 * EPS * np.abs(breaks).max(axis=1)
        a = np.where(np.abs(a - nearest) <= snap, nearest, np.clip(a, breaks[:, 0], breaks[:, -1]))
        G = gram @ a / self.lam if G is None else G.copy()
        self.at = Levels(a, G, np.empty(len(a)), np.empty(len(a)), breaks, self.segments.slopes)
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
        other = float(brentq(difference, *ends, xtol=TINY, rtol=EPS**0.7))
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
