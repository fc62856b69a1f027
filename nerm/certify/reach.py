"""How large coefficients can be where the objective is not above a given value.

Omega* charges a bound for whatever is left of sum c x, by what *any* w could gain from it. With columns near
1e10 what is left is rounding, and what a huge w could gain from that is more than the whole objective. But
such a w has scores for which the losses ask more than there is: with `|f_i| <= F_i` and X of full rank, `|w|
<= |X^+| F`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from nerm.model.blocks import Block
from nerm.model.hypothesis import KernelHypothesis
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.model.problem import Problem

TANGENTS = np.array(
    [-10.0, -1.0, 0.0, 1.0, 3.0, 10.0]
)  # margins at which a convex function is held from below
RANK = 1e-10  # of the largest singular value: the smallest with which X counts as of full rank
LARGEST = 2_000_000  # rows times coefficients up to which it is asked
SAFE = 2.0  # times what comes out, for the rounding of X^+


def coefficient_reach(problem: Problem, value: float) -> Floats | None:
    """Return W, (d,): `|w_j| <= W_j` for every hypothesis whose objective is at most `value`; None where unknown.

    Coefficients of columns of zeros, which nobody's score knows, count as 0.

    >>> import nerm
    >>> X, y = np.array([[1e12], [-1e12]]), [1, -1]
    >>> problem = (nerm.Risk(nerm.Squared()) + 1e-9 * nerm.SquaredL2()).on(X, y, intercept=False)
    >>> bool(1e-12 < coefficient_reach(problem, 1.0)[0] < 1e-10)
    True
    """
    hypothesis = problem.hypothesis
    if (
        isinstance(hypothesis, KernelHypothesis)
        or problem.objective.constraints
        or hypothesis.n * hypothesis.size > LARGEST
    ):
        return None
    low, high = score_range(problem, value)
    size = np.maximum(np.abs(low), np.abs(high))
    known = np.isfinite(size)
    X = hypothesis.features(balanced=problem.intercept)  # what all rows share is the intercept's
    X = np.asarray(X.toarray() if sp.issparse(X) else X)
    scale = np.abs(X).max(axis=0)
    used = scale > 0
    features = np.column_stack(
        [X[known][:, used] / scale[used], np.ones((known.sum(), int(problem.intercept)))]
    )
    if not used.any() or features.shape[0] < features.shape[1]:
        return None
    left, values, right = np.linalg.svd(features, full_matrices=False)
    if not values[-1] > RANK * values[0]:
        return None
    reach = np.zeros(len(scale))
    solved = np.abs((right.T / values) @ left.T) @ size[known]
    reach[used] = SAFE * solved[: used.sum()] / scale[used]
    return reach if np.isfinite(reach).all() else None


def score_range(problem: Problem, value: float) -> tuple[Floats, Floats]:
    """Return the least and the largest score of each row, (n,) each, where the objective is at most `value`.

    No term is below its minimum, and one of two sides not below psi(0) sum u / n. What `value` leaves above
    these, a single row may use up: `atom(margin) <= level` bounds its margin by tangents of the atom.
    """
    low, high = np.full(problem.hypothesis.n, -np.inf), np.full(problem.hypothesis.n, np.inf)
    pairs = [
        (factor, block) for factor, block in zip(problem.factors, problem.blocks, strict=True) if factor > 0
    ]
    lows = [factor * _least(block) / problem.divisor for factor, block in pairs if block.side >= 0]
    spare = (value - sum(lows)) + 1e-6 * (abs(value) + sum(map(abs, lows)))
    if not np.isfinite(spare):
        return low, high
    for factor, block in pairs:
        rows, minimum = np.flatnonzero(block.weights * block.targets), block.atom.facts.minimum
        if not np.isfinite(minimum):
            continue
        above = _least(block) - minimum * float(block.weights.sum()) + problem.divisor * spare / factor
        down, up = _level_set(block, minimum + above / block.weights[rows])
        ends = np.stack([down, up]) / block.targets[rows]
        low[rows], high[rows] = (
            np.maximum(low[rows], ends.min(axis=0)),
            np.minimum(high[rows], ends.max(axis=0)),
        )
    return low, high


def _least(block: Block) -> float:
    """Return the least value of sum_i weights_i atom(targets_i f_i), or of the larger of two such sides."""
    return float(block.weights.sum()) * (block.atom.facts.at_zero if block.side else block.atom.facts.minimum)


def _level_set(block: Block, level: Floats) -> tuple[Floats, Floats]:
    """Return margins, (m,) each, between which atom(margin) <= level, by tangents."""
    values, (falling, rising) = block.atom.value(TANGENTS), block.atom.subgradient(TANGENTS)
    down, up = np.full(len(level), -np.inf), np.full(len(level), np.inf)
    for at, value, left, right in zip(TANGENTS, values, falling, rising, strict=True):
        if left < 0:
            down = np.maximum(down, at + (level - value) / left)
        if right > 0:
            up = np.minimum(up, at + (level - value) / right)
    return down, up
