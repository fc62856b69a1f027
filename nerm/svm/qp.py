"""A convex quadratic programme as explicit sparse matrices, and the solvers that take it.

::

    minimise  1/2 x'Px + q'x     subject to   l <= A x <= u                                   (OSQP's form)

with multipliers z of the rows such that Px + q + A'z = 0, z > 0 where the upper side holds, z < 0 where the
lower side does.
"""

import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.certify.solution import Answer, Solution, Stats, certify_answer
from nerm.cvxpy_backend.driver import run
from nerm.errors import UnknownNameError
from nerm.model.problem import Problem
from nerm.solvers.smo.intercept import best_intercept
from nerm.solvers.smo.segments import Segments
from nerm.typing import Floats
from nerm.validation import as_positive

GRANTED = 1e-6  # a model recovered from a solver's answer counts as optimal at this certified relative gap


@dataclass(frozen=True)
class QPSolution:
    """A solver's answer: x, the row multipliers z, its own words, and the certified solution made of them.

    Attributes
    ----------
    x, z : (N,) and (M,) arrays
        The point and the multipliers of the rows; nan where the solver left none.
    value : float
        The objective at x as the solver left it (x may be slightly infeasible), in sum form.
    status, solver : str
        The solver's own words, and its name.
    model : Solution or None
        In mean form; its figures are the ones to trust. None where x or z is not finite.

    Examples
    --------
    >>> from nerm.svm import primal_qp
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> solution = primal_qp(X, y, v, lam=2.0, eta=1.0).solve("clarabel")
    >>> round(solution.value, 4), round(4 * solution.model.certificate.primal, 4), str(solution.model.status)
    (5.25, 5.25, 'optimal')

    """

    x: Floats
    z: Floats
    value: float
    status: str
    solver: str
    model: Solution | None


@dataclass(frozen=True, eq=False)
class QP:
    """min 1/2 x'Px + q'x, l <= Ax <= u.

    Attributes
    ----------
    P, A : (N, N) and (M, N) sparse matrices
        The quadratic form and the rows.
    q, l, u : (N,), (M,) and (M,) arrays
        The linear form, and the lower and upper sides of the rows.
    layout, rows : dict of slices
        The blocks of x and of the rows of A, by name. One entry a sample is one a distinct row of the
        problem.
    problem : Problem
        The neutral SVM that it solves, in mean form.

    Examples
    --------
    >>> from nerm.svm import primal_qp
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> qp = primal_qp(X, y, v, lam=2.0, eta=1.0)
    >>> list(qp.layout)
    ['coef', 'intercept', 'scores', 'xi', 'xi_plus', 'xi_minus', 'zeta']
    >>> x = qp.solve(tol=1e-9).x
    >>> x[qp.layout["coef"]].round(3), round(qp.value(x), 4), qp.violation(x) < 1e-6
    (array([0.5]), 5.25, True)

    """

    P: sp.csc_matrix
    q: Floats
    A: sp.csc_matrix
    l: Floats
    u: Floats
    layout: dict[str, slice]
    rows: dict[str, slice]
    problem: Problem
    _answer: Callable[[Floats, Floats, str], Answer] = field(repr=False)

    def value(self, x: Floats) -> float:
        """Return the objective at x, (N,)."""
        return float(0.5 * x @ (self.P @ x) + self.q @ x)

    def violation(self, x: Floats) -> float:
        """Return the largest violation of a constraint at x, (N,); 0 where all hold."""
        Ax = self.A @ x
        return float(max(0.0, (self.l - Ax).max(initial=0.0), (Ax - self.u).max(initial=0.0)))

    def answer(self, x: Floats, z: Floats, status: str) -> Answer:
        """Return the hypothesis and the multipliers behind a point x, (N,), and row multipliers z, (M,)."""
        if not (np.isfinite(x).all() and np.isfinite(z).all()):
            return Answer(None, 0.0, claim=status)
        return self._answer(np.asarray(x, dtype=float), np.asarray(z, dtype=float), status)

    def recover(self, x: Floats, z: Floats, status: str = "recovered") -> Solution:
        """Return the certified solution behind a point and row multipliers."""
        return certify_answer(
            self.problem, self.answer(x, z, status), GRANTED, Stats("qp", reason="recovered")
        )

    def solve(self, solver: str = "osqp", tol: float = 1e-8, **options: Any) -> QPSolution:
        """Solve with any QP solver that cvxpy offers, by its name.

        Parameters
        ----------
        solver : str
            In lower case, as in `nerm.solvers`.
        tol : float
            Goes to the solver in its own terms.
        options : dict
            Further keywords, passed through.

        Returns
        -------
        QPSolution
            To be judged by ``model.certificate.relative_gap``, not by its status.

        """
        x, z, status = self.point(solver, as_positive(tol, "tol", "Use a tolerance such as 1e-8"), options)
        model = self.recover(x, z, status) if np.isfinite(x).all() and np.isfinite(z).all() else None
        return QPSolution(x, z, self.value(x), status, solver.lower(), model)

    def point(self, solver: str, tol: float, options: dict[str, Any]) -> tuple[Floats, Floats, str]:
        """Return x, z and the solver's claim; nan where it left nothing."""
        import cvxpy as cp

        known = [name.lower() for name in cp.installed_solvers()]
        if solver.lower() not in known:
            raise UnknownNameError("'solver'", solver, known, "Use an installed solver")
        x = cp.Variable(len(self.q))
        equal = self.l == self.u
        below, above = ~equal & np.isfinite(self.l), ~equal & np.isfinite(self.u)
        A = self.A.tocsr()
        # (rows, comparison, with what, sign that turns cvxpy's nonnegative multiplier into z)
        kinds = [
            (equal, operator.eq, self.l, 1.0),
            (below, operator.ge, self.l, -1.0),
            (above, operator.le, self.u, 1.0),
        ]
        # cvxpy 1.7 knows no constraints of no rows
        parts = [
            (rows, compare(A[rows] @ x, end[rows]), sign) for rows, compare, end, sign in kinds if rows.any()
        ]
        cost = cp.Minimize(0.5 * cp.quad_form(x, cp.psd_wrap(self.P)) + self.q @ x)
        claim = run(
            cp.Problem(cost, [constraint for _, constraint, _ in parts]), solver.lower(), tol, options
        )
        if x.value is None or any(constraint.dual_value is None for _, constraint, _ in parts):
            return np.full(len(self.q), np.nan), np.full(len(self.l), np.nan), claim
        z = np.zeros(len(self.l))
        for mask, constraint, sign in parts:
            z[mask] += sign * np.asarray(constraint.dual_value).ravel()
        return np.asarray(x.value), z, claim


def slices(**sizes: int) -> dict[str, slice]:
    """Lay named blocks one after another."""
    ends = np.cumsum(list(sizes.values()))
    return {
        name: slice(int(end) - size, int(end)) for (name, size), end in zip(sizes.items(), ends, strict=True)
    }


def answer_of(
    problem: Problem, a: Floats, nu: Floats, claim: str, hypothesis: tuple[Floats, float] | None = None
) -> Answer:
    """Return the answer with the best multipliers behind forces a and the multipliers nu of the two sums.

    Without a hypothesis it is the kernel expansion of a / lambda, with the best intercept for its scores:
    that is one even when the solver was stopped early.
    """
    plus, minus = np.maximum(nu, 0.0)
    segments = Segments(problem, float(plus / (plus + minus)) if plus + minus > 0 else 0.5)
    a = segments.balanced(a) if problem.intercept else np.clip(a, segments.low, segments.high)
    c = a / (problem.divisor * sum(weight for weight, _ in problem.regularizers))
    coef, b = hypothesis or (c if problem.is_kernel else problem.hypothesis.adjoint(c), np.nan)
    g = problem.hypothesis.scores(coef)
    best, *interval = best_intercept(problem, g) if problem.intercept else (0.0, 0.0, 0.0)
    b = best if np.isnan(b) else b
    return Answer(
        coef, b, segments.multipliers(a, g + b), claim=claim, details={"intercept_interval": tuple(interval)}
    )
