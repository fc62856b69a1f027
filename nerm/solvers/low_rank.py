"""Kernel problems through the linear engine: a pivoted Cholesky factor of the Gram matrix takes the place of the data.

With K = Z Z' + E the problem is linear on the rows of Z, and its w is the kernel expansion K c with c on the pivots,
exactly (`nerm.engine.lowrank`). E concerns the dual bound alone, which is computed against the *true* kernel: leaving
it out costs about (mu/2) c'Ec with forces c / (n mu), so the factor stops where its diagonal is below accuracy * n mu.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm.hypothesis import GRAM_LIMIT, KernelHypothesis, LinearHypothesis
from nerm.problem import Problem
from nerm.solution import Answer
from nerm.solvers.base import OwnSolver
from nerm.solvers.interior_point import InteriorPoint


@dataclass(frozen=True)
class LowRank(OwnSolver):
    """Pivoted Cholesky, then the interior-point engine."""

    name: str = "low-rank"

    def needs(self) -> str:
        """One phrase: what a problem must be like."""
        return f"a kernel problem of at most {GRAM_LIMIT} rows with the atoms and weights of 'interior-point'"

    def obstacle(self, problem: Problem) -> str | None:
        """Name the first thing in the way: no kernel, too many rows, or what the engine does not take."""
        if not problem.is_kernel:
            return "no kernel"
        if problem.hypothesis.n > GRAM_LIMIT:
            return f"{problem.hypothesis.n} rows"
        return InteriorPoint().obstacle(
            replace(problem, hypothesis=LinearHypothesis(np.zeros((problem.hypothesis.n, 1))))
        )

    def answer(self, problem: Problem, accuracy: float, options: dict[str, Any]) -> Answer:
        """Factor, solve the linear problem, and go back to the kernel."""
        assert isinstance(problem.hypothesis, KernelHypothesis)
        started = time.perf_counter()
        mu = sum(weight for weight, _ in problem.regularizers)
        factor = _factor(problem.hypothesis, 0.1 * accuracy * problem.divisor * mu)
        linear = replace(problem, hypothesis=LinearHypothesis(factor.Z))
        seconds = time.perf_counter() - started
        answer = InteriorPoint().answer(linear, 0.3 * accuracy, options)
        assert answer.coef is not None
        coef = np.zeros(problem.hypothesis.n)
        coef[factor.pivots] = factor.expansion(answer.coef)
        return replace(
            answer,
            coef=coef,
            build_seconds=answer.build_seconds + seconds,
            details={**answer.details, "rank": len(factor.pivots)},
        )

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return a second, finer accuracy as well: the estimate behind the rank is not a bound."""
        return tol, 1e-3 * tol


def _factor(hypothesis: KernelHypothesis, tol: float) -> Any:
    """Return K = Z Z' + E with every diagonal entry of E at most tol, or at the level of rounding."""
    from nerm.engine.lowrank import pivoted_cholesky

    gram = hypothesis.gram
    diagonal = np.diag(gram)
    largest = max(float(diagonal.max()), np.finfo(float).tiny)
    return pivoted_cholesky(lambda columns: gram[:, columns], diagonal, max(tol / largest, 1e-13))


SOLVERS = (LowRank(),)
