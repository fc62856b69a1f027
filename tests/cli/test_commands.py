"""What the commands say and write when all is well."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from tests.cli.conftest import ROLES, N, as_csv, census

SMALL = ("--etas", "0,0.5,2")


def test_fit_predict_audit_agree(nerm, data, tmp_path):
    """The saved model, applied to the file, gives what the library computes from the same scores."""
    model, scored = tmp_path / "m.nerm", tmp_path / "scored.csv"
    fitted = nerm("fit", data, *ROLES, "--eta", "0.5", "--out", model, "--json")
    assert fitted.code == 0
    plain = json.loads(fitted.out)
    assert plain["relative_gap"] <= 1e-6
    assert plain["status"] == "optimal"
    assert plain["files"] == {"model": str(model)}
    assert plain["target"] == {"column": "income", "positive": ">50K", "negative": "<=50K"}
    assert nerm("predict", model, data, "--keep", "income,sex", "--out", scored, "-q").code == 0
    with open(scored, newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == N
    assert {(float(r["score"]) > 0) == (r["prediction"] == ">50K") for r in rows} == {True}
    by_score = json.loads(nerm("audit", scored, *ROLES, "--score", "score", "--json").out)
    by_word = json.loads(nerm("audit", scored, *ROLES, "--prediction", "prediction", "--json").out)
    right = np.mean([r["prediction"] == r["income"] for r in rows])
    rates = {
        sex: np.mean([r["prediction"] == ">50K" for r in rows if r["sex"] == sex])
        for sex in ("male", "female")
    }
    for audited in (by_score, by_word):
        assert audited["measures"]["accuracy"] == pytest.approx(right)
        assert audited["measures"]["calders_verwer_score"] == pytest.approx(rates["male"] - rates["female"])
    assert {g["name"]: g["rows"] for g in by_score["groups"]}.keys() == {"sex = male", "sex = female"}


def test_one_value_against_the_rest_survives_the_round_trip(nerm, data, tmp_path):
    """Predictions of "not X" are words that audit understands."""
    model, scored = tmp_path / "m.nerm", tmp_path / "scored.csv"
    roles = ("--target", "job", "--viewpoint", "sex", "--positive", "nurse")
    assert (
        nerm("fit", data, *roles, "--class-weight", "balanced", "--eta", 0.5, "--out", model, "-q").code == 0
    )
    assert nerm("predict", model, data, "--keep", "job,sex", "--out", scored, "-q").code == 0
    ran = nerm("audit", scored, *roles, "--prediction", "prediction", "--json")
    assert ran.code == 0, ran.err
    assert json.loads(ran.out)["target"]["negative"] == "not nurse"


def test_more_weight_is_more_neutral_and_the_plain_model_is_an_svm(nerm, data):
    plain = json.loads(nerm("tradeoff", data, *ROLES, *SMALL, "--json").out)
    first, *_, last = plain["points"]
    assert [p["eta"] for p in plain["points"]] == [0, 0.5, 2]
    assert abs(last["training"]["calders_verwer_score"]) < abs(first["training"]["calders_verwer_score"])
    assert all(p["certified_gap"] <= 1e-6 for p in plain["points"])
    assert first["per_1000"]["changed"] == 0
    assert [other["method"] for other in plain["others"]] == ["group thresholds", "logistic regression"]


@pytest.mark.long
def test_the_same_seed_gives_the_same_result(nerm, data):
    options = (*ROLES, "--surrogate", "hinge", "--json")
    runs = [json.loads(nerm("fit", data, *options, "--seed", seed).out) for seed in (3, 3, 4)]
    assert runs[0]["measures"] == runs[1]["measures"]
    assert runs[0]["measures"] != runs[2]["measures"]


def test_tables_for_readers(nerm, data):
    ran = nerm("fit", data, *ROLES, "--bounds", "--surrogate", "logistic")
    assert ran.code == 0
    for words in (
        "certified relative gap",
        "difference in positive rates",
        "sex = female",
        "hold-out",
        "vacuous",
    ):
        assert words in ran.out
    assert (
        "'age': 6 values missing (2.5 %, written '?')"
        in nerm("fit", data, *ROLES, "--eta", 0.5, "--test", 0).err
    )
    assert nerm("fit", data, *ROLES, "--eta", 0.5, "--quiet").err == ""


def test_predict_writes_csv_to_standard_output(nerm, data, tmp_path):
    model = tmp_path / "m.nerm"
    nerm("fit", data, *ROLES, "--eta", 0.5, "--out", model, "-q")
    strange = [{**row, "job": "pilot"} for row in census(3)]
    other = tmp_path / "other.csv"
    other.write_text(as_csv(strange, separator=";"))
    ran = nerm("predict", model, other)
    assert ran.out.splitlines()[0] == "row,score,prediction"
    assert len(ran.out.splitlines()) == 4
    assert "'job': 3 values not seen in fit" in ran.err
    assert len(json.loads(nerm("predict", model, other, "--keep", "all", "--json").out)["predictions"]) == 3


def test_other_atoms_kernels_and_weights(nerm, data):
    for options in (
        ("--loss", "logistic", "--regularizer", "l1", "--surrogate", "squared-hinge"),
        ("--kernel", "rbf", "--lam", "0.05"),
        ("--weights", "uniform"),
        ("--weights", "equal_opportunity", "--class-weight", "balanced"),
        ("--weights", "predictive_equality"),
        ("--keep-viewpoint", "--leave-out", "job", "--test", "0"),
    ):
        ran = nerm("fit", data, *ROLES, "--eta", "1", "--json", "-q", *options)
        plain = json.loads(ran.out)
        assert ran.code == (4 if plain["warning"] else 0), ran.err  # eta = 1 makes some of them constant
        assert plain["relative_gap"] <= 1e-6


@pytest.mark.long
def test_an_answer_that_was_not_certified_has_its_own_exit_code(nerm, data):
    ran = nerm(
        "fit", data, *ROLES, "--eta", "1", "--solver", "interior-point", "--tol", "1e-16", "--json", "-q"
    )
    assert ran.code == 3
    assert json.loads(ran.out)["status"] == "inaccurate"


@pytest.mark.long
def test_a_report_shows_the_model_that_was_fitted_and_no_weight_is_solved_twice(
    nerm, data, tmp_path, monkeypatch
):
    from nerm.estimators import NERMClassifier

    solved = []
    fit = NERMClassifier.fit
    monkeypatch.setattr(
        NERMClassifier, "fit", lambda self, *a, **k: solved.append(self.eta) or fit(self, *a, **k)
    )
    page = tmp_path / "report.html"
    plain = json.loads(nerm("fit", data, *ROLES, "--eta", "0.6", "--report", page, "--json").out)
    assert sorted(solved) == [0.0, 0.05, 0.1, 0.2, 0.3, 0.5, 0.6, 0.7, 1.0, 2.0, 5.0, 10.0]
    text = page.read_text(encoding="utf-8")
    assert plain["measured_on"] == "60 held-out rows"
    assert "Measured by 60 held-out rows" in text
    chosen = next(part for part in text.split("data-choice=")[1:] if "(the choice made here)" in part)
    assert "What η = 0.6 means" in chosen
    for field, name, form in (("auc", "auc", "{:.3f}"), ("csgn", "neutrality_risk", "{:.3f}")):
        assert f'<b data-field="{field}">{form.format(plain["measures"][name])}</b>' in chosen
    assert f"{plain['relative_gap']:.1e}" in chosen
    solved.clear()
    assert nerm("fit", data, *ROLES, "--eta", "0.6", "--test", 0, "--report", page).code == 0
    assert solved.count(0.6) == 1
    assert "Measured by the 240 training rows" in page.read_text(encoding="utf-8")


def test_files_without_a_header(nerm, data, tmp_path):
    lines = data.read_text().splitlines()
    bare = tmp_path / "bare.csv"
    bare.write_text("| a comment\n" + "\n".join(lines[1:]))
    expected = json.loads(nerm("fit", data, *ROLES, "--eta", 0.5, "--json").out)["measures"]
    names = tmp_path / "names.txt"
    names.write_text("\n".join(lines[0].split(",")))
    for columns in (lines[0], f"@{names}"):
        ran = nerm("fit", bare, *ROLES, "--skip-lines", 1, "--columns", columns, "--eta", 0.5, "--json")
        assert json.loads(ran.out)["measures"] == expected
    ran = nerm(
        "fit",
        bare,
        "--no-header",
        "--skip-lines",
        1,
        "--target",
        "c5",
        "--viewpoint",
        "c4",
        "--eta",
        0.5,
        "--json",
    )
    assert json.loads(ran.out)["measures"] == expected


def test_bound(nerm, data):
    plain = json.loads(
        nerm(
            "bound",
            data,
            *ROLES,
            "--weights",
            "uniform",
            "--eta",
            "5",
            "--lam",
            "0.01",
            "--class-weight",
            "none",
            "--json",
        ).out
    )
    held = {b["quantity"]: b for b in plain["bounds"] if b["source"] == "hold-out"}
    assert held["C_sgn"]["bound"] > held["C_sgn"]["on_sample"]
    corollary = next(b for b in plain["bounds"] if b["quantity"] == "C_n,psi")
    assert corollary["on_sample"] <= corollary["bound"] == pytest.approx(1 + 1 / 5, abs=1e-4)


def test_solvers(nerm):
    rows = {row["name"]: row for row in json.loads(nerm("solvers", "--json").out)["solvers"]}
    assert rows["interior-point"]["installed"]
    assert rows["clarabel"]["installed"]
    assert "interior-point" in nerm("solvers").out


@pytest.mark.long
def test_demo(nerm, tmp_path):
    ran = nerm("demo", "--folder", tmp_path)
    assert ran.code == 0
    for words in (
        "AUC",
        "C_sgn",
        "difference in",
        "gap: the objective is certified",
        "C_sgn: |share of",
        "Marks: → recommended",
        "accuracy: one decision for all rows would have 0.5",
        "logistic regression: another loss",
        "logistic regression",
        "per 1,000 individuals",
        "→",
    ):
        assert words in ran.out.replace("\n1,000", " 1,000")
    table = ran.out[: ran.out.index("Measured by")]
    assert max(len(line.rstrip()) for line in table.splitlines()) <= 80
    assert sorted(p.name for p in tmp_path.iterdir()) == ["nerm-demo.csv", "nerm-demo.html", "nerm-demo.svg"]
    readme = (Path(__file__).parents[2] / "README.md").read_text("utf-8")
    (quoted,) = re.findall(r"the AUC falls by less than ([\d.]*\d)", readme)
    ((limited, plain),) = re.findall(r"AUC of ([\d.]+) instead of ([\d.]+)", " ".join(ran.out.split()))
    assert float(plain) - float(limited) < float(quoted)


def test_help_teaches_by_example(nerm):
    assert "nerm fit census.csv --target income" in nerm("--help").out
    for command in ("demo", "fit", "predict", "audit", "tradeoff", "bound", "solvers", "reproduce"):
        ran = nerm(command, "--help")
        assert ran.code == 0
        assert f"nerm {command}" in ran.out.split("Example")[1]
        assert ran.err == ""


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from nerm.cli import cli; from nerm.cli.console import ended; ended(cli, ['--help']);"
        "heavy = {'pandas', 'sklearn', 'numba', 'cvxpy', 'rich', 'jinja2', 'matplotlib', 'scipy.optimize'};"
        "print('HEAVY', sorted(heavy & set(sys.modules)))"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "HEAVY []" in out


def test_fit_does_not_load_experiments():
    code = (
        "import sys; import nerm.report.fitting, nerm.estimators, nerm.cli.fit, nerm.cli.predictions;"
        "print('LOADED', [name for name in sys.modules if name.startswith('nerm.experiments')])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "LOADED []" in out


@pytest.mark.long
def test_every_method(nerm, data, tmp_path):
    figure = tmp_path / "all.svg"
    ran = nerm("tradeoff", data, *ROLES, *SMALL, "--methods", "all", "--figure", figure, "--json")
    assert ran.code == 0, ran.err
    methods = {row["method"] for row in json.loads(ran.out)["others"]}
    assert {"logistic regression", "CV2NB", "PR, η = 0", "η-LR, η = 0.1"} <= methods
    assert "CV2NB" in figure.read_text(encoding="utf-8")


def test_version(nerm):
    import nerm as package

    assert nerm("--version").out == f"nerm {package.__version__}\n"


@pytest.mark.long
def test_a_reader_that_has_seen_enough(data):
    """`nerm … | head` ends quietly."""
    code = "from nerm.cli import main; main(['solvers'])"
    run = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    run.stdout.close()
    assert run.stderr.read() == b""
    run.stderr.close()
    assert run.wait() == 0
