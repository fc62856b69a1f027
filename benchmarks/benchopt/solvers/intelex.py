"""scikit-learn-intelex: the plain SVM with a linear kernel, an SMO on its own BLAS."""

import benchmark_utils
import numpy as np
import scipy.sparse as sp
from benchopt import BaseSolver


class Solver(BaseSolver):
    name = "intelex"
    sampling_strategy = "tolerance"
    stopping_criterion = benchmark_utils.EVER_FINER
    requirements = ["scikit-learn-intelex"]

    def skip(self, task, rows):
        return task.eta > 0, "knows no neutrality"

    def set_objective(self, task, rows):
        from sklearnex.svm import SVC

        self.rows, self.machine = rows, SVC(kernel="linear", C=1 / task.lam)

    def run(self, tolerance):
        self.machine.set_params(tol=benchmark_utils.bounded(tolerance)).fit(*self.rows[:2])

    def get_result(self):
        coef = self.machine.dual_coef_ @ self.machine.support_vectors_
        coef = coef.toarray() if sp.issparse(coef) else coef
        return {"coef": np.ravel(coef), "intercept": float(self.machine.intercept_[0])}
