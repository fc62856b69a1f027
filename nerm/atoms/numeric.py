"""Conjugate, prox and subgradient by computation, for margin functions that state none in closed form.

Slopes come from secants, roots by bisection, all vectorised. The conjugate is computed from values alone and
rounded *up*: a certificate subtracts it, so an error must make a bound looser and never wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.atoms.margin import MarginFunction

Function = Callable[[Floats], Floats]

FARTHEST = 1e8  # margins beyond this are taken as infinite
SECANT = 1e-6  # relative step of numeric slopes


def bisect(increasing: Function, low: Floats, high: Floats, width: float = 0.0) -> tuple[Floats, Floats]:
    """Shrink [low, high] around the sign change of a nondecreasing function, to a width or to neighbours."""
    low, high = low.astype(float), high.astype(float)
    for _ in range(200):
        middle = 0.5 * (low + high)
        narrow = (middle <= low) | (middle >= high) | (high - low <= width)
        if narrow.all():
            break
        above = increasing(middle) > 0
        high = np.where(above & ~narrow, middle, high)
        low = np.where(above | narrow, low, middle)
    return low, high


def bracket(increasing: Function, start: Floats) -> tuple[Floats, Floats]:
    """Return [low, high] around `start` with increasing(low) <= 0 <= increasing(high), as far as FARTHEST.

    Where the function keeps one sign up to FARTHEST, the end stays there.
    """
    start = np.clip(start, -FARTHEST, FARTHEST)
    ends = []
    for direction in (-1.0, 1.0):
        end, step = start + direction, direction
        while (short := (direction * increasing(end) < 0) & (np.abs(end) < FARTHEST)).any():
            step *= 4.0
            end = np.where(short, np.clip(start + step, -FARTHEST, FARTHEST), end)
        ends.append(end)
    return ends[0], ends[1]


def secant_slopes(value: Function, m: Floats) -> tuple[Floats, Floats]:
    """Return the slopes of the secants just left and just right of m.

    They are rounded to single precision, below their own error, so that a straight piece has one slope and
    not a noise of slopes.
    """
    step = SECANT * np.maximum(1.0, np.abs(m))
    with np.errstate(over="ignore", invalid="ignore"):
        here = value(m)
        left, right = (here - value(m - step)) / step, (value(m + step) - here) / step
        return left.astype(np.float32).astype(float), right.astype(np.float32).astype(float)


def asymptotic_slope(value: Function, direction: float) -> float:
    """Return the slope of phi at -inf (direction -1) or +inf (+1).

    It is infinite if the slope still changes between 1e4 and 1e8.

    A secant of a convex function is never steeper than its asymptote, so the interval of slopes errs inwards:
    a multiplier inside it has a finite conjugate.
    """
    at = direction * np.array([1e4, FARTHEST])
    with np.errstate(over="ignore", invalid="ignore"):
        near, far = ((value(2 * at) - value(at)) / at).tolist()
    if not np.isfinite(far) or abs(far - near) > 1e-3 * max(abs(near), abs(far)):
        return direction * np.inf
    rounded = float(f"{far:.12g}")
    return (rounded if abs(rounded - far) <= 4e-15 * abs(far) else far * (1 - 1e-15)) + 0.0


def middle_slope(phi: MarginFunction, m: Floats) -> Floats:
    """Return the middle of the subgradient interval; infinite, with the sign of m, where values overflow."""
    low, high = phi.subgradient(m)
    middle = 0.5 * (low + high)
    return np.where(np.isnan(middle), np.copysign(np.inf, m), middle)


def conjugate(value: Function, slopes: tuple[float, float], u: Floats) -> Floats:
    """Return sup_m u m - phi(m), or slightly more; +inf outside the slopes and beyond FARTHEST."""
    at = np.clip(u, *slopes)

    def gain(m: Floats) -> Floats:
        return at * m - value(m)

    with np.errstate(over="ignore", invalid="ignore"):
        low, high = _around_maximum(gain, at.shape)
        end = np.where(low > 0, high, low)
        rising = gain(end) - gain(0.5 * end) > SECANT * (1 + np.abs(gain(end)))
        found = np.where(rising & (np.abs(end) >= FARTHEST), np.inf, _from_above(gain, low, high))
    return np.where(u == at, found, np.inf)


def deficit(phi: MarginFunction, value: Function, u: Floats) -> float:
    """Return by how much phi*(u) is too low somewhere, at least, if these are the values of phi."""
    u = u[np.isfinite(u) & (u >= phi.facts.slopes[0]) & (u <= phi.facts.slopes[1])]

    def gain(m: Floats) -> Floats:
        values = value(m)
        return u * m - values - 4 * np.finfo(float).eps * (np.abs(u * m) + np.abs(values))

    with np.errstate(over="ignore", invalid="ignore"):
        low, high = _around_maximum(gain, u.shape)
        reached = np.fmax(gain(0.5 * (low + high)), np.fmax(gain(low), gain(high)))
    return float(np.max(reached - phi.conjugate(u), initial=0.0))


def _around_maximum(gain: Function, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return [low, high] around the maximum of a concave function: its differences change their sign there.

    Where both of two values overflow, the maximum is nearer to 0.
    """

    def fall(m: Floats) -> Floats:
        step = SECANT * np.maximum(1.0, np.abs(m))
        change = gain(m - step) - gain(m + step)
        return np.where(np.isnan(change), m, change)

    low, high = bisect(fall, *bracket(fall, np.zeros(shape)), SECANT)
    return low - SECANT * np.maximum(1.0, np.abs(low)), high + SECANT * np.maximum(1.0, np.abs(high))


def _from_above(gain: Function, low: Floats, high: Floats) -> Floats:
    """Return the largest value in [low, high] of a concave function with these values around it."""
    width = high - low
    before, first, last, after = (gain(point) for point in (low - width, low, high, high + width))
    rise, fall = np.maximum(first - before, 0.0), np.maximum(last - after, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        # the lines first + rise t and last + fall (1 - t) meet at t in [0, 1]
        t = np.clip(np.nan_to_num((last + fall - first) / (rise + fall), nan=0.5), 0.0, 1.0)
    meeting = np.minimum(first + rise * t, last + fall * (1 - t))
    return np.maximum(meeting, np.maximum(first, last))


def prox(phi: MarginFunction, m: Floats, step: float) -> Floats:
    """Return the z with (m - z) / step in the subgradient of phi at z."""

    def rise(z: Floats) -> Floats:
        return step * middle_slope(phi, z) + z - m

    low, high = bisect(rise, *bracket(rise, np.asarray(m, dtype=float)))
    return 0.5 * (low + high)
