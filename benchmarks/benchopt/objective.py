"""The neutral SVM in mean form: mean hinge(y f) + lam/(2n) |w|^2 + eta max(mean hinge(v f), mean hinge(-v f))."""

import benchmark_utils  # noqa: F401 (the folder above is on the path from here on)
from benchopt import BaseObjective
from tasks import Task


class Objective(BaseObjective):
    name = "Neutral SVM"
    min_benchopt_version = "1.7"
    requirements = ["numpy", "scipy"]
    parameters = {"eta": [0.0, 1.0], "lam": [1.0]}

    def set_data(self, X, y, viewpoint):
        self.rows = X, y, viewpoint
        self.task = Task("onehot", *X.shape, self.lam, self.eta, accuracy=1e-6, bound=0.0)

    def evaluate_result(self, coef, intercept):
        X, _, viewpoint = self.rows
        positive = X @ coef + intercept > 0
        parity = positive[viewpoint > 0].mean() - positive[viewpoint <= 0].mean()
        return {
            "value": self.task.objective(*self.rows, coef, intercept),
            "parity": abs(parity),
            "positive": positive.mean(),
        }

    def get_one_result(self):
        return {"coef": [0.0] * self.task.d, "intercept": 0.0}

    def get_objective(self):
        return {"task": self.task, "rows": self.rows}
