"""l1 and elastic net through the engine: `|w_j|` is a margin function of one more row, e_j.

::

    (1/n) sum_i s_i phi(y_i f_i) + ... + mu_1 ||w||_1 + (mu/2) ||w||^2

is the engine's own problem with d more rows e_j and the loss `|m|` = max over u in [-1, 1] of m u on them. These rows
must not see the intercept, so it becomes a column of the data, long enough (REACH) for its share of the squared norm to
vanish. Pure l1 has no squared norm; one is lent that changes the objective by less than the accuracy. Either loan can
only loosen the certificate, which is computed for the problem as it was stated.
"""

import time
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from nerm import clock
from nerm.atoms.hinge_like import HingeLike
from nerm.atoms.l1 import L1
from nerm.atoms.squared_l2 import SquaredL2
from nerm.blocks import Block
from nerm.multipliers import Multipliers
from nerm.problem import Problem
from nerm.solution import Answer
from nerm.solvers.base import NermSolver, Session
from nerm.solvers.interior_point import ATOMS, LARGEST_SYSTEM, iteration_limit, obstacle_in_atoms
from nerm.typing import Floats, Matrix

REACH = 1e3


@dataclass(frozen=True)
class L1Engine(NermSolver):
    """The interior-point engine on a linear problem with an l1 part."""

    name: str = "l1"
    keeps_time = True
    rank: ClassVar[int | None] = 2

    def needs(self) -> str:
        """One phrase: what a problem must be like."""
        return f"a linear problem with l1 or elastic net, atoms that are {ATOMS}, and at most {LARGEST_SYSTEM} columns"

    def obstacle(self, problem: Problem) -> str | None:
        """Name the first thing in the way."""
        if problem.is_kernel:
            return "a kernel"
        for _, omega in problem.regularizers:
            if not all(isinstance(part, L1 | SquaredL2) for _, part in omega.parts()):
                return repr(omega)
        if not _weights(problem)[0] > 0:
            return "no l1 part of positive weight"
        if problem.hypothesis.size > LARGEST_SYSTEM:
            return f"{problem.hypothesis.size} columns"
        return obstacle_in_atoms(problem)

    def open(self, problem: Problem) -> Session:
        """Add the rows and prepare the engine."""
        return L1Session(problem)

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return a second, finer accuracy as well: the loans are estimates."""
        return tol, 1e-2 * tol


class L1Session(Session):
    """The engine on one problem with the rows e_j, and on its relatives, every solve from the last."""

    def __init__(self, problem: Problem) -> None:
        from nerm.engine import Engine

        started = time.perf_counter()
        self._shape = problem.hypothesis.n, problem.hypothesis.size
        self._alone = sum(block.side == 0 for block in problem.blocks)
        blocks = list(_extended(problem.blocks, self._shape[1]))
        blocks.insert(self._alone, _absolute(*self._shape, problem.divisor))
        self._engine = Engine(_with_rows(problem), blocks, problem.divisor, intercept=False)
        self._build_seconds = time.perf_counter() - started

    def answer(self, problem: Problem, accuracy: float, options: dict[str, Any], until: float = clock.NEVER) -> Answer:
        """Solve, and take the rows away again."""
        limit = iteration_limit(options, "l1")
        (n, d), (l1, mu) = self._shape, _weights(problem)
        # ||w||_2 <= ||w||_1 <= P(0) / mu_1 at the optimum, so this much costs at most the accuracy
        lent = 0.1 * accuracy * l1**2 / max(problem.value_at_zero(), np.finfo(float).tiny)
        factors = np.insert(problem.factors, self._alone, l1)
        found = self._engine.solve(factors, max(mu, lent), 0.3 * accuracy, max_iterations=limit, until=until)
        assert found.coef is not None
        assert found.multipliers is not None
        rows = np.delete(found.multipliers.rows, self._alone, axis=0)[:, :n]
        seconds, self._build_seconds = self._build_seconds, 0.0
        return replace(
            found,
            coef=found.coef[:d],
            intercept=float(REACH * found.coef[d]) if problem.intercept else 0.0,
            multipliers=Multipliers(rows, found.multipliers.thetas),
            build_seconds=seconds,
            details={"passes": found.details["passes"]},
        )


@dataclass(frozen=True)
class Absolute(HingeLike):
    """phi(m) = |m|; phi*(u) = 0 on [-1, 1]."""

    @property
    def dual_form(self) -> tuple[float, float, float, float]:
        """The numbers (a, q, low, high) of the conjugate a u + (q/2) u^2 on [low, high]."""
        return 0.0, 0.0, -1.0, 1.0

    def value(self, m: ArrayLike) -> Floats:
        """Return |m|."""
        return np.asarray(np.abs(m), dtype=float)

    def expression(self, m: Any) -> Any:
        """Return abs(m)."""
        return abs(m)

    def latex(self, m: str, minus_m: str) -> str:
        """Return the formula in LaTeX."""
        return rf"|{m}|"


def _weights(problem: Problem) -> tuple[float, float]:
    """Return the total weights of ||w||_1 and of 1/2 ||w||^2."""
    parts = [(weight * share, atom) for weight, omega in problem.regularizers for share, atom in omega.parts()]
    l1, l2 = (float(sum(w for w, atom in parts if isinstance(atom, kind))) for kind in (L1, SquaredL2))
    return l1, l2


def _extended(blocks: tuple[Block, ...], d: int) -> list[Block]:
    """Return blocks without weight on d more rows."""
    return [replace(b, weights=np.pad(b.weights, (0, d)), targets=np.pad(b.targets, (0, d))) for b in blocks]


def _absolute(n: int, d: int, divisor: float) -> Block:
    """Return the block of ||w||_1: the loss |m| on the last d rows."""
    return Block(Absolute(), np.repeat([0.0, divisor], [n, d]), np.repeat([0.0, 1.0], [n, d]), -1, 0)


def _with_rows(problem: Problem) -> Matrix:
    """Return [[X, REACH], [I, 0]], sparse if X is; the last column is absent without an intercept."""
    X = problem.hypothesis.X
    n, d = X.shape
    if sp.issparse(X):
        wide = sp.hstack([X, sp.csr_matrix(np.full((n, 1), REACH))]) if problem.intercept else X
        return sp.csr_matrix(sp.vstack([wide, sp.eye(d, wide.shape[1])]))
    column = np.full((n, int(problem.intercept)), REACH)
    return np.vstack([np.hstack([X, column]), np.eye(d, d + int(problem.intercept))])


SOLVERS = (L1Engine(),)
