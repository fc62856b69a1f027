"""The search over theta around the SMO's pair steps.

D(theta), the maximum of the dual at fixed theta, is concave with derivative eta (C+ - C-). The search
brackets its maximum and shrinks the bracket by interpolation. The levels a are the weighted dual variables of
the rows, one a_i per row (`nerm.solvers.smo.fixed_theta`). Between two solved thetas the levels a and the
scores are interpolated too. The optimal a(theta) is piecewise linear (a parametric quadratic program), so
this warm start is exact as long as the active set does not change. It needs no kernel evaluation.

Pair steps at fixed theta stop when the duality gap e of the problem at this theta is small; the rest of the
gap depends on theta. At such a point, with dual value d, every theta' has
D(theta') <= d + e + slope (theta' - theta). So the maximum can lie on the other side of theta than the slope
says, but only within the distance `e / |slope|` of theta, called the doubt of theta. If one end of the
bracket has moved twice in a row, and the bracket is no wider than the doubt of the other end, pair steps
continue at that other end.
"""

from typing import NamedTuple

import numpy as np

from nerm.model.blocks import EPS, weighted_duals
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.rootfind import Bracket
from nerm.solvers.smo.fixed_theta import FixedTheta, Segments, Standing
from nerm.typing import Floats

INNER_SHARE = 0.1  # pair steps stop at this share of the whole gap, or of the tolerance

TIME_IS_UP = "stopped: time is up"


class _End(NamedTuple):
    """One end of the bracket: its state, and its doubt `e / |slope|` (see the module docstring)."""

    state: FixedTheta
    doubt: float


class ThetaSearch:
    """The search over theta.

    Parameters
    ----------
    problem, gram
        The problem, and the Gram matrix K, (n, n).
    tol
        The target of the relative duality gap.
    max_iter
        The largest number of pair steps.
    deadline
        The time at which the search stops (`nerm.solvers.clock`).

    Attributes
    ----------
    share
        Pair steps at one theta stop when their gap is at most this share of the whole gap.
    iterations
        Number of pair steps so far.
    outer
        Number of thetas tried so far.
    """

    def __init__(self, problem: Problem, gram: Floats, tol: float, max_iter: int, deadline: float) -> None:
        self.problem = problem
        self.gram = gram
        self.tol = tol
        self.max_iter = max_iter
        self.deadline = deadline
        self.share = INNER_SHARE
        self.iterations = self.outer = 0

    def run(self, theta: float, rows: Floats) -> tuple[FixedTheta, str]:
        """Search from this theta and these multipliers, one row per block.

        Return the best state, and a sentence that says why the search stopped.
        """
        state = self._moved(theta, rows)
        bracket = Bracket()  # the dual increases at the low end and decreases at the high end
        ends = dict[int, _End]()  # key 1: the low end; key -1: the high end
        best, smallest = state, np.inf
        while True:
            self.outer += 1
            standing = self._solve(state)
            if standing.gap < smallest:
                best, smallest = state, standing.gap
            if standing.gap <= self.tol * abs(standing.primal):
                return state, "optimal: the duality gap is within the tolerance"
            if clock.is_up(self.deadline):
                return best, TIME_IS_UP
            if self.iterations >= self.max_iter:
                return best, f"not converged: the limit of {self.max_iter} pair steps was reached"
            side = 1 if standing.slope > 0 else -1
            is_stale = bracket.side == side  # the other end did not move twice in a row
            bracket.add(state.theta, standing.slope)
            exact = standing.inner_gap <= INNER_SHARE * self.tol * abs(standing.primal)
            ends[side] = _End(state, 0.0 if exact else standing.inner_gap / abs(standing.slope or 1.0))
            end = 1.0 if side > 0 else 0.0
            width = bracket.high - bracket.low
            if state.theta == end or width <= 2 * EPS or self.share < EPS:
                return best, "not converged: no further progress in floating point"
            if is_stale and bracket.is_closed and ends[-side].doubt >= width:
                self.share *= INNER_SHARE
                bracket.open(-side)
                state = ends.pop(-side).state
            elif bracket.is_closed:
                state = self._between(ends[1].state, ends[-1].state, bracket.share())
            else:
                state = self._moved(end, state.multipliers().rows, state.theta)

    def _solve(self, state: FixedTheta) -> Standing:
        """Take pair steps at the theta of `state` until its inner gap is small.

        The inner gap is the duality gap of the problem at fixed theta (`Standing`). It is small if it is at
        most `share` times the whole gap, or below the tolerance. The steps also stop if the whole gap is
        within the tolerance, if no step is possible, or if the time is up.
        """
        while True:
            standing = state.standing()
            scale = self.tol * abs(standing.primal)
            if standing.gap <= scale or standing.inner_gap <= max(
                self.share * standing.gap, INNER_SHARE * scale
            ):
                return standing
            done = state.advance(self.max_iter - self.iterations)
            self.iterations += done
            if done == 0 or clock.is_up(self.deadline):
                return state.standing()

    def _moved(self, theta: float, rows: Floats, back: float = 0.5) -> FixedTheta:
        """Return the state at `theta`, started at these multipliers.

        While no weighted dual variables at theta have sum 0, theta is replaced by (theta + back) / 2.
        """
        segments = Segments(self.problem, theta)
        if not segments.can_balance and theta != back:
            return self._moved((theta + back) / 2, rows, back)
        a = weighted_duals(self.problem, rows, segments.thetas)
        return FixedTheta(self.problem, segments, self.gram, a)

    def _between(self, low: FixedTheta, high: FixedTheta, share: float) -> FixedTheta:
        """Return the state with theta, levels and scores interpolated between two states.

        The combination is (1 - share) low + share high.
        """
        theta = (1 - share) * low.theta + share * high.theta
        a = (1 - share) * low.at.a + share * high.at.a
        G = (1 - share) * low.at.G + share * high.at.G
        return FixedTheta(self.problem, Segments(self.problem, theta), self.gram, a, G)
