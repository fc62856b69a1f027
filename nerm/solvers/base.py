"""The interface of a solver: its requirements, its cost, and sessions that answer problems."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from nerm.certify.solution import Answer
from nerm.errors import check_known
from nerm.model.problem import Problem
from nerm.solvers import clock

if TYPE_CHECKING:
    from nerm.solvers.auto import Shape


class Session(ABC):
    """An open solver for the problems along a path; it keeps the work that these problems share.

    >>> import nerm
    >>> problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()).on([[0.0], [1.0]], [-1, 1])
    >>> session = nerm.solvers.known()["clarabel"].open(problem)
    >>> answer = session.answer(problem, 1e-8, {})
    >>> bool(problem.certify(answer.coef, answer.intercept).relative_gap < 1e-6)
    True
    """

    @abstractmethod
    def answer(self, problem: Problem, accuracy: float, options: dict[str, Any]) -> Answer:
        """Solve a problem to about this relative accuracy.

        If the solver has `keeps_time`, the call has one more argument, `deadline`.
        """

    def renewed(self, problem: Problem) -> bool:
        """Prepare for a problem with other terms on the same rows.

        Return False if it needs a new session.
        """
        return False

    def answers(
        self,
        problems: Sequence[Problem],
        accuracy: float,
        options: dict[str, Any],
        deadline: float = clock.NEVER,
    ) -> Iterator[Answer]:
        """Yield one answer per problem, in order; the problems differ only in their weights.

        The time until the deadline is divided equally among the problems that are left.
        """
        for i, problem in enumerate(problems):
            yield self.answer(problem, accuracy, options, **limit(clock.share(deadline, len(problems) - i)))


class Solver(ABC):
    """A method of solution: its requirements, its cost, and sessions that answer problems.

    An answer is a hypothesis and, if the solver has them, multipliers; `nerm.certify` certifies it.

    Attributes
    ----------
    name : str
        The name for ``solve(solver=...)``.
    package : str
        The Python package that must be installed.
    takes_constraints : bool
        Whether it supports constraints. If not, nerm meets one limit by a search over its weight.
    takes_every_atom : bool
        Whether it supports every margin function and regularizer; ``"auto"`` runs one such solver last.
    merges_rows : bool
        Whether its sessions work on the distinct rows only (`nerm.solvers.linalg.merging`).
    splits_blocks : bool
        Whether it takes a sum of margin functions as several blocks (`nerm.solvers.linalg.merging`).
    keeps_time : bool
        Whether its sessions accept a `deadline` (`nerm.solvers.clock`). With a time limit, other solvers run
        in a process that is killed at the deadline.

    >>> import nerm
    >>> problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.L1()).on([[0.0], [1.0]], [-1, 1])
    >>> nerm.solvers.known()["smo"].requirements()
    'a neutral SVM: ...'
    >>> nerm.solvers.known()["smo"].why_unsupported(problem)
    'L1()'
    >>> print(nerm.solvers.known()["clarabel"].why_unsupported(problem))
    None

    """

    name: str
    package: str
    takes_constraints: ClassVar[bool] = False
    takes_every_atom: bool = False
    merges_rows: ClassVar[bool] = False
    splits_blocks: ClassVar[bool] = False
    keeps_time: bool = False

    def installed(self) -> bool:
        """Whether its package is installed, found without importing it."""
        return importlib.util.find_spec(self.package) is not None

    def version(self) -> str:
        """Return the version of its package."""
        if self.package == "nerm":
            from nerm import __version__

            return __version__
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return ""

    @abstractmethod
    def requirements(self) -> str:
        """Return a phrase that describes the supported problems."""

    @abstractmethod
    def why_unsupported(self, problem: Problem) -> str | None:
        """Return the part of this problem that the solver does not support, or None if there is none."""

    def cost(self, shape: Shape) -> float:
        """Estimate the seconds of a solve (`nerm.solvers.auto`); inf excludes the solver from ``"auto"``."""
        return inf

    @abstractmethod
    def open(self, problem: Problem) -> Session:
        """Open a session for a problem.

        It may be used for other problems on the same rows.
        """

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return the accuracies to try, in order, until an answer is certified at `tol`."""
        return (tol,)


class NermSolver(Solver):
    """A solver without a package to install: one of nerm's own, or one written in a notebook.

    >>> import nerm
    >>> solver = nerm.solvers.known()["interior-point"]
    >>> isinstance(solver, NermSolver), solver.installed()
    (True, True)
    """

    package = "nerm"


class OwnSolver(NermSolver, Session):
    """A solver that keeps nothing between solves and is its own session.

    >>> import nerm
    >>> issubclass(OwnSolver, nerm.solvers.Solver) and issubclass(OwnSolver, nerm.solvers.Session)
    True
    """

    def open(self, problem: Problem) -> Session:
        """Return the solver itself as its session."""
        return self


def path_order(problems: Sequence[Problem]) -> list[int]:
    """Order problems by decreasing weight of the regularizers, then by increasing neutrality weight."""
    lams = [sum(weight for weight, _ in problem.regularizers) for problem in problems]
    return sorted(range(len(problems)), key=lambda i: (-lams[i], float(problems[i].etas.sum())))


def limit(deadline: float) -> dict[str, Any]:
    """Return the keyword argument ``{"deadline": deadline}``, or {} for NEVER.

    Not every session accepts a deadline.
    """
    return {} if deadline == clock.NEVER else {"deadline": deadline}


def check_options(solver: str, options: dict[str, Any], known: Sequence[str]) -> None:
    """Raise an `UnknownNameError` for an option that the solver does not have."""
    for name in options:
        check_known(name, f"an option of {solver!r}", known or ("no options",))
