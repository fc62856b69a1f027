"""Rows of the Gram matrix: the budget, what is given up first, products, and the matrix that is there already."""

from __future__ import annotations

import numpy as np

import nerm
from nerm.kernels import RBF
from nerm.solvers.smo import GramCache
from tests.svm.naive import Case, synthetic


def bound(kernel, n=200):
    X, y, v = synthetic(n, d=4)
    return (
        (nerm.Risk(nerm.Hinge()) + nerm.SquaredL2()).on(X, y, kernel=kernel),
        Case(X, y, v, 1.0, 1.0, "rbf").gram,
        X,
    )


def test_it_keeps_to_its_budget_and_gives_up_the_least_recent():
    problem, gram, _ = bound(RBF(0.5))
    cache = GramCache(problem.hypothesis, megabytes=8 * 200 * 8 / 2**20)
    rows = cache.rows
    assert rows.table.shape == (8, 200)
    assert not cache.whole
    nothing = np.array([], dtype=np.intp)
    for now, i in enumerate([3, 5, 7, 9, 11, 13, 15, 17]):
        rows.clock[0] = now
        cache.load(i, nothing)
    rows.stamp[rows.slot_of[3]] = 100  # used again: 5 is now the oldest
    rows.clock[0] = 101
    cache.load(50, nothing)
    assert rows.slot_of[5] == -1
    for i in (3, 50, 17):
        np.testing.assert_allclose(rows.table[rows.slot_of[i]], gram[i], atol=1e-12)
    a = np.random.default_rng(0).normal(size=200)
    np.testing.assert_allclose(cache.product(a), gram @ a, atol=1e-10)
    np.testing.assert_array_equal(cache.product(np.zeros(200)), np.zeros(200))


def test_rows_likely_to_be_wanted_come_along():
    problem, gram, _ = bound(RBF(0.5))
    cache = GramCache(problem.hypothesis, megabytes=16 * 200 * 8 / 2**20)
    assert cache.batch == 4
    cache.load(10, np.array([11, 10, 11, 12, 13, 14]))
    held = np.flatnonzero(cache.rows.slot_of >= 0)
    assert held.tolist() == [10, 11, 12, 13]
    np.testing.assert_allclose(cache.rows.table[cache.rows.slot_of[12]], gram[12], atol=1e-12)


def test_what_is_there_already_is_not_computed_again():
    problem, gram, X = bound(RBF(0.5))
    _ = problem.hypothesis.gram
    cache = GramCache(problem.hypothesis, megabytes=1e-4)
    assert cache.whole
    assert np.shares_memory(cache.rows.table, problem.hypothesis.gram)
    np.testing.assert_allclose(cache.rows.table, gram, atol=1e-12)
    linear, _, X = bound(None)
    np.testing.assert_allclose(GramCache(linear.hypothesis, 500).rows.table, X @ X.T, atol=1e-12)


def test_single_precision_is_left_where_its_scores_drift(monkeypatch):
    """Two answers to one problem, certified in doubles both; a hypothesis with its matrix never needs less."""
    monkeypatch.setattr("nerm.model.hypothesis.AT_ONCE", 9)
    problem, gram, _ = bound(RBF(0.5))
    cache = GramCache(problem.hypothesis, megabytes=1.0, single=True)
    assert cache.single
    a = np.random.default_rng(0).normal(size=200)
    np.testing.assert_allclose(cache.product(a), gram @ a, atol=1e-4)
    for drift in (0.05, 0.0):
        monkeypatch.setattr("nerm.solvers.smo.solver.DRIFT", drift)
        fresh, _, _ = bound(RBF(0.5))
        assert fresh.solve("smo", tol=1e-4).status == "optimal"
        assert ("gram" in vars(fresh.hypothesis)) == (drift == 0.0)
    assert not GramCache(fresh.hypothesis, megabytes=1.0, single=True).single
