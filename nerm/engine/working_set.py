"""The rows near a kink first: most iterations on few rows, and all rows to check the answer.

A few iterations on all rows bring the scores so near the optimum that most rows have settled beyond every kink. These
are put together (`nerm.engine.settled`), the small problem is solved, and its answer is checked on all rows: its bound
is theirs, and their value decides. If they disagree, rows that came near a kink are taken in, and in the end all, so
that the answer does not depend on the guess.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nerm.engine.bounds import primal_value
from nerm.engine.interior_point import MAX_ITERATIONS, InteriorPoint, Iterate, Outcome
from nerm.engine.settled import condense

WARM = 0.05  # barrier at a start from a neighbouring problem of unknown distance
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
    def of(cls, engine: InteriorPoint, coef: np.ndarray, intercept: float, scores: np.ndarray | None = None) -> Look:
        """Look at a hypothesis, whose scores may be known already."""
        scores = engine.features.times(coef) + intercept if scores is None else scores
        return cls(coef, intercept, scores, engine.pieces.values(scores))

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
    """Run from `at` to the relative gap tol, on few rows as soon as a step moves the scores by less than `settling`."""
    if engine.pieces.some_smooth or engine.pieces.n_rows < FEWEST:
        return engine.run(at, tol, limit, leash=leash)
    outcome = engine.run(at, tol, limit, until=settling, leash=leash)
    if outcome.miss is None:
        return outcome
    few = on_few_rows(engine, Look.of(engine, at.coef, at.intercept, at.scores), outcome.miss, tol)
    if few.converged:
        return outcome.then(few)
    return outcome.then(few).then(engine.run(at, tol, limit, leash=leash))  # goes on where it stood


def on_few_rows(engine: InteriorPoint, at: Look, miss: float, tol: float) -> Outcome:
    """Solve on the rows near a kink, taking in those that come near, until all rows agree or too many would be kept.

    `miss` is the mean distance of the scores from the optimum's that is expected.
    """
    best, bound = Outcome(at.coef, at.intercept, at.scores, at.values, at.primal(engine)), None
    reach, barrier = REACH * miss, barrier_of(miss)
    for _ in range(ROUNDS):
        small = condense(engine.pieces, engine.features, at.scores, reach, MOST)
        if small is None:
            break
        inner = InteriorPoint(small.pieces, small.features, engine.lam, intercept=engine.intercept)
        start = inner.warm(at.coef, at.intercept, barrier)
        found = optimum(inner, start, SLACK * tol, settling=FURTHER * miss, leash=LEASH * reach)
        best.iterations += found.iterations
        look = Look.of(engine, found.coef, found.intercept)
        if found.dual > best.dual and found.u is not None:
            best.dual, best.nu, bound = found.dual, found.nu, (small, found.u)
        if found.converged and look.primal(engine) < best.primal:
            at = look
            best.keep(at.primal(engine), at.coef, at.intercept, at.scores, at.values)
            reach, barrier = CLOSER * reach, BARRIER_RANGE[0]
        else:  # too many rows crossed a kink that the small problem had taken from them
            reach *= FARTHER
        best.converged = best.gap_within(tol)
        if best.converged:
            break
    if bound is not None:
        best.u = bound[0].whole(bound[1])
    return best
