"""A start from few rows: the problem on a share of them, weighted up, foretells the scores of all.

Far from the optimum all rows are near a kink, and a Newton system is as large as they are many. A quarter of
the rows says which ones will be: most of the others have settled when all are looked at for the first time.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from nerm.solvers import clock
from nerm.solvers.newton_alm.kernel_products import KernelProducts
from nerm.solvers.newton_alm.method import CONSTANTS, AugmentedLagrangian, Iterate
from nerm.solvers.newton_alm.smoothing import Blocks
from nerm.typing import Floats

FEWEST = 500  # rows from twice as many of which on it pays to look at fewer
SHARE = 4  # one row in so many
ACCURACY = 1e-2
TAU = 0.1  # the width of kinks for a start from there
SETTLED = 0.5  # of the rows at kinks as many leave them as four times as many are looked at


def from_few_rows(method: AugmentedLagrangian, deadline: float = clock.NEVER) -> tuple[Iterate, float]:
    """Return where to start on a kernel problem, and tau there."""
    rows = method.rows
    assert isinstance(rows, KernelProducts)
    n = rows.shape[0]
    few = max(FEWEST, n // SHARE)
    which = np.sort(np.random.default_rng(0).permutation(n)[:few])
    masses = [(block.weights.sum(), block.weights[which].sum()) for block in method.blocks.blocks]
    if n < 2 * FEWEST or not all(some > 0 for _, some in masses):
        return method.nothing(), CONSTANTS.cold
    blocks = [
        replace(block, weights=block.weights[which] * (mass / some), targets=block.targets[which])
        for block, (mass, some) in zip(method.blocks.blocks, masses, strict=True)
    ]
    products = KernelProducts(rows.hypothesis.some(which), intercept=rows.intercept, single=rows.held.single)
    smaller = AugmentedLagrangian(blocks, method.factors, products, method.lam)
    found, _ = smaller.run(*from_few_rows(smaller, deadline), ACCURACY, deadline)
    h = rows.expansion(which, products.coef(found.h), float(found.h[-1]))
    scores = rows.times(h)
    u = _near_kinks(method.blocks, scores, [SETTLED * _share_at_kinks(u) for u in found.u])
    return replace(method.at(h, scores), u=u, thetas=found.thetas), TAU


def _share_at_kinks(u: Floats) -> float:
    return float(np.mean((u > u.min()) & (u < u.max())))


def _near_kinks(blocks: Blocks, scores: Floats, shares: list[float]) -> Floats:
    """Return multipliers at these scores where each block has a share of its rows at kinks: those nearest to them.

    The scores are a guess. Multipliers that fall from one end to the other across a kink let the first Newton
    step move the rows around it; at an end they would have to be brought back one after the other.
    """
    u = blocks.multipliers(scores)
    for j, (block, share) in enumerate(zip(blocks.blocks, shares, strict=True)):
        facts = block.atom.facts
        if facts.quadratic is None or not np.isfinite(facts.slopes).all():
            continue
        (kink, _), (low, high) = facts.quadratic, facts.slopes
        distance = blocks.targets[j] * scores - kink
        width = float(np.quantile(np.abs(distance), share))
        if width > 0:
            u[j] = np.clip(0.5 * (low + high) + 0.5 * (high - low) * distance / width, low, high)
    return u
