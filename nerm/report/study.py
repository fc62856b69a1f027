"""The trade-off on one table: models for a grid of neutrality weights, measured on rows that they have not seen."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.report.people import Group, People, groups_of, people_of
from nerm.report.rivals import Key, Rival, rival_scores
from nerm.tables.recipe import Recipe, learn_recipe
from nerm.tables.roles import TableTask, folds, split

ETAS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 5.0, 10.0)
CROSS_VALIDATED = 4000  # up to this many rows every row is held out once; beyond, a quarter is held out
FOLDS, TEST = 5, 0.25
#: What the weights make the neutrality term stand for: the measure to look at, and its name.
AIMS = {
    "uniform": ("neutrality_risk", "C_sgn"),
    "balanced": ("calders_verwer_score", "difference in positive rates"),
    "equal_opportunity": ("equal_opportunity_difference", "difference in true positive rates"),
}


@dataclass(frozen=True)
class Settings:
    """What to fit and how to measure it; lam and eta in mean form."""

    etas: tuple[float, ...] = ETAS
    lam: float = 0.01
    loss: str = "hinge"
    surrogate: str = "hinge"
    regularizer: str = "squared-l2"
    kernel: str = "linear"
    weights: str = "balanced"
    class_weight: str | None = None
    solver: str = "auto"
    tol: float = 1e-6
    seed: int = 0
    delta: float = 0.05
    budget: float = 0.03
    nominal: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()

    @property
    def aim(self) -> tuple[str, str]:
        """The measure that the weights aim at, and its name."""
        return AIMS[self.weights]


@dataclass(frozen=True)
class Promise:
    """One bound on the chosen model: what it says, by which argument, and whether it says anything."""

    quantity: str
    source: str
    on_sample: float
    bound: float
    vacuous: bool
    note: str


@dataclass(frozen=True)
class Point:
    """One neutrality weight: measures on held-out rows, people, coefficients, certificate and bounds."""

    eta: float
    measures: dict[str, float]
    training: dict[str, float]
    groups: tuple[Group, ...]
    people: People
    relative_gap: float
    status: str
    solver: str
    seconds: float
    coefficients: tuple[tuple[str, float], ...] = field(repr=False)
    intercept: float = 0.0
    promises: tuple[Promise, ...] = ()

    def aim(self, settings: Settings, *, training: bool = False) -> float:
        """Return the absolute value of the measure that the weights aim at."""
        return abs((self.training if training else self.measures)[settings.aim[0]])


@dataclass(frozen=True, eq=False)
class Study:
    """Everything that the table, the figure and the page show."""

    task: TableTask
    recipe: Recipe
    settings: Settings
    formula: str
    how_measured: str
    points: tuple[Point, ...]
    rivals: tuple[Rival, ...]
    chosen: int
    notes: tuple[str, ...]
    seconds: float

    def sentence(self) -> str:
        """Say the chosen trade-off in one sentence."""
        plain, now = self.points[0], self.points[self.chosen]
        measure = self.settings.aim[1]
        if now is plain or now.eta == plain.eta:
            return (
                f"No weight up to η = {self.points[-1].eta:g} made the {measure} smaller at a price of at most "
                f"{self.settings.budget:g} AUC in training, so η = {plain.eta:g} stands."
            )
        if now.aim(self.settings) >= plain.aim(self.settings):
            return (
                f"η = {now.eta:g} looked more neutral on training rows, but on held-out rows the {measure} is "
                f"{now.aim(self.settings):.3f}, no smaller than the {plain.aim(self.settings):.3f} without neutrality."
            )
        return (
            f"At η = {now.eta:g} the {measure} is {now.aim(self.settings):.3f} instead of "
            f"{plain.aim(self.settings):.3f}, for an AUC of {now.measures['auc']:.3f} instead of "
            f"{plain.measures['auc']:.3f}: per 1,000 people, {now.people.changed:.0f} get another decision and "
            f"{abs(now.people.correct - plain.people.correct):.0f} "
            f"{'fewer' if now.people.correct <= plain.people.correct else 'more'} decisions are right."
        )


def run_study(
    task: TableTask,
    settings: Settings,
    *,
    choose: float | None = None,
    every_method: bool = False,
    progress: Callable[[str], None] = lambda _: None,
) -> Study:
    """Fit every weight, measure on held-out rows, and choose one.

    choose
        The eta to point at; by default the most neutral one, judged on training rows, whose training AUC is within
        `settings.budget` of the plain model's. The held-out rows have no say, so what they measure stays honest.
    """
    started = time.perf_counter()
    etas = tuple(sorted({0.0, *settings.etas, *(() if choose is None else (choose,))}))
    settings = replace(settings, etas=etas)
    crossed = len(task) <= CROSS_VALIDATED
    pairs = folds(task, FOLDS, settings.seed) if crossed else [split(task, TEST, settings.seed)]
    scores = np.full((len(etas), len(task)), np.nan)
    rivals: dict[Key, np.ndarray] = {}
    failed: list[str] = []
    part = np.full(len(task), -1)
    for k, (train, test) in enumerate(pairs):
        progress(f"part {k + 1} of {len(pairs)}: {len(train)} rows, {len(etas)} weights")
        parts = task.rows(train), task.rows(test)
        recipe, X, solutions, notes = _path(parts[0], settings)
        X_test, _ = recipe.transform(parts[1].table)
        for row, solution in zip(scores, solutions, strict=True):
            row[test] = solution.decision_function(X_test)
        others, said = rival_scores(*parts, X, X_test, settings, every_method=every_method)
        for key, values in others.items():
            rivals.setdefault(key, np.full(len(task), np.nan))[test] = values
        failed += said
        part[test] = k
    seen = part >= 0
    shown = task if crossed else task.rows(pairs[0][0])
    if crossed:
        progress(f"all {len(task)} rows, {len(etas)} weights")
        recipe, X, solutions, notes = _path(task, settings)
    judged = task.rows(np.flatnonzero(seen))
    points = _points(shown, judged, settings, recipe, X, solutions, scores[:, seen], part[seen])
    measured = (
        f"{FOLDS}-fold cross-validation: every row was scored by a model that had not seen it"
        if crossed
        else f"a held-out quarter: {int(seen.sum()):,} of {len(task):,} rows, not seen in fitting"
    )
    return Study(
        task=task,
        recipe=recipe,
        settings=settings,
        formula=str(solutions[-1].problem.with_neutrality(1.0).objective).replace("+ max(", "+ η max("),
        how_measured=measured,
        points=points,
        rivals=tuple(
            Rival(method, eta, _measures(judged, values[seen]))
            for (method, eta), values in rivals.items()
            if np.isfinite(values[seen]).all()  # in every part
        ),
        chosen=_choice(points, settings) if choose is None else etas.index(choose),
        notes=(*task.notes, *notes, *dict.fromkeys(failed), *same_decisions(points[0].people.positive)),
        seconds=time.perf_counter() - started,
    )


def _path(task: TableTask, settings: Settings) -> tuple[Recipe, Any, list[Any], tuple[str, ...]]:
    """Learn the recipe on these rows and solve for every weight."""
    from nerm.estimators.parameters import as_atom, as_kernel
    from nerm.objective import Neutrality, Risk

    options = {"missing": settings.missing} if settings.missing else {}
    recipe, notes = learn_recipe(task.table, task.inputs, nominal=settings.nominal, **options)
    X, _ = recipe.transform(task.table)
    kernel = as_kernel(settings.kernel, {"gamma": "scale", "degree": 3, "coef0": 0.0}, X, np.ones(len(task)))
    surrogate = as_atom(settings.surrogate, "surrogate")
    objective = (
        Risk(as_atom(settings.loss, "loss"))
        + settings.lam * as_atom(settings.regularizer, "regularizer")
        + 1.0 * Neutrality(surrogate, weights=settings.weights)
    )
    problem = objective.on(
        X, task.y, viewpoint=task.v, kernel=kernel, sample_weight=_class_weights(task.y, settings.class_weight)
    )
    return recipe, X, problem.path(list(settings.etas), solver=settings.solver, tol=settings.tol), notes


def _class_weights(y: np.ndarray, name: str | None) -> np.ndarray | None:
    """Return weights of the risk that give both classes the same total, as scikit-learn's "balanced" does."""
    if name is None:
        return None
    positive = float((y > 0).mean())
    return np.where(y > 0, 0.5 / positive, 0.5 / (1 - positive))


def _measures(task: TableTask, scores: np.ndarray) -> dict[str, float]:
    from nerm.metrics import report

    return report(task.y, scores, task.v).as_dict()


def _points(
    shown: TableTask,
    judged: TableTask,
    settings: Settings,
    recipe: Recipe,
    X: Any,
    solutions: Sequence[Any],
    scores: np.ndarray,
    part: np.ndarray,
) -> tuple[Point, ...]:
    """Return one point a weight: shown models are those on the task `shown`, measures those of the held-out scores."""
    points = []
    linear = not solutions[0].problem.is_kernel
    for solution, held_out, eta in zip(solutions, scores, settings.etas, strict=True):
        coef = tuple(zip(recipe.feature_names, map(float, solution.coef), strict=True)) if linear else ()
        points.append(
            Point(
                eta=eta,
                measures=_measures(judged, held_out),
                training=_measures(shown, solution.decision_function(X)),
                groups=groups_of(judged, held_out),
                people=people_of(judged, held_out, scores[0]),
                relative_gap=float(solution.certificate.relative_gap),
                status=solution.status.value,
                solver=solution.stats.solver,
                seconds=solution.stats.build_seconds + solution.stats.solve_seconds,
                coefficients=coef,
                intercept=float(solution.intercept),
                promises=_promises(solution, held_out, judged.v, part, settings),
            )
        )
    return tuple(points)


def _promises(
    solution: Any, scores: np.ndarray, v: np.ndarray, part: np.ndarray, settings: Settings
) -> tuple[Promise, ...]:
    """Return the hold-out bounds and the theorems' bounds.

    The hold-out bounds share delta among all weights and parts, so that they hold for every weight at once: whoever
    picks one after looking keeps the guarantee. With several parts they are about the mean over the parts' models.
    """
    from nerm import metrics
    from nerm.bounds import guarantee, holdout_neutrality_bound, holdout_parity_bound

    parts = np.unique(part)
    share = settings.delta / (2 * len(settings.etas) * len(parts))
    models = "this model" if len(parts) == 1 else f"the mean over the {len(parts)} parts' models"
    promises = []
    for quantity, bound, measure in (
        ("C_sgn", holdout_neutrality_bound, metrics.neutrality_risk),
        ("|difference in positive rates|", holdout_parity_bound, metrics.calders_verwer_score),
    ):
        try:
            each = [bound(scores[part == k], v[part == k], delta=share) for k in parts]
        except InvalidInputError:  # a part without one of the groups
            continue
        value = float(np.mean(each))
        note = "no better than the largest possible value, 1" if value >= 1 else f"about {models}, at every η at once"
        promises.append(Promise(quantity, "held-out rows", abs(measure(scores, v)), min(value, 1.0), value >= 1, note))
    facts = solution.fit_facts()
    facts = dataclasses.replace(facts, learned=(*facts.learned, "the coding of the columns"))
    for statement in guarantee(facts, delta=settings.delta):
        if statement.source not in ("hold-out", "through psi"):
            promises.append(
                Promise(
                    statement.quantity,
                    statement.source,
                    statement.on_sample,
                    statement.bound,
                    statement.vacuous,
                    statement.note or f"assumes {statement.assumes}",
                )
            )
    return tuple(promises)


def same_decisions(positive: float) -> tuple[str, ...]:
    """Return a note where (nearly) everyone gets the same decision: then neutrality is true and worth nothing."""
    if 10 <= positive <= 990:
        return ()
    which = "a negative" if positive < 10 else "a positive"
    return (f"nearly all held-out rows get {which} decision: try --class-weight balanced, or a smaller --lam or --eta",)


def _choice(points: Sequence[Point], settings: Settings) -> int:
    """Return the most neutral point, in training, whose training AUC is within the budget of the plain model's."""
    affordable = [k for k, p in enumerate(points) if p.training["auc"] >= points[0].training["auc"] - settings.budget]
    best = min(affordable, key=lambda k: points[k].aim(settings, training=True))
    return best if points[best].aim(settings, training=True) < points[0].aim(settings, training=True) else 0
