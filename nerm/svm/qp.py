"""A convex quadratic programme as explicit sparse matrices, and the solvers that take it.

::

    minimise  1/2 x'Px + q'x + constant     subject to   l <= A x <= u                       (OSQP's form)

with multipliers z of the rows such that Px + q + A'z = 0, z > 0 where the upper side holds, z < 0 where the
lower side does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.errors import UnknownNameError
from nerm.svm.result import NeutralSVM
from nerm.validation import as_positive

# A model recovered from a solver's answer counts as converged at this certified relative gap.
GRANTED = 1e-6
# How each solver behind cvxpy spells its tolerance. One that is not listed runs at its own default.
_TOLERANCES: dict[str, tuple[str, ...]] = {
    "CLARABEL": ("tol_gap_abs", "tol_gap_rel", "tol_feas"),
    "ECOS": ("abstol", "reltol", "feastol"),
    "SCS": ("eps_abs", "eps_rel"),
    "PIQP": ("eps_abs", "eps_rel"),
    "PROXQP": ("eps_abs", "eps_rel"),
}


@dataclass(frozen=True)
class QPSolution:
    """A solver's answer: x, the row multipliers z, its own words, and the certified model made of them.

    ``value`` is the objective at x as the solver left it (x may be slightly infeasible); the figures to
    trust are those of ``model``, which nerm computed from repaired multipliers.

    >>> from nerm.svm import primal_qp
    >>> X, y, v = [[1.0], [2.0], [-1.0], [-2.0]], [1, 1, -1, -1], [1, -1, 1, -1]
    >>> solution = primal_qp(X, y, v, lam=2.0, eta=1.0).solve("clarabel")
    >>> round(solution.value, 4), solution.solver
    (5.25, 'clarabel')
    >>> solution.model.converged, bool(solution.model.relative_gap < 1e-6)
    (True, True)
    """

    x: np.ndarray
    z: np.ndarray
    value: float
    status: str
    solver: str
    model: NeutralSVM | None


@dataclass(frozen=True, eq=False)
class QP:
    """min 1/2 x'Px + q'x + constant, l <= Ax <= u; ``layout`` names the blocks of x, ``rows`` those of A.

    With N variables and M rows, P is (N, N) and A (M, N), both sparse; q is (N,), l and u are (M,).

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
    q: np.ndarray
    A: sp.csc_matrix
    l: np.ndarray
    u: np.ndarray
    constant: float
    layout: dict[str, slice]
    rows: dict[str, slice]
    _recover: Callable[[np.ndarray, np.ndarray, str], NeutralSVM] = field(repr=False)

    def value(self, x: np.ndarray) -> float:
        """Return the objective at x, (N,)."""
        return float(0.5 * x @ (self.P @ x) + self.q @ x + self.constant)

    def violation(self, x: np.ndarray) -> float:
        """Return the largest violation of a constraint at x, (N,); 0 where all hold."""
        Ax = self.A @ x
        return float(max(0.0, (self.l - Ax).max(initial=0.0), (Ax - self.u).max(initial=0.0)))

    def recover(self, x: np.ndarray, z: np.ndarray, status: str = "recovered") -> NeutralSVM:
        """Return the certified neutral SVM behind a point x, (N,), and row multipliers z, (M,)."""
        return self._recover(np.asarray(x, dtype=float), np.asarray(z, dtype=float), status)

    def solve(self, solver: str = "osqp", tol: float = 1e-8, **options: Any) -> QPSolution:
        """Solve with OSQP directly (``"osqp"``) or with any QP solver that cvxpy offers, by its name.

        ``tol`` goes to the solver in its own terms; ``options`` are passed through. Judge the answer by
        ``solution.model.relative_gap``, not by its status.
        """
        tol = as_positive(tol, "tol", "Use a tolerance such as 1e-8")
        if solver.lower() == "osqp":
            x, z, status = _by_osqp(self, tol, options)
        else:
            x, z, status = _by_cvxpy(self, solver.upper(), tol, options)
        usable = bool(np.isfinite(x).all() and np.isfinite(z).all())
        model = self.recover(x, z, status) if usable else None
        value = self.value(x) if usable else float("nan")
        return QPSolution(x, z, value, status, solver.lower(), model)


def _by_osqp(qp: QP, tol: float, options: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, str]:
    import osqp

    settings = {
        "eps_abs": tol,
        "eps_rel": tol,
        "max_iter": 100_000,
        "polishing": True,
        "verbose": False,
        **options,
    }
    problem = osqp.OSQP()
    problem.setup(P=sp.csc_matrix(sp.triu(qp.P)), q=qp.q, A=qp.A, l=qp.l, u=qp.u, **settings)
    answer = problem.solve(raise_error=False)
    if answer.x is None or answer.x[0] is None:
        return np.full(len(qp.q), np.nan), np.full(len(qp.l), np.nan), str(answer.info.status)
    return np.array(answer.x), np.array(answer.y), str(answer.info.status)


def _by_cvxpy(qp: QP, solver: str, tol: float, options: dict[str, Any]) -> tuple[np.ndarray, np.ndarray, str]:
    import cvxpy as cp

    known = cp.installed_solvers()
    if solver not in known:
        raise UnknownNameError("'solver'", solver.lower(), [s.lower() for s in known], "Use an installed solver")
    x = cp.Variable(len(qp.q))
    equal = qp.l == qp.u
    below, above = ~equal & np.isfinite(qp.l), ~equal & np.isfinite(qp.u)
    A = qp.A.tocsr()
    # (rows, constraint, sign that turns cvxpy's nonnegative multiplier into z)
    parts = [
        (equal, A[equal] @ x == qp.l[equal], 1.0),
        (below, A[below] @ x >= qp.l[below], -1.0),
        (above, A[above] @ x <= qp.u[above], 1.0),
    ]
    parts = [part for part in parts if part[0].any()]
    problem = cp.Problem(
        cp.Minimize(0.5 * cp.quad_form(x, cp.psd_wrap(qp.P)) + qp.q @ x),
        [constraint for _, constraint, _ in parts],
    )
    settings = {**dict.fromkeys(_TOLERANCES.get(solver, ()), tol), **options}
    nothing = np.full(len(qp.q), np.nan), np.full(len(qp.l), np.nan)
    try:
        with warnings.catch_warnings():
            # the certified gap of the recovered model says how accurate the answer is
            warnings.filterwarnings("ignore", message=".*[Ss]olution may be inaccurate.*")
            problem.solve(solver=solver, **settings)
    except cp.SolverError as error:
        return *nothing, f"solver error: {error}"
    if x.value is None or any(constraint.dual_value is None for _, constraint, _ in parts):
        return *nothing, str(problem.status)
    z = np.zeros(len(qp.l))
    for mask, constraint, sign in parts:
        z[mask] += sign * np.asarray(constraint.dual_value).ravel()
    return np.asarray(x.value), z, str(problem.status)


def blocks(sizes: dict[str, int]) -> dict[str, slice]:
    """Lay named blocks one after another."""
    ends = np.cumsum(list(sizes.values()))
    return {name: slice(int(end) - size, int(end)) for (name, size), end in zip(sizes.items(), ends, strict=True)}
