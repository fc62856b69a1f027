"""The neutral SVM's own algorithms as solvers of a `Problem`: explicit QPs, SMO, the subgradient method.

`nerm.svm` speaks the paper's sum form. Times n, the mean form of a problem with risk weight r becomes that sum form
with sample weights r s_i, lambda = n mu and the same eta.
"""

from __future__ import annotations

import inspect
import time
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nerm.atoms.hinge import Hinge
from nerm.atoms.squared_l2 import SquaredL2
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.hypothesis import KernelHypothesis
from nerm.multipliers import Multipliers
from nerm.problem import Problem
from nerm.solution import Answer
from nerm.solvers.base import OwnSolver


class NeutralSVMSolver(OwnSolver):
    """What the algorithms of `nerm.svm` share: which problems they take, and how those read in the sum form."""

    takes_kernels: ClassVar[bool] = True
    takes_no_intercept: ClassVar[bool] = True

    def needs(self) -> str:
        """One phrase: what a problem must be like."""
        kind = "a" if self.takes_kernels else "a linear"
        free = "" if self.takes_no_intercept else ", a free intercept"
        return f"{kind} neutral SVM: one hinge risk, squared l2, at most one hinge neutrality term{free}"

    def obstacle(self, problem: Problem) -> str | None:
        """Name the first thing that a neutral SVM does not have."""
        risks = [factor for factor, block in zip(problem.factors, problem.blocks, strict=True) if block.side == 0]
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
        if problem.is_kernel and not self.takes_kernels:
            return "a kernel"
        if not problem.intercept and not self.takes_no_intercept:
            return "no intercept"
        return None

    def answer(self, problem: Problem, accuracy: float, options: dict[str, Any]) -> Answer:
        """Translate, run, translate back."""
        started = time.perf_counter()
        data = _sum_form(problem)
        model = self.run(problem, data, accuracy, options)
        seconds = time.perf_counter() - started
        if model is None:
            return Answer(None, 0.0, claim="no usable point", solve_seconds=seconds)
        return Answer(
            coef=_coefficients(problem, model),
            intercept=float(model.intercept) if problem.intercept else 0.0,
            multipliers=_multipliers(problem, data, model),
            claim=str(model.status),
            iterations=int(model.iterations) or None,
            solve_seconds=seconds,
        )

    @abstractmethod
    def run(self, problem: Problem, data: dict[str, Any], accuracy: float, options: dict[str, Any]) -> Any:
        """Return the `nerm.svm.NeutralSVM` that the algorithm finds, or None."""


def _sum_form(problem: Problem) -> dict[str, Any]:
    """Return the arguments of `nerm.svm` for this problem."""
    risk, *sides = problem.blocks
    return {
        "X": problem.hypothesis.X,
        "y": risk.targets,
        "viewpoint": sides[0].targets if sides else None,
        "lam": problem.divisor * sum(weight for weight, _ in problem.regularizers),
        "eta": float(problem.etas.sum()),
        "sample_weight": problem.factors[0] * risk.weights,
        "neutrality_weight": sides[0].weights if sides else None,
    }


def _check_options(algorithm: Callable[..., Any], options: dict[str, Any], taken: set[str]) -> None:
    """Refuse an option that the algorithm does not have, by name."""
    known = set(inspect.signature(algorithm).parameters) - taken
    for name in options:
        if name not in known:
            raise UnknownNameError(f"an option of {algorithm.__name__!r}", name, known)


def _kernel(problem: Problem) -> Any:
    return problem.hypothesis.kernel if isinstance(problem.hypothesis, KernelHypothesis) else "linear"


def _coefficients(problem: Problem, model: Any) -> np.ndarray:
    """Return w, or for kernels c = a / lambda."""
    return model.a / model.lam if problem.is_kernel else model.coef


def _multipliers(problem: Problem, data: dict[str, Any], model: Any) -> Multipliers:
    """Return the multipliers on the unit scale: alpha / (r s), beta / (nu u)."""

    def unit(values: np.ndarray, bound: np.ndarray) -> np.ndarray:
        return np.divide(values, bound, out=np.zeros(len(values)), where=bound > 0)

    alpha = unit(model.alpha, data["sample_weight"])
    if not len(problem.etas):
        return Multipliers(alpha[None, :], np.empty(0))
    u = data["neutrality_weight"]
    plus, minus = unit(model.beta_plus, model.nu_plus * u), unit(model.beta_minus, model.nu_minus * u)
    return Multipliers(np.stack([alpha, plus, minus]), np.array([model.theta]))


@dataclass(frozen=True)
class SMO(NeutralSVMSolver):
    """Pair steps on the exact dual inside a search over nu+ (`nerm.svm.smo`)."""

    name: str = "smo"
    takes_no_intercept: ClassVar[bool] = False

    def run(self, problem: Problem, data: dict[str, Any], accuracy: float, options: dict[str, Any]) -> Any:
        """Run the SMO to this relative gap."""
        from nerm.svm import smo

        _check_options(smo, options, {*data, "kernel", "tol", "variant"})
        return smo(**data, kernel=_kernel(problem), tol=0.9 * accuracy, **options)


@dataclass(frozen=True)
class DualQP(NeutralSVMSolver):
    """The exact dual as an explicit QP (`nerm.svm.dual_qp`); option ``qp_solver`` names who solves it."""

    name: str = "dual-qp"

    def run(self, problem: Problem, data: dict[str, Any], accuracy: float, options: dict[str, Any]) -> Any:
        """Solve the QP, finer than the gap that is wanted."""
        from nerm.svm import dual_qp

        X = data.pop("X")
        qp = dual_qp(X, **data, kernel=_kernel(problem), intercept=problem.intercept)
        return _solved(qp, accuracy, options)


@dataclass(frozen=True)
class PrimalQP(NeutralSVMSolver):
    """The primal as an explicit QP (`nerm.svm.primal_qp`); option ``qp_solver`` names who solves it."""

    name: str = "primal-qp"
    takes_kernels: ClassVar[bool] = False

    def run(self, problem: Problem, data: dict[str, Any], accuracy: float, options: dict[str, Any]) -> Any:
        """Solve the QP, finer than the gap that is wanted."""
        from nerm.svm import primal_qp

        return _solved(primal_qp(**data, intercept=problem.intercept), accuracy, options)


def _solved(qp: Any, accuracy: float, options: dict[str, Any]) -> Any:
    options = {"qp_solver": "clarabel", **options}
    name = options.pop("qp_solver")
    try:
        return qp.solve(name, tol=max(1e-12, 1e-3 * accuracy), **options).model
    except (TypeError, ValueError) as error:
        if not options or isinstance(error, InvalidInputError):
            raise
        raise InvalidInputError(
            f"every option must be one of {name}'s own, or 'qp_solver'", f"{sorted(options)} ({error})", "Leave it out"
        ) from error


@dataclass(frozen=True)
class Subgradient(NeutralSVMSolver):
    """The paper's subgradient method, corrected (`nerm.svm.subgradient_method`): slow, with an honest gap."""

    name: str = "subgradient"
    takes_kernels: ClassVar[bool] = False

    def run(self, problem: Problem, data: dict[str, Any], accuracy: float, options: dict[str, Any]) -> Any:
        """Run until the gap or the number of steps is reached."""
        from nerm.svm import subgradient_method

        _check_options(subgradient_method, options, {*data, "intercept", "tol"})
        return subgradient_method(**data, intercept=problem.intercept, tol=0.9 * accuracy, **options)


SOLVERS = (SMO(), DualQP(), PrimalQP(), Subgradient())
