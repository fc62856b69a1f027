"""Functions with straight pieces on chunks: small problems on the rows near a kink.

A pass at a hypothesis keeps the rows near a kink, and all others as mean rows: on a straight piece phi(mean)
= mean of phi, and anywhere else, by Jensen's inequality, it is less. So the problem on few rows equals the
whole one as long as no member of a mean row crosses a kink, and its optimum bounds that of all rows from
below in any case. It is an ordinary `nerm.Problem`, whose certificate gives the bound.

While many rows cross kinks, the optimum of the small problem lies far off, in a direction in which its mean
rows do not bend. So an estimate replaces the settled rows by rows of the sample of the same weight, and a
linear function per block corrects the slope in (w, b)::

    sum over kept of B phi(t f) + scale * sum over sampled of B phi(t f) + (slope of all - of sampled).(w, b)

Its optimum is only where the next pass looks: the bound never comes from it.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from nerm.chunks.census import ChunkRows, stacked
from nerm.chunks.coding import Terms
from nerm.chunks.passes import Hypothesis, Method, Progress, Sums, decisions
from nerm.chunks.pieces import Raw
from nerm.model.blocks import Block
from nerm.model.hypothesis import LinearHypothesis, sorted_csr
from nerm.model.problem import Problem
from nerm.typing import Bools, Floats, Ints, Matrix

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem


@dataclass(frozen=True, eq=False)
class FewRows:
    """Rows with the weights and targets of all blocks, (J, m)."""

    X: Any
    weights: Floats
    targets: Floats


def few_rows(X: Matrix, blocks: tuple[Block, ...], places: Ints) -> FewRows:
    """Return rows at these places with their weights and targets in all blocks."""
    weights, targets = ([getattr(b, name)[places] for b in blocks] for name in ("weights", "targets"))
    return FewRows(X[places], np.stack(weights), np.stack(targets))


def joined(parts: list[FewRows]) -> FewRows:
    """Return rows one under the other, sparse where some are."""
    sparse = any(sp.issparse(part.X) for part in parts)
    X = stacked([sp.csr_matrix(part.X) if sparse else part.X for part in parts])
    weights, targets = (np.hstack([getattr(p, name) for p in parts]) for name in ("weights", "targets"))
    return FewRows(X, weights, targets)


def on_rows(problem: ChunkedProblem, few: FewRows) -> Problem:
    """Return the problem on some rows with the weights and targets that they have in each block."""
    ones = np.ones(few.weights.shape[1])
    columns = zip(problem.layout, few.weights, few.targets, strict=True)
    blocks = tuple(Block(atom, B, t, term, side) for (atom, term, side), B, t in columns)
    return replace(
        problem.frame,
        hypothesis=LinearHypothesis(sorted_csr(few.X)),
        y=ones,
        viewpoints=dict.fromkeys(problem.frame.viewpoints, ones),
        sample_weight=ones,
        blocks=blocks,
    )


class Means(dict[tuple[int, int, float], Floats]):
    """Sums of (B, B t, B t x) over settled rows by (block, sign of the target, slope); they add up."""

    def __add__(self, other: Means) -> Means:
        shared = {key: self[key] + other[key] for key in self.keys() & other.keys()}
        return Means({**self, **other, **shared})

    def rows(self, count: int) -> FewRows:
        """Return the mean rows, each in its block alone."""
        sums = np.array(list(self.values()))
        place = [key[0] for key in self], np.arange(len(self))
        weights, targets = np.zeros((count, len(self))), np.ones((count, len(self)))
        weights[place], targets[place] = sums[:, 0], sums[:, 1] / sums[:, 0]
        return FewRows(sums[:, 2:] / sums[:, 1:2], weights, targets)


@dataclass(frozen=True, eq=False)
class KinkSums(Sums):
    """The rows near a kink and the sums of the others."""

    kept: list[FewRows]
    means: Means


@dataclass(frozen=True, eq=False)
class NearKinks:
    """The work of a pass where all functions have straight pieces.

    A row is near a kink if some function is not straight between its scores at both hypotheses, `distance`
    beyond them.

    Attributes
    ----------
    terms : Terms
    at, other : (coef, intercept)
        Where values are taken, and another hypothesis at which the small problem is to be exact.
    distance : float
        Of scores.
    share : float
        The share of the rows near a kink that is kept, where there are too many; the others count as settled.

    """

    terms: Terms
    at: Hypothesis
    other: Hypothesis
    distance: float = np.inf
    share: float = 1.0

    def __call__(self, raw: Raw) -> KinkSums:
        """Return the sums of one chunk."""
        rows = self.terms.coding.read(raw)
        blocks, scores = self.terms.blocks(rows), rows.X @ self.at[0] + self.at[1]
        kept, slopes = self.parted(rows, blocks, scores)
        means = mean_rows(rows.X, blocks, slopes, ~kept)
        values = np.array([block.total(scores) for block in blocks])
        common = values, decisions(self.terms, rows, scores), rows.n
        return KinkSums(*common, [few_rows(rows.X, blocks, np.flatnonzero(kept))], means)

    def parted(
        self, rows: ChunkRows, blocks: tuple[Block, ...], scores: Floats
    ) -> tuple[Bools, list[Floats]]:
        """Return which rows are kept, and of every block the slopes of the others."""
        if np.isinf(self.distance):
            return np.ones(rows.n, dtype=bool), [np.zeros(rows.n)] * len(blocks)
        others = rows.X @ self.other[0] + self.other[1]
        low, high = np.minimum(scores, others) - self.distance, np.maximum(scores, others) + self.distance
        pairs = [straight(block, low, high) for block in blocks]
        near = ~np.all([settled for settled, _ in pairs], axis=0)
        near[near] = np.diff(np.floor(self.share * np.arange(near.sum() + 1))) > 0  # the same ones every time
        return near, [slope for _, slope in pairs]


def straight(block: Block, low: Floats, high: Floats) -> tuple[Bools, Floats]:
    """Return where phi(t f) is a straight line for f between `low` and `high`, and its slope there.

    The subgradients at both ends of an interval are equal just where a convex function is straight on it.
    """
    ends = np.sort(np.stack([block.targets * low, block.targets * high]), axis=0)
    left, right = block.atom.subgradient(ends[0])[0], block.atom.subgradient(ends[1])[1]
    return (left == right) | (block.weights == 0) | (block.targets == 0), left


def mean_rows(X: Matrix, blocks: tuple[Block, ...], slopes: list[Floats], settled: Bools) -> Means:
    """Return the sums over settled rows by block, sign of the target and slope."""
    keys, weights = [], []
    for j, block in enumerate(blocks):
        for side in (-1, 1):
            among = settled & (side * block.targets > 0) & (block.weights > 0)
            for slope in np.unique(slopes[j][among]).tolist():
                keys.append((j, side, slope))
                weights.append(np.where(among & (slopes[j] == slope), block.weights, 0.0))
    signed = [B * blocks[j].targets for B, (j, _, _) in zip(weights, keys, strict=True)]
    linear = np.asarray(X.T @ np.reshape(signed, (len(keys), X.shape[0])).T).T
    sums = zip(keys, weights, signed, linear, strict=True)
    return Means({key: np.concatenate([[B.sum(), Bt.sum()], Btx]) for key, B, Bt, Btx in sums})


def _work(problem: ChunkedProblem, state: Progress) -> NearKinks:
    """Return the work that keeps as many rows as the sample has, twice as many after each pass.

    Rows within a distance from a kink are kept. Where too many lie on kinks, or cross them between the two
    hypotheses, a share of these is.
    """
    n, sample, work = problem.n, problem.sample, NearKinks(problem.terms, state.at, state.best)
    most = min(sample.n * 2**state.passes, problem.rows_limit)
    if n <= most:
        return work
    blocks, scores = problem.terms.blocks(sample), sample.X @ state.at[0] + state.at[1]

    def expected(distance: float) -> float:
        return n * float(replace(work, distance=distance).parted(sample, blocks, scores)[0].mean())

    distances = [0.0, *2.0 ** np.arange(-30, 10, 0.1)]
    distance = distances[max(0, bisect(distances, most, key=expected) - 1)]
    return replace(work, distance=distance, share=min(1.0, most / max(expected(distance), 1.0)))


def _solve_few_rows(
    problem: ChunkedProblem, state: Progress, work: NearKinks, found: KinkSums, tol: float
) -> Progress:
    """Solve on few rows for the bound; the next hypothesis is the optimum of the estimate."""
    means = [found.means.rows(len(problem.layout))] if found.means else []
    small = on_rows(problem, joined(found.kept + means))
    solution = small.solve("auto", 0.5 * tol)
    bound = max(state.bound, solution.certificate.dual - solution.certificate.slack)
    estimate = _estimate(problem, work, found) if found.means else None
    if estimate is not None:
        solution = estimate.solve("auto", 0.5 * tol)
    thetas = state.thetas if solution.multipliers is None else solution.multipliers.thetas
    at = np.asarray(solution.coef), float(solution.intercept)
    return replace(state, at=at, bound=bound, thetas=thetas, kept=small.n)


def _estimate(problem: ChunkedProblem, work: NearKinks, found: KinkSums) -> Problem | None:
    """Return a problem that has the value and the slope of all rows at the hypothesis of the pass.

    None where a function is not straight around 0, so that it gives no linear functions, or where the sample
    has none of the settled rows.
    """
    sample, blocks, at = problem.sample, problem.terms.blocks(problem.sample), work.at
    kept, slopes = work.parted(sample, blocks, sample.X @ at[0] + at[1])
    settled = np.flatnonzero(~kept)
    rows = few_rows(sample.X, blocks, settled)
    masses, wanted = (rows.weights * (rows.targets != 0)).sum(axis=1), np.zeros(len(blocks))
    missing = np.zeros((len(blocks), 1 + len(at[0])))
    for (j, _, slope), sums in found.means.items():
        wanted[j] += sums[0]
        missing[j] += slope * np.append(sums[2:], sums[1])
    around = np.array([block.atom.subgradient(np.array([-0.5, 0.5])) for block in blocks])
    if np.ptp(around, axis=(1, 2)).any() or not around.all() or np.any((masses == 0) & (wanted > 0)):
        return None
    weights = rows.weights * (wanted / np.where(masses > 0, masses, 1.0))[:, None]
    signed = weights * rows.targets * np.stack([slope[settled] for slope in slopes])
    missing -= np.column_stack([np.asarray(rows.X.T @ signed.T).T, signed.sum(axis=1)])
    small = 0.5 / (
        1.0 + 2 * float(np.linalg.norm(np.append(*at)))
    )  # straight while the hypothesis at most doubles
    parts = [*found.kept, replace(rows, weights=weights)]
    parts += [_affine(blocks, j, slope, 0.0, small) for j, slope in enumerate(missing)]
    model = on_rows(problem, joined(parts))
    scores = model.hypothesis.scores(*at)
    excess = np.array([block.total(scores) for block in model.blocks]) - found.values
    for j, block in enumerate(blocks):  # both sides of a maximum must exceed their values by one constant
        top = excess[[other.term == block.term for other in blocks]].max()
        parts.append(_affine(blocks, j, 0 * missing[j], top - excess[j], small))
    return on_rows(problem, joined(parts))


def _affine(blocks: tuple[Block, ...], j: int, slope: Floats, constant: float, small: float) -> FewRows:
    """Return rows whose sum in one block is slope.(w, b) + constant, up to another constant.

    W phi(e (x.w + b)) = W phi(0) + W phi'(0) e (x.w + b) for a small e where phi is straight around 0. One
    row brings the slope in w, another one, x = 0, the rest of that in b, and two that cancel bring the
    constant; none where phi(0) = 0, since all such functions agree at 0.
    """
    atom, length = blocks[j].atom, float(np.linalg.norm(slope[:-1]))
    steepness, at_zero = float(atom.subgradient(np.array(0.0))[0]), atom.facts.at_zero
    X = np.zeros((4, len(slope) - 1))
    X[0] = slope[:-1] / (length or 1.0)
    pulls = np.array([length, slope[-1] - length])
    weights, targets = np.zeros((len(blocks), 4)), np.ones((len(blocks), 4))
    weights[j] = [*np.abs(pulls / (small * steepness)), *2 * [constant / at_zero / 2 if at_zero > 0 else 0.0]]
    targets[j] = small * np.array([*np.where(pulls * steepness > 0, 1.0, -1.0), 1.0, -1.0])
    return FewRows(X, weights, targets)


FEW_ROWS = Method(_work, _solve_few_rows)
