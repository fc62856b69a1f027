"""Models on the rows of a table: a single one, and one for each of several levels."""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nerm.bounds import FitFacts
from nerm.certify.solution import Solution
from nerm.defaults import MEASURES
from nerm.errors import NotNeutralError
from nerm.estimators.design import TrainingRows
from nerm.estimators.limits import held_out
from nerm.experiments.harness import Fit, Fold, Method
from nerm.experiments.methods import attempt
from nerm.metrics import as_metric
from nerm.model.expressions import Neutrality
from nerm.neutralize import best_surrogate
from nerm.report.decisions import collapse_of
from nerm.report.settings import Level, Settings
from nerm.splitting import hold_out
from nerm.tables.recipe import Recipe, learn_recipe
from nerm.tables.roles import NUMBERS, TableTask, split, values_of
from nerm.tables.values import missing_in
from nerm.typing import Floats, Ints, Matrix

NEUTRAL = "neutral model"  # among the methods of a trade-off
SAMPLE, COMPARISON_TOL = 4000, 1e-4  # rows on which surrogates are compared, and how exactly
Progress = Callable[[str], None]


def silent(_: str) -> None:
    """Tell nobody what is being done."""


@dataclass(frozen=True, eq=False)
class TaskRows:
    """The rows of a table in the coding that a method asks for, learned on training rows.

    Attributes
    ----------
    task, settings
        The table and what the coding needs of the settings.
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

    def coded(self, train: Ints) -> tuple[Recipe, Matrix, tuple[str, ...]]:
        """Return the recipe of these rows, their matrix, and notes; made once."""
        key = train.tobytes()
        if key not in self._coded:
            table, nominal, missing = (
                self.task.table.rows(train),
                self.settings.nominal,
                self.settings.missing,
            )
            learned = table if self.settings.confidence is None else table.rows(~self.promised(train))
            inputs, kinds = self.task.inputs, self.task.kinds
            recipe, notes = learn_recipe(learned, inputs, nominal=nominal, missing=missing, kinds=kinds)
            self._coded[key] = recipe, recipe.transform(table)[0], notes
        return self._coded[key]

    def promised(self, train: Ints) -> Any:
        """Return the rows that the classifier will hold out for its promise: nothing else may know them."""
        ones = np.ones(len(train))
        terms = {name: v[train] for name, v in self.task.terms.items()}
        codes = (self.y[train] > 0).astype(int)
        given = TrainingRows(np.empty((len(train), 0)), codes, terms, ones, ones)
        return held_out(given, as_metric(MEASURES[self.settings.measure]))

    def parts(self, coding: str, train: Ints, test: Ints) -> tuple[Matrix, Matrix]:
        """Return training and test rows, by the recipe or ("nominal") by the paper's discretisation."""
        if coding == "nominal":
            from nerm.datasets import Discretize

            frame = self._frame()
            coder = Discretize().fit(frame.iloc[train])
            return coder.transform(frame.iloc[train]), coder.transform(frame.iloc[test])
        recipe, X, _ = self.coded(train)
        return X, recipe.transform(self.task.table.rows(test))[0]

    def _frame(self) -> Any:
        """Return the inputs as a frame of numbers and words."""
        import pandas as pd

        columns = {}
        for name in self.task.inputs:
            values = self.task.table[name].copy()
            values[missing_in(values, self.settings.missing)] = np.nan
            kind = self.task.kinds.get(name, NUMBERS)
            columns[name] = (
                values if name in self.settings.nominal else values_of(self.task.table, name, kind)
            )
        return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model at one level.

    Attributes
    ----------
    level
        What was asked for.
    solution
        With its certificate.
    classifier
        That scores rows, where it kept the solution without its rows.
    """

    level: Level
    solution: Solution
    classifier: Any = None

    @property
    def eta(self) -> float:
        """The weight of neutrality, the largest where there are several terms."""
        weights = [t.weight for t in self.solution.problem.objective.terms if isinstance(t.term, Neutrality)]
        return max(weights, default=0.0)

    @property
    def surrogate(self) -> Any:
        """What the neutrality terms are made of, None where there are none."""
        terms = (
            t.term.surrogate for t in self.solution.problem.objective.terms if isinstance(t.term, Neutrality)
        )
        return next(terms, None)

    @property
    def coef(self) -> Floats:
        """The coefficients w, (d,); empty for a kernel."""
        return np.empty(0) if self.solution.problem.is_kernel else self.solution.coef

    @property
    def relative_gap(self) -> float:
        """As certified."""
        return float(self.solution.certificate.relative_gap)

    def score(self, X: Matrix) -> Floats:
        """Return f of coded rows (n, d), (n,)."""
        return np.asarray(
            (self.solution if self.classifier is None else self.classifier).decision_function(X)
        )

    def facts(self) -> FitFacts:
        """Return what the bounds need to know."""
        facts: FitFacts = (self.solution if self.classifier is None else self.classifier).fit_facts()
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
        Says that the model is nearly constant or that its positive rate collapsed, judged on the training
        rows.
    notes
        On what was missing, left out or guessed.
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


def fit_table(
    task: TableTask, settings: Settings, level: Level, share: float, progress: Progress = silent
) -> TableFit:
    """Fit on the training rows and score the others.

    Parameters
    ----------
    task, settings
        The table and the model.
    level
        What is asked for.
    share
        Of the rows to hold out; with 0 the model is measured on its own rows.
    progress
        Told what is being done.
    """
    everything = np.arange(len(task))
    train, test = split(task, share, settings.seed) if share > 0 else (everything, everything)
    rows = TaskRows(task, settings)
    recipe, X, notes = rows.coded(train)
    surrogate = settings.surrogate
    if level.limit is not None and settings.confidence is None:
        surrogate = choose_surrogate(rows, train, [level.limit], progress)
    progress(f"{level.label} on {len(train):,} rows")
    model = fit_asked(rows, train, level, surrogate)
    X_test, more = recipe.transform(task.table.rows(test))
    collapse = None
    if model.classifier.collapse_ is not None:  # once more in the words of the table
        plain = Level(eta=0.0)
        collapse = collapse_of(
            task.rows(train), model.score(X), lambda: fit_level(rows, train, plain).score(X)
        )
    return TableFit(rows, train, test, recipe, model, model.score(X_test), collapse, (*notes, *more))


def fit_asked(rows: TaskRows, train: Ints, level: Level, surrogate: Any) -> FittedModel:
    """Fit at one level with the surrogate that was best on some rows, with all where that is not enough.

    Parameters
    ----------
    rows, train, level, surrogate
        As for `fit_level`.
    """
    try:
        return fit_level(rows, train, level, surrogate)
    except NotNeutralError:
        if surrogate == rows.settings.surrogate:
            raise
        return fit_level(rows, train, level)


def fit_level(rows: TaskRows, train: Ints, level: Level, surrogate: Any = "auto") -> FittedModel:
    """Fit on some rows at one level.

    Parameters
    ----------
    rows, train
        All rows, and the numbers of those to fit on.
    level
        What is asked for; NotNeutralError where it cannot be had.
    surrogate
        As in `nerm.NERMClassifier`.
    """
    from nerm.estimators import NERMClassifier

    settings, (_, X, _) = rows.settings, rows.coded(train)
    y, terms = rows.y[train], {name: v[train] for name, v in rows.task.terms.items()}
    names = ("loss", "regularizer", "kernel", "lam", "weights", "solver", "tol")
    asked: dict[str, Any] = {"eta": level.eta or 0.0}
    if level.limit is not None:
        asked = {
            "limit": level.limit,
            "measure": MEASURES[settings.measure],
            "confidence": settings.confidence,
        }
    given = {name: getattr(settings, name) for name in names} | asked
    counted = y if "confidence" not in asked or settings.confidence is None else y[~rows.promised(train)]
    classifier = NERMClassifier(**given, surrogate=surrogate, class_weight=settings.class_weights(counted))
    with warnings.catch_warnings():  # the status and `collapse` say it, and so does the exit code
        warnings.filterwarnings("ignore", category=UserWarning, module="nerm")
        classifier.fit(X, y, viewpoint=terms)
    return FittedModel(level, classifier.solutions_[0], classifier)


def choose_surrogate(
    rows: TaskRows, train: Ints, limits: Sequence[float], progress: Progress = silent
) -> Any:
    """Return the surrogate that serves limits best, compared on at most `SAMPLE` training rows and the first term.

    Parameters
    ----------
    rows, train
        All rows, and the numbers of those to fit on.
    limits
        The tightest that can be met is what the comparison is about.
    progress
        Told what is being done.
    """
    settings = rows.settings
    if settings.surrogate != "auto":
        return settings.surrogate
    few = train
    if len(train) > SAMPLE:
        few = train[hold_out([of[train] for of in rows.task.strata], SAMPLE / len(train), settings.seed)]
    progress(f"comparing surrogates on {len(few):,} rows")
    _, X, _ = rows.coded(train)
    places = np.searchsorted(train, few)
    name, v = next(iter(rows.task.terms.items()))  # with several groups, the largest tells enough
    problem = settings.problem(X[places], rows.y[few], {name: v[few]})
    measure = MEASURES[settings.measure]
    found = (best_surrogate(problem, limit, measure, tol=COMPARISON_TOL) for limit in sorted(limits))
    return next((surrogate for surrogate in found if surrogate is not None), "auto")


def fit_levels(
    rows: TaskRows, train: Ints, levels: Sequence[Level], surrogate: Any = "auto", progress: Progress = silent
) -> tuple[dict[Level, FittedModel], list[str]]:
    """Fit on some rows at every level that can be had, and say which cannot.

    Weights are one path; limits are searched one by one.

    Parameters
    ----------
    rows, train
        All rows, and the numbers of those to fit on.
    levels
        What is asked for.
    surrogate
        Of the limits.
    progress
        Told what is being done.
    """
    settings, notes = rows.settings, list[str]()
    etas = [level.eta or 0.0 for level in levels]
    if all(level.limit is None for level in levels):
        _, X, _ = rows.coded(train)
        problem = settings.problem(X, rows.y[train], {name: v[train] for name, v in rows.task.terms.items()})
        # A path's weight is the sum over the terms; here each has the weight that was asked for.
        totals = [eta * len(rows.task.terms) for eta in etas]
        solutions = problem.path(totals, solver=settings.solver, tol=settings.tol)
        return {
            level: FittedModel(level, solution) for level, solution in zip(levels, solutions, strict=True)
        }, notes
    models = {}
    for level in levels:
        progress(f"{level.label} on {len(train):,} rows")
        try:
            models[level] = fit_asked(rows, train, level, surrogate)
        except NotNeutralError as error:
            notes.append(f"{level.label} is left out: {error.parts[1]}")
    return models, notes


def logistic_regression() -> Method:
    """Return plain logistic regression with the same regularisation, as a method of the trade-off."""

    def fit(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
        from sklearn.linear_model import LogisticRegression

        yield attempt(LogisticRegression(C=1.0 / max(lam, 1e-6 * len(fold.y)), max_iter=1000), fold)

    return Method("logistic regression", "logistic regression", "one-hot", (), None, fit)
