"""The search over theta and the sessions around it: other atoms, ends of the interval, warm starts along a path."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import nerm
from nerm import Hinge, Identity, Neutrality, Pinball, Risk, SquaredL2
from tests.svm.naive import synthetic

ATOMS = [Hinge(), Pinball(tau=0.5), Identity()]
X, Y, V = synthetic(80, d=4, seed=7)


@pytest.mark.parametrize("eta", [0.0, 0.1, 1.0, 20.0])
@pytest.mark.parametrize("surrogate", ATOMS, ids=repr)
@pytest.mark.parametrize("loss", ATOMS[:2], ids=repr)
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_every_pair_of_straight_atoms_is_solved(loss, surrogate, eta, kernel):
    weights = np.linspace(0.0, 2.0, 80)
    objective = Risk(loss) + 0.05 * SquaredL2() + eta * Neutrality(surrogate, weights=weights)
    problem = objective.on(X, Y, viewpoint=V, kernel=kernel, sample_weight=weights[::-1])
    ours, theirs = problem.solve("smo", tol=1e-8), problem.solve("clarabel", tol=1e-7)
    assert ours.status == theirs.status == "optimal"
    assert ours.objective.total == pytest.approx(theirs.objective.total, rel=2e-7)
    np.testing.assert_allclose(ours.training_scores(), theirs.training_scores(), atol=5e-3)


CURVED = [
    nerm.Squared(),
    nerm.SquaredHinge(),
    nerm.margin_function(lambda m: cp.huber(1 - m, 0.7) + cp.maximum(0, -m, 0.1 * m), name="four pieces"),
    nerm.margin_function(lambda m: m + cp.square(cp.pos(m)), name="never flat"),
]


@pytest.mark.parametrize("eta", [0.0, 0.3, 20.0])
@pytest.mark.parametrize(
    ("loss", "surrogate"), [(CURVED[k], CURVED[(k + j) % 4]) for k in range(3) for j in (0, 1)]
)
def test_curved_atoms_are_solved(loss, surrogate, eta):
    weights = np.linspace(0.0, 2.0, 80)
    objective = Risk(loss) + 0.05 * SquaredL2() + eta * Neutrality(surrogate, weights=weights)
    problem = objective.on(X, Y, viewpoint=V, kernel="rbf", sample_weight=weights[::-1])
    ours, theirs = problem.solve("smo", tol=1e-8), problem.solve("clarabel", tol=1e-7)
    assert ours.status == theirs.status == "optimal"
    assert ours.objective.total == pytest.approx(theirs.objective.total, rel=2e-7)
    np.testing.assert_allclose(ours.training_scores(), theirs.training_scores(), atol=5e-3)


def test_a_forced_side_without_a_bound_leaves_theta_inside():
    """With one group the surrogate moves all scores in one direction without bound, unless both sides have weight."""
    objective = Risk(Hinge()) + 0.1 * SquaredL2() + 3.0 * Neutrality(CURVED[3])
    problem = objective.on(X, Y, viewpoint=np.ones(80))
    ours, theirs = problem.solve("smo"), problem.solve("clarabel")
    assert ours.status == "optimal"
    assert ours.objective.total == pytest.approx(theirs.objective.total, rel=2e-6)


def test_several_risks_at_once():
    objective = Risk(Hinge()) + 0.5 * Risk(Pinball(tau=1.0)) + 0.05 * SquaredL2() + Neutrality(Hinge())
    problem = objective.on(X, Y, viewpoint=V)
    ours, theirs = problem.solve("smo", tol=1e-8), problem.solve("clarabel", tol=1e-7)
    assert ours.status == "optimal"
    assert ours.objective.total == pytest.approx(theirs.objective.total, rel=2e-7)


def test_a_covariance_that_only_theta_can_balance():
    """With a constant viewpoint the identity moves all scores in one direction: theta is where the slopes of the risk balance it."""
    problem = (Risk(Hinge()) + 0.1 * SquaredL2() + 50.0 * Neutrality(Identity())).on(
        X, Y, viewpoint=np.ones(80)
    )
    solution = problem.solve("smo", tol=1e-7)
    assert solution.status == "optimal"
    assert abs(solution.training_scores().mean()) < 1e-5
    assert abs(solution.multipliers.theta - 0.5) < 0.01


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("etas", [[0.0, 0.1, 0.2, 0.5, 1.0, 2.0], [2.0, 0.0, 1.0]])
def test_path_points_agree_with_single_solves(kernel, etas):
    loss = Hinge() if kernel else nerm.SquaredHinge()
    problem = (Risk(loss) + 0.02 * SquaredL2() + Neutrality(loss)).on(X, Y, viewpoint=V, kernel=kernel)
    path = problem.path(etas, "smo")
    alone = [problem.with_neutrality(eta).solve("smo") for eta in etas]
    for ours, single in zip(path, alone, strict=True):
        assert ours.status == "optimal"
        assert ours.objective.total == pytest.approx(single.objective.total, rel=2e-6)


def test_a_session_computes_the_kernel_once():
    seen = []

    def kernel(A, B):
        seen.append(A.shape[0] * B.shape[0])
        return np.exp(-0.5 * ((A[:, None] - B[None]) ** 2).sum(axis=2))

    problem = (Risk(Hinge()) + 0.02 * SquaredL2() + Neutrality(Hinge())).on(X, Y, viewpoint=V, kernel=kernel)
    before = sum(seen)
    problem.path([0.1, 0.5, 1.0], "smo")
    assert sum(seen) == before  # the matrix was checked at binding, and is held


def test_what_it_does_not_take_is_named():
    two = (Risk(Hinge()) + SquaredL2() + Neutrality(Hinge()) + Neutrality(Identity())).on(X, Y, viewpoint=V)
    assert nerm.solvers.known()["smo"].why_unsupported(two) == "2 neutrality terms"
    smooth = (Risk(nerm.Logistic()) + SquaredL2()).on(X, Y)
    assert nerm.solvers.known()["smo"].why_unsupported(smooth) == "Logistic()"
