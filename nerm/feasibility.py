"""Multipliers made feasible: inside their domains, and with sum c = 0 where the intercept is free.

What a solver returns is only nearly so, and a bound holds for feasible multipliers alone. Nothing here can make a bound
wrong, only loose: what cannot be brought into place is mixed with the centre (`towards_centre`), or there is no bound.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from nerm.blocks import Block, scaled_weights, shares, weigh
from nerm.multipliers import Multipliers
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.problem import Problem


NO_CENTRE = "an atom has no multiplier 0, so there is no centre to draw the multipliers to"


def repaired(problem: Problem, multipliers: Multipliers) -> tuple[Multipliers | None, str]:
    """Return the multipliers in their domains and with sum c = 0, None if that cannot be had; and what failed."""
    thetas = np.clip(np.nan_to_num(multipliers.thetas, nan=0.5), 0.0, 1.0)
    inside = _clipped(problem, Multipliers(np.nan_to_num(multipliers.rows), thetas))
    if problem.intercept and not _balance(problem, inside):
        centre, reason = towards_centre(problem, inside, 0.0), "the multipliers cannot be brought to sum c = 0"
        return centre, reason if centre else f"{reason}; {NO_CENTRE}"
    return inside, ""


def separable(problem: Problem, multipliers: Multipliers) -> float:
    """Return the part of -D that is a sum over rows: (1/n) sum of weight * atom*(-multiplier)."""
    weights = scaled_weights(problem, multipliers.thetas)
    rows = zip(weights, problem.blocks, multipliers.rows, strict=True)
    return sum(weigh(w, block.atom.conjugate(-row)) for w, block, row in rows) / problem.divisor


def _clipped(problem: Problem, multipliers: Multipliers) -> Multipliers:
    """Return the multipliers inside their domains, in memory of their own."""
    rows = zip(problem.blocks, multipliers.rows, strict=True)
    return replace(multipliers, rows=np.stack([np.clip(row, *block.domain) for block, row in rows]))


def _balance(problem: Problem, multipliers: Multipliers) -> bool:
    """Shift multipliers inside their domains, in place, until sum c = 0 up to rounding; False if there is no room.

    Multipliers away from both ends of their domain move first: they sit at kinks or in smooth pieces, where a shift
    costs nothing to first order.
    """
    blocks, rows = problem.blocks, multipliers.rows
    weights = scaled_weights(problem, multipliers.thetas)
    pulls = [w * block.targets for w, block in zip(weights, blocks, strict=True)]
    for room_of in (_interior_room, _room, _room):
        excess, size = _excess(pulls, rows)
        if abs(excess) <= 1e-15 * size:
            return True
        # Lower the sum: multipliers with positive coefficient go down, the others up.
        directions = [-np.sign(excess) * np.sign(a) for a in pulls]
        rooms = [room_of(block, row, d) for block, row, d in zip(blocks, rows, directions, strict=True)]
        capacity = sum(weigh(np.abs(a), room) for a, room in zip(pulls, rooms, strict=True))
        if capacity <= 0:
            continue
        share = min(1.0, abs(excess) / capacity)
        for row, direction, room in zip(rows, directions, rooms, strict=True):
            row += share * direction * room
    excess, size = _excess(pulls, rows)
    return abs(excess) <= 1e-11 * size


def _excess(pulls: list[Floats], rows: Floats) -> tuple[float, float]:
    """Return sum c, and the size of the summands before they cancel: what its rounding is relative to."""
    c = sum(a * row for a, row in zip(pulls, rows, strict=True))
    return float(np.sum(c)), sum(weigh(np.abs(a), np.abs(row)) for a, row in zip(pulls, rows, strict=True))


def _room(block: Block, row: Floats, direction: Floats) -> Floats:
    """Return how far each multiplier can go in its direction; where there is no end, as far as its own size."""
    low, high = block.domain
    room = np.where(direction > 0, high - row, row - low)
    return np.where(np.isfinite(room), np.maximum(room, 0.0), 1.0 + np.abs(row))


def _interior_room(block: Block, row: Floats, direction: Floats) -> Floats:
    """Return the distance to the nearer end of the domain, so that multipliers at an end stay there."""
    return np.minimum(_room(block, row, direction), _room(block, row, -direction))


def towards_centre(problem: Problem, multipliers: Multipliers, t: float) -> Multipliers | None:
    """Return the point at fraction t of the way from the centre (c = 0) to these multipliers, so that c becomes t c.

    The centre is alpha = 0, beta^+ = beta^-, theta = 1/2. The bound is concave in (alpha, theta beta^+,
    (1 - theta) beta^-, theta), so the products are what is mixed. None if 0 is no multiplier of a block alone.
    """
    alone = [block for block in problem.blocks if block.side == 0]
    if any(not block.domain[0] <= 0 <= block.domain[1] for block in alone):
        return None
    thetas = 0.5 + t * (multipliers.thetas - 0.5)
    old, new = shares(problem.blocks, multipliers.thetas), shares(problem.blocks, thetas)
    rows = t * multipliers.rows
    for j, block in enumerate(problem.blocks):
        if block.side and new[j] > 0:
            rest = (1 - t) * 0.5 * float(np.clip(0.0, *block.domain))
            rows[j] = (t * old[j] * multipliers.rows[j] + rest) / new[j]
        elif block.side:
            rows[j] = multipliers.rows[j]
    return _clipped(problem, Multipliers(rows, thetas))  # rounding can take a mixture out of its domain
