"""Data that many tests share; each test says what it needs of it."""

from __future__ import annotations

import os

# A conflict between cvxpy's parallel workers and BLAS threads would only add noise: tests are parallel by process.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest


def make_data(seed: int, n: int = 60, d: int = 4, real_viewpoint: bool = False):
    """Return X, y, v with y and v correlated through the first feature, as in the paper's synthetic data."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = [-1.0, 1.0]
    g = X[:, 0] + X[:, 1] + 0.2 * rng.normal(size=n)
    v = g if real_viewpoint else np.where(g > 0, 1.0, -1.0)
    return X, y, v


@pytest.fixture
def data():
    return make_data(0)
