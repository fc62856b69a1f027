"""The squared loss on the margin."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.hinge_like import HingeLike
from nerm.typing import Floats


@dataclass(frozen=True)
class Squared(HingeLike):
    """phi(m) = (1 - m)^2; phi*(u) = u + u^2 / 4.

    Examples
    --------
    >>> Squared().value([0.0, 1.0, 3.0])
    array([1., 0., 4.])
    """

    name: ClassVar[str] = "squared"
    dual_form = (1.0, 0.5, -np.inf, np.inf)

    def value(self, m: ArrayLike) -> Floats:
        """Return (1 - m)^2."""
        return (1.0 - np.asarray(m, dtype=float)) ** 2

    def expression(self, m: Any) -> Any:
        """Return square(1 - m)."""
        import cvxpy as cp

        return cp.square(1 - m)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"(1 {minus_m})^2"
