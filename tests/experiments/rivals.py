"""Classifiers that misbehave; in a module of their own, so that worker processes can import them."""

from __future__ import annotations

import os
import time
import warnings

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin


class Rival(ClassifierMixin, BaseEstimator):
    """Scores by the first column; `mood` tells what goes wrong."""

    def __init__(self, mood="calm", eta=0.0, random_state=None):
        self.mood, self.eta, self.random_state = mood, eta, random_state

    def fit(self, X, y, viewpoint=None):
        self.classes_, self.seed_ = np.unique(y), self.random_state
        if self.mood == "fails" and self.eta == 1.0:
            raise RuntimeError("no luck\nwith two lines, and a comma")
        if self.mood == "complains":
            warnings.warn("odd data", UserWarning, stacklevel=2)
        if self.mood == "dies" and self.random_state % 2 == 0:
            os._exit(3)
        if self.mood == "slow":
            time.sleep(0.15)
        return self

    def decision_function(self, X):
        scores = np.asarray(X[:, 0].todense()).ravel() - 0.5
        return scores * np.nan if self.mood == "nan" else scores + 1e-9 * (self.random_state or 0)
