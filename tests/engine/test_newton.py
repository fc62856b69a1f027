"""The reduced Newton system against the whole one, by numpy."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.solvers.interior_point.newton import NewtonSystem


def drawn(K: int, *, intercept: bool, scale: float = 1.0, seed: int = 0):
    """Return a gram matrix, e, ratio, and the whole matrix of the equations in the module's docstring."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(40, 5)) * [1.0, scale, 1.0, 1.0 / scale, 1.0]
    bordered, density = np.column_stack([X, np.ones(40)]), rng.exponential(size=40)
    gram = bordered.T @ (density[:, None] * bordered)
    e, ratio, lam = bordered.T @ rng.normal(size=(40, K)), rng.exponential(size=K), 0.3
    size = 6 if intercept else 5
    whole = np.zeros((size + K, size + K))
    whole[:size, :size] = (gram + lam * np.diag([1.0] * 5 + [0.0]))[:size, :size]
    whole[:size, size:], whole[size:, :size] = e[:size], -e[:size].T
    whole[size:, size:] = np.diag(ratio)
    return np.triu(gram), e, ratio, lam, whole, rng


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("K", [0, 1, 3])
@pytest.mark.parametrize("scale", [1.0, 1e6])
def test_one_solve_is_that_of_the_whole_system(K, intercept, scale):
    gram, e, ratio, lam, whole, rng = drawn(K, intercept=intercept, scale=scale)
    system = NewtonSystem(gram, e, lam, ratio, intercept=intercept)
    for _ in range(2):
        rhs, term = rng.normal(size=6), rng.normal(size=K)
        step, dnu = system.solve(rhs, term)
        want = np.linalg.solve(whole, np.concatenate([rhs[: len(step)], term]))
        np.testing.assert_allclose(np.concatenate([step, dnu]), want, rtol=1e-6, atol=1e-9)


def test_a_singular_system_is_solved_with_as_little_added_as_needed():
    gram = np.zeros((4, 4))
    gram[:3, :3] = 1.0  # rank one, and no weight at all on the intercept
    system = NewtonSystem(np.triu(gram), np.zeros((4, 0)), 1e-12, np.zeros(0), intercept=True)
    step, _ = system.solve(np.array([1.0, 1.0, 1.0, 0.0]), np.zeros(0))
    assert step[:3].sum() == pytest.approx(1.0, rel=1e-3)
    assert np.isfinite(step).all()


def test_an_indefinite_system_is_an_error():
    gram = np.zeros((3, 3))
    gram[0, 1] = 1e6
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        NewtonSystem(gram, np.zeros((3, 0)), 1.0, np.zeros(0), intercept=True)


def test_a_column_of_zeros_moves_nothing():
    gram, e, ratio, _, whole, rng = drawn(1, intercept=True)
    gram[2], gram[:, 2], e[2] = 0.0, 0.0, 0.0
    rhs, term = rng.normal(size=6), rng.normal(size=1)
    rhs[2] = 0.0
    step, dnu = NewtonSystem(gram, e, 0.0, ratio, intercept=True).solve(rhs, term)
    assert step[2] == 0.0
    whole[np.arange(5), np.arange(5)] -= 0.3
    rest = [0, 1, 3, 4, 5, 6]
    want = np.linalg.solve(whole[np.ix_(rest, rest)], np.append(rhs, term)[rest])
    np.testing.assert_allclose(np.append(step, dnu)[rest], want, rtol=1e-6, atol=1e-9)
