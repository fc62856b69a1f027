"""The dual of row i as a concave piecewise-linear function h_i of one number a_i.

Every atom is two straight lines that meet at a bend (`facts.bend`): hinge, pinball, identity, absolute value.
At fixed theta the dual of the problem, times its divisor, reads with lambda = mu * divisor

::

    max over a   sum_i h_i(a_i) - (1 / 2 lambda) a' K a        subject to   sum_i a_i = 0,
    h_i(a) = max { - sum_j W_ji psi_j*(-beta_ji) :  sum_j W_ji t_ji beta_ji = a, all beta_ji in their domains
    },

where block j has targets t_j and weights W_j = factor * share * weights. Its conjugate is linear, so raising
a_i through beta_ji earns bend_j / t_ji, and h_i has one segment per block: that slope, the width `W_ji
|t_ji|` times the length of the domain, sorted by falling slope. A slope is also the score at which that atom
bends, and optimality says: f_i lies in the superdifferential of h_i at a_i. So n numbers replace the 3n
variables of the paper, in which pairs inside one row have no curvature and 1 / v is infinite at v = 0.
"""

import numpy as np

from nerm.certify.multipliers import Multipliers, multipliers_at
from nerm.model.blocks import scaled_weights, two_sided
from nerm.model.problem import Problem
from nerm.typing import Floats

SMALLEST_TARGET = float(np.finfo(float).tiny) ** 0.5  # squares of bend / target overflow for smaller targets


class Segments:
    """The segments of every h_i at fixed theta, with B blocks and m rows.

    Attributes
    ----------
    thetas : (K,) array
        theta of the two-sided term, if there is one.
    breaks : (m, B + 1) array
        The smallest a_i, and where each segment ends; by falling slope, empty segments last.
    slopes : (m, B + 2) array
        The slope on each segment, after a column of +inf and before one of -inf; -inf on empty segments.

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
        """Return how far each segment is filled at levels a."""
        return np.clip(a[:, None] - self.breaks[:, :-1], 0.0, np.diff(self.breaks, axis=1))

    def multipliers(self, a: Floats, scores: Floats) -> Multipliers:
        """Return the best multipliers that produce a: those that attain every h_i(a_i).

        A multiplier that moves nothing (its target or its weight is 0) is that of the row's score.
        """
        filled = np.empty(self._order.shape)
        np.put_along_axis(filled, self._order, self._filled(a), axis=1)
        rates = np.abs(self._weights * self._targets)
        idle = multipliers_at(self._blocks, scores)
        raised = np.divide(filled.T, rates, out=np.zeros_like(rates), where=rates > 0)
        first, last = self._domains[:, 0], self._domains[:, 1]
        # A multiplier rises with a if its target is positive; otherwise it falls from its upper end.
        rows = np.where(rates > 0, np.where(self._targets > 0, first + raised, last - raised), idle)
        return Multipliers(np.clip(rows, first, last), self.thetas)

    def gain(self, multipliers: Multipliers) -> float:
        """Return sum_i h_i(a_i) for the best multipliers of a: -psi*(-beta) = bend beta + psi(bend)."""
        bends = zip(self._blocks, self._bends, strict=True)
        at_bend = np.array([block.atom.value(bend) for block, bend in bends])
        return float(np.sum(self._weights * (self._bends * multipliers.rows + at_bend)))

    def balanced(self, a: Floats, scores: Floats) -> Floats:
        """Return levels within their bounds with sum zero, changed where that costs least at these scores.

        Moving a_i along a segment earns or costs its slope minus the score, so whole segments are emptied or
        filled, the cheapest first.
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
    """Return the interval of theta in which sum a = 0 is possible.

    All of [0, 1], unless 0 is no multiplier of a side, as with the identity: its part of a, of size `|2 theta
    - 1|`, has to be balanced by the risk. At theta = 1/2 it vanishes.
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
