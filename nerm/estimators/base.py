"""Base class of the classifiers: the scikit-learn interface around one binary problem per class.

Two classes give one binary problem. More than two classes give one problem per class (one-vs-rest).
"""

import dataclasses
import warnings
from abc import abstractmethod
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils import check_array, check_X_y
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from nerm import viewpoint as viewpoints
from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.certify.solution import Solution
from nerm.chunks.chunked_problem import bind_chunks
from nerm.chunks.pieces import lazily
from nerm.chunks.source import as_chunks
from nerm.errors import InvalidInputError, NearlyConstantWarning
from nerm.estimators.design import (
    Design,
    TrainingRows,
    as_eta,
    as_kernel,
    as_viewpoint,
    as_weights_name,
    insist,
    kept,
    nested,
    plain_scores,
    solved,
    with_parameter,
)
from nerm.estimators.explanation import Explanation, explanation_of
from nerm.estimators.limits import Promise, neutralized, rows_to_learn_from, target_of
from nerm.model.problem import with_terms
from nerm.neutralize import Neutralized, Target
from nerm.neutralize.target import collapse
from nerm.signs import sign
from nerm.solvers.registry import SolverPool
from nerm.typing import Array, Floats, Ints, Matrix
from nerm.validation import as_pandas, as_positive, as_weights, check_known, integers_that_fit, is_lazy

ONLY_SOME = ("coef_", "dual_coef_", "support_", "support_vectors_")  # set for linear or kernel models only
# Fix the memory layout, so that equal data in different containers give bitwise equal results.
CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "order": "C"}


@dataclasses.dataclass(frozen=True, eq=False)
class Fit:
    """The result of a fit, from which all fitted attributes are set.

    Attributes
    ----------
    design : Design
        The checked parameters.
    classes, class_weight : arrays
        The class labels, and one weight per class.
    solutions : list of Solution
        One per binary problem.
    rows : TrainingRows
        The rows used for training; for chunks, a sample of them.
    places : array of int
        Indices of these rows in the training set; empty for chunks.
    found : list of Neutralized
        If a limit was given, the result of the search for each binary problem; otherwise empty.
    promise : Promise or None
        The statement about new rows, if a confidence was given.
    features : callable or None
        For chunks of tables, the function that turns a DataFrame into a feature matrix.

    """

    design: Design
    classes: Array
    class_weight: Floats
    solutions: list[Solution]
    rows: TrainingRows
    places: Ints
    found: list[Neutralized]
    promise: Promise | None = None
    features: Any = None

    @property
    def numbers(self) -> list[int]:
        """The index of the positive class of each binary problem."""
        return _positives(self.classes)


def _positives(classes: Array) -> list[int]:
    return [1] if len(classes) == 2 else list(range(len(classes)))


class NeutralClassifier(ClassifierMixin, BaseEstimator):
    """Base class of the neutral classifiers: fit, predict, explain, save.

    A subclass defines the loss, the regularizer and the surrogate in `_atoms`.
    """

    sum_form: ClassVar[bool]
    _features: Any = None  # for chunks of tables: the function from a DataFrame to a feature matrix

    @abstractmethod
    def _atoms(self) -> tuple[MarginFunction, Regularizer, MarginFunction, float]:
        """Return the validated (loss, regularizer, surrogate, lam)."""

    def _design(self, X: Matrix, weight: Floats, names: list[str]) -> Design:
        """Return the validated parameters, with the kernel's parameters computed from weighted rows.

        `X` and `weight` are the training rows and their sample weights; `names` are the names of the
        viewpoints.
        """
        loss, regularizer, surrogate, lam = self._atoms()
        options = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return Design(
            loss=loss,
            regularizer=regularizer,
            surrogate=surrogate,
            lam=lam,
            eta=as_eta(self.eta, names),
            weights=as_weights_name(self.weights),
            kernel=as_kernel(self.kernel, options, X, weight),
            intercept=bool(self.fit_intercept),
            solver=self.solver,
            tol=as_positive(self.tol, "tol"),
            sum_form=self.sum_form,
        )

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        viewpoint: Any = None,
        sample_weight: Any = None,
        sensitive_features: Any = None,
    ) -> Any:
        """Fit on (X, y), neutral to the viewpoint.

        Parameters
        ----------
        X : (n, d) matrix
            Dense, sparse or a DataFrame; with kernel="precomputed" the (n, n) Gram matrix. Two other types
            are read chunk by chunk: a dask array, together with y and viewpoint, and `nerm.Chunks`, which
            contains y and viewpoint.
        y : (n,) array
            Labels of two or more classes. More than two classes are fitted one-vs-rest.
        viewpoint : optional
            See `nerm.viewpoint`: an array; a column of X by name, by position or as `Column(key, drop=True)`;
            a callable g(X) or a fitted estimator, evaluated on X as it is given here; `Learned(estimator, X,
            labels)`; a DataFrame or a dict of several viewpoints. Two groups are coded as -1 and +1. More
            than two groups (strings or integers) give one neutrality term per group. Floats are used
            unchanged. A named column of strings is not used as a feature.
        sample_weight : (n,) array, optional
            Nonnegative. A row of weight 2 counts as two rows, in the risk and in neutrality. A row of
            weight 0 is ignored.
        sensitive_features : optional
            Alias of `viewpoint`, as in Fairlearn.

        Returns
        -------
        self
        """
        viewpoint = as_viewpoint(viewpoint, sensitive_features)
        target = target_of(self)
        if is_lazy(X):
            dropped: tuple[int, ...] = ()
            fit = self._fit_chunks(as_chunks(X, y, viewpoint, sample_weight), target)
            self.n_features_in_ = fit.rows.X.shape[1]
        else:
            X = as_pandas(X)
            dropped = viewpoints.dropped_columns(viewpoint, X)
            matrix, labels = self._validated(X, y, dropped)
            given = None if sample_weight is None else np.asarray(sample_weight)
            s = as_weights(given, len(labels), "sample_weight")
            terms = viewpoints.resolve_terms(viewpoint, X, len(labels), s > 0)
            fit = self._fit_rows(matrix, labels, terms, s, target)
        self.dropped_columns_ = dropped
        self._keep(fit, target)
        if self.collapse_ is not None:
            advice = "Try class_weight='balanced', or a smaller eta or lam."
            warnings.warn(f"{self.collapse_} {advice}", NearlyConstantWarning, stacklevel=2)
        return self

    def _forget(self) -> None:
        """Remove the attributes of an earlier fit, so that no old model remains if this fit fails."""
        for name in ("solutions_", "eta_", "neutrality_", "trace_", "promise_", *ONLY_SOME):
            self.__dict__.pop(name, None)

    def _fit_rows(
        self, matrix: Matrix, labels: Array, terms: dict[str, Floats], s: Floats, target: Target | None
    ) -> Fit:
        """Fit on rows in memory.

        Parameters
        ----------
        matrix : (n, d) matrix
            The features.
        labels : (n,) array
            The class labels.
        terms : dict
            One (n,) viewpoint per neutrality term, by name.
        s : (n,) array
            The sample weights.
        target : Target or None
            The limit on the measure and the options of the search, if a limit was given.
        """
        classes, places = np.unique(labels[s > 0]), np.flatnonzero(s > 0)
        if len(classes) < 2:
            must = "'y' must hold at least two classes"
            got = f"one class only among the rows of positive weight: {classes.tolist()[0]!r}"
            raise InvalidInputError(must, got, "Use data where another class is seen too")
        rows = TrainingRows(matrix, np.searchsorted(classes, labels), terms, s, s)
        if len(places) < len(s):
            rows = rows.at(places, self._pairwise())
        learned = rows_to_learn_from(rows, target)  # class weights and kernel width exclude the hold-out
        class_weight = self._class_weights(classes, rows.codes[learned], rows.sample_weight[learned])
        rows = dataclasses.replace(rows, risk_weight=rows.sample_weight * class_weight[rows.codes])
        learning = rows if len(learned) == len(rows.codes) else rows.at(learned, self._pairwise())
        design = self._design(learning.X, learning.sample_weight, list(terms))
        self._forget()
        numbers = _positives(classes)
        if target is None:
            pool, problem, solutions = SolverPool(design.solver), None, []
            for k in numbers:
                problem = design.problem(rows, k, like=problem)
                solutions.append(solved(problem, design, pool))
            return Fit(design, classes, class_weight, solutions, learning, places[learned], [])
        found, promise = neutralized(design, rows, numbers, target, learned)
        solutions = [one.solution for one in found]
        return Fit(design, classes, class_weight, solutions, learning, places[learned], found, promise)

    def _fit_chunks(self, chunks: Any, target: Target | None) -> Fit:
        """Fit a linear binary classifier in a few passes over the chunks."""
        coding = chunks.coding(groups=True)
        sample = coding.coded(chunks.census.sample)
        totals = chunks.census.counts[""]["weight"].groupby("label").sum()[coding.classes].to_numpy()
        class_weight = self._class_weights(coding.classes, np.arange(2), totals)
        design = self._design(sample.X, sample.sample_weight, list(coding.groups))
        if design.kernel is not None or (target is not None and target.confidence is not None):
            must = "a classifier on chunks must be linear, without a promise"
            kernel = design.kernel is not None
            got = f"kernel={self.kernel!r}" if kernel else f"confidence={self.confidence!r}"
            raise InvalidInputError(must, got, "Drop it, or use rows in memory")
        objective = design.objective(design.lam / design.own_form(coding.total))
        negative, positive = class_weight.tolist()
        options = {"intercept": design.intercept, "groups": True, "weighted": True}
        problem = bind_chunks(objective, chunks, class_weight=(negative, positive), **options)
        self._forget()
        found = []
        if target is None:
            solution = problem.solve(design.solver, design.tol)
        else:
            wanted = {"surrogate": target.surrogate, "prefer": target.prefer, "keep": target.keep}
            found = [problem.neutralize(target.limit, target.measure, tol=target.tol, **wanted)]
            solution = found[0].solution
        codes, weight = (sample.y > 0).astype(int), sample.sample_weight
        rows = TrainingRows(sample.X, codes, sample.viewpoints, weight, weight * class_weight[codes])
        features, nowhere = chunks.features, np.zeros(0, dtype=int)
        return Fit(design, coding.classes, class_weight, [solution], rows, nowhere, found, None, features)

    # --- the data ---------------------------------------------------------------------------------

    def _pairwise(self) -> bool:
        kernel = getattr(self, "kernel", None)
        return getattr(kernel, "name", kernel) == "precomputed"

    def _validated(self, X: Any, y: Any, dropped: tuple[int, ...]) -> tuple[Any, Array]:
        """Validate X and y with scikit-learn; return the float matrix and the labels.

        The columns at the positions `dropped` are removed from X and need not be numeric.
        """
        with integers_that_fit("X"):
            if not dropped:
                matrix, labels = validate_data(self, X, y, **CHECKS)
            else:  # the dropped columns need not be numeric
                validate_data(self, X, y, skip_check_array=True)
                matrix, labels = check_X_y(_without(X, dropped), y, estimator=self, **CHECKS)
        try:
            check_classification_targets(labels)
        except ValueError as error:
            must = "'y' must hold classes: words, or integers of at most 64 bits"
            got = str(error).partition(".")[0]
            raise InvalidInputError(must, got, "Code the classes as such") from None
        if not self._pairwise():
            return matrix, labels
        if matrix.shape[0] != matrix.shape[1]:
            must = "a precomputed kernel must be a square matrix"
            raise InvalidInputError(must, f"shape {matrix.shape}", "Pass k(x_i, x_j) as X")
        return matrix.toarray() if sp.issparse(matrix) else matrix, labels

    def _class_weights(self, classes: Array, codes: Array, s: Array) -> Array:
        """Return one weight per class, (number of classes,).

        `codes` are the class indices of the rows and `s` their sample weights. "balanced" uses the total
        sample weight of each class in place of its number of rows.
        """
        given = getattr(self, "class_weight", None)
        if given is None:
            return np.ones(len(classes))
        if isinstance(given, str):
            check_known(given, "'class_weight'", ["balanced"], "Use it, a dict or None")
            totals = np.bincount(codes, weights=s, minlength=len(classes))
            return totals.sum() / (len(classes) * totals)
        with integers_that_fit("class_weight"):
            return np.asarray(compute_class_weight(given, classes=classes, y=classes[codes]), dtype=float)

    # --- fitted attributes -----------------------------------------------------------------------------

    def _keep(self, fit: Fit, target: Target | None) -> None:
        """Set the fitted attributes. Support vectors are the only training rows that are stored."""
        design, solutions, found = fit.design, fit.solutions, fit.found
        for solution in solutions:
            insist(solution)
        weights = None
        if target is not None:
            weights = target.metric.weights * len(fit.rows.viewpoints)
            self.eta_ = [one.eta for one in found] if len(found) > 1 else found[0].eta
            self.neutrality_ = max((one.value for one in found), key=abs)
            labels = [fit.classes[k] for k in fit.numbers]
            traces = [one.trace.assign(label=label) for label, one in zip(labels, found, strict=True)]
            self.trace_ = pd.concat(traces, ignore_index=True)
        if fit.promise is not None:
            self.promise_ = fit.promise
        self.classes_ = fit.classes
        weighted = zip(fit.classes.tolist(), fit.class_weight.tolist(), strict=True)
        self.class_weight_ = {} if self.class_weight is None else dict(weighted)
        self.kernel_ = design.kernel
        self.intercept_ = np.array([solution.intercept for solution in solutions], dtype=float)
        self.n_iter_ = max(solution.stats.iterations or 1 for solution in solutions)
        self.total_weight_ = solutions[0].problem.divisor
        # The one-vs-rest objective is the sum of the binary objectives, so the certificates are added.
        own = design.own_form(self.total_weight_)
        self.certificate_ = reduce(add, (solution.certificate for solution in solutions)).times(own)
        self._features = fit.features
        in_memory = bool(len(fit.places))
        self._facts = [_facts(solution, design) if in_memory else {} for solution in solutions]
        self.solutions_ = tuple(kept(solution, design, weights) for solution in solutions)
        coefs = np.vstack([solution.coef for solution in solutions])
        if design.kernel is None:
            self.coef_ = np.zeros((len(coefs), self.n_features_in_))
            self.coef_[:, self._kept_columns()] = coefs
        else:
            used = np.flatnonzero((coefs != 0).any(axis=0))
            self.support_, self.dual_coef_ = fit.places[used], coefs[:, used]
            self.support_vectors_ = fit.rows.X[:0] if self._pairwise() else fit.rows.X[used]
        self.collapse_ = self._collapse(fit)

    def _collapse(self, fit: Fit) -> str | None:
        """Return a warning if the model is nearly constant or its positive rate collapsed, else None.

        `nerm.neutralize.target` defines both conditions.
        """
        rows, solutions = fit.rows, fit.solutions
        in_memory = bool(len(fit.places))
        if in_memory:
            scores = np.column_stack([solution.training_scores() for solution in solutions])
        else:
            scores = np.column_stack([rows.X @ solution.coef + solution.intercept for solution in solutions])
        neutral = self.limit is not None or any(fit.design.eta.values())
        views = rows.viewpoints.items()
        groups = {f"{name} {side:+d}": sign(v) == side for name, v in views for side in (1, -1)}
        return collapse(
            scores if len(solutions) > 1 else scores[:, 0],
            rows.codes,
            [f"class {label!r}" for label in fit.classes.tolist()],
            groups,
            plain=(lambda: plain_scores(solutions[0].problem, fit.design)) if neutral and in_memory else None,
            weight=rows.sample_weight,
            risk_weight=rows.risk_weight,
        )

    def _kept_columns(self) -> Array:
        return np.delete(np.arange(self.n_features_in_), list(self.dropped_columns_))

    # --- prediction -------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Return the scores f(x) of the rows of X, an (n, d) matrix.

        The shape is (n,) for two classes and (n, number of classes) for more. With a precomputed kernel, X
        contains the values k(x, x_i) for all training rows x_i and is (n, number of training rows).
        """
        check_is_fitted(self, "solutions_")
        if is_lazy(X):
            return lazily(X, self.decision_function, float, self._features)
        matrix = self._known(X)
        if self.kernel_ is None:
            scores = np.asarray(matrix @ self.coef_[:, self._kept_columns()].T) + self.intercept_
        elif not len(self.support_):
            scores = np.tile(self.intercept_, (matrix.shape[0], 1))
        else:
            support = self.support_
            values = matrix[:, support] if self._pairwise() else self.kernel_(matrix, self.support_vectors_)
            scores = np.asarray(values @ self.dual_coef_.T) + self.intercept_
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def _known(self, X: Any) -> Any:
        """Return new rows as a matrix, after checking that their columns are those seen in fit."""
        X = as_pandas(X)
        with integers_that_fit("X"):
            if not self.dropped_columns_:
                return validate_data(self, X, reset=False, **CHECKS)
            names = getattr(self, "feature_names_in_", None)
            if names is None or list(getattr(X, "columns", ())) != names[self._kept_columns()].tolist():
                validate_data(self, X, reset=False, skip_check_array=True)
                X = _without(X, self.dropped_columns_)
            return check_array(X, estimator=self, input_name="X", **CHECKS)

    def predict(self, X: Any) -> Array:
        """Return the predicted class of each row, (n,).

        With two classes, this is `classes_[1]` if f(x) > 0 and `classes_[0]` otherwise. With more classes, it
        is the class with the largest score.
        """
        if is_lazy(X):
            return lazily(X, self.predict, self.classes_.dtype, self._features)
        scores = self.decision_function(X)
        return self.classes_[(sign(scores) > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on (X, y); raise an error if y contains a label not seen in fit."""
        check_is_fitted(self, "solutions_")
        unknown = np.flatnonzero(~np.isin(np.ravel(y), self.classes_))
        if len(unknown):
            shown = ", ".join(map(repr, self.classes_.tolist()[:5]))
            do = "Code the labels as in fit, or leave these rows out"
            got = f"{np.ravel(y)[unknown].tolist()[0]!r} at index {unknown[0]}"
            raise InvalidInputError(f"'y' must hold classes seen in fit, {shown}", got, do)
        return float(super().score(X, y, sample_weight=sample_weight))

    # --- explanation and saving ----------------------------------------------------------------

    def explain(self, top: int = 10, feature_names: Sequence[str] | None = None) -> Explanation:
        """Explain the fitted model: objective, neutrality, certificate, largest coefficients.

        The explanation lists the value of every term of the objective. For each neutrality term it also gives
        C+, C- and theta, the dual weight of C+ in max(C+, C-).

        Parameters
        ----------
        top : int
            Number of coefficients to show.
        feature_names : sequence of str, optional
            Names of the columns. Needed only if the X given to `fit` had no column names; in a pipeline use
            ``pipe[:-1].get_feature_names_out()``.
        """
        check_is_fitted(self, "solutions_")
        return explanation_of(self, top, feature_names)

    def fit_facts(self, to: str | None = None, label: Any = None) -> Any:
        """Return the facts about this fit that `nerm.bounds.guarantee` needs.

        Parameters
        ----------
        to : str, optional
            Name of the viewpoint; required if there are several.
        label : optional
            The positive class; required if there are more than two classes.
        """
        check_is_fitted(self, "solutions_")
        labels = self.classes_[_positives(self.classes_)].tolist()
        number = labels.index(_chosen(label, labels, "label", "class"))
        facts = self._facts[number] if hasattr(self, "_facts") else {}
        if not facts:
            got = "a loaded model" if self.solutions_[number].thetas else "a model fitted without a viewpoint"
            must = "a guarantee about neutrality must have a viewpoint and the training rows"
            do = "Fit again with viewpoint=... (it may be given with eta=0); files hold no training rows"
            raise InvalidInputError(must, got, do)
        to = _chosen(to, list(facts), "to", "viewpoint")
        gamma = self.gamma if isinstance(self.kernel, str) else getattr(self.kernel, "gamma", None)
        learned = isinstance(gamma, str) and gamma == "scale" and hasattr(self.kernel_, "gamma")
        return dataclasses.replace(facts[to], learned=("the kernel's width",)) if learned else facts[to]

    def save(self, path: Any) -> None:
        """Write the fitted model to one file; `nerm.load(path)` reads it.

        The file does not use pickle and contains no training rows except support vectors.
        """
        from nerm.io import save

        check_is_fitted(self, "solutions_")
        save(self, path)

    # --- parameters -------------------------------------------------------------------------------

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with deep=True also those of atoms and kernels, such as loss__width."""
        params = super().get_params(deep=deep)
        return {**params, **nested(params)} if deep else params

    def set_params(self, **params: Any) -> Any:
        """Set parameters; for instance loss__width=0.1 replaces the loss by one with width 0.1."""
        own = {name: value for name, value in params.items() if "__" not in name}
        super().set_params(**own)
        valid = self.get_params(deep=False)
        for key, value in params.items():
            name, found, parameter = key.partition("__")
            if found:
                check_known(name, "a parameter", valid)
                setattr(self, name, with_parameter(getattr(self, name), name, parameter, value))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._pairwise()
        return tags


def _facts(solution: Solution, design: Design) -> dict[str, Any]:
    """Return the facts for `nerm.bounds.guarantee`, one entry per viewpoint.

    If the solution has no neutrality term, because the plain model was within the limit, terms of weight
    eta = 0 are added first.
    """
    problem = solution.problem
    if not any(t.term.kind == "neutrality" for t in problem.objective.terms):
        terms = dataclasses.replace(design, eta=dict.fromkeys(design.eta, 0.0)).objective().terms[2:]
        objective = dataclasses.replace(problem.objective, terms=(*problem.objective.terms, *terms))
        problem = with_terms(problem, objective)
        solution = dataclasses.replace(solution, problem=problem)
    return {name: solution.fit_facts(name) for name in design.eta}


def _chosen(given: Any, known: list[Any], name: str, what: str) -> Any:
    """Return `given` if it is known; if it is None, return the only known value.

    Raise an error if `given` is None and several values are known.
    """
    if given is None and len(known) > 1:
        must, got = f"a guarantee must be about one {what}", f"{len(known)}: {', '.join(map(repr, known))}"
        raise InvalidInputError(must, got, f"Choose one: fit_facts({name}={known[0]!r})")
    if given is not None:
        check_known(given, f"{name!r}", known)
    return known[0] if given is None else given


def _without(X: Any, columns: tuple[int, ...]) -> Any:
    """Return X without the columns at these positions: a DataFrame, a sparse matrix or an array, as X is."""
    kept = [j for j in range(np.shape(X)[1]) if j not in columns]
    if hasattr(X, "iloc"):
        return X.iloc[:, kept]
    return X.tocsc()[:, kept].tocsr() if sp.issparse(X) else np.asarray(X)[:, kept]
