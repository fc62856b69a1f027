"""What must hold of every optimum, whatever the data."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nerm
from nerm import Hinge, Logistic, Neutrality, Risk, SquaredL2
from tests.conftest import make_data

pytestmark = pytest.mark.long

SEEDS = st.integers(0, 1000)
ATOM = st.sampled_from([Hinge(), Logistic(), nerm.SmoothHinge(0.5), nerm.SquaredHinge()])
ETA = st.sampled_from([0.0, 0.2, 1.0, 8.0])


def solve(X, y, v, *, loss=None, surrogate=None, mu=0.1, eta=1.0, tol=1e-8, s=None, u="uniform"):
    objective = Risk(loss or Hinge()) + mu * SquaredL2() + eta * Neutrality(surrogate or Hinge(), weights=u)
    solution = objective.on(X, y, viewpoint=v, sample_weight=s).solve(tol=tol)
    assert solution.status == "optimal"
    return solution


@given(SEEDS, ATOM, ATOM, ETA)
def test_flipping_the_viewpoint_leaves_the_optimum(seed, loss, surrogate, eta):
    X, y, v = make_data(seed, n=30, real_viewpoint=seed % 2 == 0)
    a, b = (solve(X, y, sign * v, loss=loss, surrogate=surrogate, eta=eta) for sign in (1, -1))
    assert a.objective.total == pytest.approx(b.objective.total, rel=1e-7)
    np.testing.assert_allclose(a.coef, b.coef, atol=1e-3)


@given(SEEDS, ATOM, ATOM, ETA)
def test_flipping_the_labels_negates_the_hypothesis(seed, loss, surrogate, eta):
    X, y, v = make_data(seed, n=30)
    a, b = (solve(X, sign * y, v, loss=loss, surrogate=surrogate, eta=eta) for sign in (1, -1))
    assert a.objective.total == pytest.approx(b.objective.total, rel=1e-7)
    np.testing.assert_allclose(a.coef, -b.coef, atol=1e-3)


@given(SEEDS, ATOM, ATOM)
def test_more_eta_never_less_neutral_and_never_less_risky(seed, loss, surrogate):
    X, y, v = make_data(seed, n=40)
    problem = (Risk(loss) + 0.1 * SquaredL2() + Neutrality(surrogate)).on(X, y, viewpoint=v)
    path = [s.objective for s in problem.path([0, 0.1, 1, 10], tol=1e-8)]
    neutrality = [value.terms[-1].value for value in path]
    regularised_risk = [value.risk + value.regularization for value in path]
    slack = 1e-5
    assert all(later <= earlier + slack for earlier, later in pairwise(neutrality))
    assert all(later >= earlier - slack for earlier, later in pairwise(regularised_risk))


@given(SEEDS, ETA)
def test_duplicating_every_row_changes_nothing_in_mean_form(seed, eta):
    X, y, v = make_data(seed, n=25)
    once = solve(X, y, v, eta=eta)
    twice = solve(np.vstack([X, X]), np.tile(y, 2), np.tile(v, 2), eta=eta)
    assert once.objective.total == pytest.approx(twice.objective.total, rel=1e-7)
    np.testing.assert_allclose(once.coef, twice.coef, atol=1e-3)


@given(SEEDS, ETA, st.integers(0, 24))
def test_a_row_of_weight_two_is_two_rows(seed, eta, row):
    """N times the mean form: weights 2 in risk and neutrality, and mu n unchanged."""
    X, y, v = make_data(seed, n=25)
    weights = np.ones(25)
    weights[row] = 2.0
    heavy = solve(X, y, v, eta=eta, mu=0.1, s=weights, u=weights)
    pick = np.append(np.arange(25), row)
    doubled = solve(X[pick], y[pick], v[pick], eta=eta, mu=0.1 * 25 / 26)
    assert 25 * heavy.objective.total == pytest.approx(26 * doubled.objective.total, rel=1e-7)
    np.testing.assert_allclose(heavy.coef, doubled.coef, atol=1e-3)


@given(SEEDS, ETA)
def test_permuting_rows_changes_nothing(seed, eta):
    X, y, v = make_data(seed, n=25)
    order = np.random.default_rng(seed).permutation(25)
    assert solve(X, y, v, eta=eta).objective.total == pytest.approx(
        solve(X[order], y[order], v[order], eta=eta).objective.total, rel=1e-7
    )


@given(SEEDS)
def test_eta_zero_is_the_plain_problem(seed):
    X, y, v = make_data(seed, n=30)
    plain = (Risk(Hinge()) + 0.1 * SquaredL2()).on(X, y).solve(tol=1e-8)
    assert solve(X, y, v, eta=0.0).objective.total == pytest.approx(plain.objective.total, rel=1e-7)


@given(SEEDS, st.sampled_from([0.1, 1.0, 10.0]))
def test_theta_inside_means_that_the_sides_are_equal(seed, eta):
    X, y, v = make_data(seed, n=30)
    solution = solve(X, y, v, eta=eta)
    term = solution.objective.terms[-1]
    if 1e-3 < solution.multipliers.theta < 1 - 1e-3:
        assert term.plus == pytest.approx(term.minus, rel=1e-4)
    elif solution.multipliers.theta <= 1e-3:
        assert term.minus >= term.plus - 1e-4
    else:
        assert term.plus >= term.minus - 1e-4


@pytest.mark.parametrize("v", ["same", "opposite", "constant", "zero", "huge"])
def test_degenerate_viewpoints(v):
    """All viewpoints have more than two values or the values -1 and +1, so that none is coded anew."""
    X, y, _ = make_data(5, n=30)
    one, few = np.append(np.ones(29), -1.0), np.append(np.zeros(28), [-1.0, 1.0])
    huge = 1e4 * y * np.linspace(1.0, 2.0, 30)
    viewpoint = {"same": y, "opposite": -y, "constant": one, "zero": few, "huge": huge}[v]
    solve(X, y, viewpoint, eta=1.0, tol=1e-6)


def test_constant_huge_and_duplicate_features():
    X, y, v = make_data(6, n=40)
    wild = np.column_stack([X, np.ones(40), X[:, 0], 1e4 * X[:, 1], np.zeros(40)])
    solve(wild, y, v, eta=1.0, tol=1e-6)
