"""The search over theta around the SMO's pair steps.

D(theta), the maximum of the dual at fixed theta, is concave with derivative eta (C+ - C-). The search
brackets its maximum and shrinks the bracket by interpolation. The dual variable a_i of row i is called its
level (`nerm.solvers.smo.fixed_theta`). Between two solved thetas the levels a and the scores are interpolated
too. The optimal a(theta) is piecewise linear (a parametric quadratic program), so this warm start is exact as
long as the active set does not change. It needs no kernel evaluation.

Pair steps at fixed theta stop when the duality gap e of the problem at this theta is small; the rest of the
gap depends on theta. At such a point, with dual value d, every theta' has
D(theta') <= d + e + slope (theta' - theta). So the maximum can lie on the other side of theta than the slope
says, but only within the distance `e / |slope|` of theta, called the doubt of theta. If the bracket is no
wider than the doubt of one end, pair steps continue at that end.
"""

import time
from typing import NamedTuple

import numpy as np

from nerm.certify.multipliers import Multipliers, multipliers_at
from nerm.certify.solution import Answer
from nerm.model.blocks import EPS, two_sided, weighted_duals
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.rootfind import Bracket
from nerm.solvers.smo.fixed_theta import FixedTheta, Segments, Standing, theta_range
from nerm.typing import Floats

INNER_SHARE = 0.1  # pair steps stop at this share of the whole gap, or of the tolerance

TIME_IS_UP = "stopped: time is up"


class _End(NamedTuple):
    """One end of the bracket: its state and its doubt (see the module docstring)."""

    state: FixedTheta
    doubt: float


class ThetaSearch:
    """The search over theta.

    Parameters
    ----------
    problem, gram
        The problem, and the Gram matrix K, (n, n).
    tol
        The relative duality gap to reach.
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

    def run(self, start: Multipliers, scores: Floats) -> tuple[FixedTheta, str]:
        """Search from these multipliers and scores, (n,).

        Return the best state and a sentence about it.
        """
        first, last = theta_range(self.problem)
        theta = float(start.thetas[0]) if len(start.thetas) else 0.5
        state = self._moved(min(max(theta, first), last), start, scores)
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
            bracket.add(state.theta, standing.slope)
            exact = standing.inner_gap <= INNER_SHARE * self.tol * abs(standing.primal)
            ends[side] = _End(state, 0.0 if exact else standing.inner_gap / abs(standing.slope or 1.0))
            end = last if side > 0 else first
            width = bracket.high - bracket.low
            if state.theta == end or width <= 2 * EPS or self.share < EPS:
                return best, "not converged: no further progress in floating point"
            doubtful = [k for k in ends if bracket.is_closed and ends[k].doubt >= width]
            if doubtful:
                self.share *= INNER_SHARE
                bracket.open(doubtful[0])
                state = ends.pop(doubtful[0]).state
            elif bracket.is_closed:
                state = self._between(ends[1].state, ends[-1].state, bracket.share())
            else:
                scores = state.at.G
                state = self._moved(end, state.segments.multipliers(state.at.a, scores), scores)

    def _solve(self, state: FixedTheta) -> Standing:
        """Take pair steps until the inner gap is small beside the gap or the tolerance.

        The inner gap is that of the problem at fixed theta (`Standing`). Stop also if the whole gap is within
        the tolerance, no step is possible, or the time is up.
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

    def _moved(self, theta: float, multipliers: Multipliers, scores: Floats) -> FixedTheta:
        """Return the state at `theta` with the levels of these multipliers.

        The levels are corrected to sum 0, at the least cost for these scores (`Segments.balanced`).
        """
        a = weighted_duals(self.problem, multipliers.rows, np.full(len(multipliers.thetas), theta))
        segments = Segments(self.problem, theta)
        return FixedTheta(self.problem, segments, self.gram, segments.balanced(a, scores))

    def _between(self, low: FixedTheta, high: FixedTheta, share: float) -> FixedTheta:
        """Return the state with theta, levels and scores interpolated between two states.

        The combination is (1 - share) low + share high.
        """
        theta = (1 - share) * low.theta + share * high.theta
        a = (1 - share) * low.at.a + share * high.at.a
        G = (1 - share) * low.at.G + share * high.at.G
        return FixedTheta(self.problem, Segments(self.problem, theta), self.gram, a, G)


def solve(
    problem: Problem,
    gram: Floats,
    tol: float,
    *,
    start: tuple[Multipliers, Floats] | None = None,
    max_iter: int | None = None,
    deadline: float = clock.NEVER,
) -> Answer:
    """Solve the dual by pair steps until the true relative gap is at most `tol`.

    Parameters
    ----------
    problem : Problem
        With squared l2, a free intercept, at most one two-sided term, and atoms that have `facts.quadratic`.
    gram : (n, n) array
        The Gram matrix K.
    tol : float
        The relative duality gap to reach.
    start : (Multipliers, array), optional
        Multipliers and scores, (n,), of the solution of an adjacent problem.
    max_iter : int, optional
        Limit on the number of pair steps; by default the larger of a million and 200 n.
    deadline : float
        When to stop (`nerm.solvers.clock`).

    Returns
    -------
    Answer
        Coefficients, intercept, multipliers and a sentence about the result.

    """
    started = time.perf_counter()
    n = problem.hypothesis.n
    most = max(1_000_000, 200 * n) if max_iter is None else max_iter
    search = ThetaSearch(problem, gram, tol, most, deadline)
    state, claim = search.run(*(start or (_cold(problem), np.zeros(n))))
    b = state.standing().intercept
    return Answer(
        coef=problem.hypothesis.adjoint(state.at.a / state.lam),
        intercept=b,
        multipliers=state.segments.multipliers(state.at.a, state.at.G + b),
        claim=claim,
        iterations=search.iterations,
        solve_seconds=time.perf_counter() - started,
        details={"outer_iterations": search.outer},
        timed_out=claim == TIME_IS_UP,
    )


def _cold(problem: Problem) -> Multipliers:
    """Return the multipliers of a cold start, with theta = 1/2.

    They belong to score 0 for the neutrality term, and are as close to 0 as possible for the risks.
    """
    rows = multipliers_at(problem.blocks, np.zeros(problem.hypothesis.n))
    for row, block in zip(rows, problem.blocks, strict=True):
        if block.side == 0:
            row[:] = np.clip(0.0, *block.domain)
    return Multipliers(rows, np.full(len(two_sided(problem)), 0.5))
