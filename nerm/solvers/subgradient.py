"""The paper's subgradient method, corrected, as a solver."""

import time
from dataclasses import dataclass, replace
from typing import Any

from nerm.certify.solution import Answer
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.base import check_options
from nerm.solvers.svm_qp import NeutralSVMSolver
from nerm.validation import as_positive


@dataclass(frozen=True)
class Subgradient(NeutralSVMSolver):
    """Averaged subgradient steps (`nerm.svm.subgradient_method`): slow, with an honest gap."""

    name: str = "subgradient"
    keeps_time = True

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Run until the gap or the number of steps is reached, or time is up."""
        from nerm.svm.subgradient import descend

        check_options("subgradient", options, descend, {"problem", "tol", "deadline"})
        if "max_iter" in options:
            options = {**options, "max_iter": int(as_positive(options["max_iter"], "max_iter"))}
        started = time.perf_counter()
        answer = descend(problem, 0.9 * accuracy, **options, deadline=deadline)
        return replace(answer, solve_seconds=time.perf_counter() - started)


SOLVERS = (Subgradient(),)
