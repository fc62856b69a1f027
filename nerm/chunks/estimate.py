"""Where to look next while rows still cross kinks: an estimate of all rows that bends as they do.

The problem on few rows (`nerm.chunks.few_rows`) is a bound, and right where nobody crosses a kink. In the
beginning many do, and its optimum lies far off, in a direction in which its mean rows do not bend. So the
settled rows are replaced by rows of the sample, as heavy as they are, and a linear function a block sets
right what the sample gets wrong, the slope in (w, b) that the pass has found::

    sum over kept of B phi(t f)  +  scale * sum over sampled of B phi(t f)  +  (slope of all - slope of
    sampled).(w, b)

What it proposes is only looked at: the bound never comes from here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from nerm.atoms.margin import MarginFunction
from nerm.chunks.chunk_coding import ChunkRows
from nerm.chunks.progress import Hypothesis
from nerm.chunks.sums import FewRows, KeptRows, NearKinks, joined
from nerm.model.blocks import Block
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem

REACH = 0.01  # a target: what is straight between margins -1 and 1 is so for scores up to its inverse


def estimate(problem: ChunkedProblem, found: FewRows, sample: ChunkRows) -> tuple[KeptRows, float] | None:
    """Return rows that stand for all, and by how much their objective is too large; None where there are none.

    The rows are such that the estimate has the value and the slope of all rows at the hypothesis of the pass.
    """
    work: NearKinks = found.work
    if np.isinf(work.distance):
        return None
    blocks = work.terms.blocks(sample)
    sampled = _sampled(work, found, sample, blocks)
    if sampled is None:
        return None
    rows, missing = sampled
    lines = [_straight(block.atom, missing[j]) for j, block in enumerate(blocks)]
    if any(line is None for line in lines):
        return None
    parts = [
        *found.kept,
        rows,
        *(_alone(j, len(blocks), *line) for j, line in enumerate(lines) if line is not None),
    ]
    surplus = _values(blocks, parts, work.at) - found.values
    tops: dict[int, float] = {}
    for block, more in zip(blocks, surplus.tolist(), strict=True):
        tops[block.term] = max(more, tops.get(block.term, -np.inf))
    for j, block in enumerate(blocks):  # both sides of a maximum must have the same
        less = tops[block.term] - surplus[j]
        if less > 0 and block.atom.facts.at_zero > 0:
            parts.append(_alone(j, len(blocks), *_constant(len(work.at[0]), less / block.atom.facts.at_zero)))
    weights = problem.frame.objective.terms
    return joined(parts), sum(
        weights[term].weight * top for term, top in tops.items()
    ) / problem.terms.divisor


def _sampled(
    work: NearKinks, found: FewRows, sample: ChunkRows, blocks: tuple[Block, ...]
) -> tuple[KeptRows, Floats] | None:
    """Return rows of the sample instead of all settled rows, and the slopes (J, d + 1) that these lack then."""
    _, settled, slopes = work.parted(sample, blocks, sample.X @ work.at[0] + work.at[1])
    rows = np.flatnonzero(settled)
    weights, targets = (
        np.stack([b.weights[rows] for b in blocks]),
        np.stack([b.targets[rows] for b in blocks]),
    )
    masses = (weights * (targets != 0)).sum(axis=1)
    wanted, slope = found.slopes()
    if not len(rows) or np.any((masses == 0) & (wanted > 0)):
        return None
    weights = weights * (wanted / np.where(masses > 0, masses, 1.0))[:, None]
    pulls = weights * targets * np.stack([one[rows] for one in slopes])
    missing = slope - np.column_stack([np.asarray(sample.X[rows].T @ pulls.T).T, pulls.sum(axis=1)])
    return KeptRows(sample.X[rows], weights, targets), missing


def _values(blocks: tuple[Block, ...], parts: list[KeptRows], at: Hypothesis) -> Floats:
    """Return the blocks of rows at the hypothesis of the pass, (J,)."""
    total = np.zeros(len(blocks))
    for part in parts:
        scores = part.X @ at[0] + at[1]
        for j, block in enumerate(blocks):
            total[j] += part.weights[j] @ block.atom.value(part.targets[j] * scores)
    return total


def _straight(atom: MarginFunction, slope: Floats) -> tuple[Floats, Floats, Floats] | None:
    """Return rows, weights and targets whose sum is slope.(w, b) and a constant; None where phi bends around 0.

    W phi(e (x.w + b)) = W phi(0) + W phi'(0) e (x.w + b) for a small e where phi is straight around 0. One
    row brings the slope in w, and another one, x = 0, what is left in b.
    """
    low, high = float(atom.subgradient(np.array(-0.5))[0]), float(atom.subgradient(np.array(0.5))[1])
    if low != high or low == 0:
        return None
    length = float(np.linalg.norm(slope[:-1]))
    X = np.vstack([slope[:-1] / max(length, 1e-300), np.zeros(len(slope) - 1)])
    pulls = np.array([length, slope[-1] - length])
    targets = np.where(pulls * low > 0, REACH, -REACH)
    return X, np.abs(pulls / (REACH * low)), targets


def _constant(columns: int, weight: float) -> tuple[Floats, Floats, Floats]:
    """Return rows of a total weight whose slopes cancel."""
    return np.zeros((2, columns)), np.full(2, weight / 2), np.array([REACH, -REACH])


def _alone(number: int, count: int, X: Floats, weights: Floats, targets: Floats) -> KeptRows:
    """Return rows that count in one block only."""
    every, there = np.zeros((count, len(weights))), np.ones((count, len(weights)))
    every[number], there[number] = weights, targets
    return KeptRows(X, every, there)
