"""Convex functions of one number by their values, one-sided slopes and curvature (jets).

The conjugate and the prox of a convex phi follow from its jets: both invert a nondecreasing function, the
slope, by Newton steps that a bracket safeguards. All functions are vectorised.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from nerm.typing import Floats, Ints

FARTHEST = 1e8  # margins beyond this are treated as infinite
NARROW = 1e-8  # relative width of the bracket of a maximizer; the conjugate is exact up to its square
KINK = 1e-9  # relative jump of the slope that counts as a kink
STEEPEST = 1e6  # larger curvatures count as this one
SETTLED = 1e-13  # relative distance at which two roots, breakpoints or slopes count as equal
MOST_ITERATIONS = 200  # of a root finder


class Jet(NamedTuple):
    """Value, slope to the left, slope to the right, and curvature at given points."""

    value: Floats
    low: Floats
    high: Floats
    curvature: Floats


class HingePart(NamedTuple):
    """max over u in [low, high] of u (m - a) - (q/2) u^2: the function with conjugate a u + (q/2) u^2."""

    a: float
    q: float
    low: float
    high: float

    def value(self, m: Floats) -> Floats:
        """Return the maximum, in the shape of m."""
        z = m - self.a
        if self.q == 0:
            return np.maximum(self.low * z, self.high * z) + 0.0  # no negative zeros
        u = np.clip(z / self.q, self.low, self.high)
        return np.asarray(u * (z - 0.5 * self.q * u))

    def slopes_at(self, m: Floats) -> tuple[Floats, Floats]:
        """Return the smallest and the largest u that attain the maximum, each in the shape of m."""
        z = m - self.a
        if self.q == 0:
            return np.where(z <= 0, self.low, self.high), np.where(z < 0, self.low, self.high)
        u = np.clip(z / self.q, self.low, self.high)
        return u, u


@dataclass(frozen=True, eq=False)
class JetFunction:
    """A convex function given by its jets.

    Attributes
    ----------
    value : callable
        m -> phi(m).
    jet : callable
        m -> Jet.
    breaks : (K,) array
        All points at which the derivative may jump or the curvature may be infinite.
    smoothness : float
        A bound on the curvature.
    numeric : bool
        Whether slopes are computed from values, with an error.
    star : callable, optional
        The conjugate u -> phi*(u), if it is known in closed form.

    Examples
    --------
    >>> from nerm import Exponential
    >>> f = Exponential().derived
    >>> f.end_slopes, f.conjugate(np.array([-1.0, 1.0])).round(12).tolist()
    ((-inf, 0.0), [-1.0, inf])
    """

    value: Callable[[Floats], Floats]
    jet: Callable[[Floats], Jet]
    breaks: Floats
    smoothness: float = np.inf
    numeric: bool = False
    star: Callable[[Floats], Floats] | None = None

    def slopes_at(self, m: Floats) -> tuple[Floats, Floats]:
        """Return the slopes to the left and to the right of m, each in the shape of m."""
        found = self.jet(m)
        low, high = found.low, found.high
        if len(self.breaks):
            k = np.minimum(np.searchsorted(self.breaks, m), len(self.breaks) - 1)
            low, high = (
                np.where(self.breaks[k] == m, jump[k], side)
                for jump, side in zip(self.jumps, (low, high), strict=True)
            )
        return np.clip(low, *self.end_slopes), np.clip(high, *self.end_slopes)

    def curvature(self, m: Floats) -> Floats:
        """Return phi''(m), in the shape of m."""
        return self.jet(m).curvature

    @cached_property
    def end_slopes(self) -> tuple[float, float]:
        """The slopes at -inf and +inf.

        A slope at 1e100 that is not moderate, or not a number because the value overflows, counts as
        infinite. A slope that has not reached its limit there is too small, which is safe for the conjugate.
        """
        ends = []
        for sign in (-1.0, 1.0):
            at = sign * np.array([1e100, 1e6, 1e3])
            with np.errstate(all="ignore"):
                slopes = np.mean(self.jet(at)[1:3], axis=0)
            known = slopes[np.isfinite(slopes)]
            grows = len(known) < len(slopes) or abs(known[0]) > 1e3 * (1 + abs(known[-1]))
            ends.append(sign * np.inf if grows else float(known[0]) + 0.0)
        return ends[0], ends[1]

    @cached_property
    def jumps(self) -> tuple[Floats, Floats]:
        """The slopes next to each breakpoint, which may be known up to rounding only, (K,) each."""
        width = 4 * np.finfo(float).eps * (1 + np.abs(self.breaks))
        left, right = self.jet(self.breaks - width), self.jet(self.breaks + width)
        return np.minimum(left.low, right.low), np.maximum(left.high, right.high)

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Points from -FARTHEST to FARTHEST, dense around 0, and the slopes there."""
        points = np.sinh(np.linspace(-19.1, 19.1, 4001))
        with np.errstate(all="ignore"):
            slopes = 0.5 * np.add(*self.slopes_at(points))
        known = np.isfinite(slopes)
        return points[known], slopes[known]

    def solve(self, r: Floats, ridge: float, step: float) -> Floats:
        """Return m with r in ridge m + step dphi(m); about +-FARTHEST if r is not reached before.

        The start is interpolated from a table. Between two breakpoints the function is smooth, and Newton
        steps, safeguarded by a bracket, converge from there.
        """
        place, low, high = bracket(self, r, ridge, step)
        points, slopes = self._table
        table = ridge * points + step * slopes
        # At an end slope take the point nearest to 0 that has it: u m - phi(m) loses digits far away.
        first, last = (
            points[np.searchsorted(table, table[-1])],
            points[np.searchsorted(table, table[0], "right") - 1],
        )
        m = np.where(r >= table[-1], first, np.where(r <= table[0], last, np.interp(r, table, points)))
        m = np.clip(m, low, high)
        k = np.clip(np.searchsorted(table, r), 1, len(points) - 1)
        low, high = np.maximum(low, points[k - 1]), np.minimum(high, points[k])
        left = np.flatnonzero((place % 2 == 0) & (r > table[0]) & (r < table[-1]))
        for count in range(MOST_ITERATIONS):
            if not len(left):
                break
            at = m[left]
            jet = self.jet(at)
            excess = ridge * at + step * 0.5 * (jet.low + jet.high) - r[left]
            excess = np.where(np.isnan(excess), at, excess)  # an overflow: the root is closer to 0
            low[left] = np.where(excess <= 0, at, low[left])
            high[left] = np.where(excess >= 0, at, high[left])
            new = at - excess / (ridge + step * jet.curvature)
            outside = ~((new > low[left]) & (new < high[left]))
            new = np.where(outside | (count % 8 == 7), 0.5 * (low[left] + high[left]), new)
            done = np.abs(excess) <= 8 * np.finfo(float).eps * (np.abs(ridge * at) + np.abs(r[left]))
            m[left] = np.where(done, at, new)
            left = left[~done & (np.abs(new - at) > SETTLED * (1 + np.abs(at)))]
        return m

    def conjugate(self, u: Floats) -> Floats:
        """Return phi*(u) = sup_m u m - phi(m), or slightly more; +inf outside of `end_slopes`.

        u m - phi(m) at any m is too small. So the maximizer is enclosed in [m1, m2], and the value at which
        the tangents at m1 and m2 meet is returned: an upper bound whose error is of second order.
        """
        if self.star is not None:
            u, (low, high) = np.asarray(u, dtype=float), self.end_slopes
            rounding = 8 * np.finfo(float).eps * (1 + np.abs(u))
            with np.errstate(all="ignore"):  # rounding may put an end slope outside of the domain of `star`
                found, next_to = (self.star(at) for at in (u, np.clip(u, low + rounding, high - rounding)))
            return np.where(np.isinf(found) & (low <= u) & (u <= high), next_to, found)
        inside = np.clip(np.asarray(u, dtype=float), *self.end_slopes).ravel()
        with np.errstate(all="ignore"):
            m = self.solve(inside, 0.0, 1.0)
            width = NARROW * (1 + np.abs(m))
            while True:
                one, two = self.jet(m - width), self.jet(m + width)
                open_ = ~((one.low <= inside) & (inside <= two.high)) & (width < FARTHEST)
                if not open_.any():
                    break
                width = np.where(open_, 8 * width, width)
            rise, fall = (inside - one.low) * 2 * width, (two.high - inside) * 2 * width
            first = inside * (m - width) - one.value
            last = inside * (m + width) - two.value
            # the lines first + rise t and last + fall (1 - t) meet at t in [0, 1]
            t = np.clip(np.nan_to_num((last + fall - first) / (rise + fall), nan=0.5), 0.0, 1.0)
            found = np.maximum(np.minimum(first + rise * t, last + fall * (1 - t)), np.fmax(first, last))
            found = np.where(width < FARTHEST, found, self._at_infinity(inside, m))
        return np.where(np.ravel(u) == inside, found, np.inf).reshape(np.shape(u))

    def _at_infinity(self, u: Floats, m: Floats) -> Floats:
        """Return the limit of u m - phi(m) along the sign of m; +inf if it still rises at FARTHEST."""
        end = np.copysign(FARTHEST, m)
        far, near = (u * at - self.value(at) for at in (end, 0.5 * end))
        return np.where(far - near > 1e-6 * (1 + np.abs(far)), np.inf, np.maximum(far, near))

    def without_kinks(self) -> tuple[list[HingePart], JetFunction]:
        """Return hinges and a differentiable convex function that add up to this function.

        A jump of the slope from l to h at b is the hinge max(l' (m - b), h' (m - b)) with h' - l' = h - l
        and, if possible, l' <= 0 <= h'.
        """
        parts = list[HingePart]()
        for b, low, high in zip(self.breaks.tolist(), *(side.tolist() for side in self.jumps), strict=True):
            if high - low > KINK * (1 + abs(low)):
                shift = min(max(0.0, low), high)
                parts.append(HingePart(b, 0.0, low - shift, high - shift))

        def value(m: Floats) -> Floats:
            return np.asarray(self.value(m) - sum(part.value(m) for part in parts))

        def jet(m: Floats) -> Jet:
            whole = self.jet(m)
            slope = 0.5 * (whole.low + whole.high)
            for part in parts:
                slope = slope - 0.5 * np.add(*part.slopes_at(m))
            return Jet(whole.value - sum(part.value(m) for part in parts), slope, slope, whole.curvature)

        return parts, JetFunction(value, jet, self.breaks)

    def prox(self, z: Floats, step: float) -> Floats:
        """Return argmin_m  step phi(m) + (m - z)^2 / 2, in the shape of z."""
        with np.errstate(all="ignore"):
            return self.solve(np.ravel(z), 1.0, step).reshape(np.shape(z))


def bracket(function: Any, r: Floats, ridge: float, step: float) -> tuple[Ints, Floats, Floats]:
    """Find r among the values of the nondecreasing map m -> ridge m + step dphi(m) at the breakpoints.

    Return its place and the two breakpoints around the solution, equal if the place is odd: then r lies in
    the jump at a breakpoint. An even place 2 k is piece k.
    """
    low, high = (ridge * function.breaks + step * side for side in function.jumps)
    knots = np.maximum.accumulate(np.column_stack([low, high]).ravel())
    place = np.searchsorted(knots, r)
    ends = np.concatenate([[-np.inf], function.breaks, [np.inf]])
    return place, ends[(place + 1) // 2], ends[place // 2 + 1]
