"""Conjugate gradients against a direct solve."""

import numpy as np
import pytest

from nerm.solvers.linalg.systems import conjugate_gradients


@pytest.mark.parametrize("columns", [1, 3])
def test_conjugate_gradients_solve_all_columns(columns):
    rng = np.random.default_rng(0)
    B = rng.normal(size=(20, 20))
    A = B @ B.T + np.eye(20)
    right = rng.normal(size=(20, columns))
    right[:, -1] *= 1e-9
    diagonal = np.diag(A)[:, None]
    found, products = conjugate_gradients(lambda q: A @ q, lambda r: r / diagonal, right, 1e-12, 200)
    np.testing.assert_allclose(A @ found, right, rtol=1e-6, atol=1e-15)
    assert 0 < products <= 200


def test_conjugate_gradients_stop_at_the_limit_and_at_zero():
    A = np.diag(np.arange(1.0, 30.0))
    one = np.ones((29, 1))
    assert conjugate_gradients(lambda q: A @ q, lambda r: r.copy(), one, 1e-12, 3)[1] == 3
    found, products = conjugate_gradients(lambda q: A @ q, lambda r: r.copy(), 0 * one, 1e-12, 3)
    assert (found.any(), products) == (False, 0)
