"""Published data sets, one-hot, by the loaders of nerm; their files are in the folder NERM_DATA."""

import os

import benchmark_utils  # noqa: F401
from benchopt import BaseDataset

from nerm.datasets import load


class Dataset(BaseDataset):
    name = "published"
    requirements = ["pip::nerm-learn"]
    parameters = {"data": ["adult", "bank", "german"]}

    def skip(self):
        return "NERM_DATA" not in os.environ, "needs a folder of UCI files, named by NERM_DATA"

    def get_data(self):
        data = load(self.data, coding="one-hot")
        return {"X": data.X, "y": data.y, "viewpoint": data.viewpoint}
