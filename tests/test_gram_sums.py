"""Sums and squares of some rows of a table, against numpy."""

import numpy as np
import pytest

from nerm.solvers.linalg.gram_sums import half_square, sums_of_rows


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("count", [0, 1, 3, 4, 7, 20])
def test_sums(precision, count):
    """Rows that do not come in fours, weights of 0, and more columns than a stretch has."""
    rng = np.random.default_rng(count)
    table = rng.normal(size=(20, 9000)).astype(precision)
    rows, weights = rng.permutation(20)[:count], rng.normal(size=(count, 3)) * (rng.random((count, 3)) < 0.5)
    found = sums_of_rows(table, rows, weights)
    assert found.shape == (9000, 3)
    np.testing.assert_allclose(found, table[rows].astype(float).T @ weights, atol=1e-12)


@pytest.mark.parametrize("precision", [np.float32, np.float64])
def test_half_of_a_square(precision):
    rng = np.random.default_rng(1)
    table = rng.normal(size=(20, 30)).astype(precision)
    rows, columns = np.array([3, 19, 0]), np.array([29, 4, 11])
    found = half_square(table, rows, columns, 0.5)
    assert found.dtype == precision
    assert not np.shares_memory(found, table)
    np.testing.assert_array_equal(np.triu(found), np.triu(precision(0.5) * table[np.ix_(rows, columns)]))
