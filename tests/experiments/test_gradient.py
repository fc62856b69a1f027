"""Weights tuned by gradients are at least as good as the best of a grid, with fewer solves."""

from __future__ import annotations

import numpy as np
import pytest

import nerm
from nerm.experiments import tune

LOGISTIC = nerm.Logistic()


def problems(seed, count=1.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(400, 8))
    y, v = (
        np.sign(X[:, 0] + X[:, 1] + 2 * rng.normal(size=400)),
        np.sign(X[:, 0] + 0.5 * rng.normal(size=400)),
    )
    neutral = nerm.Neutrality(LOGISTIC, weights="balanced")
    objective = nerm.Risk(LOGISTIC) + 0.01 * nerm.SquaredL2() + 0.3 * neutral
    wanted = nerm.Risk(LOGISTIC) + count * neutral
    held = wanted.on(X[200:], y[200:], viewpoint=v[200:])
    return objective.on(X[:200], y[:200], viewpoint=v[:200]), held


@pytest.mark.parametrize("seed", [1, 2])
def test_twenty_solves_are_as_good_as_a_grid_of_100(seed):
    problem, held = problems(seed, 0.5)
    found = tune(problem, held)
    assert len(found.trace) <= 20
    assert found.value == pytest.approx(held.evaluate(found.solution.coef, found.solution.intercept).total)
    assert found.value == found.trace.value.min()
    grid = problem.grid(np.logspace(-5, 0, 10), np.logspace(-2, 1.5, 10))
    best = min(held.evaluate(s.coef, s.intercept).total for row in grid for s in row)
    assert found.value <= best + 1e-4


def test_it_says_what_it_needs():
    problem, held = problems(3)
    with pytest.raises(nerm.InvalidInputError, match="unregularised"):
        tune(problem, problem)
    with pytest.raises(nerm.InvalidInputError, match="positive lam"):
        tune(problem.with_regularization(0.0), held)
    few = tune(problem, held, solves=3)
    assert (len(few.trace), few.reason) == (3, "3 solves")
