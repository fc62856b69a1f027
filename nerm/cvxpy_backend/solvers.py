"""The solvers that are called through cvxpy, with their options for accuracy and time limit.

To add a solver, add one entry to `SOLVERS`.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from nerm.certify.multipliers import runs_away
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

# `CvxpySolver.tighten` of interior-point and first-order methods
INTERIOR, ROUGH = (1e-2, 1e-4), (1e-1, 1e-3)


@dataclass(eq=False)
class CvxpySolver(Solver):
    """A solver that is called through cvxpy, with its settings.

    Option names are the solver's own. A name "a/b" means the entry "b" of the option "a", which is a dict.

    Attributes
    ----------
    name, package : str
        The name of the solver in lower case, and the Python package that it needs.
    cones : str
        The problems that it can solve.
    accuracy : tuple of str
        The options that set the accuracy.
    clock : str
        The option that sets the time limit in seconds; "" if there is none.
    fixed : dict
        Further options, with their values.
    tighten : tuple of float
        The accuracies of the first and the second solve, as fractions of the tolerance. The second solve is
        made only if the first is not certified; its objective is scaled to an optimum of about 1.
    finest : float
        The smallest accuracy that the solver accepts.
    slower : float
        The solve time relative to Clarabel; infinite if the solver is used only when the user names it.

    """

    takes_constraints: ClassVar[bool] = True
    name: str
    package: str
    cones: str
    accuracy: tuple[str, ...] = ()
    clock: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    tighten: tuple[float, ...] = INTERIOR
    finest: float = 1e-12
    slower: float = np.inf

    def __post_init__(self) -> None:
        self.keeps_time, self.takes_every_atom = bool(self.clock), self.cones == EXP

    def cost(self, shape: auto.Shape) -> float:
        """Estimate the seconds of a solve."""
        return auto.cone_program(shape, self.slower)

    def requirements(self) -> str:
        """Return a phrase that names the problems that this solver can solve."""
        return self.cones

    def why_unsupported(self, problem: Problem) -> str | None:
        """Return None: only cvxpy can tell, when it compiles the problem, whether it is supported."""
        return None

    def open(self, problem: Problem) -> Session:
        """Build the cvxpy model and return a session that solves it for different weights."""
        return _CvxpySession(self, problem)

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return the accuracies of the first and the second solve, each at least `finest`."""
        return tuple(max(self.finest, fraction * tol) for fraction in self.tighten)

    def options(self, accuracy: float, deadline: float, given: dict[str, Any]) -> dict[str, Any]:
        """Return the solver's options for an accuracy and a deadline; options in `given` take precedence."""
        asked = {**dict.fromkeys(self.accuracy, max(accuracy, self.finest)), **self.fixed}
        if self.clock and deadline < clock.NEVER:
            asked[self.clock] = clock.left(deadline)
        options: dict[str, Any] = {}
        for name, value in asked.items():
            outer, _, inner = name.rpartition("/")
            (options.setdefault(outer, {}) if outer else options)[inner] = value
        for name, value in given.items():  # a dict is completed
            both = isinstance(value, dict) and isinstance(options.get(name), dict)
            options[name] = {**options[name], **value} if both else value
        return options

    def run(
        self, problem: Any, accuracy: float, options: dict[str, Any], deadline: float, *, afresh: bool = False
    ) -> str:
        """Solve a cvxpy problem and return the status that the solver reports.

        Parameters
        ----------
        problem : cvxpy.Problem
            A problem with a value for every Parameter.
        accuracy : float
            The value of the solver's accuracy options.
        options : dict
            Further options of the solver. An unknown option raises an error.
        deadline : float
            When to stop (`nerm.solvers.clock`); ignored if the solver has no time limit.
        afresh : bool
            Whether to start cold: the solver must not reuse the previous solve, for example its scaling.

        Returns
        -------
        str
            cvxpy's status, or "error: ..." if the solver failed.

        """
        import cvxpy as cp

        settings = self.options(accuracy, deadline, options)
        with warnings.catch_warnings():
            # Hide cvxpy's warnings about inaccurate solutions: the certificate decides about the accuracy.
            warnings.filterwarnings("ignore", message=".*[Ss]olution may be inaccurate.*")
            warnings.filterwarnings("ignore", message=".*Converting .* to a CSC.*")
            try:
                problem.solve(solver=self.name.upper(), warm_start=not afresh, **settings)
            except (cp.error.SolverError, TypeError, AttributeError, KeyError, ValueError) as error:
                failed = isinstance(error, cp.error.SolverError)
                # This is how the interfaces of cvxpy report an option that the solver does not know.
                if options and ("nrecognized" in str(error) or not failed):
                    must = f"every option must be one of {self.name}'s own"
                    got = f"{sorted(options)} ({error})"
                    raise InvalidInputError(must, got, "See the documentation of that solver") from error
                if not failed:
                    raise
                return f"error: {error}"
        return str(problem.status)


def _in(outer: str, *names: str) -> tuple[str, ...]:
    return tuple(f"{outer}/{name}" for name in names)


_HIGHS = _in("highs_options", "primal_feasibility_tolerance", "dual_feasibility_tolerance")
_EPS, _TOLS = ("eps_abs", "eps_rel"), ("abstol", "reltol")
_PIQP = (*_EPS, "eps_duality_gap_abs", "eps_duality_gap_rel")
_GAPS = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
_GUROBI = ("BarConvTol", "BarQCPConvTol", "FeasibilityTol", "OptimalityTol")
_CPLEX = _in(
    "cplex_params",
    "barrier.convergetol",
    "barrier.qcpconvergetol",
    "simplex.tolerances.feasibility",
    "simplex.tolerances.optimality",
)
_XPRESS = ("bargaptarget", "barprimalstop", "bardualstop", "feastol", "optimalitytol")

_ITERATIONS, _CONE_STEPS, _STEPS = {"max_iter": 500}, {"max_iters": 500}, {"max_iter": 50_000}
_POLISHED = {**_STEPS, "polishing": True}
_CYCLES = {"highs_options/qp_iteration_limit": 20_000}  # its active-set method for QPs can cycle for ever
_HIGHS_CLOCK = "highs_options/time_limit"
_MOSEK_CLOCK = "mosek_params/MSK_DPAR_OPTIMIZER_MAX_TIME"

SOLVERS = (
    CvxpySolver("clarabel", "clarabel", EXP, _GAPS, "time_limit", _ITERATIONS, slower=1.0),
    CvxpySolver("moreau", "moreau", EXP, _in("ipm_settings", *_GAPS), "time_limit", _ITERATIONS),
    CvxpySolver("ecos", "ecos", EXP, (*_TOLS, "feastol"), "", _CONE_STEPS, slower=3.0),
    CvxpySolver("scs", "scs", EXP, _EPS, "time_limit_secs", {"max_iters": 50_000}, ROUGH),
    CvxpySolver("osqp", "osqp", QP, _EPS, "time_limit", _POLISHED, ROUGH),
    CvxpySolver("highs", "highspy", "linear and " + QP, _HIGHS, _HIGHS_CLOCK, _CYCLES, finest=1e-10),
    CvxpySolver("piqp", "piqp", QP, _PIQP, fixed=_ITERATIONS),
    CvxpySolver("daqp", "daqp", QP, ("primal_tol", "dual_tol")),
    CvxpySolver("qpalm", "qpalm", QP, _EPS, "time_limit", _STEPS, ROUGH),
    CvxpySolver("proxqp", "proxsuite", QP, _EPS, fixed=_STEPS, tighten=ROUGH),
    CvxpySolver("qoco", "qoco", SOCP, _TOLS, "", _CONE_STEPS),
    # Commercial solvers: some of their tolerances cannot be smaller than 1e-9.
    CvxpySolver("mosek", "mosek", EXP, ("eps",), _MOSEK_CLOCK, {"accept_unknown": True}, finest=1e-9),
    CvxpySolver("gurobi", "gurobipy", SOCP, _GUROBI, "TimeLimit", finest=1e-9),
    CvxpySolver("cplex", "cplex", SOCP, _CPLEX, "cplex_params/timelimit", finest=1e-9),
    CvxpySolver("xpress", "xpress", SOCP, _XPRESS, "timelimit", finest=1e-9),
    CvxpySolver("copt", "coptpy", EXP, ("FeasTol", "DualTol"), "TimeLimit", finest=1e-9),
)


class _CvxpySession(Session):
    """A cvxpy model that is compiled once and solved repeatedly with different weights."""

    def __init__(self, solver: CvxpySolver, problem: Problem) -> None:
        import cvxpy as cp

        from nerm.cvxpy_backend.build import Model

        started = time.perf_counter()
        self.solver, self.model = solver, Model(problem, near=True)
        try:
            self.model.problem.get_problem_data(solver.name.upper())  # cvxpy keeps the compiled model
        except (cp.error.SolverError, cp.error.DCPError) as error:
            must = f"solver {solver.name!r} must be given a problem that it can take ({solver.cones})"
            got = f"one that needs more ({str(error).strip().splitlines()[0]})"
            do = "Use 'clarabel', which takes every built-in atom"
            raise UnsupportedProblemError(must, got, do) from error
        self.compilation = self.model.problem.compilation_time
        self.inside: tuple[Floats, float] | None = None
        self.last: tuple[Problem, float] | None = None  # the previous problem solved, and 1 / its optimum
        self.unbilled = time.perf_counter() - started

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Set the weights, solve the model and return the answer; its `coef` is None if the solver failed.

        If the same problem was just solved, its weights are scaled so that the optimum is about 1.
        """
        model = self.model
        # Solvers use absolute gaps for optima below 1: an unscaled optimum of 1e-8 would have no exact digit.
        scale = self.last[1] if self.last and self.last[0] is problem else 1.0
        model.set_weights(problem, scale)
        build_seconds, self.unbilled = self.unbilled, 0.0
        if clock.is_up(deadline):
            return Answer(None, 0.0, claim="stopped: time is up", build_seconds=build_seconds, timed_out=True)
        started = time.perf_counter()
        claim = self.solver.run(model.problem, accuracy, options, deadline, afresh=scale != 1.0)
        seconds = time.perf_counter() - started
        # as measured by cvxpy: the compilation for this solve, plus the first compilation
        compilation, self.compilation = self.compilation + (model.problem.compilation_time or 0.0), 0.0
        found = None if claim.startswith("error") else model.hypothesis()
        size = 0.0 if found is None else abs(problem.evaluate(*found).total)
        if found and not problem.objective.constraints and runs_away(problem, *found, size):
            size = 0.0  # no hypothesis attains the optimum: a finer solve would only increase the norm of w
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
        """Solve for the smallest slack with which all limits can be met, and return the solved model."""
        from nerm.cvxpy_backend.build import Model

        model = Model(problem, slack=True, near=True)
        self.solver.run(model.problem, accuracy, {}, deadline)
        return model

    def _inside(self, problem: Problem, accuracy: float, deadline: float) -> tuple[Floats, float] | None:
        """Return a hypothesis (coef, intercept) strictly inside the limits: the one with the least slack.

        Return None if f = 0 satisfies all constraints, or if the solver fails.
        """
        if not problem.violation(np.zeros(problem.hypothesis.size), 0.0):
            return None
        found = self._with_slack(problem, accuracy, deadline).hypothesis()
        if found is None or problem.region is None:
            return found
        return problem.region.project(found[0]), found[1]
