"""The hinge, the paper's loss and surrogate."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.margin import Facts, MarginFunction, on_interval


@dataclass(frozen=True)
class Hinge(MarginFunction):
    """phi(m) = max(0, 1 - m); phi*(u) = u on [-1, 0] (the paper, section 6.1).

    >>> Hinge().value([-1.0, 1.0, 2.0])
    array([2., 0., 0.])
    """

    name: ClassVar[str] = "hinge"

    @property
    def facts(self) -> Facts:
        """What is known of the hinge."""
        return Facts(at_zero=1.0, slopes=(-1.0, 0.0), kinks=(1.0,), breakpoints=(1.0,), quadratic=(1.0, 0.0))

    def value(self, m: ArrayLike) -> np.ndarray:
        """Return max(0, 1 - m)."""
        return np.maximum(0.0, 1.0 - np.asarray(m, dtype=float))

    def subgradient(self, m: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return -1 left of 1, 0 right of it, and [-1, 0] at 1."""
        m = np.asarray(m, dtype=float)
        return np.where(m <= 1, -1.0, 0.0), np.where(m < 1, -1.0, 0.0)

    def conjugate(self, u: ArrayLike) -> np.ndarray:
        """Return u on [-1, 0]."""
        return on_interval(u, (-1.0, 0.0), np.asarray(u, dtype=float))

    def prox(self, m: ArrayLike, step: float = 1.0) -> np.ndarray:
        """Return m + step left of 1 - step, m right of 1, and 1 between."""
        m = np.asarray(m, dtype=float)
        return np.where(m < 1, np.minimum(m + step, 1.0), m)

    def expression(self, m: Any) -> Any:
        """Return pos(1 - m)."""
        import cvxpy as cp

        return cp.pos(1 - m)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\max(0,\ 1 {minus_m})"
