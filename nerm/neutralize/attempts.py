"""Searches on one trial: the record of every solve, which solution is one to be used, and the refusal if none is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from nerm.certify.solution import Solution
from nerm.errors import NotNeutralError
from nerm.neutralize.collapse import collapse
from nerm.neutralize.result import Neutralized
from nerm.neutralize.search import Attempt, WeightSearch
from nerm.neutralize.trial import AGREEMENT, Trial
from nerm.typing import Floats


@dataclass
class Attempts:
    """Searches on one trial, and the record of every solve."""

    trial: Trial
    limit: float
    keep: float
    elsewhere: Callable[[Solution], Floats] | None = None
    first: float | None = None
    among_classes: bool = False

    def __post_init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self.points: list[Attempt] = []
        self.surrogates: list[Any] = []
        self.nearest: list[tuple[Any, Attempt]] = []
        solution = self.trial.plain()
        scores = self.trial.scores(solution)
        parts = self.trial.measured(scores) if self.elsewhere is None else self.elsewhere(solution)
        self.plain = Attempt(parts, np.zeros(len(parts)), (AGREEMENT,) * len(parts), solution, scores)
        self._note(None, self.plain)

    def _note(self, surrogate: Any, point: Attempt) -> None:
        trial, solution = self.trial, point.solution
        self.points.append(point)
        self.surrogates.append(surrogate)
        rates = {
            f"positive rate, {name} {group}": rate
            for name, pair in zip(trial.viewpoints, trial.rates(point.scores), strict=True)
            for group, rate in zip("-+", pair, strict=True)
        }
        self.rows.append(
            {
                "surrogate": "" if surrogate is None else repr(surrogate),
                "eta": point.etas[0] if len(point.etas) == 1 else point.etas,
                "side": point.sides[0] if len(point.sides) == 1 else point.sides,
                "measure": float(point.parts[0]) if len(point.parts) == 1 else point.value,
                **trial.quality(point.scores),
                **rates,
                "status": solution.status.value,
                "relative_gap": solution.certificate.relative_gap,
            }
        )

    def of(self, surrogate: Any, first: float | None = None) -> Attempt | None:
        """Return the best point of one surrogate that is within the limit and one to be used; None if there is none.

        `first` is the weight to try first, where one is known that should do.
        """
        if self.plain.value <= self.limit:
            self.nearest.append((surrogate, self.plain))
            return self.plain if self.among_classes or not self.objection(self.plain) else None
        points = self.search(surrogate, first).run()
        self.nearest.append((surrogate, points[0]))
        return next((p for p in points if p.value <= self.limit and not self.objection(p)), None)

    def search(self, surrogate: Any, first: float | None = None) -> WeightSearch:
        """Return the search with one surrogate, which notes its solves here."""
        known = [
            point for point, other in zip(self.points, self.surrogates, strict=True) if other is surrogate
        ]
        return WeightSearch(
            self.trial,
            surrogate,
            self.limit,
            self.plain,
            self._note,
            self.elsewhere,
            first or self.first,
            known,
        )

    def objection(self, point: Attempt) -> str:
        """Say why a solution is none to be used: it ranks no better than chance, or denies too many; empty if it is."""
        if not point.solution.status.success:
            return "its solution was not certified"
        positive = point.scores[self.trial.used] > 0
        if positive.all() == positive.any():  # with keep = 0 that is an answer
            which = "it" if any(point.etas) else "the plain model already"
            return f"{which} predicts the same class for every row" if self.keep else ""
        if not self.trial.quality(point.scores)["auc"] > 0.5:
            return "it ranks no better than chance"
        if nearly := self._nearly_constant(point):
            return nearly
        before, after = self.trial.rates(self.plain.scores), self.trial.rates(point.scores)
        if (after < self.keep * before).any():
            (i, g), *_ = np.argwhere(after < self.keep * before)
            group = f"{self.trial.viewpoints[i]} {'-+'[g]}"
            return f"{after[i, g]:.1%} of the group {group} is predicted positive, {before[i, g]:.1%} without neutrality"
        return ""

    def _nearly_constant(self, point: Attempt) -> str:
        """Say that a solution gives nearly everybody the same answer, also if that is yes; empty if it does not.

        Of one class among several, and with keep = 0, that is an answer.
        """
        if self.among_classes or not self.keep:
            return ""
        used, p = self.trial.used, self.trial.problem
        found = collapse(
            point.scores[used], (p.y[used] > 0).astype(int), ("no", "yes"),
            weight=self.trial.row_weight[used], risk_weight=p.sample_weight[used],
        )  # fmt: skip
        who = "the model" if any(point.etas) else "the plain model already"
        return "" if found is None else found.replace("The model", who).rstrip(".")

    def answer(self, surrogate: Any, point: Attempt, choice: pd.DataFrame) -> Neutralized:
        """Return a point as the result."""
        several = len(point.parts) > 1
        return Neutralized(
            solution=point.solution,
            eta=point.etas if several else point.etas[0],
            side=point.sides if several else point.sides[0],
            surrogate=surrogate,
            measure=self.trial.measure.name,
            limit=self.limit,
            value=point.value if several else float(point.parts[0]),
            reached=point.value <= self.limit,
            trace=pd.DataFrame(self.rows).assign(chosen=[point is other for other in self.points]),
            choice=choice,
        )

    def refusal(self) -> NotNeutralError:
        """Return the error that says what was reached, and why that is no answer."""
        surrogate, point = min(self.nearest, key=lambda pair: pair[1].value)
        closest = f"The closest, with {surrogate!r} at eta {_list(point.etas)}, has {point.value:.4g}"
        advice = [("limit", "raise"), ("keep", "lower"), ("surrogate", "change"), ("lam", "change")]
        if point.value <= self.limit:
            closest = f"{closest}, but {self.objection(point)}"
        if self.plain.value <= self.limit:  # the limit is not the obstacle
            advice = [("class_weight", "balance"), ("sample_weight", "change"), ("lam", "lower")]
        failed = f"No non-constant model reaches |{self.trial.measure.name}| <= {self.limit:g}"
        error = NotNeutralError(failed, closest, advice)
        error.best = self.answer(surrogate, point, pd.DataFrame())
        return error


def _list(numbers: Sequence[float]) -> str:
    return ", ".join(f"{number:.4g}" for number in numbers)
