"""A killed run, started again, ends in the same bytes; any number of workers does too."""

from __future__ import annotations

import importlib.util
import os
import signal
import subprocess
import sys
import time

import pytest

from nerm.errors import MissingPackageError
from nerm.experiments import convergence, from_estimator, read, tradeoff
from tests.experiments.rivals import Rival

pytestmark = pytest.mark.long


@pytest.fixture
def finished(small, tmp_path):
    path = tmp_path / "whole.csv"
    tradeoff(**small, results=path)
    return path


def test_a_file_cut_anywhere_is_completed_to_the_same_bytes(small, finished, tmp_path):
    whole = finished.read_bytes()
    lines = whole.splitlines(keepends=True)
    cuts = [
        0,
        10,
        len(lines[0]),
        len(lines[0]) + 5,
        sum(map(len, lines[:4])),
    ]
    for cut in [*cuts, len(whole) - 30, len(whole)]:
        part = tmp_path / "part.csv"
        part.write_bytes(whole[:cut])
        table = tradeoff(**small, results=part)
        assert part.read_bytes() == whole, cut
        assert len(table) == len(lines) - 2


def test_what_is_done_is_not_done_again(small, finished, tmp_path):
    part = tmp_path / "part.csv"
    lines = finished.read_text().splitlines(keepends=True)
    changed = [line.replace(",ok,", ",ok,kept") for line in lines[:-2]]
    part.write_text("".join(changed))
    table = tradeoff(**small, results=part)
    assert (table.reason == "kept").sum() == sum("kept" in line for line in changed)
    assert len(table) == len(lines) - 2


def test_seconds_stand_beside_the_file_and_come_back(small, finished):
    first = tradeoff(**small, results=finished)
    assert (first.seconds > 0).all()
    times = finished.with_name("whole-times.csv").read_text().splitlines()
    assert times[0] == "dataset,method,repetition,fold,row,seconds"
    assert len(times) == 1 + len(first)


def test_read_gives_table_and_settings(small, finished):
    table, settings = read(finished)
    assert settings["experiment"] == "tradeoff"
    assert settings["seed"] == 0
    assert table.drop(columns="reason").equals(tradeoff(**small).drop(columns=["reason", "seconds"]))
    with pytest.raises(ValueError, match=r"the results file must exist. Got no file"):
        read(finished.with_name("nowhere.csv"))


def test_the_file_of_another_experiment_is_refused_and_left_alone(small, finished):
    before = finished.read_bytes()
    for change, ours, theirs in (
        ({"seed": 1}, "seed 1", "seed 0"),
        ({"folds": 4}, "folds 4", "folds 3"),
        ({"stratify": False}, "stratify False", "stratify True"),
        ({"etas": None}, "etas {'neutral-svm': [0.0, 0.01,", "etas {'neutral-svm': [0.0, 0.5, 5.0]"),
        ({"lam": 1.0}, "lam [1.0]", "lam [10.0]"),
        (
            {"methods": ["lr"], "etas": None},
            "methods {'lr': ''}",
            "methods {'neutral-svm': '', 'cv2nb': '', 'lr': ''}",
        ),
    ):
        with pytest.raises(ValueError, match="the results file") as error:
            tradeoff(**{**small, **change}, results=finished)
        assert f"must be one of {ours}" in str(error.value)
        assert f" Got one of {theirs}" in str(error.value)
        assert str(error.value).endswith("Give another file name: this one is left as it is.")
    with pytest.raises(
        ValueError, match=r"must be one of experiment convergence. Got one of experiment tradeoff."
    ):
        convergence([30], repetitions=1, results=finished)
    assert finished.read_bytes() == before


def test_a_file_with_other_columns_is_refused(small, finished):
    content = finished.read_bytes().replace(b",auc,", b",area,", 1)
    finished.write_bytes(content)
    with pytest.raises(ValueError, match=r"must be one of columns .* Got one of columns "):
        tradeoff(**small, results=finished)
    assert finished.read_bytes() == content


def test_a_line_of_seconds_that_a_kill_cut_short_spoils_no_other(small, finished):
    times = finished.with_name("whole-times.csv")
    lines = finished.read_text().splitlines(keepends=True)
    finished.write_text("".join(lines[:-3]))
    times.write_text(times.read_text()[:-60])
    table = tradeoff(**small, results=finished)
    assert table.seconds.notna().sum() >= len(table) - 2
    assert {line.count(",") for line in times.read_text().splitlines()} == {5}


def test_a_file_that_is_no_results_file_is_refused_and_left_alone(small, tmp_path):
    path = tmp_path / "diary.csv"
    path.write_text("dear,diary\n1,2\n")
    with pytest.raises(
        ValueError, match=r"must be a results file of nerm. Got a first line that begins with 'dear,diary'"
    ):
        tradeoff(**small, results=path)
    assert path.read_text() == "dear,diary\n1,2\n"


def test_a_broken_line_in_the_middle_is_named(small, finished):
    lines = finished.read_text().splitlines(keepends=True)
    finished.write_text("".join([*lines[:3], "half,a line\n", *lines[3:]]))
    entries = len(lines[1].split(","))
    with pytest.raises(
        ValueError, match=rf"must have {entries} entries\. Got 2 on line 4\. Delete that line"
    ):
        tradeoff(**small, results=finished)


def test_a_file_in_use_is_refused(small, finished):
    fcntl = pytest.importorskip("fcntl")
    with open(finished, "ab") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(ValueError, match=r"must not be in use. Got a file that another run is writing."):
            tradeoff(**small, results=finished)


SCRIPT = """
import sys
from nerm.experiments import from_estimator, tradeoff
from tests.experiments.rivals import Rival
if __name__ == "__main__":
    slow = from_estimator("slow", Rival("slow"), eta="eta", etas=[0.0, 1.0])
    same = {"lam": [1.0, 10.0], "folds": 3, "repetitions": 2}
    tradeoff("diabetes", [slow, "lr"], **same, results=sys.argv[1], n_jobs=int(sys.argv[2]))
"""


def test_killed_run_resumes_to_the_same_bytes(tmp_path):
    script, path = tmp_path / "run.py", tmp_path / "killed.csv"
    script.write_text(SCRIPT)
    root = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    environment = {**os.environ, "PYTHONPATH": root}
    command = [sys.executable, str(script), str(path), "2"]
    started = subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL, start_new_session=True)
    try:
        for _ in range(1200):  # until some, not all, of its 12 folds are written
            if path.exists() and path.read_bytes().count(b"\n") >= 5:
                break
            time.sleep(0.05)
    finally:
        os.killpg(started.pid, signal.SIGKILL)
        started.wait()
    written = path.read_bytes().count(b"\n")
    assert 5 <= written < 20
    slow = from_estimator("slow", Rival("slow"), eta="eta", etas=[0.0, 1.0])
    same = {"lam": [1.0, 10.0], "folds": 3, "repetitions": 2}
    tradeoff("diabetes", [slow, "lr"], **same, results=path)
    tradeoff("diabetes", [slow, "lr"], **same, results=tmp_path / "whole.csv")
    assert path.read_bytes() == (tmp_path / "whole.csv").read_bytes()
    assert (tmp_path / "killed-tuning.csv").read_bytes() == (tmp_path / "whole-tuning.csv").read_bytes()


def test_two_workers_give_the_same_bytes(small, finished, tmp_path):
    tradeoff(**small, results=tmp_path / "two.csv", n_jobs=2)
    assert (tmp_path / "two.csv").read_bytes() == finished.read_bytes()


def test_dead_worker_is_recorded_and_others_go_on(small, tmp_path):
    small.update(methods=[from_estimator("dies", Rival("dies")), "lr"], folds=4, etas=None)
    table = tradeoff(**small, n_jobs=2, results=tmp_path / "deaths.csv")
    dead = table[table.method == "dies"]
    assert (table[table.method == "lr"].status == "ok").all()
    assert set(dead.status) == {"ok", "failed"}  # it dies on even seeds only
    assert dead.reason[dead.status == "failed"].str.startswith("the worker process died").all()
    again = tradeoff(**small, n_jobs=2, results=tmp_path / "deaths.csv")
    assert again.drop(columns="seconds").equals(read(tmp_path / "deaths.csv")[0])


def test_the_bar_shows_what_failed_and_the_time_left(small, capsys):
    pytest.importorskip("rich", reason="needs rich")
    small.update(methods=[from_estimator("fails", Rival("fails"), eta="eta", etas=[0.0, 1.0])], etas=None)
    tradeoff(**small, progress=True)
    shown = capsys.readouterr().err
    assert "trade-off" in shown
    assert "3/3" in shown
    assert "left" in shown
    assert "3 failed" in " ".join(shown.split())
    tradeoff(**small, progress=False)
    assert capsys.readouterr().err == ""


def test_a_bar_without_rich_is_said_in_one_sentence(small, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        MissingPackageError, match=r"progress=True needs the package 'rich'. It is not installed."
    ):
        tradeoff(**small, progress=True)


def test_dask_absent_is_said_in_one_sentence(small, monkeypatch):
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(
        MissingPackageError, match=r"backend='dask' needs the package 'distributed'. .* nerm-learn\[dask\]"
    ):
        tradeoff(**small, backend="dask")


def test_a_dask_cluster_of_two_processes_gives_the_same_bytes(small, finished, tmp_path):
    distributed = pytest.importorskip("distributed", reason="needs dask[distributed], the extra [dask]")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        assert (
            len(
                {worker["pid"] for worker in client.run(lambda: {"pid": os.getpid()}).values()}
                - {os.getpid()}
            )
            == 2
        )
        address = cluster.scheduler_address
        tradeoff(**small, results=tmp_path / "dask.csv", backend="dask", client=address)
    assert (tmp_path / "dask.csv").read_bytes() == finished.read_bytes()


@pytest.mark.slow
def test_a_dask_worker_that_dies_is_recorded(small):
    pytest.importorskip("distributed", reason="needs dask[distributed], the extra [dask]")
    small.update(methods=[from_estimator("dies", Rival("dies")), "lr"], folds=5, etas=None)
    table = tradeoff(**small, n_jobs=2, backend="dask")
    dead = table[table.method == "dies"]
    assert set(dead.status) == {"ok", "failed"}
    assert dead.reason[dead.status == "failed"].str.startswith("the worker process died").all()
    assert (table[table.method == "lr"].status == "ok").all()
