"""The search over theta around the SMO's pair steps.

D(theta), the best dual value at fixed theta, is concave with derivative eta (C+ - C-): its maximum is
bracketed and the bracket is cut by interpolation. Between two solved points the levels a and the scores are
interpolated as well: a(theta) is piecewise linear (a parametric quadratic programme), so the warm start is
exact until the active set changes, and it costs no kernel value.

Pair steps stop when their part e of the true gap is small; the rest belongs to theta. Then a point still says
D(theta') <= D(theta) + e + slope (theta' - theta), so its side can be wrong by at most `e / |slope|`, its
doubt. If the bracket is no wider than the doubt of one end, pair steps go on at that end.
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

INNER_SHARE = 0.1  # of the true gap and of the tolerance, at which pair steps stop

TIME_IS_UP = "stopped: time is up"


class _End(NamedTuple):
    """An end of the bracket, and by how much its theta may be on the wrong side."""

    state: FixedTheta
    doubt: float


class ThetaSearch:
    """The search, with the counts of pair steps (`iterations`) and of thetas (`outer`)."""

    def __init__(self, problem: Problem, gram: Floats, tol: float, max_iter: int, deadline: float) -> None:
        self.problem = problem
        self.gram = gram
        self.tol = tol
        self.max_iter = max_iter
        self.deadline = deadline
        self.share = INNER_SHARE
        self.iterations = self.outer = 0

    def run(self, start: Multipliers, scores: Floats) -> tuple[FixedTheta, str]:
        """Search from multipliers and scores; return the best state and a sentence about it."""
        first, last = theta_range(self.problem)
        theta = float(start.thetas[0]) if len(start.thetas) else 0.5
        state = self._moved(min(max(theta, first), last), start, scores)
        bracket = Bracket()  # the dual rises at its low end and falls at its high end
        ends = dict[int, _End]()  # the low end by 1, the high end by -1
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
        """Take pair steps until their gap is a small share of the tolerance, or no violation is left."""
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
        """Return the state at another theta with these multipliers."""
        a = weighted_duals(self.problem, multipliers.rows, np.full(len(multipliers.thetas), theta))
        a = Segments(self.problem, theta).balanced(a, scores)
        return FixedTheta(self.problem, theta, self.gram, a)

    def _between(self, low: FixedTheta, high: FixedTheta, share: float) -> FixedTheta:
        """Return the state on the line between two."""
        theta = (1 - share) * low.theta + share * high.theta
        a = (1 - share) * low.at.a + share * high.at.a
        G = (1 - share) * low.at.G + share * high.at.G
        return FixedTheta(self.problem, theta, self.gram, a, G)


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
        With squared l2, a free intercept, at most one two-sided term, and atoms that have `facts.bend`.
    gram : (n, n) array
        K.
    tol : float
        The relative duality gap.
    start : (Multipliers, array), optional
        Those of an adjacent problem, and its scores.
    max_iter : int, optional
        The limit of pair steps.
    deadline : float
        When to stop (`nerm.solvers.clock`).

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
    """Return the multipliers of the score 0 at theta = 1/2, and 0 for the risks."""
    rows = multipliers_at(problem.blocks, np.zeros(problem.hypothesis.n))
    for row, block in zip(rows, problem.blocks, strict=True):
        if block.side == 0:
            row[:] = np.clip(0.0, *block.domain)
    return Multipliers(rows, np.full(len(two_sided(problem)), 0.5))
