"""The solvers that cvxpy drives: their options for accuracy and time, and their failures.

A solver is one entry of `DRIVEN`, and nothing else.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nerm.certify.feasibility import runs_away
from nerm.certify.solution import Answer
from nerm.errors import InvalidInputError, UnsupportedProblemError
from nerm.model.blocks import EPS
from nerm.model.problem import Problem, constraints_only
from nerm.solvers import auto, clock
from nerm.solvers.base import Session, Solver
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.cvxpy_backend.build import Model

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
        The accuracies asked for, as fractions of the tolerance: of the problem as it is, and if its
        certificate fails, of the objective brought to a size of 1.
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


class CvxpySolver(Solver):
    """A solver behind cvxpy, as `DRIVEN` knows it."""

    takes_constraints: ClassVar[bool] = True

    def __init__(self, driven: Driven) -> None:
        self.driven = driven
        self.name = driven.name
        self.package = driven.package
        self.keeps_time = bool(driven.clock)
        self.takes_every_atom = driven.cones == EXP

    def requirements(self) -> str:
        """One phrase: what a problem must be like for this solver."""
        return self.driven.cones

    def why_unsupported(self, problem: Problem) -> str | None:
        """Only cvxpy can tell, when it compiles."""
        return None

    def cost(self, shape: auto.Shape) -> float:
        """Return about how many seconds a solve takes; inf for solvers that are asked by name only."""
        return self.driven.slower * auto.cone_program(shape)

    def open(self, problem: Problem) -> Session:
        """Build the cvxpy model."""
        return _CvxpySession(self, problem)

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return the fractions of the tolerance, bounded below by what the solver's arithmetic can do."""
        return tuple(max(self.driven.finest, fraction * tol) for fraction in self.driven.tighten)


class _CvxpySession(Session):
    """One compiled model, solved again and again with other weights."""

    def __init__(self, solver: CvxpySolver, problem: Problem) -> None:
        from nerm.cvxpy_backend.build import build

        started = time.perf_counter()
        self.solver = solver
        self.model = build(problem, near=True)
        self.compiled, self.compilation = False, 0.0
        self.inside: tuple[Floats, float] | None = None
        self.last: tuple[Problem, float] | None = None  # the last problem solved, and 1 / its optimum
        self.unbilled = time.perf_counter() - started

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Set the weights, solve, read the answer; a solver's failure is an answer too."""
        model, name = self.model, self.solver.name.upper()
        # Solvers measure gaps below 1 as they are: an optimum of 1e-8 would not be asked for in any digits.
        scale = self.last[1] if self.last and self.last[0] is problem else 1.0
        model.set_weights(problem, scale)
        if not self.compiled:
            self._compile(name)
        build_seconds, self.unbilled = self.unbilled, 0.0
        if clock.is_up(deadline):
            return Answer(None, 0.0, claim="stopped: time is up", build_seconds=build_seconds, timed_out=True)
        started = time.perf_counter()
        claim = run(model.problem, self.solver.name, accuracy, options, deadline, afresh=scale != 1.0)
        seconds = time.perf_counter() - started
        # cvxpy's own figure: what it spent on compiling for this solve, the first time included
        compilation, self.compilation = self.compilation + (model.problem.compilation_time or 0.0), 0.0
        found = None if claim.startswith("error") else model.hypothesis()
        size = 0.0 if found is None else abs(problem.evaluate(*found).total)
        if found and not problem.objective.constraints and runs_away(problem, *found, size):
            size = 0.0  # nobody attains the optimum: smaller would only be farther out
        self.last = problem, 1.0 / size if EPS < size < np.inf else 1.0
        infeasible = bool(problem.limits) and claim.startswith("infeasible")
        if infeasible:
            model = self._with_slack(problem, accuracy, deadline)
            found = model.hypothesis()
        elif problem.limits and self.inside is None:
            self.inside = self._inside(problem, accuracy, deadline)
        stats, asked = model.problem.solver_stats, constraints_only(problem) if infeasible else problem
        return Answer(
            coef=None if found is None else found[0],
            intercept=0.0 if found is None else found[1],
            multipliers=None if found is None else model.multipliers(asked, 1.0 if infeasible else scale),
            claim=claim,
            iterations=None if stats is None or stats.num_iters is None else int(stats.num_iters),
            build_seconds=build_seconds,
            solve_seconds=seconds,
            details={"accuracy": accuracy, "compilation_seconds": compilation},
            inside=self.inside,
            infeasible=infeasible,
            timed_out=clock.is_up(deadline),
        )

    def _with_slack(self, problem: Problem, accuracy: float, deadline: float) -> Model:
        """Return the model of the least slack that the limits need, solved."""
        from nerm.cvxpy_backend.build import build

        model = build(problem, slack=True, near=True)
        run(model.problem, self.solver.name, accuracy, {}, deadline)
        return model

    def _inside(self, problem: Problem, accuracy: float, deadline: float) -> tuple[Floats, float] | None:
        """Return a hypothesis strictly inside all limits; None if f = 0 serves."""
        if not problem.violation(np.zeros(problem.hypothesis.size), 0.0):
            return None
        found = self._with_slack(problem, accuracy, deadline).hypothesis()
        return (
            found if found is None or problem.region is None else (problem.region.project(found[0]), found[1])
        )

    def _compile(self, name: str) -> None:
        """Compile for this solver (once: cvxpy keeps the result); refuse what it cannot take."""
        import cvxpy as cp

        started = time.perf_counter()
        try:
            self.model.problem.get_problem_data(name)
        except (cp.error.SolverError, cp.error.DCPError) as error:
            name, taken = self.solver.name, self.solver.requirements()
            must = f"solver {name!r} must be given a problem that it can take ({taken})"
            got = f"one that needs more ({str(error).strip().splitlines()[0]})"
            raise UnsupportedProblemError(
                must, got, "Use 'clarabel', which takes every built-in atom"
            ) from error
        self.compiled = True
        self.compilation = self.model.problem.compilation_time
        self.unbilled += time.perf_counter() - started


SOLVERS = tuple(CvxpySolver(driven) for driven in DRIVEN.values())
