"""The three products with X that a Newton step needs, dense by BLAS and CSR by compiled loops.

times(w) = X w,          columns(V) = X' V' for a few vectors, the lines of V,          gram(D) = X' diag(D) X
"""

from __future__ import annotations

from typing import Protocol

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

    def gram(self, density: np.ndarray) -> np.ndarray:
        """Return the upper triangle of X' diag(density) X; what lies below is arbitrary."""


@numba.njit(cache=True, nogil=True)
def _times(indptr, indices, data, w, out, start, stop):  # type: ignore[no-untyped-def]
    for i in range(start, stop):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += data[p] * w[indices[p]]
        out[i] = total


@numba.njit(cache=True, nogil=True)
def _columns(indptr, indices, data, V, d, start, stop):  # type: ignore[no-untyped-def]
    few = V.shape[0]
    out = np.zeros((d, few))
    here = np.empty(few)
    for i in range(start, stop):
        for k in range(few):
            here[k] = V[k, i]
        for p in range(indptr[i], indptr[i + 1]):
            x = data[p]
            row = indices[p]
            for k in range(few):
                out[row, k] += x * here[k]
    return out


@numba.njit(cache=True, nogil=True)
def _gram(indptr, indices, data, density, d, start, stop):  # type: ignore[no-untyped-def]
    """Add density_i x_i x_i' row by row: k^2 / 2 sums for a row of k nonzeros, whose indices are sorted."""
    out = np.zeros((d, d))
    for i in range(start, stop):
        weight = density[i]
        if weight == 0.0:
            continue
        end = indptr[i + 1]
        for p in range(indptr[i], end):
            x = weight * data[p]
            line = out[indices[p]]
            for q in range(p, end):
                line[indices[q]] += x * data[q]
    return out


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

    def gram(self, density: np.ndarray) -> np.ndarray:
        """Return the upper triangle of X' diag(density) X."""
        return np.sum(
            self._blocks.run(lambda start, stop: _gram(*self._csr, density, self.shape[1], start, stop)), axis=0
        )


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

    def gram(self, density: np.ndarray) -> np.ndarray:
        """Return X' diag(density) X, by rank-k updates of chunks of rows."""
        root = np.sqrt(density)[:, None]

        def work(start: int, stop: int) -> np.ndarray:
            out = np.zeros((self.shape[1], self.shape[1]))
            for i in range(start, stop, CHUNK):
                part = slice(i, min(i + CHUNK, stop))
                scaled = self._X[part] * root[part]
                out += scaled.T @ scaled
            return out

        return np.sum(self._blocks.run(work), axis=0)
