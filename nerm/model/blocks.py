"""Blocks: the sums over rows that an objective consists of, and the value of the objective.

::

    P(f) = Omega + sum over terms of    weight * B(f)                 for a term of one block, such as a risk
                                        weight * max(B+(f), B-(f))    for a two-sided neutrality term
    B(f) = (1/n) sum_i weights_i atom(targets_i f_i - offsets_i)

Blocks are made once from terms and data. Values, certificates, the cvxpy model and all solvers read them.
Along a path over eta only the weights of the terms change.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

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
    """The sum (1/n) sum_i weights_i atom(targets_i f_i - offsets_i), without the weight of its term.

    Attributes
    ----------
    atom : MarginFunction
        The loss phi or the surrogate psi.
    weights, targets : (n,) arrays
        For a risk, the sample weights s_i and the labels y_i; for one side of a neutrality term, the weights
        u_i and the signed viewpoint v_i or -v_i.
    term : int
        The index of the block's term in `problem.objective.terms`; limits are numbered after the terms.
    side : {0, 1, -1}
        +1 and -1 for the blocks C+ and C- of a two-sided neutrality term max(C+, C-); 0 if the block is the
        whole term, such as a risk or a one-sided neutrality term.
    offsets : (n,) array
        0, but for the risk of a regression: its residual y - f has the targets -1 and the offsets -y.
    """

    atom: MarginFunction
    weights: Floats
    targets: Floats
    term: int
    side: int
    offsets: Any = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "offsets", np.broadcast_to(self.offsets, self.targets.shape))

    def margins(self, scores: Floats) -> Floats:
        """Return the arguments of the atom, targets_i f_i - offsets_i, (n,)."""
        return self.targets * scores - self.offsets

    @cached_property
    def at_zero(self) -> float:
        """The sum of the block at f = 0."""
        at_zero = self.atom.value(-self.offsets if self.offsets.any() else np.zeros(1))
        return weigh(self.weights, np.where(self.weights > 0, at_zero, 0.0))

    def conjugates(self, row: Floats) -> Floats:
        """Return the conjugate of f_i -> atom(targets_i f_i - offsets_i), (n,).

        It is atom*(u_i) + u_i offsets_i at u = -row; `row`, (n,), holds the multipliers of the block.
        """
        return self.atom.conjugate(-row) - row * self.offsets

    def at(self, rows: Any) -> Block:
        """Return the block restricted to some rows."""
        weights, targets, offsets = (part[rows] for part in (self.weights, self.targets, self.offsets))
        return replace(self, weights=weights, targets=targets, offsets=offsets)

    @property
    def domain(self) -> tuple[float, float]:
        """The interval (low, high) of the dual variables: minus the slopes of the atom."""
        low, high = self.atom.facts.slopes
        return -high, -low

    def total(self, scores: Floats) -> float:
        """Return sum_i weights_i atom(targets_i f_i - offsets_i).

        A row of weight 0 adds 0, even where the atom is infinite.
        """
        values = self.atom.value(self.margins(scores))
        return weigh(self.weights, np.where(self.weights > 0, values, 0.0))


def weigh(weights: Floats, values: Floats) -> float:
    """Return sum_i weights_i values_i by pairwise summation, which is more accurate than BLAS."""
    return float(np.sum(weights * values))


def row_squares(X: Any, scales: Floats | None = None) -> Floats:
    """Return ||x_i||^2 for every dense or sparse row, (n,); each column is first multiplied by its scale."""
    if not sp.issparse(X):
        X = X if scales is None else X * scales
        return np.asarray(np.einsum("ij,ij->i", X, X))
    data = X.data if scales is None else X.data * scales[X.indices]
    return np.asarray(sp.csr_array((data**2, X.indices, X.indptr), shape=X.shape).sum(axis=1)).ravel()


def sum_error(k: int) -> float:
    """Bound the rounding error of a sum of k products, relative to the sum of their absolute values.

    The bound grows like sqrt(k), because errors of both signs partly cancel; it holds with a probability
    close to 1 (Higham and Mary 2019).

    >>> sum_error(0) < sum_error(100) < 1e-14
    True
    """
    return EPS * (2.0 + k**0.5)


def make_blocks(
    objective: Objective, y: Floats, viewpoints: Mapping[str, Floats], sample_weight: Floats
) -> tuple[Block, ...]:
    """Return the blocks of all terms and limits of an objective, in the order of `in_order`."""
    blocks = list[Block]()
    for number, term in enumerate(objective.every_term):
        if isinstance(term, Risk):
            given = (-np.ones(len(y)), -y) if term.loss.of_residual else (y, 0.0)
            weights = term.row_weights(y, sample_weight)
            blocks.append(Block(term.loss, weights, given[0], number, 0, given[1]))
        elif isinstance(term, Neutrality):
            v = viewpoints[viewpoint_of(term, viewpoints)]
            u = resolve(term.weights, y, v)
            if term.theta is None:
                blocks += [Block(term.surrogate, u, side * v, number, side) for side in (1, -1)]
            else:
                blocks.append(Block(term.surrogate, u, (2 * term.theta - 1) * v, number, 0))
    return in_order(blocks, objective.every_term)


def in_order(blocks: Iterable[Block], terms: Sequence[Term]) -> tuple[Block, ...]:
    """Sort blocks in the order of the dual variables: risks, one-sided terms, then the pairs C+, C-."""
    return tuple(sorted(blocks, key=lambda block: (block.side != 0, terms[block.term].kind != "risk")))


def term_weights(problem: Problem) -> Floats:
    """Return the weight of each block's term, (number of blocks,); 0 for a limit."""
    weights = [t.weight for t in problem.objective.terms] + [0.0] * len(problem.limits)
    return np.array([weights[block.term] for block in problem.blocks])


def two_sided(problem: Problem) -> Floats:
    """Return the weight of each two-sided neutrality term; each of these terms has one theta."""
    pairs = zip(problem.blocks, term_weights(problem), strict=True)
    return np.array(list({block.term: weight for block, weight in pairs if block.side}.values()))


def pair_numbers(blocks: Sequence[Block]) -> list[int]:
    """Return for each block the number of its two-sided term, 0 .. K - 1, or -1 for a whole term."""
    order = list(dict.fromkeys(block.term for block in blocks if block.side))
    return [order.index(block.term) if block.side else -1 for block in blocks]


def one_sided(problem: Problem) -> int:
    """Return the number of one-sided neutrality terms."""
    terms = problem.objective.every_term
    return sum(block.side == 0 and terms[block.term].kind == "neutrality" for block in problem.blocks)


def shares(blocks: Sequence[Block], thetas: Floats) -> Floats:
    """Return the factor of each block inside its term, (number of blocks,).

    `thetas` holds one theta per two-sided term. The factor is theta for C+, 1 - theta for C-, and 1 for a
    block that is a whole term.
    """
    pairs = zip(blocks, pair_numbers(blocks), strict=True)
    found = [1.0 if k < 0 else thetas[k] if block.side > 0 else 1 - thetas[k] for block, k in pairs]
    return np.array(found, dtype=float)


def scaled_weights(problem: Problem, thetas: Floats) -> list[Floats]:
    """Return one (n,) array per block: weight of its term * `shares` at the given thetas * row weights."""
    scales = term_weights(problem) * shares(problem.blocks, thetas)
    return [scale * block.weights for scale, block in zip(scales, problem.blocks, strict=True)]


def weighted_duals(problem: Problem, rows: Floats, thetas: Floats) -> Floats:
    """Return the weighted dual c_i of every row, (n,).

    c_i is the sum over blocks of scaled weight * target * dual variable. `rows` holds the dual variables, one
    row per block, and `scaled_weights` computes the weights from `thetas`.
    """
    weights = scaled_weights(problem, thetas)
    return sum(
        (w * block.targets * row for w, block, row in zip(weights, problem.blocks, rows, strict=True)),
        start=np.zeros(problem.hypothesis.n),
    )


def value_at_zero(problem: Problem) -> float:
    """Return the value of the objective at f = 0."""
    blocks = zip(term_weights(problem), problem.blocks, strict=True)  # C+ = C- at f = 0: count C+ only
    total = sum(f * b.at_zero for f, b in blocks if b.side >= 0 and f)
    return float(total) / problem.divisor


def score_unit(blocks: Iterable[Block], *, intercept: bool) -> tuple[float, float]:
    """Return a typical score and the typical distance of scores from it, from which solvers start.

    They are 0 and 1, the scale of a margin, or for a regression the median of y (0 without an intercept) and
    the distance within which 9 of 10 values lie.
    """
    shifts = [b.offsets / b.targets for b in blocks if b.offsets.any()]
    if not shifts:
        return 0.0, 1.0
    y = np.concatenate(shifts)
    level = float(np.median(y)) if intercept else 0.0
    return level, float(np.quantile(np.abs(y - level), 0.9)) or abs(level) or 1.0


def limit_values(problem: Problem, scores: Floats) -> Floats:
    """Return C_k at the given scores for each limit C_k <= t_k, (number of limits,)."""
    first = len(problem.objective.terms)
    sums = by_side(problem.blocks, (block.total(scores) for block in problem.blocks))
    limits = range(first, first + len(problem.limits))
    return np.array([max(sums[at] for at in sums if at[0] == k) for k in limits]) / problem.divisor


@dataclass(frozen=True)
class TermValue:
    """The value of one term at a hypothesis.

    Attributes
    ----------
    label : str
        The term as it is written.
    kind : {"risk", "regularizer", "neutrality"}
        The kind of term.
    weight, value : float
        The weight of the term, and its value without the weight.
    plus, minus : float or None
        C+ and C- of a two-sided neutrality term; None for other terms.
    theta : float or None
        The weight of C+ in a neutrality term; None if it is not known.

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
        One entry per term, in the order of the objective.

    """

    total: float
    terms: tuple[TermValue, ...]

    def __float__(self) -> float:
        return self.total

    def with_thetas(self, thetas: Iterable[float]) -> ObjectiveValue:
        """Return a copy in which the two-sided neutrality terms have these thetas, in their order.

        Theta is the weight of C+ in a term (`TermValue`).
        """
        rest = iter(thetas)
        terms = (t if t.plus is None else replace(t, theta=float(next(rest))) for t in self.terms)
        return replace(self, terms=tuple(terms))

    @property
    def thetas(self) -> list[float]:
        """The theta of each two-sided neutrality term, in the order of the terms; nan if not known."""
        return [float("nan") if t.theta is None else t.theta for t in self.terms if t.plus is not None]

    def _sum(self, kind: str) -> float:
        return sum(t.weight * t.value for t in self.terms if t.kind == kind)

    @property
    def risk(self) -> float:
        """The weighted sum of the risk terms."""
        return self._sum("risk")

    @property
    def regularization(self) -> float:
        """The weighted sum of the regularizers."""
        return self._sum("regularizer")

    @property
    def neutrality(self) -> float:
        """The weighted sum of the neutrality terms."""
        return self._sum("neutrality")

    def __repr__(self) -> str:
        width = max(len(t.label) for t in self.terms)
        lines = []
        for t in self.terms:
            sides = "" if t.plus is None else f"   (C+ {t.plus:.6g}, C- {t.minus:.6g})"
            lines.append(f"{t.label:<{width}}  {t.weight:>8.4g} × {t.value:<12.8g}{sides}".rstrip())
        return "\n".join([*lines, f"{'total':<{width}}  {'':>8}   {self.total:.10g}"])


def by_side(blocks: Iterable[Block], values: Iterable[Any]) -> dict[tuple[int, int], Any]:
    """Add up values of blocks by (term, side): a term or a side may consist of several blocks."""
    sums = dict[tuple[int, int], Any]()
    for block, value in zip(blocks, values, strict=True):
        key = block.term, block.side
        sums[key] = sums.get(key, 0.0) + value
    return sums


def objective_value(
    objective: Objective, sums: Mapping[tuple[int, int], float], penalty: Callable[[Regularizer], float]
) -> ObjectiveValue:
    """Compute the value of an objective from the values of its blocks and regularizers.

    Parameters
    ----------
    objective : Objective
        The terms and their weights.
    sums : dict
        The value B(f) of each side of a term, as returned by `by_side`.
    penalty : callable
        Maps a regularizer to its value.

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
    # A term of weight 0 adds 0 even if its value is infinite.
    return ObjectiveValue(float(sum(t.weight * t.value for t in terms if t.weight)), tuple(terms))
