"""The solver "interior-point" for linear problems, with norms and paths.

The method is in `nerm.solvers.interior_point.engine`, which is imported when a session is opened.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from nerm.atoms.regularizer import SquaredL2, Structure
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
        """Return a phrase that says which problems the solver takes."""
        return (
            "a linear problem with squares and norms (l1, l2, l-infinity) of positive weight, and at most "
            f"{LARGEST_SYSTEM} rows or columns, whichever are fewer (with squared l2 alone), or columns"
        )

    def why_unsupported(self, problem: Problem) -> str | None:
        """Return the first part of a problem that the solver does not take, or None."""
        if problem.is_kernel:
            return "a kernel"
        for _, omega in problem.regularizers:
            if omega.structure(problem.hypothesis.size) is None:
                return repr(omega)
        if not parts_of(problem.regularizers):
            return "no regularizer of positive weight"
        rows, columns = problem.hypothesis.n, problem.hypothesis.size
        if (columns if needs_axes(problem) else min(rows, columns)) > LARGEST_SYSTEM:
            return f"{rows} rows and {columns} columns"
        return unsupported_atom(problem)

    def open(self, problem: Problem) -> Session:
        """Start a session for this problem and others on the same rows."""
        from nerm.solvers.interior_point.engine import Engine  # compiled code takes long to load

        return Engine(problem)


def structure_of(problem: Problem) -> Structure:
    """Return the weighted sum of the regularizers of a linear problem as one `Structure`."""
    d = problem.hypothesis.size
    parts = [(weight, atom.structure(d) or Structure(0.0)) for weight, atom in parts_of(problem.regularizers)]
    norms = tuple(n._replace(weights=weight * n.weights) for weight, part in parts for n in part.norms)
    forms = [weight * part.quadratic for weight, part in parts if part.quadratic is not None]
    return Structure(square_weight(problem.regularizers), norms, sum(forms) if forms else None)


def needs_axes(problem: Problem) -> bool:
    """Whether the unknowns must be the coefficients themselves, not other coordinates.

    This is so if the problem has norms of coefficients or of groups of them.
    """
    return any(not isinstance(atom, SquaredL2) for _, atom in parts_of(problem.regularizers))


def unsupported_term(problem: Problem) -> str | None:
    """Return the first term that a method for squared l2 regularization does not take, or None.

    Such a term has another regularizer, or an atom without hinge-like and smooth parts (`unsupported_atom`).
    The solvers "newton-alm" and "smo" call this function.
    """
    for _, omega in problem.regularizers:
        if not isinstance(omega, SquaredL2):
            return repr(omega)
    if not square_weight(problem.regularizers) > 0:
        return "no squared l2 regularizer of positive weight"
    return unsupported_atom(problem)


def unsupported_atom(problem: Problem) -> str | None:
    """Return the first atom that cannot be split into hinge-like and smooth parts, or None.

    The formula of such an atom is evaluated numerically (`MarginFunction.parts`).
    """
    return next((repr(block.atom) for block in problem.blocks if not block.atom.parts), None)


SOLVERS = (InteriorPoint(),)
