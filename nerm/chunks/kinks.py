"""Piecewise linear functions on chunks: small problems on the rows near a kink.

A pass at a hypothesis keeps the rows near a kink. All other rows are called settled and replaced by a few
mean rows. Where an atom phi is linear, phi(mean) equals the mean of phi; otherwise it is smaller, by Jensen's
inequality. So the small problem equals the whole problem as long as no settled row crosses a kink, and its
optimum is always a lower bound on the optimum of all rows. The small problem is an ordinary `nerm.Problem`;
its certificate gives the bound.

While many rows still cross kinks, the optimum of the small problem can be far away, because mean rows have no
kinks on the way. A second problem, the estimate, gives a better next hypothesis. It replaces the settled rows
by settled rows of the sample, scaled to the same total weight. A linear function per block corrects the
gradient in (w, b). With the weights B and margins m, a block of the estimate is::

    sum over kept rows of B phi(m) + scale * sum over settled rows of the sample of B phi(m)
    + (gradient over all settled rows - scale * gradient over settled rows of the sample).(w, b)

The optimum of the estimate is only the hypothesis of the next pass; the lower bound never uses it.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from nerm.atoms.margin import MarginFunction
from nerm.chunks.census import stacked
from nerm.chunks.coding import Terms
from nerm.chunks.passes import Hypothesis, Progress, Sums, evaluated
from nerm.chunks.pieces import ChunkRows, row_bytes
from nerm.model.blocks import Block
from nerm.model.hypothesis import LinearHypothesis, sorted_csr
from nerm.model.problem import Problem
from nerm.typing import Bools, Floats, Ints, Matrix

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem


@dataclass(frozen=True, eq=False)
class FewRows:
    """A set of m rows X, (m, d), with their weights, targets and offsets in the J blocks.

    The weights, the targets and the offsets are (J, m).
    """

    X: Any
    weights: Floats
    targets: Floats
    offsets: Floats


PARTS = ("weights", "targets", "offsets")


def few_rows(X: Matrix, blocks: tuple[Block, ...], places: Ints) -> FewRows:
    """Return the rows with the indices `places`, with their weights, targets and offsets."""
    return FewRows(X[places], *(np.stack([getattr(b, name)[places] for b in blocks]) for name in PARTS))


def joined(parts: list[FewRows]) -> FewRows:
    """Concatenate sets of rows; the result is sparse if any of them is."""
    sparse = any(sp.issparse(part.X) for part in parts)
    X = stacked([sp.csr_matrix(part.X) if sparse else part.X for part in parts])
    return FewRows(X, *(np.hstack([getattr(p, name) for p in parts]) for name in PARTS))


def on_rows(problem: ChunkedProblem, few: FewRows) -> Problem:
    """Return the problem in memory on the rows `few`.

    Each row has its own weight, target and offset in each block.
    """
    ones = np.ones(few.weights.shape[1])
    blocks = enumerate(problem.sample.blocks)
    return replace(
        problem.sample,
        hypothesis=LinearHypothesis(sorted_csr(few.X)),
        y=ones,
        viewpoints=dict.fromkeys(problem.sample.viewpoints, ones),
        sample_weight=ones,
        divisor=problem.terms.divisor,
        blocks=tuple(
            replace(block, **{part: getattr(few, part)[j] for part in PARTS}) for j, block in blocks
        ),
    )


class Means(dict[tuple[int, int, float], Floats]):
    """Sums of (B, B t, B o, B t x), (d + 3,), over settled rows; `+` combines two of them.

    B is the weight, t the target, o the offset and x the features of a row. The keys are (block, sign of the
    target, slope of the atom), and each sum is over the settled rows with this key.
    """

    def __add__(self, other: Means) -> Means:
        shared = {key: self[key] + other[key] for key in self.keys() & other.keys()}
        return Means({**self, **other, **shared})

    def rows(self, count: int) -> FewRows:
        """Return one mean row per key.

        The weight of a mean row is 0 in all of the `count` blocks but its own.
        """
        sums = np.array(list(self.values()))
        place = [key[0] for key in self], np.arange(len(self))
        weights, targets, offsets = (np.full((count, len(self)), x) for x in (0.0, 1.0, 0.0))
        weights[place], targets[place] = sums[:, 0], sums[:, 1] / sums[:, 0]
        offsets[place] = sums[:, 2] / sums[:, 0]
        return FewRows(sums[:, 3:] / sums[:, 1:2], weights, targets, offsets)


@dataclass(frozen=True, eq=False)
class KinkSums(Sums):
    """The result of a pass: the rows near a kink, and sums over the settled rows.

    `kept` has the rows near a kink, one set per chunk.
    """

    kept: list[FewRows]
    means: Means


@dataclass(frozen=True, eq=False)
class NearKinks:
    """The function of a pass for piecewise linear atoms.

    It maps a raw chunk to its `KinkSums`. A row is near a kink if some atom is not linear on the interval
    between its scores at the two hypotheses, extended by `distance` on both sides.

    Attributes
    ----------
    terms : Terms
        The objective and the coding.
    at, other : (coef, intercept)
        The hypothesis at which values are computed, and a second one at which the small problem is exact,
        too.
    distance : float
        The distance of scores; infinite to keep all rows.
    share : float
        The share of the rows near a kink that is kept, below 1 if there are too many; the others count as
        settled.

    """

    terms: Terms
    at: Hypothesis
    other: Hypothesis
    distance: float = np.inf
    share: float = 1.0

    def __call__(self, raw: ChunkRows) -> KinkSums:
        """Return the kept rows and the sums of one chunk."""
        rows, blocks, scores, sums = evaluated(raw, self.terms, self.at)
        kept, slopes = self.parted(rows.X, blocks, scores)
        means = mean_rows(rows.X, blocks, slopes, ~kept)
        return KinkSums(*sums, [few_rows(rows.X, blocks, np.flatnonzero(kept))], means)

    def parted(self, X: Matrix, blocks: tuple[Block, ...], scores: Floats) -> tuple[Bools, list[Floats]]:
        """Return a mask of the rows to keep, (n,), and the slopes of the atoms.

        The slopes are one (n,) array per block. `scores`, (n,), are those at the hypothesis `at`.
        """
        if np.isinf(self.distance):
            return np.ones(len(scores), dtype=bool), [np.zeros(len(scores))] * len(blocks)
        others = X @ self.other[0] + self.other[1]
        low, high = np.minimum(scores, others) - self.distance, np.maximum(scores, others) + self.distance
        pairs = [straight(block, low, high) for block in blocks]
        near = ~np.all([settled for settled, _ in pairs], axis=0)
        near[near] = np.diff(np.floor(self.share * np.arange(near.sum() + 1))) > 0  # the same in every pass
        return near, [slope for _, slope in pairs]


def straight(block: Block, low: Floats, high: Floats) -> tuple[Bools, Floats]:
    """Return a mask of the rows where the atom is linear from `low` to `high`.

    `low` and `high` are scores, (n,). The second result has the slopes of the atom at the lower ends, (n,). A
    convex function is linear on an interval if and only if its slopes at both ends are equal.
    """
    ends = np.sort(np.stack([block.margins(low), block.margins(high)]), axis=0)
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
    found = Means()
    for key, B, Bt, Btx in zip(keys, weights, signed, linear, strict=True):
        found[key] = np.concatenate([[B.sum(), Bt.sum(), B @ blocks[key[0]].offsets], Btx])
    return found


def work(problem: ChunkedProblem, state: Progress) -> NearKinks:
    """Return the function of a pass at ``state.at``.

    The distance and the share of kept rows are chosen from the sample. The pass keeps about as many rows as
    the sample has, and twice as many after each pass, up to the memory limit. If too many rows are near a
    kink even at distance 0, only a share of them is kept.
    """
    n, sample, near = problem.n, problem.sample, NearKinks(problem.terms, state.at, state.best)
    X = sample.hypothesis.X
    most = min(sample.n * 2**state.passes, max(sample.n, problem.chunks.limit // row_bytes(X)))
    if n <= most or state.keeps_all:
        return near
    scores = X @ state.at[0] + state.at[1]

    def expected(distance: float) -> float:
        return n * float(replace(near, distance=distance).parted(X, sample.blocks, scores)[0].mean())

    distances = [0.0, *2.0 ** np.arange(-30, 10, 0.1)]
    distance = distances[max(0, bisect(distances, most, key=expected) - 1)]
    return replace(near, distance=distance, share=min(1.0, most / max(expected(distance), 1.0)))


def next_state(
    problem: ChunkedProblem, state: Progress, done: NearKinks, found: KinkSums, tol: float
) -> Progress:
    """Return the state with a new lower bound and the next hypothesis.

    The bound is that of the small problem. The next hypothesis is the optimum of the estimate, or of the
    small problem if there is no estimate. `done` is the function of the pass and `found` its result.
    """
    means = [found.means.rows(len(found.values))] if found.means else []
    small = on_rows(problem, joined(found.kept + means))
    solution = small.solve("auto", 0.5 * tol)
    bound = max(state.bound, solution.certificate.dual - solution.certificate.slack)
    estimate = _estimate(problem, done, found) if found.means else None
    if estimate is not None:
        solution = estimate.solve("auto", 0.5 * tol)
    thetas = state.thetas if solution.multipliers is None else solution.multipliers.thetas
    at = np.asarray(solution.coef), float(solution.intercept)
    return replace(state, at=at, bound=bound, thetas=thetas, kept=small.n)


def _estimate(problem: ChunkedProblem, done: NearKinks, found: KinkSums) -> Problem | None:
    """Return the estimate (see the module).

    It has the gradient of all rows at the hypothesis of the pass. The values of its blocks differ from those
    of all rows by one constant per term. Return None if an atom is not linear where `_affine` needs it, or if
    the sample has no settled rows.
    """
    X, blocks, at = problem.sample.hypothesis.X, problem.sample.blocks, done.at
    kept, slopes = done.parted(X, blocks, X @ at[0] + at[1])
    settled = np.flatnonzero(~kept)
    rows = few_rows(X, blocks, settled)
    masses, wanted = (rows.weights * (rows.targets != 0)).sum(axis=1), np.zeros(len(blocks))
    missing = np.zeros((len(blocks), 1 + len(at[0])))
    for (j, _, slope), sums in found.means.items():
        wanted[j] += sums[0]
        missing[j] += slope * np.append(sums[3:], sums[1])
    around = np.array([b.atom.subgradient(_straight_at(b.atom) + np.array([-0.5, 0.5])) for b in blocks])
    if np.ptp(around, axis=(1, 2)).any() or not around.all() or np.any((masses == 0) & (wanted > 0)):
        return None
    weights = rows.weights * (wanted / np.where(masses > 0, masses, 1.0))[:, None]
    signed = weights * rows.targets * np.stack([slope[settled] for slope in slopes])
    missing -= np.column_stack([np.asarray(rows.X.T @ signed.T).T, signed.sum(axis=1)])
    # the rows of `_affine` stay linear until the hypothesis doubles
    small = 0.5 / (1.0 + 2 * float(np.linalg.norm(np.append(*at))))
    parts = [*found.kept, replace(rows, weights=weights)]
    parts += [_affine(blocks, j, slope, 0.0, small) for j, slope in enumerate(missing)]
    model = on_rows(problem, joined(parts))
    scores = model.hypothesis.scores(*at)
    excess = np.array([block.total(scores) for block in model.blocks]) - found.values
    for j, block in enumerate(blocks):  # C+ and C- must exceed their values by the same constant
        top = excess[[other.term == block.term for other in blocks]].max()
        parts.append(_affine(blocks, j, 0 * missing[j], top - excess[j], small))
    return on_rows(problem, joined(parts))


def _straight_at(atom: MarginFunction) -> float:
    """Return a margin around which an atom is a line that is not flat: 0, or one before its first kink."""
    slopes = np.array(atom.subgradient(np.array([-0.5, 0.5])))
    return 0.0 if slopes.all() and not np.ptp(slopes) else min(atom.facts.kinks, default=0.0) - 1.0


def _affine(blocks: tuple[Block, ...], j: int, slope: Floats, constant: float, small: float) -> FewRows:
    """Return four rows whose sum in block j is linear in (w, b).

    The sum is slope.(w, b) + constant + a fixed number. If the atom phi is linear around m (`_straight_at`),
    a row x with a weight W, a small target e (`small`) and the offset -m adds::

        W phi(m + e (x.w + b)) = W phi(m) + W phi'(m) e (x.w + b)

    The first row gives the slope in w, the second (x = 0)
    the remaining slope in b. The slopes of the last two rows cancel, and their values give the constant; they
    have weight 0 if phi(m) = 0. The fixed number is the sum of W phi(m) over the first two rows.
    """
    atom, length = blocks[j].atom, float(np.linalg.norm(slope[:-1]))
    at = _straight_at(atom)
    steepness, height = float(atom.subgradient(np.array(at))[0]), float(atom.value(at))
    X = np.zeros((4, len(slope) - 1))
    X[0] = slope[:-1] / (length or 1.0)
    slopes = np.array([length, slope[-1] - length])
    weights, targets, offsets = (np.full((len(blocks), 4), x) for x in (0.0, 1.0, 0.0))
    weights[j] = [*np.abs(slopes / (small * steepness)), *2 * [constant / height / 2 if height > 0 else 0.0]]
    targets[j] = small * np.array([*np.where(slopes * steepness > 0, 1.0, -1.0), 1.0, -1.0])
    offsets[j] = -at
    return FewRows(X, weights, targets, offsets)
