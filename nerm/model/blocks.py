"""The separable part of an objective as blocks, one margin function over all rows each, and its values.

::

    P(f) = sum over terms of  weight * B(f)                 a term of one block, such as a risk
                              weight * max(B+(f), B-(f))    a term of two: the sides of a neutrality term
    B(f) = (1/n) sum_i weights_i atom(targets_i f_i)        + Omega

Blocks are made once from terms and data. Values, certificates, the cvxpy model and all solvers read them.
Along a path over eta only the weights of the terms change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.model.expressions import Neutrality, Objective, Risk, Term, viewpoint_of
from nerm.typing import Floats
from nerm.weights import resolve

if TYPE_CHECKING:
    from nerm.model.problem import Problem

EPS = float(np.finfo(float).eps)


@dataclass(frozen=True, eq=False)
class Block:
    """The sum (1/n) sum_i weights_i atom(targets_i f_i), without the weight of its term.

    Attributes
    ----------
    atom : MarginFunction
        phi or psi.
    weights, targets : (n,) arrays
        s_i and y_i of a risk; u_i and +-v_i of a side of a neutrality term.
    term : int
        The number of its term in `problem.objective.terms`; limits are numbered after the terms.
    side : {0, 1, -1}
        0 where the term is this block alone, such as a risk or a one-sided neutrality term; +1 and -1 for C+
        and C-, of which the larger counts.

    """

    atom: MarginFunction
    weights: Floats
    targets: Floats
    term: int
    side: int

    @property
    def domain(self) -> tuple[float, float]:
        """The interval of its dual variables: minus the slopes of the atom."""
        low, high = self.atom.facts.slopes
        return -high, -low

    def total(self, scores: Floats) -> float:
        """Return sum_i weights_i atom(targets_i f_i); a row of weight 0 adds 0 even to an infinite atom."""
        values = self.atom.value(self.targets * scores)
        return weigh(self.weights, np.where(self.weights > 0, values, 0.0))


def weigh(weights: Floats, values: Floats) -> float:
    """Return sum_i weights_i values_i by pairwise summation, which is more exact than BLAS."""
    return float(np.sum(weights * values))


def sum_error(k: int) -> float:
    """Bound the rounding error of a sum of k products, relative to the sum of their sizes.

    Errors of either sign add up like sqrt(k), with a probability close to 1 (Higham and Mary 2019).

    >>> sum_error(0) < sum_error(100) < 1e-14
    True
    """
    return EPS * (2.0 + k**0.5)


def make_blocks(
    objective: Objective, y: Floats, viewpoints: Mapping[str, Floats], sample_weight: Floats
) -> tuple[Block, ...]:
    """Return the blocks of the terms of an objective and of its limits."""
    blocks = list[Block]()
    for number, term in enumerate(objective.every_term):
        if isinstance(term, Risk):
            blocks.append(Block(term.loss, sample_weight, y, number, 0))
        elif isinstance(term, Neutrality):
            v = viewpoints[viewpoint_of(term, viewpoints)]
            u = resolve(term.weights, y, v)
            if term.theta is None:
                blocks += [Block(term.surrogate, u, side * v, number, side) for side in (1, -1)]
            else:
                blocks.append(Block(term.surrogate, u, (2 * term.theta - 1) * v, number, 0))
    return in_order(blocks, objective.every_term)


def in_order(blocks: Iterable[Block], terms: Sequence[Term]) -> tuple[Block, ...]:
    """Return blocks in the order of dual variables: risks, one-sided terms, then pairs of sides."""
    return tuple(sorted(blocks, key=lambda block: (block.side != 0, terms[block.term].kind != "risk")))


def term_weights(problem: Problem) -> Floats:
    """Return the weight of each block's term, (number of blocks,); 0 for a limit."""
    weights = [t.weight for t in problem.objective.terms] + [0.0] * len(problem.limits)
    return np.array([weights[block.term] for block in problem.blocks])


def two_sided(problem: Problem) -> Floats:
    """Return the weights of the neutrality terms of two sides, which have one theta each."""
    return term_weights(problem)[[block.side == 1 for block in problem.blocks]]


def one_sided(problem: Problem) -> int:
    """Return how many neutrality terms are one block alone."""
    terms = problem.objective.every_term
    return sum(block.side == 0 and terms[block.term].kind == "neutrality" for block in problem.blocks)


def shares(blocks: Sized, thetas: Floats) -> Floats:
    """Return the share of each block in its term: theta for C+, 1 - theta for C-, 1 for a block alone."""
    pairs = np.column_stack([thetas, 1 - thetas]).ravel()
    return np.concatenate([np.ones(len(blocks) - len(pairs)), pairs])


def scaled_weights(problem: Problem, thetas: Floats) -> list[Floats]:
    """Return the weights of each block's rows at fixed theta: factor * share * weights."""
    scales = term_weights(problem) * shares(problem.blocks, thetas)
    return [scale * block.weights for scale, block in zip(scales, problem.blocks, strict=True)]


def weighted_duals(problem: Problem, rows: Floats, thetas: Floats) -> Floats:
    """Return c, (n,): the sum over blocks of scaled weight * target * dual variable."""
    weights = scaled_weights(problem, thetas)
    return sum(
        (w * block.targets * row for w, block, row in zip(weights, problem.blocks, rows, strict=True)),
        start=np.zeros(problem.hypothesis.n),
    )


def value_at_zero(problem: Problem) -> float:
    """Return the objective of f = 0, from the atoms' values at 0."""
    blocks = zip(term_weights(problem), problem.blocks, strict=True)  # both sides of a term are equal there
    total = sum(f * float(b.weights.sum()) * b.atom.facts.at_zero for f, b in blocks if b.side >= 0)
    return float(total) / problem.divisor


def limit_values(problem: Problem, scores: Floats) -> Floats:
    """Return C_k of each limit C_k <= t_k at the scores."""
    first = len(problem.objective.terms)
    values = np.full(len(problem.limits), -np.inf)
    for block in problem.blocks:
        if block.term >= first:
            k = block.term - first
            values[k] = max(values[k], block.total(scores) / problem.divisor)
    return values


@dataclass(frozen=True)
class TermValue:
    """One term at a hypothesis.

    Attributes
    ----------
    label : str
        The term as it is written.
    kind : {"risk", "regularizer", "neutrality"}
        The kind of term.
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
        rest = iter(thetas)
        terms = (t if t.plus is None else replace(t, theta=float(next(rest))) for t in self.terms)
        return replace(self, terms=tuple(terms))

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
    """Return the value of an objective from those of its parts.

    Parameters
    ----------
    objective : Objective
        The terms and their weights.
    sums : dict
        B(f) of each block, by (term, side).
    penalty : callable
        From a regularizer to its value.

    Returns
    -------
    ObjectiveValue

    """
    terms = []
    for number, weighted in enumerate(objective.terms):
        term = weighted.term
        label = repr(term), term.kind, weighted.weight
        if isinstance(term, Regularizer):
            terms.append(TermValue(*label, penalty(term)))
        elif (number, 0) in sums:
            terms.append(TermValue(*label, sums[number, 0], theta=getattr(term, "theta", None)))
        else:
            plus, minus = sums[number, 1], sums[number, -1]
            terms.append(TermValue(*label, max(plus, minus), plus, minus))
    # A term of weight 0 adds 0, even where its value overflows.
    return ObjectiveValue(float(sum(t.weight * t.value for t in terms if t.weight)), tuple(terms))
