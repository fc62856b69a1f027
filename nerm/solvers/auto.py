"""The automatic choice of a solver by its estimated cost in seconds, from counts of operations.

Each solver's `cost` is one of the functions below. The solver that is run first is the cheapest of nerm's own
solvers that supports the problem, or else the cheapest solver that supports every atom. If its answer is not
certified, another of nerm's own solvers is run, and then one that supports every atom. All costs are in
seconds on one core.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from math import inf, sqrt
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import scipy.sparse as sp

from nerm.certify.conjugates import square_weight
from nerm.model.problem import Problem, relaxed_problem
from nerm.solvers.base import NermSolver

if TYPE_CHECKING:
    from nerm.solvers.base import Solver

ENTRY = 1e-9  # per multiplication of an entry of X, or of K, by one of a vector
DENSE = 1e-10  # per multiplication in a product of dense matrices
ROW = 3e-7  # per row in a pass over the rows
NEWTON_STEPS = 20  # iterations of an interior-point method
PASSES = 10  # passes over X per root of the condition number (conjugate gradients), or over K (pair steps)
SECOND_SOLVER = 60.0  # largest estimated seconds of a second solver


class Shape:
    """The properties of a problem that determine the cost of a solve.

    Attributes
    ----------
    rows, columns : int
        The shape of X, or of the Gram matrix of a kernel.
    nonzeros : float
        The number of nonzero entries of X, or of all entries of a Gram matrix.
    squares : float
        The sum over rows of (number of nonzeros)^2: the operations to form X'DX.
    condition : float
        The mean eigenvalue of X'X, divided by the weight n mu of the squared l2 norm. Few large eigenvalues,
        such as that of the mean of the rows, cost conjugate gradients few steps.
    smooth : bool
        Whether no atom has a kink.
    kernel : bool
        Whether the problem has a kernel.
    sparse : bool
        Whether X is a sparse matrix.

    """

    def __init__(self, problem: Problem) -> None:
        X = problem.hypothesis.X
        self.rows, self.columns = n, d = problem.hypothesis.n, problem.hypothesis.size
        self.smooth = not any(block.atom.facts.kinks for block in problem.blocks)
        self.kernel = problem.is_kernel
        self.sparse = sp.issparse(X) and not self.kernel
        ridge = problem.divisor * square_weight(problem.regularizers) or float(np.finfo(float).tiny)
        if self.kernel:
            self.nonzeros, self.squares, self.condition = float(n * n), float(n**3), n / ridge
            return
        self.nonzeros, self.squares = float(X.size), float(n) * d**2
        if self.sparse:
            self.squares = float(np.square(np.diff(X.indptr), dtype=float).sum())
        entries = X.data if self.sparse else X.ravel(order="K")
        # no BLAS product: its threads would keep a core for 0.1 s, from the solver that starts next
        self.condition = float(np.einsum("i,i->", entries, entries)) / (max(min(n, d), 1) * ridge)


def interior_point(shape: Shape) -> float:
    """Return the cost of an interior-point method with Newton systems of size k = min(n, d).

    Forming X'DX takes `shape.squares` operations if X is sparse, and n k^2 if X is dense. If d > n, X is
    replaced by dense coordinates in the row space. The factorization takes k^3 / 6. On average a quarter of
    the rows is near a kink and enters the system.
    """
    k = min(shape.rows, shape.columns)
    sparse = shape.sparse and k == shape.columns
    formed = ENTRY * shape.squares if sparse else DENSE * shape.rows * k**2
    return NEWTON_STEPS * (formed / 4 + DENSE * k**3 / 6 + one_pass(shape))


def augmented_lagrangian(shape: Shape) -> float:
    """Return the cost of the solver "newton-alm".

    It uses Newton steps with a Gram matrix, or conjugate gradients with products by X. If an atom has a kink,
    the smoothed problem is solved for several widths.
    """
    if shape.kernel:
        return NEWTON_STEPS * one_pass(shape)
    return (1 if shape.smooth else 6) * PASSES * sqrt(shape.condition) * one_pass(shape)


def pair_steps(shape: Shape) -> float:
    """Return the cost of SMO, which takes two-variable steps on the Gram matrix.

    For a linear problem the Gram matrix must be computed first, and the number of passes grows with the
    condition number as for conjugate gradients.
    """
    if shape.kernel:
        return PASSES * one_pass(shape)
    return PASSES * sqrt(shape.condition) * shape.rows * one_pass(shape)


def cone_program(shape: Shape, slower: float = 1.0) -> float:
    """Return the cost of a cone solver.

    It factors sparse systems of all rows and columns, with fill-in. `slower` is the time of the solver
    relative to Clarabel; inf excludes the solver from ``"auto"``.
    """
    k = min(shape.rows, shape.columns)
    formed = shape.squares if shape.sparse else shape.rows * float(k) ** 2
    return slower * NEWTON_STEPS * (ENTRY * (formed + k**3 / 3) + one_pass(shape))


def one_pass(shape: Shape) -> float:
    """Return the cost of one product with X (or K) and one with its transpose."""
    return 2 * ENTRY * shape.nonzeros + ROW * shape.rows


class Choice(NamedTuple):
    """A solver that ``solver="auto"`` runs, and the reason."""

    solver: Solver
    reason: str


def why_unsupported(solver: Solver, problem: Problem) -> str | None:
    """Return the part of a problem that a solver does not support, such as "a limit", or None.

    A solver without constraints still supports one limit if its cost is finite: nerm searches the weight of
    the limit (`nerm.solvers.limited`).
    """
    if not problem.objective.constraints or solver.takes_constraints:
        return solver.why_unsupported(problem)
    if problem.region is not None:
        return "constraints on coefficients"
    if solver.cost(Shape(problem)) == inf:
        return "a limit"
    if len(problem.limits) > 1:
        return f"{len(problem.limits)} limits"
    return solver.why_unsupported(relaxed_problem(problem, [1.0]))


def plan(problem: Problem, solvers: Iterable[Solver]) -> Iterator[Choice]:
    """Yield up to three solvers to run, in order, each with the reason.

    The first is the cheapest of nerm's own solvers that supports the problem or, if there is none, the
    cheapest solver that supports every atom. The others are run if an answer is not certified: the next
    cheapest of nerm's own solvers, and the cheapest solver that supports every atom. Each of them must
    have an estimated cost of at most SECOND_SOLVER seconds.
    """
    shape = Shape(problem)

    def ranked(every_atom: bool) -> list[tuple[float, Solver]]:
        some = (s for s in solvers if (s.takes_every_atom if every_atom else isinstance(s, NermSolver)))
        costs = ((s.cost(shape), s) for s in some if s.installed())
        return sorted((pair for pair in costs if pair[0] < inf), key=lambda pair: pair[0])

    parts = list[str]()  # parts of the problem that nerm's own solvers do not support
    first: Solver | None = None
    for every_atom, later in ((False, "a second solver"), (True, "one more solver")):
        for cost, solver in ranked(every_atom):
            part = None if every_atom else why_unsupported(solver, problem)
            if part is not None:
                parts.append(part)
            elif first is None:
                first, reason = (
                    solver,
                    "the lowest estimated cost of nerm's own solvers that take this problem",
                )
                if every_atom:
                    reason = f"takes every atom; nerm's own solvers do not take {parts[0] if parts else 'it'}"
                yield Choice(first, reason)
            elif cost <= SECOND_SOLVER:
                yield Choice(solver, f"{later}: the answer of {first.name} was not certified")
                break
