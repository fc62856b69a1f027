"""Piecewise linear functions on chunks: small problems on the rows near a kink.

A pass at a hypothesis keeps the rows near a kink. All other rows are called settled and replaced by a few
mean rows. Where an atom phi is linear, phi(mean) equals the mean of phi; otherwise it is smaller, by Jensen's
inequality. So the small problem equals the whole problem as long as no settled row crosses a kink, and its
optimum is always a lower bound on the optimum of all rows. The small problem is an ordinary `nerm.Problem`;
its certificate gives the bound.

While many rows still cross kinks, the optimum of the small problem can be far away, because mean rows have no
kinks on the way. A second problem, the estimate, gives a better next hypothesis. It replaces the settled rows
by settled rows of the sample, scaled to the same total weight. A linear function per block corrects the value
and the gradient. The lower bound never uses the estimate.
"""

from __future__ import annotations

from bisect import bisect
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from nerm.atoms.losses import Identity
from nerm.certify.solution import Solution
from nerm.chunks.coding import Terms, stacked
from nerm.chunks.pieces import ChunkRows, row_bytes
from nerm.chunks.proximal import Progress, Sums, evaluated, sums_of
from nerm.model.blocks import Block, in_order
from nerm.model.hypothesis import LinearHypothesis, sorted_csr
from nerm.model.problem import Problem
from nerm.solvers.newton_alm.solver import AugmentedLagrangianSolver
from nerm.solvers.registry import choose
from nerm.typing import Bools, Floats, Matrix

if TYPE_CHECKING:
    from nerm.chunks.chunked_problem import ChunkedProblem

PARTS = ("weights", "targets", "offsets")
FewRows = tuple[Any, Floats]  # m rows X, (m, d), and their PARTS in the J blocks, (J, 3, m)


def few_rows(X: Matrix, blocks: tuple[Block, ...], chosen: Any) -> FewRows:
    """Return the chosen rows (a mask), with their weights, targets and offsets."""
    return X[chosen], np.array([[getattr(block, part)[chosen] for part in PARTS] for block in blocks])


def unweighted(blocks: int, m: int) -> Floats:
    """Return weights 0, targets 1 and offsets 0 of m rows, (number of blocks, 3, m).

    They fill the blocks to which these rows do not belong.
    """
    return np.tile(np.array([0.0, 1.0, 0.0])[:, None], (blocks, 1, m))


def joined(parts: list[FewRows]) -> FewRows:
    """Concatenate sets of rows; the result is sparse if any of them is."""
    sparse = any(sp.issparse(X) for X, _ in parts)
    X = stacked([sp.csr_matrix(X) if sparse else X for X, _ in parts])
    return X, np.concatenate([numbers for _, numbers in parts], axis=-1)


def on_rows(problem: ChunkedProblem, few: FewRows, lines: tuple[Block, ...] = ()) -> Problem:
    """Return the problem in memory on a few rows.

    `lines` are further blocks on the same rows, which are added to the objective.
    """
    ones, sample = np.ones(few[0].shape[0]), problem.sample
    blocks = [replace(b, **dict(zip(PARTS, few[1][j], strict=True))) for j, b in enumerate(sample.blocks)]
    return replace(
        sample,
        hypothesis=LinearHypothesis(sorted_csr(few[0])),
        y=ones,
        viewpoints=dict.fromkeys(sample.viewpoints, ones),
        sample_weight=ones,
        divisor=problem.terms.divisor,
        blocks=in_order([*blocks, *lines], sample.objective.every_term),
    )


@dataclass(frozen=True, eq=False)
class NearKinks:
    """The function that a pass applies to every chunk, for piecewise linear atoms.

    It maps a raw chunk to three results, by name: the sums of `evaluated`; "kept", a list with the rows near
    a kink, one set per chunk; and "settled", the sums of `settled_sums` over the other rows. A row is near a
    kink if some atom is not linear on the interval between its scores at the two hypotheses, extended by
    `distance` on both sides.

    Attributes
    ----------
    terms : Terms
        The objective and the coding.
    at, other : (d + 1,) arrays
        The hypothesis at which values are computed, and a second one. The small problem equals the whole
        problem at both.
    distance : float
        The distance of scores; infinite to keep all rows.
    share : float
        The share of the rows near a kink that is kept, below 1 if there are too many; the others count as
        settled.
    """

    terms: Terms
    at: Floats
    other: Floats
    distance: float = np.inf
    share: float = 1.0

    def __call__(self, raw: ChunkRows) -> Sums:
        """Return the kept rows and the sums of one chunk."""
        rows, blocks, scores, sums = evaluated(raw, self.terms, self.at)
        kept, slopes = self.parted(rows.X, blocks, scores)
        settled = settled_sums(rows.X, blocks, slopes, ~kept)
        return sums + Sums(kept=[few_rows(rows.X, blocks, kept)], settled=settled)

    def parted(self, X: Matrix, blocks: tuple[Block, ...], scores: Floats) -> tuple[Bools, Floats]:
        """Return a mask of the rows to keep, (n,), and the slopes of the atoms, (J, n).

        `scores`, (n,), are those at the hypothesis `at`.
        """
        if np.isinf(self.distance):
            return np.ones(len(scores), dtype=bool), np.zeros((len(blocks), len(scores)))
        others = X @ self.other[:-1] + self.other[-1]
        low, high = np.minimum(scores, others) - self.distance, np.maximum(scores, others) + self.distance
        near = ~np.all([is_linear(block, low, high) for block in blocks], axis=0)
        near[near] = np.diff(np.floor(self.share * np.arange(near.sum() + 1))) > 0  # the same in every pass
        return near, np.array([np.mean(b.atom.subgradient(b.margins(scores)), axis=0) for b in blocks])


def is_linear(block: Block, low: Floats, high: Floats) -> Bools:
    """Return a mask of the rows where the atom is linear from `low` to `high`, scores of shape (n,).

    A convex function is linear on an interval if and only if its slopes at both ends are equal.
    """
    ends = np.sort(np.stack([block.margins(low), block.margins(high)]), axis=0)
    straight = block.atom.subgradient(ends[0])[0] == block.atom.subgradient(ends[1])[1]
    return np.asarray(straight | (block.weights == 0) | (block.targets == 0))


def settled_sums(X: Matrix, blocks: tuple[Block, ...], slopes: Floats, settled: Bools) -> Sums:
    """Return the sums of (B, B t, B o, B t x), (d + 3,), over groups of settled rows.

    B is the weight, t the target, o the offset and x the features of a row. The rows of a group agree in the
    sign of the target and in the slope of the atom; the key is (block, sign, slope).
    """
    found = Sums()
    for j, block in enumerate(blocks):
        for side in (-1, 1):
            among = settled & (side * block.targets > 0) & (block.weights > 0)
            for slope in np.unique(slopes[j][among]).tolist():
                B = np.where(among & (slopes[j] == slope), block.weights, 0.0)
                linear = sums_of(X, B * block.targets)
                found[j, side, slope] = np.concatenate(
                    [[B.sum(), linear[-1], B @ block.offsets], linear[:-1]]
                )
    return found


def mean_rows(settled: Sums, count: int) -> FewRows:
    """Return one mean row per group of settled rows.

    The weight of a mean row is 0 in all of the `count` blocks but its own.
    """
    sums = np.array(list(settled.values()))
    numbers = unweighted(count, len(settled))
    mean = sums[:, 0], sums[:, 1] / sums[:, 0], sums[:, 2] / sums[:, 0]
    numbers[[key[0] for key in settled], :, np.arange(len(settled))] = np.transpose(mean)
    return sums[:, 3:] / sums[:, 1:2], numbers


def work(problem: ChunkedProblem, state: Progress) -> NearKinks:
    """Return the function that the pass at ``state.at`` applies to every chunk.

    The distance and the share of kept rows are chosen from the sample. The pass keeps about as many rows as
    the sample has, and twice as many after each pass, up to the memory limit. If too many rows are near a
    kink even at distance 0, only a share of them is kept.
    """
    n, sample, near = problem.n, problem.sample, NearKinks(problem.terms, state.at, state.best)
    X = sample.hypothesis.X
    most = min(sample.n * 2**state.passes, max(sample.n, problem.chunks.limit // row_bytes(X)))
    if n <= most or state.keeps_all:
        return near
    scores = X @ state.at[:-1] + state.at[-1]

    def expected(distance: float) -> float:
        return n * float(replace(near, distance=distance).parted(X, sample.blocks, scores)[0].mean())

    distances = [0.0, *2.0 ** np.arange(-30, 10, 0.1)]
    distance = distances[max(0, bisect(distances, most, key=expected) - 1)]
    return replace(near, distance=distance, share=min(1.0, most / max(expected(distance), 1.0)))


def next_state(
    problem: ChunkedProblem, state: Progress, done: NearKinks, found: Sums, tol: float
) -> Progress:
    """Return the state with a new lower bound and the next hypothesis.

    The bound is that of the small problem. The next hypothesis is the optimum of the estimate, or of the
    small problem if there is no estimate. `done` is the function of the pass and `found` its result.
    """
    kept, settled = joined(found["kept"]), found["settled"]
    means = [mean_rows(settled, len(found["values"]))] if settled else []
    small = on_rows(problem, joined([kept, *means]))
    solution = solved(small, 0.5 * tol)
    bound = max(state.bound, solution.certificate.dual - solution.certificate.slack)
    estimate = _estimate(problem, done, kept, found) if settled else None
    if estimate is not None:
        solution = solved(estimate, 0.5 * tol)
    thetas = state.thetas if solution.multipliers is None else solution.multipliers.thetas
    at = np.append(solution.coef, solution.intercept)
    return replace(state, at=at, bound=bound, thetas=thetas, kept=small.n)


def solved(problem: Problem, tol: float) -> Solution:
    """Solve by the first suitable solver; if that fails, by the next ones.

    The order is: the first solver for the problem, the augmented Lagrangian method, all solvers of "auto".
    """
    second = AugmentedLagrangianSolver()
    found = problem.solve(choose(problem)[0].solver, tol)
    if not found.status.success and second.why_unsupported(problem) is None:
        found = problem.solve(second, tol)
    return found if found.status.success else problem.solve("auto", tol)


def _estimate(problem: ChunkedProblem, done: NearKinks, kept: FewRows, found: Sums) -> Problem | None:
    """Return the problem that the module calls the estimate; None if the sample has no settled rows.

    At the hypothesis of the pass, each block of the estimate has the value and the gradient that it has on
    all rows. A linear function per block makes this so. It is written as a block with the atom m and two
    rows, one with the features x and one with the features 0::

        length (x.w + b - o) + rest b,    length x = slope in w,    length + rest = slope in b

    where o is an offset that corrects the value.
    """
    w, b, sample, J = done.at[:-1], done.at[-1], problem.sample, len(found["values"])
    X, blocks = sample.hypothesis.X, sample.blocks
    near, slopes = done.parted(X, blocks, X @ w + b)
    rows = few_rows(X, blocks, ~near)
    masses, wanted = (rows[1][:, 0] * (rows[1][:, 1] != 0)).sum(axis=1), np.zeros(J)
    missing = np.zeros((J, 1 + len(w)))
    for (j, _, slope), sums in found["settled"].items():
        wanted[j] += sums[0]
        missing[j] += slope * np.append(sums[3:], sums[1])
    if np.any((masses == 0) & (wanted > 0)):
        return None
    rows[1][:, 0] *= (wanted / np.where(masses > 0, masses, 1.0))[:, None]
    missing -= sums_of(rows[0], rows[1][:, 0] * rows[1][:, 1] * slopes[:, ~near])
    lengths = np.linalg.norm(missing[:, :-1], axis=1)
    lengths[lengths == 0] = 1.0
    rest = missing[:, -1] - lengths
    ends = np.vstack([missing[:, :-1] / lengths[:, None], np.zeros(len(w))])
    few = joined([kept, rows, (ends, unweighted(J, J + 1))])
    scores, lines = few[0] @ w + b, list[Block]()
    for j, block in enumerate(on_rows(problem, few).blocks):
        weights, targets, offsets = unweighted(1, len(scores))[0]
        weights[[j - J - 1, -1]], targets[-1] = (lengths[j], abs(rest[j])), np.sign(rest[j]) or 1.0
        excess = block.total(scores) + weights @ (targets * scores) - found["values"][j]
        offsets[j - J - 1] = excess / lengths[j]
        lines.append(Block(Identity(), weights, targets, block.term, block.side, offsets))
    return on_rows(problem, few, tuple(lines))
