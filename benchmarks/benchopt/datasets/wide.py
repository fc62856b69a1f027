"""Wide sparse rows, as of texts: `benchmarks/wide.py`."""

import benchmark_utils  # noqa: F401
import wide
from benchopt import BaseDataset


class Dataset(BaseDataset):
    name = "wide"
    requirements = ["numpy", "scipy", "pandas"]
    parameters = {"n, d": [(3_000, 9_000)], "zipf": [True, False], "seed": [7]}

    def get_data(self):
        X, y, viewpoint = wide.drawn(self.n, self.d, zipf=self.zipf, seed=self.seed)
        return {"X": X, "y": y, "viewpoint": viewpoint}
