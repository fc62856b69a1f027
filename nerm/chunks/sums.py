"""One pass over all rows at a hypothesis: a map over chunks whose results add up.

Both kinds of passes return the value of every block, sum_i B_i phi(t_i f_i), and how many rows of each kind
get yes. Beside these, where all functions are straight lines between kinks (`NearKinks`), the rows near a
kink, and all others as mean rows: on a straight piece phi(mean) = mean of phi, and anywhere else, by Jensen's
inequality, it is less. So the problem on few rows equals the whole one as long as no mean row's members cross
a kink, and its optimum bounds that of all rows from below in any case. Where functions are smooth (`Curved`),
gradient and Hessian of every block.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numba
import numpy as np
import scipy.sparse as sp

from nerm.chunks.census import ChunkRows, stacked
from nerm.chunks.coding import Terms
from nerm.chunks.pieces import Raw
from nerm.model.blocks import Block
from nerm.model.hypothesis import sorted_csr
from nerm.signs import sign
from nerm.solvers.interior_point.matrices import Features, RowThreads
from nerm.typing import Bools, Floats, Ints, Matrix

Hypothesis = tuple[Floats, float]
MeanKey = tuple[int, int, float, int]


@dataclass(frozen=True, eq=False)
class Sums:
    """Sums of a pass: values of the blocks, (J,), and rows by viewpoint, kind, decision, (1 + K, 4, 2)."""

    values: Floats
    decisions: Floats
    rows: int

    def __add__(self, other: Any) -> Any:
        names = ("values", "decisions", "rows")
        added = {name: getattr(self, name) + getattr(other, name) for name in names}
        return replace(self, **added, **self._more(other))

    def _more(self, other: Any) -> dict[str, Any]:
        return {}


def _decisions(terms: Terms, rows: ChunkRows, scores: Floats) -> Floats:
    """Return the weight of rows by viewpoint (first without any), kind (label, viewpoint) and decision."""
    weight = rows.sample_weight if terms.weighted else np.ones(len(rows.y))
    without = -np.ones(len(rows.y))
    found = np.zeros((1 + len(rows.viewpoints), 4, 2))
    for k, v in enumerate([without, *rows.viewpoints.values()]):
        cell = (4 * (rows.y > 0) + 2 * (sign(v) > 0) + (scores > 0)).astype(int)
        found[k] = np.bincount(cell, weight, minlength=8).reshape(4, 2)
    return found


# --- straight pieces -------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class KeptRows:
    """Rows with the weights and targets of all blocks, (J, m)."""

    X: Any
    weights: Floats
    targets: Floats


@dataclass(frozen=True, eq=False)
class FewRows(Sums):
    """Rows near a kink, and sums of B, B t, B t x of the others by (block, target sign, slope, group)."""

    kept: list[KeptRows]
    means: dict[MeanKey, Floats]
    columns: int
    work: Any = None

    def _more(self, other: Any) -> dict[str, Any]:
        means = dict(self.means)
        for key, value in other.means.items():
            means[key] = means[key] + value if key in means else value
        return {"kept": self.kept + other.kept, "means": means}

    @property
    def near(self) -> int:
        """How many rows were kept."""
        return sum(part.weights.shape[1] for part in self.kept)

    def mean_rows(self) -> KeptRows:
        """Return the mean rows, each in its block alone."""
        count = len(self.values)
        weights, targets = np.zeros((count, len(self.means))), np.ones((count, len(self.means)))
        X = np.zeros((len(self.means), self.columns))
        for i, ((j, *_), total) in enumerate(self.means.items()):
            weights[j, i], targets[j, i] = total[0], total[1] / total[0]
            X[i] = total[2:] / total[1]
        return KeptRows(X, weights, targets)

    def slopes(self) -> tuple[Floats, Floats]:
        """Return per block the weight of all settled rows, (J,), and their slope in (w, b), (J, d + 1)."""
        weights, slopes = np.zeros(len(self.values)), np.zeros((len(self.values), self.columns + 1))
        for (j, _, slope, _), total in self.means.items():
            weights[j] += total[0]
            slopes[j] += slope * np.append(total[2:], total[1])
        return weights, slopes


def kept_rows(X: Matrix, blocks: tuple[Block, ...], places: Ints) -> KeptRows:
    """Return rows at these places with their weights and targets in all blocks."""
    weights, targets = ([getattr(b, name)[places] for b in blocks] for name in ("weights", "targets"))
    return KeptRows(X[places], np.stack(weights), np.stack(targets))


def joined(parts: list[KeptRows]) -> KeptRows:
    """Return rows one under the other, sparse where some are."""
    parts = [part for part in parts if part.weights.shape[1]]
    sparse = any(sp.issparse(part.X) for part in parts)
    matrices = [sp.csr_matrix(part.X) if sparse and not sp.issparse(part.X) else part.X for part in parts]
    weights, targets = (np.hstack([getattr(p, name) for p in parts]) for name in ("weights", "targets"))
    return KeptRows(stacked(matrices), weights, targets)


@dataclass(frozen=True, eq=False)
class NearKinks:
    """The work of a pass where all functions have straight pieces.

    A row is kept if, in some block, phi is not straight between its margins at both hypotheses, `distance`
    beyond them.

    Attributes
    ----------
    terms : Terms
    at, other : (coef, intercept)
        Where values are taken, and another hypothesis at which the small problem is to be exact.
    distance : float
        Of scores.
    thin : float
        The share of the rows near a kink that is kept, where there are too many; the others count as settled.
    edges, scale : arrays
        What groups the mean rows: cuts of the scores, and the size of each feature.

    """

    terms: Terms
    at: Hypothesis
    other: Hypothesis
    distance: float
    thin: float
    edges: Floats
    scale: Floats

    def groups(self, X: Matrix, scores: Floats) -> Ints:
        """Return the group of each row: by its score, and by the feature in which it stands out most."""
        return np.searchsorted(self.edges, scores) * len(self.scale) + standing_out(X, self.scale)

    def __call__(self, raw: Raw) -> FewRows:
        """Return the sums of one chunk."""
        return self.of(self.terms.coding.read(raw))

    def near(self, rows: ChunkRows) -> Bools:
        """Return which rows are near a kink."""
        return self._settled(rows, self.terms.blocks(rows), rows.X @ self.at[0] + self.at[1])[0]

    def _settled(
        self, rows: ChunkRows, blocks: tuple[Block, ...], scores: Floats
    ) -> tuple[Bools, list[Floats]]:
        """Return which rows are near a kink, and of every block the slopes of the others."""
        if np.isinf(self.distance):
            return np.ones(len(rows.y), dtype=bool), [np.zeros(len(rows.y))] * len(blocks)
        before = scores if self.other is self.at else rows.X @ self.other[0] + self.other[1]
        low, high = np.minimum(scores, before) - self.distance, np.maximum(scores, before) + self.distance
        near, slopes = np.zeros(len(rows.y), dtype=bool), []
        for block in blocks:
            settled, slope = straight(block, low, high)
            near |= ~settled
            slopes.append(slope)
        return near, slopes

    def parted(
        self, rows: ChunkRows, blocks: tuple[Block, ...], scores: Floats
    ) -> tuple[Ints, Bools, list[Floats]]:
        """Return which rows are kept, which are settled, and of every block the slopes of these."""
        near, slopes = self._settled(rows, blocks, scores)
        places = thinned(np.flatnonzero(near), self.thin)
        settled = np.ones(len(rows.y), dtype=bool)
        settled[places] = False
        return places, settled, slopes

    def of(self, rows: ChunkRows) -> FewRows:
        """Return the sums of rows."""
        blocks, scores = self.terms.blocks(rows), rows.X @ self.at[0] + self.at[1]
        places, settled, slopes = self.parted(rows, blocks, scores)
        kept = kept_rows(rows.X, blocks, places)
        values = np.array([block.total(scores) for block in blocks])
        means = mean_rows(rows.X, blocks, slopes, settled, self.groups(rows.X, scores))
        decisions = _decisions(self.terms, rows, scores)
        return FewRows(values, decisions, len(rows.y), [kept], means, rows.X.shape[1])


def thinned(places: Ints, share: float) -> Ints:
    """Return about this share of the places, evenly, and the same ones every time."""
    return places if share >= 1 else places[np.diff(np.floor(share * np.arange(len(places) + 1))) > 0]


def standing_out(X: Matrix, scale: Floats) -> Ints:
    """Return for each row the feature that is largest in units of `scale`; the first for a row of zeros."""
    if not sp.issparse(X):
        return np.asarray(np.abs(X / scale).argmax(axis=1))
    return np.asarray(_largest(X.indptr, X.indices, X.data, scale))


def straight(block: Block, low: Floats, high: Floats) -> tuple[Bools, Floats]:
    """Return where phi(t f) is a straight line for f between `low` and `high`, and its slope there.

    The subgradients at both ends of an interval are equal just where a convex function is straight on it.
    """
    ends = np.sort(np.stack([block.targets * low, block.targets * high]), axis=0)
    left, right = block.atom.subgradient(ends[0])[0], block.atom.subgradient(ends[1])[1]
    return (left == right) | (block.weights == 0) | (block.targets == 0), left


def mean_rows(
    X: Matrix, blocks: tuple[Block, ...], slopes: list[Floats], settled: Bools, groups: Ints
) -> dict[MeanKey, Floats]:
    """Return (sum B, sum B t, sum B t x) of settled rows by block, sign of the target, slope and group."""
    found: dict[MeanKey, Floats] = {}
    for j, block in enumerate(blocks):
        for side in (-1, 1):
            among = settled & (side * block.targets > 0) & (block.weights > 0)
            for slope in np.unique(slopes[j][among]):
                rows = np.flatnonzero(among & (slopes[j] == slope))
                counts = np.bincount(groups[rows])
                present = np.flatnonzero(counts)
                which = (np.cumsum(counts > 0) - 1)[groups[rows]]
                B, pull = block.weights[rows], block.weights[rows] * block.targets[rows]
                sums = _grouped(X, rows, which, pull, len(present))
                totals = np.bincount(which, B), np.bincount(which, pull)
                for i, group in enumerate(present.tolist()):
                    total = np.concatenate([[totals[0][i], totals[1][i]], sums[i]])
                    found[j, side, float(slope), group] = total
    return found


def _grouped(X: Matrix, rows: Ints, groups: Ints, factors: Floats, count: int) -> Floats:
    """Return the sums of factors_i x_i over some rows, by group: (count, d)."""
    if not sp.issparse(X):
        members = sp.csr_matrix((factors, (groups, rows)), shape=(count, X.shape[0]))
        return np.asarray(members @ X)
    found = np.zeros((count, X.shape[1]))
    _add_rows(X.indptr, X.indices, X.data, rows, groups, factors, found)
    return found


@numba.njit(cache=True, nogil=True)
def _add_rows(indptr, indices, data, rows, groups, factors, out):  # type: ignore[no-untyped-def]
    """Add factors_k x_i of row i = rows_k to out[groups_k]."""
    for k in range(rows.shape[0]):
        factor, line = factors[k], out[groups[k]]
        for p in range(indptr[rows[k]], indptr[rows[k] + 1]):
            line[indices[p]] += factor * data[p]


@numba.njit(cache=True, nogil=True)
def _largest(indptr, indices, data, scale):  # type: ignore[no-untyped-def]
    """Return for each row the first column where |x| / scale is largest; 0 for a row of zeros."""
    out = np.zeros(indptr.shape[0] - 1, np.int64)
    for i in range(out.shape[0]):
        most = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            size = abs(data[p]) / scale[indices[p]]
            if size > most or (size == most and size > 0.0 and indices[p] < out[i]):
                most, out[i] = size, indices[p]
    return out


# --- smooth functions ------------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Derivatives(Sums):
    """Of every block: gradient (J, d + 1) and Hessian (J, d + 1, d + 1) of sum B phi(t f) in (w, b).

    `stars` and `pulls` are those of the multipliers u = -phi'(t f), by sign of the target: sum B phi*(-u),
    (J, 2), and sum B t u (x, 1), (J, 2, d + 1); `masses` is sum B.
    """

    hessians: Floats
    stars: Floats
    pulls: Floats
    masses: Floats

    def _more(self, other: Any) -> dict[str, Any]:
        names = ("hessians", "stars", "pulls", "masses")
        return {name: getattr(self, name) + getattr(other, name) for name in names}

    @property
    def gradients(self) -> Floats:
        """Minus the pulls of both signs."""
        return -np.asarray(self.pulls.sum(axis=1))


@dataclass(frozen=True, eq=False)
class Curved:
    """The work of a pass where all functions are smooth."""

    terms: Terms
    at: Hypothesis

    def __call__(self, raw: Raw) -> Derivatives:
        """Return the sums of one chunk."""
        return self.of(self.terms.coding.read(raw))

    def of(self, rows: ChunkRows) -> Derivatives:
        """Return the sums of rows."""
        blocks, scores = self.terms.blocks(rows), rows.X @ self.at[0] + self.at[1]
        count, d = len(blocks), rows.X.shape[1] + 1
        hessians, forces = np.zeros((count, d, d)), np.zeros((len(rows.y), 2 * count))
        stars, masses = np.zeros((count, 2)), np.zeros((count, 2))
        for j, block in enumerate(blocks):
            B, t = block.weights, block.targets
            margins = t * scores
            slope = np.mean(block.atom.subgradient(margins), axis=0)
            star = B * block.atom.conjugate(slope)
            hessians[j] = weighted_square(rows.X, B * t * t * curvature(block, margins))
            for s, mine in enumerate((t <= 0, t > 0)):
                forces[:, 2 * j + s] = np.where(mine, -B * t * slope, 0.0)
                stars[j, s], masses[j, s] = star[mine].sum(), B[mine].sum()
        pulls = np.vstack([np.asarray(rows.X.T @ forces), forces.sum(axis=0)]).T.reshape(count, 2, d)
        values = np.array([block.total(scores) for block in blocks])
        decisions = _decisions(self.terms, rows, scores)
        return Derivatives(values, decisions, len(rows.y), hessians, stars, pulls, masses)


def curvature(block: Block, margins: Floats) -> Floats:
    """Return phi''(m), by the atom's word or by differences of its slopes."""
    stated = block.atom.curvature(margins)
    if stated is not None:
        return np.asarray(stated)
    step = 1e-5 * np.maximum(1.0, np.abs(margins))
    above, below = (np.mean(block.atom.subgradient(margins + way * step), axis=0) for way in (1.0, -1.0))
    return np.asarray(np.maximum(above - below, 0.0) / (2 * step))


def weighted_square(X: Matrix, weights: Floats) -> Floats:
    """Return sum_i weights_i (x_i, 1)(x_i, 1)', (d + 1, d + 1)."""
    upper = np.triu(Features(sorted_csr(X), RowThreads(X.shape[0], X.shape[1], 1)).gram(weights))
    return np.asarray(upper + np.triu(upper, 1).T)
