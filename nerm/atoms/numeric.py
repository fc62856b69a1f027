"""Conjugate, prox and subgradient by computation, for margin functions that state none in closed form.

Everything rests on bisection, vectorised: the subgradient of a convex function is monotone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from nerm.atoms.margin import MarginFunction

FARTHEST = 1e8  # margins beyond this are taken as infinite
SECANT = 1e-6  # relative step of numeric slopes


def bisect(
    increasing: Callable[[np.ndarray], np.ndarray], low: np.ndarray, high: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
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


def bracket(increasing: Callable[[np.ndarray], np.ndarray], start: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return [low, high] around `start` with increasing(low) <= 0 <= increasing(high), as far as FARTHEST.

    Where the function keeps one sign up to FARTHEST, the end stays there.
    """
    start = np.clip(start, -FARTHEST, FARTHEST)
    return _reach(increasing, start, -1.0), _reach(increasing, start, 1.0)


def _reach(increasing: Callable[[np.ndarray], np.ndarray], start: np.ndarray, direction: float) -> np.ndarray:
    """Walk from start in growing steps until the function has the sign of the direction."""
    end, step = start + direction, np.ones_like(start)
    for _ in range(64):
        short = (direction * increasing(end) < 0) & (np.abs(end) < FARTHEST)
        if not short.any():
            break
        step = np.where(short, 4.0 * step, step)
        end = np.where(short, np.clip(start + direction * step, -FARTHEST, FARTHEST), end)
    return end


def secant_slopes(value: Callable[[np.ndarray], np.ndarray], m: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the slopes of the secants just left and just right of m.

    A secant of a convex function has the slope of a subgradient somewhere between its ends, so both numbers
    always lie in the domain of the conjugate. They are rounded to single precision, below their own error, so that a
    straight piece has one slope and not a noise of slopes.
    """
    step = SECANT * np.maximum(1.0, np.abs(m))
    with np.errstate(over="ignore", invalid="ignore"):
        here = value(m)
        left, right = (here - value(m - step)) / step, (value(m + step) - here) / step
        return left.astype(np.float32).astype(float), right.astype(np.float32).astype(float)


def middle_slope(phi: MarginFunction, m: np.ndarray) -> np.ndarray:
    """Return the middle of the subgradient interval; where values overflow it is infinite, with the sign of m."""
    low, high = phi.subgradient(m)
    middle = 0.5 * (low + high)
    return np.where(np.isnan(middle), np.copysign(np.inf, m), middle)


def conjugate(phi: MarginFunction, u: np.ndarray) -> np.ndarray:
    """Return sup_m u m - phi(m), from the point where the subgradient passes u."""
    low_slope, high_slope = phi.facts.slopes
    inside = (u >= low_slope) & (u <= high_slope)
    u_inside = np.where(inside, u, 0.5 * sum(_finite(phi.facts.slopes)))

    def rise(m: np.ndarray) -> np.ndarray:
        return middle_slope(phi, m) - u_inside

    low, high = bisect(rise, *bracket(rise, np.zeros_like(u_inside)))
    with np.errstate(over="ignore", invalid="ignore"):
        best = np.fmax(u_inside * low - phi.value(low), u_inside * high - phi.value(high))
    return np.where(inside, best, np.inf)


def _finite(slopes: tuple[float, float]) -> tuple[float, float]:
    """Return the interval of slopes with infinite ends replaced by finite ones inside it."""
    low, high = slopes
    if not np.isfinite(low):
        low = min(-1.0, high - 1.0) if np.isfinite(high) else -1.0
    return low, high if np.isfinite(high) else max(1.0, low + 1.0)


def prox(phi: MarginFunction, m: np.ndarray, step: float) -> np.ndarray:
    """Return the z with (m - z) / step in the subgradient of phi at z."""

    def rise(z: np.ndarray) -> np.ndarray:
        return step * middle_slope(phi, z) + z - m

    low, high = bisect(rise, *bracket(rise, np.asarray(m, dtype=float)))
    return 0.5 * (low + high)
