"""Conjugate, prox and subgradient by computation, for margin functions that state none in closed form.

Slopes come from secants, roots by bisection, all vectorised. The conjugate is computed from values alone and
rounded *up*: a certificate subtracts it, so an error must make a bound looser and never wrong.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

from nerm.typing import Bools, Floats

if TYPE_CHECKING:
    from nerm.atoms.margin import MarginFunction

Function = Callable[[Floats], Floats]

FARTHEST = 1e8  # margins beyond this are taken as infinite
SECANT = 1e-6  # relative step of numeric slopes
GOLDEN = (np.sqrt(5.0) - 1) / 2


def bisect(increasing: Function, low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Shrink [low, high] around the sign change of a nondecreasing function, to neighbouring floats."""
    low, high = low.astype(float).copy(), high.astype(float).copy()
    for _ in range(200):
        middle = 0.5 * (low + high)
        stuck = (middle <= low) | (middle >= high)
        if stuck.all():
            break
        above = increasing(middle) > 0
        high = np.where(above & ~stuck, middle, high)
        low = np.where(above | stuck, low, middle)
    return low, high


def bracket(increasing: Function, start: Floats) -> tuple[Floats, Floats]:
    """Return [low, high] around `start` with increasing(low) <= 0 <= increasing(high), as far as FARTHEST.

    Where the function keeps one sign up to FARTHEST, the end stays there.
    """
    start = np.clip(start, -FARTHEST, FARTHEST)
    return _reach(increasing, start, -1.0), _reach(increasing, start, 1.0)


def _reach(increasing: Function, start: Floats, direction: float) -> Floats:
    """Walk from start in growing steps until the function has the sign of the direction."""
    end, step = start + direction, np.ones_like(start)
    for _ in range(64):
        short = (direction * increasing(end) < 0) & (np.abs(end) < FARTHEST)
        if not short.any():
            break
        step = np.where(short, 4.0 * step, step)
        end = np.where(short, np.clip(start + direction * step, -FARTHEST, FARTHEST), end)
    return end


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


def conjugate(phi: MarginFunction, u: Floats) -> Floats:
    """Return sup_m u m - phi(m), or slightly more; +inf outside the slopes and beyond FARTHEST."""
    low_slope, high_slope = phi.facts.slopes
    inside = (u >= low_slope) & (u <= high_slope)
    at = np.where(inside, u, np.clip(u, low_slope, high_slope)).astype(float)

    def gain(m: Floats) -> Floats:
        with np.errstate(over="ignore", invalid="ignore"):
            values = at * m - phi.value(m)
        return np.where(np.isnan(values), -np.inf, values)

    low, high, out_of_reach = _peak(gain, np.shape(at))
    return np.where(inside, np.where(out_of_reach, np.inf, _from_above(gain, low, high)), np.inf)


def deficit(phi: MarginFunction, value: Function, u: Floats) -> float:
    """Return by how much phi*(u) is too low somewhere, at least, if these are the values of phi."""
    u = u[np.isfinite(u) & (u >= phi.facts.slopes[0]) & (u <= phi.facts.slopes[1])]

    def gain(m: Floats) -> Floats:
        values = value(m)
        with np.errstate(over="ignore", invalid="ignore"):
            gained = u * m - values - 4 * np.finfo(float).eps * (np.abs(u * m) + np.abs(values))
        return np.where(np.isnan(gained), -np.inf, gained)

    low, high, _ = _peak(gain, u.shape)
    reached = np.max([gain(low), gain(0.5 * (low + high)), gain(high)], axis=0)
    return float(np.max(reached - phi.conjugate(u), initial=0.0))


def _peak(gain: Function, shape: tuple[int, ...]) -> tuple[Floats, Floats, Bools]:
    """Bracket the maximum of a concave function by golden section; tell where it rises at FARTHEST."""
    low, high = (_climb(gain, shape, direction) for direction in (-1.0, 1.0))
    out_of_reach = np.zeros(shape, dtype=bool)
    for end in (low, high):
        still_rising = gain(end) - gain(0.5 * end) > 1e-6 * (1 + np.abs(gain(end)))
        out_of_reach |= still_rising & (np.abs(end) >= FARTHEST)
    for _ in range(150):
        if np.all(high - low <= SECANT * np.maximum(1.0, np.abs(low))):
            break
        left, right = high - GOLDEN * (high - low), low + GOLDEN * (high - low)
        keep_left = gain(left) >= gain(right)
        low, high = np.where(keep_left, low, left), np.where(keep_left, right, high)
    return low, high, out_of_reach


def _climb(gain: Function, shape: tuple[int, ...], direction: float) -> Floats:
    """Return a point beyond the maximum in this direction: walk in growing steps while the function rises."""
    here, ahead = np.zeros(shape), np.full(shape, direction)
    for _ in range(40):
        rising = (gain(ahead) >= gain(here)) & (np.abs(ahead) < FARTHEST)
        if not rising.any():
            break
        here = np.where(rising, ahead, here)
        ahead = np.where(rising, np.clip(2.0 * ahead, -FARTHEST, FARTHEST), ahead)
    return ahead


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
