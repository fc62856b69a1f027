"""The residual functions of nerm: convex losses of the residual r = y - f(x), for a real target y.

Each class states its formula; everything else is derived from it (`nerm.atoms.margin`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

from nerm.atoms import cvx as cp
from nerm.atoms.custom import CustomMarginFunction
from nerm.atoms.margin import MarginFunction
from nerm.errors import InvalidInputError
from nerm.validation import as_nonnegative, as_positive


class ResidualFunction(MarginFunction):
    """A convex function phi: R -> R of the residual r = y - f(x): the loss of a regression problem.

    It has the methods of a margin function: value, subgradient, conjugate, prox and facts.

    Examples
    --------
    >>> from nerm import AbsoluteError
    >>> AbsoluteError().value([-1.0, 0.0, 2.0])
    array([1., 0., 2.])
    """

    of_residual = True


@dataclass(frozen=True)
class SquaredError(ResidualFunction):
    """phi(r) = r^2; phi*(u) = u^2 / 4. Its risk is smallest at the conditional mean of y.

    Examples
    --------
    >>> SquaredError().value([-1.0, 0.0, 3.0])
    array([1., 0., 9.])
    """

    name: ClassVar[str] = "squared-error"

    def expression(self, m: Any) -> Any:
        """Return square(r)."""
        return cp.square(m)


@dataclass(frozen=True)
class AbsoluteError(ResidualFunction):
    """phi(r) = `|r|`; phi*(u) = 0 on [-1, 1]. Its risk is smallest at the conditional median of y.

    Examples
    --------
    >>> AbsoluteError().facts.slopes
    (-1.0, 1.0)
    """

    name: ClassVar[str] = "absolute-error"

    def expression(self, m: Any) -> Any:
        """Return maximum(r, -r)."""
        return cp.maximum(m, -m)


@dataclass(frozen=True)
class HuberError(ResidualFunction):
    """phi(r) = r^2 for `|r| <= delta`, and 2 delta `|r|` - delta^2 beyond.

    Its conjugate is phi*(u) = u^2 / 4 on [-2 delta, 2 delta].

    Parameters
    ----------
    delta : float
        Positive. Beyond it the loss is linear.

    Examples
    --------
    >>> HuberError(delta=1.0).value([0.5, 1.0, 3.0])
    array([0.25, 1.  , 5.  ])
    """

    name: ClassVar[str] = "huber-error"
    delta: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "delta", as_positive(self.delta, "delta"))

    def expression(self, m: Any) -> Any:
        """Return huber(r, delta)."""
        return cp.huber(m, self.delta)


@dataclass(frozen=True)
class PinballError(ResidualFunction):
    """phi(r) = max(tau r, (tau - 1) r); phi*(u) = 0 on [tau - 1, tau].

    Its risk is smallest at the conditional quantile of y at level tau (Koenker and Bassett 1978).

    Parameters
    ----------
    tau : float
        Between 0 and 1.

    Examples
    --------
    >>> PinballError(tau=0.75).value([-1.0, 2.0])
    array([0.25, 1.5 ])
    """

    name: ClassVar[str] = "pinball-error"
    tau: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < as_positive(self.tau, "tau") < 1:
            must = "'tau' must be between 0 and 1"
            raise InvalidInputError(must, f"{self.tau:g}", "Use 0.5 for the median")
        object.__setattr__(self, "tau", float(self.tau))

    def expression(self, m: Any) -> Any:
        """Return maximum(tau r, (tau - 1) r)."""
        return cp.maximum(self.tau * m, (self.tau - 1.0) * m)


@dataclass(frozen=True)
class EpsilonInsensitive(ResidualFunction):
    """phi(r) = max(0, `|r|` - eps); phi*(u) = eps `|u|` on [-1, 1]. The loss of support vector regression.

    Parameters
    ----------
    eps : float
        At least 0. The loss of residuals up to `eps` is 0.

    Examples
    --------
    >>> EpsilonInsensitive(eps=0.5).value([-2.0, 0.3, 1.0])
    array([1.5, 0. , 0.5])
    """

    name: ClassVar[str] = "epsilon-insensitive"
    eps: float = 0.1

    def __post_init__(self) -> None:
        object.__setattr__(self, "eps", as_nonnegative(self.eps, "eps"))

    def expression(self, m: Any) -> Any:
        """Return pos(r - eps) + pos(-r - eps)."""
        return cp.pos(m - self.eps) + cp.pos(-m - self.eps)


@dataclass(frozen=True, repr=False)
class CustomResidualFunction(ResidualFunction, CustomMarginFunction):
    """A residual function made by `residual_function`.

    Examples
    --------
    >>> import cvxpy as cp
    >>> residual_function(lambda r: cp.abs(r), name="mine").of_residual
    True
    """


def residual_function(expression: Callable[[Any], Any], *, name: str = "phi") -> ResidualFunction:
    """Make a residual function from a convex cvxpy expression of r = y - f(x).

    Values, slopes, kinks, conjugate and prox are derived from the formula, as for `nerm.margin_function`.

    Parameters
    ----------
    expression : callable
        Maps a cvxpy expression r of any length to phi(r), elementwise.
    name : str
        The name in formulas and error messages.

    Returns
    -------
    ResidualFunction

    Examples
    --------
    >>> import cvxpy as cp
    >>> late = residual_function(lambda r: cp.maximum(2 * r, -r), name="late")
    >>> late.value([-1.0, 3.0]), late.facts.slopes
    (array([1., 6.]), (-1.0, 2.0))
    """
    atom = CustomResidualFunction(str(name), expression)
    _ = atom.facts  # derive it now: an error points to this call
    return atom
