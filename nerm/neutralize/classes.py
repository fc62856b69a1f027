"""Several classes, each against the rest: the class of the largest score is a decision of its own, and measured so."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from nerm.atoms.margin import MarginFunction
from nerm.errors import NotNeutralError
from nerm.neutralize.attempts import Attempts
from nerm.neutralize.search import FIRST, Attempt, Measured, damped_secant
from nerm.typing import Floats

STEP = 0.2  # of a weight, to learn what it moves


def predicted(scores: Floats) -> Floats:
    """Return for scores (n, number of classes) +1 where a class is predicted, the first of the largest, else -1.

    >>> predicted(np.array([[0.2, 0.3, -1.0], [-2.0, -3.0, -2.0]]))
    array([[-1.,  1., -1.],
           [ 1., -1., -1.]])
    """
    return np.where(np.arange(scores.shape[1]) == scores.argmax(axis=1)[:, None], 1.0, -1.0)


@dataclass(frozen=True, eq=False)
class Joint(Measured):
    """One solution a class; `parts` are those of the predicted classes and, where asked for, of each class' scores."""

    attempts: tuple[Attempt, ...]
    rates: Floats


@dataclass(frozen=True, eq=False)
class Together:
    """The classes' studies and surrogates, and solutions that are within the limit each by itself."""

    studies: Sequence[Attempts]
    surrogates: Sequence[MarginFunction]
    start: Sequence[Attempt]

    def run(self) -> list[Attempt]:
        """Return solutions whose predicted classes are within the limit, if possible with each class' scores."""
        limit, keep = self.studies[0].limit, self.studies[0].keep
        least = keep * self._joint([study.plain for study in self.studies], signs=False).rates
        for signs in (True, False):
            at = self._joint(self.start, signs)
            seen = [at, *(self._search(at, signs) if at.value > limit else ())]
            within = [p for p in seen if p.value <= limit]
            for point in sorted(within, key=lambda p: sum(sum(attempt.etas) for attempt in p.attempts)):
                certified = all(attempt.solution.status.success for attempt in point.attempts)
                if certified and (point.rates >= least).all():
                    return list(point.attempts)
        nearest = min(seen, key=lambda p: p.value)
        name = self.studies[0].trial.measure.name
        failed = f"No models predict every class often enough with |{name}| <= {limit:g}"
        closest = f"The closest have {nearest.value:.4g}"
        advice = [("limit", "raise"), ("keep", "lower"), ("surrogate", "change"), ("lam", "change")]
        raise NotNeutralError(failed, closest, advice)

    def _joint(self, attempts: Sequence[Attempt], signs: bool) -> Joint:
        """Return solutions with their parts: of the predicted classes, and of the signs of scores if asked for."""
        shown = predicted(np.column_stack([attempt.scores for attempt in attempts])).T
        trials = [study.trial for study in self.studies]
        parts = [trial.measured(f) for trial, f in zip(trials, shown, strict=True)]
        parts += [attempt.parts for attempt in attempts] if signs else []
        rates = np.array([trial.rates(f) for trial, f in zip(trials, shown, strict=True)])
        return Joint(np.concatenate(parts), tuple(attempts), rates)

    def _search(self, at: Joint, signs: bool) -> list[Joint]:
        """Search the weights of all classes jointly."""
        x = np.concatenate([attempt.weights for attempt in at.attempts])
        limit = self.studies[0].limit
        return damped_secant(partial(self._solve, signs), x, at, np.where(x == 0, FIRST, STEP * x), limit)

    def _solve(self, signs: bool, x: Floats, start: Joint) -> Joint:
        """Solve at weights x those classes whose weights are others than before."""
        found = []
        for study, surrogate, part, old in zip(
            self.studies, self.surrogates, np.split(x, len(self.studies)), start.attempts, strict=True
        ):
            found.append(
                old if np.array_equal(part, old.weights) else study.search(surrogate).solve(part, old)
            )
        return self._joint(found, signs)
