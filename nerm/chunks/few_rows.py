"""Straight pieces between kinks: solve on the rows near a kink, pass over all rows to check, repeat.

The problem on few rows (`nerm.chunks.sums`) is an ordinary `nerm.Problem`: any solver takes it, its own
certificate bounds its optimum from below, and by Jensen's inequality that is a bound for all rows. A pass
gives the value of all rows at its hypothesis; where value and bound meet, the hypothesis is certified.
Otherwise the rows around the new hypothesis, and between it and the best one, make the next small problem, so
that none is worse than the last.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from nerm.chunks.chunk_coding import ChunkRows
from nerm.chunks.estimate import estimate
from nerm.chunks.progress import Method, Progress
from nerm.chunks.sums import FewRows, KeptRows, NearKinks, joined
from nerm.model.blocks import Block
from nerm.model.hypothesis import LinearHypothesis, sorted_csr
from nerm.model.problem import Problem

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem

LEAST_ROWS, ROWS_SHARE = 50_000, 0.05  # kept around a hypothesis: at least, and of all
GROUPS = 1000  # of mean rows, of each block, sign and slope: with more the small problem bends as the whole one does
ENOUGH = 20_000  # rows of the sample that tell a distance
FINER = 0.25  # of the tolerance, for a small problem
STEP = 1e-3  # of the gap that is hoped to be closed, for an estimate


def pass_over(problem: ChunkedProblem, state: Progress) -> FewRows:
    """Return what a pass at the next hypothesis finds."""
    work = _within(problem, _work(problem, state), _most(problem, state))
    found: FewRows = replace(problem.sweep(work), work=work)
    return found


def next_state(problem: ChunkedProblem, state: Progress, found: FewRows, tol: float) -> Progress:
    """Solve on few rows, and return the bound and where to look next.

    That is the optimum of the small problem where, by the sample, value and bound will meet there. Else rows
    that are summed up would cross kinks on the way: it is the optimum of an estimate that lets them
    (`nerm.chunks.estimate`).
    """
    small = on_rows(problem, joined([*found.kept, found.mean_rows()]))
    solution = small.solve("auto", FINER * tol)
    bound = max(state.bound, solution.certificate.dual - solution.certificate.slack)
    proposed = estimate(problem, found, problem.sample)
    if proposed is not None:
        model = on_rows(problem, proposed[0])
        hoped = model.evaluate(solution.coef, solution.intercept).total - proposed[1] - bound
        if hoped > tol * abs(bound):
            solution = model.solve("auto", max(FINER * tol, STEP * min(hoped / abs(bound), 1.0)))
    thetas = solution.multipliers.thetas if solution.multipliers is not None else state.thetas
    at = (np.asarray(solution.coef), float(solution.intercept))
    return replace(state, at=at, bound=bound, thetas=thetas, kept=small.hypothesis.n)


def on_rows(problem: ChunkedProblem, few: KeptRows) -> Problem:
    """Return the problem on some rows with the weights and targets that they have in each block."""
    X = sorted_csr(few.X)
    n = X.shape[0]
    blocks = tuple(
        Block(atom, few.weights[j], few.targets[j], term, side)
        for j, (atom, term, side) in enumerate(problem.layout)
    )
    return replace(
        problem.frame,
        hypothesis=LinearHypothesis(X),
        y=np.ones(n),
        viewpoints={name: np.ones(n) for name in problem.frame.viewpoints},
        sample_weight=np.ones(n),
        blocks=blocks,
    )


def of_sample(problem: ChunkedProblem, rows: ChunkRows) -> Problem:
    """Return the problem on a sample of the rows."""
    zero = np.zeros(problem.frame.hypothesis.size), 0.0
    found = _work(problem, Progress(zero, np.zeros(0))).of(rows)
    share = len(rows.y) / problem.terms.coding.n
    return replace(on_rows(problem, joined(found.kept)), divisor=problem.terms.divisor * share)


def _work(problem: ChunkedProblem, state: Progress) -> NearKinks:
    """Return the work of a pass at the next hypothesis, exact there and at the best one, that keeps all rows."""
    X = problem.sample.X
    scores = X @ state.at[0] + state.at[1]
    edges = np.unique(np.quantile(scores, np.linspace(0, 1, 1 + _cuts(X.shape[1]))[1:-1]))
    square = X.multiply(X) if sp.issparse(X) else X * X
    scale = np.sqrt(np.asarray(square.mean(axis=0)).ravel())
    scale = np.where(scale > 0, scale, np.inf)
    return NearKinks(problem.terms, state.at, state.best or state.at, np.inf, 1.0, edges, scale)


def _cuts(columns: int) -> int:
    """Return into how many parts scores are cut, so that some thousands of mean rows come of it."""
    return max(2, min(20, GROUPS // columns))


def _most(problem: ChunkedProblem, state: Progress) -> int:
    """Return how many rows to keep: more from pass to pass where the last ones did not do, as memory allows."""
    wanted = max(LEAST_ROWS, ROWS_SHARE * problem.terms.coding.n) * 1.5 ** max(0, state.passes - 3)
    return int(min(wanted, problem.rows_limit))


def _within(problem: ChunkedProblem, work: NearKinks, most: int) -> NearKinks:
    """Return the work that keeps about so many rows: those within a distance from a kink, found on the sample.

    Where more rows lie *on* kinks, or cross them between the two hypotheses, a share of these is kept.
    """
    n = problem.terms.coding.n
    if n <= most:
        return work
    some = problem.sample.at(slice(0, ENOUGH))

    def expected(distance: float) -> float:
        return n * float(replace(work, distance=distance).near(some).mean())

    low, high = 0.0, 1e3
    for _ in range(30):
        middle = 0.5 * (low + high) if low else high / 8
        low, high = (middle, high) if expected(middle) <= most else (low, middle)
        if high - low <= 0.02 * high:
            break
    return replace(work, distance=low, thin=min(1.0, most / max(expected(low), 1.0)))


METHOD = Method(pass_over, next_state)
