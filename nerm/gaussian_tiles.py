"""Products with a Gaussian kernel's matrix, compiled: a tile of it at a time, which never leaves the cache."""

import numba
import numpy as np

from nerm.fast_exp import exp_in_place

TILE = 256  # rows and columns


@numba.njit(cache=True, nogil=True)
def product(left, right, weights, same):  # type: ignore[no-untyped-def]
    """Return exp(left right') weights, (n, k); half of it by symmetry where both sides are the `same` points."""
    buffer = np.empty(TILE * TILE)
    out = np.zeros((len(left), weights.shape[1]))
    for start in range(0, len(left), TILE):
        rows = left[start : start + TILE]
        for first in range(start if same else 0, len(right), TILE):
            columns = right[first : first + TILE]
            tile = buffer[: len(rows) * len(columns)].reshape((len(rows), len(columns)))
            np.dot(rows, columns.T, tile)
            exp_in_place(tile)
            out[start : start + TILE] += np.dot(tile, weights[first : first + TILE])
            if same and first > start:
                out[first : first + TILE] += np.dot(tile.T, weights[start : start + TILE])
    return out
