"""The margin functions of nerm: a class is a name, a formula and its LaTeX.

The hinge, the smooth, Huberized and squared hinges, the modified Huber loss, the pinball loss, the squared
loss, the identity, the logistic and the exponential loss. `MarginFunction` derives everything else.
"""

from dataclasses import dataclass
from math import inf
from typing import Any, ClassVar

from nerm.atoms import cvx as cp
from nerm.atoms.margin import MarginFunction
from nerm.validation import as_nonnegative, as_positive


@dataclass(frozen=True)
class Hinge(MarginFunction):
    """phi(m) = max(0, 1 - m); phi*(u) = u on [-1, 0] (the paper, section 6.1).

    Examples
    --------
    >>> Hinge().value([-1.0, 1.0, 2.0])
    array([2., 0., 0.])
    """

    name: ClassVar[str] = "hinge"

    def expression(self, m: Any) -> Any:
        """Return pos(1 - m)."""
        return cp.pos(1 - m)


@dataclass(frozen=True)
class SquaredHinge(MarginFunction):
    """phi(m) = max(0, 1 - m)^2; phi*(u) = u + u^2 / 4 for u <= 0.

    Examples
    --------
    >>> SquaredHinge().value([-1.0, 1.0])
    array([4., 0.])
    """

    name: ClassVar[str] = "squared-hinge"

    def expression(self, m: Any) -> Any:
        """Return square(pos(1 - m))."""
        return cp.square(cp.pos(1 - m))


@dataclass(frozen=True)
class SmoothHinge(MarginFunction):
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

    def expression(self, m: Any) -> Any:
        """Return huber(pos(1 - m), width) / (2 width)."""
        return cp.huber(cp.pos(1 - m), self.width) / (2 * self.width)


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

    def expression(self, m: Any) -> Any:
        """Return huber(pos(1 + width - m), 2 width) / (4 width)."""
        return cp.huber(cp.pos(1 + self.width - m), 2 * self.width) / (4 * self.width)


@dataclass(frozen=True)
class ModifiedHuber(MarginFunction):
    """phi(m) = max(0, 1 - m)^2 for m >= -1 and -4 m below; phi*(u) = u + u^2 / 4 on [-4, 0].

    It is the squared hinge, continued by a straight line for m < -1, as in scikit-learn's
    ``SGDClassifier(loss="modified_huber")``.

    Examples
    --------
    >>> ModifiedHuber().value([-2.0, -1.0, 0.0])
    array([8., 4., 1.])
    """

    name: ClassVar[str] = "modified-huber"

    def expression(self, m: Any) -> Any:
        """Return huber(pos(1 - m), 2)."""
        return cp.huber(cp.pos(1 - m), 2)


@dataclass(frozen=True)
class Pinball(MarginFunction):
    """phi(m) = max(1 - m, tau (m - 1)); phi*(u) = u on [-1, tau].

    tau = 0 is the hinge and tau = 1 the absolute loss `|1 - m|`. Here m = y f is the margin of a row. For tau
    > 0, rows with m > 1 have a positive loss too. So the separating distance `1 / ||w||` is determined by a
    quantile of the rows' distances, not by the smallest distance.

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

    def expression(self, m: Any) -> Any:
        """Return maximum(1 - m, tau (m - 1))."""
        return cp.maximum(1 - m, self.tau * (m - 1))


@dataclass(frozen=True)
class Squared(MarginFunction):
    """phi(m) = (1 - m)^2; phi*(u) = u + u^2 / 4.

    Examples
    --------
    >>> Squared().value([0.0, 1.0, 3.0])
    array([1., 0., 4.])
    """

    name: ClassVar[str] = "squared"

    def expression(self, m: Any) -> Any:
        """Return square(1 - m)."""
        return cp.square(1 - m)


@dataclass(frozen=True)
class Identity(MarginFunction):
    """psi(m) = m; psi*(1) = 0, and +inf elsewhere.

    As a surrogate it gives max(C+, C-) = `|mean(v f)|`. It is unbounded below and cannot be used as a loss.

    Examples
    --------
    >>> Identity().value([-1.0, 2.0])
    array([-1.,  2.])
    """

    name: ClassVar[str] = "identity"

    def expression(self, m: Any) -> Any:
        """Return m."""
        return m


@dataclass(frozen=True)
class HingePiece(MarginFunction):
    """phi(m) = max over u in [low, high] of u (m - a) - (q/2) u^2; phi*(u) = a u + (q/2) u^2 on [low, high].

    Every convex piecewise quadratic function is a sum of such functions (`MarginFunction.parts`); the
    hinge is `HingePiece(1, 0, -1, 0)`.

    Parameters
    ----------
    a : float
        The margin at which u = 0 attains the maximum.
    q : float
        1 / curvature; 0 for a kink.
    low, high : float
        The slopes at -inf and +inf, low <= high.

    Examples
    --------
    >>> HingePiece(a=1.0, q=0.0, low=-0.5, high=0.5).value([-1.0, 1.0, 2.0])
    array([1. , 0. , 0.5])
    """

    label: ClassVar[str] = "hinge-like"
    a: float
    q: float
    low: float
    high: float

    def __repr__(self) -> str:
        return f"HingePiece(a={self.a:g}, q={self.q:g}, low={self.low:g}, high={self.high:g})"

    def expression(self, m: Any) -> Any:
        """Return two lines if q = 0, else a parabola with tangents beyond its ends."""
        x, q, low, high = m - self.a, self.q, self.low, self.high
        if q == 0:
            return low * x if low == high else cp.maximum(low * x, high * x)
        if low == -inf:
            x, low, high = -x, -high, -low
        if low == -inf:
            return cp.square(x) / (2 * q)
        above = cp.pos(x - q * low)
        bent = cp.square(above) if high == inf else cp.huber(above, q * (high - low))
        return bent / (2 * q) + low * x - q * low**2 / 2


@dataclass(frozen=True)
class Logistic(MarginFunction):
    """phi(m) = log(1 + e^-m); phi*(u) = (-u) log(-u) + (1 + u) log(1 + u) on [-1, 0].

    Examples
    --------
    >>> float(Logistic().value(0.0))
    0.693...
    """

    name: ClassVar[str] = "logistic"

    def expression(self, m: Any) -> Any:
        """Return logistic(-m)."""
        return cp.logistic(-m)


@dataclass(frozen=True)
class Exponential(MarginFunction):
    """phi(m) = e^-m; phi*(u) = -u log(-u) + u for u <= 0.

    Examples
    --------
    >>> round(float(Exponential().conjugate(-1.0)), 12)
    -1.0
    """

    name: ClassVar[str] = "exponential"

    def expression(self, m: Any) -> Any:
        """Return exp(-m)."""
        return cp.exp(-m)
