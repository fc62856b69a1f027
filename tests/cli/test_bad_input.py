"""Every kind of bad input: one sentence on standard error, exit code 2, no traceback, nothing written."""

from __future__ import annotations

import gzip
import os
from pathlib import Path

import pytest

from tests.cli.conftest import ROLES, as_csv, census


def refused(ran, *words):
    """Check a refusal, and that its sentence holds these words."""
    assert ran.code == 2
    assert ran.out == ""
    assert "Traceback" not in ran.err
    assert ran.err.count("\n") == 1, ran.err
    assert ran.err.startswith("nerm: ")
    for word in words:
        assert word in ran.err
    return ran


def write(tmp_path, text, name="data.csv"):
    path = tmp_path / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


COMMANDS = ("fit", "tradeoff", "bound")


@pytest.mark.parametrize("command", COMMANDS)
def test_a_file_that_is_not_there(nerm, command, tmp_path):
    refused(nerm(command, tmp_path / "none.csv", *ROLES), "no file", "none.csv")


def test_no_file_for_predict_and_audit(nerm, tmp_path, data):
    refused(nerm("predict", tmp_path / "none.nerm", data), "model file must exist")
    refused(nerm("audit", tmp_path / "none.csv", *ROLES, "--score", "s"), "no file")


def test_a_folder_instead_of_a_file(nerm, tmp_path):
    refused(nerm("fit", tmp_path, *ROLES), "must be a file", "folder")


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("text", ["", "\n\n  \n"])
def test_an_empty_file(nerm, command, text, tmp_path):
    refused(nerm(command, write(tmp_path, text), *ROLES), "an empty file")


def test_only_a_header(nerm, tmp_path):
    refused(nerm("fit", write(tmp_path, "age,sex,income\n"), *ROLES), "only a header")


def test_not_utf8(nerm, tmp_path):
    text = as_csv(census()).replace("nurse", "infirmière").encode("latin-1")
    refused(nerm("fit", write(tmp_path, text), *ROLES), "must be UTF-8", "0xe8 in line", "--encoding")


def test_not_text(nerm, tmp_path):
    refused(nerm("fit", write(tmp_path, b"a,b\n\0\0,1\n"), *ROLES), "NUL byte in line 2")


def test_a_damaged_gzip_file(nerm, tmp_path):
    whole = gzip.compress(as_csv(census()).encode())
    refused(nerm("fit", write(tmp_path, whole[:-30], "data.csv.gz"), *ROLES), "be a whole file")


def test_a_quote_that_is_never_closed(nerm, tmp_path):
    refused(
        nerm("fit", write(tmp_path, 'a,sex,income\n"1,f,2\n3,m,4\n'), *ROLES), "well-formed CSV", "line 2"
    )


@pytest.mark.parametrize("text", ["income\n1\n0\n", "income"])
def test_one_column(nerm, text, tmp_path):
    refused(nerm("fit", write(tmp_path, text), *ROLES), "at least two columns")


def test_a_target_of_three_values(nerm, tmp_path):
    rows = census()
    rows[0]["income"] = "unsure"
    path = write(tmp_path, as_csv(rows))
    refused(nerm("fit", path, *ROLES), "target must have two values", "3 in 'income'", "--positive")
    assert nerm("fit", path, *ROLES, "--positive", ">50K", "--eta", 0.5).code == 0


def test_a_viewpoint_of_many_values(nerm, data):
    hours = ("--target", "income", "--viewpoint", "hours")
    refused(nerm("fit", data, *hours), "at most 12 groups", "--favoured")
    refused(nerm("fit", data, *hours, "--favoured", "none"), "--favoured must be a value of 'hours'")
    refused(
        nerm("fit", data, "--target", "income", "--viewpoint", "sex,job", "--favoured", "male"),
        "one viewpoint",
    )


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("column", ["sex", "income"])
def test_a_constant_viewpoint_or_target(nerm, command, column, tmp_path):
    rows = [{**row, column: "same"} for row in census()]
    refused(
        nerm(command, write(tmp_path, as_csv(rows)), *ROLES), "must have two values", "'same' in every row"
    )


def test_duplicate_column_names(nerm, tmp_path):
    text = as_csv(census()).replace("hours", "age", 1)
    refused(nerm("fit", write(tmp_path, text), *ROLES), "name every column once", "'age' 2 times")


def test_missing_column_names(nerm, tmp_path):
    text = as_csv(census()).replace("hours", "", 1)
    ran = nerm("fit", write(tmp_path, text), *ROLES, "--eta", 0.1)
    assert ran.code == 0
    assert "column 2 has no name in the header and is called 'c2'" in ran.err


def test_columns_that_are_not_there(nerm, data):
    refused(nerm("fit", data, "--target", "wealth", "--viewpoint", "sex"), "'wealth'", "'income'")
    refused(nerm("fit", data, "--target", "income", "--viewpoint", "race"), "'race'")
    refused(nerm("fit", data, *ROLES, "--leave-out", "race"), "'race'")
    refused(nerm("fit", data, *ROLES, "--nominal", "race"), "'race'")
    refused(nerm("fit", data, *ROLES, "--positive", "rich"), "--positive", "'rich'")


def test_garbage_rows(nerm, tmp_path):
    lines = as_csv(census()).splitlines()
    for i in range(5, len(lines), 10):
        lines[i] = "#### broken ####"
    path = write(tmp_path, "\n".join(lines))
    refused(nerm("fit", path, *ROLES), "24 of 240 rows (10 %)", "first 1 in line 6", "--skip-bad-rows")
    ran = nerm("fit", path, *ROLES, "--eta", 0.5, "--skip-bad-rows")
    assert ran.code == 0
    assert "24 rows with a wrong number of fields were left out" in ran.err


def test_garbage_values(nerm, tmp_path):
    rows = census()
    for row in rows[3::10]:
        row["hours"] = "x#!"
    path = write(tmp_path, as_csv(rows))
    refused(nerm("fit", path, *ROLES), "'hours' must hold numbers only", "24 other values", "'x#!' in row 4")
    ran = nerm("fit", path, *ROLES, "--missing", "x#!", "--test", 0, "--eta", 0.5)
    assert ran.code == 0
    assert "'hours': 24 values missing (10 %, written 'x#!')" in ran.err


@pytest.mark.parametrize("words", [("m", "f"), ("f", "m")])
def test_a_target_equal_to_the_viewpoint(nerm, words, tmp_path):
    rows = [{**row, "income": words[row["sex"] == "male"]} for row in census()]
    refused(
        nerm("fit", write(tmp_path, as_csv(rows)), *ROLES), "must not divide the rows into the same groups"
    )
    refused(
        nerm("fit", write(tmp_path, as_csv(rows)), "--target", "sex", "--viewpoint", "sex"), "two columns"
    )


def test_model_and_data_with_different_columns(nerm, data, tmp_path):
    model = tmp_path / "m.nerm"
    assert nerm("fit", data, *ROLES, "--eta", 0.5, "--out", model).code == 0
    other = [{k: v for k, v in row.items() if k not in ("hours", "job")} for row in census()]
    refused(nerm("predict", model, write(tmp_path, as_csv(other))), "no column 'hours' (and 1 more missing)")
    wrong = [{**row, "hours": "many"} for row in census()]
    refused(nerm("predict", model, write(tmp_path, as_csv(wrong))), "'hours'", "'many' in row 1")
    refused(nerm("predict", model, data, "--keep", "wealth"), "'wealth'")


def test_a_model_file_that_is_none(nerm, data, tmp_path):
    refused(nerm("predict", data, data), "written by save()")
    import nerm as package

    saved = tmp_path / "plain.nerm"
    package.NeutralSVC().fit([[0.0], [1.0]], [0, 1]).save(saved)
    refused(nerm("predict", saved, data), "written by nerm fit", "NeutralSVC")


OUTPUTS = {
    "fit": ("--out", "--report"),
    "tradeoff": ("--figure", "--report"),
}


@pytest.mark.parametrize(("command", "option"), [(c, o) for c, options in OUTPUTS.items() for o in options])
def test_an_output_folder_that_does_not_exist(nerm, data, tmp_path, command, option):
    before = sorted(os.listdir(tmp_path))
    where = tmp_path / "no" / "such.svg"
    refused(nerm(command, data, *ROLES, option, where), option, "no folder")
    refused(nerm(command, data, *ROLES, option, tmp_path), option, "must name a file")
    assert sorted(os.listdir(tmp_path)) == before


def test_predict_and_demo_without_their_folder(nerm, data, tmp_path):
    refused(
        nerm("predict", tmp_path / "m.nerm", data, "--out", tmp_path / "no" / "p.csv"), "--out", "no folder"
    )
    refused(nerm("demo", "--folder", tmp_path / "no"), "--folder", "no folder")


def refuse_to_write(monkeypatch):
    """Make every folder read-only; permissions do not stop a superuser."""
    monkeypatch.setattr(os, "access", lambda *_: False)


@pytest.mark.parametrize(("command", "option"), [(c, o) for c, options in OUTPUTS.items() for o in options])
def test_an_output_that_cannot_be_written(nerm, data, tmp_path, command, option, monkeypatch):
    before = sorted(os.listdir(tmp_path))
    refuse_to_write(monkeypatch)
    refused(nerm(command, data, *ROLES, option, tmp_path / "x.svg"), option, "can be written")
    assert sorted(os.listdir(tmp_path)) == before


@pytest.mark.long
def test_nothing_half_written_when_the_disk_fills_up(nerm, data, tmp_path, monkeypatch):
    out = tmp_path / "old.svg"
    out.write_text("the old figure")
    before = sorted(os.listdir(tmp_path))

    replace = os.replace

    def full(source, target):  # this folder is: compiled code finds its way into the cache elsewhere
        if tmp_path in Path(target).parents:
            raise OSError(28, "No space left on device")
        replace(source, target)

    monkeypatch.setattr(os, "replace", full)
    etas = ("--etas", "0,1")
    refused(nerm("tradeoff", data, *ROLES, *etas, "--figure", out, "-q"), "No space left")
    refused(nerm("fit", data, *ROLES, "--out", tmp_path / "m.nerm", "-q"), "No space left")
    assert sorted(os.listdir(tmp_path)) == before
    assert out.read_text() == "the old figure"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--loss", "hing"), ("'loss'", "'hing'", "'hinge'")),
        (("--kernel", "rbff"), ("rbff",)),
        (("--solver", "none"), ("'solver'", "'none'")),
        (("--regularizer", "l3"), ("'regularizer'", "'l3'")),
        (("--lam", "-1"), ("--lam",)),
        (("--eta", "nan"), ("eta",)),
        (("--weights", "fair"), ("--weights", "'fair'", "--help")),
        (("--separator", "comma;"), ("'separator'",)),
        (("--columns", "a,b"), ("every row", "2 fields")),
        (("--speed", "9"), ("No such option", "--speed")),
    ],
)
def test_options_that_mean_nothing(nerm, data, arguments, words):
    refused(nerm("fit", data, *ROLES, *arguments, "-q"), *words)


def test_options_of_tradeoff_and_audit(nerm, data):
    refused(nerm("tradeoff", data, *ROLES, "--etas", "0,x"), "--etas", "must be numbers")
    refused(nerm("tradeoff", data, *ROLES, "--figure", "front.png"), ".svg")
    refused(nerm("audit", data, *ROLES), "one of --score, --prediction and --model")
    refused(nerm("audit", data, *ROLES, "--score", "job"), "'job' must be a number", "row 1")
    refused(nerm("audit", data, *ROLES, "--prediction", "job"), "value of 'income'", "row 1")
    refused(nerm("nonsense"), "No such command")
    refused(nerm("fit"), "Missing argument")


def test_too_few_rows_for_a_split(nerm, tmp_path):
    rows = census()
    few = [
        next(r for r in rows if (r["sex"], r["income"]) == pair)
        for pair in (("male", ">50K"), ("female", "<=50K"))
    ]
    few.append({**few[0], "sex": "female"})
    path = write(tmp_path, as_csv(few))
    refused(nerm("fit", path, *ROLES, "-q"), "must hold both values")
    *notes, error = nerm("fit", path, *ROLES).err.splitlines()
    assert "fewer than 30 rows have" in "".join(notes)  # how the table was read is said before
    assert "must hold both values" in error
