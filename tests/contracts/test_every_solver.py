"""Every installed solver: agrees with the textbook QP to the requested gap, or is reported as not solved."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm import Hinge, Neutrality, Risk, SquaredL2
from nerm.solvers.base import Answer, Session, Solver
from tests.conftest import make_data
from tests.oracle import hinge_optimum

NAMES = list(nerm.solvers.available())


def skip_without_neutrality(name):
    """Skip the test if a solver takes no problem with a neutrality term."""
    X, y, v = make_data(0, n=20, d=3)
    losses = (Hinge(), nerm.SquaredHinge(), nerm.Logistic(), nerm.Squared())
    problems = ((Risk(loss) + SquaredL2() + Neutrality(loss)).on(X, y, viewpoint=v) for loss in losses)
    if all(nerm.solvers.available()[name].why_unsupported(problem) for problem in problems):
        pytest.skip(f"{name} takes no neutrality term")


def random_problem(seed):
    """Return a random hinge problem, dense or sparse, and its optimum by the textbook QP."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 80)), int(rng.integers(1, 8))
    X, y, v = make_data(seed, n=n, d=max(d, 2), real_viewpoint=bool(seed % 3 == 0))
    if seed % 2:
        X = X * (rng.random(X.shape) < 0.4)
    mu, eta = float(10 ** rng.uniform(-3, 0)), float(rng.choice([0.0, 0.1, 1.0, 10.0]))
    s, u = (rng.random(n), rng.random(n)) if seed % 5 == 0 else (np.ones(n), np.ones(n))
    value, _, _ = hinge_optimum(X, y, v, mu, eta, s=s, u=u)
    objective = Risk(Hinge()) + mu * SquaredL2() + eta * Neutrality(Hinge(), weights=u)
    problem = objective.on(sp.csr_matrix(X) if seed % 2 else X, y, viewpoint=v, sample_weight=s)
    return problem, value


def check(name, seeds, tol=1e-5):
    """Return the share that was solved; fail if an answer called optimal is not."""
    solved = 0
    for seed in seeds:
        problem, optimum = random_problem(seed)
        solution = problem.solve(name, tol=tol)
        if solution.status == "optimal":
            solved += 1
            assert solution.objective.total <= optimum * (1 + tol) + 1e-9, (
                f"{name} called optimal wrongly on seed {seed}"
            )
        assert solution.certificate.dual <= optimum * (1 + 1e-7) + 1e-9, (
            f"{name}: dual bound above the optimum on seed {seed}"
        )
    return solved / len(seeds)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_the_textbook_qp(name):
    skip_without_neutrality(name)
    share = check(name, range(6))
    if name in ("clarabel", "ecos", "piqp", "qoco", "interior-point"):
        assert share == 1.0


EASY = {
    "hinge": (Risk(Hinge()) + 0.3 * SquaredL2() + 0.5 * Neutrality(Hinge()), None),
    "squared hinge": (Risk(nerm.SquaredHinge()) + 0.3 * SquaredL2() + 0.5 * Neutrality(Hinge()), None),
    "l1": (Risk(Hinge()) + 0.05 * nerm.L1() + 0.5 * Neutrality(Hinge()), None),
    "rbf": (Risk(Hinge()) + 0.3 * SquaredL2() + 0.5 * Neutrality(Hinge()), "rbf"),
    "without neutrality": (Risk(nerm.Squared()) + 0.3 * SquaredL2(), None),
}
# ProxQP calls feasible problems infeasible where the quadratic part is singular or scaled unevenly.
BEYOND = {"proxqp": ("squared hinge", "l1")}


@pytest.mark.parametrize("name", nerm.solvers.available())
def test_certifies_easy_problems(name):
    """A solver certifies every small, well-conditioned problem that it takes."""
    solver, taken = nerm.solvers.available()[name], 0
    for kind, (objective, kernel) in EASY.items():
        for seed in range(2):
            X, y, v = make_data(seed, n=20, d=3)
            problem = objective.on(X, y, viewpoint=v, kernel=kernel)
            if solver.why_unsupported(problem) is None and kind not in BEYOND.get(name, ()):
                taken += 1
                solution = problem.solve(name, tol=1e-4)
                assert solution.status == "optimal", (kind, seed, solution)
    assert taken >= 2


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_agrees_with_the_textbook_qp_on_many_problems(name, record_property):
    skip_without_neutrality(name)
    share = check(name, range(100), tol=1e-6)
    record_property("solved", share)
    print(f"{name}: {share:.0%} of 100 solved to 1e-6, none called optimal wrongly")


@pytest.mark.parametrize("name", ["clarabel", "ecos", "scs"])
def test_conic_solvers_take_every_kind_of_atom(name):
    if name not in nerm.solvers.available():
        pytest.skip(f"{name} has no wheel for this Python")
    X, y, v = make_data(3, n=30)
    for loss, surrogate in (
        (nerm.Logistic(), nerm.Exponential()),
        (nerm.Squared(), nerm.Logistic()),
        (Hinge(), nerm.Identity()),
    ):
        solution = (
            (Risk(loss) + 0.1 * SquaredL2() + 0.5 * Neutrality(surrogate))
            .on(X, y, viewpoint=v)
            .solve(name, tol=1e-5)
        )
        assert solution.status == "optimal"


@pytest.mark.long
def test_available_imports_no_solver():
    names = ("cvxpy", "clarabel", "osqp", "highspy", "piqp", "numba")
    code = f"import sys, nerm; nerm.solvers.available(); print([m for m in {names} if m in sys.modules])"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


def test_requirements_are_stated():
    for solver in nerm.solvers.known().values():
        assert solver.requirements()
        assert solver.package


def test_auto_reports_solver_and_reason(data):
    X, y, v = data
    stats = (Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v).solve().stats
    assert stats.solver in nerm.solvers.available()
    assert stats.reason
    assert stats.version


# Solvers that fail, stop early or claim too much.


class Fake(Solver):
    name, package = "fake", "numpy"

    def __init__(self, answer):
        self.given = answer

    def requirements(self):
        return "anything"

    def why_unsupported(self, problem):
        return None

    def open(self, problem):
        given = self.given

        class Once(Session):
            def answer(self, problem, accuracy, options):
                return given(problem)

        return Once()


@pytest.fixture
def problem(data):
    X, y, v = data
    return (Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v)


def test_false_claims_are_inaccurate(problem):
    solution = problem.solve(Fake(lambda p: Answer(np.ones(4), 0.0, claim="optimal")))
    assert solution.status == "inaccurate"
    assert solution.stats.claim == "optimal"
    assert solution.certificate.relative_gap > 1e-3


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        (Answer(None, 0.0, claim="infeasible"), "no"),
        (Answer(np.full(4, np.nan), 0.0, claim="optimal"), "infinite or nan"),
        (Answer(np.ones(4), np.inf), "infinite or nan"),
    ],
)
def test_unusable_answers_are_failures(problem, answer, kind):
    solution = problem.solve(Fake(lambda p: answer))
    assert solution.status == "failed"
    assert solution.certificate.reason == f"the solver returned {kind} coefficients"
    assert solution.certificate.relative_gap == np.inf
    assert not solution.coef.any()


def test_strict_raises(problem):
    with pytest.raises(
        nerm.NotSolvedError,
        match=r"exceeds the tolerance. Certified relative gap .*, tolerance 1e-06, solver 'fake' claims 'optimal'",
    ):
        problem.solve(Fake(lambda p: Answer(np.ones(4), 0.0, claim="optimal")), strict=True)


def test_early_stop_is_reported(problem):
    solution = problem.solve("clarabel", max_iter=2)
    assert solution.status in ("inaccurate", "failed")
    assert solution.certificate.relative_gap > 1e-6
