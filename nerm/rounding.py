"""What rounding may do to a sum, and one sum that it cannot touch.

A sum of k products is wrong by at most `unit(k)` of the sum of their sizes, with a probability that is 1 for all that
matters (Higham and Mary 2019: errors of either sign add up like sqrt(k), not like k).
"""

import math

import numpy as np

from nerm.typing import Floats

EPS = float(np.finfo(float).eps)
SPLITTER = 2.0**27 + 1.0


def unit(k: int) -> float:
    """Return the share of the sum of sizes by which a sum of k products may be wrong.

    >>> unit(0) < unit(100) < 1e-14
    True
    """
    return EPS * (2.0 + math.sqrt(k))


def exact_dot(a: Floats, b: Floats, start: float) -> float:
    """Return start + a.b, rounded once: products are split into two floats each (Dekker), and added by `math.fsum`.

    >>> a = np.array([1e16, 1.0])
    >>> exact_dot(a, np.array([3.0, 1.0]), -3e16)
    1.0
    """
    (a1, a2), (b1, b2) = _halves(a), _halves(b)
    product = a * b
    rest = ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2
    pieces = np.concatenate([[start], product, rest])
    return math.fsum(pieces) if np.isfinite(pieces).all() else start + float(a @ b)


def unshifted(coef: Floats, level: float, offset: Floats) -> tuple[Floats, float]:
    """Return (w, b) with offset.w + b = level as exactly as floats can say it.

    Where offset.w is large, b alone cannot: its last digit is too coarse. Last digits of w make up for it.

    >>> offset = np.array([2.0**60, 2.0**60])
    >>> w, b = unshifted(np.array([1e-3, 1e-9]), 0.3, offset)
    >>> round(exact_dot(offset, w, b), 6), bool(np.spacing(b) < -0.1)
    (0.3, True)
    """
    coef, intercept = coef.copy(), exact_dot(-offset, coef, level)
    digits = np.spacing(np.abs(coef))
    places = np.flatnonzero(offset * coef)  # zeros stay
    for j in places[np.argsort(-np.abs(offset * digits)[places])]:
        missing = level - exact_dot(offset, coef, intercept)
        coef[j] += digits[j] * np.round(missing / (offset[j] * digits[j]))
    return coef, intercept


def _halves(a: Floats) -> tuple[Floats, Floats]:
    """Return two floats of 26 bits each with this sum; nan where it would overflow."""
    with np.errstate(over="ignore", invalid="ignore"):
        scaled = SPLITTER * a
        high = scaled - (scaled - a)
        return high, a - high
