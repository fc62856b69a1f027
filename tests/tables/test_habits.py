"""Files of different habits through the commands: a usable answer, the same one wherever the data are the same."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest

from tests.cli.conftest import nerm as nerm
from tests.tables.habits import HABITS, TWELVE, Habit, clean, frame

EVERYTHING = [pytest.param(name, marks=[] if name in TWELVE else pytest.mark.long) for name in HABITS]
CLEAN: dict[str, object] = {}
QUICK = ("--eta", "0.3")  # one solve instead of the search for a level


def fitted(nerm, habit, folder, *options):
    """Return path, model and result of a fit to the file."""
    path, model = habit.made(folder), folder / "m.nerm"
    ran = nerm("fit", path, *habit.arguments, *options, "--out", model, "--json")
    assert ran.code in (0, 4), ran.err
    for words in habit.says:
        assert words in ran.err
    return path, model, json.loads(ran.out)


@pytest.mark.parametrize("name", EVERYTHING)
def test_fit_and_predict(nerm, name, tmp_path):
    """What is the same table gives the same numbers, whatever its format; what a command says is in its JSON too."""
    habit = HABITS[name]
    path, model, found = fitted(nerm, habit, tmp_path, *QUICK)
    assert all(any(words in note for note in found["task_notes"]) for words in habit.says)
    if habit.clean:
        if not CLEAN:
            (tmp_path / "clean").mkdir()
            CLEAN.update(fitted(nerm, Habit(clean), tmp_path / "clean", *QUICK)[2]["measures"])
        assert found["measures"] == pytest.approx(CLEAN, rel=1e-6)
    ran = nerm("predict", model, path, *reading(habit), "--keep", habit.roles[0])
    assert ran.code == 0, ran.err
    rows = list(csv.DictReader(io.StringIO(ran.out)))
    truth = frame()["loan"] if habit.clean else [row["loan"] for row in rows]
    assert [row[habit.roles[0]] for row in rows] == list(truth)
    assert {row["prediction"] for row in rows} <= {"yes", "no"}
    right = np.mean([row["prediction"] == row[habit.roles[0]] for row in rows])
    assert right > max(0.5, found["measures"]["accuracy"] - 0.15)


def reading(habit):
    """Return those of a habit's options that predict knows."""
    pairs = list(zip(habit.options[::2], habit.options[1::2], strict=True))
    return [word for pair in pairs if pair[0] in ("--encoding", "--missing") for word in pair]


@pytest.mark.slow
@pytest.mark.parametrize("name", TWELVE)
def test_every_command_with_its_defaults(nerm, name, tmp_path):
    """A usable answer, or one sentence."""
    habit = HABITS[name]
    path, model = habit.made(tmp_path), tmp_path / "m.nerm"
    scored = tmp_path / "scored.csv"
    usable(nerm("fit", path, *habit.arguments, "--out", model))
    if model.exists():
        usable(
            nerm("predict", model, path, *reading(habit), "--keep", ",".join(habit.roles), "--out", scored)
        )
        roles = ("--target", habit.roles[0], "--viewpoint", habit.roles[1])
        usable(nerm("audit", scored, *roles, "--score", "score"))
    usable(nerm("tradeoff", path, *habit.arguments))


def usable(ran):
    """Check that a command ended with an answer, or refused in one sentence."""
    assert ran.code in (0, 2, 4), ran.err
    assert "Traceback" not in ran.err
    assert bool(ran.out) == (ran.code != 2)


def test_three_groups_and_an_audit(nerm, tmp_path):
    """Groups are compared without naming one, and what predict writes is what audit reads."""
    habit = HABITS["three groups"]
    path, model, scored = habit.made(tmp_path), tmp_path / "m.nerm", tmp_path / "scored.csv"
    roles = ("--target", "loan", "--viewpoint", "sex")
    assert nerm("fit", path, *roles, *QUICK, "--out", model, "-q").code in (0, 4)
    assert nerm("predict", model, path, "--keep", "loan,sex", "--out", scored, "-q").code == 0
    audited = json.loads(nerm("audit", scored, *roles, "--score", "score", "--json").out)
    assert {"sex = a", "sex = b", "sex = c"} <= {group["name"] for group in audited["groups"]}
