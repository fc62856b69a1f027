"""Convex piecewise quadratic functions of one number: exact conjugate, prox and decomposition into hinges."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Literal

import numpy as np

from nerm.atoms.jets import SETTLED, HingePart, Jet, bracket
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.atoms.jets import JetFunction

SIDES: tuple[Literal["left"], Literal["right"]] = ("left", "right")


class Pieces:
    """A piecewise quadratic function: curve_k (m - centre_k)^2 + slope_k (m - centre_k) + level_k on piece k.

    Attributes
    ----------
    breaks : (K,) array
        The breakpoints, increasing. Piece k lies between breaks[k - 1] and breaks[k].
    pieces : (K + 1, 4) array
        The centre, curve, slope and level of each piece. A centre close to the piece keeps rounding small.
    jumps : pair of (K,) arrays
        The slopes to the left and to the right of each breakpoint.
    """

    numeric = False

    def __init__(self, function: JetFunction) -> None:
        points = inside(function.breaks)
        jet = function.jet(points)
        pieces = np.column_stack([points, 0.5 * jet.curvature, jet.low, jet.value])
        self.breaks, self.pieces = _simplified(function.breaks, pieces)
        self.pieces[:, 3] = function.value(self.pieces[:, 0])  # more digits than the moved level
        sides = (_moved(piece, self.breaks)[:, 2] for piece in (self.pieces[:-1], self.pieces[1:]))
        self.jumps: tuple[Floats, Floats] = tuple(sides)  # type: ignore[assignment]
        kinked = (np.abs(np.subtract(*self.jumps)) > SETTLED * (1 + np.abs(self.jumps[0]))).any()
        self.smoothness = np.inf if kinked else float(2 * np.abs(self.pieces[:, 1]).max())
        (_, first, low, _), (_, last, high, _) = self.pieces[0].tolist(), self.pieces[-1].tolist()
        self.end_slopes = -np.inf * np.sign(first) if first else low, np.inf * np.sign(last) if last else high

    @property
    def is_convex(self) -> bool:
        """Whether no piece is concave and no slope falls at a breakpoint; rounding errors are removed."""
        low, high = self.jumps
        return bool((self.pieces[:, 1] >= 0).all() and (high >= low - SETTLED * (1 + np.abs(low))).all())

    def value(self, m: Floats) -> Floats:
        """Return f(m), in the shape of m."""
        centre, curve, slope, level = np.moveaxis(self.pieces[np.searchsorted(self.breaks, m)], -1, 0)
        with np.errstate(over="ignore", invalid="ignore"):
            x = m - centre
            bent = np.where(curve != 0, curve * x * x, 0.0)
            return np.asarray(bent + np.where(slope != 0, slope * x, 0.0) + level)

    def slopes_at(self, m: Floats) -> tuple[Floats, Floats]:
        """Return the slopes to the left and to the right of m, each in the shape of m."""
        left, right = (self.pieces[np.searchsorted(self.breaks, m, side=side)] for side in SIDES)
        return tuple(piece[..., 2] + 2 * piece[..., 1] * (m - piece[..., 0]) for piece in (left, right))  # type: ignore[return-value]

    def curvature(self, m: Floats) -> Floats:
        """Return f''(m) to the right of m, in the shape of m."""
        return np.asarray(2 * self.pieces[np.searchsorted(self.breaks, m, side="right"), 1])

    def jet(self, m: Floats) -> Jet:
        """Return the jet at m."""
        return Jet(self.value(m), *self.slopes_at(m), self.curvature(m))


class HingeSum(Pieces):
    """A convex piecewise quadratic function as a constant plus a sum of hinge-like functions.

    Examples
    --------
    >>> from nerm.atoms.formula import MARGIN, as_node, maximum
    >>> f = HingeSum(maximum(maximum(1.0 - MARGIN, 2.0 * (0.2 - MARGIN)), as_node(0.0)))
    >>> [(round(part.a, 12), part.low, part.high) for part in f.parts]
    [(-0.6, -1.0, 0.0), (1.0, -1.0, 0.0)]
    >>> f.value(np.array([-2.0, 0.0])).tolist(), f.conjugate(np.array([-1.5, 0.1])).round(12).tolist()
    ([4.4, 1.0], [-0.7, inf])
    """

    def __init__(self, function: JetFunction) -> None:
        super().__init__(function)
        self.parts = self._parts()
        self.end_slopes = sum(part.low for part in self.parts), sum(part.high for part in self.parts)

    def _parts(self) -> list[HingePart]:
        """Return hinge-like functions that add up to f up to a constant.

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
            if k < len(low) and high[k] - low[k] > SETTLED * (1 + abs(low[k])):
                segments.append(HingePart(float(self.breaks[k]), 0.0, float(low[k]), float(high[k])))
        origin = float(np.clip(0.0, *self.end_slopes))
        parts = list[HingePart]()
        for a, q, first, last in segments:
            shift = min(max(origin, first), last)  # the slope of f at which u of this part is 0
            parts.append(HingePart(a + q * shift, q, first - shift, last - shift))
        if origin or not parts:  # all slopes have the same sign: f has a linear part
            parts.append(HingePart(0.0, 0.0, origin, origin))
        return parts

    @cached_property
    def constant(self) -> float:
        """F less the sum of its parts."""
        at = np.zeros(1)
        value = float(super().value(at)[0])
        constant = value - float(sum(part.value(at)[0] for part in self.parts))
        return constant if abs(constant) > SETTLED * (1 + abs(value)) else 0.0

    def value(self, m: Floats) -> Floats:
        """Return f(m), in the shape of m."""
        with np.errstate(over="ignore"):
            return np.asarray(sum((part.value(m) for part in self.parts), start=self.constant))

    def slopes_at(self, m: Floats) -> tuple[Floats, Floats]:
        """Return the slopes to the left and to the right of m, each in the shape of m."""
        slopes = [part.slopes_at(m) for part in self.parts]
        return sum(low for low, _ in slopes), sum(high for _, high in slopes)  # type: ignore[return-value]

    def _solve(self, r: Floats, ridge: float, step: float) -> Floats:
        """Return the m with r in ridge m + step df(m), where df is the subdifferential; r is in its range."""
        place, low, high = bracket(self, r, ridge, step)
        piece = self.pieces[(place + 1) // 2]
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


def inside(breaks: Floats) -> Floats:
    """Return one point inside each piece, (K + 1,)."""
    if not len(breaks):
        return np.zeros(1)
    first, last = breaks[0] - (1 + abs(breaks[0])), breaks[-1] + 1 + abs(breaks[-1])
    return np.concatenate([[first], breaks[:-1] + 0.5 * np.diff(breaks), [last]])


def _moved(pieces: Floats, centres: Floats) -> Floats:
    """Return the same quadratics around other centres."""
    x = centres - pieces[:, 0]
    slope = pieces[:, 2] + 2 * pieces[:, 1] * x
    level = pieces[:, 3] + x * (pieces[:, 2] + pieces[:, 1] * x)
    return np.column_stack([centres, pieces[:, 1], slope, level])


def _simplified(breaks: Floats, pieces: Floats) -> tuple[Floats, Floats]:
    """Drop breakpoints at which the quadratic does not change, and centre each piece at one of its ends."""
    apart = np.diff(breaks, append=np.inf) > SETTLED * (1 + np.abs(breaks))
    breaks, pieces = breaks[apart], pieces[np.append(True, apart)]  # a piece without width is dropped
    keep = np.ones(len(breaks), dtype=bool)
    for k in np.flatnonzero(keep):
        one, two = _moved(pieces[k : k + 2], np.full(2, breaks[k]))
        size = np.abs(pieces[k : k + 2, 1:3]).max() + np.abs(one[1:3]).max()
        keep[k] = bool(np.any(np.abs(one - two)[1:3] > SETTLED * (1e-300 + size)))
    breaks, pieces = breaks[keep], pieces[np.append(True, keep)]
    if len(breaks):
        pieces = _moved(pieces, np.append(breaks[:1], breaks))
        rounding = np.abs(pieces[:, 1]) <= SETTLED * np.abs(pieces[:, 1]).max()
        pieces[rounding, 1] = 0.0
    return breaks, pieces
