"""Leaves, cross-fitted scores and neutral heads: scikit-learn's checks, and no label that is seen twice."""

from __future__ import annotations

import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, StratifiedShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import SplineTransformer, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

import nerm
from nerm.features import LeafFeatures, NeutralHead, ScoreFeatures, leaf_numbers, neutral_head

# small forests overfit their training rows
pytestmark = pytest.mark.filterwarnings("ignore:the head meets its limit:UserWarning")


def rows(n=600, seed=0):
    """Return rows whose label has an interaction, and a viewpoint that follows the third column."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    y = np.where(2 * X[:, 0] * X[:, 1] + X[:, 2] + X[:, 3] + 0.5 * rng.normal(size=n) > 0, "yes", "no")
    v = np.where(X[:, 2] + rng.normal(size=n) > 0, "b", "a")
    return X, y, v


ENSEMBLES = [
    RandomForestClassifier(5, max_depth=3, random_state=0),
    ExtraTreesClassifier(4, max_depth=3, random_state=0),
    GradientBoostingClassifier(n_estimators=6, random_state=0),
    HistGradientBoostingClassifier(max_iter=6, max_leaf_nodes=5),
]


def others():
    """Return the ensembles of packages that may be missing."""
    found = []
    try:
        from lightgbm import LGBMClassifier

        found.append(LGBMClassifier(n_estimators=6, num_leaves=5, verbose=-1))
    except ImportError:
        pass
    try:
        from xgboost import XGBClassifier

        found.append(XGBClassifier(n_estimators=6, max_depth=2))
    except ImportError:
        pass
    return found


@parametrize_with_checks(
    [
        LeafFeatures(RandomForestClassifier(3, max_depth=2, random_state=0)),
        ScoreFeatures(LogisticRegression(), cv=2),
        NeutralHead(LogisticRegression(), nerm.NERMClassifier(lam=0.1), cv=2),
    ]
)
@pytest.mark.filterwarnings(
    "ignore:ScoreFeatures.transform got the rows of fit", "ignore::nerm.NearlyConstantWarning"
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("ensemble", [*ENSEMBLES, *others()], ids=lambda e: type(e).__name__)
def test_a_leaf_is_where_the_trees_agree(ensemble):
    """Rows in the same leaves have the same prediction, and there is one leaf per row and tree."""
    X, y, _ = rows()
    codes = (y == "yes").astype(int)
    model = clone(ensemble).fit(X, codes)
    leaves = LeafFeatures(model).fit(X)
    coded = leaves.transform(X)
    trees = leaf_numbers(model, X).shape[1]
    np.testing.assert_array_equal(np.asarray(coded.sum(axis=1)).ravel(), trees)
    assert coded.shape[1] == len(leaves.get_feature_names_out())
    values = model.predict_proba(X)[:, 1]
    _, group = np.unique(leaf_numbers(model, X), axis=0, return_inverse=True)
    for g in np.unique(group):
        assert np.ptp(values[group == g]) < 1e-6
    # the ensemble is a function of its leaves: a linear model on them repeats its log odds
    if hasattr(model, "decision_function"):
        scores = model.decision_function(X)
        left = np.linalg.lstsq(coded.toarray(), scores, rcond=None)[0]
        np.testing.assert_allclose(coded @ left, scores, atol=1e-6)


def test_leaves_of_missing_values_and_categories():
    X, y, _ = rows()
    table = pd.DataFrame({"a": X[:, 0], "b": pd.Categorical(np.where(X[:, 1] > 0, "u", "w"))})
    table.loc[::7, "a"] = np.nan
    model = HistGradientBoostingClassifier(max_iter=8, categorical_features="from_dtype").fit(table, y)
    coded = LeafFeatures(model).fit(table).transform(table)
    scores = model.decision_function(table)
    left = np.linalg.lstsq(coded.toarray(), scores, rcond=None)[0]
    np.testing.assert_allclose(coded @ left, scores, atol=1e-8)


def test_a_leaf_that_fit_has_not_seen_is_zero():
    X, y, _ = rows()
    model = RandomForestClassifier(3, random_state=0).fit(X, y)
    leaves = LeafFeatures(model).fit(X[:20])
    assert leaves.transform(X).shape[1] == leaves.transform(X[:20]).shape[1]
    assert leaves.transform(X).sum() < 3 * len(X)


def test_no_ensemble():
    with pytest.raises(nerm.InvalidInputError, match="'estimator' must be an ensemble of trees"):
        LeafFeatures(LogisticRegression()).fit(*rows()[:2])


def test_scores_of_training_rows_have_not_seen_their_labels():
    """On labels without a pattern a tree knows every training label; cross-fitted scores know none."""
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400)
    features = ScoreFeatures(DecisionTreeClassifier(random_state=0))
    honest = features.fit_transform(X, y)[:, 0] > 0
    assert abs((honest == y).mean() - 0.5) < 0.12
    with pytest.warns(UserWarning, match="these scores have seen their labels. Use fit_transform"):
        seen = features.transform(X)[:, 0] > 0
    assert (seen == y).all()
    features.transform(X[:200])  # other rows: no warning


def test_scores_in_a_pipeline_with_a_routed_viewpoint():
    from sklearn import config_context
    from sklearn.model_selection import cross_val_score

    X, y, v = rows()
    with config_context(enable_metadata_routing=True):
        head = nerm.NERMClassifier(eta=0.1).set_fit_request(viewpoint=True)
        pipe = make_pipeline(ScoreFeatures(RandomForestClassifier(10, random_state=0), cv=3), head)
        scores = cross_val_score(pipe, X, y, cv=2, params={"viewpoint": v})
    assert scores.mean() > 0.7


def test_a_head_is_neutral_and_better_than_a_line():
    """The base model knows the interaction, which no linear model on X can."""
    X, y, v = rows(3000)
    train, test = slice(0, 2000), slice(2000, None)
    base = HistGradientBoostingClassifier(max_iter=60, max_leaf_nodes=8).fit(X[train], y[train])
    model = neutral_head(base, X[train], y[train], v[train], limit=0.05)
    line = nerm.NERMClassifier(loss="logistic", lam=1e-4, limit=0.05).fit(
        X[train], y[train], viewpoint=v[train]
    )
    assert model.base_ is base
    assert abs(model.head_.neutrality_) <= 0.05
    assert model.head_.certificate_.relative_gap < 1e-5
    yes = model.predict(X[train]) == "yes"  # by the base model itself, which has seen these labels
    assert abs(yes[v[train] == "a"].mean() - yes[v[train] == "b"].mean()) <= 0.05
    assert model.score(X[test], y[test]) > line.score(X[test], y[test]) + 0.04
    yes = model.predict(X[test]) == "yes"
    assert abs(yes[v[test] == "a"].mean() - yes[v[test] == "b"].mean()) < 0.12
    plain = base.predict(X[test]) == "yes"
    assert abs(plain[v[test] == "a"].mean() - plain[v[test] == "b"].mean()) > 0.2


def test_in_sample_scores_are_refused():
    """A forest of full depth knows its training labels: as 'unseen' it is refused, on other rows it is not."""
    X, y, v = rows(1200)
    base = RandomForestClassifier(30, random_state=0).fit(X[:600], y[:600])
    with pytest.raises(
        nerm.InvalidInputError,
        match=r"the base model must not have seen these rows\. Got an error rate of 0.000",
    ):
        neutral_head(base, X[:600], y[:600], v[:600], cv="unseen", limit=0.1)
    model = neutral_head(base, X[600:], y[600:], v[600:], cv="unseen", limit=0.1)
    assert abs(model.head_.neutrality_) <= 0.1


def test_a_head_on_seen_scores_would_be_worse():
    """The reason for cross-fitting: in-sample scores of a tree are the labels, and the head trusts them alone."""
    X, y, v = rows(800)
    base = DecisionTreeClassifier(random_state=0).fit(X, y)
    model = neutral_head(base, X, y, v, limit=0.1, cv=4)
    weight = abs(model.head_.coef_[0, 0])
    seen = nerm.NERMClassifier(loss="logistic", lam=1e-4, eta=0.0).fit(
        model._matrix(np.where(y == "yes", 13.8, -13.8)[:, None], model.columns_.transform(X)), y
    )
    assert abs(seen.coef_[0, 0]) > 3 * weight


def test_one_split_gives_a_head_on_its_test_rows_scored_by_a_model_of_its_training_rows():
    X, y, v = rows(1200)
    base = LogisticRegression().fit(X, y)
    split = StratifiedShuffleSplit(1, test_size=0.25, train_size=0.5, random_state=0)
    model = neutral_head(base, X, y, v, limit=0.3, cv=split, columns=None)
    ((train, test),) = split.split(X, y)
    scores = clone(base).fit(X[train], y[train]).decision_function(X[test])
    assert model.head_.n_features_in_ == 1
    assert np.array_equal(pickle.loads(pickle.dumps(model)).predict(X), model.predict(X))
    by_hand = nerm.NERMClassifier("logistic", surrogate="hinge", lam=1e-4, limit=model.head_.limit)
    by_hand.fit(StandardScaler().fit_transform(scores[:, None]), y[test], viewpoint=v[test])
    np.testing.assert_allclose(model.head_.coef_, by_hand.coef_, atol=1e-4)
    rates = [(model.predict(X)[v == group] == "yes").mean() for group in np.unique(v)]
    assert abs(np.diff(rates)[0]) <= 0.3  # on all training rows, by the scores of the base model


def test_the_viewpoint_does_not_enter_the_features():
    X, y, v = rows()
    table = pd.DataFrame(X, columns=list("abcd")).assign(group=v)
    base = RandomForestClassifier(10, random_state=0).fit(table.drop(columns="group"), y)
    for named in ("group", {"group": "group"}):
        with pytest.raises(
            nerm.InvalidInputError, match=r"must be an array, not a column of X\. Got 'group'"
        ):
            neutral_head(base, table, y, named)
    model = neutral_head(base, table.drop(columns="group"), y, table["group"], limit=0.1)
    assert model.feature_names_in_.tolist() == list("abcd")
    assert model.head_.n_features_in_ == 5  # the score and four columns
    again = model.decision_function(table.drop(columns="group"))
    np.testing.assert_array_equal(again, model.decision_function(table[list("abcd")]))


def test_the_inferred_group_buys_accuracy_without_the_group():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4000, 4))
    v = np.where(2 * X[:, 0] * X[:, 1] + rng.normal(size=4000) > 0, "a", "b")  # no column alone tells it
    y = X[:, 2] + (v == "a") + X[:, 3] * X[:, 2] + 0.7 * rng.normal(size=4000) > 0.5
    train, test = slice(0, 2000), slice(2000, None)
    base = HistGradientBoostingClassifier(max_iter=40, min_samples_leaf=50).fit(X[train], y[train])
    plain, inferred = (
        neutral_head(base, X[train], y[train], v[train], limit=0.02, viewpoint_score=on)
        for on in (False, True)
    )
    right = [np.mean(head.predict(X[test]) == y[test]) for head in (plain, inferred)]
    assert right[1] > right[0] + 0.02
    assert plain.viewpoint_models_ == []
    assert abs(inferred.head_.neutrality_) <= 0.02
    assert inferred.head_.coef_.shape[1] == plain.head_.coef_.shape[1] + 1
    with pytest.raises(nerm.NermError, match="viewpoint_score=True, 'viewpoint' must hold groups"):
        neutral_head(base, X[train], y[train], X[train, 0], limit=0.02, viewpoint_score=True)
    (guess,) = inferred.viewpoint_models_
    assert list(guess.classes_) == [False, True]
    assert guess.score(X[test], v[test] == "b") > 0.6  # the favoured group is the larger value


def test_other_columns():
    X, y, v = rows()
    base = GradientBoostingClassifier(n_estimators=10, random_state=0).fit(X, y)
    for columns in (None, SplineTransformer(n_knots=4), LeafFeatures(base)):
        model = neutral_head(base, X, y, v, limit=0.2, columns=columns)
        assert abs(model.head_.neutrality_) <= 0.2
    with pytest.raises(
        nerm.InvalidInputError, match=r"'columns' must be a transformer or 'input'\. Got 'leaves'"
    ):
        neutral_head(base, X, y, v, columns="leaves")
    with pytest.raises(nerm.InvalidInputError, match="'model' must be fitted"):
        neutral_head(clone(base), X, y, v)
    with pytest.raises(
        nerm.InvalidInputError, match="'cv' must be folds, or 'unseen' for a fitted base model"
    ):
        neutral_head(base, X, y, v, cv="none")


def test_a_table_with_words_and_holes():
    X, y, v = rows(900)
    table = pd.DataFrame({"a": X[:, 0], "b": X[:, 1], "word": np.where(X[:, 2] > 0, "high", "low")})
    table.loc[::9, "a"] = np.nan
    base = HistGradientBoostingClassifier(categorical_features="from_dtype")
    table["word"] = table["word"].astype("category")
    model = neutral_head(base.fit(table, y), table, y, v, limit=0.1)
    assert abs(model.head_.neutrality_) <= 0.1
    assert model.score(table, y) > 0.6


def test_a_head_that_exceeds_its_limit_on_the_scores_of_the_base_model_says_so():
    rng = np.random.default_rng(1)
    X, v = rng.normal(size=(700, 8)), rng.random(700) < 0.7
    y = 0.8 * X[:, 0] + 0.5 * X[:, 1] + 0.7 * v + rng.normal(size=700) > -0.3
    overfitting = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    with pytest.warns(UserWarning, match="the head meets its limit of 0.01 on .* training rows it is 0.2"):
        head = neutral_head(overfitting, X, y, v, limit=0.01, columns=None)
    assert abs(head.head_.neutrality_) <= 0.01
    positive = head.decision_function(X) > 0
    assert abs(positive[v].mean() - positive[~v].mean()) > 0.01


def test_a_threshold_keeps_the_limit_on_the_scores_of_the_base_model():
    X, y, v = rows(400)
    plain = nerm.NERMClassifier("logistic", surrogate="hinge", lam=1e-4, limit=0.05)
    base = GradientBoostingClassifier(n_estimators=300, random_state=0)
    head = NeutralHead(base, plain).fit(X, y, viewpoint=v)
    scores = head.decision_function(X)
    rates = [[(f[v == one] > 0).mean() for one in "ab"] for f in (scores, scores + head.threshold_)]
    assert abs(np.diff(rates[0])[0]) <= 0.05 < abs(np.diff(rates[1])[0])
    np.testing.assert_array_equal(head.predict(X), np.where(scores > 0, "yes", "no"))


def test_accuracy_is_not_given_up_for_scores_that_have_seen_their_labels():
    def draw(n):
        X, v = rng.normal(size=(n, 8)), rng.random(n) < 0.7
        return X, v, 0.8 * X[:, 0] + 0.5 * X[:, 1] + 0.7 * v + rng.normal(size=n) > -0.3

    rng = np.random.default_rng(4)
    X, v, y = draw(700)
    base = HistGradientBoostingClassifier(random_state=0).fit(X, y)  # right on nearly all of these rows
    head = neutral_head(base, X, y, v, limit=0.01)
    X, v, y = draw(20_000)
    assert np.mean(head.predict(X) == y) > np.mean(base.predict(X) == y) - 0.03


def test_a_head_that_predicts_one_class_in_a_group_keeps_its_threshold():
    rng = np.random.default_rng(0)
    v = np.resize([True, False], 400)
    X = np.column_stack([np.where(v, 3.0, -3.0), rng.normal(size=400)])
    y = (X[:, 0] + 0.3 * X[:, 1] > 0) ^ (rng.random(400) < 0.02)
    plain = nerm.NERMClassifier("logistic", surrogate="hinge", lam=1e-4, limit=1.0)
    head = NeutralHead(LogisticRegression(), plain).fit(X, y, viewpoint=v)  # rates of 1 and 0, no warning
    assert head.threshold_ == 0
    assert head.predict(X)[v].all()
    assert not head.predict(X)[~v].any()


def test_folds_that_leave_rows_out_are_refused_for_features():
    X, y, _ = rows(100)
    split = StratifiedShuffleSplit(1, test_size=0.25, random_state=0)
    with pytest.raises(nerm.InvalidInputError, match="the folds of 'cv' must contain every row once"):
        ScoreFeatures(LogisticRegression(), split).fit_transform(X, y)
    with pytest.raises(nerm.InvalidInputError, match="every fold of 'cv' must have all classes"):
        ScoreFeatures(DecisionTreeClassifier(), KFold(2)).fit_transform(X, np.repeat(["a", "b"], 50))
