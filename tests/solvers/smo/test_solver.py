"""problem.solve("smo"): scikit-learn's SVC at eta = 0, extreme problems, small caches, warm starts, limits."""

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


def test_small_cache_gives_the_same_solution():
    X, y, v = synthetic(120, d=4, seed=2)
    problem = neutral_svm(X, y, v, 1.0, 1.0, "rbf")
    whole = problem.solve("smo", tol=1e-8)
    for cache_mb in (0.05, 0.001):  # about 50 and 2 rows of 120
        cached = problem.solve("smo", tol=1e-8, cache_mb=cache_mb)
        assert cached.status == "optimal"
        np.testing.assert_allclose(cached.certificate.primal, whole.certificate.primal, rtol=1e-8)
        np.testing.assert_allclose(cached.training_scores(), whole.training_scores(), atol=1e-3)


def test_warm_start_takes_fewer_steps():
    X, y, v = synthetic(120, d=4, seed=4)
    first = neutral_svm(X, y, v, 1.0, 1.0, "rbf").solve("smo", tol=1e-7)
    problem = neutral_svm(X, y, v, 1.0, 1.1, "rbf")
    cold, warm = problem.solve("smo", tol=1e-7), problem.solve("smo", tol=1e-7, warm_start=first)
    np.testing.assert_allclose(warm.certificate.primal, cold.certificate.primal, rtol=1e-6)
    assert warm.stats.iterations < cold.stats.iterations
    again = neutral_svm(X, y, v, 1.0, 1.0, "rbf").solve("smo", tol=1e-6, warm_start=first)
    assert again.stats.iterations == 0


def test_iteration_limit_is_reported():
    X, y, v = synthetic(100, d=4)
    model = neutral_svm(X, y, v, 0.01, 1.0, "rbf").solve("smo", tol=1e-9, max_iter=50)
    assert model.status == "inaccurate"
    assert model.stats.claim == "not converged: the limit of 50 pair steps was reached"
    assert model.stats.iterations == 50
    assert_dual_feasible(model, y, v, 1.0)


def test_callback_sees_progress_and_can_stop():
    X, y, v = synthetic(100, d=4)
    problem = neutral_svm(X, y, v, 0.1, 1.0, "rbf")
    seen = []
    model = problem.solve("smo", tol=1e-8, callback=seen.append)
    assert tuple(seen) == model.stats.details["history"]
    assert all(entry["dual"] <= entry["primal"] * (1 + 1e-12) for entry in seen)
    stopped = problem.solve("smo", tol=1e-8, callback=lambda entry: False)
    assert stopped.status == "inaccurate"
    assert stopped.stats.claim == "stopped: the callback asked for it"


def test_only_support_points_have_coefficients():
    X, y, _ = synthetic(120, d=2, seed=0)
    model = neutral_svm(X, y, None, 0.1, 0.0, RBF(0.5)).solve("smo", tol=1e-8)
    support = np.flatnonzero(model.coef)
    assert 0 < len(support) < 120
    assert (np.delete(model.multipliers.alpha, support) == 0).all()
