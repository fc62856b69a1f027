"""The base class of margin functions: convex functions of one number, used as loss or as surrogate."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar, NoReturn

import numpy as np
from numpy.typing import ArrayLike

from nerm.atoms import numeric
from nerm.errors import InvalidTypeError
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
        ``(a, q)`` if ``phi*(u) = a u + (q / 2) u^2`` on the interval ``slopes``, else None (`HingeLike`).
    bend : float or None
        a if phi(m) = ``phi(a) + max(low (m - a), high (m - a))`` with finite `slopes` (low, high), else None.
        If low = high, phi is one line and a is arbitrary.
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
    bend: float | None = None
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


class MarginFunction(ABC):
    """A convex function phi: R -> R of the margin m = y f(x) (as a loss) or m = +-v f(x) (as a surrogate).

    Instances are immutable and have no data and no weight. All methods are vectorised: m has any shape, and
    results have the same shape. A subclass defines `facts`, `value`, `subgradient`, `expression` and `latex`;
    conjugate and prox are computed numerically unless the subclass defines them. If the conjugate is
    quadratic on an interval, derive from `nerm.atoms.HingeLike`, which needs only four numbers, `expression`
    and `latex`. `nerm.margin_function` makes a margin function from a cvxpy expression alone.

    The Fenchel-Young inequality phi(m) + phi*(u) >= u m is an equality if and only if u is a subgradient of
    phi at m. The prox z = prox(m, t) satisfies (m - z) / t in d phi(z), the subdifferential of phi at z.

    Attributes
    ----------
    name : str
        The name in `nerm.atoms.margin_functions()`.
    built_in : bool
        Whether nerm defines the class; the certificate compares any other with its cvxpy expression.
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
    built_in: ClassVar[bool]

    def __init_subclass__(cls) -> None:
        cls.built_in = vars(cls).get("built_in", cls.__module__.startswith("nerm.atoms."))

    @property
    @abstractmethod
    def facts(self) -> Facts:
        """The mathematical properties of this function."""

    @abstractmethod
    def value(self, m: ArrayLike) -> Floats:
        """Return phi(m), in the shape of m; +inf where it overflows."""

    @abstractmethod
    def subgradient(self, m: ArrayLike) -> tuple[Floats, Floats]:
        """Return the ends (low, high) of the interval of subgradients, each in the shape of m."""

    @abstractmethod
    def expression(self, m: Any) -> Any:
        """Return phi of a cvxpy expression m of any shape, elementwise; it is convex by cvxpy's rules."""

    def curvature(self, m: ArrayLike) -> Floats | None:
        """Return phi''(m) in the shape of m, or None if the class does not define it."""
        return None

    def conjugate(self, u: ArrayLike) -> Floats:
        """Return phi*(u) = sup_m u m - phi(m), in the shape of u; +inf outside ``facts.slopes``."""
        return numeric.conjugate(self.value, self.facts.slopes, np.asarray(u, dtype=float))

    def prox(self, m: ArrayLike, step: float = 1.0) -> Floats:
        """Return argmin_z  step phi(z) + (z - m)^2 / 2, in the shape of m."""
        return numeric.prox(self, np.asarray(m, dtype=float), step)

    @abstractmethod
    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX; `m` and `minus_m` are the LaTeX of the margin and of its negative."""

    # A margin function is not a term: raise an error that explains this instead of Python's TypeError.
    def _not_a_term(self, *_: object) -> NoReturn:
        name = type(self).__name__
        must = "a margin function must be wrapped before it can be added or weighted"
        do = f"Write Risk({name}()) for a loss or Neutrality({name}()) for a surrogate"
        raise InvalidTypeError(must, f"{name}()", do)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __truediv__ = __neg__ = _not_a_term
