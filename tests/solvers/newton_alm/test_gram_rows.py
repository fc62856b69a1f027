"""Rows of the Gram matrix on demand against the whole matrix: products and squares, also in a small table."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.kernels import RBF
from nerm.model.hypothesis import KernelHypothesis
from nerm.solvers.newton_alm.kernel_rows import GramRows

N = 60
X = np.random.default_rng(0).normal(size=(N, 3))
K = np.exp(-0.5 * ((X[:, None] - X[None]) ** 2).sum(axis=2))


@pytest.mark.parametrize("slots", [1, 20, N])
def test_products_and_squares_are_those_of_the_matrix(slots, monkeypatch):
    monkeypatch.setattr("nerm.model.hypothesis.GRAM_LIMIT", int(np.ceil((slots * N) ** 0.5)))
    rows_of = GramRows(KernelHypothesis(RBF(0.5), X))
    rng = np.random.default_rng(1)
    for rows in (
        np.array([40, 3]),
        np.array([3, 17, 40, 41, 5]),
        np.arange(N),
        np.arange(15, 33),
        np.array([5, 6]),
        np.arange(0),
    ):
        weights = rng.normal(size=(len(rows), 2)) * (rng.random((len(rows), 2)) < 0.7)
        np.testing.assert_allclose(rows_of.product(rows, weights), K[:, rows] @ weights, atol=1e-10)
        np.testing.assert_allclose(rows_of.square(rows), K[np.ix_(rows, rows)], atol=1e-10)


def test_gram_matrix_of_the_hypothesis_is_used_as_it_is():
    hypothesis = KernelHypothesis(RBF(0.5), X)
    assert GramRows(hypothesis).square(np.arange(N)) is hypothesis.gram
