"""One-hot coding of nominal tables, as the paper counts columns."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from nerm.datasets.discretize import as_frame, check_columns
from nerm.errors import InvalidInputError


class OneHot(TransformerMixin, BaseEstimator):
    """Code a nominal table (codes or pandas categories) as a CSR matrix of zeros and ones, (n, columns).

    An attribute with two values takes one column (1 for the second value), any other one column a value. A
    missing entry, and a value not seen in fit, is all zeros.

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
        """Learn the values of each attribute."""
        frame = as_frame(X)
        self.feature_names_in_ = np.asarray(frame.columns, dtype=object)
        self.n_features_in_ = frame.shape[1]
        self.values_: dict[str, list[Any]] = {column: _seen(frame[column]) for column in frame.columns}
        self._shown = {c: values[1:] if len(values) == 2 else values for c, values in self.values_.items()}
        if not any(self._shown.values()):
            raise InvalidInputError(
                "'X' must have a value that is not missing", "only missing entries", "Check the table"
            )
        return self

    def transform(self, X: Any) -> sp.csr_matrix:
        """Return the CSR matrix of X."""
        check_is_fitted(self)
        frame = as_frame(X)
        check_columns(frame.columns, self.feature_names_in_)
        rows, columns, width = [], [], 0
        for column in frame.columns:
            place = {value: width + k for k, value in enumerate(self._shown[column])}
            at = frame[column].astype(object).map(place).to_numpy(dtype=float)
            rows.append(np.flatnonzero(~np.isnan(at)))
            columns.append(at[rows[-1]].astype(np.int32))
            width += len(place)
        row, col = np.concatenate(rows), np.concatenate(columns)
        return sp.csr_matrix((np.ones(len(row)), (row, col)), shape=(len(frame), width))

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Return one ``attribute=value`` a column."""
        check_is_fitted(self)
        return np.asarray(
            [f"{c}={_show(v)}" for c in self.feature_names_in_ for v in self._shown[c]],
            dtype=object,
        )


def _seen(series: Any) -> list[Any]:
    """Return the values that occur: in the order of the categories when there are any, else sorted."""
    present = series[series.notna()]
    if series.dtype.name == "category":
        occurring = set(present.unique())
        return [value for value in series.cat.categories if value in occurring]
    return sorted(present.unique().tolist(), key=lambda v: (isinstance(v, str), v))


def _show(value: Any) -> str:
    """Show a code 3.0 as 3."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)
