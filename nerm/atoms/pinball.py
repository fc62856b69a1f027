"""The pinball (quantile) hinge."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.margin import Facts, MarginFunction, on_interval
from nerm.validation import as_nonnegative


@dataclass(frozen=True)
class Pinball(MarginFunction):
    """phi(m) = max(1 - m, tau (m - 1)); phi*(u) = u on [-1, tau].

    The quantile hinge: tau = 0 is the hinge, tau = 1 is the absolute loss `|1 - m|`. Points far on the right side
    pay too, which makes the margin a quantile instead of a minimum.

    >>> Pinball(tau=0.5).value([0.0, 1.0, 3.0])
    array([1., 0., 1.])
    """

    name: ClassVar[str] = "pinball"
    tau: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "tau", as_nonnegative(self.tau, "tau"))

    @property
    def facts(self) -> Facts:
        """What is known of the pinball hinge."""
        return Facts(
            at_zero=1.0,
            slopes=(-1.0, float(self.tau)),
            kinks=(1.0,),
            breakpoints=(1.0,),
            quadratic=(1.0, 0.0),
        )

    def value(self, m: ArrayLike) -> np.ndarray:
        """Return max(1 - m, tau (m - 1))."""
        x = 1.0 - np.asarray(m, dtype=float)
        return np.maximum(x, -self.tau * x) + 0.0  # no negative zeros

    def subgradient(self, m: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return -1 left of 1, tau right of it, and [-1, tau] at 1."""
        m = np.asarray(m, dtype=float)
        return np.where(m <= 1, -1.0, self.tau), np.where(m < 1, -1.0, self.tau)

    def conjugate(self, u: ArrayLike) -> np.ndarray:
        """Return u on [-1, tau]."""
        return on_interval(u, (-1.0, self.tau), np.asarray(u, dtype=float))

    def prox(self, m: ArrayLike, step: float = 1.0) -> np.ndarray:
        """Return m moved towards 1, by step from the left and by tau step from the right."""
        m = np.asarray(m, dtype=float)
        return np.where(m < 1, np.minimum(m + step, 1.0), np.maximum(m - self.tau * step, 1.0))

    def expression(self, m: Any) -> Any:
        """Return maximum(1 - m, tau (m - 1))."""
        import cvxpy as cp

        return cp.maximum(1 - m, self.tau * (m - 1))

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{pinball}}_{{{self.tau:g}}}(1 {minus_m})"
