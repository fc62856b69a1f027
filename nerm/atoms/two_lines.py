"""Two straight lines that meet: what piecewise linear functions of one bend have in common."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.hinge_like import HingeLike
from nerm.typing import Floats


@dataclass(frozen=True)
class TwoLines(HingeLike):
    """phi(m) = max(low (m - at), high (m - at)); phi*(u) = at u on [low, high]. One line where low = high.

    Parts of other functions are such lines (`Ramp`); the hinge is `TwoLines(1, -1, 0)`.

    Parameters
    ----------
    at : float
        Where the lines meet, at the value 0.
    low, high : float
        Their slopes.

    Examples
    --------
    >>> TwoLines(at=1.0, low=-0.5, high=0.5).value([-1.0, 1.0, 2.0])
    array([1. , 0. , 0.5])
    """

    label: ClassVar[str] = "lines"
    at: float
    low: float
    high: float

    @property
    def dual_form(self) -> tuple[float, float, float, float]:
        """The numbers (a, q, low, high) of the conjugate a u + (q/2) u^2 on [low, high]."""
        return self.at, 0.0, self.low, self.high

    def value(self, m: ArrayLike) -> Floats:
        """Return max(low (m - at), high (m - at))."""
        x = np.asarray(m, dtype=float) - self.at
        return np.maximum(self.low * x, self.high * x) + 0.0  # no negative zeros

    def expression(self, m: Any) -> Any:
        """Return maximum(low (m - at), high (m - at))."""
        import cvxpy as cp

        x = m - self.at
        return self.low * x if self.low == self.high else cp.maximum(self.low * x, self.high * x)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\max_{{a \in \{{{self.low:g}, {self.high:g}\}}}} a ({m} - {self.at:g})"
