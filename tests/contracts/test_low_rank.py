"""Kernel problems through a pivoted Cholesky factor: certified against the true kernel."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import nerm
from nerm import Hinge, Logistic, Neutrality, Risk, SquaredL2
from tests.conftest import make_data


@pytest.mark.parametrize(
    ("loss", "surrogate"),
    [
        (Hinge(), Hinge()),
        (Logistic(), nerm.Exponential()),
        (nerm.SquaredHinge(), Logistic()),
        (nerm.Squared(), nerm.Identity()),
    ],
)
def test_agrees_with_clarabel(loss, surrogate):
    X, y, v = make_data(1, n=80)
    problem = (Risk(loss) + 0.02 * SquaredL2() + 1.5 * Neutrality(surrogate)).on(
        X, y, viewpoint=v, kernel="rbf"
    )
    ours, reference = problem.solve("low-rank", tol=1e-7), problem.solve("clarabel", tol=1e-7)
    assert ours.status == "optimal"
    assert ours.objective.total == pytest.approx(reference.objective.total, rel=2e-7)
    np.testing.assert_allclose(ours.decision_function(X), reference.decision_function(X), atol=1e-2)


def test_the_factor_is_as_short_as_the_accuracy_allows():
    X, y, v = make_data(2, n=200, d=2)
    problem = (Risk(Hinge()) + 0.5 * SquaredL2() + Neutrality(Hinge())).on(
        X, y, viewpoint=v, kernel=nerm.kernels.RBF(gamma=0.05)
    )
    solution = problem.solve("low-rank", tol=1e-4)
    assert solution.status == "optimal"
    assert solution.stats.details["rank"] < 40


def test_auto_for_kernels_and_what_it_says():
    X, y, v = make_data(3)
    svm = (
        (Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v, kernel="rbf").solve()
    )
    smooth = (Risk(Logistic()) + 0.1 * SquaredL2()).on(X, y, kernel="rbf").solve()
    sparse = (Risk(Hinge()) + 0.1 * nerm.L1()).on(X, y).solve()
    own = nerm.regularizer(lambda w: cp.norm2(w), name="own")
    other = (Risk(Hinge()) + 0.1 * own).on(X, y).solve()
    assert [s.stats.solver for s in (svm, smooth, sparse, other)] == [
        "smo",
        "low-rank",
        "interior-point",
        "clarabel",
    ]
    assert all(s.status == "optimal" for s in (svm, smooth, sparse, other))
    assert other.stats.reason.startswith("takes every atom; nerm's own solvers do not take ")


def test_a_mismatch_is_named():
    X, y, _ = make_data(3)
    with pytest.raises(nerm.UnsupportedProblemError, match=r"Got a problem with no kernel"):
        (Risk(Hinge()) + 0.1 * SquaredL2()).on(X, y).solve("low-rank")


@pytest.mark.parametrize("loss", [nerm.Hinge(), nerm.Logistic()], ids=repr)
@pytest.mark.parametrize("solver", ["auto", "low-rank", "clarabel"])
def test_a_gram_matrix_of_zeros_leaves_the_intercept(loss, solver):
    y = np.array([1, -1, 1, -1, 1, 1])
    solution = (
        (nerm.Risk(loss) + 0.1 * nerm.SquaredL2()).on(np.zeros((6, 6)), y, kernel="precomputed").solve(solver)
    )
    assert solution.status == "optimal"
    best = min(loss.value(y * b).mean() for b in np.linspace(-2, 2, 4001))
    assert solution.objective.total == pytest.approx(best, rel=1e-5)


def test_a_factor_of_rank_nothing_is_no_obstacle():
    """Where all the kernel can do is worth less than the tolerance, no pivot is needed."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    problem = (nerm.Risk(nerm.Logistic()) + 2e5 * nerm.SquaredL2()).on(X, np.sign(X[:, 0]), kernel="rbf")
    assert problem.solve("low-rank").status == "optimal"
    assert problem.solve("low-rank", tol=1e-2).status == "optimal"
