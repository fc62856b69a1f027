"""Compiled passes over the rows of one piece.

A *piece* is one margin function along all rows: a loss, or one sign of a neutrality term. Row i of it has the margin
m = t f, the base weight B, the effective weight omega = B nu (nu = 1 for a loss, the multiplier of its side for a
neutrality term) and, for a quadratic conjugate, the point u of [low, high] with its bound multipliers p^+, p^- >= 0:

    m - linear - quadratic u = p^+ - p^- ,      p^+ (high - u) = barrier = p^- (u - low)   on the central path.

The first equation holds from the start and is kept. Linearised, with A = high - u and C = u - low,

    du = kappa (t df + rho),     1/kappa = quadratic + p^+/A + p^-/C,
    rho = p^+ - p^- - (target + s^+)/A + (target + s^-)/C,

s^+- the second-order terms of Mehrotra. A side without a bound has p = 0 throughout.
"""

from __future__ import annotations

from math import isfinite

import numba
import numpy as np

TINY = 1e-18  # the least distance to a bound: keeps p / A finite after the last digits of u are used up
BINS = 64
FLAGS = {"reassoc", "contract", "arcp", "nsz"}

options = {"cache": True, "nogil": True, "fastmath": FLAGS, "error_model": "numpy"}


@numba.njit(**options)
def linearise(t, B, nu, f, u, pp, pm, a, q, lo, hi, kappa, dens, c, h, e, sign, start, stop):  # type: ignore[no-untyped-def]
    """Add the piece's part of the Newton system and return its sums.

    dens = omega t^2 kappa, c = omega t u, h = omega t kappa (p^+ - p^-), e = sign B t u; sums of B times: the
    products p^+ A + p^- C, the value from the multipliers, phi(m), phi*(u), and the change of value without df.
    """
    has_lo = isfinite(lo)
    has_hi = isfinite(hi)
    comp = 0.0
    value = 0.0
    primal = 0.0
    conj = 0.0
    change = 0.0
    for i in range(start, stop):
        A = max(hi - u[i], TINY) if has_hi else 1.0
        C = max(u[i] - lo, TINY) if has_lo else 1.0
        k = 1.0 / (q + pp[i] / A + pm[i] / C)
        kappa[i] = k
        p = pp[i] - pm[i]
        bt = B[i] * t[i]
        om = nu * bt
        dens[i] += om * t[i] * k
        c[i] += om * u[i]
        h[i] += om * k * p
        e[i] += sign * bt * u[i]
        products = pp[i] * A + pm[i] * C
        half = 0.5 * q * u[i] * u[i]
        upper = half
        if has_hi:
            upper += hi * pp[i]
        if has_lo:
            upper -= lo * pm[i]
        comp += B[i] * products
        value += B[i] * upper
        conj += B[i] * (a * u[i] + half)
        change += B[i] * (p * k * p - products)
        z = t[i] * f[i] - a
        x = z / q if q > 0 else (hi if z > 0 else lo)
        x = min(max(x, lo), hi)
        primal += B[i] * (x * z - 0.5 * q * x * x)
    return comp, value, primal, conj, change


@numba.njit(**options)
def add_given(t, B, nu, u, kappa, dens, c, e, sign, start, stop):  # type: ignore[no-untyped-def]
    """Add a piece whose u = phi'(m) and kappa = phi''(m) are given: smooth functions, and affine ones (kappa = 0)."""
    for i in range(start, stop):
        bt = B[i] * t[i]
        dens[i] += nu * bt * t[i] * kappa[i]
        c[i] += nu * bt * u[i]
        e[i] += sign * bt * u[i]


@numba.njit(**options)
def total_value(t, B, f, a, q, lo, hi, start, stop):  # type: ignore[no-untyped-def]
    """Return sum B phi(m), phi the support of a quadratic on [lo, hi]."""
    total = 0.0
    for i in range(start, stop):
        z = t[i] * f[i] - a
        u = min(max(z / q, lo), hi) if q > 0.0 else hi if z > 0.0 else lo
        total += B[i] * (u * z - 0.5 * q * u * u)
    return total


@numba.njit(**options)
def count_steps(B, nu, u, du, lo, hi, histogram, stride, start, stop):  # type: ignore[no-untyped-def]
    """Add the weights of rows that du would take to a bound to the bin of their longest step in [0, 1)."""
    for i in range(start, stop, stride):
        room = hi - u[i] if du[i] > 0 else u[i] - lo
        length = abs(du[i])
        if room < length:
            histogram[min(int(BINS * max(room, 0.0) / length), BINS - 1)] += stride * nu * B[i]


@numba.njit(**options)
def predict(t, B, dnu, df, u, pp, pm, lo, hi, kappa, sp, sm, limit, cross, du_out, start, stop):  # type: ignore[no-untyped-def]
    """Follow the affine direction (target 0): du, second-order terms s^+-, and cross = B t dnu du."""
    has_lo = isfinite(lo)
    has_hi = isfinite(hi)
    for i in range(start, stop):
        A = max(hi - u[i], TINY) if has_hi else 1.0
        C = max(u[i] - lo, TINY) if has_lo else 1.0
        du = kappa[i] * (t[i] * df[i] + pp[i] - pm[i])
        dp = pp[i] * (du / A - 1.0)
        dm = -pm[i] * (du / C + 1.0)
        sp[i] = min(max(dp * du, -limit), limit)
        sm[i] = min(max(-dm * du, -limit), limit)
        cross[i] += B[i] * t[i] * dnu * du
        du_out[i] = du


@numba.njit(**options)
def trial(t, df, u, pp, pm, lo, hi, kappa, out, start, stop):  # type: ignore[no-untyped-def]
    """Set out to u after a full affine step, clipped into [lo, hi]."""
    for i in range(start, stop):
        out[i] = min(max(u[i] + kappa[i] * (t[i] * df[i] + pp[i] - pm[i]), lo), hi)


@numba.njit(**options)
def correct(t, B, nu, u, pp, pm, lo, hi, kappa, sp, sm, target, h, start, stop):  # type: ignore[no-untyped-def]
    """Add omega t kappa rho of the corrected system to h; return the sum of B times the change of value."""
    has_lo = isfinite(lo)
    has_hi = isfinite(hi)
    change = 0.0
    for i in range(start, stop):
        p = pp[i] - pm[i]
        rho = p
        products = 0.0
        if has_hi:
            A = max(hi - u[i], TINY)
            rho -= (target + sp[i]) / A
            products += target + sp[i] - pp[i] * A
        if has_lo:
            C = max(u[i] - lo, TINY)
            rho += (target + sm[i]) / C
            products += target + sm[i] - pm[i] * C
        h[i] += nu * B[i] * t[i] * kappa[i] * rho
        change += B[i] * (p * kappa[i] * rho + products)
    return change


@numba.njit(**options)
def direct(t, df, u, pp, pm, lo, hi, kappa, sp, sm, target, du_out, start, stop):  # type: ignore[no-untyped-def]
    """Store the corrected du = kappa (t df + rho)."""
    has_lo = isfinite(lo)
    has_hi = isfinite(hi)
    for i in range(start, stop):
        rho = pp[i] - pm[i]
        if has_hi:
            rho -= (target + sp[i]) / max(hi - u[i], TINY)
        if has_lo:
            rho += (target + sm[i]) / max(u[i] - lo, TINY)
        du_out[i] = kappa[i] * (t[i] * df[i] + rho)


@numba.njit(**options)
def longest_step(B, nu, u, pp, pm, lo, hi, sp, sm, target, du, start, stop):  # type: ignore[no-untyped-def]
    """Return the longest common step that keeps u, p^+ and p^- of all rows of positive weight inside."""
    has_lo = isfinite(lo)
    has_hi = isfinite(hi)
    step = np.inf
    for i in range(start, stop):
        if nu * B[i] == 0.0:
            continue
        if has_hi:
            A = max(hi - u[i], TINY)
            dp = (target - pp[i] * A + sp[i] + pp[i] * du[i]) / A
            if du[i] > 0:
                step = min(step, A / du[i])
            if dp < 0:
                step = min(step, -pp[i] / dp)
        if has_lo:
            C = max(u[i] - lo, TINY)
            dm = (target - pm[i] * C + sm[i] - pm[i] * du[i]) / C
            if du[i] < 0:
                step = min(step, -C / du[i])
            if dm < 0:
                step = min(step, -pm[i] / dm)
    return step


@numba.njit(**options)
def advance(t, f, u, pp, pm, a, q, lo, hi, sp, sm, target, du, step, keep, start, stop):  # type: ignore[no-untyped-def]
    """Move (u, p^+, p^-) by `step`, each row held so that `keep` of its distance to a bound remains.

    f is the new score; p^+ or p^- then grows by what is missing in m - linear - quadratic u = p^+ - p^-.
    """
    has_lo = isfinite(lo)
    has_hi = isfinite(hi)
    for i in range(start, stop):
        new = u[i] + step * du[i]
        up = 0.0
        down = 0.0
        if has_hi:
            A = max(hi - u[i], TINY)
            up = max(pp[i] + step * (target - pp[i] * A + sp[i] + pp[i] * du[i]) / A, keep * pp[i])
            new = min(new, hi - keep * A)
        if has_lo:
            C = max(u[i] - lo, TINY)
            down = max(pm[i] + step * (target - pm[i] * C + sm[i] - pm[i] * du[i]) / C, keep * pm[i])
            new = max(new, lo + keep * C)
        z = t[i] * f[i] - a
        missing = z - q * new - up + down
        if has_hi and has_lo:
            up += max(missing, 0.0)
            down += max(-missing, 0.0)
        elif has_hi:
            up = max(z - q * new, keep * pp[i])
            new = (z - up) / q if z - q * new < up else new
        elif has_lo:
            down = max(q * new - z, keep * pm[i])
            new = (z + down) / q if q * new - z < down else new
        else:
            new = z / q
        u[i] = new
        pp[i] = up
        pm[i] = down


@numba.njit(**options)
def add_force(t, B, nu, u, c):  # type: ignore[no-untyped-def]
    """Add omega t u to c."""
    for i in range(len(c)):
        c[i] += nu * B[i] * t[i] * u[i]


@numba.njit(**options)
def _way(t, u, lo, hi, against):  # type: ignore[no-untyped-def]
    """Return how far u may move so that t u moves against a sign; a like distance where no bound is in that way."""
    if t == 0.0:
        return 0.0
    if against * t > 0:
        return -(u - lo) if isfinite(lo) else -(hi - u) if isfinite(hi) else -1.0
    return hi - u if isfinite(hi) else u - lo if isfinite(lo) else 1.0


@numba.njit(**options)
def reach(t, B, nu, u, lo, hi, against):  # type: ignore[no-untyped-def]
    """Return how far sum omega t u can move against a sign."""
    total = 0.0
    for i in range(len(u)):
        total -= against * nu * B[i] * t[i] * _way(t[i], u[i], lo, hi, against)
    return total


@numba.njit(**options)
def give_way(t, u, lo, hi, against, share):  # type: ignore[no-untyped-def]
    """Move every u by this share of its way, and not past a bound."""
    for i in range(len(u)):
        u[i] = min(max(u[i] + share * _way(t[i], u[i], lo, hi, against), lo), hi)


@numba.njit(**options)
def weigh(B, x):  # type: ignore[no-untyped-def]
    """Return sum_i B_i x_i, without the threads that BLAS would start for it."""
    total = 0.0
    for i in range(len(x)):
        total += B[i] * x[i]
    return total


@numba.njit(**options)
def _share(z, m):  # type: ignore[no-untyped-def]
    """Return x in (0, 1) with z + m/x - m/(1 - x) = 0, in a form without cancellation."""
    small = 2.0 * m / (abs(z) + 2.0 * m + np.sqrt(z * z + 4.0 * m * m))
    return 1.0 - small if z > 0 else small


@numba.njit(**options)
def centre(t, f, u, pp, pm, a, q, lo, hi, barrier, start, stop):  # type: ignore[no-untyped-def]
    """Put every row on the central path of its score: z - q u - barrier/(high - u) + barrier/(u - low) = 0."""
    has_lo = isfinite(lo)
    has_hi = isfinite(hi)
    for i in range(start, stop):
        z = t[i] * f[i] - a
        if has_lo and has_hi:
            length = hi - lo
            m = barrier / length
            x = _share(z - q * 0.5 * (lo + hi), m)
            left = 0.0
            right = 1.0
            for _ in range(60 if q > 0 else 0):
                value = z - q * (lo + length * x) + m * (1.0 / x - 1.0 / (1.0 - x))
                slope = -q * length - m * (1.0 / (x * x) + 1.0 / ((1.0 - x) * (1.0 - x)))
                if value > 0:
                    left = x
                else:
                    right = x
                trial = x - value / slope
                if not (left < trial < right):
                    trial = 0.5 * (left + right)
                moved = abs(trial - x)
                x = trial
                if moved <= 1e-8 * min(x, 1.0 - x):
                    break
            u[i] = lo + length * x
            pp[i] = barrier / (length * (1.0 - x))
            pm[i] = barrier / (length * x)
        elif has_hi or has_lo:
            # One bound at distance s: the positive root of q s^2 + k s - barrier = 0.
            k = z - q * hi if has_hi else q * lo - z
            root = np.sqrt(k * k + 4.0 * q * barrier)
            s = 2.0 * barrier / (k + root) if k > 0 else (root - k) / (2.0 * q)
            u[i] = hi - s if has_hi else lo + s
            pp[i] = barrier / s if has_hi else 0.0
            pm[i] = barrier / s if has_lo else 0.0
        else:
            u[i] = z / q
            pp[i] = 0.0
            pm[i] = 0.0
