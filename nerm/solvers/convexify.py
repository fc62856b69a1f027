"""The convex problem of one step of the convex-concave procedure: what is subtracted, replaced by its tangent.

A term with phi = A - G (`nerm.atoms.DCFunction`) becomes the same term with A and a `Tangent`, the tangent of
-G at given scores, a linear function of f. A neutrality term of two sides is a difference too, with the same
for both sides subtracted: max(A+ - G+, A- - G-) = max(A+ + G-, A- + G+) - (G+ + G-). Since G is above its
tangents, the convex problem is above the objective, and equal to it at the given scores: its optimum is no
worse than they are.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm.atoms.difference import DCFunction
from nerm.atoms.margin import MarginFunction
from nerm.atoms.numeric import middle_slope
from nerm.atoms.hinges import TwoLines
from nerm.model.algebra import Term, WeightedTerm
from nerm.model.blocks import Block, weigh
from nerm.model.objective import Risk
from nerm.model.problem import Problem
from nerm.typing import Floats


@dataclass(frozen=True, eq=False, repr=False)
class Tangent(Term):
    """(1/n) sum_i w_i (constant - slopes_i t_i f_i): the tangent of what a term of weights w and targets t subtracts.

    Attributes
    ----------
    term : Risk or Neutrality
        The term with the difference.
    kind : {"risk", "neutrality"}
        Its kind.
    slopes : (n,) array
        Those of the subtracted part at the margins of the given rows.
    constant : float
        What makes it touch.

    """

    term: Any
    kind: str  # type: ignore[misc]  # that of the term
    slopes: Floats
    constant: float

    def __repr__(self) -> str:
        return f"Tangent({self.term!r})"

    def sums(self, y: Floats, viewpoints: Mapping[str, Floats], sample_weight: Floats) -> tuple[Any, ...]:
        """Return the one sum that it is."""
        _, weights, targets, _ = self.term.sums(y, viewpoints, sample_weight)[0]
        return ((TwoLines(-self.constant, 1.0, 1.0), weights, -self.slopes * targets, 0),)

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text."""
        return f"{mean} tangent(f)"

    def latex_formula(self) -> str:
        """Return the term as LaTeX."""
        return r"\frac1n\sum_i (a_i f(x_i) + c)"


def differences(problem: Problem) -> list[Block]:
    """Return the blocks whose atom is a difference of convex functions, of two sides the first."""
    return [block for block in problem.blocks if block.side >= 0 and isinstance(block.atom, DCFunction)]


def convexified(problem: Problem, coef: Floats, intercept: float) -> Problem:
    """Return the convex problem that equals this one at a hypothesis and is above it elsewhere."""
    scores = problem.hypothesis.scores(coef, intercept)
    blocks = {block.term: block for block in differences(problem)}
    terms = [
        new
        for number, weighted in enumerate(problem.objective.terms)
        for new in (_parts(problem, weighted, blocks[number], scores) if number in blocks else [weighted])
    ]
    objective = replace(problem.objective, terms=tuple(terms))
    return problem.with_labels(problem.y, objective, problem.sample_weight)


def _parts(problem: Problem, weighted: WeightedTerm, block: Block, scores: Floats) -> Iterator[WeightedTerm]:
    """Yield the convex part of a term and the tangent of what it subtracts."""
    assert isinstance(block.atom, DCFunction)
    term, parts = weighted.term, block.atom.parts
    atom, margins = parts.two_sided if block.side else parts.convex, block.targets * scores
    yield replace(weighted, term=Risk(atom) if isinstance(term, Risk) else replace(term, surrogate=atom))  # type: ignore[type-var]
    slopes, offsets = _tangent(parts.subtracted, margins, block.weights)
    if block.side:
        others = _tangent(parts.subtracted, -margins, block.weights)
        slopes, offsets = slopes - others[0], offsets + others[1]
    constant = weigh(block.weights, offsets) / max(float(block.weights.sum()), np.finfo(float).tiny)
    yield replace(weighted, term=Tangent(term, term.kind, slopes, constant))


def _tangent(G: MarginFunction, margins: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return g and c with G(m) >= g m - c, equal at these margins; 0 for rows without weight."""
    slopes = np.where(weights > 0, middle_slope(G, margins), 0.0)
    return slopes, np.where(weights > 0, slopes * margins - G.value(margins), 0.0)
