"""The augmented Lagrangian on kernels: certified against the true kernel, with and without a Gram matrix."""

from __future__ import annotations

import numpy as np
import pytest

import nerm
from nerm import Hinge, Logistic, Neutrality, Risk, SquaredL2
from nerm.solvers.newton_alm import AugmentedLagrangian, coarse, kernel_products
from nerm.solvers.newton_alm import solver as augmented_lagrangian
from tests.conftest import make_data

NAME = "augmented-lagrangian"
ATOMS = [
    (Hinge(), Hinge()),
    (Logistic(), nerm.Exponential()),
    (nerm.SquaredHinge(), Logistic()),
    (nerm.Squared(), nerm.Identity()),
    (nerm.SmoothHinge(), Hinge()),
]


@pytest.mark.parametrize(("loss", "surrogate"), ATOMS, ids=repr)
@pytest.mark.parametrize(
    "kernel", [nerm.kernels.RBF(gamma=0.5), nerm.kernels.Polynomial(gamma=0.3, coef0=1.0)], ids=repr
)
def test_agrees_with_clarabel(loss, surrogate, kernel):
    X, y, v = make_data(1, n=80)
    problem = (Risk(loss) + 0.02 * SquaredL2() + 1.5 * Neutrality(surrogate)).on(
        X, y, viewpoint=v, kernel=kernel
    )
    ours, reference = problem.solve(NAME, tol=1e-7), problem.solve("clarabel", tol=1e-7)
    assert ours.status == "optimal"
    assert ours.objective.total == pytest.approx(reference.objective.total, rel=2e-7)
    np.testing.assert_allclose(ours.decision_function(X), reference.decision_function(X), atol=1e-2)


@pytest.fixture
def without_gram(monkeypatch):
    """Keep no Gram matrix beyond 9 rows, 30 rows of one at most, and a start from 50 rows on."""
    monkeypatch.setattr("nerm.model.hypothesis.GRAM_LIMIT", 9)
    monkeypatch.setattr("nerm.model.hypothesis.AT_ONCE", 9)
    monkeypatch.setattr("nerm.model.kernels.CALLED_TILE", 13)
    monkeypatch.setattr(kernel_products, "HELD", 8 * 160 * 30)
    monkeypatch.setattr(coarse, "FEWEST", 25)


@pytest.mark.parametrize(("loss", "surrogate"), ATOMS[:3], ids=repr)
def test_auto_without_a_gram_matrix(without_gram, loss, surrogate):
    X, y, v = make_data(2, n=160)
    objective = Risk(loss) + 0.02 * SquaredL2() + 1.5 * Neutrality(surrogate)
    problem = objective.on(X, y, viewpoint=v, kernel="rbf")
    solution = problem.solve(tol=1e-6)
    assert (solution.stats.solver, str(solution.status)) == (NAME, "optimal")
    assert "gram" not in vars(problem.hypothesis)
    kept = objective.on(kernel_of(problem)(X, X), y, viewpoint=v, kernel="precomputed")
    assert solution.objective.total == pytest.approx(
        kept.solve("clarabel", tol=1e-7).objective.total, rel=2e-6
    )


def kernel_of(problem):
    return problem.hypothesis.kernel


def test_a_path_and_a_rare_block(without_gram):
    """Each point is what it is alone; a block that weighs no row of the few ones keeps nobody from starting."""
    X, y, v = make_data(4, n=160)
    weights = np.zeros(160)
    weights[:2] = 1.0
    objective = (
        Risk(Hinge()) + 0.05 * SquaredL2() + Neutrality(Hinge()) + Neutrality(Hinge(), weights=weights)
    )
    problem = objective.on(X, y, viewpoint=v, kernel="rbf")
    etas = [0.0, 0.3, 3.0]
    path = problem.path(etas, NAME)
    for eta, solution in zip(etas, path, strict=True):
        assert solution.status == "optimal"
        alone = problem.with_neutrality(eta).solve("clarabel", tol=1e-7)
        assert solution.objective.total == pytest.approx(alone.objective.total, rel=2e-6)


ETAS = [0.0, 0.02, 0.3, 1.0, 4.0, 100.0]


def neutral_svm(monkeypatch, n=160):
    """Return a neutral SVM whose rows of K are sought in single precision, and whose K could be kept."""
    monkeypatch.setattr("nerm.model.hypothesis.AT_ONCE", 9)
    monkeypatch.setattr(coarse, "FEWEST", 25)
    X, y, v = make_data(8, n=n)
    return (Risk(Hinge()) + 0.01 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v, kernel="rbf")


@pytest.mark.parametrize("together", [24, 2])
def test_a_path_is_judged_by_one_pass_over_the_kernel(monkeypatch, together):
    """Each point is certified, and what it is alone, while K as a whole is never made."""
    monkeypatch.setattr(augmented_lagrangian, "TOGETHER", together)
    problem = neutral_svm(monkeypatch)
    path = problem.path(ETAS, NAME, tol=1e-4)
    assert "gram" not in vars(problem.hypothesis)
    for eta, solution in zip(ETAS, path, strict=True):
        assert solution.status == "optimal"
        assert solution.certificate.relative_gap <= 1e-4
        alone = problem.with_neutrality(eta).solve("smo", tol=1e-6)
        assert solution.objective.total == pytest.approx(alone.objective.total, rel=1.1e-4)


def test_weights_that_go_to_0_and_come_back(monkeypatch):
    """Whatever was solved before, and in whichever order: the same optimum, also where a finer one is asked for."""
    problem = neutral_svm(monkeypatch)
    session = nerm.solvers.known()[NAME].open(problem)
    exact = {eta: problem.with_neutrality(eta).solve("smo", tol=1e-8).objective.total for eta in ETAS}
    roughly = [(eta, 1e-4) for eta in (1.0, 0.0, 1.0, 100.0, 0.02)]
    for eta, accuracy in (*roughly, (0.0, 1e-5), (1.0, 1e-7), (100.0, 1e-7), (0.3, 1e-4)):
        point = problem.with_neutrality(eta)
        answer = session.answer(point, accuracy, {})
        assert point.evaluate(answer.coef, answer.intercept).total == pytest.approx(
            exact[eta], rel=2 * accuracy
        )


def test_points_that_the_judge_refuses_start_from_their_own(monkeypatch):
    """Those of a path are asked for again when all have been answered: each is found, and so are those that follow."""
    problem = neutral_svm(monkeypatch)
    monkeypatch.setattr(augmented_lagrangian, "TOGETHER", 4)
    true_run = AugmentedLagrangian.run

    def careless(self, start, tau, tol, deadline):
        return true_run(self, start, tau, 100 * tol if tol > 5e-5 else tol, deadline)

    monkeypatch.setattr(AugmentedLagrangian, "run", careless)
    path = problem.path(ETAS, NAME, tol=1e-4)
    assert all(solution.status == "optimal" for solution in path)


def test_no_intercept_and_equal_rows():
    X, y, v = make_data(5, n=40)
    twice = [np.concatenate([part, part]) for part in (X, y, v)]
    objective = Risk(Logistic()) + 0.05 * SquaredL2() + Neutrality(Hinge())
    once = objective.on(X, y, viewpoint=v, kernel="rbf", intercept=False).solve(NAME, tol=1e-7)
    both = objective.on(twice[0], twice[1], viewpoint=twice[2], kernel="rbf", intercept=False).solve(
        NAME, tol=1e-7
    )
    assert both.status == once.status == "optimal"
    assert both.intercept == 0.0
    assert both.objective.total == pytest.approx(once.objective.total, rel=1e-6)
    np.testing.assert_allclose(both.decision_function(X), once.decision_function(X), atol=1e-2)


def test_far_from_the_origin():
    X, y, v = make_data(6, n=100)
    objective, kernel = Risk(Hinge()) + 0.02 * SquaredL2() + Neutrality(Hinge()), nerm.kernels.RBF(gamma=0.3)
    near, far = (objective.on(rows, y, viewpoint=v, kernel=kernel).solve(NAME) for rows in (X, X + 1e6))
    assert near.status == far.status == "optimal"
    assert far.objective.total == pytest.approx(near.objective.total, rel=1e-5)


def test_a_gram_matrix_is_not_copied():
    X, y, v = make_data(7, n=60)
    K = nerm.kernels.RBF(gamma=0.3)(X, X)
    K = (K + K.T) / 2
    for loss in (Hinge(), Logistic()):
        problem = (Risk(loss) + 0.02 * SquaredL2() + Neutrality(loss)).on(
            K, y, viewpoint=v, kernel="precomputed"
        )
        assert problem.solve(NAME).status == "optimal"
        assert np.shares_memory(problem.hypothesis.gram, K)
