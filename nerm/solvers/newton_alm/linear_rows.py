"""Rows of X for the augmented Lagrangian, dense or CSR, and Newton systems on them by conjugate gradients."""

from __future__ import annotations

from collections.abc import Callable

import numba
import numpy as np

from nerm.model.kernels import Linear
from nerm.solvers.interior_point.matrices import Features, RowThreads
from nerm.solvers.linalg.systems import conjugate_gradients
from nerm.typing import Floats, Ints, Matrix

MAX_PRODUCTS = 300  # of one Newton system


class LinearRows:
    """The rows (x_i, 1) of the data, (x_i, 0) without an intercept; a hypothesis is h = (w, b).

    Attributes
    ----------
    shape
        (n, d + 1).
    norms
        `|x_i|^2` of every row.
    """

    def __init__(self, X: Matrix, workers: RowThreads, *, intercept: bool) -> None:
        self.features = Features(X, workers)
        self.intercept = intercept
        self.shape = (X.shape[0], X.shape[1] + 1)
        self.norms = Linear().diagonal(X)

    def coef(self, h: Floats) -> Floats:
        """Return w."""
        return h[:-1]

    def scores(self, h: Floats) -> Floats:
        """Return X w + b."""
        return self.features.times(h[:-1]) + h[-1]

    def weighted_sum(self, parts: Floats, scales: Floats) -> Floats:
        """Return sum_j scales_j sum_i parts_ji (x_i, 1)."""
        c = scales @ parts
        return np.append(self.features.columns(c[None, :])[:, 0], c.sum() * self.intercept)

    def dot(self, one: Floats, other: Floats) -> float:
        """Return w.w' + b b' of two hypotheses."""
        return float(one @ other)

    def squared_norm(self, h: Floats) -> float:
        """Return `||w||^2`."""
        return float(h[:-1] @ h[:-1])

    def system(self, density: Floats, ridge: Floats, tol: float) -> LinearSystem:
        """Return H for rows with these curvatures, solved to this relative accuracy."""
        return LinearSystem(self, density, ridge, tol)

    def curvature(self, rows: Ints, density: Floats) -> tuple[Callable[[Floats], Floats], Floats]:
        """Return q -> sum_i D_i (x_i, 1) (x_i, 1)'q over these rows, and the diagonal of this matrix."""
        threads = self.features.workers.for_rows(len(rows))
        X: Matrix = self.features.X
        if self.features.sparse:
            arrays = X.indptr, X.indices, X.data, rows, density
        X = X[rows]
        squares = X.multiply(X) if self.features.sparse else X**2
        diagonal = np.append(density @ squares, density.sum())

        def product(q: Floats) -> Floats:
            if self.features.sparse:
                out = threads.add_up(lambda *part: _curvature(*arrays, q, *part))
            else:
                c = density * (X @ q[:-1] + q[-1])
                out = np.append(c @ X, c.sum())
            out[-1] *= self.intercept
            return out

        return product, diagonal


class LinearSystem:
    """H = diag(M) + A' diag(D) A + E' diag(1/R) E, preconditioned by its diagonal.

    A has the rows (x_i, 1) with D_i > 0, and E one row per theta inside (0, 1).

    Attributes
    ----------
    products
        How many products with H were taken.
    """

    def __init__(self, rows: LinearRows, density: Floats, ridge: Floats, tol: float) -> None:
        active = np.flatnonzero(density > 0)
        self._curvature, diagonal = rows.curvature(active, density[active])
        self._ridge = ridge
        self._tol = tol
        self._diagonal = ridge + diagonal
        self.products = 0

    def solve(self, right: Floats, lines: Floats, widths: Floats) -> Floats:
        """Return an approximate H^-1 right, E = `lines` and R = `widths`."""
        diagonal = (self._diagonal + (lines**2 / widths[:, None]).sum(axis=0))[:, None]

        def product(q: Floats) -> Floats:
            q = q[:, 0]
            out = self._ridge * q + self._curvature(q)
            if len(lines):
                out += ((lines @ q) / widths) @ lines
            return out[:, None]

        found, products = conjugate_gradients(
            product, lambda r: r / diagonal, right[:, None], self._tol, MAX_PRODUCTS
        )
        self.products += products
        return found[:, 0]

    def quadratic_form(self, e: Floats) -> float:
        """Return about e'H^-1 e, H without the part of E."""
        return float(e @ self.solve(e, np.zeros((0, len(e))), np.zeros(0)))


@numba.njit(cache=True, nogil=True)
def _curvature(indptr, indices, data, rows, density, q, start, stop):  # type: ignore[no-untyped-def]
    """Return sum_i D_i x_i (x_i'q); both products with a row are taken while it is in cache."""
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
