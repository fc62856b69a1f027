"""Numerical conjugate, prox and subgradient, for margin functions without a closed form.

Slopes are computed from secants and roots by bisection, all vectorised. The conjugate is computed from
function values alone and rounded *up*: a certificate subtracts it, so an error can only make the dual bound
looser.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.atoms.margin import MarginFunction

Function = Callable[[Floats], Floats]

FARTHEST = 1e8  # margins beyond this are treated as infinite
SECANT = 1e-6  # relative step of numeric slopes


def bisect(increasing: Function, low: Floats, high: Floats, width: float = 0.0) -> tuple[Floats, Floats]:
    """Shrink each interval [low, high] around the sign change of a nondecreasing function, by bisection.

    Stop when an interval is at most `width` long, or when its ends are adjacent floating-point numbers.
    Return (low, high) in the shape of the given arrays.
    """
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
    """Return (low, high) around `start` with increasing(low) <= 0 <= increasing(high).

    If the function does not change its sign up to FARTHEST, that end is FARTHEST with the matching sign.
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
    """Return the slopes of the secants to the left and to the right of m, each in the shape of m.

    They are rounded to single precision, which removes rounding noise: on a straight line all slopes are
    equal.
    """
    step = SECANT * np.maximum(1.0, np.abs(m))
    with np.errstate(over="ignore", invalid="ignore"):
        here = value(m)
        left, right = (here - value(m - step)) / step, (value(m + step) - here) / step
        return left.astype(np.float32).astype(float), right.astype(np.float32).astype(float)


def asymptotic_slope(value: Function, direction: float) -> float:
    """Return the slope of phi at -inf (direction -1) or at +inf (direction +1).

    It is estimated by a secant from 1e8 to 2e8, and infinite if this differs from the secant at 1e4. A secant
    of a convex function is never steeper than its asymptote, so the estimated interval of slopes is never too
    large: every dual variable inside it has a finite conjugate.
    """
    at = direction * np.array([1e4, FARTHEST])
    with np.errstate(over="ignore", invalid="ignore"):
        near, far = ((value(2 * at) - value(at)) / at).tolist()
    if not np.isfinite(far) or abs(far - near) > 1e-3 * max(abs(near), abs(far)):
        return direction * np.inf
    rounded = float(f"{far:.12g}")
    return (rounded if abs(rounded - far) <= 4e-15 * abs(far) else far * (1 - 1e-15)) + 0.0


def middle_slope(phi: MarginFunction, m: Floats) -> Floats:
    """Return the midpoint of the subgradient interval at m; +-inf, with the sign of m, where it is nan."""
    low, high = phi.subgradient(m)
    middle = 0.5 * (low + high)
    return np.where(np.isnan(middle), np.copysign(np.inf, m), middle)


def conjugate(value: Function, slopes: tuple[float, float], u: Floats) -> Floats:
    """Return phi*(u) = sup_m u m - phi(m) or slightly more, in the shape of u.

    It is +inf if u is outside of `slopes`, or if u m - phi(m) still increases at `|m|` = FARTHEST.
    """
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
    """Return a lower bound on the largest error of phi.conjugate(u), where it is too low.

    `value` computes the true phi (from its cvxpy expression). The result is the largest u m - value(m) -
    phi.conjugate(u) that was found, or 0 if none is positive.
    """
    u = u[np.isfinite(u) & (u >= phi.facts.slopes[0]) & (u <= phi.facts.slopes[1])]

    def gain(m: Floats) -> Floats:
        values = value(m)
        return u * m - values - 4 * np.finfo(float).eps * (np.abs(u * m) + np.abs(values))

    with np.errstate(over="ignore", invalid="ignore"):
        low, high = _around_maximum(gain, u.shape)
        reached = np.fmax(gain(0.5 * (low + high)), np.fmax(gain(low), gain(high)))
    return float(np.max(reached - phi.conjugate(u), initial=0.0))


def _around_maximum(gain: Function, shape: tuple[int, ...]) -> tuple[Floats, Floats]:
    """Return (low, high), arrays of the given shape, around the maximum of a concave function.

    The differences of the function change their sign between low and high. If a difference is nan because
    values overflow, the maximum is assumed to be closer to 0.
    """

    def fall(m: Floats) -> Floats:
        step = SECANT * np.maximum(1.0, np.abs(m))
        change = gain(m - step) - gain(m + step)
        return np.where(np.isnan(change), m, change)

    low, high = bisect(fall, *bracket(fall, np.zeros(shape)), SECANT)
    return low - SECANT * np.maximum(1.0, np.abs(low)), high + SECANT * np.maximum(1.0, np.abs(high))


def _from_above(gain: Function, low: Floats, high: Floats) -> Floats:
    """Bound the maximum of a concave function on [low, high] from above.

    The secants through the points to the left and to the right of the interval lie above the function inside
    it; the bound is the value at which they meet.
    """
    width = high - low
    before, first, last, after = (gain(point) for point in (low - width, low, high, high + width))
    rise, fall = np.maximum(first - before, 0.0), np.maximum(last - after, 0.0)
    with np.errstate(invalid="ignore", divide="ignore"):
        # the lines first + rise t and last + fall (1 - t) meet at t in [0, 1]
        t = np.clip(np.nan_to_num((last + fall - first) / (rise + fall), nan=0.5), 0.0, 1.0)
    meeting = np.minimum(first + rise * t, last + fall * (1 - t))
    return np.maximum(meeting, np.maximum(first, last))


def prox(phi: MarginFunction, m: Floats, step: float) -> Floats:
    """Return prox(m, step), in the shape of m: the z with (m - z) / step in the subdifferential at z."""

    def rise(z: Floats) -> Floats:
        return step * middle_slope(phi, z) + z - m

    low, high = bisect(rise, *bracket(rise, np.asarray(m, dtype=float)))
    return 0.5 * (low + high)
