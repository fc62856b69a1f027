"""Straight pieces between kinks: solve on the rows near a kink, pass over all rows to check, repeat.

The problem on few rows (`nerm.chunks.sums`) is an ordinary `nerm.Problem`: any solver takes it, its own certificate
bounds its optimum from below, and by Jensen's inequality that is a bound for all rows. A pass gives the value of all
rows at its hypothesis; where value and bound meet, the hypothesis is certified. Otherwise the rows around the new
hypothesis, and between it and the best one, make the next small problem, so that none is worse than the last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nerm.blocks import Block
from nerm.chunks.chunk_coding import ChunkRows
from nerm.chunks.progress import Progress
from nerm.chunks.sums import FewRows, NearKinks
from nerm.hypothesis import LinearHypothesis, sorted_csr
from nerm.problem import Problem
from nerm.rows import as_given, distinct_rows

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem

LEAST_ROWS, ROWS_SHARE = 50_000, 0.05  # kept around a hypothesis: at least, and of all
FINER = 0.25  # of the tolerance, for a small problem


def pass_over(problem: ChunkedProblem, state: Progress) -> FewRows:
    """Return what a pass at the next hypothesis finds."""
    most = _most(problem, state)
    distance = _distance(problem, state, most)
    work = NearKinks(problem.terms, state.at, state.best or state.at, distance, 2 * most)
    found: FewRows = problem.sweep(work, state)
    return found


def next_state(problem: ChunkedProblem, state: Progress, found: FewRows, tol: float) -> Progress:
    """Solve on few rows, and return the bound and where to look next."""
    small = small_problem(problem, found)
    solution = small.solve("auto", FINER * tol)
    bound = max(state.bound, solution.certificate.dual)
    thetas = solution.multipliers.thetas if solution.multipliers is not None else state.thetas
    at = (np.asarray(solution.coef), float(solution.intercept))
    return replace(state, at=at, bound=bound, thetas=thetas, kept=small.hypothesis.n)


def small_problem(problem: ChunkedProblem, found: FewRows) -> Problem:
    """Return the problem on the rows near a kink and the mean rows of all others."""
    few = found.all_rows()
    X = sorted_csr(few.X)
    rows = distinct_rows(X, few.targets)
    blocks = tuple(
        Block(atom, rows.add_up(few.weights[j]), few.targets[j][rows.first], term, side)
        for j, (atom, term, side) in enumerate(problem.layout)
    )
    m = len(rows.first)
    return replace(
        problem.frame,
        hypothesis=LinearHypothesis(X[rows.first]),
        rows=as_given(m),
        y=np.ones(m),
        viewpoints={name: np.ones(m) for name in problem.frame.viewpoints},
        sample_weight=np.ones(m),
        blocks=blocks,
    )


def of_sample(problem: ChunkedProblem, rows: ChunkRows) -> Problem:
    """Return the problem on a sample of the rows."""
    zero = np.zeros(problem.frame.hypothesis.size), 0.0
    found = NearKinks(problem.terms, zero, zero, np.inf, len(rows.y)).of(rows)
    share = len(rows.y) / problem.terms.coding.n
    return replace(small_problem(problem, found), divisor=problem.terms.divisor * share)


def _most(problem: ChunkedProblem, state: Progress) -> int:
    """Return how many rows to keep: more from pass to pass where the last ones did not do, as memory allows."""
    wanted = max(LEAST_ROWS, ROWS_SHARE * problem.terms.coding.n) * 1.5 ** max(0, state.passes - 3)
    return int(min(wanted, problem.rows_limit))


def _distance(problem: ChunkedProblem, state: Progress, most: int) -> float:
    """Return the distance from a kink within which about so many rows lie, found on the sample by bisection."""
    n, m = problem.terms.coding.n, len(problem.sample.y)
    if n <= most:
        return np.inf
    low, high = 0.0, 1e3

    def share(distance: float) -> float:
        work = NearKinks(problem.terms, state.at, state.best or state.at, distance, m)
        return work.near(problem.sample).mean()

    for _ in range(30):
        middle = 0.5 * (low + high) if low else high / 8
        low, high = (middle, high) if share(middle) * n <= most else (low, middle)
        if high - low <= 0.02 * high:
            break
    return low
