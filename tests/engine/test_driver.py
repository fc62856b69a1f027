"""The engine against a naive primal, a naive dual and Clarabel on models written by hand."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm.atoms.regularizer import Norms
from nerm.errors import InvalidInputError, UnsupportedProblemError
from nerm.solvers.interior_point import Engine
from nerm.solvers.interior_point.driver import LENT
from tests.engine.problems import LOSSES, SURROGATES, Case, Found, random_case


def check(case: Case, tol: float = 1e-6):
    """Solve and hold the engine's word against values computed from its coefficients and multipliers alone."""
    result = case.solve(tol)
    primal, dual = case.primal(result.coef, result.intercept), case.dual(result)
    assert result.converged
    assert result.primal == pytest.approx(primal, rel=1e-9)
    assert result.dual == pytest.approx(dual, rel=1e-8, abs=1e-12)
    assert dual <= primal + 1e-10 * abs(primal)
    assert primal - dual <= 1.01 * tol * abs(primal)
    return result


def check_zero(case: Case):
    """Check an infimum of 0, to which nothing is relative: the engine comes close and claims only what it shows."""
    result = case.solve()
    primal, dual = case.primal(result.coef, result.intercept), case.dual(result)
    assert 0 <= primal < 1e-12
    assert dual <= primal
    assert not result.converged or primal - dual <= 1e-6 * primal


def plain_data(seed=0, n=60, d=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    v = np.where(X[:, 0] + X[:, 1] + 0.5 * rng.normal(size=n) > 0.3, 1.0, -1.0)
    return X, y, v


@pytest.mark.parametrize("seed", range(150))
def test_random_problems_are_certified(seed):
    check(random_case(seed))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(150, 3000))
def test_many_random_problems_are_certified(seed):
    case = random_case(seed)
    if case.has_zero_infimum:
        check_zero(case)
    else:
        check(case)


@pytest.mark.parametrize("seed", range(0, 60, 3))
def test_agrees_with_clarabel(seed):
    case = random_case(seed)
    assert case.solve(1e-8).primal == pytest.approx(case.optimum(), rel=1e-6, abs=1e-9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(60, 260))
def test_agrees_with_clarabel_on_many(seed):
    case = random_case(seed)
    assert case.solve(1e-8).primal == pytest.approx(case.optimum(), rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("surrogate", SURROGATES)
def test_every_pair_of_atoms(loss, surrogate):
    X, y, v = plain_data()
    one = np.ones(len(y))
    check(Case(X, y, [(loss, one)], 0.01, [(surrogate, 1.0, v, one)]))


@pytest.mark.parametrize("mu", [1e-6, 1e-3, 1.0, 1e3, 1e6])
@pytest.mark.parametrize("eta", [0.0, 1e-3, 1.0, 1e4])
@pytest.mark.parametrize("name", ["hinge", "squared_hinge", "logistic"])
def test_extreme_weights(mu, eta, name):
    X, y, v = plain_data(1)
    one = np.ones(len(y))
    check(Case(X, y, [(name, one)], mu, [(name, eta, v, one)]))


@pytest.mark.parametrize("scale", [1e-5, 1e5])
def test_unscaled_shifted_constant_and_double_columns(scale):
    X, y, v = plain_data(2)
    X = np.column_stack([X * [scale, 1, 1, 1 / scale], X[:, 0] + 1e6, np.full(len(y), 3.0), X[:, 1]])
    one = np.ones(len(y))
    for storage in (np.asarray, sp.csr_matrix):
        check(Case(storage(X), y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)]))


def test_theta_at_both_ends_and_inside():
    X, y, v = plain_data(3)
    one = np.ones(len(y))
    ends = [
        check(Case(X, y, [("hinge", one)], 0.1, [("hinge", 0.01, sign * np.abs(v), one)])).theta[0]
        for sign in (1, -1)
    ]
    inside = check(Case(X, y, [("hinge", one)], 0.01, [("hinge", 10.0, v, one)])).theta[0]
    assert min(ends) == pytest.approx(0, abs=1e-3)
    assert sum(ends) == pytest.approx(1, abs=1e-3)
    assert 0.01 < inside < 0.99


def test_a_row_of_weight_two_is_two_rows_and_order_does_not_matter():
    X, y, v = plain_data(4)
    X = np.round(X)
    n = len(y)
    rng = np.random.default_rng(0)
    weights = rng.integers(0, 3, n).astype(float)
    repeat = rng.permutation(np.repeat(np.arange(n), weights.astype(int)))
    many, one = len(repeat), np.ones(len(repeat))
    weighted = check(Case(X, y, [("hinge", weights)], 0.01, [("hinge", 1.0, v, weights)]), 1e-9)
    again = Case(X[repeat], y[repeat], [("hinge", one)], 0.01 * n / many, [("hinge", 1.0, v[repeat], one)])
    repeated = check(again, 1e-9)
    assert weighted.primal * n == pytest.approx(repeated.primal * many, rel=1e-8)
    assert weighted.coef == pytest.approx(repeated.coef, abs=1e-3)


def test_merging_rows_changes_nothing_but_their_number():
    rng = np.random.default_rng(5)
    X = (rng.random((400, 5)) < 0.4).astype(float)
    y, v = rng.choice([-1.0, 1.0], (2, 400))
    s = rng.exponential(size=400)
    plain = Case(sp.csr_matrix(X), y, [("hinge", s)], 0.01, [("smooth_hinge", 2.0, v, np.ones(400))])
    rows, index = np.unique(np.column_stack([X, y, v]), axis=0, return_inverse=True)
    s, u = (np.bincount(index.ravel(), weights) for weights in (s, np.ones(400)))
    merged = Case(
        sp.csr_matrix(rows[:, :5]), rows[:, 5], [("hinge", s)], 0.01, [("smooth_hinge", 2.0, rows[:, 6], u)]
    )
    engine = Engine(merged.X, merged.blocks, 400)
    found = Found(engine.solve(merged.factors(), 0.01, 1e-9), 1)
    assert len(rows) <= 128
    assert found.primal == pytest.approx(plain.solve(1e-9).primal, rel=2e-9)
    assert found.primal == pytest.approx(plain.primal(found.coef, found.intercept), rel=1e-12)


def test_dense_and_sparse_agree_and_unsorted_indices_are_understood():
    X, y, v = plain_data(6)
    X = np.where(np.abs(X) > 0.7, X, 0.0)
    one = np.ones(len(y))
    dense = Case(X, y, [("hinge", one)], 0.01, [("hinge", 1.0, v, one)])
    csr = sp.csr_matrix(X)
    want = dense.solve(1e-9).primal
    assert Case(csr, y, dense.losses, dense.mu, dense.terms).solve(1e-9).primal == pytest.approx(
        want, rel=2e-9
    )
    shuffled = csr.copy()
    for i in range(len(y)):
        part = slice(shuffled.indptr[i], shuffled.indptr[i + 1])
        shuffled.indices[part] = shuffled.indices[part][::-1]
        shuffled.data[part] = shuffled.data[part][::-1]
    shuffled = sp.csr_matrix((shuffled.data, shuffled.indices, shuffled.indptr), shape=X.shape)
    objective = nerm.Risk(nerm.Hinge()) + 0.01 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    solution = objective.on(shuffled, y, viewpoint=v).solve("interior-point", 1e-9)
    assert solution.objective.total == pytest.approx(want, rel=2e-9)


def test_flipping_labels_negates_and_flipping_the_viewpoint_changes_nothing():
    X, y, v = plain_data(7)
    one = np.ones(len(y))
    case = Case(X, y, [("squared_hinge", one)], 0.1, [("logistic", 1.0, v, one)])
    base = case.solve(1e-10)
    flipped_y = Case(X, -y, case.losses, 0.1, case.terms).solve(1e-10)
    flipped_v = Case(X, y, case.losses, 0.1, [("logistic", 1.0, -v, one)]).solve(1e-10)
    assert flipped_y.coef == pytest.approx(-base.coef, abs=1e-4)
    assert flipped_y.intercept == pytest.approx(-base.intercept, abs=1e-4)
    assert flipped_v.coef == pytest.approx(base.coef, abs=1e-4)
    assert flipped_v.theta[0] == pytest.approx(1 - base.theta[0], abs=1e-3)


@pytest.mark.parametrize("name", ["hinge", "smooth_hinge", "logistic"])
def test_a_path_is_certified_point_by_point_and_agrees_with_single_solves(name):
    X, y, v = plain_data(8, n=200)
    one = np.ones(len(y))
    case = Case(X, y, [(name, one)], 0.01, [(name, 1.0, v, one), ("identity", 0.5, X[:, 2], one)])
    scales = [0.0, *np.geomspace(0.01, 100, 7)]
    for scale, found in zip(scales, case.path(scales), strict=True):
        point = Case(X, y, case.losses, 0.01, [(a, e * scale, t, u) for a, e, t, u in case.terms])
        primal = point.primal(found.coef, found.intercept)
        assert found.converged
        assert primal - point.dual(found) <= 1.01e-6 * abs(primal)


def test_a_warm_start_from_the_optimum_keeps_it():
    X, y, v = plain_data(9)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 0.01, [("hinge", 1.0, v, one)])
    cold = case.solve()
    warm = case.solve(start=(cold.coef, cold.intercept))
    assert warm.converged
    assert warm.primal == pytest.approx(cold.primal, rel=2e-6)


def test_several_threads_give_what_one_gives():
    rng = np.random.default_rng(10)
    n = 50_000
    X = sp.random(n, 12, density=0.3, format="csr", random_state=0)
    y = np.where(X @ rng.normal(size=12) + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    v = rng.choice([-1.0, 1.0], n)
    one = np.ones(n)
    check(Case(X, y, [("hinge", one)], 1 / n, [("hinge", 1.0, v, one)]))


@pytest.mark.parametrize("storage", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("name", ["hinge", "logistic"])
def test_wide_data_are_solved_in_their_row_space(storage, name):
    rng = np.random.default_rng(11)
    n, d = 60, 400
    X = np.where(rng.random((n, d)) < 0.1, rng.normal(size=(n, d)), 0.0)
    X[1] = X[0]  # equal features, different labels
    y, v = rng.choice([-1.0, 1.0], (2, n))
    y[1] = -y[0]
    one = np.ones(n)
    case = Case(storage(X), y, [(name, one)], 0.01, [(name, 1.0, v, one)])
    check(case)
    path = case.path([0.1, 1.0])
    assert case.primal(path[1].coef, path[1].intercept) == pytest.approx(path[1].primal, rel=1e-9)


def test_very_wide_sparse_data_build_no_square_of_the_columns():
    rng = np.random.default_rng(12)
    n, d = 300, 20_000
    X = sp.random(n, d, density=0.002, format="csr", random_state=1)
    y = rng.choice([-1.0, 1.0], n)
    tracemalloc.start()
    check(Case(X, y, [("hinge", np.ones(n))], 0.01, [("hinge", 1.0, rng.choice([-1.0, 1.0], n), np.ones(n))]))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 1e8


@pytest.mark.parametrize("name", ["hinge", "huberized_hinge", "logistic"])
def test_an_optimum_of_zero_is_found_and_never_exceeded_by_its_bound(name):
    X, y, _ = plain_data(13, n=6)
    y[:] = -1.0
    y[0] = 1.0
    weights = np.ones(6)
    weights[0] = 0.0  # one class has all the weight: the infimum is 0, and alpha = 0 alone is feasible
    case = Case(X, y, [(name, weights)], 0.01)
    assert case.has_zero_infimum
    check_zero(case)


def test_what_the_engine_refuses():
    X, y, _ = plain_data()
    case = Case(X, y, [("hinge", np.ones(len(y)))], 0.0)
    with pytest.raises(InvalidInputError, match="squared l2 norm must be positive"):
        case.solve()
    huge = sp.csr_matrix((10_001, 10_001))
    huge.setdiag(np.arange(1.0, 10_002.0))
    labels = np.resize([-1.0, 1.0], 10_001)
    with pytest.raises(
        UnsupportedProblemError, match=r"at most 10000 unknowns.*10001 distinct rows and 10001 columns"
    ):
        Case(huge, labels, [("hinge", np.ones(10_001))], 1.0).engine()


def test_what_stops_early_says_so_and_blames_no_clock():
    X, y, v = plain_data(14)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 0.01, [("hinge", 1.0, v, one)])
    short = case.engine().solve(case.factors(), case.mu, max_iterations=1)
    assert (short.claim, short.timed_out) == ("stopped early", False)
    late = case.engine().solve(case.factors(), case.mu, deadline=0.0)
    assert (late.claim, late.timed_out) == ("stopped: time is up", True)
    done = case.engine().solve(case.factors(), case.mu)
    assert (done.claim, done.timed_out) == ("converged", False)


@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_rows_and_terms_that_do_not_act_have_the_multipliers_of_their_scores(name):
    X, y, v = plain_data(15)
    weights = np.ones(len(y))
    weights[::3] = 0.0
    case = Case(X, y, [(name, weights)], 0.01, [("logistic", 0.0, v, np.ones(len(y)))])
    answer = case.engine().solve(case.factors(), case.mu)
    f = X @ answer.coef + answer.intercept
    slope = {"logistic": lambda m: 1 / (1 + np.exp(m)), "hinge": lambda m: (m < 1).astype(float)}
    without = weights == 0
    np.testing.assert_allclose(answer.multipliers.rows[0, without], slope[name]((y * f)[without]), atol=1e-9)
    for row, t in zip(answer.multipliers.rows[1:], (v, -v), strict=True):
        np.testing.assert_allclose(row, slope["logistic"](t * f), atol=1e-9)
    assert answer.multipliers.thetas.tolist() == [0.5]


@pytest.mark.parametrize("order", [2, np.inf])
@pytest.mark.parametrize("weight", [1e-3, 1.0, 30.0])
def test_the_square_that_is_lent_to_norms_costs_less_than_the_accuracy(weight, order):
    """At the optimum ||w|| <= c Omega(w) <= c S, S the value at f = 0: the square there is a part of tol S."""
    X, y, v = plain_data(16)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", 2 * one)], 0.0, [("logistic", 3.0, v, one)])
    groups = np.array([[0, 1], [2, 3]])
    norms = [
        Norms(order, np.array([weight, 2 * weight]), groups),
        Norms(2, np.array([5.0, 7.0]) * weight, groups),
    ]
    penalty = case.engine()._penalty(case.factors(), 0.0, norms, 1e-6)
    at_zero = len(y) * 2.0  # of the loss: the sides of a pair cannot add up to less than there
    longest = at_zero / (len(y) * weight / (1.0 if order == 2 else np.sqrt(2.0)))
    assert 0.5 * penalty.lam * longest**2 == pytest.approx(0.5 * LENT * 1e-6 * at_zero)
    assert penalty.lent
    assert not case.engine()._penalty(case.factors(), 0.1, norms, 1e-6).lent
