"""Coordinates in which the Newton system is small and well conditioned; hypotheses go in and come out of them."""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular

from nerm.errors import UnsupportedProblemError
from nerm.model.hypothesis import far_offset
from nerm.solvers.linalg.pivoted_cholesky import Factor, pivoted_cholesky
from nerm.typing import Floats

Hypothesis = tuple[Floats, float]

LARGEST_SYSTEM = 10_000  # unknowns: 800 MB for the matrix alone
WIDE = 200  # columns from which on it pays to look for coordinates in the row space
ROUNDING = 1e-13  # relative residual at which pivoted Cholesky has found the whole row space


@dataclass(frozen=True)
class Given:
    """The features as they are, less an offset that the intercept takes up: X w + b = (X - 1 offset') w + b'."""

    offset: Floats

    def inside(self, coef: Floats, intercept: float) -> Hypothesis:
        """Add offset'w to the intercept."""
        return coef, intercept + float(self.offset @ coef)

    def outside(self, coef: Floats, intercept: float) -> Hypothesis:
        """Take offset'w from the intercept."""
        return coef, float(intercept) - float(self.offset @ coef)


@dataclass(frozen=True)
class RowSpace:
    """Wide data: w in the span of the rows, w = X[pivots]' c with X X' = Z Z'; the new variable is Z[pivots]' c."""

    X: Any
    factor: Factor

    def inside(self, coef: Floats, intercept: float) -> Hypothesis:
        """Project on the row space."""
        pivots = self.factor.pivots
        scores = np.asarray(self.X[pivots] @ coef)
        return np.asarray(solve_triangular(self.factor.Z[pivots], scores, lower=True)), intercept

    def outside(self, coef: Floats, intercept: float) -> Hypothesis:
        """Return w = X[pivots]' c."""
        return np.asarray(self.X[self.factor.pivots].T @ self.factor.expansion(coef)), float(intercept)


Coordinates = Given | RowSpace  # changes of variables that keep scores and norm


def choose(X: Any, *, intercept: bool, axes: bool = False) -> tuple[Coordinates, Any]:
    """Return coordinates for X and the matrix of features in them; never a d x d matrix for d columns > n rows.

    Where single coefficients matter, as they do to norms, these are the coordinates.
    """
    n, d = X.shape
    if (d if axes else min(n, d)) > LARGEST_SYSTEM:
        must = f"the engine's system must have at most {LARGEST_SYSTEM} unknowns (rows or columns, the fewer)"
        got = f"{n} distinct rows and {d} columns"
        raise UnsupportedProblemError(must, got, "Use a first-order solver, or select features")
    if d > n and d >= WIDE and not axes:
        factor = pivoted_cholesky(lambda pick: _dense(X @ X[pick].T), _squares(X), ROUNDING)
        return RowSpace(X, factor), factor.Z
    offset = far_offset(X) if intercept else np.zeros(d)
    return Given(offset), X - offset if offset.any() else X


def _dense(matrix: Any) -> Floats:
    return matrix.toarray() if sp.issparse(matrix) else np.asarray(matrix)


def _squares(X: Any) -> Floats:
    """Return the squared norm of each row."""
    return np.asarray(X.multiply(X).sum(axis=1)).ravel() if sp.issparse(X) else np.einsum("ij,ij->i", X, X)
