"""Classifiers and viewpoints that are numbers: limits on the scores, and groups by quantiles."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import nerm


@pytest.fixture(scope="module")
def rows():
    """Return rows whose label and whose age follow the first column."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    age = 40 + 10 * X[:, 0] + 5 * rng.normal(size=200)
    y = np.where(X @ [1, 1, 0] + 0.3 * rng.normal(size=200) > 0, "yes", "no")
    return X, y, age


def test_a_limit_on_the_correlation_holds_and_nothing_is_better(rows):
    X, y, age = rows
    given = {"limit": 0.1, "measure": "correlation", "lam": 0.01}
    model = nerm.NERMClassifier("logistic", **given).fit(X, y, viewpoint=age)
    f = model.decision_function(X)
    assert np.corrcoef(f, age)[0, 1] == pytest.approx(model.neutrality_)
    assert 0.09 < model.neutrality_ <= 0.1
    signs, v, w, b = np.where(y == "yes", 1.0, -1.0), age - age.mean(), cp.Variable(3), cp.Variable()
    scores = X @ w + b
    bound = abs(float(v @ f)) / len(y)  # the convex limit at which the search ended
    risk = cp.sum(cp.logistic(cp.multiply(-signs, scores))) / len(y) + 0.005 * cp.sum_squares(w)
    best = cp.Problem(cp.Minimize(risk), [cp.abs(v @ scores) / len(y) <= bound]).solve(solver="CLARABEL")
    own = np.logaddexp(0, -signs * f).mean() + 0.005 * float(np.sum(model.coef_**2))
    assert own == pytest.approx(best, rel=1e-5)


def test_a_limit_on_mean_differences_of_quantile_groups_is_one_convex_solve(rows):
    X, y, age = rows
    given = {"limit": 0.05, "measure": "mean_difference", "quantiles": 3}
    model = nerm.NeutralSVC(lam=2.0, **given).fit(X, y, viewpoint=age)
    groups = np.digitize(age, np.quantile(age, [1 / 3, 2 / 3]))
    means = [model.decision_function(X)[groups == k].mean() for k in range(3)]
    assert np.ptp(means) == pytest.approx(0.05, abs=1e-6)
    assert len(model.trace_) == 1
    assert model.certificate_.relative_gap < 1e-6


def test_positive_rates_of_quantile_groups_are_limited(rows):
    X, y, age = rows
    model = nerm.NERMClassifier("logistic", surrogate="hinge", limit=0.1, quantiles=4).fit(
        X, y, viewpoint=age
    )
    groups = np.digitize(age, np.quantile(age, [0.25, 0.5, 0.75]))
    rates = [(model.predict(X) == "yes")[groups == k].mean() for k in range(4)]
    assert np.ptp(rates) <= 0.1 + 1e-12
    assert np.ptp(rates) == pytest.approx(abs(model.neutrality_))


def test_it_is_saved_and_loaded(rows, tmp_path):
    X, y, age = rows
    model = nerm.NERMClassifier(limit=0.2, measure="correlation").fit(X, y, viewpoint=age)
    model.save(tmp_path / "model.nerm")
    assert np.array_equal(nerm.load(tmp_path / "model.nerm").decision_function(X), model.decision_function(X))


def test_what_is_not_possible_is_refused(rows):
    X, y, age = rows
    model = nerm.NERMClassifier(limit=0.2, measure="correlation")
    with pytest.raises(nerm.InvalidInputError, match="needs two classes and a viewpoint"):
        model.fit(X, y)
    with pytest.raises(nerm.InvalidInputError, match="needs two classes"):
        model.fit(X, np.arange(200) % 3, viewpoint=age)
    with pytest.raises(nerm.InvalidInputError, match="must be one number, with confidence=None"):
        nerm.NERMClassifier(limit=0.2, measure="correlation", confidence=0.9).fit(X, y, viewpoint=age)
    with pytest.raises(nerm.InvalidInputError, match="mean_difference of the real-valued viewpoint"):
        nerm.NERMClassifier(limit=0.2, measure="mean_difference").fit(X, y, viewpoint=age)
    chunks = nerm.Chunks(lambda: iter([(X, y, age)]))
    with pytest.raises(nerm.InvalidInputError, match="a limit on scores needs rows in memory"):
        model.fit(chunks)


def test_a_limit_that_no_model_reaches_names_the_closest(rows):
    X, y, age = rows
    model = nerm.NERMClassifier("logistic", limit=0.001, measure="ks_distance", quantiles=2)
    text = (
        r"No model satisfies \|ks_distance\| <= 0.001 on the training rows. The closest has 0\.\d+, with the "
    )
    with pytest.raises(nerm.NotNeutralError, match=text + "differences of the group means limited to"):
        model.fit(X, y, viewpoint=age)
