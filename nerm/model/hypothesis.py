"""Linear and kernel hypotheses: the map from coefficients to scores, and its adjoint.

The hypothesis of a problem holds its own copy of the rows X.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError
from nerm.model import kernels
from nerm.model.blocks import EPS, row_squares, sum_error
from nerm.typing import Floats, Ints, Matrix
from nerm.validation import as_matrix, check_finite

FAR = 100.0  # a column is centred if its mean is more than this many standard deviations from 0
GRAM_LIMIT = 8192  # the Gram matrix is kept in memory up to this number of rows (512 MiB)


class CachedProducts:
    """A hypothesis that keeps its last product X w or K c, because a certificate needs it repeatedly."""

    X: Matrix
    rounding: Any
    _lengths: Any

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @cached_property
    def _products(self) -> deque[tuple[Floats, Floats]]:
        return deque(maxlen=4 if isinstance(self, KernelHypothesis) else 1)

    def score_errors(self, extent: float, level: float) -> Floats:
        """Return bounds on the rounding errors of the scores, (n,).

        They hold for every hypothesis whose methods `extent` and `level` give these two numbers.
        """
        return self.rounding * extent * self._lengths + EPS * abs(level)

    def _times(self, coef: Floats) -> Floats:
        """Return X w or K c, (n,), read-only."""
        for known, product in self._products:
            if np.array_equal(known, coef):
                return product
        product = self._multiply(coef)
        product.flags.writeable = False
        self._products.append((coef.copy(), product))
        return product

    @abstractmethod
    def _multiply(self, coef: Floats) -> Floats:
        """Compute X w or K c, (n,)."""

    def level(self, coef: Floats, intercept: float) -> float:
        """Return b, the summand of the scores that is equal for all rows."""
        return float(intercept)

    def level_error(self, coef: Floats, intercept: float) -> float:
        """Return a bound on the rounding error of `level`: 0, because it is b without any computation."""
        return 0.0

    def scores(self, coef: Floats, intercept: float = 0.0) -> Floats:
        """Return the scores X w + b or K c + b, (n,)."""
        return self._times(coef) + self.level(coef, intercept)


@dataclass(frozen=True, eq=False)
class LinearHypothesis(CachedProducts):
    """The linear hypothesis f = X w + b with coefficients w, (d,), on rows X, (n, d).

    The scores are computed as (X - 1 offset') w + (offset.w + b). For a column far from 0 the offset, (d,),
    is the mean of the column; for the others it is 0 (`far_offset`). This reduces rounding errors.
    """

    X: Matrix

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return int(self.X.shape[1])

    @cached_property
    def _near(self) -> tuple[Matrix, Floats]:
        """The matrix X - 1 offset', (n, d), and the offset, (d,); see the class."""
        offset = far_offset(self.X)
        return (self.X - offset if offset.any() else self.X), offset

    def features(self, *, balanced: bool) -> Matrix:
        """Return X, (n, d), or X - 1 offset' if `balanced` (the class docstring explains the offset).

        If the weights c_i add up to 0, sum_i c_i x_i is the same for both matrices.
        """
        return self._near[0] if balanced else self.X

    def level(self, coef: Floats, intercept: float) -> float:
        """Return offset.w + b, the part of the scores that is equal for all rows.

        The offset is explained in the docstring of the class.
        """
        return float(self._near[1] @ coef) + float(intercept)

    def level_error(self, coef: Floats, intercept: float) -> float:
        """Return a bound on the rounding error of `level`, which is large if columns are far from 0."""
        offset = np.abs(self._near[1])
        return sum_error(self.size) * (float(offset @ np.abs(coef)) + abs(intercept)) if offset.any() else 0.0

    def _multiply(self, coef: Floats) -> Floats:
        return np.asarray(self._near[0] @ coef).ravel()

    def adjoint(self, c: Floats, *, balanced: bool = False) -> Floats:
        """Return X'c = sum_i c_i x_i, (d,).

        Pass balanced=True if the weights c, (n,), add up to 0: the rounding errors are then smaller.
        """
        near, offset = self._near
        q = (near.T @ c).ravel()
        return np.asarray(q if balanced or not offset.any() else q + offset * math.fsum(c), dtype=float)

    def squared_norm(self, coef: Floats) -> float:
        """Return ||w||^2."""
        return float(coef @ coef)

    def extent(self, coef: Floats) -> float:
        """Return the norm of the scaled coefficients, which bounds the scores.

        Each column of X - 1 offset' is divided by its largest absolute value, and its coefficient is
        multiplied by this value. Then `|score - level|` of a row is at most the returned norm times the norm
        of the scaled row.
        """
        return float(np.linalg.norm(self._sizes * coef))

    def norm_error(self, coef: Floats) -> float:
        """Return a bound on the rounding error of `squared_norm`."""
        return sum_error(self.size) * self.squared_norm(coef)

    @cached_property
    def rounding(self) -> float:
        """A bound on the rounding error of a score, divided by `extent` times the norm of the scaled row."""
        return sum_error(self.size)

    @cached_property
    def _lengths(self) -> Floats:
        """The norm of each scaled row, (n,); see `extent` for the scaling."""
        inverse = np.divide(1.0, self._sizes, where=self._sizes > 0, out=np.zeros(self.size))
        return np.sqrt(row_squares(self._near[0], inverse))

    @cached_property
    def _sizes(self) -> Floats:
        """The largest absolute value of each column of X - 1 offset', (d,)."""
        near: Any = self._near[0]
        if not sp.issparse(near):
            return np.asarray(np.abs(near).max(axis=0))
        largest = np.zeros(self.size)
        np.maximum.at(largest, near.indices, np.abs(near.data))
        return largest

    def squared_row_norms(self) -> Floats:
        """Return ||x_i||^2 for every row, (n,)."""
        return row_squares(self.X)

    def some(self, rows: Ints) -> LinearHypothesis:
        """Return the hypothesis restricted to the rows with the given indices."""
        return LinearHypothesis(self.X[rows])

    def decision_function(self, X: Any, coef: Floats, intercept: float) -> Floats:
        """Return the scores of new rows X, (m, d)."""
        return np.asarray(_new_rows(X, self.size, "features") @ coef).ravel() + intercept


@dataclass(frozen=True, eq=False)
class KernelHypothesis(CachedProducts):
    """The kernel hypothesis f = K c + b with one coefficient per row, c, (n,).

    Its squared norm is c'K c.
    """

    kernel: kernels.Kernel
    X: Matrix

    @property
    def size(self) -> int:
        """Number of coefficients: one per row."""
        return self.n

    @property
    def keeps_gram(self) -> bool:
        """Whether K is kept in memory: it is small, precomputed, or already computed."""
        return self.n <= GRAM_LIMIT or "gram" in vars(self) or self.kernel.name == "precomputed"

    @cached_property
    def gram(self) -> Floats:
        """The Gram matrix K, (n, n).

        K is checked to be positive semidefinite, unless all Gram matrices of the kernel are. For such a
        kernel `|k(x, z)| <= sqrt(k(x, x) k(z, z))`, so it is enough to check that the diagonal of K is
        finite.
        """
        K: Any = self.kernel(self.X, self.X)
        if not self.kernel.always_psd:
            return kernels.check_gram(K, psd=True)
        K = np.asarray(K.toarray() if sp.issparse(K) else K, dtype=float)
        check_finite(np.diag(K), "gram", "Check the kernel for overflow")
        return K

    @cached_property
    def factor(self) -> tuple[Floats, Floats]:
        """Matrices (L, R), both (n, r), with K = L L' and f = L w = K c for c = R w.

        The kernel problem is thus the linear problem with X = L. L is computed from the r eigenvalues of K
        that are above 1e-13 times the largest; the others are left out as rounding errors.
        """
        values, vectors = np.linalg.eigh(self.gram)
        kept = values > 1e-13 * max(values[-1], np.finfo(float).tiny)
        if not kept.any():  # K = 0: return one column of zeros, because a solver needs a variable
            return np.zeros((self.n, 1)), np.zeros((self.n, 1))
        roots = np.sqrt(values[kept])
        return vectors[:, kept] * roots, vectors[:, kept] / roots

    def _multiply(self, coef: Floats) -> Floats:
        support = np.flatnonzero(coef)
        if self.keeps_gram or 2 * len(support) > self.n:  # all of K costs half, by symmetry
            support = np.arange(self.n)
        return self.product(support, coef[support, None])[:, 0]

    def some(self, rows: Ints) -> KernelHypothesis:
        """Return the hypothesis restricted to the rows with the given indices."""
        precomputed = self.kernel.name == "precomputed"
        return KernelHypothesis(self.kernel, self.X[np.ix_(rows, rows)] if precomputed else self.X[rows])

    def gram_rows(self, rows: Ints) -> Floats:
        """Return K[rows, :]."""
        return self.gram[rows] if self.keeps_gram else self.kernel(self.X[rows], self.X)

    def product(self, columns: Ints, weights: Floats) -> Floats:
        """Return K[:, columns] @ weights, (n, k), for weights of shape (len(columns), k).

        If K is not kept in memory, it is computed tile by tile.
        """
        whole = len(columns) == self.n
        if self.keeps_gram:
            return np.asarray((self.gram if whole else self.gram[columns].T) @ weights)  # K is symmetric
        return self.kernel.product(self.X, self.X if whole else self.X[columns], weights)

    def adjoint(self, c: Floats, *, balanced: bool = False) -> Floats:
        """Return c unchanged: the function sum_i c_i k(x_i, .) has the kernel coefficients c."""
        return c

    def extent(self, coef: Floats) -> float:
        """Return sum_j `|c_j|` sqrt(k(x_j, x_j)), which bounds the scores.

        `|score - b|` of row i is at most this number times sqrt(k(x_i, x_i)).
        """
        return float(np.abs(coef) @ self._lengths)

    def norm_error(self, coef: Floats) -> float:
        """Return a bound on the rounding error of `squared_norm`."""
        return self.rounding * self.extent(coef) ** 2 + EPS * self.squared_norm(coef)

    @cached_property
    def rounding(self) -> float:
        """A bound on the rounding error of score i, divided by `extent` times sqrt(k(x_i, x_i))."""
        return sum_error(self.n) + self.kernel.rounding(self.X)

    def blur(self, mu: float) -> float:
        """Return a bound on the rounding error of the scores of a typical hypothesis.

        A typical hypothesis has the coefficients c / (n mu) with all `|c_i|` <= 1, where `mu` is the weight
        of the squared l2 norm. For mu = 0 the bound is infinite.
        """
        return self.rounding * float(np.max(self.squared_row_norms())) / mu if mu > 0 else np.inf

    @cached_property
    def _lengths(self) -> Floats:
        return np.sqrt(np.maximum(self.squared_row_norms(), 0.0))

    def squared_norm(self, coef: Floats) -> float:
        """Return c' K c."""
        return max(0.0, float(coef @ self._times(coef)))

    def squared_row_norms(self) -> Floats:
        """Return k(x_i, x_i) for every row, (n,)."""
        return np.diag(self.gram).copy() if "gram" in vars(self) else self.kernel.diagonal(self.X)

    def decision_function(self, X: Any, coef: Floats, intercept: float) -> Floats:
        """Return the scores of m new rows, (m,).

        For a precomputed kernel, X holds k(x_new, x_train), (m, n).
        """
        precomputed = self.kernel.name == "precomputed"
        matrix = _new_rows(X, self.X.shape[1], "kernel values" if precomputed else "features")
        support = np.flatnonzero(coef) if coef.any() else np.arange(1)  # kernels may refuse 0 rows
        values = matrix[:, support] if precomputed else self.kernel(matrix, self.X[support])
        return np.asarray(values @ coef[support]).ravel() + intercept


Hypothesis = LinearHypothesis | KernelHypothesis


def far_offset(X: Any) -> Floats:
    """Return an offset per column, (d,): the mean of the column, or 0.

    The offset is the mean if the mean is more than FAR standard deviations away from 0. For other columns,
    and for sparse X, it is 0.

    >>> far_offset(np.array([[1e9 - 1.0, 1.0], [1e9 + 1.0, 2.0]])).tolist()
    [1000000000.0, 0.0]
    """
    if sp.issparse(X) or not len(X):
        return np.zeros(X.shape[1])
    sample = X[:: max(1, len(X) // 2000)]
    with np.errstate(over="ignore", invalid="ignore"):
        mean, spread = sample.mean(axis=0), sample.std(axis=0)
        far = np.abs(mean) > FAR * np.where(spread > 0, spread, 1.0)
    return np.where(far & np.isfinite(mean), mean, 0.0)


def _new_rows(X: Any, expected: int, what: str) -> Matrix:
    """Return new rows as a matrix.

    Raise an error if the number of columns is not the expected one.
    """
    matrix = as_matrix(X)
    if matrix.shape[1] != expected:
        must = f"'X' must have the {expected} {what} seen in training"
        raise InvalidInputError(must, f"{matrix.shape[1]} columns", "Use the same columns in the same order")
    return matrix


def sorted_csr(X: Matrix) -> Matrix:
    """Return a sparse X in canonical format without explicit zeros.

    Return a dense X unchanged.
    """
    if not sp.issparse(X) or (X.has_canonical_format and X.data.all()):
        return X
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def make_hypothesis(X: Matrix, kernel: kernels.Kernel | None) -> Hypothesis:
    """Return a linear hypothesis (`kernel` is None) or a kernel hypothesis on a copy of the rows X."""
    if kernel is None:
        return LinearHypothesis(X.copy())
    if kernel.name == "precomputed":
        return KernelHypothesis(kernel, kernels.check_gram(X.toarray() if sp.issparse(X) else X, psd=True))
    hypothesis = KernelHypothesis(kernel, X.copy())
    if not kernel.always_psd:
        _ = hypothesis.gram  # check it now, so that the error points to the user's call of `on`
    return hypothesis
