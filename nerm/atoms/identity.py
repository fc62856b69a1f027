"""The identity: the covariance criterion of neutrality."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.margin import Facts, MarginFunction, on_interval, single


@dataclass(frozen=True)
class Identity(MarginFunction):
    """psi(m) = m; psi*(1) = 0. As a surrogate, max(C+, C-) = `|mean(v f)|`; unbounded below, so never a loss.

    >>> Identity().value([-1.0, 2.0])
    array([-1.,  2.])
    """

    name: ClassVar[str] = "identity"

    @property
    def facts(self) -> Facts:
        """What is known of the identity."""
        return Facts(
            at_zero=0.0,
            slopes=(1.0, 1.0),
            smoothness=0.0,
            minimum=-np.inf,
            quadratic=(0.0, 0.0),
            surrogate_only=True,
        )

    def value(self, m: ArrayLike) -> np.ndarray:
        """Return m."""
        return np.array(m, dtype=float)

    def subgradient(self, m: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return 1."""
        return single(np.ones_like(np.asarray(m, dtype=float)))

    def conjugate(self, u: ArrayLike) -> np.ndarray:
        """Return 0 at u = 1."""
        return on_interval(u, (1.0, 1.0), np.zeros_like(np.asarray(u, dtype=float)))

    def prox(self, m: ArrayLike, step: float = 1.0) -> np.ndarray:
        """Return m - step."""
        return np.asarray(m, dtype=float) - step

    def expression(self, m: Any) -> Any:
        """Return m."""
        return m

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"({m})"
