"""Few rows instead of all: what the rows that left add, and a bound that holds whatever the guess."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nerm.solvers.interior_point import Tuning
from nerm.solvers.interior_point import condense as condensing
from nerm.solvers.interior_point.condense import _around, barrier_of, condense, on_few_rows, optimum
from nerm.solvers.interior_point.duality import force
from tests.engine.problems import ATOMS, TUNING, Case, many


def naive_values(names, targets, scores):
    return [ATOMS[name][1](t * scores).sum() for name, t in zip(names, targets, strict=True)]


def wrong_guess(seed: int):
    X, y, v = many(400, seed, sparse=seed % 2 == 0, real=seed % 3 == 0)
    rng = np.random.default_rng(seed)
    one = np.ones(len(y))
    case = Case(X, y, [("smooth_hinge", one)], 0.01, [("hinge", 1.0, v, rng.exponential(size=len(y)))])
    return case, rng.normal(size=X.shape[1])  # as wrong as can be


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("distance", [0.0, 0.1, 1.0])
def test_a_small_problem_bounds_the_whole_one_whatever_the_guess(seed, distance):
    case, coef = wrong_guess(seed)
    best = case.solve(1e-9)
    engine = case.engine()
    method = case.method(engine)
    small = condense(method.arrays, method.scores(coef, 0.0), distance, 1.0)
    inner = method.on(small.arrays)
    found = inner.run(inner.start(coef, 0.0, 1.0), 1e-6, 200)
    if found.u is None:
        inner.bound(inner.start(found.coef, found.intercept, 1e-6).duals.u, found.state.nu, found)
    whole = method.evaluate(found.coef, found.intercept)
    whole.u, whole.nu, whole.dual = small.on_all_rows(found.u), found.nu, found.dual
    result = type(best)(engine._answer(method, whole, 0.0), 1)
    assert case.dual(result) == pytest.approx(found.dual / case.n, rel=1e-8)
    assert case.dual(result) <= case.primal(best.coef, best.intercept) * (1 + 1e-12)


def test_rows_that_left_have_their_own_value_where_the_guess_is_right():
    X, y, v = many(500, 5, real=True)
    one = np.ones(len(y))
    terms = [("hinge", 1.0, v, one), ("pinball", 1.0, X[:, 1], one)]
    case = Case(X, y, [("huberized_hinge", one)], 0.01, terms)
    method = case.method(case.engine())
    coef = np.array([1.0, -0.5, 0.3, 2.0, 0.1])
    small = condense(method.arrays, X @ coef + 0.2, 0.05, 1.0)
    assert small.arrays.n_rows < 0.5 * len(y)
    smaller = condense(small.arrays, X[small.rows] @ coef + 0.2, 0.01, 1.0)
    assert smaller.arrays.n_rows < small.arrays.n_rows
    names, targets = (
        ["huberized_hinge", "hinge", "hinge", "pinball", "pinball"],
        [y, v, -v, X[:, 1], -X[:, 1]],
    )
    for scale in (1.0, 1.0005):  # not only at the guess itself: nearby, where no row has crossed a kink
        w = scale * coef
        naive = naive_values(names, targets, X @ w + 0.2)
        for arrays, rows in ((small.arrays, small.rows), (smaller.arrays, small.rows[smaller.rows])):
            assert arrays.values(X[rows] @ w + 0.2, w, 0.2) == pytest.approx(naive, rel=1e-12)


def test_a_small_problem_never_has_a_larger_value():
    X, y, v = many(500, 6)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 0.01, [("modified_huber", 1.0, v, one)])
    method = case.method(case.engine())
    small = condense(method.arrays, X @ np.ones(5), 0.05, 1.0)
    rng = np.random.default_rng(0)
    for _ in range(20):
        w, b = rng.normal(size=5), rng.normal()
        naive = naive_values(["hinge", "modified_huber", "modified_huber"], [y, v, -v], X @ w + b)
        assert (small.arrays.values(X[small.rows] @ w + b, w, b) <= np.array(naive) * (1 + 1e-12)).all()


def test_condensing_twice_is_condensing_once_with_all_multipliers_in_place():
    case, _ = wrong_guess(3)
    method = case.method(case.engine())
    scores = method.scores(np.ones(5), 0.1)
    small = condense(method.arrays, scores, 0.5, 1.0)
    twice = condense(small.arrays, scores[small.rows], 0.1, 1.0).within(small)
    once = condense(method.arrays, scores, 0.1, 1.0)
    np.testing.assert_array_equal(twice.rows, once.rows)
    stays = np.zeros(case.n, dtype=bool)
    stays[once.rows] = True
    np.testing.assert_array_equal(twice.u[:, ~stays], once.u[:, ~stays])
    np.testing.assert_allclose(twice.arrays.pull, once.arrays.pull, atol=1e-9)
    np.testing.assert_allclose(twice.arrays.settled, once.arrays.settled, atol=1e-9)


def test_smooth_functions_are_left_whole_where_they_have_weight():
    X, y, v = many(200, 6)
    one = np.ones(len(y))
    some = one * (np.arange(len(y)) < 40)
    for weights in (some, one):
        case = Case(X, y, [("logistic", weights)], 0.01, [("hinge", 1.0, v, one)])
        method = case.method(case.engine())
        small = condense(method.arrays, X @ np.ones(5), 0.1, 0.9)
        if weights is one:
            assert small is None
        else:
            assert 40 <= small.arrays.n_rows < 100
            assert set(range(40)) <= set(small.rows)


def test_too_many_or_no_rows_are_no_small_problem():
    X, y, v = many(300, 7)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 0.01, [("hinge", 1.0, v, one)])
    method = case.method(case.engine())
    assert condense(method.arrays, X @ np.ones(5), 100.0, 0.7) is None
    assert condense(method.arrays, np.full(len(y), 50.0), 0.1, 0.7) is None


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", ["hinge", "smooth_hinge", "squared_hinge", "pinball", "identity"])
def test_few_rows_of_few_rows(name, intercept):
    X, y, v = many(1500, 8, real=True)
    rng = np.random.default_rng(9)
    weights = rng.exponential(size=(2, len(y))) * (rng.random((2, len(y))) < 0.9)
    case = Case(X, y, [("hinge", weights[0])], 1e-3, [(name, 1.0, v, weights[1])], intercept)
    scales = [0.0, *np.geomspace(0.01, 100, 12)]
    for scale, found in zip(scales, case.path(scales, tuning=Tuning(fewest=30)), strict=True):
        point = Case(X, y, case.losses, case.mu, [(name, scale, v, weights[1])], intercept)
        assert found.converged
        assert point.primal(found.coef, found.intercept) - point.dual(found) <= 1.01e-6 * found.primal
    single = case.solve(tuning=Tuning(fewest=30))
    assert single.converged
    assert case.primal(single.coef, single.intercept) - case.dual(single) <= 1.01e-6 * single.primal


@pytest.mark.parametrize("eta", [1.0, 1e6, 1e9])
def test_the_sides_of_a_term_cancel_on_all_rows_too(eta):
    X, y, v = many(600, 10)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 1e-3, [("identity", eta, v, one)])
    found = case.solve()
    engine = case.engine()
    method = case.method(engine)
    here = method.evaluate(*engine.coordinates.inside(found.coef, found.intercept))
    few = on_few_rows(method, here, 0.01, 1e-6, 200)
    if few.converged or eta < 1e9:  # beyond, rounding may leave nothing to prove, but then nothing is claimed
        loss, plus, minus = few.u
        c = y * loss + few.nu[0, 0] * v * plus - few.nu[0, 1] * v * minus
        assert few.converged
        assert abs(c.sum()) <= 1e-8 * np.abs(c).sum()
        assert few.dual <= found.primal * len(y) * (1 + 1e-9)
        np.testing.assert_allclose(
            force(method.arrays, few.u, method.each(few.nu)), c, atol=1e-9 * np.abs(c).max()
        )


def test_every_round_on_few_rows_has_the_iterations_that_are_left(monkeypatch):
    X, y, v = many(600, 10)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)])
    engine = case.engine(Tuning(rounds=4))
    method, found, rounds = case.method(engine), case.solve(), []

    def a_little_better(method, small, here, *rest):
        rounds.append((here.iterations, rest[-1]))
        return replace(here, primal=here.primal - 1.0, iterations=7)

    monkeypatch.setattr(condensing, "_descend", a_little_better)
    here = method.evaluate(*engine.coordinates.inside(found.coef, found.intercept))
    on_few_rows(method, here, 0.01, 1e-12, 20)
    assert rounds == [(0, 20), (7, 13), (14, 6)]


def test_a_small_problem_that_misleads_is_given_up_and_all_rows_are_run():
    X, y, v = many(3000, 11)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)])
    method = case.method(case.engine(Tuning(reach=1e-9)))  # hardly a row is kept
    outcome = optimum(method, method.start(np.zeros(5), 0.0, 1.0), 1e-6, 200)
    assert outcome.converged
    assert outcome.primal == pytest.approx(case.n * case.solve(1e-9).primal, rel=2e-6)


def test_the_barrier_follows_the_error_within_its_range():
    low, high = TUNING.barrier_range
    barriers = [barrier_of(miss, TUNING) for miss in (0.0, 0.05, 10.0)]
    assert barriers[0] == low
    assert low < barriers[1] < high
    assert barriers[2] == high


def test_rows_with_a_kink_between_two_hypotheses_stay():
    case, _ = wrong_guess(3)
    method = case.method(case.engine())
    here, there = method.scores(np.ones(5), 0.1), method.scores(-np.ones(5), 0.1)
    small = condense(method.arrays, here, 0.0, 1.0, there)
    crossed = np.zeros(case.n, dtype=bool)
    for block in method.arrays.blocks:
        linear, quadratic = block.atom.facts.quadratic
        low, high = (linear + quadratic * slope for slope in block.atom.facts.slopes)
        a, b = block.targets * here, block.targets * there
        crossed |= ~(((a <= low) & (b <= low)) | ((a >= high) & (b >= high)))
    np.testing.assert_array_equal(small.rows, np.flatnonzero(crossed))


@pytest.mark.parametrize("miss", [0.01, 0.03, 0.1])
def test_the_rows_around_a_hypothesis_are_those_that_may_cross_a_kink(miss):
    """Nearer to a kink than scores may be off, or with the kink on the way to the other scores."""
    X, y, v = many(400, 3)
    case = Case(X, y, [("hinge", np.ones(400))], 0.1, [("hinge", 1.0, 0.5 * v, np.ones(400))])
    method = case.method(case.engine())
    here, other = method.evaluate(0.3 * np.ones(5), 0.1), method.scores(0.33 * np.ones(5), 0.1)
    f, far = here.scores, method.tuning.reach * miss
    stays = np.zeros(400, dtype=bool)
    for t in (y, 0.5 * v, -0.5 * v):
        stays |= (np.abs(t * f - 1) < np.abs(t) * far) | ((t * f < 1) != (t * other < 1))
    small = _around(method, here, miss, other)
    assert 0 < len(small.rows) < 400
    np.testing.assert_array_equal(small.rows, np.flatnonzero(stays))
