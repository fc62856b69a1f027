"""Objectives far below 1 are solved in digits of their own, not to an absolute gap."""

from __future__ import annotations

import numpy as np
import pytest

import nerm


@pytest.mark.parametrize("omega", [nerm.LInf(), nerm.GroupL2([0, 0, 1])], ids=repr)
def test_an_optimum_near_nothing_is_solved_in_its_own_digits(omega):
    """Conic solvers stop at a gap of 1e-10, which is a tenth of an optimum of 1e-9."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(12, 3))
    y = np.where(X @ [1.0, -1.0, 0.5] > 0, 1, -1)
    solution = (nerm.Risk(nerm.SquaredHinge()) + 1e-8 * omega).on(X, y).solve()
    assert solution.status == "optimal"
    assert 0 < solution.objective.total < 1e-5
    large = (1e6 * nerm.Risk(nerm.SquaredHinge()) + 1e-2 * omega).on(X, y).solve()
    assert solution.objective.total == pytest.approx(1e-6 * large.objective.total, rel=1e-5)


def test_multipliers_of_a_scaled_model_are_those_of_the_problem():
    from nerm.cvxpy_backend.build import Model

    rng = np.random.default_rng(1)
    X, y, v = rng.normal(size=(15, 2)), np.tile([1, -1, 1], 5), np.tile([1, 1, -1], 5)
    objective = nerm.Risk(nerm.Logistic()) + 0.1 * nerm.LInf()
    problem = objective.subject_to(nerm.Neutrality(nerm.Hinge()) <= 1.01, nerm.Coefficients() >= 0.01).on(
        X, y, viewpoint=v
    )
    found = []
    for scale in (1.0, 1000.0):
        model = Model(problem)
        model.set_weights(problem, scale)
        model.problem.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
        found.append(model.multipliers(problem, scale))
    one, two = found
    np.testing.assert_allclose(one.rows[0], two.rows[0], atol=1e-4)
    np.testing.assert_allclose(one.limits, two.limits, rtol=1e-3, atol=1e-5)
    np.testing.assert_allclose(one.linear, two.linear, rtol=1e-3, atol=1e-5)
