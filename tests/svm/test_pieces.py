"""The per-sample dual function and the best intercept, against linear programming and brute force."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import linprog

from nerm.svm.data import validated
from nerm.svm.intercept import best_intercept
from nerm.svm.pieces import make_pieces

from .naive import best_intercepts, objective, random_case

Y = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
V = np.array([1.0, 1.0, -1.0, 0.0, 0.4, -2.5, 1.0])
S = np.array([1.0, 2.0, 1.0, 0.5, 1.0, 1.0, 0.0])
U = np.array([1.0, 1.0, 3.0, 1.0, 0.7, 1.0, 0.0])


def data(variant="exact", eta=2.0):
    return validated(
        np.arange(7.0).reshape(-1, 1), Y, V, 1.0, eta, variant=variant, sample_weight=S, neutrality_weight=U
    )


def best_gain(i, a, bounds, coupling=None):
    """Maximise alpha + beta+ + beta- subject to alpha y + (beta+ - beta-) v = a, by linear programming."""
    extra = {} if coupling is None else {"A_ub": [[0.0, 1.0, 1.0]], "b_ub": [coupling]}
    answer = linprog([-1, -1, -1], A_eq=[[Y[i], V[i], -V[i]]], b_eq=[a], bounds=bounds, **extra)
    assert answer.status == 0
    return -answer.fun


@pytest.mark.parametrize(("nu_plus", "nu_minus"), [(0.5, 1.5), (2.0, 0.0), (0.0, 2.0)])
def test_multipliers_attain_the_best_gain(nu_plus, nu_minus):
    pieces = make_pieces(data(), nu_plus, nu_minus)
    for share in (0.0, 0.1, 0.25, 0.5, 0.77, 1.0):
        a = pieces.low + share * (pieces.high - pieces.low)
        m = pieces.multipliers(a)
        np.testing.assert_allclose(m.alpha * Y + (m.beta_plus - m.beta_minus) * V, a, atol=1e-12)
        for i in range(7):
            expected = best_gain(i, a[i], [(0, S[i]), (0, nu_plus * U[i]), (0, nu_minus * U[i])])
            np.testing.assert_allclose(m.alpha[i] + m.beta_plus[i] + m.beta_minus[i], expected, atol=1e-9)


def test_published_multipliers_attain_the_best_gain():
    pieces = make_pieces(data("published"))
    for share in (0.0, 0.1, 0.25, 0.5, 0.77, 1.0):
        a = pieces.low + share * (pieces.high - pieces.low)
        m = pieces.multipliers(a)
        np.testing.assert_allclose(m.alpha * Y + (m.beta_plus - m.beta_minus) * V, a, atol=1e-12)
        for i in range(7):
            expected = best_gain(i, a[i], [(0, S[i]), (0, None), (0, None)], coupling=2.0 * U[i])
            np.testing.assert_allclose(m.alpha[i] + m.beta_plus[i] + m.beta_minus[i], expected, atol=1e-9)


def test_balancing_stays_in_the_boxes_and_sums_to_zero():
    pieces = make_pieces(data(), 0.5, 1.5)
    rng = np.random.default_rng(0)
    for _ in range(20):
        a = pieces.balanced(rng.normal(scale=3.0, size=7), prefer=rng.random(7) < 0.3)
        assert (a >= pieces.low).all()
        assert (a <= pieces.high).all()
        assert abs(a.sum()) < 1e-12


@pytest.mark.parametrize("seed", range(0, 60, 2))
def test_best_intercept_is_the_brute_force_one(seed):
    c = random_case(seed)
    g = np.random.default_rng(seed).normal(scale=2.0, size=len(c.y))
    if seed % 4 == 0:
        g = np.round(g)  # ties and flat stretches
    d = validated(c.X, c.y, c.v, c.lam, c.eta)
    b, left, right = best_intercept(d, g)
    value, low, high = best_intercepts(g, c.y, c.v, c.lam, c.eta, slack=1e-12)
    np.testing.assert_allclose(objective(g + b, 0.0, c.y, c.v, c.lam, c.eta), value, rtol=1e-11, atol=1e-11)
    np.testing.assert_allclose([left, right], [low, high], atol=1e-9)
    assert b == (left + right) / 2


@pytest.mark.parametrize("seed", range(6))
def test_best_intercept_of_the_published_variant(seed):
    c = random_case(seed)
    g = np.random.default_rng(seed).normal(size=len(c.y))
    d = validated(c.X, c.y, c.v, c.lam, 0.3, variant="published")
    b = best_intercept(d, g)[0]
    values = [
        objective(g + t, 0.0, c.y, c.v, c.lam, 0.3, variant="published")
        for t in np.append(np.concatenate([c.y - g, -g]), b)
    ]
    assert values[-1] <= min(values) * (1 + 1e-12)
