"""What a solver is: it says what it needs of a problem and returns an answer; nerm judges the answer."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar

from nerm.certify.solution import Answer
from nerm.errors import UnknownNameError
from nerm.model.problem import Problem
from nerm.solvers import clock

OWN_PACKAGE = "nerm-learn"


class Session(ABC):
    """A solver at work on one problem and its relatives with other weights; keeps what can be used again.

    >>> import nerm
    >>> problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()).on([[0.0], [1.0]], [-1, 1])
    >>> session = nerm.solvers.known()["clarabel"].open(problem)
    >>> answer = session.answer(problem, 1e-8, {})
    >>> bool(problem.certify(answer.coef, answer.intercept).relative_gap < 1e-6)
    True
    """

    @abstractmethod
    def answer(self, problem: Problem, accuracy: float, options: dict[str, Any]) -> Answer:
        """Solve to about this relative accuracy; a session of a solver that keeps time also takes `deadline`."""

    def renewed(self, problem: Problem) -> bool:
        """Take a problem with other terms on the same rows, and keep what it leaves valid; False: it needs another."""
        return False

    def answers(
        self,
        problems: Sequence[Problem],
        accuracy: float,
        options: dict[str, Any],
        deadline: float = clock.NEVER,
    ) -> Iterator[Answer]:
        """Solve relatives that differ in their weights only, one answer each, in their order: each is next to the last.

        Each may take an equal share of the time that is left.
        """
        for i, problem in enumerate(problems):
            yield self.answer(problem, accuracy, options, **limit(clock.share(deadline, len(problems) - i)))


class Solver(ABC):
    """One way to solve. `name` is what users type, `package` the distribution it needs.

    A solver says what it needs, names the obstacle in a problem that it cannot take, and opens a session that
    answers with a hypothesis and, if it has them, multipliers; `nerm.solvers` judges the answer.

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
    rank: ClassVar[int | None] = None  # its place among those that "auto" asks; None: only when it is named
    takes_constraints: ClassVar[bool] = False  # else one limit is met by a search over its weight
    merges_rows: ClassVar[bool] = False  # whether its sessions are given the distinct rows only
    is_bounded: ClassVar[bool] = (
        False  # its time follows from the size of a problem, whatever is hard about it
    )
    keeps_time: bool = False  # its sessions take the moment `deadline` (`nerm.solvers.clock`); others are stopped from outside

    def installed(self) -> bool:
        """Whether its package is here, found without importing it."""
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
        """One phrase: what a problem must be like for this solver."""

    @abstractmethod
    def why_unsupported(self, problem: Problem) -> str | None:
        """Return what of this problem the solver cannot take; None if nothing is known to be in the way."""

    def prefers(self, problem: Problem, *, several: bool = False) -> bool:
        """Whether "auto" asks it first: it was measured to be faster on such problems than those that rank before.

        `several` where relatives of the problem follow, as on a path.
        """
        return False

    def early_exit(self) -> Solver:
        """Return the solver as "auto" asks it where others wait: one that may give up early."""
        return self

    @abstractmethod
    def open(self, problem: Problem) -> Session:
        """Start a session on a problem; related problems may follow in the same session."""

    def accuracies(self, tol: float) -> tuple[float, ...]:
        """Return the accuracies to ask for, one after the other, until the certificate is content."""
        return (tol,)


class NermSolver(Solver):
    """A solver without a package to install: one of nerm's own, or of somebody's notebook.

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
    """One that keeps nothing between solves, so that it is its own session.

    >>> import nerm
    >>> isinstance(nerm.solvers.known()["dual-qp"], OwnSolver)
    True
    """

    def open(self, problem: Problem) -> Session:
        """Return itself."""
        return self


def path_order(problems: Sequence[Problem], *, turning: bool = True) -> list[int]:
    """Return an order in which each of several relatives is next to the one before.

    From the strongest regularization to the weakest, and through the neutrality weights up and down in turn,
    or without turning up each time.
    """
    lams = [sum(weight for weight, _ in problem.regularizers) for problem in problems]
    order = list[int]()
    for number, lam in enumerate(sorted(set(lams), reverse=True)):
        row = [i for i in range(len(problems)) if lams[i] == lam]
        order += sorted(row, key=lambda i: float(problems[i].etas.sum()), reverse=turning and number % 2 == 1)
    return order


def limit(deadline: float) -> dict[str, Any]:
    """Return the keyword for a session: none without a limit, so that one that does not keep time need not know it."""
    return {} if deadline == clock.NEVER else {"deadline": deadline}


def check_options(
    solver: str, options: dict[str, Any], function: Callable[..., Any], taken: set[str]
) -> None:
    """Refuse an option that the function behind a solver does not have as a parameter, or that is taken."""
    known = set(inspect.signature(function).parameters) - taken
    for name in options:
        if name not in known:
            raise UnknownNameError(f"an option of {solver!r}", name, known)
