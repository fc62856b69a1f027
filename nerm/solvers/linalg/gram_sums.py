"""Weighted sums of some rows of a large matrix, and squares of them, compiled: no copies, no pass for each weight."""

from typing import Any

import numba
import numpy as np

from nerm.typing import Floats, Ints


def sums_of_rows(table: Any, rows: Ints, weights: Floats) -> Floats:
    """Return table[rows]' weights, (n, k), for weights of shape (rows, k); of a table in single precision as well."""
    return np.asarray(_sums(table, rows, np.ascontiguousarray(weights.T)).T)


def half_square(table: Any, rows: Ints, columns: Ints, factor: float) -> Any:
    """Return factor table[rows, columns] for as many rows as columns: its upper half, and anything below."""
    return _half_square(table, rows, columns, table.dtype.type(factor))


@numba.njit(cache=True, nogil=True)
def _sums(table, rows, weights):  # type: ignore[no-untyped-def]
    """Add up a stretch of columns at a time, four rows at once: sums stay in cache, and are read for every fourth row.

    Each row is read once for all weights, and memory is what takes the time: stretches are as long as caches
    allow.
    """
    n, count, whole = table.shape[1], weights.shape[0], len(rows) - len(rows) % 4
    out = np.zeros((count, n))
    for start in range(0, n, 8192):
        stop = min(start + 8192, n)
        for i in range(0, whole, 4):
            one, two = table[rows[i], start:stop], table[rows[i + 1], start:stop]
            three, four = table[rows[i + 2], start:stop], table[rows[i + 3], start:stop]
            for k in range(count):
                a, b, c, d = weights[k, i], weights[k, i + 1], weights[k, i + 2], weights[k, i + 3]
                if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                    part = out[k, start:stop]
                    for j in range(stop - start):
                        part[j] += (a * one[j] + b * two[j]) + (c * three[j] + d * four[j])
        for i in range(whole, len(rows)):
            row = table[rows[i], start:stop]
            for k in range(count):
                part = out[k, start:stop]
                for j in range(stop - start):
                    part[j] += weights[k, i] * row[j]
    return out


@numba.njit(cache=True, nogil=True)
def _half_square(table, rows, columns, factor):  # type: ignore[no-untyped-def]
    out = np.empty((len(rows), len(rows)), dtype=table.dtype)
    for i in range(len(rows)):
        row = table[rows[i]]
        for j in range(i, len(rows)):
            out[i, j] = factor * row[columns[j]]
    return out
