"""Levels that are asked for: which model is taken, what is measured of it, and what is said of its method."""

from __future__ import annotations

import matplotlib
import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import roc_auc_score

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from nerm import plots
from nerm.experiments import LEVEL_METHODS, METHODS, Fit, Fold, acs, level_means, levels, read, tradeoff
from nerm.experiments.levels import Selection
from nerm.experiments.tradeoff import measures
from tests.conftest import make_data

FEW = {"datasets": "diabetes", "measures": "calders_verwer_score", "lam": 10.0, "repetitions": 1, "folds": 2}
FACTS = ["sees_group", "randomised", "level"]


@pytest.fixture
def fold():
    X, y, v = make_data(0)
    return Fold(X, y, v, X, v, seed=0)


def parity(predicted, v):
    return np.mean(predicted[v > 0]) - np.mean(predicted[v < 0])


def chosen(fold, candidates, limits, randomised=False):
    """Return the fit that is chosen among these scores for each limit; test rows are training rows."""
    fits = [Fit(np.concatenate([scores, scores]), 0.0) for scores in candidates]
    method = Selection(lambda training: lambda limit: fits, "calders_verwer_score", randomised)
    return list(method(fold, 1.0, limits))


def test_of_the_models_within_the_limit_the_most_accurate_one_is_taken(fold):
    rng = np.random.default_rng(0)
    noise = [rng.normal(size=len(fold.y)) for _ in range(40)]
    models = [share * fold.y + each for share, each in zip(np.linspace(0, 2, 40), noise, strict=True)]
    for limit, fit in zip((0.3, 0.1, 0.05), chosen(fold, models, (0.3, 0.1, 0.05)), strict=True):
        within = [scores for scores in models if abs(parity(scores > 0, fold.viewpoint)) <= limit]
        accuracies = [np.mean((scores > 0) == (fold.y > 0)) for scores in within]
        assert fit.status == "ok"
        assert np.mean((fit.scores > 0) == (fold.y > 0)) == max(accuracies)


def test_a_constant_is_taken_for_want_of_better_only_and_said_to_have_collapsed(fold):
    constant, right = np.full(len(fold.y), -1.0), fold.y
    unequal = abs(parity(fold.y > 0, fold.viewpoint))
    fits = chosen(fold, [constant, right], (2 * unequal, 0.5 * unequal))
    assert [fit.status for fit in fits] == ["ok", "collapsed"]
    assert np.array_equal(fits[0].scores, right)
    assert np.array_equal(fits[1].scores, constant)


def test_where_nothing_is_within_the_limit_the_nearest_is_measured(fold):
    v = fold.viewpoint
    far, near = v, np.where(np.arange(len(v)) % 3 == 0, 1.0, v)
    (fit,) = chosen(fold, [far, near], (0.01,))
    assert fit.status == "not reached"
    assert np.array_equal(fit.scores, near)
    assert fit.reason == f"{abs(parity(near > 0, v)):.4f} on the training rows is the nearest"


def test_chances_are_held_to_the_limit_in_expectation(fold):
    v = fold.viewpoint
    nearly = 0.04 * v  # chances 0.54 and 0.46: drawn, the rates differ by 0.08; thresholded, by 1
    assert [fit.status for fit in chosen(fold, [nearly], (0.1, 0.05), randomised=True)] == [
        "ok",
        "not reached",
    ]


def test_a_method_that_draws_is_measured_by_its_chances():
    rng = np.random.default_rng(1)
    chance, y, v = rng.random(60), rng.choice([-1.0, 1.0], 60), rng.choice([-1.0, 1.0], 60)
    drawn = measures(y, chance - 0.5, v, randomised=True)
    plus, minus = (sum(c for c, g in zip(chance, v, strict=True) if g == s) / sum(v == s) for s in (1, -1))
    right = [c if label > 0 else 1 - c for c, label in zip(chance, y, strict=True)]
    assert drawn["accuracy"] == pytest.approx(np.mean(right))
    assert drawn["calders_verwer_score"] == pytest.approx(plus - minus)
    assert drawn["neutrality_risk"] == pytest.approx(abs(np.mean(v * (2 * chance - 1))))
    assert (drawn["positive_rate_plus"], drawn["positive_rate_minus"]) == pytest.approx((plus, minus))
    assert drawn["auc"] == pytest.approx(roc_auc_score(y, chance))
    calm = measures(y, chance - 0.5, v)
    assert calm["accuracy"] == np.mean((chance > 0.5) == (y > 0))
    assert drawn.keys() == calm.keys()


def test_every_table_says_what_is_known_of_a_method(small):
    table = levels(**FEW, methods=["thresholds", "searchfair", "lr"], limits=[0.05, 0.2])
    known = table.drop_duplicates("method").set_index("method")[FACTS]
    assert known.loc["thresholds"].tolist() == [True, False, "asked"]
    assert known.loc["searchfair"].tolist() == [False, False, "grid"]
    assert known.loc["lr"].tolist() == [False, False, "none"]
    assert table[table.method == "lr"].limit.isna().all()
    means = level_means(table)
    assert set(FACTS) <= set(means.columns)
    assert means.fits.tolist() == [2] * 5
    labels = plots.level_panel(table).get_legend_handles_labels()[1]
    assert "group thresholds  (asked, sees group)" in labels
    assert "SearchFair's form  (grid)" in labels
    small.update(methods=["cv2nb", "lr"], etas=None)
    ranked = tradeoff(**small)
    assert ranked.drop_duplicates("method").set_index("method").sees_group.to_dict() == {
        "cv2nb": True,
        "lr": False,
    }
    assert "CV2NB †" in plots.tradeoff_panel(ranked).get_legend_handles_labels()[1]
    plt.close("all")


def test_a_run_that_was_cut_goes_on_to_the_same_table(tmp_path):
    asked = {
        **FEW,
        "methods": ["thresholds", "lr"],
        "limits": 0.05,
        "measures": ["neutrality_risk", FEW["measures"]],
    }
    table = levels(**asked, results=tmp_path / "whole.csv")
    again, settings = read(tmp_path / "whole.csv")
    assert again.equals(table)
    lines = (tmp_path / "whole.csv").read_text().splitlines(keepends=True)
    (tmp_path / "part.csv").write_text("".join(lines[:5]))
    resumed = levels(**asked, results=tmp_path / "part.csv")
    assert resumed.drop(columns="seconds").equals(table.drop(columns="seconds"))
    assert (settings["experiment"], settings["limits"]) == ("levels", [0.05])
    with pytest.raises(ValueError, match=r"with limits \[0.1\]. Got limits \[0.05\]"):
        levels(**{**asked, "limits": 0.1}, results=tmp_path / "whole.csv")


@pytest.mark.long
def test_every_method_runs():
    pytest.importorskip("fairlearn", reason="needs fairlearn, the extra [compare]")
    table = levels("diabetes", limits=0.1, lam=10.0, repetitions=1, folds=2)
    assert set(table.method) == set(LEVEL_METHODS) - {"head", "boosted-thresholds"}
    assert (table.status != "failed").all(), table.reason.unique()
    assert set(table[table.method == "exp-gradient"].measure) == {"calders_verwer_score"}
    assert (table[(table.method == "nerm")].status == "ok").all()
    axes = plots.figure_levels(table)
    assert len(axes) == 4
    words = [text.get_text() for text in axes[0].figure.legends[0].get_texts()]
    assert "ThresholdOptimizer  (asked, sees group, randomised)" in words
    assert len(words) == table.method.nunique()
    axes[0].figure.canvas.draw()
    plt.close("all")


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"limits": [0.1, 0.0]}, r"'limits' must be a finite positive number. Got 0.0."),
        ({"limits": []}, r"'limits' must not be empty. Got \[\]."),
        ({"measures": "parity"}, "'measures' must be one of .*Got 'parity'."),
        ({"measures": []}, r"one of 'methods' must support one of 'measures', \[\]. Got \['lr'\]."),
        ({"methods": "nermm"}, "'methods' must be one of .*Got 'nermm'."),
        (
            {"methods": [METHODS["pr"]]},
            "each of 'methods' must be one of LEVEL_METHODS or have no grid. Got 'pr' with",
        ),
        (
            {"methods": "exp-gradient", "measures": "neutrality_risk"},
            r"one of 'methods' must support one of 'measures', \['neutrality_risk'\]. Got 'exp-gradient'.",
        ),
    ],
)
def test_bad_input(change, text):
    with pytest.raises(ValueError, match=text):
        levels(**{**FEW, "methods": ["lr"], **change})


def test_bad_tables_and_panels():
    with pytest.raises(
        ValueError, match=r"'table' must come from nerm.experiments.levels. Got a table without 'accurac"
    ):
        level_means(pd.DataFrame({"dataset": []}))
    table = levels(**FEW, methods=["lr"])
    with pytest.raises(ValueError, match=r"'dataset' must be one of 'diabetes'. Got 'german'."):
        plots.level_panel(table, "german")
    with pytest.raises(
        ValueError, match=r"'measure' must be one of 'calders_verwer_score'. Got 'neutrality_risk'."
    ):
        plots.level_panel(table, measure="neutrality_risk")
    with pytest.raises(ValueError, match=r"'quality' must be one of 'accuracy', 'auc'. Got 'loss'."):
        plots.level_panel(table, quality="loss")


def test_a_neutral_head_reaches_its_limit():
    """The head and the boosted trees with group thresholds are methods like the others, by name."""
    given = {**FEW, "lam": 1.0, "methods": ["head", "boosted-thresholds", "nerm"], "limits": 0.1}
    table = acs(**given)
    assert set(table["method"]) == {"head", "boosted-thresholds", "nerm"}
    assert (table["measure"] == "calders_verwer_score").all()
    assert table.groupby("method")["sees_group"].first().to_dict() == {"boosted-thresholds": True, "head": False, "nerm": False}  # fmt: skip
    assert set(table["status"]) <= {"ok", "collapsed"}, table[["method", "status", "reason"]].to_string()
