"""Time limits: a solver that is stopped returns a hypothesis with a certificate, and no process stays behind."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from dataclasses import dataclass

import numpy as np
import pytest

import nerm
from nerm import Hinge, Neutrality, Risk, SquaredL2
from nerm.solvers import Answer, OwnSolver, clock, process
from tests.conftest import make_data
from tests.oracle import hinge_optimum

X, Y, V = make_data(1, n=80, d=5)
MU, ETA = 0.02, 1.0
OPTIMUM = hinge_optimum(X, Y, V, MU, ETA)[0]
AT_ONCE = 1e-9  # over before anything can happen


def bound(kernel=None, regularizer=None, eta=ETA):
    return (Risk(Hinge()) + MU * (regularizer or SquaredL2()) + eta * Neutrality(Hinge())).on(
        X, Y, viewpoint=V, kernel=kernel
    )


def plain_value(w, b):
    """Return the objective in plain numpy."""
    f = X @ w + b
    plus, minus = (np.maximum(0.0, 1 - t * f).mean() for t in (V, -V))
    return np.maximum(0.0, 1 - Y * f).mean() + MU / 2 * w @ w + ETA * max(plus, minus)


def check(solution):
    """Hold a linear solution's certificate against numbers computed otherwise."""
    assert solution.certificate.primal == pytest.approx(
        plain_value(solution.coef, solution.intercept), rel=1e-12
    )
    assert solution.certificate.dual <= OPTIMUM * (1 + 1e-7)
    assert np.isfinite(solution.certificate.dual)


@pytest.fixture
def ticking(monkeypatch):
    """Let one second pass whenever somebody looks at the clock."""
    seconds = iter(range(10**9))
    monkeypatch.setattr(clock, "perf_counter", lambda: float(next(seconds)))


@pytest.fixture(autouse=True)
def nobody_stays():
    before = set(multiprocessing.active_children())  # workers of joblib wait for others' tests
    yield
    assert set(multiprocessing.active_children()) <= before


@pytest.mark.parametrize("name", nerm.solvers.available())
def test_every_solver_keeps_a_limit(name):
    problem = bound()
    solution = problem.solve(name, time_limit=AT_ONCE)
    assert solution.status is nerm.Status.TIME_LIMIT
    assert solution.stats.timed_out
    assert solution.stats.solver == name
    assert solution.status.sentence.startswith("Time was up before")
    check(solution)
    assert np.isfinite(solution.certificate.relative_gap)
    again = problem.certify(solution.coef, solution.intercept, solution.multipliers)
    assert again.primal == pytest.approx(solution.certificate.primal)


@pytest.mark.parametrize("name", nerm.solvers.available())
def test_a_limit_that_is_long_enough_changes_nothing(name):
    limited, free = (bound().solve(name, tol=1e-3, time_limit=limit) for limit in (600, None))
    assert limited.status is free.status
    assert limited.stats.claim == free.stats.claim
    assert not limited.stats.timed_out
    assert limited.objective.total == pytest.approx(free.objective.total, rel=1e-3)


@pytest.mark.parametrize("name", ["auto", "interior-point", "smo"])
def test_nerms_own_solvers_stop_inside(name, ticking):
    problem = bound()
    rough, better = (problem.solve(name, tol=1e-12, time_limit=seconds) for seconds in (6, 14))
    for solution in (rough, better):
        check(solution)
        assert solution.status is nerm.Status.TIME_LIMIT
    assert better.stats.iterations > rough.stats.iterations > 0
    assert better.certificate.relative_gap < rough.certificate.relative_gap


def test_the_engine_stops_on_few_rows_too(ticking):
    rows, y, v = make_data(2, n=6000, d=3)
    problem = (Risk(Hinge()) + 1e-3 * SquaredL2() + Neutrality(Hinge())).on(rows, y, viewpoint=v)
    best = problem.solve("interior-point", tol=1e-9).objective.total
    for seconds in (4, 8, 12, 16):
        solution = problem.solve("interior-point", tol=1e-12, time_limit=seconds)
        assert solution.certificate.dual <= best * (1 + 1e-12) <= solution.certificate.primal * (1 + 2e-9)


def test_norms_and_kernels_stop_inside(ticking):
    for name, problem in (
        ("interior-point", bound(regularizer=nerm.L1())),
        ("augmented-lagrangian", bound(kernel="rbf")),
    ):
        best = problem.solve("clarabel", tol=1e-7).objective.total
        solution = problem.solve(name, tol=1e-12, time_limit=12)
        assert solution.status is nerm.Status.TIME_LIMIT
        assert solution.certificate.dual <= best * (1 + 1e-7) <= solution.certificate.primal * (1 + 2e-7)


def test_a_path_has_one_limit(ticking):
    for name in ("interior-point", "smo"):
        solutions = bound().path([0.1, 0.5, 1.0, 2.0], name, tol=1e-12, time_limit=24)
        assert [s.status for s in solutions].count(nerm.Status.TIME_LIMIT) >= 2
        check(solutions[2])


@pytest.mark.parametrize("seconds", [3, 10, 40])
def test_the_search_for_a_limits_weight_shares_the_time(seconds, ticking):
    objective = (Risk(Hinge()) + MU * SquaredL2()).subject_to(Neutrality(Hinge()) <= 1.05)
    problem = objective.on(X, Y, viewpoint=V)
    best = problem.solve("clarabel", tol=1e-7).objective.total
    solution = problem.solve("interior-point", tol=1e-11, time_limit=seconds)
    assert solution.status is nerm.Status.TIME_LIMIT
    assert solution.certificate.violation == 0
    assert solution.certificate.dual <= best * (1 + 1e-6) <= solution.certificate.primal * (1 + 2e-6)


def test_constraints_that_exclude_zero_and_no_time(data):
    X, y, v = data
    objective = (Risk(Hinge()) + MU * SquaredL2()).subject_to(nerm.Coefficients() >= 0.1)
    solution = objective.on(X, y, viewpoint=v).solve("clarabel", time_limit=AT_ONCE)
    assert solution.status is nerm.Status.TIME_LIMIT
    assert (solution.coef >= 0.1 - 1e-12).all()
    assert solution.certificate.violation == 0


def test_what_is_good_enough_is_optimal_though_time_was_up():
    solution = bound().solve("clarabel", time_limit=AT_ONCE, tol=2.0)
    assert solution.status is nerm.Status.OPTIMAL
    assert solution.stats.timed_out


@pytest.mark.parametrize("surrogate", [Hinge(), nerm.Identity(), nerm.Squared(), nerm.Logistic()], ids=repr)
@pytest.mark.parametrize("regularizer", [SquaredL2(), nerm.L1(), nerm.GroupL2([[0, 1], [2, 3, 4]])], ids=repr)
def test_who_knows_nothing_says_so_and_no_more(surrogate, regularizer):
    """Then f = 0 is the hypothesis, and nothing but that no loss is negative bounds the optimum from below."""
    problem = (Risk(nerm.Logistic()) + MU * regularizer + Neutrality(surrogate)).on(X, Y, viewpoint=V)
    solution = problem.solve("clarabel", time_limit=AT_ONCE)
    assert solution.status is nerm.Status.TIME_LIMIT
    assert solution.certificate.primal == pytest.approx(np.log(2) + float(surrogate.value(0.0)))
    assert -1e-12 <= solution.certificate.dual <= problem.solve("clarabel", tol=1e-6).objective.total


def test_no_second_opinion_when_time_is_up(monkeypatch):
    solver = nerm.solvers.known()["clarabel"]
    monkeypatch.setattr(type(solver), "open", lambda *_: pytest.fail("asked"))
    assert bound().solve(time_limit=AT_ONCE).stats.solver == "interior-point"


def test_strict_raises():
    with pytest.raises(nerm.NotSolvedError, match="Time was up before nerm could certify the tolerance"):
        bound().solve(time_limit=AT_ONCE, strict=True)


@pytest.mark.parametrize("limit", [0, -1.0, np.nan, np.inf, "soon", [1, 2]])
def test_no_limit_at_all(limit):
    with pytest.raises(
        nerm.InvalidInputError, match=r"'time_limit' must be a finite positive number\. Got .*\. Use"
    ):
        bound().solve(time_limit=limit)
    with pytest.raises(nerm.InvalidInputError, match="'time_limit' must be"):
        bound().path([1.0], time_limit=limit)


# From outside: solvers that know no clock.


@dataclass(frozen=True)
class Foreign(OwnSolver):
    """Does what it is told."""

    how: str
    name: str = "foreign"

    def requirements(self):
        return "anything"

    def why_unsupported(self, problem):
        return None

    def answer(self, problem, accuracy, options):
        if self.how == "sleeps":
            time.sleep(1000)
        elif self.how == "dies":
            os._exit(3)
        elif self.how == "raises":
            raise nerm.InvalidInputError("a", "b", "c")
        return Answer(np.full(5, 0.1), 0.5, claim="done", details={"process": os.getpid()})


def test_a_sleeper_is_ended():
    solution = bound().solve(Foreign("sleeps"), time_limit=0.2)
    assert solution.status is nerm.Status.TIME_LIMIT
    assert solution.stats.claim == "stopped: time is up"
    assert not solution.coef.any()
    check(solution)


def test_an_answer_in_time_comes_from_another_process():
    solution = bound().solve(Foreign("answers"), time_limit=600)
    assert solution.stats.details["process"] != os.getpid()
    assert solution.status is nerm.Status.INACCURATE
    assert not solution.stats.timed_out
    check(solution)
    assert bound().solve(Foreign("answers")).stats.details["process"] == os.getpid()


def test_who_dies_has_failed_and_who_raises_raises():
    solution = bound().solve(Foreign("dies"), time_limit=600)
    assert solution.status is nerm.Status.FAILED
    assert solution.stats.claim == "error: its process ended with code 3"
    with pytest.raises(nerm.InvalidInputError, match=r"a\. Got b\. c\."):
        bound().solve(Foreign("raises"), time_limit=600)


def test_an_interrupt_leaves_no_process():
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # what runs in the background may ignore it
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            bound().solve(Foreign("sleeps"), time_limit=600)
    finally:
        signal.signal(signal.SIGINT, before)


def test_where_nothing_can_be_forked_what_does_not_pickle_is_named(monkeypatch):
    monkeypatch.setattr(process, "START_METHOD", "spawn")
    with pytest.raises(nerm.InvalidInputError, match="its atoms and its options must be picklable"):
        bound().solve(Foreign("sleeps"), time_limit=600, callback=lambda: None)


@pytest.mark.long
def test_a_process_that_is_not_forked_solves_as_well(monkeypatch):
    monkeypatch.setattr(process, "START_METHOD", "spawn")
    untimed = [name for name, solver in nerm.solvers.available().items() if not solver.keeps_time]
    if not untimed:
        pytest.skip("every installed solver has a clock")
    solution = bound().solve(untimed[0], time_limit=600, tol=1e-5)
    assert solution.status is nerm.Status.OPTIMAL
    check(solution)
