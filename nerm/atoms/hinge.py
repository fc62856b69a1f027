"""The hinge, the paper's loss and surrogate."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.hinge_like import HingeLike
from nerm.typing import Floats


@dataclass(frozen=True)
class Hinge(HingeLike):
    """phi(m) = max(0, 1 - m); phi*(u) = u on [-1, 0] (the paper, section 6.1).

    Examples
    --------
    >>> Hinge().value([-1.0, 1.0, 2.0])
    array([2., 0., 0.])
    """

    name: ClassVar[str] = "hinge"
    dual_form = (1.0, 0.0, -1.0, 0.0)

    def value(self, m: ArrayLike) -> Floats:
        """Return max(0, 1 - m)."""
        return np.maximum(0.0, 1.0 - np.asarray(m, dtype=float))

    def expression(self, m: Any) -> Any:
        """Return pos(1 - m)."""
        import cvxpy as cp

        return cp.pos(1 - m)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\max(0,\ 1 {minus_m})"
