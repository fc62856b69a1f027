"""The pieces of a source of chunks.

A piece is a file, a partition of a dask collection, or the arrays or the callable that yield all chunks. It
yields the same raw chunks in every pass; one task of a pass reads one piece. Pieces are small immutable
objects that can be sent to another machine; the rows are not sent.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
import scipy.sparse as sp

from nerm.errors import InvalidInputError
from nerm.validation import as_vector, flat

KEYS = ("X", "y", "viewpoint", "sample_weight")
OVERHEAD = 400  # bytes per row that a pass needs beside the row itself


@dataclass(frozen=True, eq=False)
class ChunkRows:
    """A chunk of n rows.

    A raw chunk is as it was read. Then it is validated (`nerm.chunks.coding.checked`) and coded as numbers
    (`nerm.chunks.coding`).

    Attributes
    ----------
    X : matrix or DataFrame
        If `is_table`, a DataFrame of strings that is not yet converted to features. Any other DataFrame is a
        matrix with column names.
    y, viewpoints, sample_weight : array, dict of arrays by name, array or None
        Labels, viewpoints, and weights (None for ones).
    name : str
        The name of the chunk in errors.
    is_table : bool
        See X.

    """

    X: Any
    y: Any
    viewpoints: Mapping[str, Any]
    sample_weight: Any
    name: str
    is_table: bool = False

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(np.shape(self.X)[0]) if np.shape(self.X) else 0

    def chunks(self) -> Iterator[ChunkRows]:
        """Yield the chunk itself, because rows in memory are a piece, too."""
        yield self

    def at(self, rows: Any) -> ChunkRows:
        """Return the chunk restricted to the given rows (indices, mask or slice)."""
        X = self.X.iloc[rows] if hasattr(self.X, "iloc") else self.X[rows]
        views = {name: v[rows] for name, v in self.viewpoints.items()}
        weight = None if self.sample_weight is None else self.sample_weight[rows]
        return replace(self, X=X, y=self.y[rows], viewpoints=views, sample_weight=weight)


def row_bytes(X: Any) -> int:
    """Estimate the bytes per row that a pass needs."""
    return OVERHEAD + matrix_bytes(X) // max(X.shape[0], 1)


def matrix_bytes(X: Any) -> int:
    """Return the size in bytes of a DataFrame, or of a matrix of floats."""
    if hasattr(X, "memory_usage"):
        return int(X.memory_usage(index=False, deep=True).sum())
    return int(X.data.nbytes + X.indices.nbytes) if hasattr(X, "indices") else 8 * int(np.size(X))


def as_rows(chunk: Any, name: str) -> ChunkRows:
    """Convert (X, y), (X, y, viewpoint) or a dict to `ChunkRows`.

    The dict has the keys X, y and, if present, viewpoint and sample_weight. `name` names the chunk in errors.
    """
    if isinstance(chunk, tuple | list) and 2 <= len(chunk) <= 4:
        chunk = dict(zip(KEYS, chunk, strict=False))
    if not isinstance(chunk, Mapping) or not {"X", "y"} <= set(chunk) <= set(KEYS):
        must = f"{name} must be (X, y), (X, y, viewpoint) or a dict with some of {', '.join(KEYS)}"
        keys = f"a dict with {', '.join(map(str, chunk))}" if isinstance(chunk, Mapping) else ""
        raise InvalidInputError(must, keys or type(chunk).__name__, "Yield (X, y, viewpoint), for instance")
    views = chunk.get("viewpoint")
    if not isinstance(views, Mapping):
        views = {} if views is None else {"viewpoint": views}
    views = {str(key): v for key, v in views.items()}
    return ChunkRows(chunk["X"], chunk["y"], views, chunk.get("sample_weight"), name)


#: The errors that numpy raises for broken files.
UNREADABLE = (ValueError, OSError, KeyError, EOFError, BadZipFile, zlib.error)


@dataclass(frozen=True)
class NpzFile:
    """An .npz file with one chunk, as written by `nerm.chunks.save_chunk`.

    It holds X, or the arrays of a CSR matrix as in `scipy.sparse.save_npz`, and y, viewpoint (or
    "viewpoint:NAME" for each of several viewpoints) and sample_weight.
    """

    path: str
    limit: int

    def chunks(self) -> Iterator[ChunkRows]:
        """Yield the file as one chunk; raise an error if it is larger than the limit."""
        name = repr(self.path)
        if not Path(self.path).is_file():
            must, got = "every file of chunks must exist in every pass", f"no file {name}"
            raise InvalidInputError(must, got, "Restore the file, and run again (a checkpoint resumes)")
        try:
            with Path(self.path).open("rb") as stream, np.load(stream, allow_pickle=False) as file:
                needed = sum(info.file_size for info in file.zip.infolist())
                parts = {key: file[key] for key in file.files if needed <= self.limit}
            if "indptr" in parts:
                matrix = parts.pop("data"), parts.pop("indices"), parts.pop("indptr")
                parts["X"] = sp.csr_matrix(matrix, shape=tuple(parts.pop("shape")), copy=False)
                parts["X"].check_format()
                parts.pop("format", None)
        except UNREADABLE as error:
            must, got = f"{name} must be a file of numpy.savez", f"{type(error).__name__}: {error}"
            raise InvalidInputError(must, got, "Write it again with nerm.chunks.save_chunk") from None
        if needed > self.limit:
            raise too_small(name, needed, self.limit)
        views = {key.partition(":")[2]: parts.pop(key) for key in list(parts) if key.startswith("viewpoint:")}
        yield as_rows({**parts, "viewpoint": views} if views else parts, name)


def save_chunk(path: Any, X: Any, y: Any, viewpoint: Any = None, sample_weight: Any = None) -> None:
    """Write one chunk of rows as an .npz file that `nerm.Chunks` reads.

    Parameters
    ----------
    path : path
        The file.
    X : (m, d) array or scipy sparse matrix
        Its rows.
    y : (m,) array
        Labels.
    viewpoint : (m,) array or dict of arrays, optional
        One viewpoint, or several by name.
    sample_weight : (m,) array, optional
        Weights of the rows.

    >>> import tempfile, nerm
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     save_chunk(f"{folder}/1.npz", np.eye(4), [1, 1, -1, -1], viewpoint=[1, -1, 1, -1])
    ...     nerm.Chunks([f"{folder}/1.npz"]).census.n
    4
    """
    parts: dict[str, Any] = {"X": X}
    if sp.issparse(X):
        parts = {name: getattr(X.tocsr(), name) for name in ("data", "indices", "indptr", "shape")}
    if isinstance(viewpoint, Mapping):
        parts |= {f"viewpoint:{name}": v for name, v in viewpoint.items()}
        viewpoint = None
    parts |= {"y": y, "viewpoint": viewpoint, "sample_weight": sample_weight}
    arrays: dict[str, Any] = {key: np.asarray(value) for key, value in parts.items() if value is not None}
    np.savez(path, **arrays)


def slices(arrays: ChunkRows, limit: int) -> Iterator[ChunkRows]:
    """Yield arrays as chunks of consecutive rows of at most `limit` bytes.

    The arrays may be memory-mapped.
    """
    n, step = arrays.n, max(1, limit // row_bytes(arrays.X))
    entries = f"entry for each of the {n} rows"
    views = {name: flat(v, n, name, entries) for name, v in arrays.viewpoints.items()}
    weight = arrays.sample_weight
    weight = None if weight is None else as_vector(weight, n, "sample_weight")
    arrays = replace(arrays, y=flat(arrays.y, n, "y", entries), viewpoints=views, sample_weight=weight)
    for start in range(0, n, step):
        cut = slice(start, min(start + step, n))
        yield replace(arrays.at(cut), name=f"rows {start} to {cut.stop - 1}")


@dataclass(frozen=True, eq=False)
class Called:
    """A callable that yields all chunks of a pass, one after the other."""

    function: Callable[[], Iterable[Any]]
    limit: int

    def chunks(self) -> Iterator[ChunkRows]:
        """Call the function and yield its chunks.

        Raise an error if a chunk is larger than the limit.
        """
        found = self.function()
        if not isinstance(found, Iterable):
            must = "a callable source must return an iterator over chunks"
            do = "Let it yield chunks, or return a list of them"
            raise InvalidInputError(must, type(found).__name__, do)
        for number, chunk in enumerate(found):
            rows = chunk if isinstance(chunk, ChunkRows) else as_rows(chunk, f"chunk {number}")
            if (needed := matrix_bytes(rows.X)) > self.limit:
                raise too_small(rows.name, needed, self.limit)
            yield rows


def too_small(name: str, needed: int, limit: int) -> InvalidInputError:
    """Return the error for a chunk that is larger than the limit."""
    must = f"a chunk must fit into a quarter of the memory budget, {limit / 2**20:.4g} MiB"
    got = f"{name} with {needed / 2**20:.4g} MiB"
    return InvalidInputError(must, got, "Raise Chunks(memory=...), or write smaller chunks")


def lazily(
    X: Any,
    function: Callable[[Any], Any],
    dtype: Any,
    features: Callable[[Any], Any] | None = None,
    columns: Any = None,
) -> Any:
    """Apply a function of a matrix to rows that are read on demand.

    Parameters
    ----------
    X : dask array, dask DataFrame or Chunks
        The rows.
    function : callable
        Maps a matrix (m, d) to a vector (m,), or to a matrix (m, k) if `columns` has k names.
    dtype : dtype
        The dtype of its result.
    features : callable, optional
        Maps a DataFrame to a matrix; needed if the chunks are tables.
    columns : list, optional
        The names of the columns that the function returns.

    Returns
    -------
    dask array, dask Series, dask DataFrame or iterator
        A dask array for a dask array, a dask Series (or DataFrame, with `columns`) with the index of a dask
        DataFrame, and for Chunks an iterator over one result per chunk.

    """
    if hasattr(type(X), "sweep"):
        return (function(_chunk_matrix(rows, features)) for rows in X.read())
    if not hasattr(type(X), "numblocks"):
        meta = (None, dtype) if columns is None else [(name, dtype) for name in columns]
        return X.map_partitions(_on_frame, function, dtype, columns, meta=meta)
    X = X.rechunk({1: -1})
    if columns is None:
        return X.map_blocks(function, drop_axis=1, dtype=dtype)
    return X.map_blocks(function, chunks=(X.chunks[0], (len(columns),)), dtype=dtype)


def _chunk_matrix(rows: ChunkRows, features: Callable[[Any], Any] | None) -> Any:
    if not rows.is_table:
        return rows.X
    if features is None:
        must = "chunks of tables must be predicted by a classifier that was fitted on such chunks"
        do = "Use NeutralSVC().fit(Chunks(...)), for instance"
        raise InvalidInputError(must, "one that was fitted on a matrix", do)
    return features(rows.X)


def _on_frame(part: Any, function: Callable[[Any], Any], dtype: Any, columns: Any) -> Any:
    values = function(part.to_numpy(dtype=float)) if len(part) else None
    if columns is None:
        return pd.Series(values, index=part.index, dtype=dtype)
    return pd.DataFrame(values, index=part.index, columns=columns, dtype=dtype)
