"""Pivoted Cholesky against the matrix itself."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.solvers.linalg.systems import pivoted_cholesky


def rbf(n: int, seed: int = 0):
    X = np.random.default_rng(seed).normal(size=(n, 3))
    return np.exp(-((X[:, None] - X[None]) ** 2).sum(axis=-1))


@pytest.mark.parametrize("tol", [1e-2, 1e-6, 1e-12])
@pytest.mark.parametrize("n", [5, 200])
def test_what_is_left_out_is_as_small_as_asked_and_pivots_are_exact(n, tol):
    K = rbf(n)
    factor = pivoted_cholesky(K, tol)
    E = K - factor.Z @ factor.Z.T
    assert E.diagonal().max() <= tol + 1e-12
    assert np.linalg.eigvalsh(E).min() > -1e-10
    np.testing.assert_allclose(E[:, factor.pivots], 0.0, atol=1e-10)


def test_an_expansion_has_the_scores_and_the_norm_of_w():
    K = rbf(100, 1)
    factor = pivoted_cholesky(K, 1e-3)
    assert len(factor.pivots) < 100
    w = np.random.default_rng(2).normal(size=len(factor.pivots))
    c = np.zeros(100)
    c[factor.pivots] = factor.expansion(w)
    np.testing.assert_allclose(K @ c, factor.Z @ w, atol=1e-8)
    assert c @ K @ c == pytest.approx(w @ w, rel=1e-8)


def test_equal_rows_have_one_pivot():
    X = np.array([[1.0, 0.0], [1.0, 0.0], [0.0, 2.0], [1.0, 2.0]])
    K = X @ X.T
    factor = pivoted_cholesky(K, 1e-12)
    assert factor.Z.shape == (4, 2)
    np.testing.assert_allclose(factor.Z @ factor.Z.T, K, atol=1e-12)
