"""The l-infinity norm."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nerm.atoms.regularizer import Norm, Norms
from nerm.typing import Floats


@dataclass(frozen=True)
class LInf(Norm):
    """Omega(w) = max_j `|w_j|`; Omega* is the indicator of ||q||_1 <= 1.

    Examples
    --------
    >>> LInf().value(np.array([3.0, -4.0]))
    4.0
    """

    name: ClassVar[str] = "l-inf"

    def value(self, w: Floats) -> float:
        """Return max `|w_j|`."""
        return float(np.abs(w).max(initial=0.0))

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return the one-sided derivatives: sign(w_j) outwards at a largest entry, inwards only if it is alone."""
        size = np.abs(w)
        largest = size.max(initial=0.0)
        if largest == 0:
            return -np.ones_like(w), np.ones_like(w)
        at_top = size == largest
        alone = at_top if at_top.sum() == 1 else np.zeros_like(at_top)
        low = np.where(alone | (at_top & (w < 0)), np.sign(w), 0.0)
        high = np.where(alone | (at_top & (w > 0)), np.sign(w), 0.0)
        return low, high

    def dual_norm(self, q: Floats) -> float:
        """Return sum `|q_j|`."""
        return float(np.abs(q).sum())

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return w minus its projection on the l1 ball of radius step."""
        return w - project_l1_ball(w, step)

    def norms(self, d: int) -> tuple[Norms, ...]:
        """Return one group of all coefficients."""
        return (Norms(np.inf, np.ones(1), np.arange(d)[None, :]),)

    def expression(self, w: Any) -> Any:
        """Return norm_inf(w)."""
        import cvxpy as cp

        return cp.norm_inf(w)

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text."""
        return "‖w‖_∞"

    def latex_formula(self) -> str:
        """Return the term as LaTeX."""
        return r"\|w\|_\infty"


def project_l1_ball(w: Floats, radius: float) -> Floats:
    """Return the closest point of { ||z||_1 <= radius }: soft-thresholding at the level that meets the radius."""
    size = np.sort(np.abs(w))[::-1]
    if size.sum() <= radius:
        return w
    excess = (np.cumsum(size) - radius) / np.arange(1, len(w) + 1)
    level = excess[np.flatnonzero(size >= excess)[-1]]  # >=, for a radius below the last digit of w
    return np.asarray(np.sign(w) * np.maximum(np.abs(w) - level, 0.0))
