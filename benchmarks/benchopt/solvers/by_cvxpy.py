"""General solvers on the same model, written in cvxpy: compiling it is part of the time."""

import benchmark_utils
import numpy as np
import peers
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "cvxpy"
    sampling_strategy = "tolerance"
    stopping_criterion = benchmark_utils.EVER_FINER
    requirements = ["cvxpy", "clarabel", "piqp", "scs"]
    parameters = {"solver": ["clarabel", "piqp", "scs"]}

    def set_objective(self, task, rows):
        self.task, self.rows = task, rows

    def run(self, tolerance):
        self.coef, self.intercept, _ = peers.solved_primal(
            self.task, self.rows, self.solver, benchmark_utils.bounded(tolerance)
        )

    def get_result(self):
        if np.isfinite(self.coef).all():
            return {"coef": self.coef, "intercept": self.intercept}
        return {"coef": np.zeros(self.task.d), "intercept": 0.0}  # it gave no answer
