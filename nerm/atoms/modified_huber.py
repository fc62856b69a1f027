"""The modified Huber loss."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.margin import Facts, MarginFunction, on_interval, single


@dataclass(frozen=True)
class ModifiedHuber(MarginFunction):
    """phi(m) = max(0, 1 - m)^2 for m >= -1 and -4 m below; phi*(u) = u + u^2 / 4 on [-4, 0].

    The squared hinge with its tail straightened, as in scikit-learn's ``SGDClassifier(loss="modified_huber")``.

    >>> ModifiedHuber().value([-2.0, -1.0, 0.0])
    array([8., 4., 1.])
    """

    name: ClassVar[str] = "modified-huber"

    @property
    def facts(self) -> Facts:
        """What is known of the modified Huber loss."""
        return Facts(at_zero=1.0, slopes=(-4.0, 0.0), smoothness=2.0, breakpoints=(-1.0, 1.0), quadratic=(1.0, 0.5))

    def value(self, m: ArrayLike) -> np.ndarray:
        """Return the modified Huber loss at m."""
        m = np.asarray(m, dtype=float)
        return np.where(m < -1, -4.0 * m, np.clip(1.0 - m, 0.0, 2.0) ** 2)

    def subgradient(self, m: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return -2 clip(1 - m, 0, 2)."""
        return single(-2.0 * np.clip(1.0 - np.asarray(m, dtype=float), 0.0, 2.0))

    def conjugate(self, u: ArrayLike) -> np.ndarray:
        """Return u + u^2 / 4 on [-4, 0]."""
        u = np.asarray(u, dtype=float)
        return on_interval(u, (-4.0, 0.0), u + u**2 / 4)

    def prox(self, m: ArrayLike, step: float = 1.0) -> np.ndarray:
        """Return the prox, piece by piece: m + 4 step, (m + 2 step) / (1 + 2 step), or m."""
        m = np.asarray(m, dtype=float)
        inside = np.where(m < 1, (m + 2 * step) / (1 + 2 * step), m)
        return np.where(m < -1 - 4 * step, m + 4 * step, inside)

    def expression(self, m: Any) -> Any:
        """Return huber(pos(1 - m), 2)."""
        import cvxpy as cp

        return cp.huber(cp.pos(1 - m), 2)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{huber}}_2(\max(0,\ 1 {minus_m}))"
