"""LIBLINEAR, by scikit-learn's LinearSVC: the plain SVM only."""

import benchmark_utils
import peers
from benchopt import BaseSolver
from sklearn.svm import LinearSVC


class Solver(BaseSolver):
    name = "liblinear"
    sampling_strategy = "tolerance"
    stopping_criterion = benchmark_utils.EVER_FINER
    requirements = ["scikit-learn"]

    def skip(self, task, rows):
        return task.eta > 0, "knows no neutrality"

    def set_objective(self, task, rows):
        self.rows = rows
        settings = {"loss": "hinge", "dual": True, "intercept_scaling": peers.CONSTANT, "max_iter": 10**6}
        self.machine = LinearSVC(C=1 / task.lam, random_state=0, **settings)

    def run(self, tolerance):
        self.machine.set_params(tol=benchmark_utils.bounded(tolerance)).fit(*self.rows[:2])

    def get_result(self):
        return {"coef": self.machine.coef_[0], "intercept": float(self.machine.intercept_[0])}
