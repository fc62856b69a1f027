"""Linear and kernel hypotheses: scores from coefficients, and sums of rows weighted by dual variables.

A problem's hypothesis holds the rows in memory of its own.
"""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError
from nerm.model import kernels
from nerm.model.blocks import EPS, sum_error
from nerm.typing import Floats, Ints, Matrix
from nerm.validation import as_matrix, check_finite

FAR = 100.0  # standard deviations from 0 beyond which a column is centred
GRAM_LIMIT = 8192  # rows up to which the Gram matrix is kept in memory (512 MiB)


@dataclass(frozen=True, eq=False)
class LinearHypothesis:
    """f = X w + b; coefficients w of length d."""

    X: Matrix

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def size(self) -> int:
        """Number of coefficients."""
        return int(self.X.shape[1])

    @cached_property
    def _near(self) -> tuple[Matrix, Floats]:
        """(X - 1 offset', offset): X with those columns centred that are far from 0."""
        offset = far_offset(self.X)
        return (self.X - offset if offset.any() else self.X), offset

    def features(self, *, balanced: bool) -> Matrix:
        """Return X; if `balanced`, for sums whose weights add up to 0, with columns far from 0 centred."""
        return self._near[0] if balanced else self.X

    def level(self, coef: Floats, intercept: float) -> float:
        """Return offset.w + b, the part of the scores that all rows share."""
        return float(self._near[1] @ coef) + float(intercept)

    def level_error(self, coef: Floats, intercept: float) -> float:
        """Bound the rounding error of `level`: large where columns are far from 0."""
        offset = np.abs(self._near[1])
        return sum_error(self.size) * (float(offset @ np.abs(coef)) + abs(intercept)) if offset.any() else 0.0

    def scores(self, coef: Floats, intercept: float = 0.0) -> Floats:
        """Return X w + b."""
        return np.asarray(self._near[0] @ coef).ravel() + self.level(coef, intercept)

    def adjoint(self, c: Floats, *, balanced: bool = False) -> Floats:
        """Return sum_i c_i x_i; `balanced` weights c add up to 0."""
        near, offset = self._near
        q = (near.T @ c).ravel()
        return np.asarray(q if balanced or not offset.any() else q + offset * math.fsum(c), dtype=float)

    def squared_norm(self, coef: Floats) -> float:
        """Return ||w||^2."""
        return float(coef @ coef)

    def extent(self, coef: Floats) -> float:
        """Return ||w|| for columns of size 1: `|score - level|` is at most this times the row's length."""
        return float(np.linalg.norm(self._sizes * coef))

    def norm_error(self, coef: Floats) -> float:
        """Return by how much rounding may change `squared_norm`."""
        return sum_error(self.size) * self.squared_norm(coef)

    @cached_property
    def rounding(self) -> float:
        """The rounding error of a score, relative to the row's length times `extent`."""
        return sum_error(self.size)

    def score_errors(self, extent: float, level: float) -> Floats:
        """Return by how much rounding may change the scores of a hypothesis, (n,)."""
        return self.rounding * extent * self._lengths + EPS * abs(level)

    @cached_property
    def _lengths(self) -> Floats:
        """The lengths of rows with columns scaled to size 1."""
        near = self._near[0]
        inverse = np.divide(1.0, self._sizes, where=self._sizes > 0, out=np.zeros(self.size))
        if sp.issparse(near):
            shares = near.data * inverse[near.indices]
            squares = sp.csr_array((shares * shares, near.indices, near.indptr), shape=near.shape)
            return np.sqrt(squares @ np.ones(self.size))
        return np.sqrt(np.einsum("ij,j,ij,j->i", near, inverse, near, inverse))

    @cached_property
    def _sizes(self) -> Floats:
        """The largest absolute value in each column, centred if it is far from 0."""
        near = self._near[0]
        if not sp.issparse(near):
            return np.maximum(np.abs(near.max(axis=0)), np.abs(near.min(axis=0)))
        sizes = np.zeros(self.size)
        np.maximum.at(sizes, near.indices, np.abs(near.data))
        return sizes

    def squared_row_norms(self) -> Floats:
        """Return ||x_i||^2 for every row."""
        return kernels.Linear().diagonal(self.X)

    def decision_function(self, X: Any, coef: Floats, intercept: float) -> Floats:
        """Return f at new rows."""
        matrix = as_matrix(X)
        _check_columns(matrix, self.size, "features")
        return np.asarray(matrix @ coef).ravel() + intercept


@dataclass(frozen=True, eq=False)
class KernelHypothesis:
    """f = K c + b; one coefficient per row, squared norm c' K c."""

    kernel: kernels.Kernel
    X: Matrix

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def size(self) -> int:
        """Number of coefficients: one per row."""
        return self.n

    @property
    def keeps_gram(self) -> bool:
        """Whether K is kept in memory: it is small, was given, or had to be checked."""
        return self.n <= GRAM_LIMIT or "gram" in vars(self) or self.kernel.name == "precomputed"

    @cached_property
    def gram(self) -> Floats:
        """The Gram matrix K, checked to be positive semidefinite unless the kernel's formula says so.

        Then `|k(x, z)| <= sqrt(k(x, x) k(z, z))`: K is finite if its diagonal is.
        """
        K: Any = self.kernel(self.X, self.X)
        if not self.kernel.always_psd:
            return kernels.check_gram(K, psd=True)
        K = np.asarray(K.toarray() if sp.issparse(K) else K, dtype=float)
        check_finite(np.diag(K), "gram", "Check the kernel for overflow")
        return K

    @cached_property
    def factor(self) -> tuple[Floats, Floats]:
        """(L, R) with K = L L' and c = R w recovering the kernel coefficients of f = L w.

        From the eigenvalues above rounding, so a kernel problem is the linear problem with X = L, exactly up
        to the eigenvalues left out (relative 1e-13).
        """
        values, vectors = np.linalg.eigh(self.gram)
        kept = values > 1e-13 * max(values[-1], np.finfo(float).tiny)
        if not kept.any():  # K = 0: one column of zeros, since a solver wants a variable
            return np.zeros((self.n, 1)), np.zeros((self.n, 1))
        roots = np.sqrt(values[kept])
        return vectors[:, kept] * roots, vectors[:, kept] / roots

    def scores(self, coef: Floats, intercept: float = 0.0) -> Floats:
        """Return K c + b."""
        return self._times(coef) + intercept

    def _times(self, coef: Floats) -> Floats:
        """Return K c; the last products are kept, since a certificate uses the same ones several times."""
        for known, product in self._products:
            if np.array_equal(known, coef):
                return product
        support = np.flatnonzero(coef)
        if self.keeps_gram or 2 * len(support) > self.n:  # by symmetry all of K costs half as much
            support = np.arange(self.n)
        product = self.product(support, coef[support, None])[:, 0]
        product.flags.writeable = False
        self._products.append((coef.copy(), product))
        return product

    @cached_property
    def _products(self) -> deque[tuple[Floats, Floats]]:
        return deque(maxlen=4)

    def some(self, rows: Ints) -> KernelHypothesis:
        """Return the hypothesis on some of the rows."""
        precomputed = self.kernel.name == "precomputed"
        return KernelHypothesis(self.kernel, self.X[np.ix_(rows, rows)] if precomputed else self.X[rows])

    def gram_rows(self, rows: Ints) -> Floats:
        """Return K[rows, :]."""
        return self.gram[rows] if self.keeps_gram else self.kernel(self.X[rows], self.X)

    def product(self, columns: Ints, weights: Floats) -> Floats:
        """Return K[:, columns] weights for weights of shape (columns, k); by tiles if K is not kept."""
        whole = len(columns) == self.n
        if self.keeps_gram:
            return np.asarray((self.gram if whole else self.gram[:, columns]) @ weights)
        return self.kernel.product(self.X, self.X if whole else self.X[columns], weights)

    def adjoint(self, c: Floats, *, balanced: bool = False) -> Floats:
        """Return c itself: sum_i c_i k(x_i, .) has the kernel coefficients c."""
        return c

    def level(self, coef: Floats, intercept: float) -> float:
        """Return b, the part of the scores that all rows share."""
        return float(intercept)

    def level_error(self, coef: Floats, intercept: float) -> float:
        """Return 0: b is used as it is."""
        return 0.0

    def extent(self, coef: Floats) -> float:
        """Return sum_j `|c_j|` sqrt k(x_j, x_j): `|score - b|` is at most this times sqrt k(x_i, x_i)."""
        return float(np.abs(coef) @ self._lengths)

    def norm_error(self, coef: Floats) -> float:
        """Return by how much rounding may change `squared_norm`."""
        return self.rounding * self.extent(coef) ** 2 + EPS * self.squared_norm(coef)

    @cached_property
    def rounding(self) -> float:
        """The rounding error of a score, relative to sqrt k(x_i, x_i) times `extent`."""
        return sum_error(self.n) + self.kernel.rounding(self.X)

    def blur(self, mu: float) -> float:
        """Return the rounding error of scores with coefficients c / (n mu), for c of size 1."""
        return self.rounding * float(np.max(self.squared_row_norms())) / mu if mu > 0 else np.inf

    def score_errors(self, extent: float, level: float) -> Floats:
        """Return by how much rounding may change the scores of a hypothesis, (n,)."""
        return self.rounding * extent * self._lengths + EPS * abs(level)

    @cached_property
    def _lengths(self) -> Floats:
        return np.sqrt(np.maximum(self.squared_row_norms(), 0.0))

    def squared_norm(self, coef: Floats) -> float:
        """Return c' K c."""
        return max(0.0, float(coef @ self._times(coef)))

    def squared_row_norms(self) -> Floats:
        """Return k(x_i, x_i) for every row."""
        return np.diag(self.gram).copy() if "gram" in vars(self) else self.kernel.diagonal(self.X)

    def decision_function(self, X: Any, coef: Floats, intercept: float) -> Floats:
        """Return f at new rows (for a precomputed kernel, at rows of k(x_new, x_train))."""
        matrix = as_matrix(X)
        precomputed = self.kernel.name == "precomputed"
        _check_columns(matrix, int(self.X.shape[1]), "kernel values" if precomputed else "features")
        support = np.flatnonzero(coef)
        if precomputed:
            return np.asarray(matrix[:, support] @ coef[support]).ravel() + intercept
        if not len(support):
            return np.full(matrix.shape[0], float(intercept))
        return np.asarray(self.kernel(matrix, self.X[support]) @ coef[support]).ravel() + intercept


Hypothesis = LinearHypothesis | KernelHypothesis


def far_offset(X: Any) -> Floats:
    """Return the means of columns that are far from 0 relative to their spread, and 0 elsewhere.

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


def _check_columns(X: Matrix, expected: int, what: str) -> None:
    if X.shape[1] != expected:
        must = f"'X' must have the {expected} {what} seen in training"
        raise InvalidInputError(must, f"{X.shape[1]} columns", "Use the same columns in the same order")


def sorted_csr(X: Matrix) -> Matrix:
    """Return a sparse matrix in canonical format without explicit zeros; a dense one unchanged."""
    if not sp.issparse(X) or (X.has_canonical_format and X.data.all()):
        return X
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def make(X: Matrix, kernel: kernels.Kernel | None) -> Hypothesis:
    """Return the hypothesis on a copy of the rows: linear for kernel None, else with that kernel."""
    if kernel is None:
        return LinearHypothesis(X.copy())
    if kernel.name == "precomputed":
        return KernelHypothesis(kernel, kernels.check_gram(X.toarray() if sp.issparse(X) else X, psd=True))
    hypothesis = KernelHypothesis(kernel, X.copy())
    if not kernel.always_psd:
        _ = hypothesis.gram  # checks it now, where the user can see which line asked for it
    return hypothesis
