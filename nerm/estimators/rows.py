"""Training rows in canonical form: rows of weight 0 left out, equal rows merged, the rest sorted.

Rows that agree in (x, y, v) enter the objective through the sum of their weights only, so merging them is exact. With
the order of the rows fixed as well, "a row of weight 2 is two rows" and "the order of rows does not matter" hold to
the last bit, not only up to the solver's tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

BLOCK = 16384  # rows hashed at a time


@dataclass(frozen=True, eq=False)
class Rows:
    """The merged rows of a training set.

    kept
        The rows of positive weight, indices into the training set.
    first
        For each merged row, the first training row behind it.
    merged
        For each kept row, the merged row that it went into.
    weight
        The total sample weight of each merged row.
    """

    kept: np.ndarray
    first: np.ndarray
    merged: np.ndarray
    weight: np.ndarray


def canonical_rows(X: Any, extra: np.ndarray, sample_weight: np.ndarray, *, merge: bool = True) -> Rows:
    """Return the canonical form of rows (x_i, extra_i) with weights; extra is (n, k), X dense or CSR.

    merge
        False for a Gram matrix, whose columns are rows too: only rows of weight 0 are left out.

    >>> rows = canonical_rows(np.array([[2.0], [1.0], [2.0]]), np.zeros((3, 1)), np.array([1.0, 1.0, 3.0]))
    >>> rows.weight[rows.merged]
    array([4., 1., 4.])
    """
    kept = np.flatnonzero(sample_weight > 0)
    if not merge:
        return Rows(kept, kept, np.arange(len(kept)), sample_weight[kept])
    if sp.issparse(X):
        keys = _sparse_keys(X[kept], extra[kept])
    else:
        table = np.hstack([extra[kept], X[kept]]) + 0.0  # + 0.0 turns -0.0 into 0.0
        keys = _hashes(table)
    _, first, merged = np.unique(keys, return_index=True, return_inverse=True)
    if not sp.issparse(X) and not _all_equal(table, first, merged):  # two different rows with one hash
        _, first, merged = np.unique(_row_bytes(table), return_index=True, return_inverse=True)
    return Rows(kept, kept[first], merged, np.bincount(merged, weights=sample_weight[kept], minlength=len(first)))


def _hashes(table: np.ndarray) -> np.ndarray:
    """Return 64 bits a row, a function of its entries only: sorting these is far cheaper than sorting rows."""
    odd = np.arange(1, 2 * table.shape[1], 2, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    hashes = np.empty(len(table), dtype=np.uint64)
    for start in range(0, len(table), BLOCK):
        bits = table[start : start + BLOCK].view(np.uint64)
        mixed = (bits ^ (bits >> np.uint64(29))) * odd
        mixed ^= mixed >> np.uint64(32)
        hashes[start : start + BLOCK] = (mixed * odd).sum(axis=1)
    return hashes


def _all_equal(table: np.ndarray, first: np.ndarray, merged: np.ndarray) -> bool:
    """Whether every row equals the one that it was merged into."""
    others = np.setdiff1d(np.arange(len(table)), first, assume_unique=True)
    return bool((table[others] == table[first[merged[others]]]).all())


def _row_bytes(table: np.ndarray) -> np.ndarray:
    """Return the bytes of each row as one sortable value."""
    return table.view(np.dtype((np.void, table.dtype.itemsize * table.shape[1]))).ravel()


def _sparse_keys(X: Any, extra: np.ndarray) -> np.ndarray:
    """Return one sortable key a row: the bytes of its extra columns, its pattern and its values."""
    matrix = sp.csr_matrix(X)
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    indices, data, ends = matrix.indices.astype(np.int64), matrix.data + 0.0, matrix.indptr
    extra = np.ascontiguousarray(extra + 0.0)
    keys = np.empty(matrix.shape[0], dtype=object)
    for i in range(len(keys)):
        row = slice(ends[i], ends[i + 1])
        keys[i] = extra[i].tobytes() + indices[row].tobytes() + data[row].tobytes()
    return keys
