"""One sample's share of the dual: a concave piecewise-linear function of the single number a_i.

For fixed nu^+ and nu^- the exact dual reads, in the sum form divided by lambda,

::

    max over a   sum_i h_i(a_i) - (1 / 2 lambda) a' K a        subject to   sum_i a_i = 0,
    h_i(a) = max { alpha + beta^+ + beta^- :  alpha y_i + (beta^+ - beta^-) v_i = a, all in their boxes }.

Raising a_i by one through the multiplier gamma with target t (gamma = alpha: t = y; beta^+: v; beta^-: -v)
earns 1 / t, so h_i is built of at most three segments: slope 1/t, width `(upper bound) * |t|`, sorted by
falling slope. A slope is also the score at which that hinge bends, and optimality says: f_i lies in the
superdifferential of h_i at a_i. So n numbers carry what the paper does with 3n variables, and the troubles
of the 3n form (pairs inside one sample have no curvature, 1 / v at v = 0) cannot arise.

The published variant fits the same mould: beta^+ + beta^- = eta u at its optimum, r = beta^+ - beta^- is one
segment of slope 0 and width `2 eta u |v|`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nerm.svm.data import NeutralData


@dataclass(frozen=True)
class Multipliers:
    """alpha, beta^+, beta^- and nu^+, nu^- (nan in the published variant, which has none)."""

    alpha: np.ndarray
    beta_plus: np.ndarray
    beta_minus: np.ndarray
    nu_plus: float
    nu_minus: float

    @property
    def total(self) -> float:
        """Return sum_i (alpha_i + beta_i^+ + beta_i^-), the linear part of the dual."""
        return float(self.alpha.sum() + self.beta_plus.sum() + self.beta_minus.sum())


@dataclass(frozen=True)
class Pieces:
    """The segments of every h_i, sorted by falling slope, with empty ones last.

    ``low`` is the smallest a_i; ``start[i, k]`` the fill level at which segment k begins; ``order`` says
    which original target each sorted segment belongs to; ``count`` how many segments are not empty.
    """

    data: NeutralData
    nu_plus: float
    nu_minus: float
    slope: np.ndarray
    width: np.ndarray
    start: np.ndarray
    low: np.ndarray
    order: np.ndarray
    count: np.ndarray

    @property
    def high(self) -> np.ndarray:
        """The largest a_i."""
        return self.low + self.width.sum(axis=1)

    def filled(self, a: np.ndarray) -> np.ndarray:
        """Return how far each sorted segment is filled when the levels are a."""
        level = np.clip(a, self.low, self.high) - self.low
        return np.clip(level[:, None] - self.start, 0.0, self.width)

    def multipliers(self, a: np.ndarray) -> Multipliers:
        """Return the best multipliers that produce a: those that attain every h_i(a_i)."""
        d = self.data
        filled = np.empty_like(self.width)
        np.put_along_axis(filled, self.order, self.filled(a), axis=1)
        # A positive target rises with a, a negative one falls from its bound.
        t_abs = np.abs(d.viewpoint)
        alpha = np.where(d.y > 0, filled[:, 0], d.sample_weight - filled[:, 0])
        u = d.neutrality_weight
        if d.variant == "published":
            r = np.divide(filled[:, 1], t_abs, out=np.zeros(d.n), where=t_abs > 0) - d.eta * u
            r = np.clip(np.where(d.viewpoint < 0, -r, r), -d.eta * u, d.eta * u)
            half = d.eta * u / 2
            r = np.where(t_abs > 0, r, 0.0)
            return Multipliers(alpha, half + r / 2, half - r / 2, float("nan"), float("nan"))
        plus, minus = self.nu_plus * u, self.nu_minus * u
        raised_plus = np.minimum(np.divide(filled[:, 1], t_abs, out=np.zeros(d.n), where=t_abs > 0), plus)
        raised_minus = np.minimum(np.divide(filled[:, 2], t_abs, out=np.zeros(d.n), where=t_abs > 0), minus)
        return Multipliers(
            alpha=alpha,
            # At v = 0 the hinge is the constant 1: its multiplier sits at the bound and drops out of a.
            beta_plus=np.where(d.viewpoint > 0, raised_plus, plus - raised_plus),
            beta_minus=np.where(d.viewpoint < 0, raised_minus, minus - raised_minus),
            nu_plus=self.nu_plus,
            nu_minus=self.nu_minus,
        )

    def balanced(self, a: np.ndarray, prefer: np.ndarray | None = None) -> np.ndarray:
        """Return levels inside [low, high] with sum zero, moving the preferred samples first.

        Zero is inside every [low, high], so the repair always exists; it takes from each sample in proportion
        to its room.
        """
        a = np.clip(a, self.low, self.high)
        for mask in (prefer, np.ones(len(a), dtype=bool)):
            if mask is None or not mask.any():
                continue
            excess = float(a.sum())
            room = np.where(mask, a - self.low if excess > 0 else self.high - a, 0.0)
            total = float(room.sum())
            if total > 0:
                a = a - np.sign(excess) * room * min(1.0, abs(excess) / total)
        return np.clip(a, self.low, self.high)


def make_pieces(data: NeutralData, nu_plus: float = 0.0, nu_minus: float = 0.0) -> Pieces:
    """Build the segments for given nu^+, nu^- (both ignored by the published variant)."""
    y, v, s, u = data.y, data.viewpoint, data.sample_weight, data.neutrality_weight
    n = data.n
    slope, width = np.zeros((n, 3)), np.zeros((n, 3))
    slope[:, 0], width[:, 0] = y, s
    low = np.where(y < 0, -s, 0.0)
    if data.variant == "published":
        width[:, 1] = 2 * data.eta * u * np.abs(v)
        low = low - data.eta * u * np.abs(v)
    else:
        bend = np.divide(1.0, v, out=np.zeros(n), where=v != 0)
        slope[:, 1], slope[:, 2] = bend, -bend
        width[:, 1], width[:, 2] = nu_plus * u * np.abs(v), nu_minus * u * np.abs(v)
        low = low - np.where(v < 0, width[:, 1], 0.0) - np.where(v > 0, width[:, 2], 0.0)
    order = np.argsort(np.where(width > 0, -slope, np.inf), axis=1, kind="stable")
    slope = np.take_along_axis(slope, order, axis=1)
    width = np.take_along_axis(width, order, axis=1)
    start = np.concatenate([np.zeros((n, 1)), np.cumsum(width, axis=1)[:, :2]], axis=1)
    count = (width > 0).sum(axis=1)
    return Pieces(data, nu_plus, nu_minus, slope, width, start, low, order, count)
