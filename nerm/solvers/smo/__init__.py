"""The SMO: pair steps on the dual of any problem whose blocks are two straight lines each.

The paper's appendix, corrected: pair steps at fixed theta (`nerm.solvers.smo.pair_steps`) inside a
one-dimensional search over theta (`nerm.solvers.smo.theta_search`), stopped by the true duality gap.
"""

import time
from collections.abc import Callable

import numpy as np

from nerm.certify.multipliers import Multipliers, multipliers_at
from nerm.certify.solution import Answer
from nerm.model.blocks import two_sided
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.linalg.gram_cache import GramCache
from nerm.solvers.smo.intercept import best_intercept
from nerm.solvers.smo.theta_search import TIME_IS_UP, ThetaSearch
from nerm.typing import Floats

__all__ = ["GramCache", "solve"]


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
