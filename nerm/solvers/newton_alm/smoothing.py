"""Blocks smoothed around multipliers, as a proximal point step on the dual sees them.

For phi*(u) = a u + (q/2) u^2 on [low, high] and a centre U the step maximises over u

::

    u m - phi*(u) - (r/2) (u - U)^2,    r = max(tau - q, 0),
    so  u = clip((m - a + r U) / (q + r), low, high).

The maximum is smooth in m, also where phi has a kink, and equals phi where u = U. Functions with q >= tau and
those with a curvature of their own (logistic) stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numba
import numpy as np

from nerm.model.blocks import Block
from nerm.typing import Floats


class Smoothed(NamedTuple):
    """Smoothed blocks at some scores.

    Attributes
    ----------
    values, conjugates
        sum_i B_i phi_r(m_i) and sum_i B_i phi*(u_i) of each block, (J,).
    u, curvature
        First and second derivative of phi_r, (J, n).
    extended
        u without its bounds in rows whose centre lies between them, (J, n): the line on which a row at a kink
        moves.
    """

    values: Floats
    conjugates: Floats
    u: Floats
    curvature: Floats
    extended: Floats


class Blocks:
    """Targets and weights of blocks, and their smoothed values at any scores.

    Attributes
    ----------
    targets, slopes
        t and B t, (J, n); both 0 in rows without weight and in blocks whose factor is 0.
    """

    def __init__(self, blocks: Sequence[Block], factors: Floats) -> None:
        self.blocks = tuple(blocks)
        self.weights = np.stack([block.weights for block in blocks])
        active = factors[:, None] * self.weights > 0
        self.targets = np.where(active, np.stack([block.targets for block in blocks]), 0.0)
        self.slopes = self.weights * self.targets

    def values(self, scores: Floats) -> Floats:
        """Return sum_i B_i phi(m_i) of each block."""
        margins = self.targets * scores
        return np.array(
            [w @ b.atom.value(m) for w, b, m in zip(self.weights, self.blocks, margins, strict=True)]
        )

    def smoothed(self, scores: Floats, centre: Floats, tau: float, *, extend: bool = False) -> Smoothed:
        """Return the blocks smoothed around a centre; with `extend`, free rows may leave their bounds."""
        values = np.zeros(len(self.blocks))
        conjugates = np.zeros(len(self.blocks))
        u, curvature, extended = np.empty((3, *centre.shape))
        for j, block in enumerate(self.blocks):
            m = self.targets[j] * scores
            w = self.weights[j]
            facts = block.atom.facts
            if facts.quadratic is None:
                value = block.atom.value(m)
                u[j] = block.atom.subgradient(m)[0]
                extended[j] = u[j]
                curvature[j] = block.atom.curvature(m)
                values[j] = w @ value
                conjugates[j] = w @ (u[j] * m - value)
            else:
                a, q, low, high = map(float, (*facts.quadratic, *facts.slopes))
                r = max(tau - q, 0.0)
                parts = u[j], curvature[j], extended[j]
                sums = _quadratic(m, w, centre[j], a, q, r, low, high, extend and r > 0, *parts)
                values[j], conjugates[j] = sums
        return Smoothed(values, conjugates, u, curvature, extended)


def multipliers(blocks: Sequence[Block], scores: Floats) -> Floats:
    """Return the middle of the subgradients of blocks at these scores, (J, n)."""
    return np.stack(
        [
            np.mean(b.atom.subgradient(np.where(b.weights > 0, b.targets, 0.0) * scores), axis=0)
            for b in blocks
        ]
    )


@numba.njit(cache=True, nogil=True)
def _quadratic(m, w, centre, a, q, r, low, high, extend, u, curvature, extended):  # type: ignore[no-untyped-def]
    """Fill in u, curvature and extended; return the sums of values and conjugates."""
    value = 0.0
    conjugates = 0.0
    for i in range(len(m)):
        z = (m[i] - a + r * centre[i]) / (q + r)
        u[i] = min(max(z, low), high)
        at = centre[i] if extend else z
        free = low < at < high
        curvature[i] = 1.0 / (q + r) if free else 0.0
        extended[i] = z if free and extend else u[i]
        conjugate = u[i] * (a + 0.5 * q * u[i])
        value += w[i] * (u[i] * m[i] - conjugate - 0.5 * r * (u[i] - centre[i]) ** 2)
        conjugates += w[i] * conjugate
    return value, conjugates
