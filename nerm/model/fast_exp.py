"""The exponentials of many numbers that are not positive, compiled: numpy's digits in less than half of its time.

x = k ln 2 + r with `|r| <= ln(2) / 2`, and exp x = 2^k exp r, exp r by its series to the order 13: it leaves
out less than 1e-17. Adding 1.5 * 2^52 rounds to an integer, which then stands in the last bits: no conversion
is needed. In single precision it is the order 7, 1.5 * 2^23, and less than 1e-8.
"""

import numba
import numpy as np

ROUNDING = 1.5 * 2.0**52
LOWEST = -708.0  # exp of it is the smallest normal number, nearly; below counts as that
SINGLE = np.float32  # constants of the second function, all of which would be doubles otherwise
ROUNDING_32, LOWEST_32, LOG2_E = SINGLE(1.5 * 2.0**23), SINGLE(-87.0), SINGLE(1.4426950408889634)
LN2_HIGH, LN2_LOW = SINGLE(0.693359375), SINGLE(-2.12194440e-4)
C7, C6, C5, C4, C3, C2 = (SINGLE(1.0 / f) for f in (5040.0, 720.0, 120.0, 24.0, 6.0, 2.0))
ZERO, ONE = SINGLE(0.0), SINGLE(1.0)


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


@numba.njit(cache=True, nogil=True, fastmath={"contract"})
def exp_in_place_32(values):  # type: ignore[no-untyped-def]
    """Replace every value of a contiguous matrix of single precision by exp min(value, 0)."""
    flat = values.reshape(-1)
    shifted = np.empty(1024, dtype=np.float32)
    bits = shifted.view(np.int32)
    for start in range(0, len(flat), 1024):
        count = min(1024, len(flat) - start)
        part = flat[start : start + count]
        for i in range(count):
            x = max(min(part[i], ZERO), LOWEST_32)
            t = x * LOG2_E + ROUNDING_32
            k = t - ROUNDING_32
            r = (x - k * LN2_HIGH) - k * LN2_LOW
            p = C7 * r + C6
            p = p * r + C5
            p = p * r + C4
            p = p * r + C3
            p = p * r + C2
            p = p * r + ONE
            part[i] = p * r + ONE
            shifted[i] = t
        for i in range(count):
            bits[i] = (bits[i] + 127) << 23
        for i in range(count):
            part[i] *= shifted[i]
