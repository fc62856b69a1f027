"""The separable part of an objective as blocks: what the certificate and the recovery of multipliers both speak of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from nerm.atoms.margin import MarginFunction
from nerm.multipliers import Multipliers

if TYPE_CHECKING:
    from nerm.problem import Problem


@dataclass(frozen=True, eq=False)
class Block:
    """scale_i * atom(target_i f_i): a risk, or one side of a neutrality term with theta folded into the scale."""

    atom: MarginFunction
    scale: np.ndarray
    target: np.ndarray

    @property
    def domain(self) -> tuple[float, float]:
        """The interval that a multiplier may take: minus the slopes of the atom."""
        low, high = self.atom.facts.slopes
        return -high, -low


def make_blocks(problem: Problem, thetas: np.ndarray) -> list[Block]:
    """Return the separable part of the objective at fixed theta: risks, then all C+, then all C-."""
    risks = [Block(r.loss, r.weight * r.sample_weight, r.targets) for r in problem.risks]
    terms = list(zip(problem.neutralities, thetas, strict=True))
    plus = [Block(t.surrogate, theta * t.weight * t.sample_weight, t.viewpoint) for t, theta in terms]
    minus = [Block(t.surrogate, (1 - theta) * t.weight * t.sample_weight, -t.viewpoint) for t, theta in terms]
    return risks + plus + minus


def stack(multipliers: Multipliers) -> np.ndarray:
    """Return the multipliers with one row a block."""
    return np.concatenate([multipliers.alphas, multipliers.betas_plus, multipliers.betas_minus])


def unstack(problem: Problem, rows: np.ndarray, thetas: np.ndarray) -> Multipliers:
    """Return the rows of `stack` as multipliers again."""
    r, k = len(problem.risks), len(problem.neutralities)
    return Multipliers(rows[:r], rows[r : r + k], rows[r + k :], np.asarray(thetas, dtype=float))


def total_force(blocks: list[Block], rows: np.ndarray) -> np.ndarray:
    """Return c, the force of every sample on its score: the sum of scale * target * multiplier."""
    c = np.zeros(len(blocks[0].scale))
    for block, row in zip(blocks, rows, strict=True):
        c += block.scale * block.target * row
    return c
