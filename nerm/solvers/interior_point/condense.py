"""Solve on the rows near a kink, check on all rows, and warm-start.

A hinge-like function phi is affine beyond its kinks. Once the scores are near the optimum, the dual variable
u of most rows is at an end of its interval. These rows are fixed: in each block they are replaced by one
linear function. With the targets t_i, weights B_i and scores f_i = w.x_i + b of the fixed rows,

    sum_i B_i phi(t_i f_i)  >=  (sum_i B_i t_i u_i x_i)'w + (sum_i B_i t_i u_i) b - sum_i B_i phi*(u_i),

with equality if every fixed row stays on its side of the kinks. The problem on the other rows is called
condensed. Fixed u are feasible, so a dual bound of the condensed problem is always a dual bound of the whole
problem. The primal value is computed on all rows. If the primal value and the dual bound do not meet, rows
are chosen again: also those that crossed a kink. In the end all rows are taken.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nerm.solvers import clock
from nerm.solvers.interior_point import passes
from nerm.solvers.interior_point.arrays import Arrays, fours
from nerm.solvers.interior_point.predictor_corrector import Outcome, PredictorCorrector, Tuning
from nerm.typing import Floats, Ints


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

    def within(self, larger: Condensed | None) -> Condensed:
        """Return this problem, which was condensed from `larger`, as a condensation of the whole problem.

        The result has the row numbers and the dual variables of the whole problem; None is the whole problem.
        """
        if larger is None:
            return self
        return Condensed(self.arrays, larger.rows[self.rows], larger.on_all_rows(self.u))


@dataclass(frozen=True)
class Start:
    """The start of a run.

    Attributes
    ----------
    here
        The hypothesis.
    score_error
        The expected mean error of the scores of `here`.
    others
        The scores of another hypothesis, (n,): rows that cross a kink between the two are kept.
    """

    here: Outcome
    score_error: float
    others: Floats | None = None


def condense(arrays: Arrays, start: Start, tuning: Tuning) -> Condensed | None:
    """Fix the dual variables of the rows whose scores are far from all kinks.

    A row within `tuning.reach` times the expected score error of a kink is kept, and so is a row that crosses
    a kink between the scores of the start and the others; `passes.settle` has the exact conditions.

    Returns
    -------
    Condensed or None
        None if too many rows must be kept. Rows with weight in a smooth block are always kept, because such a
        block has no affine region.
    """
    if arrays.n_rows < tuning.fewest_rows or arrays.smooth:
        return None
    scores, shape = start.here.scores, arrays.data.weights.shape
    others = scores if start.others is None else start.others
    u, stays, duals = np.zeros(shape), np.zeros(shape[1], dtype=bool), fours(*shape)
    given = tuple(arrays.data), scores, others, tuning.reach * start.score_error, u, stays, duals
    sums = arrays.features.workers.add_up(lambda *part: passes.settle(*given, *part))
    rows = np.flatnonzero(stays)
    if not 0 < len(rows) <= tuning.most_rows * arrays.n_rows:
        return None
    gradient = np.column_stack([arrays.features.columns(duals).T, duals.sum(axis=1)])[: shape[0]]
    return Condensed(arrays.of_rows(rows, gradient, sums), rows, u)


def minimise(method: PredictorCorrector, start: Start, tol: float, limit: int) -> Outcome:
    """Solve condensed problems until the relative gap on all rows is at most `tol`.

    If the solution of a condensed problem lowers the primal value, the rows of the next one are chosen around
    this solution. Otherwise more rows are chosen around the same hypothesis. The last run takes all rows.

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
    best = start.here
    for number in range(method.tuning.rounds):
        found, last_error = _descend(method, start, tol, limit - best.iterations, may_shrink=number == 0)
        best = best.then(found, tol)
        if best.converged or last_error is None or best.iterations >= limit or clock.is_up(method.deadline):
            return best
        if found.primal < start.here.primal:
            start = Start(found, last_error, start.here.scores)
        else:
            start = Start(start.here, method.tuning.wider * last_error, found.scores)
    state = method.start(best, start.score_error)
    return best.then(method.run(state, tol, limit - best.iterations), tol)


def _descend(
    method: PredictorCorrector, start: Start, tol: float, limit: int, *, may_shrink: bool
) -> tuple[Outcome, float | None]:
    """Solve on the rows near a kink; return the answer on all rows and a score error.

    The score error is the expected mean error of the scores at the last condensation; None if all rows were
    kept to the end. If `may_shrink`, the problem is condensed again as soon as a step changes its scores
    little. The other arguments are those of `minimise`.
    """
    tuning, inner, small, state = method.tuning, method, None, None
    iterations, last_error = 0, None
    while True:
        fewer = condense(inner.arrays, start, tuning) if small is None or may_shrink else None
        if fewer is not None:
            small, inner, last_error = (
                fewer.within(small),
                replace(method, arrays=fewer.arrays),
                start.score_error,
            )
            at = inner.evaluate(start.here.coef, start.here.intercept, start.here.scores[fewer.rows])
            state = inner.start(at, start.score_error)
        elif state is None:
            state = inner.start(start.here, start.score_error)
        is_large = inner.arrays.n_rows >= tuning.fewest_rows and not inner.arrays.smooth
        settled = tuning.settled * start.score_error if may_shrink and is_large else 0.0
        found = inner.run(state, tol, limit - iterations, settled=settled)
        iterations += found.iterations
        if found.score_error is None or found.state is None:
            break
        state = found.state
        here = replace(found, coef=state.coef, intercept=state.intercept, scores=state.scores)
        start = Start(here, found.score_error)
    found.iterations = iterations
    return (found if small is None else _answer_on_all_rows(method, small, found)), last_error


def _answer_on_all_rows(method: PredictorCorrector, small: Condensed, found: Outcome) -> Outcome:
    """Turn the answer of a condensed problem into one of the whole problem.

    The primal value is computed on all rows. The dual bound of the condensed problem is also one of the whole
    problem.
    """
    answer = method.evaluate(found.coef, found.intercept)
    answer.iterations = found.iterations
    if found.u is not None:
        answer.dual, answer.u, answer.nu = found.dual, small.on_all_rows(found.u).copy(), found.nu
    return answer


class WarmStart:
    """The last two solutions and their weights, from which the next solve starts.

    It also keeps the error that the scores of the last start had. This is the expected error of the next
    start.
    """

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._solutions = list[tuple[Floats, Outcome]]()  # the logarithms of the weights, and the solution
        self._score_error = tuning.warm_error

    def keep(self, method: PredictorCorrector, solution: Outcome, start: Start | None = None) -> None:
        """Keep a solution, and the error of the scores of the start that led to it."""
        self._score_error = self._tuning.warm_error
        if start is not None:
            error = float(np.abs(solution.scores - start.here.scores).mean())
            self._score_error = max(error, self._tuning.least_error)
        kept = replace(solution, u=None, state=None)  # they need much memory, and the next start not at all
        self._solutions = [*self._solutions[-1:], (log_weights(method), kept)]

    def start(self, method: PredictorCorrector) -> Start | None:
        """Return a start for the next problem, or None for a cold start.

        The start is the last solution, or the line through the last two, if that has a lower primal value.
        Return None if there is no solution yet, if a weight has changed much, or if f = 0 has a lower primal
        value.
        """
        if not self._solutions:
            return None
        weights, (before, last) = log_weights(method), self._solutions[-1]
        if weights.shape == before.shape and np.abs(weights - before).max() > self._tuning.farthest:
            return None
        here = method.evaluate(last.coef, last.intercept, last.scores)
        if not here.primal <= method.evaluate(0.0 * last.coef, 0.0, 0.0 * last.scores).primal:
            return None
        ahead = self._ahead(method, weights)
        here = ahead if ahead is not None and ahead.primal < here.primal else here
        return Start(here, self._score_error)

    def _ahead(self, method: PredictorCorrector, weights: Floats) -> Outcome | None:
        """Return the hypothesis on the line through the last two solutions, as a function of log weights."""
        (first, older), (second, newer) = self._solutions[0], self._solutions[-1]
        way = second - first if first.shape == second.shape == weights.shape else np.zeros(1)
        if not way.any():
            return None
        share = float((weights - second) @ way / (way @ way))
        pairs = ("coef", "intercept", "scores")
        moved = (getattr(newer, k) + share * (getattr(newer, k) - getattr(older, k)) for k in pairs)
        return method.evaluate(*moved)


def log_weights(method: PredictorCorrector) -> Floats:
    """Return the logarithms of the positive weights of terms and regularizers."""
    weights = np.concatenate(
        [method.factors, [method.penalty.lam], *(n.weights[:1] for n in method.penalty.norms)]
    )
    return np.asarray(np.log(weights[weights > 0]))
