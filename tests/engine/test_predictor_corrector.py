"""The method on one problem: starts, steps, and when it stops."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.solvers.interior_point import Tuning
from nerm.solvers.interior_point.predictor_corrector import Outcome, _central_sides, _quantile, _room
from tests.engine.problems import Case, many


def case_of(seed: int, eta: float = 1.0, name: str = "hinge", **more) -> Case:
    X, y, v = many(400, seed)
    one = np.ones(len(y))
    return Case(X, y, [(name, one)], 1e-3, [(name, eta, v, one)], **more)


def test_an_infinite_value_is_no_success():
    nothing = np.zeros(0)
    assert not Outcome(nothing, 0.0, nothing, nothing, np.inf, dual=1.0).gap_within(1e-6)
    assert Outcome(nothing, 0.0, nothing, nothing, 1.0, dual=1.0).gap_within(1e-6)


def test_of_two_attempts_the_lower_value_and_the_higher_bound_count():
    nothing = np.zeros(0)
    first = Outcome(nothing, 1.0, nothing, nothing, 2.0, dual=1.5, u=np.ones(1), nu=np.ones(1), iterations=3)
    second = Outcome(
        nothing, 2.0, nothing, nothing, 1.6, dual=1.0, u=np.zeros(1), nu=np.zeros(1), iterations=4
    )
    for both in (first.then(second, 0.1), second.then(first, 0.1)):
        assert (both.intercept, both.primal, both.dual, both.u, both.iterations) == (2.0, 1.6, 1.5, [1.0], 7)
        assert both.converged
    assert not first.then(second, 0.01).converged


@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "smooth_hinge", "squared"])
@pytest.mark.parametrize("bold", [True, False])
def test_the_first_equation_is_kept_whatever_has_been_done(name, bold):
    case = case_of(14, name=name)
    method = case.method(case.engine(Tuning(patience=6 if bold else -1)))
    state = method.run(method.start(np.zeros(5), 0.0, 1.0), 1e-12, 5).state
    a, q = {"hinge": (1, 0), "squared_hinge": (1, 0.5), "smooth_hinge": (1, 0.5), "squared": (1, 0.5)}[name]
    margins = method.arrays.data.targets * (case.X @ state.coef + state.intercept)
    u, upper, lower = state.duals
    np.testing.assert_allclose(margins - a - q * u, upper - lower, atol=1e-9)
    assert (upper >= 0).all()
    assert (lower >= 0).all()
    assert state.nu.sum(axis=1) == pytest.approx(1.0)


def test_a_run_can_go_on_from_its_state_after_a_restart_too():
    case = case_of(15)
    method = case.method(case.engine(Tuning(patience=-1)))
    first = method.run(method.start(np.zeros(5), 0.0, 1.0), 1e-9, 6)
    np.testing.assert_allclose(
        first.state.scores, case.X @ first.state.coef + first.state.intercept, atol=1e-10
    )
    second = method.run(first.state, 1e-6, 100)
    assert second.converged
    assert second.primal == pytest.approx(case.n * case.solve(1e-9).primal, rel=2e-6)


def test_until_stops_a_run_near_the_optimum_and_says_how_near():
    case = case_of(16)
    method = case.method(case.engine())
    best = case.solve(1e-10)
    early = method.run(method.start(np.zeros(5), 0.0, 1.0), 1e-9, 200, until=0.2)
    assert early.miss is not None
    assert not early.converged
    scores = case.X @ best.coef + best.intercept
    assert np.abs(early.state.scores - scores).mean() < 0.2
    assert early.barrier > 0
    whole = method.run(method.start(np.zeros(5), 0.0, 1.0), 1e-6, 200)
    assert (whole.miss, whole.barrier) == (None, 0.0)


def test_at_a_value_of_0_there_is_nothing_left_to_do():
    X, _, _ = many(50, 3)
    case = Case(X, np.ones(50), [("hinge", np.ones(50))], 0.1)
    method = case.method(case.engine())
    found = method.run(method.start(np.zeros(5), 5.0, 0.1), 1e-6, 50)
    assert (found.primal, found.iterations) == (0.0, 0)


def test_the_common_step_alone_gets_there():
    case = case_of(17, 0.5, "smooth_hinge")
    method = case.method(case.engine(Tuning(share=0.0)))
    found = method.run(method.start(np.zeros(5), 0.0, 1.0), 1e-6, 200)
    assert found.converged


@pytest.mark.parametrize("name", ["logistic", "exponential"])
def test_a_step_of_a_smooth_problem_never_raises_its_value_by_much(name):
    case = case_of(18, 0.0, name)
    case = Case(5.0 * case.X, case.y, case.losses, 1e-4)
    method = case.method(case.engine())
    state, last = method.start(np.full(5, 1.0), 3.0, 1.0), np.inf
    for _ in range(12):
        outcome = method.run(state, 1e-14, 1)
        state = outcome.state
        value = case.primal(state.coef, state.intercept)
        assert value <= last * (1 + 1e-9)
        last = value


def test_far_out_trial_points_do_not_end_the_run():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) * [1.0, 300.0]  # exp overflows at most trial points
    y = np.where(X[:, 0] + rng.normal(size=30) > 0, 1.0, -1.0)
    case = Case(X, y, [("exponential", np.ones(30))], 1e-3)
    found = case.solve(start=(np.array([0.0, 2.0]), 0.0))
    assert found.converged
    assert case.primal(found.coef, found.intercept) - case.dual(found) <= 1.01e-6 * found.primal


def test_central_sides_solve_their_equation():
    rng = np.random.default_rng(1)
    values, eta, unit = rng.normal(size=(20, 2)) * 10.0, rng.exponential(size=20), rng.exponential(size=20)
    nu = _central_sides(values, eta, unit)
    np.testing.assert_allclose(nu.sum(axis=1), eta, rtol=1e-12)
    slope = values[:, 0] - values[:, 1] + unit / nu[:, 0] - unit / nu[:, 1]  # derivative along nu^+ - nu^-
    np.testing.assert_allclose(slope, 0.0, atol=1e-8)


def test_quantile_and_room():
    histogram = np.zeros(64)
    histogram[[16, 32]] = 1.0, 2.0
    assert _quantile(histogram, 0.5) == 0.25
    assert _quantile(histogram, 1.5) == 0.5
    assert _quantile(histogram, 3.0) == np.inf
    assert _room(np.array([1.0, 2.0]), np.array([-2.0, -1.0])) == 0.5
    assert _room(np.array([1.0]), np.array([3.0])) == np.inf


def two_terms(name: str = "smooth_hinge") -> Case:
    X, y, v = many(400, 20)
    one, other = np.ones(400), np.where(X[:, 1] > 0.2, 1.0, -1.0)
    weights = np.random.default_rng(2).exponential(size=400)
    return Case(X, y, [("hinge", one)], 1e-3, [("hinge", 0.7, v, weights), (name, 2.0, other, one)])


@pytest.mark.parametrize("barrier", [1.0, 1e-2])
def test_a_start_is_on_the_central_path(barrier):
    """On every side nu sigma is the barrier's unit, and value and slack are as large as the other's."""
    case = two_terms("hinge")
    method = case.method(case.engine())
    state = method.start(np.full(5, 0.2), 0.1, barrier)
    values = method.arrays.sides(method.arrays.values(state.scores, state.coef, state.intercept))
    np.testing.assert_allclose(np.diff(values + state.sigma), 0.0, atol=1e-8 * np.abs(values).max())
    units = method.tuning.side_barrier * np.array([[0.7 * case.terms[0][3].sum()] * 2, [2.0 * 400] * 2])
    np.testing.assert_allclose(state.nu * state.sigma, barrier * units, rtol=1e-9)
    np.testing.assert_allclose(state.nu.sum(axis=1), [0.7, 2.0], rtol=1e-12)
    nu = method.each(state.nu)
    _, mu = method._step(state, method.arrays.linearise(state, nu), nu, bold=True)
    assert mu == pytest.approx(barrier, rel=1e-6)  # which a step finds again


@pytest.mark.parametrize("miss", [0.0, 0.3])
def test_a_start_near_given_multipliers_keeps_the_sides_near_theirs(miss):
    case, barrier = two_terms(), 1e-2
    method = case.method(case.engine())
    given = np.array([[0.5, 0.2], [0.4, 1.6]])  # nu of the sides
    u = method.start(np.full(5, 0.2), 0.1, barrier).duals.u
    state = method.start(np.full(5, 0.2), 0.1, barrier, (u, given), miss)
    x = state.nu[:, 0] / [0.7, 2.0]
    f = case.X @ np.full(5, 0.2) + 0.1
    rounded = np.array([_smooth_hinge(sign * case.terms[1][2] * f).sum() for sign in (1, -1)])
    plain = [(case.terms[0][3] * np.maximum(0, 1 - sign * case.terms[0][2] * f)).sum() for sign in (1, -1)]
    lead = np.array([np.subtract(*plain) / case.terms[0][3].sum(), np.subtract(*rounded) / 400])
    unit = barrier * method.tuning.side_barrier
    pulled = method.tuning.give * miss * (x - given[:, 0] / given.sum(axis=1))
    np.testing.assert_allclose(lead - pulled - unit / (1 - x) + unit / x, 0.0, atol=1e-9)
    np.testing.assert_allclose(state.nu.sum(axis=1), [0.7, 2.0], rtol=1e-12)


def _smooth_hinge(m):
    return np.where(m >= 1, 0, np.where(m <= 0.5, 0.75 - m, (1 - m) ** 2))
