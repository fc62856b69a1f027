"""Every solver that cvxpy drives."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from nerm.certify.feasibility import attained, unpunished
from nerm.certify.solution import Answer
from nerm.cvxpy_backend.driver import DRIVEN, EXP, Driven, run
from nerm.errors import UnsupportedProblemError
from nerm.model.problem import Problem, constraints_only
from nerm.solvers import auto, clock
from nerm.solvers.base import Session, Solver
from nerm.typing import Floats

if TYPE_CHECKING:
    from nerm.cvxpy_backend.build import Model


SMALLEST = 1e-15  # objective that is still a number, and not rounding


class CvxpySolver(Solver):
    """A solver behind cvxpy, as `nerm.cvxpy_backend.driver` knows it."""

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
        """Return the fractions of the tolerance, bounded below by what the solver's arithmetic can do.

        Then come the same once more, for which the session brings the objective to a size of 1.
        """
        asked = dict.fromkeys(max(self.driven.finest, fraction * tol) for fraction in self.driven.tighten)
        return (*asked, *asked)


class _LastSolve(NamedTuple):
    """The last solve: problem, accuracy, objective, and the factor of the objective."""

    problem: Problem
    accuracy: float
    size: float
    scale: float


class _CvxpySession(Session):
    """One compiled model, solved again and again with other weights."""

    def __init__(self, solver: CvxpySolver, problem: Problem) -> None:
        from nerm.cvxpy_backend.build import build

        started = time.perf_counter()
        self.solver = solver
        self.model = build(problem, near=True)
        self.compiled, self.compilation = False, 0.0
        self.inside: tuple[Floats, float] | None = None
        self.last: _LastSolve | None = None
        self.unbilled = time.perf_counter() - started

    def answer(
        self, problem: Problem, accuracy: float, options: dict[str, Any], deadline: float = clock.NEVER
    ) -> Answer:
        """Set the weights, solve, read the answer; a solver's failure is an answer too."""
        model, name = self.model, self.solver.name.upper()
        scale = self._scale(problem, accuracy)
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
        size = 0.0 if found is None else abs(float(problem.evaluate(*found).total))
        self.last = _LastSolve(problem, accuracy, size, scale)
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

    def _scale(self, problem: Problem, accuracy: float) -> float:
        """Return the factor of the objective: about 1 / optimum, if a problem is solved once more.

        Solvers measure gaps below 1 as they are, so that an optimum of 1e-8 is never asked for in any digits.
        """
        last = self.last
        if last is None or last.problem is not problem:
            return 1.0
        if accuracy < last.accuracy or not SMALLEST < last.size < np.inf:
            return last.scale
        if not problem.objective.constraints and not attained(problem, unpunished(problem)):
            return last.scale  # the infimum is 0 and nobody has it: smaller would only be farther out
        return 1.0 / last.size

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
