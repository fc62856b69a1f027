"""The three products with X that a Newton step needs, dense by BLAS and CSR by compiled loops.

times(w) = X w,      columns(V) = X' V' for a few vectors, the lines of V,      gram(D) = (X, 1)' diag(D) (X, 1)
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

from nerm.solvers.interior_point.threads import RowThreads
from nerm.typing import Floats, Ints, Matrix

CHUNK = 2048  # rows scaled at a time, so that the scaled copy of a dense matrix stays in cache


class Features:
    """A matrix X as the engine sees it: a dense array, or a CSR matrix with sorted indices, which is never made dense.

    Attributes
    ----------
    shape
        (n, d).
    workers
        The threads that share its rows.
    passes
        How many products X w were taken.
    """

    def __init__(self, X: Matrix, workers: RowThreads) -> None:
        self.sparse, self.shape, self.workers, self.passes = sp.issparse(X), X.shape, workers, 0
        self.X = X if self.sparse else np.ascontiguousarray(X, dtype=float)
        self._arrays = (X.indptr, X.indices, X.data) if self.sparse else (self.X,)
        products: Any = (
            (_times, _columns, _gram) if self.sparse else (_dense_times, _dense_columns, _dense_gram)
        )
        self._times, self._columns, self._gram = products

    def times(self, w: Floats) -> Floats:
        """Return X w."""
        self.passes += 1
        out = np.empty(self.shape[0])
        self.workers.run(lambda *part: self._times(*self._arrays, w, out, *part))
        return out

    def columns(self, V: Floats) -> Floats:
        """Return X' V', V of shape (few, n)."""
        return self.workers.add_up(lambda *part: self._columns(*self._arrays, V, self.shape[1], *part))

    def gram(self, density: Floats) -> Floats:
        """Return the upper triangle of (X, 1)' diag(density) (X, 1), below which there may be anything."""
        return self.workers.add_up(lambda *part: self._gram(*self._arrays, density, self.shape[1], *part))

    def squares(self) -> Floats:
        """Return the squared length of each column."""
        X: Any = self.X
        return np.asarray(X.multiply(X).sum(axis=0)).ravel() if self.sparse else np.einsum("ij,ij->j", X, X)

    def some(self, rows: Ints) -> Features:
        """Return these rows of X."""
        return Features(self.X[rows], self.workers.fewer(len(rows)))


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
        for row in range(
            d
        ):  # one by one: an assignment of arrays takes seconds to compile, for the words of its error
            for j in range(4):
                out[row, k + j] = fours[row, j]
    for k in range(few - few % 4, few):
        for i in range(start, stop):
            v0 = V[k, i]
            for p in range(indptr[i], indptr[i + 1]):
                out[indices[p], k] += data[p] * v0
    return out


@numba.njit(cache=True, nogil=True)
def _gram(indptr, indices, data, density, d, start, stop):  # type: ignore[no-untyped-def]
    """Add density_i x_i x_i' row by row: k^2 / 2 sums for a row of k nonzeros, whose indices are sorted."""
    out = np.zeros((d + 1, d + 1))
    for i in range(start, stop):
        weight = density[i]
        out[d, d] += weight
        end = indptr[i + 1]
        for p in range(indptr[i], end):
            x = weight * data[p]
            line = out[indices[p]]
            line[d] += x
            for q in range(p, end):
                line[indices[q]] += x * data[q]
    return out


def _dense_times(X: Floats, w: Floats, out: Floats, start: int, stop: int) -> None:
    out[start:stop] = X[start:stop] @ w


def _dense_columns(X: Floats, V: Floats, d: int, start: int, stop: int) -> Floats:
    return np.asarray((V[:, start:stop] @ X[start:stop]).T)


def _dense_gram(X: Floats, density: Floats, d: int, start: int, stop: int) -> Floats:
    """Multiply scaled chunks of rows by BLAS."""
    out = np.zeros((d + 1, d + 1))
    for i in range(start, stop, CHUNK):
        part = slice(i, min(i + CHUNK, stop))
        scaled = np.sqrt(density[part])[:, None] * X[part]
        out[:d, :d] += scaled.T @ scaled
        out[:d, d] += density[part] @ X[part]
        out[d, d] += density[part].sum()
    return out
