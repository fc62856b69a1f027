"""The interface of a solver: its requirements, its cost, and sessions that answer problems."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from math import inf
from typing import TYPE_CHECKING, Any, ClassVar

from nerm.certify.solution import Answer
from nerm.errors import UnknownNameError
from nerm.model.problem import Problem
from nerm.solvers import clock

if TYPE_CHECKING:
    from nerm.solvers.auto import Shape

OWN_PACKAGE = "nerm-learn"


class Session(ABC):
    """A solver on one problem and others along a path; it keeps the work that they share.

    >>> import nerm
    >>> problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()).on([[0.0], [1.0]], [-1, 1])
    >>> session = nerm.solvers.known()["clarabel"].open(problem)
    >>> answer = session.answer(problem, 1e-8, {})
    >>> bool(problem.certify(answer.coef, answer.intercept).relative_gap < 1e-6)
    True
    """

    @abstractmethod
    def answer(self, problem: Problem, accuracy: float, options: dict[str, Any]) -> Answer:
        """Solve to about this relative accuracy; if the solver keeps time, it also takes `deadline`."""

    def renewed(self, problem: Problem) -> bool:
        """Take a problem with other terms on the same rows; False if that needs a new session."""
        return False

    def answers(
        self,
        problems: Sequence[Problem],
        accuracy: float,
        options: dict[str, Any],
        deadline: float = clock.NEVER,
    ) -> Iterator[Answer]:
        """Solve problems that differ in their weights only, in order, in equal shares of the time."""
        for i, problem in enumerate(problems):
            yield self.answer(problem, accuracy, options, **limit(clock.share(deadline, len(problems) - i)))


class Solver(ABC):
    """A method of solution: its requirements, its cost, and sessions that answer problems.

    An answer is a hypothesis and, if the solver has them, multipliers; `nerm.certify` certifies it.

    Attributes
    ----------
    name : str
        The name that users type.
    package : str
        The distribution that it needs.
    takes_constraints : bool
        Whether it takes constraints. If not, nerm meets one limit by a search over its weight.
    takes_every_atom : bool
        Whether it takes every margin function and regularizer; ``"auto"`` asks one such solver last.
    merges_rows : bool
        Whether its sessions are given the distinct rows only.
    keeps_time : bool
        Whether its sessions take a `deadline` (`nerm.solvers.clock`); others run in a process that is killed.

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
    keeps_time: bool = False

    def installed(self) -> bool:
        """Whether its package is installed, found without importing it."""
        return importlib.util.find_spec(self.module) is not None

    @property
    def module(self) -> str:
        """The module to look for; by default named like the package."""
        return self.package

    def version(self) -> str:
        """Return the version of its package."""
        if self.package == OWN_PACKAGE:
            from nerm import __version__

            return __version__
        try:
            return importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            return ""

    @abstractmethod
    def requirements(self) -> str:
        """Return one phrase: the problems that it takes."""

    @abstractmethod
    def why_unsupported(self, problem: Problem) -> str | None:
        """Return the part of this problem that the solver cannot take; None if nothing is known."""

    def cost(self, shape: Shape) -> float:
        """Return about how many seconds a solve takes (`nerm.solvers.auto`); inf: asked by name only."""
        return inf

    @abstractmethod
    def open(self, problem: Problem) -> Session:
        """Start a session on a problem; others with the same rows may follow in it."""

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return the accuracies to ask for, one after the other, until an answer is certified."""
        return (tol,)


class NermSolver(Solver):
    """A solver without a package to install: one of nerm's own, or one written in a notebook.

    >>> import nerm
    >>> solver = nerm.solvers.known()["interior-point"]
    >>> isinstance(solver, NermSolver), solver.installed()
    (True, True)
    """

    package = OWN_PACKAGE

    @property
    def module(self) -> str:
        """Part of nerm itself."""
        return "nerm"


class OwnSolver(NermSolver, Session):
    """A solver that keeps nothing between solves and is its own session.

    >>> import nerm
    >>> issubclass(OwnSolver, nerm.solvers.Solver) and issubclass(OwnSolver, nerm.solvers.Session)
    True
    """

    def open(self, problem: Problem) -> Session:
        """Return itself."""
        return self


def path_order(problems: Sequence[Problem], *, turning: bool = True) -> list[int]:
    """Order problems so that consecutive ones have similar weights.

    The regularization goes from the strongest to the weakest. For each of its weights the neutrality weights
    rise; with `turning` they rise and fall in turn.
    """
    lams = [sum(weight for weight, _ in problem.regularizers) for problem in problems]
    order = list[int]()
    for number, lam in enumerate(sorted(set(lams), reverse=True)):
        row = [i for i in range(len(problems)) if lams[i] == lam]
        order += sorted(row, key=lambda i: float(problems[i].etas.sum()), reverse=turning and number % 2 == 1)
    return order


def limit(deadline: float) -> dict[str, Any]:
    """Return the keyword for a session: none without a deadline, since not every session takes one."""
    return {} if deadline == clock.NEVER else {"deadline": deadline}


def check_options(solver: str, options: dict[str, Any], known: Sequence[str]) -> None:
    """Raise an `UnknownNameError` for an option that the solver does not have."""
    for name in options:
        if name not in known:
            raise UnknownNameError(f"an option of {solver!r}", name, known or ("no options",))
