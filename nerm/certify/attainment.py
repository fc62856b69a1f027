"""Whether an optimum is attained, or the risk falls for ever along a direction that costs nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nerm.certify.feasibility import Conditions
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.atoms.margin import MarginFunction
    from nerm.model.problem import Problem

LARGEST = 2_000_000  # rows times directions up to which it is looked for
NOT_ATTAINED = (
    "no hypothesis attains the optimum: some direction that no regularizer punishes separates the rows, and along it "
    "the objective falls for ever"
)


def attained(problem: Problem, free: Floats) -> bool:
    """Whether nothing is known against a minimiser, by a linear program over the directions (w, b), w in span of free.

    Along a direction no term of the objective may rise in the end: with slopes [low, high] of an atom far
    away that is target * f >= 0 where high = 0 and low < 0, <= 0 where low = 0, and = 0 where both differ
    from 0. If on one row an atom that nowhere reaches its infimum (logistic, exponential) still falls, a
    minimiser could always be improved.
    """
    k = free.shape[1] + problem.intercept
    if k == 0 or k * problem.hypothesis.n > LARGEST:
        return True
    F = Conditions.of(problem, free).features if free.shape[1] else np.zeros((problem.hypothesis.n, 0))
    F = np.asarray(F.toarray() if hasattr(F, "toarray") else F)
    F = np.column_stack([F, np.ones((len(F), int(problem.intercept)))])
    F = F / np.maximum(np.abs(F).max(axis=0), np.finfo(float).tiny)
    rising, level, gain = [], [], np.zeros(k)
    for factor, block in zip(problem.factors, problem.blocks, strict=True):
        low, high = block.atom.facts.slopes
        rows = np.flatnonzero(factor * block.weights * block.targets)
        margins = block.targets[rows, None] * F[rows]
        if low < 0 < high or low == high != 0:  # of a straight line only its sum must not move
            level.append(margins if low < high else (block.weights[rows] @ margins)[None, :])
        elif low > 0 or high < 0:
            return True
        else:
            rising.append(margins if high == 0 else -margins)
            gain += _endless(block.atom) * rising[-1].sum(axis=0)
    return not gain.any() or _largest(gain, rising, level) <= 1e-7


def _endless(atom: MarginFunction) -> bool:
    """Whether the infimum lies at infinity only."""
    return bool(np.min(atom.value(np.array([-30.0, 30.0]))) > atom.facts.minimum)


def _largest(gain: Floats, rising: list[Floats], level: list[Floats]) -> float:
    """Return the largest gain of a direction in the unit box with all of `rising` at least 0 and all of `level` 0."""
    from scipy.optimize import linprog

    found = linprog(
        -gain / len(np.vstack(rising)),
        A_ub=-np.vstack(rising),
        b_ub=np.zeros(len(np.vstack(rising))),
        A_eq=np.vstack(level) if level else None,
        b_eq=np.zeros(len(np.vstack(level))) if level else None,
        bounds=(-1.0, 1.0),
    )
    return float(-found.fun) if found.status == 0 else 0.0
