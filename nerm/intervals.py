"""How far a rate, or a difference of two, could be from what a few rows show: Wilson's and Newcombe's intervals.

With p = k / n and the normal quantile z, Wilson's interval holds the rates q with |p - q| <= z sqrt(q (1 - q)
/ n): it stays within [0, 1] and has a width where p is 0 or 1. Newcombe's for p - p' combines the two, (l, u)
and (l', u')::

    p - p' - sqrt((p - l)^2 + (u' - p')^2)  ...  p - p' + sqrt((u - p)^2 + (p' - l')^2)
"""

import math

from scipy.special import ndtri

Interval = tuple[float, float]
CONFIDENCE = 0.95
FEW = 30  # rows below which a group's rates are marked


def rate_interval(count: int, n: int, confidence: float = CONFIDENCE) -> Interval:
    """Return Wilson's interval of a rate that was seen `count` times in n rows; all of [0, 1] where n is 0.

    >>> [round(end, 3) for end in rate_interval(1, 9)]
    [0.02, 0.435]
    """
    if n == 0:
        return 0.0, 1.0
    z2, p = float(ndtri((1 + confidence) / 2)) ** 2, count / n
    middle, reach = p + z2 / (2 * n), math.sqrt(z2 * p * (1 - p) / n + (z2 / (2 * n)) ** 2)
    return max(0.0, (middle - reach) / (1 + z2 / n)), min(1.0, (middle + reach) / (1 + z2 / n))


def difference_interval(
    one: tuple[int, int], other: tuple[int, int], confidence: float = CONFIDENCE
) -> Interval:
    """Return Newcombe's interval of the difference of two rates, each given as (count, n).

    >>> [round(end, 3) for end in difference_interval((56, 70), (48, 80))]
    [0.052, 0.334]
    """
    (k, n), (k2, n2) = one, other
    if not n or not n2:
        return -1.0, 1.0
    (low, high), (low2, high2) = rate_interval(k, n, confidence), rate_interval(k2, n2, confidence)
    p, p2 = k / n, k2 / n2
    return p - p2 - math.hypot(p - low, high2 - p2), p - p2 + math.hypot(high - p, p2 - low2)


def absolute_interval(interval: Interval) -> Interval:
    """Return the sizes of the numbers in an interval.

    >>> absolute_interval((-0.1, 0.3)), absolute_interval((-0.3, -0.1))
    ((0.0, 0.3), (0.1, 0.3))
    """
    low, high = interval
    return (0.0 if low <= 0 <= high else min(abs(low), abs(high))), max(abs(low), abs(high))
