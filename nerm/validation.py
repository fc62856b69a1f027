"""Validation of all inputs: each function returns a checked array or raises with one sentence."""

import warnings
from collections.abc import Iterator, Sized
from contextlib import contextmanager
from datetime import date, timedelta
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError
from nerm.errors import check_known as check_known
from nerm.typing import Array, Floats, Ints
from nerm.typing import Matrix as Matrix


def _where(hits: Ints) -> str:
    """Return the place of the first invalid entry and the number of others, as text.

    `hits` has the indices of the invalid entries, one row per entry.
    """
    more = f" (and {len(hits) - 1} more)" if len(hits) > 1 else ""
    return _place(tuple(hits[0].tolist())) + more


def _place(index: tuple[int, ...]) -> str:
    if len(index) == 2:
        return f" at row {index[0]}, column {index[1]}"
    return f" at index {index[0]}" if index else ""


def is_lazy(X: Any) -> bool:
    """Return whether X is a dask collection or `nerm.Chunks`, whose rows are read on demand."""
    return hasattr(type(X), "dask") or hasattr(type(X), "sweep")  # a frame may have a column of that name


def as_pandas(X: Any) -> Any:
    """Convert a polars or pyarrow table to a pandas DataFrame.

    Return anything else unchanged.
    """
    names = getattr(X, "column_names", getattr(X, "columns", None))  # pyarrow, polars
    if hasattr(X, "iloc") or not hasattr(X, "__arrow_c_stream__") or names is None:
        return X
    from pandas import DataFrame

    return DataFrame({name: np.asarray(X[name]) for name in names})


def as_matrix(X: Any, name: str = "X") -> Matrix:
    """Return X as a finite float matrix, dense or CSR, with at least one row and one column."""
    if sp.issparse(X):
        _check_kind(X.dtype, name)
        matrix: Any = sp.csr_matrix(X, dtype=float)
    else:
        matrix = as_floats(X, name, "Encode categories as numbers")
    if matrix.ndim != 2:
        must = f"{name!r} must be two-dimensional, with one row per sample"
        got = "None" if X is None else f"an array of shape {matrix.shape}"
        raise InvalidInputError(must, got, "Reshape it, for instance X.reshape(-1, 1) for a single feature")
    if 0 in matrix.shape:
        must = f"{name!r} must have at least one row and one column"
        raise InvalidInputError(must, f"shape {matrix.shape}", "Check how the data were loaded or filtered")
    check_finite(matrix, name)
    return matrix


def as_floats(values: Any, name: str, do: str) -> Floats:
    """Return real numbers as a float array.

    Raise an error for text, dates, complex or masked entries. `do` says in the error what to do.
    """
    if np.ma.is_masked(values):
        must = f"{name!r} must have no masked entries"
        raise InvalidInputError(must, "a masked array", "Drop or impute these rows")
    try:
        with integers_that_fit(name):
            array = np.asarray(values)
            if array.dtype.kind == "O":
                _check_objects(array, name, do)
            else:
                _check_kind(array.dtype, name, do)
            return array.astype(float, copy=False)
    except InvalidInputError:
        raise
    except (TypeError, ValueError) as error:
        got = f"{type(values).__name__} ({error})"
        raise InvalidInputError(f"{name!r} must be numeric", got, do) from None


@contextmanager
def integers_that_fit(name: str) -> Iterator[None]:
    """Raise a clear error for a Python integer that is too large for a float."""
    try:
        yield
    except OverflowError:
        must = f"{name!r} must be finite"
        raise InvalidInputError(must, "an integer that no float can hold", "Scale it down") from None


def _check_kind(dtype: np.dtype[Any], name: str, do: str = "Convert it to real numbers") -> None:
    if dtype.kind not in "biuf":
        kinds = {"c": "complex numbers", "U": "text", "S": "text", "M": "dates", "m": "durations"}
        raise InvalidInputError(f"{name!r} must hold real numbers", kinds.get(dtype.kind, str(dtype)), do)


def _check_objects(array: Array, name: str, do: str) -> None:
    """Raise an error if an object array holds text, complex or missing entries."""
    for index, item in np.ndenumerate(array):
        if isinstance(item, str | bytes | complex) and not isinstance(item, float):
            raise InvalidInputError(f"{name!r} must hold real numbers", f"{item!r}{_place(index)}", do)
        if item is None or type(item).__name__ in ("NAType", "NaTType"):
            must, do = f"{name!r} must be finite", "Drop or impute these rows"
            if not index:
                must, do = f"{name!r} must be an array of numbers", f"Pass {name}=..."
            raise InvalidInputError(must, f"{item}{_place(index)}", do)


def check_finite(values: Any, name: str, do: str = "Drop or impute these rows") -> None:
    """Raise an error that names the first NaN or infinite entry, if there is one."""
    entries = np.asarray(values.data if sp.issparse(values) else values)
    bad = ~np.isfinite(entries)
    if bad.any():
        hits = np.transpose(values.tocoo().coords)[bad] if sp.issparse(values) else np.argwhere(bad)
        raise InvalidInputError(f"{name!r} must be finite", f"{entries[bad][0]}{_where(hits)}", do)


def as_vector(values: Any, n: int, name: str, of: str = "rows") -> Floats:
    """Return values as a finite float vector of length n."""
    numbers = as_floats(values, name, "Encode it as numbers, for instance -1 and +1")
    vector = flat(numbers, n, name, f"entry for each of the {n} {of}")
    check_finite(vector, name)
    return vector


def as_scores(scores: Any) -> Floats:
    """Return scores of any number of rows, at least one, as a finite float vector."""
    n = int(np.size(scores))
    if n == 0:
        must = "'scores' must have at least one entry"
        raise InvalidInputError(must, "none", "Check how the data were loaded or filtered")
    return as_vector(scores, n, "scores")


def flat(values: Any, n: int, name: str, what: str) -> Array:
    """Return values of any type as an array (n,).

    A matrix with one row or one column is flattened. `what` names one entry in the error.
    """
    if values is None:
        raise InvalidInputError(f"{name!r} must have one {what}", "None", f"Pass {name}=...")
    array = np.asarray(values)
    if array.ndim == 2 and 1 in array.shape:
        array = array.ravel()
    if array.shape != (n,):
        got = f"shape {array.shape}" if array.ndim else type(values).__name__
        raise InvalidInputError(f"{name!r} must have one {what}", got, f"Pass a vector of length {n}")
    return array


def check_present(values: Array, name: str) -> None:
    """Raise an error if an array of objects or dates has missing entries (None, nan, NA, NaT)."""
    if values.dtype.kind in "OM":
        from pandas import isna

        missing = np.asarray(isna(values))
        if missing.any():
            must, got = f"{name!r} must not be missing", f"{values[missing][0]}{_where(np.argwhere(missing))}"
            raise InvalidInputError(must, got, "Drop these rows or give them a value")


def distinct(values: Array, name: str, what: str = "values") -> Array:
    """Return the sorted distinct values; raise an error if they cannot be sorted.

    Warn if two of them are words that differ only by case or blanks.
    """
    try:
        if values.dtype.kind in "biuf" and values.size:
            ends = np.unique([values.min(), values.max()])
            if np.isin(values, ends).all():  # without sorting all values
                return ends
        found = np.unique(values)
    except TypeError:
        must, got = f"{name!r} must hold {what} of one type", f"mixed types, first {values[0]!r}"
        raise InvalidInputError(must, got, f"Use only str or only numbers, and drop missing {what}") from None
    spelled: dict[str, str] = {}
    for word in (str(value) for value in found if isinstance(value, str)):
        other = spelled.setdefault(" ".join(word.casefold().split()), word)
        if other != word:
            text = f"{name!r} holds {other!r} and {word!r}, which are read as two {what}. Merge them if"
            warnings.warn(f"{text} they mean the same.", UserWarning, stacklevel=5)
    return found


def check_order(X: Any, values: Any, name: str) -> None:
    """Raise an error if pandas rows have the index labels of X in another order.

    nerm matches rows by their order, not by their labels.
    """
    both = hasattr(X, "iloc") and hasattr(values, "iloc") and len(values) == len(X)
    if both and not values.index.equals(X.index) and set(values.index) == set(X.index):
        must, got = f"{name!r} must have the rows of X in the same order", "its index in another order"
        raise InvalidInputError(must, got, f"Pass {name}.loc[X.index], or {name}.to_numpy() for this order")


def as_weights(values: Any, n: int, name: str) -> Floats:
    """Return nonnegative weights of length n (all ones for None), not all zero."""
    if values is None:
        return np.ones(n)
    weights = as_floats(values, name, "Pass one nonnegative number per row")
    weights = as_vector(np.full(n, float(weights)) if weights.ndim == 0 else weights, n, name)
    if (weights < 0).any():
        got = f"{weights[weights < 0][0]:g}{_where(np.argwhere(weights < 0))}"
        raise InvalidInputError(f"{name!r} must be nonnegative", got, "Use 0 to leave a row out")
    if not weights.any():
        must, do = f"{name!r} must have a positive entry", "Give some row a positive weight"
        raise InvalidInputError(must, "only zeros", do)
    return weights


def as_values(given: Any, n: int, name: str, what: str = "entry") -> Array:
    """Return labels or groups as an (n,) array.

    Raise an error if they are missing, dates or not scalars.
    """
    if np.ma.is_masked(given):
        raise InvalidInputError(f"{name!r} must have no masked entries", "a masked array", "Drop these rows")
    try:
        array = np.asarray(given.toarray() if sp.issparse(given) else given)
    except ValueError as error:
        must, got = f"{name!r} must be a vector with one {what} per row", f"{type(given).__name__} ({error})"
        raise InvalidInputError(must, got, "Pass a one-dimensional array") from None
    values = flat(None if given is None else array, n, name, f"{what} for each of the {n} rows")
    check_present(values, name)
    kind, first = values.dtype.kind, values[0] if n else None
    got, do = "", "Pass one column of it"
    if kind == "V" or isinstance(first, tuple | list | dict):
        got = f"records with {', '.join(values.dtype.names or ())}".removesuffix(" with ")
    elif kind in "Mm" or isinstance(first, date | timedelta):
        got, do = "dates", f"Compare them with one date, as in {name} < date"
    elif kind == "c":
        got, do = "complex numbers", "Use their real part"
    if got:
        raise InvalidInputError(f"{name!r} must hold classes or real numbers", got, do)
    if kind == "f":
        check_finite(values, name)
    return values


def as_labels(y: Any, n: int, name: str = "y") -> tuple[Floats, Array]:
    """Return the labels as -1 and +1, (n,), and the two original classes in sorted order, (2,).

    The larger of two values is +1; labels -1 and +1 stay as they are.

    >>> as_labels(["no", "yes", "no"], 3)
    (array([-1.,  1., -1.]), array(['no', 'yes'], dtype='<U3'))
    """
    labels = as_values(y, n, name, "label")
    classes = distinct(labels, name, "labels")
    if len(classes) != 2:
        shown = ", ".join(repr(c) for c in classes[:5].tolist()) + (", …" if len(classes) > 5 else "")
        what = "a single class" if len(classes) == 1 else f"{len(classes)} classes"
        do = "Select or merge classes so that two remain"
        raise InvalidInputError(f"{name!r} must hold exactly two classes", f"{what}: {shown}", do)
    return np.where(labels == classes[1], 1.0, -1.0), classes


def as_real(y: Any, n: int, name: str = "y") -> Floats:
    """Return the target of a regression as finite numbers, (n,)."""
    values = as_values(y, n, name, "number")
    return as_vector(values, n, name)


def as_signs(y: Any, n: int) -> Floats:
    """Return labels that are all -1 or +1, (n,)."""
    labels = as_vector(y, n, "y")
    strange = np.flatnonzero(np.abs(labels) != 1.0)
    if len(strange):
        got = f"{labels[strange[0]]:g}{_where(strange[:, None])}"
        do = "Code the favourable class as +1 and the other as -1"
        raise InvalidInputError("'y' must hold -1 and +1 only", got, do)
    return labels


def as_nonnegative(value: Any, name: str, do: str = "Use 0 or a positive number") -> float:
    """Return a finite nonnegative float."""
    return _as_number(value, name, do, "a finite number, at least 0", lambda v: v >= 0)


def as_finite(value: Any, name: str, do: str = "Use a finite number") -> float:
    """Return a finite float."""
    return _as_number(value, name, do, "a finite number", lambda v: True)


def as_positive(value: Any, name: str, do: str = "Use a positive number") -> float:
    """Return a finite positive float."""
    return _as_number(value, name, do, "a finite positive number", lambda v: v > 0)


def _as_number(value: Any, name: str, do: str, what: str, holds: Any) -> float:
    try:
        number = float("nan") if isinstance(value, str | bytes | bool | np.bool_) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = float("nan")
    if not np.isfinite(number) or not holds(number):
        kind = f"{type(value).__name__} " if isinstance(value, Sized) else ""
        huge = isinstance(value, int) and abs(value) >= 10**60  # of many more digits Python prints none
        got = "an integer beyond 10^60" if huge else f"{kind}{repr(value)[:60]}"
        raise InvalidInputError(f"{name!r} must be {what}", got, do)
    return number


def column_position(key: str | int, columns: Any, count: int) -> int:
    """Return the position of one of the `count` columns of X, given by its name or its position."""
    if isinstance(key, str):
        if columns is None:
            must, do = "a column can be named only if X has column names", "Pass a DataFrame, or a position"
            raise InvalidInputError(must, f"{key!r} and an X without names", do)
        names = [str(name) for name in columns]
        check_known(key, "a column of X", names, "Name a column that X has")
        if names.count(key) > 1:
            must = "a column that is named must occur once in X"
            raise InvalidInputError(
                must, f"{key!r} {names.count(key)} times", "Rename one, or pass a position"
            )
        return names.index(key)
    if not -count <= key < count:
        raise InvalidInputError(f"a column must be one of 0 to {count - 1}", f"{key}", "Count from 0")
    return int(key) % count


def own(values: Floats) -> Floats:
    """Return a read-only copy, so that validated data cannot change."""
    copy = np.array(values, dtype=float)
    copy.setflags(write=False)
    return copy
