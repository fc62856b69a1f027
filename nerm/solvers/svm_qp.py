"""The reference QPs of `nerm.svm` as solvers of a problem: adapters that translate a problem and a result."""

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nerm.atoms.hinges import Hinge
from nerm.atoms.regularizer import SquaredL2
from nerm.certify.multipliers import Multipliers
from nerm.certify.solution import Answer
from nerm.model.blocks import one_sided, term_weights
from nerm.model.problem import Problem
from nerm.solvers.base import OwnSolver


class _ReferenceQP(OwnSolver):
    """An explicit QP; option ``qp_solver`` names its solver, which gets the other options."""

    function: ClassVar[str]
    takes_kernels: ClassVar[bool]

    def requirements(self) -> str:
        """Return one phrase: which problems it takes."""
        kind = "a" if self.takes_kernels else "a linear"
        return f"{kind} neutral SVM: one hinge risk, squared l2, at most one hinge neutrality term"

    def why_unsupported(self, problem: Problem) -> str | None:
        """Name the first part that a neutral SVM does not have."""
        if one_sided(problem):
            return "a neutrality term of one side"
        risks = [f for f, block in zip(term_weights(problem), problem.blocks, strict=True) if block.side == 0]
        if len(risks) != 1 or not risks[0] > 0:
            return f"{len(risks)} risks, {sum(factor > 0 for factor in risks)} of positive weight"
        for block in problem.blocks:
            if not isinstance(block.atom, Hinge):
                return repr(block.atom)
        if len(problem.etas) > 1:
            return f"{len(problem.etas)} neutrality terms"
        for _, omega in problem.regularizers:
            if not isinstance(omega, SquaredL2):
                return repr(omega)
        if not sum(weight for weight, _ in problem.regularizers) > 0:
            return "no squared l2 regularizer of positive weight"
        return "a kernel" if problem.is_kernel and not self.takes_kernels else None

    def answer(self, problem: Problem, accuracy: float, options: dict[str, Any]) -> Answer:
        """Solve the QP, more accurately than the gap that is wanted."""
        from nerm import svm

        started = time.perf_counter()
        risk, *sides = problem.blocks
        lam = problem.divisor * sum(weight for weight, _ in problem.regularizers)
        eta = float(term_weights(problem)[1]) if sides else 0.0
        hypothesis: Any = problem.hypothesis
        settings: dict[str, Any] = {"kernel": "precomputed"} if problem.is_kernel else {}
        weighted = bool(sides) and sides[0].weights.any()
        qp = getattr(svm, self.function)(
            hypothesis.gram if problem.is_kernel else hypothesis.X,
            risk.targets,
            sides[0].targets if sides else None,
            lam,
            eta if weighted else 0.0,
            neutrality_weight=sides[0].weights if weighted else None,
            intercept=problem.intercept,
            sample_weight=term_weights(problem)[0] * risk.weights,
            **settings,
        )
        built = time.perf_counter()
        own = {name: value for name, value in options.items() if name != "qp_solver"}
        solution = qp.solve(options.get("qp_solver", "clarabel"), max(1e-12, 1e-3 * accuracy), **own)
        seconds: dict[str, Any] = {"build_seconds": built - started}
        seconds["solve_seconds"] = time.perf_counter() - built
        found = solution.model
        if found is None:
            return Answer(None, 0.0, claim=solution.status, **seconds)
        alpha, plus, minus, theta = found.multipliers
        rows = np.array([alpha, plus, minus] if sides else [alpha])
        multipliers = Multipliers(rows, np.array([theta] if sides else []))
        return Answer(found.coef, found.intercept, multipliers, claim=solution.status, **seconds)


@dataclass(frozen=True)
class DualQP(_ReferenceQP):
    """The exact dual as an explicit QP (`nerm.svm.dual_qp`)."""

    name: str = "dual-qp"
    function: ClassVar[str] = "dual_qp"
    takes_kernels: ClassVar[bool] = True


@dataclass(frozen=True)
class PrimalQP(_ReferenceQP):
    """The primal as an explicit QP (`nerm.svm.primal_qp`)."""

    name: str = "primal-qp"
    function: ClassVar[str] = "primal_qp"
    takes_kernels: ClassVar[bool] = False


SOLVERS = (DualQP(), PrimalQP())
