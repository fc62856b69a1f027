"""The hinge, rounded on both sides of its kink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.margin import Facts, MarginFunction, on_interval, single
from nerm.validation import as_positive


@dataclass(frozen=True)
class HuberizedHinge(MarginFunction):
    """The hinge, rounded by a parabola on [1 - width, 1 + width]; it is the hinge outside.

    phi(m) = (1 + width - m)^2 / (4 width) on that interval; phi*(u) = (1 + width) u + width u^2 on [-1, 0].

    >>> HuberizedHinge(width=0.5).value([0.5, 1.0, 1.5])
    array([0.5  , 0.125, 0.   ])
    """

    name: ClassVar[str] = "huberized-hinge"
    width: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", as_positive(self.width, "width", "Use a positive number, or Hinge() for 0"))

    @property
    def facts(self) -> Facts:
        """What is known of this function."""
        h = self.width
        return Facts(
            at_zero=float(self.value(0.0)),
            slopes=(-1.0, 0.0),
            smoothness=1.0 / (2 * h),
            breakpoints=(1.0 - h, 1.0 + h),
            quadratic=(1.0 + h, 2 * h),
        )

    def value(self, m: ArrayLike) -> np.ndarray:
        """Return the rounded hinge at m."""
        h = self.width
        x = np.maximum(0.0, 1.0 + h - np.asarray(m, dtype=float))
        return np.where(x <= 2 * h, np.minimum(x, 2 * h) ** 2 / (4 * h), x - h)

    def subgradient(self, m: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return -clip((1 + width - m) / (2 width), 0, 1)."""
        h = self.width
        return single(-np.clip((1.0 + h - np.asarray(m, dtype=float)) / (2 * h), 0.0, 1.0))

    def conjugate(self, u: ArrayLike) -> np.ndarray:
        """Return (1 + width) u + width u^2 on [-1, 0]."""
        u = np.asarray(u, dtype=float)
        return on_interval(u, (-1.0, 0.0), (1 + self.width) * u + self.width * u**2)

    def prox(self, m: ArrayLike, step: float = 1.0) -> np.ndarray:
        """Return the prox, piece by piece: m + step, the parabola's, or m."""
        m, h = np.asarray(m, dtype=float), self.width
        inside = np.where(m < 1 + h, (2 * h * m + step * (1 + h)) / (2 * h + step), m)
        return np.where(m < 1 - h - step, m + step, inside)

    def expression(self, m: Any) -> Any:
        """Return huber(pos(1 + width - m), 2 width) / (4 width)."""
        import cvxpy as cp

        return cp.huber(cp.pos(1 + self.width - m), 2 * self.width) / (4 * self.width)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{hinge}}_{{1\pm{self.width:g}}}({m})"
