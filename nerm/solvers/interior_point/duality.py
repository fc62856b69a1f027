"""The primal value, and a dual bound from any state: multipliers made feasible first.

n D = - sum_j nu_j sum_i B_ji phi_j*(u_ji) - ||X'c||^2 / (2 lam),        c_i = sum_j nu_j B_ji t_ji u_ji,  sum_i c_i = 0

Rows that have settled keep their u: that is a point of the dual as good as any, so the bound holds for all
rows.
"""

from collections.abc import Callable

import numba
import numpy as np

from nerm.solvers.interior_point.arrays import Arrays
from nerm.solvers.interior_point.passes import AFFINE, HIGH, KIND, LOW, options
from nerm.typing import Floats

SAME = 1e-9  # relative difference at which two sums over all rows count as equal
ROUNDING = 1e-15  # of the forces before they cancel
NOTHING = 1e-8  # |sum c| / sum |c| up to which rounding may be all of it
BALANCE = 1e-11  # |sum c| / sum |c| up to which multipliers are feasible


def primal_value(arrays: Arrays, values: Floats, factors: Floats, regularizer: float) -> float:
    """Return n P from sum B phi(m) of each block."""
    risks = factors[: arrays.singles] @ values[: arrays.singles]
    larger = arrays.sides(values).max(axis=1, initial=-np.inf)
    return float(regularizer + risks + factors[arrays.singles :: 2] @ larger)


def force(arrays: Arrays, u: Floats, nu: Floats) -> Floats:
    """Return c_i = sum_j nu_j B_ji t_ji u_ji of the rows that are left."""
    return np.asarray(np.einsum("j,ji,ji,ji->i", nu, arrays.data.weights, arrays.data.targets, u))


@numba.njit(**options)
def _give_way(data, nu, u, against, share):  # type: ignore[no-untyped-def]
    """Move every u by this share of its way to the bound that moves t u against a sign; return the way of sum c.

    Where no bound is in that way, it is as long as the one to the other bound.
    """
    targets, weights, table = data
    total = 0.0
    for j in range(u.shape[0]):
        lo, hi = table[j, LOW], table[j, HIGH]
        if table[j, KIND] == AFFINE:
            continue
        for i in range(u.shape[1]):
            t = targets[j, i]
            if t == 0.0:
                continue
            below = u[j, i] - lo if np.isfinite(lo) else hi - u[j, i] if np.isfinite(hi) else 1.0
            above = hi - u[j, i] if np.isfinite(hi) else u[j, i] - lo if np.isfinite(lo) else 1.0
            way = -below if against * t > 0 else above
            total -= against * nu[j] * weights[j, i] * t * way
            if share > 0:
                u[j, i] = min(max(u[j, i] + share * way, lo), hi)
    return total


def balanced(arrays: Arrays, u: Floats, nu: Floats) -> Floats | None:
    """Return u with sum_i c_i = 0, all u moved by one share of their way to the bound that helps; None if none can."""
    u = u.copy()
    for _ in range(3):  # the second and third rounds take back what rounding left
        excess = float(force(arrays, u, nu).sum() + nu @ arrays.pull[:, -1])
        if excess == 0:
            break
        sign = 1.0 if excess > 0 else -1.0
        reach = _give_way(tuple(arrays.data), nu, u, sign, 0.0)
        if reach < (1 - SAME) * abs(excess):
            return None
        # All the way means exactly to the bound, which a share of 1 - 1e-16 would miss.
        share = 1.0 if reach <= (1 + SAME) * abs(excess) else abs(excess) / reach
        _give_way(tuple(arrays.data), nu, u, sign, share)
    return u if is_balanced(arrays, u, nu) else None


def is_balanced(arrays: Arrays, u: Floats, nu: Floats) -> bool:
    """Tell whether sum_i c_i = 0 up to rounding.

    What there is of the sum is checked against sum_i |c_i| itself: where the only balanced point is u at its
    bounds, a remainder of 1e-16 of what was there before may still be all that is left of c, and then it
    proves nothing. Where large forces of two sides cancel, their rounding is allowed for, as long as it is
    nothing beside what is left.
    """
    c, beyond = force(arrays, u, nu), nu * arrays.pull[:, -1]
    left, size = abs(float(c.sum() + beyond.sum())), float(np.abs(c).sum() + abs(beyond.sum()))
    if left <= BALANCE * size:
        return True
    gross = float(
        nu @ np.abs(arrays.data.weights * arrays.data.targets * u).sum(axis=1) + np.abs(beyond).sum()
    )
    return bool(left <= min(ROUNDING * gross, NOTHING * size))


def dual_bound(
    arrays: Arrays, u: Floats, nu: Floats, taken: Callable[[Floats, float], float], *, intercept: bool
) -> tuple[float, Floats]:
    """Return (n D, feasible u) for any u in its domains; -inf where sum c = 0 is out of reach.

    `taken` says what the regularizer takes from a bound, given X'c: ||X'c||^2 / (2 lam), if it is a square.
    """
    feasible = balanced(arrays, u, nu) if intercept else u.copy()
    if feasible is None:
        return -np.inf, u
    g = arrays.features.columns(force(arrays, feasible, nu)[None, :])[:, 0] + nu @ arrays.pull[:, :-1]
    stars = [
        arrays.data.weights[j] @ block.atom.conjugate(feasible[j]) for j, block in enumerate(arrays.blocks)
    ]
    bound = -float(nu @ (arrays.settled + stars))
    return bound - taken(g, bound), feasible
