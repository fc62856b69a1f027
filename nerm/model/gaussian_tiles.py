"""Products with a Gaussian kernel's matrix, compiled: a tile of it at a time, which never leaves the cache."""

import numba
import numpy as np

from nerm.model.fast_exp import exp_in_place

CACHED_TILE = 256  # rows and columns of K that stay in cache from their products to their sums


@numba.njit(cache=True, nogil=True)
def product_by_tiles(left, right, weights, same):  # type: ignore[no-untyped-def]
    """Return exp(left right') weights, (n, k); half of it by symmetry where both sides are the `same` points."""
    buffer = np.empty(CACHED_TILE * CACHED_TILE)
    out = np.zeros((len(left), weights.shape[1]))
    for start in range(0, len(left), CACHED_TILE):
        rows = left[start : start + CACHED_TILE]
        for first in range(start if same else 0, len(right), CACHED_TILE):
            columns = right[first : first + CACHED_TILE]
            tile = buffer[: len(rows) * len(columns)].reshape((len(rows), len(columns)))
            np.dot(rows, columns.T, tile)
            exp_in_place(tile)
            out[start : start + CACHED_TILE] += np.dot(tile, weights[first : first + CACHED_TILE])
            if same and first > start:
                out[first : first + CACHED_TILE] += np.dot(tile.T, weights[start : start + CACHED_TILE])
    return out
