"""Fit a table: one model, or one per level. Nothing here needs `nerm.experiments`."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nerm.bounds import FitFacts
from nerm.certify.solution import Solution
from nerm.errors import NotNeutralError
from nerm.estimators.design import TrainingRows
from nerm.estimators.limits import held_out
from nerm.metrics import as_metric
from nerm.model.expressions import Neutrality
from nerm.neutralize import best_surrogate
from nerm.neutralize.collapse import collapse
from nerm.report.settings import Level, Settings
from nerm.splitting import hold_out
from nerm.tables.recipe import Recipe, learn_recipe
from nerm.tables.roles import NUMBERS, TableTask, split, values_of
from nerm.tables.values import missing_in
from nerm.typing import Floats, Ints, Matrix

PARTS = 5  # of a cross-validation, and of the rows of a calibration
SMALL_TABLE = 4000  # rows up to which tables are cross-validated, and on which surrogates are compared
ADVICE = "try --class-weight balanced, or a smaller --lam or --eta"
Progress = Callable[[str], None]


def silent(_: str) -> None:
    """Report no progress."""


@dataclass(frozen=True, eq=False)
class TaskRows:
    """The rows of a table in the coding of a method, learned on training rows.

    Attributes
    ----------
    task, settings
        The table, and the settings of its coding.
    """

    task: TableTask
    settings: Settings
    _coded: dict[bytes, tuple[Recipe, Matrix, tuple[str, ...]]] = field(default_factory=dict, repr=False)

    @property
    def y(self) -> Floats:
        """Labels, (n,)."""
        return self.task.y

    @property
    def viewpoint(self) -> Floats:
        """Viewpoints, (n,)."""
        return self.task.v

    def terms(self, rows: Ints) -> dict[str, Floats]:
        """Return each group against the rest on these rows."""
        return {name: v[rows] for name, v in self.task.terms.items()}

    def coded(self, train: Ints) -> tuple[Recipe, Matrix, tuple[str, ...]]:
        """Return the recipe of these rows, their matrix, and notes; computed once."""
        key = train.tobytes()
        if key not in self._coded:
            table, settings = self.task.table.rows(train), self.settings
            learned = table if settings.confidence is None else table.rows(~self.promised(train))
            options: dict[str, Any] = {"nominal": settings.nominal, "kinds": self.task.kinds}
            recipe, notes = learn_recipe(learned, self.task.inputs, missing=settings.missing, **options)
            self._coded[key] = recipe, recipe.transform(table)[0], notes
        return self._coded[key]

    def promised(self, train: Ints) -> Any:
        """Return the rows that the classifier holds out for its promise: the coding must not see them."""
        ones = np.ones(len(train))
        codes = (self.y[train] > 0).astype(int)
        given = TrainingRows(np.empty((len(train), 0)), codes, self.terms(train), ones, ones)
        return held_out(given, as_metric(self.settings.measure))

    def parts(self, coding: str, train: Ints, test: Ints) -> tuple[Matrix, Matrix]:
        """Return training and test rows, by the recipe or ("nominal") by the paper's discretization."""
        if coding != "nominal":
            recipe, X, _ = self.coded(train)
            return X, recipe.transform(self.task.table.rows(test))[0]
        import pandas as pd

        from nerm.datasets import Discretize

        columns = {}
        for name in self.task.inputs:
            values = self.task.table[name].copy()
            values[missing_in(values, self.settings.missing)] = np.nan
            if name not in self.settings.nominal:
                *_, values = values_of(self.task.table, name, self.task.kinds.get(name, NUMBERS)).values()
            columns[name] = values
        frame = pd.DataFrame(columns)
        coder = Discretize().fit(frame.iloc[train])
        return coder.transform(frame.iloc[train]), coder.transform(frame.iloc[test])


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model at one level.

    Attributes
    ----------
    level
        The target.
    solution
        With its certificate.
    classifier
        Scores rows, where it kept the solution without its rows.
    """

    level: Level
    solution: Solution
    classifier: Any = None

    @property
    def _neutrality(self) -> list[Any]:
        return [t for t in self.solution.problem.objective.terms if isinstance(t.term, Neutrality)]

    @property
    def eta(self) -> float:
        """The weight of neutrality, the largest where there are several terms."""
        return max((t.weight for t in self._neutrality), default=0.0)

    @property
    def surrogate(self) -> Any:
        """The surrogate of the neutrality terms, None where there are none."""
        return next((t.term.surrogate for t in self._neutrality), None)

    @property
    def coef(self) -> Floats:
        """The coefficients w, (d,); empty for a kernel."""
        return np.empty(0) if self.solution.problem.is_kernel else self.solution.coef

    @property
    def relative_gap(self) -> float:
        """As certified."""
        return float(self.solution.certificate.relative_gap)

    @property
    def _fitted(self) -> Any:
        return self.solution if self.classifier is None else self.classifier

    def score(self, X: Matrix) -> Floats:
        """Return f of coded rows (n, d), (n,)."""
        return np.asarray(self._fitted.decision_function(X))

    def facts(self) -> FitFacts:
        """Return the facts that the bounds need."""
        facts: FitFacts = self._fitted.fit_facts()
        return replace(facts, learned=(*facts.learned, "the coding of the columns"))


@dataclass(frozen=True, eq=False)
class TableFit:
    """One model on the rows of a table.

    Attributes
    ----------
    rows, train, test
        The rows, those that were fitted on, and those that measure: all rows for both where none were held
        out.
    recipe, model
        The coding, and the model of coded rows.
    scores
        Of the test rows, (m,).
    collapse
        A sentence if the model is nearly constant or its positive rate collapsed on the training rows.
    notes
        On values that were missing or guessed, and columns that were left out.
    """

    rows: TaskRows
    train: Ints
    test: Ints
    recipe: Recipe
    model: FittedModel
    scores: Floats
    collapse: str | None
    notes: tuple[str, ...]

    @property
    def measured(self) -> TableTask:
        """The rows that measure."""
        return self.rows.task.rows(self.test)

    @property
    def holdout(self) -> tuple[Floats, Floats] | None:
        """Scores and viewpoints of rows that the fit has not seen, None where there are none."""
        return None if self.test is self.train else (self.scores, self.measured.v)


def collapse_of(task: TableTask, scores: Floats, plain: Callable[[], Floats] | None = None) -> str | None:
    """Return a sentence if a model is nearly constant or its positive rate collapsed, in the table's words.

    Parameters
    ----------
    task, scores
        The rows, and f of each, (n,).
    plain
        Returns the scores of the model without neutrality, (n,).
    """
    classes = [f"“{task.target.group(sign)}”" for sign in (-1, 1)]
    return collapse(scores, (task.y > 0).astype(int), classes, task.groups, plain=plain)


def fit_table(
    task: TableTask, settings: Settings, level: Level, share: float, progress: Progress = silent
) -> TableFit:
    """Fit on the training rows and score the others.

    Parameters
    ----------
    task, settings
        The table and the model.
    level
        The target.
    share
        Of the rows to hold out; with 0 the model is measured on its own rows.
    progress
        Called with a description of each step.
    """
    everything = np.arange(len(task))
    train, test = split(task, share, settings.seed) if share > 0 else (everything, everything)
    rows = TaskRows(task, settings)
    recipe, X, notes = rows.coded(train)
    surrogate = settings.surrogate
    if level.limit is not None and settings.confidence is None:
        surrogate = choose_surrogate(rows, train, [level.limit], progress)
    progress(f"{level.label} on {len(train):,} rows")
    model = fit_level(rows, train, level, surrogate)
    X_test, more = recipe.transform(task.table.rows(test))
    collapsed = None
    if model.classifier.collapse_ is not None:  # once more in the words of the table
        plain = Level(eta=0.0)
        collapsed = collapse_of(
            task.rows(train), model.score(X), lambda: fit_level(rows, train, plain).score(X)
        )
    return TableFit(rows, train, test, recipe, model, model.score(X_test), collapsed, (*notes, *more))


def fit_level(rows: TaskRows, train: Ints, level: Level, surrogate: Any = "auto") -> FittedModel:
    """Fit on some rows at one level; with the surrogate of the settings where the given one cannot reach it.

    Parameters
    ----------
    rows, train
        All rows, and the numbers of those to fit on.
    level
        The target; NotNeutralError where no usable model reaches it.
    surrogate
        As in `nerm.NERMClassifier`.
    """
    from nerm.estimators import NERMClassifier

    settings, (_, X, _) = rows.settings, rows.coded(train)
    y = rows.y[train]
    names = ("loss", "regularizer", "kernel", "lam", "weights", "solver", "tol")
    target: dict[str, Any] = {"eta": level.eta or 0.0}
    counted = y
    if level.limit is not None:
        target = {"limit": level.limit, "measure": settings.measure, "confidence": settings.confidence}
        counted = y if settings.confidence is None else y[~rows.promised(train)]
    given = {name: getattr(settings, name) for name in names} | target
    classifier = NERMClassifier(**given, surrogate=surrogate, class_weight=settings.class_weights(counted))
    try:
        with warnings.catch_warnings():  # the status, `collapse` and the exit code tell the same
            warnings.filterwarnings("ignore", category=UserWarning, module="nerm")
            classifier.fit(X, y, viewpoint=rows.terms(train))
    except NotNeutralError:
        if surrogate in (settings.surrogate, "auto"):
            raise
        return fit_level(rows, train, level, settings.surrogate)
    return FittedModel(level, classifier.solutions_[0], classifier)


def choose_surrogate(
    rows: TaskRows, train: Ints, limits: Sequence[float], progress: Progress = silent
) -> Any:
    """Return the best surrogate for the tightest limit that can be met, on at most `SMALL_TABLE` rows.

    Parameters
    ----------
    rows, train
        All rows, and the numbers of those to fit on.
    limits
        From which the tightest that can be met is taken.
    progress
        Called with a description of each step.
    """
    settings = rows.settings
    if settings.surrogate != "auto":
        return settings.surrogate
    few = train
    if len(train) > SMALL_TABLE:
        strata = [of[train] for of in rows.task.strata]
        few = train[hold_out(strata, SMALL_TABLE / len(train), settings.seed)]
    progress(f"comparing surrogates on {len(few):,} rows")
    _, X, _ = rows.coded(train)
    name, v = next(iter(rows.terms(few).items()))  # of several groups, the largest is enough
    problem = settings.problem(X[np.searchsorted(train, few)], rows.y[few], {name: v})
    tol = settings.tol ** (2 / 3)  # coarser: the solves are only compared
    found = (best_surrogate(problem, limit, settings.measure, tol=tol) for limit in sorted(limits))
    return next((surrogate for surrogate in found if surrogate is not None), "auto")


def fit_levels(
    rows: TaskRows, train: Ints, levels: Sequence[Level], surrogate: Any = "auto", progress: Progress = silent
) -> tuple[dict[Level, FittedModel], list[str]]:
    """Fit on some rows at every level that can be reached, and return notes on the others.

    Weights are one path; limits are searched one by one.

    Parameters
    ----------
    rows, train
        All rows, and the numbers of those to fit on.
    levels
        The targets.
    surrogate
        Of the limits.
    progress
        Called with a description of each step.
    """
    if all(level.limit is None for level in levels):
        _, X, _ = rows.coded(train)
        problem = rows.settings.problem(X, rows.y[train], rows.terms(train))
        # The weight of a path is the sum over the terms; here each term has the given weight.
        totals = [(level.eta or 0.0) * len(rows.task.terms) for level in levels]
        solutions = problem.path(totals, solver=rows.settings.solver, tol=rows.settings.tol)
        return {s[0]: FittedModel(*s) for s in zip(levels, solutions, strict=True)}, []
    models: dict[Level, FittedModel] = {}
    notes = []
    for level in levels:
        progress(f"{level.label} on {len(train):,} rows")
        try:
            models[level] = fit_level(rows, train, level, surrogate)
        except NotNeutralError as error:
            notes.append(f"{level.label} is left out: {error.parts[1]}")
    return models, notes
