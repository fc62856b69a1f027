"""Viewpoints v_i = g(x_i): their sources, and the coding of groups as numbers.

A viewpoint is an array; a column of X (its name, its position, or `Column`, which can also drop it from X); a
callable g; a fitted estimator (its decision function); or `Learned`, an estimator together with the separate
sample to fit it on.

`resolve` takes numbers. `resolve_terms`, for the estimators, also takes groups: two values become -1 and +1,
more than two become one viewpoint per value (that value against the rest).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError
from nerm.typing import Array, Floats
from nerm.validation import as_pandas, as_vector, check_present, column_position, distinct, flat

__all__ = ["Column", "Learned", "resolve", "resolve_terms"]

DEFAULT = "viewpoint"
MOST_VALUES = 50  # the largest number of distinct values that are read as groups


@dataclass(frozen=True)
class Column:
    """The viewpoint is a column of X, by name (for a DataFrame) or by position.

    Parameters
    ----------
    key : str or int
        The name of the column, or its position.
    drop : bool
        Leave the column out of the features in `fit` and in `predict`; a DataFrame for `predict` need not
        have it. Only estimators support this. A column of strings is always left out.

    Examples
    --------
    >>> Column(1).values(np.array([[0.5, 1.0], [0.7, -1.0]]))
    array([ 1., -1.])
    """

    key: str | int
    drop: bool = False

    def position(self, X: Any) -> int:
        """Return the position of the column in X."""
        columns = getattr(as_pandas(X), "columns", None)
        return column_position(self.key, columns, np.shape(X)[1] if np.ndim(X) == 2 else 0)

    def values(self, X: Any) -> Array:
        """Return the column of X, (n, d), as an array (n,) with unchanged values."""
        X = as_pandas(X)
        position = self.position(X)
        if hasattr(X, "iloc"):
            return np.asarray(X.iloc[:, position])
        if sp.issparse(X):
            return X.tocsc()[:, [position]].toarray().ravel()
        return np.asarray(X)[:, position]


@dataclass(frozen=True, eq=False)
class Learned:
    """A viewpoint learned by an estimator from a labelled sample other than the training data.

    A clone of the estimator is fitted on (X, labels); g is its decision function. In the paper, for example,
    the political party of readers is predicted from their clicks.

    Parameters
    ----------
    estimator : scikit-learn classifier
        Not fitted.
    X, labels : array-like
        The sample.

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> readers, party = np.array([[0.0], [1.0], [2.0], [3.0]]), ["left", "left", "right", "right"]
    >>> Learned(LogisticRegression(), readers, party).fitted().predict([[5.0]]).tolist()
    ['right']
    """

    estimator: Any
    X: Any
    labels: Any

    def fitted(self) -> Any:
        """Return a fitted clone of the estimator."""
        from sklearn.base import clone

        _as_given(self.estimator, "estimator")  # refuses a class
        if len(np.unique(np.asarray(self.labels))) < 2:
            must = "the labels of a learned viewpoint must take at least two values"
            got = f"{np.asarray(self.labels).ravel()[:1].tolist()} only"
            raise InvalidInputError(must, got, "Label rows of both kinds")
        return clone(self.estimator).fit(self.X, self.labels)


def resolve(viewpoint: Any, X: Any, n: int) -> dict[str, Floats]:
    """Return every viewpoint by name as a float vector of length n; a single one is called "viewpoint".

    Parameters
    ----------
    viewpoint : array, dict, callable, fitted estimator, Column, Learned, str or int
        One viewpoint or several by name.
    X : array, DataFrame or sparse matrix of shape (n, d)
        The rows, for viewpoints that are functions of them.
    n : int
        The number of rows.

    Examples
    --------
    >>> resolve(lambda X: X[:, 0], np.array([[2.0], [-1.0]]), 2)
    {'viewpoint': array([ 2., -1.])}
    """
    resolved = {}
    for name, given, label in _by_name(viewpoint):
        if isinstance(given, Column) and given.drop:
            do = "Drop the column from X yourself and pass it as an array; estimators can do it for you"
            raise InvalidInputError("a problem uses all columns of X", f"{given!r}", do)
        values, of = _evaluate(given, X, label)
        if hasattr(given, "predict") and np.ndim(values) == 2:
            must, got = f"{label!r} must predict two classes", f"{np.shape(values)[1]} classes"
            raise InvalidInputError(must, f"an estimator with {got}", "Pass one viewpoint per class")
        resolved[name] = as_vector(values, n, of)
    return resolved


def resolve_terms(viewpoint: Any, X: Any, n: int, among: Any = slice(None)) -> dict[str, Floats]:
    """Return the viewpoints of an estimator's neutrality terms by name, each a float vector of length n.

    Strings, booleans, categories and integers are groups; so is any array of two different values. Two groups
    become -1 and +1 (the larger value is +1), more become one viewpoint per value. Other real numbers, and
    the values of a callable or an estimator, are used as they are. A DataFrame or a two-dimensional array
    has one viewpoint per column.

    Parameters
    ----------
    viewpoint, X, n
        As for `resolve`.
    among : index
        The rows whose values define the groups; a value that occurs only in other rows is not a group.

    Examples
    --------
    >>> resolve_terms(["a", "b", "c"], None, 3)
    {'viewpoint=a': array([ 1., -1., -1.]), 'viewpoint=b': array([-1.,  1., -1.]),
     'viewpoint=c': array([-1., -1.,  1.])}
    >>> resolve_terms([0, 1, 1], None, 3), resolve_terms([0.5, -1.5, 2.0], None, 3)
    ({'viewpoint': array([-1.,  1.,  1.])}, {'viewpoint': array([ 0.5, -1.5,  2. ])})
    """
    terms: dict[str, Floats] = {}
    for name, given, label in _by_name(viewpoint):
        values, of = _evaluate(given, X, label)
        if not callable(given) and not hasattr(given, "predict"):
            found = _groups(name, np.asarray(values), n, of, among)
        elif hasattr(given, "classes_") and np.ndim(values) == 2:
            columns = zip(given.classes_, np.asarray(values).T, strict=True)
            found = {f"{name}={value}": as_vector(column, n, of) for value, column in columns}
        else:
            found = {name: as_vector(values, n, of)}
        if twice := sorted(found.keys() & terms.keys()):
            must = "neutrality terms must have different names"
            raise InvalidInputError(must, f"{twice[0]!r} twice", "Rename a viewpoint")
        terms.update(found)
    for name, v in terms.items():
        seen = v[among]
        if (seen == seen[0]).all():
            shown = f"{seen[0]:g}" if v.dtype.kind == "f" else repr(seen[:1].tolist()[0])
            must = f"{name!r} must take at least two values"
            do = "A constant viewpoint says nothing about neutrality: choose another or fit without one"
            raise InvalidInputError(must, f"{shown} in each of the {len(seen)} rows", do)
    return terms


def dropped_columns(viewpoint: Any, X: Any) -> tuple[int, ...]:
    """Return the positions of the viewpoint columns that are left out of X.

    These are the columns with ``drop=True`` and the columns of strings.
    """
    given = viewpoint.values() if isinstance(viewpoint, Mapping) else [viewpoint]
    columns = [_as_given(g, DEFAULT) for g in given if isinstance(g, Column | str | int | np.integer)]
    return tuple(sorted({c.position(X) for c in columns if c.drop or _holds_words(c.values(X))}))


def _holds_words(values: Array) -> bool:
    return values.dtype.kind in "US" or (values.dtype.kind == "O" and any(isinstance(v, str) for v in values))


def _by_name(viewpoint: Any) -> list[tuple[str, Any, str]]:
    """Return (name, `_as_given`, label in messages) of each viewpoint; a table has one per column."""
    if viewpoint is None:
        return []
    table = len(getattr(viewpoint, "shape", ())) == 2 and viewpoint.shape[1] > 1
    if isinstance(viewpoint, Mapping) or (table and hasattr(viewpoint, "iloc")):
        pairs = list(viewpoint.items())
    elif table:
        pairs = [(f"{DEFAULT} {j}", column) for j, column in enumerate(np.asarray(viewpoint).T)]
    else:
        given = _as_given(viewpoint, DEFAULT)
        named = isinstance(given, Column) and isinstance(given.key, str)
        return [(given.key if named else DEFAULT, given, DEFAULT)]
    if not pairs:
        must = "'viewpoint' must name at least one viewpoint"
        raise InvalidInputError(must, "an empty dict", "Pass None instead")
    labelled = [(str(name), given, f"{DEFAULT}[{name!r}]") for name, given in pairs]
    return [(name, _as_given(given, label), label) for name, given, label in labelled]


def _as_given(given: Any, label: str) -> Any:
    """Convert a name or number to a `Column` and a `Learned` to its fitted estimator; keep anything else."""
    if isinstance(given, type):
        must = f"{label!r} must be an array, a callable or a fitted estimator"
        raise InvalidInputError(must, f"the class {given.__name__}", "Make an instance and fit it")
    if isinstance(given, bool):
        must = f"{label!r} must be an array or a column"
        raise InvalidInputError(must, repr(given), "Pass one value per row")
    if isinstance(given, str | int | np.integer):
        return Column(given if isinstance(given, str) else int(given))
    return given.fitted() if isinstance(given, Learned) else given


def _evaluate(given: Any, X: Any, label: str) -> tuple[Any, str]:
    """Return the values of one viewpoint and their label in messages."""
    if isinstance(given, Column):
        return given.values(X), f"X[{given.key!r}]"
    if hasattr(given, "predict"):
        return _estimated(given, X, label), label
    return (given(X), f"{label}(X)") if callable(given) else (given, label)


def _estimated(estimator: Any, X: Any, name: str) -> Floats:
    """Return g(x) of a fitted estimator: its decision function, else 2 P(+1) - 1, else its prediction."""
    from sklearn.exceptions import NotFittedError
    from sklearn.utils.validation import check_is_fitted

    try:
        check_is_fitted(estimator)
    except NotFittedError:
        must = f"{name!r} must be a fitted estimator"
        do = "Call its fit(X, viewpoint_labels) first, or pass nerm.viewpoint.Learned(estimator, X, labels)"
        raise InvalidInputError(must, f"{type(estimator).__name__} that is not fitted", do) from None
    if hasattr(estimator, "decision_function"):
        return np.asarray(estimator.decision_function(X))
    if hasattr(estimator, "predict_proba"):
        probabilities = np.asarray(estimator.predict_proba(X))
        return 2 * (probabilities[:, 1] if probabilities.shape[1] == 2 else probabilities) - 1
    return np.asarray(estimator.predict(X))


def _groups(name: str, values: Array, n: int, of: str, among: Any) -> dict[str, Floats]:
    """Return the viewpoints of an array: numbers, two groups as -1/+1, or one viewpoint per group."""
    values = flat(values, n, of, f"entry for each of the {n} rows")
    check_present(values, of)
    if values.dtype.kind == "f":
        values = as_vector(values, n, of)
    seen = distinct(values[among], of)
    if len(seen) == 2:
        return {name: np.where(values == seen[1], 1.0, -1.0)}
    if len(seen) == 1 or values.dtype.kind == "f":
        return {name: values}
    if len(seen) > MOST_VALUES:
        must = f"{of!r} must have at most {MOST_VALUES} different values to be read as groups"
        do = "Convert it to float to use it as a real-valued viewpoint, or merge values"
        raise InvalidInputError(must, f"{len(seen)}", do)
    return {f"{name}={value}": np.where(values == value, 1.0, -1.0) for value in seen.tolist()}
