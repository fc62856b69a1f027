"""The dual of row i as a concave piecewise-linear function h_i of one number a_i, and the best intercept.

Every atom is two straight lines that meet at a bend (`facts.bend`): hinge, pinball, identity, absolute value.
At fixed theta the dual of the problem, times its divisor, reads with lambda = mu * divisor

::

    max over a   sum_i h_i(a_i) - (1 / 2 lambda) a' K a        subject to   sum_i a_i = 0,
    h_i(a) = max { - sum_j W_ji psi_j*(-beta_ji) :  sum_j W_ji t_ji beta_ji = a, all beta_ji in their domains
    },

where block j has targets t_j and weights W_j = factor * share * weights. Its conjugate is linear, so raising
a_i through beta_ji earns bend_j / t_ji, and h_i is built of one segment a block: that slope, the width `W_ji
|t_ji|` times the length of the domain, sorted by falling slope. A slope is also the score at which that atom
bends, and optimality says: f_i lies in the superdifferential of h_i at a_i. So n numbers carry what the paper
does with 3n variables, and the troubles of the 3n form (pairs inside one row have no curvature, 1 / v at v =
0) cannot arise.
"""

from dataclasses import dataclass

import numpy as np

from nerm.certify.multipliers import Multipliers, multipliers_at
from nerm.model.blocks import Block, scaled_weights, term_weights, two_sided
from nerm.model.problem import Problem
from nerm.typing import Floats

NEGLIGIBLE = (
    1e-100  # a target below this can only matter for scores beyond 1e100; bend / target would overflow
)


def bend_of(block: Block) -> float:
    """Return where the two lines of its atom meet."""
    bend = block.atom.facts.bend
    assert bend is not None, block.atom
    return bend


class Segments:
    """The segments of every h_i at fixed theta, with B blocks and m rows.

    Attributes
    ----------
    thetas : (K,) array
        theta of the two-sided term, if there is one.
    low, high : (m,) arrays
        The smallest and the largest a_i.
    start, width : (m, B) arrays
        Where each segment begins, counted from low, and how long it is; by falling slope, empty ones last.
    slope : (m, B + 2) array
        The slope on each segment, after a column of +inf and before one of -inf; -inf on empty segments.

    """

    def __init__(self, problem: Problem, theta: float) -> None:
        self.problem, blocks = problem, problem.blocks
        self.thetas = np.full(len(two_sided(problem)), theta)
        self._weights = np.stack(scaled_weights(problem, self.thetas))
        targets = np.stack([block.targets for block in blocks])
        self._targets = np.where(np.abs(targets) < NEGLIGIBLE, 0.0, targets)
        self._domains = np.array([block.domain for block in blocks])[:, :, None]
        bends = np.array([[bend_of(block)] for block in blocks])
        pull = self._weights * self._targets  # what a unit of each multiplier adds to its row's force
        width = np.abs(pull) * np.diff(self._domains, axis=1)[:, 0]
        slope = np.divide(bends, self._targets, out=np.zeros_like(pull), where=self._targets != 0)
        slope = np.where(width > 0, slope, -np.inf)
        self._order = np.argsort(-slope, axis=0, kind="stable").T
        self.low = (pull[:, None] * self._domains).min(axis=1).sum(axis=0)
        self.width = np.take_along_axis(width.T, self._order, axis=1)
        self.high = self.low + self.width.sum(axis=1)
        self.start = np.cumsum(self.width, axis=1) - self.width
        # At a_i = low_i all multipliers are at one end; psi*(u) = bend u - psi(bend), and a target of 0
        # leaves psi(0).
        first = np.where(self._targets > 0, *self._domains.transpose(1, 0, 2))
        values = [[float(block.atom.value(bend_of(block))), block.atom.facts.at_zero] for block in blocks]
        at_bend, at_zero = np.array(values).T[:, :, None]
        self._base = float(
            np.sum(self._weights * np.where(self._targets != 0, bends * first + at_bend, at_zero))
        )
        inner = np.take_along_axis(slope.T, self._order, axis=1)
        self.slope = np.pad(inner, ((0, 0), (1, 1)), constant_values=((0, 0), (np.inf, -np.inf)))

    def _filled(self, a: Floats) -> Floats:
        """Return how far each segment is filled at levels a."""
        return np.clip((a - self.low)[:, None] - self.start, 0.0, self.width)

    def multipliers(self, a: Floats, scores: Floats | None = None) -> Multipliers:
        """Return the best multipliers that produce a: those that attain every h_i(a_i).

        A multiplier that moves nothing (its target or its weight is 0) is that of the row's score.
        """
        filled = np.empty_like(self.width)
        np.put_along_axis(filled, self._order, self._filled(a), axis=1)
        pull = np.abs(self._weights * self._targets)
        idle = multipliers_at(self.problem.blocks, np.zeros(len(a)) if scores is None else scores)
        raised = np.divide(filled.T, pull, out=np.zeros_like(pull), where=pull > 0)
        first, last = self._domains[:, 0], self._domains[:, 1]
        # Along a positive target the multiplier rises with a, along a negative one it falls from its upper
        # end.
        rows = np.where(pull > 0, np.where(self._targets > 0, first + raised, last - raised), idle)
        return Multipliers(np.clip(rows, first, last), self.thetas)

    def gain(self, a: Floats) -> float:
        """Return sum_i h_i(a_i)."""
        return self._base + float(
            np.sum(np.where(self.width > 0, self.slope[:, 1:-1], 0.0) * self._filled(a))
        )

    def balanced(self, a: Floats, scores: Floats | None = None) -> Floats:
        """Return levels inside [low, high] with sum zero, changed where that costs least at these scores.

        Moving a_i along a segment earns or costs its slope minus the score, so whole segments are emptied (or
        filled), the cheapest first: few rows leave their breaks, and those that do would have had to at an
        optimum.
        """
        filled = self._filled(np.clip(a, self.low, self.high))
        excess = float((self.low + filled.sum(axis=1)).sum())
        sign = 1.0 if excess > 0 else -1.0
        cost = sign * (self.slope[:, 1:-1] - (0.0 if scores is None else scores[:, None]))
        room = filled if excess > 0 else self.width - filled
        order = np.argsort(np.where(room > 0, cost, np.inf), axis=None, kind="stable")
        before = np.cumsum(room.ravel()[order]) - room.ravel()[order]
        moved = np.zeros(room.size)
        moved[order] = np.clip(abs(excess) - before, 0.0, room.ravel()[order])
        return self.low + (filled - sign * moved.reshape(room.shape)).sum(axis=1)


def theta_range(problem: Problem) -> tuple[float, float]:
    """Return the interval of theta in which sum a = 0 can be had.

    All of [0, 1], unless 0 is no multiplier of a side, as with the identity: its force, of size `|2 theta -
    1|`, has to be balanced by the risk. At theta = 1/2 it vanishes.
    """
    ends, centre = [], Segments(problem, 0.5)
    for theta in (0.0, 1.0):
        there, share = Segments(problem, theta), 1.0
        for inside, outside in ((-centre.low, -there.low), (centre.high, there.high)):
            if outside.sum() < 0:
                share = min(share, float(inside.sum() / (inside.sum() - outside.sum())))
        ends.append(0.5 + share * (theta - 0.5))
    return ends[0], ends[1]


def best_intercept(problem: Problem, g: Floats) -> tuple[float, float, float]:
    """Return (b, left, right): the interval of minimisers of P(g + b) and its midpoint.

    For scores g without intercept, b -> P(g + b) is convex and piecewise linear. Its minimum is at a bend of
    an atom or, with a two-sided term, where C+ = C-.

    Differences below 1e-12 of the value count as rounding when the interval is read off.
    """
    blocks = zip(term_weights(problem), problem.blocks, strict=True)
    lines = [(factor, block.side, _line(block, g)) for factor, block in blocks if factor > 0]
    points = np.unique(np.concatenate([line.bends for _, _, line in lines]))
    sides = [line for _, side, line in lines if side]
    if sides:
        points = _with_crossings(points, *sides)
    values = sum((f * line.at(points) for f, side, line in lines if not side), start=np.zeros(len(points)))
    if sides:
        values = values + np.max([f * line.at(points) for f, side, line in lines if side], axis=0)
    best = float(values.min())
    flat = points[values <= best + 1e-12 * max(1.0, abs(best))]
    left, right = float(flat[0]), float(flat[-1])
    return 0.5 * (left + right), left, right


@dataclass(frozen=True)
class _Line:
    """A block along b: constant + sum_i slope_i (b - bend_i), one slope on either side of each bend."""

    bends: Floats
    left: Floats
    right: Floats
    constant: float

    def at(self, points: Floats) -> Floats:
        """Return the values at sorted points: sums over all bends on one side are cumulative sums."""
        before = np.searchsorted(self.bends, points, side="right")
        jump = self.right - self.left
        rate = self.left.sum() + np.append(0.0, np.cumsum(jump))[before]
        level = (self.left * self.bends).sum() + np.append(0.0, np.cumsum(jump * self.bends))[before]
        return np.asarray(rate * points - level + self.constant)


def _line(block: Block, g: Floats) -> _Line:
    """Return sum_i weights_i atom(targets_i (g_i + b)) as a function of b."""
    facts, still = block.atom.facts, np.abs(block.targets) < NEGLIGIBLE
    moved = ~still & (block.weights > 0)
    w, t = block.weights[moved], block.targets[moved]
    bend = bend_of(block)
    bends = bend / t - g[moved]
    slopes = w * np.sort(t * np.array(facts.slopes)[:, None], axis=0)
    constant = float(block.weights[still].sum()) * facts.at_zero + float(w.sum() * block.atom.value(bend))
    order = np.argsort(bends)
    return _Line(bends[order], slopes[0, order], slopes[1, order], constant)


def _with_crossings(points: Floats, plus: _Line, minus: _Line) -> Floats:
    """Add the points where C+ - C- passes 0; it is linear between bends and beyond the last ones."""
    points = np.concatenate([[points[0] - 1.0], points, [points[-1] + 1.0]])
    d = plus.at(points) - minus.at(points)
    fall = d[:-1] - d[1:]
    share = np.divide(d[:-1], fall, out=np.full(len(fall), np.nan), where=fall != 0)
    first, last = np.zeros(len(share)), np.ones(len(share))
    first[0], last[-1] = -np.inf, np.inf
    k = np.flatnonzero((share > first) & (share < last))
    return np.sort(np.append(points, points[k] + share[k] * (points[k + 1] - points[k])))
