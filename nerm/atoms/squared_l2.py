"""Half the squared Euclidean norm."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nerm.atoms.regularizer import Regularizer


@dataclass(frozen=True)
class SquaredL2(Regularizer):
    """Omega(w) = 1/2 ||w||^2, its own conjugate. On a kernel problem it is 1/2 c' K c.

    >>> SquaredL2().value(np.array([3.0, 4.0]))
    12.5
    """

    name: ClassVar[str] = "squared-l2"

    def value(self, w: np.ndarray) -> float:
        """Return 1/2 ||w||^2."""
        return 0.5 * float(w @ w)

    def subgradient(self, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return w."""
        return w, w

    def conjugate(self, q: np.ndarray) -> float:
        """Return 1/2 ||q||^2."""
        return 0.5 * float(q @ q)

    def prox(self, w: np.ndarray, step: float = 1.0) -> np.ndarray:
        """Return w / (1 + step)."""
        return w / (1.0 + step)

    def expression(self, w: Any) -> Any:
        """Return sum_squares(w) / 2."""
        import cvxpy as cp

        return cp.sum_squares(w) / 2

    def formula(self) -> str:
        """Return the term as text."""
        return "½‖w‖²"

    def latex_formula(self) -> str:
        """Return the term as LaTeX."""
        return r"\tfrac12\|w\|_2^2"
