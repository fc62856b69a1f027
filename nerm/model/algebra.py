"""The declarative language: terms, weights, and the objective they add up to.

``Risk(Hinge()) + 0.05 * SquaredL2() + 1.0 * Neutrality(Hinge())`` is an `Objective`: a sum of weighted terms,
still without data. Regularizers, risks and neutrality terms all speak this language by deriving from `Term`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from nerm.errors import InvalidInputError
from nerm.typing import Floats
from nerm.validation import as_nonnegative, as_positive

if TYPE_CHECKING:
    pass


class Algebra(ABC):
    """Whatever can be added and weighted; `_weighted` gives it as a tuple of weighted terms."""

    @abstractmethod
    def _weighted(self) -> tuple[WeightedTerm, ...]:
        """Return the terms with their weights."""

    def __add__(self, other: Any) -> Objective:
        if isinstance(other, type) and issubclass(other, Algebra):
            raise TypeError(
                f"A term must be an instance. Got the class {other.__name__}. Write {other.__name__}(...)."
            )
        if not isinstance(other, Algebra):
            return NotImplemented
        return Objective(self._weighted() + other._weighted(), self._constraints() + other._constraints())

    def __radd__(self, other: Any) -> Objective:
        # sum([...]) starts from 0
        return self.subject_to() if isinstance(other, int) and other == 0 else NotImplemented

    def __mul__(self, weight: Any) -> Objective:
        if isinstance(weight, Algebra):
            must = "a term must be weighted by a number"
            raise InvalidInputError(
                must, "the product of two terms", "Add terms with +, weight them with numbers"
            )
        advice = "A negative weight would make the objective non-convex"
        factor = as_nonnegative(weight, "weight", advice)
        weights = [
            as_nonnegative(factor * t.weight, "weight", "Use a smaller weight") for t in self._weighted()
        ]
        terms = tuple(WeightedTerm(w, t.term) for w, t in zip(weights, self._weighted(), strict=True))
        return Objective(terms, self._constraints())

    __rmul__ = __mul__
    __array_ufunc__ = None  # numpy numbers are weights; numpy arrays are not

    def __truediv__(self, divisor: Any) -> Objective:
        return self * (1.0 / as_positive(divisor, "divisor", "Divide by a positive number"))

    def __neg__(self) -> Objective:
        return self * -1.0

    def __sub__(self, other: Any) -> Objective:
        return self + -other if isinstance(other, Algebra) else NotImplemented

    def __le__(self, bound: Any) -> Limit:
        (weighted, *others), advice = (
            self._weighted(),
            "Limit each neutrality term by itself: Neutrality(...) <= t",
        )
        if others or weighted.term.kind != "neutrality" or not weighted.weight > 0:
            raise InvalidInputError("what is limited must be a neutrality term", repr(self), advice)
        limit = as_nonnegative(
            bound, "t", "A neutrality risk is at least psi(0) times the mean of its weights"
        )
        return Limit(weighted.term, limit / weighted.weight)

    def __ge__(self, bound: Any) -> Limit:
        must = "a neutrality term must be limited from above"
        raise InvalidInputError(must, ">= from below, which is not convex", "Write it <= t")

    def subject_to(self, *constraints: Constraint) -> Objective:
        """Return the objective with constraints: ``Neutrality(...) <= t``, ``Coefficients(...) >= 0`` and the like.

        >>> from nerm import Coefficients, Hinge, Neutrality, Risk, SquaredL2
        >>> objective = (Risk(Hinge()) + 0.1 * SquaredL2()).subject_to(Neutrality(Hinge()) <= 1.05, Coefficients() >= 0)
        >>> print(objective)
        minimise mean hinge(y f) + 0.1 ½‖w‖² subject to max(mean hinge(v f), mean hinge(-v f)) ≤ 1.05, w ≥ 0
        """
        for constraint in constraints:
            if not isinstance(constraint, Constraint):
                must = "a constraint must be a comparison"
                raise InvalidInputError(
                    must, repr(constraint), "Write Neutrality(...) <= t or Coefficients(...) >= 0"
                )
        return Objective(self._weighted(), (*self._constraints(), *constraints))

    def _constraints(self) -> tuple[Constraint, ...]:
        return ()

    def on(
        self,
        X: Any,
        y: Any = None,
        *,
        viewpoint: Any = None,
        kernel: Any = None,
        intercept: bool = True,
        sample_weight: Any = None,
    ) -> Any:
        """Bind the objective to data and return a `nerm.Problem`; every input is checked here, once.

        X
            (n, d), dense or scipy sparse; with ``kernel="precomputed"`` the (n, n) Gram matrix. A dask array,
            with y and viewpoint of the same rows, or `nerm.Chunks`, without them, gives a
            `nerm.chunks.ChunkedProblem`.
        y
            (n,), two values, the larger counts as +1.
        viewpoint
            (n,) real numbers v_i = g(x_i); or a dict of such arrays; or a callable g; or a fitted estimator.
        kernel
            None for the linear hypothesis f = X w + b; a name, a callable or a `nerm.kernels.Kernel` for f =
            K c + b.
        intercept
            Whether b is free (and never regularised). To regularise it, append a column of ones and pass
            False.
        sample_weight
            (n,) weights s_i >= 0 of the risk. Neutrality terms carry weights of their own.
        """
        from nerm.model.bind import on

        return on(
            self.subject_to(),
            X,
            y,
            viewpoint=viewpoint,
            kernel=kernel,
            intercept=intercept,
            sample_weight=sample_weight,
        )


class Term(Algebra):
    """One summand of an objective, without its weight; `kind` is "risk", "neutrality" or "regularizer"."""

    kind: ClassVar[str]

    def _weighted(self) -> tuple[WeightedTerm, ...]:
        return (WeightedTerm(1.0, self),)

    def sums(self, y: Floats, viewpoints: Mapping[str, Floats], sample_weight: Floats) -> tuple[Any, ...]:
        """Return the sums over rows that it is made of as (margin function, weights, targets, side); here none.

        Side 0 is a sum that counts as it is; of the sides +1 and -1 of a term the larger counts.
        """
        return ()

    @abstractmethod
    def formula(self, mean: str = "mean") -> str:
        """Return the term as plain-text mathematics; in the sum form a mean is called a sum."""

    @abstractmethod
    def latex_formula(self) -> str:
        """Return the term as LaTeX mathematics."""


@dataclass(frozen=True)
class WeightedTerm:
    """A nonnegative number times a term."""

    weight: float
    term: Term


class Constraint(ABC):
    """What a hypothesis must satisfy."""

    @abstractmethod
    def formula(self, mean: str = "mean") -> str:
        """Return the constraint as plain-text mathematics."""

    @abstractmethod
    def latex_formula(self) -> str:
        """Return the constraint as LaTeX mathematics."""

    def __bool__(self) -> bool:
        # a <= x <= b is (a <= x) and (x <= b) to Python, which would drop the first
        raise TypeError("A constraint must stand alone. Got one as a truth value. Write two for a <= x <= b.")


@dataclass(frozen=True)
class Limit(Constraint):
    """C(f) <= t for a neutrality term C: ``Neutrality(...) <= t``."""

    term: Term
    bound: float

    def __repr__(self) -> str:
        return f"{self.term!r} <= {self.bound:g}"

    def formula(self, mean: str = "mean") -> str:
        """Return the limit as text."""
        return f"{self.term.formula(mean)} ≤ {self.bound:g}"

    def latex_formula(self) -> str:
        """Return the limit as LaTeX."""
        return rf"{self.term.latex_formula()} \le {self.bound:g}"


@dataclass(frozen=True, repr=False)
class Objective(Algebra):
    """A weighted sum of terms: an objective that has not met its data.

    `repr` gives the algebra back, `print` the formula, and a notebook shows LaTeX. Terms are added with +,
    and weighted with * or / by nonnegative numbers, which multiply through a sum; a negative weight is
    refused at once.

    >>> from nerm import Hinge, Neutrality, Risk, SquaredL2
    >>> objective = Risk(Hinge()) + 0.1 * (SquaredL2() + 5 * Neutrality(Hinge(), to="sex"))
    >>> objective
    Risk(Hinge()) + 0.1 * SquaredL2() + 0.5 * Neutrality(Hinge(), to='sex')
    >>> print(objective)
    minimise mean hinge(y f) + 0.1 ½‖w‖² + 0.5 max(mean hinge(sex f), mean hinge(-sex f))
    >>> [term.weight for term in objective.terms]
    [1.0, 0.1, 0.5]
    """

    terms: tuple[WeightedTerm, ...]
    constraints: tuple[Constraint, ...] = ()

    def _weighted(self) -> tuple[WeightedTerm, ...]:
        return self.terms

    def _constraints(self) -> tuple[Constraint, ...]:
        return self.constraints

    def with_total(self, kind: str, total: float) -> Objective:
        """Return the objective with weights of one kind of terms that add up to a total and keep their ratios.

        Where all of them are 0 they share it equally.

        >>> from nerm import L1, Hinge, Risk, SquaredL2
        >>> (Risk(Hinge()) + 1.0 * SquaredL2() + 3.0 * L1()).with_total("regularizer", 0.4)
        Risk(Hinge()) + 0.1 * SquaredL2() + 0.3 * L1()
        """
        weights = [t.weight for t in self.terms if t.term.kind == kind]
        whole, share = sum(weights), 1.0 / max(len(weights), 1)
        return replace(
            self,
            terms=tuple(
                replace(t, weight=float(total * (t.weight / whole if whole else share)))
                if t.term.kind == kind
                else t
                for t in self.terms
            ),
        )

    def __repr__(self) -> str:
        terms = " + ".join(_scaled(t.weight, repr(t.term), " * ") for t in self.terms)
        return (
            f"({terms}).subject_to({', '.join(map(repr, self.constraints))})" if self.constraints else terms
        )

    def __str__(self) -> str:
        return self.formula()

    def formula(self, mean: str = "mean") -> str:
        """Return the objective as plain-text mathematics; in the sum form a mean is called a sum."""
        minimise = "minimise " + " + ".join(_scaled(t.weight, t.term.formula(mean), " ") for t in self.terms)
        subject = ", ".join(c.formula(mean) for c in self.constraints)
        return f"{minimise} subject to {subject}" if subject else minimise

    def _repr_latex_(self) -> str:
        body = " + ".join(_scaled(t.weight, t.term.latex_formula(), r"\, ") for t in self.terms)
        subject = r",\ ".join(c.latex_formula() for c in self.constraints)
        subject = rf"\quad\text{{subject to}}\quad {subject}" if subject else ""
        return rf"$\displaystyle \min_{{f}}\ {body}{subject}$"


def _scaled(weight: float, text: str, times: str) -> str:
    """Write weight * text, leaving out a weight of one."""
    return text if weight == 1 else f"{weight:g}{times}{text}"
