"""Equal rows: found exactly, against a dictionary of tuples, and merged without a change of the solution."""

from __future__ import annotations

import gc
import weakref
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm.model.problem import with_terms
from nerm.solvers.linalg.merging import distinct_rows

SVM = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + 0.5 * nerm.Neutrality(nerm.Hinge())


def table(seed, n=200, d=4):
    rng = np.random.default_rng(seed)
    X = rng.integers(-1, 2, size=(n, d)).astype(float)
    y, v = rng.choice([-1.0, 1.0], size=(2, n))
    return X, y, v


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("kind", [np.array, sp.csr_matrix], ids=["dense", "sparse"])
def test_distinct_rows_are_those_of_a_dictionary(kind, kernel):
    X, y, v = table(1)
    rows = distinct_rows(SVM.on(kind(X), y, viewpoint=v, kernel=kernel))
    keys = [(*x, a, b) for x, a, b in zip(X, y, v, strict=True)]
    seen = {}
    for i, key in enumerate(keys):
        seen.setdefault(key, i)
    assert len(rows.first) == len(seen)
    assert all(rows.first[rows.index[i]] == seen[key] for i, key in enumerate(keys))


@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_data_are_freed_with_their_problem(kernel):
    X, y, v = np.random.default_rng(0).normal(size=(20, 3)), np.arange(20) % 2 * 2 - 1, np.ones(20)
    solution = SVM.on(X, y, viewpoint=v, kernel=kernel).solve()
    hypothesis = weakref.ref(solution.problem.hypothesis)
    del solution
    gc.collect()
    assert hypothesis() is None


def test_negative_zero_is_zero():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])
    assert len(distinct_rows(SVM.on(X, [1, 1, -1], viewpoint=[1, 1, -1])).first) == 2


def test_order_of_distinct_rows_does_not_depend_on_the_given_order():
    X, y, v = table(9)
    order = np.random.default_rng(0).permutation(len(X))
    one = distinct_rows(SVM.on(X, y, viewpoint=v))
    two = distinct_rows(SVM.on(X[order], y[order], viewpoint=v[order]))
    np.testing.assert_array_equal(X[one.first], X[order][two.first])
    np.testing.assert_array_equal(y[one.first], y[order][two.first])


def test_problems_with_other_targets_have_other_distinct_rows():
    X, y, v = table(3)
    problem = SVM.on(X, y, viewpoint=v)
    rows = distinct_rows(problem)
    assert distinct_rows(problem.with_neutrality(3.0)) is rows
    other = with_terms(problem, problem.objective, np.where(np.arange(200) % 3, y, -y))
    assert distinct_rows(other).fits(other.blocks)


def test_rows_that_differ_in_one_side_of_a_term_are_distinct():
    X, y, v = table(4)
    problem = SVM.on(X, y, viewpoint=v)
    *others, last = problem.blocks
    targets = np.where(np.arange(200) % 2, last.targets, 0.5 * last.targets)
    changed = replace(problem, blocks=(*others, replace(last, targets=targets)))
    assert distinct_rows(changed).fits(changed.blocks)


@pytest.mark.parametrize("solver", ["interior-point", "smo", "augmented-lagrangian"])
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_solution_on_repeated_rows_agrees_with_a_general_solver(solver, kernel):
    if kernel and solver == "interior-point":
        return
    X, y, v = table(5, n=90, d=3)
    s = np.random.default_rng(2).random(90)
    problem = SVM.on(X, y, viewpoint=v, kernel=kernel, sample_weight=s)
    found, expected = problem.solve(solver, 1e-8), problem.solve("clarabel", 1e-8)
    assert found.status == "optimal"
    assert found.objective.total == pytest.approx(expected.objective.total, rel=2e-8)
    assert found.multipliers.alpha.shape == (90,)
    for one in problem.path([0.1, 2.0], solver):
        assert one.status == "optimal"
