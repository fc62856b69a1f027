"""A solver comparison believes no solver: bad ones are shown as what they are and cost their own rows only."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import textwrap
import time

import cvxpy as cp
import numpy as np
import pytest

import nerm
from nerm.certify.solution import Status
from nerm.errors import InvalidInputError
from nerm.experiments import compare_solvers
from nerm.experiments.compare import Case, cases
from tests.experiments.bad_solvers import Bad, Counting, Missing

pytestmark = pytest.mark.long

TINY = Case("tiny", "size", n=30, d=3)
WRONG = ("broken", "hangs", "nan", "lies", "dies", "exits", "crooked", "infeasible", "hungry", "devours")


@pytest.fixture(scope="module")
def table():
    solvers = [*(Bad(name) for name in WRONG), Missing("missing"), "clarabel"]
    found = compare_solvers([TINY], solvers, tols=[1e-3, 1e-6], time_limit=2)
    return found.set_index(["solver", "tol"])


def test_the_table_has_a_row_for_every_run_and_the_promised_columns():
    found = compare_solvers([TINY], ["smo"], tols=[1e-6, 1e-3])
    measured = {"n", "d", "seconds", "peak_mb", "claim", "status", "certified_gap", "correct_claim", "reason"}
    assert set(found.columns) == measured | {"problem", "family", "case", "solver", "version", "tol"}
    assert found[["tol", "status"]].values.tolist() == [[1e-3, "solved"], [1e-6, "solved"]]
    assert (found["n"].tolist(), found["d"].tolist()) == ([30, 30], [3, 3])
    assert (found["certified_gap"] <= found["tol"]).all()
    assert (found["version"] == nerm.__version__).all()


def test_a_good_solver_among_bad_ones_is_not_harmed(table):
    for tol in (1e-3, 1e-6):
        row = table.loc["clarabel", tol]
        assert (row.status, row.correct_claim, row.claim) == ("solved", 1, "optimal")
        assert 0 < row.seconds < 2


def test_installed_but_broken(table):
    row = table.loc["broken", 1e-3]
    assert row.status == "error"
    assert row.reason == "ImportError: libbroken.so.1: cannot open shared object file"
    assert math.isnan(row.correct_claim)
    assert table.loc["missing", 1e-3].status == "error"
    assert "nerm_no_such_package" in table.loc["missing", 1e-3].reason


def test_a_solver_that_hangs_is_killed_and_not_asked_for_more(table):
    row, finer = table.loc["hangs", 1e-3], table.loc["hangs", 1e-6]
    assert (row.status, row.seconds, row.reason) == ("time limit", 2.0, "killed after 2 s")
    assert (finer.status, finer.seconds) == ("time limit", 2.0)
    assert finer.reason == "not tried: the time was up at tol 0.001 already"


def test_numbers_that_are_no_hypothesis_are_no_answer(table):
    row = table.loc["nan", 1e-6]
    assert (row.status, row.claim, row.correct_claim) == ("no answer", "optimal", 0)
    assert math.isnan(row.certified_gap)
    assert row.reason == Status.FAILED.sentence
    crooked = table.loc["crooked", 1e-6]
    assert crooked.status == "error"
    assert "'coef' must have one entry for each of the 3 coefficients. Got shape (4,)." in crooked.reason


def test_a_lie_about_optimality_is_called_one(table):
    row = table.loc["lies", 1e-3]
    assert (row.status, row.claim, row.correct_claim) == ("inaccurate", "optimal", 0)
    problem = TINY.problem()
    best = problem.solve(tol=1e-9).objective.total
    value = problem.evaluate(np.zeros(3), 0.0).total  # f = 0 is better than the liar's hypothesis
    assert row.certified_gap >= (value - best) / value - 1e-9  # a bound, never below the truth
    assert row.reason.startswith("nerm certifies a relative gap of ")


def test_infeasible_is_a_false_claim_about_a_problem_that_always_has_an_optimum(table):
    assert tuple(table.loc["infeasible", 1e-3][["status", "correct_claim"]]) == ("no answer", 0)


def test_a_crash_costs_its_own_row(table):
    assert tuple(table.loc["dies", 1e-3][["status", "reason"]]) == (
        "crashed",
        "its process ended with code -11 and no answer",
    )
    assert tuple(table.loc["exits", 1e-3][["status", "reason"]]) == (
        "crashed",
        "its process ended with code 3 and no answer",
    )


def test_memory_is_what_the_run_added(table):
    assert 60 <= table.loc["hungry", 1e-3].peak_mb <= 90
    assert table.loc["lies", 1e-3].peak_mb <= 20


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux limits the memory of a process")
def test_memory_without_end_is_an_error_and_not_the_end_of_the_machine(table):
    row = table.loc["devours", 1e-3]
    assert (row.status, row.reason[:12]) == ("error", "MemoryError:")


def test_solvers_are_compared_on_a_problem_of_ones_own(tmp_path):
    """A user asks which solver suits the problem at hand: a loss of one's own, a kernel, a constraint."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 3)), rng.integers(0, 2, 40)
    lenient = nerm.margin_function(lambda m: cp.pos(0.5 - m), name="lenient")
    mine = (nerm.Risk(lenient) + 0.1 * nerm.SquaredL2()).on(X, y)
    kernel = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()).on(X, y, kernel="rbf")
    given = {"solvers": ["clarabel", "smo"], "tols": [1e-5], "results": tmp_path / "own.csv"}
    found = compare_solvers(mine, **given)
    assert found["problem"].tolist() == ["given-0", "given-0"]
    assert (found["n"].tolist(), found["d"].tolist()) == ([40, 40], [3, 3])
    assert found.set_index("solver").loc["clarabel", "status"] == "solved"
    both = compare_solvers([kernel, TINY, mine], **given)  # the file knows problems by their data
    names = set(zip(both["problem"], both["case"], strict=True))
    assert {name for name, _ in names} == {"given-0", "tiny", "given-2"}
    assert len({case for _, case in names}) == 3
    assert (both["status"][both["solver"] == "clarabel"] == "solved").all()


def test_unsupported_problem_is_no_failure():
    found = compare_solvers(
        [Case("kernel", "kernel", n=20, d=2, kernel="rbf")], ["interior-point"], tols=[1e-3]
    )
    assert found["status"].tolist() == ["not taken"]
    assert found["reason"][0]


def test_a_file_is_resumed_and_extended_and_nothing_is_run_twice(tmp_path):
    marks, results = tmp_path / "marks", tmp_path / "solvers.csv"
    counting = Counting("counting", marks=str(marks))
    first = compare_solvers([TINY], [counting], tols=[1e-3], results=results)
    assert (len(first), marks.read_text()) == (1, "x")
    again = compare_solvers([TINY], [counting], tols=[1e-3], results=results)
    assert marks.read_text() == "x"
    assert again.equals(first)
    more = compare_solvers([TINY], [counting, "smo"], tols=[1e-3, 1e-5], results=results)
    assert (len(more), marks.read_text()) == (4, "xx")
    # A later run of something else keeps what is there.
    other = compare_solvers([Case("other", "size", n=20, d=2)], ["smo"], tols=[1e-3], results=results)
    assert sorted(set(other["problem"])) == ["other", "tiny"]
    assert len(other) == 5
    # Another problem of the same name is another problem.
    changed = compare_solvers([Case("tiny", "size", n=31, d=3)], ["smo"], tols=[1e-3], results=results)
    assert sorted(changed[changed["problem"] == "tiny"]["n"].unique()) == [30, 31]


def test_a_file_of_another_version_is_refused_and_left_as_it_is(tmp_path):
    results = tmp_path / "solvers.csv"
    compare_solvers([TINY], ["smo"], tols=[1e-3], results=results)
    with pytest.raises(InvalidInputError, match=r"with time limit 3.0\. Got time limit 10.0\."):
        compare_solvers([TINY], ["smo"], tols=[1e-3], results=results, time_limit=3)
    old = results.read_bytes().replace(f'"nerm": "{nerm.__version__}"'.encode(), b'"nerm": "0.0.1"')
    results.write_bytes(old)
    with pytest.raises(InvalidInputError) as error:
        compare_solvers([TINY], ["smo"], tols=[1e-3], results=results)
    assert str(error.value) == (
        f"the results file '{results}' must be of this experiment, with nerm {nerm.__version__}. Got nerm 0.0.1. "
        "Choose another file name; this file is not changed."
    )
    assert results.read_bytes() == old
    results.write_text("a,b\n1,2\n")
    with pytest.raises(InvalidInputError, match="must be a results file of nerm"):
        compare_solvers([TINY], ["smo"], tols=[1e-3], results=results)


def test_a_killed_comparison_leaves_no_process_and_is_resumed(tmp_path):
    results, marks = tmp_path / "solvers.csv", tmp_path / "marks"
    script = textwrap.dedent(
        f"""
        from tests.experiments.bad_solvers import Bad, Counting
        from tests.experiments.test_compare_solvers import TINY
        from nerm.experiments import compare_solvers
        compare_solvers([TINY], [Counting("counting", marks={str(marks)!r}), Bad("hangs")], tols=[1e-3],
                        time_limit=60, results={str(results)!r})
        """
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], cwd=os.getcwd(), env={**os.environ, "PYTHONPATH": "."}
    )
    try:
        deadline = time.monotonic() + 60
        while not (results.is_file() and b"counting" in results.read_bytes()):
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.05)
        while not (children := _children(process.pid)):  # the run that hangs
            assert time.monotonic() < deadline
            time.sleep(0.05)
        process.send_signal(signal.SIGKILL)
        process.wait()
        while any(os.path.exists(f"/proc/{pid}") for pid in children):
            assert time.monotonic() < deadline, "the server outlived its parent"
            time.sleep(0.05)
    finally:
        process.kill()
        process.wait()
    table = compare_solvers(
        [TINY], [Counting("counting", marks=str(marks)), "smo"], tols=[1e-3], time_limit=60, results=results
    )
    assert marks.read_text() == "x"  # the run before the kill was kept
    assert table[["solver", "status"]].values.tolist() == [["counting", "solved"], ["smo", "solved"]]


def _children(pid: int) -> list[int]:
    if not os.path.exists(f"/proc/{pid}/task/{pid}/children"):
        pytest.skip("needs /proc to see processes")
    with open(f"/proc/{pid}/task/{pid}/children") as file:
        found = [int(p) for p in file.read().split()]
    for task in os.listdir(f"/proc/{pid}/task"):
        with open(f"/proc/{pid}/task/{task}/children") as file:
            found += [int(p) for p in file.read().split()]
    return sorted(set(found))


def test_the_sets_are_large_enough_seeded_and_of_every_family(monkeypatch):
    monkeypatch.delenv("NERM_DATA", raising=False)
    found = cases("default")
    assert len(found) >= 60
    assert len({case.name for case in found}) == len(found)
    families = {"size", "shape", "density", "condition", "eta", "lambda", "atoms", "kernel", "real"}
    assert {case.family for case in found} == families
    for case in cases("quick"):
        one, two = case.problem(), case.problem()
        assert np.array_equal(one.hypothesis.X, two.hypothesis.X)
        assert np.array_equal(one.y, two.y)


def test_every_default_problem_can_be_made(monkeypatch):
    monkeypatch.delenv("NERM_DATA", raising=False)
    for case in cases("default"):
        problem = case.problem()
        assert problem.n == (442 if case.dataset else case.n)
        assert problem.etas[0] == case.eta


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"problems": "huge"}, "'problems' must be one of 'default', 'quick'. Got 'huge'"),
        ({"problems": []}, "'problems' and 'solvers' must not be empty"),
        ({"problems": ["size"]}, "'problems' must be Problems or Cases. Got 'size'"),
        ({"solvers": ["gurobi9"]}, "'solvers' must be one of .*Got 'gurobi9'"),
        ({"solvers": [3]}, "'solvers' must be one of .*Got 3"),
        ({"solvers": []}, "'problems' and 'solvers' must not be empty"),
        ({"tols": []}, "'tols' must not be empty"),
        ({"tols": [0.0]}, "'tols' must be"),
        ({"time_limit": -1}, "'time_limit' must be"),
        ({"n_jobs": 0}, "'n_jobs' must be"),
    ],
)
def test_bad_input(options, message):
    with pytest.raises(InvalidInputError, match=message):
        compare_solvers(**{"problems": [TINY], **options})
