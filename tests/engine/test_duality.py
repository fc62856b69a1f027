"""Bounds from any multipliers, against the formula written out and the optimum itself."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.solvers.interior_point.duality import balanced, dual_bound, force, is_balanced, primal_value
from tests.engine.problems import ATOMS, LOSSES, Case, many, random_case

INF = np.inf


def at(case: Case, seed: int):
    """Return the method, nu of each block and u drawn from the inner part of every domain."""
    rng = np.random.default_rng(seed)
    method = case.method(case.engine())
    nu = method.each(rng.dirichlet([1, 1], size=method.arrays.terms) * method.eta[:, None])
    u = np.empty(method.arrays.data.weights.shape)
    for j, (low, high) in enumerate(zip(method.arrays.low, method.arrays.high, strict=True)):
        low, high = max(low, high - 3 if high < INF else -3), min(high, low + 3 if low > -INF else 3)
        u[j] = rng.uniform(low, high, size=u.shape[1])
    return method, nu, u


def blocks(case: Case, method):
    names = [name for name, _ in case.losses] + [name for name, *_ in case.terms for _ in "+-"]
    kept = [name for j, name in enumerate(names) if name in LOSSES or j >= len(case.losses)]
    return [(kept[j], method.arrays.data.targets[j], method.arrays.data.weights[j]) for j in range(len(kept))]


@pytest.mark.parametrize("seed", range(12))
def test_every_bound_is_one_and_is_what_the_formula_says(seed):
    X, y, v = many(300, seed, real=seed % 2 == 0)
    rng = np.random.default_rng(seed)
    loss, surrogate = LOSSES[seed % len(LOSSES)], list(ATOMS)[(3 * seed) % len(ATOMS)]
    case = Case(
        X, y, [(loss, rng.exponential(size=300))], 0.1, [(surrogate, 2.0, v, np.ones(300))], seed % 4 > 0
    )
    method, nu, u = at(case, seed)
    dual, feasible = dual_bound(method.arrays, u, nu, method.taken(0.0), intercept=case.intercept)
    if dual == -INF:
        return
    c, value = np.zeros(300), 0.0
    for (name, t, B), weight, row in zip(blocks(case, method), nu, feasible, strict=True):
        conjugate, low, high = ATOMS[name][2]
        assert (row >= low).all()
        assert (row <= high).all()
        c += weight * B * t * row
        value -= weight * (B * conjugate(row)).sum()
    np.testing.assert_allclose(force(method.arrays, feasible, nu), c, atol=1e-9)
    q = X.T @ c
    assert dual == pytest.approx(value - q @ q / (2 * method.lam), rel=1e-9)
    assert not case.intercept or abs(c.sum()) <= 1e-9 * np.abs(c).sum()
    assert dual <= 300 * case.optimum() * (1 + 1e-9) + 1e-9


@pytest.mark.parametrize("seed", range(20))
def test_balancing_moves_as_little_as_one_share_and_only_where_it_helps(seed):
    case = random_case(seed)
    method, nu, u = at(case, seed)
    found = balanced(method.arrays, u, nu)
    if found is None:
        return
    assert is_balanced(method.arrays, found, nu)
    excess = np.sign(force(method.arrays, u, nu).sum())
    moved = method.arrays.data.targets * (found - u) * excess
    assert (moved <= 1e-9 * (1 + np.abs(u))).all()  # every force moves against the excess, or not at all


@pytest.mark.parametrize("label", [1.0, -1.0])
def test_all_multipliers_give_way_by_one_share(label):
    """Those of the larger label pull less and those of the other more, each by the same share of what it can."""
    X, _, _ = many(50, 2)
    y = label * np.repeat([1.0, -1.0], [30, 20])
    case = Case(X, y, [("hinge", np.ones(50))], 0.1)
    u = np.concatenate([np.linspace(-1.0, -0.7, 30), np.linspace(-0.2, 0.0, 20)])
    bound = np.repeat([0.0, -1.0], [30, 20])
    share = abs(y @ u) / np.abs(bound - u).sum()
    assert 0.5 < share < 1.0
    found = balanced(case.method(case.engine()).arrays, u[None], np.ones(1))
    np.testing.assert_allclose(found[0], u + share * (bound - u), atol=1e-12)


def test_no_balance_where_every_row_pulls_one_way():
    X, y, _ = many(50, 1)
    case = Case(X, np.ones(50), [("hinge", np.ones(50))], 0.1)
    method = case.method(case.engine())
    assert balanced(method.arrays, np.full((1, 50), -0.5), np.ones(1)) is not None  # u = 0 is balanced
    case = Case(X, y, [("hinge", np.ones(50))], 0.1, [("identity", 100.0, np.ones(50), np.ones(50))])
    method = case.method(case.engine())
    u = np.vstack([np.full(50, -0.5), np.ones((2, 50))])
    nu = np.array([1.0, 100.0, 0.0])  # the identity's pull is more than the losses can hold
    assert balanced(method.arrays, u, nu) is None
    assert dual_bound(method.arrays, u, nu, method.taken(0.0), intercept=True)[0] == -INF
    assert np.isfinite(dual_bound(method.arrays, u, nu, method.taken(0.0), intercept=False)[0])


@pytest.mark.parametrize("seed", range(10))
def test_the_primal_value(seed):
    case = random_case(seed)
    method = case.method(case.engine())
    rng = np.random.default_rng(seed)
    coef, intercept = 0.1 * rng.normal(size=case.X.shape[1]), (rng.normal() if case.intercept else 0.0)
    inside = case.engine().coordinates.inside(coef, intercept)
    values = method.arrays.values(np.asarray(case.X @ coef) + intercept, *inside)
    found = primal_value(method.arrays, values, method.factors, method.penalty.value(inside[0]))
    assert found == pytest.approx(case.n * case.primal(coef, intercept), rel=1e-9)


@pytest.mark.parametrize("settled", [False, True], ids=["rows", "settled"])
def test_what_rounding_leaves_of_large_forces_counts_as_balanced_and_no_more(settled):
    """Two sides of 1e6 cancel; their last digits may be left over, ten times as much may not, nor all that is left."""
    n = 50
    X, _, _ = many(n, 1)
    half = np.repeat([1.0, -1.0], n // 2)
    case = Case(X, half, [("hinge", np.ones(n))], 0.1, [("identity", 2e6, np.ones(n), np.ones(n))])
    method = case.method(case.engine())
    gross, nu = 2e6 * n, np.array([1.0, 1e6, 1e6])
    sides = np.full((2, n), 0.0 if settled else 1.0)
    method.arrays.pull[1:, -1] = [n * settled, -n * settled]  # rows that have left pull as well

    def left(share, size=0.5):
        """Hold forces of a loss against an excess that is this share of the gross ones."""
        u = np.vstack([np.full(n, -size), sides])
        u[0, 0] += share * gross
        return is_balanced(method.arrays, u, nu)

    assert left(0.0)
    assert left(0.5e-15)  # 5e-8 of 25 in all: rounding of the gross forces
    assert not left(2e-15)
    assert not left(0.5e-15, size=0.0)  # it is all that is left of c
