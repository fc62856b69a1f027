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


def fitted(nerm, habit, folder):
    """Return path, model and result of a fit to the file."""
    path, model = habit.made(folder), folder / "m.nerm"
    ran = nerm("fit", path, *habit.arguments, "--out", model, "--json")
    assert ran.code in (0, 4), ran.err
    for words in habit.says:
        assert words in ran.err
    return path, model, json.loads(ran.out)


@pytest.mark.parametrize("name", EVERYTHING)
def test_fit_and_predict(nerm, name, tmp_path):
    """What is the same table gives the same numbers, whatever its format; what a command says is in its JSON too."""
    habit = HABITS[name]
    path, model, found = fitted(nerm, habit, tmp_path)
    assert all(any(words in note for note in found["task_notes"]) for words in habit.says)
    if habit.clean:
        if not CLEAN:
            (tmp_path / "clean").mkdir()
            CLEAN.update(fitted(nerm, Habit(clean), tmp_path / "clean")[2]["measures"])
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
