"""Piecewise quadratic functions of one number, with exact conjugate, prox and decomposition into hinges.

A function is a list of breakpoints and one quadratic per piece. The class is closed under sums, multiples,
maxima, and squares of piecewise linear functions, so many formulas stay in it (`nerm.atoms.formula`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from nerm.atoms.jets import HingePart, Jet, bracket
from nerm.typing import Floats

SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")
CLOSE = 1e-13  # relative distance at which two breakpoints, slopes or curvatures count as equal


@dataclass(frozen=True, eq=False)
class PiecewiseQuadratic:
    """f(m) = curve_k (m - centre_k)^2 + slope_k (m - centre_k) + level_k on piece k.

    Attributes
    ----------
    breaks : (K,) array
        The breakpoints, increasing. Piece k lies between breaks[k - 1] and breaks[k].
    pieces : (K + 1, 4) array
        The centre, curve, slope and level of each piece. A centre close to the piece keeps rounding small.

    Examples
    --------
    >>> m = PiecewiseQuadratic.identity()
    >>> hinge = (-m + 1.0).maximum(0.0 * m)
    >>> hinge.breaks.tolist(), hinge.value(np.array([-1.0, 1.0, 2.0])).tolist()
    ([1.0], [2.0, 0.0, 0.0])
    >>> hinge.is_convex, hinge.end_slopes
    (True, (-1.0, 0.0))
    """

    breaks: Floats
    pieces: Floats

    @classmethod
    def identity(cls) -> PiecewiseQuadratic:
        """Return f(m) = m."""
        return cls(np.zeros(0), np.array([[0.0, 0.0, 1.0, 0.0]]))

    @classmethod
    def constant(cls, level: float) -> PiecewiseQuadratic:
        """Return f(m) = level."""
        return cls(np.zeros(0), np.array([[0.0, 0.0, 0.0, level]]))

    # ---- algebra

    def __add__(self, other: PiecewiseQuadratic | float) -> PiecewiseQuadratic:
        other = other if isinstance(other, PiecewiseQuadratic) else self.constant(other)
        breaks, one, two = self._on_common_breaks(other)
        return _simplified(breaks, np.column_stack([one[:, :1], one[:, 1:] + _moved(two, one[:, 0])[:, 1:]]))

    def __mul__(self, factor: float) -> PiecewiseQuadratic:
        return replace(self, pieces=self.pieces * [1.0, factor, factor, factor])

    __rmul__ = __mul__

    def __neg__(self) -> PiecewiseQuadratic:
        return self * -1.0

    def maximum(self, other: PiecewiseQuadratic) -> PiecewiseQuadratic:
        """Return max(f, g): the pieces are cut where f = g."""
        breaks, one, two = self._on_common_breaks(other)
        ends = np.concatenate([[-np.inf], breaks, [np.inf]])
        cuts = [breaks]
        for k, (low, high) in enumerate(pairwise(ends)):
            gap = one[k, 1:] - _moved(two[k : k + 1], one[k, :1])[0, 1:]
            roots = _short(one[k, 0] + _roots(*gap))
            cuts.append(roots[(roots > low) & (roots < high)])
        cut = np.unique(np.concatenate(cuts))
        points = _inside(cut)
        first, second = (f.pieces[np.searchsorted(f.breaks, points)] for f in (self, other))
        # inside a piece the difference does not change its sign, but it may be 0 at one point
        lead = sum(_values(first, at) - _values(second, at) for at in (points, _inside(cut, 0.3)))
        return _simplified(cut, np.where((lead >= 0)[:, None], first, second))  # type: ignore[index]

    def square(self) -> PiecewiseQuadratic | None:
        """Return f^2, or None if f is not piecewise linear."""
        if self.pieces[:, 1].any():
            return None
        centre, _, slope, level = self.pieces.T
        steep = slope != 0
        zero = np.where(
            steep, centre - np.divide(level, slope, out=np.zeros_like(level), where=steep), centre
        )
        level = np.where(steep, 0.0, level**2)
        return _simplified(self.breaks, np.column_stack([zero, slope**2, np.zeros_like(slope), level]))

    def _on_common_breaks(self, other: PiecewiseQuadratic) -> tuple[Floats, Floats, Floats]:
        """Return the breakpoints of both functions, and the pieces of each between them."""
        breaks = np.union1d(self.breaks, other.breaks)
        points = _inside(breaks)
        one, two = (f.pieces[np.searchsorted(f.breaks, points)] for f in (self, other))
        return breaks, one, two

    # ---- values

    def value(self, m: Floats) -> Floats:
        """Return f(m), in the shape of m."""
        with np.errstate(over="ignore", invalid="ignore"):
            return _values(self.pieces[np.searchsorted(self.breaks, m)], m)

    def slopes_at(self, m: Floats) -> tuple[Floats, Floats]:
        """Return the slopes of f to the left and to the right of m, each in the shape of m."""
        left, right = (self.pieces[np.searchsorted(self.breaks, m, side=side)] for side in SIDES)
        return tuple(piece[..., 2] + 2 * piece[..., 1] * (m - piece[..., 0]) for piece in (left, right))  # type: ignore[return-value]

    def curvature(self, m: Floats) -> Floats:
        """Return f''(m) to the right of m, in the shape of m."""
        return np.asarray(2 * self.pieces[np.searchsorted(self.breaks, m, side="right"), 1])

    @cached_property
    def end_slopes(self) -> tuple[float, float]:
        """The slopes of f at -inf and +inf."""
        (_, first, low, _), (_, last, high, _) = self.pieces[0].tolist(), self.pieces[-1].tolist()
        return -np.inf * np.sign(first) if first else low, np.inf * np.sign(last) if last else high

    @cached_property
    def jumps(self) -> tuple[Floats, Floats]:
        """The slopes to the left and to the right of each breakpoint, (K,) each."""
        return self.slopes_at(self.breaks)

    @cached_property
    def is_convex(self) -> bool:
        """Whether no piece is concave and no slope falls at a breakpoint; rounding errors are removed."""
        low, high = self.jumps
        return bool((self.pieces[:, 1] >= 0).all() and (high >= low - CLOSE * (1 + np.abs(low))).all())

    @cached_property
    def hinge_parts(self) -> tuple[list[HingePart], float]:
        """Hinge-like functions that add up to f up to a constant, and that constant.

        f' rises from the slope at -inf to that at +inf in segments: a jump at a breakpoint, or a piece with
        positive curve. Each segment is one part. The range of u of a part contains 0 if possible: segments
        below the slope 0 have u in [-height, 0], those above have [0, height].
        """
        low, high = self.jumps
        ends = np.concatenate([[-np.inf], self.breaks, [np.inf]])
        segments = list[HingePart]()
        for k, (centre, curve, slope, _) in enumerate(self.pieces.tolist()):
            if curve > 0:
                first, last = (slope + 2 * curve * (end - centre) for end in ends[k : k + 2].tolist())
                segments.append(HingePart(centre - slope / (2 * curve), 1 / (2 * curve), first, last))
            if k < len(low) and high[k] - low[k] > CLOSE * (1 + abs(low[k])):
                segments.append(HingePart(float(self.breaks[k]), 0.0, float(low[k]), float(high[k])))
        origin = float(np.clip(0.0, *self.end_slopes))
        parts = list[HingePart]()
        for a, q, first, last in segments:
            shift = min(max(origin, first), last)  # the slope of f at which u of this part is 0
            parts.append(HingePart(a + q * shift, q, first - shift, last - shift))
        if origin or not parts:  # all slopes have the same sign: f has a linear part
            parts.append(HingePart(0.0, 0.0, origin, origin))
        at = np.zeros(1)
        value = float(self.value(at)[0])
        constant = value - float(sum(part.value(at)[0] for part in parts))
        return parts, constant if abs(constant) > CLOSE * (1 + abs(value)) else 0.0


class HingeSum:
    """A convex piecewise quadratic function as a constant plus a sum of hinge-like functions.

    Examples
    --------
    >>> m = PiecewiseQuadratic.identity()
    >>> f = HingeSum((-m + 1.0).maximum(2.0 * (-m + 0.2)).maximum(0.0 * m))
    >>> [(round(part.a, 12), part.low, part.high) for part in f.parts]
    [(-0.6, -1.0, 0.0), (1.0, -1.0, 0.0)]
    >>> f.value(np.array([-2.0, 0.0])).tolist(), f.conjugate(np.array([-1.5, 0.1])).round(12).tolist()
    ([4.4, 1.0], [-0.7, inf])
    """

    numeric = False

    def __init__(self, function: PiecewiseQuadratic) -> None:
        self.function = function
        self.parts, self.constant = function.hinge_parts
        self.breaks, self.jumps = function.breaks, function.jumps
        self.end_slopes = sum(part.low for part in self.parts), sum(part.high for part in self.parts)
        kinked = any(part.q == 0 and part.low < part.high for part in self.parts)
        self.smoothness = np.inf if kinked else float(2 * function.pieces[:, 1].max())

    def value(self, m: Floats) -> Floats:
        """Return f(m), in the shape of m."""
        with np.errstate(over="ignore"):
            return np.asarray(sum((part.value(m) for part in self.parts), start=self.constant))

    def slopes_at(self, m: Floats) -> tuple[Floats, Floats]:
        """Return the slopes to the left and to the right of m, each in the shape of m."""
        slopes = [part.slopes_at(m) for part in self.parts]
        return sum(low for low, _ in slopes), sum(high for _, high in slopes)  # type: ignore[return-value]

    def curvature(self, m: Floats) -> Floats:
        """Return f''(m) to the right of m, in the shape of m."""
        return self.function.curvature(m)

    def jet(self, m: Floats) -> Jet:
        """Return the jet at m."""
        return Jet(self.value(m), *self.slopes_at(m), self.curvature(m))

    def _solve(self, r: Floats, ridge: float, step: float) -> Floats:
        """Return the m with r in ridge m + step df(m), where df is the subdifferential; r is in its range."""
        place, low, high = bracket(self, r, ridge, step)
        piece = self.function.pieces[(place + 1) // 2]
        centre, curve, slope = piece[..., 0], piece[..., 1], piece[..., 2]
        rate = ridge + 2 * step * curve
        along = (r - ridge * centre - step * slope) / np.where(rate > 0, rate, 1.0)
        return np.clip(np.where(rate > 0, centre + along, centre), low, high)

    def conjugate(self, u: Floats) -> Floats:
        """Return f*(u) = max_m u m - f(m); +inf outside of `end_slopes`."""
        inside = np.clip(u, *self.end_slopes)
        if len(self.parts) == 1:
            found = inside * (self.parts[0].a + 0.5 * self.parts[0].q * inside) - self.constant + 0.0
        else:
            m = self._solve(inside, 0.0, 1.0)
            found = inside * m - self.value(m)
        return np.where(u == inside, found, np.inf)

    def prox(self, z: Floats, step: float) -> Floats:
        """Return argmin_m  step f(m) + (m - z)^2 / 2."""
        if len(self.parts) == 1:
            a, q, low, high = self.parts[0]
            return np.asarray(z - step * np.clip((z - a) / (q + step), low, high))
        return self._solve(z, 1.0, step)


def _inside(breaks: Floats, share: float = 0.5) -> Floats:
    """Return one point inside each piece, (K + 1,); `share` is its relative place."""
    if not len(breaks):
        return np.array([share])
    first, last = breaks[0] - 2 * share * (1 + abs(breaks[0])), breaks[-1] + 2 * share * (1 + abs(breaks[-1]))
    return np.concatenate([[first], breaks[:-1] + share * np.diff(breaks), [last]])


def _values(pieces: Floats, m: Floats) -> Floats:
    x = m - pieces[..., 0]
    linear = np.where(pieces[..., 2] != 0, pieces[..., 2] * x, 0.0)
    return np.asarray(np.where(pieces[..., 1] != 0, pieces[..., 1] * x * x, 0.0) + linear + pieces[..., 3])


def _moved(pieces: Floats, centres: Floats) -> Floats:
    """Return the same quadratics around other centres."""
    x = centres - pieces[:, 0]
    slope = pieces[:, 2] + 2 * pieces[:, 1] * x
    level = pieces[:, 3] + x * (pieces[:, 2] + pieces[:, 1] * x)
    return np.column_stack([centres, pieces[:, 1], slope, level])


def _roots(a: float, b: float, c: float) -> Floats:
    """Return the real roots of a x^2 + b x + c at which it changes its sign."""
    if a == 0:
        return np.array([-c / b]) if b else np.zeros(0)
    discriminant = b * b - 4 * a * c
    if not discriminant > 0:
        return np.zeros(0)
    q = -0.5 * (b + np.copysign(np.sqrt(discriminant), b))
    return np.array([q / a, c / q])


def _short(numbers: Floats) -> Floats:
    """Replace each number by a decimal of 14 digits where both are equal up to rounding: -0.6, say."""
    short = np.array([float(f"{x:.14g}") for x in numbers])
    return np.where(np.abs(short - numbers) <= 8 * np.finfo(float).eps * np.abs(numbers), short, numbers)


def _simplified(breaks: Floats, pieces: Floats) -> PiecewiseQuadratic:
    """Drop breakpoints at which the quadratic does not change, and centre each piece at one of its ends."""
    apart = np.diff(breaks, append=np.inf) > CLOSE * (1 + np.abs(breaks))
    breaks, pieces = breaks[apart], pieces[np.append(True, apart)]  # a piece without width is dropped
    keep = np.ones(len(breaks), dtype=bool)
    for k in np.flatnonzero(keep):
        one, two = _moved(pieces[k : k + 2], np.full(2, breaks[k]))
        size = np.abs(pieces[k : k + 2, 1:3]).max() + np.abs(one[1:3]).max()
        keep[k] = bool(np.any(np.abs(one - two)[1:3] > CLOSE * (1e-300 + size)))
    breaks, pieces = breaks[keep], pieces[np.append(True, keep)]
    if len(breaks):
        pieces = _moved(pieces, np.append(breaks[:1], breaks))
        rounding = np.abs(pieces[:, 1]) <= CLOSE * np.abs(pieces[:, 1]).max()
        pieces[rounding, 1] = 0.0
    return PiecewiseQuadratic(breaks, pieces)
