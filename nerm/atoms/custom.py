"""Margin functions defined by the user: a cvxpy expression and optional numpy functions."""

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
    """A margin function made by `margin_function`; functions that were not given are computed numerically.

    Subgradients are computed from secants, the conjugate by bisection, and the asymptotic slopes from values
    at large margins. `facts.numeric` is then True, and the certificate includes the numerical error.

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
        """The facts of this function: its value at 0, its asymptotic slopes and its minimum."""
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
        """Return the ends (low, high) of the subgradient interval, by secants if no function was given."""
        m = np.asarray(m, dtype=float)
        given = self.numpy_subgradient
        low, high = numeric.secant_slopes(self.value, m) if given is None else as_interval(given(m))
        return np.clip(low, *self._slopes), np.clip(high, *self._slopes)  # rounding may exceed them by 1e-10

    def curvature(self, m: ArrayLike) -> Floats | None:
        """Return phi''(m) in the shape of m, or None if no curvature function was given."""
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
        """Return name(m) in LaTeX; the formula itself is not known."""
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
    """Make a margin function from a cvxpy expression that is convex by cvxpy's rules.

    Parameters
    ----------
    expression : callable
        Maps a cvxpy expression m of any length to phi(m), elementwise.
    value, subgradient, conjugate : callable, optional
        phi(m), its subgradient and phi*(u) as numpy functions. `subgradient` returns one array (the
        derivative) or a pair (low, high). A function that is not given is computed numerically.
    curvature : callable, optional
        phi''(m) as a numpy function, if phi is twice differentiable; Newton's method needs it.
    slopes : tuple of float, optional
        The slopes of phi at -inf and +inf. By default they are estimated from values at `|m|` between 1e4 and
        2e8; pass them if that estimate would be wrong.
    name : str
        The name in formulas and error messages.

    Returns
    -------
    MarginFunction
        The given numpy functions were compared with the expression at test points.

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
    """Return phi(m), in the shape of m, by evaluating the cvxpy expression and not `atom.value`."""
    if m.size == 0:  # cvxpy 1.7 cannot make a Constant from an empty array
        return np.zeros(m.shape)
    with np.errstate(all="ignore"):
        values = np.asarray(atom.expression(cp.Constant(m.ravel())).value, dtype=float)
    # if all of m is 0, cvxpy 1.7 evaluates 1 + m to the number 1: broadcast it
    return np.array(np.broadcast_to(values, m.size)).reshape(m.shape)


def as_interval(given: Any) -> tuple[Floats, Floats]:
    """Convert a user's subgradient, an array or a pair (low, high), to a pair of arrays."""
    low, high = given if isinstance(given, tuple) else (given, given)
    return np.asarray(low, dtype=float), np.asarray(high, dtype=float)


def require(holds: Any, must: str, got: str, do: str = "Correct it, or leave it out") -> None:
    """Raise an `InvalidInputError` made of `must`, `got` and `do` unless all entries of `holds` are true."""
    if not np.all(holds):
        raise InvalidInputError(must, got, do)


def _check_expression(atom: CustomMarginFunction) -> None:
    """Raise an error unless the expression is a convex, elementwise, finite cvxpy expression."""
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
    """Compare the given numpy functions with the cvxpy expression; raise an error if they differ.

    The values must be equal, the subgradients must lie between the slopes of the left and right secants,
    phi(m) + phi*(u) = u m must hold at a subgradient u of phi at m, and the curvature must equal second
    differences.
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
