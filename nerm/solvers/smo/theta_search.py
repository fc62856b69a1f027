"""The search over theta around the SMO's pair steps.

D(theta), the best dual value at fixed theta, is concave with derivative eta (C+ - C-): its maximum is
bracketed and the bracket is cut by interpolation. Between two solved points the levels a and the scores are
interpolated as well: a(theta) is piecewise linear (a parametric quadratic programme), so the warm start is
exact until the active set changes, and it costs no kernel value at all.

Pair steps go on only while they own a fair share of the true gap; the rest belongs to theta. A point solved
up to an inner gap e still says D(theta') <= D(theta) + e + slope (theta' - theta), so its word "further to
the right" can be wrong by at most `e / |slope|`. That is its doubt. When the bracket keeps closing on one end
and is no wider than that end's doubt, the end is dropped and the search looks beyond it.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from nerm.certify.multipliers import Multipliers, multipliers_at
from nerm.certify.solution import Answer
from nerm.model.blocks import two_sided, weighted_duals
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.linalg.gram_cache import GramCache
from nerm.solvers.rootfind import Bracket
from nerm.solvers.smo.fixed_theta import FixedTheta, Standing
from nerm.solvers.smo.segments import Segments, best_intercept, theta_range
from nerm.typing import Floats

MAX_OUTER = 200
INNER_SHARE = (
    0.1  # pair steps stop once their share of the true gap is below this (less, once that misled the search)
)
STALE = 2  # an end of the bracket is looked at with suspicion after this many steps on the other side

OPTIMAL = "optimal: the duality gap is within the tolerance"
STOPPED = "stopped: the callback asked for it"
TIME_IS_UP = "stopped: time is up"
STUCK = "not converged: no further progress in floating point"


class _End(NamedTuple):
    """An end of the bracket: a solved point, and by how much its theta may be on the wrong side."""

    state: FixedTheta
    doubt: float


class ThetaSearch:
    """The search and its bookkeeping: a bracket (two ends or fewer), counters, history.

    Attributes
    ----------
    iterations, outer : int
        Pair steps, and thetas.
    history : list of dict
        iterations, outer_iterations, primal, dual, gap and violation now and then, in mean form.

    """

    def __init__(
        self,
        problem: Problem,
        cache: GramCache,
        tol: float,
        max_iter: int,
        callback: Callable[..., Any] | None = None,
        deadline: float = clock.NEVER,
    ) -> None:
        self.problem = problem
        self.cache = cache
        self.tol = tol
        self.max_iter = max_iter
        self.callback = callback
        self.deadline = deadline
        self.first, self.last = theta_range(problem)
        self.iterations = self.outer = 0
        self.history: list[dict[str, float]] = []
        self.stopped = False
        self.bracket = Bracket()  # the dual rises at its low end and falls at its high end
        self.ends: dict[int, _End] = {}  # the low end by 1, the high end by -1
        self.last_side = 0
        self.repeats = 0
        self.stride = 0.1
        self.share = INNER_SHARE

    def run(self, start: Multipliers, scores: Floats) -> tuple[FixedTheta, str]:
        """Run the whole search from multipliers and scores; return a state and a sentence about it."""
        state = self._at(float(start.thetas[0]) if len(start.thetas) else 0.5, start, scores)
        best_gap = np.inf
        best_state = state
        while True:
            self.outer += 1
            standing, exhausted = self._inner(state)
            if standing.gap <= self.tol * abs(standing.primal):
                return state, OPTIMAL
            if self.stopped:
                return state, STOPPED
            if clock.is_up(self.deadline):
                return (state if standing.gap <= best_gap else best_state), TIME_IS_UP
            if self.iterations >= self.max_iter:
                return state, f"not converged: the limit of {self.max_iter} pair steps was reached"
            if self.outer >= MAX_OUTER:
                return state, f"not converged: the limit of {MAX_OUTER} values of theta was reached"
            # At an end with the slope pointing outward only pair steps are left.
            at_end = state.theta >= self.last if standing.slope > 0 else state.theta <= self.first
            if at_end and not exhausted:
                continue
            moved = None if at_end or standing.slope == 0.0 else self._next(state, standing)
            if moved is None:
                return state, STUCK
            if standing.gap < best_gap:
                best_gap = standing.gap
                best_state = state
            state = moved

    def _next(self, state: FixedTheta, standing: Standing) -> FixedTheta | None:
        """Enter the solved point into the bracket and return the next; None if nothing is left to cut."""
        theta = state.theta
        side = 1 if standing.slope > 0 else -1
        self.bracket.add(theta, standing.slope)
        self.ends[side] = _End(state, max(0.0, standing.inner_gap) / abs(standing.slope))
        self.repeats = self.repeats + 1 if side == self.last_side else 0
        self.last_side = side
        other = self.ends.get(-side)
        if other is not None and self.repeats >= STALE and abs(other.state.theta - theta) <= other.doubt:
            # The far end was probably on the wrong side: look beyond it as far as its doubt reaches, with
            # more accurate pair steps from now on.
            self.stride = max(2.0 * abs(other.state.theta - theta), other.doubt)
            self.share = max(1e-4, 0.2 * self.share)
            self.bracket.open(-side)
            del self.ends[-side]
            other = None
        if other is None:
            theta += side * self.stride
            self.stride *= 2.5
            return self._at(theta, state.segments.multipliers(state.at.a, state.at.G), state.at.G)
        if self.bracket.high - self.bracket.low <= 2 * np.finfo(float).eps:
            return None
        share = self.bracket.share()
        low = self.ends[1].state
        high = self.ends[-1].state
        theta = (1 - share) * low.theta + share * high.theta
        a = (1 - share) * low.at.a + share * high.at.a
        G = (1 - share) * low.at.G + share * high.at.G
        return FixedTheta(self.problem, theta, self.cache, a, G)

    def _inner(self, state: FixedTheta) -> tuple[Standing, bool]:
        """Take pair steps until they no longer own the gap; return the standing and whether none are left."""
        chunk, exhausted = 100, False
        while True:
            standing = state.standing()
            target = self.tol * abs(standing.primal)
            if exhausted or standing.inner_gap <= max(target, self.share * standing.gap):
                standing = state.standing(best=True)
            self._report(standing)
            fair = standing.inner_gap <= self.share * standing.gap
            stop = self.stopped or self.iterations >= self.max_iter or clock.is_up(self.deadline)
            if exhausted or fair or stop or standing.gap <= target:
                return standing, exhausted
            done, exhausted = state.advance(min(chunk, self.max_iter - self.iterations), self.deadline)
            self.iterations += done
            chunk = min(2 * chunk, 1000)

    def _at(self, theta: float, multipliers: Multipliers, scores: Floats) -> FixedTheta:
        """Carry multipliers over to another theta: they stay what fraction of their domain they are."""
        theta = float(np.clip(theta, self.first, self.last))
        a: Floats = weighted_duals(self.problem, multipliers.rows, np.full(len(multipliers.thetas), theta))
        a = Segments(self.problem, theta).balanced(a, scores)
        return FixedTheta(self.problem, theta, self.cache, a)

    def _report(self, standing: Standing) -> None:
        n = self.problem.divisor
        self.history.append(
            {
                "iterations": self.iterations,
                "outer_iterations": self.outer,
                "primal": standing.primal / n,
                "dual": standing.dual / n,
                "gap": standing.gap / n,
                "violation": standing.violation,
            }
        )
        if self.callback is not None and self.callback(dict(self.history[-1])) is False:
            self.stopped = True


def solve(
    problem: Problem,
    cache: GramCache,
    tol: float,
    *,
    start: tuple[Multipliers, Floats] | None = None,
    max_iter: int | None = None,
    callback: Callable[[dict[str, float]], object] | None = None,
    deadline: float = clock.NEVER,
) -> Answer:
    """Solve the dual by pair steps until the true relative gap is at most `tol`.

    Parameters
    ----------
    problem : Problem
        With squared l2, a free intercept, at most one two-sided term, and atoms that have `facts.bend`.
    cache : GramCache
        The rows of K; it can be used again for relatives of the problem.
    tol : float
        The relative duality gap.
    start : (Multipliers, array), optional
        Those of a relative, on the distinct rows, and its scores.
    max_iter : int, optional
        The limit of pair steps.
    callback : callable, optional
        Gets a dict (see `ThetaSearch.history`) now and then; returning False stops the search.
    deadline : float
        When to stop (`nerm.solvers.clock`).

    Returns
    -------
    Answer
        details: outer_iterations, history, and intercept_interval, all intercepts that are optimal for these
        scores.

    """
    started = time.perf_counter()
    n = problem.hypothesis.n
    most = max(1_000_000, 200 * n) if max_iter is None else max_iter
    search = ThetaSearch(problem, cache, tol, most, callback, deadline)
    state, claim = search.run(*(start or (_cold(problem), np.zeros(n))))
    c = state.at.a / state.lam
    coef = problem.hypothesis.adjoint(c)
    G = problem.hypothesis.scores(coef)
    b, *interval = best_intercept(problem, G)
    return Answer(
        coef=coef,
        intercept=b,
        multipliers=state.segments.multipliers(state.at.a, G + b),
        claim=claim,
        iterations=search.iterations,
        solve_seconds=time.perf_counter() - started,
        details={
            "outer_iterations": search.outer,
            "history": tuple(search.history),
            "intercept_interval": tuple(interval),
        },
        timed_out=claim == TIME_IS_UP,
    )


def _cold(problem: Problem) -> Multipliers:
    """Return the multipliers of the score 0 at theta = 1/2, the risks' at 0: they pull nowhere."""
    rows = multipliers_at(problem.blocks, np.zeros(problem.hypothesis.n))
    for row, block in zip(rows, problem.blocks, strict=True):
        if block.side == 0:
            row[:] = np.clip(0.0, *block.domain)
    return Multipliers(rows, np.full(len(two_sided(problem)), 0.5))
