"""What happens to a fit when machines die: a worker in the middle of a pass, or the fit itself."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import numpy as np
import pytest

import nerm
from nerm.chunks import save_chunk
from tests.chunks.test_chunks import OBJECTIVES, draw

pytestmark = pytest.mark.slow


@pytest.fixture
def paths(tmp_path):
    X, y, v = draw(40_000, sparse=True)
    found = []
    for i, rows in enumerate(np.array_split(np.arange(len(y)), 8)):
        found.append(str(tmp_path / f"{i}.npz"))
        save_chunk(found[-1], X[rows], y[rows], v[rows])
    return found


class DiesOnce:
    """The work of a pass that kills the worker which gets the third file, the first time."""

    def __init__(self, work, marker):
        self.work, self.marker = work, marker

    def __call__(self, raw):
        if "2.npz" in raw.name and not Path(self.marker).exists():
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.work(raw)


@pytest.mark.filterwarnings("ignore")
def test_a_worker_that_dies_costs_its_chunks_only(paths, tmp_path, monkeypatch):
    distributed = pytest.importorskip("distributed")
    alone = OBJECTIVES["hinge"].on(nerm.Chunks(paths)).solve(tol=1e-5)
    marker, passes = tmp_path / "died", []
    plain = nerm.Chunks.sweep

    def deadly(self, work):
        passes.append(1)
        return plain(self, DiesOnce(work, str(marker)) if len(passes) == 2 else work)

    monkeypatch.setattr(nerm.Chunks, "sweep", deadly)
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster,
        distributed.Client(cluster),
    ):
        found = OBJECTIVES["hinge"].on(nerm.Chunks(paths)).solve(tol=1e-5)
    assert marker.exists()
    assert found.status == "optimal"
    assert np.array_equal(found.coef, alone.coef)


SCRIPT = """
import sys, nerm, nerm.chunks.source
from tests.chunks.test_chunks import OBJECTIVES
nerm.chunks.source.SAMPLE_ROWS = 400
checkpoint, *paths = sys.argv[1:]
solution = OBJECTIVES["hinge"].on(nerm.Chunks(paths)).solve(tol=1e-6, checkpoint=checkpoint)
print(solution.status, repr(solution.objective.total), solution.stats.details["passes"])
"""


def test_a_fit_that_is_killed_goes_on(paths, tmp_path):
    def start(checkpoint):
        command = [sys.executable, "-c", textwrap.dedent(SCRIPT), str(checkpoint), *paths]
        return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)

    whole = start(tmp_path / "whole.npz").communicate()[0].split()
    checkpoint, passes = tmp_path / "killed.npz", 0
    killed = start(checkpoint)
    while passes < min(3, int(whole[2]) - 1) and killed.poll() is None:
        time.sleep(0.005)
        if checkpoint.exists():
            with np.load(checkpoint) as file:
                passes = int(file["passes"])
    killed.kill()
    killed.communicate()
    status, total, _ = start(checkpoint).communicate()[0].split()
    assert (status, total) == (whole[0], whole[1])
    assert status == "optimal"
