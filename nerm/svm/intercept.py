"""The best intercept for given scores: an exact one-dimensional minimisation.

For scores g without intercept, b -> P(g + b) is convex and piecewise linear. Its minimum is at a bend of one
of the hinges or, for the exact variant, where C^+ = C^- between two bends; beyond the outermost bends every
term moves away from its minimum, so nothing is lost there.
"""

from __future__ import annotations

import numpy as np

from nerm.svm.data import NeutralData


def _hinge_sum(points: np.ndarray, g: np.ndarray, t: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Return sum_i weight_i (1 - t_i (g_i + b))_+ at every b of the sorted points.

    The hinge i bends at c_i = 1 / t_i - g_i; with t > 0 it is active to the left of c_i, with t < 0 to the
    right. Sums over "all bends on one side" are cumulative sums after a sort.
    """
    out = np.full(len(points), float(weight[t == 0].sum()))
    for side in (1.0, -1.0):
        mine = side * t > 0
        if not mine.any():
            continue
        # Mirror the negative targets, so that both cases read: active where b < c.
        c = side * (1.0 / t[mine] - g[mine])
        rate = weight[mine] * np.abs(t[mine])
        ranks = np.argsort(c)
        c, rate = c[ranks], rate[ranks]
        rest = np.append(np.cumsum(rate[::-1])[::-1], 0.0)
        rest_c = np.append(np.cumsum((rate * c)[::-1])[::-1], 0.0)
        b = side * points
        first = np.searchsorted(c, b, side="right")
        out += rest_c[first] - rest[first] * b
    return out


def best_intercept(data: NeutralData, g: np.ndarray) -> tuple[float, float, float]:
    """Return (b, left, right): the interval of minimisers of P(g + b) and its midpoint.

    Differences below 1e-12 of the value count as rounding when the interval is read off.
    """
    y, v, u = data.y, data.viewpoint, data.neutrality_weight
    seen = data.sample_weight > 0
    bends = [y[seen] - g[seen]]
    neutral = (v != 0) & (u > 0)
    if data.eta > 0:
        if data.variant == "published":
            bends.append(-g[neutral])
        else:
            bends += [1.0 / v[neutral] - g[neutral], -1.0 / v[neutral] - g[neutral]]
    points = np.unique(np.concatenate(bends))
    if data.eta > 0 and data.variant == "exact":
        points = _with_crossings(data, g, points)
    values = _along(data, g, points)
    # The cumulative sums lose a few digits; the winner and its neighbours decide, evaluated directly.
    best = float(values.min())
    slack = 1e-12 * max(1.0, abs(best))
    flat = points[values <= best + slack]
    left, right = float(flat[0]), float(flat[-1])
    return 0.5 * (left + right), left, right


def _along(data: NeutralData, g: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return P(g + b) - (lambda/2) ||w||^2 at every point b."""
    total = _hinge_sum(points, g, data.y, data.sample_weight)
    if data.eta == 0:
        return total
    v, u = data.viewpoint, data.neutrality_weight
    if data.variant == "published":
        # 1 + |v f| = (1 - v f)_+ + (1 + v f)_+ - (1 - |v f|)_+ has no hinge form; |t| is two hinges at 0.
        return total + data.eta * (u.sum() + _absolute_sum(points, g, u * np.abs(v)))
    return total + data.eta * np.maximum(_hinge_sum(points, g, v, u), _hinge_sum(points, g, -v, u))


def _absolute_sum(points: np.ndarray, g: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Return `sum_i rate_i |g_i + b|` at every point b."""
    ranks = np.argsort(-g)
    c, rate = -g[ranks], rate[ranks]
    below = np.append(0.0, np.cumsum(rate))
    below_c = np.append(0.0, np.cumsum(rate * c))
    first = np.searchsorted(c, points, side="right")
    return (2 * below[first] - below[-1]) * points - (2 * below_c[first] - below_c[-1])


def _with_crossings(data: NeutralData, g: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Add the points where C^+ - C^- changes sign between two bends (linear there)."""
    v, u = data.viewpoint, data.neutrality_weight
    difference = _hinge_sum(points, g, v, u) - _hinge_sum(points, g, -v, u)
    k = np.flatnonzero(difference[:-1] * difference[1:] < 0)
    if len(k) == 0:
        return points
    share = difference[k] / (difference[k] - difference[k + 1])
    return np.sort(np.append(points, points[k] + share * (points[k + 1] - points[k])))
