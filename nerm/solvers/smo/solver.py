"""The SMO as a solver.

A session keeps the Gram matrix, and theta and the multipliers of the previous solve.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nerm.certify.solution import Answer
from nerm.model.blocks import two_sided, value_at_zero
from nerm.model.hypothesis import GRAM_LIMIT, KernelHypothesis
from nerm.model.kernels import Linear
from nerm.model.problem import Problem
from nerm.solvers import auto, clock
from nerm.solvers.base import NermSolver, Session, check_options
from nerm.solvers.interior_point.solver import unsupported_term
from nerm.validation import as_positive


@dataclass(frozen=True)
class SMO(NermSolver):
    """Pair steps on the exact dual inside a search over theta (`nerm.solvers.smo`)."""

    name: str = "smo"
    keeps_time = True
    cost = staticmethod(auto.pair_steps)
    merges_rows: ClassVar[bool] = True
    splits_blocks: ClassVar[bool] = True

    def requirements(self) -> str:
        """Return a phrase that says which problems the solver takes."""
        return (
            "a neutral SVM: piecewise quadratic atoms (hinge, pinball, squared hinge), squared l2, at most "
            f"one neutrality term, a free intercept, at most {GRAM_LIMIT} rows unless the Gram matrix is "
            "given"
        )

    def why_unsupported(self, problem: Problem) -> str | None:
        """Return the first property that the SMO does not take, or None."""
        for block in problem.blocks:
            alone_unbounded = block.side == 0 and not block.domain[0] <= 0 <= block.domain[1]
            if not block.atom.derived.is_quadratic or alone_unbounded:
                return repr(block.atom)
        if not value_at_zero(problem) > 0:
            return "no risk of positive weight"
        if len(two_sided(problem)) > 1:
            return f"{len(two_sided(problem))} neutrality terms"
        if unsupported := unsupported_term(problem):
            return unsupported
        if not problem.intercept:
            return "no intercept"
        hypothesis = problem.hypothesis
        few = hypothesis.n <= GRAM_LIMIT
        fits = hypothesis.keeps_gram if isinstance(hypothesis, KernelHypothesis) else few
        return None if fits else f"{hypothesis.n} rows"

    def open(self, problem: Problem) -> Session:
        """Start a session; the Gram matrix is computed once."""
        return SMOSession(problem)


class SMOSession(Session):
    """Solve problems along a path with one Gram matrix.

    Each solve starts from the previous solution.
    """

    def __init__(self, problem: Problem) -> None:
        hypothesis = problem.hypothesis
        if isinstance(hypothesis, KernelHypothesis):
            self._gram = np.ascontiguousarray(hypothesis.gram)
        else:
            self._gram = Linear()(hypothesis.X, hypothesis.X)
        self._last = 0.5, np.zeros((len(problem.blocks), hypothesis.n))  # theta and the multipliers

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Solve one problem to this relative gap, started from the previous solution."""
        from nerm.solvers.smo.theta_search import TIME_IS_UP, ThetaSearch  # compiled code takes long to load

        check_options("smo", options, ("max_iter",))
        started = time.perf_counter()
        most = max(1_000_000, 200 * problem.hypothesis.n)
        most = int(as_positive(options.get("max_iter", most), "max_iter"))
        search = ThetaSearch(problem, self._gram, 0.9 * accuracy, most, deadline)
        state, claim = search.run(*self._last)
        multipliers = state.multipliers()
        self._last = state.theta, multipliers.rows
        return Answer(
            coef=problem.hypothesis.adjoint(state.at.a / state.lam),
            intercept=state.standing().intercept,
            multipliers=multipliers,
            claim=claim,
            iterations=search.iterations,
            solve_seconds=time.perf_counter() - started,
            details={"outer_iterations": search.outer},
            timed_out=claim == TIME_IS_UP,
        )


SOLVERS = (SMO(),)
