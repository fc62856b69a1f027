"""Newton's direction for kernels, from a system as large as the rows that curve.

H x = g, for functions with an intercept, x = (w, b), reads with rows J where D_i > 0 and lines e_k

::

    p_i = D_i (w(x_i) + b),  s_k = <e_k, x> / R_k,      w = (g_w - sum_i p_i k(x_i, .) - sum_k s_k e_k) / lam
    S p + sum_k s_k e_k(J) / lam - b = g_w(J) / lam,    S = K_JJ / lam + 1 / D
    r b + sum_i p_i + sum_k s_k e_kb = g_b

S is factored where it is small. Where it is large, conjugate gradients solve it for all right-hand sides at
once, with K = Z Z' + E of low rank and its diagonal in the place of K as preconditioner: a product with K_JJ
each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from scipy.linalg.blas import dsyrk
from scipy.linalg.lapack import dpotrf, dpotrs, spotrf, spotrs

from nerm.solvers.linalg.gram_sums import sums_of_rows
from nerm.typing import Floats, Ints

if TYPE_CHECKING:
    from nerm.solvers.newton_alm.kernel_products import KernelProducts

DIRECT, FEW = 2000, 4000  # rows up to which S is factored, and where they are less than half of all
LARGEST = 512 * 2**20  # bytes of K_JJ up to which it is held
EXACT = 0.01  # the accuracy of conjugate gradients beside the one that is asked of the whole system


class Preconditioner(NamedTuple):
    """K = Z Z' + E: Z, (n, r), and the diagonal of E."""

    Z: Floats
    rest: Floats


class KernelSystem:
    """H at one point."""

    def __init__(
        self, products: KernelProducts, rows: Ints, density: Floats, lam: float, ridge: float
    ) -> None:
        self._products, self._rows, self._density, self._lam, self._ridge = (
            products,
            rows,
            density,
            lam,
            ridge,
        )
        self.iterations = 0
        few = len(rows) <= FEW and 2 * len(rows) <= products.shape[0]
        self._apply = self._factored() if few or len(rows) <= DIRECT else self._iterated()

    def serves(self, rows: Ints, density: Floats, lam: float, alike: float) -> bool:
        """Tell whether this is nearly the system of these rows and curvatures."""
        if lam != self._lam or not np.array_equal(rows, self._rows):
            return False
        return bool(np.all(np.abs(density - self._density) <= alike * self._density))

    def _factored(self) -> Callable[[Floats, float], Floats]:
        """Return B -> S^-1 B by a factor of S."""
        if not len(self._rows):
            return lambda B, _: B
        single, lift, failed = self._products.held.single, 0.0, 1
        factor_of, solve, rounding = (spotrf, spotrs, 1e-7) if single else (dpotrf, dpotrs, 1e-15)
        while failed:
            S = self._products.held.half_square(self._rows, 1.0 / self._lam)
            diagonal = np.diag_indices(len(S))
            S[diagonal] += 1.0 / self._density
            largest = float(S[diagonal].max())
            S[diagonal] += lift * largest
            factor, failed = factor_of(S.T, lower=1, clean=0, overwrite_a=1)
            lift = 100 * lift or rounding * len(S)  # for rounding, where 1 / D is nothing beside K
        return lambda B, _: np.asarray(solve(factor, B, lower=1)[0], dtype=float)

    def _iterated(self) -> Callable[[Floats, float], Floats]:
        """Return B -> S^-1 B by conjugate gradients."""
        rows, lam, products = self._rows, self._lam, self._products
        inverse, every = 1.0 / self._density, np.arange(len(rows))
        if len(rows) ** 2 * (4 if products.held.single else 8) <= LARGEST:
            K = products.held.square(rows)

            def times(q: Floats) -> Floats:
                products.passes += (len(rows) / products.shape[0]) ** 2
                return sums_of_rows(K, every, q) / lam + inverse[:, None] * q
        else:
            few = products.hypothesis.some(rows)

            def times(q: Floats) -> Floats:
                products.passes += (len(rows) / products.shape[0]) ** 2
                return few.product(every, q) / lam + inverse[:, None] * q

        Z, diagonal = products.preconditioner.Z[rows], inverse + products.preconditioner.rest[rows] / lam
        small = dsyrk(1.0, Z / np.sqrt(diagonal)[:, None], trans=1, lower=1)
        small[np.diag_indices(len(small))] += lam
        factor = dpotrf(small, lower=1)[0]

        def nearly(r: Floats) -> Floats:
            scaled = r / diagonal[:, None]
            return np.asarray(scaled - (Z @ dpotrs(factor, Z.T @ scaled, lower=1)[0]) / diagonal[:, None])

        return lambda B, tol: self._conjugate_gradients(times, nearly, B, tol)

    def _conjugate_gradients(
        self, times: Callable[[Floats], Floats], nearly: Callable[[Floats], Floats], B: Floats, tol: float
    ) -> Floats:
        """Solve for all columns of B, each by its own steps."""
        x, r, z = np.zeros_like(B), B.copy(), nearly(B)
        q, size = z.copy(), (B * z).sum(axis=0)
        enough = tol**2 * size
        for _ in range(len(B)):
            if not (size > enough).any():
                break
            product = times(q)
            step = size / np.maximum((q * product).sum(axis=0), np.finfo(float).tiny)
            x += step * q
            r -= step * product
            z = nearly(r)
            size, last = (r * z).sum(axis=0), size
            q = z + size / np.maximum(last, np.finfo(float).tiny) * q
            self.iterations += 1
        return x

    def solve(self, rhs: Floats, lines: Floats, widths: Floats, tol: float, limit: int) -> Floats:
        """Return H^-1 rhs, nearly; `limit` is for those who need many products."""
        p, b, s = self._solved(rhs, lines, widths, tol)
        x = rhs - s @ lines if len(lines) else rhs.copy()
        x -= self._products.expansion(self._rows, p, 0.0)
        x /= self._lam
        x[-1] = b
        return np.asarray(x)

    def reach(self, e: Floats, tol: float, limit: int) -> float:
        """Return e'H^-1 e, nearly: <e, w> is (<e, e> - e(J)'p) / lam, so that K need not be met."""
        n, none = self._products.shape[0], (np.zeros((0, len(e))), np.zeros(0))
        p, b, _ = self._solved(e, *none, tol)
        return float((self._products.square(e) - e[n:-1][self._rows] @ p) / self._lam + e[-1] * b)

    def _solved(self, rhs: Floats, lines: Floats, widths: Floats, tol: float) -> tuple[Floats, float, Floats]:
        """Return p, b and s."""
        products, rows, lam, terms = self._products, self._rows, self._lam, len(lines)
        n, inner = products.shape[0], products.inner
        along = lines[:, n:-1][:, rows].T / lam
        ones = np.ones(len(rows))
        columns = np.column_stack([rhs[n:-1][rows] / lam, ones, along])
        plain, level, sides = np.split(self._apply(columns, EXACT * tol), [1, 2], axis=1)
        # What is left are equations for b and s alone, from p = plain + level b - sides s.
        left, right = np.zeros((1 + terms, 1 + terms)), np.zeros(1 + terms)
        left[0, 0], right[0] = self._ridge + level.sum(), rhs[-1] - plain.sum()
        left[0, 1:] = lines[:, -1] - sides.sum(axis=0)
        left[1:, 0] = along.T @ level[:, 0] - lines[:, -1]
        left[1:, 1:] = np.diag(widths) - along.T @ sides
        left[1:, 1:] += (
            np.array([[inner(one, other) for other in lines] for one in lines]).reshape(terms, terms) / lam
        )
        right[1:] = np.array([inner(line, rhs) for line in lines]) / lam - along.T @ plain[:, 0]
        if not products.intercept:
            left[0], left[:, 0], left[0, 0], right[0] = 0.0, 0.0, 1.0, 0.0
        b, *s = np.linalg.lstsq(left, right, rcond=None)[0]
        return plain[:, 0] + level[:, 0] * b - sides @ s, float(b), np.asarray(s)
