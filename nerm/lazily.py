"""Functions of rows that are not here yet: of dask's arrays and frames, and of `nerm.Chunks`, one chunk at a time."""

from collections.abc import Callable
from typing import Any

from nerm.errors import InvalidInputError


def is_lazy(X: Any) -> bool:
    """Whether X is a dask collection or `nerm.Chunks`."""
    return hasattr(type(X), "dask") or hasattr(type(X), "sweep")  # a frame may have a column of that name


def lazily(
    X: Any,
    function: Callable[[Any], Any],
    dtype: Any,
    features: Callable[[Any], Any] | None = None,
    columns: Any = None,
) -> Any:
    """Return a function of a matrix for rows that are read when they are asked for.

    Parameters
    ----------
    X : dask array, dask DataFrame or Chunks
        The rows.
    function : callable
        From a matrix (m, d) to a vector (m,), or with `columns` to a matrix of these.
    dtype : dtype
        Of that vector.
    features : callable, optional
        From a frame of a table to a matrix, where chunks are tables.
    columns : list, optional
        The names of what the function returns for each row.

    Returns
    -------
    dask array, dask Series or iterator
        Of a DataFrame, a Series with its index; of Chunks, an iterator over one vector a chunk.

    """
    if hasattr(type(X), "sweep"):
        return (function(_matrix(raw, features)) for raw in X.read())
    if not hasattr(type(X), "numblocks"):
        meta = (None, dtype) if columns is None else [(name, dtype) for name in columns]
        return X.map_partitions(_frame, function, dtype, columns, meta=meta)
    X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
    if columns is None:
        return X.map_blocks(function, drop_axis=1, dtype=dtype)
    return X.map_blocks(function, chunks=(X.chunks[0], (len(columns),)), dtype=dtype)


def _matrix(raw: Any, features: Callable[[Any], Any] | None) -> Any:
    if not raw.is_table:
        return raw.X
    if features is None:
        must = "chunks of tables must be predicted by a classifier that was fitted on such chunks"
        raise InvalidInputError(
            must, "one that knows no columns", "Use NeutralSVC().fit(Chunks(...)), for instance"
        )
    return features(raw.X)


def _frame(part: Any, function: Callable[[Any], Any], dtype: Any, columns: Any) -> Any:
    from pandas import DataFrame, Series

    values = function(part.to_numpy(dtype=float)) if len(part) else None
    if columns is not None:
        return DataFrame(values, index=part.index, columns=columns, dtype=dtype)
    return Series([] if values is None else values, index=part.index, dtype=dtype)
