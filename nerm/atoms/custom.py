"""Margin functions defined by the user: by one cvxpy expression, or by algebra on margin functions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

from nerm.atoms import cvx as cp
from nerm.atoms.formula import as_text
from nerm.atoms.functions import Function
from nerm.atoms.losses import HingePiece
from nerm.atoms.margin import MarginFunction
from nerm.errors import InvalidInputError
from nerm.validation import as_finite, as_nonnegative


@dataclass(frozen=True)
class CustomMarginFunction(MarginFunction):
    """A margin function made by `margin_function`. It prints as this call, with the formula.

    Examples
    --------
    >>> import cvxpy as cp, numpy as np
    >>> from nerm import Logistic
    >>> mine = margin_function(lambda m: cp.logistic(-m), name="mine")
    >>> mine
    margin_function(logistic(-m), name='mine')
    >>> m, u = np.array([-2.0, 0.0, 3.0]), [-0.9, -0.5]
    >>> mine.facts.numeric, np.allclose(mine.value(m), Logistic().value(m))
    (False, True)
    >>> np.allclose(mine.conjugate(u), Logistic().conjugate(u), atol=1e-12)
    True
    """

    label: str
    cvxpy_expression: Callable[[Any], Any]

    def __repr__(self) -> str:
        maker, x = ("residual_function", "r") if self.of_residual else ("margin_function", "m")
        return f"{maker}({as_text(self.cvxpy_expression, cp.Variable(1, name=x))}, name={self.label!r})"

    def expression(self, m: Any) -> Any:
        """Return phi of a cvxpy expression.

        A formula that nerm proves convex but cvxpy does not is written as a sum of hinge-like functions.
        """
        found = self.cvxpy_expression(m)
        if isinstance(found, cp.Expression) and not found.is_convex() and self.derived.is_quadratic:
            hinges = [HingePiece(*hinge) for hinge in self.derived.hinges]
            constant = self.facts.at_zero - sum(float(hinge.value(0.0)) for hinge in hinges)
            found = sum((hinge.expression(m) for hinge in hinges), start=constant)
        return found


@dataclass(frozen=True, eq=False)
class SmoothPart(MarginFunction):
    """A margin function minus the hinges at its kinks, so that it is smooth; solvers use it.

    Examples
    --------
    >>> from nerm import Hinge, Logistic
    >>> (Hinge() + Logistic()).parts
    (HingePiece(a=1, q=0, low=-1, high=0), SmoothPart(Hinge() + Logistic()))
    """

    whole: MarginFunction
    hinges: tuple[HingePiece, ...]
    derived: Function

    def __repr__(self) -> str:
        return f"SmoothPart({self.whole!r})"

    def expression(self, m: Any) -> Any:
        """Return the formula of the whole function minus that of the hinges."""
        return self.whole.expression(m) - sum(hinge.expression(m) for hinge in self.hinges)


class Combined(MarginFunction):
    """A margin function made of others, its `members`: a sum, a maximum or a shifted one.

    Examples
    --------
    >>> from nerm import Hinge, Logistic
    >>> (Hinge() + Logistic()).members
    (Hinge(), Logistic())
    """

    @property
    def built_in(self) -> bool:
        """Whether all members are built in."""
        return all(phi.built_in for phi in self.members)  # type: ignore[attr-defined]

    @property
    def of_residual(self) -> bool:  # type: ignore[override]
        """Whether the members are functions of the residual; an error if only some of them are."""
        kinds = {phi.of_residual for phi in self.members}  # type: ignore[attr-defined]
        if len(kinds) > 1:
            must = "margin functions must not be combined with residual functions"
            raise InvalidInputError(must, repr(self), "Use functions of one kind")
        return kinds.pop()

    @property
    def label(self) -> str:
        """The name in formulas."""
        return f"[{self!r}]"


@dataclass(frozen=True)
class WeightedSum(Combined):
    """sum_k weight_k phi_k(m).

    Examples
    --------
    >>> from nerm import Hinge, Logistic
    >>> Hinge() + 0.3 * Logistic()
    Hinge() + 0.3 * Logistic()
    """

    terms: tuple[tuple[float, MarginFunction], ...]

    def __post_init__(self) -> None:
        terms = list[tuple[float, MarginFunction]]()
        for weight, phi in self.terms:
            as_nonnegative(weight, "weight", "A negative weight would make the function non-convex")
            inner = phi.terms if isinstance(phi, WeightedSum) else ((1.0, phi),)
            terms += [(weight * w, function) for w, function in inner]
        object.__setattr__(self, "terms", tuple(terms))

    @property
    def members(self) -> tuple[MarginFunction, ...]:
        """The summands."""
        return tuple(phi for _, phi in self.terms)

    def expression(self, m: Any) -> Any:
        """Return the weighted sum of the expressions."""
        return reduce(lambda a, b: a + b, (weight * phi.expression(m) for weight, phi in self.terms))

    def __repr__(self) -> str:
        return " + ".join(repr(phi) if w == 1 else f"{w:g} * {phi!r}" for w, phi in self.terms)


@dataclass(frozen=True)
class Maximum(Combined):
    """max_k phi_k(m).

    Examples
    --------
    >>> from nerm import Hinge, Squared
    >>> maximum(Hinge(), Squared())
    maximum(Hinge(), Squared())
    """

    members: tuple[MarginFunction, ...]

    def expression(self, m: Any) -> Any:
        """Return the maximum of the expressions."""
        return reduce(cp.maximum, (phi.expression(m) for phi in self.members))

    def __repr__(self) -> str:
        return f"maximum({', '.join(map(repr, self.members))})"


@dataclass(frozen=True)
class Moved(Combined):
    """phi(factor (m - by)).

    Examples
    --------
    >>> from nerm import Hinge
    >>> Hinge().scaled(2.0).shifted(0.5)
    Hinge().scaled(2).shifted(0.5)
    """

    function: MarginFunction
    factor: float
    by: float

    def __post_init__(self) -> None:
        as_finite(self.factor, "factor")
        as_finite(self.by, "by")

    @property
    def members(self) -> tuple[MarginFunction, ...]:
        """The function."""
        return (self.function,)

    def expression(self, m: Any) -> Any:
        """Return the expression of the moved margin."""
        return self.function.expression(self.factor * (m - self.by))

    def __repr__(self) -> str:
        scaled = "" if self.factor == 1 else f".scaled({self.factor:g})"
        return repr(self.function) + scaled + (f".shifted({self.by:g})" if self.by else "")


def maximum(*functions: MarginFunction) -> MarginFunction:
    """Return the margin function m -> max_k phi_k(m).

    >>> from nerm import Hinge, Squared
    >>> maximum(Hinge(), Squared()).value([-1.0, 0.5, 3.0])
    array([4. , 0.5, 4. ])
    """
    for phi in functions:
        if not isinstance(phi, MarginFunction):
            do = "Write maximum(Hinge(), Squared())"
            raise InvalidInputError("maximum needs margin functions", repr(phi), do)
    return Maximum(functions)


def margin_function(expression: Callable[[Any], Any], *, name: str = "phi") -> MarginFunction:
    """Make a margin function from a convex cvxpy expression: the formula is enough.

    Values, slopes, kinks, conjugate and prox are derived from the formula (`nerm.atoms.formula`).

    Parameters
    ----------
    expression : callable
        Maps a cvxpy expression m of any length to phi(m), elementwise.
    name : str
        The name in formulas and error messages.

    Returns
    -------
    MarginFunction

    Examples
    --------
    >>> import cvxpy as cp
    >>> absolute = margin_function(lambda m: cp.abs(1 - m), name="absolute")
    >>> absolute.value([0.0, 3.0])
    array([1., 2.])
    >>> absolute.facts.slopes
    (-1.0, 1.0)
    """
    atom = CustomMarginFunction(str(name), expression)
    _ = atom.derived  # raises an error unless the formula is elementwise, convex and finite
    return atom
