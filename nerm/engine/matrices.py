"""The three products with X that a Newton step needs, dense by BLAS and CSR by compiled loops.

    times(w) = X w,      columns(V) = X' V' for a few vectors, the lines of V,      gram(D) = (X, 1)' diag(D) (X, 1)

Late in the iteration most rows have a density D that does not matter beside that of the few on a kink. `gram` leaves
out rows below `least`: Newton's direction changes a little, the certificate not at all.
"""

from __future__ import annotations

from typing import Any, Protocol

import numba
import numpy as np
import scipy.sparse as sp

from nerm.engine.threads import Blocks

CHUNK = 2048  # rows scaled at a time, so that the scaled copy of a dense matrix stays in cache


class Features(Protocol):
    """A matrix X as the engine sees it."""

    shape: tuple[int, int]

    def times(self, w: np.ndarray) -> np.ndarray:
        """Return X w."""

    def columns(self, V: np.ndarray) -> np.ndarray:
        """Return X' V', V of shape (few, n)."""

    def gram(self, density: np.ndarray, least: float) -> np.ndarray:
        """Return the upper triangle of (X, 1)' diag(density) (X, 1) over rows of density > least."""

    def grouped(self, label: np.ndarray, forces: np.ndarray, count: int) -> np.ndarray:
        """Return sum of forces_ji x_i over all (j, i) of each label, (count, d); label and forces are (J, n)."""

    def some(self, rows: np.ndarray, further: np.ndarray, blocks: Blocks) -> Features:
        """Return these rows of X with a few further ones, dense, below them."""


@numba.njit(cache=True, nogil=True)
def _times(indptr, indices, data, w, out, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * w[indices[p]]
        out[i] = total


@numba.njit(cache=True, nogil=True)
def _columns(indptr, indices, data, V, d, start, stop):  # type: ignore[no-untyped-def]
    """Take the lines of V by fours, a vector register, and the rest one by one."""
    few = V.shape[0]
    out = np.zeros((d, few))
    fours = np.zeros((d, 4))
    for k in range(0, few - few % 4, 4):
        fours[:] = 0.0
        for i in range(start, stop):
            v0, v1, v2, v3 = V[k, i], V[k + 1, i], V[k + 2, i], V[k + 3, i]
            for p in range(indptr[i], indptr[i + 1]):
                x = data[p]
                row = indices[p]
                fours[row, 0] += x * v0
                fours[row, 1] += x * v1
                fours[row, 2] += x * v2
                fours[row, 3] += x * v3
        out[:, k : k + 4] = fours
    for k in range(few - few % 4, few):
        for i in range(start, stop):
            v0 = V[k, i]
            for p in range(indptr[i], indptr[i + 1]):
                out[indices[p], k] += data[p] * v0
    return out


@numba.njit(cache=True, nogil=True)
def _gram(indptr, indices, data, density, least, d, start, stop):  # type: ignore[no-untyped-def]
    """Add density_i x_i x_i' row by row: k^2 / 2 sums for a row of k nonzeros, whose indices are sorted."""
    out = np.zeros((d + 1, d + 1))
    for i in range(start, stop):
        weight = density[i]
        if weight <= least:
            continue
        out[d, d] += weight
        end = indptr[i + 1]
        for p in range(indptr[i], end):
            x = weight * data[p]
            line = out[indices[p]]
            line[d] += x
            for q in range(p, end):
                line[indices[q]] += x * data[q]
    return out


@numba.njit(cache=True, nogil=True)
def _grouped(indptr, indices, data, label, forces, count, d, start, stop):  # type: ignore[no-untyped-def]
    out = np.zeros((count, d))
    for i in range(start, stop):
        for j in range(label.shape[0]):
            if label[j, i] >= 0:
                line = out[label[j, i]]
                for p in range(indptr[i], indptr[i + 1]):
                    line[indices[p]] += forces[j, i] * data[p]
    return out


@numba.njit(cache=True, nogil=True)
def _gathered(indptr, indices, data, rows, further):  # type: ignore[no-untyped-def]
    """Return some rows of a CSR matrix, and dense rows below them, as a CSR matrix."""
    few, d = further.shape
    count = np.zeros(len(rows) + few + 1, indptr.dtype)
    for i in range(len(rows)):
        count[i + 1] = count[i] + indptr[rows[i] + 1] - indptr[rows[i]]
    for q in range(few):
        count[len(rows) + q + 1] = count[len(rows) + q] + d
    columns, values = np.empty(count[-1], indices.dtype), np.empty(count[-1])
    for i in range(len(rows)):
        start = indptr[rows[i]]
        for p in range(count[i + 1] - count[i]):
            columns[count[i] + p] = indices[start + p]
            values[count[i] + p] = data[start + p]
    for q in range(few):
        for p in range(d):
            columns[count[len(rows) + q] + p] = p
            values[count[len(rows) + q] + p] = further[q, p]
    return count, columns, values


class SparseFeatures:
    """A CSR matrix with sorted indices; never made dense."""

    def __init__(self, X: sp.csr_matrix, blocks: Blocks) -> None:
        self.shape = X.shape
        self._csr = X.indptr, X.indices, np.asarray(X.data, dtype=float)
        self._blocks = blocks

    def times(self, w: np.ndarray) -> np.ndarray:
        """Return X w."""
        out = np.empty(self.shape[0])
        self._blocks.run(lambda start, stop: _times(*self._csr, w, out, start, stop))
        return out

    def columns(self, V: np.ndarray) -> np.ndarray:
        """Return X' V'."""
        return np.sum(self._blocks.run(lambda start, stop: _columns(*self._csr, V, self.shape[1], start, stop)), axis=0)

    def gram(self, density: np.ndarray, least: float) -> np.ndarray:
        """Return the upper triangle, by compiled loops over the nonzeros of each row."""
        given = *self._csr, density, least, self.shape[1]
        return np.sum(self._blocks.run(lambda start, stop: _gram(*given, start, stop)), axis=0)

    def grouped(self, label: np.ndarray, forces: np.ndarray, count: int) -> np.ndarray:
        """Return the sums of each label."""
        given = *self._csr, label, forces, count, self.shape[1]
        return np.sum(self._blocks.run(lambda start, stop: _grouped(*given, start, stop)), axis=0)

    def some(self, rows: np.ndarray, further: np.ndarray, blocks: Blocks) -> SparseFeatures:
        """Return these rows with further ones."""
        found = object.__new__(SparseFeatures)
        found.shape, found._blocks = (len(rows) + len(further), self.shape[1]), blocks
        found._csr = _gathered(*self._csr, rows, further)
        return found


@numba.njit(cache=True, nogil=True, fastmath={"reassoc", "contract"})
def _dense_times(X, w, out, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        total = 0.0
        for p in range(X.shape[1]):
            total += X[i, p] * w[p]
        out[i] = total


@numba.njit(cache=True, nogil=True)
def _dense_columns(X, V, start, stop):  # type: ignore[no-untyped-def]
    """Read X once for all lines of V; BLAS is slow on products this thin."""
    d = X.shape[1]
    out = np.zeros((V.shape[0], d))
    for i in range(start, stop):
        for k in range(V.shape[0]):
            x = V[k, i]
            for p in range(d):
                out[k, p] += x * X[i, p]
    return out.T


@numba.njit(cache=True, nogil=True)
def _dense_grouped(X, label, forces, count, start, stop):  # type: ignore[no-untyped-def]
    out = np.zeros((count, X.shape[1]))
    for i in range(start, stop):
        for j in range(label.shape[0]):
            if label[j, i] >= 0:
                line = out[label[j, i]]
                for p in range(X.shape[1]):
                    line[p] += forces[j, i] * X[i, p]
    return out


class DenseFeatures:
    """A dense matrix, its Gram matrix by BLAS on the blocks of rows."""

    def __init__(self, X: np.ndarray, blocks: Blocks) -> None:
        self.shape = X.shape
        self._X = np.ascontiguousarray(X, dtype=float)
        self._blocks = blocks

    def times(self, w: np.ndarray) -> np.ndarray:
        """Return X w."""
        out = np.empty(self.shape[0])
        self._blocks.run(lambda start, stop: _dense_times(self._X, w, out, start, stop))
        return out

    def columns(self, V: np.ndarray) -> np.ndarray:
        """Return X' V'."""
        return np.sum(self._blocks.run(lambda start, stop: _dense_columns(self._X, V, start, stop)), axis=0)

    def gram(self, density: np.ndarray, least: float) -> np.ndarray:
        """Return the matrix, by products of scaled chunks of rows."""
        n, d = self.shape
        rows = np.flatnonzero(density > least)
        few = len(rows) < 0.7 * n  # else copying the rows in question costs more than it saves
        count = len(rows) if few else n

        def work(start: int, stop: int) -> np.ndarray:
            out = np.zeros((d + 1, d + 1))
            start, stop = start * count // n, stop * count // n
            for i in range(start, stop, CHUNK):
                part: Any = slice(i, min(i + CHUNK, stop))
                part = rows[part] if few else part
                weight = density[part]
                scaled = np.sqrt(weight)[:, None] * self._X[part]
                out[:d, :d] += scaled.T @ scaled
                out[:d, d] += weight @ self._X[part]
                out[d, d] += weight.sum()
            return out

        return np.sum(self._blocks.run(work), axis=0)

    def grouped(self, label: np.ndarray, forces: np.ndarray, count: int) -> np.ndarray:
        """Return the sums of each label."""
        given = self._X, label, forces, count
        return np.sum(self._blocks.run(lambda start, stop: _dense_grouped(*given, start, stop)), axis=0)

    def some(self, rows: np.ndarray, further: np.ndarray, blocks: Blocks) -> DenseFeatures:
        """Return these rows with further ones."""
        return DenseFeatures(np.vstack([self._X[rows], further]), blocks)
