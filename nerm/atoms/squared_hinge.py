"""The squared hinge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.margin import Facts, MarginFunction, on_interval, single


@dataclass(frozen=True)
class SquaredHinge(MarginFunction):
    """phi(m) = max(0, 1 - m)^2; phi*(u) = u + u^2 / 4 for u <= 0.

    >>> SquaredHinge().value([-1.0, 1.0])
    array([4., 0.])
    """

    name: ClassVar[str] = "squared-hinge"

    @property
    def facts(self) -> Facts:
        """What is known of the squared hinge."""
        return Facts(at_zero=1.0, slopes=(-np.inf, 0.0), smoothness=2.0, breakpoints=(1.0,), quadratic=(1.0, 0.5))

    def value(self, m: ArrayLike) -> np.ndarray:
        """Return max(0, 1 - m)^2."""
        return np.maximum(0.0, 1.0 - np.asarray(m, dtype=float)) ** 2

    def subgradient(self, m: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return -2 max(0, 1 - m)."""
        return single(-2.0 * np.maximum(0.0, 1.0 - np.asarray(m, dtype=float)))

    def conjugate(self, u: ArrayLike) -> np.ndarray:
        """Return u + u^2 / 4 for u <= 0."""
        u = np.asarray(u, dtype=float)
        return on_interval(u, (-np.inf, 0.0), u + u**2 / 4)

    def prox(self, m: ArrayLike, step: float = 1.0) -> np.ndarray:
        """Return (m + 2 step) / (1 + 2 step) left of 1."""
        m = np.asarray(m, dtype=float)
        return np.where(m < 1, (m + 2 * step) / (1 + 2 * step), m)

    def expression(self, m: Any) -> Any:
        """Return square(pos(1 - m))."""
        import cvxpy as cp

        return cp.square(cp.pos(1 - m))

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\max(0,\ 1 {minus_m})^2"
