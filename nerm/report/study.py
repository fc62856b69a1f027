"""The trade-off on one table, models at several levels, on held-out rows."""

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm.report.fitting import (
    ADVICE,
    PARTS,
    SMALL_TABLE,
    FittedModel,
    Progress,
    TableFit,
    TaskRows,
    choose_surrogate,
    collapse_of,
    fit_levels,
    silent,
)
from nerm.report.measuring import (
    OtherMethod,
    Point,
    completed,
    held_out_bounds,
    measures_of,
    other_of,
    point_of,
    theorems,
)
from nerm.report.settings import Level, Settings
from nerm.tables.recipe import Recipe
from nerm.tables.roles import TableTask, folds, split
from nerm.typing import Floats, Ints

TEST_SHARE = 0.25  # held out of tables that are not cross-validated
#: Weights of the published neutral methods, a few of the paper's.
PUBLISHED: dict[str, tuple[float, ...]] = {
    "cv2nb": (),
    "pr": (0.0, 1.0, 5.0, 10.0, 50.0),
    "eta-lr": (0.0, 0.01, 0.1, 0.5),
}
Pairs = Sequence[tuple[Ints, Ints]]


@dataclass(frozen=True, eq=False)
class Study:
    """The content of the table, the figure and the page.

    Attributes
    ----------
    task, recipe, settings, formula
        The rows, their coding, and the model; no recipe and no formula in an audit of given scores.
    how_measured
        On which rows, in words.
    points, others
        From the plain model (the first) to the most neutral, and other methods.
    chosen
        The point that is shown first; it is recommended unless it collapsed.
    notes, seconds
        On missing values and failures; and how long it took.
    fitted
        The coded rows, and the numbers of those that the shown models were fitted on.
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

    @property
    def recommended(self) -> int | None:
        """The number of the recommended point: the chosen one, None where it collapsed."""
        return self.chosen if self.points[self.chosen].collapse is None else None

    def warning(self) -> str | None:
        """Return which models are nearly constant or had their positive rate collapse, None if none did."""
        bad = [point for point in self.points if point.collapse]
        if not bad:
            return None
        now = self.points[self.chosen]
        shown = now if now.collapse else bad[0]
        labels = ", ".join(point.label for point in bad)
        return f"{shown.label}: {shown.collapse} Not recommended: {labels}; {ADVICE}."

    def sentence(self) -> str:
        """Return the chosen trade-off in one sentence."""
        plain, now = self.points[0], self.points[self.chosen]
        measure, auc = self.settings.aim.words, now.measures["auc"]
        before, after = plain.aim(self.settings), now.aim(self.settings)
        if all(point.collapse for point in self.points):
            return "No model is recommended: each one is nearly constant, or its positive rate collapsed."
        if now.collapse:
            return f"{now.label} is not recommended; look at another model."
        if plain.collapse:
            least = f"{now.label} has the smallest {measure} of the models that are no constants, {after:.3f}"
            return f"{least}, with an AUC of {auc:.3f}."
        if now is plain:
            sound = " that can be recommended" if self.warning() else ""
            return (
                f"No model{sound} made the {measure} on held-out rows smaller at a price of at most "
                f"{self.settings.budget:g} AUC, so {plain.label} stands."
            )
        more = now.decisions.correct - plain.decisions.correct
        return (
            f"With {now.label} the {measure} is {self._with_interval(now)} instead of "
            f"{plain.measures[self.settings.aim.name]:+.3f}, for an AUC of {auc:.3f} instead of "
            f"{plain.measures['auc']:.3f}: per 1,000 people, {now.decisions.changed:.0f} get another "
            f"decision and {abs(more):.0f} {'fewer' if more <= 0 else 'more'} decisions are right."
            + ("" if after < before else " On held-out rows it is no more neutral than without.")
        )

    def _with_interval(self, point: Point) -> str:
        value = point.measures[self.settings.aim.name]
        low, high = point.intervals.get(self.settings.aim.name, (value, value))
        return f"{value:+.3f} (95 %: {low:+.3f} to {high:+.3f})"


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
        A model that was fitted already: it is the chosen point, and its held-out rows measure all points. By
        default the choice is, among the models that did not collapse and whose AUC on held-out rows is within
        `settings.budget` of the plain model's, the tightest limit (of weights, the most neutral).
    every_method
        Whether to run the published neutral methods too, and not only logistic regression.
    progress
        Called with a description of each step.
    command
        The `nerm fit` command without a level; each point completes it.
    """
    started = time.perf_counter()
    known = {} if fit is None else {fit.model.level: fit.model}
    levels = sorted({*settings.levels, *known}, key=_order)
    rows = TaskRows(task, settings) if fit is None else fit.rows
    pairs, shown = _parts(task, settings, fit)
    limits = [level.limit for level in levels if level.limit is not None]
    surrogate = None if fit is None else fit.model.surrogate
    if limits and surrogate is None:
        surrogate = choose_surrogate(rows, shown, limits, progress)
    models, failed = fit_levels(rows, shown, [one for one in levels if one not in known], surrogate, progress)
    models |= known
    levels = [level for level in levels if level in models]
    others, more = _other_methods(rows, pairs, every_method, progress)
    unmet: list[str] = []
    if len(pairs) > 1:  # the shown models have seen the rows of every part
        scores, unmet = cross_validated(rows, pairs, levels, surrogate, progress)
    else:
        X_test = rows.parts("one-hot", *pairs[0])[1]
        scores = {level: np.full(len(task), np.nan) for level in levels}
        for level in levels:
            scores[level][pairs[0][1]] = models[level].score(X_test)
    shown_models = [models[level] for level in levels if level in scores]
    whole = f"{command} --test 0" if command and len(pairs) > 1 else command
    points = _points(rows, shown, pairs, shown_models, scores, whole)
    recipe, _, notes = rows.coded(shown)
    tested = np.concatenate([test for _, test in pairs])
    measured = task.rows(tested)
    return Study(
        task=task,
        recipe=recipe,
        settings=settings,
        formula=str(settings.objective(tuple(task.terms))).replace("+ max(", "+ η max("),
        how_measured=_how_measured(task, pairs),
        points=points,
        others=tuple(other_of(measured, *key, values[tested]) for key, values in others.items()),
        chosen=_choice(points, settings) if fit is None else shown_models.index(fit.model),
        notes=(*task.notes, *notes, *dict.fromkeys([*failed, *unmet, *more])),
        seconds=time.perf_counter() - started,
        fitted=(rows, shown),
    )


def _order(level: Level) -> tuple[float, float]:
    """Sort from the plain model to the most neutral one."""
    return level.eta or 0.0, np.inf if level.limit == 0 else 1 / (level.limit or np.inf)


def _parts(task: TableTask, settings: Settings, fit: TableFit | None) -> tuple[Pairs, Ints]:
    """Return pairs of training and held-out rows, and the rows that the shown models are fitted on.

    In a small table every row is held out once, and the shown models see them all.
    """
    if fit is not None and fit.holdout is not None:
        return [(fit.train, fit.test)], fit.train
    if len(task) > SMALL_TABLE and fit is None:
        train, test = split(task, TEST_SHARE, settings.seed)
        return [(train, test)], train
    return folds(task, PARTS, settings.seed), np.arange(len(task))


def cross_validated(
    rows: TaskRows, pairs: Pairs, levels: Sequence[Level], surrogate: Any, progress: Progress
) -> tuple[dict[Level, Floats], list[str]]:
    """Return scores of every row by a model that has not seen it, for the levels met in every part.

    Parameters
    ----------
    rows, pairs
        All rows, and the training and held-out rows of each part.
    levels, surrogate
        The targets, and the surrogate of the neutrality terms.
    progress
        Called with a description of each step.
    """
    found = {level: np.full(len(rows.y), np.nan) for level in levels}
    for k, (train, test) in enumerate(pairs):
        progress(f"part {k + 1} of {len(pairs)}")
        models, _ = fit_levels(rows, train, levels, surrogate)
        levels = list(models)  # a level that one part cannot meet is left out
        X_test = rows.parts("one-hot", train, test)[1]
        for level, model in models.items():
            found[level][test] = model.score(X_test)
    left_out = [level.label for level in found if level not in levels]
    notes = [f"{label} is left out: no usable model meets it in every part" for label in left_out]
    return {level: found[level] for level in levels}, notes


def _other_methods(
    rows: TaskRows, pairs: Pairs, every: bool, progress: Progress
) -> tuple[dict[tuple[str, float | None], Floats], list[str]]:
    """Return the scores of held-out rows by method and weight, (n,) each, and notes on failures."""
    from nerm.experiments import METHODS
    from nerm.experiments.harness import held_out_scores

    methods = [replace(METHODS["lr"], label="logistic regression")]
    if every:
        methods += [replace(METHODS[name], etas=weights) for name, weights in PUBLISHED.items()]
    lam = max(rows.settings.lam, rows.settings.tol)  # C = 1 / lam must be finite
    return held_out_scores(methods, rows, pairs, lam, rows.settings.seed, progress)


def _how_measured(task: TableTask, pairs: Pairs) -> str:
    """Return in words on which rows the measures are taken."""
    if len(pairs) > 1:
        return f"{len(pairs)}-fold cross-validation: every row was scored by a model that had not seen it"
    held = len(pairs[0][1])
    what = "a held-out quarter" if abs(held / len(task) - TEST_SHARE) < 0.01 else "held-out rows"
    return f"{what}: {held:,} of {len(task):,} rows, not seen in fitting"


def _points(
    rows: TaskRows,
    shown: Ints,
    pairs: Pairs,
    models: Sequence[FittedModel],
    scores: dict[Level, Floats],
    command: str,
) -> tuple[Point, ...]:
    """Return one point per model: fitted on the rows `shown`, measured by the scores of held-out rows."""
    _, X, _ = rows.coded(shown)
    settings = rows.settings
    tested = np.concatenate([test for _, test in pairs])
    part = np.repeat(np.arange(len(pairs)), [len(test) for _, test in pairs])
    fitted, held = rows.task.rows(shown), rows.task.rows(tested)
    training = [model.score(X) for model in models]
    plain = scores[models[0].level][tested]
    points = []
    for model, seen in zip(models, training, strict=True):
        values = scores[model.level][tested]
        collapse = collapse_of(fitted, seen, lambda: training[0]) or collapse_of(held, values, lambda: plain)
        bounds = held_out_bounds(held, values, settings.delta, part, len(models))
        facts = {
            "level": model.level,
            "model": model,
            "training": measures_of(fitted, seen).values,
            "statements": (*bounds, *theorems(model, settings.delta)),
            "collapse": collapse,
            "command": completed(command, model),
        }
        points.append(point_of(held, values, plain, settings, **facts))
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
