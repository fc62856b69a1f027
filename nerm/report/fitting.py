"""Models on the rows of a table: the settings that name them, the path over neutrality weights, and a single fit."""

import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nerm.bounds import FitFacts
from nerm.defaults import COMMAND_LINE
from nerm.experiments.methods import Fit, Fold, Method, attempt, from_objective
from nerm.report.decisions import collapse_of
from nerm.solution import Solution
from nerm.tables.kinds import NUMBERS, values_of
from nerm.tables.reading import MISSING, missing_in
from nerm.tables.recipe import Recipe, learn_recipe
from nerm.tables.roles import TableTask, split
from nerm.typing import Array, Floats, Ints, Matrix

ETAS = (0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 2.0, 5.0, 10.0)
NEUTRAL = "neutral model"  # among the methods of a trade-off
#: What the weights make the neutrality term stand for: the measure to look at, and its name.
AIMS = {
    "uniform": ("neutrality_risk", "C_sgn"),
    "balanced": ("calders_verwer_score", "difference in positive rates"),
    "equal_opportunity": ("equal_opportunity_difference", "difference in true positive rates"),
}


@dataclass(frozen=True)
class Settings:
    """What to fit and how to measure it; lam and eta in mean form. The defaults are those of `nerm.defaults`.

    Attributes
    ----------
    etas
        The neutrality weights of a trade-off.
    lam, loss, surrogate, regularizer, kernel, weights, class_weight, solver, tol
        As in `nerm.NERMClassifier`.
    seed
        Of every split.
    delta
        Probability with which a bound may fail.
    budget
        How much AUC neutrality may cost in training.
    nominal, missing
        Columns to take as words, and the words for "missing".
    """

    etas: tuple[float, ...] = ETAS
    lam: float = COMMAND_LINE.lam
    loss: str = COMMAND_LINE.loss
    surrogate: str = COMMAND_LINE.surrogate
    regularizer: str = COMMAND_LINE.regularizer
    kernel: str = COMMAND_LINE.kernel
    weights: str = COMMAND_LINE.weights
    class_weight: str | None = None
    solver: str = COMMAND_LINE.solver
    tol: float = COMMAND_LINE.tol
    seed: int = 0
    delta: float = COMMAND_LINE.delta
    budget: float = 0.03
    nominal: tuple[str, ...] = ()
    missing: tuple[str, ...] = MISSING

    @property
    def aim(self) -> tuple[str, str]:
        """The measure that the weights aim at, and its name."""
        return AIMS[self.weights]

    def objective(self, lam: float) -> Any:
        """Return the objective with neutrality weight 1."""
        from nerm.estimators.parameters import as_atom
        from nerm.objective import Neutrality, Risk

        surrogate = as_atom(self.surrogate, "surrogate")
        regularizer = lam * as_atom(self.regularizer, "regularizer")
        return Risk(as_atom(self.loss, "loss")) + regularizer + 1.0 * Neutrality(surrogate, weights=self.weights)

    def problem(self, X: Matrix, y: Floats, viewpoint: Floats) -> Any:
        """Return the objective on coded rows."""
        weight = self.sample_weight(y)
        return self.objective(self.lam).on(X, y, viewpoint=viewpoint, kernel=self._kernel, sample_weight=weight)

    def sample_weight(self, y: Array) -> Array | None:
        """Return the weights of the risk that the class weights make, None where there are none."""
        from sklearn.utils.class_weight import compute_sample_weight

        return None if self.class_weight is None else np.asarray(compute_sample_weight(self.class_weight, y))

    def method(self) -> Method:
        """Return the neutral model as a method of the trade-off."""
        model: dict[str, Any] = {"kernel": self._kernel, "sample_weight": self.sample_weight}
        return from_objective(NEUTRAL, self.objective, self.etas, **model, solver=self.solver, tol=self.tol)

    @property
    def _kernel(self) -> str | None:
        return None if self.kernel == "linear" else self.kernel


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
            table, nominal, missing = self.task.table.rows(train), self.settings.nominal, self.settings.missing
            inputs, kinds = self.task.inputs, self.task.kinds
            recipe, notes = learn_recipe(table, inputs, nominal=nominal, missing=missing, kinds=kinds)
            self._coded[key] = recipe, recipe.transform(table)[0], notes
        return self._coded[key]

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
            columns[name] = values if name in self.settings.nominal else values_of(self.task.table, name, kind)
        return pd.DataFrame(columns)


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A model at one neutrality weight.

    Attributes
    ----------
    eta
        The weight.
    solution
        With its certificate.
    classifier
        That scores rows, where it kept the solution without its rows.
    """

    eta: float
    solution: Solution
    classifier: Any = None

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
        return np.asarray((self.solution if self.classifier is None else self.classifier).decision_function(X))

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
        The rows, those that were fitted on, and those that measure: all rows for both where none were held out.
    recipe, model
        The coding, and the model of coded rows.
    scores
        Of the test rows, (m,).
    collapse
        Says that the model is nearly constant or that its positive rate collapsed, judged on the training rows.
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


def fit_table(task: TableTask, settings: Settings, eta: float, share: float) -> TableFit:
    """Fit on the training rows and score the others.

    Parameters
    ----------
    task, settings
        The table and the model.
    eta
        The neutrality weight.
    share
        Of the rows to hold out; with 0 the model is measured on its own rows.
    """
    from nerm.estimators import NERMClassifier

    everything = np.arange(len(task))
    train, test = split(task, share, settings.seed) if share > 0 else (everything, everything)
    rows = TaskRows(task, settings)
    recipe, X, notes = rows.coded(train)
    names = ("loss", "surrogate", "regularizer", "kernel", "lam", "weights", "class_weight", "solver", "tol")
    classifier = NERMClassifier(eta=eta, **{name: getattr(settings, name) for name in names})
    with warnings.catch_warnings():  # the status and `collapse` say it, and so does the exit code
        warnings.filterwarnings("ignore", category=UserWarning, module="nerm")
        classifier.fit(X, task.y[train], viewpoint=task.v[train])
    X_test, more = recipe.transform(task.table.rows(test))
    model = FittedModel(eta, classifier.solutions_[0], classifier)
    collapse = None
    if classifier.collapse_ is not None:  # once more in the words of the table
        collapse = collapse_of(task.rows(train), model.score(X), lambda: fit_path(rows, train, [0.0])[0].score(X))
    return TableFit(rows, train, test, recipe, model, model.score(X_test), collapse, (*notes, *more))


def fit_path(rows: TaskRows, train: Ints, etas: Sequence[float]) -> list[FittedModel]:
    """Fit on some rows at every weight, as one path.

    Parameters
    ----------
    rows, train
        All rows, and the numbers of those to fit on.
    etas
        The neutrality weights.
    """
    settings, (_, X, _) = rows.settings, rows.coded(train)
    problem = settings.problem(X, rows.y[train], rows.viewpoint[train])
    solutions = problem.path(list(etas), solver=settings.solver, tol=settings.tol)
    return [FittedModel(eta, solution) for eta, solution in zip(etas, solutions, strict=True)]


def logistic_regression(settings: Settings) -> Method:
    """Return plain logistic regression with the same regularisation, as a method of the trade-off.

    Parameters
    ----------
    settings
        Its class weights are taken over.
    """

    def fit(fold: Fold, lam: float, etas: Sequence[float]) -> Iterator[Fit]:
        from sklearn.linear_model import LogisticRegression

        C = 1.0 / max(lam, 1e-6 * len(fold.y))
        yield attempt(LogisticRegression(C=C, max_iter=1000, class_weight=settings.class_weight), fold)

    return Method("logistic regression", "logistic regression", "one-hot", (), None, fit)
