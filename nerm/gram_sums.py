"""Weighted sums of some rows of a large matrix, compiled: neither a copy of these rows nor a pass for each weight."""

from typing import Any

import numba
import numpy as np

from nerm.typing import Floats, Ints


def sums_of_rows(table: Any, rows: Ints, weights: Floats) -> Floats:
    """Return table[rows]' weights, (n, k), for weights of shape (rows, k); of a table in single precision as well."""
    return np.asarray(_sums(table, rows, np.ascontiguousarray(weights.T)).T)


@numba.njit(cache=True, nogil=True)
def _sums(table, rows, weights):  # type: ignore[no-untyped-def]
    """Add up a stretch of columns at a time: it stays in cache, and each row is read once for all weights."""
    n, count = table.shape[1], weights.shape[0]
    out = np.zeros((count, n))
    for start in range(0, n, 1024):
        stop = min(start + 1024, n)
        for i in range(len(rows)):
            row = table[rows[i], start:stop]
            for k in range(count):
                weight = weights[k, i]
                if weight != 0.0:
                    part = out[k, start:stop]
                    for j in range(stop - start):
                        part[j] += weight * row[j]
    return out
