"""Compiled passes over the rows of all blocks.

A *block* is one margin function along all rows. It is a term of its own, such as a risk, or one side of a
neutrality term, or a part of these (`MarginFunction.parts`). There are J blocks and n rows. Row i of block j
has the score f_i, the target t, the margin m = t f_i - o with the offset o, and the row weight B; the indices
j and i are left out below. The factor nu of the block is the weight of a risk, or the multiplier of a side.
If the conjugate of the margin function phi is quadratic, it is

    phi*(u) = linear u + quadratic u^2 / 2    for low <= u <= high,

then phi*(u) + o u = bend u + quadratic u^2 / 2 with the row's bend = linear + o. The row has a dual variable
u and the multipliers p^+, p^- >= 0 of the bounds high and low:

    t f - bend - quadratic u = p^+ - p^-,      p^+ (high - u) = barrier = p^- (u - low)  on the central path.

The first equation holds from the start and is kept. Let A = high - u and C = u - low. A Newton step df in the
scores changes u by du:

    du = kappa (t df + rho),     1/kappa = quadratic + p^+/A + p^-/C,     rho = p^+ - p^- - over + under,
    over = (target + s^+)/A,     under = (target + s^-)/C.

Here `target` is the barrier that the step aims at, and s^+ and s^- are the second-order terms of Mehrotra.
The affine direction has over = under = 0. If one of the bounds is infinite, its multiplier p is 0 throughout.
An affine function has a fixed u and kappa = 0. A smooth function whose conjugate is not quadratic has
u = phi'(m) and kappa = phi''(m), up to a limit.

The passes take `data` = (t, B, bends, table), `duals` = (u, p^+, p^-) and `move` = (kappa, du, over, under).
The table has one line per block, (J, 6). All other arrays are (J, n). They are plain tuples because numba
keeps compiled code on disk: that code must not refer to a class, which a later version may move to another
module. A pass covers the rows from `start` to `stop`. Most passes do so in chunks, for all blocks in turn, so
that the values that the blocks share stay in the cache.
"""

from math import isfinite

import numpy as np

from nerm.solvers.linalg.compiled import compiled

TINY = 1e-18  # the least distance to a bound: keeps p / A finite after the last digits of u are used up
BINS = 64
CHUNK = 1024
MOVING, AFFINE, SMOOTH = 0, 1, 2  # kinds of blocks
QUADRATIC, LOW, HIGH, KIND, SIGN, LINE = range(6)  # columns of the table

options = {
    "fastmath": {"reassoc", "contract", "arcp", "nsz"},
    "error_model": "numpy",
}


@compiled(**options)
def block_ends(table, j):  # type: ignore[no-untyped-def]
    """Return quadratic, low and high of block j, and two flags.

    The conjugate of the block is bend u + quadratic u^2 / 2 on [low, high]. The flags say whether a barrier
    keeps the dual variable u above low and below high.
    """
    lo, hi, moves = table[j, LOW], table[j, HIGH], table[j, KIND] == MOVING
    return table[j, QUADRATIC], lo, hi, moves and isfinite(lo), moves and isfinite(hi)


@compiled(**options)
def _rows(data, duals, move, j, part):  # type: ignore[no-untyped-def]
    """Return the arrays of some rows of block j: t, B, bend, u, p^+, p^-, kappa, du, over and under."""
    targets, weights, bends, _ = data
    u, upper, lower = duals
    kappa, du, over, under = move
    point = targets[j, part], weights[j, part], bends[j, part], u[j, part], upper[j, part], lower[j, part]
    return *point, kappa[j, part], du[j, part], over[j, part], under[j, part]


@compiled(**options)
def linearise(data, duals, move, nu, scores, vectors, densities, start, stop):  # type: ignore[no-untyped-def]
    """Set kappa and the row vectors of the Newton system; return sums per block.

    Per row i, the sum over the blocks j of

        nu_j B_ji t_ji^2 kappa_ji                  is written to densities[i],
        nu_j B_ji t_ji u_ji                        is written to vectors[0, i], called c_i,
        nu_j B_ji t_ji kappa_ji (p_ji^+ - p_ji^-)  is written to vectors[1, i], called h_i.

    For two-sided term k, vectors[2 + k, i], called e_ki, is the sum of B_ji t_ji u_ji over the blocks of its
    side C+, minus the sum over those of C-.

    Per block j, the returned sums, (J, 5), run over the rows i: B_ji times p^+ A + p^- C, u t f, phi(m),
    phi*(u) and kappa (p^+ - p^-)^2, in this order.

    For a smooth block the caller, `Arrays.linearise`, sets u and kappa before the pass. It also computes the
    sums of phi(m) and phi*(u) of this block, which are 0 here.
    """
    table = data[3]
    count = table.shape[0]
    sums = np.zeros((count, 5))
    for first in range(start, stop, CHUNK):
        part = slice(first, min(first + CHUNK, stop))
        vectors[:, part] = 0.0
        densities[part] = 0.0
        f, density, c, h = scores[part], densities[part], vectors[0, part], vectors[1, part]
        for j in range(count):
            q, lo, hi, has_lo, has_hi = block_ends(table, j)
            kind, sign = table[j, KIND], table[j, SIGN]
            t, B, a, u, pp, pm, kappa, _, _, _ = _rows(data, duals, move, j, part)
            if kind == MOVING:
                for i in range(len(f)):
                    A = max(hi - u[i], TINY) if has_hi else 1.0
                    C = max(u[i] - lo, TINY) if has_lo else 1.0
                    kappa[i] = 1.0 / (q + pp[i] / A + pm[i] / C)
            for i in range(len(f)):
                density[i] += nu[j] * B[i] * t[i] * t[i] * kappa[i]
            for i in range(len(f)):
                c[i] += nu[j] * B[i] * t[i] * u[i]
            for i in range(len(f)):
                h[i] += nu[j] * B[i] * t[i] * kappa[i] * (pp[i] - pm[i])
            if sign != 0:
                e = vectors[int(table[j, LINE]), part]
                for i in range(len(f)):
                    e[i] += sign * B[i] * t[i] * u[i]
            comp = power = conj = curve = 0.0
            for i in range(len(f)):
                above = pp[i] * max(hi - u[i], TINY) if has_hi else 0.0
                below = pm[i] * max(u[i] - lo, TINY) if has_lo else 0.0
                comp += B[i] * (above + below)
                power += B[i] * u[i] * t[i] * f[i]
                conj += B[i] * (a[i] + 0.5 * q * u[i]) * u[i]
                curve += B[i] * kappa[i] * (pp[i] - pm[i]) ** 2
            primal = _value(t, B, a, f, q, lo, hi) if kind != SMOOTH else 0.0
            terms = comp, power, primal, conj, curve
            for k in range(5):  # the sum of an array compiles slowly
                sums[j, k] += terms[k]
    return sums


@compiled(**options)
def _value(t, B, a, f, q, lo, hi):  # type: ignore[no-untyped-def]
    """Return sum_i B_i phi(m_i) of a block whose conjugate is quadratic.

    phi(m) is the maximum over u in [low, high] of u (t f - bend) - quadratic u^2 / 2. The arguments a, q, lo
    and hi are bend, quadratic, low and high.
    """
    total = 0.0
    inverse = 1.0 / q if q > 0 else 0.0
    for i in range(len(t)):
        z = t[i] * f[i] - a[i]
        u = z * inverse if q > 0 else (hi if z > 0 else lo)
        u = min(max(u, lo), hi)
        total += B[i] * (u * z - 0.5 * q * u * u)
    return total


@compiled(**options)
def direct(data, duals, move, nu, change, corrected, start, stop):  # type: ignore[no-untyped-def]
    """Compute the change du of every dual variable u from the change df of the scores.

    `change`, (n,), is df. If `corrected`, du = kappa (t df + rho); otherwise over = under = 0 in rho, the
    affine direction. Return a histogram with BINS equal bins on [0, 1). If u of a row would arrive at one of
    its bounds after the share s < 1 of this step, the row adds its weight nu B to the bin that contains s.
    """
    table = data[3]
    histogram = np.zeros(BINS)
    for first in range(start, stop, CHUNK):
        part = slice(first, min(first + CHUNK, stop))
        df = change[part]
        for j in range(table.shape[0]):
            _, lo, hi, _, _ = block_ends(table, j)
            t, B, _, u, pp, pm, kappa, du, over, under = _rows(data, duals, move, j, part)
            for i in range(len(df)):
                more = under[i] - over[i] if corrected else 0.0
                du[i] = kappa[i] * (t[i] * df[i] + pp[i] - pm[i] + more)
            if table[j, KIND] == MOVING:
                for i in range(len(df)):
                    distance = hi - u[i] if du[i] > 0 else u[i] - lo
                    length = abs(du[i])
                    if distance < length:
                        histogram[min(int(BINS * max(distance, 0.0) / length), BINS - 1)] += nu[j] * B[i]
    return histogram


@compiled(**options)
def correct(data, duals, move, nu, dnu, target, limit, out, start, stop):  # type: ignore[no-untyped-def]
    """Compute over, under and the row vector h of the corrected step from the affine step.

    `move` holds the changes du of the affine step. Its second-order terms are s^+ = du dp^+ and s^- = -du
    dp^-, where dp^+ and dp^- are the changes of the multipliers p^+ and p^- in this step; they are clipped to
    [-limit, limit]. h_i, written to `out`, is the sum over the blocks j of B_ji t_ji (nu_j kappa_ji rho_ji +
    dnu_j du_ji). The module docstring defines the symbols.

    Return the part of the change of each block's value that does not depend on the change of the scores,
    (J,).
    """
    table = data[3]
    changes = np.zeros(table.shape[0])
    for first in range(start, stop, CHUNK):
        part = slice(first, min(first + CHUNK, stop))
        h = out[part]
        h[:] = 0.0
        for j in range(len(changes)):
            _, lo, hi, has_lo, has_hi = block_ends(table, j)
            t, B, _, u, pp, pm, kappa, du, over, under = _rows(data, duals, move, j, part)
            if has_hi:
                for i in range(len(h)):
                    A = max(hi - u[i], TINY)
                    over[i] = (target + min(max(pp[i] * (du[i] / A - 1.0) * du[i], -limit), limit)) / A
            if has_lo:
                for i in range(len(h)):
                    C = max(u[i] - lo, TINY)
                    under[i] = (target + min(max(pm[i] * (du[i] / C + 1.0) * du[i], -limit), limit)) / C
            for i in range(len(h)):
                rho = pp[i] - over[i] - pm[i] + under[i]
                h[i] += B[i] * t[i] * (nu[j] * kappa[i] * rho + dnu[j] * du[i])
            change = 0.0
            for i in range(len(h)):
                rise, fall = pp[i] - over[i], pm[i] - under[i]
                above = rise * max(hi - u[i], TINY) if has_hi else 0.0
                below = fall * max(u[i] - lo, TINY) if has_lo else 0.0
                change += B[i] * ((pp[i] - pm[i]) * kappa[i] * (rise - fall) - above - below)
            changes[j] += change
    return changes


@compiled(**options)
def advance(data, duals, move, scores, step, keeps, start, stop):  # type: ignore[no-untyped-def]
    """Move u, p^+ and p^- of every row by `step` times their direction.

    A row that would come too close to a bound makes a shorter step: each of the distances high - u, u - low,
    p^+ and p^- keeps at least the share keeps_j of its old value in block j; `keeps` is (J,). `scores` are
    the scores after the step. At the end p^+ or p^- is increased so that t f - bend - quadratic u = p^+ - p^-
    holds again.
    """
    table = data[3]
    for first in range(start, stop, CHUNK):
        part = slice(first, min(first + CHUNK, stop))
        for j in range(table.shape[0]):
            if table[j, KIND] != MOVING:
                continue
            f = scores[part]
            q, lo, hi, has_lo, has_hi = block_ends(table, j)
            t, _, a, u, pp, pm, _, du, up, down = _rows(data, duals, move, j, part)
            if has_hi:
                for i in range(len(f)):
                    rise = up[i] - pp[i] + pp[i] * du[i] / max(hi - u[i], TINY)
                    up[i] = max(pp[i] + step * rise, keeps[j] * pp[i])
            if has_lo:
                for i in range(len(f)):
                    rise = down[i] - pm[i] - pm[i] * du[i] / max(u[i] - lo, TINY)
                    down[i] = max(pm[i] + step * rise, keeps[j] * pm[i])
            for i in range(len(f)):
                highest = hi - keeps[j] * max(hi - u[i], TINY) if has_hi else np.inf
                lowest = lo + keeps[j] * max(u[i] - lo, TINY) if has_lo else -np.inf
                u[i] = max(min(u[i] + step * du[i], highest), lowest)
            _fit(t, f, u, pp, pm, up, down, a, q, keeps[j], has_lo, has_hi)


@compiled(**options)
def _fit(t, f, u, pp, pm, up, down, a, q, keep, has_lo, has_hi):  # type: ignore[no-untyped-def]
    """Set p^+ and p^- so that t f - bend - quadratic u = p^+ - p^- holds.

    With two bounds, they are set to `up` and `down`, and one of them is increased by the residual of the
    equation. With one bound, its multiplier is set by the equation, but to no less than the share `keep` of
    its old value, and then u is corrected.
    """
    if has_hi and has_lo:
        for i in range(len(f)):
            pp[i] = up[i] + max(t[i] * f[i] - a[i] - q * u[i] - up[i] + down[i], 0.0)
        for i in range(len(f)):
            pm[i] = down[i] + max(q * u[i] + a[i] - t[i] * f[i] + up[i] - down[i], 0.0)
        return
    for i in range(len(f)):
        z = t[i] * f[i] - a[i]
        if has_hi:
            pp[i] = max(z - q * u[i], keep * pp[i])
        if has_lo:
            pm[i] = max(q * u[i] - z, keep * pm[i])
        u[i] = (z - pp[i] + pm[i]) / q


@compiled(**options)
def _share(z, m):  # type: ignore[no-untyped-def]
    """Return the root x in (0, 1) of z + m / x - m / (1 - x) = 0, without cancellation.

    x is the position of u in its interval on the central path.
    """
    small = 2.0 * m / (abs(z) + 2.0 * m + np.sqrt(z * z + 4.0 * m * m))
    return 1.0 - small if z > 0 else small


@compiled(**options)
def distance(k, q, barrier):  # type: ignore[no-untyped-def]
    """Return the positive root s of q s^2 + k s = barrier.

    On the central path, s is the distance of a dual variable to its bound.
    """
    root = np.sqrt(k * k + 4.0 * q * barrier)
    return 2.0 * barrier / (k + root) if k > 0 else (root - k) / (2.0 * q)


@compiled(**options)
def centre(data, duals, scores, barrier, start, stop):  # type: ignore[no-untyped-def]
    """Set u, p^+ and p^- of every row to the central path at its score.

    With z = t f - bend, u solves z - quadratic u - barrier/(high - u) + barrier/(u - low) = 0. In a block
    with quadratic > 0 and two finite bounds, only the barrier of the nearer bound is used, which changes the
    distance to it by at most a factor of two.
    """
    table = data[3]
    for j in range(table.shape[0]):
        if table[j, KIND] != MOVING:
            continue
        f = scores[start:stop]
        q, lo, hi, has_lo, has_hi = block_ends(table, j)
        t, a, u = data[0][j, start:stop], data[2][j, start:stop], duals[0][j, start:stop]
        pp, pm = duals[1][j, start:stop], duals[2][j, start:stop]
        half = 0.5 * (hi - lo)  # infinite without one of them
        for i in range(len(f)):
            z = t[i] * f[i] - a[i]
            if q == 0:
                u[i] = lo + 2.0 * half * _share(z, 0.5 * barrier / half)
            elif has_hi and (not has_lo or z > q * (lo + half)):
                u[i] = hi - min(distance(z - q * hi, q, barrier), half)
            elif has_lo:
                u[i] = lo + min(distance(q * lo - z, q, barrier), half)
            pp[i] = barrier / (hi - u[i]) if has_hi else 0.0
            pm[i] = barrier / (u[i] - lo) if has_lo else 0.0
        _fit(t, f, u, pp, pm, pp, pm, a, q, 0.0, has_lo, has_hi)


@compiled(**options)
def settle(data, scores, others, distance, u, stays, duals, start, stop):  # type: ignore[no-untyped-def]
    """Set the dual variables u, and B t u, of the rows beyond all kinks; return sum B phi*(u), (J,).

    A row i is kept, and stays[i] is set, if in a block of positive weight its margin is within `|t|` *
    distance of a kink, or on the other side of a kink at the scores `others`, or if the block is smooth.
    """
    targets, weights, bends, table = data
    part, sums = slice(start, stop), np.zeros(table.shape[0])
    f, g, stay = scores[part], others[part], stays[part]
    for j in range(len(sums)):
        q, lo, hi, _, _ = block_ends(table, j)
        kind = table[j, KIND]
        low_kink, high_kink = (q * lo, q * hi) if q > 0 else (0.0, 0.0)
        t, B, a, x = targets[j, part], weights[j, part], bends[j, part], u[j, part]
        inside = min(max(0.0, lo), hi)
        for i in range(len(f)):
            width = abs(t[i]) * distance
            now, other = t[i] * f[i] - a[i], t[i] * g[i] - a[i]
            below = now <= low_kink - width and other <= low_kink and kind == MOVING
            above = now >= high_kink + width and other >= high_kink and kind == MOVING
            x[i] = lo if below else hi if above else inside
            stay[i] |= not (below or above or kind == AFFINE or B[i] == 0.0)
    for j in range(len(sums)):
        t, B, a, x, dual = targets[j, part], weights[j, part], bends[j, part], u[j, part], duals[j, part]
        half, total = 0.5 * table[j, QUADRATIC], 0.0
        for i in range(len(stay)):
            weight = 0.0 if stay[i] else B[i]
            dual[i] = weight * t[i] * x[i]
            total += weight * (a[i] + half * x[i]) * x[i]
        sums[j] = total
    return sums
