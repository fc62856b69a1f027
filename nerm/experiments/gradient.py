"""Tune the weights lam and eta on validation rows by their gradient, from `Solution.sensitivity`."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.optimize import minimize

from nerm.certify.multipliers import multipliers_at
from nerm.certify.solution import Solution
from nerm.errors import Degenerate, InvalidInputError
from nerm.model.blocks import weighted_duals
from nerm.model.problem import Problem
from nerm.solvers.registry import SolverPool
from nerm.typing import Floats


@dataclass(frozen=True, eq=False)
class Tuned:
    """The best weights that `tune` found.

    Attributes
    ----------
    solution : Solution
        The solution with these weights.
    value : float
        The validation objective at this solution.
    trace : DataFrame
        One row per solve: lam, eta, value.
    reason : str
        Why the search ended.

    Examples
    --------
    >>> import nerm
    >>> from nerm.experiments import tune
    >>> X, y = [[1.0], [-1.0], [0.5], [-2.0]], [1, -1, -1, -1]
    >>> logistic = nerm.Risk(nerm.Logistic())
    >>> found = tune((logistic + 0.1 * nerm.SquaredL2()).on(X, y), (1.0 * logistic).on(X, y), solves=3)
    >>> found.value == min(found.trace.value), len(found.trace) <= 3
    (True, True)
    """

    solution: Solution
    value: float
    trace: Any = field(repr=False)
    reason: str


def tune(problem: Problem, validation: Problem, *, solves: int = 20, tol: float = 1e-9) -> Tuned:
    """Minimize a validation objective over the weights lam and eta by scipy's quasi-Newton method SLSQP.

    The variables are log lam and log eta. By the chain rule, the derivative of the validation objective V is
    dV/dw . dw/dlam + dV/db db/dlam. V need not be convex in the weights, so the result is a local minimum.

    Parameters
    ----------
    problem : Problem
        The training problem; its weights are the start. A weight eta of 0 stays 0.
    validation : Problem
        The objective V on validation rows, with the columns of `problem`: risks and neutrality terms, with
        weights that say how much each of them counts.
    solves : int
        The largest number of solves.
    tol : float
        The relative gap of each solve.

    Returns
    -------
    Tuned
        The best solution; the search ends before `solves` if it converges.

    >>> import numpy as np, nerm
    >>> from nerm.experiments import tune
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 8)); y = np.sign(X[:, 0] + 2 * rng.normal(size=200))
    >>> risk = nerm.Risk(nerm.Logistic())
    >>> start = (risk + 1e-3 * nerm.SquaredL2()).on(X[:100], y[:100])
    >>> found = tune(start, (1.0 * risk).on(X[100:], y[100:]))
    >>> len(found.trace) <= 20, bool(found.value < found.trace.value[0] - 0.01)
    (True, True)
    """
    same = problem.hypothesis.size == validation.hypothesis.size
    if problem.is_kernel or validation.is_kernel or not same or validation.regularizers:
        must = "'problem' and 'validation' must be linear with the same columns, the second unregularised"
        raise InvalidInputError(must, f"{problem!r} and {validation!r}", "Bind both objectives like this")
    lam, eta = sum(weight for weight, _ in problem.regularizers), float(problem.etas.sum())
    if not lam > 0:
        raise InvalidInputError("the search must start at a positive lam", f"{lam:g}", "Pass a larger lam")
    names = ["lam", "eta"][: 1 + (eta > 0)]
    start = np.log([lam, eta][: len(names)])
    pool, found, rows, scale = SolverPool(), list[Solution](), list[dict[str, float]](), list[float]()

    def at(logs: Floats) -> tuple[float, Floats]:
        """Return V and its derivative by the logarithms of the weights, scaled by the first derivative.

        Without a derivative V counts as infinite, so that the next step is shorter.
        """
        if len(rows) == solves:
            raise StopIteration
        weights = dict(zip(names, map(float, np.exp(logs)), strict=True))
        here = problem.with_regularization(weights["lam"])
        solution = pool.solve(here.with_neutrality(weights["eta"]) if eta else here, tol)
        value = validation.evaluate(solution.coef, solution.intercept)
        found.append(solution)
        rows.append(weights | {"value": value.total})
        thetas = [float(t.plus >= t.minus) for t in value.terms if t.plus is not None and t.minus is not None]
        scores = validation.hypothesis.scores(solution.coef, solution.intercept)
        c = weighted_duals(validation, multipliers_at(validation.blocks, scores), np.array(thetas))
        dw, db = -validation.hypothesis.adjoint(c) / validation.divisor, -c.sum() / validation.divisor
        try:
            slopes = [(solution.sensitivity(name), weights[name]) for name in names]
        except Degenerate:
            return np.inf, np.zeros(len(names))
        slope = np.array([by * (dw @ one.coef + db * float(one.intercept)) for one, by in slopes])
        scale.append(max(float(np.linalg.norm(slope)), np.finfo(float).tiny))
        return value.total / scale[0], slope / scale[0]

    try:
        bounds = [(log - 20.0, log + 20.0) for log in start]
        reason = str(minimize(at, start, jac=True, bounds=bounds, method="SLSQP").message)
    except StopIteration:
        reason = f"{solves} solves"
    import pandas as pd

    trace = pd.DataFrame(rows)
    best = int(trace["value"].argmin())
    return Tuned(found[best], rows[best]["value"], trace, reason if scale else "no derivative at the start")
