"""Passes on a dask cluster: chunks stay where they are, only sums and the rows near a kink travel.

A pass is one task a piece and a tree of sums. Tasks are pure, so a worker that dies costs the recomputation of its
pieces, not the fit; dask's dashboard shows the tasks by name.
"""

from __future__ import annotations

import secrets
import sys
from collections.abc import Callable
from operator import add
from typing import Any

from nerm.chunks.pieces import Called, Held, Raw, Slice
from nerm.errors import InvalidInputError

FAN_IN = 8  # sums that one task adds up


def client_for(chunks: Any) -> Any:
    """Return the client that passes run on: the given one, or that of this process where it serves; None for none.

    A callable's chunks come one after the other from this process, and arrays are in its memory.
    """
    if chunks.client is not None or "distributed" not in sys.modules or isinstance(chunks.pieces[0], Called | Slice):
        return chunks.client
    from distributed import default_client

    try:
        return default_client()
    except ValueError:  # there is none
        return None


def sweep(client: Any, pieces: Any, work: Callable[[Raw], Any], note: Callable[[int, int], None] | None) -> Any:
    """Return the sum of `work` over all pieces, computed by the workers."""
    import dask
    from distributed import as_completed

    from nerm.chunks.source import run

    token = secrets.token_hex(4)
    task = dask.delayed(run, pure=False)  # the work travels with the tasks: nothing is lost with a worker
    futures = client.compute(
        [task(piece, work, dask_key_name=f"nerm-pass-{token}-{i}") for i, piece in enumerate(pieces)]
    )
    if note is not None:
        for done, _ in enumerate(as_completed(futures)):
            note(done + 1, len(futures))
    while len(futures) > 1:
        groups = [futures[i : i + FAN_IN] for i in range(0, len(futures), FAN_IN)]
        futures = [client.submit(_added, group, pure=False) for group in groups]
    return futures[0].result()


def _added(sums: list[Any]) -> Any:
    total = sums[0]
    for one in sums[1:]:
        total = add(total, one)
    return total


def partitions(arrays: Raw) -> list[Any]:
    """Return the blocks of rows of dask arrays as pieces, each a delayed value that a worker computes and holds."""
    import dask

    X = arrays.X if arrays.X.numblocks[1] == 1 else arrays.X.rechunk({1: -1})
    sizes = X.chunks[0]
    others = {"y": arrays.y, "sample_weight": arrays.sample_weight, **arrays.viewpoints}
    aligned = {}
    for name, values in others.items():
        if values is None:
            continue
        if not hasattr(values, "dask"):
            import dask.array as da

            values = da.from_array(values, chunks=(sizes,))
        if values.ndim != 1 or sum(values.chunks[0]) != sum(sizes):
            must = f"{name!r} must have one entry for each of the {sum(sizes)} rows"
            raise InvalidInputError(must, f"shape {values.shape}", "Pass dask arrays of the same rows")
        aligned[name] = list(values.rechunk((sizes,)).to_delayed())
    held = dask.delayed(_held, pure=True)
    pieces = []
    for i, block in enumerate(X.to_delayed()[:, 0]):
        views = {name: aligned[name][i] for name in arrays.viewpoints}
        weight = aligned["sample_weight"][i] if "sample_weight" in aligned else None
        pieces.append(held(block, aligned["y"][i], views, weight, f"partition {i}"))
    return pieces


def _held(X: Any, y: Any, views: dict[str, Any], weight: Any, name: str) -> Held:
    """Return one partition as a piece."""
    return Held(Raw(X, y, views, weight, name))
