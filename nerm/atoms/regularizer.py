"""The base class of regularizers: convex functions of the coefficients with value 0 at 0."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nerm.model.expressions import Term
from nerm.typing import Floats, Ints


class Norms(NamedTuple):
    """sum over groups g of weights_g ||w_g||, all of one size and one kind.

    Attributes
    ----------
    order : {2, inf}
        The Euclidean norm, or the largest entry.
    weights : (G,) array
        Positive.
    groups : (G, k) array
        The coefficients of each group.
    """

    order: float
    weights: Floats
    groups: Ints


class Regularizer(Term):
    """A convex Omega(w) >= 0 with Omega(0) = 0; the intercept is never part of w.

    It is a term of the algebra by itself: ``0.1 * L1()``. Vectors w and q are (d,).

    With z = prox(w), q = w - z is a subgradient at z, where Fenchel and Young's inequality is an equality,
    Omega(z) + Omega*(q) = q.z:

    Examples
    --------
    >>> from nerm import ElasticNet
    >>> omega, w = ElasticNet(l1_ratio=0.5), np.array([3.0, -0.2, 1.0])
    >>> z = omega.prox(w)
    >>> bool(np.isclose(omega.value(z) + omega.conjugate(w - z), (w - z) @ z))
    True
    >>> print(0.1 * omega)
    minimise 0.1 (0.5 ‖w‖₁ + 0.5 ½‖w‖²)
    """

    name: ClassVar[str] = ""
    kind: ClassVar[str] = "regularizer"
    text: ClassVar[str] = "Omega(w)"
    tex: ClassVar[str] = r"\Omega(w)"
    numeric: bool = False  # whether conjugate or prox are derived by computation and carry its error

    @abstractmethod
    def value(self, w: Floats) -> float:
        """Return Omega(w), a number, for w of shape (d,)."""

    @abstractmethod
    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return (low, high), both (d,), the range of each coordinate of the subgradients at w.

        These are the one-sided derivatives of Omega along the coordinate axes. For a separable regularizer
        the box is the subdifferential itself, otherwise the smallest box around it.
        """

    @abstractmethod
    def conjugate(self, q: Floats) -> float:
        """Return Omega*(q) = sup_w q.w - Omega(w), a number, for q of shape (d,)."""

    @abstractmethod
    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return argmin_z  step Omega(z) + ||z - w||^2 / 2, (d,)."""

    @abstractmethod
    def expression(self, w: Any) -> Any:
        """Return Omega of a cvxpy vector of length d: a convex scalar expression."""

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text; by default `text`."""
        return self.text

    def latex_formula(self) -> str:
        """Return the term as LaTeX; by default `tex`."""
        return self.tex

    def parts(self) -> tuple[tuple[float, Regularizer], ...]:
        """Return Omega as a weighted sum of simpler regularizers; by default itself."""
        return ((1.0, self),)

    def norms(self, d: int) -> tuple[Norms, ...] | None:
        """Return Omega as a sum of norms of groups of the d coefficients, or None if it is no such sum."""
        return None

    def free(self, d: int) -> Floats:
        """Return an orthonormal basis, (d, k), of the directions along which Omega is constant."""
        return np.zeros((d, 0))

    def reach(self, q: Floats) -> float:
        """Return a t in [0, 1] with Omega*(t q) finite: 1 if it can be, else by halving; 0 is always one."""
        for t in (*(1 - 10.0**-k for k in (20, 12, 9, 6, 3)), *(0.5**k for k in range(1, 40))):
            if np.isfinite(self.conjugate(t * q)):
                return t
        return 0.0

    def check(self, d: int) -> None:
        """Refuse coefficient vectors of length d that do not fit (groups, for instance)."""


class Norm(Regularizer):
    """A regularizer that is a norm; its conjugate is the indicator of the dual norm's unit ball.

    Examples
    --------
    >>> from nerm import L1
    >>> q = np.array([0.5, -2.0])
    >>> L1().dual_norm(q), L1().conjugate(q), L1().conjugate(q / 2)
    (2.0, inf, 0.0)
    """

    @abstractmethod
    def dual_norm(self, q: Floats) -> float:
        """Return sup { q.w : Omega(w) <= 1 }."""

    def conjugate(self, q: Floats) -> float:
        """Return 0 inside the dual unit ball (up to rounding) and +inf outside."""
        return 0.0 if self.dual_norm(q) <= 1.0 + 1e-12 else np.inf

    def reach(self, q: Floats) -> float:
        """Return what brings q into the dual unit ball."""
        return min(1.0, 1.0 / max(self.dual_norm(q), np.finfo(float).tiny))


def along_axes(basis: Floats) -> Floats:
    """Return an orthonormal basis of the same space that contains the axes that lie in it."""
    axes = np.linalg.norm(basis, axis=1) > 1 - 1e-12
    rest = np.where(axes[:, None], 0.0, basis)
    left, values, _ = np.linalg.svd(rest, full_matrices=False)
    return np.hstack([np.eye(len(basis))[:, axes], left[:, values > 0.5]])
