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
    >>> rows.first, rows.merged, rows.weight
    (array([0, 1]), array([0, 1, 0]), array([4., 1.]))
    """
    kept = np.flatnonzero(sample_weight > 0)
    if not merge:
        return Rows(kept, kept, np.arange(len(kept)), sample_weight[kept])
    keys = _sparse_keys(X[kept], extra[kept]) if sp.issparse(X) else _dense_keys(X[kept], extra[kept])
    _, first, merged = np.unique(keys, return_index=True, return_inverse=True)
    return Rows(kept, kept[first], merged, np.bincount(merged, weights=sample_weight[kept], minlength=len(first)))


def _dense_keys(X: np.ndarray, extra: np.ndarray) -> np.ndarray:
    """Return one sortable key a row: its bytes, after -0.0 became 0.0."""
    table = np.ascontiguousarray(np.hstack([extra, X]) + 0.0)
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
