"""Merge equal rows for a solver, and map its answer back to all rows.

Rows that agree in x and in the targets and offsets of all blocks differ by their weights only. A sum over all
rows is a sum over the distinct rows with added weights, so a solver can work on the smaller problem. The
certificate does not depend on this module: it is computed on the given rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nerm.certify.solution import Answer
from nerm.model.blocks import Block
from nerm.model.hypothesis import Hypothesis, KernelHypothesis, LinearHypothesis
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.base import Session, Solver, limit
from nerm.solvers.limited import LimitedSession
from nerm.typing import Floats, Ints, Matrix

Words = NDArray[np.uint64]
CACHED = 50_000  # numbers that fit into a processor's cache
FEWER = 0.9  # share of distinct rows above which merging does not pay


@dataclass(frozen=True, eq=False)
class DistinctRows:
    """The distinct rows of a problem, ordered by their content.

    Attributes
    ----------
    first : (m,) array
        For each distinct row, the index of the first given row equal to it.
    index : (n,) array
        For each given row, the index of the distinct row equal to it.
    hypothesis : LinearHypothesis or KernelHypothesis
        The hypothesis on the distinct rows.
    """

    first: Ints
    index: Ints
    hypothesis: Hypothesis

    def add_up(self, weights: Floats) -> Floats:
        """Return the total weight of each distinct row, (m,), for weights of the given rows."""
        return np.asarray(np.bincount(self.index, weights, len(self.first)), dtype=float)

    def fits(self, blocks: Sequence[Block]) -> bool:
        """Return whether equal rows have equal targets and offsets in all blocks."""
        given = (part for b in blocks for part in _of_rows(b))
        return all(np.array_equal(part[self.first][self.index], part) for part in given)

    def block(self, block: Block) -> Block:
        """Return a block of the given rows as a block of the distinct rows."""
        return replace(block.at(self.first), weights=self.add_up(block.weights))

    def coef(self, coef: Floats) -> Floats:
        """Return the coefficients on the given rows from those on the distinct rows.

        For a kernel, the first of several equal rows gets the coefficient; the others get 0.
        """
        if isinstance(self.hypothesis, LinearHypothesis):
            return coef
        placed = np.zeros(len(self.index))
        placed[self.first] = coef
        return placed

    def answer(self, answer: Answer) -> Answer:
        """Return a solver's answer mapped back to the given rows."""
        coef = None if answer.coef is None else self.coef(answer.coef)
        inside = None if answer.inside is None else (self.coef(answer.inside[0]), answer.inside[1])
        m = answer.multipliers
        m = None if m is None else replace(m, rows=m.rows.take(self.index, axis=1))
        return replace(answer, coef=coef, inside=inside, multipliers=m)


class MergedSession(Session):
    """A session of a solver that is given the distinct rows only.

    >>> import nerm
    >>> solver = nerm.solvers.known()["interior-point"]
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()
    >>> problem = objective.on([[0.0], [1.0], [1.0]], [-1, 1, 1])
    >>> session = MergedSession(solver.open, problem)
    >>> session.answer(problem, 1e-8, {}).multipliers.rows.shape
    (1, 3)
    """

    def __init__(self, open_session: Any, problem: Problem) -> None:
        self._rows = distinct_rows(problem)
        self._blocks: tuple[tuple[Block, ...], tuple[Block, ...]] = ((), ())
        self._session: Session = open_session(self._merged(problem))

    def renewed(self, problem: Problem) -> bool:
        """Prepare for a problem with other terms on the same rows.

        Return False if it needs a new session.
        """
        return distinct_rows(problem) is self._rows and self._session.renewed(self._merged(problem))

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Solve on the distinct rows."""
        found = self._session.answer(self._merged(problem), accuracy, options, **limit(deadline))
        return self._rows.answer(found)

    def answers(
        self,
        problems: Sequence[Problem],
        accuracy: float,
        options: dict[str, Any],
        deadline: float = clock.NEVER,
    ) -> Iterator[Answer]:
        """Solve problems along a path on the distinct rows."""
        merged = [self._merged(problem) for problem in problems]
        return map(self._rows.answer, self._session.answers(merged, accuracy, options, **limit(deadline)))

    def _merged(self, problem: Problem) -> Problem:
        """Return the problem on the distinct rows; problems along a path share their blocks."""
        rows = self._rows
        if self._blocks[0] is not problem.blocks:
            self._blocks = problem.blocks, tuple(map(rows.block, problem.blocks))
        return replace(
            problem,
            hypothesis=rows.hypothesis,
            y=problem.y[rows.first],
            viewpoints={name: v[rows.first] for name, v in problem.viewpoints.items()},
            sample_weight=rows.add_up(problem.sample_weight),
            blocks=self._blocks[1],
        )


_KNOWN: WeakKeyDictionary[Hypothesis, DistinctRows] = WeakKeyDictionary()


def distinct_rows(problem: Problem) -> DistinctRows:
    """Return the distinct rows of a problem.

    The result is cached in the hypothesis. It is used again if equal rows have equal targets and
    offsets in the new problem too.
    """
    hypothesis = problem.hypothesis
    known = _KNOWN.get(hypothesis)
    if known is None or not known.fits(problem.blocks):
        given = [part for block in problem.blocks for part in _of_rows(block)]
        _KNOWN[hypothesis] = known = _distinct_rows(hypothesis, given)
    return known


def _of_rows(block: Block) -> list[Floats]:
    """Return the numbers that equal rows must share: the targets, and the offsets if there are any."""
    return [block.targets, block.offsets] if block.offsets.any() else [block.targets]


def _distinct_rows(hypothesis: Hypothesis, given: Sequence[Floats]) -> DistinctRows:
    """Find the distinct rows by hashing.

    If only few rows are equal, or if the kernel is precomputed, all rows count as distinct.
    """
    every = np.arange(hypothesis.n)
    unmerged = DistinctRows(every, every, replace(hypothesis))  # a copy: `_KNOWN` must not refer to its key
    if isinstance(hypothesis, KernelHypothesis) and hypothesis.kernel.name == "precomputed":
        return unmerged
    hashes = hash_matrix(hypothesis.X)
    for vector in given:
        hashes = _mixed(hashes) + _mixed(_bits(vector))
    ordered = np.sort(hashes)
    if np.count_nonzero(ordered[1:] != ordered[:-1]) > FEWER * hypothesis.n:
        return unmerged
    _, first, index = np.unique(hashes, return_index=True, return_inverse=True)
    return DistinctRows(first, index, hypothesis.some(first))


def hash_matrix(X: Matrix) -> Words:
    """Return a 64-bit hash per row, (n,); equal rows have equal hashes.

    >>> hashes = hash_matrix(np.array([[0.0, 1.0], [1.0, 0.0], [-0.0, 1.0]]))
    >>> bool(hashes[0] == hashes[2]), bool(hashes[0] == hashes[1])
    (True, False)
    """
    factors = np.random.default_rng(0).integers(2**64, size=X.shape[1], dtype=np.uint64) | np.uint64(1)
    if not sp.issparse(X):
        step = max(1, CACHED // max(X.shape[1], 1))
        return np.concatenate([_mixed(_bits(X[i : i + step])) @ factors for i in range(0, len(X), step)])
    sums = np.zeros(X.nnz + 1, np.uint64)  # of factor times mixed bits, over the entries so far
    for i in range(0, X.nnz, CACHED):
        part = slice(i, i + CACHED)
        np.cumsum(_mixed(_bits(X.data[part])) * factors[X.indices[part]], out=sums[1:][part])
        sums[1:][part] += sums[i]
    return np.diff(sums[X.indptr])


def _bits(values: Floats) -> Words:
    """Return floats as 64-bit words; -0.0 becomes 0.0 first, so that equal numbers have equal bits."""
    return np.ascontiguousarray(values + 0.0).view(np.uint64)


def _mixed(words: Words) -> Words:
    """Mix the bits of 64-bit words (the finalizer of splitmix64)."""
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))


class SplitSession(Session):
    """A session of a solver that takes hinge-like and smooth atoms only.

    Every convex function is a constant plus hinge-like functions, one per kink or parabola, plus a smooth
    function (`MarginFunction.parts`). Each of these functions becomes a block of its own, on the same side of
    the same term. The dual variable of the atom is the sum of the dual variables of these blocks, because a
    slope of a sum is the sum of the slopes (docs/decisions/0017-formulas.md).

    >>> import cvxpy as cp, nerm
    >>> loss = nerm.margin_function(lambda m: cp.maximum(0, 1 - m, 0.4 - 2 * m))
    >>> problem = (nerm.Risk(loss) + 0.1 * nerm.SquaredL2()).on([[0.0], [1.0]], [-1, 1])
    >>> [len(split_problem(problem).blocks), problem.solve("interior-point").multipliers.rows.shape]
    [2, (1, 2)]
    """

    def __init__(self, open_session: Any, problem: Problem) -> None:
        self._split: tuple[tuple[Block, ...], Problem] = problem.blocks, split_problem(problem)
        self._session: Session = open_session(self._split[1])

    def renewed(self, problem: Problem) -> bool:
        """Prepare for a problem with other terms on the same rows.

        Return False if it needs a new session.
        """
        return self._session.renewed(self._of(problem))

    def _of(self, problem: Problem) -> Problem:
        """Return the problem with split blocks; problems along a path share them."""
        if self._split[0] is not problem.blocks:
            self._split = problem.blocks, split_problem(problem)
        return replace(problem, blocks=self._split[1].blocks)

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Solve the problem with split blocks.

        The split problem omits constants. If the constants make the objective much smaller, it is solved
        again more accurately, because the accuracy is relative.
        """
        split = self._of(problem)
        found = self._session.answer(split, accuracy, options, **limit(deadline))
        if found.coef is not None:
            whole, part = (abs(float(p.evaluate(found.coef, found.intercept))) for p in (problem, split))
            if 0 < whole < 0.9 * part:
                found = self._session.answer(split, accuracy * whole / part, options, **limit(deadline))
        m = found.multipliers
        if m is None:
            return found
        counts = [len(block.atom.parts) for block in problem.blocks]
        rows = np.add.reduceat(m.rows, np.cumsum([0, *counts[:-1]]), axis=0)
        return replace(found, multipliers=replace(m, rows=rows))


def split_problem(problem: Problem) -> Problem:
    """Return the problem in which each block is replaced by one block per part of its atom.

    The parts add up to the atom up to a constant, which the new problem omits.
    """
    split = [replace(block, atom=part) for block in problem.blocks for part in block.atom.parts]
    return replace(problem, blocks=tuple(split))


def open_session(solver: Solver, problem: Problem) -> Session:
    """Open a session of a solver for a problem.

    It splits atoms into parts if the solver has `splits_blocks`, and works on the distinct rows if the solver
    has `merges_rows`. It searches the weight of one limit if the solver takes no constraints.
    """
    opened: Any = solver.open
    if solver.splits_blocks and any(block.atom.parts != (block.atom,) for block in problem.blocks):
        opened = partial(SplitSession, opened)
    if problem.limits and not solver.takes_constraints:
        opened = partial(LimitedSession, opened)
    merges = solver.merges_rows and len(distinct_rows(problem).first) < problem.hypothesis.n
    return MergedSession(opened, problem) if merges else opened(problem)
