"""Solve on the rows near a kink, check on all rows, and warm-start.

A hinge-like function phi is affine beyond its kinks. Once the scores are near the optimum, the dual variable
u of most rows is at an end of its interval. These rows are fixed: in each block they are replaced by one
linear function. With the targets t_i, weights B_i and scores f_i = w.x_i + b of the fixed rows,

    sum_i B_i phi(t_i f_i)  >=  (sum_i B_i t_i u_i x_i)'w + (sum_i B_i t_i u_i) b - sum_i B_i phi*(u_i),

with equality if every fixed row stays on its side of the kinks. The problem on the other rows is called
condensed. Fixed u are feasible, so a dual bound of the condensed problem is always a dual bound of the whole
problem. The primal value is computed on all rows. If the primal value and the dual bound do not meet, rows
are chosen again, and in the end all rows are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nerm.model.blocks import Block
from nerm.solvers.interior_point import passes
from nerm.solvers.interior_point.arrays import Arrays, fours, is_balanced
from nerm.solvers.interior_point.predictor_corrector import (
    OVERFLOW,
    Near,
    Outcome,
    PredictorCorrector,
    Tuning,
)
from nerm.typing import Bools, Floats, Ints


@dataclass(frozen=True)
class Condensed:
    """A condensed problem, the rows that it keeps, and the dual variables u of all rows, (J, n).

    The docstring of the module explains condensed problems.
    """

    arrays: Arrays
    rows: Ints
    u: Floats

    def on_all_rows(self, u: Floats) -> Floats:
        """Return the dual variables of all rows, (J, n), given those of the rows that are kept."""
        self.u[:, self.rows] = u
        return self.u

    def within(self, larger: Condensed) -> Condensed:
        """Return this problem, which was condensed from `larger`, as a condensation of the whole problem.

        The result has the row numbers and the dual variables of the whole problem.
        """
        return Condensed(self.arrays, larger.rows[self.rows], larger.on_all_rows(self.u))


def condense(arrays: Arrays, scores: Floats, score_error: float, tuning: Tuning) -> Condensed | None:
    """Fix the dual variables of the rows whose scores are far from all kinks.

    Parameters
    ----------
    arrays
        The problem.
    scores, score_error
        The scores, (n,), and their expected mean error. A row within `tuning.reach` times this error of a
        kink is kept.

    Returns
    -------
    Condensed or None
        None if too many rows must be kept. Rows with weight in a smooth block are always kept, because such a
        block has no affine region.
    """
    count = len(arrays.blocks)
    u, stays, duals, sums = _settled(arrays, scores, tuning.reach * score_error)
    rows = np.flatnonzero(stays)
    if not 0 < len(rows) <= tuning.most_rows * arrays.n_rows:
        return None
    gradient = np.column_stack([arrays.features.columns(duals).T, duals.sum(axis=1)])[:count]
    return Condensed(arrays.of_rows(rows, gradient, sums), rows, u)


def _settled(arrays: Arrays, scores: Floats, distance: float) -> tuple[Floats, Bools, Floats, Floats]:
    """Return dual variables, the rows to keep, and the sums over the fixed rows.

    A row is kept if its score is within `distance` of a kink (`passes.settle` has the exact conditions). The
    four results are the dual variables u, (J, n); the mask of the rows to keep, (n,); B t u, one line per
    block, with 0 on the rows that are kept; and sum B phi*(u) over the fixed rows, (J,).
    """
    shape = arrays.data.weights.shape
    u, stays, duals = np.zeros(shape), np.zeros(shape[1], dtype=bool), fours(*shape)
    given = tuple(arrays.data), scores, distance, u, stays, duals
    return u, stays, duals, arrays.features.workers.add_up(lambda *part: passes.settle(*given, *part))


@dataclass(frozen=True)
class Start:
    """The start of a run.

    Attributes
    ----------
    here
        The hypothesis.
    score_error
        The expected mean error of the scores of `here`.
    near
        Dual variables (u, nu) of an adjacent problem; the first iterate stays close to them.
    """

    here: Outcome
    score_error: float
    near: Near | None = None


def minimise(method: PredictorCorrector, start: Start, tol: float, limit: int) -> Outcome:
    """Solve condensed problems until the relative gap on all rows is at most `tol`.

    If the solution of a condensed problem lowers the primal value, the rows of the next one are chosen around
    this solution. Otherwise more rows are chosen around the same hypothesis. If too many rows must be kept,
    the method runs on all rows until its steps are short enough to condense the problem.

    Parameters
    ----------
    method
        The method on all rows.
    start
        The start.
    tol
        The relative gap to reach.
    limit
        The largest number of iterations.
    """
    tuning = method.tuning
    best = here = start.here
    score_error, near = start.score_error, start.near
    is_condensable = method.arrays.n_rows >= tuning.fewest_rows and not method.arrays.smooth
    is_warm = near is not None
    is_nested = True
    state = None
    for _ in range(tuning.rounds):
        left = limit - best.iterations
        small = condense(method.arrays, here.scores, score_error, tuning) if is_condensable else None
        if small is None:
            state = method.start(here, score_error, near) if state is None else state
            settled = tuning.settled * score_error if is_condensable else 0.0
            found = method.run(state, tol, left, settled=settled)
            best = best.then(found, tol)
            if found.score_error is None or found.state is None:
                return best
            state = found.state
            here = method.evaluate(state.coef, state.intercept, state.scores)
            near = state.duals.u, state.nu
            score_error = max(found.score_error, found.barrier) if is_warm else found.score_error
        else:
            answer, last_error = _solve_small(method, small, here, score_error, near, tol, left, is_nested)
            best = best.then(answer, tol)
            state = None
            is_nested = False
            if answer.primal < here.primal:
                here = answer
                near = answer.near
                score_error = min(score_error, tuning.wider * last_error)
            else:
                score_error *= tuning.wider
        if best.converged or best.iterations >= limit:
            return best
    state = method.start(best, score_error, near)
    return best.then(method.run(state, tol, limit - best.iterations), tol)


def _solve_small(
    method: PredictorCorrector,
    small: Condensed,
    here: Outcome,
    score_error: float,
    near: Near | None,
    tol: float,
    limit: int,
    is_nested: bool,
) -> tuple[Outcome, float]:
    """Solve a condensed problem; return its answer on all rows and a score error.

    The score error is the expected mean error of the scores at the last condensation. If `is_nested`, a
    problem with enough rows is condensed again as soon as a step changes its scores little. The other
    arguments are those of `minimise` and `Start`.
    """
    tuning = method.tuning
    inner = method.on(small.arrays)
    near = near and (near[0][:, small.rows], near[1])
    state = inner.start(inner.evaluate(here.coef, here.intercept, here.scores[small.rows]), score_error, near)
    settled = tuning.settled * score_error
    iterations = 0
    while True:
        may_stop = is_nested and inner.arrays.n_rows >= tuning.fewest_rows
        found = inner.run(state, tuning.slack * tol, limit - iterations, settled=settled if may_stop else 0.0)
        iterations += found.iterations
        if found.score_error is None or found.state is None:
            break
        state = found.state
        settled = tuning.settled * found.score_error
        smaller = condense(inner.arrays, state.scores, found.score_error, tuning)
        if smaller is not None:
            score_error = found.score_error
            small = smaller.within(small)
            inner = method.on(smaller.arrays)
            at = inner.evaluate(state.coef, state.intercept, state.scores[smaller.rows])
            state = inner.start(at, score_error, (state.duals.u[:, smaller.rows], state.nu))
    found.iterations = iterations
    return _answer_on_all_rows(method, small, found), score_error


def _answer_on_all_rows(method: PredictorCorrector, small: Condensed, found: Outcome) -> Outcome:
    """Turn the answer of a condensed problem into one of the whole problem.

    The primal value is computed on all rows. The dual bound of the condensed problem is also one of the whole
    problem. Only if rounding makes the dual variables infeasible on all rows, the bound is computed again.
    """
    answer = method.evaluate(found.coef, found.intercept)
    answer.iterations = found.iterations
    if found.u is not None and found.nu is not None and found.norm_gradient is not None:
        answer.dual = found.dual
        answer.u = small.on_all_rows(found.u).copy()
        answer.nu = found.nu
        answer.norm_gradient = found.norm_gradient
        nu = method.block_weights(found.nu)
        if method.intercept and not is_balanced(method.arrays, answer.u, nu):  # rounding on all rows
            answer.dual, answer.u = method.dual_bound(answer.u, found.nu, found.norm_gradient)
    return answer


class WarmStart:
    """The last solution and its weights, from which the next solve starts.

    It also keeps the error that the scores of the last start had. This is the expected error of the next
    start.
    """

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._last: Outcome | None = None
        self._weights = np.empty(0)
        self._blocks = tuple[Block, ...]()
        self._score_error = tuning.warm_error

    def keep(
        self,
        method: PredictorCorrector,
        blocks: Sequence[Block],
        solution: Outcome,
        start: Start | None = None,
    ) -> None:
        """Keep a solution, and the error of the scores of the start that led to it."""
        self._score_error = self._tuning.warm_error
        if start is not None:
            error = float(np.abs(solution.scores - start.here.scores).mean())
            self._score_error = max(error, self._tuning.least_error)
        self._last = solution
        self._weights = log_weights(method)
        self._blocks = tuple(blocks)

    def start(self, method: PredictorCorrector, blocks: Sequence[Block]) -> Start | None:
        """Return a start for the next problem, or None for a cold start.

        The start is the last solution. Return None if there is no solution yet, if a weight has changed much,
        or if the blocks have changed and f = 0 has a lower primal value.
        """
        last = self._last
        weights = log_weights(method)
        if last is None:
            return None
        if (
            weights.shape == self._weights.shape
            and np.abs(weights - self._weights).max() > self._tuning.farthest
        ):
            return None
        here = method.evaluate(last.coef, last.intercept, last.scores)
        if here.primal >= OVERFLOW:
            return None
        if self._blocks != tuple(blocks) and here.primal >= method.evaluate(0.0 * last.coef, 0.0).primal:
            return None
        is_alike = last.u is not None and len(last.u) == len(method.arrays.blocks)
        return Start(here, self._score_error, last.near if is_alike else None)


def log_weights(method: PredictorCorrector) -> Floats:
    """Return the logarithms of the positive weights of terms and regularizers."""
    weights = np.concatenate([method.factors, [method.lam], *(n.weights[:1] for n in method.penalty.norms)])
    return np.asarray(np.log(weights[weights > 0]))
