"""The base class of all baselines, with input checks for two labels and two groups, and L-BFGS."""

import inspect
import warnings
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
import scipy.optimize
import scipy.sparse as sp
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted, validate_data

from nerm.errors import InvalidInputError
from nerm.estimators.design import as_viewpoint
from nerm.typing import Array, Bools, Floats, Matrix
from nerm.validation import as_labels, as_matrix
from nerm.viewpoint import known_sides

ADVICE = "Raise max_iter, scale the features, or raise lam"


class GroupClassifier(ClassifierMixin, BaseEstimator, ABC):
    """A binary classifier that is fitted with a two-valued viewpoint.

    The desired outcome is predicted if and only if the score is positive.

    Attributes
    ----------
    classes_, groups_ : arrays of shape (2,)
        The two labels and the two groups, sorted. The second label is the desired outcome, and the second
        group is the favoured group.
    n_features_in_, feature_names_in_ : int, array
        Number and names of the columns seen in fit; the names only if X was a DataFrame.
    sees_group : bool
        Whether predictions depend on the viewpoint.
    randomised : bool
        Whether the method's predictions are random. If so, ``decision_function`` is the probability of the
        desired outcome minus 1/2. ``predict`` returns the more probable outcome, and can be less neutral than
        the random predictions.
    level : str
        How the method meets a limit on measured neutrality: ``"asked"`` if the limit is a parameter,
        ``"grid"`` if a grid of weights must be searched, ``"none"`` if the method cannot meet a given limit.
    """

    sees_group: ClassVar[bool] = False
    randomised: ClassVar[bool] = False
    level: ClassVar[str] = "grid"

    def fit(self, X: Any, y: Any, *, viewpoint: Any = None, sensitive_features: Any = None) -> Self:
        """Fit the method.

        Parameters
        ----------
        X : array, sparse matrix or DataFrame of shape (n, d)
            Numbers; for naive Bayes a nominal table (codes, strings or categories; NaN and None are missing).
        y, viewpoint : array-like of shape (n,)
            Two values each. The larger label is the desired outcome, the larger group the favoured group.
        sensitive_features : optional
            Alias of `viewpoint`.
        """
        self._fit(X, y, as_viewpoint(viewpoint, sensitive_features))
        return self

    @abstractmethod
    def _fit(self, X: Any, y: Any, viewpoint: Any) -> None:
        """Fit the method; the arguments are those of `fit`."""

    def decision_function(self, X: Any, *, viewpoint: Any = None) -> Floats:
        """Return the scores, (n,), positive for the desired outcome; X is (n, d) and viewpoint (n,)."""
        return self._scores(*self._known(X, viewpoint))

    @abstractmethod
    def _scores(self, rows: Any, favoured: Bools) -> Floats:
        """Return the scores, (n,); the arguments are those that `_known` returns."""

    def predict(self, X: Any, *, viewpoint: Any = None) -> Array:
        """Return the predicted label of each row, (n,): the desired outcome iff its score is positive."""
        scores = self.decision_function(X, viewpoint=viewpoint)
        return self.classes_[(scores > 0).astype(int)]

    def score(self, X: Any, y: Any, *, viewpoint: Any = None, sample_weight: Any = None) -> float:
        """Return the (weighted) accuracy on (X, y)."""
        hits = self.predict(X, viewpoint=viewpoint) == np.asarray(y)
        return float(np.average(hits, weights=sample_weight))

    def _rows(self, X: Any) -> Any:
        """Return the rows of X as the method takes them: a matrix of numbers."""
        return as_matrix(X)

    def _prepare(self, X: Any, y: Any, viewpoint: Any) -> tuple[Any, Bools, Bools]:
        """Store columns, classes and groups of the input of fit; return (rows, positive, favoured).

        `positive` and `favoured` are (n,) masks of the rows with the desired outcome and of the rows of the
        favoured group. Raise an error if a group has no row of one of the classes.
        """
        rows = self._rows(X)
        labels, self.classes_ = as_labels(y, rows.shape[0])
        groups, self.groups_ = as_labels(viewpoint, rows.shape[0], "viewpoint")
        for g, c in np.ndindex(2, 2):
            if not (((groups > 0) == g) & ((labels > 0) == c)).any():
                must = "Each group of 'viewpoint' must have rows of both classes"
                group, label = self.groups_.tolist()[g], self.classes_.tolist()[c]
                do = "Use more rows, stratify the folds by group and class, or leave this viewpoint out"
                raise InvalidInputError(must, f"group {group!r} without a row of class {label!r}", do)
        validate_data(self, X, skip_check_array=True)
        return rows, labels > 0, groups > 0

    def _known(self, X: Any, viewpoint: Any) -> tuple[Any, Bools]:
        """Return the rows at prediction, and a mask of the rows of the favoured group, (n,).

        Raise an error unless the columns and the groups are those seen in fit; one group may be absent. The
        mask of a method that does not see the group is all False.
        """
        self._check_columns(X)
        rows = self._rows(X)
        n = rows.shape[0]
        if not self.sees_group:
            return rows, np.zeros(n, dtype=bool)
        return rows, known_sides(viewpoint, n, self.groups_.tolist()) > 0

    def _check_columns(self, X: Any) -> None:
        check_is_fitted(self)
        validate_data(self, X, reset=False, skip_check_array=True)

    def _conclude(self, converged: bool, residual: str, do: str = ADVICE) -> None:
        """Store whether the fit converged; if not, warn with the text `residual` and the advice `do`."""
        self.converged_ = bool(converged)
        if not converged:
            text = f"{type(self).__name__} did not converge: {residual}. {do}."
            warnings.warn(text, ConvergenceWarning, stacklevel=3)


def base_classifier(estimator: Any) -> Any:
    """Return an unfitted copy of a classifier; logistic regression if it is None."""
    return LogisticRegression(max_iter=1000) if estimator is None else clone(estimator)


def viewpoint_for(function: Callable[..., Any], viewpoint: Any) -> dict[str, Any]:
    """Return {"viewpoint": viewpoint} if the function has this parameter, else {}."""
    return {"viewpoint": viewpoint} if "viewpoint" in inspect.signature(function).parameters else {}


def scores_of(model: Any, X: Any, viewpoint: Any) -> Floats:
    """Return the scores of any fitted classifier, (n,), positive for the desired outcome.

    For a classifier without ``decision_function``, this is the probability minus 1/2.
    """
    by_probability = not hasattr(model, "decision_function")
    score = model.predict_proba if by_probability else model.decision_function
    scores = np.asarray(score(X, **viewpoint_for(score, viewpoint)), dtype=float)
    return scores[:, 1] - 0.5 if by_probability else scores


def dense(X: Matrix) -> Floats:
    """Return X as a dense matrix, for packages that do not accept sparse ones."""
    return X.toarray() if sp.issparse(X) else X


def with_ones(X: Matrix) -> Matrix:
    """Return X with an additional last column of ones, for the intercept."""
    ones = np.ones((X.shape[0], 1))
    return sp.csr_matrix(sp.hstack([X, ones])) if sp.issparse(X) else np.hstack([X, ones])


Total = Callable[[Floats], tuple[float, Floats]]


def lbfgs(total: Total, start: Floats, n: int, tol: float, max_iter: int, memory: int, **options: Any) -> Any:
    """Minimise a sum over n rows by L-BFGS.

    L-BFGS stops if no entry of the (projected) gradient of sum / n exceeds `tol` in absolute value, or after
    `max_iter` iterations.

    Parameters
    ----------
    total
        Function from a point to the sum and its gradient.
    start, memory
        The starting point, and the number of steps that L-BFGS stores.
    options
        Passed to `scipy.optimize.minimize`: ``bounds``.

    Returns
    -------
    scipy.optimize.OptimizeResult
        With the final point ``x`` and the number of iterations ``nit``.
    """

    def mean(point: Floats) -> tuple[float, Floats]:
        value, gradient = total(point)
        return value / n, gradient / n

    limits = {"maxiter": max_iter, "maxfun": 4 * max_iter, "maxcor": memory, "gtol": tol, "ftol": 0.0}
    return scipy.optimize.minimize(mean, start, jac=True, method="L-BFGS-B", options=limits, **options)
