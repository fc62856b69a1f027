"""Kernel problems through the linear engine: a pivoted Cholesky factor of the Gram matrix takes the place of the data.

With K ~ L L' the problem is linear on the rows of L. Its multipliers give the forces c_i, and by the representer
theorem f = (1 / n mu) sum_i c_i k(x_i, .) + b with the *true* kernel, against which the answer is certified. Leaving
out a remainder E = K - L L' costs at most about mu/2 c'Ec / (n mu)^2, so the factor stops where its diagonal is below
accuracy * n mu.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nerm.blocks import make_blocks, stack, total_force
from nerm.hypothesis import GRAM_LIMIT, Kernelized, Linear
from nerm.problem import Problem
from nerm.solvers.base import OWN_PACKAGE, Answer, Session, Solver
from nerm.solvers.interior_point import InteriorPoint


@dataclass(frozen=True)
class LowRank(Solver, Session):
    """Pivoted Cholesky, then the interior-point engine."""

    name: str = "low-rank"
    package: str = OWN_PACKAGE

    @property
    def module(self) -> str:
        """Part of nerm itself."""
        return "nerm"

    def needs(self) -> str:
        """One phrase: what a problem must be like."""
        return f"a kernel problem of at most {GRAM_LIMIT} rows with the atoms and weights of 'interior-point'"

    def obstacle(self, problem: Problem) -> str | None:
        """Name the first thing in the way: no kernel, too many rows, or what the engine does not take."""
        if not problem.is_kernel:
            return "no kernel"
        if problem.n > GRAM_LIMIT:
            return f"{problem.n} rows"
        return InteriorPoint().obstacle(replace(problem, hypothesis=Linear(np.zeros((problem.n, 1)))))

    def open(self, problem: Problem) -> Session:
        """Return itself; the Gram matrix is kept by the problem's own hypothesis."""
        return self

    def answer(self, problem: Problem, accuracy: float, options: dict[str, Any]) -> Answer:
        """Factor, solve the linear problem, and go back to the kernel."""
        assert isinstance(problem.hypothesis, Kernelized)
        started = time.perf_counter()
        mu = sum(weight for weight, _ in problem.regularizers)
        factor = pivoted_cholesky(problem.hypothesis.gram, 0.1 * accuracy * problem.n * mu)
        linear = replace(problem, hypothesis=Linear(factor))
        seconds = time.perf_counter() - started
        answer = InteriorPoint().answer(linear, 0.3 * accuracy, options)
        assert answer.multipliers is not None
        forces = total_force(make_blocks(problem, answer.multipliers.thetas), stack(answer.multipliers))
        return replace(
            answer,
            coef=forces / (problem.n * mu),
            build_seconds=answer.build_seconds + seconds,
            details={**answer.details, "rank": factor.shape[1]},
        )

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return a second, finer accuracy as well: the estimate behind the rank is not a bound."""
        return tol, 1e-3 * tol


def pivoted_cholesky(K: np.ndarray, tol: float) -> np.ndarray:
    """Return L with K ~ L L', every diagonal entry of the remainder at most tol (or at the level of rounding).

    >>> K = np.array([[2.0, 2.0], [2.0, 2.0]])
    >>> pivoted_cholesky(K, 1e-12).shape
    (2, 1)
    """
    from scipy.linalg.lapack import dpstrf

    floor = len(K) * np.finfo(float).eps * max(float(np.diag(K).max()), np.finfo(float).tiny)
    C, pivots, rank, _ = dpstrf(K, tol=max(tol, floor), lower=1)
    L = np.zeros((len(K), max(rank, 1)))
    L[pivots - 1] = np.tril(C)[:, : max(rank, 1)] if rank else 0.0
    return L


SOLVERS = (LowRank(),)
