"""Newton's direction by conjugate gradients: products with the rows that curve, and nothing of their size squared.

H = diag(M) + A' diag(D) A + E' diag(1/R) E,    A the rows (x_i, 1) with D_i > 0, E a line for each theta inside (0, 1)
"""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from nerm.model.kernels import Linear
from nerm.solvers.interior_point.matrices import Features, RowThreads
from nerm.solvers.newton_alm.giving_up import GaveUpError
from nerm.typing import Floats, Ints, Matrix

CALL = 100_000  # entries that could be multiplied while Python sees to one product


class RowProducts:
    """The rows (x_i, 1) of all data, dense or CSR, and the products with them; without an intercept, (x_i, 0).

    Attributes
    ----------
    shape
        (n, d + 1).
    norms
        |x_i|^2 of every row.
    passes
        How often rows were multiplied, in units of all rows.
    work
        How many entries were multiplied, each product counted as `CALL` more.
    most
        Work before `GaveUpError` is raised, looked at once a Newton system.
    """

    def __init__(self, X: Matrix, workers: RowThreads, *, intercept: bool, most: float = np.inf) -> None:
        self.features, self.intercept, self.most = Features(X, workers), intercept, most
        self._entries = X.nnz if self.features.sparse else X.size
        self.count_anew()
        self.shape, self.norms = (X.shape[0], X.shape[1] + 1), Linear().diagonal(X)

    def count_anew(self) -> None:
        """Forget the work so far."""
        self.passes = self.work = 0.0

    def _count(self, share: float) -> None:
        """Count a product with this share of the rows."""
        self.passes += share
        self.work += share * self._entries + CALL

    def coef(self, h: Floats) -> Floats:
        """Return w."""
        return h[:-1]

    def times(self, h: Floats) -> Floats:
        """Return X w + b of h = (w, b)."""
        self._count(1.0)
        return self.features.times(h[:-1]) + h[-1]

    def adjoint(self, c: Floats) -> Floats:
        """Return sum_i c_i (x_i, 1)."""
        self._count(1.0)
        return np.append(self.features.columns(c[None, :])[:, 0], c.sum() * self.intercept)

    def pull(self, parts: Floats, shares: Floats) -> Floats:
        """Return sum_j shares_j sum_i parts_ji (x_i, 1)."""
        return self.adjoint(shares @ parts)

    def dot(self, one: Floats, other: Floats) -> float:
        """Return the product of two hypotheses, or of directions."""
        return float(one @ other)

    def square(self, h: Floats) -> float:
        """Return ||w||^2 of h = (w, b)."""
        return float(h[:-1] @ h[:-1])

    def system(self, density: Floats, ridge: Floats) -> System:
        """Return H where rows have these curvatures."""
        if self.work > self.most:
            raise GaveUpError(f"{self.passes:.0f} passes over the rows")
        return System(self, density, ridge)

    def curve(self, rows: Ints, density: Floats) -> tuple[Callable[[Floats], Floats], Floats]:
        """Return q -> sum_i D_i (x_i, 1) (x_i, 1)'q over these rows, one pass over them a call, and its diagonal."""
        share, threads = len(rows) / self.shape[0], self.features.workers.fewer(len(rows))
        X: Matrix = self.features.X
        if self.features.sparse:
            arrays = X.indptr, X.indices, X.data, rows, density
            squares = threads.add_up(lambda *part: _squares(*arrays, self.shape[1], *part))
        else:
            X = X[rows]
            squares = np.append(density @ X**2, density.sum())

        def product(q: Floats) -> Floats:
            self._count(share)
            if self.features.sparse:
                out = threads.add_up(lambda *part: _curve(*arrays, q, *part))
            else:
                moved = density * (X @ q[:-1] + q[-1])
                out = np.append(moved @ X, moved.sum())
            out[-1] *= self.intercept
            return out

        return product, squares


@numba.njit(cache=True, nogil=True)
def _curve(indptr, indices, data, rows, density, q, start, stop):  # type: ignore[no-untyped-def]
    """Each row twice while it is in cache: its product with q, then itself times that."""
    out = np.zeros(q.shape[0])
    last = q.shape[0] - 1
    for k in range(start, stop):
        first, end = indptr[rows[k]], indptr[rows[k] + 1]
        total = q[last]
        for p in range(first, end):
            total += data[p] * q[indices[p]]
        total *= density[k]
        out[last] += total
        for p in range(first, end):
            out[indices[p]] += data[p] * total
    return out


@numba.njit(cache=True, nogil=True)
def _squares(indptr, indices, data, rows, density, size, start, stop):  # type: ignore[no-untyped-def]
    out = np.zeros(size)
    for k in range(start, stop):
        out[size - 1] += density[k]
        for p in range(indptr[rows[k]], indptr[rows[k] + 1]):
            out[indices[p]] += density[k] * data[p] * data[p]
    return out


class System:
    """H at one point, with its diagonal as preconditioner."""

    def __init__(self, rows: RowProducts, density: Floats, ridge: Floats) -> None:
        which = np.flatnonzero(density > 0)
        self._curve, squares = rows.curve(which, density[which])
        self._ridge, self._diagonal, self.iterations = ridge, ridge + squares, 0

    def solve(self, rhs: Floats, lines: Floats, widths: Floats, tol: float, limit: int) -> Floats:
        """Return an approximate H^-1 rhs: until the residual, in the preconditioner's norm, is tol of what it was."""
        diagonal = self._diagonal + (lines**2 / widths[:, None]).sum(axis=0)
        x, r = np.zeros_like(rhs), rhs.copy()
        z = r / diagonal
        q, size = z.copy(), float(r @ z)
        enough = tol**2 * size
        for _ in range(limit if size > 0 else 0):
            product = self._ridge * q + self._curve(q)
            if len(lines):
                product += ((lines @ q) / widths) @ lines
            step = size / float(q @ product)
            x += step * q
            r -= step * product
            np.divide(r, diagonal, out=z)
            size, last = float(r @ z), size
            self.iterations += 1
            if not size > enough:
                break
            q *= size / last
            q += z
        return x

    def reach(self, e: Floats, tol: float, limit: int) -> float:
        """Return e'H^-1 e, nearly."""
        return float(e @ self.solve(e, np.zeros((0, len(e))), np.zeros(0), tol, limit))
