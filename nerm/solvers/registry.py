"""The registry of solvers, and the one place where an answer is judged."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from nerm.certify.solution import Answer, Solution, Stats, Status, certify_answer, combine, timed_out
from nerm.errors import (
    InvalidInputError,
    MissingPackageError,
    NotSolvedError,
    UnknownNameError,
    UnsupportedProblemError,
)
from nerm.model.problem import Problem
from nerm.solvers import clock
from nerm.solvers.base import NermSolver, OwnSolver, Session, Solver, limit, path_order
from nerm.solvers.convex_concave import stationary_points
from nerm.solvers.limited import open_session
from nerm.solvers.process import ProcessSession
from nerm.validation import as_nonnegative, as_positive

__all__ = [
    "Answer",
    "NermSolver",
    "OwnSolver",
    "Session",
    "Solver",
    "available",
    "grid",
    "known",
    "path",
    "solve",
]


@cache
def known() -> dict[str, Solver]:
    """Return every solver that nerm can speak to, by name, installed or not.

    Each module of this package lists its own in SOLVERS.

    >>> {"interior-point", "smo", "clarabel"} <= set(available()) <= set(known())
    True
    """
    folder = importlib.import_module("nerm.solvers")
    names = [
        f"nerm.solvers.{m.name}{'.solver' if m.ispkg else ''}" for m in pkgutil.iter_modules(folder.__path__)
    ]
    names = [name for name in names if importlib.util.find_spec(name)] + ["nerm.cvxpy_backend.solvers"]
    modules = [importlib.import_module(name) for name in names]
    return {solver.name: solver for module in modules for solver in getattr(module, "SOLVERS", ())}


def available() -> dict[str, Solver]:
    """Return the solvers that are installed, by name, found without importing them.

    >>> "clarabel" in available()
    True
    >>> available()["osqp"].requirements()
    'quadratic programs: ...'
    """
    return {name: solver for name, solver in known().items() if solver.installed()}


def get(reference: str | Solver, problem: Problem) -> Solver:
    """Return the solver of this name, or a solver that is given itself, checked against the problem."""
    if not isinstance(reference, Solver) and not (isinstance(reference, str) and reference in known()):
        raise UnknownNameError("'solver'", reference, ["auto", *known()])
    solver = reference if isinstance(reference, Solver) else known()[reference]
    name = solver.name
    if not solver.installed():
        raise MissingPackageError(
            f"solver {name!r} needs the package {solver.package!r}. It is not installed. "
            f"Install it, or use one of {', '.join(map(repr, available()))}."
        )
    obstacle = unsupported_part(solver, problem)
    if obstacle is not None:
        must = f"solver {name!r} must be given {solver.requirements()}"
        raise UnsupportedProblemError(
            must, f"a problem with {obstacle}", "Use solver='auto' or another solver"
        )
    return solver


def unsupported_part(solver: Solver, problem: Problem) -> str | None:
    """Return what of a problem, its constraints included, a solver cannot take."""
    if not problem.objective.constraints or solver.takes_constraints:
        return solver.why_unsupported(problem)
    if problem.region is not None:
        return "constraints on coefficients"
    if solver.rank is None:  # the search asks for some ten answers, exact ones
        return "a limit"
    return (
        f"{len(problem.limits)} limits"
        if len(problem.limits) > 1
        else solver.why_unsupported(problem.relaxed([1.0]))
    )


SETTLED = (Status.OPTIMAL, Status.INFEASIBLE)  # proved: nobody else needs to be asked
THIRD_OPINION = 200_000  # the same for another general solver, where the first returned nothing at all
SECOND_OPINION = 20_000_000  # rows times coefficients up to which a general solver is worth asking


class Choice(NamedTuple):
    """A solver that ``solver="auto"`` tries, and why; perhaps only where those before returned nothing at all."""

    solver: Solver
    reason: str
    after_failure: bool = False


def choose(problem: Problem, *, several: bool = False) -> list[Choice]:
    """Return the solvers that ``solver="auto"`` tries, in order; `several` where relatives of the problem follow.

    The fastest of nerm's own that takes the problem; else, or where its answer is not certified and the size
    allows it, Clarabel, which takes every atom; where that returns nothing at all, ECOS. `stats.reason` tells
    which happened.
    """
    general = known()["clarabel"]
    ranked = sorted((s for s in known().values() if s.rank is not None), key=lambda s: s.rank or 0)
    obstacles = {solver.name: unsupported_part(solver, problem) for solver in ranked}
    own = [solver for solver in ranked if obstacles[solver.name] is None]
    if own:
        first = next((solver for solver in own if solver.prefers(problem, several=several)), own[0])
        moderate = problem.hypothesis.n * problem.hypothesis.size <= SECOND_OPINION
        waits = first is not own[0] and (moderate or problem.is_kernel or own[0].is_bounded)
        others = ([own[0]] if waits else []) + ([general] if moderate else [])
        asked = first.early_exit() if waits else first
        plan = [Choice(asked, "the fastest of nerm's own solvers that take this problem")]
        return plan + [Choice(other, f"a second opinion: {first.name} was not certified") for other in others]
    missing = obstacles["low-rank" if problem.is_kernel else "interior-point"]
    plan = [Choice(general, f"takes every atom; nerm's own solvers do not take {missing}")]
    another = known()["ecos"]
    if another.installed() and problem.hypothesis.n * problem.hypothesis.size <= THIRD_OPINION:
        plan.append(Choice(another, "takes every atom too; clarabel returned nothing", after_failure=True))
    return plan


def solve(
    problem: Problem,
    solver: str | Solver = "auto",
    tol: float = 1e-6,
    *,
    strict: bool = False,
    time_limit: float | None = None,
    **options: Any,
) -> Solution:
    """Solve one problem (the work behind `nerm.Problem.solve`, where the parameters are explained).

    The status is granted by the certificate that nerm computes, whatever the solver claims.

    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> problem = objective.on(X, y, viewpoint=v)
    >>> [round(solve(problem, solver).objective.total, 4) for solver in ("interior-point", "smo", "clarabel")]
    [1.3125, 1.3125, 1.3125]
    """
    return _solve_all([problem], solver, tol, strict, time_limit, options)[0]


def path(
    problem: Problem,
    eta: Sequence[float],
    solver: str | Solver = "auto",
    tol: float = 1e-6,
    *,
    strict: bool = False,
    time_limit: float | None = None,
    **options: Any,
) -> list[Solution]:
    """Solve for every neutrality weight in one session (the work behind `nerm.Problem.path`); one `Solution` each.

    The neutrality risk never rises with eta:

    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, 1, 1, -1]
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> solutions = path(objective.on(X, y, viewpoint=v), [0.1, 1.0, 10.0])
    >>> risks = [t.value for s in solutions for t in s.objective.terms if t.kind == "neutrality"]
    >>> risks == sorted(risks, reverse=True), round(risks[0], 3), round(risks[-1], 3)
    (True, 2.0, 1.0)
    """
    problems = [problem.with_neutrality(value) for value in _weights(eta, "eta", "neutrality")]
    return _solve_all(problems, solver, tol, strict, time_limit, options)


def grid(
    problem: Problem,
    lam: Sequence[float] | None = None,
    eta: Sequence[float] | None = None,
    solver: str | Solver = "auto",
    tol: float = 1e-6,
    *,
    strict: bool = False,
    time_limit: float | None = None,
    **options: Any,
) -> list[list[Solution]]:
    """Solve for all pairs of weights in one session (the work behind `nerm.Problem.grid`), a list a value of lam.

    >>> import nerm
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, 1, 1, -1]
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    >>> found = grid(objective.on(X, y, viewpoint=v), lam=[1.0, 0.1], eta=[0.0, 1.0, 10.0])
    >>> [[round(solution.objective.total, 3) for solution in row] for row in found]
    [[0.375, 1.655, 10.656], [0.05, 1.598, 10.628]]
    """
    if lam is None and eta is None:
        raise InvalidInputError(
            "a grid must have weights", "neither lam nor eta", "Pass grid(lam=[...], eta=[...])"
        )
    lams = [] if lam is None else [as_positive(w, "lam") for w in _weights(lam, "lam", "regularization")]
    rows = [problem.with_regularization(w) for w in lams] or [problem]
    etas = [] if eta is None else _weights(eta, "eta", "neutrality")
    problems = [one.with_neutrality(value) for one in rows for value in etas] or rows
    found = _solve_all(problems, solver, tol, strict, time_limit, options)
    width = len(problems) // len(rows)
    return [found[i * width : (i + 1) * width] for i in range(len(rows))]


def _weights(values: Sequence[float], name: str, of: str) -> list[float]:
    """Return a list of weights, checked."""
    if np.ndim(values) != 1 or len(values) == 0:
        must = f"{name!r} must be a nonempty list of {of} weights"
        raise InvalidInputError(must, repr(values), "Pass [0.1, 1, 10], for instance")
    return [as_nonnegative(value, name) for value in values]


class SolverPool:
    """Solves problems on the same rows one after the other; sessions, and what they keep, serve them all.

    >>> import nerm
    >>> problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()).on([[0.0], [1.0]], [-1, 1])
    >>> SolverPool().solve(problem, 1e-6).status.value
    'optimal'
    """

    def __init__(self, solver: str | Solver = "auto") -> None:
        self.solver, self.sessions = solver, dict[str, Session]()

    def solve(self, problem: Problem, tol: float, **options: Any) -> Solution:
        """Solve one problem, from where the last ones ended."""
        return _solve_all([problem], self.solver, tol, False, None, options, self.sessions)[0]


def _solve_all(
    problems: list[Problem],
    reference: str | Solver,
    tol: float,
    strict: bool,
    time_limit: float | None,
    options: dict[str, Any],
    sessions: dict[str, Session] | None = None,
) -> list[Solution]:
    """Solve relatives; those that are not convex by convex steps."""
    tol, sessions = as_positive(tol, "tol"), {} if sessions is None else sessions
    deadline = clock.after(
        None if time_limit is None else as_positive(time_limit, "time_limit", "Use a number of seconds")
    )
    if problems[0].is_convex:
        done = _solve_convex(problems, reference, tol, options, deadline, sessions)
    else:
        own = {name: options.pop(name) for name in ("start", "max_steps") if name in options}

        def step(problem: Problem, deadline: float) -> Solution:
            return _solve_convex([problem], reference, tol, options, deadline, sessions)[0]

        done = stationary_points(problems, step, tol, deadline, **own)
    if strict:
        for solution in done:
            _insist(solution)
    return done


def _solve_convex(
    problems: list[Problem],
    reference: str | Solver,
    tol: float,
    options: dict[str, Any],
    deadline: float,
    sessions: dict[str, Session],
) -> list[Solution]:
    """Solve relatives with one solver; with "auto", those that stay uncertified with the next one."""
    plan = (
        choose(problems[0], several=len(problems) > 1)
        if isinstance(reference, str) and reference == "auto"
        else [Choice(get(reference, problems[0]), "asked for")]
    )
    if options:
        plan = plan[:1]  # options belong to one solver
    solutions: list[Solution | None] = [None] * len(problems)
    for solver, reason, after_failure in plan:
        open_ones = [i for i, s in enumerate(solutions) if s is None or s.status not in SETTLED]
        if after_failure:
            open_ones = [
                i for i in open_ones if (s := solutions[i]) is not None and s.status is Status.FAILED
            ]
        if not open_ones:
            break
        if clock.is_up(deadline) and solver is not plan[0][0]:
            solutions = [s and timed_out(s) for s in solutions]
            break
        open_ones = [open_ones[k] for k in path_order([problems[i] for i in open_ones])]
        asked = [problems[i] for i in open_ones]
        session = sessions.get(solver.name)
        if session is None or not session.renewed(asked[0]):
            stoppable = solver.keeps_time or deadline == clock.NEVER
            session = open_session(solver, asked[0]) if stoppable else ProcessSession(solver)
            sessions[solver.name] = session
        for i, new in zip(
            open_ones, _refined(solver, session, asked, tol, reason, options, deadline), strict=True
        ):
            solutions[i] = combine(solutions[i], new)
    return [solution for solution in solutions if solution is not None]


def _insist(solution: Solution) -> None:
    """Raise unless the certificate granted optimality, or stationarity where no more can be had."""
    if not solution.status.success:
        why = f" The certificate says: {solution.certificate.reason}." if solution.certificate.reason else ""
        advice = (
            "Loosen a constraint"
            if solution.status is Status.INFEASIBLE
            else "Try another solver or a larger tol"
        )
        raise NotSolvedError(
            f"{solution.status.sentence} Certified relative gap {solution.certificate.relative_gap:.2e}, tolerance "
            f"{solution.tol:g}, solver {solution.stats.solver!r} claims {solution.stats.claim!r}.{why} {advice}."
        )


def _refined(
    solver: Solver,
    session: Session,
    problems: list[Problem],
    tol: float,
    reason: str,
    options: dict[str, Any],
    deadline: float,
) -> Iterator[Solution]:
    """Certify an answer to each problem; ask for finer ones until the certificate is content or time is up."""
    first, *finer = solver.accuracies(tol)
    answers = session.answers(problems, first, options, **limit(deadline))
    for number, (problem, answer) in enumerate(zip(problems, answers, strict=True)):
        own = clock.share(deadline, len(problems) - number)
        best = certify_answer(
            problem, answer, tol, Stats(solver=solver.name, version=solver.version(), reason=reason)
        )
        for accuracy in finer:
            if best.status in SETTLED:
                break
            if clock.is_up(own):
                best = timed_out(best)
                break
            again = certify_answer(
                problem, session.answer(problem, accuracy, options, **limit(own)), tol, best.stats
            )
            spent = {
                name: getattr(again.stats, name)
                for name in ("build_seconds", "solve_seconds", "certify_seconds")
            }
            best = combine(best, again)
            best = replace(best, stats=replace(best.stats, **spent))
        yield best
