"""The printed dual is not the dual of the neutral SVM (docs/errata.md, errata 1, 2, 10)."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

from nerm.svm import dual_qp, primal_qp, smo
from tests.svm.naive import solve_by_hand, sum_form, synthetic

N = 60
LAM = 0.05 * N


@pytest.fixture(scope="module")
def data():
    return synthetic(N, d=10, seed=0)


def printed_dual(X, y, v, lam, eta):
    """Maximise the dual exactly as printed (with a_i a_j), divided by lambda."""
    n = len(y)
    alpha, plus, minus = (cp.Variable(n, nonneg=True) for _ in range(3))
    a = cp.multiply(y, alpha) + cp.multiply(v, plus - minus)
    w = cp.Variable(X.shape[1])
    value = cp.sum(alpha + plus + minus) - lam / 2 * cp.sum_squares(w)
    problem = cp.Problem(
        cp.Maximize(value), [w == X.T @ a / lam, cp.sum(a) == 0, alpha <= 1, plus + minus <= eta]
    )
    problem.solve(solver="CLARABEL", tol_gap_rel=1e-10, tol_gap_abs=1e-10, tol_feas=1e-10)
    return problem.value, w.value


@pytest.mark.parametrize("eta", [0.1, 1.0, 3.0])
def test_printed_dual_exceeds_the_primal(data, eta):
    """Weak duality fails: the print's maximum is above the minimum it should bound from below."""
    X, y, v = data
    optimum, _, _ = solve_by_hand(X, y, v, LAM, eta)
    exact = dual_qp(X, y, v, LAM, eta).solve("clarabel", tol=1e-10)
    printed, _ = printed_dual(X, y, v, LAM, eta)
    np.testing.assert_allclose(-exact.value, optimum, rtol=1e-7)
    assert printed > 1.02 * optimum
    ours = dual_qp(X, y, v, LAM, eta, variant="published").solve("clarabel", tol=1e-10)
    np.testing.assert_allclose(-ours.value, printed, rtol=1e-7)


@pytest.mark.parametrize("eta", [0.1, 0.5, 1.0, 3.0])
def test_printed_dual_is_the_dual_of_shrinkage(data, eta):
    """Its value is the minimum of risk + regularizer + eta sum_i (1 + |v_i f_i|)."""
    X, y, v = data
    v = v * np.linspace(0.3, 1.0, N)
    printed, w = printed_dual(X, y, v, LAM, eta)
    shrinkage, w_shrunk, _ = solve_by_hand(X, y, v, LAM, eta, variant="published")
    np.testing.assert_allclose(printed, shrinkage, rtol=1e-7)
    np.testing.assert_allclose(w, w_shrunk, atol=1e-4)
    np.testing.assert_allclose(
        N * smo(X, y, v, LAM, eta, "linear", "published").certificate.primal, shrinkage, rtol=1e-5
    )


@pytest.mark.parametrize("eta", [1.0, 3.0])
def test_printed_dual_collapses_to_zero(data, eta):
    """For v = +-1 and eta >= 1 the shrinkage outweighs the hinge: w = 0, value n (1 + eta)."""
    X, y, v = data
    printed, w = printed_dual(X, y, v, LAM, eta)
    np.testing.assert_allclose(printed, N * (1 + eta), rtol=1e-7)
    np.testing.assert_allclose(w, 0.0, atol=1e-3)
    exact = smo(X, y, v, LAM, eta, kernel="linear")
    assert N * exact.certificate.primal < 0.95 * printed
    assert np.linalg.norm(exact.coef) > 0.1


def test_the_coupling_is_global_not_per_sample(data):
    """The multipliers of the solved primal obey 0 <= beta^{+-} <= nu^{+-}, nu^+ + nu^- <= eta, and close the gap."""
    X, y, v = data
    model = sum_form(primal_qp(X, y, v, LAM, 1.0).solve("clarabel", tol=1e-10).model, y, v, 1.0)
    assert model.nu_plus + model.nu_minus <= 1.0 + 1e-9
    assert (model.beta_plus <= model.nu_plus + 1e-9).all()
    assert (model.beta_minus <= model.nu_minus + 1e-9).all()
    np.testing.assert_allclose(model.dual, model.primal, rtol=1e-7)


def test_printed_quadratic_form_is_not_the_norm(data):
    """sum_ij a_i a_i k_ij is not ||sum_i a_i x_i||^2: with it even the right multipliers give another value."""
    X, y, v = data
    model = sum_form(primal_qp(X, y, v, LAM, 1.0).solve("clarabel", tol=1e-10).model, y, v, 1.0)
    gram, a = X @ X.T, model.a
    total = LAM * (model.alpha + model.beta_plus + model.beta_minus).sum()
    right = total - 0.5 * sum(a[i] * a[j] * gram[i, j] for i in range(N) for j in range(N))
    wrong = total - 0.5 * sum(a[i] * a[i] * gram[i, j] for i in range(N) for j in range(N))
    np.testing.assert_allclose(right, LAM * model.primal, rtol=1e-6)
    assert abs(wrong - LAM * model.primal) > 1e-2 * LAM * model.primal


def test_the_regularizer_carries_lambda(data):
    """The dual is lambda times the primal with (lambda/2) ||w||^2, not with the appendix's 1/2 ||w||^2."""
    X, y, v = data
    with_lambda, w, _ = solve_by_hand(X, y, v, LAM, 1.0)
    without, _, _ = solve_by_hand(X, y, v, 1.0, 1.0)
    dual = N * smo(X, y, v, LAM, 1.0, kernel="linear", tol=1e-9).certificate.dual
    np.testing.assert_allclose(dual, with_lambda, rtol=1e-6)
    assert abs(dual - without) > 1e-2 * without
    # The printed subgradient, lambda w, is that of (lambda/2) ||w||^2.
    step = 1e-6 * np.ones_like(w)
    change = LAM / 2 * ((w + step) @ (w + step) - w @ w)
    np.testing.assert_allclose(change, LAM * w @ step, rtol=1e-3, atol=1e-9)
