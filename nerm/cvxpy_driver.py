"""How solvers are driven through cvxpy: one notion of accuracy in each one's own words, and how they fail."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from nerm.errors import InvalidInputError


def _same(*names: str, **limits: Any) -> Callable[[float], dict[str, Any]]:
    """Return options that give the accuracy to every name."""
    return lambda eps: {**dict.fromkeys(names, eps), **limits}


def _highs(eps: float) -> dict[str, Any]:
    names = "primal_feasibility_tolerance", "dual_feasibility_tolerance"
    # its active-set method for QPs can cycle for ever on degenerate problems
    return {"highs_options": {**dict.fromkeys(names, max(eps, 1e-10)), "qp_iteration_limit": 20_000}}


#: The options of each solver for an accuracy eps.
OPTIONS: dict[str, Callable[[float], dict[str, Any]]] = {
    "clarabel": _same("tol_gap_abs", "tol_gap_rel", "tol_feas", max_iter=500),
    "ecos": _same("abstol", "reltol", "feastol", max_iters=500),
    "scs": _same("eps_abs", "eps_rel", max_iters=50_000),
    "osqp": _same("eps_abs", "eps_rel", max_iter=50_000, polishing=True),
    "highs": _highs,
    "piqp": _same("eps_abs", "eps_rel", "eps_duality_gap_abs", "eps_duality_gap_rel", max_iter=500),
    "daqp": _same("primal_tol", "dual_tol"),
    "qpalm": _same("eps_abs", "eps_rel", max_iter=50_000),
    "proxqp": _same("eps_abs", "eps_rel", max_iter=50_000),
    "qoco": _same("abstol", "reltol", max_iters=500),
}


def run(problem: Any, solver: str, accuracy: float, options: dict[str, Any]) -> str:
    """Solve a cvxpy problem to about this accuracy and return the solver's claim; "error: ..." where it failed.

    Parameters
    ----------
    problem : cvxpy.Problem
        With every parameter set.
    solver : str
        In lower case. One that is not in OPTIONS runs at its own accuracy.
    accuracy : float
        In the solver's own terms, by OPTIONS.
    options : dict
        The solver's own; one that it does not know is refused.

    Returns
    -------
    str
        The solver's own word.

    """
    import cvxpy as cp

    settings = {**OPTIONS.get(solver, _same())(accuracy), **options}
    with warnings.catch_warnings():
        # cvxpy's doubts about accuracy: the certificate gives the verdict, the claim is kept.
        warnings.filterwarnings("ignore", message=".*[Ss]olution may be inaccurate.*")
        warnings.filterwarnings("ignore", message=".*Converting .* to a CSC.*")
        try:
            problem.solve(solver=solver.upper(), **settings)
        except cp.error.SolverError as error:
            if options and "nrecognized" in str(error):
                raise _bad_options(solver, options, error) from error
            return f"error: {error}"
        except (TypeError, AttributeError, KeyError, ValueError) as error:
            # This is how the interfaces of cvxpy report an option that the solver does not know.
            if not options:
                raise
            raise _bad_options(solver, options, error) from error
    return str(problem.status)


def _bad_options(name: str, options: dict[str, Any], error: Exception) -> InvalidInputError:
    return InvalidInputError(
        f"every option must be one of {name}'s own", f"{sorted(options)} ({error})", "See that solver's settings"
    )
