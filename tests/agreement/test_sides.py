"""One-sided neutrality terms and equalized odds, against cvxpy models written by hand and against plain risks."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm.errors import UnknownNameError

LOSSES = {
    nerm.Hinge(): lambda m: cp.pos(1 - m),
    nerm.Logistic(): lambda m: cp.logistic(-m),
    nerm.SquaredHinge(): lambda m: cp.square(cp.pos(1 - m)),
}


def data(seed=0, n=70, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    X[: n // 4] = X[n // 4 : 2 * (n // 4)]  # equal rows, some with other labels
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1, -1)
    v = np.where(X[:, 0] - X[:, 1] + rng.normal(size=n) > 0.3, 1.0, -1.0)
    return X, y, v


def by_hand(X, y, v, u, phi, psi, eta, sign, mu):
    """Return the optimum of mean phi(y f) + mu/2 ||w||^2 + eta mean u psi(sign v f)."""
    w, b, f = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(len(y))
    side = cp.sum(cp.multiply(u, psi(cp.multiply(sign * v, f)))) / len(y)
    value = cp.sum(phi(cp.multiply(y, f))) / len(y) + mu / 2 * cp.sum_squares(w) + eta * side
    model = cp.Problem(cp.Minimize(value), [f == X @ w + b])
    model.solve(solver="CLARABEL")
    return model.value


@pytest.mark.parametrize(("side", "sign"), [("agreement", -1), ("disagreement", 1)])
@pytest.mark.parametrize("psi", LOSSES, ids=repr)
@pytest.mark.parametrize("phi", LOSSES, ids=repr)
def test_one_side_is_what_it_says(phi, psi, side, sign):
    X, y, v = data()
    u = np.where(v > 0, len(v) / (2 * (v > 0).sum()), len(v) / (2 * (v < 0).sum()))
    term = nerm.Neutrality(psi, weights="balanced", side=side)
    problem = (0.7 * term + nerm.Risk(phi) + 0.1 * nerm.SquaredL2()).on(sp.csr_matrix(X), y, viewpoint=v)
    optimum = by_hand(X, y, v, u, LOSSES[phi], LOSSES[psi], 0.7, sign, 0.1)
    for solver in ("auto", "clarabel"):
        solution = problem.solve(solver, tol=1e-7)
        assert solution.status == "optimal"
        assert solution.objective.total == pytest.approx(optimum, rel=1e-6)
        assert solution.thetas == {"viewpoint": (1.0 + sign) / 2}
        assert solution.multipliers.alpha.shape == (len(y),)
        assert solution.multipliers.betas.shape == (1, len(y))


@pytest.mark.parametrize("eta", [0.0, 0.4, 3.0])
def test_one_side_is_a_risk_with_other_labels(eta):
    X, y, v = data(1)
    both = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2()
    term = eta * nerm.Neutrality(nerm.Hinge(), side="agreement")
    rows = np.vstack([X, X])
    plain = both.on(rows, np.concatenate([y, -v]), sample_weight=np.repeat([2.0, 2.0 * eta], len(y)))
    for solver in ("interior-point", "smo"):
        one = (both + term).on(X, y, viewpoint=v).solve(solver)
        assert one.status == "optimal"
        assert one.objective.total == pytest.approx(plain.solve().objective.total, rel=1e-5)


def test_a_kernel_problem_takes_one_side():
    X, y, v = data(2)
    term = nerm.Neutrality(nerm.Hinge(), side="agreement")
    problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + term).on(X, y, viewpoint=v, kernel="rbf")
    values = [
        problem.solve(solver, tol=1e-7).objective.total
        for solver in ("smo", "augmented-lagrangian", "clarabel")
    ]
    assert values == pytest.approx([values[0]] * 3, rel=1e-6)


def test_a_path_passes_neutrality():
    X, y, v = data(3)
    objective = nerm.Risk(nerm.Logistic()) + 0.01 * nerm.SquaredL2()
    problem = (objective + nerm.Neutrality(nerm.Logistic(), weights="balanced", side="agreement")).on(
        X, y, viewpoint=v
    )
    path = problem.path([0.0, 0.3, 10.0])
    assert [s.status for s in path] == ["optimal"] * 3
    assert path[0].objective.total == pytest.approx(objective.on(X, y).solve().objective.total, rel=2e-6)
    scores = [nerm.metrics.calders_verwer_score(s.training_scores(), v) for s in path]
    assert scores[0] > scores[1] > scores[2]
    assert scores[0] > 0 > scores[2]


def test_equalized_odds_by_hand():
    X, y, v = data(4)
    problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + 0.5 * nerm.equalized_odds(nerm.Hinge())).on(
        X, y, viewpoint=v
    )
    w, b, f = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(len(y))
    value = cp.sum(cp.pos(1 - cp.multiply(y, f))) / len(y) + 0.05 * cp.sum_squares(w)
    for label in (1, -1):
        u = np.where(
            y == label, len(y) / 2 / np.array([((v == each) & (y == label)).sum() for each in v]), 0.0
        )
        sides = [u @ cp.pos(1 - cp.multiply(sign * v, f)) / len(y) for sign in (1, -1)]
        value += 0.5 * cp.maximum(*sides)
    model = cp.Problem(cp.Minimize(value), [f == X @ w + b])
    model.solve(solver="CLARABEL")
    for solver in ("interior-point", "clarabel"):
        solution = problem.solve(solver)
        assert solution.status == "optimal"
        assert solution.objective.total == pytest.approx(model.value, rel=2e-6)
    assert len(solution.thetas) == 2


def test_linear_terms_of_one_side_can_be_unbounded_and_nothing_certifies_them():
    X, y, v = data(5)
    term = 50.0 * nerm.Neutrality(nerm.Identity(), side="agreement")
    fine = (nerm.Risk(nerm.Squared()) + 0.1 * nerm.SquaredL2() + term).on(X, y, viewpoint=v)
    assert fine.solve().status == "optimal"
    lopsided = np.where(np.arange(len(v)) < 60, 1.0, -1.0)
    without = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + term).on(X, y, viewpoint=lopsided)
    assert (
        without.solve().status != "optimal"
    )  # b -> infinity: the slope of the hinge is less than that of the identity


def test_text_and_bad_input():
    term = nerm.Neutrality(nerm.Hinge(), to="sex", side="disagreement")
    assert repr(term) == "Neutrality(Hinge(), to='sex', side='disagreement')"
    assert str(1.0 * term) == "minimise mean hinge(sex f)"
    assert term != nerm.Neutrality(nerm.Hinge(), to="sex")
    latex = (1.0 * nerm.Neutrality(nerm.Hinge(), side="agreement"))._repr_latex_()
    assert r"\max(0,\ 1 + v_i f(x_i))" in latex
    with pytest.raises(
        UnknownNameError, match="'side' of a neutrality term must be one of 'agreement', 'both'"
    ):
        nerm.Neutrality(nerm.Hinge(), side="left")
