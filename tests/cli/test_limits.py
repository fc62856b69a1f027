"""Limits from the command line: what is asked for is had, refused in a sentence, saved, and fitted again."""

from __future__ import annotations

import functools
import json
import os
import shlex
import signal
import subprocess
import sys

import numpy as np
import pytest

import nerm as package
from tests.cli.conftest import ROLES, as_csv, census

ASKED = ("--surrogate", "hinge")  # without a comparison it is quicker


def test_the_measure_is_within_the_limit(nerm, data):
    plain = json.loads(nerm("fit", data, *ROLES, *ASKED, "--limit", 0.05, "--test", 0, "--json").out)
    assert plain["asked"] == {"limit": 0.05, "eta": None}
    assert plain["measure"] == "calders_verwer_score"
    assert abs(plain["measures"]["calders_verwer_score"]) <= 0.05
    assert plain["measures"]["calders_verwer_score"] == pytest.approx(plain["reached"])
    low, high = plain["intervals"]["calders_verwer_score"]
    assert low < plain["reached"] < high


def test_a_limit_and_a_weight_exclude_each_other(nerm, data):
    ran = nerm("fit", data, *ROLES, "--limit", 0.05, "--eta", 1)
    assert ran.code == 2
    assert "--limit and --eta must not both be given" in ran.err
    ran = nerm("tradeoff", data, *ROLES, "--limits", 0.05, "--etas", 1)
    assert (ran.code, ran.out) == (2, "")
    assert (
        "--confidence and --eta must not both be given"
        in nerm("fit", data, *ROLES, "--eta", 1, "--confidence", 0.9).err
    )


def test_what_cannot_be_had_is_one_sentence_and_a_code(nerm, data):
    """Few rows cannot promise a small difference; every sentence says what is possible."""
    ran = nerm("fit", data, *ROLES, *ASKED, "--limit", 0.05, "--confidence", 0.95)
    assert (ran.code, ran.out) == (5, "")
    assert "No model has" in ran.err
    assert "Traceback" not in ran.err
    assert nerm("fit", data, *ROLES, *ASKED, "--limit", 0.9, "--confidence", 0.9, "--json").code == 0


def test_a_refusal_advises_options_of_the_command(nerm, tmp_path):
    rng = np.random.default_rng(0)
    rows = [f"{rng.normal():.3f},{'yes' if i % 10 == 0 else 'no'},{'ab'[i % 2]}" for i in range(300)]
    path = tmp_path / "noise.csv"
    path.write_text("\n".join(["x,loan,sex", *rows]))
    ran = nerm("fit", path, "--target", "loan", "--viewpoint", "sex", "--limit", 0.02)
    assert ran.code == 5
    assert "Balance --class-weight or lower --lam" in ran.err  # no limit would help
    assert "keep" not in ran.err


def test_the_nearest_model_is_given_where_it_is_asked_for(nerm, tmp_path):
    """Groups of 101 and 97 rows have equal rates only if every row gets the same decision."""
    rng = np.random.default_rng(0)
    sexes = np.repeat(["f", "m"], [101, 97])
    x = rng.normal(size=198) + 0.5 * (sexes == "m")
    rows = [
        f"{a:.3f},{s},{'yes' if a + e > 0 else 'no'}"
        for a, s, e in zip(x, sexes, rng.normal(size=198), strict=True)
    ]
    path = tmp_path / "primes.csv"
    path.write_text("\n".join(["x,sex,hired", *rows]))
    roles = ("--target", "hired", "--viewpoint", "sex", "--test", 0)
    given = (path, *roles, *ASKED, "--limit", 0, "--out", tmp_path / "m.nerm")
    refused = nerm("fit", *given)
    assert (refused.code, (tmp_path / "m.nerm").exists()) == (5, False)
    ran = nerm("fit", *given, "--nearest", "--json")
    assert ran.code == 0
    assert "No usable model is within the limit: this is the nearest." in json.loads(ran.out)["said"]
    assert 0 < abs(json.loads(ran.out)["reached"]) < 0.05


def test_an_audit_shows_impact_ratios_by_both_viewpoints(nerm, tmp_path):
    """Local Law 144: rates by sex, by race and by both, each divided by the highest."""
    cells = {("f", "a"): (60, 12), ("f", "b"): (40, 20), ("m", "a"): (80, 40), ("m", "b"): (50, 40)}
    rows = [
        f"{s},{r},{'yes' if i % 3 else 'no'},{'yes' if i < k else 'no'}"
        for (s, r), (n, k) in cells.items()
        for i in range(n)
    ]
    path = tmp_path / "hired.csv"
    path.write_text("\n".join(["sex,race,fit,hired", *rows]))
    given = (path, "--target", "fit", "--viewpoint", "sex,race", "--prediction", "hired")
    found = {row["name"]: row for row in json.loads(nerm("audit", *given, "--json").out)["impact_ratios"]}
    assert found["sex = f"]["rate"] == pytest.approx(32 / 100)
    assert found["sex = f"]["impact_ratio"] == pytest.approx(32 / 100 / (80 / 130))
    assert found["race = a"]["impact_ratio"] == pytest.approx(52 / 140 / (60 / 90))
    both = next(row for name, row in found.items() if "sex = f" in name and "race = a" in name)
    assert (both["rows"], both["selected"]) == (60, 12)
    assert both["impact_ratio"] == pytest.approx(0.2 / 0.8)
    assert "impact ratio" in nerm("audit", *given).out


@pytest.fixture
def groups(tmp_path):
    """Write a file in which three groups differ a little."""
    rng = np.random.default_rng(1)
    rows = census(400)
    for row in rows:
        row["region"] = str(rng.choice(["north", "south", "west"]))
        if row["region"] == "west":
            row["hours"] = f"{float(row['hours']) + 3:.1f}"
    path = tmp_path / "regions.csv"
    path.write_text(as_csv(rows), encoding="utf-8")
    return path


def test_every_group_of_several_is_within_the_limit(nerm, groups):
    roles = ("--target", "income", "--viewpoint", "region")
    before = json.loads(nerm("fit", groups, *roles, "--eta", 0, "--test", 0, "--json").out)
    plain = json.loads(nerm("fit", groups, *roles, *ASKED, "--limit", 0.05, "--test", 0, "--json").out)
    *against, largest = plain["differences"]
    assert [d["other"] for d in against] == ["the rest"] * 3
    assert max(abs(d["value"]) for d in against) <= 0.05
    assert max(abs(d["value"]) for d in before["differences"][:-1]) > 0.05
    rates = [g["positive_rate"] for g in plain["groups"]]
    assert largest["value"] == pytest.approx(max(rates) - min(rates))


@pytest.mark.long
def test_the_choice_can_be_saved_and_its_command_makes_it_again(nerm, data, tmp_path, monkeypatch):
    import pandas as pd

    saved = tmp_path / "choice.nerm"
    monkeypatch.chdir(tmp_path)
    options = ("--leave-out", "job", "--limits", "0.1", "--budget", "0.5", "--save", saved)
    plain = json.loads(nerm("tradeoff", data, *ROLES, *ASKED, *options, "--json").out)
    assert plain["files"] == {"model": str(saved)}
    assert plain["chosen"] == "limit 0.1"
    words = shlex.split(plain["command"])
    assert words[:2] == ["nerm", "fit"]
    assert nerm(*words[1:], "-q").code == 0
    frame = pd.read_csv(data, dtype=str, keep_default_na=False)
    one, other = (package.load(path).decision_function(frame) for path in (saved, tmp_path / "model.nerm"))
    assert (np.asarray(one) == np.asarray(other)).all()


@pytest.mark.long
def test_the_recommended_model_is_within_the_budget_on_held_out_rows(nerm, data):
    plain = json.loads(
        nerm("tradeoff", data, *ROLES, *ASKED, "--limits", "0.3,0.1", "--budget", "0.05", "--json").out
    )
    points = {point["label"]: point for point in plain["points"]}
    chosen = points[plain["chosen"]]
    assert chosen["auc"] >= points["no limit"]["auc"] - 0.05
    tighter = [p for p in points.values() if p["limit"] is not None and (chosen["limit"] or 1) > p["limit"]]
    assert all(p["auc"] < points["no limit"]["auc"] - 0.05 for p in tighter)


@pytest.mark.long
@pytest.mark.skipif(os.name == "nt", reason="signals are not sent like this")
def test_ctrl_c_is_one_line(groups, tmp_path):
    out, pipe = tmp_path / "m.nerm", subprocess.PIPE
    command = [sys.executable, "-m", "nerm", "tradeoff", "-", *ROLES, "--report", str(tmp_path / "p.html")]
    heard = functools.partial(
        signal.signal, signal.SIGINT, signal.SIG_DFL
    )  # what runs in the background may ignore it
    run = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, preexec_fn=heard)
    text = groups.read_text()
    run.stdin.write(
        text * (2**20 // len(text) + 1)
    )  # more than a pipe holds: it returns when the command is reading,
    run.send_signal(signal.SIGINT)  # and waits for the end of a table that does not come
    said, told = run.communicate(timeout=120)
    assert run.returncode == 130
    assert told.splitlines()[-1] == "nerm: Interrupted."
    assert "Traceback" not in told
    assert said == ""
    assert not out.exists()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["regions.csv"]


INTERRUPTED = {
    "fit": "nerm.tables.reading.opened",
    "predict": "nerm.tables.reading.opened",
    "audit": "nerm.tables.reading.opened",
    "tradeoff": "nerm.report.study.run_study",
    "bound": "nerm.report.study.run_study",
    "demo": "nerm.report.study.run_study",
    "solvers": "nerm.solvers.known",
}


@pytest.mark.parametrize("command", INTERRUPTED)
def test_ctrl_c_in_every_command(nerm, data, tmp_path, monkeypatch, command):
    """One line, code 130, and nothing written."""

    def stop(*given, **options):
        raise KeyboardInterrupt

    model = tmp_path / "m.nerm"
    arguments = [
        data,
        *ROLES,
        *{"audit": ("--score", "age", "--threshold", "40"), "fit": ("--out", tmp_path / "new.nerm")}.get(
            command, ()
        ),
    ]
    if command == "predict":
        assert nerm("fit", data, *ROLES, "--eta", 0.1, "--out", model).code == 0
        arguments = [model, data, "--out", tmp_path / "scored.csv"]
    elif command in ("demo", "solvers"):
        arguments = ["--folder", tmp_path] if command == "demo" else []
    before = sorted(tmp_path.iterdir())
    monkeypatch.setattr(INTERRUPTED[command], stop)
    ran = nerm(command, *arguments)
    assert (ran.code, ran.out, ran.err.strip()) == (130, "", "nerm: Interrupted.")
    assert sorted(tmp_path.iterdir()) == before
