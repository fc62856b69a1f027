"""The Newton system of a problem with some equations, and the coordinates in which it is small.

`nerm.proofs.sensitivity` solves it for derivatives, `nerm.proofs.newton` for one Newton step.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.linalg import null_space

from nerm.errors import Degenerate
from nerm.model.blocks import term_weights
from nerm.model.hypothesis import KernelHypothesis, far_offset, sorted_csr
from nerm.model.problem import Problem
from nerm.solvers.interior_point.matrices import Features, RowThreads
from nerm.typing import Floats, Ints


class Coordinates:
    """Unknowns z = (w, b) of a problem, so that row i has the score F_i z with F_i = (x_i, 1).

    For a kernel, x_i is row i of a factor L of K = L L', and the kernel coefficients are R w (`factor`). For
    other problems, an offset is subtracted from columns far from 0, and z holds b + offset.w.
    """

    def __init__(self, problem: Problem) -> None:
        hypothesis = problem.hypothesis
        self.intercept = problem.intercept
        self.recover: Floats | None = None
        self.X: Any
        if isinstance(hypothesis, KernelHypothesis):
            self.X, self.recover = hypothesis.factor
        else:
            self.X = hypothesis.features(balanced=self.intercept)
        plain = self.recover is not None or not self.intercept
        self.offset = np.zeros(self.X.shape[1]) if plain else far_offset(hypothesis.X)

    @property
    def size(self) -> int:
        """The number of unknowns in z."""
        return int(self.X.shape[1]) + self.intercept

    def inside(self, coef: Floats) -> Floats:
        """Return w of given coefficients, (d,)."""
        return np.asarray(coef if self.recover is None else self.X.T @ coef)

    def outside(self, dz: Floats) -> tuple[Floats, Any]:
        """Return the change of (coef, intercept) for a change dz, (size,) or (size, k)."""
        d = self.X.shape[1]
        level = dz[d] if self.intercept else 0.0 * dz[0]
        return (dz[:d] if self.recover is None else self.recover @ dz[:d]), level - self.offset @ dz[:d]

    def adjoint(self, c: Floats) -> Floats:
        """Return sum_i c_i F_i, (size,)."""
        return np.append((self.X.T @ c).ravel(), c.sum() if self.intercept else np.zeros(0))

    def rows(self, mask: Any) -> Floats:
        """Return F of some rows, dense."""
        some: Any = self.X[mask]
        some = some.toarray() if sp.issparse(some) else some
        return np.hstack([some, np.ones((len(some), int(self.intercept)))])

    def hessian(self, density: Floats, mu: float, rows: Any = None) -> Floats:
        """Return sum_i density_i F_i F_i' over some rows (by default all), plus mu on the diagonal of w."""
        if not np.isfinite(density).all():
            raise Degenerate("the curvature of a loss is infinite at a row")
        X = sorted_csr(self.X if rows is None else self.X[rows])
        n, d = X.shape
        upper = np.triu(Features(X, RowThreads(n, d, 1)).gram(np.maximum(density, 0.0)))  # 0 up to rounding
        H = upper + np.triu(upper, 1).T
        H[np.arange(d), np.arange(d)] += mu
        return np.asarray(H[: self.size, : self.size])


def two_sides(problem: Problem, scores: Floats, thetas: Floats) -> tuple[Ints, Floats, Floats]:
    """Return three numbers for each two-sided term, (K,) each.

    - the index of the block C+;
    - the distance of theta from the nearer end of [0, 1], or -1 if the term has weight 0;
    - `|C+ - C-|`, relative to the larger of C+ and C- or to the mean row weight.
    """
    plus = np.flatnonzero([block.side > 0 for block in problem.blocks])
    inside = np.where(term_weights(problem)[plus] > 0, np.minimum(thetas, 1 - thetas), -1.0)
    apart = np.zeros(len(plus))
    for k, j in enumerate(plus):
        sides = [block.total(scores) for block in problem.blocks[j : j + 2]]
        apart[k] = abs(sides[0] - sides[1]) / max(*map(abs, sides), problem.blocks[j].weights.sum())
    return plus, inside, apart


class System:
    """The linear system H dz + A' dm = -g, A dz = s; `solve` finds dz and dm.

    Attributes
    ----------
    H : (size, size) array
        The Hessian.
    A : (rows, size) array
        The equations; they may depend on each other.
    """

    def __init__(self, H: Floats, A: Floats) -> None:
        self.H = H
        self.lengths = np.maximum(np.linalg.norm(A, axis=1), 1e-300)[:, None]
        self.A = A / self.lengths

    @cached_property
    def _basis(self) -> Floats:
        """An orthonormal basis of A dz = 0."""
        return np.asarray(null_space(self.A, rcond=1e-9) if len(self.A) else np.eye(len(self.H)))

    @cached_property
    def _scaled(self) -> tuple[Floats, Floats]:
        """The Hessian in the basis of A dz = 0 with a diagonal scaling, and the scaling."""
        K = self._basis.T @ self.H @ self._basis
        scale = 1 / np.sqrt(np.maximum(np.abs(K).max(axis=1, initial=0.0), 1e-300))
        scaled = scale[:, None] * K * scale
        values = np.linalg.svd(scaled, compute_uv=False)
        if len(K) and not values[-1] > 1e-12 * values[0]:
            raise Degenerate("the optimality conditions do not determine the derivative")
        return scaled, scale[:, None]

    def solve(self, g: Floats, s: Floats) -> tuple[Floats, Floats, float]:
        """Return dz, dm and the residual, for g, (size, k), and s, (rows, k).

        The residual is that of the linear system, relative to its right-hand side.
        """
        s = s / self.lengths
        fixed = np.linalg.lstsq(self.A, s, rcond=1e-9)[0]
        if np.abs(self.A @ fixed - s).max(initial=0.0) > 1e-7 * np.abs(s).max(initial=0.0):
            raise Degenerate("the change moves a row away from its kink")
        scaled, scale = self._scaled
        right = -scale * (self._basis.T @ (g + self.H @ fixed))
        found = np.linalg.solve(scaled, right)
        size = max(float(np.linalg.norm(right / scale)), 1e-300)
        residual = float(np.linalg.norm((scaled @ found - right) / scale)) / size
        dz = fixed + self._basis @ (scale * found)
        return dz, -np.linalg.lstsq(self.A.T, self.H @ dz + g, rcond=1e-9)[0] / self.lengths, residual
