"""A table whose target is a number: the command says so, fits, predicts, audits and saves."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def people(tmp_path):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"skill": rng.normal(size=400).round(3), "sex": np.tile(["f", "m"], 200)})
    frame["place"] = (rng.random(400) < np.where(frame["sex"] == "m", 0.8, 0.2)).astype(int)
    frame["pay"] = (30 + 5 * frame["skill"] + 4 * frame["place"] + rng.normal(size=400)).round(2)
    path = tmp_path / "people.csv"
    frame.to_csv(path, index=False)
    return str(path)


def test_fit_predict_and_audit_of_a_number(nerm, people, tmp_path):
    model, scored = tmp_path / "model.nerm", tmp_path / "scored.csv"
    roles = ["--target", "pay", "--viewpoint", "sex"]
    found = nerm("fit", people, *roles, "--limit", 0.1, "--out", model, "--json")
    assert found.code == 0, found.err
    assert "'pay' is read as a number: a regression" in found.err
    plain, within = json.loads(found.out)["measures"]
    assert abs(plain["mean_difference"]) > 1.0
    assert abs(within["mean_difference"]) < abs(plain["mean_difference"])
    assert nerm("predict", model, people, "--out", scored, "--keep", "pay,sex").code == 0
    frame = pd.read_csv(scored)
    apart = frame["prediction"][frame["sex"] == "m"].mean() - frame["prediction"][frame["sex"] == "f"].mean()
    audited = nerm("audit", scored, *roles, "--score", "score", "--json")
    assert json.loads(audited.out)["mean_difference"] == pytest.approx(apart, abs=1e-9)


def test_trade_off_and_task(nerm, people):
    roles = ["--target", "pay", "--viewpoint", "sex"]
    found = nerm("tradeoff", people, *roles, "--limits", "1,0.1", "--json")
    assert [row["limit"] for row in json.loads(found.out)["measures"]] == [None, 1.0, 0.1]
    refused = nerm("fit", people, *roles, "--task", "classification")
    assert refused.code == 2
    assert "the target must have two values" in refused.err
    words = nerm("fit", people, "--target", "sex", "--viewpoint", "place", "--task", "regression")
    assert "the target of a regression must be a number in every row. Got 'f' in 'sex'" in words.err
