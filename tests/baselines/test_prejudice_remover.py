"""The prejudice remover: the printed formula in plain loops, finite differences, and its behaviour on Adult."""

from __future__ import annotations

import math

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from nerm.baselines import PrejudiceRemover
from nerm.baselines.prejudice_remover import Prejudice
from nerm.datasets import load


def mixed_data(seed=0, n=80, d=4):
    random = np.random.default_rng(seed)
    s = random.random(n) < 0.6
    X = random.normal(size=(n, d)) + 0.5 * s[:, None]
    y = X[:, 0] + 0.8 * s + random.normal(size=n) > 0.5
    return X, y, s


def literal_objective(W, X, y, s, eta, lam):
    """Return the objective of the prejudice remover, row by row."""
    p = [1 / (1 + math.exp(-(W[int(g)][:-1] @ x + W[int(g)][-1]))) for x, g in zip(X, s, strict=True)]
    nll = -sum(math.log(pi if yi else 1 - pi) for pi, yi in zip(p, y, strict=True))
    r = sum(p) / len(p)
    divergence = 0.0
    for g in (False, True):
        members = [pi for pi, si in zip(p, s, strict=True) if si == g]
        q = sum(members) / len(members)
        divergence += len(members) * (q * math.log(q / r) + (1 - q) * math.log((1 - q) / (1 - r)))
    return nll + eta * divergence + lam / 2 * sum(float(w @ w) for w in W), divergence / len(p)


@pytest.mark.parametrize("eta", [0.0, 0.01, 1.0, 30.0])
@pytest.mark.parametrize("seed", range(3))
def test_value_and_gradient_agree_with_the_formula_and_its_differences(eta, seed):
    X, y, s = mixed_data(seed)
    W = np.random.default_rng(seed + 100).normal(size=(2, X.shape[1] + 1))
    problem = Prejudice(X, y, s, eta, 0.7)
    value, gradient = problem.value_and_gradient(W.ravel())
    assert value == pytest.approx(literal_objective(W, X, y, s, eta, 0.7)[0], rel=1e-12)
    for k in range(W.size):
        step = np.zeros(W.size)
        step[k] = 1e-5
        ahead = literal_objective((W.ravel() + step).reshape(W.shape), X, y, s, eta, 0.7)[0]
        behind = literal_objective((W.ravel() - step).reshape(W.shape), X, y, s, eta, 0.7)[0]
        assert gradient[k] == pytest.approx((ahead - behind) / 2e-5, rel=1e-5, abs=1e-5)


def test_objective_and_information_are_the_formulas_at_the_fit():
    X, y, s = mixed_data()
    model = PrejudiceRemover(eta=3.0, lam=0.5).fit(X, y, viewpoint=s)
    W = np.column_stack([model.coef_, model.intercept_])
    value, information = literal_objective(W, X, y, s, 3.0, 0.5)
    assert model.objective_ == pytest.approx(value)
    assert model.mutual_information_ == pytest.approx(information)
    assert model.converged_
    assert model.gradient_norm_ <= 1e-6


def test_eta_zero_is_a_logistic_regression_a_group():
    X, y, s = mixed_data(1)
    model = PrejudiceRemover(eta=0.0, lam=2.0, tol=1e-9).fit(X, y, viewpoint=s)
    for g in (False, True):
        rows = s == g
        extended = np.column_stack([X[rows], np.ones(rows.sum())])  # the intercept is a regularised column
        plain = LogisticRegression(C=0.5, fit_intercept=False, tol=1e-10, max_iter=1000).fit(
            extended, y[rows]
        )
        np.testing.assert_allclose(
            np.append(model.coef_[int(g)], model.intercept_[int(g)]), plain.coef_[0], atol=1e-5
        )


def test_small_eta_moves_the_solution():
    X, y, s = mixed_data(2)
    at = [
        PrejudiceRemover(eta=eta, tol=1e-9).fit(X, y, viewpoint=s).mutual_information_
        for eta in (0, 1e-3, 1e-2)
    ]
    assert at[0] > at[1] + 1e-6
    assert at[1] > at[2] + 1e-6


def test_sparse_is_dense_and_labels_may_be_words():
    X, y, s = mixed_data(3)
    dense = PrejudiceRemover(eta=2.0, tol=1e-8).fit(X, y, viewpoint=s)
    sparse = clone(dense).fit(sp.csr_matrix(X), y, viewpoint=s)
    np.testing.assert_allclose(sparse.coef_, dense.coef_, atol=1e-6)
    words = clone(dense).fit(X, np.where(y, "yes", "no"), viewpoint=np.where(s, "m", "f"))
    assert set(words.predict(X, viewpoint=np.where(s, "m", "f"))) == {"no", "yes"}
    assert words.score(X, np.where(y, "yes", "no"), viewpoint=np.where(s, "m", "f")) == dense.score(
        X, y, viewpoint=s
    )


@pytest.mark.long
def test_cold_and_warm_starts_meet(adult):
    data = adult[1]
    chosen = slice(0, 4000)
    X, y, s = data.X[chosen], data.y[chosen], data.viewpoint[chosen]
    walker = PrejudiceRemover(eta=0.0, tol=1e-7, warm_start=True).fit(X, y, viewpoint=s)
    for eta in (0.1, 1.0, 10.0):
        walker.set_params(eta=eta).fit(X, y, viewpoint=s)
        cold = PrejudiceRemover(eta=eta, tol=1e-7).fit(X, y, viewpoint=s)
        assert walker.objective_ == pytest.approx(cold.objective_, rel=1e-8)
        np.testing.assert_allclose(walker.coef_, cold.coef_, atol=1e-3)


@pytest.mark.long
def test_information_falls_with_eta_on_adult(adult):
    data = adult[1]
    found = []
    for eta in (0, 0.01, 0.1, 1, 10, 100):
        model = PrejudiceRemover(eta=eta).fit(data.X, data.y, viewpoint=data.viewpoint)
        found.append(model.mutual_information_)
    assert (np.diff(found) < 0).all()
    assert found[-1] < 1e-4 < found[0]


def test_no_convergence_is_said_with_the_residual():
    X, y, s = mixed_data(4)
    with pytest.warns(
        ConvergenceWarning,
        match=r"PrejudiceRemover did not converge: the largest entry of the gradient is \S+ after 1 steps, "
        r"tol is 1e-12\. Raise max_iter",
    ):
        model = PrejudiceRemover(tol=1e-12, max_iter=1).fit(X, y, viewpoint=s)
    assert not model.converged_


def test_warm_start_on_other_columns():
    X, y, s = mixed_data(6)
    model = PrejudiceRemover(warm_start=True).fit(X, y, viewpoint=s)
    with pytest.raises(
        ValueError, match="X has 2 features, but PrejudiceRemover is expecting 4 features as input"
    ):
        model.fit(X[:, :2], y, viewpoint=s)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["german", "bank"])
@pytest.mark.parametrize("lam", [0.01, 1.0, 100.0])
def test_information_falls_with_eta_on_the_other_tables(name, lam, real_data):
    data = load(name, "one-hot", data_home=real_data)
    found = []
    for eta in (0, 0.01, 0.05, 0.1, 0.5, 1, 5, 10, 50, 100):
        model = PrejudiceRemover(eta=eta, lam=lam).fit(data.X, data.y, viewpoint=data.viewpoint)
        found.append(model.mutual_information_)
    assert (np.diff(found) < 0).all()
