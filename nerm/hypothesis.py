"""Linear and kernel hypotheses: how coefficients become scores, and forces on scores become dual vectors.

A problem's hypothesis lives on its distinct rows (`nerm.rows`), in memory of its own.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm import kernels
from nerm.errors import InvalidInputError
from nerm.rows import Rows
from nerm.typing import Floats, Matrix
from nerm.validation import as_matrix, check_finite

GRAM_LIMIT = 8192  # rows up to which the Gram matrix is kept in memory (512 MiB); beyond, it is recomputed in blocks


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

    def scores(self, coef: Floats, intercept: float = 0.0) -> Floats:
        """Return X w + b."""
        return np.asarray(self.X @ coef).ravel() + intercept

    def adjoint(self, c: Floats) -> Floats:
        """Return sum_i c_i x_i, the dual vector of forces c on the scores."""
        return np.asarray(self.X.T @ c).ravel()

    def squared_norm(self, coef: Floats) -> float:
        """Return ||w||^2."""
        return float(coef @ coef)

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
    """f = K c + b; one coefficient a row, norm c' K c."""

    kernel: kernels.Kernel
    X: Matrix

    @property
    def n(self) -> int:
        """Number of rows."""
        return int(self.X.shape[0])

    @property
    def size(self) -> int:
        """Number of coefficients: one a row."""
        return self.n

    @cached_property
    def gram(self) -> Floats:
        """The Gram matrix K, checked; of a kernel that is semidefinite by its formula only for overflow."""
        K: Any = self.kernel(self.X, self.X)
        if not self.kernel.always_psd:
            return kernels.check_gram(K, psd=True)
        K = np.asarray(K.toarray() if sp.issparse(K) else K, dtype=float)
        check_finite(K, "gram", "Check the kernel for overflow")
        return K

    @cached_property
    def factor(self) -> tuple[Floats, Floats]:
        """(L, R) with K = L L' and c = R w recovering the kernel coefficients of f = L w.

        From the eigenvalues above rounding, so a kernel problem is the linear problem with X = L, exactly up
        to the eigenvalues left out (relative 1e-13).
        """
        values, vectors = np.linalg.eigh(self.gram)
        kept = values > 1e-13 * max(values[-1], np.finfo(float).tiny)
        roots = np.sqrt(values[kept])
        return vectors[:, kept] * roots, vectors[:, kept] / roots

    def scores(self, coef: Floats, intercept: float = 0.0) -> Floats:
        """Return K c + b."""
        return self._times(coef) + intercept

    def _times(self, coef: Floats) -> Floats:
        """Return K c, in blocks of rows where K would be too large to keep; only nonzero c count."""
        if self.n <= GRAM_LIMIT or self.kernel.name == "precomputed":
            return self.gram @ coef
        support = np.flatnonzero(coef)
        if not len(support):
            return np.zeros(self.n)
        points, weights = self.X[support], coef[support]
        rows = max(1, GRAM_LIMIT**2 // (4 * len(support)))
        blocks = [self.kernel(self.X[i : i + rows], points) @ weights for i in range(0, self.n, rows)]
        return np.concatenate(blocks)

    def adjoint(self, c: Floats) -> Floats:
        """Return c itself: sum_i c_i k(x_i, .) has the kernel coefficients c."""
        return c

    def squared_norm(self, coef: Floats) -> float:
        """Return c' K c."""
        return max(0.0, float(coef @ self._times(coef)))

    def squared_row_norms(self) -> Floats:
        """Return k(x_i, x_i) for every row."""
        return self.kernel.diagonal(self.X)

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


def _check_columns(X: Matrix, expected: int, what: str) -> None:
    if X.shape[1] != expected:
        must = f"'X' must have the {expected} {what} seen in training"
        raise InvalidInputError(must, f"{X.shape[1]} columns", "Use the same columns in the same order")


def own(X: Matrix, rows: Rows) -> Matrix:
    """Return the distinct rows of X in memory of their own: what was validated stays what is solved."""
    if rows.merged or (rows.first[1:] < rows.first[:-1]).any():
        return X[rows.first]
    return X.copy()


def sorted_csr(X: Matrix) -> Matrix:
    """Return a sparse matrix with sorted indices, no duplicates and no explicit zeros; a dense one as it is."""
    if not sp.issparse(X) or (X.has_canonical_format and X.data.all()):
        return X
    X = X.copy()
    X.sum_duplicates()
    X.eliminate_zeros()
    return X


def make(X: Matrix, kernel: kernels.Kernel | None, rows: Rows) -> Hypothesis:
    """Return the hypothesis on the distinct rows of X: linear for kernel None, else with that kernel."""
    if kernel is None:
        return LinearHypothesis(own(X, rows))
    if kernel.name == "precomputed":
        return KernelHypothesis(kernel, kernels.check_gram(X.toarray() if sp.issparse(X) else X, psd=True))
    hypothesis = KernelHypothesis(kernel, own(X, rows))
    if not kernel.always_psd:
        _ = hypothesis.gram  # checks it now, where the user can see which line asked for it
    return hypothesis
