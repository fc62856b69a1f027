"""Linear and kernel rows for the augmented Lagrangian, and their Newton systems.

Linear rows are dense or CSR, and their systems are solved by conjugate gradients. Kernel rows have w = sum_i
c_i k(x_i, .). A hypothesis, a gradient or a direction is stored as one vector h = (c, K c, b) of length 2n +
1, where K is the (n, n) Gram matrix. Linear combinations of such vectors need no product with K. The inner
product of (c, K c, b) and (d, K d, e) is c'K d + b e, and the scores K c + b are read from h.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, solve_triangular
from scipy.linalg.lapack import dpotrs

from nerm.model.hypothesis import KernelHypothesis
from nerm.model.kernels import Linear
from nerm.solvers.interior_point.matrices import Features, RowThreads, cholesky
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
        self._rows, self._ridge, self._tol = rows, ridge, tol
        X: Any = rows.features.X[active]
        self._X, self._density = X, density[active]
        self._threads = rows.features.workers.for_rows(len(active))
        squares = X.power(2) if rows.features.sparse else X**2
        self._diagonal = ridge + np.append(squares.T @ self._density, self._density.sum())
        self.products = 0

    def _curvature(self, q: Floats) -> Floats:
        """Return A' diag(D) A q, (d + 1,)."""
        X, D = self._X, self._density
        if self._rows.features.sparse:
            given = X.indptr, X.indices, X.data, D, q
            out = self._threads.add_up(lambda *part: _curvature(*given, *part))
        else:
            c = D * (X @ q[:-1] + q[-1])
            out = np.append(c @ X, c.sum())
        out[-1] *= self._rows.intercept
        return out

    def solve(self, right: Floats, lines: Floats, widths: Floats) -> Floats:
        """Return H^-1 right approximately, (d + 1,).

        E is `lines`, (m, d + 1), and R is `widths`, (m,), for m thetas inside (0, 1).
        """
        diagonal = self._diagonal + (lines**2 / widths[:, None]).sum(axis=0)

        def product(q: Floats) -> Floats:
            out = self._curvature(q)
            out += self._ridge * q
            return out + ((lines @ q) / widths) @ lines if len(lines) else out

        found, products = conjugate_gradients(product, lambda r: r / diagonal, right, self._tol, MAX_PRODUCTS)
        self.products += products
        return found

    def quadratic_form(self, e: Floats) -> float:
        """Return e'H^-1 e approximately, for H without the term E' diag(1/R) E."""
        return float(e @ self.solve(e, np.zeros((0, len(e))), np.zeros(0)))


@compiled()
def _curvature(indptr, indices, data, density, q, start, stop):  # type: ignore[no-untyped-def]
    """Return sum_i D_i (x_i, 1) (x_i, 1)'q over the rows start to stop of a CSR matrix, (d + 1,).

    Both products with a row are taken together, while the row is in the processor's cache.
    """
    out = np.zeros(q.shape[0])
    last = q.shape[0] - 1
    for k in range(start, stop):
        first, end = indptr[k], indptr[k + 1]
        total = q[last]
        for p in range(first, end):
            total += data[p] * q[indices[p]]
        total *= density[k]
        out[last] += total
        for p in range(first, end):
            out[indices[p]] += data[p] * total
    return out


DIRECT = 2000  # Newton systems with at most this many rows are factored; larger ones use conjugate gradients
RANK = 5  # the preconditioner has rank at most RANK * sqrt(n)
RESIDUAL = 1e-3  # tolerance of the conjugate gradients


class KernelRows:
    """The rows (k(x_i, .), 1) of the data; the kernel version of `LinearRows`.

    A hypothesis is h = (c, K c, b), as the module describes, so `shape` is (n, 2n + 1). `norms` are the
    k(x_i, x_i), (n,).
    """

    def __init__(self, hypothesis: KernelHypothesis, *, intercept: bool) -> None:
        n = hypothesis.n
        self.hypothesis = hypothesis
        self.intercept = intercept
        self.shape = (n, 2 * n + 1)
        self.norms = hypothesis.squared_row_norms()
        self._parts = np.zeros((0, n))
        self._products = np.zeros((0, n))  # K times each row of _parts
        self._system: KernelSystem | None = None

    def expansion(self, rows: Ints, c: Floats, b: float) -> Floats:
        """Return h = (c, K c, b), (2n + 1,), for coefficients c on some rows.

        The coefficients of the other rows are 0.
        """
        n = self.shape[0]
        h = np.zeros(2 * n + 1)
        h[rows] = c
        h[n : 2 * n] = self.hypothesis.product(rows, c[:, None])[:, 0]
        h[-1] = b
        return h

    def square(self, rows: Ints) -> Floats:
        """Return K[rows, rows]."""
        K = self.hypothesis
        return K.gram[np.ix_(rows, rows)] if K.keeps_gram else K.some(rows).gram

    def coef(self, h: Floats) -> Floats:
        """Return the coefficients c of h = (c, K c, b), (n,)."""
        return h[: self.shape[0]]

    def scores(self, h: Floats) -> Floats:
        """Return the scores K c + b, (n,)."""
        return np.asarray(h[self.shape[0] : -1] + h[-1])

    def inner(self, one: Floats, other: Floats) -> float:
        """Return c'K d, the inner product without the intercepts.

        The hypotheses are stored as (c, K c, b) and (d, K d, e).
        """
        n = self.shape[0]
        return float(one[:n] @ other[n:-1])

    def dot(self, one: Floats, other: Floats) -> float:
        """Return the inner product c'K d + b e of two hypotheses.

        They are stored as (c, K c, b) and (d, K d, e): coefficients, product with K, intercept.
        """
        return self.inner(one, other) + float(one[-1] * other[-1])

    def squared_norm(self, h: Floats) -> float:
        """Return `||w||^2` = c'K c."""
        return self.inner(h, h)

    def weighted_sum(self, parts: Floats, scales: Floats) -> Floats:
        """Return sum_j scales_j sum_i parts_ji (k(x_i, .), 1) as a vector, (2n + 1,).

        It is (c, K c, sum_i c_i) for c = sum_j scales_j parts_j, with parts (J, n) and scales (J,). Without
        an intercept the last entry is 0. Only the change of `parts` since the previous call is multiplied by
        K, because late in a solve few rows change.
        """
        if self._parts.shape != parts.shape:
            self._parts = np.zeros_like(parts)
            self._products = np.zeros_like(parts)
        change = parts - self._parts
        rows = np.flatnonzero(change.any(axis=0))
        if len(rows):
            self._products = self._products + self.hypothesis.product(rows, change[:, rows].T).T
            self._parts = parts
        c = scales @ parts
        return np.concatenate([c, scales @ self._products, [c.sum() * self.intercept]])

    def system(self, density: Floats, ridge: Floats, tol: float) -> KernelSystem:
        """Return the Newton system H for the row curvatures `density`, (n,).

        `ridge` is (lam, ..., lam, r), with lam and r of `nerm.solvers.newton_alm.method`. The previous system
        is returned again if lam and the set of rows with positive curvature are the same and no curvature
        changed by more than the relative amount `tol`.
        """
        rows = np.flatnonzero(density > 0)
        lam = float(ridge[0])
        if self._system is None or not self._system.is_similar(rows, density[rows], lam, tol):
            self._system = KernelSystem(self, rows, density[rows], lam, float(ridge[-1]))
        return self._system

    @cached_property
    def preconditioner(self) -> tuple[Floats, Floats]:
        """The Nystroem approximation K = Z Z' + E of the Gram matrix from random rows.

        It consists of the factor Z, (n, rank), and the diagonal of E, (n,).
        """
        n = self.shape[0]
        rows = np.random.default_rng(0).permutation(n)[: int(RANK * np.sqrt(n))]
        columns = self.hypothesis.gram_rows(rows)
        Z = solve_triangular(cholesky(columns[:, rows].T), columns, trans=1).T
        return Z, np.maximum(self.norms - np.einsum("ij,ij->i", Z, Z), 0.0)


class KernelSystem:
    """The Newton matrix H at one point, reduced to the rows with positive curvature.

    I is the set of these rows, and D_i > 0 is the curvature of row i in I. The unknown is x = (w, b), the
    right side is g = (g_w, g_b). Each theta_k strictly inside (0, 1) adds a function e_k and a width R_k (see
    `nerm.solvers.newton_alm.method`). g_w(I) and e_k(I) are values at the rows in I, and e_kb is the last
    entry of e_k. With p and s as below, H x = g reads

    ::

        p_i = D_i (w(x_i) + b),    s_k = <e_k, x> / R_k
        w   = (g_w - sum_i p_i k(x_i, .) - sum_k s_k e_k) / lam
        S p + sum_k s_k e_k(I) / lam - b = g_w(I) / lam,    S = K_II / lam + 1 / D
        r b + sum_i p_i + sum_k s_k e_kb = g_b

    If I has at most `DIRECT` rows, S is factored. Otherwise systems with S are solved by conjugate gradients;
    the preconditioner is S with K replaced by a low-rank matrix plus a diagonal.

    Attributes
    ----------
    products
        Number of products with S so far; 0 if S is factored.
    """

    def __init__(self, owner: KernelRows, rows: Ints, density: Floats, lam: float, ridge: float) -> None:
        self._owner = owner
        self._rows = rows
        self._density = density
        self._lam = lam
        self._ridge = ridge
        self.products = 0
        self._apply = self._factored() if len(rows) <= DIRECT else self._iterated()

    def is_similar(self, rows: Ints, density: Floats, lam: float, tol: float) -> bool:
        """Return whether this system can be used for other curvatures.

        It can if rows and lam are equal and all curvatures are within the relative distance `tol`.
        """
        if lam != self._lam or not np.array_equal(rows, self._rows):
            return False
        return bool(np.all(np.abs(density - self._density) <= tol * self._density))

    def _factored(self) -> Callable[[Floats], Floats]:
        """Return the function B -> S^-1 B by a Cholesky factor."""
        if not len(self._rows):
            return lambda B: B
        S = self._owner.square(self._rows).T / self._lam
        S[np.diag_indices(len(S))] += 1.0 / self._density
        factor = cholesky(S)
        return lambda B: np.asarray(dpotrs(factor, B)[0])

    def _iterated(self) -> Callable[[Floats], Floats]:
        """Return the function B -> S^-1 B by preconditioned conjugate gradients."""
        rows = self._rows
        lam = self._lam
        every = np.arange(len(rows))
        inverse = (1.0 / self._density)[:, None]
        some = self._owner.hypothesis.some(rows)
        K = self._owner.square(rows) if some.keeps_gram else None

        def product(q: Floats) -> Floats:
            Kq = some.product(every, q) if K is None else K @ q
            return Kq / lam + inverse * q

        Z, rest = (part[rows] for part in self._owner.preconditioner)
        diagonal = inverse + rest[:, None] / lam
        small = Z.T @ (Z / diagonal)
        small[np.diag_indices(len(small))] += lam
        factor = cho_factor(small, lower=True)

        def precondition(r: Floats) -> Floats:
            scaled = r / diagonal
            return np.asarray(scaled - (Z @ cho_solve(factor, Z.T @ scaled)) / diagonal)

        def solve(B: Floats) -> Floats:
            found, products = conjugate_gradients(product, precondition, B, RESIDUAL, len(B))
            self.products += products
            return found

        return solve

    def solve(self, right: Floats, lines: Floats, widths: Floats) -> Floats:
        """Return H^-1 right as a vector (c, K c, b), (2n + 1,).

        `lines` holds one e_k per row and `widths` the R_k: (m, 2n + 1) and (m,) for m thetas inside (0, 1).
        """
        p, b, s = self._reduced(right, lines, widths)
        x = right - s @ lines if len(lines) else right.copy()
        x -= self._owner.expansion(self._rows, p, 0.0)
        x /= self._lam
        x[-1] = b
        return np.asarray(x)

    def quadratic_form(self, e: Floats) -> float:
        """Return e'H^-1 e for H without the terms e_k e_k' / R_k.

        With p and b from the reduced system for g = e it is (<e, e> - e(I)'p) / lam + e_b b, where e(I) are
        the values of e at the rows in I and e_b is its last entry.
        """
        n = self._owner.shape[0]
        p, b, _ = self._reduced(e, np.zeros((0, len(e))), np.zeros(0))
        return float((self._owner.squared_norm(e) - e[n:-1][self._rows] @ p) / self._lam + e[-1] * b)

    def _reduced(self, right: Floats, lines: Floats, widths: Floats) -> tuple[Floats, float, Floats]:
        """Return p, b and s of the reduced system in the class docstring.

        p has one entry per row in I, and s one per line, (m,). The equation for S gives p = plain + level b -
        sides s. Inserting it into the other equations leaves a system of size 1 + m for b and s.
        """
        rows, lam, inner = self._rows, self._lam, self._owner.inner
        n = self._owner.shape[0]
        terms = len(lines)
        along = lines[:, n:-1][:, rows].T / lam
        columns = np.column_stack([right[n:-1][rows] / lam, np.ones(len(rows)), along])
        plain, level, sides = np.split(self._apply(columns), [1, 2], axis=1)
        left = np.zeros((1 + terms, 1 + terms))
        left[0, 0] = self._ridge + level.sum()
        left[0, 1:] = lines[:, -1] - sides.sum(axis=0)
        left[1:, 0] = along.T @ level[:, 0] - lines[:, -1]
        left[1:, 1:] = np.diag(widths) - along.T @ sides
        for k, one in enumerate(lines):
            left[1 + k, 1:] += [inner(one, other) / lam for other in lines]
        values = np.zeros(1 + terms)
        values[0] = right[-1] - plain.sum()
        values[1:] = np.array([inner(line, right) for line in lines]) / lam - along.T @ plain[:, 0]
        if not self._owner.intercept:
            left[0] = 0.0
            left[:, 0] = 0.0
            left[0, 0] = 1.0
            values[0] = 0.0
        b, *s = np.linalg.lstsq(left, values, rcond=None)[0]
        return plain[:, 0] + level[:, 0] * b - sides @ s, float(b), np.asarray(s)
