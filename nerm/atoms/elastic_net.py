"""The elastic net."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nerm.atoms.l1 import L1
from nerm.atoms.regularizer import Regularizer
from nerm.atoms.squared_l2 import SquaredL2
from nerm.errors import InvalidInputError
from nerm.typing import Floats
from nerm.validation import as_nonnegative


@dataclass(frozen=True)
class ElasticNet(Regularizer):
    """Omega(w) = r ||w||_1 + (1 - r)/2 ||w||^2 with r = l1_ratio in [0, 1].

    Omega*(q) = ||soft(q, r)||^2 / (2 (1 - r)) for r < 1.

    Parameters
    ----------
    l1_ratio : float
        r.

    Examples
    --------
    >>> ElasticNet(l1_ratio=0.5).value(np.array([3.0, -4.0]))
    9.75
    """

    name: ClassVar[str] = "elastic-net"
    l1_ratio: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "l1_ratio", as_nonnegative(self.l1_ratio, "l1_ratio"))
        if self.l1_ratio > 1:
            must = "'l1_ratio' must lie between 0 and 1"
            raise InvalidInputError(must, repr(self.l1_ratio), "Use 1 for pure l1, 0 for pure squared l2")

    def value(self, w: Floats) -> float:
        """Return r ||w||_1 + (1 - r)/2 ||w||^2."""
        r = self.l1_ratio
        return r * float(np.abs(w).sum()) + 0.5 * (1 - r) * float(w @ w)

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return r times that of l1, plus (1 - r) w."""
        low, high = L1().subgradient(w)
        r = self.l1_ratio
        return r * low + (1 - r) * w, r * high + (1 - r) * w

    def conjugate(self, q: Floats) -> float:
        """Return the conjugate; for r = 1 that of l1."""
        r = self.l1_ratio
        if r == 1:
            return L1().conjugate(q)
        soft = L1().prox(q, r)
        return 0.5 * float(soft @ soft) / (1 - r)

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return the soft-thresholded and shrunk w."""
        r = self.l1_ratio
        return L1().prox(w, step * r) / (1 + step * (1 - r))

    def expression(self, w: Any) -> Any:
        """Return the weighted sum of the two cvxpy expressions."""
        import cvxpy as cp

        r = self.l1_ratio
        return r * cp.norm1(w) + (1 - r) / 2 * cp.sum_squares(w)

    def parts(self) -> tuple[tuple[float, Regularizer], ...]:
        """Return r L1 + (1 - r) SquaredL2."""
        return tuple(
            (weight, atom)
            for weight, atom in ((self.l1_ratio, L1()), (1 - self.l1_ratio, SquaredL2()))
            if weight
        )

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text."""
        return f"({self.l1_ratio:g} ‖w‖₁ + {1 - self.l1_ratio:g} ½‖w‖²)"

    def latex_formula(self) -> str:
        """Return the term as LaTeX."""
        return rf"\left({self.l1_ratio:g}\|w\|_1 + {1 - self.l1_ratio:g}\,\tfrac12\|w\|_2^2\right)"
