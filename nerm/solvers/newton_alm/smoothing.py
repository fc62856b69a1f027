"""Smooth blocks around given multipliers, for a proximal point step on the dual.

Let an atom phi have the conjugate phi*(u) = a u + (q/2) u^2 on [low, high]. At the margin m, with the centre
U and the smoothing parameter tau, the smoothed value phi_r(m) is the maximum over u of

::

    u m - phi*(u) - (r/2) (u - U)^2,    r = max(tau - q, 0),
    so  u = clip((m - a + r U) / (q + r), low, high).

phi_r is differentiable in m, also where phi has a kink, and equals phi where u = U. Atoms with q >= tau, and
atoms whose conjugate is not quadratic (logistic), are not smoothed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from nerm.atoms.functions import STEEPEST
from nerm.model.blocks import Block, score_unit
from nerm.solvers.linalg.compiled import compiled
from nerm.typing import Floats


class Smoothed(NamedTuple):
    """Smoothed blocks at given scores: J blocks, n rows, margins m and row weights B.

    Attributes
    ----------
    values, conjugates
        sum_i B_i phi_r(m_i) and sum_i B_i (phi*(u_i) + u_i o_i) with offsets o of each block, (J,).
    u, curvature
        First and second derivative of phi_r in m, (J, n).
    extended
        u, (J, n). With `extend`, u is not clipped to [low, high] in rows whose centre is strictly inside.
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
        Targets t and products B t of row weight and target, (J, n). Both are 0 in rows of weight 0 and in
        blocks whose factor is 0.
    units
        The unit of tau in each block, (J,), see `block_units`.
    """

    def __init__(self, blocks: Sequence[Block], factors: Floats, units: Floats) -> None:
        self.blocks = tuple(blocks)
        self.weights = np.stack([block.weights for block in blocks])
        active = factors[:, None] * self.weights > 0
        self.targets = np.where(active, np.stack([block.targets for block in blocks]), 0.0)
        self.slopes = self.weights * self.targets
        self._offsets = [block.offsets if block.offsets.any() else 0.0 for block in blocks]
        self.units = units

    def middle(self) -> Floats:
        """Return multipliers in the middle of their domains, or of the part within [-1, 1], (J, n)."""
        slopes = [block.atom.facts.slopes for block in self.blocks]
        u = [np.clip(0.5 * (max(low, -1.0) + min(high, 1.0)), low, high) for low, high in slopes]
        return np.repeat(np.array(u)[:, None], self.targets.shape[1], axis=1)

    def values(self, scores: Floats) -> Floats:
        """Return sum_i B_i phi(m_i) of each block, without smoothing, (J,)."""
        rows = zip(self.weights, self.targets, self._offsets, self.blocks, strict=True)
        return np.array([w @ b.atom.value(t * scores - o) for w, t, o, b in rows])

    def smoothed(
        self, scores: Floats, centre: Floats, tau: float, *, extend: bool = False, only: Any = None
    ) -> Smoothed:
        """Return the blocks at `scores`, (n,), smoothed around the multipliers `centre`, (J, n).

        With `extend`, rows whose centre is strictly inside its bounds count as rows at a kink: they have
        curvature, and their multiplier in `extended` is not clipped. `only` is a mask of the blocks that are
        evaluated, by default all; the others are left 0.
        """
        values = np.zeros(len(self.blocks))
        conjugates = np.zeros(len(self.blocks))
        u, curvature, extended = np.zeros((3, *centre.shape))
        for j, block in enumerate(self.blocks):
            if only is not None and not only[j]:
                continue
            offsets = self._offsets[j]
            m = self.targets[j] * scores - offsets
            w = self.weights[j]
            facts = block.atom.facts
            if facts.quadratic is None:
                jet = block.atom.derived.jet(m)
                u[j] = extended[j] = jet.slope
                curvature[j] = np.minimum(jet.curvature, STEEPEST)
                values[j] = w @ jet.value
                conjugates[j] = w @ (u[j] * m - jet.value)
            else:
                a, q, low, high = map(float, (*facts.quadratic, *facts.slopes))
                r = max(tau * self.units[j] - q, 0.0)
                parts = u[j], curvature[j], extended[j]
                sums = _quadratic(m, w, centre[j], a, q, r, low, high, extend and r > 0, *parts)
                values[j], conjugates[j] = sums
            conjugates[j] += w @ (offsets * u[j])
        return Smoothed(values, conjugates, u, curvature, extended)


def block_units(blocks: Sequence[Block], *, intercept: bool) -> tuple[float, Floats]:
    """Return the typical score, and the unit of tau in each block, (J,).

    The unit is a typical margin divided by a typical slope of the atom. All units are 1 if no block has
    offsets, because margins then have the scale 1.
    """
    level, unit = score_unit(blocks, intercept=intercept)
    if not any(block.offsets.any() for block in blocks):
        return level, np.ones(len(blocks))
    sizes = [unit * float(np.abs(block.targets).max()) for block in blocks]
    slopes = [np.abs(b.atom.subgradient(np.array([-m, m]))).max() for m, b in zip(sizes, blocks, strict=True)]
    return level, np.array(sizes) / np.maximum(slopes, np.finfo(float).tiny)


def multipliers(blocks: Sequence[Block], scores: Floats) -> Floats:
    """Return the midpoint of the subdifferential per block and row, (J, n).

    The subdifferential is that of the atom at the margins of these scores, (n,).
    """
    return np.stack(
        [np.mean(b.atom.subgradient(np.where(b.weights > 0, b.margins(scores), 0.0)), axis=0) for b in blocks]
    )


@compiled()
def _quadratic(m, w, centre, a, q, r, low, high, extend, u, curvature, extended):  # type: ignore[no-untyped-def]
    """Write u, curvature and extended of one block in place, (n,) each.

    Return sum_i w_i phi_r(m_i) and sum_i w_i phi*(u_i).
    """
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
