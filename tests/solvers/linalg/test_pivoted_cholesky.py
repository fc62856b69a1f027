"""Pivoted Cholesky against the matrix itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from nerm.solvers.linalg.systems import pivoted_cholesky


def rbf(n: int, seed: int = 0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1))


@pytest.mark.parametrize("tol", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("n", [5, 200])
def test_what_is_left_out_is_as_small_as_asked_and_pivots_are_exact(n, tol):
    K = rbf(n)
    Z, pivots = pivoted_cholesky(K, tol)
    E = K - Z @ Z.T
    assert E.diagonal().max() <= tol + 1e-12
    assert np.linalg.eigvalsh(E).min() > -1e-10
    np.testing.assert_allclose(E[:, pivots], 0.0, atol=1e-10)


def test_an_expansion_has_the_scores_and_the_norm_of_w():
    K = rbf(100, 1)
    Z, pivots = pivoted_cholesky(K, 1e-3)
    assert len(pivots) < 100
    w = np.random.default_rng(2).normal(size=len(pivots))
    c = np.zeros(100)
    c[pivots] = solve_triangular(Z[pivots].T, w)
    np.testing.assert_allclose(K @ c, Z @ w, atol=1e-8)
    assert c @ K @ c == pytest.approx(w @ w, rel=1e-8)


def test_equal_rows_have_one_pivot():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [1.0, 2.0]])
    K = X @ X.T
    Z, pivots = pivoted_cholesky(K, 1e-12)
    assert Z.shape == (4, 2)
    assert len(pivots) == 2
    np.testing.assert_allclose(Z @ Z.T, K, atol=1e-12)
