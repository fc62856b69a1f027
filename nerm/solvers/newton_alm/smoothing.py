"""Blocks smoothed around multipliers: what a step of the proximal point method on the dual sees of them.

For phi*(u) = a u + (q/2) u^2 on [low, high] and a centre U the step maximises over u

    u m - phi*(u) - (r/2) (u - U)^2,     so     u = clip((m - a + r U) / (q + r), low, high),     r = max(tau - q, 0),

which is smooth in m where phi has a kink, and touches phi where u = U. Functions that are curved enough (q >=
tau) and those with a curvature of their own (logistic) stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np

from nerm.model.blocks import Block
from nerm.typing import Floats


class Smoothed(NamedTuple):
    """Values sum_i B_i phi_r(m_i), (J,), and multipliers, curvatures, and B phi* behind them, (J, n) each but the last.

    `beyond` is u without its bounds where the centre lies between them: the line on which a row at a kink
    moves.
    """

    values: Floats
    u: Floats
    curvature: Floats
    beyond: Floats
    settled: Floats


class Blocks:
    """Targets and weights of blocks, and their smoothed values at any scores.

    Attributes
    ----------
    weights, targets
        (J, n); without weight there is no target.
    """

    def __init__(self, blocks: Sequence[Block]) -> None:
        self.blocks = tuple(blocks)
        self.weights = np.stack([block.weights for block in blocks])
        self.targets = np.stack([np.where(block.weights > 0, block.targets, 0.0) for block in blocks])
        self.pulls = self.weights * self.targets

    @property
    def pairs(self) -> Floats:
        """Whether a block is the first side of a term of two, (J,)."""
        return np.array([block.side > 0 for block in self.blocks])

    def values(self, scores: Floats) -> Floats:
        """Return sum_i B_i phi(m_i) of each block."""
        margins = self.targets * scores
        return np.array(
            [w @ b.atom.value(m) for w, b, m in zip(self.weights, self.blocks, margins, strict=True)]
        )

    def multipliers(self, scores: Floats) -> Floats:
        """Return the middle of the subgradients at these scores, (J, n)."""
        margins = self.targets * scores
        return np.stack(
            [np.mean(b.atom.subgradient(m), axis=0) for b, m in zip(self.blocks, margins, strict=True)]
        )

    def smoothed(self, scores: Floats, centre: Floats, tau: float, *, line: bool = False) -> Smoothed:
        """Return the blocks smoothed around a centre; with `line`, rows whose centre is free move on their line."""
        values, settled = np.zeros((2, len(self.blocks)))
        u, curvature, beyond = np.empty((3, *centre.shape))
        for j, block in enumerate(self.blocks):
            m, w, facts = self.targets[j] * scores, self.weights[j], block.atom.facts
            if facts.quadratic is None:
                value = block.atom.value(m)
                u[j] = beyond[j] = block.atom.subgradient(m)[0]
                curvature[j] = block.atom.curvature(m)
                values[j], settled[j] = w @ value, w @ (u[j] * m - value)
                continue
            a, q, low, high = map(float, (*facts.quadratic, *facts.slopes))
            r, parts = max(tau - q, 0.0), (u[j], curvature[j], beyond[j])
            values[j], settled[j] = _quadratic(m, w, centre[j], a, q, r, low, high, line and r > 0, *parts)
        return Smoothed(values, u, curvature, beyond, settled)


@numba.njit(cache=True, nogil=True)
def _quadratic(m, w, centre, a, q, r, low, high, line, u, curvature, beyond):  # type: ignore[no-untyped-def]
    """Fill in u, curvature and beyond for phi*(u) = a u + (q/2) u^2; return what values and settled add up to."""
    value, settled, curved = 0.0, 0.0, 1.0 / (q + r)
    for i in range(len(m)):
        z = (m[i] - a + r * centre[i]) / (q + r)
        u[i] = min(max(z, low), high)
        at = centre[i] if line else z
        free = low < at < high
        curvature[i] = curved if free else 0.0
        beyond[i] = z if free and line else u[i]
        conjugate = u[i] * (a + 0.5 * q * u[i])
        value += w[i] * (u[i] * m[i] - conjugate - 0.5 * r * (u[i] - centre[i]) ** 2)
        settled += w[i] * conjugate
    return value, settled
