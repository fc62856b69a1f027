"""The l1 norm."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nerm.atoms.regularizer import Norm, Norms
from nerm.typing import Floats


@dataclass(frozen=True)
class L1(Norm):
    """Omega(w) = ||w||_1; Omega* is the indicator of ||q||_inf <= 1.

    Examples
    --------
    >>> L1().value(np.array([3.0, -4.0]))
    7.0
    """

    name: ClassVar[str] = "l1"

    def value(self, w: Floats) -> float:
        """Return sum `|w_j|`."""
        return float(np.abs(w).sum())

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return sign(w_j), and [-1, 1] at 0."""
        return np.where(w > 0, 1.0, -1.0), np.where(w < 0, -1.0, 1.0)

    def dual_norm(self, q: Floats) -> float:
        """Return max `|q_j|`."""
        return float(np.abs(q).max(initial=0.0))

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return w, soft-thresholded at step."""
        return w - np.clip(w, -step, step)

    def norms(self, d: int) -> tuple[Norms, ...]:
        """Return a group for each coefficient."""
        return (Norms(2, np.ones(d), np.arange(d)[:, None]),)

    def expression(self, w: Any) -> Any:
        """Return norm1(w)."""
        import cvxpy as cp

        return cp.norm1(w)

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text."""
        return "‖w‖₁"

    def latex_formula(self) -> str:
        """Return the term as LaTeX."""
        return r"\|w\|_1"
