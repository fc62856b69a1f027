"""`nerm.Chunks`: rows that are read in every pass, chunk by chunk.

The rows may not fit into memory, or be on a dask cluster. They come in pieces (`nerm.chunks.pieces`). On a
cluster a pass is one task per piece and a tree of sums. Only sums and the rows near a kink are sent over the
network, or all rows if they are solved together. Tasks have no side effects, so if a worker dies, only its
pieces are computed again. dask's dashboard shows the tasks by name.
"""

from __future__ import annotations

import math
import operator
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from copy import copy
from dataclasses import replace
from functools import cached_property, partial, reduce
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from nerm.chunks.coding import Census, Coding, count, learn
from nerm.chunks.pieces import Called, ChunkRows, NpzFile, as_rows, slices
from nerm.errors import InvalidInputError
from nerm.validation import as_positive, is_lazy

MEMORY = 2**30  # bytes: the default budget
SAMPLE_ROWS = 100_000


class Chunks:
    """A source of row chunks (X, y, viewpoint, sample_weight) that can be read repeatedly.

    The first pass of a fit over all chunks counts rows, labels and groups and draws a sample; a few more
    passes follow. Each pass computes a result per chunk and adds up the results. On a dask cluster the
    workers that hold the chunks compute them.

    Parameters
    ----------
    source : path or list of paths, tuple or dict of arrays, dask collection, or callable
        Paths are files of `numpy.savez`, one chunk each (`nerm.chunks.save_chunk` writes them), or files of
        tables. A tuple (X, y, viewpoint), or a dict with these keys and `sample_weight`, holds arrays, which
        may be memory-mapped, or dask arrays, DataFrames and Series. A dask DataFrame needs `target`. A
        callable must return, on every call, an iterator over chunks; each chunk is such a tuple or dict.
    memory : int, optional
        Bytes that a fit may use for rows, 1 GiB by default. A quarter of it is the limit for one chunk, for
        the sample, and for the rows that are kept between passes.
    target, viewpoint, sample_weight : str, optional
        For tables (CSV, Parquet, other formats of `nerm.tables`, or a dask DataFrame): the names of the
        columns with the labels, the viewpoint (or a list of viewpoints) and the weights. The other columns
        are converted to features by a recipe that is learned in the first pass.
    checkpoint : path, optional
        The file to which fits on these chunks write their state after each pass. If it exists, a fit
        continues.
    progress : bool
        Whether to show a progress bar per pass in this process (needs rich); dask has a dashboard for its
        workers.
    client : distributed.Client, optional
        The client that runs passes over files and dask collections; by default the client of this process, if
        there is one. Chunks of arrays and of a callable are always read in this process.

    Examples
    --------
    >>> import numpy as np, nerm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(1000, 3)); v = np.sign(X[:, 0]); y = np.sign(X.sum(axis=1))
    >>> def read():  # from a database, say
    ...     for part in np.array_split(np.arange(1000), 4):
    ...         yield X[part], y[part], v[part]
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> solution = objective.on(nerm.Chunks(read)).solve()
    >>> whole = objective.on(X, y, viewpoint=v).solve()
    >>> str(solution.status), bool(abs(solution.objective.total / whole.objective.total - 1) < 2e-6)
    ('optimal', True)

    """

    def __init__(
        self,
        source: Any,
        *,
        memory: int | None = None,
        client: Any = None,
        target: str | None = None,
        viewpoint: Any = None,
        sample_weight: str | None = None,
        checkpoint: Any = None,
        progress: bool = False,
    ) -> None:
        self.checkpoint, self.client, self.progress, self.passes = checkpoint, client, progress, 0
        self.real = False
        views = [viewpoint] if isinstance(viewpoint, str) else [] if viewpoint is None else viewpoint
        self.roles: tuple[Any, Any, Any] = target, tuple(views), sample_weight
        given = MEMORY if memory is None else memory
        self.memory = int(as_positive(given, "memory", "Pass a number of bytes"))
        self.limit = self.memory // 4  # for one chunk, for the sample, and for the rows kept between passes
        self.pieces: Sequence[Any] = self._pieces(source)
        if not self.pieces:
            raise InvalidInputError("'source' must have at least one chunk", "none", "Check the paths")

    def _pieces(self, source: Any) -> Sequence[Any]:
        if callable(source):
            return [Called(source, self.limit)]
        paths = [source] if isinstance(source, str | Path) else source
        if isinstance(paths, list) and all(isinstance(path, str | Path) for path in paths):
            return self._files(paths)
        if isinstance(source, dict | tuple):
            arrays = as_rows(source, "'source'")
            if is_lazy(arrays.X):
                return partitions(arrays)
            if not hasattr(arrays.X, "shape"):
                arrays = replace(arrays, X=np.asarray(arrays.X))
            if np.ndim(arrays.X) == 2:
                return [Called(partial(slices, arrays, self.limit), self.limit)]
        if is_lazy(source) and hasattr(source, "columns"):
            return self._frames(source)
        must = "'source' must be paths, (X, y, viewpoint) with a matrix X, a dask DataFrame or a callable"
        again = "Pass the function that makes it, not what it returns: every pass calls it again"
        do = again if isinstance(source, Iterator) else "See nerm.Chunks"
        raise InvalidInputError(must, type(source).__name__, do)

    def _frames(self, frame: Any) -> list[Any]:
        """Return the partitions of a dask DataFrame as delayed table pieces."""
        if self.roles[0] is None:
            must = "a dask DataFrame must come with the name of its target"
            do = "Pass Chunks(frame, target='...'), or Chunks((X, y, viewpoint))"
            raise InvalidInputError(must, "none", do)
        import dask

        from nerm.tables.recipe import TablePiece

        made = dask.delayed(TablePiece, pure=True)
        return [made(part, *self.roles, f"partition {i}") for i, part in enumerate(frame.to_delayed())]

    def _files(self, paths: Sequence[Any]) -> list[Any]:
        tables = [str(path) for path in paths if Path(path).suffix != ".npz"]
        if not tables:
            return [NpzFile(str(path), self.limit) for path in paths]
        if self.roles[0] is None or len(tables) < len(paths):
            must = "files of chunks must all end in .npz, or be tables whose target is named"
            raise InvalidInputError(must, repr(tables[0]), "Pass Chunks(paths, target='...')")
        from nerm.tables.recipe import TablePiece

        return [TablePiece(path, *self.roles, repr(path), self.limit) for path in tables]

    def with_real_y(self) -> Chunks:
        """Return the same chunks for a regression, whose y is real: no labels are counted."""
        chunks = copy(self)
        for learned in ("census", "features"):
            vars(chunks).pop(learned, None)
        chunks.real = True
        return chunks

    @cached_property
    def census(self) -> Census:
        """The counts, fingerprints and sample of the first pass."""
        most = SAMPLE_ROWS // math.isqrt(len(self.pieces))
        counts = partial(count, size=SAMPLE_ROWS, memory=self.limit, most=most, real=self.real)
        found: Census | None = self.sweep(counts)
        if found is None:
            raise InvalidInputError("'source' must have at least one row", "no chunk", "Check what it yields")
        return found

    def sweep(self, work: Callable[[ChunkRows], Any]) -> Any:
        """Do one pass: apply `work` to every raw chunk and return the sum of the results.

        A raw chunk is one as it was read. Return None if there are no rows.
        """
        self.passes += 1
        if (client := client_for(self)) is not None:
            return _sweep_on_cluster(client, self.pieces, work)
        pieces: Any = self.pieces
        if self.progress:
            from rich.progress import track

            pieces = track(pieces, f"pass {self.passes}", transient=True)
        return total(piece_total(piece, work) for piece in pieces)

    def read(self) -> Iterator[ChunkRows]:
        """Yield all chunks, one after the other, in this process."""
        return chain.from_iterable(map(chunks_of, self.pieces))

    def coding(self, *, groups: bool = False) -> Coding:
        """Return the coding of the chunks as numbers.

        `groups` is explained at `nerm.chunks.coding.learn`.
        """
        return learn(self.census, self.features, groups=groups or self.features is not None, real=self.real)

    @cached_property
    def features(self) -> Any:
        """The function that maps a DataFrame of a table to features.

        None if the chunks are matrices.
        """
        if not self.census.levels:
            return None
        from nerm.tables.recipe import learn_features

        return learn_features(self.census.sample.X, self.census.levels)


def as_chunks(X: Any, y: Any = None, viewpoint: Any = None, sample_weight: Any = None) -> Chunks:
    """Return `nerm.Chunks` of a dask collection X with y, viewpoint and weights.

    If X is `nerm.Chunks`, return it unchanged. Raise an error if y, viewpoint or weights are given beside
    `nerm.Chunks`, which contain them.
    """
    given = {"y": y, "viewpoint": viewpoint, "sample_weight": sample_weight}
    given = {name: value for name, value in given.items() if value is not None}
    if not isinstance(X, Chunks):
        return Chunks({"X": X, **given})
    if given:
        must = "chunks must contain y, viewpoint and sample_weight"
        raise InvalidInputError(must, f"{next(iter(given))!r} as an argument too", "Leave it out")
    return X


def chunks_of(piece: Any) -> Iterator[ChunkRows]:
    """Yield the nonempty chunks of a piece; a delayed dask piece is computed first."""
    piece = piece.compute() if hasattr(piece, "compute") else piece
    return (rows for rows in piece.chunks() if rows.n)


def piece_total(piece: Any, work: Callable[[ChunkRows], Any]) -> Any:
    """Return the sum of work(chunk) over one piece, or None if it has no rows.

    This is one task of a pass.
    """
    return total(work(rows) for rows in chunks_of(piece))


def total(found: Any) -> Any:
    """Return the sum of the given results; None counts as zero."""
    known = (one for one in found if one is not None)
    return reduce(operator.add, known, next(known, None))


# --- dask ---------------------------------------------------------------------------------------------


def client_for(chunks: Any) -> Any:
    """Return the dask client that runs the passes, or None if they run in this process."""
    if isinstance(chunks.pieces[0], Called):
        return None
    if chunks.client is None and "distributed" in sys.modules:
        from distributed import default_client

        with suppress(ValueError):  # there is none
            return default_client()
    return chunks.client


def _sweep_on_cluster(client: Any, pieces: Any, work: Callable[[ChunkRows], Any]) -> Any:
    """Return the sum of `work` over all pieces, computed by the workers as a tree."""
    import dask

    # one node of the task graph: it is sent to each worker once, and the scheduler can compute it again
    shared = dask.delayed(work, pure=False, traverse=False)
    tasks = [dask.delayed(piece_total, pure=False)(piece, shared) for piece in pieces]
    fan_in = max(2, math.isqrt(len(tasks)))
    while len(tasks) > 1:
        groups = [tasks[i : i + fan_in] for i in range(0, len(tasks), fan_in)]
        tasks = [dask.delayed(total, pure=False)(group) for group in groups]
    return client.compute(tasks[0]).result()


def partitions(arrays: ChunkRows) -> list[Any]:
    """Return the blocks of rows of dask arrays or frames as delayed pieces."""
    import dask

    X = arrays.X
    if hasattr(X, "numblocks"):
        X = X.rechunk({1: -1})
        blocks, sizes = X.to_delayed()[:, 0], X.chunks[0]
    else:
        blocks, sizes = X.to_delayed(), (np.nan,) * X.npartitions
    y, weight = _aligned(arrays.y, sizes, "y"), _aligned(arrays.sample_weight, sizes, "sample_weight")
    views = {name: _aligned(v, sizes, name) for name, v in arrays.viewpoints.items()}
    made = dask.delayed(ChunkRows, pure=True)
    return [
        made(block, y[i], {name: v[i] for name, v in views.items()}, weight[i], f"partition {i}")
        for i, block in enumerate(blocks)
    ]


def _aligned(values: Any, sizes: tuple[float, ...], name: str) -> list[Any]:
    """Return the delayed blocks of a vector, one per block of X with the same rows.

    If the block sizes of X are known, the vector is rechunked; otherwise it must have as many partitions as
    X. The blocks of None are None.
    """
    if values is None:
        return [None] * len(sizes)
    known = not np.isnan(sizes).any()
    if known and not hasattr(values, "dask"):
        import dask.array as da

        values = da.from_array(np.asarray(values))
    if known and hasattr(values, "chunks") and not np.isnan(values.shape[0]):
        if values.shape != (sum(sizes),):
            must = f"{name!r} must have one entry for each of the {sum(sizes):.0f} rows"
            raise InvalidInputError(must, f"shape {values.shape}", "Pass dask arrays of the same rows")
        return list(values.rechunk((sizes,)).to_delayed())
    if getattr(values, "npartitions", None) != len(sizes):
        must = f"{name!r} must have the same partitions as X ({len(sizes)})"
        got = f"{values.npartitions} partitions" if hasattr(values, "npartitions") else type(values).__name__
        raise InvalidInputError(must, got, "Take both from one dask DataFrame, or call compute_chunk_sizes()")
    return list(values.to_delayed())
