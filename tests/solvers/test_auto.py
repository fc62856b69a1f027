"""The automatic choice: one table of costs, right on shapes for which it was not tuned."""

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm import Hinge, Logistic, Neutrality, Risk, SquaredL2
from nerm.solvers.registry import choose
from tests.conftest import make_data

INTERIOR, ALM = "interior-point", "augmented-lagrangian"


def signs(rng, n):
    return np.where(rng.random(n) < 0.5, 1.0, -1.0)


def sparse(n, d, per_row, shared=0):
    """Return rows with `per_row` ones, of which `shared` are common to all rows."""
    rng = np.random.default_rng(0)
    columns = rng.integers(shared, d, size=(n, per_row))
    columns[:, :shared] = np.arange(shared)
    return sp.csr_matrix(
        (np.ones(n * per_row), columns.ravel(), np.arange(0, n * per_row + 1, per_row)), (n, d)
    )


def leaves(n, trees, per_tree):
    """Return one-hot leaves: one of `per_tree` columns per tree and row."""
    rng = np.random.default_rng(0)
    columns = rng.integers(per_tree, size=(n, trees)) + per_tree * np.arange(trees)
    return sp.csr_matrix(
        (np.ones(n * trees), columns.ravel(), np.arange(0, n * trees + 1, trees)), (n, trees * per_tree)
    )


def dense(n, d, offset=0.0):
    return np.random.default_rng(0).normal(size=(n, d)) + offset


def first(X, kernel=None, loss=None):
    loss = loss or Hinge()
    rng = np.random.default_rng(1)
    n = X.shape[0]
    objective = Risk(loss) + 1 / n * SquaredL2() + Neutrality(loss)
    problem = objective.on(X, signs(rng, n), viewpoint=signs(rng, n), kernel=kernel)
    return choose(problem)[0].solver.name


@pytest.mark.parametrize(
    ("X", "chosen"),
    [
        (dense(3000, 20), INTERIOR),
        (dense(310, 3100), INTERIOR),
        (dense(310, 320, offset=10.0), INTERIOR),
        (sparse(3000, 200, 10), INTERIOR),
        (leaves(30_000, 120, 27), INTERIOR),
        (sparse(4000, 4500, 30), ALM),
        (sparse(3000, 20_000, 30), ALM),
        (sparse(5100, 5200, 30), ALM),
    ],
    ids=["tall", "wide", "offset", "one-hot", "leaves", "square", "text", "beyond the largest system"],
)
def test_auto_on_linear_shapes(X, chosen):
    assert first(X) == chosen


def test_auto_on_kernels():
    X = dense(200, 3)
    assert first(X, "rbf") == "smo"
    assert first(X, "rbf", loss=Logistic()) == ALM
    assert first(dense(9000, 3), "rbf") == ALM  # no Gram matrix in memory


def test_auto_asks_a_general_solver_for_other_atoms():
    X, y, _ = make_data(3)
    own = nerm.regularizer(lambda w: cp.sum(cp.huber(w)), name="own")
    solution = (Risk(Hinge()) + 0.1 * own).on(X, y).solve()
    assert solution.status == "optimal"
    assert solution.stats.solver == "clarabel"
    assert solution.stats.reason.startswith("takes every atom; nerm's own solvers do not take ")


@pytest.mark.parametrize("loss", [Hinge(), Logistic(), nerm.SmoothHinge()], ids=repr)
@pytest.mark.parametrize("solver", ["auto", ALM, "clarabel"])
@pytest.mark.parametrize("intercept", [True, False])
def test_gram_matrix_of_zeros_is_solved(loss, solver, intercept):
    y = np.array([1, -1, 1, -1, 1, 1])
    problem = (Risk(loss) + 0.1 * SquaredL2()).on(
        np.zeros((6, 6)), y, kernel="precomputed", intercept=intercept
    )
    solution = problem.solve(solver)
    assert solution.status == "optimal"
    best = min(loss.value(y * b).mean() for b in (np.linspace(-2, 2, 4001) if intercept else [0.0]))
    assert solution.objective.total == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize(
    ("loss", "surrogate"),
    [(Logistic(), nerm.Exponential()), (nerm.SquaredHinge(), Logistic()), (nerm.Squared(), nerm.Identity())],
    ids=repr,
)
def test_smooth_kernels_agree_with_clarabel(loss, surrogate):
    X, y, v = make_data(1, n=60)
    objective = Risk(loss) + 0.02 * SquaredL2() + 1.5 * Neutrality(surrogate)
    problem = objective.on(X, y, viewpoint=v, kernel="rbf")
    ours, reference = problem.solve(tol=1e-7), problem.solve("clarabel", tol=1e-7)
    assert ours.status == "optimal"
    assert ours.stats.solver == ("smo" if loss == nerm.Squared() else ALM)
    assert ours.objective.total == pytest.approx(reference.objective.total, rel=2e-7)
