"""Limits on measures of the scores themselves: differences of means, correlation, and KS distance.

The first is a convex constraint; for the others a search tightens a convex constraint until the measure is
within the limit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np
import pandas as pd

from nerm import viewpoint as viewpoints
from nerm.atoms.losses import Identity
from nerm.certify.solution import Solution
from nerm.errors import InvalidInputError, NotNeutralError
from nerm.estimators.design import TrainingRows
from nerm.metrics import SCORE_METRICS
from nerm.model.blocks import limit_values
from nerm.model.expressions import Neutrality, Objective, Risk
from nerm.model.problem import Problem, with_terms
from nerm.solvers.registry import SolverPool
from nerm.typing import Floats, Ints
from nerm.validation import as_nonnegative


def of_classifier(model: Any, rows: TrainingRows, pool: SolverPool) -> Solution:
    """Return the certified optimum of a classifier of two classes within the limit on its scores."""
    if model.confidence is not None or isinstance(model.limit, Mapping):
        must = f"a limit on {model.measure} must be one number, with confidence=None, in a classifier"
        got = f"limit={model.limit!r}, confidence={model.confidence!r}"
        raise InvalidInputError(must, got, "Leave confidence out, or limit a measure of decisions")
    if len(model.classes_) > 2 or not rows.viewpoints:
        must = f"a limit on {model.measure} needs two classes and a viewpoint"
        got = f"{len(model.classes_)} classes and {len(rows.viewpoints)} viewpoints"
        do = "Fit one class against the rest" if rows.viewpoints else "Pass viewpoint=... to fit()"
        raise InvalidInputError(must, got, do)
    return within(model, replace(rows, codes=2.0 * rows.codes - 1.0), pool)


def groups_of(model: Any, rows: TrainingRows) -> dict[str, Ints]:
    """Return the group of each row, (n,), for each viewpoint by its name."""
    by_name: dict[str, list[Floats]] = {}
    for term, v in rows.viewpoints.items():
        by_name.setdefault(term.partition("=")[0], []).append(v)
    for name, terms in by_name.items():
        if len(terms) == 1 and len(np.unique(terms[0])) > 2:
            must = f"a limit on {model.measure} of the real-valued viewpoint {name!r} needs groups"
            raise InvalidInputError(must, "none", "Pass quantiles=4, or use measure='correlation'")
        if len(terms) == 1:  # two groups; the term is +1 in the second
            terms.insert(0, -terms[0])
    return {name: np.argmax(terms, axis=0) for name, terms in by_name.items()}


def measured(model: Any, rows: TrainingRows, scores: Floats) -> float:
    """Return the measure of scores with its sign, of the viewpoint where it is largest in size."""
    views: Any = rows.viewpoints if model.measure == "correlation" else groups_of(model, rows)
    values = [SCORE_METRICS[model.measure](scores, v, rows.sample_weight) for v in views.values()]
    return float(max(values, key=abs))


def limited(model: Any, rows: TrainingRows) -> Problem:
    """Return the problem with convex limits of 0: on the covariance, or on all differences of group means."""
    s, views, weights = rows.sample_weight, dict[str, Floats](), dict[str, Floats]()
    if model.measure == "correlation":
        views = {name: v - np.average(v, weights=s) for name, v in rows.viewpoints.items()}
        weights = dict.fromkeys(views, s)
    else:
        for view, codes in groups_of(model, rows).items():
            names = [term.partition("=")[2] for term in rows.viewpoints if term.startswith(f"{view}=")]
            sizes = np.bincount(codes, s)
            for one, other in combinations(range(len(sizes)), 2):
                name = f"{view}[{names[other]}, {names[one]}]" if names else view
                views[name] = np.where(codes == other, 1.0, np.where(codes == one, -1.0, 0.0))
                weights[name] = np.where(views[name] != 0, s * s.sum() / sizes[codes], 0.0)
    loss, regularizer, _, lam = model._atoms()
    objective = Risk(loss) + lam / model._scale * regularizer
    terms = [Neutrality(Identity(), to=name, weights=weights[name]) for name in views]
    objective = objective.subject_to(*(term <= 0.0 for term in terms))
    return model._bind(objective, rows, rows.codes, viewpoints.Viewpoints(views))


def within(model: Any, rows: TrainingRows, pool: SolverPool, share: float = 1.0) -> Solution:
    """Return the certified optimum within a share of the limit on the measure of the training rows."""
    limit, trace = share * as_nonnegative(model.limit, "limit"), list[dict[str, Any]]()

    problem = limited(model, rows)

    def solved(bound: float) -> tuple[Solution, float]:
        limits = tuple(replace(one, bound=bound) for one in problem.limits)
        objective = replace(problem.objective, constraints=limits)
        solution = pool.solve(with_terms(problem, objective), model.tol)
        value = measured(model, rows, solution.training_scores())
        gap = solution.certificate.relative_gap
        trace.append({"bound": bound, model.measure: value, "status": str(solution.status), "gap": gap})
        return solution, value

    if model.measure == "mean_difference":
        solution, value = solved(limit * (1 - 1e-9))
    else:
        solution, value = _searched(model, problem, limit, solved)
    model.trace_, model.neutrality_ = pd.DataFrame(trace), value
    if abs(value) > limit + 1e-9 * (1 + limit):
        failed = f"No model satisfies |{model.measure}| <= {limit:g} on the training rows"
        given = "the covariance" if model.measure == "correlation" else "the differences of the group means"
        least = f"The closest has {abs(value):.4f}, with {given} limited to {trace[-1]['bound']:.2g}"
        raise NotNeutralError(failed, least, [("limit", "raise"), ("kernel", "change")])
    return solution


def _searched(
    model: Any, problem: Problem, limit: float, solved: Callable[[float], tuple[Solution, float]]
) -> tuple[Solution, float]:
    """Bisect for the largest convex limit whose solution is within the limit on the measure."""
    plain = with_terms(problem, Objective(problem.objective.terms))
    scores = SolverPool(model.solver, model.verbose).solve(plain, model.tol).training_scores()
    high = float(limit_values(problem, scores).max())
    low = 1e-6 * high  # at 0 a hypothesis would exceed the limit by rounding
    best, value = solved(high)
    if abs(value) <= limit:
        return best, value
    best, value = solved(low)
    while abs(value) < 0.95 * limit and high > 1.01 * low:
        middle = 0.5 * (low + high)
        found, reached = solved(middle)
        if abs(reached) <= limit:
            best, value, low = found, reached, middle
        else:
            high = middle
    return best, value
