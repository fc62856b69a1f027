"""Defects of files, names and answers that were found once and must not return."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys

import pytest

from nerm.cli import main
from nerm.errors import InvalidInputError
from tests.cli.conftest import ROLES, as_csv, census
from tests.cli.test_bad_input import refused

HARD = ("--eta", "1", "--solver", "interior-point", "--tol", "1e-16")  # more than floats can reach


@pytest.fixture
def model(nerm, data, tmp_path):
    path = tmp_path / "m.nerm"
    assert nerm("fit", data, *ROLES, "--eta", "0.5", "--out", path, "-q").code == 0
    return path


def run(*arguments, **environment):
    """Run `python -m nerm` as a process of its own."""
    command = [sys.executable, "-m", "nerm", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, env={**os.environ, **environment}, check=False)


def test_names_are_not_markup(nerm, tmp_path):
    """Square brackets and colons of names and values reach the screen as they are."""
    rows = [{**{k: v for k, v in r.items() if k not in ("sex", "income")}} for r in census()]
    for row, old in zip(rows, census(), strict=True):
        row |= {"sex[/red]": old["sex"], "pay[bold]:smile:": old["income"].replace(">50K", "[/b]high")}
    path = tmp_path / "odd.csv"
    path.write_text(as_csv(rows), encoding="utf-8")
    roles = ("--target", "pay[bold]:smile:", "--viewpoint", "sex[/red]", "--positive", "[/b]high")
    for command in (("fit", "--bounds", "--eta", "0.5"), ("tradeoff", "--etas", "0,1")):
        ran = nerm(command[0], path, *roles, *command[1:], "-q")
        assert ran.code == 0, ran.err
        link = "by" if command[0] == "fit" else "neutral to"
        title = " ".join(ran.out.split()).replace("high, ", "high ")
        assert f"pay[bold]:smile: = [/b]high {link} sex[/red]" in title
    assert "sex[/red] = male" in nerm("fit", path, *roles, "--eta", "0.5", "-q").out


def test_progress_is_not_markup(monkeypatch):
    from nerm.cli.console import Console

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    with Console().progress("[/b]") as progress:
        progress("sex[/red]")


@pytest.mark.long
def test_python_m_nerm_is_the_command():
    import nerm as package

    ran = run("--version")
    assert (ran.returncode, ran.stdout.decode()) == (0, f"nerm {package.__version__}{os.linesep}")
    assert run("fit", "none.csv", *ROLES).returncode == 2
    bare = run()
    assert bare.returncode == 2
    assert b"Usage: nerm" in bare.stderr


@pytest.mark.long
@pytest.mark.parametrize("command", ["fit", "bound"])
def test_what_was_not_certified_is_not_success(nerm, data, command):
    ran = nerm(command, data, *ROLES, *HARD, "--json")
    assert ran.code == 3
    assert "not certified" in ran.err
    assert json.loads(ran.out)["status"] == "inaccurate"


@pytest.mark.long
def test_an_uncertified_study(nerm, data, tmp_path, monkeypatch):
    """One point that was not certified decides the exit code of every command that makes a study."""
    from dataclasses import replace

    from nerm import Status
    from nerm.report import study as report
    from nerm.report.fitting import Level

    true_study = report.run_study

    def doubtful(task, settings, levels=None, **options):
        study = true_study(task, replace(settings, etas=(0.0, 1.0)), [Level(eta=0.0), Level(eta=1.0)])
        classifier = study.points[-1].model.classifier
        classifier.solutions_ = (replace(classifier.solutions_[0], status=Status.INACCURATE),)
        return study

    monkeypatch.setattr(report, "run_study", doubtful)
    for arguments in (
        ("demo", "--folder", tmp_path),
        ("tradeoff", data, *ROLES),
        ("fit", data, *ROLES, "--report", tmp_path / "r.html"),
    ):
        ran = nerm(*arguments)
        assert ran.code == 3
        assert "not certified: η = 1 (inaccurate)" in ran.err


def test_skipped_rows_are_told_and_keep_their_numbers(nerm, model, tmp_path):
    lines = as_csv(census(6)).splitlines()
    lines[3] = "#### broken ####"
    path = tmp_path / "broken.csv"
    path.write_text("\n".join(lines))
    ran = nerm("predict", model, path, "--skip-bad-rows")
    assert [row["row"] for row in csv.DictReader(io.StringIO(ran.out))] == ["1", "2", "4", "5", "6"]
    assert "1 rows with a wrong number of fields were left out" in ran.err
    plain = json.loads(nerm("predict", model, path, "--skip-bad-rows", "--json").out)
    assert [row["row"] for row in plain["predictions"]] == [1, 2, 4, 5, 6]
    assert "1 rows with a wrong number of fields were left out" in plain["notes"]


def test_outputs_do_not_overwrite_inputs_or_each_other(nerm, data, model, tmp_path):
    link = tmp_path / "link.svg"
    link.symlink_to(data)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    beside = tmp_path / "sub" / ".." / "x.svg"
    (tmp_path / "sub").mkdir()
    x = tmp_path / "x.svg"
    refused(nerm("fit", data, *ROLES, "--out", data), "--out must be another file than the data")
    refused(nerm("fit", data, *ROLES, "--report", data), "--report must be another file than the data")
    refused(
        nerm("fit", data, *ROLES, "--out", x, "--report", beside), "--report must be another file than --out"
    )
    refused(nerm("tradeoff", data, *ROLES, "--figure", x, "--report", beside), "--report", "--figure")
    refused(nerm("tradeoff", data, *ROLES, "--figure", link), "--figure", "the data")
    refused(nerm("predict", model, data, "--out", data), "--out", "the data")
    refused(nerm("predict", model, data, "--out", model), "--out", "the model")
    refused(nerm("reproduce", "convergence", "--results", x, "--figure", x), "--figure", "--results")
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


@pytest.mark.parametrize("name", ["row", "score", "prediction"])
def test_kept_columns_with_the_names_of_new_ones(nerm, model, tmp_path, name):
    path = tmp_path / "again.csv"
    path.write_text(as_csv([{**row, name: "7"} for row in census(5)]))
    for keep in (name, "all", f"age,{name}"):
        refused(nerm("predict", model, path, "--keep", keep), "--keep", repr(name))
    assert nerm("predict", model, path, "--keep", "age").code == 0


@pytest.mark.parametrize("command", ["fit", "tradeoff", "bound"])
def test_a_negative_seed(nerm, data, command):
    refused(nerm(command, data, *ROLES, "--seed", "-1"), "--seed", "-1")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda content: content.pop("recipe"), "lacks 'recipe'"),
        (lambda content: content["recipe"].pop("columns"), "lacks 'columns'"),
        (lambda content: content.update(target={"strange": 1}), "a damaged part"),
        (lambda content: content.update(recipe=None), "a damaged part"),
    ],
)
def test_a_model_without_its_recipe(nerm, data, model, change, words):
    from nerm import io as saving

    content = saving.load(model).to_dict()
    change(content)
    saving.save(content, model)
    refused(nerm("predict", model, data), "must hold a recipe", words, "nerm fit --out")


def test_narrow_encoding_of_standard_output(data, model, tmp_path, monkeypatch):
    """η and → are no Latin-1: they are escaped, never a traceback."""

    def printed(*arguments):
        buffer = io.BytesIO()
        stream = io.TextIOWrapper(buffer, "latin-1")
        monkeypatch.setattr(sys, "stdout", stream)
        with pytest.raises(SystemExit) as ended:
            main([str(a) for a in arguments])
        stream.flush()
        assert ended.value.code == 0
        return buffer.getvalue()

    study = ("tradeoff", data, *ROLES, "--etas", "0,1", "-q")
    assert b"\\u03b7" in printed(*study)
    assert "η" in json.loads(printed(*study, "--json"))["objective"]
    greek = tmp_path / "greek.csv"
    greek.write_text(as_csv([{**row, "job": "ναύτης"} for row in census(3)]), encoding="utf-8")
    assert b"\\u03bd" in printed("predict", model, greek, "--keep", "job")


@pytest.mark.long
def test_bounds_only_on_request(nerm, data, monkeypatch):
    """A fit neither pays for bounds that nobody asked for nor fails on them."""
    from nerm import bounds

    asked = []

    def guarantee(*_, **__):
        asked.append(1)
        raise InvalidInputError("the sample must be one", "another", "Wait")

    monkeypatch.setattr(bounds, "guarantee", guarantee)
    plain = nerm("fit", data, *ROLES, "--eta", "0.5", "--json")
    assert (plain.code, asked, json.loads(plain.out)["bounds"]) == (0, [], [])
    ran = nerm("fit", data, *ROLES, "--eta", "0.5", "--bounds")
    assert (ran.code, asked) == (0, [1])
    assert "No bounds: the sample must be one. Got another. Wait." in ran.out
    assert json.loads(nerm("fit", data, *ROLES, "--eta", "0.5", "--bounds", "--json").out)[
        "no_bounds"
    ].startswith("the sample")
    refused(nerm("bound", data, *ROLES, "-q"), "the sample must be one")
