"""Solve on the rows near a kink and check on all rows; start from the last solution.

A hinge-like function is affine beyond its kinks. Once the scores are near the optimum, u of most rows is at
an end of its interval. These rows are replaced by one linear function per block,

    sum_i B_i phi(t_i f_i)  >=  (sum_i B_i t_i u_i x_i)'w + (sum_i B_i t_i u_i) b - sum_i B_i phi*(u_i),

with equality where the choice was right. Fixed u are feasible, so a dual bound of the condensed problem is
one of the whole problem in any case. The primal value on all rows decides; if the bounds do not meet, rows
are chosen again, and in the end all rows are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numba
import numpy as np

from nerm.model.blocks import Block
from nerm.solvers.interior_point.arrays import Arrays, fours, is_balanced
from nerm.solvers.interior_point.passes import (
    AFFINE,
    KIND,
    LINEAR,
    MOVING,
    QUADRATIC,
    TINY,
    block_ends,
    options,
)
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
    """A condensed problem, the rows that it keeps, and u of all rows, (J, n)."""

    arrays: Arrays
    rows: Ints
    u: Floats

    def on_all_rows(self, u: Floats) -> Floats:
        """Return u of all rows, given those of the rows kept."""
        self.u[:, self.rows] = u
        return self.u

    def within(self, larger: Condensed) -> Condensed:
        """Return this problem, condensed from `larger`, with the rows and u of the whole problem."""
        return Condensed(self.arrays, larger.rows[self.rows], larger.on_all_rows(self.u))


def condense(
    arrays: Arrays, scores: Floats, score_error: float, tuning: Tuning, other: Floats | None = None
) -> Condensed | None:
    """Fix u of rows whose scores, with an expected mean error, are far from all kinks.

    Rows with a kink between these scores and `other` stay too, and so do rows with weight in a smooth
    block, which has no affine region. Return None if too many rows stay.
    """
    count = len(arrays.blocks)
    u, stays, duals, sums = _settled(arrays, scores, tuning.reach * score_error, other)
    rows = np.flatnonzero(stays)
    if not 0 < len(rows) <= tuning.most_rows * arrays.n_rows:
        return None
    gradient = np.column_stack([arrays.features.columns(duals).T, duals.sum(axis=1)])[:count]
    return Condensed(arrays.of_rows(rows, gradient, sums), rows, u)


def _settled(
    arrays: Arrays, scores: Floats, distance: float, other: Floats | None
) -> tuple[Floats, Bools, Floats, Floats]:
    """Return u, (J, n), and a mask of the rows that stay; B t u and sum B phi*(u) of the other rows.

    B t u has one line per block and is 0 on the rows that stay; the sums are (J,).
    """
    shape = arrays.data.weights.shape
    u, stays, duals = np.zeros(shape), np.zeros(shape[1], dtype=bool), fours(*shape)
    given = tuple(arrays.data), scores, scores if other is None else other, distance, u, stays, duals
    return u, stays, duals, arrays.features.workers.add_up(lambda *part: _settle(*given, *part))


@numba.njit(**options)
def _settle(data, scores, others, distance, u, stays, duals, start, stop):  # type: ignore[no-untyped-def]
    """Set u and B t u of rows beyond all kinks; return their sum B phi*(u) for each block.

    A row stays if in some block of positive weight its margin is within |t| distance of a kink, or on
    another side of a kink at the other scores, or if that block is smooth.
    """
    targets, weights, table = data
    part, sums = slice(start, stop), np.zeros(table.shape[0])
    f, g, stay = scores[part], others[part], stays[part]
    for j in range(len(sums)):
        a, q, lo, hi, _, _ = block_ends(table, j)
        kind = table[j, KIND]
        low_kink, high_kink = (a + q * lo, a + q * hi) if q > 0 else (a, a)
        t, B, x, inside = targets[j, part], weights[j, part], u[j, part], min(max(0.0, lo), hi)
        for i in range(len(f)):
            width = abs(t[i]) * distance
            below = t[i] * f[i] <= low_kink - width and t[i] * g[i] <= low_kink and kind == MOVING
            above = t[i] * f[i] >= high_kink + width and t[i] * g[i] >= high_kink and kind == MOVING
            x[i] = lo if below else hi if above else inside
            stay[i] |= not (below or above or kind == AFFINE or B[i] == 0.0)
    for j in range(len(sums)):
        t, B, x, dual = targets[j, part], weights[j, part], u[j, part], duals[j, part]
        a, half, total = table[j, LINEAR], 0.5 * table[j, QUADRATIC], 0.0
        for i in range(len(f)):
            weight = 0.0 if stay[i] else B[i]
            dual[i] = weight * t[i] * x[i]
            total += weight * (a + half * x[i]) * x[i]
        sums[j] = total
    return sums


@dataclass(frozen=True)
class Start:
    """A start: the hypothesis, the expected mean error of its scores, and an adjacent solution.

    Attributes
    ----------
    near
        Dual variables of an adjacent problem, which the first iterate stays close to.
    other
        Scores of an adjacent problem: rows with a kink between the two stay in a condensed problem.
    """

    here: Outcome
    score_error: float
    near: Near | None = None
    other: Floats | None = None


def minimise(method: PredictorCorrector, start: Start, tol: float, limit: int) -> Outcome:
    """Solve condensed problems, again around each answer, until the bounds on all rows meet.

    A run on all rows stops early once its steps are short enough to condense the problem. After an answer
    that lowers the primal value, rows are chosen around it; otherwise more rows around the same hypothesis.
    """
    tuning = method.tuning
    best = here = start.here
    score_error, near, other = start.score_error, start.near, start.other
    is_condensable = method.arrays.n_rows >= tuning.fewest_rows and not method.arrays.smooth
    is_warm = near is not None
    is_nested = True
    state = None
    for _ in range(tuning.rounds):
        left = limit - best.iterations
        small = condense(method.arrays, here.scores, score_error, tuning, other) if is_condensable else None
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
            other = None
            score_error = max(found.score_error, found.barrier) if is_warm else found.score_error
        else:
            answer, last_error = _solve_small(method, small, here, score_error, near, tol, left, is_nested)
            best = best.then(answer, tol)
            state = None
            is_nested = False
            if answer.primal < here.primal:
                other = here.scores
                here = answer
                near = answer.near
                score_error = min(score_error, tuning.wider * last_error)
            else:
                other = answer.scores
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
    """Solve a condensed problem; return the answer on all rows and the last score error.

    If it may be nested, it is condensed again as its scores settle.
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
    """Return the answer of a condensed problem on all rows."""
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
    """The last two solutions, the logarithms of their weights, and the score error of the last start."""

    def __init__(self, tuning: Tuning) -> None:
        self._tuning = tuning
        self._last: Outcome | None = None
        self._before: Outcome | None = None
        self._weights = np.empty(0)
        self._weights_before = np.empty(0)
        self._blocks = tuple[Block, ...]()
        self._score_error = tuning.warm_error

    def keep(
        self,
        method: PredictorCorrector,
        blocks: Sequence[Block],
        solution: Outcome,
        start: Start | None = None,
    ) -> None:
        """Keep a solution, and the error of the scores that it was started from."""
        self._score_error = self._tuning.warm_error
        if start is not None:
            error = float(np.abs(solution.scores - start.here.scores).mean())
            self._score_error = max(error, self._tuning.least_error)
        self._before = self._last
        self._weights_before = self._weights
        self._last = solution
        self._weights = log_weights(method)
        self._blocks = tuple(blocks)

    def start(self, method: PredictorCorrector, blocks: Sequence[Block]) -> Start | None:
        """Return a start: the last solution, or the line through the last two if its value is lower.

        None if there is no solution yet, after a large change of weights, and for other blocks if f = 0 has
        a lower value.
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
        before = self._before
        if before is not None and self._weights_before.shape == self._weights.shape == weights.shape:
            change = self._weights - self._weights_before
            length = float((weights - self._weights) @ change / (change @ change + TINY))
            ahead = method.evaluate(
                last.coef + length * (last.coef - before.coef),
                last.intercept + length * (last.intercept - before.intercept),
                last.scores + length * (last.scores - before.scores),
            )
            here = ahead if ahead.primal < here.primal else here
        is_alike = last.u is not None and len(last.u) == len(method.arrays.blocks)
        return Start(here, self._score_error, last.near if is_alike else None)


def log_weights(method: PredictorCorrector) -> Floats:
    """Return the logarithms of the positive weights of a problem."""
    weights = np.concatenate([method.factors, [method.lam], *(n.weights[:1] for n in method.penalty.norms)])
    return np.asarray(np.log(weights[weights > 0]))
