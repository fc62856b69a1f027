"""The solvers that cvxpy drives: their options for accuracy and time, and their failures.

A solver is one entry of `DRIVEN`, and nothing else.
"""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.solvers import clock

QP = "quadratic programs: piecewise linear or quadratic losses, piecewise linear surrogates, no group norm"
SOCP = "second-order cone programs: every atom but logistic and exponential"
EXP = "every atom"

INTERIOR, ROUGH = (1e-2, 1e-4), (1e-1, 1e-3)  # for interior-point and for first-order methods


@dataclass(frozen=True)
class Driven:
    """A solver behind cvxpy, in its own words. An option "a/b" is the entry b of the option a.

    Attributes
    ----------
    name, package : str
        Its name in lower case, and the package that it needs.
    cones : str
        What it can take.
    accuracy : tuple of str
        The options that get the accuracy.
    clock : str
        The option that gets the seconds; "" where there is none.
    fixed : dict
        Further options.
    tighten : tuple of float
        The accuracies asked for, as fractions of the tolerance: a first try, and a second if its certificate
        fails.
    finest : float
        The finest accuracy that it takes.
    slower : float
        How many times as long it takes as Clarabel; infinite for one that is asked by name only.

    """

    name: str
    package: str
    cones: str
    accuracy: tuple[str, ...] = ()
    clock: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    tighten: tuple[float, ...] = INTERIOR
    finest: float = 1e-12
    slower: float = np.inf

    def options(self, accuracy: float, deadline: float, given: dict[str, Any]) -> dict[str, Any]:
        """Return the options for an accuracy and a deadline; given options come first."""
        asked = {**dict.fromkeys(self.accuracy, max(accuracy, self.finest)), **self.fixed}
        if self.clock and deadline < clock.NEVER:
            asked[self.clock] = clock.left(deadline)
        options: dict[str, Any] = {}
        for name, value in asked.items():
            outer, _, inner = name.rpartition("/")
            (options.setdefault(outer, {}) if outer else options)[inner] = value
        return {**options, **{name: _over(options.get(name), value) for name, value in given.items()}}


def _over(ours: Any, given: Any) -> Any:
    """Return a given option, with what it leaves open where it is a dict."""
    return {**ours, **given} if isinstance(ours, dict) and isinstance(given, dict) else given


def _in(outer: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{outer}/{name}" for name in names)


_HIGHS = _in("highs_options", "primal_feasibility_tolerance", "dual_feasibility_tolerance")
_PIQP = ("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel")
_GUROBI = ("BarConvTol", "BarQCPConvTol", "FeasibilityTol", "OptimalityTol")
_CPLEX = _in(
    "cplex_params",
    "barrier.convergetol",
    "barrier.qcpconvergetol",
    "simplex.tolerances.feasibility",
    "simplex.tolerances.optimality",
)
_XPRESS = ("bargaptarget", "barprimalstop", "bardualstop", "feastol", "optimalitytol")

_STEPS = {"max_iter": 50_000}
_CYCLES = {"highs_options/qp_iteration_limit": 20_000}  # its active-set method for QPs can cycle for ever
_MOSEK_CLOCK = "mosek_params/MSK_DPAR_OPTIMIZER_MAX_TIME"

DRIVEN = {
    driven.name: driven
    for driven in (
        Driven(
            "clarabel",
            "clarabel",
            EXP,
            ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
            "time_limit",
            {"max_iter": 500},
            slower=1.0,
        ),
        Driven("ecos", "ecos", EXP, ("abstol", "reltol", "feastol"), fixed={"max_iters": 500}, slower=3.0),
        Driven("scs", "scs", EXP, ("eps_abs", "eps_rel"), "time_limit_secs", {"max_iters": 50_000}, ROUGH),
        Driven(
            "osqp", "osqp", QP, ("eps_abs", "eps_rel"), "time_limit", {**_STEPS, "polishing": True}, ROUGH
        ),
        Driven(
            "highs", "highspy", "linear and " + QP, _HIGHS, "highs_options/time_limit", _CYCLES, finest=1e-10
        ),
        Driven("piqp", "piqp", QP, _PIQP, fixed={"max_iter": 500}),
        Driven("daqp", "daqp", QP, ("primal_tol", "dual_tol")),
        Driven("qpalm", "qpalm", QP, ("eps_abs", "eps_rel"), "time_limit", _STEPS, ROUGH),
        Driven("proxqp", "proxsuite", QP, ("eps_abs", "eps_rel"), fixed=_STEPS, tighten=ROUGH),
        Driven("qoco", "qoco", SOCP, ("abstol", "reltol"), fixed={"max_iters": 500}),
        # Licensed ones: none finer than 1e-9, which is the least that some of their tolerances can be.
        Driven("mosek", "mosek", EXP, ("eps",), _MOSEK_CLOCK, {"accept_unknown": True}, finest=1e-9),
        Driven("gurobi", "gurobipy", SOCP, _GUROBI, "TimeLimit", finest=1e-9),
        Driven("cplex", "cplex", SOCP, _CPLEX, "cplex_params/timelimit", finest=1e-9),
        Driven("xpress", "xpress", SOCP, _XPRESS, "timelimit", finest=1e-9),
        Driven("copt", "coptpy", EXP, ("FeasTol", "DualTol"), "TimeLimit", finest=1e-9),
    )
}


def run(
    problem: Any,
    solver: str,
    accuracy: float,
    options: dict[str, Any],
    deadline: float = clock.NEVER,
    *,
    afresh: bool = False,
) -> str:
    """Solve a cvxpy problem and return the solver's claim; "error: ..." if it failed.

    Parameters
    ----------
    problem : cvxpy.Problem
        With every parameter set.
    solver : str
        In lower case. One that is not in DRIVEN runs at its own accuracy.
    accuracy : float
        In the solver's own terms, by DRIVEN.
    options : dict
        The solver's own; one that it does not know is refused.
    deadline : float
        When to stop (`nerm.solvers.clock`); only where the solver has a clock.
    afresh : bool
        Whether the solver forgets what it knows of the last solve, how it scaled that problem among others.

    Returns
    -------
    str
        The solver's own word.

    """
    import cvxpy as cp

    settings = DRIVEN.get(solver, Driven(solver, "", "")).options(accuracy, deadline, options)
    with warnings.catch_warnings():
        # cvxpy's doubts about accuracy: the certificate gives the verdict, the claim is kept.
        warnings.filterwarnings("ignore", message=".*[Ss]olution may be inaccurate.*")
        warnings.filterwarnings("ignore", message=".*Converting .* to a CSC.*")
        try:
            problem.solve(solver=solver.upper(), warm_start=not afresh, **settings)
        except cp.error.SolverError as error:
            if options and "nrecognized" in str(error):
                raise _bad_options(solver, options, error) from error
            return f"error: {error}"
        except (TypeError, AttributeError, KeyError, ValueError) as error:
            # This is how the interfaces of cvxpy report an option that the solver does not know.
            if not options:
                raise
            raise _bad_options(solver, options, error) from error
    return str(problem.status)


def _bad_options(name: str, options: dict[str, Any], error: Exception) -> InvalidInputError:
    return InvalidInputError(
        f"every option must be one of {name}'s own",
        f"{sorted(options)} ({error})",
        "See that solver's settings",
    )
