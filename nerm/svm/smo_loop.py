"""The compiled inner loop of the SMO, in the paper's order: select (WSS2), update, test.

It works on the n levels a_i of `nerm.svm.pieces`. With G = K a / lambda (the scores without intercept),
raising a_i earns ``rise_i - G_i`` and lowering it costs ``fall_i - G_i``, where rise and fall are the
slopes of h_i to the right and to the left of a_i (-inf and +inf at the ends). A feasible a is optimal iff

::

    m(a) = max_i (rise_i - G_i)  <=  M(a) = min_j (fall_j - G_j),

and then every b in [m, M] is an optimal intercept: the paper's test, here necessary *and* sufficient.
"""

from __future__ import annotations

import numba
import numpy as np

MORE, CONVERGED, NEED_ROW = 0, 1, 2
# As in LIBSVM: the curvature that stands in for zero when pairs are compared (never in the step itself).
_TAU = 1e-12


@numba.njit(cache=True)
def set_slopes(i, seg, x, slope, width, count, rise, fall):  # type: ignore[no-untyped-def]
    """Write the right and left slope of h_i at its current place: x[i] inside segment seg[i]."""
    k = seg[i]
    if count[i] == 0:
        rise[i] = -np.inf
        fall[i] = np.inf
        return
    if x[i] < width[i, k]:
        rise[i] = slope[i, k]
    elif k + 1 < count[i]:
        rise[i] = slope[i, k + 1]
    else:
        rise[i] = -np.inf
    if x[i] > 0.0:
        fall[i] = slope[i, k]
    elif k > 0:
        fall[i] = slope[i, k - 1]
    else:
        fall[i] = np.inf


@numba.njit(cache=True)
def place(a, low, start, width, count, slope, seg, x, rise, fall):  # type: ignore[no-untyped-def]
    """Put every sample at level a_i, snapping to a break within rounding, and set its slopes."""
    for i in range(len(a)):
        k = 0
        level = a[i] - low[i]
        snap = 1e-12 * (abs(low[i]) + start[i, 2] + width[i, 2])
        while k + 1 < count[i] and level > start[i, k + 1] - snap:
            k += 1
        inside = level - start[i, k]
        if inside <= snap:
            inside = 0.0
        elif inside >= width[i, k] - snap:
            inside = width[i, k]
        seg[i] = k
        x[i] = inside
        a[i] = low[i] + start[i, k] + inside
        set_slopes(i, seg, x, slope, width, count, rise, fall)


@numba.njit(cache=True)
def pair_step(i, j, curvature, seg, x, slope, width, count, rise, fall, G):  # type: ignore[no-untyped-def]
    """Raise a_i and lower a_j by the best common amount and return it.

    Along the pair the dual is concave: quadratic between breaks, its derivative dropping at each break. So
    the best step walks break by break while the derivative is positive. Zero curvature (equal rows) is no
    special danger: the walk then goes to the break or bound, as it must on a linear function.
    """
    total = 0.0
    pull = (rise[i] - G[i]) - (fall[j] - G[j])
    while pull > 0.0:
        if x[i] >= width[i, seg[i]]:
            seg[i] += 1
            x[i] = 0.0
        if x[j] <= 0.0:
            seg[j] -= 1
            x[j] = width[j, seg[j]]
        room_i = width[i, seg[i]] - x[i]
        room_j = x[j]
        room = min(room_i, room_j)
        if curvature * room > pull:
            step = min(pull / curvature, room)
            x[i] = min(x[i] + step, width[i, seg[i]])
            x[j] = max(x[j] - step, 0.0)
            total += step
            break
        x[i] = width[i, seg[i]] if room_i <= room else x[i] + room
        x[j] = 0.0 if room_j <= room else x[j] - room
        total += room
        set_slopes(i, seg, x, slope, width, count, rise, fall)
        set_slopes(j, seg, x, slope, width, count, rise, fall)
        pull = (rise[i] - G[i]) - (fall[j] - G[j]) - curvature * total
    set_slopes(i, seg, x, slope, width, count, rise, fall)
    set_slopes(j, seg, x, slope, width, count, rise, fall)
    return total


@numba.njit(cache=True)
def run(  # type: ignore[no-untyped-def]
    a, G, seg, x, rise, fall, low, start, slope, width, count,
    lam, diagonal, table, slot_of, stamp, clock, active, n_active, epsilon, max_steps,
):  # fmt: skip
    """Do at most max_steps pair steps on the active samples; return (status, steps, row wanted).

    G of *every* sample is kept up to date (a row is in memory anyway), so shrinking only shortens the two
    searches and nothing has to be rebuilt when a sample comes back.
    """
    n = len(a)
    for done in range(max_steps):
        # Working set, first index: the steepest rise, i = argmax (rise - G).
        i, best = -1, -np.inf
        for c in range(n_active):
            k = active[c]
            value = rise[k] - G[k]
            if value > best:
                best, i = value, k
        if i < 0:
            return CONVERGED, done, -1
        if slot_of[i] < 0:
            return NEED_ROW, done, i
        clock[0] += 1
        stamp[slot_of[i]] = clock[0]
        row_i = table[slot_of[i]]
        # Second index: the largest second-order gain B^2 / A among the j that violate with i.
        j, gain, lowest = -1, 0.0, np.inf
        for c in range(n_active):
            k = active[c]
            value = fall[k] - G[k]
            if value < lowest:
                lowest = value
            pull = best - value
            if pull > 0.0:
                curvature = diagonal[i] + diagonal[k] - 2.0 * row_i[k]
                if curvature < _TAU:
                    curvature = _TAU
                score = pull * pull / curvature
                if score > gain:
                    gain, j = score, k
        if j < 0 or best - lowest <= epsilon:
            return CONVERGED, done, -1
        if slot_of[j] < 0:
            return NEED_ROW, done, j
        stamp[slot_of[j]] = clock[0]
        row_j = table[slot_of[j]]
        curvature = max(0.0, diagonal[i] + diagonal[j] - 2.0 * row_i[j]) / lam
        step = pair_step(i, j, curvature, seg, x, slope, width, count, rise, fall, G) / lam
        a[i] = low[i] + start[i, seg[i]] + x[i]
        a[j] = low[j] + start[j, seg[j]] + x[j]
        for k in range(n):
            G[k] += step * (row_i[k] - row_j[k])
    return MORE, max_steps, -1


@numba.njit(cache=True)
def shrink(active, n_active, rise, fall, G, m, M):  # type: ignore[no-untyped-def]
    """Drop the samples that no current violation can move: rise - G < M and fall - G > m."""
    kept = 0
    for c in range(n_active):
        k = active[c]
        if not (rise[k] - G[k] < M and fall[k] - G[k] > m):
            active[kept] = k
            kept += 1
    return kept
