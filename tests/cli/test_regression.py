"""A table whose target is a number: the command says so, fits, predicts, audits and saves."""

from __future__ import annotations

import json
import shlex

import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_2samp

from tests.report.test_page import Balanced


@pytest.fixture
def census(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"skill": rng.normal(size=400).round(3), "sex": np.tile(["f", "m"], 200)})
    frame["place"] = (rng.random(400) < np.where(frame["sex"] == "m", 0.8, 0.2)).astype(int)
    frame["pay"] = (30 + 5 * frame["skill"] + 4 * frame["place"] + rng.normal(size=400)).round(2)
    path = tmp_path / "census.csv"
    frame.to_csv(path, index=False)
    return str(path)


ROLES = ("--target", "pay", "--viewpoint", "sex")


def test_fit_predict_and_audit_of_a_number(nerm, census, tmp_path):
    model, scored = tmp_path / "model.nerm", tmp_path / "scored.csv"
    ran = nerm("fit", census, *ROLES, "--limit", 0.1, "--test", 0, "--out", model, "--json")
    assert ran.code == 0, ran.err
    assert "'pay' is read as a number: a regression" in ran.err
    found = json.loads(ran.out)
    assert abs(found["measures"]["mean_difference"]) == pytest.approx(0.1, abs=1e-3)
    assert "Target: difference in mean predictions of at most 0.1. Result: " in found["said"]
    assert nerm("predict", model, census, "--out", scored, "--keep", "pay,sex").code == 0
    frame = pd.read_csv(scored)
    means = frame.groupby("sex")["prediction"].mean()
    apart = means["m"] - means["f"]
    audited = json.loads(nerm("audit", scored, *ROLES, "--score", "score", "--json").out)
    assert abs(audited["measures"]["mean_difference"]) == pytest.approx(abs(apart), abs=1e-9)
    error = frame["prediction"] - frame["pay"]
    assert audited["measures"]["rmse"] == pytest.approx(np.sqrt((error**2).mean()))
    groups = {g["name"]: g for g in audited["groups"]}
    for sex in "fm":
        assert groups[f"sex = {sex}"]["mean_prediction"] == pytest.approx(means[sex])
        assert groups[f"sex = {sex}"]["mean_error"] == pytest.approx(error[frame["sex"] == sex].mean())
    shown = nerm("audit", scored, *ROLES, "--score", "score").out
    assert "mean for v = +1 minus mean for v = -1" in " ".join(shown.split())
    assert "v = +1 is sex = m" in shown


def test_the_trade_off_of_a_number_saves_within_the_budget_or_nothing(nerm, census, tmp_path):
    """The model with the last limit was saved: a constant, without a word and with exit code 0."""
    saved, roles = tmp_path / "model.nerm", ("--target", "pay", "--viewpoint", "sex")
    ran = nerm(
        "tradeoff", census, *roles, "--limits", "2,0.1", "--budget", "0.001", "--save", saved, "--json"
    )
    assert (ran.code, saved.exists()) == (5, False)
    found = json.loads(ran.out)
    assert [point["limit"] for point in found["points"]] == [None, 2.0, 0.1]
    assert found["chosen"] == "no limit"
    ran = nerm("tradeoff", census, *roles, "--limits", "2,0.1", "--budget", "0.5", "--save", saved)
    assert (ran.code, saved.exists()) == (0, True)
    assert "→ limit 0.1" in ran.out
    assert "for an R² of 0." in " ".join(ran.out.split())
    ran = nerm("tradeoff", census, *roles, "--json")
    assert "limits by default, in units and standard deviations of 'pay': 2.72 (0.5 SD), 1.09" in ran.err
    assert [point["limit"] for point in json.loads(ran.out)["points"]] == [None, 2.72, 1.09, 0.544]


def test_which_targets_are_numbers(nerm, census, tmp_path):
    refused = nerm("fit", census, *ROLES, "--task", "classification")
    assert refused.code == 2
    assert "the target must have two values" in refused.err
    assert "or take it as a number with --task regression" in refused.err
    words = nerm("fit", census, "--target", "sex", "--viewpoint", "place", "--task", "regression")
    assert "must be a number in every row. Got 'f' in row 1 of 'sex'" in words.err
    # A word among amounts in Euro: they stay amounts, and the word is named.
    frame = pd.read_csv(census)
    frame["pay"] = [f"{1000 * pay:,.2f} €".translate(str.maketrans(",.", ".,")) for pay in frame["pay"]]
    frame.loc[[3, 8], "pay"] = "k.A."
    path = tmp_path / "euro.csv"
    frame.to_csv(path, sep=";", index=False)
    ran = nerm("fit", path, *ROLES)
    assert ran.code == 2
    assert "Got 'k.A.' in row 4 of 'pay'. Correct it, declare it missing with --missing 'k.A.'" in ran.err
    ran = nerm("fit", path, *ROLES, "--missing", "k.A.", "--limit", "100", "--test", 0, "--json")
    assert ran.code == 0, ran.err
    assert abs(json.loads(ran.out)["measures"]["mean_difference"]) == pytest.approx(100, abs=1)


@pytest.mark.parametrize(
    "given",
    [
        ("fit", "--bounds"),
        ("fit", "--measure", "odds"),
        ("fit", "--eta", "0.5"),
        ("fit", "--class-weight", "none"),
        ("tradeoff", "--methods", "all"),
        ("tradeoff", "--compare-features"),
        ("audit", "--score", "skill", "--threshold", "0.5"),
    ],
)
def test_options_of_decisions_are_refused_for_a_number(nerm, census, given):
    """They were ignored in silence."""
    ran = nerm(given[0], census, *ROLES, *given[1:])
    assert (ran.code, ran.out) == (2, "")
    option = next(word for word in reversed(given) if word.startswith("--"))
    assert f"must be those of a regression, because the target is a number. Got {option}" in ran.err


@pytest.mark.parametrize("groups", [2, 3])
def test_reports_show_errors_and_distributions(nerm, census, tmp_path, groups):
    """--report was refused for a target of numbers."""
    page, frame = tmp_path / "report.html", pd.read_csv(census)
    if groups > 2:
        frame.loc[::5, "sex"] = "x"
        frame.to_csv(census, index=False)
    ran = nerm("fit", census, *ROLES, "--limit", "0.5", "--report", page, "--json")
    assert ran.code == 0, ran.err
    parser, html = Balanced(), page.read_text("utf-8")
    parser.feed(html)
    assert parser.open == []
    assert [point in html for point in ("no limit", "limit 2.72", "limit 0.5")] == [True] * 3
    assert "of 1,000" not in html
    parts = html.split("<section data-choice=")[1:]
    assert all(part.count("<svg") == 2 for part in parts)
    measures = json.loads(ran.out)["measures"]
    (part,) = (part for part in parts if "(the choice made here)" in part)
    assert f">KS distance {measures['ks_distance']:.3f}</text>" in part
    assert f"The mean squared error is {measures['rmse'] ** 2:.3g}; without neutrality it is " in part
    assert f"has {measures['rmse'] ** 2 / (1 - measures['r2']):.3g}. So R² is {measures['r2']:.3f}" in part
    assert "relative duality gap" in part
    assert ("the rest</text>" in part) == (groups > 2)


def test_the_audit_of_predictions_shows_what_else_there_is(nerm, census, tmp_path):
    page, scored, frame = tmp_path / "audit.html", tmp_path / "scored.csv", pd.read_csv(census)
    frame["guess"] = 30 + 5 * frame["skill"] + 4 * frame["place"]
    frame.to_csv(scored, index=False)
    ran = nerm("audit", scored, *ROLES, "--score", "guess", "--report", page, "--json")
    assert ran.code == 0, ran.err
    found = json.loads(ran.out)
    men = frame["sex"] == "m"
    one, other = frame["guess"][men], frame["guess"][~men]
    assert found["measures"]["ks_distance"] == pytest.approx(ks_2samp(one, other).statistic)
    signed = np.corrcoef(frame["guess"], men)[0, 1]
    assert abs(found["measures"]["correlation"]) == pytest.approx(abs(signed))
    moved, plain, *_ = found["alternatives"]
    assert (moved["label"], plain["label"]) == ("one constant per group", "nerm, no limit")
    assert moved["mean_difference"] == pytest.approx(0, abs=1e-9)
    html = page.read_text("utf-8")
    gap = np.abs([(one <= at).mean() - (other <= at).mean() for at in frame["guess"]]).max()
    assert f">KS distance {gap:.3f}</text>" in html
    assert "Of the more neutral alternatives, the most accurate is" in html


def test_the_plain_regression_of_a_trade_off_can_be_fitted_again(nerm, census, tmp_path):
    """The printed command has --eta 0, which was refused."""
    ran = nerm("tradeoff", census, *ROLES, "--budget", "0", "--figure", tmp_path / "front.svg", "--json")
    command = shlex.split(json.loads(ran.out)["points"][0]["command"])
    assert command[-4:] == ["--eta", "0", "--out", "model.nerm"]
    assert nerm(*command[1:-2], "--report", tmp_path / "report.html").code == 0
    assert "R²" in (tmp_path / "front.svg").read_text("utf-8")


def test_a_limit_above_1_is_refused_for_decisions(nerm, census):
    ran = nerm("fit", census, "--target", "sex", "--viewpoint", "place", "--limit", "5")
    assert ran.code == 2
    assert "--limit must be at most 1 for a classification, not 5" in ran.err


@pytest.mark.parametrize("groups", ["fm", "fmx"])
def test_rows_that_prove_a_promise_do_not_teach_the_coding(monkeypatch, groups):
    from nerm.estimators import score_limits
    from nerm.report.fitting import Level, Settings, Training
    from nerm.tables import make_task, survey, table_of

    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=900), "sex": rng.choice(list(groups), 900)})
    frame["pay"] = frame["x"] + rng.normal(size=900)
    task = survey(make_task(table_of(frame), "pay", "sex"))
    settings = Settings(measure="mean_difference", loss="squared-error", confidence=0.9)
    training, taught, within = Training(task, settings), [], score_limits.within

    def spy(model, rows, *more):
        taught.append(rows.codes)
        return within(model, rows, *more)

    monkeypatch.setattr(score_limits, "within", spy)
    training.fit(Level(limit=9.0))
    np.testing.assert_allclose(taught[0], frame["pay"].to_numpy()[training.learned])


def test_a_promise_for_numbers_that_cannot_be_kept_is_refused_in_words(nerm, census):
    ran = nerm("fit", census, *ROLES, "--limit", "1", "--confidence", "0.9")
    assert (ran.code, ran.out) == (5, "")
    assert "No model has |difference in mean predictions| <= 1 on new rows with probability 0.9" in ran.err
