"""Multipliers made feasible where directions have no regularizer: certified where possible, never above the optimum."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

import nerm
from nerm import Multipliers, Neutrality, Risk
from nerm.certify.certificate import dual_point
from nerm.certify.multipliers import CANCELLED, Conditions, moved, repaired
from tests.conftest import make_data

PLAIN = {
    "hinge": lambda m: cp.pos(1 - m),
    "logistic": lambda m: cp.logistic(-m),
    "squared-hinge": lambda m: cp.square(cp.pos(1 - m)),
    "squared": lambda m: cp.square(1 - m),
}
TWO_COLUMNS = nerm.regularizer(lambda w: cp.norm1(w[:2]), name="two")
STEPS = nerm.regularizer(lambda w: cp.tv(w), name="tv")
ATOMS = {name: nerm.atoms.margin_functions()[name]() for name in PLAIN}


def random_case(seed):
    """Return a random problem without any regularizer, n > d and not separable, and its optimum by plain cvxpy."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(40, 120)), int(rng.integers(1, 7))
    X = rng.normal(size=(n, d)) * 10 ** rng.uniform(-1, 1, size=d)
    X = np.round(X) if seed % 5 == 0 else X
    X = np.column_stack([X, 2 * X[:, 0]]) if seed % 7 == 0 else X  # a column that says nothing new
    y = np.where(rng.normal(size=n) + X[:, 0] / max(np.abs(X).max(), 1e-9) > 0, 1.0, -1.0)
    v = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    s = rng.uniform(0, 2, size=n) * (rng.random(n) < 0.9) if seed % 3 == 0 else np.ones(n)
    loss, surrogate = list(PLAIN)[seed % 4], list(PLAIN)[seed // 4 % 4]
    eta, intercept = (0.0, 0.3, 3.0)[seed % 3], seed % 4 != 1
    w, b, f = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(n)
    risk = s @ PLAIN[loss](cp.multiply(y, f)) / n
    sides = [cp.sum(PLAIN[surrogate](cp.multiply(sign * v, f))) / n for sign in (1, -1)]
    constraints = [f == X @ w + b] + ([] if intercept else [b == 0])
    oracle = cp.Problem(cp.Minimize(risk + eta * cp.maximum(*sides)), constraints)
    oracle.solve(solver="CLARABEL", tol_gap_abs=1e-10, tol_gap_rel=1e-10, tol_feas=1e-10)
    objective = Risk(ATOMS[loss]) + eta * Neutrality(ATOMS[surrogate])
    X = sp.csr_matrix(X) if seed % 2 else X
    return objective.on(X, y, viewpoint=v, sample_weight=s, intercept=intercept), float(oracle.value)


@pytest.mark.parametrize(
    "seed", [*range(10), *(pytest.param(i, marks=pytest.mark.slow) for i in range(10, 120))]
)
def test_unregularised_problems_are_certified(seed):
    problem, optimum = random_case(seed)
    solution = problem.solve(tol=1e-6)
    assert solution.status == "optimal"
    assert solution.objective.total == pytest.approx(optimum, rel=1e-6)
    assert solution.certificate.dual <= optimum * (1 + 1e-8)
    assert problem.certify(solution.coef, solution.intercept).dual <= optimum * (1 + 1e-8)


@pytest.mark.long
@given(st.integers(0, 10**6))
def test_no_multipliers_bound_more_than_the_optimum(seed):
    """Random, shaken, mis-signed and infeasible multipliers, with nothing or only some directions regularised."""
    X, y, v = make_data(seed % 7, n=30)
    l1, steps = nerm.L1(), 0.1 * STEPS
    omega = (0.0 * l1, 0.05 * TWO_COLUMNS, 1e-7 * l1, steps, steps + 0.03 * l1)[seed % 5]
    loss, surrogate = list(ATOMS)[seed % 4], list(ATOMS)[seed // 4 % 4]
    objective = Risk(ATOMS[loss]) + omega + 0.8 * Neutrality(ATOMS[surrogate])
    problem = objective.on(X, y, viewpoint=v, intercept=seed % 2 == 0)
    w, b = cp.Variable(4), cp.Variable()
    f = X @ w + b if problem.intercept else X @ w
    sides = [cp.sum(PLAIN[surrogate](cp.multiply(sign * v, f))) / 30 for sign in (1, -1)]
    l1, steps = cp.norm1(w), 0.1 * cp.norm1(w[1:] - w[:-1])
    regularized = (0.0, 0.05 * cp.norm1(w[:2]), 1e-7 * l1, steps, steps + 0.03 * l1)[seed % 5]
    total = cp.sum(PLAIN[loss](cp.multiply(y, f))) / 30 + 0.8 * cp.maximum(*sides) + regularized
    optimum = cp.Problem(cp.Minimize(total)).solve(solver="CLARABEL")
    best = problem.solve(tol=1e-5)
    assert best.status == "optimal"
    rng, m = np.random.default_rng(seed), best.multipliers
    noise = rng.normal(size=m.rows.shape)
    candidates = [
        (1.5 * noise, rng.random(1)),
        (-m.rows, m.thetas),
        (m.rows, 1 - m.thetas),
        (3 * m.rows, m.thetas),
    ]
    candidates += [(m.rows + size * noise, m.thetas + size) for size in (1e-6, 1e-3, 0.1)] + [
        (np.nan * m.rows, m.thetas)
    ]
    for rows, thetas in candidates:
        assert dual_point(problem, Multipliers(rows, thetas)).bound <= optimum + 1e-7


@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_repaired_multipliers_have_no_gradient_in_free_directions(make):
    X, y, v = make_data(3, n=60, d=4)
    problem = (Risk(nerm.Hinge()) + 2 * Neutrality(nerm.Pinball(0.5))).on(make(X), y, viewpoint=v)
    rng = np.random.default_rng(0)
    directions = np.linalg.qr(rng.normal(size=(4, 2)))[0]
    for free in (np.eye(4), np.eye(4)[:, [1, 3]], directions):
        m, reason = repaired(problem, Multipliers(rng.uniform(0.2, 0.8, size=(3, 60)), np.array([0.4])), free)
        assert reason == ""
        assert ((m.alpha >= 0) & (m.alpha <= 1)).all()
        c = m.alpha * y + 2 * v * (m.theta * m.beta_plus - (1 - m.theta) * m.beta_minus)
        size = np.abs(free).T @ np.abs(X).T @ np.abs(c)
        assert (np.abs(free.T @ X.T @ c) <= 10 * CANCELLED * size).all()
        assert abs(c.sum()) <= 10 * CANCELLED * np.abs(c).sum()


def test_multipliers_are_moved_to_another_sum():
    X, y, _ = make_data(3, n=60, d=4)
    problem = (Risk(nerm.Logistic()) + 0.1 * nerm.L1()).on(X, y)
    m, _ = repaired(problem, Multipliers(np.full((1, 60), 0.4), np.zeros(0)), np.zeros((4, 0)))
    by = np.array([0.01, -0.02, 0.0, 0.005])
    there = moved(problem, m, by)
    np.testing.assert_allclose(X.T @ (there.alpha * y) / 60, X.T @ (m.alpha * y) / 60 + by, rtol=1e-10)
    assert moved(problem, m, 1e3 * by) is None  # no multipliers in [0, 1] give this gradient


def test_what_failed_is_said_in_words():
    """The identity's multipliers are fixed at -1: with eta = 10 their gradient in column 1 exceeds that of a hinge."""
    X = np.array([[1.0, 1.0], [-1.0, 1.0], [2.0, 1.0], [-2.0, 1.0]])
    objective = Risk(nerm.Hinge()) + 10 * Neutrality(nerm.Identity())
    problem = objective.on(X, [1, 1, -1, -1], viewpoint=np.ones(4), intercept=False)
    start = Multipliers(np.vstack([np.zeros(4), -np.ones((2, 4))]), np.array([1.0]))
    centre, reason = repaired(problem, start, np.eye(2)[:, [1]])
    failed = "the multipliers cannot be brought to sum c x = 0 in the direction of column 1"
    assert reason == f"{failed}, which no regularizer punishes"
    assert centre.theta == 0.5
    assert repaired(problem, start, np.eye(2)[:, [0]])[1] == ""
    wide = objective.on(np.ones((4, 8)), [1, 1, -1, -1], viewpoint=np.ones(4))
    point = dual_point(wide, start)
    assert "sum c = 0 and sum c x = 0 in the direction of columns 0, 1, 2, 3, 4 and 3 more" in point.reason


def test_sizes_before_cancellation_are_what_rounding_is_relative_to():
    X, y, _ = make_data(1, n=20, d=2)
    problem = (1.0 * Risk(nerm.Hinge())).on(1e8 + X, y)
    conditions = Conditions.of(problem, np.ones((2, 1)) / 2**0.5)
    assert (conditions.sizes >= np.abs(conditions.features) - 1e-6).all()
