"""The primal value, and a dual bound from any state: multipliers made feasible first.

n D = - sum_j nu_j sum_i B_ji phi_j*(u_ji) - ||X'c||^2 / (2 lam),        c_i = sum_j nu_j B_ji t_ji u_ji,  sum_i c_i = 0
"""

from __future__ import annotations

import numpy as np

from nerm.engine import kernels
from nerm.engine.matrices import Features
from nerm.engine.pieces import Pieces

SAME = 1e-9  # relative difference at which two sums over all rows count as equal
ROUNDING = 1e-15  # of the forces before they cancel
NOTHING = 1e-8  # |sum c| / sum |c| up to which rounding may be all of it
BALANCE = 1e-11  # |sum c| / sum |c| up to which multipliers are feasible


def primal_value(pieces: Pieces, values: np.ndarray, coef: np.ndarray, lam: float) -> float:
    """Return n P from sum B phi(m) of each piece."""
    L = pieces.n_losses
    sides = pieces.sides(values)
    return float(0.5 * lam * (coef @ coef) + values[:L].sum() + pieces.eta @ sides.max(axis=1, initial=-np.inf))


def force(pieces: Pieces, u: np.ndarray, nu: np.ndarray) -> np.ndarray:
    """Return c_i = sum_j nu_j B_ji t_ji u_ji."""
    total = np.zeros(pieces.n_rows)
    for j in range(pieces.count):
        kernels.add_force(pieces.targets[j], pieces.weights[j], nu[j], u[j], total)
    return total


def balanced(pieces: Pieces, u: np.ndarray, nu: np.ndarray) -> np.ndarray | None:
    """Return u with sum_i c_i = 0, all u moved by one share of their way to the bound that helps; None if none can."""
    u = u.copy()
    movable = [(j, m.low, m.high) for j, m in enumerate(pieces.margins) if not m.fixed]
    for _ in range(3):  # the second and third rounds take back what rounding left
        excess = float(force(pieces, u, nu).sum())
        if excess == 0:
            break
        sign = 1.0 if excess > 0 else -1.0
        reach = sum(
            kernels.reach(pieces.targets[j], pieces.weights[j], nu[j], u[j], low, high, sign)
            for j, low, high in movable
        )
        if reach < (1 - SAME) * abs(excess):
            return None
        # All the way means exactly to the bound, which a share of 1 - 1e-16 would miss.
        share = 1.0 if reach <= (1 + SAME) * abs(excess) else abs(excess) / reach
        for j, low, high in movable:
            kernels.give_way(pieces.targets[j], u[j], low, high, sign, share)
    return u if is_balanced(pieces, u, nu) else None


def is_balanced(pieces: Pieces, u: np.ndarray, nu: np.ndarray) -> bool:
    """Tell whether sum_i c_i = 0 up to rounding.

    What there is of the sum is checked against sum_i |c_i| itself: where the only balanced point is u at its bounds, a
    remainder of 1e-16 of what was there before may still be all that is left of c, and then it proves nothing. Where
    large forces of two sides cancel, their rounding is allowed for, as long as it is nothing beside what is left.
    """
    c = force(pieces, u, nu)
    left, size = abs(float(c.sum())), float(np.abs(c).sum())
    if left <= BALANCE * size:
        return True
    gross = sum(nu[j] * float(np.abs(pieces.weights[j] * pieces.targets[j] * u[j]).sum()) for j in range(pieces.count))
    return bool(left <= min(ROUNDING * gross, NOTHING * size))


def dual_bound(
    pieces: Pieces, features: Features, u: np.ndarray, nu: np.ndarray, lam: float, *, intercept: bool
) -> tuple[float, np.ndarray]:
    """Return (n D, feasible u) for any u in its domains; -inf where sum c = 0 is out of reach."""
    feasible = balanced(pieces, u, nu) if intercept else u.copy()
    if feasible is None:
        return -np.inf, u
    u = feasible
    g = features.columns(force(pieces, u, nu)[None, :])[:, 0]
    conjugates = sum(
        nu[j] * kernels.weigh(pieces.weights[j], margin.conjugate(u[j])) for j, margin in enumerate(pieces.margins)
    )
    return float(-conjugates - (g @ g) / (2 * lam)), u
