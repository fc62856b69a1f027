"""The augmented Lagrangian as a solver, with warm starts along paths."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nerm.certify.conjugates import square_weight
from nerm.certify.multipliers import Multipliers
from nerm.certify.solution import Answer
from nerm.model.blocks import Block, term_weights
from nerm.model.hypothesis import KernelHypothesis
from nerm.model.problem import Problem
from nerm.solvers import auto, clock
from nerm.solvers.base import NermSolver, Session, check_options
from nerm.solvers.interior_point.solver import unsupported_term
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.solvers.newton_alm.method import AugmentedLagrangian, Iterate
    from nerm.solvers.newton_alm.rows import KernelRows, LinearRows

COARSE_SHARE = 4  # a kernel problem starts from the solution on n // COARSE_SHARE rows


@dataclass(frozen=True)
class AugmentedLagrangianSolver(NermSolver):
    """The semismooth Newton augmented Lagrangian method (`nerm.solvers.newton_alm.method`)."""

    name: str = "augmented-lagrangian"
    keeps_time = True
    cost = staticmethod(auto.augmented_lagrangian)
    merges_rows: ClassVar[bool] = True
    splits_blocks: ClassVar[bool] = True

    def requirements(self) -> str:
        """Return a phrase that says which problems the solver takes."""
        return "squared l2 of positive weight"

    def why_unsupported(self, problem: Problem) -> str | None:
        """Return the first term that the method does not take, or None if it takes all."""
        return unsupported_term(problem)

    def open(self, problem: Problem) -> Session:
        """Start a session for this problem and others along a path."""
        return AugmentedLagrangianSession(problem)

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return the accuracies to try in turn: tol, then tol / 10.

        The second one is tried if the first answer is not certified. It is needed because the method's own
        dual bound is an estimate.
        """
        return tol, 0.1 * tol


class AugmentedLagrangianSession(Session):
    """Solve problems along a path.

    Each solve starts from the solution of the previous problem.
    """

    def __init__(self, problem: Problem) -> None:
        from nerm.solvers.interior_point.matrices import RowThreads
        from nerm.solvers.newton_alm.rows import KernelRows, LinearRows

        hypothesis = problem.hypothesis
        self._rows: LinearRows | KernelRows
        if isinstance(hypothesis, KernelHypothesis):
            self._workers = RowThreads(hypothesis.n, 0, count=1)  # one BLAS thread: the tiles of K are small
            with self._workers:
                self._rows = KernelRows(hypothesis, intercept=problem.intercept)
        else:
            self._workers = RowThreads(hypothesis.n, 0)
            self._rows = LinearRows(hypothesis.X, self._workers, intercept=problem.intercept)
        self._blocks: tuple[Block, ...] = ()
        self._weights = np.zeros(0)  # factors and lam of the previous problem
        self._last: Iterate | None = None
        self._tau = 0.0

    def renewed(self, problem: Problem) -> bool:
        """Return True: the session also takes problems with other terms on the same rows.

        A solve then starts from the previous hypothesis, with multipliers that are subgradients at its
        scores.
        """
        return True

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Solve one problem to this relative gap, warm-started from the previous solution."""
        from nerm.solvers.newton_alm.method import AugmentedLagrangian

        check_options("augmented-lagrangian", options, ())
        started = time.perf_counter()
        factors = term_weights(problem)
        lam = square_weight(problem.regularizers) * problem.divisor
        with self._workers, np.errstate(over="ignore", invalid="ignore"):  # of huge weights
            method = AugmentedLagrangian(problem.blocks, factors, self._rows, lam)
            start, tau = self._start(problem, method, deadline)
            found, self._tau = method.run(start, tau, 0.9 * accuracy, deadline)
        self._last = found
        self._blocks = problem.blocks
        self._weights = np.append(factors, lam)
        late = clock.is_up(deadline) and not found.converged
        return Answer(
            coef=self._rows.coef(found.h),
            intercept=float(found.h[-1]),
            multipliers=Multipliers(-found.u, found.thetas),
            claim="converged" if found.converged else "stopped: time is up" if late else "stopped early",
            iterations=found.steps - start.steps,
            solve_seconds=time.perf_counter() - started,
            details={"centres": found.centres - start.centres, "products": found.products - start.products},
            timed_out=late,
        )

    def _start(self, problem: Problem, method: AugmentedLagrangian, deadline: float) -> tuple[Iterate, float]:
        """Return the first iterate and the first smoothing parameter tau.

        The first solve starts at f = 0 with COLD_TAU; on a large kernel problem it starts from the solution
        on a random subset of the rows (`coarse_start`). Later solves start from the previous hypothesis: with
        WARM_TAU if a weight or a block changed, else with the tau at which the previous solve ended.
        """
        from nerm.solvers.newton_alm.method import COLD_TAU, WARM_TAU
        from nerm.solvers.newton_alm.smoothing import multipliers

        last = self._last
        if last is None:
            return coarse_start(method, deadline) if problem.is_kernel else (method.cold(), COLD_TAU)
        if self._blocks != problem.blocks:
            return method.at(last.h), WARM_TAU
        if np.array_equal(self._weights, np.append(method.factors, method.lam)):
            return last, self._tau
        # The previous multipliers of a block with weight 0 are arbitrary: compute them from the scores.
        unused = (self._weights[:-1] == 0)[:, None]
        u: Floats = np.where(unused, multipliers(problem.blocks, last.scores), last.u)
        return replace(last, u=u), WARM_TAU


def coarse_start(method: AugmentedLagrangian, deadline: float) -> tuple[Iterate, float]:
    """Solve a kernel problem on a random subset of its rows, as a start for all rows.

    Return the start and its tau. The subset has n // COARSE_SHARE rows, with weights scaled to the total
    weight of each block. Far from the optimum nearly all rows are at a kink, so a Newton system is as large
    as the problem. At the solution on the subset most rows are away from the kinks. The subset problem is
    started in the same way, recursively; a problem of at most `DIRECT` rows starts at f = 0 with tau =
    COLD_TAU.
    """
    from nerm.solvers.newton_alm.method import COLD_TAU, INNER, WARM_TAU, AugmentedLagrangian
    from nerm.solvers.newton_alm.rows import DIRECT, KernelRows

    rows = method.rows
    assert isinstance(rows, KernelRows)
    n = rows.shape[0]
    blocks = method.blocks.blocks
    part = np.sort(np.random.default_rng(0).permutation(n)[: n // COARSE_SHARE])
    totals = [(block.weights.sum(), block.weights[part].sum()) for block in blocks]
    if n <= DIRECT or not all(some > 0 for _, some in totals):
        return method.cold(), COLD_TAU
    smaller = [
        replace(block.at(part), weights=block.weights[part] * (total / some))
        for block, (total, some) in zip(blocks, totals, strict=True)
    ]
    few = KernelRows(rows.hypothesis.some(part), intercept=rows.intercept)
    coarse = AugmentedLagrangian(smaller, method.factors, few, method.lam)
    found, _ = coarse.run(*coarse_start(coarse, deadline), INNER, deadline)
    start = method.at(rows.expansion(part, few.coef(found.h), float(found.h[-1])))
    return replace(start, thetas=found.thetas), WARM_TAU


SOLVERS = (AugmentedLagrangianSolver(),)
