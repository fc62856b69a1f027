"""The trade-off on one table: models at several levels of neutrality, measured on rows that they have not seen."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm.experiments.harness import Method, sweep
from nerm.experiments.methods import METHODS
from nerm.report.decisions import ADVICE, collapse_of, measures_of
from nerm.report.fitting import (
    FittedModel,
    Progress,
    TableFit,
    TaskRows,
    choose_surrogate,
    fit_levels,
    logistic_regression,
    silent,
)
from nerm.report.points import OtherMethod, Point, completed, held_out_bounds, other_of, point_of, theorems
from nerm.report.settings import Level, Settings
from nerm.tables.recipe import Recipe
from nerm.tables.roles import TableTask, folds, split
from nerm.typing import Floats, Ints

CROSS_VALIDATED = 4000  # up to this many rows every row is held out once; beyond, a quarter is held out
FOLDS, TEST = 5, 0.25
#: Weights of the published neutral methods, a few of the paper's: enough to see their fronts.
PUBLISHED: dict[str, tuple[float, ...]] = {
    "cv2nb": (),
    "pr": (0.0, 1.0, 5.0, 10.0, 50.0),
    "eta-lr": (0.0, 0.01, 0.1, 0.5),
}
Key = tuple[str, float | None]  # a method and its weight


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that the table, the figure and the page show.

    Attributes
    ----------
    task, recipe, settings, formula
        The rows, their coding, and the model; no recipe and no formula in an audit of given scores.
    how_measured
        On which rows, in words.
    points, others
        From the plain model (the first) to the most neutral, and other methods.
    chosen
        Which point is looked at first; it is recommended unless it collapsed.
    notes, seconds
        What was missing, left out or failed; and how long it took.
    fitted
        The coded rows, and the numbers of those that the shown models were fitted on.
    audited
        Whether the first point is somebody's scores, and the others what could stand in their place.
    """

    task: TableTask
    recipe: Recipe | None
    settings: Settings
    formula: str
    how_measured: str
    points: tuple[Point, ...]
    others: tuple[OtherMethod, ...]
    chosen: int
    notes: tuple[str, ...]
    seconds: float
    fitted: tuple[TaskRows, Ints] | None = None
    audited: bool = False

    @property
    def recommended(self) -> int | None:
        """Which point is pointed at: the chosen one, None where it collapsed."""
        return self.chosen if self.points[self.chosen].collapse is None else None

    def warning(self) -> str | None:
        """Say which models are nearly constant or had their positive rate collapse, if any did."""
        bad = [point for point in self.points if point.collapse]
        if not bad:
            return None
        now = self.points[self.chosen]
        shown = now if now.collapse else bad[0]
        labels = ", ".join(point.label for point in bad)
        return f"{shown.label}: {shown.collapse} Not recommended: {labels}; {ADVICE}."

    def sentence(self) -> str:
        """Say the chosen trade-off in one sentence."""
        plain, now = self.points[0], self.points[self.chosen]
        measure = self.settings.aim[1]
        if self.audited:
            return self._audit_sentence()
        if all(point.collapse for point in self.points):
            return (
                "No model is recommended: every one here is nearly constant, or its positive rate collapsed."
            )
        if now.collapse:
            return f"{now.label} is not recommended; look at another model."
        if plain.collapse:
            return (
                f"{now.label} has the smallest {measure} of the models that are no constants, "
                f"{now.aim(self.settings):.3f}, with an AUC of {now.measures['auc']:.3f}."
            )
        if now is plain:
            sound = " that can be recommended" if self.warning() else ""
            return (
                f"No model{sound} made the {measure} on held-out rows smaller at a price of at most "
                f"{self.settings.budget:g} AUC, so {plain.label} stands."
            )
        before, after = plain.aim(self.settings), now.aim(self.settings)
        more = now.decisions.correct - plain.decisions.correct
        low, high = now.intervals.get(self.settings.aim[0], (after, after))
        return (
            f"With {now.label} the {measure} is {now.measures[self.settings.aim[0]]:+.3f} (95 %: {low:+.3f} to "
            f"{high:+.3f}) instead of {plain.measures[self.settings.aim[0]]:+.3f}, for an AUC of "
            f"{now.measures['auc']:.3f} instead of {plain.measures['auc']:.3f}: per 1,000 people, "
            f"{now.decisions.changed:.0f} get another decision and {abs(more):.0f} "
            f"{'fewer' if more <= 0 else 'more'} decisions are right."
            + ("" if after < before else " On held-out rows it is no more neutral than without.")
        )

    def _audit_sentence(self) -> str:
        """Say how the audited scores compare with the most accurate of the more neutral ones."""
        name, words = self.settings.aim
        given, *rest = self.points
        low, high = given.intervals.get(name, (given.measures[name],) * 2)
        said = f"The {words} is {given.measures[name]:+.3f} (95 %: {low:+.3f} to {high:+.3f}), at an accuracy of "
        said += f"{given.measures['accuracy']:.3f}."
        others = [p for p in rest if p.level.limit is not None and p.collapse is None]
        others = [p for p in others if p.aim(self.settings) < given.aim(self.settings)]
        if not others:
            return f"{said} Nothing that was tried is more neutral."
        best = max(others, key=lambda p: p.measures["accuracy"])
        return (
            f"{said} Of the neutral ones that were tried, the most accurate is “{best.label}”: "
            f"{best.measures[name]:+.3f}, at an accuracy of {best.measures['accuracy']:.3f}."
        )


def run_study(
    task: TableTask,
    settings: Settings,
    *,
    fit: TableFit | None = None,
    every_method: bool = False,
    progress: Progress = silent,
    command: str = "",
) -> Study:
    """Fit every level, measure on held-out rows, and choose one.

    Parameters
    ----------
    task, settings
        The rows and the model.
    fit
        A model that was fitted already: it is the point at its level, the one to point at, and its held-out
        rows measure all points. By default the choice is, on held-out rows and among the models that did not
        collapse and whose AUC is within `settings.budget` of the plain model's, the tightest limit (of
        weights, the most neutral).
    every_method
        Whether to run the published neutral methods too, and not only logistic regression.
    progress
        Told what is being done.
    command
        The `nerm fit` command without a level; each point completes it.
    """
    started = time.perf_counter()
    known = {} if fit is None else {fit.model.level: fit.model}
    levels = tuple(sorted({*settings.levels, *known}, key=_order))
    rows = TaskRows(task, settings) if fit is None else fit.rows
    pairs, shown = _parts(task, settings, fit)
    limits = [level.limit for level in levels if level.limit is not None]
    surrogate = None if fit is None else fit.model.surrogate
    if limits and surrogate is None:
        surrogate = choose_surrogate(rows, shown, limits, progress)
    models, failed = fit_levels(
        rows, shown, [level for level in levels if level not in known], surrogate, progress
    )
    models |= known
    methods = [logistic_regression()]
    if every_method:
        methods += [replace(METHODS[name], etas=weights) for name, weights in PUBLISHED.items()]
    part, others, more = _held_out_scores(rows, pairs, methods, progress)
    if len(pairs) > 1:  # the shown models have seen the rows of every part
        scores, unmet = cross_validated(
            rows, pairs, [one for one in levels if one in models], surrogate, progress
        )
    else:
        X_test = rows.parts("one-hot", *pairs[0])[1]
        scores, unmet = {level: model.score(X_test) for level, model in models.items()}, []
    judged, (recipe, _, notes) = task.rows(part >= 0), rows.coded(shown)
    levels = tuple(level for level in levels if level in models and level in scores)
    whole = f"{command} --test 0" if command and len(pairs) > 1 else command
    points = _points(rows, shown, part, [models[level] for level in levels], scores, whole)
    return Study(
        task=task,
        recipe=recipe,
        settings=settings,
        formula=str(settings.objective(tuple(task.terms))).replace("+ max(", "+ η max("),
        how_measured=_how_measured(task, pairs),
        points=points,
        others=tuple(other_of(judged, *key, values) for key, values in others.items()),
        chosen=_choice(points, settings) if fit is None else levels.index(fit.model.level),
        notes=(*task.notes, *notes, *dict.fromkeys([*failed, *unmet, *more])),
        seconds=time.perf_counter() - started,
        fitted=(rows, shown),
    )


def _order(level: Level) -> tuple[float, float]:
    """From the plain model to the most neutral one."""
    return level.eta or 0.0, 0.0 if level.limit is None else 1.0 / (level.limit + 1e-9)


def _parts(task: TableTask, settings: Settings, fit: TableFit | None) -> tuple[list[tuple[Ints, Ints]], Ints]:
    """Return pairs of training and held-out rows, and the rows that the shown models are fitted on.

    Few rows are held out once each, in several parts, and the shown models see them all.
    """
    if fit is not None and fit.holdout is not None:
        return [(fit.train, fit.test)], fit.train
    if len(task) > CROSS_VALIDATED and fit is None:
        train, test = split(task, TEST, settings.seed)
        return [(train, test)], train
    return folds(task, FOLDS, settings.seed), np.arange(len(task))


def cross_validated(
    rows: TaskRows,
    pairs: Sequence[tuple[Ints, Ints]],
    levels: Sequence[Level],
    surrogate: Any,
    progress: Progress,
) -> tuple[dict[Level, Floats], list[str]]:
    """Return scores of every row by a model that has not seen it, for the levels that can be met in every part.

    Parameters
    ----------
    rows, pairs
        All rows, and the training and held-out rows of each part.
    levels, surrogate
        What is asked for, and what the neutrality terms are made of.
    progress
        Told what is being done.
    """
    found = {level: np.full(len(rows.y), np.nan) for level in levels}
    for k, (train, test) in enumerate(pairs):
        models, _ = fit_levels(
            rows, train, levels, surrogate, _within(progress, f"part {k + 1} of {len(pairs)}")
        )
        levels = list(models)  # what one part cannot meet is left out, so the others need not try
        X_test = rows.parts("one-hot", train, test)[1]
        for level, model in models.items():
            found[level][test] = model.score(X_test)
    whole = {level: scores for level, scores in found.items() if np.isfinite(scores).all()}
    left_out = [level.label for level in found if level not in whole]
    return whole, [f"{label} is left out: no usable model meets it in every part" for label in left_out]


def _within(progress: Progress, part: str) -> Progress:
    return lambda text: progress(f"{part}, {text}")


def _held_out_scores(
    rows: TaskRows, pairs: Sequence[tuple[Ints, Ints]], methods: Sequence[Method], progress: Progress
) -> tuple[Ints, dict[Key, Floats], list[str]]:
    """Return the part that holds out each row (-1: none), scores of the held-out rows by method and weight, and notes.

    A method that failed in one part is left out at that weight.
    """
    part, settings = np.full(len(rows.y), -1), rows.settings
    found: dict[Key, Floats] = {}
    notes: list[str] = []
    for k, (train, test) in enumerate(pairs):
        part[test] = k
        for method in methods:
            progress(f"part {k + 1} of {len(pairs)}, {method.label}")
            fits = sweep(method, rows, train, test, settings.lam * len(train), settings.seed)
            for eta, fit in zip(method.etas or (None,), fits, strict=True):
                scores = found.setdefault((method.label, eta), np.full(len(part), np.nan))
                if fit.scores is None:
                    notes.append(f"{method.label} failed: {fit.reason}")
                else:
                    scores[test] = fit.scores
    seen = part >= 0
    return (
        part,
        {key: values[seen] for key, values in found.items() if np.isfinite(values[seen]).all()},
        notes,
    )


def _how_measured(task: TableTask, pairs: Sequence[tuple[Ints, Ints]]) -> str:
    """Say on which rows the measures are taken."""
    if len(pairs) > 1:
        return f"{len(pairs)}-fold cross-validation: every row was scored by a model that had not seen it"
    held = len(pairs[0][1])
    what = "a held-out quarter" if abs(held / len(task) - TEST) < 0.01 else "held-out rows"
    return f"{what}: {held:,} of {len(task):,} rows, not seen in fitting"


def _points(
    rows: TaskRows,
    shown: Ints,
    part: Ints,
    models: Sequence[FittedModel],
    scores: dict[Level, Floats],
    command: str,
) -> tuple[Point, ...]:
    """Return one point a model: fitted on the rows `shown`, measured by scores of the rows in a part."""
    _, X, _ = rows.coded(shown)
    settings, fitted, held, part = (
        rows.settings,
        rows.task.rows(shown),
        rows.task.rows(part >= 0),
        part[part >= 0],
    )
    training, plain = [model.score(X) for model in models], scores[models[0].level]
    points = []
    for model, seen in zip(models, training, strict=True):
        values = scores[model.level]
        collapse = collapse_of(fitted, seen, lambda: training[0]) or collapse_of(held, values, lambda: plain)
        bounds = (
            *held_out_bounds(values, held, part, settings, len(models)),
            *theorems(model, settings.delta),
        )
        facts = {"statements": bounds, "collapse": collapse, "command": completed(command, model)}
        trained = measures_of(fitted, seen).values
        points.append(
            point_of(held, values, plain, settings, level=model.level, model=model, training=trained, **facts)
        )
    return tuple(points)


def _choice(points: Sequence[Point], settings: Settings) -> int:
    """Return the tightest limit (of weights, the most neutral) with a held-out AUC within the budget.

    A point that collapsed is not chosen, nor one that is less neutral than the plain model; 0 if no other can
    be.
    """
    least, aims = points[0].measures["auc"] - settings.budget, [point.aim(settings) for point in points]
    sound = [k for k, p in enumerate(points) if p.collapse is None and p.measures["auc"] >= least]
    sound = [k for k in sound if points[0].collapse or aims[k] < aims[0]]
    limits = [point.level.limit for point in points]
    return min(sound, key=lambda k: (aims[k] if limits[k] is None else limits[k]) or 0.0, default=0)
