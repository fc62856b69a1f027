"""The pinball (quantile) hinge."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.hinge_like import HingeLike
from nerm.typing import Floats
from nerm.validation import as_nonnegative


@dataclass(frozen=True)
class Pinball(HingeLike):
    """phi(m) = max(1 - m, tau (m - 1)); phi*(u) = u on [-1, tau].

    The quantile hinge: tau = 0 is the hinge, tau = 1 is the absolute loss `|1 - m|`. Points far on the right
    side pay too, which makes the margin a quantile instead of a minimum.

    Parameters
    ----------
    tau : float
        At least 0.

    Examples
    --------
    >>> Pinball(tau=0.5).value([0.0, 1.0, 3.0])
    array([1., 0., 1.])
    """

    name: ClassVar[str] = "pinball"
    tau: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "tau", as_nonnegative(self.tau, "tau"))

    @property
    def dual_form(self) -> tuple[float, float, float, float]:
        """The numbers (a, q, low, high) of the conjugate a u + (q/2) u^2 on [low, high]."""
        return 1.0, 0.0, -1.0, self.tau

    def value(self, m: ArrayLike) -> Floats:
        """Return max(1 - m, tau (m - 1))."""
        x = 1.0 - np.asarray(m, dtype=float)
        return np.maximum(x, -self.tau * x) + 0.0  # no negative zeros

    def expression(self, m: Any) -> Any:
        """Return maximum(1 - m, tau (m - 1))."""
        import cvxpy as cp

        return cp.maximum(1 - m, self.tau * (m - 1))

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{pinball}}_{{{self.tau:g}}}(1 {minus_m})"
