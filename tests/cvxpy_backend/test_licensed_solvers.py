"""Licensed solvers, none of which is installed here: found by name, and spoken to in their own words."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import cvxpy as cp
import pytest

import nerm
from nerm import Hinge, Risk, SquaredL2
from nerm.solvers import clock
from tests.conftest import make_data

PACKAGES = {"mosek": "mosek", "gurobi": "gurobipy", "cplex": "cplex", "xpress": "xpress", "copt": "coptpy"}
X, Y, _ = make_data(0)


def bound(loss=None):
    return (Risk(loss or Hinge()) + 0.1 * SquaredL2()).on(X, Y)


@pytest.mark.parametrize("name", PACKAGES)
def test_one_that_is_not_there_is_named(name):
    if name in nerm.solvers.available():
        pytest.skip(f"{name} is installed")
    with pytest.raises(
        nerm.MissingPackageError, match=f"solver '{name}' needs the package '{PACKAGES[name]}'"
    ):
        bound().solve(name)


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Put empty packages where Python looks; whoever imports one fails."""
    for package in PACKAGES.values():
        (tmp_path / f"{package}.py").write_text("raise RuntimeError('imported')")
    monkeypatch.syspath_prepend(str(tmp_path))


def test_one_that_is_there_is_found_without_being_imported(installed):
    assert set(PACKAGES) <= set(nerm.solvers.available())
    assert not set(PACKAGES.values()) & set(sys.modules)


@pytest.fixture
def asked(monkeypatch):
    """Return what cvxpy is asked for; Clarabel does the work of the solvers that are not here."""
    found, solve, data = [], cp.Problem.solve, cp.Problem.get_problem_data

    def instead(problem, solver, **options):
        found.append((solver, options))
        return solve(problem, solver="CLARABEL")

    monkeypatch.setattr(cp.Problem, "solve", instead)
    monkeypatch.setattr(
        cp.Problem, "get_problem_data", lambda problem, _, *more: data(problem, "CLARABEL", *more)
    )
    return found


def flat(options):
    """Return the options with those inside of others beside them."""
    inner = {k: v for value in options.values() if isinstance(value, dict) for k, v in value.items()}
    return {**{k: v for k, v in options.items() if not isinstance(v, dict)}, **inner}


TOLERANCES = {
    "mosek": {"eps"},
    "gurobi": {"BarConvTol", "BarQCPConvTol", "FeasibilityTol", "OptimalityTol"},
    "cplex": {
        "barrier.convergetol",
        "barrier.qcpconvergetol",
        "simplex.tolerances.feasibility",
        "simplex.tolerances.optimality",
    },
    "xpress": {"bargaptarget", "barprimalstop", "bardualstop", "feastol", "optimalitytol"},
    "copt": {"FeasTol", "DualTol"},
}
CLOCKS = {
    "mosek": "MSK_DPAR_OPTIMIZER_MAX_TIME",
    "gurobi": "TimeLimit",
    "cplex": "timelimit",
    "xpress": "timelimit",
    "copt": "TimeLimit",
}


@pytest.mark.parametrize("name", PACKAGES)
def test_it_is_driven_and_certified_like_any_other(name, installed, asked):
    solution = bound().solve(name)
    assert (solution.status, solution.stats.solver) == (nerm.Status.OPTIMAL, name)
    solver, options = asked[0]
    assert solver == name.upper()
    tolerances = {k: v for k, v in flat(options).items() if k in TOLERANCES[name]}
    assert set(tolerances) == TOLERANCES[name]
    assert set(tolerances.values()) == {1e-8}
    assert CLOCKS[name] not in flat(options)
    bound().solve(name, tol=1e-9)  # none of their tolerances may be below 1e-9
    assert {flat(asked[1][1])[k] for k in TOLERANCES[name]} == {1e-9}


@pytest.mark.parametrize("name", PACKAGES)
def test_its_clock_is_set(name, installed, asked):
    assert bound().solve(name, time_limit=600).status is nerm.Status.OPTIMAL
    assert 0 < flat(asked[0][1])[CLOCKS[name]] <= 600


def test_its_own_options_come_before_ours(installed, asked):
    bound().solve("mosek", mosek_params={"MSK_IPAR_NUM_THREADS": 1}, time_limit=600)
    bound().solve("gurobi", BarConvTol=1e-3)
    inner = asked[0][1]["mosek_params"]
    assert set(inner) == {"MSK_IPAR_NUM_THREADS", "MSK_DPAR_OPTIMIZER_MAX_TIME"}
    assert asked[1][1]["BarConvTol"] == 1e-3


def test_cvxpys_own_reader_of_cplex_options_understands_ours():
    from cvxpy.reductions.solvers.conic_solvers.cplex_conif import set_parameters

    seen = {}

    def parameter(name):
        return SimpleNamespace(set=lambda value: seen.update({name: value}))

    tolerances = SimpleNamespace(feasibility=parameter("feasibility"), optimality=parameter("optimality"))
    barrier = SimpleNamespace(convergetol=parameter("gap"), qcpconvergetol=parameter("cone gap"))
    tree = SimpleNamespace(
        barrier=barrier, simplex=SimpleNamespace(tolerances=tolerances), timelimit=parameter("seconds")
    )
    set_parameters(
        SimpleNamespace(parameters=tree), nerm.solvers.known()["cplex"].options(1e-7, clock.after(5.0), {})
    )
    assert set(seen) == {"feasibility", "optimality", "gap", "cone gap", "seconds"}


@pytest.mark.parametrize("name", ["clarabel", "scs", "osqp", "highs", "qpalm"])
def test_the_clocks_of_those_that_are_here_are_their_own_options(name):
    """An option that a solver does not know is refused, and this one is not."""
    if name not in nerm.solvers.available():
        pytest.skip(f"{name} is not installed")
    solver, problem = nerm.solvers.known()[name], bound().to_cvxpy()
    with pytest.raises(nerm.InvalidInputError, match=f"every option must be one of {name}'s own"):
        solver.run(problem, 1e-6, {"no_such_option": 1}, clock.NEVER)
    solver.run(problem, 1e-6, {}, clock.after(600))  # no complaint
    assert problem.value == pytest.approx(bound().solve().objective.total, rel=1e-2)
