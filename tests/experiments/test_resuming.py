"""A killed run, started again, ends in the same table; any number of workers does too."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import joblib
import pytest

from nerm.experiments import convergence, from_estimator, read, tradeoff
from tests.experiments.rivals import Rival

pytestmark = pytest.mark.long


@pytest.fixture
def finished(small, tmp_path):
    path = tmp_path / "whole.csv"
    tradeoff(**small, results=path)
    return path


def same(table, other):
    """Return whether two tables agree in all but the seconds, to the last digit."""
    return table.drop(columns="seconds").equals(other.drop(columns="seconds"))


def first_lines(path, count, part):
    """Write the first line with the settings, the names of the columns and some rows of a results file."""
    part.write_text("".join(path.read_text().splitlines(keepends=True)[: count + 2]))
    return part


@pytest.mark.parametrize("count", [0, 3, 12, 15])
def test_a_file_with_some_of_the_rows_is_completed(small, finished, tmp_path, count):
    whole = read(finished)[0]
    part = first_lines(finished, count, tmp_path / "part.csv")
    assert same(tradeoff(**small, results=part), whole)
    assert same(read(part)[0], whole)


def test_a_last_line_that_a_kill_cut_short_is_computed_again(small, finished, tmp_path):
    whole, part = read(finished)[0], tmp_path / "part.csv"
    part.write_bytes(finished.read_bytes()[:-30])
    assert len(read(part)[0]) == len(whole) - 1
    assert same(tradeoff(**small, results=part), whole)


def test_a_missing_row_within_a_fold_is_computed_for_its_own_weight(small, finished, tmp_path):
    whole = read(finished)[0]
    table = tradeoff(**small, results=first_lines(finished, 1, tmp_path / "part.csv"))
    assert table.eta.equals(whole.eta)
    assert table.auc.to_numpy() == pytest.approx(whole.auc.to_numpy(), abs=2e-3)


def test_what_is_done_is_not_done_again(small, finished):
    content = finished.read_text().replace(",ok,", ",ok,kept")
    finished.write_text(content)
    table = tradeoff(**small, results=finished)
    assert (table.reason == "kept").all()
    assert finished.read_text() == content


def test_read_gives_table_and_settings(small, finished):
    table, settings = read(finished)
    assert settings["experiment"] == "tradeoff"
    assert settings["seed"] == 0
    assert same(table, tradeoff(**small))
    assert (table.seconds > 0).all()
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
        assert f"must be of this experiment, with {ours}" in str(error.value)
        assert f" Got {theirs}" in str(error.value)
        assert str(error.value).endswith("Choose another file name; this file is not changed.")
    with pytest.raises(ValueError, match=r"with experiment convergence. Got experiment tradeoff."):
        convergence([30], repetitions=1, results=finished)
    assert finished.read_bytes() == before


def test_a_file_that_is_no_results_file_is_refused_and_left_alone(small, tmp_path):
    path = tmp_path / "diary.csv"
    path.write_text("dear,diary\n1,2\n")
    with pytest.raises(
        ValueError, match=r"must be a results file of nerm. Got a first line that begins with 'dear,diary'"
    ):
        tradeoff(**small, results=path)
    assert path.read_text() == "dear,diary\n1,2\n"


SCRIPT = """
import sys
from nerm.experiments import from_estimator, tradeoff
from tests.experiments.rivals import Rival
if __name__ == "__main__":
    slow = from_estimator("slow", Rival("slow"), eta="eta", etas=[0.0, 1.0])
    same = {"lam": [1.0, 10.0], "folds": 3, "repetitions": 2}
    tradeoff("diabetes", [slow, "lr"], **same, results=sys.argv[1], n_jobs=int(sys.argv[2]))
"""


def test_killed_run_resumes_to_the_same_table(tmp_path):
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
    settings = {"lam": [1.0, 10.0], "folds": 3, "repetitions": 2}
    resumed = tradeoff("diabetes", [slow, "lr"], **settings, results=path)
    assert same(resumed, tradeoff("diabetes", [slow, "lr"], **settings, results=tmp_path / "whole.csv"))
    assert same(read(tmp_path / "killed-tuning.csv")[0], read(tmp_path / "whole-tuning.csv")[0])


def test_two_workers_give_the_same_table(small, finished):
    assert same(tradeoff(**small, n_jobs=2), read(finished)[0])


def test_dead_worker_is_recorded_and_others_go_on(small, tmp_path):
    small.update(methods=[from_estimator("dies", Rival("dies")), "lr"], folds=2, etas=None)
    table = tradeoff(**small, n_jobs=2, results=tmp_path / "deaths.csv")
    dead = table[table.method == "dies"]
    assert (table[table.method == "lr"].status == "ok").all()
    assert set(dead.status) == {"ok", "failed"}  # it dies on even seeds only
    assert dead.reason[dead.status == "failed"].str.startswith("TerminatedWorkerError: ").all()
    again = tradeoff(**small, n_jobs=2, results=tmp_path / "deaths.csv")
    assert again.equals(read(tmp_path / "deaths.csv")[0])


def test_the_bar_is_shown_on_request(small, capsys):
    small.update(methods=["lr"], etas=None)
    tradeoff(**small, progress=True)
    assert "tradeoff" in capsys.readouterr().err
    tradeoff(**small, progress=False)
    assert capsys.readouterr().err == ""


def test_a_dask_cluster_of_two_processes_gives_the_same_table(small, finished):
    distributed = pytest.importorskip("distributed", reason="needs dask[distributed], the extra [dask]")
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster):
        before = cluster.scheduler.transition_counter
        with joblib.parallel_config(backend="dask"):
            table = tradeoff(**small)
        assert cluster.scheduler.transition_counter > before
    assert same(table, read(finished)[0])


@pytest.mark.slow
def test_a_dask_worker_that_dies_is_recorded(small):
    distributed = pytest.importorskip("distributed", reason="needs dask[distributed], the extra [dask]")
    small.update(methods=[from_estimator("dies", Rival("dies")), "lr"], folds=5, etas=None)
    options = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
    with distributed.Client(**options), joblib.parallel_config(backend="dask"):
        table = tradeoff(**small)
    dead = table[table.method == "dies"]
    assert set(dead.status) == {"ok", "failed"}
    assert (table[table.method == "lr"].status == "ok").all()
