"""The hinge, rounded on both sides of its kink."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.hinge_like import HingeLike
from nerm.typing import Floats
from nerm.validation import as_positive


@dataclass(frozen=True)
class HuberizedHinge(HingeLike):
    """The hinge, rounded by a parabola on [1 - width, 1 + width]; it is the hinge outside.

    phi(m) = (1 + width - m)^2 / (4 width) on that interval; phi*(u) = (1 + width) u + width u^2 on [-1, 0].

    Parameters
    ----------
    width : float
        Positive.

    Examples
    --------
    >>> HuberizedHinge(width=0.5).value([0.5, 1.0, 1.5])
    array([0.5  , 0.125, 0.   ])
    """

    name: ClassVar[str] = "huberized-hinge"
    width: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(
            self, "width", as_positive(self.width, "width", "Use a positive number, or Hinge() for 0")
        )

    @property
    def dual_form(self) -> tuple[float, float, float, float]:
        """The numbers (a, q, low, high) of the conjugate a u + (q/2) u^2 on [low, high]."""
        return 1.0 + self.width, 2 * self.width, -1.0, 0.0

    def value(self, m: ArrayLike) -> Floats:
        """Return the rounded hinge at m."""
        h = self.width
        x = np.maximum(0.0, 1.0 + h - np.asarray(m, dtype=float))
        return np.where(x <= 2 * h, np.minimum(x, 2 * h) ** 2 / (4 * h), x - h)

    def expression(self, m: Any) -> Any:
        """Return huber(pos(1 + width - m), 2 width) / (4 width)."""
        import cvxpy as cp

        return cp.huber(cp.pos(1 + self.width - m), 2 * self.width) / (4 * self.width)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{hinge}}_{{1\pm{self.width:g}}}({m})"
