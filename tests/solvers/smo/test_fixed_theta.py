"""A state at fixed theta: its values against naive formulas, its slope against differences of solved duals."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.solvers.linalg.gram_cache import GramCache
from nerm.solvers.smo.fixed_theta import FixedTheta
from nerm.solvers.smo.segments import Segments
from tests.solvers.smo import neutral_svm
from tests.svm.naive import dual_value, objective, synthetic

X, Y, V = synthetic(40, d=3, seed=5)
LAM, ETA = 1.5, 0.8
GRAM = X @ X.T


@pytest.fixture(scope="module")
def problem():
    return neutral_svm(X, Y, V, LAM, ETA)


def solved(problem, theta):
    state = FixedTheta(problem, theta, GramCache(problem.hypothesis, 100), np.zeros(40), np.zeros(40))
    while not state.advance(1000)[1]:
        pass
    return state


@pytest.mark.long
def test_standing_is_the_formula(problem):
    rng = np.random.default_rng(0)
    a = Segments(problem, 0.3).balanced(rng.normal(size=40))
    state = FixedTheta(problem, 0.3, GramCache(problem.hypothesis, 100), a)
    np.testing.assert_allclose(state.at.G, GRAM @ a / LAM, atol=1e-10)
    standing = state.standing()
    rows = state.segments.multipliers(state.at.a).rows * np.array([[1.0], [0.3 * ETA], [0.7 * ETA]])
    np.testing.assert_allclose(standing.dual, dual_value(*rows, GRAM, Y, V, LAM), rtol=1e-12)
    up, down = state.at.rise - state.at.G, state.at.fall - state.at.G
    np.testing.assert_allclose(standing.violation, up.max() - down.min())
    scores = state.at.G + (up.max() + down.min()) / 2
    norm2 = a @ GRAM @ a / LAM**2
    np.testing.assert_allclose(standing.primal, objective(scores, norm2, Y, V, LAM, ETA), rtol=1e-10)
    sides = [np.maximum(0, 1 - s * V * scores).sum() for s in (1, -1)]
    np.testing.assert_allclose(standing.slope, ETA * (sides[0] - sides[1]), rtol=1e-9)
    best = state.standing(best=True)
    assert best.primal <= standing.primal
    np.testing.assert_allclose(best.primal, min(
        objective(state.at.G + b, norm2, Y, V, LAM, ETA) for b in np.linspace(-3, 3, 6_001)
    ), rtol=1e-3)  # fmt: skip


def test_when_no_violation_is_left_the_inner_gap_is_closed(problem):
    standing = solved(problem, 0.3).standing()
    assert standing.violation <= 1e-12
    assert abs(standing.inner_gap) <= 1e-10 * standing.primal
    assert standing.gap >= -1e-10


def test_the_slope_is_the_derivative_of_the_dual_in_theta(problem):
    step = 1e-4
    dual = [solved(problem, 0.2 + s * step).standing().dual for s in (-1, 1)]
    slope = solved(problem, 0.2).standing().slope
    np.testing.assert_allclose((dual[1] - dual[0]) / (2 * step), slope, rtol=1e-3)


def test_rows_that_no_violation_can_move_are_left_aside_and_come_back(problem):
    state = solved(problem, 0.3)
    other = FixedTheta(problem, 0.3, state.cache, state.at.a, state.at.G)
    other.active = np.arange(3)
    assert other.advance(100)[1]
    assert len(other.active) == 40
