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
import scipy.sparse as sp

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
GROUPS = 1000  # of mean rows, of each block, sign and slope: with more the small problem bends as the whole one does
ENOUGH = 20_000  # rows of the sample that tell a distance
FINER = 0.25  # of the tolerance, for a small problem


def pass_over(problem: ChunkedProblem, state: Progress) -> FewRows:
    """Return what a pass at the next hypothesis finds."""
    most = _most(problem, state)
    work = _work(problem, state, np.inf, 2 * most)
    work = replace(work, distance=_distance(problem, work, most))
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
    found = _work(problem, Progress(zero, np.zeros(0)), np.inf, len(rows.y)).of(rows)
    share = len(rows.y) / problem.terms.coding.n
    return replace(small_problem(problem, found), divisor=problem.terms.divisor * share)


def _work(problem: ChunkedProblem, state: Progress, distance: float, most: int) -> NearKinks:
    """Return the work of a pass at the next hypothesis, exact there and at the best one."""
    X = problem.sample.X
    scores = X @ state.at[0] + state.at[1]
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, 1 + _cuts(X.shape[1]))[1:-1]))
    square = X.multiply(X) if sp.issparse(X) else X * X
    scale = np.sqrt(np.asarray(square.mean(axis=0)).ravel())
    scale = np.where(scale > 0, scale, np.inf)
    return NearKinks(problem.terms, state.at, state.best or state.at, distance, most, edges, scale)


def _cuts(columns: int) -> int:
    """Return into how many parts scores are cut, so that some thousands of mean rows come of it."""
    return max(2, min(20, GROUPS // columns))


def _most(problem: ChunkedProblem, state: Progress) -> int:
    """Return how many rows to keep: more from pass to pass where the last ones did not do, as memory allows."""
    wanted = max(LEAST_ROWS, ROWS_SHARE * problem.terms.coding.n) * 1.5 ** max(0, state.passes - 3)
    return int(min(wanted, problem.rows_limit))


def _distance(problem: ChunkedProblem, work: NearKinks, most: int) -> float:
    """Return the distance from a kink within which about so many rows lie, found on the sample by bisection."""
    n = problem.terms.coding.n
    if n <= most:
        return np.inf
    low, high, some = 0.0, 1e3, problem.sample.at(slice(0, ENOUGH))
    for _ in range(30):
        middle = 0.5 * (low + high) if low else high / 8
        share = float(replace(work, distance=middle).near(some).mean())
        low, high = (middle, high) if share * n <= most else (low, middle)
        if high - low <= 0.02 * high:
            break
    return low
