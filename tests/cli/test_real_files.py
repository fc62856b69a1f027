"""The published files of Adult, German and Bank with their raw columns, straight from their folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

pytestmark = pytest.mark.long

HOME = Path(os.environ.get("NERM_DATA") or Path(__file__).parents[3] / "shared" / "data")
FILES = {
    "adult": ("adult/adult.test.gz", ("--columns", "@adult", "--skip-lines", "1"), ("class", "sex"), 16281),
    "german": ("german/german.data.gz", ("--columns", "@german"), ("class", "foreign_worker"), 1000),
    "bank": ("bank/bank-full.csv.gz", (), ("y", "loan"), 45211),
}


def published(name):
    file, reading, (target, viewpoint), rows = FILES[name]
    if not (HOME / file).is_file():
        pytest.skip(f"no {file} in the folder that NERM_DATA names")
    return HOME / file, reading, ("--target", target, "--viewpoint", viewpoint), rows


@pytest.mark.parametrize("name", FILES)
def test_fit_predict_audit(nerm, name, tmp_path):
    path, reading, roles, rows = published(name)
    model, scored = tmp_path / "m.nerm", tmp_path / "scored.csv"
    ran = nerm("fit", path, *reading, *roles, "--eta", "0.1", "--out", model, "--json")
    assert ran.code == 0, ran.err
    plain = json.loads(ran.out)
    assert plain["relative_gap"] <= 1e-6
    assert plain["measures"]["auc"] > 0.7
    assert nerm("predict", model, path, *reading, "--keep", ",".join(roles[1::2]), "--out", scored).code == 0
    audited = json.loads(nerm("audit", scored, *roles, "--score", "score", "--json").out)
    assert audited["rows"] == rows
    assert audited["measures"]["auc"] == pytest.approx(plain["measures"]["auc"], abs=0.08)


@pytest.mark.slow
@pytest.mark.parametrize("name", FILES)
def test_tradeoff(nerm, name, tmp_path):
    path, reading, roles, _ = published(name)
    page = tmp_path / "front.html"
    options = ("--etas", "0,0.1,1,10", "--class-weight", "balanced")
    ran = nerm("tradeoff", path, *reading, *roles, *options, "--report", page, "--json")
    assert ran.code == 0, ran.err
    points = json.loads(ran.out)["points"]
    assert all(p["certified_gap"] <= 1e-6 for p in points)
    assert page.is_file()


@pytest.mark.slow
@pytest.mark.parametrize(("name", "most"), [("adult", 0.035), ("bank", 0.035), ("german", 0.06)])
def test_the_default_is_a_model_that_one_would_use(nerm, name, most):
    """Nearly neutral on held-out rows, nearly as accurate as logistic regression, and nobody's rate collapses."""
    path, reading, roles, _ = published(name)
    positive = ("--positive", "1") if name == "german" else ()
    limits = ("--limits", "0.02", "--budget", "0.05")
    ran = nerm("tradeoff", path, *reading, *roles, *positive, *limits, "--json")
    assert ran.code == 0, ran.err
    plain = json.loads(ran.out)
    point = next(p for p in plain["points"] if p["limit"] == 0.02)
    usual = next(other for other in plain["others"] if other["method"] == "logistic regression")
    assert point["status"] in ("optimal", "stationary")
    assert abs(point["calders_verwer_score"]) <= min(most, abs(usual["calders_verwer_score"]))
    assert point["accuracy"] >= usual["accuracy"] - 0.035
    for group in point["groups"]:
        assert group["positive_rate"] >= group["base_rate"] / 2
    assert plain["chosen"] == "limit 0.02"
