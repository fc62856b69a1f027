"""nerm's `Problem.solve`, its binding of the data and its certificate in the time."""

import benchmark_utils
import peers
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "nerm"
    sampling_strategy = "tolerance"
    stopping_criterion = benchmark_utils.EVER_FINER
    requirements = ["pip::nerm-learn"]
    parameters = {"solver": ["auto", "augmented-lagrangian"]}

    def set_objective(self, task, rows):
        self.task, self.rows = task, rows
        peers.problem(peers.small(task), *(part[:200] for part in rows)).solve(solver=self.solver)

    def run(self, tolerance):
        self.found = peers.problem(self.task, *self.rows).solve(
            solver=self.solver, tol=benchmark_utils.bounded(tolerance)
        )

    def get_result(self):
        return {"coef": self.found.coef, "intercept": self.found.intercept}
