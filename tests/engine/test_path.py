"""The path of neutrality weights: a guess may be wrong, a bound may not."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from nerm.solvers.interior_point import Engine, Tuning
from nerm.solvers.interior_point import condense as condensing
from tests.engine.problems import LOSSES, SURROGATES, TUNING, Case, Found, many, random_case

HINGE_LIKE = sorted({*LOSSES, *SURROGATES} - {"logistic", "exponential"})


def points(case: Case, scales) -> list[Case]:
    terms = [
        [(name, eta * scale, view, weights) for name, eta, view, weights in case.terms] for scale in scales
    ]
    return [Case(case.X, case.y, case.losses, case.mu, scaled, case.intercept) for scaled in terms]


def check_path(case: Case, scales, tol: float = 1e-6, tuning: Tuning = TUNING):
    """Hold every point against values computed from its coefficients and multipliers alone."""
    results = case.path(scales, tol, tuning=tuning)
    for point, found in zip(points(case, scales), results, strict=True):
        primal, dual = point.primal(found.coef, found.intercept), point.dual(found)
        assert found.converged
        assert found.primal == pytest.approx(primal, rel=1e-9)
        assert found.dual == pytest.approx(dual, rel=1e-8, abs=1e-12)
        assert primal - dual <= 1.01 * tol * abs(primal)
    return results


@pytest.fixture
def rounds(monkeypatch):
    """Count the rows of all small problems that are made."""
    made = []

    def watched(arrays, *rest):
        small = condensing_itself(arrays, *rest)
        made.append(None if small is None else small.arrays.n_rows / arrays.n_rows)
        return small

    condensing_itself = condensing.condense
    monkeypatch.setattr(condensing, "condense", watched)
    return made


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("real", [False, True])
def test_a_grid_is_certified_on_small_problems(sparse, real, rounds):
    X, y, v = many(sparse=sparse, real=real)
    one = np.ones(len(y))
    check_path(
        Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)]), [0.0, *np.geomspace(0.01, 100, 20)]
    )
    small = [share for share in rounds if share is not None]
    assert len(small) >= 10
    assert np.median(small) < 0.4


@pytest.mark.parametrize("name", HINGE_LIKE)
def test_every_hinge_like_atom_and_every_weight(name):
    X, y, v = many(1500, 1)
    rng = np.random.default_rng(2)
    weights = rng.exponential(size=(3, len(y))) * (
        rng.random((3, len(y))) < 0.8
    )  # zeros too, not the same ones
    terms = [("hinge", 1.0, v, weights[1]), (name, 0.3, X[:, 3], weights[2])]
    if name in LOSSES:
        check_path(Case(X, y, [(name, weights[0])], 0.01, terms), np.geomspace(0.01, 30, 8))
    check_path(Case(X, y, [("hinge", weights[0])], 0.01, terms), np.geomspace(0.01, 30, 8))


@pytest.mark.parametrize(
    "scales",
    [
        [1.0],
        [1.0, 1.0, 1.0],
        [0.0, 0.0, 1.0, 0.0, 1.0],
        [100.0, 10.0, 1.0, 0.1, 0.01, 0.0],
        [1e-4, 1e4, 1e-4, 1e4, 1.0],
        [1.0, 1.001, 1.002, 50.0, 50.1, 0.001],
    ],
)
def test_any_order_will_do(scales):
    X, y, v = many(1000, 3)
    one = np.ones(len(y))
    check_path(Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)]), scales)


def with_a_path(seed: int) -> bool:
    """Tell whether a random problem has neutrality terms to weigh, and an optimum that a gap can be relative to."""
    case = random_case(seed)
    return bool(case.terms) and not case.has_zero_infimum


@pytest.mark.parametrize("seed", list(filter(with_a_path, range(40))))
def test_random_problems_on_a_path(seed):
    check_path(random_case(seed), np.geomspace(0.03, 30, 6))


@pytest.mark.slow
@pytest.mark.parametrize("seed", list(filter(with_a_path, range(40, 600))))
def test_many_random_problems_on_a_path(seed):
    check_path(random_case(seed), np.geomspace(0.01, 100, 9))


@pytest.mark.parametrize("reach", [0.0, 1e-3, 100.0])
def test_a_wrong_guess_costs_rounds_and_nothing_else(reach):
    X, y, v = many(1000, 4)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)])
    check_path(case, np.geomspace(0.1, 10, 6), tuning=Tuning(reach=reach))


def test_a_long_path_is_cut_into_stretches():
    X, y, v = many(1200, 7)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)])
    scales = [0.0, *np.geomspace(0.01, 100, 23)]
    engine = Engine(X, case.blocks, case.n, tuning=Tuning(stretch_rows=(0, 10**6)), workers=3)
    answers = engine.path([(case.factors(scale), case.mu) for scale in scales])
    for point, answer in zip(points(case, scales), answers, strict=True):
        found = Found(answer, 1)
        assert found.converged
        assert found.primal - point.dual(found) <= 1.01e-6 * found.primal
        assert found.primal == pytest.approx(point.solve(1e-9).primal, rel=2e-6)
    again = engine.solve(case.factors(scales[-1]), case.mu)  # from the last stretch's solution
    assert again.details["passes"] < case.engine().solve(case.factors(scales[-1]), case.mu).details["passes"]


@pytest.mark.parametrize("limit", [1, 5, 8, 11, 14, 17])
def test_the_limit_on_iterations_is_one(limit):
    X, y, v = many(4000, 15)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)])
    assert case.solve(max_iterations=limit).iterations <= limit
    best = case.solve()
    again = case.solve(1e-12, start=(best.coef, best.intercept), max_iterations=limit)
    assert again.iterations <= limit
    assert again.primal <= best.primal * (1 + 1e-12)  # what was given is not thrown away
    grid = [(case.factors(scale), case.mu) for scale in np.geomspace(0.1, 10, 5)]
    assert all(answer.iterations <= limit for answer in case.engine().path(grid, max_iterations=limit))


@pytest.mark.parametrize("scales", [[1.0, 1e-200], [1e-320, 1.0], [1.0, 0.0, 1e-120]])
def test_weights_that_underflow(scales):
    X, y, v = many(400, 16)
    one = np.ones(len(y))
    for terms in ([("hinge", 1.0, v, one)], [("hinge", 1.0, v, one), ("hinge", 1e-40, X[:, 1], one)]):
        check_path(Case(X, y, [("hinge", one)], 1e-2, terms), scales)


def test_a_path_without_any_weight():
    X, y, v = many(300, 17)
    nothing = np.zeros(len(y))
    for found in Case(X, y, [("hinge", nothing)], 1e-2, [("hinge", 1.0, v, nothing)]).path([1.0, 2.0]):
        assert found.primal == 0


def test_lambda_may_change_along_a_path():
    X, y, v = many(1000, 19)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 1.0, [("hinge", 1.0, v, one)])
    mus = np.geomspace(1e-4, 1.0, 9)
    for mu, answer in zip(mus, case.engine().path([(case.factors(), mu) for mu in mus]), strict=True):
        point, found = Case(X, y, case.losses, mu, case.terms), Found(answer, 1)
        assert found.converged
        assert point.primal(found.coef, found.intercept) - point.dual(found) <= 1.01e-6 * found.primal


def test_a_second_solve_starts_from_the_first_and_tells_its_passes():
    X, y, v = many(3000, 20)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)])
    engine = case.engine()
    first, second = (engine.solve(case.factors(), case.mu) for _ in range(2))
    assert second.details["passes"] < first.details["passes"]
    finer = Found(engine.solve(case.factors(), case.mu, 1e-9), 1)
    assert case.primal(finer.coef, finer.intercept) - case.dual(finer) <= 1.01e-9 * finer.primal


@pytest.mark.parametrize(
    "device", ["extrapolates", "further", "fewest", "share", "second_order", "curved_keep"]
)
def test_every_device_can_be_switched_off(device):
    off = {"extrapolates": False, "further": 0.0, "fewest": np.inf, "share": 0.0, "second_order": np.inf}
    tuning = replace(Tuning(), **{device: off.get(device, 0.2)})
    X, y, v = many(2500, 21)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 1e-3, [("smooth_hinge", 1.0, v, one)])
    check_path(case, np.geomspace(0.1, 10, 5), tuning=tuning)
