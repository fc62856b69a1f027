"""Load the paper's data sets, and code tables as the paper does.

``load(name, coding=…)`` returns a `Dataset`; ``Discretize`` and ``OneHot`` are the codings as transformers.

>>> from nerm.datasets import load
>>> data = load("synthetic", n=6, random_state=0)
>>> data.X.shape, sorted(set(data.y.tolist()))
((6, 10), [-1.0, 1.0])
"""

from nerm.datasets.coding import Discretize, OneHot
from nerm.datasets.loading import Dataset, DataUnavailableError, load, names

__all__ = ["DataUnavailableError", "Dataset", "Discretize", "OneHot", "load", "names"]
