"""A root finder: the Illinois variant of false position."""

from dataclasses import dataclass
from math import inf, nan


@dataclass
class Bracket:
    """Points on both sides of the root of a decreasing function g, g(low) > 0 >= g(high).

    The next point is the zero of the line through both ends. If the same end moves twice in a row, the value
    at the other end is halved, so that both ends converge to the root.

    Attributes
    ----------
    low, high : float
        The ends; infinite if no point on that side is known yet.
    margin : float
        The smallest distance of the next point from both ends, as a share of high - low.

    >>> bracket = Bracket()
    >>> bracket.add(0.0, 2.0)
    >>> bracket.add(4.0, -14.0)
    >>> while bracket.high - bracket.low > 1e-9:
    ...     x = bracket.next()
    ...     bracket.add(x, 2 - x * x)
    >>> round(x, 9)
    1.414213562

    """

    margin: float = 0.02
    low: float = -inf
    high: float = inf
    low_value: float = nan
    high_value: float = nan
    side: int = 0  # the end that moved last: +1 low, -1 high

    @property
    def is_closed(self) -> bool:
        """Whether points on both sides are known."""
        return -inf < self.low and self.high < inf

    def add(self, x: float, value: float) -> None:
        """Replace the low end (value > 0) or the high end by x, where g(x) = value."""
        side = 1 if value > 0 else -1
        if side > 0:
            self.low, self.low_value = x, value
            self.high_value *= 0.5 if side == self.side else 1.0
        else:
            self.high, self.high_value = x, value
            self.low_value *= 0.5 if side == self.side else 1.0
        self.side = side

    def open(self, side: int) -> None:
        """Remove the low end (side +1) or the high end (side -1)."""
        if side > 0:
            self.low, self.low_value = -inf, nan
        else:
            self.high, self.high_value = inf, nan
        self.side = 0

    def share(self) -> float:
        """Return the position of the next point in the bracket: 0 at low, 1 at high."""
        height = self.low_value - self.high_value
        share = self.low_value / height if 0 < height < inf else 0.5
        return min(max(share, self.margin), 1 - self.margin)

    def next(self) -> float:
        """Return the next point to evaluate."""
        share = self.share()
        return (1 - share) * self.low + share * self.high
