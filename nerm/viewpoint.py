"""Viewpoints v_i = g(x_i): their sources, and the coding of groups as numbers.

A viewpoint is an array; a column of X (its name, its position, or `Column`, which can also drop it from X); a
callable g; a fitted estimator (its decision function); or `Learned`, an estimator together with the separate
sample to fit it on.

Every function of nerm that is given a viewpoint reads it here, in one way. Two different values (numbers,
booleans or strings) are two groups and become -1 and +1; the larger value is +1. More than two floats are
real numbers and are used unchanged, as are the values of a callable or an estimator. More than two integers
or strings are groups: an estimator has one neutrality term per group (that group against the rest), and every
other function raises an error.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError
from nerm.signs import sign
from nerm.typing import Array, Floats
from nerm.validation import as_pandas, as_values, as_vector, check_order, column_position, distinct

__all__ = ["Column", "Learned", "Viewpoints", "as_numbers", "as_sides", "resolve"]

DEFAULT = "viewpoint"
MOST_VALUES = 50  # the largest number of distinct values that are read as groups
MOST_CODES = 12  # the largest number of distinct integers that are read as groups, and of groups in a table


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
            raise InvalidInputError(must, got, "Add rows with another label")
        return clone(self.estimator).fit(self.X, self.labels)


class Viewpoints(dict[str, Floats]):
    """A dict of viewpoints as numbers: one float vector, (n,), per name.

    Attributes
    ----------
    groups : dict of tuple
        For each viewpoint that was read as two groups, the values that became -1 and +1.

    >>> resolve({"sex": ["m", "f", "m"], "score": [0.5, -1.5, 2.0]}, None, 3).groups
    {'sex': ('f', 'm')}
    """

    def __init__(self, views: Any = (), groups: Any = ()) -> None:
        super().__init__(views)
        self.groups: dict[str, tuple[Any, Any]] = dict(groups)


def shown_groups(groups: Mapping[str, tuple[Any, Any]]) -> str:
    """Return text that says which value is -1 and which is +1; empty if they are -1 and +1 themselves.

    >>> shown_groups({"sex": ("f", "m"), "party": (-1, 1)})
    "sex: 'f' is -1, 'm' is +1"
    """
    named = ((name, pair) for name, pair in groups.items() if pair not in ((), (-1, 1)))
    return "; ".join(f"{name}: {low!r} is -1, {high!r} is +1" for name, (low, high) in named)


def positive_values(name: str, seen: Array, of: str, *, several: bool, real: bool = False) -> dict[str, Any]:
    """Return the value that becomes +1, by the name of each neutrality term of a viewpoint.

    It is None if the viewpoint consists of real numbers, which are used unchanged.

    Parameters
    ----------
    name, of : str
        The name of the viewpoint, and its label in messages.
    seen : array
        The different values, sorted.
    several : bool
        Whether more than two groups become one term per group; otherwise they are an error.
    real : bool
        Whether more than two values are real numbers whatever their type, as for a callable.
    """
    first = seen[:1].tolist()[0]
    if len(seen) == 1 and not several and seen.dtype.kind == "f":
        return {name: None}  # a problem takes a constant number as it is, with a warning
    if len(seen) == 1:
        do = "Every model is neutral to a constant viewpoint: choose another one, or use none"
        raise InvalidInputError(f"{of!r} must take at least two values", f"a single value, {first!r}", do)
    if len(seen) == 2:
        return {name: seen[1]}
    if real or np.array(seen.tolist()).dtype.kind == "f":
        return {name: None}
    if not several:
        must, got = f"{of!r} must hold two groups, or real numbers", f"{len(seen)} values, first {first!r}"
        do = "Compare one group with the rest, as in v == value; if they are numbers, convert them to float"
        raise InvalidInputError(must, got, do)
    most, kind = (MOST_CODES, "integers") if seen.dtype.kind in "iu" else (MOST_VALUES, "values")
    if len(seen) > most:
        must = f"{of!r} must have at most {most} different {kind} to be read as groups"
        do = "Convert it to float if it holds numbers, to str if it names groups, or merge values"
        raise InvalidInputError(must, f"{len(seen)}", do)
    return {f"{name}={value}": value for value in seen.tolist()}


def warn_of_numbers(of: str, v: Floats, stacklevel: int, *, real: bool = False) -> None:
    """Warn if a real-valued viewpoint v, (n,), is constant or if 0 seems to be no meaningful origin of it.

    The second warning is given if no value is negative, if none is positive, or if the mean exceeds the
    standard deviation. If `real`, v comes from a callable or an estimator, so its sign has a meaning, and the
    mean is not checked.
    """
    low, high, mean, spread = float(v.min()), float(v.max()), float(v.mean()), float(v.std())
    if low == high:
        follows = "so that every model is neutral to it and a neutrality term can only cost accuracy"
        text = f"{of!r} is {low:g} in every row, {follows}. Choose another viewpoint, or drop the term."
        warnings.warn(text, UserWarning, stacklevel=stacklevel)
    elif low >= 0 or high <= 0 or (abs(mean) > spread and not real):
        numbers = f"{of!r} is read as real numbers of mean {mean:.4g} and standard deviation {spread:.4g}"
        cure = "Pass v - v.mean() to be neutral to its size, or v > threshold for two groups"
        text = f"{numbers}. It is not centred, so that neutral scores may still follow it. {cure}."
        warnings.warn(text, UserWarning, stacklevel=stacklevel)


def as_numbers(viewpoint: Any, n: int, among: Any = slice(None)) -> Floats:
    """Return one viewpoint as numbers, (n,): two groups as -1 and +1, real numbers unchanged.

    If all values are one integer or boolean, it becomes its sign; this happens in a fold in which only 0
    occurs. `among` are the rows whose values define the groups.

    >>> as_numbers(["m", "f", "m"], 3), as_numbers([0, 1, 1], 3), as_numbers([0.5, -2.0, 3.0], 3)
    (array([ 1., -1.,  1.]), array([-1.,  1.,  1.]), array([ 0.5, -2. ,  3. ]))
    """
    values = as_values(viewpoint, n, DEFAULT)
    seen = distinct(values[among], DEFAULT)
    if len(seen) < 2 and values.dtype.kind in "biuf":
        return values.astype(float) if values.dtype.kind == "f" else sign(values)
    return _coded(values, positive_values(DEFAULT, seen, DEFAULT, several=False)[DEFAULT], DEFAULT)


def as_sides(viewpoint: Any, n: int, among: Any = slice(None)) -> Floats:
    """Return the sign of each row's viewpoint, -1 or +1, (n,).

    Of two groups the larger value has the sign +1.

    >>> as_sides(["m", "f", "m"], 3), as_sides([1, 2, 2], 3), as_sides([0.5, -2.0, 3.0], 3)
    (array([ 1., -1.,  1.]), array([-1.,  1.,  1.]), array([ 1., -1.,  1.]))
    """
    v = as_numbers(viewpoint, n, among)
    sides, seen = sign(v), v[among]
    if (seen != seen[:1]).any() and not seen.min() < 0 < seen.max():  # 0, 1, 2 may be codes of groups
        must = f"{DEFAULT!r} must hold numbers of both signs, or two groups"
        got = f"{len(np.unique(seen))} values, first {seen.min()}"
        raise InvalidInputError(must, got, "Pass v - v.mean(), or v > threshold for two groups")
    return sides


def known_sides(viewpoint: Any, n: int, groups: Any, name: str = DEFAULT) -> Floats:
    """Return the sign of each row's viewpoint, -1 or +1, (n,), for two known groups.

    The groups are known from other rows.

    >>> known_sides(["m", "m"], 2, ("f", "m"))
    array([1., 1.])
    """
    values = as_values(viewpoint, n, name)
    strange = np.flatnonzero((values != groups[0]) & (values != groups[1]))
    if len(strange):
        must = f"{name!r} must hold the groups seen in fit, {groups[0]!r} and {groups[1]!r}"
        got = f"{values[strange].tolist()[0]!r} at index {strange[0]}"
        raise InvalidInputError(must, got, "Code the groups as in fit")
    return _coded(values, groups[1], name)


def resolve(
    viewpoint: Any, X: Any, n: int, known: Any = None, *, several: bool = False, among: Any = slice(None)
) -> Viewpoints:
    """Return every viewpoint by name as a float vector of length n; a single one is called "viewpoint".

    Parameters
    ----------
    viewpoint : array, dict, table, callable, fitted estimator, Column, Learned, str or int
        One viewpoint or several by name. A DataFrame or a two-dimensional array has one viewpoint per column.
    X : array, DataFrame or sparse matrix of shape (n, d)
        The rows, for viewpoints that are functions of them.
    n : int
        The number of rows.
    known : dict of tuple, optional
        The attribute `groups` of a problem. The viewpoint is then read as in that problem: by its two groups,
        or as numbers if it has none.
    several : bool
        Whether more than two integers or strings become one viewpoint per value, as in estimators; otherwise
        they are an error.
    among : index
        The rows whose values define the groups; a value that occurs only in other rows is not a group.

    Examples
    --------
    >>> resolve(lambda X: X[:, 0], np.array([[2.0], [-1.0], [0.5]]), 3)
    {'viewpoint': array([ 2. , -1. ,  0.5])}
    >>> resolve([False, True, True], None, 3)
    {'viewpoint': array([-1.,  1.,  1.])}
    >>> resolve(["a", "b", "c"], None, 3, several=True)
    {'viewpoint=a': array([ 1., -1., -1.]), 'viewpoint=b': array([-1.,  1., -1.]),
     'viewpoint=c': array([-1., -1.,  1.])}
    """
    found = Viewpoints()
    for name, given, label in _by_name(viewpoint):
        if isinstance(given, Column) and given.drop and not several:
            do = "Drop the column from X yourself and pass it as an array; estimators can do it for you"
            raise InvalidInputError("a problem uses all columns of X", f"{given!r}", do)
        check_order(X, given, label)
        values, of = _evaluate(given, X, label)
        columns = {name: values}
        if hasattr(given, "classes_") and np.ndim(values) == 2:
            if not several:
                must, got = f"{label!r} must predict two classes", f"{np.shape(values)[1]} classes"
                raise InvalidInputError(must, f"an estimator with {got}", "Pass one viewpoint per class")
            pairs = zip(given.classes_, np.asarray(values).T, strict=True)
            columns = {f"{name}={value}": column for value, column in pairs}
        real = callable(given) or hasattr(given, "predict")
        for part, column in columns.items():
            values = as_values(column, n, of)
            if known is not None:
                pair = known.get(part)
                found[part] = _coded(values, None, of) if pair is None else known_sides(values, n, pair, of)
                continue
            seen = distinct(values[among], of)
            if len(seen) == 2:
                found.groups[part] = tuple(seen.tolist())
            for term, value in positive_values(part, seen, of, several=several, real=real).items():
                if term in found:
                    must = "neutrality terms must have different names"
                    raise InvalidInputError(must, f"{term!r} twice", "Rename a viewpoint")
                found[term] = _coded(values, value, of)
                if value is None:
                    warn_of_numbers(of, found[term][among], 5 if several else 6, real=real)
    return found


def _coded(values: Array, positive: Any, of: str) -> Floats:
    """Return +1 where a value equals `positive` and -1 elsewhere, (n,).

    If `positive` is None, return the values as numbers.
    """
    return as_vector(values, len(values), of) if positive is None else np.where(values == positive, 1.0, -1.0)


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
    """Return (name, `_as_given`, label in messages) of each viewpoint.

    A table has one per column.
    """
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
