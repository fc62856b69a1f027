"""One-hot coding, of nominal tables as the paper counts columns and of single attributes with given values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nerm.datasets.discretize import as_frame, check_columns
from nerm.errors import InvalidInputError
from nerm.typing import Array, Ints


@dataclass(frozen=True)
class Levels:
    """The values of one attribute: two of them share one column, any other number has a column each.

    Attributes
    ----------
    values
        In the order of their columns.

    Examples
    --------
    >>> levels = Levels(("a", "b", "c"))
    >>> codes = levels.codes(["c", None, "a"])
    >>> codes.tolist(), levels.matrix(codes).toarray().tolist()
    ([2, -1, 0], [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    """

    values: tuple[Any, ...]

    @classmethod
    def seen(cls, series: Any) -> Levels:
        """Return the values that occur: in the order of the categories when there are any, else sorted."""
        present = series.dropna().unique()
        if series.dtype.name == "category":
            return cls(tuple(value for value in series.cat.categories if value in present))
        return cls(tuple(sorted(present.tolist(), key=lambda v: (isinstance(v, str), v))))

    @property
    def shown(self) -> tuple[Any, ...]:
        """The values that have a column: of two only the second, since the first says the same."""
        return self.values[1:] if len(self.values) == 2 else self.values

    def codes(self, column: Any) -> Ints:
        """Return the place of each entry among the values, (n,); -1 for what is missing or none of them."""
        import pandas as pd

        values, column = pd.Index(self.values), pd.Series(column)
        both_numbers = values.dtype.kind == column.dtype.kind == "f"  # looked up some ten times as fast
        return np.asarray(
            values.get_indexer(column) if both_numbers else values.astype(object).get_indexer(column.astype(object))
        )

    def matrix(self, codes: Ints, unknown: float = 0.0) -> Any:
        """Return the CSR matrix of zeros and ones, (n, columns).

        Parameters
        ----------
        codes
            As `codes` returns them. A row with code -1 is all zeros.
        unknown
            What stands in the one column of two values for code -1 instead, since 0 means the first of them.
        """
        if len(self.values) == 2:
            return sp.csr_matrix(np.where(codes < 0, unknown, codes).astype(float)[:, None])
        rows = np.flatnonzero(codes >= 0)
        return sp.csr_matrix((np.ones(len(rows)), (rows, codes[rows])), shape=(len(codes), len(self.values)))


class OneHot(TransformerMixin, BaseEstimator):
    """Code a nominal table (codes or pandas categories) as a CSR matrix of zeros and ones, (n, columns).

    An attribute with two values takes one column (1 for the second value), any other one column a value. A
    missing entry, and a value not seen in fit, is all zeros.

    Attributes
    ----------
    ``levels_``
        The `Levels` of each attribute.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"sex": ["f", "m", "m"], "job": ["a", "b", "c"]}, dtype="category")
    >>> one_hot = OneHot().fit(table)
    >>> one_hot.get_feature_names_out().tolist()
    ['sex=m', 'job=a', 'job=b', 'job=c']
    >>> one_hot.transform(table).toarray()
    array([[0., 1., 0., 0.],
           [1., 0., 1., 0.],
           [1., 0., 0., 1.]])
    """

    def fit(self, X: Any, y: Any = None) -> OneHot:
        """Learn the values of each attribute.

        Parameters
        ----------
        X
            The table, a DataFrame or an array (n, attributes).
        y
            Not used.
        """
        frame = as_frame(X)
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        self.levels_ = {column: Levels.seen(frame[column]) for column in frame.columns}
        if not any(levels.values for levels in self.levels_.values()):
            raise InvalidInputError(
                "'X' must have a value that is not missing", "only missing entries", "Check the table"
            )
        return self

    def transform(self, X: Any) -> Any:
        """Return the CSR matrix of X.

        Parameters
        ----------
        X
            A table with the attributes seen in fit.
        """
        check_is_fitted(self)
        frame = as_frame(X)
        check_columns(frame.columns, self.feature_names_in_)
        known = {column: levels for column, levels in self.levels_.items() if levels.values}
        return sp.hstack([levels.matrix(levels.codes(frame[c])) for c, levels in known.items()], format="csr")

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return one ``attribute=value`` a column.

        Parameters
        ----------
        input_features
            Not used: the names are those seen in fit.
        """
        check_is_fitted(self)
        names = [f"{c}={_show(v)}" for c, levels in self.levels_.items() for v in levels.shown]
        return np.asarray(names, dtype=object)


def _show(value: Any) -> str:
    """Show a code 3.0 as 3."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
