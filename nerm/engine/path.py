"""The eta path: every point starts from what the last two foretell, on the rows near a kink.

From one value of eta to the next most rows stay on their side of every kink. The hypothesis is extrapolated from the
last two points, and how far off the last guess was tells which rows may cross one (`nerm.engine.working_set`).
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import chain, pairwise

import numpy as np

from nerm.engine.driver import prepared, solve
from nerm.engine.interior_point import InteriorPoint, Outcome
from nerm.engine.model import EngineResult, LinearModel
from nerm.engine.threads import blas, cores
from nerm.engine.working_set import Look, barrier_of, on_few_rows, optimum

STRETCH = 8  # values of eta that are worth a cold start
MANY = 10_000  # rows from which on two stretches do not only wait for each other's Python
TOO_MANY = 500_000  # rows from which on the memory of a further stretch is not worth it
LEAST_MISS = 0.01  # mean error of the scores that is expected of any guess
UNKNOWN = 0.1  # mean error of the scores that is expected of a first guess


def solve_path(model: LinearModel, scales: Sequence[float], tol: float = 1e-6) -> list[EngineResult]:
    """Solve with all eta multiplied by each of `scales`; the results come in their order.

    Neighbours should be close, as on a sorted grid: every solution is the start of the next. A long path is cut into
    stretches that share the cores, each with a cold start of its own: two problems at a time keep two cores busier
    than one problem on both. So the results depend on the number of cores, within the tolerance.
    """
    stretches = min(cores(), len(scales) // STRETCH) if MANY <= model.n_rows <= TOO_MANY else 1
    if stretches <= 1:
        return _stretch(model, scales, tol)
    edges = [len(scales) * i // stretches for i in range(stretches + 1)]
    work = partial(_stretch, model, tol=tol, workers=max(1, cores() // stretches))
    with blas.held(), ThreadPoolExecutor(stretches) as pool:
        return list(chain.from_iterable(pool.map(work, (scales[i:j] for i, j in pairwise(edges)))))


def _stretch(model: LinearModel, scales: Sequence[float], tol: float, workers: int | None = None) -> list[EngineResult]:
    """Solve one after the other."""
    results: list[EngineResult] = []
    with prepared(model, workers=workers) as ready:
        past = Past()
        for scale in scales:
            engine = ready.engine(scale)
            here = model.with_eta_scaled(scale)
            if here.acting() != ready.acting:  # such as eta = 0: a side without weight can have no barrier
                last = (results[-1].coef, results[-1].intercept) if results else None
                results.append(solve(here, tol, start=last, workers=workers))
                past.add(scale, Look.of(engine, *ready.coordinates.inside(results[-1].coef, results[-1].intercept)))
                continue
            outcome, miss = _point(engine, past, scale, tol)
            past.add(scale, Look.of(engine, outcome.coef, outcome.intercept, outcome.scores, outcome.values), miss)
            results.append(ready.result(outcome, engine))
    return results


class Past:
    """The last two points of the path, and how far from the truth the last guess was."""

    def __init__(self) -> None:
        self._points: list[tuple[float, Look]] = []
        self.miss = UNKNOWN

    def add(self, scale: float, found: Look, miss: float = UNKNOWN) -> None:
        """Take in a solution; `miss` is the mean distance of its scores from those that were guessed."""
        self._points = [*self._points[-1:], (scale, found)]
        self.miss = max(miss, LEAST_MISS)  # a point that did not move foretells nothing about one that does

    def guess(self, engine: InteriorPoint, scale: float) -> Look | None:
        """Return the last solution, or the straight line in log eta through the last two where that is better."""
        if not self._points:
            return None
        (before, older), (last, newer) = self._points[0], self._points[-1]
        if min(before, last, scale) <= 0 or before == last:
            return newer
        on = np.log(scale / last) / np.log(last / before)
        ahead = Look.of(
            engine,
            newer.coef + on * (newer.coef - older.coef),
            newer.intercept + on * (newer.intercept - older.intercept),
            newer.scores + on * (newer.scores - older.scores),
        )
        return ahead if ahead.primal(engine) < newer.primal(engine) else newer


def _point(engine: InteriorPoint, past: Past, scale: float, tol: float) -> tuple[Outcome, float]:
    """Solve one point; return it with the mean distance of its scores from the guess."""
    guess = past.guess(engine, scale)
    if guess is None:
        return optimum(engine, engine.cold(), tol), UNKNOWN
    outcome = on_few_rows(engine, guess, past.miss, tol)
    if not outcome.converged:
        at = engine.warm(outcome.coef, outcome.intercept, barrier_of(past.miss))
        outcome = outcome.then(optimum(engine, at, tol), tol)
    if not outcome.converged:
        outcome = outcome.then(optimum(engine, engine.cold(), tol), tol)
    return outcome, float(np.abs(outcome.scores - guess.scores).mean())
