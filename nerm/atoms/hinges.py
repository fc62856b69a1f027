"""Margin functions whose conjugate is quadratic on an interval: the hinge and its family.

The family has the hinge, the smooth, Huberized and squared hinges, the modified Huber loss, the pinball loss,
the squared loss and the identity. A class defines four numbers (`dual_form`), its cvxpy expression and its
LaTeX formula; `HingeLike` derives value, subgradient, conjugate and prox from the numbers.
"""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms import cvx as cp
from nerm.atoms.margin import Facts, MarginFunction
from nerm.typing import Floats
from nerm.validation import as_nonnegative, as_positive


class HingeLike(MarginFunction):
    """phi(m) = max over u in [low, high] of  m u - a u - (q/2) u^2.

    That is, phi*(u) = a u + (q/2) u^2 on [low, high].

    A subclass defines the four numbers (a, q, low, high) as `dual_form`. Facts, value, subgradients,
    conjugate and prox follow from them. `expression` and `latex` are written independently of these numbers,
    so tests can compare the two.

    Examples
    --------
    >>> from nerm import Pinball
    >>> phi = Pinball(tau=0.5)
    >>> phi.dual_form
    (1.0, 0.0, -1.0, 0.5)
    >>> phi.facts.kinks, phi.conjugate([-1.0, 0.5, 0.6])
    ((1.0,), array([-1. ,  0.5,  inf]))
    """

    @property
    @abstractmethod
    def dual_form(self) -> tuple[float, float, float, float]:
        """The numbers (a, q, low, high) of the conjugate."""

    @cached_property
    def facts(self) -> Facts:
        """The facts of this function, derived from `dual_form`."""
        a, q, low, high = self.dual_form
        curved, straight, unbounded = q > 0, low == high, low > 0 or high < 0
        ends = {a + q * low, a + q * high}  # margins at which the maximizing u reaches low or high
        return Facts(
            at_zero=float(-self.conjugate(self.subgradient(0.0)[0])) + 0.0,
            slopes=(low, high),
            smoothness=1.0 / q if curved else 0.0 if straight else np.inf,
            kinks=() if curved or straight else (a,),
            breakpoints=() if straight else tuple(m for m in sorted(ends) if np.isfinite(m)),
            minimum=-np.inf if unbounded else 0.0,
            quadratic=(a, q),
            bend=a if q == 0 and np.isfinite([low, high]).all() else None,
            surrogate_only=unbounded,
        )

    def value(self, m: ArrayLike) -> Floats:
        """Return u (m - a) - (q/2) u^2 at the u that attains the maximum."""
        a, q, low, high = self.dual_form
        z = np.asarray(m, dtype=float) - a
        if q == 0:
            return np.maximum(low * z, high * z) + 0.0  # no negative zeros
        u = np.clip(z / q, low, high)
        return np.asarray(u * (z - 0.5 * q * u))

    def subgradient(self, m: ArrayLike) -> tuple[Floats, Floats]:
        """Return (low, high), the interval of all u that attain the maximum, each in the shape of m.

        For q > 0 it is the single point clip((m - a) / q, low, high).
        """
        a, q, low, high = self.dual_form
        z = np.asarray(m, dtype=float) - a
        if q > 0:
            slope = np.clip(z / q, low, high)
            return slope, slope
        return np.where(z <= 0, low, high), np.where(z < 0, low, high)

    def conjugate(self, u: ArrayLike) -> Floats:
        """Return a u + (q/2) u^2 on [low, high] and +inf outside."""
        a, q, low, high = self.dual_form
        u = np.asarray(u, dtype=float)
        inside = np.clip(u, low, high)
        return np.where(u == inside, a * inside + 0.5 * q * inside**2, np.inf)

    def prox(self, m: ArrayLike, step: float = 1.0) -> Floats:
        """Return m - step clip((m - a) / (q + step), low, high), by Moreau's identity."""
        a, q, low, high = self.dual_form
        m = np.asarray(m, dtype=float)
        return m - step * np.clip((m - a) / (q + step), low, high)


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

    def expression(self, m: Any) -> Any:
        """Return pos(1 - m)."""
        return cp.pos(1 - m)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\max(0,\ 1 {minus_m})"


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

    def expression(self, m: Any) -> Any:
        """Return square(pos(1 - m))."""
        return cp.square(cp.pos(1 - m))

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\max(0,\ 1 {minus_m})^2"


@dataclass(frozen=True)
class SmoothHinge(HingeLike):
    """The hinge with its kink replaced by a parabola on [1 - width, 1]; it is never above the hinge.

    phi(m) = (1 - m)^2 / (2 width) on [1 - width, 1], 1 - m - width / 2 to its left, 0 to its right;
    phi*(u) = u + (width / 2) u^2 on [-1, 0]. `HuberizedHinge` is smoothed on both sides of the kink.

    Parameters
    ----------
    width : float
        Positive.

    Examples
    --------
    >>> SmoothHinge(width=1.0).value([0.0, 0.5, 1.0])
    array([0.5  , 0.125, 0.   ])
    """

    name: ClassVar[str] = "smooth-hinge"
    width: float = 1.0

    def __post_init__(self) -> None:
        width = as_positive(self.width, "width", "Use a positive number, or Hinge() for 0")
        object.__setattr__(self, "width", width)

    @property
    def dual_form(self) -> tuple[float, float, float, float]:
        """The numbers (a, q, low, high) of the conjugate a u + (q/2) u^2 on [low, high]."""
        return 1.0, self.width, -1.0, 0.0

    def expression(self, m: Any) -> Any:
        """Return huber(pos(1 - m), width) / (2 width)."""
        return cp.huber(cp.pos(1 - m), self.width) / (2 * self.width)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{hinge}}_{{[1-{self.width:g},1]}}({m})"


@dataclass(frozen=True)
class HuberizedHinge(SmoothHinge):
    """The hinge with its kink replaced by a parabola on [1 - width, 1 + width].

    phi(m) = (1 + width - m)^2 / (4 width) on this interval, and the hinge outside of it;
    phi*(u) = (1 + width) u + width u^2 on [-1, 0].

    Parameters
    ----------
    width : float
        Positive.

    Examples
    --------
    >>> HuberizedHinge(width=0.5).value([0.5, 1.0, 1.5])
    array([0.5  , 0.125, 0.   ])
    """

    name: ClassVar[str] = "huberized-hinge"
    width: float = 0.5

    @property
    def dual_form(self) -> tuple[float, float, float, float]:
        """The numbers (a, q, low, high) of the conjugate a u + (q/2) u^2 on [low, high]."""
        return 1.0 + self.width, 2 * self.width, -1.0, 0.0

    def expression(self, m: Any) -> Any:
        """Return huber(pos(1 + width - m), 2 width) / (4 width)."""
        return cp.huber(cp.pos(1 + self.width - m), 2 * self.width) / (4 * self.width)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{hinge}}_{{1\pm{self.width:g}}}({m})"


@dataclass(frozen=True)
class ModifiedHuber(HingeLike):
    """phi(m) = max(0, 1 - m)^2 for m >= -1 and -4 m below; phi*(u) = u + u^2 / 4 on [-4, 0].

    It is the squared hinge, continued by a straight line for m < -1, as in scikit-learn's
    ``SGDClassifier(loss="modified_huber")``.

    Examples
    --------
    >>> ModifiedHuber().value([-2.0, -1.0, 0.0])
    array([8., 4., 1.])
    """

    name: ClassVar[str] = "modified-huber"
    dual_form = (1.0, 0.5, -4.0, 0.0)

    def expression(self, m: Any) -> Any:
        """Return huber(pos(1 - m), 2)."""
        return cp.huber(cp.pos(1 - m), 2)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{huber}}_2(\max(0,\ 1 {minus_m}))"


@dataclass(frozen=True)
class Pinball(HingeLike):
    """phi(m) = max(1 - m, tau (m - 1)); phi*(u) = u on [-1, tau].

    tau = 0 is the hinge and tau = 1 the absolute loss `|1 - m|`. For tau > 0, rows with a margin above 1 have
    a positive loss too, so the margin of the classifier is a quantile of the rows' margins and not the
    smallest.

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

    def expression(self, m: Any) -> Any:
        """Return maximum(1 - m, tau (m - 1))."""
        return cp.maximum(1 - m, self.tau * (m - 1))

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{pinball}}_{{{self.tau:g}}}(1 {minus_m})"


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

    def expression(self, m: Any) -> Any:
        """Return square(1 - m)."""
        return cp.square(1 - m)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"(1 {minus_m})^2"


@dataclass(frozen=True)
class Identity(HingeLike):
    """psi(m) = m; psi*(1) = 0, and +inf elsewhere.

    As a surrogate it gives max(C+, C-) = `|mean(v f)|`. It is unbounded below and cannot be used as a loss.

    Examples
    --------
    >>> Identity().value([-1.0, 2.0])
    array([-1.,  2.])
    """

    name: ClassVar[str] = "identity"
    dual_form = (0.0, 0.0, 1.0, 1.0)

    def expression(self, m: Any) -> Any:
        """Return m."""
        return m

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"({m})"


@dataclass(frozen=True)
class TwoLines(HingeLike):
    """phi(m) = max(low (m - at), high (m - at)); phi*(u) = at u on [low, high].

    `Ramp` is a difference of two such functions; the hinge is `TwoLines(1, -1, 0)`.

    Parameters
    ----------
    at : float
        The margin at which both lines have the value 0.
    low, high : float
        The slopes of the lines, low <= high. With low = high, phi is one line.

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

    def expression(self, m: Any) -> Any:
        """Return maximum(low (m - at), high (m - at))."""
        x = m - self.at
        return self.low * x if self.low == self.high else cp.maximum(self.low * x, self.high * x)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\max_{{a \in \{{{self.low:g}, {self.high:g}\}}}} a ({m} - {self.at:g})"
