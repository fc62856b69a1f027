"""Differences of convex functions of the margin: the ramp, and functions made by `dc_function`."""

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, NamedTuple, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms.custom import Moved, WeightedSum, margin_function
from nerm.atoms.functions import FARTHEST
from nerm.atoms.losses import HingePiece
from nerm.atoms.margin import Facts, MarginFunction
from nerm.errors import InvalidInputError, UnsupportedProblemError
from nerm.typing import Floats
from nerm.validation import as_positive


class Parts(NamedTuple):
    """The convex functions A and G of phi = A - G, and the function m -> A(m) + G(-m).

    The last one, `two_sided`, is the convex atom of a two-sided neutrality term (see `DCFunction`).
    """

    convex: MarginFunction
    subtracted: MarginFunction
    two_sided: MarginFunction


class DCFunction(MarginFunction):
    """A function phi = A - G of the margin, with convex A and G; phi itself need not be convex.

    Problems with such a function are solved by the convex-concave procedure. Each step replaces G by its
    tangent. The tangent lies below G, so the convex problem of a step is an upper bound on the objective. In
    a two-sided neutrality term both sides subtract the same function: ``max(A+ - G+, A- - G-) = max(A+ + G-,
    A- + G+) - (G+ + G-)``, where A+ = A(v f) and A- = A(-v f).

    Value, subgradient, facts and formula work as for any margin function. Conjugate, prox and cvxpy
    expression raise an error, because they need a convex function. `Ramp` is built in; `nerm.dc_function`
    makes a function of this class from two cvxpy expressions.

    Examples
    --------
    >>> from nerm import Ramp
    >>> convex, subtracted, _ = Ramp().parts
    >>> m = np.array([-3.0, 0.0, 3.0])
    >>> Ramp().value(m), (convex.value(m) - subtracted.value(m)).round(12) + 0.0
    (array([1. , 0.5, 0. ]), array([1. , 0.5, 0. ]))
    """

    @property
    @abstractmethod
    def parts(self) -> Parts:
        """The margin functions A, G and m -> A(m) + G(-m)."""

    def value(self, m: ArrayLike) -> Floats:
        """Return A(m) - G(m)."""
        return self.parts.convex.value(m) - self.parts.subtracted.value(m)

    def subgradient(self, m: ArrayLike) -> tuple[Floats, Floats]:
        """Return the ends (low, high) of dA(m) - dG(m), an interval that contains all slopes of phi at m."""
        (low, high), (least, most) = self.parts.convex.subgradient(m), self.parts.subtracted.subgradient(m)
        return low - most, high - least

    def _not_convex(self, *_: Any) -> NoReturn:
        """Raise an error: a function that is not convex has no conjugate, prox or cvxpy expression."""
        must = "only a convex margin function has a conjugate, a prox and an expression, and can be combined"
        do = "Call solve(), or take the convex problem of one step: problem.convexified(coef, intercept)"
        raise UnsupportedProblemError(must, f"{self!r}, a difference of convex functions", do)

    expression = conjugate = prox = _not_convex  # type: ignore[assignment]
    __add__ = __mul__ = __rmul__ = scaled = shifted = _not_convex  # type: ignore[assignment]


@dataclass(frozen=True)
class Ramp(DCFunction):
    """phi(m) = r(m / width), r(m) = min(1, max(0, (1 - m) / 2)): not convex, a difference of two hinges.

    ``r(m) = max(0, (1 - m) / 2) - max(0, (-1 - m) / 2)``. As a loss, the ramp costs at most 1 per row (the
    ramp loss SVM). As a surrogate, it satisfies r(m) + r(-m) = 1 like the indicator function, so ``max(C+,
    C-) - mean(u)/2 = |C+ - C-| / 2``, which tends to the measured neutrality as the width tends to 0.
    `solve()` uses the convex-concave procedure and returns a stationary point.

    Parameters
    ----------
    width : float
        Positive; the ramp is constant where `|m|` >= width.

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
        """The mathematical properties of the ramp."""
        ends = (-self.width, self.width)
        return Facts(at_zero=0.5, slopes=(-0.5 / self.width, 0.0), kinks=ends, breakpoints=ends)

    @cached_property
    def parts(self) -> Parts:
        """The two hinges A and G, and A(m) + G(-m) = `|1 - m / width| / 2`."""
        slope = 0.5 / self.width
        hinge, later = (HingePiece(at, 0.0, -slope, 0.0) for at in (self.width, -self.width))
        return Parts(hinge, later, HingePiece(self.width, 0.0, -slope, slope))

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
        """The facts of phi: its value at 0, an interval of its slopes, and whether it is bounded below."""
        (low, high), (least, most) = self.convex.facts.slopes, self.subtracted.facts.slopes
        far = FARTHEST * np.array([-1.0, 1.0])
        fall = self.value(1e-4 * far) - self.value(far)  # positive if phi still decreases far from 0
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
        """The margin functions A, G and m -> A(m) + G(-m)."""
        A, G = self.convex, self.subtracted
        return Parts(A, G, WeightedSum(((1.0, A), (1.0, Moved(G, -1.0, 0.0)))))


def dc_function(
    convex: MarginFunction | Callable[[Any], Any],
    concave: MarginFunction | Callable[[Any], Any],
    *,
    name: str = "phi",
) -> DCFunction:
    """Make the margin function phi = convex + concave.

    The sum need be neither convex nor concave. `solve()` uses the convex-concave procedure and returns a
    stationary point.

    Parameters
    ----------
    convex : callable or MarginFunction
        The convex part: a margin function, or a function that maps a cvxpy expression of any length to a
        convex expression, elementwise.
    concave : callable or MarginFunction
        The concave part. A callable maps a cvxpy expression to a concave expression, elementwise, which is
        added. A margin function is convex, so it is subtracted.
    name : str
        The name in formulas and error messages.

    Returns
    -------
    DCFunction
        Usable as a surrogate, and as a loss if it is bounded below. If both parts are built-in atoms, nerm's
        own solver solves the convex steps of a risk or a one-sided term; for a two-sided term both must be
        smooth.

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
    """Convert the convex or the subtracted part to a margin function.

    Raise an error if it is not convex.
    """
    if isinstance(given, DCFunction):
        must = f"the {name} must be convex"
        raise InvalidInputError(must, repr(given), "Pass a convex function")
    return given if isinstance(given, MarginFunction) else margin_function(given, name=name)
