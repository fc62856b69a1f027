"""Products with X, dense and sparse, on one thread and on several, against numpy."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nerm.solvers.interior_point.matrices import Features
from nerm.solvers.interior_point.threads import RowThreads


def drawn(kind, n, d=7):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((n, d)) < 0.4, rng.normal(size=(n, d)), 0.0)
    return X, kind(X), rng


@pytest.mark.parametrize("n", [1, 50, 9_000])
@pytest.mark.parametrize("kind", [np.array, np.asfortranarray, sp.csr_matrix])
def test_products(kind, n):
    X, given, rng = drawn(kind, n)
    with RowThreads(n, 7, 2) as workers:
        features = Features(given, workers)
        w, density = rng.normal(size=7), rng.exponential(size=n)
        np.testing.assert_allclose(features.times(w), X @ w, atol=1e-12)
        assert features.passes == 1
        for few in (1, 3, 4, 6, 8):
            V = rng.normal(size=(few, n))
            np.testing.assert_allclose(features.columns(V), X.T @ V.T, atol=1e-9)
        bordered = np.column_stack([X, np.ones(n)])
        want = bordered.T @ (density[:, None] * bordered)
        np.testing.assert_allclose(np.triu(features.gram(density)), np.triu(want), atol=1e-8)


@pytest.mark.parametrize("kind", [np.array, sp.csr_matrix])
def test_some_rows(kind):
    X, given, rng = drawn(kind, 9_000)
    with RowThreads(9_000, 7, 2) as workers:
        rows = np.sort(rng.permutation(9_000)[:100])
        few = Features(given, workers).some(rows)
        assert few.shape == (100, 7)
        assert sp.issparse(few.X) == sp.issparse(given)
        np.testing.assert_allclose(few.times(np.ones(7)), X[rows].sum(axis=1), atol=1e-12)
