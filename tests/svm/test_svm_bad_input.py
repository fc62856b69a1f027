"""Every refusal of nerm.svm, by its text."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.errors import InvalidInputError
from nerm.kernels import RBF, Sigmoid
from nerm.svm import dual_qp, primal_qp, smo, subgradient_method

from .naive import synthetic

X, Y, V = synthetic(12, d=2)
GRAM = X @ X.T
METHODS = [primal_qp, dual_qp, smo, subgradient_method]


def refused(text, call, *args, **kwargs):
    with pytest.raises(InvalidInputError) as error:
        call(*args, **kwargs)
    assert str(error.value).startswith(text), str(error.value)


@pytest.mark.parametrize("method", METHODS)
def test_common_refusals(method):
    refused("'lam' must be a finite positive number. Got 0", method, X, Y, V, 0, 1.0)
    refused("'lam' must be a finite positive number. Got nan", method, X, Y, V, float("nan"), 1.0)
    refused("'eta' must be a finite number, at least 0. Got -1", method, X, Y, V, 1.0, -1)
    refused("'viewpoint' must be given when eta is positive. Got None", method, X, Y, None, 1.0, 1.0)
    refused(
        "'viewpoint' must be finite. Got nan at index 3",
        method,
        X,
        Y,
        np.where(np.arange(12) == 3, np.nan, V),
        1.0,
        1.0,
    )
    refused("'viewpoint' must have one entry for each of the 12 rows", method, X, Y, V[:5], 1.0, 1.0)
    refused("'y' must hold exactly two classes. Got a single class", method, X, np.ones(12), V, 1.0, 1.0)
    refused("'sample_weight' must be nonnegative", method, X, Y, V, 1.0, 1.0, sample_weight=-np.ones(12))
    refused(
        "'neutrality_weight' must have a positive entry",
        method,
        X,
        Y,
        V,
        1.0,
        1.0,
        neutrality_weight=np.zeros(12),
    )
    refused("'X' must be two-dimensional", method, X[:, 0], Y, V, 1.0, 1.0)


@pytest.mark.parametrize("method", [dual_qp, smo])
def test_kernels_that_cannot_be_used(method):
    refused(
        "a kernel must return one finite value for each pair",
        method,
        GRAM[:, :5],
        Y,
        V,
        1.0,
        1.0,
        kernel="precomputed",
    )
    crooked = GRAM.copy()
    crooked[0, 1] += 1.0
    refused("a Gram matrix must be symmetric", method, crooked, Y, V, 1.0, 1.0, kernel="precomputed")
    refused(
        "a Gram matrix must be positive semidefinite",
        method,
        GRAM - 5 * np.eye(12),
        Y,
        V,
        1.0,
        1.0,
        kernel="precomputed",
    )
    refused(
        "a Gram matrix must be positive semidefinite",
        method,
        X,
        Y,
        V,
        1.0,
        1.0,
        kernel=Sigmoid(gamma=2.0, coef0=-1.0),
    )
    refused(
        "'gamma' must be a finite positive number. Got -1", lambda: method(X, Y, V, 1.0, 1.0, kernel=RBF(-1))
    )
    refused(
        "a kernel must return one finite value for each pair",
        method,
        X,
        Y,
        V,
        1.0,
        1.0,
        kernel=lambda A, B: np.ones(3),
    )
    refused("'kernel' must be one of", method, X, Y, V, 1.0, 1.0, kernel="gauss")
    refused(
        "'variant' must be one of 'exact', 'published'. Got 'printed'",
        method,
        X,
        Y,
        V,
        1.0,
        1.0,
        variant="printed",
    )


def test_options():
    refused("'tol' must be a finite number, at least 0", smo, X, Y, V, 1.0, 1.0, tol=-1)
    refused("'max_iter' must be a finite positive number", smo, X, Y, V, 1.0, 1.0, max_iter=0)
    refused("'solver' must be one of", primal_qp(X, Y, V, 1.0, 1.0).solve, "no such solver")
    refused("'tol' must be a finite positive number", primal_qp(X, Y, V, 1.0, 1.0).solve, tol=0)
