"""A user's own margin function, from a cvxpy expression and nothing else if need be."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms import numeric
from nerm.atoms.margin import Facts, MarginFunction
from nerm.errors import InvalidInputError
from nerm.typing import Floats


@dataclass(frozen=True)
class CustomMarginFunction(MarginFunction):
    """A margin function made by `margin_function`; what was not given is computed.

    Subgradients come from secants, the conjugate from bisection, the slopes from far away: `facts.numeric` says so, and
    the certificate carries their error.

    >>> import cvxpy as cp
    >>> from nerm import Logistic
    >>> mine, m, u = margin_function(lambda m: cp.logistic(-m), name="mine"), np.array([-2.0, 0.0, 3.0]), [-0.9, -0.5]
    >>> mine.facts.numeric, np.allclose(mine.value(m), Logistic().value(m))
    (True, True)
    >>> np.allclose(mine.conjugate(u), Logistic().conjugate(u), atol=1e-6)
    True
    """

    label: str
    cvxpy_expression: Callable[[Any], Any] = field(repr=False)
    numpy_value: Callable[[np.ndarray], Any] | None = field(default=None, repr=False)
    numpy_subgradient: Callable[[np.ndarray], Any] | None = field(default=None, repr=False)
    numpy_conjugate: Callable[[np.ndarray], Any] | None = field(default=None, repr=False)
    numpy_curvature: Callable[[np.ndarray], Any] | None = field(default=None, repr=False)
    given_slopes: tuple[float, float] | None = field(default=None, repr=False)

    @cached_property
    def _slopes(self) -> tuple[float, float]:
        if self.given_slopes is not None:
            return self.given_slopes
        return numeric.asymptotic_slope(self.value, -1.0), numeric.asymptotic_slope(self.value, 1.0)

    @cached_property
    def _facts(self) -> Facts:
        low, high = self._slopes
        return Facts(
            at_zero=float(self.value(0.0)),
            slopes=(low, high),
            minimum=-np.inf if low > 0 or high < 0 else self._lowest_value(),
            surrogate_only=bool(low > 0 or high < 0),
            numeric=self.numpy_conjugate is None or self.numpy_subgradient is None,
        )

    @property
    def facts(self) -> Facts:
        """What was found out about this function: its value at 0, its slopes, its minimum."""
        return self._facts

    def _lowest_value(self) -> float:
        """Return the minimum, from the point where the slope passes 0."""

        def rise(m: np.ndarray) -> np.ndarray:
            return numeric.middle_slope(self, m)

        ends = numeric.bisect(rise, *numeric.bracket(rise, np.zeros(1)))
        return min(float(self.value(end)[0]) for end in ends)

    def value(self, m: ArrayLike) -> np.ndarray:
        """Return phi(m), by the numpy function if one was given, else by evaluating the cvxpy expression."""
        m = np.asarray(m, dtype=float)
        if self.numpy_value is not None:
            return np.asarray(self.numpy_value(m), dtype=float)
        import cvxpy as cp

        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self.cvxpy_expression(cp.Constant(m.ravel())).value, dtype=float).reshape(m.shape)

    def subgradient(self, m: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return the interval of subgradients, by secants if no function was given."""
        low, high = self._raw_subgradient(m)
        return np.clip(low, *self._slopes), np.clip(high, *self._slopes)

    def _raw_subgradient(self, m: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
        """Return the interval with its rounding errors, which may lie outside the slopes by 1e-10."""
        m = np.asarray(m, dtype=float)
        if self.numpy_subgradient is None:
            return numeric.secant_slopes(self.value, m)
        given = self.numpy_subgradient(m)
        low, high = given if isinstance(given, tuple) else (given, given)
        return np.asarray(low, dtype=float), np.asarray(high, dtype=float)

    def curvature(self, m: ArrayLike) -> Floats | None:
        """Return phi''(m) by the function that was given; None without one."""
        if self.numpy_curvature is None:
            return None
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(self.numpy_curvature(np.asarray(m, dtype=float)), dtype=float)

    def conjugate(self, u: ArrayLike) -> np.ndarray:
        """Return phi*(u), by bisection if no function was given."""
        u = np.asarray(u, dtype=float)
        return (
            super().conjugate(u) if self.numpy_conjugate is None else np.asarray(self.numpy_conjugate(u), dtype=float)
        )

    def expression(self, m: Any) -> Any:
        """Return phi of a cvxpy expression."""
        return self.cvxpy_expression(m)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX: only the name is known."""
        return rf"\operatorname{{{self.label}}}({m})"


def margin_function(
    expression: Callable[[Any], Any],
    *,
    value: Callable[[np.ndarray], Any] | None = None,
    subgradient: Callable[[np.ndarray], Any] | None = None,
    conjugate: Callable[[np.ndarray], Any] | None = None,
    curvature: Callable[[np.ndarray], Any] | None = None,
    slopes: tuple[float, float] | None = None,
    name: str = "phi",
) -> MarginFunction:
    """Return a margin function from a cvxpy expression, convex by cvxpy's rules.

    expression
        Maps a cvxpy expression of any length to phi of it, elementwise.
    value, subgradient, conjugate
        The same in numpy, optional. A subgradient may be one array (the derivative) or a pair (low, high).
    curvature
        The second derivative in numpy, if there is one: what solvers by Newton's method need.
    slopes
        The ends of the interval of all subgradients, if the numeric ones (probed between 1e4 and 1e8) would be wrong.

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


def _check_expression(atom: CustomMarginFunction) -> None:
    """Refuse what is not a convex elementwise cvxpy expression, or not the same function in numpy."""
    import cvxpy as cp

    try:
        trial = cp.Variable(3)
        result = atom.cvxpy_expression(trial)
        convex, shape = result.is_convex(), result.shape
    except Exception as error:
        raise InvalidInputError(
            f"'expression' of {atom.label!r} must map a cvxpy expression to a cvxpy expression",
            f"{type(error).__name__}: {error}",
            "Use cvxpy functions inside it, for instance lambda m: cp.pos(1 - m)",
        ) from error
    if not convex:
        raise InvalidInputError(
            f"'expression' of {atom.label!r} must be convex by cvxpy's rules",
            f"an expression of curvature {result.curvature}",
            "Rewrite it with cvxpy's convex functions (cp.square, cp.pos, cp.logistic, cp.maximum …)",
        )
    if shape != (3,):
        raise InvalidInputError(
            f"'expression' of {atom.label!r} must work elementwise",
            f"shape {shape} for an input of shape (3,)",
            "Do not sum inside it",
        )
    points = np.array([-2.0, 0.3, 1.7])
    with np.errstate(all="ignore"):
        together = np.asarray(atom.cvxpy_expression(cp.Constant(points)).value, dtype=float)
        apart = [float(atom.cvxpy_expression(cp.Constant(points[i : i + 1])).value[0]) for i in range(3)]
    if not np.isfinite(together).all():
        raise InvalidInputError(
            f"'expression' of {atom.label!r} must be finite on all real numbers",
            f"{together.tolist()} at {points.tolist()}",
            "Use a function that is defined everywhere, for instance cp.logistic instead of -cp.log",
        )
    if not np.allclose(together, apart):
        raise InvalidInputError(
            f"'expression' of {atom.label!r} must work elementwise",
            "entries that depend on each other",
            "Use elementwise functions only",
        )
    if atom.numpy_value is not None and not np.allclose(atom.value(points), together, rtol=1e-6, atol=1e-9):
        raise InvalidInputError(
            f"'value' of {atom.label!r} must be the same function as 'expression'",
            f"{atom.value(points).tolist()} against {together.tolist()} at {points.tolist()}",
            "Correct one of the two, or leave 'value' out",
        )


def _check_given(atom: CustomMarginFunction) -> None:
    """Hold a given subgradient and conjugate against the values: phi(m) + phi*(u) = u m at u in d phi(m)."""
    m = np.array([-3.0, -0.4, 0.0, 0.3, 0.9, 1.6, 4.0])
    scale = 1.0 + np.abs(atom.value(m))
    if atom.numpy_subgradient is not None:
        left, right = numeric.secant_slopes(atom.value, m)
        low, high = atom.subgradient(m)
        slack = 1e-4 * (1 + np.abs(left) + np.abs(right))
        if not ((low >= left - slack) & (high <= right + slack) & (low <= high + slack)).all():
            raise InvalidInputError(
                f"'subgradient' of {atom.label!r} must be the slope of 'expression'",
                f"{low.tolist()} at {m.tolist()}",
                "Correct it, or leave it out",
            )
    if atom.numpy_conjugate is not None:
        u = 0.5 * np.sum(atom.subgradient(m), axis=0)
        if not (np.abs(atom.value(m) + atom.conjugate(u) - u * m) <= 1e-4 * scale).all():
            raise InvalidInputError(
                f"'conjugate' of {atom.label!r} must satisfy phi(m) + phi*(u) = u m at the slope u of phi",
                f"{atom.conjugate(u).tolist()} at u = {u.tolist()}",
                "Correct it, or leave it out",
            )
    if atom.numpy_curvature is not None:
        m, step = (
            np.array([-2.7, -0.43, 0.29, 0.87, 1.63, 3.9]),
            1e-3,
        )  # a parabola's ends are likelier at round numbers
        given = np.broadcast_to(np.asarray(atom.curvature(m)), m.shape)
        bend = (atom.value(m + step) - 2 * atom.value(m) + atom.value(m - step)) / step**2
        if not (np.abs(given - bend) <= 1e-3 * (1 + np.abs(bend))).all():
            raise InvalidInputError(
                f"'curvature' of {atom.label!r} must be the second derivative of 'expression'",
                f"{given.tolist()} against {bend.tolist()} at {m.tolist()}",
                "Correct it, or leave it out",
            )
