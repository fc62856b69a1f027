"""`NeutralRegressor`: scikit-learn's checks, limits that hold, promises, and agreement with the problem behind it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import Ridge
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import nerm
from nerm import NeutralRegressor


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(600, 4))
    group = np.where(X[:, 0] + 0.5 * rng.normal(size=600) > 0, "a", "b")
    age = 40 + 10 * X[:, 1] + rng.normal(size=600)
    y = 100 + X @ [2.0, 1.5, 1.0, 0.0] + rng.normal(size=600)
    return X, y, group, age


# Solutions are certified to 1e-6; the check wants predictions that agree to 1e-7.
TO_TOLERANCE = dict.fromkeys(
    [f"check_sample_weight_equivalence_on_{kind}_data" for kind in ("dense", "sparse")],
    "the optimum is certified to a tolerance",
)


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "exempt"),
    [(NeutralRegressor(), {}), (NeutralRegressor(loss="absolute-error", kernel="rbf"), TO_TOLERANCE)],
    ids=["linear", "kernel"],
)
def test_all_checks_of_scikit_learn_pass(model, exempt):
    results = check_estimator(model, expected_failed_checks=exempt, on_fail=None, on_skip=None)
    good = ("passed", "skipped", "xfail")
    assert not {r["check_name"]: repr(r["exception"]) for r in results if r["status"] not in good}
    assert len(results) > 40


def test_without_neutrality_it_is_ridge(rows):
    X, y, _, _ = rows
    s = np.arange(1.0, 601.0)
    model = NeutralRegressor(lam=0.1, tol=1e-10).fit(X, y, sample_weight=s)
    ridge = Ridge(alpha=0.05 * s.sum(), solver="cholesky").fit(X, y, sample_weight=s)
    np.testing.assert_allclose(model.coef_[0], ridge.coef_, atol=1e-6)
    assert model.score(X, y) == pytest.approx(ridge.score(X, y), abs=1e-7)


def test_a_limit_on_the_mean_difference_is_met_and_optimal(rows):
    X, y, group, _ = rows
    model = NeutralRegressor(lam=0.01, limit=0.2).fit(X, y, viewpoint=group)
    f = model.predict(X)
    apart = f[group == "b"].mean() - f[group == "a"].mean()
    assert apart == pytest.approx(model.neutrality_, abs=1e-9)
    assert abs(apart) <= 0.2
    assert abs(apart) == pytest.approx(0.2, abs=1e-6)
    assert model.certificate_.relative_gap <= 1e-6
    loose = NeutralRegressor(lam=0.01, limit=100.0).fit(X, y, viewpoint=group)
    np.testing.assert_allclose(loose.coef_, NeutralRegressor(lam=0.01).fit(X, y).coef_, atol=1e-4)


def test_three_groups_and_quantiles_of_a_number(rows):
    X, y, _, age = rows
    thirds = np.digitize(age, np.quantile(age, [1 / 3, 2 / 3]))
    by_name = NeutralRegressor(limit=0.3).fit(X, y, viewpoint=thirds)
    by_quantile = NeutralRegressor(limit=0.3, quantiles=3).fit(X, y, viewpoint=age)
    f = by_quantile.predict(X)
    means = [f[thirds == k].mean() for k in range(3)]
    assert np.ptp(means) <= 0.3 + 1e-9
    np.testing.assert_allclose(by_name.coef_, by_quantile.coef_, atol=1e-4)
    with pytest.raises(
        nerm.InvalidInputError, match=r"real-valued viewpoint 'viewpoint' needs groups.*quantiles=4"
    ):
        NeutralRegressor(limit=0.3).fit(X, y, viewpoint=age)


@pytest.mark.parametrize(("measure", "limit"), [("correlation", 0.1), ("ks_distance", 0.2)])
def test_other_measures_are_met_by_a_search(rows, measure, limit):
    X, y, group, age = rows
    v = age if measure == "correlation" else group
    model = NeutralRegressor(limit=limit, measure=measure).fit(X, y, viewpoint=v)
    f = model.predict(X)
    if measure == "correlation":
        value = abs(np.corrcoef(f, v)[0, 1])
    else:
        grid = np.sort(f)
        value = max(abs((f[group == "a"] <= t).mean() - (f[group == "b"] <= t).mean()) for t in grid)
    assert value <= limit + 1e-9
    assert value == pytest.approx(abs(model.neutrality_), abs=1e-9)
    assert set(model.trace_["status"]) == {"optimal"}
    assert model.score(X, y) > 0.1


def test_a_promise_by_hoeffding_or_dkw(rows):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(6000, 2))
    group, y = X[:, 0] > 0, np.clip(X @ [1.0, 1.0] + rng.normal(size=6000), -4, 4)
    model = NeutralRegressor(limit=1.0, confidence=0.9).fit(X, y, viewpoint=group)
    assert model.promise_.measured < model.promise_.bound <= 1.0
    assert "with probability 0.9 the mean_difference of new rows is at most" in str(model.promise_)
    assert model.predict(1e6 * X).max() <= 4.0
    with pytest.raises(nerm.NoPromiseError, match=r"No model has \|ks_distance\| <= 0.05 on new rows"):
        NeutralRegressor(limit=0.05, measure="ks_distance", confidence=0.99).fit(
            X[:300], y[:300], viewpoint=group[:300]
        )
    with pytest.raises(nerm.InvalidInputError, match=r"'confidence' needs a limit"):
        NeutralRegressor(confidence=0.9).fit(X, y, viewpoint=group)


def test_pandas_pipelines_routing_and_files(rows, tmp_path):
    X, y, group, _ = rows
    frame = pd.DataFrame(X, columns=list("pqrs")).assign(group=group)
    model = NeutralRegressor(eta=1.0).fit(frame, y, viewpoint=nerm.viewpoint.Column("group", drop=True))
    assert model.feature_names_in_.tolist() == ["p", "q", "r", "s", "group"]
    np.testing.assert_array_equal(model.predict(frame), model.predict(frame.drop(columns="group")))
    model.save(tmp_path / "model.nerm")
    np.testing.assert_array_equal(nerm.load(tmp_path / "model.nerm").predict(frame), model.predict(frame))
    import sklearn

    with sklearn.config_context(enable_metadata_routing=True):
        inner = NeutralRegressor(limit=0.5).set_fit_request(viewpoint=True)
        search = GridSearchCV(
            make_pipeline(StandardScaler(), inner), {"neutralregressor__lam": [0.01, 1.0]}, cv=2
        )
        search.fit(X, y, viewpoint=group)
    f = search.predict(X)
    assert abs(f[group == "a"].mean() - f[group == "b"].mean()) <= 0.5 + 1e-9


def test_conditional_weights_balance_within_bins_of_y(rows):
    X, y, group, _ = rows
    bins = np.searchsorted(np.quantile(y, [0.2, 0.4, 0.6, 0.8]), y)
    v = np.where(group == "a", 1, -1)
    u = nerm.weights.conditional_weights(y, v)
    for k in range(5):
        sides = [u[(bins == k) & (v == side)].sum() for side in (1, -1)]
        assert sides[0] == pytest.approx(sides[1]) or 0 in sides
    model = NeutralRegressor(eta=50.0, weights="conditional").fit(X, y, viewpoint=group)
    assert abs((u * v * model.predict(X)).mean()) < 1e-6


def test_what_is_wrong_is_said(rows):
    X, y, group, _ = rows
    with pytest.raises(
        nerm.InvalidInputError, match=r"'loss' must be a residual function or its name.*Hinge"
    ):
        NeutralRegressor(loss=nerm.Hinge()).fit(X, y)
    with pytest.raises(nerm.InvalidInputError, match=r"'loss' must be a margin function"):
        nerm.NERMClassifier(loss=nerm.SquaredError()).fit(X, y > 100)
    with pytest.raises(nerm.InvalidInputError, match=r"'viewpoint' must be given with a limit"):
        NeutralRegressor(limit=0.1).fit(X, y)
    with pytest.raises(nerm.UnknownNameError, match=r"'measure' must be one of"):
        NeutralRegressor(limit=0.1, measure="parity").fit(X, y, viewpoint=group)


def test_the_formula_names_the_groups():
    """It said "identity(0: 0, 1 f)" for the difference of the means of two groups."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(90, 3))
    views = {"sex": np.where(X[:, 0] > 0, "a", "b"), "age": np.array(["mid", "old", "young"] * 30)}
    model = NeutralRegressor(limit=0.1).fit(X, X.sum(axis=1), viewpoint=views)
    formula = str(model.solutions_[0].problem.objective)
    for term in ("identity(sex f)", "identity(age[old, mid] f)", "identity(-age[young, old] f)"):
        assert term in formula


def test_explanation_of_a_regression():
    rng = np.random.default_rng(0)
    X, v = rng.normal(size=(80, 3)), rng.choice([-1.0, 1.0], 80)
    y = X @ [2.0, 1.0, 0.0] + v + 0.1 * rng.normal(size=80)
    model = nerm.NeutralRegressor(eta=0.2).fit(X, y, viewpoint=v)
    (problem,) = model.explain(top=1, feature_names=["a", "b", "c"]).problems
    assert problem.label is None
    assert problem.total == pytest.approx(sum(t.weight * t.value for t in problem.terms), rel=1e-9)
    ((name, value),) = problem.coefficients
    assert (name, value) == ("a", pytest.approx(model.coef_[0, 0]))
    assert "minimise mean squared-error(y - f)" in str(model.explain())


def test_the_explanation_names_the_groups_and_the_neutrality_weights(rows):
    X, y, group, _ = rows
    text = str(NeutralRegressor(eta=0.2).fit(X, y, viewpoint=group).explain())
    assert "viewpoint: 'a' is -1, 'b' is +1" in text
    assert "Neutrality(Identity(), weights='balanced')" in text


def test_quantile_groups_without_a_limit_give_one_term_per_group(rows):
    """They are cut as with a limit; they were ignored before."""
    X, y, _, age = rows
    thirds = np.array(["1", "2", "3"])[np.digitize(age, np.quantile(age, [1 / 3, 2 / 3]))]
    cut = NeutralRegressor(eta=0.5, quantiles=3).fit(X, y, viewpoint=age)
    named = NeutralRegressor(eta=0.5).fit(X, y, viewpoint=thirds)
    np.testing.assert_allclose(cut.coef_, named.coef_, atol=1e-4)
    terms = [t.label for t in cut.explain().problems[0].terms if t.kind == "neutrality"]
    assert [f"viewpoint={k}" in term for k, term in zip("123", terms, strict=True)] == [True] * 3


def test_many_quantile_groups(rows):
    X, y, _, age = rows
    model = NeutralRegressor(limit=0.5, quantiles=15).fit(X, y, viewpoint=age)
    groups = np.searchsorted(np.quantile(age, np.arange(1, 15) / 15), age)
    means = [model.predict(X)[groups == k].mean() for k in range(15)]
    assert np.ptp(means) <= 0.5 + 1e-9
    assert np.ptp(means) == pytest.approx(abs(model.neutrality_))
