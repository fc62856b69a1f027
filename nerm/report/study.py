"""The study of one table: models at several levels, measured on held-out rows."""

import shlex
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pandas as pd

from nerm import bounds
from nerm.bounds.guarantee import Statement
from nerm.datasets import Discretize
from nerm.errors import InvalidInputError, NermError
from nerm.estimators.design import atom_name
from nerm.report.fitting import ADVICE, SMALL_TABLE, FittedModel, Level, Progress, Settings, Training
from nerm.report.measuring import Display, Point, decisions_of, held_out_bounds, point_of
from nerm.signs import sign
from nerm.splitting import assign_folds, hold_out
from nerm.tables.recipe import Recipe
from nerm.tables.roles import WORDS, TableTask, values_of
from nerm.typing import Floats, Ints, Matrix

PARTS = 5  # folds of a cross-validation
GROUP_THRESHOLDS = "group thresholds"
Pairs = Sequence[tuple[Ints, Ints]]


@dataclass(frozen=True, eq=False)
class Study:
    """The results of a study, from which the table, the figure and the page are made.

    A point *collapsed* if its scores are nearly constant, or if its positive rate in some group is below half
    of two rates of the plain model: the rate in this group and the rate in all rows. The plain model is the
    one without neutrality. `nerm.neutralize.target` has the exact conditions.

    Attributes
    ----------
    task, settings, recipe
        The rows, the settings of the models, and the coding of the shown models.
    pairs
        Indices of the training and of the held-out rows, per fold.
    train
        Indices of the rows on which the shown models were fitted.
    points
        The models, from the plain one to the most neutral one.
    others
        Other methods, for comparison.
    chosen
        Index in `points` of the point that is shown first; it is recommended unless it collapsed.
    notes
        Messages about missing values and failures.
    seconds
        Run time of the study.
    audited
        Whether the first point is a given predictor and the others are alternatives to it.
    unchanged
        The limits that the plain model meets on its training rows, so that they change nothing.
    """

    task: TableTask
    settings: Settings
    recipe: Recipe
    pairs: Pairs
    train: Ints
    points: tuple[Point, ...]
    others: tuple[Point, ...]
    chosen: int
    notes: tuple[str, ...]
    seconds: float
    audited: bool = False
    unchanged: tuple[float, ...] = ()

    @property
    def within_limit(self) -> bool:
        """Whether the recommended model is within a limit, or was fitted with a positive weight eta."""
        model = None if self.recommended is None else self.recommended.model
        return model is not None and (
            bool(self.unchanged or model.level.eta) or model.level.limit is not None
        )

    @property
    def recommended(self) -> Point | None:
        """The chosen point, or None if it collapsed (see `Study`)."""
        return self.points[self.chosen] if self.points[self.chosen].collapse is None else None

    @property
    def held_out(self) -> bool:
        """Whether the models are measured on rows that they were not fitted on."""
        return self.pairs[0][0] is not self.pairs[0][1]

    @property
    def formula(self) -> str:
        """The objective with its weight η."""
        if self.task.numbers is not None:
            return str(next(p.model for p in self.points if p.model).solution.problem.objective)
        return str(self.settings.objective(tuple(self.task.terms))).replace("+ max(", "+ η max(")

    @property
    def display(self) -> Display:
        """How the results are shown."""
        return self.points[0].display

    @property
    def how_measured(self) -> str:
        """On which rows the measures are taken, in words."""
        rows, parts = len(self.points[0].task), len(self.pairs)
        if self.audited:
            return f"{rows:,} rows, taken to be new to the audited scores; models of nerm had not seen them"
        if parts > 1:
            return f"{parts}-fold cross-validation: every row was scored by a model that had not seen it"
        return f"{rows:,} held-out rows" if self.held_out else f"the {rows:,} training rows"

    def aim(self, point: Point) -> float:
        """Return the absolute value of the limited measure at a point."""
        return abs(point.measures[self.settings.aim.name])

    def statements(self, point: Point) -> list[Statement]:
        """Return the bounds on a point.

        They come from held-out rows, where they hold for all points simultaneously, and from theorems about
        the model of the point.
        """
        delta, found = self.settings.delta, list[Statement]()
        if self.task.numbers is not None:
            return []
        if self.audited:
            return held_out_bounds(point.task, point.scores, delta) if point is self.points[0] else []
        if self.held_out:
            part = np.repeat(np.arange(len(self.pairs)), [len(test) for _, test in self.pairs])
            found = held_out_bounds(point.task, point.scores, delta, part, len(self.points))
        if point.model is not None and self.recipe.base is None:  # columns must not depend on the labels
            with suppress(NermError):  # theorems that do not apply to this model
                stated = bounds.guarantee(point.model.facts(), delta=delta)
                found += [each for each in stated if each.source not in ("hold-out", "through psi")]
        return found

    def warning(self) -> str | None:
        """Return a sentence that names the collapsed models, or None if there are none.

        `Study` defines which models collapsed.
        """
        bad = [point for point in self.points if point.collapse]
        if not bad:
            return None
        shown = bad[0] if self.recommended else self.points[self.chosen]
        labels = ", ".join(point.label for point in bad)
        return f"{shown.label}: {shown.collapse} Not recommended: {labels}; {ADVICE}."

    @property
    def alternative(self) -> Point | None:
        """The alternative to audited scores that is most accurate among the more neutral ones, if any."""
        better = [p for p in self.points[1:] if p.collapse is None and self.aim(p) < self.aim(self.points[0])]
        return max(better, key=lambda point: point.measures[self.display.correct[0]], default=None)


def audit_study(task: TableTask, scores: Floats, settings: Settings, progress: Progress) -> Study:
    """Compare given scores with alternatives.

    The alternatives are one threshold per group and, if the task has inputs, models of nerm. All are measured
    on the same rows, which were not used to fit the models of nerm. The thresholds are set on these rows, so
    no bound is stated for them.

    Parameters
    ----------
    task
        The rows.
    scores
        The scores of the rows, (n,); a score above 0 is a positive decision.
    settings, progress
        As for `run_study`, for the models of nerm.
    """
    rows = np.arange(len(task))
    models = Study(task, settings, Recipe(()), [(rows[:0], rows)], rows, (), (), 0, task.notes, 0.0)
    if task.inputs:
        models = run_study(task, settings, progress=progress)
    tested = np.concatenate([test for _, test in models.pairs])
    held, given, notes = task.rows(tested), scores[tested], models.notes
    points = [point_of("as given", held, given)]
    if len(np.unique(given)) > 2:
        label = GROUP_THRESHOLDS if task.numbers is None else "one constant per group"
        points.append(point_of(label, held, by_group(held, given, held, given), given))
    else:
        notes = (*notes, "decisions without scores cannot be moved by thresholds")
    for p in models.points:
        decisions = decisions_of(held, p.scores, given)
        points.append(replace(p, label=f"nerm, {p.label}", decisions=decisions, command=""))
    return replace(models, points=tuple(points), others=(), chosen=0, notes=notes, audited=True)


def by_group(task: TableTask, seen: Floats, held: TableTask, scores: Floats) -> Floats:
    """Return scores, (n,), minus one threshold per group, so that positive rates are equal.

    The thresholds make the positive rates of all groups in the rows of `task` equal. The common rate is the
    positive rate of all these rows; each group has it up to one row. With several viewpoints, each
    combination of their groups has its own threshold. For a regression, the means of all groups become equal.

    Parameters
    ----------
    task, seen
        The rows on which the thresholds are set, and their scores.
    held, scores
        The rows to score, and their scores, (n,).
    """
    groups = pd.Series(seen).groupby(task.crossed.to_numpy())
    if task.numbers is not None:
        cuts = groups.mean() - seen.mean()
    else:
        cuts = groups.agg(np.quantile, float((seen <= 0).mean()), method="averaged_inverted_cdf")
    return scores - cuts.reindex(held.crossed).fillna(0.0).to_numpy()


def run_study(
    task: TableTask,
    settings: Settings,
    levels: Sequence[Level] | None = None,
    *,
    needed: Level | None = None,
    share: float | None = None,
    every_method: bool = False,
    progress: Progress = lambda _: None,
    command: str = "",
) -> Study:
    """Fit a model at every level, measure them on held-out rows, and choose one.

    Parameters
    ----------
    task, settings
        The rows, and the settings of the models.
    levels
        The targets, by default those of the settings. If there are several, logistic regression is fitted for
        comparison.
    needed
        The level to choose; NotNeutralError is raised if it cannot be met. By default, the model with the
        tightest limit is chosen (with weights, the most neutral model) among those that did not collapse
        (`Study`) and whose AUC on held-out rows is within `settings.budget` of the plain model's.
    share
        Share of rows to hold out; 0 measures on the training rows. By default, a table of at most
        `SMALL_TABLE` rows is cross-validated with `PARTS` folds; of a larger one the first fold is held out.
    every_method
        Whether to compare with the published methods too, and not only with logistic regression.
    progress
        Called with a description of each step.
    command
        The `nerm fit` command without a level; the level of each point is added to it.
    """
    started = time.perf_counter()
    levels, pairs = sorted({*(levels or settings.levels)}, key=_order), splits(task, settings.seed, share)
    train = pairs[0][0] if len(pairs) == 1 else np.arange(len(task))
    training, surrogate = Training(task.rows(train), settings), settings.surrogate
    limits = [level.limit for level in levels if level.limit is not None]
    if limits and settings.confidence is None and task.numbers is None:
        surrogate = training.choose_surrogate(limits, progress)
    steps = _Steps(progress, len(levels) * (1 if len(pairs) == 1 else 1 + len(pairs)))
    models, notes = training.fit_levels(dict.fromkeys(levels, surrogate), steps, needed)
    unchanged = _unchanged(models, training, needed)
    models = {level: model for level, model in models.items() if level.limit not in unchanged}
    if unchanged:
        shown = ", ".join(f"{limit:g}" for limit in unchanged)
        notes.append(f"the model without a limit is within {shown} already, so these limits change nothing")
    scores: dict[Level | str, list[Floats]] = defaultdict(list)  # of held-out rows, by level or other method
    found, compared = models, len(levels) > 1 and task.numbers is None
    for k, (part, test) in enumerate(pairs):
        fitted, held = training, task.rows(test)
        if len(pairs) > 1:  # the shown models have seen the rows of every part
            fitted = Training(task.rows(part), settings)
            own = {level: models[level].surrogate or surrogate for level in found}
            steps.left = len(own) * (len(pairs) - k)
            found, _ = fitted.fit_levels(own, steps.of(f"part {k + 1} of {len(pairs)}, "), again=False)
        X_train, X_test = fitted.coded[1], fitted.coded[0].transform(held.table)[0]
        for level, model in found.items():
            scores[level].append(model.scores(X_test))
            if level in (Level(), Level(eta=0.0)) and compared:
                seen = model.scores(X_train)
                scores[GROUP_THRESHOLDS].append(by_group(fitted.task, seen, held, scores[level][-1]))
        for label, fit in _other_methods(fitted, held, X_test, every_method) if compared else ():
            if fit.scores is None:
                notes.append(f"{label} failed: {fit.reason}")
            else:
                scores[label].append(fit.scores)
    left_out = (level.label for level in models if level not in found)
    notes += [f"{label} is left out: no usable model meets it in every part" for label in left_out]
    held = task.rows(np.concatenate([test for _, test in pairs]))
    whole = {key: np.concatenate(parts) for key, parts in scores.items() if len(parts) == len(pairs)}
    command = f"{command} --test 0" if command and len(pairs) > 1 else command
    points = _points(training, {models[level]: whole[level] for level in found}, held, command)
    others = tuple(point_of(key, held, values) for key, values in whole.items() if isinstance(key, str))
    recipe, _, guessed = training.coded
    told = (*task.notes, *guessed, *dict.fromkeys(notes))
    seconds = time.perf_counter() - started
    study = Study(task, settings, recipe, pairs, train, points, others, 0, told, seconds, unchanged=unchanged)
    return replace(study, chosen=_choice(study) if needed is None else list(found).index(needed))


@dataclass
class _Steps:
    """A progress text before each fit: how many fits are left, and how long they may take."""

    progress: Progress
    left: int
    done: int = 0
    started: float = field(default_factory=time.perf_counter)

    def __call__(self, text: str) -> None:
        each = (time.perf_counter() - self.started) / max(self.done, 1)
        about = f", about {each * self.left:.0f} s" if self.done else ""
        self.progress(f"{text}; fits done {self.done}, left {self.left}{about}")
        self.done, self.left = self.done + 1, self.left - 1

    def of(self, part: str) -> Progress:
        """Return the same progress text with another beginning."""
        return lambda text: self(part + text)


def _unchanged(
    models: Mapping[Level, FittedModel], training: Training, needed: Level | None
) -> tuple[float, ...]:
    """Return the limits that change nothing.

    Their model makes the same decisions (or predictions) as the plain model, which has no neutrality term.
    """
    plain, X = models.get(Level()), training.coded[1]
    if plain is None:
        return ()
    read = sign if training.task.numbers is None else np.asarray
    alike = [level for level, model in models.items() if model.surrogate is None and level != needed]
    same = [level for level in alike if np.allclose(read(models[level].scores(X)), read(plain.scores(X)))]
    return tuple(level.limit for level in same if level.limit is not None)


def _order(level: Level) -> tuple[float, float]:
    """Return a sort key that orders levels from the plain model to the most neutral one."""
    return level.eta or 0.0, np.inf if level.limit == 0 else 1 / (level.limit or np.inf)


def splits(task: TableTask, seed: int, share: float | None = None) -> Pairs:
    """Return the indices of training rows and of held-out rows per fold.

    The rows are stratified by target and viewpoint. Raise an error if training rows, or the share that is
    held out, lack a class or a side of a term.

    Parameters
    ----------
    task
        The rows.
    seed
        Random seed.
    share
        Share of rows to hold out; see `run_study`.
    """
    if share == 0:
        everything = np.arange(len(task))
        return [(everything, everything)]
    if share is None:
        fold = assign_folds(task.strata, min(PARTS, len(task)), seed)
        held = [fold == k for k in range(fold.max() + 1 if len(task) <= SMALL_TABLE else 1)]
    else:
        held = [hold_out(task.strata, share, seed)]
    pairs = [(np.flatnonzero(~mask), np.flatnonzero(mask)) for mask in held]
    checked = [("training", train) for train, _ in pairs]
    checked += [] if share is None else [("held-out", pairs[0][1])]
    for name, part in checked:
        for value, signs in {task.target.group(1): task.y, **task.terms}.items():
            if len(set(signs[part].tolist())) < 2:
                must = f"the {name} rows must hold both values of {value.partition(' = ')[0]!r}"
                got = f"{len(task)} rows, of them {int((signs > 0).sum())} with {value!r}"
                raise InvalidInputError(must, got, "Use more rows, or another share with --test")
    return pairs


def _other_methods(
    training: Training, held: TableTask, X_test: Matrix, every: bool
) -> Iterator[tuple[str, Any]]:
    """Yield (label, fit) of other methods.

    Published methods use every second weight of the paper. `held` are the held-out rows, and `X_test` the
    same rows coded by the recipe.
    """
    from nerm.experiments import METHODS, Fold

    settings = training.settings
    lam = max(settings.lam, settings.tol) * len(training.task)  # C = 1 / lam is finite
    methods = [replace(METHODS["lr"], label="logistic regression")]
    methods += [METHODS[name] for name in ("cv2nb", "pr", "eta-lr") if every]
    for method in methods:
        X, Z = training.coded[1], X_test
        if method.coding == "nominal":  # the paper's discretization
            frames = [_nominal(task) for task in (training.task, held)]
            X, Z = map(Discretize().fit(frames[0]).transform, frames)
        fold = Fold(X, training.task.y, training.task.v, Z, held.v, settings.seed)
        etas = method.etas[::2]
        labels = [f"{method.label}, η = {eta:g}" for eta in etas] or [method.label]
        yield from zip(labels, method.fit(fold, lam, etas), strict=True)


def _nominal(task: TableTask) -> pd.DataFrame:
    """Return the inputs as strings and numbers, with nan for the strings that mean "missing"."""
    columns: dict[str, Any] = {}
    for name in task.inputs:
        kind, unknown = task.kinds[name], task.table.unknown(name)
        found = {"": task.table[name]} if kind == WORDS else values_of(task.table, name, kind)
        columns |= {f"{name} {part}": pd.Series(values).mask(unknown) for part, values in found.items()}
    return pd.DataFrame(columns)


def _points(
    training: Training, models: Mapping[FittedModel, Floats], held: TableTask, command: str
) -> tuple[Point, ...]:
    """Return one point per model.

    `models` maps the models to their scores of the held-out rows.
    """
    X, first = training.coded[1], next(iter(models))

    def plain() -> Floats:
        model = first if first.level in (Level(), Level(eta=0.0)) else training.fit(Level(eta=0.0))
        return model.scores(X)

    points = []
    for model, scores in models.items():
        label, seen = model.level.label, (training.task, model.scores(X), plain)
        fit = _completed(command, model)
        points.append(point_of(label, held, scores, models[first], seen, model=model, command=fit))
    return tuple(points)


def _completed(command: str, model: FittedModel) -> str:
    """Return `command` with the options of this model added; "" if the command is empty."""
    if not command:
        return ""
    surrogate = ""
    if model.level.limit is not None and model.surrogate is not None and "--surrogate" not in command:
        surrogate = f" --surrogate {shlex.quote(atom_name(model.surrogate))}"
    return f"{command} {model.level.option}{surrogate} --out model.nerm"


def _choice(study: Study) -> int:
    """Return the index of the point to recommend.

    It is 0, the plain model, if no other point qualifies. Otherwise it is the tightest limit (with weights,
    the most neutral model) among the points that did not collapse (`Study`), are more neutral than the plain
    model (unless that collapsed), and lose at most the budget of quality on held-out rows.
    """
    points, (quality, _) = study.points, study.display.quality
    least = points[0].measures[quality] - study.settings.budget
    aims = [study.aim(point) for point in points]
    sound = [k for k, p in enumerate(points) if p.collapse is None and p.measures[quality] >= least]
    sound = [k for k in sound if points[0].collapse or aims[k] < aims[0]]
    limits = [None if point.model is None else point.model.level.limit for point in points]
    return min(sound, key=lambda k: (aims[k] if limits[k] is None else limits[k]) or 0.0, default=0)
