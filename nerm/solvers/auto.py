"""The automatic choice of a solver: a table of costs in seconds, from counts of operations.

Each solver's `cost` is one of the functions below. The cheapest of nerm's own solvers that takes the problem
is asked first; if there is none, the cheapest solver that takes every atom. If its answer is not certified,
another solver that takes every atom is asked. Rates are seconds on one core.
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
from nerm.model.hypothesis import KernelHypothesis
from nerm.model.problem import Problem, relaxed_problem

if TYPE_CHECKING:
    from nerm.solvers.base import Solver

ENTRY = 1e-9  # per multiplication of an entry of X, or of K, by one of a vector
DENSE = 1e-10  # per multiplication in a product of dense matrices
ROW = 3e-7  # per row in a pass over the rows
NEWTON_STEPS = 20  # of an interior-point method
PASSES = 10  # over X, by the root of the condition number, of conjugate gradients; over K, of pair steps
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
    kernel : bool
        Whether there is a kernel.
    sparse : bool
        Whether X is a sparse matrix.

    """

    rows: int
    columns: int
    nonzeros: float
    squares: float
    condition: float
    kernel: bool
    sparse: bool

    @classmethod
    def of(cls, problem: Problem) -> Shape:
        """Return the shape of a problem."""
        hypothesis = problem.hypothesis
        n, d, X = hypothesis.n, hypothesis.size, hypothesis.X
        weights = (w for w, atom in parts_of(problem.regularizers) if isinstance(atom, SquaredL2))
        ridge = float(problem.divisor * sum(weights)) or float(np.finfo(float).tiny)
        if isinstance(hypothesis, KernelHypothesis):
            return cls(n, d, n * n, n**3, n / ridge, True, False)
        sparse = sp.issparse(X)
        nonzeros = float(X.nnz if sparse else X.size)
        squares = float(np.square(np.diff(X.indptr), dtype=float).sum()) if sparse else float(n) * d**2
        entries = X.data if sparse else np.ravel(X)
        mean = np.asarray(X.mean(axis=0)).ravel()
        largest = n * float(mean @ mean) + float(entries @ entries) / max(min(n, d), 1)
        return cls(n, d, nonzeros, squares, largest / ridge, False, sparse)


def interior_point(shape: Shape) -> float:
    """Return the cost of Newton systems of width k = min(n, d): formed, factored, and passes over the rows.

    X'DX takes the squares of the nonzeros of each sparse row, or n k^2 where X is dense, or wide and so
    replaced by its coordinates in the row space; its factor takes k^3 / 3. On average a quarter of the rows
    is near a kink and enters the system.
    """
    k = min(shape.rows, shape.columns)
    sparse = shape.sparse and k == shape.columns
    formed = ENTRY * shape.squares if sparse else DENSE * shape.rows * k**2
    return NEWTON_STEPS * (formed / 4 + DENSE * k**3 / 3 + one_pass(shape))


def augmented_lagrangian(shape: Shape) -> float:
    """Return the cost of passes of conjugate gradients over X, or of Newton steps over a Gram matrix."""
    return (NEWTON_STEPS if shape.kernel else PASSES * sqrt(shape.condition)) * one_pass(shape)


def pair_steps(shape: Shape) -> float:
    """Return the cost of two-variable steps on the Gram matrix.

    On linear data it has to be computed, and the steps are as many as those of conjugate gradients.
    """
    if shape.kernel:
        return PASSES * one_pass(shape)
    return PASSES * sqrt(shape.condition) * shape.rows * one_pass(shape)


def cone_program(shape: Shape) -> float:
    """Return the cost of sparse Newton systems of all rows and columns, with fill-in."""
    k = min(shape.rows, shape.columns)
    formed = shape.squares if shape.sparse else shape.rows * float(k) ** 2
    return NEWTON_STEPS * (ENTRY * (formed + k**3 / 3) + one_pass(shape))


def one_pass(shape: Shape) -> float:
    """Return the cost of a product with X or K, and with its transpose."""
    return 2 * ENTRY * shape.nonzeros + ROW * shape.rows


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


def plan(problem: Problem, solvers: Iterable[Solver]) -> list[Choice]:
    """Return the solvers to ask, in order, and why.

    The cheapest of nerm's own solvers comes first, or of those that take every atom if no other takes the
    problem. The cheapest other one that takes every atom follows, if its cost allows it.
    """
    shape = Shape.of(problem)
    costs = {solver: solver.cost(shape) for solver in solvers}
    ranked = sorted((s for s in costs if costs[s] < inf), key=lambda s: (s.takes_every_atom, costs[s]))
    parts = []  # that nerm's own solvers do not take
    for first in ranked:
        part = None if first.takes_every_atom else why_unsupported(first, problem)
        if part is None:
            break
        parts.append(part)
    reason = "the lowest estimated cost of nerm's own solvers that take this problem"
    if first.takes_every_atom:
        reason = f"takes every atom; nerm's own solvers do not take {parts[0] if parts else 'it'}"
    general = [s for s in ranked if s.takes_every_atom and s is not first and costs[s] <= SECOND_OPINION]
    second_opinion = f"a second opinion: {first.name} was not certified"
    return [Choice(first, reason), *(Choice(s, second_opinion) for s in general[:1])]
