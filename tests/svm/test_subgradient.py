"""The subgradient method: the corrected subgradient, its balance, convergence, and the certificate."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nerm.svm import subgradient_method
from nerm.svm.data import NeutralSVM
from nerm.svm.subgradient import hinge_subgradient, multipliers_at

from . import naive
from .naive import (
    assert_dual_feasible,
    best_intercepts,
    dual_value,
    hinge,
    objective,
    random_case,
    solve_by_hand,
    synthetic,
)


@pytest.mark.parametrize("t", [1.0, -1.0, 0.5, -2.0])
def test_hinge_subgradient_satisfies_its_inequality(t):
    points = np.array([-3.0, -2.0, -1.0, -0.5, 0.0, 0.3, 0.5, 1.0, 2.0, 4.0])  # bends included
    for f in points:
        c = -t * float(hinge_subgradient(np.array([t]), np.array([f]))[0])
        assert min(hinge(t * other) - hinge(t * f) - c * (other - f) for other in points) >= -1e-12


@pytest.mark.parametrize("seed", range(18, 54, 3))
def test_multipliers_are_a_subgradient_with_sum_zero(seed):
    c = random_case(seed)
    data = NeutralSVM(c.X, c.y, c.v, c.lam, c.eta)
    rng = np.random.default_rng(seed)
    w = rng.normal(size=c.X.shape[1])
    g = c.X @ w
    b = data.best_intercept(g)
    assert objective(g + b, 0, c.y, c.v, 0, c.eta) <= best_intercepts(g, c.y, c.v, 0, c.eta)[0] * (1 + 1e-12)
    z, nu = multipliers_at(data, g + b)
    a = z.sum(axis=0)
    assert 0 <= nu <= c.eta * (1 + 1e-12)
    assert abs(a.sum()) < 1e-8 * (1 + c.eta)
    here = objective(g + b, w @ w, c.y, c.v, c.lam, c.eta)
    slope = c.lam * w - c.X.T @ a
    for _ in range(20):
        other, b_other = w + rng.normal(size=len(w)) * rng.choice([0.01, 1.0]), b + rng.normal()
        there = objective(c.X @ other + b_other, other @ other, c.y, c.v, c.lam, c.eta)
        assert there >= here + slope @ (other - w) - 1e-9 * here


@pytest.mark.long
@pytest.mark.parametrize(("eta", "tol"), [(0.0, 1e-3), (0.1, 1e-3), (1.0, 1e-3), (10.0, 1e-2)])
def test_it_converges_and_certifies_itself(eta, tol):
    X, y, v = synthetic(80, d=4, seed=3)
    optimum, w, _ = solve_by_hand(X, y, v, 4.0, eta)
    model = subgradient_method(X, y, v, 4.0, eta, tol=tol, max_iter=3000)
    assert model.status == "optimal"
    m = naive.sum_form(model, y, v, eta)
    assert m.primal - m.dual <= tol * m.primal
    np.testing.assert_allclose(m.primal, optimum, rtol=tol)
    np.testing.assert_allclose(model.coef, w, atol=np.sqrt(2 * tol * optimum / 4.0))
    naive_primal = objective(X @ model.coef + model.intercept, model.coef @ model.coef, y, v, 4.0, eta)
    np.testing.assert_allclose(m.primal, naive_primal, rtol=1e-10)
    naive_dual = dual_value(m.alpha, m.beta_plus, m.beta_minus, X @ X.T, y, v, 4.0)
    np.testing.assert_allclose(m.dual, naive_dual, rtol=1e-9)
    assert_dual_feasible(model, y, v, eta)
    assert m.dual <= optimum * (1 + 1e-9)


@pytest.mark.long
def test_the_gap_shrinks_and_is_reported():
    X, y, v = synthetic(80, d=4, seed=3)
    model = subgradient_method(X, y, v, 1.0, 1.0, tol=0.0, max_iter=1000)
    gaps = [entry["gap"] for entry in model.history]
    assert model.status == "inaccurate"
    assert model.claim.endswith("is left after 1000 steps")
    assert gaps[-1] < gaps[0] / 20


def test_without_intercept_sparse_and_weighted():
    X, y, v = synthetic(60, d=3, seed=9)
    s = np.linspace(0.5, 1.5, 60)
    model = subgradient_method(
        sp.csr_matrix(X), y, v, 5.0, 0.5, intercept=False, tol=2e-3, max_iter=3000, sample_weight=s
    )
    assert model.status == "optimal"
    assert model.intercept == 0.0
    value = objective(X @ model.coef, model.coef @ model.coef, y, v, 5.0, 0.5, s)
    np.testing.assert_allclose(60 * model.certificate.primal, value, rtol=1e-10)
