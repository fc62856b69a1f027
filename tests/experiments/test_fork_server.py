"""What the process of one run says, step by step; here without a process."""

from __future__ import annotations

import pickle
import signal

import pytest

from nerm.experiments.compare import Case
from nerm.experiments.compare.fork_server import _death, _lateness, in_megabytes, run
from tests.experiments.bad_solvers import Bad

TINY = Case("tiny", "size", n=30, d=3)


def said(solver, case=TINY, tol=1e-6):
    """Return the phases of a run and everything that was said in them."""
    phases, facts = [], {}

    def say(phase, **news):
        phases.append(phase)
        facts.update(news)

    run(pickle.dumps((solver, case, tol)), say)
    return phases, facts


def test_a_good_run_is_prepared_solved_and_judged():
    phases, facts = said("interior-point")
    assert phases == ["preparing", "solving", "judging", "done"]
    assert (facts["status"], facts["n"], facts["d"]) == ("solved", 30, 3)
    assert facts["certified_gap"] <= 1e-6
    assert facts["seconds"] >= 0
    assert facts["start_mb"] > 0


@pytest.mark.parametrize(
    ("name", "status", "reason"),
    [
        ("lies", "inaccurate", "nerm certifies a relative gap of"),
        ("nan", "no answer", "not finite"),
        ("crooked", "no answer", "coefficients of shape"),
        ("infeasible", "no answer", "no hypothesis"),
        ("broken", "error", "ImportError: libbroken"),
    ],
)
def test_a_bad_run_says_what_is_wrong_with_it(name, status, reason):
    phases, facts = said(Bad(name))
    assert phases[-1] == "done"
    assert facts["status"] == status
    assert reason in facts["reason"]


def test_what_a_solver_does_not_take_is_said_before_it_is_asked():
    phases, facts = said("interior-point", Case("kernel", "kernel", n=30, d=3, kernel="rbf"))
    assert phases == ["preparing", "done"]
    assert facts["status"] == "not taken"
    assert facts["reason"]


def test_a_solver_that_nobody_knows_is_an_error():
    assert said("no-such-solver")[1]["status"] == "error"


def test_being_late_is_the_solvers_fault_only_while_it_solves():
    assert _lateness("solving", 2.0) == {"status": "time limit", "seconds": 2.0, "reason": "killed after 2 s"}
    assert "making the problem took more than" in _lateness("preparing", 2.0)["reason"]
    assert "nerm's certificate took more than" in _lateness("judging", 2.0)["reason"]


def test_how_a_process_ended():
    assert _death(int(signal.SIGSEGV)) == "it died of SIGSEGV"
    assert "memory limit" in _death(int(signal.SIGABRT))
    assert "with code 3 and no answer" in _death(3 << 8)


def test_memory_is_in_megabytes_on_every_system(monkeypatch):
    monkeypatch.setattr("sys.platform", "linux")
    assert in_megabytes(2048) == 2
    monkeypatch.setattr("sys.platform", "darwin")
    assert in_megabytes(2 * 2**20) == 2
