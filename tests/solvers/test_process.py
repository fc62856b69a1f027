"""Functions in a process that is killed at its deadline."""

import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from nerm.solvers.process import run_with_deadline


def die():
    os._exit(3)


def divide(x):
    return 1 / x


def start_child(file):
    child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    file.write_text(str(child.pid))
    time.sleep(60)


def allocate(megabytes):
    return len(bytearray(megabytes * 2**20))


def test_run_with_deadline_returns_the_result():
    outcome = run_with_deadline(divide, (4,), 60.0)
    assert outcome.result == 0.25
    assert not outcome.timed_out
    assert outcome.exit_code is None


def test_run_with_deadline_kills():
    before = set(multiprocessing.active_children())  # workers of other tests
    outcome = run_with_deadline(time.sleep, (60.0,), 3.0)
    assert outcome.timed_out
    assert outcome.seconds < 20.0
    assert set(multiprocessing.active_children()) <= before


def test_run_with_deadline_returns_errors_and_exit_codes():
    assert isinstance(run_with_deadline(divide, (0,), 60.0).error, ZeroDivisionError)
    assert run_with_deadline(die, (), 60.0).exit_code == 3


@pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")
def test_run_with_deadline_kills_children(tmp_path):
    assert run_with_deadline(start_child, (tmp_path / "pid",), 2.0).timed_out
    child = (tmp_path / "pid").read_text()
    for _ in range(100):
        state = Path(f"/proc/{child}/stat")
        if not state.exists() or state.read_text().split()[2] == "Z":
            return
        time.sleep(0.05)
    pytest.fail("the child is still running")


@pytest.mark.skipif(sys.platform != "linux", reason="limits address space")
def test_run_with_deadline_limits_memory():
    assert isinstance(run_with_deadline(allocate, (2000,), 60.0, memory=100.0).error, MemoryError)
    assert run_with_deadline(allocate, (10,), 60.0, memory=1000.0).result
