"""Sessions on the engine keep what they prepared: the engine, the factor, the last solutions."""

from __future__ import annotations

import numpy as np
import pytest

import nerm
from nerm.errors import UnknownNameError
from nerm.solvers.interior_point.engine import Engine

GRID = [0.0, 0.1, 1.0, 10.0, 0.3]


def problem(regularizer, kernel=None, n=300):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 4))
    y = np.where(X[:, 0] + rng.logistic(size=n) > 0, 1, -1)
    v = np.where(X[:, 0] + X[:, 1] + rng.logistic(size=n) > 0, 1, -1)
    objective = nerm.Risk(nerm.Hinge()) + 0.02 * regularizer + 1.0 * nerm.Neutrality(nerm.Hinge())
    return objective.on(X, y, viewpoint=v, kernel=kernel)


PROBLEMS = {
    "interior-point": lambda: problem(nerm.SquaredL2()),
    "elastic net": lambda: problem(nerm.ElasticNet(l1_ratio=0.5)),
    "group l2": lambda: problem(nerm.GroupL2([0, 0, 1, 1])),
    "l-infinity": lambda: problem(nerm.LInf()),
}


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_path_prepares_the_engine_once_and_keeps_its_order(name, monkeypatch):
    made, prepare = [], Engine.__init__

    def counted(self, *args, **options):
        made.append(self)
        prepare(self, *args, **options)

    monkeypatch.setattr(Engine, "__init__", counted)
    whole = PROBLEMS[name]()
    name = "interior-point"
    solutions = whole.path(GRID, name)
    assert len(made) == 1
    for eta, solution in zip(GRID, solutions, strict=True):
        assert solution.status == "optimal"
        alone = whole.with_neutrality(eta).solve(name)
        assert solution.objective.total == pytest.approx(alone.objective.total, rel=3e-6)


@pytest.mark.parametrize("name", ["interior-point", "elastic net", "group l2", "l-infinity"])
def test_a_second_solve_in_a_session_starts_from_the_first(name):
    whole = PROBLEMS[name]()
    session = nerm.solvers.known()["interior-point"].open(whole)
    first, second = (session.answer(whole, 1e-6, {}) for _ in range(2))
    assert second.details["passes"] < first.details["passes"]
    assert first.build_seconds > 0
    assert second.build_seconds == 0


@pytest.mark.parametrize("name", PROBLEMS)
def test_a_limit_on_iterations_holds_at_every_point_of_a_path(name):
    whole = PROBLEMS[name]()
    name = "interior-point"
    for solution in whole.path(GRID, name, max_iterations=200):
        assert solution.status == "optimal"
    session = nerm.solvers.known()[name].open(whole)
    assert session.answer(whole, 1e-9, {"max_iterations": 2}).iterations <= 2
    with pytest.raises(
        UnknownNameError, match=rf"an option of '{name}' must be one of 'max_iterations'. Got 'speed'"
    ):
        session.answer(whole, 1e-6, {"speed": 9})


def test_a_smooth_loss_of_ones_own_gets_the_engine():
    class SoftPlus(nerm.Logistic):
        """log(1 + e^(1 - m)), the logistic loss a margin further on."""

        def expression(self, m):
            return super().expression(m - 1)

    rng = np.random.default_rng(1)
    X = rng.normal(size=(60, 3))
    y = np.where(X[:, 0] + rng.logistic(size=60) > 0, 1, -1)
    whole = (nerm.Risk(SoftPlus()) + 0.1 * nerm.SquaredL2()).on(X, y)
    found, other = whole.solve(), whole.solve("clarabel")
    assert found.stats.solver == "interior-point"
    assert found.status == "optimal"
    assert found.objective.total == pytest.approx(other.objective.total, rel=1e-5)


def test_a_path_agrees_with_a_general_solver_where_most_rows_lie_on_a_kink():
    """Dummies beside numbers and a rare class: constant scores at first, and sides that swap later."""
    rng = np.random.default_rng(4)
    numbers, levels = rng.normal(size=(150, 2)), rng.integers(0, 3, 150)
    X = np.hstack([numbers, np.eye(3)[levels]])
    scores = X @ [1.0, -1.0, 0.5, 0.0, -0.5] + rng.logistic(size=150)
    y = np.where(scores > np.quantile(scores, 0.9), 1, -1)
    v = np.where(numbers[:, 0] + rng.normal(size=150) > 0.3, 1, -1)
    objective = nerm.Risk(nerm.Hinge()) + 1 / 150 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    problem, etas = objective.on(X, y, viewpoint=v), [0.0, 0.01, 0.1, 0.3, 1.0, 2.0, 5.0, 30.0]
    path = problem.path(etas)
    for eta, solution in zip(etas, path, strict=True):
        assert solution.status is nerm.Status.OPTIMAL
        wanted = problem.with_neutrality(eta).solve("clarabel", tol=1e-7).objective.total
        assert solution.objective.total == pytest.approx(wanted, rel=2e-6)
    passes = [solution.stats.details["passes"] for solution in path]
    assert passes[0] > 0
    assert min(passes) >= 0  # what is between two points of a constant score takes none
