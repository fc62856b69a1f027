"""Where a hypothesis is the optimum for a range of weights, two of its points prove all that is between them."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.certify.multipliers import Multipliers
from nerm.certify.solution import Answer
from nerm.solvers.interior_point import Engine, Tuning
from nerm.solvers.interior_point.resting import PathPoint, along, between
from tests.engine.problems import Case, Found
from tests.engine.test_path import points

SCALES = (0.0, *np.geomspace(0.01, 100, 13))


def rare(seed: int, *, share: float = 0.1, sparse: bool = False) -> Case:
    """Return a table with a rare class: at small weights and at large ones the best score is the same for all rows."""
    rng = np.random.default_rng(seed)
    levels = np.eye(4)[rng.integers(4, size=600)]
    X = levels if sparse else np.hstack([rng.normal(size=(600, 3)), levels])
    scores = X @ rng.normal(size=X.shape[1]) + 3 * rng.logistic(size=600)
    y = np.where(scores > np.quantile(scores, 1 - share), 1.0, -1.0)
    v = np.where(X @ rng.normal(size=X.shape[1]) + rng.logistic(size=600) > 0, 1.0, -1.0)
    one = np.ones(600)
    return Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)])


@pytest.fixture
def asked(monkeypatch):
    """Note the weights for which the engine solves, in any way."""
    noted = []

    def noting(solve):
        def noted_solve(engine, factors, *rest, **options):
            noted.append(float(factors[-1]))
            return solve(engine, factors, *rest, **options)

        return noted_solve

    for name in ("solve", "_still"):
        monkeypatch.setattr(Engine, name, noting(getattr(Engine, name)))
    return noted


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("sparse", [False, True])
def test_every_point_is_proved_whether_it_was_solved_or_not(seed, sparse):
    case = rare(seed, share=0.05 + 0.1 * (seed % 3), sparse=sparse)
    for point, found in zip(points(case, SCALES), case.path(SCALES), strict=True):
        primal, dual = point.primal(found.coef, found.intercept), point.dual(found)
        assert found.converged
        assert found.primal == pytest.approx(primal, rel=1e-9)
        assert found.dual <= dual * (1 + 1e-8)
        assert primal - dual <= 1.01e-6 * primal


def test_points_between_are_not_solved(asked):
    case = rare(0)
    path = case.path(SCALES)
    assert set(asked) < set(SCALES)
    unsolved = [found for scale, found in zip(SCALES, path, strict=True) if scale not in asked]
    assert all(found.passes == 0 for found in unsolved)
    assert len({tuple(found.coef) for found in path if found.passes == 0}) <= 3


def test_without_the_device_every_point_is_solved(asked):
    rare(0).path(SCALES, tuning=Tuning(astray=0.0))
    assert asked == list(SCALES)


def test_other_weights_of_the_regularizer_are_solved_one_by_one(asked):
    case = rare(1)
    mus = np.geomspace(1e-3, 1.0, 6)
    answers = case.engine().path([(case.factors(0.02), mu) for mu in mus])
    assert len(asked) == 6
    for mu, answer in zip(mus, answers, strict=True):
        (point,) = points(Case(case.X, case.y, case.losses, mu, case.terms), [0.02])
        found = Found(answer, 1)
        assert point.primal(found.coef, found.intercept) - point.dual(found) <= 1.01e-6 * found.primal


def solved(scale: float, *, rests_until: int) -> PathPoint:
    """Return a point on which P = D = min(F, (F + rests_until) / 2): two hypotheses, the first up to rests_until."""
    value, square = (1.0, 0.0) if scale <= rests_until else (0.5, 0.5 * rests_until)
    factors, rows = np.array([scale]), np.full((1, 1), value)
    details = {"primal": scale * value + square, "dual": scale * value + square, "passes": 1}
    answer = Answer(np.zeros(1), value, Multipliers(rows, np.zeros(0)), "converged", 1, details=details)
    found = PathPoint(factors, answer, (), np.zeros(1), square, 1.0)
    found.__dict__["values"] = np.array([value])
    return found


@pytest.mark.parametrize("rests_until", range(12))
def test_the_last_point_at_rest_is_found_by_halves(rests_until):
    tried, weights, now = [], [(np.array([float(k)]),) for k in range(12)], [0.0]

    def solve(point):
        tried.append(int(point[0][0]))
        now[0] = float(point[0][0])
        return solved(now[0], rests_until=rests_until)

    def still(point):
        tried.append(int(point[0][0]))
        if now[0] <= rests_until < point[0][0]:
            return None
        now[0] = float(point[0][0])
        return solved(now[0], rests_until=rests_until)

    answers = along(weights, solve, still, 1e-6)
    assert [answer.intercept for answer in answers] == [1.0 if k <= rests_until else 0.5 for k in range(12)]
    assert len(tried) <= 8


def test_nothing_is_claimed_that_two_points_do_not_prove():
    one, other = solved(1.0, rests_until=2), solved(2.0, rests_until=2)
    assert between(one, other, np.array([1.5]), 1e-9) is not None
    assert between(one, other, np.array([2.5]), 1e-9) is None  # beyond
    moved = solved(3.0, rests_until=2)
    assert (
        between(one, moved, np.array([2.0]), 1e-9) is None
    )  # P at either hypothesis is above the mixed bound
