"""Rows that have settled beyond a kink, put together: a small problem whose dual bounds hold for the whole one.

A hinge-like function is affine beyond its kinks. If all rows of a group lie in the same affine region of a piece,

    sum_i B_i phi(t_i f_i) = B phi(t f),      B = sum_i B_i,   B t = sum_i B_i t_i,   B t x = sum_i B_i t_i x_i,

so one row stands for all of them: only the rows near a kink are left, and one for each piece, region and sign of t.
Whether the guess about the regions was right or not, the left side is never smaller (Jensen). So a bound of the small
problem is a bound of the whole one, with every row of a group taking the multiplier u of its group; and if the value
of the whole problem at the small one's hypothesis meets this bound, both are solved.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba
import numpy as np

from nerm.engine.margins import Margin, QuadraticConjugate
from nerm.engine.matrices import Features
from nerm.engine.pieces import Pieces

STAYS, WEIGHTLESS = -1, -2  # labels of rows that belong to no group of a piece
REGIONS = 6  # groups of a piece: two affine regions (u = low, u = high) by three signs of t


@dataclass(frozen=True)
class Condensed:
    """A small problem, and the row of it that stands for each row of each piece, (J, n)."""

    pieces: Pieces
    features: Features
    place: np.ndarray


def condense(pieces: Pieces, features: Features, scores: np.ndarray, distance: float, most: float) -> Condensed | None:
    """Put together all rows whose scores are farther than `distance` from every kink; None if more than `most` n stay.

    Smooth functions have no affine region: where they have weight, rows stay.
    """
    kinks = np.array([_kinks(margin) for margin in pieces.margins])
    label = np.empty(pieces.targets.shape, dtype=np.int16)
    lows = np.array([margin.low for margin in pieces.margins])
    stays = np.zeros(pieces.n_rows, dtype=bool)
    given = pieces.targets, pieces.weights, pieces.u, pieces.moving, scores, kinks, lows, distance, label, stays
    sums = pieces.blocks.fewer(pieces.n_rows).run(lambda start, stop: _label(*given, start, stop))
    total, leverage = np.sum(sums, axis=0)
    rows, occupied = np.flatnonzero(stays), np.flatnonzero(total)
    if not 0 < len(rows) + len(occupied) <= most * pieces.n_rows:
        return None
    lever = np.where(leverage == 0, 1.0, leverage)[occupied, None]
    centres = features.grouped(label, pieces.weights * pieces.targets, len(total))[occupied] / lever
    place = _places(label, rows, occupied, len(total))
    blocks = pieces.blocks.fewer(len(rows) + len(occupied))
    targets, weights, settled = np.zeros((3, pieces.count, len(occupied)))
    for q, (j, region) in enumerate(zip(*divmod(occupied, REGIONS), strict=True)):
        weights[j, q] = total[occupied[q]]
        targets[j, q] = leverage[occupied[q]] / weights[j, q]
        settled[j, q] = pieces.margins[j].low if region < REGIONS // 2 else pieces.margins[j].high
    small = Pieces(
        pieces.losses,
        pieces.surrogates,
        np.hstack([pieces.targets[:, rows], targets]),
        np.hstack([pieces.weights[:, rows], weights]),
        blocks,
        settled,
    )
    small.eta = pieces.eta
    return Condensed(small, features.some(rows, centres, blocks), place)


def _kinks(margin: Margin) -> tuple[float, float]:
    """Return the margin below which u = low and the one above which u = high."""
    if not isinstance(margin, QuadraticConjugate):
        return -np.inf, np.inf
    if margin.fixed:
        return np.inf, np.inf
    ends = (margin.low, margin.high) if margin.quadratic else (0.0, 0.0)
    return margin.linear + margin.quadratic * ends[0], margin.linear + margin.quadratic * ends[1]


@numba.njit(cache=True, nogil=True)
def _label(targets, weights, u, moving, scores, kinks, lows, distance, label, stays, start, stop):  # type: ignore[no-untyped-def]
    """Label rows by piece, region and sign of t, and tell which stay; return sum B and sum B t of each group.

    A row stays if in some piece its margin is within |t| distance of a kink. The last rows may be groups themselves.
    """
    count = targets.shape[0]
    sums = np.zeros((2, REGIONS * count))
    for i in range(start, stop):
        for j in range(count):
            t = targets[j, i]
            width = abs(t) * distance
            sign = 0 if t == 0.0 else 1 if t > 0.0 else 2
            if weights[j, i] == 0.0:
                label[j, i] = WEIGHTLESS
            elif i >= moving:
                label[j, i] = REGIONS * j + sign + (0 if u[j, i] == lows[j] else 3)
            elif t * scores[i] <= kinks[j, 0] - width:
                label[j, i] = REGIONS * j + sign
            elif t * scores[i] >= kinks[j, 1] + width:
                label[j, i] = REGIONS * j + sign + 3
            else:
                stays[i] = True
        if stays[i]:
            label[:, i] = STAYS
            continue
        for j in range(count):
            if label[j, i] >= 0:
                sums[0, label[j, i]] += weights[j, i]
                sums[1, label[j, i]] += weights[j, i] * targets[j, i]
    return sums


def _places(label: np.ndarray, rows: np.ndarray, occupied: np.ndarray, count: int) -> np.ndarray:
    """Return the row of the small problem that stands for each row of each piece."""
    table = np.zeros(count + 2, dtype=np.int32)  # the last two entries serve the negative labels
    table[occupied] = len(rows) + np.arange(len(occupied))
    place = table[label]
    place[:, rows] = np.arange(len(rows))
    return place
