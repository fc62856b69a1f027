"""The objective at a hypothesis, as numbers: the total and its terms."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from nerm.atoms.regularizer import Regularizer
from nerm.model.algebra import Objective


@dataclass(frozen=True)
class TermValue:
    """One term at a hypothesis.

    Attributes
    ----------
    label : str
        The term as it is written.
    kind : {"risk", "regularizer", "neutrality"}
        What it is.
    weight, value : float
        Its weight, and its value without the weight.
    plus, minus : float or None
        C+ and C- of a neutrality term of two sides.
    theta : float or None
        The weight of C+ in a neutrality term; None where it is not known.

    """

    label: str
    kind: str
    weight: float
    value: float
    plus: float | None = None
    minus: float | None = None
    theta: float | None = None


@dataclass(frozen=True, repr=False)
class ObjectiveValue:
    """The objective at a hypothesis: the total and its terms. `float(value)` is the total.

    Attributes
    ----------
    total : float
        The sum of weight times value over all terms.
    terms : tuple of TermValue
        In the order of the objective.

    """

    total: float
    terms: tuple[TermValue, ...]

    def __float__(self) -> float:
        return self.total

    def with_thetas(self, thetas: Iterable[float]) -> ObjectiveValue:
        """Return the value with a theta for each neutrality term of two sides, in their order."""
        known = iter(thetas)
        return replace(
            self,
            terms=tuple(t if t.plus is None else replace(t, theta=float(next(known))) for t in self.terms),
        )

    @property
    def thetas(self) -> list[float]:
        """The theta of each neutrality term of two sides, in their order; nan where it is not known."""
        return [float("nan") if t.theta is None else t.theta for t in self.terms if t.plus is not None]

    def _sum(self, kind: str) -> float:
        return sum(t.weight * t.value for t in self.terms if t.kind == kind)

    @property
    def risk(self) -> float:
        """The weighted risk terms."""
        return self._sum("risk")

    @property
    def regularization(self) -> float:
        """The weighted regularizers."""
        return self._sum("regularizer")

    @property
    def neutrality(self) -> float:
        """The weighted neutrality terms."""
        return self._sum("neutrality")

    def __repr__(self) -> str:
        width = max(len(t.label) for t in self.terms)
        lines = []
        for t in self.terms:
            sides = "" if t.plus is None else f"   (C+ {t.plus:.6g}, C- {t.minus:.6g})"
            lines.append(f"{t.label:<{width}}  {t.weight:>8.4g} × {t.value:<12.8g}{sides}".rstrip())
        return "\n".join([*lines, f"{'total':<{width}}  {'':>8}   {self.total:.10g}"])


def objective_value(
    objective: Objective, sums: Mapping[tuple[int, int], float], penalty: Callable[[Regularizer], float]
) -> ObjectiveValue:
    """Return an objective from the mean of each of its sums, by (term, side), and a function for its regularizers."""
    terms = []
    for number, weighted in enumerate(objective.terms):
        term = weighted.term
        sides: tuple[float | None, float | None, float | None] = (None, None, None)
        if isinstance(term, Regularizer):
            value = penalty(term)
        elif (number, 0) in sums:
            value, sides = sums[number, 0], (None, None, getattr(term, "theta", None))
        else:
            plus, minus = sums[number, 1], sums[number, -1]
            value, sides = max(plus, minus), (plus, minus, None)
        terms.append(TermValue(repr(term), term.kind, weighted.weight, value, *sides))
    # A weight of 0 switches a term off, also where its value overflows.
    return ObjectiveValue(float(sum(t.weight * t.value for t in terms if t.weight)), tuple(terms))
