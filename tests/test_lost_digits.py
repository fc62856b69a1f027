"""Where floats lose digits no certificate claims what they cannot tell: far rows, large forces, sums that cancel."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import nerm
from nerm import Hinge, Risk, SquaredL2, kernels
from nerm.rounding import EPS, LONG_EPS
from tests.conftest import make_data


def far_rows(offset, n=60):
    """Return the same rows twice, at the origin and far from it, with labels that they do not separate."""
    rng = np.random.default_rng(0)
    Z = np.round(rng.normal(size=(n, 2)) * 2**10) / 2**10  # exact at any offset below
    return Z, Z + offset, np.sign(Z[:, 0] + 0.5 * rng.normal(size=n))


@pytest.mark.parametrize("solver", ["smo", "low-rank", "augmented-lagrangian", "dual-qp", "clarabel"])
def test_an_rbf_kernel_far_from_the_origin_gives_the_same_optimum(solver):
    """Squared distances from products of rows cancel there, and an indefinite Gram matrix has no optimum at all.

    Sixteen offsets of the report that found it, 1e5 to 3e6, and 2 ** 23.
    """
    near, _, y = far_rows(0.0)
    objective, kernel = Risk(Hinge()) + 1e-3 * SquaredL2(), nerm.kernels.RBF(gamma=0.5)
    here = objective.on(near, y, kernel=kernel).solve(solver)
    for offset in (*np.geomspace(1e5, 3e6, 16), 2.0**23):
        there = objective.on(near + np.round(offset), y, kernel=kernel).solve(solver)
        assert there.status == "optimal", offset
        assert there.objective.total == pytest.approx(here.objective.total, rel=2e-6), offset
        evaluated = there.problem.evaluate(there.coef, there.intercept).total
        assert evaluated >= here.certificate.dual * (1 - 1e-9), offset


@pytest.mark.parametrize("offset", [2.0**27, 2.0**33, 2.0**40])
def test_linear_rows_far_from_the_origin_are_judged_by_their_differences(offset):
    near, far, y = far_rows(offset)
    objective = Risk(Hinge()) + 1e-3 * SquaredL2()
    here, there = (objective.on(X, y).solve() for X in (near, far))
    gap = there.certificate.relative_gap
    assert there.certificate.primal >= here.certificate.dual * (1 - 1e-9)
    assert there.certificate.dual <= here.certificate.primal + there.certificate.slack
    assert there.objective.total <= here.objective.total * (1 + 2 * max(gap, 1e-6))
    w, b = [Fraction(c) for c in there.coef], Fraction(there.intercept) + Fraction(there.intercept.rest)
    scores = [sum(c * Fraction(x) for c, x in zip(w, row, strict=True)) + b for row in far]
    risk = sum(max(Fraction(0), 1 - int(t) * f) for t, f in zip(y, scores, strict=True)) / len(y)
    exact = risk + Fraction(1e-3) / 2 * sum(c * c for c in w)
    assert abs(float(exact - Fraction(there.objective.total))) <= there.certificate.slack


@pytest.mark.parametrize("omega", [nerm.L1(), nerm.LInf(), nerm.GroupL2([0, 0])], ids=repr)
def test_integers_near_the_last_digit_certify_no_zero(omega):
    """Near 2^60 sums of x cancel to nothing in floats: f = 0 was called optimal where a slope pays."""
    rng = np.random.default_rng(0)
    near = rng.integers(-3, 4, size=(24, 2)) * 512.0
    far, y = near + 2.0**60, np.where(near[:, 0] + 700 * rng.normal(size=24) > 0, 1, -1)
    objective = Risk(nerm.SquaredHinge()) + omega
    here = objective.on(near, y).solve()
    assert here.status == "optimal"
    problem = objective.on(far, y)
    nothing = problem.certify(np.zeros(2), 0.0)
    assert nothing.primal - nothing.dual + nothing.slack >= 0.99 * (1.0 - here.objective.total)
    found = problem.solve()
    assert found.certificate.dual <= here.objective.total + found.certificate.slack + 1e-9
    assert found.status == "optimal"
    assert found.objective.total == pytest.approx(here.objective.total, rel=2e-6)


def test_an_intercept_has_the_digits_that_far_columns_need():
    """Near 2^60 the last digit of b is worth more than scores differ by: `intercept.rest` is what follows it."""
    rng = np.random.default_rng(1)
    near = rng.integers(-3, 4, size=(30, 2)) * 512.0
    far, y = near + 2.0**60, np.where(near[:, 0] + 700 * rng.normal(size=30) > 0, 1, -1)
    objective = Risk(Hinge()) + 1e-3 * SquaredL2()
    here, there = objective.on(near, y).solve(), objective.on(far, y).solve()
    assert there.status == "optimal"
    rounded = there.problem.evaluate(there.coef, float(there.intercept))  # judged as it is given
    assert rounded.total > there.objective.total * (1 + 1e-5)
    assert there.problem.evaluate(there.coef, there.intercept).total == there.objective.total
    np.testing.assert_allclose(there.decision_function(far), here.decision_function(near), atol=1e-2)
    np.testing.assert_allclose(there.decision_function(far[:1]), there.training_scores()[:1], atol=1e-9)


def test_a_kernel_that_loses_its_digits_is_not_believed():
    """A polynomial of raw columns: solvers lose it, and the certificate says why and what to do."""
    _, X, y = far_rows(100.0)
    problem = (Risk(Hinge()) + SquaredL2()).on(
        X, y, kernel=nerm.kernels.Polynomial(gamma=1.0, degree=3, coef0=1.0)
    )
    solution = problem.solve()
    assert solution.status == "inaccurate"
    assert "digits" in solution.certificate.reason or "rounding may hide" in solution.certificate.reason
    assert "scale the columns" in str(solution.certificate)


@pytest.mark.skipif(LONG_EPS == EPS, reason="the platform has no long doubles")
@pytest.mark.parametrize("kernel", [kernels.RBF(gamma=0.02), kernels.RBF(gamma=0.1)], ids=repr)
def test_kernel_coefficients_that_cancel_are_judged_in_long_doubles(kernel):
    """With little regularization coefficients are near 1e8 and scores near 1: the last digits of K count."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(12, 2)), np.where(rng.random(12) < 0.5, 1, -1)
    solution = (Risk(nerm.SquaredHinge()) + 1e-9 * SquaredL2()).on(X, y, kernel=kernel).solve()
    assert solution.status == "optimal"
    assert np.abs(solution.coef).max() > 1e4
    exact = kernel.long_gram(X) @ solution.coef.astype(np.longdouble)
    np.testing.assert_allclose(
        solution.training_scores(), (exact + solution.intercept).astype(float), atol=1e-12
    )


def test_an_almost_semidefinite_gram_matrix_is_made_semidefinite():
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(60, 60)))
    values = np.r_[np.ones(30), np.full(30, -1e-9)]
    K = (Q * values) @ Q.T
    y = np.sign(rng.normal(size=60))
    problem = (Risk(Hinge()) + 0.1 * SquaredL2()).on((K + K.T) / 2, y, kernel="precomputed")
    assert np.linalg.eigvalsh(problem.hypothesis.gram)[0] >= -1e-14
    bound = problem.solve().certificate.dual
    negative = Q[:, 30:]
    c = negative @ np.linalg.lstsq(negative * values[30:], 10 * y, rcond=None)[0]
    assert problem.evaluate(c, 0.0).total >= bound


@pytest.mark.long
@pytest.mark.parametrize("eta", [1e9, 1e12, 1e20, 1e200])
def test_forces_that_drown_the_risk_certify_nothing(eta):
    """With |mean v f| the term can be 0 at any weight: the optimum stays, and so must the bound stay below it."""
    X, y, v = make_data(3, 50, 3)
    covariance = nerm.Neutrality(nerm.Identity())
    optimum = (
        (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + 100 * covariance).on(X, y, viewpoint=v).solve()
    )
    large = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + eta * covariance).on(X, y, viewpoint=v)
    known = replace(optimum.multipliers, rows=np.ones_like(optimum.multipliers.rows))
    for thetas in (known.thetas, np.array([0.5])):
        bound = large.certify([0.0, 0.0, 0.0], 0.0, replace(known, thetas=thetas)).dual
        assert bound <= optimum.certificate.primal * (1 + 1e-8)
    solution = large.solve()
    assert solution.status != "optimal" or solution.objective.total <= optimum.objective.total * (1 + 1e-5)
