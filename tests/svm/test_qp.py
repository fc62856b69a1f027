"""The explicit QPs: their formulas, every QP solver, and the gap of a bad answer."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

from nerm.kernels import RBF
from nerm.svm import dual_qp, primal_qp

from .naive import (
    Case,
    assert_dual_feasible,
    best_intercepts,
    dual_value,
    objective,
    solve_by_hand,
    synthetic,
)

CONIC_OR_QP = ["clarabel", "ecos", "scs", "highs", "piqp", "daqp", "qpalm", "qoco", "proxqp"]


@pytest.fixture(scope="module")
def problem():
    X, y, v = synthetic(40, d=3, seed=11)
    v = v * np.linspace(0.5, 1.5, 40)
    v[5] = 0.0
    return X, y, v


def largest_violation(qp):
    """Return the largest violation of a constraint at the values that the variables have."""
    parts = [constraint.violation() for constraint in qp.constraints.values()]
    parts += [np.maximum(0, -x.value) for x in qp.variables.values() if x.is_nonneg()]
    return max(float(np.max(part)) for part in parts)


def test_primal_objective_and_constraints_are_the_formula(problem):
    X, y, v = problem
    rng = np.random.default_rng(0)
    s, u = rng.uniform(0.5, 2, 40), rng.uniform(0.5, 2, 40)
    qp = primal_qp(X, y, v, 0.7, 1.3, sample_weight=s, neutrality_weight=u)
    w, b = rng.normal(size=3), 0.3
    f = X @ w + b
    slack = [np.maximum(0, 1 - y * f), np.maximum(0, 1 - v * f), np.maximum(0, 1 + v * f)]
    zeta = max(u @ slack[1], u @ slack[2])
    for variable, value in zip(qp.variables.values(), [w, b, f, *slack, zeta], strict=True):
        variable.value = value
    assert largest_violation(qp) < 1e-12
    np.testing.assert_allclose(qp.problem.objective.value, objective(f, w @ w, y, v, 0.7, 1.3, s, u))
    for name in ("xi", "xi_plus", "xi_minus"):
        right = qp.variables[name].value
        worse = right.copy()
        worse[np.argmax(worse)] -= 0.1
        qp.variables[name].value = worse
        assert largest_violation(qp) > 0.05
        qp.variables[name].value = right
    qp.variables["zeta"].value = zeta - 0.1
    np.testing.assert_allclose(largest_violation(qp), 0.1)


@pytest.mark.parametrize("variant", ["exact", "published"])
def test_dual_objective_and_constraints_are_the_formula(problem, variant):
    X, y, v = problem
    gram = Case(X, y, v, 0.7, 1.3, "rbf").gram
    qp = dual_qp(X, y, v, 0.7, 1.3, kernel=RBF(0.5), variant=variant)
    rng = np.random.default_rng(0)
    alpha, plus, minus = rng.uniform(0, 1, 40), rng.uniform(0, 0.6, 40), rng.uniform(0, 0.7, 40)
    a = alpha * y + (plus - minus) * v
    values = [a, alpha, plus, minus] + ([np.array([0.6, 0.7])] if variant == "exact" else [])
    for variable, value in zip(qp.variables.values(), values, strict=True):
        variable.value = value
    np.testing.assert_allclose(-qp.problem.objective.value, dual_value(alpha, plus, minus, gram, y, v, 0.7))
    np.testing.assert_allclose(largest_violation(qp), abs(a.sum()))  # all hold but the sum
    if variant == "exact":
        qp.variables["nu"].value = np.array([0.3, 0.7])
        assert largest_violation(qp) > 0.2
    else:
        plus[0], minus[0] = 1.0, 0.9
        qp.variables["beta_plus"].value, qp.variables["beta_minus"].value = plus, minus
        assert np.max(qp.constraints["beta"].violation()) >= 0.6 - 1e-9


@pytest.mark.parametrize("solver", ["osqp", *CONIC_OR_QP])
@pytest.mark.parametrize("form", ["primal", "dual"])
def test_every_solver(problem, solver, form):
    if solver.upper() not in cp.installed_solvers():
        pytest.skip("not installed")
    X, y, v = problem
    build = primal_qp if form == "primal" else dual_qp
    solution = build(X, y, v, 2.0, 1.0).solve(solver, tol=1e-8)
    optimum, w, _ = solve_by_hand(X, y, v, 2.0, 1.0)
    model = solution.model
    if model is None:  # ProxQP calls some of these feasible problems infeasible
        assert solver == "proxqp"
        assert "infeasible" in solution.status
        return
    primal, dual = 40 * model.certificate.primal, 40 * model.certificate.dual
    assert dual <= optimum * (1 + 1e-8)
    assert primal >= optimum * (1 - 1e-8)
    assert_dual_feasible(model, y, v, 1.0)
    assert (model.status == "optimal") == (model.certificate.relative_gap <= 1e-6)
    if model.status == "optimal":
        np.testing.assert_allclose(primal, optimum, rtol=2e-6)
        np.testing.assert_allclose(model.coef, w, atol=1e-2)
    if solver in ("osqp", "clarabel"):
        assert model.certificate.relative_gap <= 1e-6


def test_without_intercept(problem):
    X, y, v = problem
    w = cp.Variable(3)
    f = cp.Variable(40)
    total = (
        cp.sum(cp.pos(1 - cp.multiply(y, f)))
        + cp.sum_squares(w)
        + 0.8 * cp.maximum(cp.sum(cp.pos(1 - cp.multiply(v, f))), cp.sum(cp.pos(1 + cp.multiply(v, f))))
    )
    optimum = cp.Problem(cp.Minimize(total), [f == X @ w]).solve(solver="CLARABEL")
    primal = primal_qp(X, y, v, 2.0, 0.8, intercept=False).solve("clarabel").model
    dual = dual_qp(X, y, v, 2.0, 0.8, intercept=False).solve("clarabel").model
    for model in (primal, dual):
        assert model.intercept == 0.0
        assert model.certificate.relative_gap < 1e-6
        np.testing.assert_allclose(40 * model.certificate.primal, optimum, rtol=1e-6)
        np.testing.assert_allclose(model.coef, w.value, atol=1e-3)


def test_multiplier_of_the_sum_is_an_optimal_intercept(problem):
    X, y, v = problem
    qp = dual_qp(X, y, v, 2.0, 1.0)
    model = qp.solve("clarabel", tol=1e-11).model
    b = -float(qp.constraints["intercept"].dual_value)
    _, left, right = best_intercepts(X @ model.coef, y, v, 2.0, 1.0, slack=1e-7)
    assert left - 1e-4 <= abs(b) * np.sign(model.intercept or 1.0) <= right + 1e-4


def test_wrong_answers_are_inaccurate(problem):
    """A solver that stops early, or whose point was changed, gets an honest gap."""
    X, y, v = problem
    good = primal_qp(X, y, v, 2.0, 1.0).solve("clarabel").model
    early = primal_qp(X, y, v, 2.0, 1.0).solve("osqp", max_iter=5, polishing=False).model
    assert early.status == "inaccurate"
    assert early.certificate.relative_gap > 1e-3
    assert early.certificate.dual <= good.certificate.primal * (1 + 1e-9)
    assert early.certificate.primal >= good.certificate.dual * (1 - 1e-9)
    assert_dual_feasible(early, y, v, 1.0)


def test_sparse_rows_and_zero_weights(problem):
    X, y, v = problem
    u = np.ones(40)
    u[:20] = 0.0
    optimum, _, _ = solve_by_hand(X, y, v, 2.0, 1.0, u=u)
    for rows in (X, sp.csr_matrix(X)):
        qp = primal_qp(rows, y, v, 2.0, 1.0, neutrality_weight=u)
        assert qp.variables["xi_plus"].size == 20
        np.testing.assert_allclose(40 * qp.solve("clarabel").model.certificate.primal, optimum, rtol=1e-6)
