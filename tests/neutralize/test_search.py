"""Secant steps on measures that are formulas, groups, and thresholds: the answers are known by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

import nerm
from nerm.neutralize.groups import groups_of
from nerm.neutralize.search import next_size, secant, step

LIMIT = 0.05


def at(curve, x):
    parts = np.atleast_1d(curve(x))
    return SimpleNamespace(weights=x, directions=parts, distance=float(np.abs(parts).max()))


def searched(curve, count=1, solves=12):
    plain, seen = at(curve, np.zeros(count)), []

    def evaluate(x, near):
        seen.append(at(curve, x))
        return seen[-1]

    first = 0.3 * plain.directions / plain.distance
    return secant(evaluate, plain, first, LIMIT, solves), seen


@pytest.mark.parametrize("least", [0.003, 0.7, 1.0, 5.3, 80.0])
def test_the_smallest_size_that_is_enough_is_found(least):
    enough, low, size = {}, 0.0, 1.0
    for _ in range(14):
        enough[size] = size >= least
        low, size = next_size(enough)
        assert low == max((one for one in enough if one < least), default=0.0)
    smallest = min(one for one, met in enough.items() if met)
    assert low < least <= smallest <= 1.1 * low


def test_the_smallest_size_of_several_that_are_enough_counts():
    assert next_size({1.0: True, 2.0: False, 3.0: True}) == (0.0, 0.5)
    assert next_size({0.5: False, 1.0: True, 2.0: False, 3.0: True}) == (0.5, 0.75)


@pytest.mark.parametrize("count", [2, 5])
def test_linear_measures_of_several_weights(count):
    rng = np.random.default_rng(count)
    mixing = np.eye(count) + 0.2 * rng.normal(size=(count, count))
    begin = np.sign(rng.normal(size=count)) * rng.uniform(0.3, 0.6, count)
    found, _ = searched(lambda x: begin - mixing @ x, count, 20)
    assert found.distance <= LIMIT
    neutral = step(found, begin, -mixing, 0.0)
    assert np.abs(begin - mixing @ neutral).max() <= 2 * LIMIT


def test_weights_at_which_nothing_was_solved_are_halved():
    def curve(x):
        return 0.4 - 0.3 * x if x[0] < 0.2 else np.array([np.inf])

    found, seen = searched(curve)
    assert seen[1].weights[0] == pytest.approx(0.5 * seen[0].weights[0])
    assert np.isfinite(found.distance)


def test_groups_of_each_viewpoint_and_their_intersections():
    rng = np.random.default_rng(0)
    sex, race = rng.choice([-1.0, 1.0], 4000), rng.integers(0, 4, 4000)
    views = {"sex": sex} | {f"race={r}": np.where(race == k, 1.0, -1.0) for k, r in enumerate("abcd")}
    own, races = groups_of(views, "each")
    assert own.names == ("sex -", "sex +")
    assert list(own.views) == ["sex"]
    assert sorted(races.names) == ["race=a", "race=b", "race=c", "race=d"]
    for name, v in races.views.items():
        np.testing.assert_array_equal(v, views[name])
    (cells,) = groups_of(views, "intersect")
    assert len(cells.names) == 8
    assert "sex - & race=c" in cells.names
    for k, name in enumerate(cells.names):
        side, r = (-1 if "sex -" in name else 1), "abcd".index(name[-1])
        np.testing.assert_array_equal(cells.codes == k, (sex == side) & (race == r))
    assert len(groups_of(views, "each", pairs=True)) == 5


def test_small_groups_are_pooled_and_named():
    race = np.repeat([0, 1, 2, 3], [500, 300, 20, 10])
    views = {f"race={r}": np.where(race == k, 1.0, -1.0) for k, r in enumerate("abcd")}
    (groups,) = groups_of(views, "each", smallest=25)
    assert set(groups.names) == {"race=a", "race=b", "pooled: race=d or race=c"}
    assert sorted(np.bincount(groups.codes)) == [30, 300, 500]


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    sex = np.where(X[:, 0] + rng.normal(size=n) > 0, "m", "f")
    race = np.array(list("abc"))[np.digitize(X[:, 1] + rng.normal(size=n), [-0.7, 0.7])]
    y = X[:, 0] + X[:, 1] + X[:, 2] + X[:, 3] + rng.normal(size=n) > 0
    return X, y, pd.DataFrame({"sex": sex, "race": race})


@pytest.mark.parametrize("how", ["each", "intersect"])
def test_largest_difference_between_any_two_groups(how):
    X, y, groups = table()
    model = nerm.NERMClassifier(
        loss="logistic", surrogate="logistic", lam=1e-3, limit=0.08, groups=how, tol=1e-5
    )
    predicted = model.fit(X, y, viewpoint=groups).predict(X)
    shown = pd.Series(predicted.astype(float))
    keys = [[groups["sex"], groups["race"]]] if how == "intersect" else [[groups["sex"]], [groups["race"]]]
    differences = [float(np.ptp(shown.groupby(key).mean())) for key in keys]
    assert max(differences) <= 0.08 + 1e-12
    assert abs(model.neutrality_) == pytest.approx(max(differences), abs=1e-12)
    plain = pd.Series(nerm.NERMClassifier(loss="logistic", lam=1e-3).fit(X, y).predict(X).astype(float))
    assert max(float(np.ptp(plain.groupby(key).mean())) for key in keys) > 0.2
    assert model.score(X, y) > 0.6


def test_ratio_is_at_least_its_limit():
    X, y, groups = table(seed=1)
    model = nerm.NERMClassifier(
        loss="logistic", surrogate="logistic", lam=1e-3, limit=0.8, measure="selection_rate_ratio", tol=1e-5
    )
    model.fit(X, y, viewpoint=groups["race"])
    rates = pd.Series(model.predict(X).astype(float)).groupby(groups["race"]).mean()
    assert rates.min() / rates.max() >= 0.8
    assert model.neutrality_ == pytest.approx(rates.min() / rates.max(), abs=1e-12)


def test_the_certificate_is_about_the_ranking_before_the_threshold(tmp_path):
    X, y, groups = table(600)
    v = np.where(groups["sex"] == "m", 1.0, -1.0)
    problem = (nerm.Risk(nerm.Logistic()) + 1e-3 * nerm.SquaredL2()).on(X, y, viewpoint=v)
    found = problem.neutralize(0.02, surrogate=nerm.Logistic())
    solution = found.solution
    assert found.threshold == solution.threshold != 0
    np.testing.assert_array_equal(solution.training_scores(), solution.decision_function(X))
    before = solution.problem.certify(solution.coef, solution.intercept + solution.threshold)
    assert before.primal == pytest.approx(solution.certificate.primal, rel=1e-12)
    after = solution.problem.certify(solution.coef, solution.intercept)
    assert after.relative_gap > solution.certificate.relative_gap
    assert "threshold" in repr(solution)
    assert "is about the ranking, before the threshold" in repr(found)
    solution.save(tmp_path / "solution.nerm")
    loaded = nerm.load(tmp_path / "solution.nerm")
    assert loaded.threshold == solution.threshold
    np.testing.assert_allclose(loaded.decision_function(X), solution.decision_function(X), rtol=1e-12)


def test_neutral_svm_stays_convex_and_certified():
    X, y, groups = table(600)
    model = nerm.NeutralSVC(lam=1.0, limit=0.05).fit(X, y, viewpoint=groups["sex"])
    assert model.certificate_.relative_gap <= 1e-6
    assert set(model.trace_["surrogate"]) <= {"", "Hinge()"}
    assert "not convex" not in str(model.explain())
    ramp = nerm.NeutralSVC(lam=1.0, limit=0.05, surrogate="ramp").fit(X, y, viewpoint=groups["sex"])
    assert str(ramp.explain()).splitlines()[0].startswith("The objective is not convex")
