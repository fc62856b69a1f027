"""Changes of variables keep scores and norm, there and back."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nerm.errors import UnsupportedProblemError
from nerm.solvers.interior_point.coordinates import choose


@pytest.mark.parametrize("kind", [np.array, sp.csr_matrix])
@pytest.mark.parametrize("shape", [(30, 5), (20, 300), (20, 200)])
def test_scores_and_norm_are_kept(kind, shape):
    rng = np.random.default_rng(0)
    X = rng.normal(size=shape)
    X[1] = X[0]
    coordinates, inside = choose(kind(X), intercept=True)
    assert inside.shape[0] == shape[0]
    assert inside.shape[1] <= min(shape)
    z = rng.normal(size=inside.shape[1])
    coef, intercept = coordinates.outside(z, 0.7)
    np.testing.assert_allclose(X @ coef + intercept, inside @ z + 0.7, atol=1e-8)
    assert coef @ coef == pytest.approx(z @ z, rel=1e-9)
    back, same = coordinates.inside(coef, intercept)
    np.testing.assert_allclose(back, z, atol=1e-8)
    assert same == pytest.approx(0.7)


def test_far_columns_are_shifted_if_the_intercept_is_free():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(50, 3))
    X[:, 1] += 1e6
    coordinates, inside = choose(X, intercept=True)
    assert np.abs(inside).max() < 100
    coef, intercept = coordinates.outside(np.ones(3), 0.5)
    np.testing.assert_allclose(X @ coef + intercept, inside @ np.ones(3) + 0.5, rtol=1e-9, atol=1e-9)
    assert coordinates.inside(coef, intercept)[1] == pytest.approx(0.5, abs=1e-9)
    np.testing.assert_array_equal(choose(X, intercept=False)[1], X)


def test_too_large_a_system_is_refused():
    with pytest.raises(UnsupportedProblemError, match="at most 10000 unknowns"):
        choose(sp.identity(10_001, format="csr"), intercept=True)
    for axes in (False, True):
        assert choose(sp.identity(10_000, format="csr"), intercept=True, axes=axes)[1].shape == (
            10_000,
            10_000,
        )


def test_where_single_coefficients_matter_they_are_the_coordinates():
    X = np.random.default_rng(2).normal(size=(20, 300))
    assert choose(X, intercept=True, axes=True)[1] is X
    assert choose(square := np.resize(X, (210, 210)), intercept=False)[1] is square  # nothing to be gained
    assert choose(X, intercept=True)[1].shape == (20, 20)
    with pytest.raises(UnsupportedProblemError, match="10001 columns"):
        choose(sp.csr_matrix((5, 10_001)), intercept=True, axes=True)
