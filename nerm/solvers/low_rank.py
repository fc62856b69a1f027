"""Kernel problems through the linear engine: a pivoted Cholesky factor of the Gram matrix takes the place of the data.

With K = Z Z' + E the problem is linear on the rows of Z, and its w is the kernel expansion K c with c on the
pivots, exactly (`nerm.solvers.linalg.pivoted_cholesky`). E concerns the dual bound alone, which is computed
against the *true* kernel: leaving it out costs about (mu/2) c'Ec with forces c / (n mu), so the factor stops
where its diagonal is below accuracy * n mu.
"""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from nerm.certify.solution import Answer
from nerm.model.hypothesis import GRAM_LIMIT, KernelHypothesis
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.base import NermSolver, Session
from nerm.solvers.interior_point.solver import iteration_limit, squared_norm, unsupported_term


@dataclass(frozen=True)
class LowRank(NermSolver):
    """Pivoted Cholesky, then the interior-point engine."""

    name: str = "low-rank"
    keeps_time = True
    rank: ClassVar[int | None] = 4
    merges_rows: ClassVar[bool] = True

    def requirements(self) -> str:
        """One phrase: what a problem must be like."""
        return f"a kernel problem of at most {GRAM_LIMIT} rows with the atoms and weights of 'interior-point'"

    def why_unsupported(self, problem: Problem) -> str | None:
        """Name the first thing in the way: no kernel, too many rows, or what the engine does not take."""
        if not problem.is_kernel:
            return "no kernel"
        if problem.hypothesis.n > GRAM_LIMIT:
            return f"{problem.hypothesis.n} rows"
        return unsupported_term(problem)

    def open(self, problem: Problem) -> Session:
        """Start a session, which factors when it is asked."""
        return LowRankSession(problem)

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return a second, finer accuracy as well: the estimate behind the rank is not a bound."""
        return tol, 1e-3 * tol


class LowRankSession(Session):
    """One kernel problem and its relatives: the factor is kept as long as it is fine enough, and so is the engine."""

    def __init__(self, problem: Problem) -> None:
        assert isinstance(problem.hypothesis, KernelHypothesis)
        self._problem, self._gram, self._fineness = problem, problem.hypothesis.gram, np.inf

    def _prepare(self, fineness: float, deadline: float) -> None:
        """Factor so that every diagonal entry of E is at most `fineness`, or rounding, or until time is up."""
        from nerm.solvers.interior_point import Engine
        from nerm.solvers.linalg.pivoted_cholesky import pivoted_cholesky

        if self._fineness <= fineness:
            return
        diagonal = np.diag(self._gram)
        least = max(fineness / max(float(diagonal.max()), np.finfo(float).tiny), 1e-13)
        self._factor = pivoted_cholesky(
            lambda columns: self._gram[:, columns], diagonal, least, deadline=deadline
        )
        problem = self._problem
        self._engine = Engine(self._factor.Z, problem.blocks, problem.divisor, intercept=problem.intercept)
        self._fineness = np.inf if clock.is_up(deadline) else fineness

    def renewed(self, problem: Problem) -> bool:
        """Take other blocks; the factor, the engine and the last solutions stay."""
        self._problem = problem
        if np.isfinite(self._fineness):
            self._engine.blocks = problem.blocks
        return True

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Solve one problem."""
        return next(self.answers([problem], accuracy, options, deadline))

    def answers(
        self,
        problems: Sequence[Problem],
        accuracy: float,
        options: dict[str, Any],
        deadline: float = clock.NEVER,
    ) -> Iterator[Answer]:
        """Factor, in half of the time at most, solve the linear problems, and go back to the kernel."""
        limit = iteration_limit(options, "low-rank")
        started = time.perf_counter()
        fineness = 0.1 * accuracy * self._problem.divisor * min(map(squared_norm, problems))
        self._prepare(fineness, clock.share(deadline, 2))
        share = (time.perf_counter() - started) / len(problems)
        points = [(problem.factors, squared_norm(problem)) for problem in problems]
        answers = self._engine.path(points, 0.3 * accuracy, max_iterations=limit, deadline=deadline)
        return (self._expanded(answer, share) for answer in answers)

    def _expanded(self, answer: Answer, build_seconds: float) -> Answer:
        """Return an answer with one coefficient a row instead of w."""
        assert answer.coef is not None
        coef = np.zeros(len(self._gram))
        coef[self._factor.pivots] = self._factor.expansion(answer.coef)
        details = {**answer.details, "rank": len(self._factor.pivots)}
        late = answer.timed_out or self._fineness == np.inf
        return replace(answer, coef=coef, build_seconds=build_seconds, details=details, timed_out=late)


SOLVERS = (LowRank(),)
