"""Base class of the classifiers: the scikit-learn interface around one binary problem per class.

Two classes give one binary problem. More than two classes give one problem per class (one-vs-rest). Over
training rows i with sample weights s_i, class weights c_i and S = sum_i s_i, a binary problem is to minimise

::

    (1/S) sum_i s_i c_i phi(y_i f_i) + lam Omega(f) + sum_k eta_k max( (1/S) sum_i s_i u_ki psi(+- v_ki f_i)
    ).

Here k counts the viewpoints v_k, and u_ki are the neutrality weights. `NERMClassifier` uses this mean form.
`NeutralSVC` uses the paper's sum form: S times this objective, so its lam is S times the lam here. A row of
weight 2 counts as two rows.
"""

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import reduce
from operator import add
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_array, check_X_y
from sklearn.utils.class_weight import compute_class_weight
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from nerm import viewpoint as viewpoints
from nerm import weights as neutrality_weights
from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.certify.solution import Solution, Status
from nerm.chunks.chunked_problem import bind_chunks
from nerm.chunks.pieces import lazily
from nerm.chunks.source import as_chunks
from nerm.errors import InvalidInputError, NearlyConstantWarning, NotSolvedError
from nerm.estimators import design, score_limits
from nerm.estimators.design import TrainingRows
from nerm.estimators.explanation import Explanation, explanation_of
from nerm.estimators.limits import neutralized, rows_to_learn_from, target_of
from nerm.metrics import SCORE_METRICS, quantile_codes
from nerm.model import kernels
from nerm.model.expressions import Neutrality, Objective, Risk, viewpoint_of
from nerm.model.problem import Problem, bind, with_terms
from nerm.neutralize import Neutralized, Target
from nerm.neutralize.target import collapse
from nerm.signs import sign
from nerm.solvers.registry import SolverPool
from nerm.typing import Array, Floats, Ints, Matrix
from nerm.validation import (
    as_pandas,
    as_values,
    as_weights,
    check_known,
    check_order,
    distinct,
    integers_that_fit,
    is_lazy,
)

# Fix the memory layout, so that equal data in different containers give bitwise equal results.
CHECKS: dict[str, Any] = {"accept_sparse": "csr", "dtype": np.float64, "order": "C"}


class NeutralModel(BaseEstimator):
    """The parts that neutral classifiers and regressors share: parameters, rows, kernel, scores, files.

    A subclass defines the loss, the regularizer and the surrogate in `_atoms`.
    """

    sum_form: ClassVar[bool] = False
    _features: Any = None  # for chunks of tables: the function from a DataFrame to a feature matrix

    @abstractmethod
    def _atoms(self) -> tuple[MarginFunction, Regularizer, MarginFunction, float]:
        """Return the validated (loss, regularizer, surrogate, lam)."""

    @property
    def _scale(self) -> float:
        """The factor from the mean form to the model's own form: S for the sum form, else 1."""
        return self.total_weight_ if self.sum_form else 1.0

    def _set_kernel(self, X: Matrix, weight: Floats, total: float) -> None:
        """Set the kernel, with parameters computed from the weighted rows, and the total weight S.

        The kernel is None if it is linear.
        """
        kernel = self.kernel
        if isinstance(kernel, str) and kernel in kernels.names():
            cls = kernels.names()[kernel]
            kernel = cls(**{f.name: getattr(self, f.name) for f in fields(cls) if hasattr(self, f.name)})
        kernel = kernels.resolve(kernel)
        self.kernel_ = None if isinstance(kernel, kernels.Linear) else kernel.fitted(X, weight)
        self.total_weight_ = total

    def _objective(self, weights: Mapping[str, Any]) -> Objective:
        """Return Risk + lam Omega + sum_k eta_k Neutrality_k in mean form.

        `weights` holds the neutrality weights of each viewpoint by its name. Each entry is the name of
        weights (`nerm.weights`) or an (n,) array.
        """
        loss, regularizer, surrogate, lam = self._atoms()
        objective = Risk(loss) + lam / self._scale * regularizer
        for name, eta in design.as_eta(self.eta, list(weights)).items():
            to = None if list(weights) == [viewpoints.DEFAULT] else name
            objective += eta * Neutrality(surrogate, to=to, weights=weights[name])
        return objective

    def _bind(self, objective: Objective, rows: TrainingRows, y: Floats, views: Any) -> Problem:
        """Return the problem of an objective on the rows with targets y; S divides its sums."""
        return bind(
            objective,
            rows.X,
            y,
            viewpoint=views,
            kernel=self.kernel_,
            intercept=bool(self.fit_intercept),
            sample_weight=rows.risk_weight,
            divisor=self.total_weight_,
            checked=True,
        )

    def _problem(
        self, rows: TrainingRows, positive: int | None = None, like: Problem | None = None
    ) -> Problem:
        """Return the problem of the class with index `positive` against the rest, or of a regression.

        If `like`, a problem on the same rows, is given, its matrix X or Gram matrix is reused.
        """
        y = rows.codes if positive is None else np.where(rows.codes == positive, 1.0, -1.0)
        s, views = rows.sample_weight, rows.viewpoints
        weights = {name: s * neutrality_weights.resolve(self.weights, y, v, s) for name, v in views.items()}
        if like is not None:
            return with_terms(like, self._objective(weights), y, rows.risk_weight)
        return self._bind(self._objective(weights), rows, y, viewpoints.Viewpoints(views, self.groups_))

    def _forget(self) -> None:
        """Delete the fitted attributes: if a new fit fails, no earlier model remains."""
        for name in [name for name in vars(self) if name.endswith("_")]:
            delattr(self, name)

    def _pairwise(self) -> bool:
        kernel = getattr(self, "kernel", None)
        return getattr(kernel, "name", kernel) == "precomputed"

    def _matrix(self, X: Any, *y: Any) -> Any:
        """Validate X with scikit-learn; return a float matrix without the dropped columns.

        `fit` also passes the labels, and gets the pair (matrix, labels). Later calls compare the columns with
        those seen in `fit`; a DataFrame need not have the dropped columns.
        """
        with integers_that_fit("X"):
            if not self.dropped_columns_:
                return validate_data(self, X, *y, reset=bool(y), **CHECKS)
            names = getattr(self, "feature_names_in_", None)
            if names is None or list(getattr(X, "columns", ())) != names[self._kept_columns()].tolist():
                validate_data(self, X, *y, reset=bool(y), skip_check_array=True)
                columns = X.tocsr() if sp.issparse(X) else np.asarray(X)
                X = (X.iloc if hasattr(X, "iloc") else columns)[:, self._kept_columns()]
            if y:
                return check_X_y(X, *y, estimator=self, **CHECKS)
            return check_array(X, estimator=self, input_name="X", **CHECKS)

    @abstractmethod
    def _codes(self, y: Array, s: Floats) -> Array:
        """Return y as the model learns it, (n,): indices of classes, or numbers; s are the sample weights."""

    @property
    def _limits_scores(self) -> bool:
        """Whether a limit on a measure of the scores themselves is set."""
        return self.limit is not None and isinstance(self.measure, str) and self.measure in SCORE_METRICS

    def _training_rows(
        self, X: Any, y: Any, viewpoint: Any, sample_weight: Any, *, centre: bool
    ) -> tuple[TrainingRows, Ints]:
        """Return the rows of positive weight, in memory, and their indices.

        Real-valued viewpoints are cut into groups at the `quantiles`, unless their correlation is limited.
        With `centre`, the others are centred.
        """
        X = as_pandas(X)
        self.dropped_columns_ = viewpoints.dropped_columns(viewpoint, X)
        for name, values in {"y": y, "sample_weight": sample_weight}.items():
            check_order(X, values, name)
        matrix, labels = self._matrix(X, y)
        n, pairwise = len(labels), self._pairwise()
        if pairwise and matrix.shape[0] != matrix.shape[1]:
            must = "a precomputed kernel must be a square matrix"
            raise InvalidInputError(must, f"shape {matrix.shape}", "Pass k(x_i, x_j) as X")
        if pairwise and sp.issparse(matrix):
            matrix = matrix.toarray()
        s = as_weights(sample_weight, n, "sample_weight")
        codes, places = self._codes(labels, s), np.flatnonzero(s > 0)
        with warnings.catch_warnings():
            if centre or self.quantiles is not None:
                warnings.simplefilter("ignore", UserWarning)
            views = viewpoints.resolve(viewpoint, X, n, several=True, among=s > 0)
        real = {name: v for name, v in views.items() if len(distinct(v[places], name)) > 2}
        if self.quantiles is not None and self.measure != "correlation":
            cut = {name: (1 + quantile_codes(v, self.quantiles, s)).astype(str) for name, v in real.items()}
            read = viewpoints.resolve({**views, **cut}, X, n, several=True, among=s > 0)
            views = viewpoints.Viewpoints(read, read.groups | views.groups)
        elif centre:
            views.update({name: v - np.average(v, weights=s) for name, v in real.items()})
        self.groups_ = views.groups
        return TrainingRows(matrix, codes, views, s, s, pairwise).at(places), places

    def _scores(self, X: Any) -> Floats:
        """Return the scores of the rows of X, (n, number of problems)."""
        check_is_fitted(self, "solutions_")
        matrix = self._matrix(as_pandas(X))
        if self.kernel_ is None:
            return np.asarray(matrix @ self.coef_[:, self._kept_columns()].T) + self.intercept_
        if not len(self.support_):
            return np.tile(self.intercept_, (matrix.shape[0], 1))
        support = self.support_
        values = matrix[:, support] if self._pairwise() else self.kernel_(matrix, self.support_vectors_)
        return np.asarray(values @ self.dual_coef_.T) + self.intercept_

    def _keep_solutions(
        self, rows: TrainingRows, places: Ints, solutions: list[Solution], weights: tuple[Any, ...]
    ) -> None:
        """Set the coefficients and the solutions; of the training rows, only support vectors are stored.

        Warn if a solution is not certified, and raise an error if there is none. `weights` are the names of
        the neutrality weights for each viewpoint.
        """
        for solution in solutions:
            status, stats, gap = solution.status, solution.stats, solution.certificate.relative_gap
            gaps = f"Certified relative gap {gap:.2e}, tolerance {solution.tol:g}"
            claim = f"solver {stats.solver!r} claims {stats.claim!r}"
            advice = "Scale the features, raise lam or tol, or try another solver."
            text = f"{status.sentence} {gaps}, {claim}. {advice}"
            if status is Status.FAILED:
                raise NotSolvedError(text)
            if not status.success:
                warnings.warn(text, ConvergenceWarning, stacklevel=5)
        self.intercept_ = np.array([solution.intercept for solution in solutions], dtype=float)
        self.n_iter_ = max(solution.stats.iterations or 1 for solution in solutions)
        # The one-vs-rest objective is the sum of the binary objectives, so the certificates are added.
        self.certificate_ = reduce(add, (solution.certificate for solution in solutions)).times(self._scale)
        coefs = np.vstack([solution.coef for solution in solutions])
        if self.kernel_ is None:
            self.coef_ = np.zeros((len(coefs), self.n_features_in_))
            self.coef_[:, self._kept_columns()] = coefs
        else:
            used = np.flatnonzero((coefs != 0).any(axis=0))
            self.support_, self.dual_coef_ = places[used], coefs[:, used]
            self.support_vectors_ = rows.X[:0] if self._pairwise() else rows.X[used]
        self.solutions_ = tuple(design.kept(one, weights * len(one.problem.etas)) for one in solutions)

    def _kept_columns(self) -> Array:
        return np.delete(np.arange(self.n_features_in_), list(self.dropped_columns_))

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

    def save(self, path: Any) -> None:
        """Write the fitted model to one file; `nerm.load(path)` reads it.

        The file does not use pickle and contains no training rows except support vectors.
        """
        from nerm.io import save

        check_is_fitted(self, "solutions_")
        save(self, path)

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the parameters; with deep=True also those of atoms and kernels, such as loss__width."""
        params = super().get_params(deep=deep)
        for name, value in list(params.items()) if deep else ():
            for parameter in design.parameters_of(value):
                params[f"{name}__{parameter}"] = getattr(value, parameter)
        return params

    def set_params(self, **params: Any) -> Any:
        """Set parameters; for instance loss__width=0.1 replaces the loss by one with width 0.1."""
        nested = {key: params.pop(key) for key in list(params) if "__" in key}
        super().set_params(**params)
        for key, value in nested.items():
            name, _, parameter = key.partition("__")
            check_known(name, "a parameter", self.get_params(deep=False))
            old = getattr(self, name)
            if isinstance(old, str):
                old = kernels.resolve(old) if name == "kernel" else design.as_atom(old, name)
            known = design.parameters_of(old)
            if parameter not in known:
                must = f"a parameter of {name!r} must be one of {known}"
                raise InvalidInputError(must, repr(parameter), f"{old!r} has no other parameters")
            setattr(self, name, replace(old, **{parameter: value}))
        return self

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.pairwise = self._pairwise()
        return tags


class NeutralClassifier(ClassifierMixin, NeutralModel):
    """Base class of the neutral classifiers: fit, predict, explain, save."""

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
        viewpoint = design.as_viewpoint(viewpoint, sensitive_features)
        target = None if self._limits_scores else target_of(self)
        weights = self.weights if isinstance(self.weights, str) else type(self.weights).__name__
        check_known(weights, "'weights'", neutrality_weights.NAMES)
        self._forget()
        if is_lazy(X):
            if self._limits_scores or self.quantiles is not None:
                got = f"measure={self.measure!r}, quantiles={self.quantiles!r}"
                raise InvalidInputError("a limit on scores needs rows in memory", got, "Do not use chunks")
            self._fit_chunks(as_chunks(X, y, viewpoint, sample_weight), target)
        else:
            rows = self._training_rows(X, y, viewpoint, sample_weight, centre=self._limits_scores)
            self._fit_rows(*rows, target)
        if self.collapse_ is not None:
            advice = "Try class_weight='balanced', or a smaller eta or lam."
            warnings.warn(f"{self.collapse_} {advice}", NearlyConstantWarning, stacklevel=2)
        return self

    def _fit_rows(self, rows: TrainingRows, places: Ints, target: Target | None) -> None:
        """Fit on rows in memory, which have the indices `places` among the rows given to `fit`.

        `target` has the limit and the options of the search, if decisions have a limit.
        """
        self._features = None
        learned = rows_to_learn_from(rows, target)  # class weights and kernel width exclude the hold-out
        class_weight = self._class_weights(rows.codes[learned], rows.sample_weight[learned])
        rows = replace(rows, risk_weight=rows.sample_weight * class_weight[rows.codes])
        learning = rows.at(learned)
        self._set_kernel(learning.X, learning.sample_weight, float(learning.sample_weight.sum()))
        positives = [1] if len(self.classes_) == 2 else list(range(len(self.classes_)))
        found: list[Neutralized] = []
        pool, solutions = SolverPool(self.solver, self.verbose), list[Solution]()
        if self._limits_scores:
            solutions = [score_limits.of_classifier(self, learning, pool)]
        elif target is None:
            problem = None
            for k in positives:
                problem = self._problem(rows, k, problem)
                solutions.append(design.solved(problem, self.tol, pool))
        else:
            found, promise = neutralized(self, rows, positives, target, learned)
            solutions = [one.solution for one in found]
            if promise is not None:
                self.promise_ = promise
        self._keep(learning, places[learned], solutions, found)

    def _codes(self, y: Array, s: Floats) -> Array:
        count = len(distinct(as_values(y, len(y), "y", "label"), "y", "labels"))
        fractions = y.dtype.kind == "f" and np.mod(y, 1).any()  # scikit-learn refuses these
        if count > max(2, len(y) / 2) and not fractions:
            got = f"{count} different values in {len(y)} rows"
            do = "Pass classes, or compare numbers with a threshold, as in y > threshold"
            raise InvalidInputError("'y' must hold classes, each in several rows", got, do)
        try:
            check_classification_targets(y)
        except ValueError as error:
            must = "'y' must hold classes: words, or integers of at most 64 bits"
            got, do = str(error).partition(".")[0], "Code the classes as such"
            if fractions:
                got, do = "continuous numbers", "Use NeutralRegressor, or y > threshold"
            raise InvalidInputError(must, got, do) from None
        self.classes_ = np.unique(y[s > 0])
        if len(self.classes_) < 2:
            must = "'y' must hold at least two classes"
            got = f"one class among the rows with positive weight: {self.classes_.tolist()[0]!r}"
            raise InvalidInputError(must, got, "Add rows of another class")
        return np.searchsorted(self.classes_, y)

    def _fit_chunks(self, chunks: Any, target: Target | None) -> None:
        """Fit a linear binary classifier in a few passes over the chunks."""
        coding = chunks.coding(groups=True)
        sample = coding.coded(chunks.census.sample)
        self.dropped_columns_, self.n_features_in_ = (), sample.X.shape[1]
        self._features, self.classes_ = chunks.features, coding.classes
        totals = chunks.census.counts[""]["weight"].groupby("label").sum()[coding.classes].to_numpy()
        class_weight = self._class_weights(np.arange(2), totals)
        self._set_kernel(sample.X, sample.sample_weight, coding.total)
        if self.kernel_ is not None or self.confidence is not None:
            must = "a classifier on chunks must be linear, with confidence=None"
            kernel = self.kernel_ is not None
            got = f"kernel={self.kernel!r}" if kernel else f"confidence={self.confidence!r}"
            raise InvalidInputError(must, got, "Remove this option, or use rows in memory")
        objective = self._objective(dict.fromkeys(coding.groups, self.weights))
        negative, positive = class_weight.tolist()
        options = {"intercept": bool(self.fit_intercept), "groups": True, "weighted": True}
        problem = bind_chunks(objective, chunks, class_weight=(negative, positive), **options)
        self.groups_ = dict(problem.groups)
        found = []
        if target is None:
            solution = problem.solve(self.solver, self.tol, verbose=self.verbose)
        else:
            wanted = {name: getattr(target, name) for name in ("surrogate", "prefer", "keep", "verbose")}
            found = [problem.neutralize(target.limit, target.measure, tol=target.tol, **wanted)]
            solution = found[0].solution
        codes, weight = (sample.y > 0).astype(int), sample.sample_weight
        rows = TrainingRows(sample.X, codes, sample.viewpoints, weight, weight * class_weight[codes])
        self._keep(rows, np.zeros(0, dtype=int), [solution], found)

    def _class_weights(self, codes: Array, s: Array) -> Array:
        """Store the class weights, and return one weight per class, (number of classes,).

        `codes` are the class indices of the rows and `s` their sample weights. "balanced" uses the total
        sample weight of each class in place of its number of rows.
        """
        given, classes = self.class_weight, self.classes_
        self.class_weight_ = {}
        if given is None:
            return np.ones(len(classes))
        if isinstance(given, str):
            check_known(given, "'class_weight'", ["balanced"], "Use it, a dict or None")
            totals = np.bincount(codes, weights=s, minlength=len(classes))
            weights = totals.sum() / (len(classes) * totals)
        else:
            with integers_that_fit("class_weight"):
                weights = compute_class_weight(given, classes=classes, y=classes[codes]).astype(float)
        self.class_weight_ = dict(zip(classes.tolist(), weights.tolist(), strict=True))
        return weights

    # --- fitted attributes -----------------------------------------------------------------------------

    def _keep(
        self, rows: TrainingRows, places: Ints, solutions: list[Solution], found: list[Neutralized]
    ) -> None:
        """Set the fitted attributes; of the training rows, only support vectors are stored.

        Parameters
        ----------
        rows : TrainingRows
            The rows used for training; for chunks, a sample of them.
        places : array of int
            Indices of these rows in the training set; empty for chunks.
        solutions : list of Solution
            One per binary problem.
        found : list of Neutralized
            If a limit was given, the result of the search for each binary problem; otherwise empty.
        """
        weights = Target(self.limit, self.measure).metric.weights if found else (self.weights,)
        self._keep_solutions(rows, places, solutions, weights)
        if found:
            self.eta_ = [one.eta for one in found] if len(found) > 1 else found[0].eta
            self.neutrality_ = max((one.value for one in found), key=abs)
            labels = self.classes_[-len(found) :]
            traces = [one.trace.assign(label=label) for label, one in zip(labels, found, strict=True)]
            self.trace_ = pd.concat(traces, ignore_index=True)
        known = len(places) and not self._limits_scores
        self._facts = [self._facts_of(solution, rows) if known else {} for solution in solutions]
        self.collapse_ = self._collapse(rows, solutions, bool(len(places)))

    def _collapse(self, rows: TrainingRows, solutions: list[Solution], in_memory: bool) -> str | None:
        """Return a warning if the model is nearly constant or its positive rate collapsed, else None.

        `nerm.neutralize.target` defines both conditions. The condition on the positive rate needs all rows in
        memory.
        """
        problem = solutions[0].problem

        def plain() -> Floats | None:
            terms = tuple(t for t in problem.objective.terms if not isinstance(t.term, Neutrality))
            solution = with_terms(problem, Objective(terms)).solve(self.solver, self.tol)
            return None if solution.status is Status.FAILED else solution.training_scores()

        if in_memory:
            scores = np.column_stack([solution.training_scores() for solution in solutions])
        else:
            scores = np.column_stack([solution.decision_function(rows.X) for solution in solutions])
        views = rows.viewpoints.items()
        groups = {f"{name} {side:+d}": sign(v) == side for name, v in views for side in (1, -1)}
        return collapse(
            scores if len(solutions) > 1 else scores[:, 0],
            rows.codes,
            [f"class {label!r}" for label in self.classes_.tolist()],
            groups,
            plain=plain if in_memory and problem.etas.any() else None,
            weight=rows.sample_weight,
            risk_weight=rows.risk_weight,
        )

    def _facts_of(self, solution: Solution, rows: TrainingRows) -> dict[str, Any]:
        """Return the facts for `nerm.bounds.guarantee`, one entry per viewpoint.

        If the model without neutrality was within the limit, the solution has no neutrality term. Then terms
        of weight eta = 0 are added first.
        """
        problem = solution.problem
        if not len(problem.etas):
            named = self._objective(dict.fromkeys(rows.viewpoints, self.weights))
            objective = problem.objective
            for t in named.terms[2:]:
                objective += 0.0 * t.term
            solution = replace(solution, problem=with_terms(problem, objective))
        gamma = self.gamma if isinstance(self.kernel, str) else getattr(self.kernel, "gamma", None)
        learned = ("the kernel's width",) if gamma == "scale" and hasattr(self.kernel_, "gamma") else ()
        terms = [t.term for t in solution.problem.objective.terms if isinstance(t.term, Neutrality)]
        names = dict.fromkeys(viewpoint_of(term, solution.problem.viewpoints) for term in terms)
        return {name: replace(solution.fit_facts(name), learned=learned) for name in names}

    # --- prediction -------------------------------------------------------------------------------

    def decision_function(self, X: Any) -> Array:
        """Return the scores f(x) of the rows of X, an (n, d) matrix.

        The shape is (n,) for two classes and (n, number of classes) for more. With a precomputed kernel, X
        contains the values k(x, x_i) for all training rows x_i and is (n, number of training rows).
        """
        check_is_fitted(self, "solutions_")
        if is_lazy(X):
            return lazily(X, self.decision_function, float, self._features)
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

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
        """Return the accuracy on (X, y).

        Raise an error if y contains a label not seen in fit.
        """
        check_is_fitted(self, "solutions_")
        unknown = np.flatnonzero(~np.isin(np.ravel(y), self.classes_))
        if len(unknown):
            shown = ", ".join(map(repr, self.classes_.tolist()[:5]))
            do = "Code the labels as in fit, or leave these rows out"
            got = f"{np.ravel(y)[unknown].tolist()[0]!r} at index {unknown[0]}"
            raise InvalidInputError(f"'y' must hold classes seen in fit, {shown}", got, do)
        return float(super().score(X, y, sample_weight=sample_weight))

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
        labels = self.classes_[-len(self.solutions_) :].tolist()
        number = labels.index(_chosen(label, labels, "label", "class"))
        facts = self._facts[number] if hasattr(self, "_facts") else {}
        if not facts:
            got = "a loaded model" if self.solutions_[number].thetas else "a model fitted without a viewpoint"
            must = "a guarantee must be about a model that was fitted with a viewpoint in this session"
            do = "Fit again with viewpoint=... (eta=0 is allowed); files hold no training rows"
            raise InvalidInputError(must, got, do)
        return facts[_chosen(to, list(facts), "to", "viewpoint")]


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
