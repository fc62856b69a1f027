"""Tune the weights lam and eta on validation rows by their gradient, from `Solution.sensitivity`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

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
    """Minimize a validation objective over the weights lam and eta by a quasi-Newton method.

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
        raise InvalidInputError(must, f"{problem!r} and {validation!r}", "Bind two such objectives")
    lam, eta = sum(weight for weight, _ in problem.regularizers), float(problem.etas.sum())
    if not lam > 0:
        raise InvalidInputError("the search must start at a positive lam", f"{lam:g}", "Pass a larger one")
    names = ["lam", "eta"][: 1 + (eta > 0)]
    start = np.log([lam, eta][: len(names)])
    pool, found, rows = SolverPool(), list[tuple[float, Solution]](), list[dict[str, float]]()

    def at(logs: Floats) -> tuple[float, Floats]:
        """Return V and its derivative by the logarithms of the weights."""
        weights = dict(zip(names, map(float, np.exp(logs)), strict=True))
        here = problem.with_regularization(weights["lam"])
        solution = pool.solve(here.with_neutrality(weights["eta"]) if eta else here, tol)
        value = validation.evaluate(solution.coef, solution.intercept)
        found.append((value.total, solution))
        rows.append(weights | {"value": value.total})
        thetas = [float(t.plus >= t.minus) for t in value.terms if t.plus is not None and t.minus is not None]
        scores = validation.hypothesis.scores(solution.coef, solution.intercept)
        c = weighted_duals(validation, multipliers_at(validation.blocks, scores), np.array(thetas))
        dw, db = -validation.hypothesis.adjoint(c) / validation.divisor, -c.sum() / validation.divisor
        slopes = [(solution.sensitivity(name), weights[name]) for name in names]
        return value.total, np.array([by * (dw @ one.coef + db * float(one.intercept)) for one, by in slopes])

    reason = _descend(at, start, solves)
    import pandas as pd

    value, solution = min(found, key=lambda one: one[0])
    return Tuned(solution, value, pd.DataFrame(rows), reason)


def _descend(at: Callable[[Floats], tuple[float, Floats]], x: Floats, most: int) -> str:
    """Minimize by BFGS steps within a trust region; return why it ended.

    `at` returns value and gradient. A point without a gradient, where `at` raises Degenerate, is treated as
    too far.
    """
    try:
        value, slope = at(x)
    except Degenerate as none:
        return f"the start has no derivative: {none}"
    radius, H = 1.0, np.eye(len(x)) * float(np.linalg.norm(slope))
    for _ in range(most - 1):
        step = -np.linalg.solve(H + 1e-12 * np.eye(len(x)), slope)
        step *= min(1.0, radius / max(float(np.linalg.norm(step)), 1e-300))
        length = float(np.linalg.norm(step))
        if -slope @ step <= 1e-8 * abs(value) or length < 1e-6:
            return "converged"
        try:
            new, slope_there = at(x + step)
        except Degenerate:
            radius = length / 4
            continue
        change, along = slope_there - slope, H @ step
        if change @ step > 0:
            H = H + np.outer(change, change) / (change @ step) - np.outer(along, along) / (step @ along)
        if new < value:
            radius = 2 * radius if length > 0.9 * radius else radius
            x, value, slope = x + step, new, slope_there
        else:
            radius = length / 4
    return f"{most} solves"
