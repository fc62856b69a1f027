"""The matrices and norms of the interior-point method against dense numpy formulas."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nerm.atoms.regularizer import Norms
from nerm.solvers.interior_point.matrices import Features, RowThreads, choose_coordinates
from nerm.solvers.interior_point.norms import EuclideanNorms, MaxNorms
from nerm.solvers.interior_point.predictor_corrector import NewtonSystem, central_sides


@pytest.mark.parametrize("is_sparse", [False, True])
@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("d", [6, 501])  # a sparse Gram matrix of many columns is made line by line
def test_products_of_features_equal_dense_products(is_sparse, count, d):
    rng = np.random.default_rng(0)
    n = 7001
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.4)
    w, V, D = rng.normal(size=d), rng.normal(size=(6, n)), rng.random(n)
    with RowThreads(n, d, count) as threads:
        features = Features(sp.csr_matrix(X) if is_sparse else X, threads)
        ones = np.column_stack([X, np.ones(n)])
        np.testing.assert_allclose(features.times(w), X @ w, atol=1e-10)
        np.testing.assert_allclose(features.columns(V), X.T @ V.T, atol=1e-9)
        np.testing.assert_allclose(np.triu(features.gram(D)), np.triu((ones.T * D) @ ones), atol=1e-9)
        np.testing.assert_allclose(features.squares(), (X**2).sum(axis=0))
        rows = np.arange(0, n, 3)
        np.testing.assert_allclose(features.some(rows).times(w), X[rows] @ w, atol=1e-10)


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("terms", [0, 1, 3])
def test_newton_system_equals_a_dense_solve(intercept, terms):
    rng = np.random.default_rng(terms)
    d, lam = 5, 0.3
    A = rng.normal(size=(20, d + 1))
    gram, e, ratio = A.T @ A, rng.normal(size=(d + 1, terms)), rng.random(terms) + 0.1
    size = d + intercept
    H = gram[:size, :size] + lam * np.diag([1.0] * d + [0.0] * intercept)
    whole = np.block([[H, e[:size]], [-e[:size].T, np.diag(ratio)]])
    rhs, side = rng.normal(size=d + 1), rng.normal(size=terms)
    wanted = np.linalg.solve(whole, np.concatenate([rhs[:size], side]))
    step, dnu = NewtonSystem(gram, e, lam, ratio, intercept=intercept).solve(rhs, side)
    np.testing.assert_allclose(np.concatenate([step, dnu]), wanted, rtol=1e-8)


def test_singular_newton_system_is_solved_with_jitter_or_refused():
    ones = np.ones((3, 3))
    step, _ = NewtonSystem(ones, np.zeros((3, 0)), 0.0, np.zeros(0), intercept=True).solve(
        np.ones(3), np.zeros(0)
    )
    np.testing.assert_allclose(ones @ step, 1.0, rtol=1e-6)
    with pytest.raises(np.linalg.LinAlgError):
        NewtonSystem(10.0 - 9.0 * np.eye(3), np.zeros((3, 0)), 0.0, np.zeros(0), intercept=True)


@pytest.mark.parametrize("shape", [(30, 3), (20, 300)])
def test_coordinates_keep_scores_and_norm(shape):
    rng = np.random.default_rng(1)
    X = rng.normal(size=shape) + 100.0
    outside, Z = choose_coordinates(X, intercept=shape[0] > shape[1])
    z = rng.normal(size=Z.shape[1])
    coef, intercept = outside(z, 0.5)
    np.testing.assert_allclose(X @ coef + intercept, Z @ z + 0.5, rtol=1e-6, atol=1e-6)
    assert np.linalg.norm(coef) == pytest.approx(np.linalg.norm(z), rel=1e-6)


def started(kind, groups, w, barrier):
    ones = np.ones(len(groups))
    norms = kind(Norms(2, ones, groups), ones)
    norms.start(w[groups], barrier * norms.goal)
    return norms


@pytest.mark.parametrize(("kind", "order"), [(EuclideanNorms, 2), (MaxNorms, np.inf)])
def test_norm_duals_approach_the_norm_as_the_barrier_falls(kind, order):
    rng = np.random.default_rng(2)
    w = rng.normal(size=6)
    groups = np.array([[0, 1, 2], [3, 4, 5]])
    norms = started(kind, groups, w, 1e-9)
    np.testing.assert_allclose(
        (norms.u * w[groups]).sum(axis=1), np.linalg.norm(w[groups], order, axis=1), rtol=1e-6
    )
    dual = np.linalg.norm(norms.u, 2 if order == 2 else 1, axis=1)
    assert (dual <= 1 + 1e-12).all()


@pytest.mark.parametrize("kind", [EuclideanNorms, MaxNorms])
def test_norm_curvature_is_the_derivative_of_the_dual_variables(kind):
    rng = np.random.default_rng(3)
    w, dw = rng.normal(size=3), rng.normal(size=3)
    groups, step = np.array([[0, 1, 2]]), 1e-6

    def u(at):
        return started(kind, groups, at, 0.3).u[0]

    difference = (u(w + step * dw) - u(w - step * dw)) / (2 * step)
    curvature = started(kind, groups, w, 0.3).curvature()[0]
    np.testing.assert_allclose(curvature @ dw, difference, rtol=1e-4, atol=1e-7)


def test_nearest_feasible_dual_variables_are_projections():
    rng = np.random.default_rng(4)
    u = 2 * rng.normal(size=(5, 4))
    for kind, order in ((EuclideanNorms, 2), (MaxNorms, 1)):
        near = kind.nearest(u)
        assert (np.linalg.norm(near, order, axis=1) <= 1 + 1e-12).all()
        for _ in range(200):
            other = rng.normal(size=u.shape)
            other /= np.maximum(np.linalg.norm(other, order, axis=1, keepdims=True), 1)
            assert (((u - near) * (other - near)).sum(axis=1) <= 1e-9).all()


def test_sides_satisfy_their_optimality_conditions():
    values, eta, unit = np.array([[3.0, 1.0], [0.5, 0.5]]), np.array([2.0, 1.0]), np.array([0.1, 0.2])
    nu = central_sides(values, eta, unit)
    np.testing.assert_allclose(nu.sum(axis=1), eta)
    slopes = values + unit[:, None] / nu
    np.testing.assert_allclose(slopes[:, 0], slopes[:, 1])
