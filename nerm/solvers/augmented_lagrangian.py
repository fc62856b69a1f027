"""The augmented Lagrangian as a solver: `nerm.wide`, for linear problems too wide for a dense Newton system."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import scipy.sparse as sp

from nerm import clock
from nerm.blocks import Block
from nerm.errors import UnknownNameError
from nerm.multipliers import Multipliers
from nerm.problem import Problem
from nerm.solution import Answer
from nerm.solvers.base import NermSolver, Session
from nerm.solvers.interior_point import ATOMS, obstacle_in_terms, squared_norm
from nerm.typing import Ints

if TYPE_CHECKING:
    from nerm.wide import AugmentedLagrangian, Iterate

WIDE, TALL = 300, 1500  # rows of wide data, and columns of tall data, beyond which it is faster than the interior point
FAR = 3.0  # standard deviations of a column from 0


@dataclass(frozen=True)
class AugmentedLagrangianSolver(NermSolver):
    """Proximal points on the dual, each by Newton steps on the rows at kinks; the cost follows the nonzeros."""

    name: str = "augmented-lagrangian"
    keeps_time = True
    rank: ClassVar[int | None] = 2

    def needs(self) -> str:
        """One phrase: what a problem must be like."""
        return f"a linear problem with squared l2 of positive weight and atoms that are {ATOMS}"

    def obstacle(self, problem: Problem) -> str | None:
        """Name the first thing in the way."""
        return "a kernel" if problem.is_kernel else obstacle_in_terms(problem)

    def prefers(self, problem: Problem) -> bool:
        """Whether the interior point's Newton system would be large beside the data (docs/decisions/0011-wide.md).

        Dense columns far from 0 are left to the interior point: they look alike to conjugate gradients.
        """
        rows, columns, X = problem.hypothesis.n, problem.hypothesis.size, problem.hypothesis.X
        if min(rows, columns) <= (WIDE if columns >= rows else TALL):
            return False
        return sp.issparse(X) or bool(np.all(np.abs(X.mean(axis=0)) <= FAR * X.std(axis=0)))

    def open(self, problem: Problem) -> Session:
        """Start a session."""
        return AugmentedLagrangianSession(problem)

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return a second, finer accuracy as well: the method's own bound is an estimate."""
        return tol, 0.1 * tol


class AugmentedLagrangianSession(Session):
    """One problem and its relatives: each starts from the hypothesis and the multipliers of the last."""

    def __init__(self, problem: Problem) -> None:
        from nerm.engine.threads import RowThreads
        from nerm.wide import RowProducts

        X = problem.hypothesis.X
        self._workers = RowThreads(X.shape[0], 0)
        self._rows = RowProducts(X, self._workers, intercept=problem.intercept)
        self._blocks: tuple[Block, ...] = ()
        self._last: Iterate | None = None  # multipliers of all blocks, thetas of all terms
        self._weights, self._tau = np.zeros(0), 0.0

    def renewed(self, problem: Problem) -> bool:
        """Take other blocks: the last hypothesis stays, and its scores say what the multipliers are."""
        return True

    def answer(self, problem: Problem, accuracy: float, options: dict[str, Any], until: float = clock.NEVER) -> Answer:
        """Solve one problem from where the last one ended."""
        from nerm.wide import CONSTANTS, AugmentedLagrangian

        for name in options:
            raise UnknownNameError("an option of 'augmented-lagrangian'", name, ("no options",))
        started, self._rows.passes = time.perf_counter(), 0.0
        factors, lam = problem.factors, squared_norm(problem) * problem.divisor
        acting = np.flatnonzero(factors * [block.weights.sum() for block in problem.blocks] > 0)
        if not len(acting):
            acting = np.array([0])
        method = AugmentedLagrangian([problem.blocks[j] for j in acting], factors[acting], self._rows, lam)
        weights = np.append(factors, lam)
        again = self._blocks == problem.blocks and np.array_equal(weights, self._weights)
        start = self._start(problem, method, acting)
        tau = self._tau if again else CONSTANTS.cold if self._last is None else CONSTANTS.warm
        with self._workers:
            found, self._tau = method.run(start, tau, 0.9 * accuracy, until)
        self._keep(problem, found, acting)
        self._blocks, self._weights = problem.blocks, weights
        return self._answer(found, started, until)

    def _start(self, problem: Problem, method: AugmentedLagrangian, acting: Ints) -> Iterate:
        """Return the last point, in terms of the blocks that act now."""
        if self._last is None:
            return method.nothing()
        if self._blocks != problem.blocks:
            return method.at(self._last.h, self._last.scores)
        sides = [j for j, block in enumerate(problem.blocks) if block.side > 0]
        return replace(self._last, u=self._last.u[acting], thetas=self._last.thetas[np.isin(sides, acting)])

    def _keep(self, problem: Problem, found: Iterate, acting: Ints) -> None:
        """Keep a point with multipliers of all blocks: of those that do not act, what its scores say."""
        from nerm.wide import Blocks

        u = Blocks(problem.blocks).multipliers(found.scores)
        for j, of_block in zip(acting, found.u, strict=True):
            u[j] = np.where(problem.blocks[j].weights > 0, of_block, u[j])
        sides = [j for j, block in enumerate(problem.blocks) if block.side > 0]
        thetas = np.full(len(sides), 0.5)
        thetas[np.isin(sides, acting)] = found.thetas
        self._last = replace(found, u=u, thetas=thetas)

    def _answer(self, found: Iterate, started: float, until: float) -> Answer:
        """Return the last point as an answer."""
        assert self._last is not None
        late = clock.is_up(until) and not found.converged
        return Answer(
            coef=found.h[:-1],
            intercept=float(found.h[-1]),
            multipliers=Multipliers(-self._last.u, self._last.thetas),
            claim="converged" if found.converged else "stopped: time is up" if late else "stopped early",
            iterations=found.steps,
            solve_seconds=time.perf_counter() - started,
            details={"centres": found.centres, "products": found.products, "passes": self._rows.passes},
            timed_out=late,
        )


SOLVERS = (AugmentedLagrangianSolver(),)
