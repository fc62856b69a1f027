"""Curves and boosted trees as columns: the model bends, is saved as numbers, and says what is certified."""

from __future__ import annotations

import json
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OrdinalEncoder, SplineTransformer

import nerm.tables
from nerm.cli.options import FEATURES
from nerm.report.fitting import Settings, Training
from nerm.tables import learn_recipe, parse_table
from nerm.tables.recipe import Recipe, Trees

ROLES = ("--target", "hired", "--viewpoint", "sex")


def table(seed: int, n: int = 400) -> pd.DataFrame:
    """Return rows that are hired at middle ages, or if skill and test agree: no linear score predicts this."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"age": rng.uniform(20, 60, n).round(1), "skill": rng.normal(size=n).round(3)})
    frame["test"] = rng.normal(size=n).round(3)
    frame["sex"] = np.where(rng.random(n) < 0.5, "f", "m")
    frame["kind"] = np.where(rng.random(n) < np.where(frame["sex"] == "m", 0.7, 0.3), "a", "b")
    bent = 3 - np.abs(frame["age"] - 40) / 3 + 2 * np.sign(frame["skill"] * frame["test"])
    frame["hired"] = np.where(bent + (frame["kind"] == "a") + 0.5 * rng.normal(size=n) > 0, "yes", "no")
    frame.loc[::40, "age"] = np.nan
    return frame


@pytest.fixture
def census(tmp_path):
    path = tmp_path / "census.csv"
    table(0).to_csv(path, index=False)
    return str(path)


@pytest.mark.long
def test_curves_and_trees_find_what_a_line_cannot(nerm, census):
    right = {}
    for features in ("linear", "splines", "trees"):
        ran = nerm("fit", census, *ROLES, "--features", features, "--surrogate", "logistic", "--json")
        assert ran.code == 0, ran.err
        found = json.loads(ran.out)
        right[features] = found["measures"]["accuracy"]
        assert abs(found["reached"]) <= 0.02
        assert ("the base model is not certified" in found["certified"]) == (features == "trees")
        assert ("certified is only the last layer" in ran.err) == (features == "trees")
    assert right["splines"] > right["linear"] + 0.05
    assert right["trees"] > right["splines"] + 0.05


@pytest.mark.long
@pytest.mark.parametrize("features", ["splines", "trees"])
def test_what_is_saved_predicts_as_what_was_measured(nerm, census, tmp_path, features):
    model, scored, new = tmp_path / "model.nerm", tmp_path / "scored.csv", tmp_path / "new.csv"
    given = ("--features", features, "--surrogate", "logistic", "--test", 0.5, "--out", model)
    assert nerm("fit", census, *ROLES, *given).code == 0
    table(1).to_csv(new, index=False)
    assert nerm("predict", model, new, "--keep", "hired,sex", "--out", scored).code == 0
    frame = pd.read_csv(scored)
    assert (frame["prediction"] == frame["hired"]).mean() > 0.7
    audited = json.loads(nerm("audit", scored, *ROLES, "--score", "score", "--json").out)
    assert audited["measures"]["accuracy"] == pytest.approx((frame["prediction"] == frame["hired"]).mean())


def test_trees_score_as_scikit_learn_does_also_on_thresholds():
    rng = np.random.default_rng(0)
    X = rng.integers(0, 9, size=(300, 3)).astype(float)
    y = np.where(X[:, 0] * X[:, 1] > 16, 1.0, -1.0)
    trees, crossed = Trees.learn(X, y, seed=0)
    base = HistGradientBoostingClassifier(random_state=0).fit(X, y)
    cuts = rng.choice(trees.thresholds, size=(200, 3))  # rows on the thresholds themselves
    for rows in (X, cuts, np.nextafter(cuts, np.inf), 100 * rng.normal(size=(50, 3))):
        ours, theirs = trees.score(rows), base.decision_function(rows)
        slope = np.ptp(theirs) / np.ptp(ours)
        assert slope == pytest.approx(trees.scale)
        assert ours * slope - theirs == pytest.approx(float((ours * slope - theirs)[0]), abs=1e-9)
    assert (crossed.mean(), crossed.std()) == (pytest.approx(0, abs=1e-12), pytest.approx(1))


def test_scores_of_training_rows_have_not_seen_their_labels():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 4)), rng.choice([-1.0, 1.0], 300)  # nothing can be learned here
    trees, crossed = Trees.learn(X, y, seed=0)
    assert np.mean(np.sign(trees.score(X) - np.median(trees.score(X))) == y) > 0.9
    assert abs(np.mean(np.sign(crossed) == y) - 0.5) < 0.1


def test_rows_that_certify_a_promise_are_scored_by_trees_that_have_not_seen_them(census):
    task = nerm.tables.make_task(nerm.tables.read_table(census), "hired", "sex")
    training = Training(task, Settings(features="trees", confidence=0.9))
    recipe, X, _ = training.coded
    new, own = recipe.transform(task.table)[0][:, -1], X[:, -1]
    assert 0 < (~training.learned).sum() < len(task)
    assert (own == new)[~training.learned].all()
    assert (own != new)[training.learned].mean() > 0.9
    given = training.learned
    alone, _ = Trees.learn(X[given, :-1], task.y[given], seed=0)
    assert np.array_equal(recipe.base.values, alone.values)  # other rows had no part in them


def test_too_few_of_a_class_for_trees_is_said():
    y = np.array([1.0, *[-1.0] * 9])
    with pytest.raises(nerm.errors.InvalidInputError, match=r"needs two rows of each class\. Got 1 of one"):
        Trees.learn(np.arange(10.0)[:, None], y, seed=0)


def test_curves_are_those_of_scikit_learn_and_flat_beyond_the_data():
    numbers = [1.0, 2.0, 4.0, 8.0, 16.0]
    rows = parse_table("x,flag\n" + "".join(f"{x},{int(x > 3)}\n" for x in numbers), "x.csv")
    recipe, _ = learn_recipe(rows, ["x", "flag"], kinds={"flag": "numbers"}, splines=True)
    names = ["x", *(f"x (spline {k})" for k in range(1, 7)), "flag"]
    assert recipe.feature_names == names  # a flag has two values, so it stays a line
    z = (np.array(numbers) - np.mean(numbers))[:, None] / np.std(numbers)
    expected = SplineTransformer(n_knots=5, knots="quantile", include_bias=False).fit_transform(z)
    assert recipe.transform(rows)[0][:, 1:7] == pytest.approx(expected, abs=1e-12)
    again = Recipe.from_dict(recipe.to_dict())
    assert again == recipe
    far = again.transform(parse_table("x,flag\n16,1\n99,1\n,1\n4,1\n", "new.csv"))[0]
    far = np.asarray(far.todense() if hasattr(far, "todense") else far)
    assert far[0, 1:7] == pytest.approx(far[1, 1:7])
    assert far[2] == pytest.approx(far[3])  # a missing number is the median


@pytest.mark.long
def test_bounds_by_theorem_are_not_stated_for_columns_that_saw_labels(nerm, census):
    roles = (*ROLES, "--eta", 1, "--weights", "uniform", "--class-weight", "none", "--json")
    by = {}
    for features in ("splines", "trees"):
        found = json.loads(nerm("bound", census, *roles, "--features", features).out)
        by[features] = {bound["source"] for bound in found["bounds"]}
    assert any(source.startswith("Theorem") for source in by["splines"])
    assert by["trees"] == {"held-out rows"}


@pytest.mark.long
def test_the_report_says_which_part_is_certified(nerm, census, tmp_path):
    page = tmp_path / "page.html"
    given = ("--features", "trees", "--surrogate", "logistic", "--limits", "0.05", "--report", page, "--json")
    ran = nerm("tradeoff", census, *ROLES, *given)
    assert ran.code == 0, ran.err
    text = page.read_text(encoding="utf-8")
    assert "The base model itself is not certified." in text
    assert "certified is only the last layer" in text
    assert "Theorem" not in text
    assert "--features trees" in ran.out
    wrong = nerm("fit", census, *ROLES, "--features", "leaves")
    assert wrong.code == 2
    assert "'leaves' is not one of 'linear', 'splines', 'trees'" in wrong.err


@pytest.mark.long
def test_a_trade_off_says_what_each_kind_of_features_costs(nerm, census):
    given = ("--surrogate", "logistic", "--limits", "0.05", "--compare-features")
    ran = nerm("tradeoff", census, *ROLES, *given)
    assert ran.code == 0, ran.err
    text = " ".join(ran.err.split())
    found = [re.search(rf"--features {kind},[^:]*: accuracy (\S+), AUC", text) for kind in FEATURES.choices]
    linear, splines, trees = (float(each.group(1)) for each in found)
    assert linear + 0.05 < splines < trees


def test_a_regression_takes_curves_and_refuses_trees(nerm, tmp_path):
    frame, path = table(0), tmp_path / "pay.csv"
    frame["pay"] = ((frame["age"].fillna(40) - 40) ** 2 + np.random.default_rng(0).normal(size=400)).round(3)
    frame.drop(columns="hired").to_csv(path, index=False)
    roles = ("--target", "pay", "--viewpoint", "sex", "--json")
    errors = [
        json.loads(nerm("fit", path, *roles, "--features", features).out)["measures"]["rmse"]
        for features in ("linear", "splines")
    ]
    assert errors[1] < 0.6 * errors[0]
    refused = nerm("fit", path, *roles, "--features", "trees")
    assert refused.code == 2
    assert "must be those of a regression, because the target is a number. Got --features" in refused.err


class TestHead:
    """`--head` takes a classifier of one's own that was saved with skops."""

    TRUST = ("--trust", "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor")

    @pytest.fixture
    def saved(self, tmp_path):
        io = pytest.importorskip("skops.io")

        def save(rows: pd.DataFrame, columns: list[str]) -> str:
            words = [name for name in columns if name in ("kind", "sex")]
            coded = make_column_transformer((OrdinalEncoder(), words), remainder="passthrough")
            model = make_pipeline(coded, HistGradientBoostingClassifier(max_iter=60, random_state=0))
            io.dump(model.fit(rows[columns], rows["hired"]), tmp_path / "model.skops")
            return str(tmp_path / "model.skops")

        return save

    @pytest.mark.long
    def test_the_head_of_a_saved_model_is_fitted_saved_and_predicts(self, nerm, census, saved, tmp_path):
        model = saved(table(0), ["age", "skill", "test", "kind"])
        out, new = tmp_path / "model.nerm", tmp_path / "new.csv"
        given = (*ROLES, "--head", model, *self.TRUST, "--surrogate", "logistic", "--out", out, "--json")
        ran = nerm("fit", census, *given)
        assert ran.code == 0, ran.err
        found = json.loads(ran.out)
        assert abs(found["reached"]) <= 0.02
        assert "the base model is not certified" in found["certified"]
        assert "certified is only the last layer" in ran.err
        assert found["measures"]["accuracy"] > 0.75  # a line has .68
        table(1).to_csv(new, index=False)
        refused = nerm("predict", out, new)
        assert refused.code == 2
        assert f"--trust {self.TRUST[1]}" in refused.err
        ran = nerm("predict", out, new, *self.TRUST, "--keep", "hired", "--json")
        assert ran.code == 0, ran.err
        rows = pd.DataFrame(json.loads(ran.out)["predictions"])
        assert (rows["prediction"] == rows["hired"]).mean() > 0.75

    def test_a_model_that_has_seen_the_rows_is_not_kept(self, nerm, census, saved):
        given = ("--head", saved(table(0), ["age", "skill", "test"]), *self.TRUST, "--unseen")
        ran = nerm("fit", census, *ROLES, *given)
        assert ran.code == 2
        assert "must not have seen these rows" in ran.err

    def test_a_model_of_other_rows_is_kept_as_it_is(self, census, saved):
        task = nerm.tables.make_task(nerm.tables.read_table(census), "hired", "sex")
        path = saved(table(5), ["age", "skill", "test"])
        settings = Settings(head=path, unseen=True, trust=self.TRUST[1:])
        recipe, X, _ = Training(task, settings).coded
        assert recipe.base.content.tobytes() == Path(path).read_bytes()
        theirs = recipe.base.model.decision_function(table(0)[["age", "skill", "test"]])
        assert X[:, -1] == pytest.approx((theirs - theirs.mean()) / theirs.std())

    def test_scores_of_rows_that_it_learns_from_are_cross_fitted(self, census, saved):
        task = nerm.tables.make_task(nerm.tables.read_table(census), "hired", "sex")
        settings = Settings(head=saved(table(0), ["age", "skill", "test"]), trust=self.TRUST[1:])
        recipe, X, _ = Training(task, settings).coded
        seen = recipe.transform(task.table)[0][:, -1]
        right = [(np.sign(scores - np.median(scores)) == task.y).mean() for scores in (seen, X[:, -1])]
        assert right[0] > right[1] + 0.05

    def test_the_viewpoint_enters_only_if_asked(self, nerm, census, saved):
        given = ("--head", saved(table(0), ["age", "sex"]), *self.TRUST)
        ran = nerm("fit", census, *ROLES, *given)
        assert ran.code == 2
        assert "must take input columns only. Got one that takes 'sex'" in ran.err

    def test_options_that_exclude_each_other(self, nerm, census):
        for given in (("--head", "x.skops", "--features", "trees"), ("--unseen",)):
            ran = nerm("fit", census, *ROLES, *given)
            assert ran.code == 2
            assert "--unseen needs it" in ran.err
