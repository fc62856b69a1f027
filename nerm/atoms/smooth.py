"""Smooth margin functions with a second derivative: the logistic and the exponential loss."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, wrightomega, xlogy

from nerm.atoms import cvx as cp
from nerm.atoms.margin import Facts, MarginFunction
from nerm.typing import Floats


@dataclass(frozen=True)
class Logistic(MarginFunction):
    """phi(m) = log(1 + e^-m); phi*(u) = (-u) log(-u) + (1 + u) log(1 + u) on [-1, 0].

    Examples
    --------
    >>> float(Logistic().value(0.0))
    0.693...
    """

    name: ClassVar[str] = "logistic"

    @property
    def facts(self) -> Facts:
        """The mathematical properties of the logistic loss."""
        return Facts(at_zero=float(np.log(2.0)), slopes=(-1.0, 0.0), smoothness=0.25)

    def value(self, m: ArrayLike) -> Floats:
        """Return log(1 + exp(-m)), without overflow."""
        return np.asarray(np.logaddexp(0.0, -np.asarray(m, dtype=float)))

    def subgradient(self, m: ArrayLike) -> tuple[Floats, Floats]:
        """Return the derivative -1 / (1 + exp(m)) as both ends of the interval."""
        slope = np.asarray(-expit(-np.asarray(m, dtype=float)))
        return slope, slope

    def curvature(self, m: ArrayLike) -> Floats:
        """Return 1 / ((1 + e^m) (1 + e^-m))."""
        m = np.asarray(m, dtype=float)
        return np.asarray(expit(m) * expit(-m))

    def conjugate(self, u: ArrayLike) -> Floats:
        """Return the negative entropy of (-u, 1 + u); +inf outside of [-1, 0]."""
        u = np.asarray(u, dtype=float)
        p = np.clip(-u, 0.0, 1.0)
        return np.where(p == -u, xlogy(p, p) + xlogy(1 - p, 1 - p), np.inf)

    def expression(self, m: Any) -> Any:
        """Return logistic(-m)."""
        return cp.logistic(-m)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\log(1 + e^{{{minus_m}}})"


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
        """The mathematical properties of the exponential loss."""
        return Facts(at_zero=1.0, slopes=(-np.inf, 0.0))

    def value(self, m: ArrayLike) -> Floats:
        """Return exp(-m); +inf where it overflows."""
        with np.errstate(over="ignore"):
            return np.asarray(np.exp(-np.asarray(m, dtype=float)))

    def subgradient(self, m: ArrayLike) -> tuple[Floats, Floats]:
        """Return the derivative -exp(-m) as both ends of the interval."""
        slope = -self.value(m)
        return slope, slope

    def curvature(self, m: ArrayLike) -> Floats:
        """Return exp(-m); +inf where it overflows."""
        return self.value(m)

    def conjugate(self, u: ArrayLike) -> Floats:
        """Return -u log(-u) + u for u <= 0, and +inf for u > 0."""
        u = np.asarray(u, dtype=float)
        p = np.maximum(-u, 0.0)
        return np.where(p == -u, xlogy(p, p) - p, np.inf)

    def prox(self, m: ArrayLike, step: float = 1.0) -> Floats:
        """Return m + W(step e^-m), where W is the Lambert function.

        It is computed by the Wright omega function, which does not overflow.
        """
        m = np.asarray(m, dtype=float)
        return np.asarray(m + wrightomega(np.log(step) - m).real)

    def expression(self, m: Any) -> Any:
        """Return exp(-m)."""
        return cp.exp(-m)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"e^{{{minus_m}}}"
