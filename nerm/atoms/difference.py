"""Differences of convex functions of the margin: the ramp, and those made by `dc_function`."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms import numeric
from nerm.atoms.custom import CustomMarginFunction, margin_function
from nerm.atoms.hinges import TwoLines
from nerm.atoms.margin import Facts, MarginFunction
from nerm.errors import InvalidInputError, UnsupportedProblemError
from nerm.typing import Floats
from nerm.validation import as_positive


class Parts(NamedTuple):
    """A and G of phi = A - G, and A(m) + G(-m), the convex part of a term of two sides."""

    convex: MarginFunction
    subtracted: MarginFunction
    two_sided: MarginFunction


class DCFunction(MarginFunction):
    """phi = A - G, a difference of convex functions of the margin, which need not be convex.

    The convex-concave procedure solves problems with it: at every step G is replaced by its tangent, which is
    below G, so that a convex problem from above remains. The two sides of a neutrality term share what is
    subtracted, ``max(A+ - G+, A- - G-) = max(A+ + G-, A- + G+) - (G+ + G-)``, with A+ = A(v f) and so on.

    Value, facts and formula are those of any margin function; conjugate, prox and cvxpy expression, which
    only a convex function has, are refused. `nerm.dc_function` makes one from two cvxpy expressions, `Ramp`
    is one.

    Examples
    --------
    >>> from nerm import Ramp
    >>> convex, subtracted, _ = Ramp().parts
    >>> m = np.array([-3.0, 0.0, 3.0])
    >>> Ramp().value(m), convex.value(m) - subtracted.value(m)
    (array([1. , 0.5, 0. ]), array([1. , 0.5, 0. ]))
    """

    @property
    @abstractmethod
    def parts(self) -> Parts:
        """A, G, and A(m) + G(-m)."""

    def value(self, m: ArrayLike) -> Floats:
        """Return A(m) - G(m)."""
        return self.parts.convex.value(m) - self.parts.subtracted.value(m)

    def subgradient(self, m: ArrayLike) -> tuple[Floats, Floats]:
        """Return the ends of an interval that holds all slopes at m: d A(m) - d G(m)."""
        (low, high), (least, most) = self.parts.convex.subgradient(m), self.parts.subtracted.subgradient(m)
        return low - most, high - least

    def _not_convex(self, *_: Any) -> NoReturn:
        """Refuse: it is not convex, its parts are."""
        must = "a margin function must be convex to have a conjugate, a prox or a cvxpy expression"
        do = "Call solve(), or take the convex problem of one step: problem.convexified(coef, intercept)"
        raise UnsupportedProblemError(must, f"{self!r}, a difference of convex functions", do)

    expression = conjugate = prox = _not_convex  # type: ignore[assignment]


@dataclass(frozen=True)
class Ramp(DCFunction):
    """phi(m) = r(m / width), r(m) = min(1, max(0, (1 - m) / 2)): not convex, a difference of two hinges.

    ``r(m) = max(0, (1 - m) / 2) - max(0, (-1 - m) / 2)``. As a loss no row costs more than 1 (the ramp loss
    SVM). As a surrogate r(m) + r(-m) = 1 like the indicator, so ``max(C+, C-) - mean(u)/2 = |C+ - C-| / 2``
    is the measure of neutrality itself, up to the width. Solved by the convex-concave procedure, to a
    stationary point.

    Parameters
    ----------
    width : float
        Positive; where `|m|` is larger, the ramp is flat.

    Examples
    --------
    >>> Ramp(width=0.5).value([-1.0, -0.5, 0.0, 0.25, 2.0])
    array([1.  , 1.  , 0.5 , 0.25, 0.  ])
    """

    name: ClassVar[str] = "ramp"
    width: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "width", as_positive(self.width, "width"))

    @cached_property
    def facts(self) -> Facts:
        """What is known of this function."""
        ends = (-self.width, self.width)
        return Facts(at_zero=0.5, slopes=(-0.5 / self.width, 0.0), kinks=ends, breakpoints=ends)

    @cached_property
    def parts(self) -> Parts:
        """The two hinges, and `|1 - m| / 2`, at their width."""
        slope = 0.5 / self.width
        hinge, later = TwoLines(self.width, -slope, 0.0), TwoLines(-self.width, -slope, 0.0)
        return Parts(hinge, later, TwoLines(self.width, -slope, slope))

    def value(self, m: ArrayLike) -> Floats:
        """Return min(1, max(0, (1 - m / width) / 2))."""
        return np.clip(0.5 - np.asarray(m, dtype=float) * (0.5 / self.width), 0.0, 1.0)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"\operatorname{{ramp}}_{{{self.width:g}}}({m})"


@dataclass(frozen=True)
class CustomDCFunction(DCFunction):
    """A difference of convex functions made by `dc_function`.

    Examples
    --------
    >>> import cvxpy as cp
    >>> mine = dc_function(convex=lambda m: cp.pos(1 - m), concave=lambda m: -cp.pos(-m), name="mine")
    >>> mine.facts.at_zero, mine.facts.surrogate_only
    (1.0, False)
    """

    label: str
    convex: MarginFunction
    subtracted: MarginFunction

    @cached_property
    def facts(self) -> Facts:
        """Its value at 0, an interval of slopes, and whether it is bounded below."""
        (low, high), (least, most) = self.convex.facts.slopes, self.subtracted.facts.slopes
        far = numeric.FARTHEST * np.array([-1.0, 1.0])
        fall = self.value(1e-4 * far) - self.value(far)  # unbounded below if it still falls there
        size = np.abs(self.convex.value(far))
        unbounded = bool(np.any(fall > np.maximum(1.0, 1e-6 * size)))
        return Facts(
            at_zero=float(self.value(0.0)),
            slopes=(low - most, high - least),
            minimum=-np.inf if unbounded else np.nan,
            surrogate_only=unbounded,
            numeric=True,
        )

    @cached_property
    def parts(self) -> Parts:
        """A, G, and A(m) + G(-m)."""
        A, G = self.convex, self.subtracted
        (low, high), (least, most) = A.facts.slopes, G.facts.slopes

        def subgradient(m: Floats) -> tuple[Floats, Floats]:
            (a, b), (c, d) = A.subgradient(m), G.subgradient(-m)
            return a - d, b - c

        def curvature(m: Floats) -> Any:
            return np.asarray(A.curvature(m)) + np.asarray(G.curvature(-m))

        both = CustomMarginFunction(
            f"{self.label}, both sides",
            lambda m: A.expression(m) + G.expression(-m),
            lambda m: A.value(m) + G.value(-m),
            subgradient,
            numpy_curvature=None if A.curvature(0.0) is None or G.curvature(0.0) is None else curvature,
            given_slopes=(low - most, high - least),
        )
        return Parts(A, G, both)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX: only the name is known."""
        return rf"\operatorname{{{self.label}}}({m})"


def dc_function(
    convex: MarginFunction | Callable[[Any], Any],
    concave: MarginFunction | Callable[[Any], Any],
    *,
    name: str = "phi",
) -> DCFunction:
    """Return the margin function phi = convex + concave, which need be neither.

    Problems with it are solved by the convex-concave procedure: `solve()` ends at a stationary point.

    Parameters
    ----------
    convex : callable or MarginFunction
        Maps a cvxpy expression of any length to a convex one, elementwise; or one of nerm's margin functions.
    concave : callable or MarginFunction
        The same for the concave part, which is added; one of nerm's margin functions, which are convex, is
        subtracted instead.
    name : str
        How it is called in formulas and messages.

    Returns
    -------
    DCFunction
        A loss if it is bounded below, a surrogate in any case. With nerm's own atoms as parts (both smooth,
        or for one side) the engine solves its steps.

    Examples
    --------
    The sigmoid between 1 and 0, as the difference of two logistic functions:

    >>> import cvxpy as cp
    >>> from nerm import Logistic
    >>> sigmoid = dc_function(convex=Logistic(), concave=lambda m: -cp.logistic(-1 - m), name="sigmoid")
    >>> sigmoid.value([-50.0, -0.5, 50.0]).round(3)
    array([1. , 0.5, 0. ])
    """
    minus = concave if isinstance(concave, MarginFunction) else lambda m: -concave(m)
    return CustomDCFunction(
        str(name), _part(convex, f"convex part of {name}"), _part(minus, f"minus the concave part of {name}")
    )


def _part(given: Any, name: str) -> MarginFunction:
    """Return a part as a margin function, checked to be convex."""
    if isinstance(given, DCFunction):
        must = f"the {name} must be convex"
        raise InvalidInputError(must, repr(given), "Pass its own parts")
    return given if isinstance(given, MarginFunction) else margin_function(given, name=name)
