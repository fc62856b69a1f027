"""The exponentials of many numbers that are not positive, compiled: numpy's digits in less than half of its time.

x = k ln 2 + r with `|r| <= ln(2) / 2`, and exp x = 2^k exp r, exp r by its series to the order 13: it leaves out less
than 1e-17. Adding 1.5 * 2^52 rounds to an integer, which then stands in the last bits: no conversion is needed.
"""

import numba
import numpy as np

ROUNDING = 1.5 * 2.0**52
LOWEST = -708.0  # exp of it is the smallest normal number, nearly; below counts as that


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def exp_in_place(values):  # type: ignore[no-untyped-def]
    """Replace every value of a contiguous matrix by exp min(value, 0)."""
    flat = values.reshape(-1)
    shifted = np.empty(1024)
    bits = shifted.view(np.int64)
    for start in range(0, len(flat), 1024):
        count = min(1024, len(flat) - start)
        part = flat[start : start + count]
        for i in range(count):
            x = max(min(part[i], 0.0), LOWEST)
            t = x * 1.4426950408889634 + ROUNDING
            k = t - ROUNDING
            r = (x - k * 6.93147180369123816490e-01) - k * 1.90821492927058770002e-10
            p = 1.6059043836821613e-10
            p = p * r + 2.08767569878681e-09
            p = p * r + 2.505210838544172e-08
            p = p * r + 2.755731922398589e-07
            p = p * r + 2.7557319223985893e-06
            p = p * r + 2.48015873015873e-05
            p = p * r + 0.0001984126984126984
            p = p * r + 0.001388888888888889
            p = p * r + 0.008333333333333333
            p = p * r + 0.041666666666666664
            p = p * r + 0.16666666666666666
            p = p * r + 0.5
            p = p * r + 1.0
            part[i] = p * r + 1.0
            shifted[i] = t
        for i in range(count):
            bits[i] = (bits[i] + 1023) << 52
        for i in range(count):
            part[i] *= shifted[i]
