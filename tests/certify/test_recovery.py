"""Multipliers from less: from weighted dual variables alone, or from the hypothesis alone, they are those of the optimum."""

from __future__ import annotations

import numpy as np
import pytest

import nerm
from nerm import L1, Coefficients, Hinge, Logistic, Multipliers, Neutrality, Pinball, Risk, SquaredL2
from nerm.certify.certificate import dual_bound, infeasibility, separable
from nerm.certify.multipliers import candidates, multipliers_at, multipliers_from_weighted_duals, with_linear
from nerm.model.blocks import weighted_duals
from tests.conftest import make_data

THETAS = np.array([0.3])


def two_terms(loss, surrogate, seed=0):
    X, y, v = make_data(seed, n=40, real_viewpoint=True)
    return (Risk(loss) + 0.1 * SquaredL2() + 0.8 * Neutrality(surrogate)).on(X, y, viewpoint=v)


@pytest.mark.parametrize("surrogate", [Logistic(), Hinge(), Pinball(0.5)], ids=repr)
@pytest.mark.parametrize("loss", [Logistic(), nerm.SquaredHinge(), Hinge()], ids=repr)
def test_weighted_duals_are_split_as_some_scores_split_them(loss, surrogate):
    problem = two_terms(loss, surrogate)
    scores = 1.5 * np.random.default_rng(1).normal(size=40)
    given = multipliers_at(problem.blocks, scores)
    c = weighted_duals(problem, given, THETAS)
    found = multipliers_from_weighted_duals(problem, c, THETAS)
    np.testing.assert_allclose(weighted_duals(problem, found.rows, found.thetas), c, atol=1e-9)
    np.testing.assert_array_equal(found.thetas, THETAS)
    # among all that add up to c those lose least
    assert separable(problem, found)[0] <= separable(problem, Multipliers(given, THETAS))[0] + 1e-9
    if not isinstance(loss, Hinge) and isinstance(surrogate, Logistic):
        np.testing.assert_allclose(found.rows, given, atol=1e-6)


def test_multipliers_at_scores_are_the_middles_of_their_intervals():
    """Minus the slope where there is one, the middle at a kink, and a finite number where the slope overflows."""
    X, y = np.array([[0.0], [1.0], [-800.0]]), np.array([1.0, -1.0, 1.0])
    objective = Risk(Hinge()) + Risk(nerm.Logistic()) + Risk(nerm.Exponential()) + SquaredL2()
    problem = objective.on(X, y, intercept=False)
    hinge, logistic, exponential = multipliers_at(problem.blocks, np.array([1.0, 0.5, -800.0]))
    assert hinge.tolist() == [0.5, 1.0, 1.0]
    np.testing.assert_allclose(logistic, 1 / (1 + np.exp([1.0, -0.5, -800.0])))
    np.testing.assert_allclose(exponential[:2], np.exp([-1.0, 0.5]))
    assert 1e100 < exponential[2] < np.inf


def test_weighted_duals_between_the_sides_of_a_kink_are_mixed_of_both():
    problem = (Risk(Hinge()) + SquaredL2()).on([[1.0], [2.0], [3.0]], [1, -1, 1])
    c = np.array([0.25, -0.75, 1.0])
    found = multipliers_from_weighted_duals(problem, c, np.zeros(0))
    np.testing.assert_allclose(found.rows[0], np.abs(c), atol=1e-9)
    np.testing.assert_allclose(
        multipliers_from_weighted_duals(problem, 5 * c, np.zeros(0)).rows[0], [1.0, 1.0, 1.0], atol=1e-9
    )


def test_nan_in_weighted_duals_and_thetas_counts_as_unknown():
    problem = two_terms(Logistic(), Logistic())
    found = multipliers_from_weighted_duals(problem, np.full(40, np.nan), np.array([np.nan]))
    np.testing.assert_allclose(weighted_duals(problem, found.rows, found.thetas), 0.0, atol=1e-9)
    assert found.thetas.tolist() == [0.5]
    assert multipliers_from_weighted_duals(problem, np.zeros(40), np.array([7.0])).thetas.tolist() == [1.0]


OMEGAS = {"square": 0.05 * SquaredL2(), "l1": 0.05 * L1() + 0.01 * SquaredL2()}
LOSSES = {"hinge": Hinge(), "logistic": Logistic()}


def best(problem, coef, intercept):
    return max(dual_bound(problem, found) for found in candidates(problem, coef, intercept))


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("eta", [0.0, 0.2, 3.0])
@pytest.mark.parametrize("omega", OMEGAS)
@pytest.mark.parametrize("loss", LOSSES)
def test_the_hypothesis_alone_proves_itself_optimal(loss, omega, eta, intercept):
    """Also where both sides of a term tie, so that theta is free, and rows stand at kinks."""
    X, y, v = make_data(3, n=60)
    objective = Risk(LOSSES[loss]) + OMEGAS[omega] + eta * Neutrality(LOSSES[loss])
    problem = objective.on(X, y, viewpoint=v, intercept=intercept)
    solution = problem.solve(tol=1e-10)
    bound = best(problem, solution.coef, solution.intercept)
    assert solution.objective.total * (1 - 2e-5) <= bound <= solution.objective.total * (1 + 1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_two_terms_that_tie(loss):
    X, y, v = make_data(4, n=60)
    other = np.where(X[:, 1] > 0.1, 1.0, -1.0)
    terms = 2.0 * Neutrality(LOSSES[loss], to="one") + 3.0 * Neutrality(LOSSES[loss], to="other")
    problem = (Risk(LOSSES[loss]) + 0.05 * SquaredL2() + terms).on(X, y, viewpoint={"one": v, "other": other})
    solution = problem.solve(tol=1e-10)
    assert (solution.multipliers.thetas > 1e-3).all()
    assert (solution.multipliers.thetas < 1 - 1e-3).all()
    assert best(problem, solution.coef, solution.intercept) >= solution.objective.total * (1 - 1e-5)


def limited(share):
    """Return a problem whose one limit is tight, and its solution."""
    X, y, v = make_data(5, n=80)
    plain = (Risk(Logistic()) + 0.05 * SquaredL2()).on(X, y, viewpoint=v)
    free = plain.solve(tol=1e-9)
    f = X @ free.coef + free.intercept
    now = max(np.mean(np.logaddexp(0, -sign * v * f)) for sign in (1, -1))
    limit = np.log(2) + share * (now - np.log(2))
    constrained = (Risk(Logistic()) + 0.05 * SquaredL2()).subject_to(Neutrality(Logistic()) <= limit)
    problem = constrained.on(X, y, viewpoint=v)
    return problem, problem.solve(tol=1e-8)


@pytest.mark.parametrize("share", [0.2, 0.9])
def test_the_weight_of_a_tight_limit_is_found_from_the_hypothesis(share):
    problem, solution = limited(share)
    assert solution.multipliers.limits[0] > 1e-3
    for found in candidates(problem, solution.coef, solution.intercept):
        assert found.limits == pytest.approx(solution.multipliers.limits, rel=1e-2)
    assert best(problem, solution.coef, solution.intercept) >= solution.objective.total * (1 - 1e-4)


def test_an_inactive_limit_has_no_weight():
    problem, solution = limited(1.5)
    first = next(candidates(problem, solution.coef, solution.intercept))
    assert first.limits.tolist() == [0.0]


def test_multipliers_of_linear_constraints_are_found_where_they_are_not_known():
    X, y, _ = make_data(6, n=60)
    objective = Risk(Logistic()) + 0.05 * SquaredL2()
    free = objective.on(X, y).solve()
    column = int(np.argmax(np.abs(free.coef)))
    bounded = objective.subject_to(Coefficients(column) <= -0.1, Coefficients(column) >= -0.2)
    problem = bounded.on(X, y)
    solution = problem.solve(tol=1e-8)
    known = solution.multipliers
    assert with_linear(problem, known, solution.coef) is known
    rows = Multipliers(known.rows, known.thetas)
    found = with_linear(problem, rows, solution.coef)
    np.testing.assert_allclose(found.linear, known.linear, atol=1e-4)
    assert dual_bound(problem, found) == pytest.approx(solution.objective.total, rel=1e-5)
    plain = objective.on(X, y)
    assert with_linear(plain, rows, free.coef) is rows


def test_only_the_shares_of_limits_count_in_a_proof_that_none_meets_all():
    """Every hypothesis exceeds one of two limits that exclude each other, by what their multipliers prove."""
    X, y, v = make_data(7, n=40)
    agree, oppose = (Neutrality(Hinge(), side=side) <= 0.4 for side in ("agreement", "disagreement"))
    problem = (Risk(Hinge()) + 0.1 * SquaredL2()).subject_to(agree, oppose).on(X, y, viewpoint=v)
    rows = np.vstack(
        [np.zeros(40), np.ones((2, 40))]
    )  # half of each side: mean hinge of m and of -m is at least 1
    proven = [
        infeasibility(problem, Multipliers(rows, np.zeros(0), limits=scale * np.ones(2)))
        for scale in (1e-3, 1.0, 1e3)
    ]
    np.testing.assert_allclose(proven, 0.6, rtol=1e-9)
    for nothing in (np.zeros(2), -np.ones(2)):
        assert infeasibility(problem, Multipliers(rows, np.zeros(0), limits=nothing)) == 0.0
    one = infeasibility(problem, Multipliers(rows, np.zeros(0), limits=np.array([1.0, -1.0])))
    assert one <= 0.0  # what is negative is no weight
