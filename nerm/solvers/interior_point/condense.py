"""The rows near a kink first: most iterations on few rows, and all rows to check the answer.

A hinge-like function is affine beyond its kinks. A few iterations on all rows bring the scores so near the
optimum that most rows have settled there. Their multipliers are then fixed, u = low or u = high, and what
they add to the problem is

    sum_i B_i phi(t_i f_i)  >=  (sum_i B_i t_i u_i x_i)'w + (sum_i B_i t_i u_i) b - sum_i B_i phi*(u_i),

with equality where the guess was right: one linear function a block, whose rows are gone. Right or wrong, a
bound of the small problem is a bound of the whole one, because fixed multipliers are feasible. Its answer is
checked on all rows: their value decides. If the two disagree, rows that came near a kink are taken in, and in
the end all, so that the answer does not depend on the guess.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numba
import numpy as np

from nerm.solvers.interior_point.arrays import Arrays, State, fours
from nerm.solvers.interior_point.duality import dual_bound, is_balanced
from nerm.solvers.interior_point.passes import AFFINE, HIGH, KIND, LINEAR, LOW, MOVING, QUADRATIC, options
from nerm.solvers.interior_point.predictor_corrector import Near, Outcome, PredictorCorrector
from nerm.solvers.interior_point.tuning import Tuning
from nerm.typing import Bools, Floats, Ints


@dataclass(frozen=True)
class Condensed:
    """A small problem, the rows of the whole one that it keeps, and the multipliers of all others, (J, n)."""

    arrays: Arrays
    rows: Ints
    u: Floats

    def on_all_rows(self, u: Floats) -> Floats:
        """Put the multipliers of the rows kept in their place and return those of all rows."""
        self.u[:, self.rows] = u
        return self.u

    def within(self, larger: Condensed) -> Condensed:
        """Return a problem condensed from a condensed one as condensed from the whole."""
        return Condensed(self.arrays, larger.rows[self.rows], larger.on_all_rows(self.u))


def condense(
    arrays: Arrays, scores: Floats, distance: float, most: float, other: Floats | None = None
) -> Condensed | None:
    """Let go of all rows whose scores are farther than `distance` from every kink; None if more than `most` n stay.

    Rows that have a kink between these scores and others stay too. Smooth functions have no affine region:
    where they have weight, rows stay.
    """
    count = len(arrays.blocks)
    u, stays, forces, sums = _settled(arrays, scores, distance, other)
    rows = np.flatnonzero(stays)
    if not 0 < len(rows) <= most * arrays.n_rows:
        return None
    pull = np.column_stack([arrays.features.columns(forces).T, forces.sum(axis=1)])[:count]
    return Condensed(arrays.fewer(rows, pull, sums), rows, u)


def _settled(
    arrays: Arrays, scores: Floats, distance: float, other: Floats | None
) -> tuple[Floats, Bools, Floats, Floats]:
    """Return u, which rows stay, the forces of the others and their sum B phi*(u), by block."""
    shape = arrays.data.weights.shape
    u, stays, forces = np.zeros(shape), np.zeros(shape[1], dtype=bool), fours(*shape)
    given = tuple(arrays.data), scores, scores if other is None else other, distance, u, stays, forces
    return u, stays, forces, arrays.features.workers.add_up(lambda *part: _settle(*given, *part))


@numba.njit(**options)
def _settle(data, scores, others, distance, u, stays, forces, start, stop):  # type: ignore[no-untyped-def]
    """Set u and B t u of rows beyond all kinks; return their sum B phi*(u) of each block.

    A row stays if in some block its margin is within |t| distance of a kink, or beyond it at the other
    scores.
    """
    targets, weights, table = data
    part, sums = slice(start, stop), np.zeros(table.shape[0])
    f, g, stay = scores[part], others[part], stays[part]
    for j in range(len(sums)):
        a, q, lo, hi, kind = (
            table[j, LINEAR],
            table[j, QUADRATIC],
            table[j, LOW],
            table[j, HIGH],
            table[j, KIND],
        )
        low_kink, high_kink = (a + q * lo, a + q * hi) if q > 0 else (a, a)
        t, B, x, inside = targets[j, part], weights[j, part], u[j, part], min(max(0.0, lo), hi)
        for i in range(len(f)):
            width = abs(t[i]) * distance
            below = t[i] * f[i] <= low_kink - width and t[i] * g[i] <= low_kink and kind == MOVING
            above = t[i] * f[i] >= high_kink + width and t[i] * g[i] >= high_kink and kind == MOVING
            x[i] = lo if below else hi if above else inside
            stay[i] |= not (below or above or kind == AFFINE or B[i] == 0.0)
    for j in range(len(sums)):
        t, B, x, force = targets[j, part], weights[j, part], u[j, part], forces[j, part]
        a, half, total = table[j, LINEAR], 0.5 * table[j, QUADRATIC], 0.0
        for i in range(len(f)):
            weight = 0.0 if stay[i] else B[i]
            force[i] = weight * t[i] * x[i]
            total += weight * (a + half * x[i]) * x[i]
        sums[j] = total
    return sums


def barrier_of(miss: float, tuning: Tuning, near: Near | None = None) -> float:
    """Return the barrier for a start whose scores are off by `miss` in the mean."""
    least, most = tuning.barrier_range
    return float(
        np.clip(tuning.barrier_per_miss * miss, least if near is None else tuning.least_warm_barrier, most)
    )


def optimum(
    method: PredictorCorrector, state: State, tol: float, limit: int, *, warm: bool = False
) -> Outcome:
    """Run from a state to the relative gap tol in at most `limit` iterations, on few rows as soon as most settle."""
    tuning = method.tuning
    if method.arrays.smooth or method.arrays.n_rows < tuning.fewest:
        return method.run(state, tol, limit)
    outcome = method.run(state, tol, limit, until=tuning.settling)
    if outcome.miss is None or outcome.state is None:
        return outcome
    state, miss = outcome.state, outcome.miss  # it can be run on
    here = method.evaluate(state.coef, state.intercept, state.scores)
    near, off = (state.duals.u, state.nu), max(miss, tuning.miss_per_barrier * outcome.barrier)
    if not warm:
        outcome = outcome.then(on_few_rows(method, here, miss, tol, limit - outcome.iterations), tol)

    def on_all(left: int) -> Outcome:
        return method.run(state, tol, left)

    def on_others(left: int) -> Outcome:
        return near_a_neighbour(method, here, off, tol, left, near)

    for attempt in (on_others, on_all) if warm else (on_all, on_others):
        if not outcome.converged:
            outcome = outcome.then(attempt(limit - outcome.iterations), tol)
    return outcome


def on_few_rows(method: PredictorCorrector, here: Outcome, miss: float, tol: float, limit: int) -> Outcome:
    """Solve on the rows near a kink, again around every answer that is better, until all rows agree with one.

    Parameters
    ----------
    here
        Where to look for the optimum.
    miss
        The mean distance of its scores from the optimum's that is expected.
    """
    tuning, barrier = method.tuning, barrier_of(miss, method.tuning)
    for _ in range(tuning.rounds):
        small = condense(method.arrays, here.scores, tuning.reach * miss, tuning.most)
        if small is None or here.iterations >= limit:
            break
        found = _descend(method, small, here, miss, barrier, tol, limit - here.iterations)
        better = found.primal < here.primal  # else too many rows crossed a kink that was taken from them
        here = here.then(found, tol)
        if here.converged or not better:
            break
        barrier = tuning.barrier_range[0]
    return here


def _descend(
    method: PredictorCorrector,
    small: Condensed,
    here: Outcome,
    miss: float,
    barrier: float,
    tol: float,
    limit: int,
) -> Outcome:
    """Solve a small problem, on fewer rows still whenever more have settled; return the answer on all rows."""
    tuning, iterations = method.tuning, 0
    inner = method.on(small.arrays)
    state, until = inner.start(here.coef, here.intercept, barrier), tuning.further * miss
    while True:
        until = until if inner.arrays.n_rows >= tuning.fewest else 0.0
        found = inner.run(state, tuning.slack * tol, limit - iterations, until=until)
        iterations += found.iterations
        if found.miss is None or found.state is None:
            break
        state, until = found.state, tuning.further * found.miss
        smaller = condense(inner.arrays, state.scores, tuning.reach * found.miss, tuning.most)
        if smaller is None:
            until = 0.0  # goes on where it stood
        else:
            small, inner = smaller.within(small), method.on(smaller.arrays)
            state = inner.start(state.coef, state.intercept, barrier_of(found.miss, tuning))
    found.iterations = iterations
    return answer_on_all_rows(method, small, found)


def foretold(
    method: PredictorCorrector,
    guess: Outcome,
    miss: float,
    tol: float,
    limit: int,
    near: Near | None,
    other: Floats,
) -> Outcome:
    """Solve near a guess: on the rows around it, then around the answer that all rows refused, then on all.

    Parameters
    ----------
    guess
        Where to look for the optimum.
    miss
        The mean distance of its scores from the optimum's that is expected.
    near, other
        Multipliers of a neighbour, and its scores.
    """
    tuning, outcome, here = method.tuning, guess, guess
    small = condense(method.arrays, guess.scores, tuning.reach * miss, tuning.most) if tuning.rounds else None
    if small is not None:
        tried = _descend(method, small, guess, miss, barrier_of(miss, tuning), tol, limit)
        outcome = guess.then(tried, tol)
        better = tried.primal < guess.primal
        here, other, near = (tried, guess.scores, tried.near) if better else (guess, tried.scores, near)
    if not outcome.converged:
        here, left = replace(here, iterations=0), limit - outcome.iterations
        again = near_a_neighbour(method, here, miss, tol, left, near, other)
        outcome = outcome.then(again, tol)
    if not outcome.converged:
        miss, near = again.miss or miss, outcome.near or near
        at = method.start(outcome.coef, outcome.intercept, barrier_of(miss, tuning, near), near, miss)
        outcome = outcome.then(optimum(method, at, tol, max(limit - outcome.iterations, 0), warm=True), tol)
    return outcome


def near_a_neighbour(
    method: PredictorCorrector,
    here: Outcome,
    miss: float,
    tol: float,
    limit: int,
    near: Near | None = None,
    other: Floats | None = None,
) -> Outcome:
    """Do the same from the solution of a neighbour, whose multipliers serve as well: most rows at a kink stay there.

    As soon as rows settle, others are chosen, among all; a first step that is longer than expected brings
    more of them.

    Parameters
    ----------
    here
        Where to look for the optimum.
    miss
        The mean distance of its scores from the optimum's that is expected.
    near
        Multipliers of a neighbour, on all rows.
    other
        Scores of a neighbour: rows that cross a kink between the two are undecided.
    """
    tuning, best, other = method.tuning, here, here.scores if other is None else other
    small = _around(method, here, miss, other)
    expected, roof, falling = miss, np.inf, True
    for _ in range(tuning.warm_rounds):
        if small is None or best.iterations >= limit:
            break
        inner, part = method.on(small.arrays), near and (near[0][:, small.rows], near[1])
        state = inner.start(here.coef, here.intercept, barrier_of(miss, tuning, part), part, miss)
        until = tuning.further * miss if falling and small.arrays.n_rows >= tuning.fewest else 0.0
        found = inner.run(state, tuning.slack * tol, limit - best.iterations, until=until, expected=expected)
        if found.miss is not None and found.miss > miss:
            best.iterations, miss, expected = (
                best.iterations + found.iterations,
                min(found.miss, roof),
                np.inf,
            )
            small = _around(method, here, miss, other)
            continue
        answer, fewer = answer_on_all_rows(method, small, found), None
        if found.miss is not None and found.state is not None:
            found.miss = max(found.miss, tuning.miss_per_barrier * found.barrier)
            fewer = _around(method, answer, found.miss, here.scores)
            if fewer is None or len(fewer.rows) > tuning.most * len(small.rows):  # go on where it stood
                more = inner.run(found.state, tuning.slack * tol, limit - best.iterations - found.iterations)
                more.iterations += found.iterations
                found, answer, fewer = more, answer_on_all_rows(method, small, more), None
        best, last = best.then(answer, tol), here
        if best.converged:
            break
        if found.state is not None:
            near = small.on_all_rows(found.state.duals.u), found.state.nu
        if fewer is not None and found.miss is not None:
            here, other, small, expected, roof, miss = (
                answer,
                last.scores,
                fewer,
                found.miss,
                miss,
                found.miss,
            )
        elif len(small.rows) > tuning.many * method.arrays.n_rows:
            break
        else:  # too many rows crossed a kink that was taken from them
            here, other = (answer, last.scores) if answer.primal < last.primal else (last, answer.scores)
            miss, expected, falling = tuning.wider * miss, np.inf, False
            small = _around(method, here, miss, other)
    best.miss = miss
    return best


def _around(method: PredictorCorrector, here: Outcome, miss: float, other: Floats) -> Condensed | None:
    """Keep the rows that may cross a kink where scores are off by `miss`, and those that do on the way to others."""
    return condense(method.arrays, here.scores, method.tuning.reach * miss, method.tuning.most, other)


def answer_on_all_rows(method: PredictorCorrector, small: Condensed, found: Outcome) -> Outcome:
    """Return the answer of a small problem on all rows."""
    answer = method.evaluate(found.coef, found.intercept)
    answer.iterations = found.iterations
    if found.u is not None and found.nu is not None and found.pull is not None:
        answer.dual, answer.u, answer.nu = found.dual, small.on_all_rows(found.u).copy(), found.nu
        answer.pull = found.pull
        nu = method.each(found.nu)
        if method.intercept and not is_balanced(
            method.arrays, answer.u, nu
        ):  # forces of rows that left cancel again
            again = dual_bound(method.arrays, answer.u, nu, method.taken(found.pull), intercept=True)
            answer.dual, answer.u = again
    return answer
