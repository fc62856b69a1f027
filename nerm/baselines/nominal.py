"""Nominal tables as integer codes, and the naive Bayes log-odds tables on them."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError
from nerm.typing import Array, Bools, Floats, Ints


def columns_of(X: Any) -> list[Any]:
    """Return the columns of a DataFrame or of a two-dimensional array."""
    if sp.issparse(X):
        raise InvalidInputError(
            "'X' must be a dense nominal table (codes or categories)",
            f"a sparse matrix of shape {X.shape}",
            "Pass the nominal coding, not the one-hot one",
        )
    if hasattr(X, "columns"):
        columns = [X.iloc[:, j] for j in range(X.shape[1])]
        shape = X.shape
    else:
        table = np.asarray(X)
        shape = table.shape
        columns = list(table.T) if table.ndim == 2 else []
    if len(shape) != 2 or 0 in shape:
        raise InvalidInputError(
            "'X' must be a table with at least one row and one column",
            f"shape {shape}",
            "Pass a DataFrame or a two-dimensional array of codes",
        )
    return columns


class NominalCodes:
    """The values of each attribute, learnt once; ``codes`` numbers them through all attributes.

    Every attribute j owns ``V_j + 2`` consecutive numbers: its values, then one for values not seen in fit,
    then one for missing entries.
    """

    def __init__(self, X: Any) -> None:
        self.values = [_values(column) for column in columns_of(X)]
        self.sizes = np.array([len(values) for values in self.values])
        self.starts = np.concatenate([[0], np.cumsum(self.sizes + 2)])

    def codes(self, X: Any) -> Ints:
        """Return the n × d matrix of numbers."""
        columns = columns_of(X)
        if len(columns) != len(self.values):
            raise InvalidInputError(
                f"'X' must have the {len(self.values)} columns seen in fit",
                f"{len(columns)} columns",
                "Code the rows as in fit",
            )
        numbered = [
            start + _number(column, values)
            for column, values, start in zip(columns, self.values, self.starts[:-1], strict=True)
        ]
        return np.column_stack(numbered)

    def log_odds(self, codes: Ints, positive: Bools) -> Floats:
        """Return, for each number, what it adds to the log-odds of the positive class.

        ``log P(x_j | 1) - log P(x_j | 0)`` with ``P(x_j | y) = (n(y, x_j) + 1/V_j) / (n_j(y) + 1)``, n_j(y) the rows
        of class y in which attribute j is not missing. An unseen value has n(y, x_j) = 0; a missing entry adds nothing.
        """
        missing = self.starts[1:] - 1
        smooth = np.repeat(1.0 / np.maximum(self.sizes, 1), self.sizes + 2)

        def log_chances(chosen: Bools) -> Floats:
            counts = np.bincount(codes[chosen].ravel(), minlength=int(self.starts[-1]))
            present = np.repeat(chosen.sum() - counts[missing], self.sizes + 2)
            return np.asarray(np.log(counts + smooth) - np.log(present + 1.0))

        odds = log_chances(positive) - log_chances(~positive)
        odds[missing] = 0.0
        return odds


def _is_categorical(column: Any) -> bool:
    return getattr(column.dtype, "name", "") == "category"


def _is_missing(value: Any) -> bool:
    # pandas' NA answers no comparison with True or False
    return value is None or type(value).__name__ == "NAType" or value != value


def _plain(column: Any) -> Array:
    """Return a column as a numpy array: floats for numbers, objects for anything else."""
    array = np.asarray(column)
    return array.astype(float) if array.dtype.kind in "biuf" else array.astype(object)


def _values(column: Any) -> list[Any]:
    """Return the distinct values that occur in a column, in order."""
    if _is_categorical(column):
        occurring = np.unique(column.cat.codes.to_numpy())
        return [column.cat.categories[k] for k in occurring if k >= 0]
    array = _plain(column)
    if array.dtype == float:
        return np.unique(array[~np.isnan(array)]).tolist()
    present = {value for value in array if not _is_missing(value)}
    return sorted(present, key=lambda value: (type(value).__name__, value))


def _number(column: Any, values: list[Any]) -> Ints:
    """Return 0 .. V-1 for known values, V for others and V + 1 for missing entries."""
    unseen, missing = len(values), len(values) + 1
    place = {value: k for k, value in enumerate(values)}
    if _is_categorical(column):
        of_category = [place.get(category, unseen) for category in column.cat.categories]
        return np.array([*of_category, missing])[column.cat.codes.to_numpy()]  # code -1 is the last: missing
    array = _plain(column)
    if array.dtype == float and all(isinstance(value, int | float) for value in values):
        known = np.append(np.asarray(values, dtype=float), np.inf)
        at = np.searchsorted(known[:-1], array)
        numbers = np.where(known[at] == array, at, unseen)
        return np.where(np.isnan(array), missing, numbers)
    return np.array([missing if _is_missing(value) else place.get(value, unseen) for value in array])
