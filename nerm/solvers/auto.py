"""The automatic choice of a solver: a table of costs in seconds, from counts of operations.

Each solver's `cost` is one of the functions below. The cheapest solver that takes the problem is asked; if
its answer is not certified, a solver that takes every atom gives a second opinion. The unit of all rates is a
nanosecond on one core: the multiplication of one entry of X by one of a vector.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from nerm.atoms.regularizer import SquaredL2
from nerm.certify.conjugates import parts_of
from nerm.model.blocks import term_weights
from nerm.model.hypothesis import KernelHypothesis
from nerm.model.problem import Problem, relaxed_problem

if TYPE_CHECKING:
    from nerm.solvers.base import Solver

NANOSECOND = 1e-9
DENSE = 0.1  # per multiplication in a product of dense matrices
ROW = 300  # per row in a pass over the rows
KERNEL_VALUE = 30  # per value of a kernel
NEWTON_STEPS = 20  # of an interior-point method
PASSES = 10  # over the rows, by the root of the condition number, of the augmented Lagrangian
SECOND_OPINION = 60.0  # seconds that a solver may take to check another one's answer


@dataclass(frozen=True)
class Shape:
    """The size of a problem, as far as the cost of a solve depends on it.

    Attributes
    ----------
    rows, columns : int
        Those of X, or of the Gram matrix of a kernel.
    nonzeros : float
        Entries of X that are not 0; all entries of a Gram matrix.
    squares : float
        The sum over rows of squared counts of nonzeros: the work of forming X'DX.
    condition : float
        An estimate of the largest eigenvalue of X'X, divided by the weight n mu of the squared l2 norm.
    kernel, in_memory : bool
        Whether there is a kernel, and whether its Gram matrix fits into memory.
    sparse : bool
        Whether X is a sparse matrix.
    several : bool
        Whether problems along a path follow.

    """

    rows: int
    columns: int
    nonzeros: float
    squares: float
    condition: float
    kernel: bool
    in_memory: bool
    sparse: bool
    several: bool

    @classmethod
    def of(cls, problem: Problem, *, several: bool = False) -> Shape:
        """Return the shape of a problem; `several` if it is the first one of a path."""
        hypothesis = problem.hypothesis
        n, d, X = hypothesis.n, hypothesis.size, hypothesis.X
        weights = (w for w, atom in parts_of(problem.regularizers) if isinstance(atom, SquaredL2))
        ridge = float(problem.divisor * sum(weights)) or float(np.finfo(float).tiny)
        if isinstance(hypothesis, KernelHypothesis):
            largest = float(n)
            return cls(n, d, n * n, n**3, largest / ridge, True, hypothesis.keeps_gram, False, several)
        sparse = sp.issparse(X)
        nonzeros = float(X.nnz if sparse else X.size)
        squares = float(np.square(np.diff(X.indptr), dtype=float).sum()) if sparse else float(n) * d**2
        entries = X.data if sparse else np.ravel(X)
        mean = np.asarray(X.mean(axis=0)).ravel()
        largest = n * float(mean @ mean) + float(entries @ entries) / max(min(n, d), 1)
        return cls(n, d, nonzeros, squares, largest / ridge, False, True, sparse, several)


def interior_point(shape: Shape) -> float:
    """Return the cost of Newton systems of width k = min(n, d): formed, factored, and passes over the rows.

    X'DX takes the squares of the nonzeros of each sparse row, or n k^2 where X is dense, or wide and so
    replaced by its coordinates in the row space; its factor takes k^3 / 3. On average a quarter of the rows
    is near a kink and enters the system.
    """
    k = min(shape.rows, shape.columns)
    formed = shape.squares if shape.sparse and k == shape.columns else DENSE * shape.rows * k**2
    passes = 2 * shape.nonzeros + ROW * shape.rows
    return NANOSECOND * NEWTON_STEPS * (formed / 4 + DENSE * k**3 / 3 + passes)


def augmented_lagrangian(shape: Shape) -> float:
    """Return the cost of passes of conjugate gradients over the entries of X.

    On kernels the Newton systems of the rows at kinks are factored, which takes a few passes over the Gram
    matrix.
    """
    if shape.kernel:
        return NANOSECOND * (2.5 * KERNEL_VALUE * shape.nonzeros + 100 * ROW * shape.rows)
    return NANOSECOND * PASSES * sqrt(shape.condition) * (2 * shape.nonzeros + ROW * shape.rows)


def pair_steps(shape: Shape) -> float:
    """Return the cost of two-variable steps: rows of the Gram matrix, and steps for each problem of a path.

    Gram rows beyond memory are computed many times; on linear data steps are as many as conjugate gradients.
    """
    if not shape.kernel:
        products = 2 * shape.nonzeros * shape.rows
        return NANOSECOND * PASSES * sqrt(shape.condition) * (products + ROW * shape.rows)
    repeats = (3 if shape.several else 2) * (1 if shape.in_memory else 10)
    return NANOSECOND * repeats * KERNEL_VALUE * shape.nonzeros


def cone_program(shape: Shape) -> float:
    """Return the cost of sparse Newton systems of all rows and columns, with fill-in."""
    k = min(shape.rows, shape.columns)
    formed = shape.squares if shape.sparse else shape.rows * float(k) ** 2
    return NANOSECOND * NEWTON_STEPS * (formed + k**3 / 3 + 10 * ROW * shape.rows)


def kind(problem: Problem, *, several: bool) -> tuple[object, ...]:
    """Return the facts of a problem on which the choice depends; `several` if it is the first of a path."""
    atoms = (
        (type(block.atom) if block.atom.built_in else block.atom, block.side, factor > 0)
        for block, factor in zip(problem.blocks, term_weights(problem), strict=True)
    )
    penalties = ((repr(omega), weight > 0) for weight, omega in problem.regularizers)
    constraints = (problem.intercept, len(problem.limits), problem.region is None)
    return (Shape.of(problem, several=several), *atoms, *penalties, *constraints)


class Choice(NamedTuple):
    """A solver that ``solver="auto"`` asks, and why."""

    solver: Solver
    reason: str


def why_unsupported(solver: Solver, problem: Problem) -> str | None:
    """Return the part of a problem, constraints included, that a solver cannot take; None if it takes all.

    One limit is met by a search over its weight, around a solver that has a cost.
    """
    if not problem.objective.constraints or solver.takes_constraints:
        return solver.why_unsupported(problem)
    if problem.region is not None:
        return "constraints on coefficients"
    if solver.cost(Shape.of(problem)) == inf:
        return "a limit"
    if len(problem.limits) > 1:
        return f"{len(problem.limits)} limits"
    return solver.why_unsupported(relaxed_problem(problem, [1.0]))


def plan(problem: Problem, solvers: Iterable[Solver], *, several: bool = False) -> list[Choice]:
    """Return the solvers to ask, in order, and why.

    The cheapest solver comes first. If it can stop early, the next cheapest follows; then the cheapest one
    that takes every atom, if its cost allows it. Where only these take the problem, two of them are asked.
    """
    shape = Shape.of(problem, several=several)
    costs = {solver: solver.cost(shape) for solver in solvers}
    ranked = sorted((solver for solver, cost in costs.items() if cost < inf), key=costs.__getitem__)
    general = [solver for solver in ranked if solver.takes_every_atom]
    unsupported = {s: why_unsupported(s, problem) for s in ranked if not s.takes_every_atom}
    own = [solver for solver, part in unsupported.items() if part is None]
    if not own:
        part = next(iter(unsupported.values()), "it")
        first, *others = general
        reason = f"takes every atom; nerm's own solvers do not take {part}"
        second = [Choice(other, f"takes every atom too; {first.name} was not certified") for other in others]
        return [Choice(first, reason), *(c for c in second[:1] if costs[c.solver] <= SECOND_OPINION)]
    first, *others = own
    asked = first.early_exit(costs[others[0]]) if others else first
    following = others[:1] if asked is not first else []
    following += [solver for solver in general[:1] if costs[solver] <= SECOND_OPINION]
    reason = "the lowest estimated cost of nerm's own solvers that take this problem"
    second_opinion = f"a second opinion: {first.name} was not certified"
    return [Choice(asked, reason), *(Choice(solver, second_opinion) for solver in following)]
