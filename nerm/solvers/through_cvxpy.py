"""Every solver that cvxpy drives, each with its own words for one notion of accuracy."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from nerm.errors import InvalidInputError, UnsupportedProblemError
from nerm.problem import Problem
from nerm.solution import Answer
from nerm.solvers.base import Session, Solver


@dataclass(frozen=True)
class CvxpySolver(Solver):
    """A solver behind cvxpy.

    options
        Maps the accuracy eps to the solver's own options.
    tighten
        The accuracies asked for, as fractions of the tolerance: a first try, and a second if its certificate fails.
    cones
        What it can take, in words.
    """

    name: str
    package: str
    import_name: str
    cones: str
    options: Callable[[float], dict[str, Any]]
    tighten: tuple[float, ...] = (1e-2, 1e-4)
    finest: float = 1e-12

    @property
    def module(self) -> str:
        """The module to look for."""
        return self.import_name

    def needs(self) -> str:
        """One phrase: what a problem must be like for this solver."""
        return self.cones

    def obstacle(self, problem: Problem) -> str | None:
        """Only cvxpy can tell, when it compiles."""
        return None

    def open(self, problem: Problem) -> Session:
        """Build the cvxpy model."""
        return _CvxpySession(self, problem)

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return the fractions of the tolerance, bounded below by what the solver's arithmetic can do."""
        return tuple(dict.fromkeys(max(self.finest, fraction * tol) for fraction in self.tighten))


class _CvxpySession(Session):
    """One compiled model, solved again and again with other weights."""

    def __init__(self, solver: CvxpySolver, problem: Problem) -> None:
        from nerm.modelling import build

        started = time.perf_counter()
        self.solver = solver
        self.model = build(problem)
        self.compiled, self.compilation = False, 0.0
        self.unbilled = time.perf_counter() - started

    def answer(self, problem: Problem, accuracy: float, options: dict[str, Any]) -> Answer:
        """Set the weights, solve, read the answer; a solver's failure is an answer too."""
        import cvxpy as cp

        model, name = self.model, self.solver.name.upper()
        model.set_weights(problem)
        if not self.compiled:
            self._compile(name)
        build_seconds, self.unbilled = self.unbilled, 0.0
        settings = {**self.solver.options(accuracy), **options}
        started = time.perf_counter()
        claim = ""
        with warnings.catch_warnings():
            # cvxpy's doubts about accuracy: the certificate gives the verdict, the claim is kept in stats.
            warnings.filterwarnings("ignore", message=".*[Ss]olution may be inaccurate.*")
            warnings.filterwarnings("ignore", message=".*Converting .* to a CSC.*")
            try:
                model.problem.solve(solver=name, **settings)
                claim = str(model.problem.status)
            except cp.error.SolverError as error:
                claim = f"error: {error}"
                if options and "nrecognized" in claim:
                    raise _bad_options(self.solver.name, options, error) from error
            except (TypeError, AttributeError, KeyError, ValueError) as error:
                # This is how the interfaces of cvxpy report an option that the solver does not know.
                if not options:
                    raise
                raise _bad_options(self.solver.name, options, error) from error
        seconds = time.perf_counter() - started
        # cvxpy's own figure: what it spent on compiling for this solve, the first time included
        compilation, self.compilation = self.compilation + (model.problem.compilation_time or 0.0), 0.0
        found = None if claim.startswith("error") else model.hypothesis()
        stats = model.problem.solver_stats
        return Answer(
            coef=None if found is None else found[0],
            intercept=0.0 if found is None else found[1],
            multipliers=None if found is None else model.multipliers(problem),
            claim=claim,
            iterations=None if stats is None or stats.num_iters is None else int(stats.num_iters),
            build_seconds=build_seconds,
            solve_seconds=seconds,
            details={"accuracy": accuracy, "compilation_seconds": compilation},
        )

    def _compile(self, name: str) -> None:
        """Compile for this solver (once: cvxpy keeps the result); refuse what it cannot take."""
        import cvxpy as cp

        started = time.perf_counter()
        try:
            self.model.problem.get_problem_data(name)
        except (cp.error.SolverError, cp.error.DCPError) as error:
            raise UnsupportedProblemError(
                f"solver {self.solver.name!r} must be given a problem that it can take ({self.solver.cones})",
                f"one that needs more ({str(error).strip().splitlines()[0]})",
                "Use 'clarabel', which takes every built-in atom",
            ) from error
        self.compiled = True
        self.compilation = self.model.problem.compilation_time
        self.unbilled += time.perf_counter() - started


def _bad_options(name: str, options: dict[str, Any], error: Exception) -> InvalidInputError:
    return InvalidInputError(
        f"every option must be one of {name}'s own", f"{sorted(options)} ({error})", "See that solver's settings"
    )


QP = "quadratic programs: piecewise linear or quadratic losses, piecewise linear surrogates, no group norm"
SOCP = "second-order cone programs: every atom but logistic and exponential"
EXP = "every atom"

SOLVERS = (
    CvxpySolver(
        "clarabel",
        "clarabel",
        "clarabel",
        EXP,
        lambda eps: {"tol_gap_abs": eps, "tol_gap_rel": eps, "tol_feas": eps, "max_iter": 500},
    ),
    CvxpySolver(
        "ecos",
        "ecos",
        "ecos",
        EXP,
        lambda eps: {"abstol": eps, "reltol": eps, "feastol": eps, "max_iters": 500},
    ),
    CvxpySolver(
        "scs",
        "scs",
        "scs",
        EXP,
        lambda eps: {"eps_abs": eps, "eps_rel": eps, "max_iters": 50_000},
        tighten=(1e-1, 1e-3),
    ),
    CvxpySolver(
        "osqp",
        "osqp",
        "osqp",
        QP,
        lambda eps: {"eps_abs": eps, "eps_rel": eps, "max_iter": 50_000, "polishing": True},
        tighten=(1e-1, 1e-3),
    ),
    CvxpySolver(
        "highs",
        "highspy",
        "highspy",
        "linear and " + QP,
        lambda eps: {
            "highs_options": {
                "primal_feasibility_tolerance": max(eps, 1e-10),
                "dual_feasibility_tolerance": max(eps, 1e-10),
                # its active-set method for QPs can cycle for ever on degenerate problems
                "qp_iteration_limit": 20_000,
            }
        },
    ),
    CvxpySolver(
        "piqp",
        "piqp",
        "piqp",
        QP,
        lambda eps: {
            "eps_abs": eps,
            "eps_rel": eps,
            "eps_duality_gap_abs": eps,
            "eps_duality_gap_rel": eps,
            "max_iter": 500,
        },
    ),
    CvxpySolver("daqp", "daqp", "daqp", QP, lambda eps: {"primal_tol": eps, "dual_tol": eps}),
    CvxpySolver(
        "qpalm",
        "qpalm",
        "qpalm",
        QP,
        lambda eps: {"eps_abs": eps, "eps_rel": eps, "max_iter": 50_000},
        tighten=(1e-1, 1e-3),
    ),
    CvxpySolver(
        "proxqp",
        "proxsuite",
        "proxsuite",
        QP,
        lambda eps: {"eps_abs": eps, "eps_rel": eps, "max_iter": 50_000},
        tighten=(1e-1, 1e-3),
    ),
    CvxpySolver("qoco", "qoco", "qoco", SOCP, lambda eps: {"abstol": eps, "reltol": eps, "max_iters": 500}),
)
