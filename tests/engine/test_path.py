"""The eta path and the small problems it is made of: a guess may be wrong, a bound may not."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from nerm.engine import interior_point, path, solve, solve_path, working_set
from nerm.engine.driver import _with_bound, prepared
from nerm.engine.interior_point import InteriorPoint
from nerm.engine.settled import condense
from tests.engine.problems import ATOMS, LOSSES, SURROGATES, Case, random_case

HINGE_LIKE = sorted({*LOSSES, *SURROGATES} - {"logistic", "exponential"})


def points(case: Case, scales) -> list[Case]:
    terms = [[(name, eta * scale, view, weights) for name, eta, view, weights in case.terms] for scale in scales]
    return [Case(case.X, case.y, case.losses, case.mu, scaled, case.intercept) for scaled in terms]


def check_path(case: Case, scales, tol: float = 1e-6):
    """Hold every point against values computed from its coefficients and multipliers alone."""
    results = solve_path(case.model, scales, tol)
    for point, found in zip(points(case, scales), results, strict=True):
        primal, dual = point.primal(found.coef, found.intercept), point.dual(found)
        assert found.converged
        assert found.primal == pytest.approx(primal, rel=1e-9)
        assert found.dual == pytest.approx(dual, rel=1e-8, abs=1e-12)
        assert primal - dual <= 1.01 * tol * abs(primal)
    return results


def many(n: int = 3000, seed: int = 0, *, sparse: bool = False, real: bool = False):
    """Draw enough rows for small problems to pay."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    if sparse:
        X = sp.csr_matrix(np.where(np.abs(X) > 0.6, X, 0.0))
    scores = X @ np.array([1.0, 0.5, 0.0, 0.0, -0.5])
    y = np.where(scores + rng.logistic(size=n) > 0, 1.0, -1.0)
    v = np.where(scores + X @ np.array([0.0, 0.0, 2.0, 0.0, 0.0]) + rng.logistic(size=n) > 0.3, 1.0, -1.0)
    if real:
        v = v * rng.exponential(size=n) * (rng.random(n) < 0.9)  # zeros too
    return X, y, v


@pytest.fixture
def rounds(monkeypatch):
    """Count the rows of all small problems that are made."""
    made = []

    def watched(pieces, *rest):
        small = condense(pieces, *rest)
        made.append(None if small is None else small.pieces.n_rows / pieces.n_rows)
        return small

    monkeypatch.setattr(working_set, "condense", watched)
    return made


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("real", [False, True])
def test_a_grid_is_certified_on_small_problems(sparse, real, rounds):
    X, y, v = many(sparse=sparse, real=real)
    one = np.ones(len(y))
    check_path(Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)]), [0.0, *np.geomspace(0.01, 100, 20)])
    small = [share for share in rounds if share is not None]
    assert len(small) >= 10
    assert np.median(small) < 0.4


@pytest.mark.parametrize("name", HINGE_LIKE)
def test_every_hinge_like_atom_and_every_weight(name):
    X, y, v = many(1500, 1)
    rng = np.random.default_rng(2)
    weights = rng.exponential(size=(3, len(y))) * (rng.random((3, len(y))) < 0.8)  # zeros too, not the same ones
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
def test_a_wrong_guess_costs_rounds_and_nothing_else(reach, monkeypatch):
    monkeypatch.setattr(working_set, "REACH", reach)
    X, y, v = many(1000, 4)
    one = np.ones(len(y))
    check_path(Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)]), np.geomspace(0.1, 10, 6))


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("distance", [0.0, 0.1, 1.0])
def test_a_small_problem_bounds_the_whole_one_whatever_the_guess(seed, distance):
    X, y, v = many(400, seed, sparse=seed % 2 == 0, real=seed % 3 == 0)
    rng = np.random.default_rng(seed)
    one = np.ones(len(y))
    case = Case(X, y, [("smooth_hinge", one)], 0.01, [("hinge", 1.0, v, rng.exponential(size=len(y)))])
    best = solve(case.model, 1e-9)
    with prepared(case.model) as ready:
        engine = ready.engine()
        coef = rng.normal(size=X.shape[1])  # as wrong as can be
        small = condense(engine.pieces, engine.features, engine.features.times(coef), distance, 1.0)
        inner = InteriorPoint(small.pieces, small.features, engine.lam, intercept=True)
        found = inner.run(inner.start(coef, 0.0, 1.0), 1e-6)
        found = found if found.u is not None else _with_bound(found, inner)
        result = ready.result(replace(found, u=np.take_along_axis(found.u, small.place, axis=1)), engine)
    assert case.dual(result) == pytest.approx(found.dual / len(y), rel=1e-8)
    assert case.dual(result) <= case.primal(best.coef, best.intercept) * (1 + 1e-12)


def test_groups_have_the_value_of_their_rows_where_the_guess_is_right():
    X, y, v = many(500, 5, real=True)
    one = np.ones(len(y))
    case = Case(X, y, [("huberized_hinge", one)], 0.01, [("hinge", 1.0, v, one), ("pinball", 1.0, X[:, 1], one)])
    with prepared(case.model) as ready:
        pieces, features = ready.pieces, ready.features
        coef = np.array([1.0, -0.5, 0.3, 2.0, 0.1])
        scores = features.times(coef) + 0.2
        small = condense(pieces, features, scores, 0.05, 1.0)
        assert small.pieces.n_rows < 0.5 * len(y)
        for scale in (1.0, 1.001):  # not only at the guess itself: nearby, where no row has crossed a kink
            f = scale * X @ coef + 0.2
            margins = [("huberized_hinge", y), ("hinge", v), ("hinge", -v), ("pinball", X[:, 1]), ("pinball", -X[:, 1])]
            naive = [ATOMS[name][1](t * f).sum() for name, t in margins]
            assert small.pieces.values(small.features.times(scale * coef) + 0.2) == pytest.approx(naive, rel=1e-12)


def test_smooth_functions_are_left_whole_where_they_have_weight():
    X, y, v = many(200, 6)
    one = np.ones(len(y))
    some = one * (np.arange(len(y)) < 40)
    with prepared(Case(X, y, [("logistic", some)], 0.01, [("hinge", 1.0, v, one)]).model) as ready:
        small = condense(ready.pieces, ready.features, ready.features.times(np.ones(5)), 0.1, 0.9)
        assert 40 <= small.pieces.moving < 100
    with prepared(Case(X, y, [("logistic", one)], 0.01, [("hinge", 1.0, v, one)]).model) as ready:
        assert condense(ready.pieces, ready.features, ready.features.times(np.ones(5)), 0.1, 0.9) is None


def test_a_long_path_is_cut_into_stretches(monkeypatch):
    monkeypatch.setattr(path, "MANY", 0)
    monkeypatch.setattr(path, "cores", lambda: 3)
    X, y, v = many(1200, 7)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)])
    scales = [0.0, *np.geomspace(0.01, 100, 23)]
    results = check_path(case, scales)
    for point, found in zip(points(case, scales), results, strict=True):
        assert found.primal == pytest.approx(solve(point.model, 1e-9).primal, rel=2e-6)


SEVERAL = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
from nerm.engine import path, solve, solve_path, threads
from tests.engine.test_path import Case, many

def blas_threads():
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")

X, y, v = many(20_000, 7)
one = np.ones(len(y))
model = Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)]).model
print(blas_threads())
with ThreadPoolExecutor(3) as pool:
    list(pool.map(lambda _: solve(model), range(6)))
print(blas_threads())
with threads.Blocks(20_000, 5, 2) as blocks:
    print(blas_threads(), *blocks.run(lambda start, stop: blas_threads()))
print(blas_threads())
path.cores = lambda: 2
solve_path(model, np.geomspace(0.1, 10, 16))
print(blas_threads())
"""


def test_blas_gets_its_threads_back_from_all_who_held_them():
    """In a process of its own: the tests themselves run BLAS on one thread, which would hide what is not given back."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    ran = subprocess.run([sys.executable, "-c", SEVERAL], capture_output=True, text=True, env=environment, check=True)
    assert ran.stdout.split("\n") == ["2", "2", "1 1 1", "2", "2", ""]


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("name", ["hinge", "smooth_hinge", "squared_hinge", "pinball", "identity"])
def test_few_rows_of_few_rows(name, intercept, monkeypatch):
    monkeypatch.setattr(working_set, "FEWEST", 30)
    X, y, v = many(1500, 8, real=True)
    rng = np.random.default_rng(9)
    weights = rng.exponential(size=(2, len(y))) * (rng.random((2, len(y))) < 0.9)
    case = Case(X, y, [("hinge", weights[0])], 1e-3, [(name, 1.0, v, weights[1])], intercept)
    check_path(case, [0.0, *np.geomspace(0.01, 100, 12)])
    single = solve(case.model)
    assert single.converged
    assert case.primal(single.coef, single.intercept) - case.dual(single) <= 1.01e-6 * single.primal


@pytest.mark.parametrize("eta", [1.0, 1e6, 1e9])
def test_the_sides_of_a_group_cancel_on_all_rows_too(eta):
    X, y, v = many(600, 10)
    one = np.ones(len(y))
    model = Case(X, y, [("hinge", one)], 1e-3, [("identity", eta, v, one)]).model
    found = solve(model)
    with prepared(model) as ready:
        engine = ready.engine()
        look = working_set.Look.of(engine, *ready.coordinates.inside(found.coef, found.intercept))
        few = working_set.on_few_rows(engine, look, 0.01, 1e-6)
    if few.converged or eta < 1e9:  # beyond, rounding may leave nothing to prove, but then nothing is claimed
        loss, plus, minus = few.u
        c = y * loss + few.nu[0, 0] * v * plus - few.nu[0, 1] * v * minus
        assert few.converged
        assert abs(c.sum()) <= 1e-8 * np.abs(c).sum()
        assert few.dual <= found.primal * len(y) * (1 + 1e-9)


def test_an_infinite_value_is_no_success():
    nothing = np.zeros(0)
    assert not interior_point.Outcome(nothing, 0.0, nothing, primal=np.inf, dual=1.0).gap_within(1e-6)


def test_a_start_knows_nu_from_the_forces_with_and_without_an_intercept():
    X, y, v = many(800, 12)
    one = np.ones(len(y))
    for intercept in (True, False):
        case = Case(0.01 * X, y, [("hinge", one)], 1e-6, [("hinge", 1.0, v, one)], intercept)
        found = solve(case.model, 1e-9)
        with prepared(case.model) as ready:
            engine = ready.engine()
            at = engine.warm(*ready.coordinates.inside(found.coef, found.intercept), 1e-3)
        assert 0.05 < found.theta[0] < 0.95
        assert at.nu[0, 0] == pytest.approx(found.theta[0], abs=0.02)


def test_settled_rows_stay_settled_at_a_start_from_nothing():
    X, y, v = many(300, 13)
    one = np.ones(len(y))
    with prepared(Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)]).model) as ready:
        engine = ready.engine()
        small = condense(engine.pieces, engine.features, engine.features.times(np.ones(5)), 0.1, 1.0)
        before = small.pieces.u[:, small.pieces.moving :].copy()
        InteriorPoint(small.pieces, small.features, engine.lam, intercept=True).start(np.zeros(5), 0.0, 0.1)
        np.testing.assert_array_equal(small.pieces.u[:, small.pieces.moving :], before)


def test_a_restart_moves_the_iterate_that_was_given(monkeypatch):
    monkeypatch.setattr(interior_point, "PATIENCE", -1)
    X, y, v = many(300, 14)
    one = np.ones(len(y))
    with prepared(Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)]).model) as ready:
        engine = ready.engine()
        at = engine.cold()
        engine.run(at, 1e-9, 6)
        pieces = engine.pieces
        rows = pieces.targets * at.scores - 1.0  # m - linear = p^+ - p^- for the hinge, whatever has been done
        np.testing.assert_allclose(rows, pieces.upper - pieces.lower, atol=1e-10)


@pytest.mark.parametrize("limit", [1, 5, 8])
def test_the_limit_on_iterations_is_one(limit):
    X, y, v = many(4000, 15)
    one = np.ones(len(y))
    case = Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)])
    assert solve(case.model, max_iterations=limit).iterations <= limit
    best = solve(case.model)
    again = solve(case.model, 1e-12, start=(best.coef, best.intercept), max_iterations=limit)
    assert again.iterations <= limit
    assert again.primal <= best.primal * (1 + 1e-12)  # what was given is not thrown away


@pytest.mark.parametrize("scales", [[1.0, 1e-200], [1e-320, 1.0], [1.0, 0.0, 1e-120]])
def test_weights_that_underflow(scales):
    X, y, v = many(400, 16)
    one = np.ones(len(y))
    for terms in ([("hinge", 1.0, v, one)], [("hinge", 1.0, v, one), ("hinge", 1e-40, X[:, 1], one)]):
        check_path(Case(X, y, [("hinge", one)], 1e-2, terms), scales)


def test_a_path_without_any_weight():
    X, y, v = many(300, 17)
    nothing = np.zeros(len(y))
    for found in solve_path(Case(X, y, [("hinge", nothing)], 1e-2, [("hinge", 1.0, v, nothing)]).model, [1.0, 2.0]):
        assert found.primal == 0


def test_a_point_that_did_not_move_says_nothing_of_the_next(rounds):
    X, y, v = many(3000, 18)
    one = np.ones(len(y))
    check_path(Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)]), [1.0, 1.0, 1.0, 1.3])
    assert None not in rounds
