"""The best intercept against brute force over all bends and crossings, and against fine grids for other atoms."""

from __future__ import annotations

import numpy as np
import pytest

from nerm import Identity, Neutrality, Pinball, Risk, SquaredL2
from nerm.solvers.smo.segments import best_intercept
from tests.solvers.smo import neutral_svm
from tests.svm.naive import best_intercepts, objective, random_case


@pytest.mark.parametrize("seed", range(0, 60, 2))
def test_it_is_the_brute_force_one(seed):
    c = random_case(seed)
    g = np.random.default_rng(seed).normal(scale=2.0, size=len(c.y))
    if seed % 4 == 0:
        g = np.round(g)  # ties and flat stretches
    b, left, right = best_intercept(neutral_svm(c.X, c.y, c.v, c.lam, c.eta), g)
    value, low, high = best_intercepts(g, c.y, c.v, c.lam, c.eta, slack=1e-12)
    np.testing.assert_allclose(objective(g + b, 0.0, c.y, c.v, c.lam, c.eta), value, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose([left, right], [low, high], atol=1e-9)
    assert b == (left + right) / 2


@pytest.mark.long
@pytest.mark.parametrize("surrogate", [Identity(), Pinball(tau=0.5)])
@pytest.mark.parametrize("seed", range(6))
def test_other_atoms_also_where_the_sides_cross_beyond_every_bend(seed, surrogate):
    rng = np.random.default_rng(seed)
    n = 12
    g, v = rng.normal(size=n), rng.normal(size=n) + (3.0 if seed % 2 else 0.0)
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    terms = Risk(Pinball(tau=0.2)) + SquaredL2() + 0.1 * Neutrality(surrogate)
    problem = terms.on(rng.normal(size=(n, 1)), y, viewpoint=v)
    b = best_intercept(problem, g)[0]

    def value(t):
        f = g + t
        loss = np.maximum(1 - y * f, 0.2 * (y * f - 1)).mean()
        if isinstance(surrogate, Identity):
            return loss + 0.1 * abs((v * f).mean())
        return loss + 0.1 * max(np.maximum(1 - s * v * f, 0.5 * (s * v * f - 1)).mean() for s in (1, -1))

    assert value(b) <= min(value(t) for t in np.linspace(-30, 30, 20_001)) + 1e-12
