"""Compiled passes over the rows of a CSR matrix: sums by group, and the entry that stands out."""

import numba
import numpy as np


@numba.njit(cache=True, nogil=True)
def add_rows(indptr, indices, data, rows, groups, factors, out):  # type: ignore[no-untyped-def]
    """Add factors_k x_i of row i = rows_k to out[groups_k]."""
    for k in range(rows.shape[0]):
        factor, line = factors[k], out[groups[k]]
        for p in range(indptr[rows[k]], indptr[rows[k] + 1]):
            line[indices[p]] += factor * data[p]


@numba.njit(cache=True, nogil=True)
def largest(indptr, indices, data, scale):  # type: ignore[no-untyped-def]
    """Return for each row the column, of several the first, where |x| / scale is largest; 0 for a row of zeros."""
    out = np.zeros(indptr.shape[0] - 1, np.int64)
    for i in range(out.shape[0]):
        most = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            size = abs(data[p]) / scale[indices[p]]
            if size > most or (size == most and size > 0.0 and indices[p] < out[i]):
                most, out[i] = size, indices[p]
    return out
