"""Products with the rows X by several threads, and coordinates for (w, b).

`Features` computes X w, X'V' for a few row vectors V, and (X, 1)' diag(D) (X, 1). It uses BLAS for dense X
and compiled loops for sparse X (CSR).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from copy import copy
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg.lapack import dpotrf
from threadpoolctl import ThreadpoolController

from nerm.model.hypothesis import far_offset
from nerm.solvers.linalg.compiled import compiled
from nerm.solvers.linalg.systems import pivoted_cholesky
from nerm.typing import Floats, Ints, Matrix

BLOCK_ROWS = 2048  # rows scaled at a time, so that the scaled copy of a dense matrix stays in cache
ROWS_PER_THREAD = 3000  # a thread with fewer costs more than it gains
BLAS_COLUMNS = 500  # columns from which on threads of BLAS pay in the Newton system
WIDE = 200  # columns from which on coordinates in the row space pay
ROW_SPACE = 1e-13  # relative residual at which pivoted Cholesky has found the whole row space


T = TypeVar("T")


class RowThreads:
    """Contiguous ranges of rows, one per thread; a context manager that owns the threads.

    If there are several ranges or few columns, BLAS is limited to one thread: on small products the threads
    of BLAS mostly wait for each other.

    Parameters
    ----------
    n, columns
        The shape of the matrix whose rows are divided among the threads.
    count
        The largest number of threads; by default one per core.
    """

    def __init__(self, n: int, columns: int, count: int | None = None) -> None:
        self.count = cores() if count is None else count
        self.ranges = self._ranges(n)
        self._one_thread = len(self.ranges) > 1 or columns < BLAS_COLUMNS or count == 1
        self._pool: ThreadPoolExecutor | None = None

    def for_rows(self, n: int) -> RowThreads:
        """Return ranges of `n` rows, fewer than here, on the same threads.

        The result can be used only while these threads are open.
        """
        few = copy(self)
        few.ranges = self._ranges(n)
        return few

    def _ranges(self, n: int) -> list[tuple[int, int]]:
        count = max(1, min(self.count, n // (ROWS_PER_THREAD)))
        return list(pairwise(n * i // count for i in range(count + 1)))

    def __enter__(self) -> RowThreads:
        self._held = ExitStack()
        if self._one_thread:
            self._held.enter_context(blas.held())
        if len(self.ranges) > 1:
            self._pool = self._held.enter_context(
                ThreadPoolExecutor(len(self.ranges) - 1, initializer=blas.limit)
            )
        return self

    def __exit__(self, *exc: object) -> None:
        self._pool = None
        self._held.close()

    def run(self, work: Callable[[int, int], T]) -> list[T]:
        """Return the list of work(start, stop) over all ranges.

        The first range is computed on the calling thread.
        """
        if self._pool is None or len(self.ranges) == 1:
            return [work(*part) for part in self.ranges]
        others = [self._pool.submit(work, *part) for part in self.ranges[1:]]
        return [work(*self.ranges[0]), *(other.result() for other in others)]

    def add_up(self, work: Callable[[int, int], Floats]) -> Floats:
        """Return the sum of work(start, stop) over the ranges."""
        parts = self.run(work)
        return parts[0] if len(parts) == 1 else np.asarray(np.sum(parts, axis=0))


def cores() -> int:
    """Return the number of cores that this process may use, at most 8."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)


class _Blas:
    """Limits the BLAS libraries to one thread.

    Depending on the build, the number of threads belongs to the calling thread or to the process. So every
    caller sets and restores it, and the last caller restores the number that the first one found.
    """

    def __init__(self) -> None:
        self._lock, self._holders = Lock(), 0
        self._first: Any = None

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        return ThreadpoolController()  # to find them takes longer than a small problem

    def limit(self) -> Any:
        """Limit BLAS to one thread.

        Call restore_original_limits() on the returned object to restore the earlier number of threads.
        """
        return self._libraries.limit(limits=1, user_api="blas")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Limit BLAS to one thread inside a `with` statement."""
        with self._lock:
            found = self.limit()
            self._first = found if self._holders == 0 else self._first
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                found.restore_original_limits()
                self._holders -= 1
                if self._holders == 0:
                    self._first.restore_original_limits()


blas = _Blas()


class Features:
    """The rows X, (n, d): a dense array, or a CSR matrix that is never made dense.

    The column indices of a CSR matrix must be sorted.

    Attributes
    ----------
    shape
        (n, d).
    workers
        The threads that share the rows.
    passes
        The number of products X w so far.
    """

    def __init__(self, X: Matrix, workers: RowThreads) -> None:
        self.sparse, self.shape, self.workers, self.passes = sp.issparse(X), X.shape, workers, 0
        self.X = X if self.sparse else np.ascontiguousarray(X, dtype=float)
        self._arrays = (X.indptr, X.indices, X.data) if self.sparse else (self.X,)
        self._gram: Any = _gram if self.sparse else _dense_gram
        self._parts = {part: _slice(self.X, *part) for part in workers.ranges}

    def times(self, w: Floats) -> Floats:
        """Return X w, (n,)."""
        self.passes += 1
        found = self.workers.run(lambda *part: self._parts[part] @ w)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def columns(self, V: Floats) -> Floats:
        """Return X'V', (d, few), for V of shape (few, n)."""
        return self.workers.add_up(lambda *part: self._parts[part].T @ V[:, slice(*part)].T)

    def gram(self, density: Floats) -> Floats:
        """Return (X, 1)' diag(density) (X, 1), (d + 1, d + 1), for density (n,).

        Only the upper triangle is valid.
        """
        if self.sparse and self.shape[1] > BLAS_COLUMNS:
            return self._gram_by_columns(density)
        return self.workers.add_up(lambda *part: self._gram(*self._arrays, density, self.shape[1], *part))

    def _gram_by_columns(self, density: Floats) -> Floats:
        """Return `gram` of a sparse X with many columns, line by line.

        The whole matrix does not fit into the processor's cache, but one of its lines does. The threads share
        one matrix: each takes every `count`-th line.
        """
        out, workers = np.zeros((self.shape[1] + 1,) * 2), self.workers
        given = *self._arrays, *self._by_column, density, out, len(workers.ranges)
        workers.run(lambda *part: _gram_lines(*given, workers.ranges.index(part)))
        out[-1, -1] = density.sum()
        return out

    @cached_property
    def _by_column(self) -> tuple[Ints, Ints, Ints]:
        """The entries in the order of their columns: where each column starts, their rows and places."""
        X: Any = self.X
        numbers = np.arange(X.nnz, dtype=X.indptr.dtype)
        places = sp.csr_array((numbers, X.indices, X.indptr), shape=self.shape).tocsc()
        return places.indptr, places.indices, places.data

    def squares(self) -> Floats:
        """Return the sum of squares of each column, (d,)."""
        X: Any = self.X
        return np.asarray(X.multiply(X).sum(axis=0)).ravel() if self.sparse else np.einsum("ij,ij->j", X, X)

    def some(self, rows: Ints) -> Features:
        """Return the features of the given rows."""
        return Features(self.X[rows], self.workers.for_rows(len(rows)))


def _slice(X: Any, start: int, stop: int) -> Any:
    """Return some rows of X without a copy."""
    if not sp.issparse(X):
        return X[start:stop]
    ends = X.indptr[start : stop + 1]
    part = slice(ends[0], ends[-1])
    return sp.csr_array((X.data[part], X.indices[part], ends - ends[0]), shape=(stop - start, X.shape[1]))


@compiled()
def _gram(indptr, indices, data, density, d, start, stop):  # type: ignore[no-untyped-def]
    """Return the upper triangle of (X, 1)' diag(density) (X, 1) of a CSR matrix.

    The sum is over the rows start to stop. A row of k nonzeros, whose indices are sorted, adds k^2 / 2
    products.
    """
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


@compiled()
def _gram_lines(indptr, indices, data, starts, rows, places, density, out, count, number):  # type: ignore[no-untyped-def]
    """Write every `count`-th line of the upper triangle of (X, 1)' diag(density) (X, 1), from `number` on."""
    d = out.shape[0] - 1
    for j in range(number, d, count):
        line = out[j]
        for k in range(starts[j], starts[j + 1]):
            p = places[k]
            x = density[rows[k]] * data[p]
            line[d] += x
            for q in range(p, indptr[rows[k] + 1]):
                line[indices[q]] += x * data[q]


def _dense_gram(X: Floats, density: Floats, d: int, start: int, stop: int) -> Floats:
    """Return (X, 1)' diag(density) (X, 1) of a dense X; see `Features.gram`.

    The sum is over the rows start to stop. BLAS multiplies chunks of rows that are scaled by sqrt(density).
    """
    out = np.zeros((d + 1, d + 1))
    for i in range(start, stop, BLOCK_ROWS):
        part = slice(i, min(i + BLOCK_ROWS, stop))
        scaled = np.sqrt(density[part])[:, None] * X[part]
        out[:d, :d] += scaled.T @ scaled
        out[:d, d] += density[part] @ X[part]
        out[d, d] += density[part].sum()
    return out


Outside = Callable[[Floats, float], tuple[Floats, float]]  # from the unknowns of the method to (w, b)


def choose_coordinates(X: Any, *, intercept: bool, axes: bool = False) -> tuple[Outside, Any]:
    """Choose coordinates for (w, b) with a small Newton system.

    They keep scores and norm. Wide data (d > n) have coordinates in the row space: a pivoted Cholesky
    factorization X X' = Z Z' of rank r chooses r rows of X, the pivots, that span the row space. The optimal
    w is a combination X[pivots]'c of these rows. The unknown is v = Z[pivots]'c, which has r <= n entries,
    with X w = Z v and ||w|| = ||v||. Other data keep w. If the columns of X are far from 0, an offset is
    subtracted (`nerm.model.hypothesis.far_offset`), and the unknown intercept is b + offset.w. If `axes`, the
    unknowns stay the coefficients, because the problem has norms of coefficients or of groups.

    Returns
    -------
    outside, features
        A function that returns (w, b) for the unknowns, and the features in these coordinates.
    """
    n, d = X.shape
    if d > n and d >= WIDE and not axes:
        K = X @ X.T
        factor = pivoted_cholesky(K.toarray() if sp.issparse(K) else K, ROW_SPACE)
        return lambda v, b: (np.asarray(X[factor.pivots].T @ factor.expansion(v)), float(b)), factor.Z
    offset = far_offset(X) if intercept else np.zeros(d)
    return lambda w, b: (w, float(b - offset @ w)), X - offset if offset.any() else X


def cholesky(matrix: Floats) -> Floats:
    """Return the upper Cholesky factor of a positive semidefinite matrix.

    The matrix is changed in place: before each factorization, add a multiple of its mean diagonal entry to
    the diagonal, at first 4e-16 times its size, then 100 times more each time. LAPACK is called directly,
    since on small systems the checks of scipy cost as much as the factorization.
    """
    diagonal = np.arange(len(matrix))
    mean = float(matrix.diagonal().mean())
    jitter = 4e-16 * len(matrix)
    while jitter <= 1:
        matrix[diagonal, diagonal] += jitter * mean
        factor, failed = dpotrf(matrix)
        if not failed:
            return np.asarray(factor)
        jitter *= 100
    raise np.linalg.LinAlgError("the system is not positive definite")
