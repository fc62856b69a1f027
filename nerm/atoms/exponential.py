"""The exponential loss of boosting."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import wrightomega, xlogy

from nerm.atoms.margin import Facts, MarginFunction, on_interval
from nerm.typing import Floats


@dataclass(frozen=True)
class Exponential(MarginFunction):
    """phi(m) = e^-m; phi*(u) = -u log(-u) + u for u <= 0.

    Examples
    --------
    >>> float(Exponential().conjugate(-1.0))
    -1.0
    """

    name: ClassVar[str] = "exponential"

    @property
    def facts(self) -> Facts:
        """What is known of the exponential loss."""
        return Facts(at_zero=1.0, slopes=(-np.inf, 0.0))

    def value(self, m: ArrayLike) -> Floats:
        """Return exp(-m); +inf where it overflows."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-np.asarray(m, dtype=float)))

    def subgradient(self, m: ArrayLike) -> tuple[Floats, Floats]:
        """Return -exp(-m)."""
        slope = -self.value(m)
        return slope, slope

    def curvature(self, m: ArrayLike) -> Floats:
        """Return exp(-m); +inf where it overflows."""
        return self.value(m)

    def conjugate(self, u: ArrayLike) -> Floats:
        """Return -u log(-u) + u for u <= 0."""
        u = np.asarray(u, dtype=float)
        p = np.maximum(-u, 0.0)
        return on_interval(u, (-np.inf, 0.0), xlogy(p, p) - p)

    def prox(self, m: ArrayLike, step: float = 1.0) -> Floats:
        """Return m + W(step e^-m), by the Wright omega function so that nothing overflows."""
        m = np.asarray(m, dtype=float)
        return np.asarray(m + wrightomega(np.log(step) - m).real)

    def expression(self, m: Any) -> Any:
        """Return exp(-m)."""
        import cvxpy as cp

        return cp.exp(-m)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"e^{{{minus_m}}}"
