"""Cached rows of the Gram matrix against the whole matrix: which rows are held, products, squares."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.kernels import RBF
from nerm.model.hypothesis import KernelHypothesis, LinearHypothesis
from nerm.solvers.linalg.gram_cache import GramCache

N = 60
X = np.random.default_rng(0).normal(size=(N, 3))
K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))


def cache_of(slots, monkeypatch):
    """Return a cache of so many rows, of a hypothesis that does not keep its Gram matrix."""
    monkeypatch.setattr("nerm.model.hypothesis.GRAM_LIMIT", 9)
    return GramCache(KernelHypothesis(RBF(0.5), X), megabytes=slots * N * 8 / 2**20)


def held(cache):
    return np.flatnonzero(cache.rows.slot_of >= 0).tolist()


def test_least_recently_used_row_is_replaced(monkeypatch):
    cache = cache_of(8, monkeypatch)
    for i in (3, 5, 7, 9, 11, 13, 15, 17):
        assert cache.load(np.array([i]))
    cache.load(np.array([3]))  # 5 is now the oldest
    cache.load(np.array([50]))
    assert held(cache) == [3, 7, 9, 11, 13, 15, 17, 50]
    for i in (3, 50, 17):
        np.testing.assert_allclose(cache.rows.table[cache.rows.slot_of[i]], K[i], atol=1e-12)
    assert not cache.load(np.arange(9))


def test_likely_rows_are_loaded_in_the_same_batch(monkeypatch):
    cache = cache_of(16, monkeypatch)
    cache.load_with(10, np.array([11, 10, 11, 12, 13, 14]))
    assert held(cache) == [10, 11, 12, 13]


@pytest.mark.parametrize("slots", [2, 20, N])
def test_products_and_squares_are_those_of_the_matrix(slots, monkeypatch):
    cache = cache_of(slots, monkeypatch)
    rng = np.random.default_rng(1)
    for rows in (
        np.array([40, 3]),
        np.array([3, 17, 40, 41, 5]),
        np.arange(N),
        np.array([5, 6]),
        np.arange(0),
    ):
        weights = rng.normal(size=(len(rows), 2)) * (rng.random((len(rows), 2)) < 0.7)
        np.testing.assert_allclose(cache.product(rows, weights), K[:, rows] @ weights, atol=1e-10)
        np.testing.assert_allclose(cache.square(rows), K[np.ix_(rows, rows)], atol=1e-10)


def test_gram_matrix_of_the_hypothesis_is_used_as_it_is():
    hypothesis = KernelHypothesis(RBF(0.5), X)
    cache = GramCache(hypothesis, megabytes=1e-4)
    assert np.shares_memory(cache.rows.table, hypothesis.gram)
    np.testing.assert_allclose(cache.rows.table, K, atol=1e-12)


def test_linear_rows_have_the_gram_matrix_of_inner_products():
    np.testing.assert_allclose(GramCache(LinearHypothesis(X)).rows.table, X @ X.T, atol=1e-12)
    few = GramCache(LinearHypothesis(X), megabytes=4 * N * 8 / 2**20)
    few.load(np.array([7]))
    np.testing.assert_allclose(few.rows.table[few.rows.slot_of[7]], X @ X[7], atol=1e-12)
