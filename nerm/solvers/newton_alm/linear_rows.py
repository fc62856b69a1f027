"""Linear rows for the augmented Lagrangian, and their Newton systems.

Rows are dense or CSR. The systems are solved by conjugate gradients.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nerm.model.kernels import Linear
from nerm.solvers.interior_point.matrices import Features, RowThreads
from nerm.solvers.linalg.compiled import compiled
from nerm.solvers.linalg.systems import conjugate_gradients
from nerm.typing import Floats, Ints, Matrix

MAX_PRODUCTS = 300  # limit on the products with H in one Newton system


class LinearRows:
    """The rows (x_i, 1) of the data, or (x_i, 0) without an intercept.

    A hypothesis is stored as h = (w, b), (d + 1,).

    Attributes
    ----------
    shape
        (n, d + 1).
    norms
        `|x_i|^2` of every row, (n,).
    """

    def __init__(self, X: Matrix, workers: RowThreads, *, intercept: bool) -> None:
        self.features = Features(X, workers)
        self.intercept = intercept
        self.shape = (X.shape[0], X.shape[1] + 1)
        self.norms = Linear().diagonal(X)

    def coef(self, h: Floats) -> Floats:
        """Return the coefficients w of h = (w, b), (d,)."""
        return h[:-1]

    def scores(self, h: Floats) -> Floats:
        """Return the scores X w + b, (n,)."""
        return self.features.times(h[:-1]) + h[-1]

    def weighted_sum(self, parts: Floats, scales: Floats) -> Floats:
        """Return sum_j scales_j sum_i parts_ji (x_i, 1), (d + 1,).

        `parts` is (J, n) and `scales` is (J,). Without an intercept the last entry is 0.
        """
        c = scales @ parts
        return np.append(self.features.columns(c[None, :])[:, 0], c.sum() * self.intercept)

    def dot(self, one: Floats, other: Floats) -> float:
        """Return the inner product of two hypotheses (w, b), intercepts included."""
        return float(one @ other)

    def squared_norm(self, h: Floats) -> float:
        """Return `||w||^2`."""
        return float(h[:-1] @ h[:-1])

    def system(self, density: Floats, ridge: Floats, tol: float) -> LinearSystem:
        """Return the Newton system H for the row curvatures `density`, (n,).

        `ridge` is (lam, ..., lam, r), (d + 1,), with lam and r of `nerm.solvers.newton_alm.method`. Systems
        are solved to the relative accuracy `tol`.
        """
        return LinearSystem(self, density, ridge, tol)

    def curvature(self, rows: Ints, density: Floats) -> tuple[Callable[[Floats], Floats], Floats]:
        """Return the function q -> G q and the diagonal of G, (d + 1,).

        G = sum_i D_i (x_i, 1) (x_i, 1)' is summed over the given rows; `density` holds their D_i.
        """
        threads = self.features.workers.for_rows(len(rows))
        X: Matrix = self.features.X
        if self.features.sparse:
            arrays = X.indptr, X.indices, X.data, rows, density
            diagonal = threads.add_up(lambda *part: _diagonal(*arrays, self.shape[1], *part))
        else:
            X = X[rows]
            diagonal = np.append(density @ X**2, density.sum())

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
    """The Newton matrix H = diag(M) + A' diag(D) A + E' diag(1/R) E.

    M is `ridge`, D is `density`, and A has the rows (x_i, 1) with D_i > 0. E has one row e_k and R one width
    R_k per theta_k strictly inside (0, 1); see `nerm.solvers.newton_alm.method`. The conjugate gradients are
    preconditioned by the diagonal of H.

    Attributes
    ----------
    products
        Number of products with H so far.
    """

    def __init__(self, rows: LinearRows, density: Floats, ridge: Floats, tol: float) -> None:
        active = np.flatnonzero(density > 0)
        self._curvature, diagonal = rows.curvature(active, density[active])
        self._ridge = ridge
        self._tol = tol
        self._diagonal = ridge + diagonal
        self.products = 0

    def solve(self, right: Floats, lines: Floats, widths: Floats) -> Floats:
        """Return H^-1 right approximately, (d + 1,).

        E is `lines`, (m, d + 1), and R is `widths`, (m,), for m thetas inside (0, 1).
        """
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
        """Return e'H^-1 e approximately, for H without the term E' diag(1/R) E."""
        return float(e @ self.solve(e, np.zeros((0, len(e))), np.zeros(0)))


@compiled()
def _curvature(indptr, indices, data, rows, density, q, start, stop):  # type: ignore[no-untyped-def]
    """Return sum_i D_i (x_i, 1) (x_i, 1)'q over rows[start:stop] of a CSR matrix, (d + 1,).

    Both products with a row are taken together, while the row is in the processor's cache.
    """
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


@compiled()
def _diagonal(indptr, indices, data, rows, density, size, start, stop):  # type: ignore[no-untyped-def]
    """Return the diagonal of sum_i D_i (x_i, 1) (x_i, 1)', (d + 1,).

    The sum is over rows[start:stop] of a CSR matrix.
    """
    out = np.zeros(size)
    for k in range(start, stop):
        out[size - 1] += density[k]
        for p in range(indptr[rows[k]], indptr[rows[k] + 1]):
            out[indices[p]] += density[k] * data[p] * data[p]
    return out
