"""The best intercept for given scores: an exact one-dimensional minimisation.

For scores g without intercept, b -> P(g + b) is convex and piecewise linear, if every atom is two straight
lines. Its minimum is at a bend of one of them or, with a two-sided term, where C+ = C-.
"""

from dataclasses import dataclass

import numpy as np

from nerm.model.blocks import Block, term_weights
from nerm.model.problem import Problem
from nerm.solvers.smo.segments import NEGLIGIBLE, bend_of
from nerm.typing import Floats


def best_intercept(problem: Problem, g: Floats) -> tuple[float, float, float]:
    """Return (b, left, right): the interval of minimisers of P(g + b) and its midpoint.

    Differences below 1e-12 of the value count as rounding when the interval is read off.
    """
    blocks = zip(term_weights(problem), problem.blocks, strict=True)
    lines = [(factor, block.side, _line(block, g)) for factor, block in blocks if factor > 0]
    points = np.unique(np.concatenate([line.bends for _, _, line in lines]))
    sides = [line for _, side, line in lines if side]
    if sides:
        points = _with_crossings(points, *sides)
    values = sum((f * line.at(points) for f, side, line in lines if not side), start=np.zeros(len(points)))
    if sides:
        values = values + np.max([f * line.at(points) for f, side, line in lines if side], axis=0)
    best = float(values.min())
    flat = points[values <= best + 1e-12 * max(1.0, abs(best))]
    left, right = float(flat[0]), float(flat[-1])
    return 0.5 * (left + right), left, right


@dataclass(frozen=True)
class _Line:
    """A block along b: constant + sum_i slope_i (b - bend_i), with one slope on either side of each bend; sorted."""

    bends: Floats
    left: Floats
    right: Floats
    constant: float

    def at(self, points: Floats) -> Floats:
        """Return the values at sorted points: sums over all bends on one side are cumulative sums."""
        before = np.searchsorted(self.bends, points, side="right")
        jump = self.right - self.left
        rate = self.left.sum() + np.append(0.0, np.cumsum(jump))[before]
        level = (self.left * self.bends).sum() + np.append(0.0, np.cumsum(jump * self.bends))[before]
        return np.asarray(rate * points - level + self.constant)


def _line(block: Block, g: Floats) -> _Line:
    """Return sum_i weights_i atom(targets_i (g_i + b)) as a function of b."""
    facts, still = block.atom.facts, np.abs(block.targets) < NEGLIGIBLE
    moved = ~still & (block.weights > 0)
    w, t = block.weights[moved], block.targets[moved]
    bend = bend_of(block)
    bends = bend / t - g[moved]
    slopes = w * np.sort(t * np.array(facts.slopes)[:, None], axis=0)
    constant = float(block.weights[still].sum()) * facts.at_zero + float(w.sum() * block.atom.value(bend))
    order = np.argsort(bends)
    return _Line(bends[order], slopes[0, order], slopes[1, order], constant)


def _with_crossings(points: Floats, plus: _Line, minus: _Line) -> Floats:
    """Add the points where C+ - C- passes 0: it is linear between two bends, and beyond the first and the last."""
    points = np.concatenate([[points[0] - 1.0], points, [points[-1] + 1.0]])
    d = plus.at(points) - minus.at(points)
    fall = d[:-1] - d[1:]
    share = np.divide(d[:-1], fall, out=np.full(len(fall), np.nan), where=fall != 0)
    first, last = np.zeros(len(share)), np.ones(len(share))
    first[0], last[-1] = -np.inf, np.inf
    k = np.flatnonzero((share > first) & (share < last))
    return np.sort(np.append(points, points[k] + share[k] * (points[k + 1] - points[k])))
