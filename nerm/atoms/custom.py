"""A user's own margin function, from a cvxpy expression and nothing else if need be."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms import cvx as cp
from nerm.atoms import numeric
from nerm.atoms.margin import Facts, MarginFunction
from nerm.errors import InvalidInputError
from nerm.typing import Bools, Floats

Function: TypeAlias = Callable[[Floats], Any]


@dataclass(frozen=True)
class CustomMarginFunction(MarginFunction):
    """A margin function made by `margin_function`; what was not given is computed.

    Subgradients come from secants, the conjugate from bisection, the slopes from far away: `facts.numeric`
    says so, and the certificate carries their error.

    Examples
    --------
    >>> import cvxpy as cp
    >>> from nerm import Logistic
    >>> mine = margin_function(lambda m: cp.logistic(-m), name="mine")
    >>> m, u = np.array([-2.0, 0.0, 3.0]), [-0.9, -0.5]
    >>> mine.facts.numeric, np.allclose(mine.value(m), Logistic().value(m))
    (True, True)
    >>> np.allclose(mine.conjugate(u), Logistic().conjugate(u), atol=1e-6)
    True
    """

    built_in = False
    label: str
    cvxpy_expression: Callable[[Any], Any] = field(repr=False)
    numpy_value: Function | None = field(default=None, repr=False)
    numpy_subgradient: Function | None = field(default=None, repr=False)
    numpy_conjugate: Function | None = field(default=None, repr=False)
    numpy_curvature: Function | None = field(default=None, repr=False)
    given_slopes: tuple[float, float] | None = field(default=None, repr=False)

    @cached_property
    def _slopes(self) -> tuple[float, float]:
        if self.given_slopes:
            return self.given_slopes
        return numeric.asymptotic_slope(self.value, -1.0), numeric.asymptotic_slope(self.value, 1.0)

    @cached_property
    def facts(self) -> Facts:
        """What was found out about this function: its value at 0, its slopes, its minimum."""
        low, high = self._slopes
        unbounded = low > 0 or high < 0
        return Facts(
            at_zero=float(self.value(0.0)),
            slopes=(low, high),
            minimum=-np.inf if unbounded else -float(self.conjugate(0.0)),
            surrogate_only=unbounded,
            numeric=self.numpy_conjugate is None or self.numpy_subgradient is None,
        )

    def value(self, m: ArrayLike) -> Floats:
        """Return phi(m), by the numpy function if one was given, else by evaluating the cvxpy expression."""
        m = np.asarray(m, dtype=float)
        if self.numpy_value is not None:
            return np.asarray(self.numpy_value(m), dtype=float)
        return expressed(self, m)

    def subgradient(self, m: ArrayLike) -> tuple[Floats, Floats]:
        """Return the interval of subgradients, by secants if no function was given."""
        m = np.asarray(m, dtype=float)
        given = self.numpy_subgradient
        low, high = numeric.secant_slopes(self.value, m) if given is None else as_interval(given(m))
        return np.clip(low, *self._slopes), np.clip(high, *self._slopes)  # rounding may exceed them by 1e-10

    def curvature(self, m: ArrayLike) -> Floats | None:
        """Return phi''(m) by the function that was given; None without one."""
        if self.numpy_curvature is None:
            return None
        m = np.asarray(m, dtype=float)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.broadcast_to(np.asarray(self.numpy_curvature(m), dtype=float), m.shape)

    def conjugate(self, u: ArrayLike) -> Floats:
        """Return phi*(u), by bisection if no function was given."""
        u, given = np.asarray(u, dtype=float), self.numpy_conjugate
        found = numeric.conjugate(self.value, self._slopes, u) if given is None else given(u)
        return np.asarray(found, dtype=float)

    def expression(self, m: Any) -> Any:
        """Return phi of a cvxpy expression."""
        return self.cvxpy_expression(m)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX: only the name is known."""
        return rf"\operatorname{{{self.label}}}({m})"


def margin_function(
    expression: Callable[[Any], Any],
    *,
    value: Function | None = None,
    subgradient: Function | None = None,
    conjugate: Function | None = None,
    curvature: Function | None = None,
    slopes: tuple[float, float] | None = None,
    name: str = "phi",
) -> MarginFunction:
    """Return a margin function from a cvxpy expression, convex by cvxpy's rules.

    Parameters
    ----------
    expression : callable
        Maps a cvxpy expression of any length to phi of it, elementwise.
    value, subgradient, conjugate : callable, optional
        The same in numpy. A subgradient may be one array (the derivative) or a pair (low, high).
    curvature : callable, optional
        The second derivative in numpy, if there is one; Newton's method needs it.
    slopes : tuple of float, optional
        The ends of the interval of all subgradients, if the numeric ones (probed between 1e4 and 1e8) would
        be wrong.
    name : str
        How it is called in formulas and messages.

    Returns
    -------
    MarginFunction
        The functions given in numpy have been compared with the expression at some points.

    Examples
    --------
    >>> import cvxpy as cp
    >>> absolute = margin_function(lambda m: cp.abs(1 - m), name="absolute")
    >>> absolute.value([0.0, 3.0])
    array([1., 2.])
    >>> absolute.facts.slopes
    (-1.0, 1.0)
    """
    ends = None if slopes is None else (float(slopes[0]), float(slopes[1]))
    atom = CustomMarginFunction(str(name), expression, value, subgradient, conjugate, curvature, ends)
    _check_expression(atom)
    _check_given(atom)
    return atom


def expressed(atom: MarginFunction, m: Floats) -> Floats:
    """Return phi(m) from its cvxpy expression, which is convex by cvxpy's rules, whatever `value` says."""
    if m.size == 0:  # of which cvxpy 1.7 makes no constant
        return np.zeros(m.shape)
    with np.errstate(all="ignore"):
        values = np.asarray(atom.expression(cp.Constant(m.ravel())).value, dtype=float)
    # where all of m is 0, cvxpy 1.7 takes 1 + m for the number 1: broadcast
    return np.array(np.broadcast_to(values, m.size)).reshape(m.shape)


def as_interval(given: Any) -> tuple[Floats, Floats]:
    """Return a user's subgradient, an array or a pair (low, high), as a pair of arrays."""
    low, high = given if isinstance(given, tuple) else (given, given)
    return np.asarray(low, dtype=float), np.asarray(high, dtype=float)


def require(holds: Any, must: str, got: str, do: str = "Correct it, or leave it out") -> None:
    """Raise an error about a user's function, unless the condition holds everywhere."""
    if not np.all(holds):
        raise InvalidInputError(must, got, do)


def _check_expression(atom: CustomMarginFunction) -> None:
    """Refuse what is not a convex elementwise cvxpy expression."""
    what = f"'expression' of {atom.label!r} must"
    try:
        result = atom.cvxpy_expression(cp.Variable(3))
        convex = result.is_convex()
    except Exception as error:
        must = f"{what} map a cvxpy expression to a cvxpy expression"
        do = "Use cvxpy functions inside it, for instance lambda m: cp.pos(1 - m)"
        raise InvalidInputError(must, f"{type(error).__name__}: {error}", do) from error
    do = "Rewrite it with cvxpy's convex functions (cp.pos, cp.logistic …), or in two parts with dc_function"
    got = f"an expression of curvature {result.curvature}"
    require(convex, f"{what} be convex by cvxpy's rules", got, do)
    elementwise = f"{what} work elementwise"
    got = f"shape {result.shape} for an input of shape (3,)"
    require(result.shape == (3,), elementwise, got, "Do not sum inside it")
    points = np.array([-2.0, 0.3, 1.7])
    together = expressed(atom, points)
    apart = [expressed(atom, point) for point in points]
    do = "Use a function that is defined everywhere, for instance cp.logistic instead of -cp.log"
    got = f"{together.tolist()} at {points.tolist()}"
    require(np.isfinite(together), f"{what} be finite on all real numbers", got, do)
    alike = np.allclose(together, apart)
    require(alike, elementwise, "entries that depend on each other", "Use elementwise functions only")


def _check_given(atom: CustomMarginFunction) -> None:
    """Compare what was given in numpy with the expression.

    Slopes lie between secants, phi(m) + phi*(u) = u m at u in d phi(m), and second differences are the
    curvature.
    """

    def check(given: str, must: str, holds: Bools, got: Floats, at: Floats) -> None:
        shown = f"{got[~holds][:3].tolist()} at {at[~holds][:3].tolist()}"
        require(holds, f"{given!r} of {atom.label!r} must {must}", shown)

    if atom.numpy_value is not None:
        m = np.concatenate([np.linspace(-60.0, 60.0, 481), [-1e3, -1e2, 1e2, 1e3]])
        with np.errstate(over="ignore", invalid="ignore"):
            value = atom.value(m)
        holds = np.isclose(value, expressed(atom, m), rtol=1e-6, atol=1e-9, equal_nan=True)
        check("value", "be the same function as 'expression'", holds, value, m)
    m = np.array([-2.7, -0.43, 0.29, 0.87, 1.63, 3.9])  # away from round numbers, where formulas change
    value, (low, high), curvature = atom.value(m), atom.subgradient(m), atom.curvature(m)
    if atom.numpy_subgradient is not None:
        left, right = numeric.secant_slopes(atom.value, m)
        slack = 1e-4 * (1 + np.abs(left) + np.abs(right))
        holds = (low >= left - slack) & (high <= right + slack) & (low <= high + slack)
        check("subgradient", "be the slope of 'expression'", holds, low, m)
    if atom.numpy_conjugate is not None:
        u = 0.5 * (low + high)
        conjugate = atom.conjugate(u)
        holds = np.abs(value + conjugate - u * m) <= 1e-4 * (1 + np.abs(value))
        check("conjugate", "satisfy phi(m) + phi*(u) = u m at the slope u of phi", holds, conjugate, u)
    if curvature is not None:
        step = 1e-3
        bend = (atom.value(m + step) - 2 * value + atom.value(m - step)) / step**2
        holds = np.abs(curvature - bend) <= 1e-3 * (1 + np.abs(bend))
        check("curvature", "be the second derivative of 'expression'", holds, curvature, m)
