"""problem.solve("smo"): scikit-learn's SVC at eta = 0, extreme problems, limits."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import nerm
from nerm.kernels import RBF
from tests.svm.naive import assert_dual_feasible, best_intercepts, synthetic


def neutral_svm(X, y, v, lam, eta, kernel=None):
    """Return the neutral SVM of the paper's (lam, eta) as a problem."""
    objective = nerm.Risk(nerm.Hinge()) + (lam / len(y)) * nerm.SquaredL2()
    if v is not None:
        objective = objective + eta * nerm.Neutrality(nerm.Hinge())
    return objective.on(X, y, viewpoint=v, kernel=kernel)


@pytest.mark.parametrize(("name", "lam"), [("linear", 10.0), ("rbf", 1.0), ("rbf", 10.0)])
def test_plain_svm_equals_svc(name, lam):
    X, y = load_breast_cancer(return_X_y=True)
    X, y = StandardScaler().fit_transform(X)[:300], np.where(y == 1, 1.0, -1.0)[:300]
    kernel = None if name == "linear" else RBF(0.03)
    model = neutral_svm(X, y, None, lam, 0.0, kernel).solve("smo", tol=1e-10)
    assert model.status == "optimal"
    svc = SVC(C=1 / lam, kernel=name, tol=1e-9, gamma=0.03).fit(X, y)
    theirs = np.zeros(len(y))
    theirs[svc.support_] = svc.dual_coef_[0]
    np.testing.assert_allclose(model.multipliers.alpha * y / lam, theirs, atol=2e-4 / lam)
    np.testing.assert_allclose(model.coef, theirs if kernel else svc.coef_[0], atol=2e-4 / lam)
    np.testing.assert_allclose(model.decision_function(X), svc.decision_function(X), atol=1e-4)
    g = model.training_scores() - model.intercept
    _, left, right = best_intercepts(g, y, np.zeros(len(y)), lam, 0.0, slack=1e-7)
    assert left - 1e-4 <= svc.intercept_[0] <= right + 1e-4


@pytest.mark.parametrize("viewpoint", ["y", "-y", "constant", "zero", "tiny"])
@pytest.mark.parametrize("eta", [1.0, 1e4])
@pytest.mark.parametrize("lam", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_extreme_problems_end_with_a_certificate(viewpoint, eta, lam, kernel):
    X, y, _ = synthetic(16, d=2, seed=1)
    X[8:] = X[:8]  # every row twice
    y[8:12] = y[:4]
    v = {"y": y, "-y": -y, "constant": np.ones(16), "zero": np.zeros(16), "tiny": 1e-9 * y}[viewpoint]
    model = neutral_svm(X, y, v, lam, eta, kernel).solve("smo", max_iter=200_000)
    c = model.certificate
    assert np.isfinite([c.primal, c.dual, model.intercept]).all()
    # at lambda = 1e-6 scores of size 1e6 cancel: their rounding is part of the values
    assert c.dual <= c.primal * (1 + (1e-10 if lam == 1e-6 else 1e-12))
    if model.status != "optimal":
        assert model.stats.claim.startswith("not converged")
        assert lam == 1e-6


def test_iteration_limit_is_reported():
    X, y, v = synthetic(100, d=4)
    model = neutral_svm(X, y, v, 0.01, 1.0, "rbf").solve("smo", tol=1e-9, max_iter=50)
    assert model.status == "inaccurate"
    assert model.stats.claim == "not converged: the limit of 50 pair steps was reached"
    assert model.stats.iterations == 50
    assert_dual_feasible(model, y, v, 1.0)


def test_more_rows_than_a_gram_matrix_may_have_are_refused(monkeypatch):
    monkeypatch.setattr("nerm.model.hypothesis.GRAM_LIMIT", 9)
    X, y, v = synthetic(20, d=2)
    with pytest.raises(nerm.UnsupportedProblemError, match="Got a problem with 20 rows"):
        neutral_svm(X, y, v, 0.1, 1.0, "rbf").solve("smo")
    assert neutral_svm(X @ X.T, y, v, 0.1, 1.0, "precomputed").solve("smo").status == "optimal"


def test_only_support_points_have_coefficients():
    X, y, _ = synthetic(120, d=2, seed=0)
    model = neutral_svm(X, y, None, 0.1, 0.0, RBF(0.5)).solve("smo", tol=1e-8)
    support = np.flatnonzero(model.coef)
    assert 0 < len(support) < 120
    assert (np.delete(model.multipliers.alpha, support) == 0).all()
