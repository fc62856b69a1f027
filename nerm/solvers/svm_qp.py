"""The neutral SVM's explicit QPs as solvers: written down on their own (`nerm.svm`), they check the rest."""

from __future__ import annotations

import time
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from nerm.atoms.hinge import Hinge
from nerm.atoms.squared_l2 import SquaredL2
from nerm.certify.solution import Answer
from nerm.model.problem import Problem
from nerm.solvers.base import OwnSolver

if TYPE_CHECKING:
    from nerm.svm import QP


class NeutralSVMSolver(OwnSolver):
    """What the algorithms of `nerm.svm` share: which problems they take."""

    takes_kernels: ClassVar[bool] = False

    def requirements(self) -> str:
        """One phrase: what a problem must be like."""
        kind = "a" if self.takes_kernels else "a linear"
        return f"{kind} neutral SVM: one hinge risk, squared l2, at most one hinge neutrality term"

    def why_unsupported(self, problem: Problem) -> str | None:
        """Name the first thing that a neutral SVM does not have."""
        if problem.one_sided:
            return "a neutrality term of one side"
        risks = [
            factor for factor, block in zip(problem.factors, problem.blocks, strict=True) if block.side == 0
        ]
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


class _ByQP(NeutralSVMSolver):
    """One of the two QPs; option ``qp_solver`` names who solves it, the others are that solver's own."""

    @abstractmethod
    def qp(self, problem: Problem) -> QP:
        """Write the QP down."""

    def answer(self, problem: Problem, accuracy: float, options: dict[str, Any]) -> Answer:
        """Solve the QP, finer than the gap that is wanted."""
        started = time.perf_counter()
        own = {name: value for name, value in options.items() if name != "qp_solver"}
        qp = self.qp(problem)
        built = time.perf_counter()
        answer = qp.answer(*qp.point(options.get("qp_solver", "clarabel"), max(1e-12, 1e-3 * accuracy), own))
        return replace(answer, build_seconds=built - started, solve_seconds=time.perf_counter() - built)


@dataclass(frozen=True)
class DualQP(_ByQP):
    """The exact dual as an explicit QP (`nerm.svm.dual_qp`)."""

    name: str = "dual-qp"
    takes_kernels: ClassVar[bool] = True

    def qp(self, problem: Problem) -> QP:
        """Write the QP down."""
        from nerm.svm.dual import dual_qp_of

        return dual_qp_of(problem)


@dataclass(frozen=True)
class PrimalQP(_ByQP):
    """The primal as an explicit QP (`nerm.svm.primal_qp`)."""

    name: str = "primal-qp"

    def qp(self, problem: Problem) -> QP:
        """Write the QP down."""
        from nerm.svm.primal import primal_qp_of

        return primal_qp_of(problem)


SOLVERS = (DualQP(), PrimalQP())
