"""Rows on several threads: the same sums, and everything given back."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

from nerm.solvers.interior_point.threads import RowThreads, cores


@pytest.mark.parametrize("n", [0, 1, 100, 5_999, 6_000, 40_001])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_ranges_cover_every_row_once(n, count):
    with RowThreads(n, 5, count) as workers:
        parts = workers.run(lambda start, stop: list(range(start, stop)))
    assert [i for part in parts for i in part] == list(range(n))
    assert 1 <= len(parts) <= count
    assert (len(parts) > 1) == (n >= 6_000 and count > 1)  # few rows are not worth a thread


def test_fewer_rows_on_the_same_threads():
    before = threading.active_count()
    with RowThreads(40_000, 5, 3) as workers:
        x = np.arange(20_000.0)
        assert sum(workers.fewer(20_000).run(lambda start, stop: x[start:stop].sum())) == x.sum()
    assert threading.active_count() == before


@pytest.mark.parametrize("count", [1, 3])
def test_sums_over_ranges_are_those_over_all_rows(count):
    X = np.random.default_rng(0).normal(size=(40_000, 3))
    with RowThreads(40_000, 5, count) as workers:
        np.testing.assert_allclose(
            workers.add_up(lambda start, stop: X[start:stop].sum(axis=0)), X.sum(axis=0)
        )


def test_an_error_in_a_thread_is_seen():
    def fails(start: int, stop: int) -> None:
        if start:
            raise ValueError("here")

    with RowThreads(40_000, 5, 2) as workers, pytest.raises(ValueError, match="here"):
        workers.run(fails)


def test_cores_are_those_this_process_may_use():
    assert 1 <= cores() <= 8


def test_where_nobody_knows_of_cores_there_is_one(monkeypatch):
    monkeypatch.delattr(os, "sched_getaffinity", raising=False)
    for known, count in ((None, 1), (3, 3), (64, 8)):
        monkeypatch.setattr(os, "cpu_count", lambda known=known: known)
        assert cores() == count


SEVERAL = """
from concurrent.futures import ThreadPoolExecutor
import numpy as np, scipy.linalg
from threadpoolctl import threadpool_info
from nerm.solvers.interior_point import Engine, threads
from tests.engine.problems import Case, many

def blas_threads():
    return max(library["num_threads"] for library in threadpool_info() if library["user_api"] == "blas")

X, y, v = many(20_000, 7)
one = np.ones(len(y))
case = Case(X, y, [("hinge", one)], 1e-3, [("hinge", 1.0, v, one)])
print(blas_threads())
with ThreadPoolExecutor(3) as pool:
    list(pool.map(lambda _: case.solve(), range(6)))
print(blas_threads())
with threads.RowThreads(20_000, 5, 2) as workers:
    print(blas_threads(), *workers.run(lambda start, stop: blas_threads()))
print(blas_threads())
case.engine(workers=2).path([(case.factors(scale), case.mu) for scale in np.geomspace(0.1, 10, 16)])
print(blas_threads())
"""


@pytest.mark.long
def test_blas_gets_its_threads_back_from_all_who_held_them():
    """In a process of its own: the tests themselves run BLAS on one thread, which would hide what is not given back."""
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "2", "OMP_NUM_THREADS": "2"}
    ran = subprocess.run(
        [sys.executable, "-c", SEVERAL], capture_output=True, text=True, env=environment, check=True
    )
    many = ran.stdout.split("\n")[0]
    if many == "1":
        pytest.skip("BLAS has one thread on one core: there is nothing to give back")
    assert ran.stdout.split("\n") == [many, many, "1 1 1", many, many, ""]
