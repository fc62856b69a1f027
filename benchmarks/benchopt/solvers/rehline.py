"""ReHLine, inside a search over theta: see `benchmarks/peers.py`."""

from itertools import islice

import benchmark_utils  # noqa: F401
import peers
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "rehline"
    sampling_strategy = "iteration"
    requirements = ["pip::rehline"]

    def set_objective(self, task, rows):
        self.task, self.rows = task, rows

    def run(self, n_iter):
        answers = peers.rehline(self.task, *self.rows)
        for answer in islice(answers, 1, n_iter + 2):
            self.found = answer

    def get_result(self):
        return {"coef": self.found.coef, "intercept": float(self.found.intercept)}
