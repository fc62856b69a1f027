"""A problem as arrays for the interior-point method: products with X, coordinates, passes over its rows.

`Features` computes X w, X'V' for a few row vectors V, and (X, 1)' diag(D) (X, 1). It uses BLAS for dense X
and compiled loops for sparse X (CSR).

`Arrays` has the passes over the rows of a problem, and its primal value. The symbols are those of
`nerm.solvers.interior_point.passes`. Row i of block j has the target t_ji, the weight B_ji, the offset o_ji
and the dual variable u_ji, and nu_j is the factor of block j. There are J blocks, n rows and K two-sided
neutrality terms. The blocks of a two-sided term belong to its sides C+ and C-; every other block is called
single.

Sums over rows are not divided by n here. So the method minimises n P, where P is the objective, and the
weight of ||w||^2 / 2 is lam = n mu. The dual bound in sum form, n D, is

    n D = - sum_j nu_j sum_i B_ji (phi_j*(u_ji) + o_ji u_ji) - ||X'c||^2 / (2 lam),
    c_i = sum_j nu_j B_ji t_ji u_ji.

If the intercept is free, u must satisfy sum_i c_i = 0. The method approaches this;
`nerm.certify.multipliers` makes the multipliers of its answer feasible. A condensed problem
(`nerm.solvers.interior_point.engine`) keeps only some rows, and u of the others is fixed. Both sums include
the fixed rows, so the bound is one of the whole problem.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any, NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from scipy.linalg import solve_triangular
from scipy.linalg.lapack import dpotrf
from threadpoolctl import ThreadpoolController

from nerm.atoms.functions import STEEPEST
from nerm.model.blocks import Block, pair_numbers
from nerm.model.hypothesis import far_offset
from nerm.solvers.interior_point import passes
from nerm.solvers.interior_point.norms import NormDuals
from nerm.solvers.interior_point.passes import AFFINE, HIGH, KIND, LOW, MOVING, SMOOTH
from nerm.solvers.linalg.compiled import compiled
from nerm.solvers.linalg.systems import pivoted_cholesky
from nerm.typing import Floats, Ints, Matrix


class Data(NamedTuple):
    """The targets t, row weights B and bends of all blocks, each (J, n), and a table of the blocks.

    `nerm.solvers.interior_point.passes` defines the bend. The function `table` explains the columns of the
    table, (J, 6).
    """

    targets: Floats
    weights: Floats
    bends: Floats
    table: Floats


class Duals(NamedTuple):
    """The dual variables u of all rows, and the multipliers p^+ and p^- of their bounds, each (J, n).

    p^+ belongs to the upper bound of u, p^- to the lower one (`nerm.solvers.interior_point.passes`).
    """

    u: Floats
    upper: Floats
    lower: Floats


class Move(NamedTuple):
    """The direction of one step, as four arrays with one entry per block and row, (J, n).

    du is the change of the dual variables u, and kappa its derivative in the margins. over and under belong
    to the multipliers of the bounds of u (`nerm.solvers.interior_point.passes`).
    """

    kappa: Floats
    du: Floats
    over: Floats
    under: Floats


@dataclass
class State:
    """The iterate: hypothesis, scores, and all dual variables.

    Attributes
    ----------
    coef, intercept, scores
        The hypothesis in the coordinates of `choose_coordinates`, and X w + b, (n,).
    nu
        The factors nu_k^+ and nu_k^- of the sides C+ and C- of neutrality term k, (K, 2). Their sum is the
        weight eta_k of the term.
    sigma
        The slacks sigma_k^+- >= 0 in S_k^+- + sigma_k^+- = z_k, (K, 2). S_k^+- are the values of the sides in
        sum form, and z_k stands for their maximum.
    duals
        The dual variables of every row.
    norms
        The dual variables of the norms of w.
    """

    coef: Floats
    intercept: float
    scores: Floats
    nu: Floats
    sigma: Floats
    duals: Duals
    norms: NormDuals


@dataclass
class Linearisation:
    """The Newton system at a state, and the sums over rows of each block.

    The sums are over rows with weights B, margins m and dual variables u; A = high - u and C = u - low are
    the distances of u to its bounds, and p^+ and p^- their multipliers
    (`nerm.solvers.interior_point.passes`).

    Attributes
    ----------
    columns
        (d + 1, 2 + K): the products of (X, 1)' with the row vectors c, h and e_1, ..., e_K of
        `passes.linearise`.
    density
        (n,): the weights of rows in the Gram matrix.
    products
        (J,): sum B (p^+ A + p^- C).
    value
        (J,): sum B (u m - phi*(u) + p^+ A + p^- C), an upper bound on sum B phi(m) by weak duality.
    primal, conjugate
        (J,): sum B phi(m) and sum B phi*(u).
    change
        (J,): the part of the change of `value` along the affine direction that does not depend on the change
        of the scores.
    """

    columns: Floats
    density: Floats
    products: Floats
    value: Floats
    primal: Floats
    conjugate: Floats
    change: Floats


def table(blocks: Sequence[Block]) -> Floats:
    """Return one line of numbers per block for compiled code, (J, 6).

    The columns are: quadratic, low and high of the conjugate; the kind of block (MOVING, AFFINE or SMOOTH);
    its side (0, +1 or -1); and the index of e_k among the row vectors of `passes.linearise` (0 for a single
    block). Single blocks come first.
    """
    lines = list[tuple[float, ...]]()
    for block, pair in zip(blocks, pair_numbers(blocks), strict=True):
        _, quadratic = block.atom.facts.quadratic or (0.0, 0.0)
        low, high = block.atom.facts.slopes
        kind = SMOOTH if block.atom.facts.quadratic is None else AFFINE if low == high else MOVING
        lines.append((quadratic, low, high, kind, block.side, 2 + pair if block.side else 0))
    return np.array(lines, dtype=float).reshape(-1, 6)


class Arrays:
    """Targets, weights and features of all blocks, and the direction of one step.

    Attributes
    ----------
    singles, terms
        The number of single blocks, which come first, and the number K of two-sided terms. Each side of a
        two-sided term has one block or several.
    firsts
        (K,): the number of the first block of each two-sided term.
    mass, total
        (J,): the sum of the weights of all rows, and of the rows that a condensed problem keeps.
    moving
        (J,): `total` of the blocks whose u is a variable of the method (kind MOVING), else 0.
    ends
        (J,): `moving` times the number of finite bounds of u, each of which has a barrier.
    rows
        The numbers of the rows that a condensed problem keeps, in the problem from which it was made.
    fixed_gradient
        (J, d + 1): sum B t u (x, 1) over the rows x whose dual variable u is fixed; t is the target, B the
        weight.
    fixed_conjugate
        (J,): sum B phi*(u) over the rows with fixed u.
    """

    def __init__(self, blocks: Sequence[Block], features: Features) -> None:
        lines = table(blocks)
        self.blocks = tuple(blocks)
        self.kinds, self.low, self.high = lines[:, KIND], lines[:, LOW], lines[:, HIGH]
        self.smooth = [j for j, kind in enumerate(self.kinds) if kind == SMOOTH]
        self.singles = sum(block.side == 0 for block in blocks)
        self._pairs = np.array(pair_numbers(blocks)[self.singles :], dtype=int)
        self._minus = np.array([int(block.side < 0) for block in blocks[self.singles :]], dtype=int)
        self.firsts = self.singles + np.unique(self._pairs, return_index=True)[1]
        self.terms = len(self.firsts)
        weights = np.vstack([block.weights for block in blocks])
        targets = np.vstack([block.targets for block in blocks])
        # With target 0 the margin of a row without weight is constant: it does not limit any step.
        self._linear = np.array([(block.atom.facts.quadratic or (0.0,))[0] for block in blocks])[:, None]
        bends = self._linear + np.vstack([block.offsets for block in blocks])
        self._set_rows(features, Data(np.where(weights == 0, 0.0, targets), weights, bends, lines))
        self.mass = self.total
        self.fixed_gradient = np.zeros((len(blocks), features.shape[1] + 1))
        self.fixed_conjugate = np.zeros(len(blocks))
        self.rows: Ints = np.arange(features.shape[0])
        self._fixed: Floats = np.zeros((len(blocks), 0))
        self._larger: Arrays | None = None

    def _set_rows(self, features: Features, data: Data) -> None:
        """Set everything that depends on the rows that are kept."""
        self.features, self.data = features, data
        self.total = data.weights.sum(axis=1)
        self.moving = (self.kinds == MOVING) * self.total
        self.ends = self.moving * (np.isfinite(self.low).astype(int) + np.isfinite(self.high))
        n = features.shape[0]
        self._vectors, self._density, self._h = np.zeros((2 + self.terms, n)), np.zeros(n), np.zeros((1, n))
        self.move = Move(*np.zeros((4, len(self.blocks), n)))

    def near_kinks(self, scores: Floats, others: Floats, distance: float, most: float) -> Arrays | None:
        """Return the condensed problem, in which the dual variables of rows far from all kinks are fixed.

        `scores` and `others` are the scores of two hypotheses, (n,) each. A row is kept if its score is
        within `distance` of a kink, if a kink lies between its two scores, or if it has weight in a smooth
        block, because such a block has no affine region (`passes.settle` has the exact conditions). Return
        None if more than the share `most` of the rows must be kept.
        """
        shape = self.data.weights.shape
        u, stays, duals = np.zeros(shape), np.zeros(shape[1], dtype=bool), np.zeros(shape)
        given = tuple(self.data), scores, others, distance, u, stays, duals
        sums = self.features.workers.add_up(lambda *part: passes.settle(*given, *part))
        rows = np.flatnonzero(stays)
        if not 0 < len(rows) <= most * self.n_rows:
            return None
        few = copy(self)
        few.rows, few._fixed, few._larger = rows, u, self
        targets, weights, bends = (np.ascontiguousarray(self.data[k][:, rows]) for k in range(3))
        few._set_rows(self.features.some(rows), Data(targets, weights, bends, self.data.table))
        gradient = np.column_stack([self.features.columns(duals).T, duals.sum(axis=1)])
        few.fixed_gradient = self.fixed_gradient + gradient
        few.fixed_conjugate = self.fixed_conjugate + sums
        return few

    def on_all_rows(self, u: Floats) -> Floats:
        """Return the dual variables of all rows, (J, n), given those of the rows that are kept."""
        if self._larger is None:
            return u
        self._fixed[:, self.rows] = u
        return self._larger.on_all_rows(self._fixed)

    @property
    def n_rows(self) -> int:
        """The number of rows, without the rows whose dual variables are fixed."""
        return int(self.features.shape[0])

    def sides(self, values: Floats) -> Floats:
        """Add up the values of the blocks of each side, (K, 2, ...).

        `values`, (J, ...), has one entry per block. Entry [k, 0] of the result is the sum over the blocks of
        side C+ of two-sided term k, entry [k, 1] that of side C-.
        """
        if len(self._pairs) == 2 * self.terms:  # one block per side
            return values[self.singles :].reshape(self.terms, 2, *values.shape[1:])
        sums = np.zeros((self.terms, 2, *values.shape[1:]))
        np.add.at(sums, (self._pairs, self._minus), values[self.singles :])
        return sums

    def by_block(self, singles: Floats, sides: Floats) -> Floats:
        """Return one entry per block, (J,), from the entries of the single blocks and of the sides.

        `singles` has one entry per single block. `sides`, (K, 2), has one entry per side of a two-sided term;
        all blocks of a side get this entry.
        """
        return np.concatenate([singles, sides[self._pairs, self._minus]])

    def _given(self, state: State) -> tuple[tuple[Floats, ...], ...]:
        """Return data, dual variables and direction as plain tuples, for the compiled passes."""
        return tuple(self.data), tuple(state.duals), tuple(self.move)

    def centre(self, scores: Floats, barrier: float) -> Duals:
        """Return the dual variables of all rows on the central path at their scores (`passes.centre`)."""
        duals = Duals(*np.zeros((3, len(self.blocks), self.n_rows)))
        duals.u[self.kinds == AFFINE] = self.low[self.kinds == AFFINE, None]
        given = tuple(self.data), tuple(duals), scores, barrier
        self.features.workers.run(lambda *part: passes.centre(*given, *part))
        return duals

    def values(self, scores: Floats, coef: Floats, intercept: float) -> Floats:
        """Return sum_i B_ji phi_j(m_ji) of each block j, (J,).

        For rows with a fixed dual variable u, the linear lower bound u m - phi*(u) at the margin m replaces
        phi(m).
        """

        def work(start: int, stop: int) -> Floats:
            part = slice(start, stop)
            found = (block.atom.value(self._margins(j, scores, part)) for j, block in enumerate(self.blocks))
            return np.array([w[part] @ value for w, value in zip(self.data.weights, found, strict=True)])

        return self.features.workers.add_up(work) + self._beyond(coef, intercept)

    def _margins(self, j: int, scores: Floats, part: slice) -> Floats:
        """Return the margins of some rows of block j."""
        targets, _, bends, _ = self.data
        return targets[j, part] * scores[part] - (bends[j, part] - self._linear[j])

    def _beyond(self, coef: Floats, intercept: float) -> Floats:
        """Return the linear lower bounds sum B (u m - phi*(u)) of the rows with fixed u, (J,)."""
        return (
            self.fixed_gradient[:, :-1] @ coef + self.fixed_gradient[:, -1] * intercept - self.fixed_conjugate
        )

    def linearise(self, state: State, nu: Floats) -> Linearisation:
        """Return the Newton system at a state for the block factors `nu`, (J,).

        The dual variables u and kappa of smooth blocks are set first.
        """
        vectors, given = self._vectors, self._given(state)

        def work(start: int, stop: int) -> Floats:
            values = [self._smooth(j, state, slice(start, stop)) for j in self.smooth]
            sums: Floats = passes.linearise(*given, nu, state.scores, vectors, self._density, start, stop)
            sums[self.smooth, 2] = values
            return sums

        products, power, primal, conjugate, curve = self.features.workers.add_up(work).T
        conjugate[self.smooth] = (power - primal)[self.smooth]  # there phi(m) + phi*(u) = u t f
        columns = np.vstack([self.features.columns(vectors), vectors.sum(axis=1)])
        columns[:, 0] += nu @ self.fixed_gradient
        sides = self.sides(self.fixed_gradient)
        columns[:, 2:] += (sides[:, 0] - sides[:, 1]).T
        beyond = self._beyond(state.coef, state.intercept)
        value = power - conjugate + products + beyond  # from t f = bend + quadratic u + p^+ - p^-
        conjugate += self.fixed_conjugate
        return Linearisation(
            columns, self._density, products, value, primal + beyond, conjugate, curve - products
        )

    def _smooth(self, j: int, state: State, part: slice) -> float:
        """Set u = phi'(m) and kappa = phi''(m) of smooth block j, at the margins m of some rows.

        u are the dual variables; kappa is at most STEEPEST. Return sum B phi(m) over these rows, whose
        weights are B.
        """
        atom, m = self.blocks[j].atom, self._margins(j, state.scores, part)
        jet = atom.derived.jet(m)
        state.duals.u[j, part] = jet.slope
        self.move.kappa[j, part] = np.minimum(jet.curvature, STEEPEST)
        return float(self.data.weights[j, part] @ jet.value)

    def direct(self, state: State, nu: Floats, df: Floats, *, corrected: bool) -> Floats:
        """Compute the change du of the dual variables for the change `df` of the scores, (n,).

        Return a histogram: the weight of the rows by the longest step that they allow (`passes.direct`).
        """
        given = self._given(state)
        return self.features.workers.add_up(lambda *part: passes.direct(*given, nu, df, corrected, *part))

    def correct(
        self, state: State, nu: Floats, dnu: Floats, target: float, limit: float
    ) -> tuple[Floats, Floats]:
        """Compute the right-hand side of the corrected step (`passes.correct`).

        Return (X, 1)'h, (d + 1,), for the row vector h of `passes.correct`, and the changes of the blocks'
        values, (J,).
        """
        given = *self._given(state), nu, dnu, target, limit, self._h[0]
        changes = self.features.workers.add_up(lambda *part: passes.correct(*given, *part))
        return np.append(self.features.columns(self._h)[:, 0], self._h.sum()), changes

    def longest_step(self, state: State, nu: Floats) -> float:
        """Return the longest step that keeps the dual variables u, p^+ and p^- of all rows in bounds.

        Rows of weight 0 do not count. Few runs need this pass, so it is not compiled.
        """
        step = np.inf
        for j, line in enumerate(self.data.table):
            rows = np.flatnonzero(nu[j] * self.data.weights[j])
            u, upper, lower, _, du, over, under = (part[j, rows] for part in (*state.duals, *self.move))
            for sign, end, p, aim in ((1.0, line[HIGH], upper, over), (-1.0, line[LOW], lower, under)):
                if line[KIND] != MOVING or not np.isfinite(end):
                    continue
                distance = np.maximum(sign * (end - u), passes.TINY)
                for at, change in ((distance, -sign * du), (p, aim - p + p * sign * du / distance)):
                    falls = change < 0
                    step = min(step, np.min(-at[falls] / change[falls], initial=np.inf))
        return step

    def advance(self, state: State, step: float, keep: float, curved_keep: float) -> None:
        """Move the dual variables of every row along the direction (`passes.advance`).

        The scores of `state` must already be those after the step. A distance to a bound shrinks at most to
        the share `keep` of it, or to the share `curved_keep` in blocks with quadratic > 0.
        """
        keeps = np.where(self.data.table[:, passes.QUADRATIC] > 0, curved_keep, keep)
        given = *self._given(state), state.scores, step, keeps
        self.features.workers.run(lambda *part: passes.advance(*given, *part))


BLOCK_ROWS = 2048  # rows scaled at a time, so that the scaled copy of a dense matrix stays in cache
ROWS_PER_THREAD = 3000  # a thread with fewer costs more than it gains
BLAS_COLUMNS = 500  # columns from which on threads of BLAS pay in the Newton system
WIDE = 200  # columns from which on coordinates in the row space pay
ROW_SPACE = 1e-13  # relative residual at which pivoted Cholesky has found the whole row space


T = TypeVar("T")


class RowThreads:
    """Contiguous ranges of rows, one per thread; a context manager that owns the threads.

    If there are several ranges or few columns, BLAS is limited to one thread: on small products the threads
    of BLAS mostly wait for each other.

    Parameters
    ----------
    n, columns
        The shape of the matrix whose rows are divided among the threads.
    count
        The largest number of threads; by default one per core.
    """

    def __init__(self, n: int, columns: int, count: int | None = None) -> None:
        self.count = cores() if count is None else count
        self.ranges = self._ranges(n)
        self._one_thread = len(self.ranges) > 1 or columns < BLAS_COLUMNS or count == 1
        self._pool: ThreadPoolExecutor | None = None

    def for_rows(self, n: int) -> RowThreads:
        """Return ranges of `n` rows, fewer than here, on the same threads.

        The result can be used only while these threads are open.
        """
        few = copy(self)
        few.ranges = self._ranges(n)
        return few

    def _ranges(self, n: int) -> list[tuple[int, int]]:
        count = max(1, min(self.count, n // (ROWS_PER_THREAD)))
        return list(pairwise(n * i // count for i in range(count + 1)))

    def __enter__(self) -> RowThreads:
        self._held = ExitStack()
        if self._one_thread:
            self._held.enter_context(blas.held())
        if len(self.ranges) > 1:
            self._pool = self._held.enter_context(
                ThreadPoolExecutor(len(self.ranges) - 1, initializer=blas.limit)
            )
        return self

    def __exit__(self, *exc: object) -> None:
        self._pool = None
        self._held.close()

    def run(self, work: Callable[[int, int], T]) -> list[T]:
        """Return the list of work(start, stop) over all ranges.

        The first range is computed on the calling thread.
        """
        if self._pool is None or len(self.ranges) == 1:
            return [work(*part) for part in self.ranges]
        others = [self._pool.submit(work, *part) for part in self.ranges[1:]]
        return [work(*self.ranges[0]), *(other.result() for other in others)]

    def add_up(self, work: Callable[[int, int], Floats]) -> Floats:
        """Return the sum of work(start, stop) over the ranges."""
        parts = self.run(work)
        return parts[0] if len(parts) == 1 else np.asarray(np.sum(parts, axis=0))


def cores() -> int:
    """Return the number of cores that this process may use, at most 8."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)


class _Blas:
    """A switch that limits the BLAS libraries to one thread.

    Some builds of BLAS store the number of threads per calling thread, others per process. So every caller
    sets it to 1 and restores it. If several callers overlap, the last one restores the number that the first
    one found.
    """

    def __init__(self) -> None:
        self._lock, self._holders = Lock(), 0
        self._first: Any = None

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        return ThreadpoolController()  # to find them takes longer than a small problem

    def limit(self) -> Any:
        """Limit BLAS to one thread.

        Call restore_original_limits() on the returned object to restore the earlier number of threads.
        """
        return self._libraries.limit(limits=1, user_api="blas")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Limit BLAS to one thread inside a `with` statement."""
        with self._lock:
            found = self.limit()
            self._first = found if self._holders == 0 else self._first
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                found.restore_original_limits()
                self._holders -= 1
                if self._holders == 0:
                    self._first.restore_original_limits()


blas = _Blas()


class Features:
    """The rows X, (n, d): a dense array, or a CSR matrix that is never made dense.

    The column indices of a CSR matrix must be sorted.

    Attributes
    ----------
    shape
        (n, d).
    workers
        The threads that share the rows.
    passes
        The number of products X w so far.
    """

    def __init__(self, X: Matrix, workers: RowThreads) -> None:
        self.sparse, self.shape, self.workers, self.passes = sp.issparse(X), X.shape, workers, 0
        self.X = X if self.sparse else np.ascontiguousarray(X, dtype=float)
        self._arrays = (X.indptr, X.indices, X.data) if self.sparse else (self.X,)
        self._gram: Any = _gram if self.sparse else _dense_gram
        parts = {part: _slice(self.X, *part) for part in workers.ranges}
        self._parts = {part: (X, X.T) for part, X in parts.items()}  # scipy is slow to transpose

    def times(self, w: Floats) -> Floats:
        """Return X w, (n,)."""
        self.passes += 1
        found = self.workers.run(lambda *part: self._parts[part][0] @ w)
        return found[0] if len(found) == 1 else np.concatenate(found)

    def columns(self, V: Floats) -> Floats:
        """Return X'V', (d, k), for a few row vectors V, (k, n)."""
        return self.workers.add_up(lambda *part: self._parts[part][1] @ V[:, slice(*part)].T)

    def gram(self, density: Floats) -> Floats:
        """Return (X, 1)' diag(density) (X, 1), (d + 1, d + 1), for density (n,).

        Only the upper triangle is valid.
        """
        if self.sparse and self.shape[1] > BLAS_COLUMNS:
            return self._gram_by_columns(density)
        return self.workers.add_up(lambda *part: self._gram(*self._arrays, density, self.shape[1], *part))

    def _gram_by_columns(self, density: Floats) -> Floats:
        """Return `gram` of a sparse X with many columns, line by line.

        The whole matrix does not fit into the processor's cache, but one of its lines does. The threads share
        one matrix: each takes every `count`-th line.
        """
        out, workers = np.zeros((self.shape[1] + 1,) * 2), self.workers
        given = *self._arrays, *self._by_column, density, out, len(workers.ranges)
        workers.run(lambda *part: _gram_lines(*given, workers.ranges.index(part)))
        out[-1, -1] = density.sum()
        return out

    @cached_property
    def _by_column(self) -> tuple[Ints, Ints, Ints]:
        """The entries of a sparse X, sorted by column.

        These are the place where each column starts, and for each entry its row and its place in the CSR
        data.
        """
        X: Any = self.X
        numbers = np.arange(X.nnz, dtype=X.indptr.dtype)
        places = sp.csr_array((numbers, X.indices, X.indptr), shape=self.shape).tocsc()
        return places.indptr, places.indices, places.data

    def squares(self) -> Floats:
        """Return the sum of squares of each column, (d,)."""
        X: Any = self.X
        return np.asarray(X.power(2).sum(axis=0)).ravel() if self.sparse else np.einsum("ij,ij->j", X, X)

    def some(self, rows: Ints) -> Features:
        """Return the features of the given rows."""
        return Features(self.X[rows], self.workers.for_rows(len(rows)))


def _slice(X: Any, start: int, stop: int) -> Any:
    """Return some rows of X without a copy."""
    if not sp.issparse(X):
        return X[start:stop]
    ends = X.indptr[start : stop + 1]
    part = slice(ends[0], ends[-1])
    return sp.csr_array((X.data[part], X.indices[part], ends - ends[0]), shape=(stop - start, X.shape[1]))


@compiled()
def _gram(indptr, indices, data, density, d, start, stop):  # type: ignore[no-untyped-def]
    """Return the upper triangle of (X, 1)' diag(density) (X, 1) of a CSR matrix.

    The sum is over the rows start to stop. A row of k nonzeros, whose indices are sorted, adds k^2 / 2
    products.
    """
    out = np.zeros((d + 1, d + 1))
    for i in range(start, stop):
        weight = density[i]
        out[d, d] += weight
        end = indptr[i + 1]
        for p in range(indptr[i], end):
            x = weight * data[p]
            line = out[indices[p]]
            line[d] += x
            for q in range(p, end):
                line[indices[q]] += x * data[q]
    return out


@compiled()
def _gram_lines(indptr, indices, data, starts, rows, places, density, out, count, number):  # type: ignore[no-untyped-def]
    """Write every `count`-th line of the upper triangle of (X, 1)' diag(density) (X, 1), from `number` on."""
    d = out.shape[0] - 1
    for j in range(number, d, count):
        line = out[j]
        for k in range(starts[j], starts[j + 1]):
            p = places[k]
            x = density[rows[k]] * data[p]
            line[d] += x
            for q in range(p, indptr[rows[k] + 1]):
                line[indices[q]] += x * data[q]


def _dense_gram(X: Floats, density: Floats, d: int, start: int, stop: int) -> Floats:
    """Return (X, 1)' diag(density) (X, 1) of a dense X; see `Features.gram`.

    The sum is over the rows start to stop. BLAS multiplies chunks of rows that are scaled by sqrt(density).
    """
    out = np.zeros((d + 1, d + 1))
    for i in range(start, stop, BLOCK_ROWS):
        part = slice(i, min(i + BLOCK_ROWS, stop))
        scaled = np.sqrt(density[part])[:, None] * X[part]
        out[:d, :d] += scaled.T @ scaled
        out[:d, d] += density[part] @ X[part]
        out[d, d] += density[part].sum()
    return out


Outside = Callable[[Floats, float], tuple[Floats, float]]  # from the unknowns of the method to (w, b)


def choose_coordinates(X: Any, *, intercept: bool, axes: bool = False) -> tuple[Outside, Any]:
    """Choose coordinates for (w, b) with a small Newton system.

    They keep scores and norm. Wide data (d > n) have coordinates in the row space: a pivoted Cholesky
    factorization X X' = Z Z' of rank r chooses r rows of X, the pivots, that span the row space. The optimal
    w is a combination X[pivots]'c of these rows. The unknown is v = Z[pivots]'c, which has r <= n entries,
    with X w = Z v and ||w|| = ||v||. Other data keep w. If the columns of X are far from 0, an offset is
    subtracted (`nerm.model.hypothesis.far_offset`), and the unknown intercept is b + offset.w. If `axes`, the
    unknowns stay the coefficients, because the problem has norms of coefficients or of groups.

    Returns
    -------
    outside, features
        A function that returns (w, b) for the unknowns, and the features in these coordinates.
    """
    n, d = X.shape
    if d > n and d >= WIDE and not axes:
        K = X @ X.T
        Z, pivots = pivoted_cholesky(K.toarray() if sp.issparse(K) else K, ROW_SPACE)

        def outside(v: Floats, b: float) -> tuple[Floats, float]:
            # without pivots, if X is 0, scipy before 1.14 solves no empty system
            return X[pivots].T @ (solve_triangular(Z[pivots].T, v) if len(v) else v), b

        return outside, Z
    offset = far_offset(X) if intercept else np.zeros(d)
    return lambda w, b: (w, float(b - offset @ w)), X - offset if offset.any() else X


def cholesky(matrix: Floats) -> Floats:
    """Return the upper Cholesky factor of a positive semidefinite matrix, changed in place.

    Before each factorization a multiple of the mean diagonal entry is added to the diagonal: at first 4e-16
    times this entry, then 100 times more after each failure. LAPACK is called directly, since on small
    systems the checks of scipy cost as much as the factorization.
    """
    diagonal = np.arange(len(matrix))
    mean = float(matrix.diagonal().mean())
    jitter = 4e-16 * len(matrix)
    while jitter <= 1:
        matrix[diagonal, diagonal] += jitter * mean
        factor, failed = dpotrf(matrix)
        if not failed:
            return np.asarray(factor)
        jitter *= 100
    raise np.linalg.LinAlgError("the system is not positive definite")
