"""The rows near a kink first: most iterations on few rows, and all rows to check the answer.

A few iterations on all rows bring the scores so near the optimum that most rows have settled beyond every kink. These
are put together (`nerm.engine.settled`), the small problem is solved, and its answer is checked on all rows: its bound
is theirs, and their value decides. If they disagree, rows that came near a kink are taken in, and in the end all, so
that the answer does not depend on the guess.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nerm.engine.bounds import dual_bound, is_balanced, primal_value
from nerm.engine.interior_point import MAX_ITERATIONS, InteriorPoint, Iterate, Outcome
from nerm.engine.settled import condense

BARRIER_RANGE = (0.005, 0.1)
BARRIER_PER_MISS = 0.7  # barrier at a start, per mean error of the scores that is expected there
FEWEST = 2000  # rows below which all of them are as quick as some
SETTLING = 0.1  # mean move of the scores from which on few rows serve
FURTHER = 0.5  # the same on few rows, as a share of the error that was expected there: fewer still serve
REACH = 6.0  # rows within so many mean errors of a kink are kept
MOST = 0.7  # share of the rows above which a smaller problem does not pay
CLOSER, FARTHER = 0.5, 3.0  # the reach after a round that helped, and after one that did not
LEASH = 0.5  # share of the reach that the scores may move in the mean before a small problem is given up
ROUNDS = 4  # of taking in rows before all are taken
SLACK = 0.8  # of the tolerance, for the small problem; the rest is for rows that cross a kink after all


@dataclass(frozen=True)
class Look:
    """A hypothesis with its scores on all rows and the sum of each piece there; P at any eta follows from these."""

    coef: np.ndarray
    intercept: float
    scores: np.ndarray
    values: np.ndarray

    @classmethod
    def of(
        cls,
        engine: InteriorPoint,
        coef: np.ndarray,
        intercept: float,
        scores: np.ndarray | None = None,
        values: np.ndarray | None = None,
    ) -> Look:
        """Look at a hypothesis, whose scores and sums may be known already."""
        scores = engine.features.times(coef) + intercept if scores is None else scores
        return cls(coef, intercept, scores, engine.pieces.values(scores) if values is None else values)

    def primal(self, engine: InteriorPoint) -> float:
        """Return n P."""
        return primal_value(engine.pieces, self.values, self.coef, engine.lam)


def barrier_of(miss: float) -> float:
    """Return the barrier for a start whose scores are off by `miss` in the mean."""
    return float(np.clip(BARRIER_PER_MISS * miss, *BARRIER_RANGE))


def optimum(
    engine: InteriorPoint,
    at: Iterate,
    tol: float,
    limit: int = MAX_ITERATIONS,
    *,
    settling: float = SETTLING,
    leash: float = np.inf,
) -> Outcome:
    """Run from `at` to the relative gap tol, on few rows as soon as a step moves the scores by less than `settling`.

    At most `limit` iterations, on whatever rows, and none after the scores have gone farther than `leash` in the mean.
    """
    if engine.pieces.some_smooth or engine.pieces.n_rows < FEWEST:
        return engine.run(at, tol, limit, leash=leash)
    outcome = engine.run(at, tol, limit, until=settling, leash=leash)
    if outcome.miss is None:
        return outcome
    look = Look.of(engine, at.coef, at.intercept, at.scores)
    outcome = outcome.then(on_few_rows(engine, look, outcome.miss, tol, limit - outcome.iterations), tol)
    if outcome.converged:
        return outcome
    return outcome.then(engine.run(at, tol, limit - outcome.iterations, leash=leash), tol)  # goes on where it stood


def on_few_rows(engine: InteriorPoint, look: Look, miss: float, tol: float, limit: int = MAX_ITERATIONS) -> Outcome:
    """Solve on the rows near a kink, taking in those that come near, until all rows agree or too many would be kept.

    `miss` is the mean distance of the scores from the optimum's that is expected.
    """
    best, place = Outcome(look.coef, look.intercept, look.scores, look.values, look.primal(engine)), None
    reach, barrier = REACH * miss, barrier_of(miss)
    for _ in range(ROUNDS):
        small = condense(engine.pieces, engine.features, look.scores, reach, MOST)
        if small is None or best.iterations >= limit:
            break
        inner = InteriorPoint(small.pieces, small.features, engine.lam, intercept=engine.intercept)
        at = inner.warm(look.coef, look.intercept, barrier)
        rest = limit - best.iterations
        found = optimum(inner, at, SLACK * tol, rest, settling=FURTHER * miss, leash=LEASH * reach)
        best.iterations += found.iterations
        if found.dual > best.dual and found.u is not None:
            best.dual, best.nu, best.u, place = found.dual, found.nu, found.u, small.place
        there = Look.of(engine, found.coef, found.intercept)
        if found.converged and there.primal(engine) < best.primal:
            look = there
            best.keep(look.primal(engine), look.coef, look.intercept, look.scores, look.values)
            reach, barrier = CLOSER * reach, BARRIER_RANGE[0]
        else:  # too many rows crossed a kink that the small problem had taken from them
            reach *= FARTHER
        if best.gap_within(tol):
            break
    if place is not None:
        _on_all_rows(engine, best, place)
    best.converged = best.gap_within(tol)
    return best


def _on_all_rows(engine: InteriorPoint, best: Outcome, place: np.ndarray) -> None:
    """Give every row the multiplier of the row that stands for it, and see that sum c = 0 on all rows too.

    The two sides of a group are two rows there and cancel only here, so that what was rounding may be no more.
    """
    assert best.u is not None
    assert best.nu is not None
    best.u = np.take_along_axis(best.u, place, axis=1)
    nu = engine.pieces.of_each(best.nu)
    if engine.intercept and not is_balanced(engine.pieces, best.u, nu):
        best.dual, best.u = dual_bound(engine.pieces, engine.features, best.u, nu, engine.lam, intercept=True)
