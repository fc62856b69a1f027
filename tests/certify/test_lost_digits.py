"""Certificates where floats lose digits: rows far from 0, large weights, sums that cancel."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

import nerm
from nerm import Hinge, Risk, SquaredL2
from tests.conftest import make_data


def far_rows(offset, n=60):
    """Return the same rows twice, at the origin and far from it, with labels that they do not separate."""
    rng = np.random.default_rng(0)
    Z = np.round(rng.normal(size=(n, 2)) * 2**10) / 2**10  # exact at any offset below
    return Z, Z + offset, np.sign(Z[:, 0] + 0.5 * rng.normal(size=n))


@pytest.mark.parametrize("solver", ["smo", "augmented-lagrangian", "clarabel"])
def test_rbf_optimum_does_not_depend_on_the_origin(solver):
    """Squared distances from products of rows would cancel there, and leave an indefinite Gram matrix."""
    near, _, y = far_rows(0.0)
    objective, kernel = Risk(Hinge()) + 1e-3 * SquaredL2(), nerm.kernels.RBF(gamma=0.5)
    here = objective.on(near, y, kernel=kernel).solve(solver)
    for offset in (1e5, 7e5, 3e6, 2.0**23):
        there = objective.on(near + np.round(offset), y, kernel=kernel).solve(solver)
        assert there.status == "optimal", offset
        assert there.objective.total == pytest.approx(here.objective.total, rel=2e-6), offset
        evaluated = there.problem.evaluate(there.coef, there.intercept).total
        assert evaluated >= here.certificate.dual * (1 - 1e-9), offset


@pytest.mark.parametrize("offset", [2.0**27, 2.0**33, 2.0**40])
def test_certificate_of_far_rows_covers_rounding(offset):
    near, far, y = far_rows(offset)
    objective = Risk(Hinge()) + 1e-3 * SquaredL2()
    here, there = (objective.on(X, y).solve() for X in (near, far))
    gap = there.certificate.relative_gap
    assert there.certificate.primal >= here.certificate.dual * (1 - 1e-9)
    assert there.certificate.dual <= here.certificate.primal + there.certificate.slack
    assert there.objective.total <= here.objective.total * (1 + 2 * max(gap, 1e-6))
    w, b = [Fraction(c) for c in there.coef], Fraction(there.intercept)
    scores = [sum(c * Fraction(x) for c, x in zip(w, row, strict=True)) + b for row in far]
    risk = sum(max(Fraction(0), 1 - int(t) * f) for t, f in zip(y, scores, strict=True)) / len(y)
    exact = risk + Fraction(1e-3) / 2 * sum(c * c for c in w)
    assert abs(float(exact - Fraction(there.objective.total))) <= there.certificate.slack


@pytest.mark.parametrize("omega", [nerm.L1(), nerm.LInf(), nerm.GroupL2([0, 0])], ids=repr)
def test_zero_is_not_certified_near_the_last_digit(omega):
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
    assert found.certificate.primal >= here.certificate.dual - found.certificate.slack


@pytest.mark.parametrize("offset", [1e6, 1e8])
def test_moderate_offsets_are_solved(offset):
    near, far, y = far_rows(offset)
    objective = Risk(Hinge()) + 1e-3 * SquaredL2()
    here, there = objective.on(near, y).solve(), objective.on(far, y).solve()
    assert there.status == "optimal"
    assert there.objective.total == pytest.approx(here.objective.total, rel=2e-6)
    np.testing.assert_allclose(there.decision_function(far), here.decision_function(near), atol=1e-2)


def test_extreme_offsets_are_inaccurate_with_advice():
    """Near 2^60 the last digit of b is worth more than scores differ by."""
    rng = np.random.default_rng(1)
    near = rng.integers(-3, 4, size=(30, 2)) * 512.0
    y = np.where(near[:, 0] + 700 * rng.normal(size=30) > 0, 1, -1)
    solution = (Risk(Hinge()) + 1e-3 * SquaredL2()).on(near + 2.0**60, y).solve()
    assert solution.status == "inaccurate"
    assert "centre and scale the columns" in str(solution.certificate)


def test_polynomial_kernel_of_raw_columns_is_inaccurate_with_advice():
    _, X, y = far_rows(100.0)
    problem = (Risk(Hinge()) + SquaredL2()).on(
        X, y, kernel=nerm.kernels.Polynomial(gamma=1.0, degree=3, coef0=1.0)
    )
    solution = problem.solve()
    assert solution.status == "inaccurate"
    assert "digits" in solution.certificate.reason or "rounding may hide" in solution.certificate.reason
    assert "scale the columns" in str(solution.certificate)


def test_almost_semidefinite_gram_matrix_is_made_semidefinite():
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
def test_bound_holds_for_huge_neutrality_weights(eta):
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
