"""Prediction in parts, cells that could harm, and the model as an object."""

from __future__ import annotations

import csv
import io
import json
import sys

import numpy as np
import pandas as pd
import pytest

import nerm as package
from nerm.tables import reading
from tests.tables.habits import clean, frame

ROLES = ("--target", "loan", "--viewpoint", "sex")


@pytest.fixture
def fitted(nerm, tmp_path):
    data, model = tmp_path / "census.csv", tmp_path / "m.nerm"
    clean(data)
    assert nerm("fit", data, *ROLES, "--eta", "0.3", "--out", model, "-q").code == 0
    return data, model


def test_a_loaded_model_takes_frames(nerm, fitted):
    data, path = fitted
    model = package.load(path)
    rows = list(csv.DictReader(io.StringIO(nerm("predict", path, data).out)))
    scores = [float(row["score"]) for row in rows]
    import polars
    import pyarrow

    for made in (frame(), polars.DataFrame(frame().to_dict("list")), pyarrow.Table.from_pandas(frame())):
        np.testing.assert_allclose(model.decision_function(made), scores, rtol=1e-12)
        assert model.predict(made).tolist() == [row["prediction"] for row in rows]
    with pytest.warns(UserWarning, match="'job': 240 values not seen in fit"):
        model.predict(frame().assign(job="pilot"))
    with pytest.raises(package.InvalidInputError, match="no column 'pay'"):
        model.predict(frame()[["job"]])


def test_parts_give_what_the_whole_gives(nerm, fitted, tmp_path, monkeypatch):
    data, model = fitted
    text = data.read_text().replace("nurse", "pilot", 5).splitlines()
    data.write_text("\n".join(text))
    options = ("--keep", "job,loan")
    whole, told = (
        nerm("predict", model, data, *options),
        json.loads(nerm("predict", model, data, *options, "--json").out),
    )
    monkeypatch.setattr(reading, "PART_CELLS", 42)  # 7 rows per part
    out = tmp_path / "scored.csv"
    assert nerm("predict", model, data, *options, "--out", out).code == 0
    parts = pd.read_csv(out)
    expected = pd.read_csv(io.StringIO(whole.out))
    pd.testing.assert_frame_equal(parts, expected)
    ran = nerm("predict", model, data, *options)
    assert ran.out == out.read_text()
    assert ran.err == whole.err
    assert "'job': 5 values not seen in fit" in ran.err
    again = json.loads(nerm("predict", model, data, *options, "--json").out)
    assert again["notes"] == told["notes"]
    assert [row["prediction"] for row in again["predictions"]] == expected["prediction"].tolist()


def test_an_error_in_a_later_part_leaves_no_file(nerm, fitted, tmp_path, monkeypatch):
    data, model = fitted
    lines = data.read_text().splitlines()
    lines[200] = lines[200].replace(lines[200].split(",")[0], "much")
    data.write_text("\n".join(lines))
    monkeypatch.setattr(reading, "PART_CELLS", 300)  # 50 rows per part
    before = sorted(path.name for path in tmp_path.iterdir())
    ran = nerm("predict", model, data, "--out", tmp_path / "scored.csv")
    assert ran.code == 2
    assert "'much' in row 200" in ran.err
    assert sorted(path.name for path in tmp_path.iterdir()) == before


def test_progress_on_a_terminal(nerm, fitted, tmp_path, monkeypatch):
    from nerm.cli import console

    told = []

    class Progress:
        def __init__(self, *_):
            pass

        def __enter__(self):
            return told.append

        def __exit__(self, *_):
            pass

    monkeypatch.setattr(console.Console, "progress", Progress)
    monkeypatch.setattr(reading, "PART_CELLS", 600)  # 100 rows per part
    data, model = fitted
    assert nerm("predict", model, data, "--out", tmp_path / "s.csv").code == 0
    assert len(told) == 3
    assert told[-1] == "100%"


def test_standard_input(nerm, fitted, monkeypatch):
    data, model = fitted

    class Stdin:
        buffer = io.BufferedReader(io.BytesIO(data.read_bytes()))

    expected = nerm("predict", model, data).out
    monkeypatch.setattr(sys, "stdin", Stdin)
    assert nerm("predict", model, "-").out == expected


def test_cells_that_a_spreadsheet_would_run(nerm, fitted, tmp_path):
    _, model = fitted
    words = ["=1+1", "+cmd", "-2.5", "@sum", "plain", "- minus"]
    path = tmp_path / "new.csv"
    frame(6).assign(memo=words).to_csv(path, index=False)
    kept = [
        row["memo"] for row in csv.DictReader(io.StringIO(nerm("predict", model, path, "--keep", "memo").out))
    ]
    assert kept == words
    out = nerm("predict", model, path, "--keep", "memo", "--safe-cells").out
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["memo"] for row in rows] == ["'=1+1", "'+cmd", "-2.5", "'@sum", "plain", "'- minus"]
    assert all(np.isfinite(float(row["score"])) for row in rows)


def test_control_characters_are_not_sent_to_the_terminal(nerm, tmp_path):
    evil = "\x1b[31mred\x9b2J\u202e"
    path = tmp_path / "evil.csv"
    data = frame().assign(sex=np.where(frame()["sex"] == "male", evil, "female"))
    data.rename(columns={"pay": f"pay{evil}"}).to_csv(path, index=False)
    for command in (
        ("fit", "--eta", "0.3"),
        ("fit", "--eta", "0.3", "--json"),
        ("tradeoff", "--etas", "0,1"),
    ):
        ran = nerm(command[0], path, *ROLES, *command[1:])
        assert "red" in ran.out
        for letter in "\x1b\x9b\u202e":
            assert letter not in ran.out + ran.err
    said = json.loads(nerm("fit", path, *ROLES, "--eta", "0.3", "--json").out)
    assert evil in said["viewpoint"].values()  # machines get it back as it was
    ran = nerm("fit", path, "--target", "loan", "--viewpoint", evil)
    assert ran.code == 2
    assert "\x1b" not in ran.err


def test_probabilities_of_a_logistic_model(nerm, fitted, tmp_path):
    data, path = fitted
    assert not hasattr(package.load(path), "predict_proba")
    other = tmp_path / "logistic.nerm"
    assert nerm("fit", data, *ROLES, "--eta", "0.3", "--loss", "logistic", "--out", other, "-q").code == 0
    model = package.load(other)
    shares, scores = model.predict_proba(frame()), model.decision_function(frame())
    assert model.classes_.tolist() == ["no", "yes"]
    np.testing.assert_allclose(shares[:, 1], 1 / (1 + np.exp(-scores)), atol=1e-9)
