"""The compiled inner loop of the SMO, in the paper's order: select (WSS2), update, test.

It works on one level a_i a row (`nerm.solvers.smo.segments`). With G = K a / lambda, the scores without
intercept, raising a_i earns ``rise_i - G_i`` and lowering it costs ``fall_i - G_i``, where rise and fall are
the slopes of h_i to the right and to the left of a_i (-inf and +inf at the ends). A feasible a is optimal iff

::

    m(a) = max_i (rise_i - G_i)  <=  M(a) = min_j (fall_j - G_j),

and then every b in [m, M] is an optimal intercept: the paper's test, here necessary *and* sufficient.
"""

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from nerm.typing import Floats

MORE, CONVERGED, NEED_ROW = 0, 1, 2
TAU = 1e-12  # as in LIBSVM: the curvature that stands in for zero when pairs are compared, never in the step itself


class Places(NamedTuple):
    """Where every row stands: a = low + start[seg] + x, x inside segment seg, and what that means.

    slope is padded by +inf before and -inf behind the segments of a row, so that no end is a special case.
    numba writes the name of this class into its cache on disk: who renames it deletes __pycache__.
    """

    a: Floats
    G: Floats
    seg: NDArray[np.int64]
    x: Floats
    rise: Floats
    fall: Floats
    low: Floats
    start: Floats
    width: Floats
    slope: Floats


@numba.njit(cache=True)
def set_slopes(i, at):  # type: ignore[no-untyped-def]
    """Write the right and left slope of h_i at its current place."""
    k = at.seg[i]
    at.rise[i] = at.slope[i, k + 1] if at.x[i] < at.width[i, k] else at.slope[i, k + 2]
    at.fall[i] = at.slope[i, k + 1] if at.x[i] > 0.0 else at.slope[i, k]


@numba.njit(cache=True)
def place(at):  # type: ignore[no-untyped-def]
    """Put every row at its level a_i, snapping to a break within rounding, and set its slopes."""
    segments = at.width.shape[1]
    for i in range(len(at.a)):
        k = 0
        level = at.a[i] - at.low[i]
        snap = 1e-12 * (abs(at.low[i]) + at.start[i, -1] + at.width[i, -1])
        while k + 1 < segments and at.width[i, k + 1] > 0.0 and level > at.start[i, k + 1] - snap:
            k += 1
        inside = level - at.start[i, k]
        if inside <= snap:
            inside = 0.0
        elif inside >= at.width[i, k] - snap:
            inside = at.width[i, k]
        at.seg[i] = k
        at.x[i] = inside
        at.a[i] = at.low[i] + at.start[i, k] + inside
        set_slopes(i, at)


@numba.njit(cache=True)
def pair_step(i, j, curvature, at):  # type: ignore[no-untyped-def]
    """Raise a_i and lower a_j by the best common amount and return it.

    Along the pair the dual is concave: quadratic between breaks, its derivative dropping at each break. So
    the best step walks break by break while the derivative is positive. Zero curvature (equal x) is no
    special danger: the walk then goes to the break or bound, as it must on a linear function.
    """
    seg, x, width = at.seg, at.x, at.width
    total = 0.0
    pull = (at.rise[i] - at.G[i]) - (at.fall[j] - at.G[j])
    while pull > 0.0:
        if x[i] >= width[i, seg[i]]:
            seg[i] += 1
            x[i] = 0.0
        if x[j] <= 0.0:
            seg[j] -= 1
            x[j] = width[j, seg[j]]
        room_i = width[i, seg[i]] - x[i]
        room = min(room_i, x[j])
        step = min(pull / curvature, room) if curvature * room > pull else room
        x[i] = width[i, seg[i]] if step == room_i else min(x[i] + step, width[i, seg[i]])
        x[j] = max(x[j] - step, 0.0)
        total += step
        set_slopes(i, at)
        set_slopes(j, at)
        if step < room:
            break
        pull = (at.rise[i] - at.G[i]) - (at.fall[j] - at.G[j]) - curvature * total
    return total


@numba.njit(cache=True)
def run(at, kernel, lam, active, epsilon, max_steps):  # type: ignore[no-untyped-def]
    """Do at most max_steps pair steps on the active rows; return (status, steps, row of K wanted).

    G of *every* row is kept up to date (a row of K is in memory anyway), so shrinking only shortens the two
    searches and nothing has to be rebuilt when a row comes back.
    """
    diagonal, slot_of = kernel.diagonal, kernel.slot_of
    for done in range(max_steps):
        # Working set, first index: the steepest rise, i = argmax (rise - G).
        i, best = -1, -np.inf
        for k in active:
            value = at.rise[k] - at.G[k]
            if value > best:
                best, i = value, k
        if i < 0:
            return CONVERGED, done, -1
        if slot_of[i] < 0:
            return NEED_ROW, done, i
        kernel.clock[0] += 1
        kernel.last_used[slot_of[i]] = kernel.clock[0]
        row_i = kernel.table[slot_of[i]]
        # Second index: the largest second-order gain B^2 / A among the j that violate with i.
        j, gain, lowest = -1, 0.0, np.inf
        for k in active:
            value = at.fall[k] - at.G[k]
            lowest = min(lowest, value)
            pull = best - value
            if pull > 0.0:
                score = pull * pull / max(diagonal[i] + diagonal[k] - 2.0 * row_i[k], TAU)
                if score > gain:
                    gain, j = score, k
        if j < 0 or best - lowest <= epsilon:
            return CONVERGED, done, -1
        if slot_of[j] < 0:
            return NEED_ROW, done, j
        kernel.last_used[slot_of[j]] = kernel.clock[0]
        row_j = kernel.table[slot_of[j]]
        step = pair_step(i, j, max(0.0, diagonal[i] + diagonal[j] - 2.0 * row_i[j]) / lam, at) / lam
        for k in (i, j):
            at.a[k] = at.low[k] + at.start[k, at.seg[k]] + at.x[k]
        for k in range(len(at.a)):
            at.G[k] += step * (row_i[k] - row_j[k])
    return MORE, max_steps, -1
