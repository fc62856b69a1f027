"""The squared hinge."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.hinge_like import HingeLike
from nerm.typing import Floats


@dataclass(frozen=True)
class SquaredHinge(HingeLike):
    """phi(m) = max(0, 1 - m)^2; phi*(u) = u + u^2 / 4 for u <= 0.

    Examples
    --------
    >>> SquaredHinge().value([-1.0, 1.0])
    array([4., 0.])
    """

    name: ClassVar[str] = "squared-hinge"
    dual_form = (1.0, 0.5, -np.inf, 0.0)

    def value(self, m: ArrayLike) -> Floats:
        """Return max(0, 1 - m)^2."""
        return np.maximum(0.0, 1.0 - np.asarray(m, dtype=float)) ** 2

    def expression(self, m: Any) -> Any:
        """Return square(pos(1 - m))."""
        import cvxpy as cp

        return cp.square(cp.pos(1 - m))

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\max(0,\ 1 {minus_m})^2"
