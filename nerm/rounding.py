"""What rounding may do to a sum, and one sum that it cannot touch.

A sum of k products is wrong by at most `unit(k)` of the sum of their sizes, with a probability that is 1 for
all that matters (Higham and Mary 2019: errors of either sign add up like sqrt(k), not like k).
"""

import math
from typing import Self

import numpy as np

from nerm.typing import Floats

EPS = float(np.finfo(float).eps)
LONG_EPS = float(np.finfo(np.longdouble).eps)  # the same as EPS where the platform has no long doubles
SPLITTER = 2.0**27 + 1.0


def unit(k: int) -> float:
    """Return the share of the sum of sizes by which a sum of k products may be wrong.

    >>> unit(0) < unit(100) < 1e-14
    True
    """
    return EPS * (2.0 + math.sqrt(k))


class LongFloat(float):
    """A float with the digits after its last one: as a number it is the float, `rest` is what that lacks.

    An intercept needs it where columns are far from 0: in f = X w + b the large X w and b cancel, and the
    last digit of b alone may be worth more than the scores differ by. Arithmetic knows the float only;
    `exact_dot` knows both.

    >>> b = LongFloat(-1e18, 0.25)
    >>> b == -1e18, b.rest, exact_dot(np.array([1e9]), np.array([1e9]), b)
    (True, 0.25, 0.25)
    """

    __slots__ = ("rest",)
    rest: float

    def __new__(cls, value: float, rest: float = 0.0) -> Self:
        """Return value + rest."""
        made = super().__new__(cls, value)
        made.rest = float(rest)
        return made

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        """Copy and pickle both."""
        return float(self), self.rest


def rest_of(number: float) -> float:
    """Return the digits that a number has after those of a float; of a mere float none.

    >>> rest_of(LongFloat(1.0, 1e-20)), rest_of(1.0)
    (1e-20, 0.0)
    """
    return number.rest if isinstance(number, LongFloat) else 0.0


def exact_dot(a: Floats, b: Floats, start: float) -> float:
    """Return start + a.b, rounded once: products are split into two floats each (Dekker), and added by `math.fsum`.

    >>> a = np.array([1e16, 1.0])
    >>> exact_dot(a, np.array([3.0, 1.0]), -3e16)
    1.0
    """
    pieces = _pieces(a, b, start)
    return math.fsum(pieces) if np.isfinite(pieces).all() else start + float(a @ b)


def unshifted(coef: Floats, level: float, offset: Floats) -> tuple[Floats, float]:
    """Return (w, b) with offset.w + b = level, b in as many digits as that takes.

    >>> offset = np.array([2.0**60, 2.0**60])
    >>> w, b = unshifted(np.array([1e-3, 1e-9]), 0.3, offset)
    >>> round(exact_dot(offset, w, b), 12), bool(np.spacing(b) < -0.1)
    (0.3, True)
    """
    intercept = exact_dot(-offset, coef, level)
    pieces = _pieces(-offset, coef, level)
    rest = math.fsum([*pieces, -intercept]) if np.isfinite(pieces).all() else 0.0
    return coef, LongFloat(intercept, rest)


def _pieces(a: Floats, b: Floats, start: float) -> Floats:
    """Return floats whose exact sum is start + a.b."""
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    product = a * b
    rest = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    return np.concatenate([[start, rest_of(start)], product, rest])


def _halves(a: Floats) -> tuple[Floats, Floats]:
    """Return two floats of 26 bits each with this sum; nan where it would overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = SPLITTER * a
        high = scaled - (scaled - a)
        return high, a - high
