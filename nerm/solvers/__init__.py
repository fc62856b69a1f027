"""The registry of solvers, and the one place where an answer is judged."""

from __future__ import annotations

import importlib
import math
import pkgutil
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from nerm.certificate import Certificate, judge
from nerm.errors import (
    InvalidInputError,
    MissingPackageError,
    NotSolvedError,
    UnknownNameError,
    UnsupportedProblemError,
)
from nerm.problem import Problem
from nerm.solution import Solution, Stats, Status
from nerm.solvers.base import Answer, Session, Solver
from nerm.validation import as_nonnegative, as_positive

__all__ = ["Solver", "available", "known", "path", "solve"]


@cache
def known() -> dict[str, Solver]:
    """Return every solver that nerm can speak to, installed or not: each module here lists its own in SOLVERS."""
    modules = [importlib.import_module(f"{__name__}.{m.name}") for m in pkgutil.iter_modules(__path__)]
    return {solver.name: solver for module in modules for solver in getattr(module, "SOLVERS", ())}


def available() -> dict[str, Solver]:
    """Return the solvers that are installed, by name, found without importing them.

    >>> "clarabel" in available()
    True
    >>> available()["osqp"].needs()
    'quadratic programs: ...'
    """
    return {name: solver for name, solver in known().items() if solver.installed()}


def get(name: str, problem: Problem) -> tuple[Solver, str]:
    """Return the solver of this name, checked against the problem, and why it was chosen."""
    if name == "auto":
        return choose(problem)
    if name not in known():
        raise UnknownNameError("'solver'", name, ["auto", *known()])
    solver = known()[name]
    if not solver.installed():
        raise MissingPackageError(
            f"solver {name!r} needs the package {solver.package!r}. It is not installed. "
            f"Install it, or use one of {', '.join(map(repr, available()))}."
        )
    obstacle = solver.obstacle(problem)
    if obstacle is not None:
        raise UnsupportedProblemError(
            f"solver {name!r} must be given {solver.needs()}",
            f"a problem with {obstacle}",
            "Use solver='auto' or another solver",
        )
    return solver, "asked for by name"


def choose(problem: Problem) -> tuple[Solver, str]:
    """Return the solver for ``solver="auto"`` and the reason."""
    return known()["clarabel"], "a general conic solver that takes every atom"


def solve(
    problem: Problem, solver: str = "auto", tol: float = 1e-6, *, strict: bool = False, **options: Any
) -> Solution:
    """Solve one problem (the work behind `Problem.solve`)."""
    tol = as_positive(tol, "tol")
    chosen, reason = get(solver, problem)
    return _judged(chosen, chosen.open(problem), problem, tol, reason, strict, options)


def path(
    problem: Problem,
    eta: Sequence[float],
    solver: str = "auto",
    tol: float = 1e-6,
    *,
    strict: bool = False,
    **options: Any,
) -> list[Solution]:
    """Solve for every neutrality weight in one session (the work behind `Problem.path`)."""
    tol = as_positive(tol, "tol")
    if np.ndim(eta) != 1 or len(eta) == 0:
        raise InvalidInputError(
            "'eta' must be a nonempty list of neutrality weights", repr(eta), "Pass [0, 0.1, 1], for instance"
        )
    problems = [problem.with_neutrality(as_nonnegative(value, "eta")) for value in eta]
    chosen, reason = get(solver, problems[0])
    session = chosen.open(problems[0])
    return [_judged(chosen, session, each, tol, reason, strict, options) for each in problems]


def _judged(
    solver: Solver,
    session: Session,
    problem: Problem,
    tol: float,
    reason: str,
    strict: bool,
    options: dict[str, Any],
) -> Solution:
    """Ask for finer and finer answers until the certificate is within the tolerance, and return the best one."""
    best: Solution | None = None
    stats = Stats(solver=solver.name, version=solver.version(), reason=reason)
    for accuracy in solver.accuracies(tol):
        answer = session.answer(problem, accuracy, options)
        started = time.perf_counter()
        solution = _certified(problem, answer, tol)
        stats = replace(
            stats,
            iterations=answer.iterations,
            claim=answer.claim,
            details=answer.details,
            build_seconds=stats.build_seconds + answer.build_seconds,
            solve_seconds=stats.solve_seconds + answer.solve_seconds,
            certify_seconds=stats.certify_seconds + time.perf_counter() - started,
        )
        if best is None or solution.certificate.relative_gap < best.certificate.relative_gap:
            best = replace(solution, stats=stats)
        if solution.status is Status.OPTIMAL:
            break
    assert best is not None
    best = replace(
        best, stats=replace(best.stats, build_seconds=stats.build_seconds, solve_seconds=stats.solve_seconds)
    )
    if strict and best.status is not Status.OPTIMAL:
        raise NotSolvedError(
            f"{best.status.sentence} Certified relative gap {best.certificate.relative_gap:.2e}, tolerance {tol:g}, "
            f"solver {solver.name!r} claims {best.stats.claim!r}. Try another solver or a larger tol."
        )
    return best


def _certified(problem: Problem, answer: Answer, tol: float) -> Solution:
    """Turn an answer into a solution whose status the certificate grants."""
    if answer.coef is None or not (np.isfinite(answer.coef).all() and math.isfinite(answer.intercept)):
        zero = np.zeros(problem.hypothesis.size)
        value = problem.evaluate(zero, 0.0)
        certificate, status, coef, intercept = Certificate(value.total, -math.inf), Status.FAILED, zero, 0.0
        multipliers = None
    else:
        coef, intercept = answer.coef, answer.intercept
        value = problem.evaluate(coef, intercept)
        certificate, multipliers = judge(problem, coef, intercept, answer.multipliers, tol)
        status = Status.OPTIMAL if certificate.relative_gap <= tol else Status.INACCURATE
    return Solution(
        problem=problem,
        status=status,
        coef=coef,
        intercept=intercept,
        objective=value,
        multipliers=multipliers,
        certificate=certificate,
        stats=Stats(solver=""),
        tol=tol,
    )
