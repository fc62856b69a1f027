"""The base class of margin functions: convex functions of one number, used as loss or as surrogate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from html import escape
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms import cvx as cp
from nerm.atoms.formula import derive
from nerm.atoms.functions import MARGIN, SETTLED, Function, NoRuleError, as_function
from nerm.atoms.latex import latex
from nerm.errors import InvalidInputError, InvalidTypeError
from nerm.typing import Floats


@dataclass(frozen=True)
class Facts:
    """Mathematical properties of a margin function phi, which solvers and certificates use.

    Attributes
    ----------
    at_zero : float
        phi(0); the generalization bounds of the paper use it.
    slopes : tuple of float
        The slopes of phi at -inf and +inf, the ends of the interval of all subgradients. The conjugate is
        +inf outside of this interval.
    smoothness : float
        The Lipschitz constant of the derivative; infinite if the derivative is not Lipschitz continuous.
    kinks : tuple of float
        The margins at which the derivative jumps.
    breakpoints : tuple of float
        The margins at which the formula changes, including the kinks.
    minimum : float
        The infimum of phi.
    quadratic : tuple of float or None
        ``(a, q)`` if ``phi*(u) = a u + (q / 2) u^2`` on the interval ``slopes``, else None.
    surrogate_only : bool
        True if phi is unbounded below, so that it cannot be a loss.
    numeric : bool
        True if the conjugate or the subgradient is computed numerically, with an error.

    Examples
    --------
    >>> from nerm import Hinge, Identity
    >>> facts = Hinge().facts
    >>> facts.at_zero, facts.slopes, facts.kinks, facts.lipschitz, facts.monotone
    (1.0, (-1.0, 0.0), (1.0,), 1.0, 'decreasing')
    >>> Identity().facts.surrogate_only  # unbounded below
    True
    """

    at_zero: float
    slopes: tuple[float, float]
    smoothness: float = np.inf
    kinks: tuple[float, ...] = ()
    breakpoints: tuple[float, ...] = ()
    minimum: float = 0.0
    quadratic: tuple[float, float] | None = None
    surrogate_only: bool = False
    numeric: bool = False

    @property
    def lipschitz(self) -> float:
        """The Lipschitz constant of phi: the largest absolute slope."""
        return max(abs(self.slopes[0]), abs(self.slopes[1]))

    @property
    def monotone(self) -> str | None:
        """``"decreasing"`` or ``"increasing"`` if phi is monotone, else None."""
        low, high = self.slopes
        return "decreasing" if high <= 0 else "increasing" if low >= 0 else None


class Description(str):
    r"""A title and a list of (name, text), which a notebook shows as a table.

    >>> Description("Hinge()\n  kinks         1")._repr_html_()
    '<table><caption>Hinge()</caption><tr><th>kinks</th><td>1</td></tr></table>'
    """

    def _repr_html_(self) -> str:
        title, *lines = map(escape, self.splitlines())
        rows = "".join(f"<tr><th>{line[:16].strip()}</th><td>{line[16:]}</td></tr>" for line in lines)
        return f"<table><caption>{title}</caption>{rows}</table>"


class MarginFunction(ABC):
    """A convex function phi: R -> R of the margin m = y f(x) (as a loss) or m = +-v f(x) (as a surrogate).

    Instances are immutable and have no data and no weight. All methods are vectorised: m has any shape, and
    results have the same shape. A subclass defines its formula, `expression`; values, slopes, conjugate, prox
    and facts are derived from it (`nerm.atoms.formula`), exactly unless `facts.numeric`.
    `nerm.margin_function` makes a margin function without a class.

    The Fenchel-Young inequality phi(m) + phi*(u) >= u m is an equality if and only if u is a subgradient of
    phi at m. The prox z = prox(m, t) satisfies (m - z) / t in d phi(z), the subdifferential of phi at z.

    Attributes
    ----------
    name : str
        The name in `nerm.atoms.margin_functions()`.
    of_residual : bool
        Whether its argument is the residual y - f(x) of a regression and not a margin.
    facts : Facts
        The mathematical properties of this function.

    Examples
    --------
    >>> from nerm import Hinge
    >>> phi, m = Hinge(), np.array([-1.0, 0.5, 1.0, 3.0])
    >>> low, high = phi.subgradient(m)
    >>> phi.value(m) + phi.conjugate(high) - high * m
    array([0., 0., 0., 0.])
    >>> (m - phi.prox(m, 0.25)) / 0.25, phi.prox(m, 0.25)
    (array([-1., -1.,  0.,  0.]), array([-0.75,  0.75,  1.  ,  3.  ]))
    """

    name: ClassVar[str] = ""
    of_residual: ClassVar[bool] = False

    @property
    def built_in(self) -> bool:
        """Whether nerm defines the formula; the certificate compares any other class with its formula."""
        return type(self).__module__.startswith("nerm.atoms.") and not hasattr(self, "cvxpy_expression")

    def __getstate__(self) -> dict[str, Any]:
        """Return the parameters: a copy in another process derives the rest again."""
        return {
            name: value for name, value in vars(self).items() if name not in ("derived", "facts", "parts")
        }

    @abstractmethod
    def expression(self, m: Any) -> Any:
        """Return phi of a cvxpy expression m of any shape, elementwise."""

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX, a sum in parentheses; the name where cvxpy's tree has no LaTeX.

        `m` and `minus_m` are the LaTeX of the margin and of its negative.
        """
        variable = cp.Variable(3)
        try:
            tree = getattr(self, "cvxpy_expression", self.expression)(variable)
            return latex(tree, variable, m, minus_m)
        except (NoRuleError, InvalidInputError):
            return rf"\operatorname{{{getattr(self, 'label', self.name)}}}({m})"

    def _repr_html_(self) -> str | None:
        try:
            return rf"<div>$\phi(m) = {escape(self.latex('m', '- m'))}$</div>{self.describe()._repr_html_()}"
        except InvalidInputError:  # a difference of convex functions has no description
            return None

    @cached_property
    def derived(self) -> Function:
        """The function that the formula gives, whatever methods a subclass defines by hand."""
        if self.built_in:  # without cvxpy, which takes a second to load
            with suppress(AttributeError, TypeError):  # a formula with functions of cvxpy itself
                return as_function(self.expression(MARGIN))
        given = getattr(self, "cvxpy_expression", self.expression)
        return derive(given, getattr(self, "label", type(self).__name__))

    @property
    def by_hand(self) -> bool:
        """Whether a user's class defines its value or its conjugate by hand."""
        own = type(self)
        derived = own.value is MarginFunction.value and own.conjugate is MarginFunction.conjugate
        return not (self.built_in or derived)

    @cached_property
    def parts(self) -> tuple[MarginFunction, ...]:
        """Hinge-like functions and at most one smooth function that add up to phi, up to a constant.

        Empty if the formula is evaluated numerically.
        """
        from nerm.atoms.custom import SmoothPart
        from nerm.atoms.losses import HingePiece

        f = self.derived
        if self.facts.numeric:
            return ()
        hinges = tuple(HingePiece(*hinge) for hinge in f.hinges)
        if self.facts.quadratic is not None or not hinges:
            return (self,)
        if f.is_quadratic:
            return hinges
        rest = sum((hinge.derived * -1.0 for hinge in hinges), start=f)
        return (*hinges, SmoothPart(self, hinges, rest))

    @cached_property
    def facts(self) -> Facts:
        """The mathematical properties of this function, derived from its formula."""
        f = self.derived
        low, high = f.end_slopes
        unbounded = low > 0 or high < 0
        quadratic = None
        if f.is_quadratic and len(f.hinges) == 1:
            a, q, *ends = f.hinges[0]
            u, height = (
                np.clip(np.zeros(1), low, high),
                max(abs(end) for end in (0.0, *ends) if np.isfinite(end)),
            )
            star = f.conjugate(u)
            size = np.abs(star) + abs(a) * height + q * height**2 + (a**2 / q if q else 0.0)
            quadratic = (a, q) if abs(star - a * u - 0.5 * q * u**2) <= SETTLED * size else None
        return Facts(
            at_zero=float(f.jet(np.zeros(1)).value[0]),
            slopes=(low, high),
            smoothness=f.smoothness,
            kinks=tuple(f.breaks[f.kinked].tolist()),
            breakpoints=tuple(f.breaks.tolist()),
            minimum=-np.inf if unbounded else -float(f.conjugate(np.zeros(1))[0]) + 0.0,
            quadratic=quadratic,
            surrogate_only=unbounded,
            numeric=f.step > 0,
        )

    def value(self, m: ArrayLike) -> Floats:
        """Return phi(m), in the shape of m; +inf where it overflows."""
        return self.derived.value(np.asarray(m, dtype=float))

    def subgradient(self, m: ArrayLike) -> tuple[Floats, Floats]:
        """Return the ends (low, high) of the interval of subgradients, each in the shape of m."""
        return self.derived.slopes_at(np.asarray(m, dtype=float))

    def curvature(self, m: ArrayLike) -> Floats | None:
        """Return phi''(m), to the right of m, in the shape of m; None if phi has a kink."""
        f = self.derived
        kinked = f.step or f.kinked.any()
        return None if kinked else f.jet(np.asarray(m, dtype=float), "right").curvature

    def conjugate(self, u: ArrayLike) -> Floats:
        """Return phi*(u) = sup_m u m - phi(m), in the shape of u; +inf outside ``facts.slopes``."""
        return self.derived.conjugate(np.asarray(u, dtype=float))

    def prox(self, m: ArrayLike, step: float = 1.0) -> Floats:
        """Return argmin_z  step phi(z) + (z - m)^2 / 2, in the shape of m."""
        return self.derived.prox(np.asarray(m, dtype=float), step)

    def describe(self) -> Description:
        """Return a text with the pieces, kinks, slopes and conjugate of the function; a table in notebooks.

        >>> from nerm import Logistic
        >>> print(Logistic().describe())
        Logistic(): smooth
          slopes        from -1 to 0
          kinks         none
          minimum       0
          value at 0    0.693147
          conjugate     finite on [-1, 0]
          parts         Logistic()
        """
        facts, (low, high) = self.facts, self.facts.slopes
        kind = "piecewise quadratic" if self.derived.is_quadratic else "smooth"
        kind = "numeric" if facts.numeric else kind + " with kinks" * (kind == "smooth" and bool(facts.kinks))
        shown = {
            "slopes": f"from {low:g} to {high:g}",
            "kinks": ", ".join(f"{kink:g}" for kink in facts.kinks) or "none",
            "minimum": f"{facts.minimum:g}",
            "value at 0": f"{facts.at_zero:g}",
            "conjugate": f"finite on [{low:g}, {high:g}]",
            "parts": " + ".join(map(repr, self.parts)) or "none: slopes are computed numerically",
        }
        title = f"{getattr(self, 'label', repr(self))}: {kind}"
        return Description("\n".join([title, *(f"  {name:<14}{text}" for name, text in shown.items())]))

    # ---- algebra: a sum or a multiple of margin functions is a margin function

    def __add__(self, other: Any) -> MarginFunction:
        from nerm.atoms.custom import WeightedSum

        if isinstance(other, MarginFunction):
            return WeightedSum(((1.0, self), (1.0, other)))
        return self._not_a_term(other)

    def __mul__(self, factor: Any) -> MarginFunction:
        from nerm.atoms.custom import WeightedSum

        if isinstance(factor, int | float | np.number) and not isinstance(factor, bool):
            return WeightedSum(((float(factor), self),))
        return self._not_a_term(factor)

    __rmul__ = __mul__
    __array_ufunc__ = None  # numpy numbers are factors

    def scaled(self, factor: float) -> MarginFunction:
        """Return the margin function m -> phi(factor m)."""
        from nerm.atoms.custom import Moved

        return Moved(self, float(factor), 0.0)

    def shifted(self, by: float) -> MarginFunction:
        """Return the margin function m -> phi(m - by)."""
        from nerm.atoms.custom import Moved

        return Moved(self, 1.0, float(by))

    # A margin function is not a term: raise an error that explains this instead of Python's TypeError.
    def _not_a_term(self, *_: object) -> Any:
        name = type(self).__name__
        must = "a margin function must be wrapped before it can be added to terms"
        do = f"Write Risk({name}()) for a loss or Neutrality({name}()) for a surrogate"
        raise InvalidTypeError(must, f"{name}()", do)

    __radd__ = __sub__ = __rsub__ = __truediv__ = __neg__ = _not_a_term
