"""The convex problem of one step of the convex-concave procedure: what is subtracted, replaced by its tangent.

A term with phi = A - G (`nerm.atoms.DCFunction`) becomes the same term with A and a `Tangent`, the tangent of
-G at given scores, a linear function of f. A neutrality term of two sides is a difference too, with the same
for both sides subtracted: max(A+ - G+, A- - G-) = max(A+ + G-, A- + G+) - (G+ + G-). Since G is above its
tangents, the convex problem is above the objective, and equal to it at the given scores: its optimum is no
worse than they are.
"""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm.atoms.difference import DCFunction
from nerm.atoms.margin import MarginFunction
from nerm.atoms.numeric import middle_slope
from nerm.atoms.two_lines import TwoLines
from nerm.model.blocks import Block, in_order, weigh
from nerm.model.expressions import Risk, Term, WeightedTerm
from nerm.model.problem import Problem
from nerm.typing import Floats


@dataclass(frozen=True, eq=False, repr=False)
class Tangent(Term):
    """(1/n) sum_i w_i (constant - slopes_i t_i f_i): the tangent of the part that a term subtracts.

    Attributes
    ----------
    term : Risk or Neutrality
        The term with the difference.
    kind : {"risk", "neutrality"}
        Its kind.

    """

    term: Any
    kind: str  # type: ignore[misc]  # that of the term

    def __repr__(self) -> str:
        return f"Tangent({self.term!r})"

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
    different = {block.term: block for block in differences(problem)}
    terms = list[WeightedTerm]()
    blocks = list[Block]()
    for number, weighted in enumerate(problem.objective.terms):
        own = [replace(block, term=len(terms)) for block in problem.blocks if block.term == number]
        if number in different:
            atom, tangent = _parts(different[number], scores)
            term = weighted.term
            blocks += [replace(block, atom=atom) for block in own]
            convex = Risk(atom) if isinstance(term, Risk) else replace(term, surrogate=atom)  # type: ignore[type-var]
            terms.append(replace(weighted, term=convex))
            blocks.append(replace(tangent, term=len(terms)))
            terms.append(replace(weighted, term=Tangent(term, term.kind)))
        else:
            blocks += own
            terms.append(weighted)
    added = len(terms) - len(problem.objective.terms)
    limits = [block for block in problem.blocks if block.term >= len(problem.objective.terms)]
    blocks += [replace(block, term=block.term + added) for block in limits]
    ordered = in_order(blocks, [t.term for t in terms] + [limit.term for limit in problem.limits])
    return replace(problem, objective=replace(problem.objective, terms=tuple(terms)), blocks=ordered)


def _parts(block: Block, scores: Floats) -> tuple[MarginFunction, Block]:
    """Return the convex part of a difference, and the block of the tangent of the other part at the scores."""
    assert isinstance(block.atom, DCFunction)
    parts, margins = block.atom.parts, block.targets * scores
    slopes, offsets = _tangent(parts.subtracted, margins, block.weights)
    if block.side:
        others = _tangent(parts.subtracted, -margins, block.weights)
        slopes, offsets = slopes - others[0], offsets + others[1]
    constant = weigh(block.weights, offsets) / max(float(block.weights.sum()), np.finfo(float).tiny)
    line = TwoLines(-constant, 1.0, 1.0)
    tangent = Block(line, block.weights, -slopes * block.targets, block.term, 0)
    return parts.two_sided if block.side else parts.convex, tangent


def _tangent(G: MarginFunction, margins: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return g and c with G(m) >= g m - c, equal at these margins; 0 for rows without weight."""
    slopes = np.where(weights > 0, middle_slope(G, margins), 0.0)
    return slopes, np.where(weights > 0, slopes * margins - G.value(margins), 0.0)
