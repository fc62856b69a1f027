"""The trade-off on one table: models for a grid of neutrality weights, measured on rows that they have not seen."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nerm import bounds, metrics
from nerm.bounds.guarantee import Statement
from nerm.bounds.theorems import HELD_OUT
from nerm.errors import InvalidInputError
from nerm.experiments.methods import METHODS, Method, sweep
from nerm.report.decisions import ADVICE, Decisions, Group, collapse_of, decisions_of, groups_of
from nerm.report.fitting import NEUTRAL, FittedModel, Settings, TableFit, TaskRows, fit_path, logistic_regression
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


@dataclass(frozen=True)
class Point:
    """One neutrality weight.

    Attributes
    ----------
    model
        The shown model: its weight, certificate and coefficients.
    measures, training
        The measures of `nerm.metrics.report` on held-out rows, and on the training rows.
    groups, decisions
        Rates by group, and decisions per 1,000 people, on held-out rows.
    statements
        The bounds.
    collapse
        Says that the model is nearly constant or that its positive rate collapsed, judged on the training rows.
    """

    model: FittedModel
    measures: dict[str, float]
    training: dict[str, float]
    groups: tuple[Group, ...]
    decisions: Decisions
    statements: tuple[Statement, ...]
    collapse: str | None

    @property
    def eta(self) -> float:
        """The neutrality weight."""
        return self.model.eta

    def aim(self, settings: Settings, *, training: bool = False) -> float:
        """Return the absolute value of the measure that the weights aim at."""
        return abs((self.training if training else self.measures)[settings.aim[0]])


@dataclass(frozen=True)
class OtherMethod:
    """Another method at one weight (or without one), measured on the same held-out rows."""

    method: str
    eta: float | None
    measures: dict[str, float]

    @property
    def name(self) -> str:
        """The method with its weight."""
        return self.method if self.eta is None else f"{self.method}, η = {self.eta:g}"


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that the table, the figure and the page show.

    Attributes
    ----------
    task, recipe, settings, formula
        The rows, their coding, and the model.
    how_measured
        On which rows, in words.
    points, others
        The neutral model at every weight, and other methods.
    chosen
        Which point is looked at first; it is recommended unless it collapsed.
    notes, seconds
        What was missing, left out or failed; and how long it took.
    """

    task: TableTask
    recipe: Recipe
    settings: Settings
    formula: str
    how_measured: str
    points: tuple[Point, ...]
    others: tuple[OtherMethod, ...]
    chosen: int
    notes: tuple[str, ...]
    seconds: float

    @property
    def recommended(self) -> int | None:
        """Which point is pointed at: the chosen one, None where it collapsed."""
        return self.chosen if self.points[self.chosen].collapse is None else None

    def warning(self) -> str | None:
        """Say which weights give a model that is nearly constant or whose positive rate collapsed, if any does."""
        bad = [point for point in self.points if point.collapse]
        if not bad:
            return None
        now = self.points[self.chosen]
        shown = now if now.collapse else bad[0]
        etas = ", ".join(f"{point.eta:g}" for point in bad)
        return f"η = {shown.eta:g}: {shown.collapse} Not recommended: η = {etas}; {ADVICE}."

    def sentence(self) -> str:
        """Say the chosen trade-off in one sentence."""
        plain, now = self.points[0], self.points[self.chosen]
        measure = self.settings.aim[1]
        if all(point.collapse for point in self.points):
            return "No weight is recommended: every model here is nearly constant, or its positive rate collapsed."
        if now.collapse:
            return f"η = {now.eta:g} is not recommended; look at another weight."
        if plain.collapse:
            return (
                f"η = {now.eta:g} has the smallest {measure} of the models that are no constants, "
                f"{now.aim(self.settings):.3f}, with an AUC of {now.measures['auc']:.3f}."
            )
        if now is plain or now.eta == plain.eta:
            sound = " that can be recommended" if self.warning() else ""
            return (
                f"No weight up to η = {self.points[-1].eta:g}{sound} made the {measure} smaller at a price of at most "
                f"{self.settings.budget:g} AUC in training, so η = {plain.eta:g} stands."
            )
        before, after = plain.aim(self.settings), now.aim(self.settings)
        if after >= before:
            return (
                f"η = {now.eta:g} looked more neutral on training rows, but on held-out rows the {measure} is "
                f"{after:.3f}, no smaller than the {before:.3f} without neutrality."
            )
        more = now.decisions.correct - plain.decisions.correct
        return (
            f"At η = {now.eta:g} the {measure} is {after:.3f} instead of {before:.3f}, for an AUC of "
            f"{now.measures['auc']:.3f} instead of {plain.measures['auc']:.3f}: per 1,000 people, "
            f"{now.decisions.changed:.0f} get another decision and {abs(more):.0f} "
            f"{'fewer' if more <= 0 else 'more'} decisions are right."
        )


def run_study(
    task: TableTask,
    settings: Settings,
    *,
    fit: TableFit | None = None,
    every_method: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Study:
    """Fit every weight, measure on held-out rows, and choose one.

    Parameters
    ----------
    task, settings
        The rows and the model.
    fit
        A model that was fitted already: it is the point at its weight, the one to point at, and its held-out rows
        measure all points. By default the most neutral one is chosen, judged on training rows, whose training AUC is
        within `settings.budget` of the plain model's and that did not collapse. The held-out rows have no say, so what
        they measure stays honest.
    every_method
        Whether to run the published neutral methods too, and not only logistic regression.
    progress
        Told what is being done.
    """
    started = time.perf_counter()
    choose = None if fit is None else fit.model.eta
    etas = tuple(sorted({0.0, *settings.etas, *(() if choose is None else (choose,))}))
    settings = replace(settings, etas=etas)
    rows = TaskRows(task, settings) if fit is None else fit.rows
    pairs, shown = _parts(task, settings, fit)
    progress(f"{len(shown)} rows, {len(etas)} weights")
    known = [] if fit is None else [fit.model]
    models = fit_path(rows, shown, [eta for eta in etas if not (known and eta == choose)])
    models = sorted([*models, *known], key=lambda model: model.eta)
    methods = [logistic_regression(settings)]
    if every_method:
        methods += [replace(METHODS[name], etas=weights) for name, weights in PUBLISHED.items()]
    if len(pairs) > 1:  # the shown models have seen the rows of every part
        part, scores, failed = _held_out_scores(rows, pairs, [settings.method(), *methods], progress)
        neutral = [scores.pop((NEUTRAL, eta)) for eta in etas]
    else:
        part, scores, failed = _held_out_scores(rows, pairs, methods, progress)
        X_test = rows.parts("one-hot", *pairs[0])[1]
        neutral = [model.score(X_test) for model in models]
    judged = task.rows(part >= 0)
    recipe, _, notes = rows.coded(shown)
    points = _points(rows, shown, part, models, neutral, settings)
    return Study(
        task=task,
        recipe=recipe,
        settings=settings,
        formula=str(settings.objective(settings.lam)).replace("+ max(", "+ η max("),
        how_measured=_how_measured(task, pairs),
        points=points,
        others=tuple(OtherMethod(*key, _measures(judged, values)) for key, values in scores.items()),
        chosen=_choice(points, settings) if choose is None else etas.index(choose),
        notes=(*task.notes, *notes, *dict.fromkeys(failed)),
        seconds=time.perf_counter() - started,
    )


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


def _held_out_scores(
    rows: TaskRows, pairs: Sequence[tuple[Ints, Ints]], methods: Sequence[Method], progress: Callable[[str], None]
) -> tuple[Ints, dict[Key, Floats], list[str]]:
    """Return the part that holds out each row (-1: none), scores of the held-out rows by method and weight, and notes.

    A method that failed in one part is left out at that weight.
    """
    part, settings = np.full(len(rows.y), -1), rows.settings
    found: dict[Key, Floats] = {}
    notes: list[str] = []
    for k, (train, test) in enumerate(pairs):
        progress(f"part {k + 1} of {len(pairs)}: {len(train)} rows")
        part[test] = k
        for method in methods:
            fits = sweep(method, rows, train, test, settings.lam * len(train), settings.seed)
            for eta, fit in zip(method.etas or (None,), fits, strict=True):
                scores = found.setdefault((method.label, eta), np.full(len(part), np.nan))
                if fit.scores is None:
                    notes.append(f"{method.label} failed: {fit.reason}")
                else:
                    scores[test] = fit.scores
    seen = part >= 0
    return part, {key: values[seen] for key, values in found.items() if np.isfinite(values[seen]).all()}, notes


def _how_measured(task: TableTask, pairs: Sequence[tuple[Ints, Ints]]) -> str:
    """Say on which rows the measures are taken."""
    if len(pairs) > 1:
        return f"{len(pairs)}-fold cross-validation: every row was scored by a model that had not seen it"
    held = len(pairs[0][1])
    what = "a held-out quarter" if abs(held / len(task) - TEST) < 0.01 else "held-out rows"
    return f"{what}: {held:,} of {len(task):,} rows, not seen in fitting"


def _measures(task: TableTask, scores: Floats) -> dict[str, float]:
    return metrics.report(task.y, scores, task.v).as_dict()


def _points(
    rows: TaskRows, shown: Ints, part: Ints, models: Sequence[FittedModel], scores: Sequence[Floats], settings: Settings
) -> tuple[Point, ...]:
    """Return one point a weight: models fitted on the rows `shown`, measured by scores of the rows in a part."""
    _, X, _ = rows.coded(shown)
    fitted, held, part = rows.task.rows(shown), rows.task.rows(part >= 0), part[part >= 0]
    training = [model.score(X) for model in models]
    return tuple(
        Point(
            model=model,
            measures=_measures(held, values),
            training=_measures(fitted, seen),
            groups=groups_of(held, values),
            decisions=decisions_of(held, values, scores[0]),
            statements=(*_held_out_bounds(values, held.v, part, settings), *_theorems(model, settings.delta)),
            collapse=collapse_of(fitted, seen, lambda: training[0]),
        )
        for model, values, seen in zip(models, scores, training, strict=True)
    )


def _held_out_bounds(scores: Floats, v: Floats, part: Ints, settings: Settings) -> list[Statement]:
    """Return the hold-out bounds.

    They share delta among all weights and parts, so that they hold for every weight at once: whoever picks one after
    looking keeps the guarantee. With several parts they are about the mean over the parts' models.
    """
    parts = np.unique(part)
    share = settings.delta / (2 * len(settings.etas) * len(parts))
    models = "this model" if len(parts) == 1 else f"the mean over the {len(parts)} parts' models"
    statements = []
    for quantity, measure, bound in HELD_OUT:
        try:
            value = float(np.mean([bound(scores[part == k], v[part == k], delta=share) for k in parts]))
        except InvalidInputError:  # a part without one of the groups
            continue
        note = "no better than the largest possible value, 1" if value >= 1 else f"about {models}, at every η at once"
        sample = abs(measure(scores, v))
        statements.append(Statement(quantity, "held-out rows", sample, min(value, 1.0), "", value >= 1, note))
    return statements


def _theorems(model: FittedModel, delta: float) -> list[Statement]:
    """Return what the theorems say about a model."""
    stated = bounds.guarantee(model.facts(), delta=delta)
    return [statement for statement in stated if statement.source not in ("hold-out", "through psi")]


def _choice(points: Sequence[Point], settings: Settings) -> int:
    """Return the most neutral point, in training, whose training AUC is within the budget of the plain model's.

    A point that collapsed is not chosen; 0 if no other can be.
    """
    least, aims = points[0].training["auc"] - settings.budget, [p.aim(settings, training=True) for p in points]
    sound = [k for k, p in enumerate(points) if p.collapse is None and p.training["auc"] >= least]
    best = min(sound, key=lambda k: aims[k], default=0)
    return best if points[0].collapse or aims[best] < aims[0] else 0
