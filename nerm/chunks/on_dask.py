"""Passes on a dask cluster: chunks stay where they are, only sums and the rows near a kink travel.

A pass is one task a piece and a tree of sums. Tasks are pure, so a worker that dies costs the recomputation
of its pieces, not the fit; dask's dashboard shows the tasks by name.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from functools import reduce
from typing import Any

import numpy as np

from nerm.chunks.pieces import Called, Held, Raw, Slice
from nerm.errors import InvalidInputError

FAN_IN = 8  # sums that one task adds up


def client_for(chunks: Any) -> Any:
    """Return the client that passes run on: the given one, or that of this process where it serves; None for none.

    A callable's chunks come one after the other from this process, and arrays are in its memory.
    """
    if (
        chunks.client is not None
        or "distributed" not in sys.modules
        or isinstance(chunks.pieces[0], Called | Slice)
    ):
        return chunks.client
    from distributed import default_client

    try:
        return default_client()
    except ValueError:  # there is none
        return None


def sweep(
    client: Any, pieces: Any, work: Callable[[Raw], Any], note: Callable[[int, int], None] | None
) -> Any:
    """Return the sum of `work` over all pieces, computed by the workers."""
    import dask
    from distributed import as_completed

    from nerm.chunks.source import run

    token = secrets.token_hex(4)
    task = dask.delayed(run, pure=False)
    # one node of the graph: it travels to each worker once, and the scheduler knows how to make it again
    shared = dask.delayed(_same, pure=False)(_Boxed(work), dask_key_name=f"nerm-work-{token}")
    futures = client.compute(
        [task(piece, shared, dask_key_name=f"nerm-pass-{token}-{i}") for i, piece in enumerate(pieces)]
    )
    if note is not None:
        for done, _ in enumerate(as_completed(futures)):
            note(done + 1, len(futures))
    while len(futures) > 1:
        groups = [futures[i : i + FAN_IN] for i in range(0, len(futures), FAN_IN)]
        futures = [client.submit(_added, group, pure=False) for group in groups]
    return futures[0].result()


def _added(sums: list[Any]) -> Any:
    from nerm.chunks.source import added

    return reduce(added, sums)


class _Boxed:
    """Work that dask is not to look into for tasks of its own."""

    def __init__(self, work: Any) -> None:
        self.work = work


def _same(boxed: _Boxed) -> Any:
    return boxed.work


def partitions(arrays: Raw) -> list[Any]:
    """Return the blocks of rows of dask arrays or frames as pieces, each a delayed value that a worker computes."""
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
    held = dask.delayed(_held, pure=True)
    pieces = []
    for i, block in enumerate(blocks):
        views = {name: aligned[name][i] for name in arrays.viewpoints}
        weight = aligned["sample_weight"][i] if "sample_weight" in aligned else None
        pieces.append(held(block, aligned["y"][i], views, weight, f"partition {i}"))
    return pieces


def _aligned(values: Any, sizes: tuple[float, ...], name: str) -> list[Any]:
    """Return the blocks of one vector beside those of X: by rows where their numbers are known, else block by block."""
    known = all(size == size for size in sizes)  # not nan
    if known and not hasattr(values, "dask"):
        import dask.array as da

        values = da.from_array(np.asarray(values), chunks=-1)
    lengths = (
        values.chunks[0]
        if hasattr(values, "numblocks")
        else (float("nan"),) * getattr(values, "npartitions", 0)
    )
    if known and values.ndim == 1 and sum(lengths) == sum(sizes):
        return list(values.rechunk((sizes,)).to_delayed())
    if values.ndim != 1 or (known and sum(lengths) == sum(lengths)):
        must = f"{name!r} must have one entry for each of the {sum(sizes):.0f} rows"
        raise InvalidInputError(must, f"shape {values.shape}", "Pass dask arrays of the same rows")
    if len(lengths) != len(sizes):
        must = f"{name!r} must be cut as X is, into {len(sizes)} partitions"
        got = f"{len(lengths)} partitions" if lengths else type(values).__name__
        raise InvalidInputError(must, got, "Take both from one dask DataFrame, or compute their chunk sizes")
    return list(values.to_delayed())


def _held(X: Any, y: Any, views: dict[str, Any], weight: Any, name: str) -> Held:
    """Return one partition as a piece."""
    return Held(Raw(X, y, views, weight, name))


def frame_partitions(frame: Any, make: Any, roles: tuple[Any, ...]) -> list[Any]:
    """Return the partitions of a dask DataFrame as pieces that `make` makes of a frame, the roles and a name."""
    import dask

    made = dask.delayed(make, pure=True)
    return [made(part, *roles, f"partition {i}") for i, part in enumerate(frame.to_delayed())]
