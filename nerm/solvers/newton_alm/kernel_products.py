"""Kernel hypotheses for the augmented Lagrangian: w = sum_i c_i k(x_i, .), with K in the place of X.

A hypothesis, a gradient and a direction are all h = (c, K c, b) here, so that sums of them cost nothing,
their products are c'K c' + b b', and the scores are a part of h. K meets a vector only on rows whose forces
have changed, few once most rows have settled on a side of their kinks.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from nerm.model.hypothesis import KernelHypothesis
from nerm.solvers.linalg.gram_sums import half_square, sums_of_rows
from nerm.solvers.linalg.pivoted_cholesky import pivoted_cholesky
from nerm.solvers.newton_alm.giving_up import GaveUpError
from nerm.solvers.newton_alm.kernel_system import KernelSystem, Preconditioner
from nerm.typing import Floats, Ints

HELD = 512 * 2**20  # bytes of rows of K that are held where K as a whole is not
BATCH = 100  # rows that are computed at a time
RANK = (
    0.1,
    1000,
    1e-3,
)  # of the preconditioner: at most a share of the rows, at most so many, residual of the diagonal
ALIKE = 0.1  # relative change of curvatures up to which a factored system serves again


class KernelRows:
    """Rows of K: all of them where the hypothesis has its Gram matrix, else those that were asked for last.

    In `single` precision they take half of the time and of the memory.
    """

    def __init__(self, hypothesis: KernelHypothesis, *, single: bool = False) -> None:
        self._hypothesis, n = hypothesis, hypothesis.n
        self._table: Any
        if hypothesis.has_gram or (hypothesis.keeps_gram and not single):
            self._table, self._slot = np.ascontiguousarray(hypothesis.gram), np.arange(n)
        else:
            precision = np.dtype(np.float32 if single else np.float64)
            self._table = np.empty((min(n, HELD // (precision.itemsize * n)), n), dtype=precision)
            self._slot = np.full(n, -1)
        self._owner = np.full(len(self._table), -1)

    @property
    def single(self) -> bool:
        """Whether they are in single precision."""
        return bool(self._table.dtype == np.float32)

    def _computed(self, rows: Ints, columns: Ints | slice = slice(None)) -> Any:
        """Return K[rows, columns]."""
        if self.single:
            return self._hypothesis.kernel.single(self._hypothesis.X[rows], self._hypothesis.X[columns])
        return self._hypothesis.gram_of(rows, columns)

    def _slots(self, rows: Ints) -> Ints | None:
        """Return where these rows are in the table, computed now if need be; None where there is no room for them."""
        if len(rows) > len(self._table):
            return None
        new = rows[self._slot[rows] < 0]
        if len(new):
            if np.count_nonzero(self._owner < 0) < len(new):  # give up all that nobody asks for now
                asked = np.zeros(self._hypothesis.n, dtype=bool)
                asked[rows] = True
                idle = np.flatnonzero((self._owner >= 0) & ~asked[self._owner])
                self._slot[self._owner[idle]], self._owner[idle] = -1, -1
            all_fit = len(self._table) == len(self._slot)  # then each has its own place, and the table is K
            free = new if all_fit else np.flatnonzero(self._owner < 0)[: len(new)]
            for k in range(0, len(new), BATCH):
                self._table[free[k : k + BATCH]] = self._computed(new[k : k + BATCH])
            self._owner[free], self._slot[new] = new, free
        return self._slot[rows]

    def product(self, rows: Ints, weights: Floats) -> Floats:
        """Return K[:, rows] weights, (n, k), for weights of shape (rows, k)."""
        if 2 * np.count_nonzero(self._slot[rows] < 0) > len(
            self._slot
        ):  # a product with half of K is that of all
            return self._hypothesis.product(rows, weights)
        slots = self._slots(rows)
        return (
            self._hypothesis.product(rows, weights)
            if slots is None
            else sums_of_rows(self._table, slots, weights)
        )

    def square(self, rows: Ints) -> Any:
        """Return K[rows, rows]; K itself where these are all rows."""
        slots = self._slots(rows)
        if slots is None:
            return self._computed(rows, rows)
        whole = len(rows) == len(self._table) == len(self._slot)
        return self._table if whole else self._table[np.ix_(slots, rows)]

    def half_square(self, rows: Ints, factor: float) -> Any:
        """Return factor K[rows, rows], of which only the upper half is told, in memory of its own."""
        slots = self._slots(rows)
        return (
            self._computed(rows, rows) * factor
            if slots is None
            else half_square(self._table, slots, rows, factor)
        )


class KernelProducts:
    """What `nerm.solvers.newton_alm.method` asks of rows, for a kernel (`nerm.solvers.newton_alm.newton_cg.RowProducts` for X).

    Attributes
    ----------
    shape
        (n, 2 n + 1), the second being the length of h.
    norms
        k(x_i, x_i) of every row.
    passes
        How often K was multiplied, in units of the whole of it.
    most
        Rows that may curve before `GaveUpError` is raised.
    """

    def __init__(
        self, hypothesis: KernelHypothesis, *, intercept: bool, most: float = np.inf, single: bool = False
    ) -> None:
        n = hypothesis.n
        self.hypothesis, self.intercept, self.passes, self.most = hypothesis, intercept, 0.0, most
        self.shape, self.norms, self.held = (
            (n, 2 * n + 1),
            hypothesis.squared_row_norms(),
            KernelRows(hypothesis, single=single),
        )
        self._parts, self._pulled = (
            np.zeros((0, n)),
            np.zeros((0, n)),
        )  # forces of each block, and K times them
        self._last: KernelSystem | None = None

    def count_anew(self) -> None:
        """Forget the work so far."""
        self.passes = 0.0

    def in_doubles(self) -> KernelProducts:
        """Return the same with nothing in single precision; it starts anew."""
        return KernelProducts(self.hypothesis, intercept=self.intercept, most=self.most)

    def product(self, rows: Ints, weights: Floats) -> Floats:
        """Return K[:, rows] weights, (n, k)."""
        self.passes += len(rows) / self.shape[0]
        return self.held.product(rows, weights)

    def expansion(self, rows: Ints, c: Floats, b: float) -> Floats:
        """Return h of coefficients on some rows."""
        n = self.shape[0]
        h = np.zeros(2 * n + 1)
        h[rows], h[n : 2 * n], h[-1] = c, self.product(rows, c[:, None])[:, 0], b
        return h

    def coef(self, h: Floats) -> Floats:
        """Return c."""
        return h[: self.shape[0]]

    def times(self, h: Floats) -> Floats:
        """Return K c + b."""
        return np.asarray(h[self.shape[0] : -1] + h[-1])

    def inner(self, one: Floats, other: Floats) -> float:
        """Return c'K c' of two."""
        n = self.shape[0]
        return float(one[:n] @ other[n:-1])

    def dot(self, one: Floats, other: Floats) -> float:
        """Return c'K c' + b b' of two."""
        return self.inner(one, other) + float(one[-1] * other[-1])

    def square(self, h: Floats) -> float:
        """Return c'K c."""
        return self.inner(h, h)

    def pull(self, parts: Floats, shares: Floats) -> Floats:
        """Return sum_j shares_j (parts_j, K parts_j, sum parts_j); K meets only what changed since the last call."""
        if self._parts.shape != parts.shape:
            self._parts, self._pulled = np.zeros_like(parts), np.zeros_like(parts)
        change = parts - self._parts
        rows = np.flatnonzero(change.any(axis=0))
        if len(rows):
            self._pulled = self._pulled + self.product(rows, change[:, rows].T).T
            self._parts = parts
        c = shares @ parts
        return np.concatenate([c, shares @ self._pulled, [c.sum() * self.intercept]])

    def system(self, density: Floats, ridge: Floats) -> KernelSystem:
        """Return H where rows have these curvatures; the last one where they hardly changed."""
        rows = np.flatnonzero(density > 0)
        if len(rows) > self.most:
            raise GaveUpError(f"{len(rows)} of {self.shape[0]} rows are at a kink")
        last, lam = self._last, float(ridge[0])
        if last is None or not last.serves(rows, density[rows], lam, ALIKE):
            last = self._last = KernelSystem(self, rows, density[rows], lam, float(ridge[-1]))
        return last

    @cached_property
    def preconditioner(self) -> Preconditioner:
        """K as Z Z' + E, of low rank."""
        share, most, residual = RANK
        rank = min(most, max(1, int(share * self.shape[0])))
        factor = pivoted_cholesky(lambda i: self.hypothesis.gram_of(i).T, self.norms, residual, rank)
        rest = self.norms - np.einsum("ij,ij->i", factor.Z, factor.Z)
        return Preconditioner(factor.Z, np.maximum(rest, 0.0))
