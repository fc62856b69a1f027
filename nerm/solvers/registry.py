"""The registry of solvers, and `SolverPool`, which runs them and certifies every answer."""

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterator
from dataclasses import replace
from functools import cache, partial
from itertools import islice
from typing import Any

from nerm.certify.solution import SECONDS, Solution, Stats, Status, certify_answer, combine, timed_out
from nerm.errors import MissingPackageError, NotSolvedError, UnknownNameError, UnsupportedProblemError
from nerm.model.problem import Problem
from nerm.solvers import auto, clock
from nerm.solvers.auto import Choice
from nerm.solvers.base import Session, Solver, limit, path_order
from nerm.solvers.convex_concave import stationary_points
from nerm.solvers.linalg.merging import open_session
from nerm.solvers.process import ProcessSession
from nerm.solvers.progress import print_solve, with_bar
from nerm.validation import as_positive

PROVED = (Status.OPTIMAL, Status.INFEASIBLE)  # no other solver needs to be run


@cache
def known() -> dict[str, Solver]:
    """Return a dict of all solvers that nerm can call, by name, installed or not.

    Each solver module lists its solvers in SOLVERS.

    >>> {"interior-point", "smo", "clarabel"} <= set(available()) <= set(known())
    True
    """
    folder = importlib.import_module("nerm.solvers")
    found = pkgutil.iter_modules(folder.__path__, "nerm.solvers.")
    names = [f"{m.name}.solver" if m.ispkg else m.name for m in found]
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
    """Return a solver given by name or as an object.

    Raise an error if it cannot solve the problem.
    """
    if not isinstance(reference, Solver) and not (isinstance(reference, str) and reference in known()):
        raise UnknownNameError("'solver'", reference, ["auto", *known()])
    solver = reference if isinstance(reference, Solver) else known()[reference]
    name = solver.name
    if not solver.installed():
        raise MissingPackageError(
            f"solver {name!r} needs the package {solver.package!r}. It is not installed. "
            f"Install it, or use one of {', '.join(map(repr, available()))}."
        )
    unsupported = auto.why_unsupported(solver, problem)
    if unsupported is not None:
        must = f"solver {name!r} must be given {solver.requirements()}"
        got = f"a problem with {unsupported}"
        raise UnsupportedProblemError(must, got, "Use solver='auto' or another solver")
    return solver


def choose(problem: Problem) -> list[Choice]:
    """Return the solvers that ``solver="auto"`` runs, in order, and why.

    >>> import nerm
    >>> problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()).on([[0.0], [1.0]], [-1, 1])
    >>> [choice.solver.name for choice in choose(problem)]
    ['interior-point', 'smo', 'clarabel']
    """
    return list(auto.plan(problem, known().values()))


class SolverPool:
    """Solve a sequence of problems on the same rows; the solvers' sessions are kept between problems.

    >>> import nerm
    >>> problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()).on([[0.0], [1.0]], [-1, 1])
    >>> SolverPool().solve(problem, 1e-6).status.value
    'optimal'
    """

    def __init__(self, solver: str | Solver = "auto", verbose: bool = False) -> None:
        self.solver, self.verbose = solver, verbose
        self._sessions: dict[str, Session] = {}

    def solve(self, problem: Problem, tol: float, **options: Any) -> Solution:
        """Solve one problem, warm-started from the problems that were solved before."""
        return self.solve_all([problem], tol, False, None, options)[0]

    def solve_all(
        self,
        problems: list[Problem],
        tol: float,
        strict: bool,
        time_limit: float | None,
        options: dict[str, Any],
    ) -> list[Solution]:
        """Solve problems along a path; nonconvex ones by the convex-concave procedure."""
        tol = as_positive(tol, "tol")
        if time_limit is not None:
            time_limit = as_positive(time_limit, "time_limit", "Use a number of seconds")
        deadline = clock.after(time_limit)
        if problems[0].is_convex:
            solutions = self._solve_convex(problems, deadline, tol, options)
        else:
            own = {name: options.pop(name) for name in ("start", "max_steps") if name in options}
            solve = partial(self._solve_convex, tol=tol, options=options)
            solutions = stationary_points(problems, solve, tol, deadline, **own)
        for solution in solutions if strict else ():
            _raise_unless_optimal(solution)
        return solutions

    def _choices(self, problems: list[Problem], options: dict[str, Any]) -> Iterator[Choice]:
        """Return the solvers to run, in order."""
        if self.solver != "auto":
            return iter([Choice(get(self.solver, problems[0]), "given by solver=")])
        choices = auto.plan(problems[0], known().values())
        return islice(choices, 1) if options else choices  # options belong to one solver

    def _solve_convex(
        self, problems: list[Problem], deadline: float, tol: float, options: dict[str, Any]
    ) -> list[Solution]:
        """Solve convex problems along a path; run the next solver on those that are not certified."""
        best, left = dict[int, Solution](), path_order(problems)
        for choice in self._choices(problems, options):
            if best and clock.is_up(deadline):
                best = {i: timed_out(solution) for i, solution in best.items()}
                break
            found = self._refined(choice, [problems[i] for i in left], tol, options, deadline)
            for i, new in zip(left, with_bar(found, len(left)) if self.verbose else found, strict=True):
                best[i] = combine(best.get(i), new)
                if self.verbose:
                    print_solve(new, f"eta {new.problem.etas.sum():.4g}" if len(new.problem.etas) else "")
            left = [i for i in left if best[i].status not in PROVED]
            if not left:
                break
        return [best[i] for i in range(len(problems))]

    def _session(self, solver: Solver, problem: Problem, deadline: float) -> Session:
        """Return the open session of a solver, or a new session if the open one cannot take the problem."""
        session = self._sessions.get(solver.name)
        if session is None or not session.renewed(problem):
            has_clock = solver.keeps_time or deadline == clock.NEVER
            session = open_session(solver, problem) if has_clock else ProcessSession(solver)
            self._sessions[solver.name] = session
        return session

    def _refined(
        self, choice: Choice, problems: list[Problem], tol: float, options: dict[str, Any], deadline: float
    ) -> Iterator[Solution]:
        """Yield one solution per problem.

        A problem that is not certified is solved again with finer accuracies, until it is certified or the
        time is up.
        """
        solver = choice.solver
        session = self._session(solver, problems[0], deadline)
        first, *finer = solver.accuracies(tol)
        answers = session.answers(problems, first, options, **limit(deadline))
        for number, (problem, answer) in enumerate(zip(problems, answers, strict=True)):
            own = clock.share(deadline, len(problems) - number)
            stats = Stats(solver=solver.name, version=solver.version(), reason=choice.reason)
            best = certify_answer(problem, answer, tol, stats)
            for accuracy in finer:
                if best.status in PROVED:
                    break
                if clock.is_up(own):
                    best = timed_out(best)
                    break
                again = session.answer(problem, accuracy, options, **limit(own))
                new = certify_answer(problem, again, tol, best.stats)
                seconds = {name: getattr(new.stats, name) for name in SECONDS}
                best = combine(best, new)
                best = replace(best, stats=replace(best.stats, **seconds))
            yield best


def _raise_unless_optimal(solution: Solution) -> None:
    """Raise `NotSolvedError` unless the solution is optimal, or stationary for a nonconvex problem."""
    if not solution.status.success:
        why = f" The certificate says: {solution.certificate.reason}." if solution.certificate.reason else ""
        infeasible = solution.status is Status.INFEASIBLE
        advice = "Loosen a constraint" if infeasible else "Try another solver or a larger tol"
        raise NotSolvedError(
            f"{solution.status.sentence} Certified relative gap {solution.certificate.relative_gap:.2e}, "
            f"tolerance {solution.tol:g}, solver {solution.stats.solver!r} claims "
            f"{solution.stats.claim!r}.{why} {advice}."
        )
