"""The augmented Lagrangian on kernels: certified against the true kernel, with and without a Gram matrix."""

from __future__ import annotations

import numpy as np
import pytest

import nerm
from nerm import Hinge, Logistic, Neutrality, Risk, SquaredL2
from nerm.solvers.newton_alm import rows
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
    """Keep no Gram matrix beyond 70 rows, hold 30 rows of 160 at most, and start from a part of 40 rows."""
    monkeypatch.setattr("nerm.model.hypothesis.GRAM_LIMIT", 70)
    monkeypatch.setattr("nerm.model.kernels.CALLED_TILE", 13)
    monkeypatch.setattr(rows, "DIRECT", 50)


@pytest.mark.parametrize(("loss", "surrogate"), ATOMS[:3], ids=repr)
def test_auto_without_gram_matrix(without_gram, loss, surrogate):
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


def test_path_with_a_rare_block(without_gram):
    """A block without weight on the rows of the coarse start."""
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


def neutral_svm(n=160):
    X, y, v = make_data(8, n=n)
    return (Risk(Hinge()) + 0.01 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v, kernel="rbf")


@pytest.mark.parametrize("direct", [2000, 50, 5])
def test_path_agrees_with_smo(monkeypatch, direct):
    """Newton systems are factored, or solved by conjugate gradients."""
    monkeypatch.setattr(rows, "DIRECT", direct)
    problem = neutral_svm()
    for eta, solution in zip(ETAS, problem.path(ETAS, NAME, tol=1e-5), strict=True):
        assert solution.status == "optimal"
        alone = problem.with_neutrality(eta).solve("smo", tol=1e-6)
        assert solution.objective.total == pytest.approx(alone.objective.total, rel=1.1e-5)


def test_session_weights_that_go_to_0_and_come_back():
    """The optimum depends neither on the problems before nor on the accuracy asked of them."""
    problem = neutral_svm()
    session = nerm.solvers.known()[NAME].open(problem)
    exact = {eta: problem.with_neutrality(eta).solve("smo", tol=1e-8).objective.total for eta in ETAS}
    roughly = [(eta, 1e-4) for eta in (1.0, 0.0, 1.0, 100.0, 0.02)]
    for eta, accuracy in (*roughly, (0.0, 1e-5), (1.0, 1e-7), (1.0, 1e-8), (100.0, 1e-7), (0.3, 1e-4)):
        point = problem.with_neutrality(eta)
        answer = session.answer(point, accuracy, {})
        total = point.evaluate(answer.coef, answer.intercept).total
        assert total == pytest.approx(exact[eta], rel=2 * accuracy)


CORNERS = {
    "zero": lambda n, rng: np.zeros((n, n)),
    "rank one": lambda n, rng: np.outer(a := rng.normal(size=n), a),
    "identity": lambda n, rng: np.eye(n),
    "duplicates": lambda n, rng: (B := rng.normal(size=(3, 2))[rng.integers(0, 3, n)]) @ B.T,
    "tiny": lambda n, rng: 1e-12 * np.ones((n, n)),
}


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("n", [2, 3, 12])
@pytest.mark.parametrize("corner", CORNERS)
def test_degenerate_gram_matrices_are_certified(corner, n, intercept):
    rng = np.random.default_rng(n)
    K = CORNERS[corner](n, rng)
    y = np.where(np.arange(n) % 2, -1.0, 1.0)
    v = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    v[:2] = 1.0, -1.0
    for loss, surrogate in ATOMS:
        objective = Risk(loss) + 0.1 * SquaredL2() + 0.5 * Neutrality(surrogate)
        solution = objective.on(K, y, viewpoint=v, kernel="precomputed", intercept=intercept).solve(NAME)
        assert solution.status == "optimal"


@pytest.mark.parametrize("loss", [Hinge(), Logistic()], ids=repr)
@pytest.mark.parametrize("solver", ["auto", NAME, "clarabel"])
def test_zero_gram_matrix_leaves_the_intercept(loss, solver):
    y = np.array([1, -1, 1, -1, 1, 1])
    problem = (Risk(loss) + 0.1 * SquaredL2()).on(np.zeros((6, 6)), y, kernel="precomputed")
    solution = problem.solve(solver)
    assert solution.status == "optimal"
    best = min(loss.value(y * b).mean() for b in np.linspace(-2, 2, 4001))
    assert solution.objective.total == pytest.approx(best, rel=1e-5)


@pytest.mark.parametrize("lam", [2e5, 1e-4])
def test_strong_and_weak_regularization(lam):
    X, y, _ = make_data(0, n=40)
    problem = (Risk(Logistic()) + lam * SquaredL2()).on(X, y, kernel="rbf")
    assert problem.solve(NAME).status == "optimal"
    assert problem.solve(NAME, tol=1e-2).status == "optimal"


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


def test_rows_far_from_the_origin():
    X, y, v = make_data(6, n=100)
    objective, kernel = Risk(Hinge()) + 0.02 * SquaredL2() + Neutrality(Hinge()), nerm.kernels.RBF(gamma=0.3)
    near, far = (objective.on(rows, y, viewpoint=v, kernel=kernel).solve(NAME) for rows in (X, X + 1e6))
    assert near.status == far.status == "optimal"
    assert far.objective.total == pytest.approx(near.objective.total, rel=1e-5)


def test_gram_matrix_is_not_copied():
    X, y, v = make_data(7, n=60)
    K = nerm.kernels.RBF(gamma=0.3)(X, X)
    K = (K + K.T) / 2
    for loss in (Hinge(), Logistic()):
        problem = (Risk(loss) + 0.02 * SquaredL2() + Neutrality(loss)).on(
            K, y, viewpoint=v, kernel="precomputed"
        )
        assert problem.solve(NAME).status == "optimal"
        assert np.shares_memory(problem.hypothesis.gram, K)
