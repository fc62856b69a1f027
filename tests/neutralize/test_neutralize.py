"""Limits on measured neutrality; the tests measure once more, in plain numpy."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.metrics import as_metric
from nerm.neutralize import Target
from nerm.neutralize.neutralizing import compare, search_for
from nerm.neutralize.search import surrogates_of
from nerm.solvers.registry import SolverPool

PLAIN = nerm.Risk(nerm.Logistic()) + 1e-3 * nerm.SquaredL2()


def data(seed=0, n=600, rare=0.0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    v = np.where(X[:, 0] + rng.normal(size=n) > 0.2, 1.0, -1.0)
    y = np.where(X[:, 0] + X[:, 1] + 0.7 * rng.normal(size=n) > rare, 1.0, -1.0)
    return X, y, v


def rate(f, rows):
    return np.mean(f[rows] > 0)


MEASURES = {
    "calders_verwer_score": lambda y, f, v: rate(f, v > 0) - rate(f, v < 0),
    "neutrality_risk": lambda y, f, v: np.mean(np.where(f > 0, 1, -1) * v),
    "equal_opportunity_difference": lambda y, f, v: rate(f, (v > 0) & (y > 0)) - rate(f, (v < 0) & (y > 0)),
    "predictive_equality_difference": lambda y, f, v: rate(f, (v > 0) & (y < 0)) - rate(f, (v < 0) & (y < 0)),
    "equalized_odds_difference": lambda y, f, v: max(
        (rate(f, (v > 0) & (y == k)) - rate(f, (v < 0) & (y == k)) for k in (-1, 1)), key=abs
    ),
}


PAIRS = [
    ("calders_verwer_score", nerm.Hinge()),
    ("calders_verwer_score", nerm.Ramp(2.0)),
    ("neutrality_risk", nerm.Identity()),
    ("equal_opportunity_difference", nerm.Logistic()),
    ("predictive_equality_difference", nerm.SquaredHinge()),
]


@pytest.mark.parametrize(("measure", "surrogate"), PAIRS)
def test_neutralize_meets_the_limit(measure, surrogate):
    X, y, v = data(n=400)
    found = PLAIN.on(X, y, viewpoint=v).neutralize(0.03, measure, surrogate=surrogate)
    f = X @ found.solution.coef + found.solution.intercept
    measured = MEASURES[measure](y, f, v)
    assert abs(measured) <= 0.03
    assert abs(found.value) == pytest.approx(abs(measured), abs=1e-12)
    assert found.reached
    assert found.solution.status == ("stationary" if isinstance(surrogate, nerm.Ramp) else "optimal")
    assert set(found.trace["status"]) <= {"optimal", "stationary"}
    assert found.trace["chosen"].sum() == 1
    plain = PLAIN.on(X, y).solve()
    before = MEASURES[measure](y, X @ plain.coef + plain.intercept, v)
    assert abs(before) > 0.03 or measure in ("neutrality_risk", "predictive_equality_difference")
    assert np.mean((f > 0) == (y > 0)) > 0.6


@pytest.mark.parametrize("surrogate", [nerm.Logistic()], ids=repr)
def test_neutralize_two_parts_of_one_measure(surrogate):
    X, y, v = data(11, n=1500)
    found = PLAIN.on(X, y, viewpoint=v).neutralize(0.05, "equalized_odds_difference", surrogate=surrogate)
    f = X @ found.solution.coef + found.solution.intercept
    assert abs(MEASURES["equalized_odds_difference"](y, f, v)) <= 0.05
    assert found.value == pytest.approx(abs(MEASURES["equalized_odds_difference"](y, f, v)), abs=1e-12)


@pytest.mark.parametrize("surrogate", [nerm.Hinge(), nerm.Identity()], ids=repr)
def test_neutralize_returns_the_optimum_at_its_weight(surrogate):
    X, y, v = data(1)
    found = PLAIN.on(sp.csr_matrix(X), y, viewpoint=v).neutralize(0.02, surrogate=surrogate)
    term = nerm.Neutrality(surrogate, weights="balanced", side=found.side)
    again = (PLAIN + found.eta * term).on(X, y, viewpoint=v).solve("clarabel")
    assert found.solution.objective.total == pytest.approx(again.objective.total, rel=2e-6)


def test_auto_compares_a_convex_surrogate_and_a_ramp():
    X, y, v = data(3, n=60)

    def compared(loss):
        return surrogates_of("auto", (nerm.Risk(loss) + nerm.SquaredL2()).on(X, y, viewpoint=v))

    assert compared(nerm.Hinge()) == [nerm.Hinge(), nerm.Ramp(1.5)]
    assert compared(nerm.Logistic()) == [nerm.Logistic(), nerm.Ramp(1.5)]


def test_neutralize_keeps_a_plain_model_within_the_limit():
    X, y, v = data(2)
    found = PLAIN.on(X, y, viewpoint=v).neutralize(0.9)
    assert found.eta == 0
    assert len(found.trace) == 1
    assert found.solution.objective.total == pytest.approx(PLAIN.on(X, y).solve().objective.total, rel=1e-6)


@pytest.mark.parametrize("n", [500, 6000])
@pytest.mark.parametrize("surrogate", ["auto", [nerm.Logistic(), nerm.Hinge()], nerm.Hinge()], ids=repr)
def test_every_convex_solve_is_in_the_trace(monkeypatch, surrogate, n):
    X, y, v = data(3, n=n)
    solves, solve = [], SolverPool._solve_convex

    def counted(self, *given, **named):
        solves.extend(solve(self, *given, **named))
        return solves[-1:]

    monkeypatch.setattr(SolverPool, "_solve_convex", counted)
    found = PLAIN.on(X, y, viewpoint=v).neutralize(0.03, surrogate=surrogate)
    assert found.trace["relative_gap"].tolist() == [one.certificate.relative_gap for one in solves]
    assert found.solves == len(solves) <= 40
    fewer = found.trace["rows"].dropna() < n
    assert fewer.any() == (surrogate != nerm.Hinge())  # those that compare surrogates on unseen rows


def test_neutralize_chooses_a_surrogate_on_rows_set_apart():
    X, y, v = data(3, n=500)
    problem = PLAIN.on(X, y, viewpoint=v)
    found = problem.neutralize(0.03, surrogate=[nerm.Logistic(), nerm.Ramp(2.0)], prefer="auc")
    assert found.choice["worth"].iloc[0] == found.choice["worth"].max()
    assert repr(found.surrogate) == found.choice["surrogate"].iloc[0]
    mine = problem.neutralize(
        0.03, surrogate=[nerm.Logistic(), nerm.Hinge()], prefer=lambda y, f: -np.mean(f > 0)
    )
    assert len(mine.choice) == 2
    assert repr(found).startswith("calders_verwer_score ")


def test_neutralize_custom_measure_on_other_rows():
    X, y, v = data(4)
    new = data(5)

    def difference(y, scores, viewpoint):
        assert set(y) == set(viewpoint) == {-1.0, 1.0}
        return np.mean(scores[viewpoint > 0] > 0) - np.mean(scores[viewpoint < 0] > 0)

    found = PLAIN.on(X, y, viewpoint=v).neutralize(0.02, difference, on=new, surrogate=nerm.Logistic())
    f = new[0] @ found.solution.coef + found.solution.intercept
    assert abs(difference(new[1], f, new[2])) <= 0.02
    assert found.measure == "difference"


def test_neutralize_custom_measure_with_weights_within_strata():
    rng = np.random.default_rng(8)
    stratum = rng.integers(0, 2, size=1500)
    v = np.where(
        rng.random(1500) < np.where(stratum == 1, 0.8, 0.2), 1.0, -1.0
    )  # the groups differ in strata
    noise = rng.normal(size=(1500, 3))
    X = np.column_stack([stratum + 0.2 * noise[:, 0], 0.5 * v + noise[:, 1], noise[:, 2]])
    y = np.where(2 * stratum - 1 + X[:, 1] + 0.5 * noise[:, 0] > 0, 1.0, -1.0)

    def conditional(y, f, v):
        parts = [rate(f, (v > 0) & (stratum == k)) - rate(f, (v < 0) & (stratum == k)) for k in (0, 1)]
        return float(np.mean(stratum == 0) * parts[0] + np.mean(stratum == 1) * parts[1])

    u = nerm.weights.within(stratum, v)
    plain = PLAIN.on(X, y, viewpoint=v).solve().training_scores()
    problem = (PLAIN + nerm.Neutrality(nerm.Logistic(), weights=u)).on(X, y, viewpoint=v)
    found = problem.neutralize(0.02, conditional, surrogate=nerm.Logistic())
    f = found.solution.training_scores()
    assert conditional(y, plain, v) > 0.1
    assert abs(conditional(y, f, v)) <= 0.02
    assert MEASURES["calders_verwer_score"](y, f, v) > 0.3  # what the strata explain may stay
    (term,) = [t.term for t in found.solution.problem.objective.terms if isinstance(t.term, nerm.Neutrality)]
    np.testing.assert_allclose(term.weights, u)


def test_neutralize_two_viewpoints():
    X, y, v = data(6, n=1000)
    y = np.where(X[:, 0] + X[:, 1] + 2 * X[:, 2] > 0, 1.0, -1.0)
    other = np.where(X[:, 1] + np.random.default_rng(0).normal(size=len(y)) > 0, 1.0, -1.0)
    problem = PLAIN.on(X, y, viewpoint={"sex": v, "race": other})
    found = problem.neutralize(0.04, surrogate=nerm.Logistic())
    f = X @ found.solution.coef + found.solution.intercept
    for each in (v, other):
        assert abs(MEASURES["calders_verwer_score"](y, f, each)) <= 0.04
    assert len(found.eta) == len(found.side) == 2


def test_neutralize_only_viewpoints_of_the_terms():
    X, y, v = data(7)
    both = {"sex": v, "race": -v}
    problem = (PLAIN + nerm.Neutrality(nerm.Hinge(), to="race")).on(X, y, viewpoint=both)
    found = problem.neutralize(0.03, surrogate=nerm.Logistic())
    assert isinstance(found.eta, float)
    assert "positive rate, race +" in found.trace


def test_neutralize_kernel():
    X, y, v = data(8, n=150)
    problem = (nerm.Risk(nerm.Hinge()) + 0.02 * nerm.SquaredL2()).on(X, y, viewpoint=v, kernel="rbf")
    found = problem.neutralize(0.05, surrogate=nerm.Hinge())
    assert abs(MEASURES["calders_verwer_score"](y, found.solution.decision_function(X), v)) <= 0.05


@pytest.mark.parametrize("flip", ["v", "y"])
def test_neutralize_flips_with_viewpoint_and_labels(flip):
    X, y, v = data(9)
    one = PLAIN.on(X, y, viewpoint=v).neutralize(0.03, surrogate=nerm.Logistic())
    other = (PLAIN.on(X, y, viewpoint=-v) if flip == "v" else PLAIN.on(X, -y, viewpoint=v)).neutralize(
        0.03, surrogate=nerm.Logistic(), keep=0.2
    )
    assert other.eta == pytest.approx(one.eta, rel=1e-3)
    assert other.value == pytest.approx(-one.value, abs=0.01)


def test_neutralize_never_returns_a_constant():
    X, y, v = data(10, n=300, rare=1.5)
    v = np.where(X[:, 0] > 0, 1.0, -1.0)
    objective = nerm.Risk(nerm.Hinge()) + 0.01 * nerm.SquaredL2()
    problem = objective.on(X, y, viewpoint=v)
    with pytest.raises(nerm.NotNeutralError) as caught:
        problem.neutralize(0.001, surrogate=nerm.Hinge(), keep=0.95)
    best = caught.value.best
    why = ("without neutrality", "has 0.", "has -0.", "predicts the same class")
    assert any(words in str(caught.value) for words in why)
    assert best.trace["chosen"].sum() == 1
    for limit in (0.02, 0.005):
        try:
            found = problem.neutralize(limit, surrogate=nerm.Logistic())
        except nerm.NotNeutralError:
            continue
        f = X @ found.solution.coef + found.solution.intercept
        plain = objective.on(X, y).solve()
        before = X @ plain.coef + plain.intercept
        for group in (1, -1):
            assert rate(f, v == group) >= 0.5 * rate(before, v == group)
        assert 0 < np.mean(f > 0) < 1


def test_neutralize_refuses_a_constant_plain_model():
    X, y, v = data(10, n=500, rare=2.4)
    problem = (nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2()).on(X, y, viewpoint=v)
    with pytest.raises(
        nerm.NotNeutralError, match="the plain model already predicts the same class for every row"
    ):
        problem.neutralize(0.1)
    assert problem.neutralize(0.1, keep=0).eta == 0  # asked for


def test_neutralize_constant_features():
    _, y, v = data(n=60)
    problem = PLAIN.on(np.ones((60, 1)), y, viewpoint=v)
    with pytest.raises(nerm.NotNeutralError, match="predicts the same class for every row"):
        problem.neutralize(0.1)
    assert problem.neutralize(0.1, keep=0).value == 0


def test_neutralize_error_where_the_measure_jumps():
    X = np.repeat([[0.0], [1.0]], 50, axis=0)
    v = np.repeat([-1.0, 1.0], 50)
    y = np.where(np.arange(100) % 10 < np.where(X[:, 0] > 0, 8, 2), 1.0, -1.0)
    with pytest.raises(nerm.NotNeutralError) as caught:
        PLAIN.on(X, y, viewpoint=v).neutralize(0.1, surrogate=nerm.Logistic())
    error = caught.value
    assert str(error).startswith(
        "No non-constant model satisfies |calders_verwer_score| <= 0.1. The closest, with Logistic() at eta "
    )
    assert str(error).endswith("Raise limit, lower keep, change surrogate or change lam.")
    assert [name for name, _ in error.advice] == ["limit", "keep", "surrogate", "lam"]
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.advice) == (str(error), error.advice)


BAD = {
    "'limit' must be a finite number, at least 0. Got nan": {"limit": np.nan},
    "'limit' must be a finite number, at least 0. Got -0.1": {"limit": -0.1},
    "'limit' must be a finite number, at least 0. Got True": {"limit": True},
    "'measure' must be one of 'calders_verwer_score', 'equal_opportunity_difference'": {"measure": "parity"},
    "'measure' must be the name of a measure or a function": {"measure": 3},
    "'prefer' must be one of 'accuracy', 'auc'": {"prefer": "f1"},
    "'surrogate' must be 'auto', a margin function or a list of them. Got 'hinge'": {"surrogate": "hinge"},
    "a list of them. Got []": {"surrogate": []},
    "'on' must be (X, y, viewpoint)": {"on": 5},
    "'keep' must be a finite number, at least 0": {"keep": -1},
    "'tol' must be": {"tol": 0},
}


@pytest.mark.parametrize("text", BAD)
def test_neutralize_bad_input(text):
    X, y, v = data(n=60)
    with pytest.raises((InvalidInputError, UnknownNameError)) as caught:
        PLAIN.on(X, y, viewpoint=v).neutralize(**{"limit": 0.1, **BAD[text]})
    assert text in str(caught.value)


def test_neutralize_without_a_viewpoint():
    X, y, _ = data(n=60)
    with pytest.raises(InvalidInputError, match="'viewpoint' must be given to be neutral to it"):
        PLAIN.on(X, y).neutralize(0.1)


@pytest.mark.parametrize("times", [2, 5])
def test_equal_rates_measure_exactly_0(times):
    for size in range(2, 30):
        for yes in range(1, size):
            v = np.repeat([1.0, -1.0], [size, size * times])
            f = np.repeat([1.0, -1.0, 1.0, -1.0], [yes, size - yes, yes * times, (size - yes) * times])
            assert as_metric("calders_verwer_score").parts(v, f, v, np.ones(len(v))) == [0.0]


def test_comparison_without_rows_of_a_group():
    X, y, v = data(0, n=300)
    v = -np.ones(300)
    v[np.flatnonzero(X[:, 0] + X[:, 1] > 1.5)[0]] = 1  # one row is never set apart
    surrogates = [nerm.Logistic(), nerm.Hinge()]
    found = PLAIN.on(X, y, viewpoint=v).neutralize(0.5, surrogate=surrogates, keep=0, tol=1e-4)
    assert found.reached
    assert len(found.choice) == 2


def test_comparison_with_too_few_rows():
    X, y, v = data(3, n=60)
    few = [*np.flatnonzero(y > 0)[:1], *np.flatnonzero(y < 0)[:9]]  # the only yes is never set apart
    given = [nerm.Logistic(), nerm.Hinge()]
    found = PLAIN.on(X[few], y[few], viewpoint=v[few]).neutralize(0.2, surrogate=given, keep=0, tol=1e-4)
    assert found.reached
    assert found.choice.empty


def test_other_rows_must_fit():
    X, y, v = data(n=60)
    problem = PLAIN.on(X, y, viewpoint={"sex": v})
    with pytest.raises(InvalidInputError, match="the viewpoints of the problem must be among those of 'on'"):
        problem.neutralize(0.1, on=(X, y, v))
    with pytest.raises(InvalidInputError, match=r"'y' must have one label for each of the 20 rows"):
        problem.neutralize(0.1, on=(X[:20], y, {"sex": v}))
    with pytest.raises(InvalidInputError, match=r"must be a finite number. Got nan"):
        problem.neutralize(0.1, lambda y, scores, viewpoint: np.nan)


def test_neutralize_refuses_uncertified_solutions():
    X, y, v = data(n=60)
    with pytest.raises(nerm.NotNeutralError, match="its solution was not certified"):
        PLAIN.on(X, y, viewpoint=v).neutralize(0.2, surrogate=nerm.Logistic(), tol=1e-30)


def test_comparison_by_weighted_accuracy():
    X, y, v = data(3, n=300)
    weight = np.where(np.arange(300) % 3 == 0, 4.0, 1.0)
    target = Target(0.1, surrogate=[nerm.Logistic(), nerm.Hinge()])
    search = search_for(PLAIN.on(X, y, viewpoint=v), target, weight)
    compare(search)
    np.testing.assert_allclose(search.choice["worth"], search.choice["accuracy"], rtol=1e-12)


def test_weights_grow_until_the_ranking_is_beyond_neutrality():
    """Every feature follows the viewpoint, so the ranking stays the same until the weight is large."""
    rng = np.random.default_rng(1)
    v = rng.choice([-1.0, 1.0], 900)
    X = rng.normal(size=(900, 3)) + 0.45 * v[:, None]
    y = np.where(X.sum(axis=1) + rng.normal(size=900) > 0.3, 1.0, -1.0)
    found = PLAIN.on(X, y, viewpoint=v).neutralize(0.02, surrogate=nerm.Logistic())
    f = found.solution.training_scores()
    assert abs(MEASURES["calders_verwer_score"](y, f, v)) <= 0.02
    assert 0.1 < np.mean(f > 0) < 0.9


def test_nearest_model_of_an_impossible_accuracy_is_usable():
    X, y, v = data(2)
    limit = {"calders_verwer_score": 0.01, "accuracy": 0.99}
    with pytest.raises(nerm.NotNeutralError, match=r"it has an accuracy below 0\.99") as caught:
        PLAIN.on(X, y, viewpoint=v).neutralize(limit, surrogate=nerm.Logistic())
    f = caught.value.best.solution.training_scores()
    assert abs(MEASURES["calders_verwer_score"](y, f, v)) <= 0.01
    assert np.mean((f > 0) == (y > 0)) > 0.6
    assert "of the limits" in str(caught.value)


def test_several_limits_and_their_text():
    X, y, v = data(2)
    limit = {"calders_verwer_score": 0.1, "equal_opportunity_difference": 0.1}
    found = PLAIN.on(X, y, viewpoint=v).neutralize(limit, surrogate=nerm.Logistic())
    f = found.solution.training_scores()
    assert all(abs(MEASURES[name](y, f, v)) <= 0.1 for name in limit)
    assert "equal_opportunity_difference" in repr(found)


@pytest.mark.parametrize("n", [400, 6000, 30_000])
def test_a_group_of_one_row_is_compared_or_left_out_of_the_comparison(n):
    X, y, v = data(4, n=n)
    v[:], v[5], y[5] = -1, 1, 1
    found = PLAIN.on(X, y, viewpoint=v).neutralize(0.3, keep=0.1, tol=1e-4)
    f = found.solution.training_scores()
    assert abs(MEASURES["calders_verwer_score"](y, f, v)) <= 0.3
    assert found.solves <= 40


BAD_MEASURES = {
    "selection_rate_ratio must be between 0 and 1. Got 1.5": (1.5, "selection_rate_ratio"),
    "accuracy must be between 0 and 1. Got 80": ({"calders_verwer_score": 0.1, "accuracy": 80}, None),
    "must be a finite number. Got str 'a'": (0.1, lambda y, scores, viewpoint: "a"),
}


@pytest.mark.parametrize("text", BAD_MEASURES)
def test_bad_limits_of_measures(text):
    X, y, v = data(n=60)
    limit, measure = BAD_MEASURES[text]
    with pytest.raises(InvalidInputError) as caught:
        PLAIN.on(X, y, viewpoint=v).neutralize(limit, measure or "calders_verwer_score")
    assert text in str(caught.value)
