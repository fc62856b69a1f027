"""The hinge, rounded on one side of its kink."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.margin import Facts, MarginFunction, on_interval, single
from nerm.validation import as_positive


@dataclass(frozen=True)
class SmoothHinge(MarginFunction):
    """The hinge, rounded by a parabola on [1 - width, 1]; it never exceeds the hinge.

    phi(m) = (1 - m)^2 / (2 width) on [1 - width, 1], 1 - m - width / 2 to its left, 0 to its right;
    phi*(u) = u + (width / 2) u^2 on [-1, 0]. (Rounded on both sides of the kink: HuberizedHinge.)

    >>> SmoothHinge(width=1.0).value([0.0, 0.5, 1.0])
    array([0.5  , 0.125, 0.   ])
    """

    name: ClassVar[str] = "smooth-hinge"
    width: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", as_positive(self.width, "width", "Use a positive number, or Hinge() for 0"))

    @property
    def facts(self) -> Facts:
        """What is known of this function."""
        h = self.width
        return Facts(
            at_zero=float(self.value(0.0)),
            slopes=(-1.0, 0.0),
            smoothness=1.0 / h,
            breakpoints=(1.0 - h, 1.0),
            quadratic=(1.0, h),
        )

    def value(self, m: ArrayLike) -> np.ndarray:
        """Return the rounded hinge at m."""
        x, h = np.maximum(0.0, 1.0 - np.asarray(m, dtype=float)), self.width
        return np.where(x <= h, np.minimum(x, h) ** 2 / (2 * h), x - h / 2)

    def subgradient(self, m: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return -clip((1 - m) / width, 0, 1)."""
        return single(-np.clip((1.0 - np.asarray(m, dtype=float)) / self.width, 0.0, 1.0))

    def conjugate(self, u: ArrayLike) -> np.ndarray:
        """Return u + (width / 2) u^2 on [-1, 0]."""
        u = np.asarray(u, dtype=float)
        return on_interval(u, (-1.0, 0.0), u + 0.5 * self.width * u**2)

    def prox(self, m: ArrayLike, step: float = 1.0) -> np.ndarray:
        """Return the prox, piece by piece: m + step, (width m + step) / (width + step), or m."""
        m, h = np.asarray(m, dtype=float), self.width
        inside = np.where(m < 1, (h * m + step) / (h + step), m)
        return np.where(m < 1 - h - step, m + step, inside)

    def expression(self, m: Any) -> Any:
        """Return huber(pos(1 - m), width) / (2 width)."""
        import cvxpy as cp

        return cp.huber(cp.pos(1 - m), self.width) / (2 * self.width)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{hinge}}_{{[1-{self.width:g},1]}}({m})"
