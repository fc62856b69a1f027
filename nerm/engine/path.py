"""The eta path: every point starts from what the last two foretell, on the rows that have not settled.

From one value of eta to the next most rows stay on their side of every kink. The hypothesis is extrapolated from the
last two, the rows that are far from a kink by its measure are put together (`nerm.engine.settled`), and the small
problem is solved. Its answer is checked on all rows: if they disagree, those that moved are taken in, and in the end
all of them, so that the result does not depend on the guess.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from nerm.engine.bounds import primal_value
from nerm.engine.coordinates import Hypothesis
from nerm.engine.driver import WARM, Prepared, prepared, solve
from nerm.engine.interior_point import InteriorPoint, Outcome
from nerm.engine.model import EngineResult, LinearModel
from nerm.engine.settled import condense

BARRIER_RANGE = (0.005, 0.1)
BARRIER_PER_MOVE = 0.7  # barrier at a start, per mean error of the scores that are expected there
REACH = 5.0  # rows within so many mean errors of a kink are kept
MOST = 0.5  # share of the rows above which a smaller problem does not pay
CLOSER, FARTHER = 0.5, 3.0  # the reach after a round that helped, and after one that did not
ROUNDS = 4  # of taking in rows before all are taken
SLACK = 0.5  # of the tolerance, for the small problem; the rest is for rows that cross a kink after all


def solve_path(model: LinearModel, scales: Sequence[float], tol: float = 1e-6) -> list[EngineResult]:
    """Solve with all eta multiplied by each of `scales` in turn, every solution the start of the next.

    The order is yours to choose and the results come in it; neighbours should be close, as on a sorted grid.
    """
    results: list[EngineResult] = []
    with prepared(model) as ready:
        past = Past()
        for scale in scales:
            if scale == 0:  # the terms do not act at all, so the sides have no barrier
                last = (results[-1].coef, results[-1].intercept) if results else None
                results.append(solve(model.with_eta_scaled(0.0), tol, start=last))
                past.add(scale, ready.coordinates.inside(results[-1].coef, results[-1].intercept))
                continue
            engine = ready.engine(scale)
            outcome, miss = _point(ready, engine, past, scale, tol)
            past.add(scale, (outcome.coef, outcome.intercept), miss)
            results.append(ready.result(outcome, engine))
    return results


class Past:
    """The last two points of the path, and how far from the truth the last guess was."""

    def __init__(self) -> None:
        self._points: list[tuple[float, Hypothesis]] = []
        self.miss: float | None = None

    def add(self, scale: float, found: Hypothesis, miss: float | None = None) -> None:
        """Take in a solution; `miss` is the mean distance of its scores from those that were guessed."""
        self._points = [*self._points[-1:], (scale, found)]
        self.miss = miss

    def guesses(self, scale: float) -> list[Hypothesis]:
        """Return the last solution, and the straight line in log eta through the last two where they have one."""
        found = [hypothesis for _, hypothesis in self._points]
        if len(found) < 2:
            return found
        before, last = (eta for eta, _ in self._points)
        if min(before, last, scale) <= 0 or before == last:
            return found[-1:]
        on = np.log(scale / last) / np.log(last / before)
        (w0, b0), (w1, b1) = found
        return [(w1, b1), (w1 + on * (w1 - w0), b1 + on * (b1 - b0))]


def _point(
    ready: Prepared, engine: InteriorPoint, past: Past, scale: float, tol: float
) -> tuple[Outcome, float | None]:
    """Solve one point; return it with the mean distance of its scores from the guess, if there was one."""
    guesses = past.guesses(scale)
    if not guesses:
        return engine.run(engine.cold(), tol), None
    guess = min((_Look(engine, *hypothesis) for hypothesis in guesses), key=lambda look: look.primal)
    outcome = Outcome(guess.coef, guess.intercept)
    if past.miss is not None:
        outcome = _condensed(ready, engine, guess, past.miss, tol)
    if not outcome.converged:
        outcome = outcome.then(engine.run(engine.warm(outcome.coef, outcome.intercept, _barrier(past.miss)), tol))
    if not outcome.converged:
        outcome = outcome.then(engine.run(engine.cold(), tol))
    scores = engine.features.times(outcome.coef) + outcome.intercept
    return outcome, float(np.abs(scores - guess.scores).mean())


def _barrier(miss: float | None) -> float:
    return WARM if miss is None else min(max(BARRIER_PER_MOVE * miss, BARRIER_RANGE[0]), BARRIER_RANGE[1])


class _Look:
    """A hypothesis with its scores on all rows, and n P."""

    def __init__(self, engine: InteriorPoint, coef: np.ndarray, intercept: float) -> None:
        self.coef, self.intercept = coef, intercept
        self.scores = engine.features.times(coef) + intercept
        self.primal = primal_value(engine.pieces, engine.pieces.values(self.scores), coef, engine.lam)


def _condensed(ready: Prepared, engine: InteriorPoint, at: _Look, miss: float, tol: float) -> Outcome:
    """Solve on the rows near a kink, taking in those that come near, until all rows agree or too many would be kept."""
    best = Outcome(at.coef, at.intercept, at.primal)
    reach, barrier = REACH * miss, _barrier(miss)
    for _ in range(ROUNDS):
        small = condense(engine.pieces, engine.features, at.scores, reach, MOST, ready.blocks)
        if small is None:
            break
        inner = InteriorPoint(small.pieces, small.features, engine.lam, intercept=engine.intercept)
        found = inner.run(inner.warm(at.coef, at.intercept, barrier), SLACK * tol)
        best.iterations += found.iterations
        if found.u is None or found.nu is None:
            break
        look = _Look(engine, found.coef, found.intercept)
        if found.dual > best.dual:
            best.dual, best.u, best.nu = found.dual, small.whole(found.u), found.nu
        if look.primal < at.primal:
            at = look
            best.primal, best.coef, best.intercept = at.primal, at.coef, at.intercept
            reach, barrier = CLOSER * reach, BARRIER_RANGE[0]
        else:  # too many rows crossed a kink that the small problem had taken from them
            reach *= FARTHER
        best.converged = best.gap_within(tol)
        if best.converged:
            break
    return best
