"""The solver "interior-point": linear problems, their norms and paths, on `Engine`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nerm.atoms.regularizer import Norms, SquaredL2
from nerm.certify.conjugates import parts_of, square_weight
from nerm.model.problem import Problem
from nerm.solvers import auto
from nerm.solvers.base import NermSolver, Session

LARGEST_SYSTEM = 5000  # unknowns of the dense Newton system: 200 MB


@dataclass(frozen=True)
class InteriorPoint(NermSolver):
    """A primal-dual interior-point method with a Newton system in (w, b)."""

    name: str = "interior-point"
    keeps_time = True
    cost = staticmethod(auto.interior_point)
    merges_rows: ClassVar[bool] = True
    splits_blocks: ClassVar[bool] = True

    def requirements(self) -> str:
        """One phrase: what a problem must be like."""
        return (
            "a linear problem with squared l2, l1, group l2 or l-infinity of positive weight, and at most "
            f"{LARGEST_SYSTEM} rows or columns, whichever are fewer (with squared l2 alone), or columns"
        )

    def why_unsupported(self, problem: Problem) -> str | None:
        """Name the first part of a problem that is not supported."""
        if problem.is_kernel:
            return "a kernel"
        for _, omega in problem.regularizers:
            for _, part in omega.parts():
                if not isinstance(part, SquaredL2) and part.norms(problem.hypothesis.size) is None:
                    return repr(omega)
        if not parts_of(problem.regularizers):
            return "no regularizer of positive weight"
        rows, columns = problem.hypothesis.n, problem.hypothesis.size
        if (columns if norms_of(problem) else min(rows, columns)) > LARGEST_SYSTEM:
            return f"{rows} rows and {columns} columns"
        return unsupported_atom(problem)

    def open(self, problem: Problem) -> Session:
        """Prepare the features."""
        from nerm.solvers.interior_point.engine import Engine  # compiled code takes long to load

        return Engine(problem)


def norms_of(problem: Problem) -> list[Norms]:
    """Return the other norms of a linear problem."""
    d = problem.hypothesis.size
    parts = [(weight, part.norms(d)) for weight, part in parts_of(problem.regularizers)]
    return [n._replace(weights=weight * n.weights) for weight, norms in parts for n in norms or ()]


def unsupported_term(problem: Problem) -> str | None:
    """Name the first regularizer other than squared l2, or the first atom without parts."""
    for _, omega in problem.regularizers:
        if not isinstance(omega, SquaredL2):
            return repr(omega)
    if not square_weight(problem.regularizers) > 0:
        return "no squared l2 regularizer of positive weight"
    return unsupported_atom(problem)


def unsupported_atom(problem: Problem) -> str | None:
    """Name the first atom whose formula is evaluated numerically."""
    return next((repr(block.atom) for block in problem.blocks if not block.atom.parts), None)


SOLVERS = (InteriorPoint(),)
