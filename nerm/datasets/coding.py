"""The paper's codings of tables: `Discretize` makes nominal codes, `OneHot` makes 0/1 columns."""

from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin
from sklearn.pipeline import make_pipeline
from sklearn.utils.validation import check_is_fitted, validate_data

from nerm.errors import InvalidInputError
from nerm.splitting import as_count
from nerm.typing import Array, Floats, Ints
from nerm.validation import as_nonnegative, check_known


@dataclass(frozen=True)
class Levels:
    """The values of one attribute, and their 0/1 columns.

    An attribute with two values has one column, which is 1 for the second value. Otherwise each value has a
    column.

    Attributes
    ----------
    values
        The values, in the order of their columns.

    Examples
    --------
    >>> levels = Levels(("a", "b", "c"))
    >>> codes = levels.codes(["c", None, "a"])
    >>> codes.tolist(), levels.matrix(codes).toarray().tolist()
    ([2, -1, 0], [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0], [1.0, 0.0, 0.0]])
    """

    values: tuple[Any, ...]

    @classmethod
    def seen(cls, series: Any) -> Self:
        """Return the levels that occur in a series, in category order if it is categorical, else sorted."""
        present = series.dropna().unique()
        if series.dtype.name == "category":
            return cls(tuple(value for value in series.cat.categories if value in present))
        return cls(tuple(sorted(present.tolist(), key=lambda v: (isinstance(v, str), v))))

    @property
    def shown(self) -> tuple[Any, ...]:
        """The values that have a column; if there are two values, only the second."""
        return self.values[1:] if len(self.values) == 2 else self.values

    def codes(self, column: Any) -> Ints:
        """Return the index of each entry in `values`, (n,); -1 if it is missing or not in `values`."""
        values, column = pd.Index(self.values), pd.Series(column)
        if not values.dtype.kind == column.dtype.kind == "f":  # float lookup is ten times as fast
            values, column = values.astype(object), column.astype(object)
        return np.asarray(values.get_indexer(column))

    def matrix(self, codes: Ints, unknown: float = 0.0) -> Any:
        """Return the 0/1 columns of coded entries as a CSR matrix, (n, number of columns).

        Parameters
        ----------
        codes
            The codes that the method `codes` returns; -1 stands for a missing or unknown value.
        unknown
            The entry for code -1 in the one column of an attribute with two values, where 0 would mean the
            first value. In all other attributes a row with code -1 is all zeros.
        """
        if len(self.values) == 2:
            return sp.csr_matrix(np.where(codes < 0, unknown, codes).astype(float)[:, None])
        rows = np.flatnonzero(codes >= 0)
        return sp.csr_matrix((np.ones(len(rows)), (rows, codes[rows])), shape=(len(codes), len(self.values)))


POOL = "Pool"


def as_frame(X: Any) -> Any:
    """Return X as a DataFrame.

    The columns of an array are named x0, x1, … and get their own types.
    """
    values = X if isinstance(X, pd.DataFrame) else np.asarray(X)
    if values.ndim != 2 or 0 in values.shape:
        must = "'X' must be a dense table with at least one row and one column"
        got = f"a {type(X).__name__} of shape {np.shape(X)}"
        raise InvalidInputError(must, got, "Pass a DataFrame or a two-dimensional array")
    if isinstance(values, pd.DataFrame):
        return values
    frame = pd.DataFrame(values, columns=[f"x{j}" for j in range(values.shape[1])])
    return frame.infer_objects() if values.dtype == object else frame


class TableTransformer(TransformerMixin, BaseEstimator):
    """Base class of transformers that accept only tables with the columns seen in fit."""

    def _frame(self, X: Any, fit: bool = False) -> Any:
        """Return X as a DataFrame.

        Raise an error unless it has the columns seen in fit, in that order.
        """
        if not fit:
            check_is_fitted(self)
        frame = as_frame(X)
        validate_data(self, X, reset=fit, skip_check_array=True)
        return frame


class Discretize(OneToOneFeatureMixin, TableTransformer):
    """Turn a mixed table into nominal codes, as Calders and Verwer (2010) did.

    A numeric attribute with n values that are not missing is cut at ``sorted[floor(n k / n_bins)]``,
    k = 1 .. n_bins - 1. A value x belongs to the first bin with x <= cut, and empty bins are removed. Then,
    in every attribute, all values seen at most ``pool_at_most`` times are replaced by one value, ``Pool``.
    ``?``, None and NaN are missing values and stay missing.

    Cut points and kept values are learned in ``fit``. To avoid leakage, fit on the training fold. The paper
    used all rows, and so does ``load(name, coding="nominal")``. A value not seen in fit is treated as a rare
    one: it is coded as ``Pool`` if the attribute has that value, and as missing otherwise.

    Parameters
    ----------
    n_bins
        The maximal number of bins of a numeric attribute.
    pool_at_most
        Values seen at most this many times are pooled; 0 pools nothing.
    output
        ``"codes"`` (floats 0, 1, …, NaN = missing) or ``"categories"`` (pandas categories with their labels,
        which give ``OneHot`` readable column names).

    Attributes
    ----------
    ``cuts_``
        The distinct cut points of each numeric attribute, by its name.
    ``categories_``
        For each attribute, by its name, the list of labels; code k means label k.

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"age": [20, 30, 40, 50], "job": ["a", "b", "?", "b"]})
    >>> discretize = Discretize(n_bins=2, pool_at_most=0).fit(table)
    >>> discretize.categories_
    {'age': ['<= 40', '> 40'], 'job': ['a', 'b']}
    >>> discretize.transform(table)["job"].tolist()
    [0.0, 1.0, nan, 1.0]
    """

    def __init__(self, n_bins: int = 4, pool_at_most: int = 50, output: str = "codes") -> None:
        self.n_bins = n_bins
        self.pool_at_most = pool_at_most
        self.output = output

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the cut points, and the values that are not pooled."""
        check_known(self.output, "'output'", ("codes", "categories"))
        as_count(self.n_bins, "n_bins", do="Use 4, as the paper")
        as_nonnegative(self.pool_at_most, "pool_at_most")
        frame = self._frame(X, fit=True)
        self.cuts_: dict[str, Floats] = {}
        self.categories_: dict[str, list[str]] = {}
        self._levels: dict[str, Levels] = {}
        for column, series in frame.items():
            bins = None
            if pd.api.types.is_numeric_dtype(series) and not pd.api.types.is_bool_dtype(series):
                self.cuts_[column] = _cuts(series.to_numpy(dtype=float), self.n_bins)
                bins = _bin_labels(self.cuts_[column])
            values = self._values(series)
            seen, counts = Levels.seen(values).values, values.value_counts()
            kept = tuple(value for value in seen if counts[value] > self.pool_at_most)
            labels = [str(value) if bins is None else bins[int(value)] for value in kept]
            if len(kept) < len(seen):
                labels.append(POOL)
            self._levels[column], self.categories_[column] = Levels(kept), labels
        return self

    def transform(self, X: Any) -> Any:
        """Return X as a DataFrame of codes, or of categories if ``output="categories"``."""
        frame = self._frame(X)
        columns = {}
        for column in frame.columns:
            values = self._values(frame[column])
            codes, categories = self._levels[column].codes(values), self.categories_[column]
            if POOL in categories:
                codes[(codes < 0) & values.notna()] = categories.index(POOL)
            if self.output == "categories":
                columns[column] = pd.Categorical.from_codes(codes, categories=categories)
            else:
                columns[column] = np.where(codes < 0, np.nan, codes)
        return pd.DataFrame(columns, index=frame.index, columns=list(frame.columns))

    def _values(self, series: Any) -> Any:
        """Return a column with numbers replaced by the index of their bin, and missing values by NaN."""
        known = series.notna() & (series != "?")
        if series.name not in self.cuts_:
            return series.astype(object).where(known, np.nan)
        numbers = pd.to_numeric(series, errors="coerce").to_numpy(dtype=float)
        strange = np.flatnonzero(known & np.isnan(numbers))
        if len(strange):
            must = f"Column {series.name!r} must be numeric, as in fit"
            got = f"{series.iloc[strange[0]]!r} at row {strange[0]}"
            raise InvalidInputError(must, got, "Correct the value, or mark it as missing with '?' or NaN")
        return pd.Series(np.searchsorted(self.cuts_[series.name], numbers), series.index, float).where(known)


def _cuts(numbers: Floats, n_bins: int) -> Floats:
    """Return the distinct cuts ``sorted[floor(n k / n_bins)]`` that are below the largest number."""
    present = np.sort(numbers[~np.isnan(numbers)])
    if present.size == 0:
        return present
    at = [present.size * k // n_bins for k in range(1, n_bins)]
    cuts = np.unique(present[at])
    return np.asarray(cuts[cuts < present[-1]])


def _bin_labels(cuts: Floats) -> list[str]:
    """Return the labels of the bins, which state their limits."""
    if cuts.size == 0:
        return ["any"]
    limits = [f"{cut:.10g}" for cut in cuts]
    return [f"<= {limits[0]}", *(f"({low}, {high}]" for low, high in pairwise(limits)), f"> {limits[-1]}"]


class OneHot(TableTransformer):
    """Code a nominal table as a CSR matrix of zeros and ones, (n, number of columns).

    The table contains codes or pandas categories. An attribute with two values gives one column (1 for the
    second value); any other attribute gives one column per value. A missing entry, and a value not seen in
    fit, is coded as zeros.

    Attributes
    ----------
    ``levels_``
        The `Levels` of each attribute, by its name.

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

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the values of each attribute.

        Parameters
        ----------
        X
            The table, a DataFrame or an array (n, attributes).
        y
            Not used.
        """
        frame = self._frame(X, fit=True)
        self.levels_ = {column: Levels.seen(frame[column]) for column in frame.columns}
        if not any(levels.values for levels in self.levels_.values()):
            must = "'X' must have a value that is not missing"
            raise InvalidInputError(must, "only missing entries", "Check the table")
        return self

    def transform(self, X: Any) -> Any:
        """Return X as a CSR matrix of zeros and ones, (n, number of columns).

        Parameters
        ----------
        X
            A table with the attributes seen in fit.
        """
        frame = self._frame(X)
        known = {column: levels for column, levels in self.levels_.items() if levels.values}
        return sp.hstack([levels.matrix(levels.codes(frame[c])) for c, levels in known.items()], format="csr")

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the name ``attribute=value`` of each column.

        Parameters
        ----------
        input_features
            Not used: the names are those seen in fit.
        """
        check_is_fitted(self)
        names = [f"{c}={_show(v)}" for c, levels in self.levels_.items() for v in levels.shown]
        return np.asarray(names, dtype=object)


def _show(value: Any) -> str:
    """Return a value as text; a whole float such as 3.0 becomes "3"."""
    return str(int(value)) if isinstance(value, float) and value.is_integer() else str(value)


def coder_to(coding: str, given: str) -> Any:
    """Return an unfitted pipeline to the coding "nominal" or "one-hot", from a "raw" or "nominal" table."""
    output = "categories" if coding == "one-hot" else "codes"
    discretize = Discretize(output=output) if given == "raw" else "passthrough"
    return make_pipeline(discretize, OneHot() if coding == "one-hot" else "passthrough")
