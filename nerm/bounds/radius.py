"""How large the optimum can be: the radii of the class, before the data or chosen by them."""

import math
from typing import Any

from nerm.bounds.checks import as_delta, as_rows
from nerm.validation import as_nonnegative, as_positive


def norm_radius(lam: float, n: int, at_zero: float = 1.0, *, gap: float = 0.0) -> float:
    """Return a bound on ||w|| for every solution within `gap` (mean form) of the optimum, free of eta.

    The problem is R_n + (lam / 2n) ||w||^2 + eta C_n with convex phi >= 0 and convex psi; `at_zero` is
    phi(0). Compared with f = 0, and because C_n >= psi(0): ||w||^2 <= 2n (phi(0) + gap) / lam. The optimum
    itself is smaller. At t = 1 it minimises J(t w, t b), so R' + 2 Omega + eta C' <= 0 for the derivatives
    from the left, and R(0) >= R - R', C(0) >= C - C' by convexity: 2 Omega <= phi(0), that is ||w||^2 <= n
    phi(0) / lam. Strong convexity adds sqrt(2n gap / lam) for an approximate one. The smaller of the two is
    returned.

    Examples
    --------
    >>> norm_radius(lam=5.0, n=100)
    4.4721...
    """
    strength = as_positive(lam, "lam", "The norm is bounded only by a positive regularization") / as_rows(n)
    phi = as_nonnegative(at_zero, "at_zero")
    gap = as_nonnegative(gap, "gap", "Pass the certified gap, primal minus dual, in mean form")
    return min(math.sqrt(phi / strength) + math.sqrt(2 * gap / strength), math.sqrt(2 * (phi + gap) / strength))


def intercept_radius(
    radius: float, input_radius: float, *, flat_from: float = 1.0, smallest_viewpoint: float = 1.0
) -> float:
    """Return a bound on `|b|` that *some* optimum meets: `flat_from / min(1, |v|) + B R`.

    For phi and psi that never increase and are constant from the margin `flat_from` on (hinges: 1), and `|v|`
    at least `smallest_viewpoint`. If all f_i exceed `flat_from / min(1, |v|)`, lowering b raises no term; so
    some optimum has an f_i at or below it, and `|w.x_i| <= B R`. For hinges and v = ±1 this is 1 + B R. The
    optimum in b can be an interval: check the b at hand.

    Examples
    --------
    >>> intercept_radius(radius=2.0, input_radius=3.0)
    7.0
    """
    B = as_nonnegative(radius, "radius", "Bound ||w|| first, see nerm.bounds.norm_radius")
    R = as_nonnegative(input_radius, "input_radius", "The inputs must be bounded: scale them, or use a bounded kernel")
    v = as_positive(smallest_viewpoint, "smallest_viewpoint", "A viewpoint of 0 leaves the intercept unbounded")
    return as_nonnegative(flat_from, "flat_from") / min(1.0, v) + B * R


def radius_from_data(norm: Any, delta: float, *, base: float = 1.0) -> tuple[float, float]:
    """Return (B_k, delta_k): the first radius B_k = base 2^k that holds `norm`, and its share of delta.

    A bound for a fixed radius does not hold for one read off the data. It does for a grid fixed in advance,
    by a union bound: delta_k = delta / ((k+1)(k+2)), which sums to delta over k = 0, 1, 2, ... Use delta_k in
    place of delta. For a pair `(||w||, |b|)` apply it twice, the second time with the first share.

    Examples
    --------
    >>> radius_from_data(3.0, delta=0.06)
    (4.0, 0.005)
    """
    size = as_nonnegative(norm, "norm", "The class must have finite complexity")
    start = as_positive(base, "base")
    k = 0
    while start * 2.0**k < size:
        k += 1
    return start * 2.0**k, as_delta(delta) / ((k + 1) * (k + 2))
