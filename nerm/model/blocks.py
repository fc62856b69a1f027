"""The separable part of an objective as blocks: one margin function along all rows each.

::

    P(f) = sum over terms of  weight * B(f)                 a term of one block, as a risk
                              weight * max(B+(f), B-(f))    a term of two: the sides of a neutrality term
    B(f) = (1/n) sum_i weights_i atom(targets_i f_i)        + Omega

Built once, when data meet mathematics, and never changed: value, certificate, recovery, cvxpy model, engine
and SMO all read these. Along a path over eta only `problem.factors`, the weights of the terms, change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sized
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nerm.atoms.margin import MarginFunction
from nerm.model.algebra import Limit, Objective
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.model.problem import Problem


@dataclass(frozen=True, eq=False)
class Block:
    """(1/n) sum_i weights_i atom(targets_i f_i), without the weight of its term.

    Attributes
    ----------
    atom : MarginFunction
        phi or psi.
    weights, targets : (n,) arrays
        s_i and y_i of a risk; u_i and +-v_i of a side of a neutrality term.
    term : int
        The number of its term in `problem.objective.terms`, or among the limits, which are numbered after
        them.
    side : {0, 1, -1}
        0 where the term is this block alone, as a risk or a one-sided neutrality term; +1 and -1 for C+ and
        C-, of which the larger counts.

    """

    atom: MarginFunction
    weights: Floats
    targets: Floats
    term: int
    side: int

    @property
    def domain(self) -> tuple[float, float]:
        """The interval that a multiplier may take: minus the slopes of the atom."""
        low, high = self.atom.facts.slopes
        return -high, -low

    def total(self, scores: Floats) -> float:
        """Return sum_i weights_i atom(targets_i f_i); a weight of 0 silences even an infinite value."""
        counted = self.weights > 0
        if counted.all():
            return weigh(self.weights, self.atom.value(self.targets * scores))
        return weigh(self.weights[counted], self.atom.value(self.targets[counted] * scores[counted]))


def weigh(weights: Floats, values: Floats) -> float:
    """Return sum_i weights_i values_i, added in pairs: more exact than BLAS, and without waiting for its threads."""
    return float(np.sum(weights * values))


def make_blocks(
    objective: Objective, y: Floats, viewpoints: Mapping[str, Floats], sample_weight: Floats
) -> tuple[Block, ...]:
    """Return the blocks of an objective on data: the risks, one-sided neutrality terms, then pairs of sides.

    Limits count as terms, numbered after those of the objective.
    """
    terms = [weighted.term for weighted in objective.terms]
    terms += [constraint.term for constraint in objective.constraints if isinstance(constraint, Limit)]
    blocks = [
        Block(atom, weights, targets, number, side)
        for number, term in enumerate(terms)
        for atom, weights, targets, side in term.sums(y, viewpoints, sample_weight)
    ]
    return tuple(sorted(blocks, key=lambda block: (block.side != 0, terms[block.term].kind != "risk")))


def shares(blocks: Sized, thetas: Floats) -> Floats:
    """Return the share of each block in its term: theta for C+, 1 - theta for C-, 1 for a block alone."""
    return np.concatenate(
        [np.ones(len(blocks) - 2 * len(thetas)), np.column_stack([thetas, 1 - thetas]).ravel()]
    )


def scaled_weights(problem: Problem, thetas: Floats) -> list[Floats]:
    """Return what multiplies each block's atom at fixed theta: factor * share * weights."""
    scales = problem.factors * shares(problem.blocks, thetas)
    return [scale * block.weights for scale, block in zip(scales, problem.blocks, strict=True)]


def forces(problem: Problem, rows: Floats, thetas: Floats) -> Floats:
    """Return c, (n,), the force of every row on its score: the sum of scaled weight * target * multiplier."""
    weights = scaled_weights(problem, thetas)
    return sum(
        (w * block.targets * row for w, block, row in zip(weights, problem.blocks, rows, strict=True)),
        start=np.zeros(problem.hypothesis.n),
    )
