"""A state at fixed theta: its values against naive formulas, its slope against differences of solved duals."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.solvers.smo.fixed_theta import FixedTheta, Segments
from tests.solvers.smo import neutral_svm
from tests.svm.naive import dual_value, objective, synthetic

X, Y, V = synthetic(40, d=3, seed=5)
LAM, ETA = 1.5, 0.8
GRAM = X @ X.T


@pytest.fixture(scope="module")
def problem():
    return neutral_svm(X, Y, V, LAM, ETA)


def solved(problem, theta):
    state = FixedTheta(problem, Segments(problem, theta), GRAM, np.zeros(40), np.zeros(40))
    while state.advance(1000):
        pass
    return state


@pytest.mark.long
def test_standing_is_the_formula(problem):
    rng = np.random.default_rng(0)
    a = Segments(problem, 0.3).feasible(rng.normal(size=40))
    state = FixedTheta(problem, Segments(problem, 0.3), GRAM, a)
    np.testing.assert_allclose(state.at.G, GRAM @ a / LAM, atol=1e-10)
    standing = state.standing()
    scores = state.at.G + standing.intercept
    rows = state.multipliers().rows * np.array([[1.0], [0.3 * ETA], [0.7 * ETA]])
    np.testing.assert_allclose(standing.dual, dual_value(*rows, GRAM, Y, V, LAM), rtol=1e-12)
    up, down = state.at.rise - state.at.G, state.at.fall - state.at.G
    np.testing.assert_allclose(state.violation, up.max() - down.min())
    norm2 = a @ GRAM @ a / LAM**2
    np.testing.assert_allclose(standing.primal, objective(scores, norm2, Y, V, LAM, ETA), rtol=1e-10)
    sides = [np.maximum(0, 1 - s * V * (state.at.G + (up.max() + down.min()) / 2)).sum() for s in (1, -1)]
    np.testing.assert_allclose(standing.slope, ETA * (sides[0] - sides[1]), rtol=1e-9)


def test_when_no_violation_is_left_the_inner_gap_is_closed(problem):
    state = solved(problem, 0.3)
    standing = state.standing()
    assert state.violation <= 1e-12
    assert abs(standing.inner_gap) <= 1e-10 * standing.primal
    assert standing.gap >= -1e-10


def test_the_slope_is_the_derivative_of_the_dual_in_theta(problem):
    step = 1e-4
    dual = [solved(problem, 0.2 + s * step).standing().dual for s in (-1, 1)]
    slope = solved(problem, 0.2).standing().slope
    np.testing.assert_allclose((dual[1] - dual[0]) / (2 * step), slope, rtol=1e-3)


def test_the_intercept_is_where_the_sides_are_equal_if_that_is_optimal():
    """With K = 0 and balanced labels every b in [-1, 1] is optimal for the risk, and b = 0 for the term."""
    y, v = np.array([1.0, -1.0, 1.0, -1.0]), np.array([1.0, 1.0, -1.0, -1.0])
    flat = neutral_svm(np.zeros((4, 1)), y, v, LAM, 0.5)
    state = FixedTheta(flat, Segments(flat, 0.5), np.zeros((4, 4)), np.zeros(4))
    while state.advance(100):
        pass
    assert state.standing().gap == pytest.approx(0.0, abs=1e-12)
    assert state.standing().slope == pytest.approx(0.0, abs=1e-12)
