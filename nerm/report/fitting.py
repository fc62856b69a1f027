"""Fit a table: the settings of a fit, and one model per level."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.utils.class_weight import compute_sample_weight

from nerm.bounds import FitFacts
from nerm.certify.solution import Solution
from nerm.defaults import COMMAND_LINE, DEFAULTS, LIMITS
from nerm.errors import NotNeutralError
from nerm.estimators import NERMClassifier, NeutralRegressor
from nerm.estimators.design import TrainingRows, as_atom
from nerm.estimators.explanation import pooled_groups
from nerm.estimators.limits import held_out
from nerm.metrics import Metric, as_metric, mean_difference, moved_by
from nerm.model.expressions import Neutrality, Risk
from nerm.model.problem import Problem
from nerm.neutralize import Target
from nerm.splitting import HOLD_OUT, hold_out
from nerm.tables.recipe import Recipe, SavedModel, Trees, learn_recipe, with_column
from nerm.tables.roles import TableTask
from nerm.tables.table_model import scores_of
from nerm.typing import Array, Bools, Floats, Matrix

SMALL_TABLE = 4000  # largest number of rows for cross-validation, and for the comparison of surrogates
ADVICE = "try --class-weight balanced, or a smaller --lam or --eta"
BASE_NOTE = "certified is only the last layer, not the base model, whose scores have not seen the labels"
Progress = Callable[[str], None]
MEAN_DIFFERENCE = Metric("mean_difference", mean_difference, words="difference in mean predictions")


@dataclass(frozen=True)
class Level:
    """The target of a fit: a limit on the measure, a neutrality weight eta, or neither (the plain model).

    >>> Level(limit=0.02).label, Level(eta=0.5).option, Level().label
    ('limit 0.02', '--eta 0.5', 'no limit')
    """

    limit: float | None = None
    eta: float | None = None

    @property
    def label(self) -> str:
        """The name of the level in tables."""
        if self.limit is not None:
            return f"limit {self.limit:g}"
        return "no limit" if self.eta is None else f"η = {self.eta:g}"

    @property
    def option(self) -> str:
        """The command-line option of `nerm fit` for this level."""
        return f"--limit {self.limit:g}" if self.limit is not None else f"--eta {self.eta or 0:g}"


@dataclass(frozen=True)
class Settings:
    """Settings of the models of a study and of their measurement; lam and eta are in mean form.

    Attributes
    ----------
    limits
        The limits of a trade-off. The model without a limit is always included.
    etas
        The neutrality weights of a trade-off; if there are any, they replace the limits.
    measure
        The measure that is limited, a name in `nerm.metrics.METRICS`; of a regression "mean_difference".
    confidence
        The probability with which the limit must hold on new rows; None limits the training rows only.
    nearest
        Whether the nearest usable model is fitted if none is within the limit.
    lam, loss, surrogate, regularizer, kernel, weights, solver, tol
        As in `nerm.NERMClassifier`.
    class_weight
        "balanced": both classes have the same total weight; "root": the square roots of these class weights;
        None: every row has the same weight.
    seed
        Random seed of every split.
    delta
        Probability with which a bound may fail.
    budget
        Largest loss of AUC on held-out rows, compared with the plain model, that the recommended model may
        have.
    features
        The columns of the models: "linear", the coded ones; "splines", with B-splines of the numbers;
        "trees", with the score of boosted trees.
    head
        With the score of this classifier too: the path of a skops file.
    unseen
        Whether the classifier was fitted on other rows, so that it is not fitted again.
    trust
        Names of types that skops may load.
    """

    limits: tuple[float, ...] = LIMITS
    etas: tuple[float, ...] = ()
    measure: str = COMMAND_LINE.measure
    confidence: float | None = None
    nearest: bool = False
    lam: float = COMMAND_LINE.lam
    loss: str = COMMAND_LINE.loss
    surrogate: str = COMMAND_LINE.surrogate
    regularizer: str = COMMAND_LINE.regularizer
    kernel: str = COMMAND_LINE.kernel
    weights: str = COMMAND_LINE.weights
    class_weight: str | None = COMMAND_LINE.class_weight
    solver: str = COMMAND_LINE.solver
    tol: float = COMMAND_LINE.tol
    seed: int = 0
    delta: float = COMMAND_LINE.delta
    budget: float = 0.03
    features: str = "linear"
    head: str | None = None
    unseen: bool = False
    trust: tuple[str, ...] = ()

    @property
    def aim(self) -> Metric:
        """The name of the measure that is limited.

        With etas, it is the measure that the neutrality term controls.
        """
        if self.measure == MEAN_DIFFERENCE.name:
            return MEAN_DIFFERENCE
        return moved_by(self.weights) if self.etas else as_metric(self.measure)

    @property
    def levels(self) -> tuple[Level, ...]:
        """The levels of a trade-off, from the plain model to the most neutral one."""
        if self.etas:
            return tuple(Level(eta=eta) for eta in sorted({0.0, *self.etas}))
        return (Level(), *(Level(limit) for limit in sorted(set(self.limits), reverse=True)))

    def class_weights(self, y: Array) -> dict[float, float] | None:
        """Return the weights of the classes -1 and +1 for labels y, (n,); None for equal weights."""
        if self.class_weight in (None, "none"):
            return None
        power = {"balanced": 1.0, "root": 0.5}[str(self.class_weight)]
        return {side: float((0.5 / np.mean(y == side)) ** power) for side in (-1.0, 1.0)}

    def objective(self, terms: Sequence[str] = ()) -> Any:
        """Return the objective, with one neutrality term of weight 1 per name in `terms`."""
        surrogate = as_atom(DEFAULTS.surrogate if self.surrogate == "auto" else self.surrogate, "surrogate")
        regularizer = self.lam * as_atom(self.regularizer, "regularizer")
        neutral = [Neutrality(surrogate, to, self.weights) for to in (terms if len(terms) > 1 else (None,))]
        return sum(neutral, Risk(as_atom(self.loss, "loss")) + regularizer)


@dataclass(frozen=True, eq=False)
class FittedModel:
    """A level and the classifier or regressor of coded rows that was fitted for it."""

    level: Level
    classifier: Any

    def scores(self, X: Matrix) -> Floats:
        """Return the score f(x) of each row of X, (n,); for a regression, the prediction."""
        return scores_of(self.classifier, X)

    @property
    def solution(self) -> Solution:
        """The solution of the classifier, with its certificate."""
        return self.classifier.solutions_[0]

    @property
    def eta(self) -> float:
        """The neutrality weight.

        With several terms it is the largest weight, without any it is 0.
        """
        return float(np.max(getattr(self.classifier, "eta_", self.level.eta or 0.0)))

    @property
    def surrogate(self) -> Any:
        """The surrogate of the neutrality terms, or None if there are none."""
        terms = (weighted.term for weighted in self.solution.problem.objective.terms)
        return next((term.surrogate for term in terms if isinstance(term, Neutrality)), None)

    def facts(self) -> FitFacts:
        """Return the facts about the fit that `nerm.bounds` needs."""
        facts: FitFacts = self.classifier.fit_facts()
        return replace(facts, learned=(*facts.learned, "the coding of the columns"))


@dataclass(frozen=True, eq=False)
class Training:
    """Training rows of a table, coded by a recipe that is learned on them.

    Attributes
    ----------
    task, settings
        The training rows with the roles of their columns, and the settings of the study.
    """

    task: TableTask
    settings: Settings

    @cached_property
    def learned(self) -> Bools:
        """A mask of the rows on which the coding and the class weights are learned, (n,).

        With a confidence, it leaves out the rows that the classifier holds out to certify it.
        """
        ones = np.ones(len(self.task))
        if self.settings.confidence is None:
            return ones > 0
        if self.task.numbers is not None:  # the regressor holds out the same rows
            return ~hold_out([words for _, words in self.task.words.items()], HOLD_OUT, 0)
        codes = (self.task.y > 0).astype(int)
        given = TrainingRows(np.empty((len(codes), 0)), codes, self.task.terms, ones, ones)
        return ~held_out(given, Target(0.0, self.settings.measure))

    @cached_property
    def coded(self) -> tuple[Recipe, Matrix, tuple[str, ...]]:
        """The recipe, the coded rows, (n, d), and notes.

        The training rows of a base model are scored by cross-fitting.
        """
        task, given, settings = self.task, self.learned, self.settings
        splines = settings.features == "splines"
        recipe, notes = learn_recipe(task.table.rows(given), task.inputs, kinds=task.kinds, splines=splines)
        X = recipe.transform(task.table)[0]
        base: Trees | SavedModel
        if settings.head is not None:
            saved = SavedModel.read(settings.head, task, settings.trust)
            base, scores = saved.head(task.rows(given), settings.unseen)
            column = base.score(task.table)
        elif settings.features == "trees":
            base, scores = Trees.learn(X[given], task.y[given], settings.seed)
            column = base.score(X)
        else:
            return recipe, X, notes
        column[given] = scores
        return replace(recipe, base=base), with_column(X, column), (*notes, BASE_NOTE)

    def problem(self, rows: Bools) -> Problem:
        """Return the problem of the settings, of weight eta = 1, on the rows of a mask, (n,).

        Of several groups, the largest is compared with the rest.
        """
        X, y, settings = self.coded[1][rows], self.task.y[rows], self.settings
        weight = compute_sample_weight(settings.class_weights(y), y)
        kernel = None if settings.kernel == "linear" else settings.kernel
        return settings.objective().on(X, y, viewpoint=self.task.v[rows], kernel=kernel, sample_weight=weight)

    def fit(self, level: Level, surrogate: Any = "auto", *, again: bool = True) -> FittedModel:
        """Fit a model on training rows at one level.

        If the given surrogate cannot meet the level, the surrogate of the settings is tried. If no usable
        model meets it, NotNeutralError is raised.

        Parameters
        ----------
        level
            The target of the fit.
        surrogate
            As in `nerm.NERMClassifier`.
        again
            Whether the surrogate of the settings is tried too.
        """
        settings, task, X = self.settings, self.task, self.coded[1]
        names = ["loss", "regularizer", "kernel", "lam", "solver", "tol"]
        names += [] if level.limit is None else ["confidence"]
        names += [] if task.numbers is not None else ["weights", "measure", "nearest"]
        given = {name: getattr(settings, name) for name in names} | {"limit": level.limit}
        if task.numbers is not None:
            groups = {name: words.str.removeprefix(f"{name} = ") for name, words in task.words.items()}
            return FittedModel(level, NeutralRegressor(**given).fit(X, task.numbers, viewpoint=groups))
        given |= {"class_weight": settings.class_weights(task.y[self.learned])}
        classifier = NERMClassifier(eta=level.eta or 0.0, surrogate=surrogate, **given)
        try:
            with warnings.catch_warnings():  # the status, `collapse` and the exit code tell the same
                warnings.filterwarnings("ignore", category=UserWarning, module="nerm")
                classifier.fit(X, task.y, viewpoint=task.terms)
        except NotNeutralError:
            if not again or surrogate in (settings.surrogate, "auto"):
                raise
            return self.fit(level, settings.surrogate)
        return FittedModel(level, classifier)

    def choose_surrogate(self, limits: Sequence[float], progress: Progress) -> Any:
        """Return the best surrogate for the tightest limit that can be met.

        Surrogates are compared on at most `SMALL_TABLE` rows. If the settings name a surrogate, it is
        returned.

        Parameters
        ----------
        limits
            The limits, of which the tightest one that can be met is used.
        progress
            Called with a description of each step.
        """
        task, settings = self.task, self.settings
        if settings.surrogate != "auto":
            return settings.surrogate
        few = np.ones(len(task), dtype=bool)
        if len(task) > SMALL_TABLE:
            few = hold_out(task.strata, SMALL_TABLE / len(task), settings.seed)
        progress(f"comparing surrogates on {few.sum():,} rows")
        problem, tol = self.problem(few), settings.tol ** (2 / 3)  # coarser: the solves are only compared
        for limit in sorted(limits):
            with suppress(NotNeutralError):
                return problem.neutralize(limit, settings.measure, tol=tol).surrogate
        return "auto"

    def fit_levels(
        self,
        levels: Mapping[Level, Any],
        progress: Progress,
        needed: Level | None = None,
        *,
        again: bool = True,
    ) -> tuple[dict[Level, FittedModel], list[str]]:
        """Fit a model at every level; return the models by level, and notes on levels that cannot be met.

        Parameters
        ----------
        levels
            By target, the surrogate of the neutrality terms.
        progress
            Called with a description of each step.
        needed
            The level that must be met; otherwise NotNeutralError is raised.
        again
            As for `fit`.
        """
        models: dict[Level, FittedModel] = {}
        notes = []
        for level, surrogate in levels.items():
            progress(f"{level.label} on {len(self.task):,} rows")
            try:
                models[level] = self.fit(level, surrogate, again=again)
            except NotNeutralError as error:
                if level == needed:
                    raise
                notes.append(f"{level.label} is left out: {error.parts[1]}")
            else:
                notes += [
                    f"small groups are pooled: {names}" for names in pooled_groups(models[level].classifier)
                ]
        return models, notes
