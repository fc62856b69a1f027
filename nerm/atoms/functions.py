"""Functions of one number that consist of smooth pieces: their algebra, and the conjugate of convex ones.

A piece is a quadratic or a curve. A function whose pieces are all quadratics is known exactly, and so is its
conjugate, a function of the same kind. A curve is known by its jets; its conjugate follows by inverting the
slope, by Newton steps that a bracket safeguards. The prox is the slope of the conjugate of step phi(m) +
m^2 / 2, and the hinge-like parts are the pieces of the conjugate. All functions are vectorised.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property, lru_cache, reduce
from itertools import chain, pairwise
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from nerm.typing import Bools, Floats, Ints

Pointwise: TypeAlias = Callable[[Floats], Floats]

FARTHEST = 1e8  # margins beyond this are treated as infinite
NARROW = 1e-8  # relative width of the bracket of a maximizer; the conjugate is exact up to its square
KINK = 1e-9  # relative jump of the slope that counts as a kink
STEEPEST = 1e6  # larger curvatures count as this one
SETTLED = 1e-13  # relative distance at which two roots, breakpoints or slopes count as equal
MOST_ITERATIONS = 200  # of a root finder
ROUNDING = 8 * np.finfo(float).eps
GRID = np.sinh(np.linspace(-15.0, 15.0, 3001))  # margins up to 1.6e6, dense around 0


class NoRuleError(Exception):
    """An expression has a part that nerm has no rule for; the message names it."""


class Jet(NamedTuple):
    """Value, slope and curvature at given points."""

    value: Floats
    slope: Floats
    curvature: Floats


class Quadratic(NamedTuple):
    """The piece curve x^2 + slope x + level with x = m - centre; the numbers may be arrays, one per m."""

    curve: float
    slope: float
    level: float
    centre: float = 0.0

    def jet(self, m: Floats) -> Jet:
        """Return the jet at m."""
        x = m - self.centre
        bend = _product(self.curve, x)
        rise = self.slope + bend
        value = self.level + _product(rise, x)
        return Jet(value, rise + bend, np.full(value.shape, 2 * self.curve))

    @property
    def star(self) -> Quadratic:
        """The conjugate: phi*(u) = u m - phi(m), at the m where phi has the slope u."""
        gain = 0.25 / self.curve if self.curve else 0.0
        return Quadratic(gain, self.centre, self.centre * self.slope - self.level, self.slope)

    def around(self, centre: float) -> Quadratic:
        """Return the same function with another centre."""
        x = centre - self.centre
        level = self.level + x * (self.slope + self.curve * x)
        return Quadratic(self.curve, self.slope + 2 * self.curve * x, level, centre)

    @property
    def most(self) -> float:
        """The largest absolute curvature."""
        return 2 * abs(self.curve)


@dataclass(frozen=True, eq=False)
class Curve:
    """A piece given by its jets.

    `most` bounds the absolute curvature; `star` is the conjugate, if known.
    """

    jet: Callable[[Floats], Jet]
    most: float = np.inf
    star: Pointwise | None = None


Piece: TypeAlias = Quadratic | Curve


def _sum(a: float, b: float) -> float:
    """Return a + b, or 0 if the sum consists of rounding errors."""
    return 0.0 if abs(a + b) <= SETTLED * abs(a) else a + b


def add(p: Piece, q: Piece) -> Piece:
    """Return the sum of two pieces."""
    if isinstance(p, Quadratic) and isinstance(q, Quadratic):
        p, q = (p, q) if abs(p.curve) >= abs(q.curve) else (q, p)  # values are exact near the vertex
        q = q.around(p.centre)
        return Quadratic(_sum(p.curve, q.curve), _sum(p.slope, q.slope), p.level + q.level, p.centre)
    star = _moved_star(p, q) or _moved_star(q, p)
    return Curve(lambda m: Jet(*map(np.add, p.jet(m), q.jet(m))), p.most + q.most, star)


def _moved_star(p: Piece, line: Piece) -> Pointwise | None:
    """Return the conjugate of p + line, where `line` is linear.

    Return None if the conjugate of p is not known.
    """
    if isinstance(p, Quadratic) or p.star is None or isinstance(line, Curve) or line.curve:
        return None
    star, (_, slope, level, _) = p.star, line.around(0.0)
    return lambda u: star(u - slope) - level


def scale(p: Piece, factor: float) -> Piece:
    """Return a multiple of a piece."""
    if isinstance(p, Quadratic):
        return Quadratic(factor * p.curve, factor * p.slope, factor * p.level, p.centre)
    known = p.star if factor > 0 else None
    star = None if known is None else lambda u: factor * known(u / factor)
    return Curve(lambda m: Jet(*(factor * part for part in p.jet(m))), abs(factor) * p.most, star)


def larger(p: Piece, q: Piece, x: float) -> Piece:
    """Return the larger of two pieces that do not cross; it is p or q at x, where they may touch.

    Curves may cross where no root was found: then the larger value counts at each point.
    """
    one, two = p.jet(np.array(x)), q.jet(np.array(x))
    rounding = ROUNDING * (1 + abs(one.value))
    touch = abs(one.value - two.value) <= rounding
    p, q = (q, p) if (two.curvature > one.curvature if touch else two.value > one.value) else (p, q)
    if isinstance(p, Quadratic) and isinstance(q, Quadratic):
        return p

    def jet(m: Floats) -> Jet:
        usual, other = p.jet(m), q.jet(m)
        crossed = other.value > usual.value + ROUNDING * (1 + np.abs(usual.value))
        return Jet(*(np.where(crossed, b, a) for a, b in zip(usual, other, strict=True)))

    return Curve(jet, max(p.most, q.most))


def roots(p: Piece, q: Piece, low: float, high: float, x: float) -> Iterable[float]:
    """Return the points between `low` and `high` at which the sign of p - q changes; x is between them."""
    if not (isinstance(p, Quadratic) and isinstance(q, Quadratic)):
        return _crossings(p, q, low, high)
    p, q = p.around(x), q.around(x)
    a, b, c = _sum(p.curve, -q.curve), _sum(p.slope, -q.slope), p.level - q.level
    discriminant = b * b - 4 * a * c
    far = -0.5 * (b + np.copysign(np.sqrt(max(discriminant, 0.0)), b))
    moves = [part / whole for part, whole in ((far, a), (c, far)) if whole and discriminant > 0]
    return [_short(x + move) for move in moves if low < x + move < high]


def _short(number: float) -> float:
    """Round a number to 14 digits if this changes it by rounding errors only."""
    short = float(f"{number:.14g}")
    return short if abs(short - number) <= ROUNDING * abs(number) else float(number)


def _crossings(p: Piece, q: Piece, low: float, high: float) -> Floats:
    """Return the points at which p - q changes its sign on a grid, by bisection."""
    near = np.geomspace(1e-9, 1e-2, 15)  # next to a kink it may change its sign twice
    points = np.concatenate([GRID, [low, high], low + near, high - near])
    points = np.unique(points[(points >= low) & (points <= high) & np.isfinite(points)])

    def sign(m: Floats) -> Floats:
        return np.sign(p.jet(m).value - q.jet(m).value)

    signs = sign(points)
    known = np.flatnonzero(np.abs(signs) == 1)  # it may be 0 at single points or on intervals
    change = np.flatnonzero(signs[known[1:]] != signs[known[:-1]])
    left, right, before = points[known[change]], points[known[change + 1]], signs[known[change]]
    right = bisected(lambda m: sign(m) == before, left, right)[1]
    return np.where(np.abs(right) < ROUNDING, 0.0, right)


def bisected(before: Callable[[Floats], Bools], low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """Narrow the brackets [low, high] by bisection; return their new ends.

    `before` is True at the lower end and False at the upper end, as it must be at the given ends. The new
    ends are adjacent floats, or their distance is 2^-MOST_ITERATIONS times the given one.
    """
    for _ in range(MOST_ITERATIONS):
        middle = 0.5 * (low + high)
        if ((middle <= low) | (middle >= high)).all():
            break
        left = before(middle)
        low, high = np.where(left, middle, low), np.where(left, high, middle)
    return low, high


def _product(a: Any, x: Floats) -> Floats:
    """Return a x, and 0 where a is 0, also if x is infinite there."""
    if isinstance(a, float) and not a:
        return np.zeros(np.shape(x))
    return np.asarray(a * x if np.isfinite(x).all() else np.where(a, a * x, 0.0))


def _place(points: Floats, x: Floats, side: Literal["left", "right"]) -> Ints:
    """Return how many of the points are below each x, as `numpy.searchsorted` does.

    Few points are compared with x one by one, which is ten times as fast.
    """
    if len(points) > 8:
        return np.searchsorted(points, x, side)
    is_before = np.less if side == "left" else np.less_equal
    place = np.zeros(np.shape(x), dtype=int)
    for point in points:
        place += is_before(point, x)
    return place


def _times_log(u: Any) -> Any:
    """Return u log(u), 0 at u = 0; four times as fast as scipy's entr."""
    return u * np.log(np.where(u > 0, u, 1.0))


def _inside(breaks: Floats) -> Floats:
    """Return one point inside each piece, (K + 1,)."""
    if not len(breaks):
        return np.zeros(1)
    first, last = breaks[0] - (1 + abs(breaks[0])), breaks[-1] + 1 + abs(breaks[-1])
    return np.concatenate([[first], breaks[:-1] + 0.5 * np.diff(breaks), [last]])


@dataclass(frozen=True, eq=False)
class Function:
    """A continuous function of one number.

    Attributes
    ----------
    pieces : tuple of K + 1 pieces
        Smooth functions. Piece k counts between breaks[k - 1] and breaks[k].
    breaks : (K,) array
        The breakpoints, increasing: all points at which the slope may jump or the curvature may be infinite.
    step : float
        The relative step of the secants, if slopes are computed from values; else 0.

    Examples
    --------
    >>> m = Function((Quadratic(0.0, 1.0, 0.0),))
    >>> f = (1.0 - m).maximum(2.0 * (0.2 - m)).maximum(0.0)
    >>> f.breaks.tolist(), f.jet(np.array([-2.0, 0.0])).value.tolist()
    ([-0.6, 1.0], [4.4, 1.0])
    >>> f.end_slopes, f.conjugate(np.array([-1.5, 0.1])).round(12).tolist()
    ((-2.0, 0.0), [-0.7, inf])
    """

    pieces: tuple[Piece, ...]
    breaks: Floats = field(default_factory=lambda: np.zeros(0))
    step: float = 0.0

    # ---- algebra

    def map(self, change: Callable[[Piece], Piece], breaks: Floats | None = None) -> Function:
        """Return the function with changed pieces; `breaks` are further breakpoints."""
        breaks = self.breaks if breaks is None else np.union1d(self.breaks, breaks)
        return self.joined(self, breaks, lambda p, _, x: change(p))

    def joined(
        self, other: Function, breaks: Floats, join: Callable[[Piece, Piece, float], Piece]
    ) -> Function:
        """Return the function whose pieces between `breaks` are join(piece, other piece, a point inside)."""
        inside = _inside(breaks)
        pairs = ([f.pieces[k] for k in np.searchsorted(f.breaks, inside)] for f in (self, other))
        return _simplified(breaks, [join(p, q, x) for p, q, x in zip(*pairs, inside.tolist(), strict=True)])

    def __add__(self, other: Any) -> Function:
        other = as_function(other)
        return self.joined(other, np.union1d(self.breaks, other.breaks), lambda p, q, _: add(p, q))

    def __mul__(self, other: Any) -> Function:
        other = as_function(other)
        if other.number is None and self.number is None:
            raise NoRuleError("a product of two functions of m")
        function, factor = (self, other.number) if other.number is not None else (other, self.number)
        return function.map(lambda piece: scale(piece, factor))  # type: ignore[arg-type]

    def __rsub__(self, other: Any) -> Function:
        return as_function(other) + self * -1.0

    def __sub__(self, other: Any) -> Function:
        return self + as_function(other) * -1.0

    def __neg__(self) -> Function:
        return self * -1.0

    def __truediv__(self, number: float) -> Function:
        return self * (1.0 / number)

    def __abs__(self) -> Function:
        return self.maximum(-self)

    __radd__ = __add__
    __rmul__ = __mul__

    @np.errstate(all="ignore")
    def maximum(self, other: Any) -> Function:
        """Return the larger of two functions."""
        other = as_function(other)
        breaks = np.union1d(self.breaks, other.breaks)
        found = list[float]()
        ends, inside = [-np.inf, *breaks.tolist(), np.inf], _inside(breaks).tolist()
        for (low, high), x in zip(pairwise(ends), inside, strict=True):
            p, q = (f.pieces[int(np.searchsorted(f.breaks, x))] for f in (self, other))
            found.extend(roots(p, q, low, high, x))
        return self.joined(other, np.union1d(breaks, found), larger)

    def pos(self) -> Function:
        """Return max(f, 0)."""
        return self.maximum(0.0)

    def square(self) -> Function:
        """Return f^2."""
        return self.power(2)

    def power(self, p: float) -> Function:
        """Return f^p; p is 0 or at least 1."""
        if p in (0, 1):
            return self if p else as_function(1.0)
        if p < 1:
            raise NoRuleError(f"the power {p:g}")
        whole = p % 2 == 0  # else it is defined for x >= 0 only; rounding may lead out of that

        def of(x: Floats, q: float) -> Floats:
            return np.power(x if whole else np.where(x > -1e-9, np.maximum(x, 0.0), np.nan), q)

        bent = composed(lambda x: Jet(of(x, p), p * of(x, p - 1), p * (p - 1) * of(x, p - 2)))

        def piece(f: Piece) -> Piece:
            if p == 2 and isinstance(f, Quadratic) and f.slope and not f.curve:
                return Quadratic(f.slope**2, 0.0, 0.0, f.centre - f.level / f.slope)
            return bent(f)

        return self.map(piece, self.pos().breaks if p < 2 else None)  # below 2 the curvature at 0 is infinite

    def huber(self, M: float) -> Function:
        """Return f^2 for |f| <= M and 2 M |f| - M^2 beyond."""
        size = abs(self)
        beyond = (size - M).pos()
        return (size - beyond).square() + beyond * (2 * M)

    def exp(self) -> Function:
        """Return e^f; its conjugate is u log(u) - u."""

        def jet(x: Floats) -> Jet:
            return Jet(*(np.exp(x),) * 3)

        return self.map(composed(jet, star=lambda u: np.where(u >= 0, _times_log(u) - u, np.inf)))

    def logistic(self) -> Function:
        """Return log(1 + e^f); its conjugate is u log(u) + (1 - u) log(1 - u)."""

        def jet(x: Floats) -> Jet:
            small = np.exp(-np.abs(x))  # several times as fast as scipy's logaddexp and expit
            slope = np.where(x < 0, small, 1.0) / (1 + small)
            return Jet(np.maximum(x, 0.0) + np.log1p(small), slope, small / (1 + small) ** 2)

        def star(u: Floats) -> Floats:
            return np.where((u >= 0) & (u <= 1), _times_log(u) + _times_log(1 - u), np.inf)

        return self.map(composed(jet, 0.25, star))

    @property
    def number(self) -> float | None:
        """The value of a constant, else None."""
        p = self.pieces[0]
        constant = len(self.pieces) == 1 and isinstance(p, Quadratic) and not (p.curve or p.slope)
        return p.level if constant else None  # type: ignore[union-attr]

    # ---- evaluation

    @np.errstate(all="ignore")
    def jet(self, m: Floats, side: Literal["left", "right"] = "left") -> Jet:
        """Return the jet at m; at a breakpoint, the jet of the piece on this side."""
        if len(self.pieces) == 1:
            return self.pieces[0].jet(m)
        place = _place(self.breaks, m, side)
        jet = Quadratic(*(c if isinstance(c, float) else c.take(place) for c in self._shared)).jet(m)
        if not self._curves:
            return jet
        out = np.array(jet)
        for k in self._curves:
            here = place == k
            if here.any():
                out[:, here] = self.pieces[k].jet(m[here])
        return Jet(*out)

    @np.errstate(all="ignore")
    def value(self, m: Floats) -> Floats:
        """Return the value at m; a maximum of lines is computed as such."""
        if not self._has_lines:
            return self.jet(m).value
        lines: Any = self.pieces
        values = (p.slope * (m - p.centre) + p.level if p.slope else p.level for p in lines)
        return np.asarray(reduce(np.maximum, values))

    @cached_property
    def _has_lines(self) -> bool:
        """Whether the function is the maximum of at least two lines."""
        straight = self.is_quadratic and not self._coefficients[0].any()
        return len(self.breaks) > 0 and straight and self.is_convex

    @cached_property
    def _coefficients(self) -> Floats:
        """The numbers curve, slope, level and centre of each piece, (4, K + 1); those of a curve are 0."""
        return np.array([p if isinstance(p, Quadratic) else (0.0,) * 4 for p in self.pieces]).T + 0.0

    @cached_property
    def _shared(self) -> list[Any]:
        """Return the numbers of `_coefficients`; one that all pieces share is a float."""
        return [line if (line != line[0]).any() else float(line[0]) for line in self._coefficients]

    @cached_property
    def _curves(self) -> list[int]:
        """The numbers of the pieces that are curves."""
        return [k for k, piece in enumerate(self.pieces) if isinstance(piece, Curve)]

    def slopes_at(self, m: Floats) -> tuple[Floats, Floats]:
        """Return the slopes to the left and to the right of m, each in the shape of m."""
        if not (self.step or len(self.breaks)):
            return (self.jet(m).slope,) * 2
        move = self.step * np.maximum(1.0, np.abs(m)) if self.step else 0.0
        left, right = self.jet(m - move, "left").slope, self.jet(m + move, "right").slope
        if not self._has_lines:  # rounding may lead beyond the slopes at the ends
            left, right = np.clip((left, right), *self.end_slopes)
        return left, right

    @cached_property
    def is_quadratic(self) -> bool:
        """Whether the function is piecewise quadratic."""
        return not self._curves

    @cached_property
    def jumps(self) -> tuple[Floats, Floats]:
        """The slopes to the left and to the right of each breakpoint, (K,) each."""
        return self.jet(self.breaks, "left").slope, self.jet(self.breaks, "right").slope

    @cached_property
    def kinked(self) -> Bools:
        """A mask of the breakpoints at which the slope jumps, relative to the largest slope there, (K,)."""
        low, high = self.jumps
        return np.asarray(high - low > self._jump(KINK))

    def _jump(self, relative: float) -> float:
        """Return a multiple of the largest finite slope at a breakpoint, plus the rounding there."""
        slopes, curve = np.abs(self.jumps), np.abs(self._coefficients[0]).max()
        rounding = ROUNDING * curve * np.abs(self.breaks).max(initial=0.0)
        return float(relative * slopes[np.isfinite(slopes)].max(initial=0.0) + rounding)

    @property
    def smoothness(self) -> float:
        """A bound on the curvature; infinite if the slope jumps."""
        return np.inf if self.kinked.any() else max(piece.most for piece in self.pieces)

    @property
    def is_convex(self) -> bool:
        """Whether a piecewise quadratic function has no concave piece and no falling slope."""
        low, high = self.jumps
        curved = all(piece.curve >= 0 for piece in self.pieces)  # type: ignore[union-attr]
        return curved and bool((high - low >= -self._jump(SETTLED)).all())

    # ---- what follows is for convex functions

    @cached_property
    def end_slopes(self) -> tuple[float, float]:
        """The slopes at -inf and +inf.

        For a curve they are computed at +-1e100. A slope there counts as infinite if it is much larger than
        the slope at +-1e3, or if it overflows. If a slope is still below its limit there, the returned number
        is too small. This is safe: the conjugate is then +inf on a larger set.
        """
        ends = []
        for sign, piece in ((-1.0, self.pieces[0]), (1.0, self.pieces[-1])):
            slopes = Function((piece,)).jet(sign * np.array([1e100, 1e6, 1e3])).slope
            known = slopes[np.isfinite(slopes)]
            grows = len(known) < len(slopes) or abs(known[0]) > 1e3 * (1 + abs(known[-1]))
            ends.append(sign * np.inf if grows else float(known[0]) + 0.0)
        return ends[0], ends[1]

    @cached_property
    def hinges(self) -> list[tuple[float, float, float, float]]:
        """The hinge-like pieces of the function: one per jump or linear segment of its slope.

        Each piece is a function (a, q, low, high) of `nerm.atoms.losses.HingePiece`: max over u in [low,
        high] of u (m - a) - (q/2) u^2. A jump of the slope gives q = 0, and a quadratic piece gives q = 1 /
        curvature. The length high - low is the rise of the slope. A piecewise quadratic function is the sum
        of its pieces, up to a constant; of any other function only the jumps are taken.

        [low, high] contains 0 if possible: it is [-rise, 0] for a segment of negative slopes, and [0, rise]
        for one of positive slopes.
        """
        low, high = self.end_slopes
        origin = float(np.clip(0.0, low, high)) if self.is_quadratic else 0.0
        segments = zip(pairwise([low, *self._star.breaks.tolist(), high]), self._star.pieces, strict=True)
        parts = list[tuple[float, float, float, float]]()
        for (first, last), piece in segments:
            q, a, level, _ = piece.around(0.0)  # type: ignore[union-attr]
            is_jump = not q and last - first > self._jump(KINK) and not np.isnan(level)
            if is_jump or (q and self.is_quadratic):
                shift = min(max(origin, first), last)  # u of this part is 0 at this slope
                parts.append((a + 2 * q * shift, 2 * q, first - shift, last - shift))
        if origin or (self.is_quadratic and not parts):  # all slopes have the same sign: a linear part
            parts.append((0.0, 0.0, origin, origin))
        return parts

    @property
    def _ends(self) -> Floats:
        """The breakpoints, between -inf and +inf."""
        return np.concatenate([[-np.inf], self.breaks, [np.inf]])

    @cached_property
    def _table(self) -> tuple[Floats, Floats]:
        """Points from -FARTHEST to FARTHEST, dense around 0, and the slopes there."""
        points = np.sinh(np.linspace(-19.1, 19.1, 4001))
        slopes = self.jet(points).slope
        known = np.isfinite(slopes)
        return points[known], np.maximum.accumulate(slopes[known])

    def _newton(self, r: Floats, near: float, first: Any, last: Any) -> Floats:
        """Return the points on curves at which the slopes are r, by safe Newton steps.

        The points lie between `first` and `last`. `near` is the relative length of the last step. A bracket
        from a table makes the steps safe. At an end slope, the point nearest to 0 that has this slope is
        returned: u m - phi(m) loses digits far away.
        """
        points, table = self._table
        k = np.searchsorted(table, r, "right")
        k = np.where(r < table[-1], np.clip(k, 1, len(points) - 1), np.searchsorted(table, table[-1]))
        low, high = np.maximum(first, points[k - 1]), np.minimum(last, points[k])
        low, high = np.where(r < table[-1], low, high), np.where(r > table[0], high, low)
        found, left = np.zeros(len(r)), np.arange(len(r))
        m = 0.5 * (low + high)
        for count in range(MOST_ITERATIONS):
            jet = self.jet(m)
            excess = jet.slope - r
            excess = np.where(np.isnan(excess), m, excess)  # an overflow: the root is closer to 0
            low, high = np.where(excess <= 0, m, low), np.where(excess >= 0, m, high)
            move = excess / jet.curvature
            safe = (m - move > low) & (m - move < high) & (count % 8 < 7)
            found[left] = m
            open_ = np.fmin(np.abs(move), high - low) > near * (1 + np.abs(m))
            if not open_.any():
                break
            m = np.where(safe, m - move, 0.5 * (low + high))
            left, m, low, high, r = (part[open_] for part in (left, m, low, high, r))
        return found

    @np.errstate(all="ignore")
    def conjugate(self, u: Floats) -> Floats:
        """Return phi*(u) = sup_m u m - phi(m), or slightly more; +inf outside of `end_slopes`."""
        low, high = self.end_slopes
        inside, (value, number, _) = (low <= u) & (u <= high), self._star.jet(u)
        found = np.array(value)
        for k in self._curves:
            here, piece = np.isnan(value) & inside & (number == k), self.pieces[k]
            slopes = u[here]
            if isinstance(piece, Curve) and piece.star:
                values = piece.star(slopes)
                out = np.isinf(values)  # rounding may put an end slope outside of the domain
                rounding = ROUNDING * (1 + np.abs(slopes[out]))
                values[out] = piece.star(np.clip(slopes[out], low + rounding, high - rounding))
                found[here] = values
            elif here.any():
                m = self._newton(slopes, 0.1 * NARROW, *self._ends[k : k + 2])  # `_enclosed` adds the rest
                found[here] = self._enclosed(k, slopes, m)
        return np.where(inside, found, np.inf) + 0.0

    @cached_property
    def _star(self) -> Function:
        """The conjugate for u between the end slopes; its slope is the maximizer of u m - phi(m).

        Its pieces are the conjugates of the pieces, and u b - phi(b) for u between the slopes next to a
        breakpoint b. In place of curve k is a mark, whose value is nan and whose slope is k.
        """
        marks = (Quadratic(0.0, float(k), np.nan) for k in range(len(self.pieces)))
        pairs = zip(self.pieces, marks, strict=True)
        pieces = [piece.star if isinstance(piece, Quadratic) else mark for piece, mark in pairs]
        values = zip(self.breaks.tolist(), self.jet(self.breaks).value.tolist(), strict=True)
        points = (Quadratic(0.0, b, -value) for b, value in values)
        in_turn = [*chain.from_iterable(zip(pieces, points, strict=False)), pieces[-1]]
        slopes = np.maximum.accumulate(np.column_stack(self.jumps).ravel())
        wide = np.diff(slopes, prepend=self.end_slopes[0], append=self.end_slopes[1]) > 0
        kept = np.flatnonzero(wide if wide.any() else ~wide)
        return Function(tuple(in_turn[k] for k in kept), slopes[kept[1:] - 1])

    def _enclosed(self, k: int, u: Floats, m: Floats) -> Floats:
        """Return an upper bound on sup_x u x - phi(x), whose maximizer lies in piece k, near m.

        u x - phi(x) at a single x is only a lower bound. So the maximizer is enclosed in [m1, m2], and the
        value at which the tangents to u x - phi(x) at m1 and m2 meet is returned. Its error is of the order
        of (m2 - m1)^2.
        """
        ends, piece = self._ends[k : k + 2], self.pieces[k]
        width = NARROW * (1 + np.abs(m))
        while True:
            left, right = (np.clip(m + way * width, *ends) for way in (-1, 1))
            one, two = piece.jet(left), piece.jet(right)
            open_ = ((one.slope > u) & (left > ends[0])) | ((two.slope < u) & (right < ends[1]))
            open_ &= width < FARTHEST
            if not open_.any():
                break
            width = np.where(open_, 8 * width, width)
        rise, fall = (u - one.slope) * (right - left), (two.slope - u) * (right - left)
        first, last = u * left - one.value, u * right - two.value
        # the lines first + rise t and last + fall (1 - t) meet at t in [0, 1]
        t = np.clip(np.nan_to_num((last + fall - first) / (rise + fall), nan=0.5), 0.0, 1.0)
        found = np.maximum(np.minimum(first + rise * t, last + fall * (1 - t)), np.fmax(first, last))
        # the limit along the sign of m; infinite if u m - phi(m) still rises at FARTHEST
        end = np.copysign(FARTHEST, m)
        far, near = (u * at - self.jet(at).value for at in (end, 0.5 * end))
        limit = np.where(far - near > 1e-6 * (1 + np.abs(far)), np.inf, np.maximum(far, near))
        if self.step:  # the errors of the secants
            found = found + (one.curvature + two.curvature) * (self.step * np.maximum(1.0, np.abs(m))) ** 2
        return np.where(width < FARTHEST, found, limit)

    @np.errstate(all="ignore")
    def prox(self, z: Floats, step: float) -> Floats:
        """Return argmin_m  step phi(m) + (m - z)^2 / 2, in the shape of z.

        It is the maximizer of z m - f(m) with f(m) = step phi(m) + m^2 / 2.
        """
        f = _with_square(self, step)
        value, found, _ = f._star.jet(z)
        m = np.array(found)
        if f._curves:
            here, ends = np.isnan(value), f._ends
            k = found[here].astype(int)
            m[here] = f._newton(z[here], SETTLED, ends[k], ends[k + 1])
        return m


@lru_cache(maxsize=256)
def _with_square(phi: Function, step: float) -> Function:
    """Return step phi(m) + m^2 / 2."""
    return phi * step + Function((Quadratic(0.5, 0.0, 0.0),))


#: The margin itself. A formula of nerm's own atoms applied to it gives its function without cvxpy.
MARGIN = Function((Quadratic(0.0, 1.0, 0.0),))


def as_function(given: Any) -> Function:
    """Convert a number to a function."""
    return given if isinstance(given, Function) else Function((Quadratic(0.0, 0.0, float(given)),))


def _simplified(breaks: Floats, pieces: list[Piece]) -> Function:
    """Return the function without pieces of no width and without breakpoints between equal quadratics."""
    kept, ends = pieces[:1], list[float]()
    widths = np.diff(breaks, append=np.inf) > SETTLED * (1 + np.abs(breaks))
    for b, piece, wide in zip(breaks.tolist(), pieces[1:], widths.tolist(), strict=True):
        if wide and not _equal(kept[-1], piece, b):
            ends.append(b)
            kept.append(piece)
    return Function(tuple(kept), np.array(ends))


def _equal(p: Piece, q: Piece, at: float) -> bool:
    """Whether two pieces that meet are the same quadratic up to rounding."""
    if not (isinstance(p, Quadratic) and isinstance(q, Quadratic)):
        return p is q
    one, two = np.array(p.around(at)[:2]), np.array(q.around(at)[:2])
    size = max(np.abs([*one, *two, p.slope, q.slope]).max(), np.finfo(float).tiny)
    return bool((np.abs(one - two) <= SETTLED * size).all())


def composed(
    g: Callable[[Floats], Jet], most: float = np.inf, star: Pointwise | None = None
) -> Callable[[Piece], Piece]:
    """Return the composition of a function g, given by its jet, with a piece.

    `most` bounds the absolute curvature of g. `star` is the conjugate of g, if it is known: that of
    g(a m + b) is star(u / a) - b u / a.
    """

    @np.errstate(all="ignore")
    def change(p: Piece) -> Piece:
        def jet(m: Floats) -> Jet:
            inner = p.jet(m)
            value, first, second = g(inner.value)
            bent = np.where(inner.slope != 0, second * inner.slope**2, 0.0)
            bent += np.where(inner.curvature != 0, first * inner.curvature, 0.0)
            return Jet(np.asarray(value), np.where(inner.slope != 0, first * inner.slope, 0.0), bent)

        if not isinstance(p, Quadratic) or p.curve:
            return Curve(jet)
        _, a, b, _ = p.around(0.0)

        if not a:
            return Quadratic(0.0, 0.0, float(g(np.array(b)).value))

        def linear(m: Floats) -> Jet:
            value, slope, curvature = g(a * m + b)
            return Jet(np.asarray(value), a * slope, a**2 * curvature)

        return Curve(linear, most * a**2, star and (lambda u: star(u / a) - b * (u / a)))

    return change
