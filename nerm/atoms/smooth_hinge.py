"""The hinge, rounded on one side of its kink."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.hinge_like import HingeLike
from nerm.typing import Floats
from nerm.validation import as_positive


@dataclass(frozen=True)
class SmoothHinge(HingeLike):
    """The hinge, rounded by a parabola on [1 - width, 1]; it never exceeds the hinge.

    phi(m) = (1 - m)^2 / (2 width) on [1 - width, 1], 1 - m - width / 2 to its left, 0 to its right;
    phi*(u) = u + (width / 2) u^2 on [-1, 0]. (Rounded on both sides of the kink: HuberizedHinge.)

    Parameters
    ----------
    width : float
        Positive.

    Examples
    --------
    >>> SmoothHinge(width=1.0).value([0.0, 0.5, 1.0])
    array([0.5  , 0.125, 0.   ])
    """

    name: ClassVar[str] = "smooth-hinge"
    width: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "width", as_positive(self.width, "width", "Use a positive number, or Hinge() for 0")
        )

    @property
    def dual_form(self) -> tuple[float, float, float, float]:
        """The numbers (a, q, low, high) of the conjugate a u + (q/2) u^2 on [low, high]."""
        return 1.0, self.width, -1.0, 0.0

    def value(self, m: ArrayLike) -> Floats:
        """Return the rounded hinge at m."""
        x, h = np.maximum(0.0, 1.0 - np.asarray(m, dtype=float)), self.width
        return np.where(x <= h, np.minimum(x, h) ** 2 / (2 * h), x - h / 2)

    def expression(self, m: Any) -> Any:
        """Return huber(pos(1 - m), width) / (2 width)."""
        import cvxpy as cp

        return cp.huber(cp.pos(1 - m), self.width) / (2 * self.width)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{hinge}}_{{[1-{self.width:g},1]}}({m})"
