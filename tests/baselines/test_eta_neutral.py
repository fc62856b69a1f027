"""eta-LR: derivatives by differences, the constraints over the whole grid, SLSQP and LogisticRegression as oracles."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from nerm.baselines import EtaNeutralLogisticRegression
from nerm.baselines.base import with_ones
from nerm.baselines.eta_neutral import NeutralLikelihood
from nerm.datasets import load
from nerm.errors import InvalidInputError

GRID = [0, 5e-5, 1e-4, 5e-4, 1e-3, 5e-3, 1e-2, 5e-2, 0.1, 0.5]


def mixed_data(seed=0, n=120, d=3):
    random = np.random.default_rng(seed)
    s = random.random(n) < 0.6
    X = random.normal(size=(n, d)) + 0.7 * s[:, None]
    y = X[:, 0] + 0.8 * s + random.normal(size=n) > 0.5
    return X, y, s


def literal(X, y, s, eta, lam):
    """Objective (sum form) and constraint table, from predicted probabilities."""

    def probability(w):
        return 1 / (1 + np.exp(-(X @ w[:-1] + w[-1])))

    def objective(w):
        signed = np.where(y, 1, -1) * (X @ w[:-1] + w[-1])
        return np.logaddexp(0, -signed).sum() + lam / 2 * (w[:-1] @ w[:-1])

    def constraints(w):
        p = probability(w)
        table = np.empty((2, 2))
        for label in (0, 1):
            chance = p if label else 1 - p
            for v in (0, 1):
                weight = s if v else 1 - s
                table[label, v] = (weight * chance).sum() / weight.sum() - (1 + eta) * chance.mean()
        return table

    return objective, constraints


@pytest.mark.parametrize("eta", [0.0, 0.2])
@pytest.mark.parametrize("sparse", [False, True])
def test_derivatives_agree_with_finite_differences(eta, sparse):
    X, y, s = mixed_data(1)
    extended = with_ones(sp.csr_matrix(X) if sparse else X)
    problem = NeutralLikelihood(extended, y, s.astype(float), eta, 0.3)
    w = np.random.default_rng(2).normal(size=4)
    objective, constraints = literal(X, y, s.astype(float), eta, 0.3)
    assert problem.objective(w) * len(y) == pytest.approx(objective(w))
    table = constraints(w)
    expected = [(table[1, 1] - table[1, 0])] if eta == 0 else table.ravel()
    np.testing.assert_allclose(problem.constraints(w), expected, atol=1e-12)
    h, k = 1e-6, len(expected)
    mu, rho = np.random.default_rng(3).random(k), 5.0
    pushed = mu + rho * problem.constraints(w)
    m = pushed if eta == 0 else np.maximum(pushed, 0.0)
    value, gradient = problem.augmented(w, mu, rho)
    assert value == pytest.approx(problem.objective(w) + (m @ m - mu @ mu) / (2 * rho))
    hessian = problem.hessian(w, mu, rho)
    for j, step in enumerate(h * np.eye(4)):
        difference = (objective(w + step) - objective(w - step)) / (2 * h * len(y))
        assert problem.augmented(w, np.zeros(k), 1e-12)[1][j] == pytest.approx(difference, abs=1e-6)
        ahead, behind = (problem.augmented(w + side * step, mu, rho) for side in (1, -1))
        assert gradient[j] == pytest.approx((ahead[0] - behind[0]) / (2 * h), abs=1e-6)
        np.testing.assert_allclose(hessian[:, j], (ahead[1] - behind[1]) / (2 * h), atol=1e-6)


@pytest.mark.parametrize("eta", GRID)
@pytest.mark.parametrize("seed", range(3))
def test_it_finds_what_slsqp_finds(eta, seed):
    X, y, s = mixed_data(seed)
    model = EtaNeutralLogisticRegression(eta=eta, lam=0.5).fit(X, y, viewpoint=s)
    objective, constraints = literal(X, y, s.astype(float), eta, 0.5)
    w = np.append(model.coef_, model.intercept_)
    assert model.converged_
    assert model.objective_ == pytest.approx(objective(w))
    np.testing.assert_allclose(model.constraints_, constraints(w), atol=1e-12)
    assert constraints(w).max() <= 1e-6
    if eta == 0:
        rule = {"type": "eq", "fun": lambda w: np.diff(constraints(w)[1])}
    else:
        rule = {"type": "ineq", "fun": lambda w: -constraints(w).ravel()}
    rival = scipy.optimize.minimize(
        objective, np.zeros(4), method="SLSQP", constraints=[rule], options={"maxiter": 500, "ftol": 1e-12}
    )
    assert model.objective_ <= rival.fun + 1e-4
    assert model.objective_ >= rival.fun - 1e-2 * abs(rival.fun)


def test_probabilities_stand_for_the_groups_minus_one_and_one():
    X, y, s = mixed_data(4)
    chances = np.clip(0.5 + 0.3 * np.where(s, 1, -1) + 0.1 * X[:, 0] / np.abs(X[:, 0]).max(), 0, 1)
    model = EtaNeutralLogisticRegression(eta=0.05, lam=1.0).fit(X, y, viewpoint=chances)
    assert model.groups_.tolist() == [-1, 1]
    assert {group for _, group in model.active_constraints_} <= {-1, 1}


def test_loose_eta_is_plain_logistic_regression():
    X, y, s = mixed_data(3)
    model = EtaNeutralLogisticRegression(eta=10.0, lam=2.0).fit(X, y, viewpoint=s)
    plain = LogisticRegression(C=0.5, tol=1e-10, max_iter=1000).fit(X, y)
    np.testing.assert_allclose(model.coef_, plain.coef_[0], atol=1e-5)
    assert model.intercept_ == pytest.approx(plain.intercept_[0], abs=1e-5)
    assert model.active_constraints_ == []


def test_the_multipliers_balance_the_gradient():
    X, y, s = mixed_data(4)
    model = EtaNeutralLogisticRegression(eta=0.05, lam=1.0).fit(
        X, np.where(y, 1, -1), viewpoint=np.where(s, "m", "f")
    )
    assert model.active_constraints_
    assert set(model.active_constraints_) <= {(c, g) for c in (-1, 1) for g in ("f", "m")}
    objective, constraints = literal(X, y, s.astype(float), 0.05, 1.0)
    w, h = np.append(model.coef_, model.intercept_), 1e-6
    for step in h * np.eye(4):
        slope = (objective(w + step) - objective(w - step)) / (2 * h)
        gradient = model.multipliers_ @ (constraints(w + step) - constraints(w - step)).ravel() / (2 * h)
        assert slope + gradient == pytest.approx(0.0, abs=1e-3)
    assert (model.multipliers_ * model.constraints_.ravel()) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.long
def test_the_whole_grid_on_adult(adult):
    data = adult[1]
    found = [
        EtaNeutralLogisticRegression(eta=eta).fit(data.X, data.y, viewpoint=data.viewpoint) for eta in GRID
    ]
    assert all(model.converged_ for model in found)
    assert max(model.constraints_.max() for model in found) <= 1e-6
    objectives = [model.objective_ for model in found]
    assert (np.diff(objectives) < 0).all()  # it rises as eta falls
    assert found[0].active_constraints_ == ["q_0 = q_1"]
    assert found[-1].active_constraints_ == []


def test_probabilities_and_models_of_the_viewpoint():
    X, y, s = mixed_data(5)
    guess = LogisticRegression().fit(X, s)
    chances = guess.predict_proba(X)[:, 1]
    model = EtaNeutralLogisticRegression(eta=0.02).fit(X, y, viewpoint=chances)
    again = clone(model).fit(X, y, viewpoint=guess)
    np.testing.assert_allclose(again.coef_, model.coef_)
    _, constraints = literal(X, y, chances, 0.02, 1.0)
    np.testing.assert_allclose(
        model.constraints_, constraints(np.append(model.coef_, model.intercept_)), atol=1e-12
    )
    assert model.constraints_.max() <= 1e-6
    hard = clone(model).fit(X, y, viewpoint=s)
    soft = clone(model).fit(X, y, viewpoint=np.where(s, 1.0, 0.0))
    np.testing.assert_allclose(hard.coef_, soft.coef_)
    np.testing.assert_array_equal(hard.predict(X), hard.predict(X, viewpoint=s))  # not needed at prediction


@pytest.mark.parametrize(
    ("viewpoint", "message"),
    [
        (
            np.arange(120.0),
            "'viewpoint' must hold two groups, or probabilities that vary within [0, 1]. Got 120 different "
            "values, 2 at index 2. Pass two groups, P(v=+1|x) for each row, or a fitted classifier with "
            "predict_proba.",
        ),
        (
            np.array(list("abc") * 40),
            "'viewpoint' must hold exactly two classes. Got 3 classes: 'a', 'b', 'c'. Select or merge "
            "classes so that two remain.",
        ),
    ],
)
def test_viewpoints_that_are_neither(viewpoint, message):
    X, y, _ = mixed_data()
    with pytest.raises(InvalidInputError) as caught:
        EtaNeutralLogisticRegression().fit(X, y, viewpoint=viewpoint)
    assert str(caught.value) == message


def test_no_convergence_is_said_with_the_residual():
    X, y, s = mixed_data(6)
    with pytest.warns(
        ConvergenceWarning,
        match=r"EtaNeutralLogisticRegression did not converge: the constraints are violated by \S+ and the "
        r"largest entry of the Lagrangian's gradient is \S+ \(tol 1e-07\) after 1 steps\. Raise max_iter",
    ):
        model = EtaNeutralLogisticRegression(eta=0.01, max_iter=1).fit(X, y, viewpoint=s)
    assert not model.converged_
    assert model.violation_ > 1e-6


@pytest.mark.parametrize("eta", [0.0, 1e-3, 0.05])
def test_constraints_hold_to_what_is_said(eta):
    X, y, s = mixed_data(8)
    model = EtaNeutralLogisticRegression(eta=eta).fit(X, y, viewpoint=s)
    assert model.converged_
    assert model.violation_ <= 1e-6


@pytest.mark.slow
@pytest.mark.parametrize("name", ["german", "bank"])
@pytest.mark.parametrize("lam", [0.0, 0.01, 1.0, 100.0])
def test_the_whole_grid_on_the_other_tables(name, lam, real_data):
    data = load(name, "one-hot", data_home=real_data)
    found = [
        EtaNeutralLogisticRegression(eta=eta, lam=lam).fit(data.X, data.y, viewpoint=data.viewpoint)
        for eta in GRID
    ]
    assert max(model.constraints_.max() for model in found) <= 1e-6
    assert (np.diff([model.objective_ for model in found]) <= 1e-4).all()


@pytest.mark.slow
def test_the_size_of_the_dutch_census():
    random = np.random.default_rng(0)
    X = sp.csr_matrix(
        sp.hstack([sp.csr_matrix(np.eye(9)[random.integers(9, size=60000)]) for _ in range(12)])
    )
    s = X @ random.normal(size=108) + random.logistic(size=60000) > 0
    y = X @ random.normal(size=108) + s + random.logistic(size=60000) > 0
    for eta in GRID:
        model = EtaNeutralLogisticRegression(eta=eta).fit(X, y, viewpoint=s)
        assert model.constraints_.max() <= 1e-6
