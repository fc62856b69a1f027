"""`nerm.Chunks`: rows beyond memory, or on a dask cluster, as pieces that every pass reads again.

On a cluster a pass is one task per piece and a tree of sums: chunks stay where they are, only sums and the
rows near a kink travel. Tasks are pure, so a worker that dies costs the recomputation of its pieces, not the
fit; dask's dashboard shows the tasks by name.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np

from nerm.chunks.census import Census, CountRows
from nerm.chunks.coding import Coding, learn
from nerm.chunks.pieces import Called, Held, NpzFile, Raw, as_arrays, as_raw, slices
from nerm.errors import InvalidInputError, MissingPackageError
from nerm.validation import as_positive, is_lazy

MEMORY = 2**30  # bytes: the default budget
SAMPLE_ROWS = 100_000


class Chunks:
    """A source of row chunks (X, y, viewpoint, sample_weight) that can be read again and again.

    A fit reads all of them once to count rows, labels and groups and to draw a sample, and then a few times
    more: each pass is a map over the chunks and a sum. On a dask cluster the map runs where the chunks are.

    Parameters
    ----------
    source : path or list of paths, tuple or dict of arrays, dask collection, or callable
        Files of `numpy.savez` (`nerm.chunks.save_chunk` writes them), one chunk each, or of tables; (X, y,
        viewpoint) of arrays, which may be memory-mapped, or of dask arrays, DataFrames and Series; a dask
        DataFrame whose target is named; or a callable that returns, on every call, an iterator over chunks,
        each a tuple (X, y, viewpoint) or a dict with these keys and `sample_weight`.
    memory : int, optional
        Bytes that a fit may use for rows, 1 GiB by default: a chunk may take a quarter of it, and so may the
        sample, and the rows that are kept between passes.
    target, viewpoint, sample_weight : str, optional
        For tables (CSV, Parquet, and whatever `nerm.tables` reads, or a dask DataFrame): the columns with the
        labels, the viewpoint (or a list of them) and the weights. The other columns become features by the
        tables' recipe, learned in the first pass.
    checkpoint : path, optional
        Where fits on these chunks write their progress after each pass; where the file exists, they continue.
    progress : bool
        Whether to show a bar per pass in this process (needs rich); dask has a dashboard for its workers.
    client : distributed.Client, optional
        Where passes over files and dask collections run; by default the client of this process, if there is
        one. The chunks of arrays and of a callable are read in this process.

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
    >>> together = objective.on(X, y, viewpoint=v).solve()
    >>> str(solution.status), bool(abs(solution.objective.total / together.objective.total - 1) < 2e-6)
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
        self.checkpoint = checkpoint
        self.progress, self.passes = progress, 0
        self.roles = target, _names(viewpoint), sample_weight
        given = MEMORY if memory is None else memory
        self.memory = int(as_positive(given, "memory", "Pass a number of bytes"))
        self.client = client
        self.pieces: Sequence[Any] = self._pieces(source)
        if not self.pieces:
            must = "'source' must have at least one chunk"
            raise InvalidInputError(must, "none", "Check the list of files")

    @property
    def limit(self) -> int:
        """The bytes that one chunk may take, and so may the sample and the rows kept between passes."""
        return self.memory // 4

    def _pieces(self, source: Any) -> Sequence[Any]:
        if isinstance(source, str | Path):
            return self._files([source])
        if callable(source):
            return [Called(source, self.limit)]
        if isinstance(source, list) and all(isinstance(path, str | Path) for path in source):
            return self._files(source)
        if isinstance(source, dict | tuple):
            arrays = as_raw(source, "'source'")
            if is_lazy(arrays.X):
                return partitions(arrays)
            if not hasattr(arrays.X, "shape"):
                arrays = replace(arrays, X=np.asarray(arrays.X))
            if np.ndim(arrays.X) == 2:
                return [Called(partial(slices, as_arrays(arrays, self.limit), self.limit), self.limit)]
        if is_lazy(source) and hasattr(source, "columns"):
            return self._frames(source)
        must = "'source' must be paths, (X, y, viewpoint) with a matrix X, a dask DataFrame or a callable"
        again = "Pass the function that makes it, not what it returns: every pass calls it again"
        do = again if isinstance(source, Iterator) else "See nerm.Chunks"
        raise InvalidInputError(must, type(source).__name__, do)

    def _frames(self, frame: Any) -> list[Any]:
        """Return the partitions of a dask DataFrame as parts of a table."""
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
        target, viewpoints, weight = self.roles
        if target is None or len(tables) < len(paths):
            must = "files of chunks must all end in .npz, or be tables whose target is named"
            do = "Pass Chunks(paths, target='...', viewpoint='...')"
            raise InvalidInputError(must, repr(tables[0]), do)
        from nerm.tables.recipe import TablePiece

        return [TablePiece(path, target, viewpoints, weight, repr(path), self.limit) for path in tables]

    @cached_property
    def census(self) -> Census:
        """The result of the first pass."""
        most = SAMPLE_ROWS // math.isqrt(len(self.pieces))
        found: Census = self.sweep(CountRows(SAMPLE_ROWS, self.limit, most))
        return found

    def sweep(self, work: Callable[[Raw], Any]) -> Any:
        """Do one pass: apply `work`, a callable of a chunk, to every chunk and add up its results."""
        self.passes += 1
        client = client_for(self)
        if client is None:
            found = total(piece_total(piece, work) for piece in self._shown())
        else:
            found = _sweep_on_cluster(client, self.pieces, work)
        if found is not None:
            return found
        if "census" in self.__dict__:
            must, got = "chunks must not change between passes", f"none in pass {self.passes}"
            do = "Let the callable make a new iterator at every call, or put the rows back"
            raise InvalidInputError(must, got, do)
        raise InvalidInputError("'source' must have at least one row", "no chunk", "Check what it yields")

    def _shown(self) -> Any:
        """Return the pieces, with a bar that shows how many are done if there is to be one."""
        if not self.progress:
            return self.pieces
        if importlib.util.find_spec("rich") is None:
            must = "progress=True needs the package 'rich', which is not installed. Install it."
            raise MissingPackageError(must)
        from rich.progress import track

        return track(self.pieces, f"pass {self.passes}", transient=True)

    def read(self) -> Iterator[Raw]:
        """Yield all chunks, one after the other, in this process."""
        for piece in self.pieces:
            yield from chunks_of(piece)

    def coding(self, *, groups: bool = False) -> Coding:
        """Return how chunks become numbers; `groups` as for `nerm.chunks.coding.learn`."""
        return learn(self.census, self.features, groups=groups or self.features is not None)

    @cached_property
    def features(self) -> Any:
        """The function from a frame of a table to features; None where chunks are matrices."""
        if not self.census.levels:
            return None
        from nerm.tables.recipe import learn_features

        return learn_features(self.census.sample.X, self.census.levels)


def as_chunks(X: Any, y: Any = None, viewpoint: Any = None, sample_weight: Any = None) -> Chunks:
    """Return `nerm.Chunks` of a dask collection X with y and so on; chunks themselves bring all of these."""
    given = {"y": y, "viewpoint": viewpoint, "sample_weight": sample_weight}
    given = {name: value for name, value in given.items() if value is not None}
    if not isinstance(X, Chunks):
        return Chunks({"X": X, **given})
    if given:
        must = "chunks must bring y, viewpoint and sample_weight themselves"
        raise InvalidInputError(must, f"{next(iter(given))!r} beside chunks", "Leave it out")
    return X


def _names(viewpoint: Any) -> tuple[str, ...]:
    """Return the columns of viewpoints."""
    return () if viewpoint is None else (viewpoint,) if isinstance(viewpoint, str) else tuple(viewpoint)


def chunks_of(piece: Any) -> Iterator[Raw]:
    """Yield the chunks of a piece that have rows; dask's pieces are computed first."""
    piece = piece.compute() if hasattr(piece, "compute") else piece
    return (raw for raw in piece.chunks() if raw.rows)


def piece_total(piece: Any, work: Callable[[Raw], Any]) -> Any:
    """Return the sum over one piece, None where it has no rows: a task of a pass."""
    return total(work(raw) for raw in chunks_of(piece))


def total(found: Any) -> Any:
    """Return a sum, of which None is the zero."""
    result: Any = None
    for one in found:
        result = one if result is None else result if one is None else result + one
    return result


# --- dask ---------------------------------------------------------------------------------------------


def client_for(chunks: Any) -> Any:
    """Return the client that passes run on, None if they run in this process."""
    if isinstance(chunks.pieces[0], Called):
        return None
    if chunks.client is None and "distributed" in sys.modules:
        from distributed import default_client

        with suppress(ValueError):  # there is none
            return default_client()
    return chunks.client


def _sweep_on_cluster(client: Any, pieces: Any, work: Callable[[Raw], Any]) -> Any:
    """Return the sum of `work` over all pieces, computed by the workers as a tree."""
    import dask

    # one node of the graph: it travels to each worker once, and the scheduler knows how to make it again
    shared = dask.delayed(work, pure=False, traverse=False)
    tasks = [dask.delayed(piece_total, pure=False)(piece, shared) for piece in pieces]
    fan_in = max(2, math.isqrt(len(tasks)))
    while len(tasks) > 1:
        groups = [tasks[i : i + fan_in] for i in range(0, len(tasks), fan_in)]
        tasks = [dask.delayed(total, pure=False)(group) for group in groups]
    return client.compute(tasks[0]).result()


def partitions(arrays: Raw) -> list[Any]:
    """Return the blocks of rows of dask arrays or frames as delayed pieces."""
    import dask

    X = arrays.X
    if hasattr(X, "numblocks"):
        X = X if X.numblocks[1] == 1 else X.rechunk({1: -1})
        blocks, sizes = list(X.to_delayed()[:, 0]), X.chunks[0]
    else:
        blocks = X.to_delayed()
        sizes = (float("nan"),) * len(blocks)
    others = {"y": arrays.y, "sample_weight": arrays.sample_weight, **arrays.viewpoints}
    aligned = {name: _aligned(values, sizes, name) for name, values in others.items() if values is not None}
    pieces = []
    for i, block in enumerate(blocks):
        views = {name: aligned[name][i] for name in arrays.viewpoints}
        weight = aligned["sample_weight"][i] if "sample_weight" in aligned else None
        pieces.append(dask.delayed(_held, pure=True)(block, aligned["y"][i], views, weight, f"partition {i}"))
    return pieces


def _aligned(values: Any, sizes: tuple[float, ...], name: str) -> list[Any]:
    """Return the blocks of a vector beside those of X, by rows where their numbers are known."""
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
        must = f"{name!r} must be cut as X is, into {len(sizes)} partitions"
        got = f"{values.npartitions} partitions" if hasattr(values, "npartitions") else type(values).__name__
        raise InvalidInputError(must, got, "Take both from one dask DataFrame, or compute their chunk sizes")
    return list(values.to_delayed())


def _held(*parts: Any) -> Held:
    """Return one partition as a piece."""
    return Held(Raw(*parts))
