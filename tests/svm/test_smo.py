"""The reference SMO: plain SVM at eta = 0, weights, kernels, the published variant, limits."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

from nerm.kernels import RBF, Polynomial
from nerm.svm import dual_qp, smo

from .naive import (
    Case,
    assert_dual_feasible,
    best_intercepts,
    dual_value,
    factor,
    objective,
    random_case,
    solve_by_hand,
    sum_form,
    synthetic,
)


def assert_same_as_svc(X, y, lam, kernel, svc_kernel, model):
    svc = SVC(C=1 / lam, kernel=svc_kernel, tol=1e-9, gamma=getattr(kernel, "gamma", "scale")).fit(X, y)
    theirs = np.zeros(len(y))
    theirs[svc.support_] = svc.dual_coef_[0]
    np.testing.assert_allclose(sum_form(model, y, None, 0.0).a / lam, theirs, atol=2e-4 / lam)
    np.testing.assert_allclose(model.coef, theirs if svc_kernel == "rbf" else svc.coef_[0], atol=2e-4 / lam)
    np.testing.assert_allclose(model.decision_function(X), svc.decision_function(X), atol=1e-4)
    g = model.training_scores() - model.intercept
    _, left, right = best_intercepts(g, y, np.zeros(len(y)), lam, 0.0, slack=1e-7)
    assert left - 1e-4 <= svc.intercept_[0] <= right + 1e-4


@pytest.mark.parametrize("name", ["linear", "rbf"])
def test_plain_svm_equals_svc(name):
    X, y, v = synthetic(80, d=5)
    kernel = "linear" if name == "linear" else RBF(0.5)
    model = smo(X, y, v, 2.0, 0.0, kernel=kernel, tol=1e-10)
    assert_same_as_svc(X, y, 2.0, kernel, name, model)


def test_dual_qp_without_neutrality_equals_svc():
    X, y, v = synthetic(80, d=5)
    model = dual_qp(X, y, v, 2.0, 0.0, kernel=RBF(0.5)).solve("clarabel", tol=1e-11).model
    assert_same_as_svc(X, y, 2.0, RBF(0.5), "rbf", model)


@pytest.mark.parametrize("seed", range(0, 12, 2))
def test_weights_agree_with_a_model_written_by_hand(seed):
    c = random_case(seed + 18)
    rng = np.random.default_rng(seed)
    s, u = rng.uniform(0, 2, len(c.y)), rng.uniform(0, 2, len(c.y))
    s[2], u[3] = 0.0, 0.0
    model = smo(
        c.X, c.y, c.v, c.lam, c.eta, kernel=RBF(c.gamma), tol=1e-9, sample_weight=s, neutrality_weight=u
    )
    gram = Case(c.X, c.y, c.v, c.lam, c.eta, "rbf").gram
    optimum, _, _ = solve_by_hand(factor(gram), c.y, c.v, c.lam, c.eta, s, u)
    assert model.status == "optimal"
    assert_dual_feasible(model, c.y, c.v, c.eta, s, u)
    primal = len(c.y) * model.certificate.primal
    np.testing.assert_allclose(primal, optimum, rtol=1e-7)
    norm2 = model.coef @ gram @ model.coef
    value = objective(model.training_scores(), norm2, c.y, c.v, c.lam, c.eta, s, u)
    np.testing.assert_allclose(primal, value, rtol=1e-10)


def test_weight_two_is_two_rows_and_weight_zero_is_none():
    X, y, v = synthetic(40, d=3, seed=3)
    weight = np.ones(40)
    weight[:10], weight[10:15] = 2.0, 0.0
    rows = np.repeat(np.arange(40), weight.astype(int))
    one = smo(X, y, v, 1.0, 1.0, kernel=RBF(1.0), tol=1e-10, sample_weight=weight, neutrality_weight=weight)
    two = smo(X[rows], y[rows], v[rows], 1.0, 1.0, kernel=RBF(1.0), tol=1e-10)
    np.testing.assert_allclose(40 * one.certificate.primal, len(rows) * two.certificate.primal, rtol=1e-8)
    np.testing.assert_allclose(one.decision_function(X), two.decision_function(X), atol=1e-4)


def test_flipping_the_viewpoint_changes_nothing_and_flipping_y_negates():
    X, y, v = synthetic(60, d=3, seed=1)
    model = smo(X, y, v, 1.0, 2.0, kernel="linear", tol=1e-10)
    mirrored = smo(X, y, -v, 1.0, 2.0, kernel="linear", tol=1e-10)
    negated = smo(X, -y, v, 1.0, 2.0, kernel="linear", tol=1e-10)
    np.testing.assert_allclose(mirrored.coef, model.coef, atol=1e-4)
    np.testing.assert_allclose(mirrored.multipliers.theta, 1 - model.multipliers.theta, atol=1e-3)
    np.testing.assert_allclose(negated.coef, -model.coef, atol=1e-4)


@pytest.mark.parametrize(("kernel", "eta"), [("linear", 0.05), ("linear", 2.0), ("rbf", 0.5), ("rbf", 2.0)])
def test_published_variant_solves_the_shrinkage_problem(kernel, eta):
    X, y, v = synthetic(40, d=3, seed=5)
    v = v * np.linspace(0.2, 1.5, 40)
    v[7] = 0.0
    k = "linear" if kernel == "linear" else RBF(0.5)
    gram = Case(X, y, v, 1.0, eta, kernel).gram
    model = smo(X, y, v, 0.7, eta, kernel=k, variant="published", tol=1e-9)
    qp = dual_qp(X, y, v, 0.7, eta, kernel=k, variant="published").solve("clarabel", tol=1e-11)
    optimum, _, _ = solve_by_hand(factor(gram), y, v, 0.7, eta, variant="published")
    assert model.status == "optimal"
    bounds = [
        model.certificate.primal,
        model.certificate.dual,
        qp.model.certificate.primal,
        qp.model.certificate.dual,
    ]
    np.testing.assert_allclose([*(40 * bound for bound in bounds), -qp.value], optimum, rtol=1e-6)
    # the multipliers are feasible for the printed dual, and they are those of the hypothesis
    m = model.multipliers
    assert ((m.beta_plus >= 0) & (m.beta_minus >= 0) & (m.beta_plus + m.beta_minus <= 1 + 1e-12)).all()
    a = m.alpha * y + eta * v * (m.beta_plus - m.beta_minus)
    np.testing.assert_allclose(gram @ a / 0.7 + model.intercept, model.training_scores(), atol=1e-6)
    np.testing.assert_allclose(
        dual_value(m.alpha, eta * m.beta_plus, eta * m.beta_minus, gram, y, v, 0.7), optimum, rtol=1e-6
    )


def test_the_history_has_both_values():
    X, y, v = synthetic(30, d=4)
    history = smo(X, y, v, 0.1, 1.0, tol=1e-8).history
    assert set(history[0]) == {"iterations", "primal", "dual", "gap", "relative_gap"}
    assert all(e["dual"] <= e["primal"] * (1 + 1e-12) for e in history)


def test_an_iteration_limit_is_told():
    X, y, v = synthetic(60, d=4)
    model = smo(X, y, v, 0.01, 1.0, tol=1e-9, max_iter=50)
    assert model.status == "inaccurate"
    assert model.claim == "not converged: the limit of 50 pair steps was reached"
    assert model.iterations == 50
    assert model.certificate.dual <= model.certificate.primal
    assert np.isfinite(model.certificate.gap)


@pytest.mark.parametrize("viewpoint", ["y", "-y", "constant", "zero", "tiny"])
@pytest.mark.parametrize(("lam", "eta"), [(1e-2, 1.0), (1.0, 1e4), (1e6, 1.0)])
def test_extreme_problems_are_solved(viewpoint, eta, lam):
    X, y, _ = synthetic(16, d=2, seed=1)
    X[8:] = X[:8]  # every row twice
    y[8:12] = y[:4]
    tiny = 1e-9 * y * np.linspace(1.0, 2.0, 16)
    v = {"y": y, "-y": -y, "constant": np.ones(16), "zero": np.zeros(16), "tiny": tiny}[viewpoint]
    model = smo(X, y, v, lam, eta, tol=1e-6, max_iter=20_000)
    c = model.certificate
    assert np.isfinite([c.primal, c.dual, model.intercept]).all()
    assert c.dual <= c.primal * (1 + 1e-12)
    assert model.status == "optimal"


def test_two_rows():
    model = smo([[0.0], [1.0]], [-1, 1], [1, 1], 0.1, 1.0, kernel="linear", tol=1e-10)
    optimum, w, _ = solve_by_hand(np.array([[0.0], [1.0]]), np.array([-1.0, 1.0]), np.ones(2), 0.1, 1.0)
    np.testing.assert_allclose(2 * model.certificate.primal, optimum, rtol=1e-7)
    np.testing.assert_allclose(model.coef, w, atol=1e-4)


def own_kernel(A, B):
    return (1.0 + A @ B.T) ** 2


@pytest.mark.parametrize("kernel", [Polynomial(gamma=0.5, degree=3, coef0=1.0), own_kernel])
def test_other_kernels(kernel):
    X, y, v = synthetic(50, d=3, seed=6)
    model = smo(X, y, v, 1.0, 1.0, kernel=kernel, tol=1e-8)
    assert model.status == "optimal"
    gram = kernel(X, X)
    optimum, _, _ = solve_by_hand(factor(gram), y, v, 1.0, 1.0)
    np.testing.assert_allclose(50 * model.certificate.primal, optimum, rtol=1e-6)
    a = sum_form(model, y, v, 1.0).a
    np.testing.assert_allclose(model.decision_function(X), gram @ a + model.intercept, atol=1e-7)


def test_precomputed_and_sparse_are_the_same_problem():
    X, y, v = synthetic(50, d=3, seed=6)
    X_new = np.random.default_rng(0).normal(size=(7, 3))
    dense = smo(X, y, v, 1.0, 1.0, kernel="linear", tol=1e-10)
    sparse = smo(sp.csr_matrix(X), y, v, 1.0, 1.0, kernel="linear", tol=1e-10)
    gram = smo(X @ X.T, y, v, 1.0, 1.0, kernel="precomputed", tol=1e-10)
    expected = X_new @ dense.coef + dense.intercept
    np.testing.assert_allclose(dense.decision_function(X_new), expected, atol=1e-12)
    np.testing.assert_allclose(sparse.decision_function(sp.csr_matrix(X_new)), expected, atol=1e-4)
    np.testing.assert_allclose(gram.decision_function(X_new @ X.T), expected, atol=1e-4)
    np.testing.assert_array_equal(dense.predict(X_new), np.where(expected > 0, 1.0, -1.0))
