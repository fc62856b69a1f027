"""The families of `benchmarks/tasks.py`, drawn with a seed that no constant was chosen on."""

import benchmark_utils  # noqa: F401
import tasks
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "drawn"
    requirements = ["numpy", "scipy"]
    parameters = {
        "family": ["one_hot", "correlated", "mixed", "gaussian"],
        "n": [10_000],
        "seed": [7],
    }

    def get_data(self):
        X, y, viewpoint = getattr(tasks, self.family)(self.n, seed=self.seed)
        return {"X": X, "y": y, "viewpoint": viewpoint}
