"""The augmented Lagrangian as a solver: `nerm.solvers.newton_alm`, for kernels and for data too wide for a dense Newton system."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from nerm.certify.multipliers import Multipliers
from nerm.certify.solution import Answer
from nerm.errors import UnknownNameError
from nerm.model.blocks import Block, term_weights
from nerm.model.hypothesis import KernelHypothesis
from nerm.model.problem import Problem
from nerm.solvers import auto, clock
from nerm.solvers.base import NermSolver, Session
from nerm.solvers.interior_point.solver import ATOMS, squared_norm, unsupported_term
from nerm.typing import Ints

if TYPE_CHECKING:
    from nerm.solvers.newton_alm import AugmentedLagrangian, Iterate, KernelProducts, RowProducts

KINKS = 0.3  # share of the rows at kinks from which on pair steps are faster
SINGLE = 1e-5  # accuracies from which on a search in single precision is enough
TOGETHER = 24  # points of a path at which the last iterates are kept


@dataclass(frozen=True)
class AugmentedLagrangianSolver(NermSolver):
    """Proximal points on the dual, each by Newton steps on the rows at kinks; the cost follows the nonzeros."""

    name: str = "augmented-lagrangian"
    seconds: float = np.inf
    keeps_time = True
    merges_rows: ClassVar[bool] = True

    def requirements(self) -> str:
        """One phrase: what a problem must be like."""
        return f"squared l2 of positive weight and atoms that are {ATOMS}"

    def why_unsupported(self, problem: Problem) -> str | None:
        """Name the first thing in the way."""
        return unsupported_term(problem)

    def cost(self, shape: auto.Shape) -> float:
        """Return about how many seconds a solve takes."""
        return auto.augmented_lagrangian(shape)

    def early_exit(self, seconds: float) -> AugmentedLagrangianSolver:
        """Return a variant that stops when many rows of a kernel problem are at kinks, or after the time.

        On linear data it stops after as many multiplications as another solver would do in so many seconds:
        so both together take about twice as long as the better of them at the most.
        """
        return replace(self, seconds=seconds)

    def open(self, problem: Problem) -> Session:
        """Start a session."""
        return AugmentedLagrangianSession(problem, seconds=self.seconds)

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return a second, finer accuracy as well: the method's own bound is an estimate."""
        return tol, 0.1 * tol


class _Left(NamedTuple):
    """Where a problem was left: multipliers of all blocks and thetas of all terms, tau, and the accuracy there."""

    at: Iterate
    tau: float
    accuracy: float


class AugmentedLagrangianSession(Session):
    """One problem and its relatives: each starts from the hypothesis and the multipliers of the last.

    A problem that is asked for again, since its answer was refused, starts from its own.
    """

    def __init__(self, problem: Problem, *, seconds: float = np.inf) -> None:
        from nerm.solvers.interior_point.matrices import RowThreads
        from nerm.solvers.newton_alm import KernelProducts, RowProducts

        hypothesis, intercept = problem.hypothesis, problem.intercept
        self._rows: RowProducts | KernelProducts
        if isinstance(hypothesis, KernelHypothesis):
            self._workers = RowThreads(
                hypothesis.n, 0, count=1
            )  # threads of BLAS wait for each other, tile by tile
            most = KINKS * hypothesis.n if seconds < np.inf else np.inf
            self._rows = KernelProducts(hypothesis, intercept=intercept, most=most, single=True)
        else:
            self._workers = RowThreads(hypothesis.n, 0)
            most = seconds / auto.NANOSECOND
            self._rows = RowProducts(hypothesis.X, self._workers, intercept=intercept, most=most)
        self._blocks: tuple[Block, ...] = ()
        self._last: Iterate | None = None  # multipliers of all blocks, thetas of all terms
        self._ends, self._given_up = dict[bytes, _Left](), ""  # by weights, the last ones

    def renewed(self, problem: Problem) -> bool:
        """Take other blocks: the last hypothesis stays, and its scores say what the multipliers are.

        Which rows are at kinks depends on blocks; that X is hard for conjugate gradients does not.
        """
        self._given_up = "" if problem.is_kernel else self._given_up
        return True

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Solve one problem from where the last one ended."""
        from nerm.solvers.newton_alm import AugmentedLagrangian, GaveUpError

        for name in options:
            raise UnknownNameError("an option of 'augmented-lagrangian'", name, ("no options",))
        started = time.perf_counter()
        factors, lam = term_weights(problem), squared_norm(problem) * problem.divisor
        weights = np.append(factors, lam).tobytes()
        end = self._ends.get(weights) if self._blocks == problem.blocks else None
        if end is not None:
            self._last = end.at
        if (end is not None and accuracy < end.accuracy) or accuracy < SINGLE:
            self._in_doubles()
        self._rows.count_anew()
        acting = np.flatnonzero(factors * [block.weights.sum() for block in problem.blocks] > 0)
        if not len(acting):
            acting = np.array([0])
        method = AugmentedLagrangian([problem.blocks[j] for j in acting], factors[acting], self._rows, lam)
        try:
            if self._given_up:
                raise GaveUpError(self._given_up)
            with self._workers:
                start, tau = self._start(problem, method, acting, deadline)
                found, tau = method.run(start, tau if end is None else end.tau, 0.9 * accuracy, deadline)
        except GaveUpError as reason:
            self._given_up = str(reason)
            return Answer(None, 0.0, None, f"gave up: {reason}", solve_seconds=time.perf_counter() - started)
        self._last = self._kept(problem, found, acting)
        if self._blocks != problem.blocks:
            self._blocks = problem.blocks
            self._ends.clear()
        self._ends[weights] = _Left(self._last, tau, accuracy)
        for old in list(self._ends)[:-TOGETHER]:
            del self._ends[old]
        return self._answer(found, start, started, deadline)

    def _in_doubles(self) -> None:
        """Give up single precision, where rows are in it: hypotheses stay what they were, and K meets them again."""
        from nerm.solvers.newton_alm import KernelProducts

        if not isinstance(self._rows, KernelProducts) or not self._rows.held.single:
            return
        self._rows = rows = self._rows.in_doubles()
        known = [left.at for left in self._ends.values()]
        if self._last is not None:
            known.append(self._last)
            products = rows.product(
                np.arange(rows.shape[0]), np.column_stack([rows.coef(one.h) for one in known])
            ).T
            hs = [
                np.concatenate([rows.coef(one.h), k, one.h[-1:]])
                for one, k in zip(known, products, strict=True)
            ]
            known = [replace(one, h=h, scores=rows.times(h)) for one, h in zip(known, hs, strict=True)]
            self._last = known.pop()
            lefts = zip(self._ends.items(), known, strict=True)
            self._ends = {weights: left._replace(at=one) for (weights, left), one in lefts}

    def _start(
        self, problem: Problem, method: AugmentedLagrangian, acting: Ints, deadline: float
    ) -> tuple[Iterate, float]:
        """Return the last point, in terms of the blocks that act now, and tau there."""
        from nerm.solvers.newton_alm import CONSTANTS, from_few_rows

        if self._last is None:
            return (
                from_few_rows(method, deadline) if problem.is_kernel else (method.nothing(), CONSTANTS.cold)
            )
        if self._blocks != problem.blocks:
            return method.at(self._last.h, self._last.scores), CONSTANTS.warm
        sides = [j for j, block in enumerate(problem.blocks) if block.side > 0]
        thetas = self._last.thetas[np.isin(sides, acting)]
        return replace(self._last, u=self._last.u[acting], thetas=thetas), CONSTANTS.warm

    def _kept(self, problem: Problem, found: Iterate, acting: Ints) -> Iterate:
        """Return a point with multipliers of all blocks: of those that do not act, what its scores say."""
        from nerm.solvers.newton_alm import Blocks

        u = Blocks(problem.blocks).multipliers(found.scores)
        for j, of_block in zip(acting, found.u, strict=True):
            u[j] = np.where(problem.blocks[j].weights > 0, of_block, u[j])
        sides = [j for j, block in enumerate(problem.blocks) if block.side > 0]
        thetas = np.full(len(sides), 0.5)
        thetas[np.isin(sides, acting)] = found.thetas
        return replace(found, u=u, thetas=thetas)

    def _answer(self, found: Iterate, start: Iterate, started: float, deadline: float) -> Answer:
        """Return the last point as an answer, with the work since the start."""
        assert self._last is not None
        late = clock.is_up(deadline) and not found.converged
        return Answer(
            coef=self._rows.coef(found.h),
            intercept=float(found.h[-1]),
            multipliers=Multipliers(-self._last.u, self._last.thetas),
            claim="converged" if found.converged else "stopped: time is up" if late else "stopped early",
            iterations=found.steps - start.steps,
            solve_seconds=time.perf_counter() - started,
            details={
                "centres": found.centres - start.centres,
                "products": found.products - start.products,
                "passes": self._rows.passes,
            },
            timed_out=late,
        )


SOLVERS = (AugmentedLagrangianSolver(),)
