"""The squared loss on the margin."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.margin import Facts, MarginFunction, single


@dataclass(frozen=True)
class Squared(MarginFunction):
    """phi(m) = (1 - m)^2; phi*(u) = u + u^2 / 4.

    >>> Squared().value([0.0, 1.0, 3.0])
    array([1., 0., 4.])
    """

    name: ClassVar[str] = "squared"

    @property
    def facts(self) -> Facts:
        """What is known of the squared loss."""
        return Facts(at_zero=1.0, slopes=(-np.inf, np.inf), smoothness=2.0, quadratic=(1.0, 0.5))

    def value(self, m: ArrayLike) -> np.ndarray:
        """Return (1 - m)^2."""
        return (1.0 - np.asarray(m, dtype=float)) ** 2

    def subgradient(self, m: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return -2 (1 - m)."""
        return single(-2.0 * (1.0 - np.asarray(m, dtype=float)))

    def conjugate(self, u: ArrayLike) -> np.ndarray:
        """Return u + u^2 / 4."""
        u = np.asarray(u, dtype=float)
        return u + u**2 / 4

    def prox(self, m: ArrayLike, step: float = 1.0) -> np.ndarray:
        """Return (m + 2 step) / (1 + 2 step)."""
        return (np.asarray(m, dtype=float) + 2 * step) / (1 + 2 * step)

    def expression(self, m: Any) -> Any:
        """Return square(1 - m)."""
        import cvxpy as cp

        return cp.square(1 - m)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"(1 {minus_m})^2"
