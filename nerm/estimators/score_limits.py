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
from nerm.metrics import SCORE_METRICS, quantile_codes
from nerm.model.blocks import limit_values
from nerm.model.expressions import Neutrality, Objective, Risk
from nerm.model.problem import Problem
from nerm.solvers.registry import SolverPool
from nerm.typing import Floats, Ints
from nerm.validation import as_nonnegative


def asked_of(model: Any) -> bool:
    """Return whether a model has a limit on a measure of scores; raise an error if it cannot have one."""
    found = model.limit is not None and isinstance(model.measure, str) and model.measure in SCORE_METRICS
    if found and (model.confidence is not None or isinstance(model.limit, Mapping)):
        must = f"a limit on {model.measure} must be one number without a promise, in a classifier"
        got = f"limit={model.limit!r}, confidence={model.confidence!r}"
        raise InvalidInputError(must, got, "Leave confidence out, or limit a measure of decisions")
    return found


def of_classifier(model: Any, rows: TrainingRows, pool: SolverPool) -> Solution:
    """Return the certified optimum of a classifier of two classes within the limit on its scores."""
    if len(model.classes_) > 2 or not rows.viewpoints:
        must = f"a limit on {model.measure} needs two classes and a viewpoint"
        got = f"{len(model.classes_)} classes and {len(rows.viewpoints)} viewpoints"
        raise InvalidInputError(must, got, "Pass viewpoint=..., and one class against the rest")
    views = {name: centred(v, rows.sample_weight) for name, v in rows.viewpoints.items()}
    binary = replace(rows, codes=np.where(rows.codes == 1, 1.0, -1.0), viewpoints=views)
    return within(model, binary, as_nonnegative(model.limit, "limit"), pool)


def groups_of(model: Any, rows: TrainingRows) -> list[Ints]:
    """Return the group of each row, one array per viewpoint."""
    by_name: dict[str, list[Floats]] = {}
    for name, v in rows.viewpoints.items():
        by_name.setdefault(name.partition("=")[0], []).append(v)
    found = []
    for name, terms in by_name.items():
        if len(terms) > 1:
            found.append(np.argmax(np.stack(terms), axis=0))
        elif len(np.unique(terms[0])) <= 2 and model.quantiles is None:
            found.append((terms[0] > 0).astype(int))
        elif model.quantiles is not None:
            found.append(quantile_codes(terms[0], model.quantiles, rows.sample_weight))
        else:
            must = f"a limit on {model.measure} of the real-valued viewpoint {name!r} needs groups"
            raise InvalidInputError(must, "none", "Pass quantiles=4, or use measure='correlation'")
    return found


def measured(model: Any, rows: TrainingRows, scores: Floats) -> float:
    """Return the measure of scores with its sign, of the viewpoint where it is largest in size."""
    views: Any = rows.viewpoints.values() if model.measure == "correlation" else groups_of(model, rows)
    values = [SCORE_METRICS[model.measure](scores, v, rows.sample_weight) for v in views]
    return float(max(values, key=abs))


def limited(model: Any, rows: TrainingRows, bound: float) -> Problem:
    """Return the problem with convex limits: on the covariance, or on all differences of group means."""
    s, views, weights = rows.sample_weight, dict[str, Floats](), dict[str, Floats]()
    if model.measure == "correlation":
        views = {name: v - np.average(v, weights=s) for name, v in rows.viewpoints.items()}
        weights = dict.fromkeys(views, s)
    else:
        named = dict.fromkeys(name.partition("=")[0] for name in rows.viewpoints)
        for view, codes in zip(named, groups_of(model, rows), strict=True):
            words = [name.partition("=")[2] for name in rows.viewpoints if name.startswith(f"{view}=")]
            for one, other in combinations(range(int(codes.max()) + 1), 2):
                low, high = (words[code] if words else code + 1 for code in (one, other))
                name = view if codes.max() == 1 else f"{view}[{high}, {low}]"
                views[name] = np.where(codes == other, 1.0, np.where(codes == one, -1.0, 0.0))
                sizes = np.bincount(codes, s)
                weights[name] = np.where(views[name] != 0, s * s.sum() / sizes[codes], 0.0)
    loss, regularizer, _, lam = model._atoms()
    objective = Risk(loss) + lam / model._scale * regularizer
    terms = [Neutrality(Identity(), to=name, weights=weights[name]) for name in views]
    objective = objective.subject_to(*(term <= bound for term in terms))
    return model._bind(objective, rows, rows.codes, viewpoints.Viewpoints(views))


def within(model: Any, rows: TrainingRows, limit: float, pool: SolverPool) -> Solution:
    """Return the certified optimum within a limit on the measure of the training rows."""
    trace = list[dict[str, Any]]()

    def solved(bound: float) -> tuple[Solution, float]:
        solution = pool.solve(limited(model, rows, bound), model.tol)
        value = measured(model, rows, solution.training_scores())
        gap = solution.certificate.relative_gap
        trace.append({"bound": bound, model.measure: value, "status": str(solution.status), "gap": gap})
        return solution, value

    if model.measure == "mean_difference":
        solution, value = solved(limit * (1 - 1e-9))
    else:
        solution, value = _searched(model, rows, limit, solved)
    model.trace_, model.neutrality_ = pd.DataFrame(trace), value
    if abs(value) > limit + 1e-9 * (1 + limit):
        failed = f"No model reaches |{model.measure}| <= {limit:g} on the training rows"
        given = "the covariance" if model.measure == "correlation" else "the differences of the group means"
        least = f"The closest has {abs(value):.4f}, with {given} limited to {trace[-1]['bound']:.2g}"
        raise NotNeutralError(failed, least, [("limit", "raise"), ("kernel", "change")])
    return solution


def _searched(
    model: Any, rows: TrainingRows, limit: float, solved: Callable[[float], tuple[Solution, float]]
) -> tuple[Solution, float]:
    """Bisect for a large convex limit whose solution is within the limit on the measure."""
    problem = limited(model, rows, 0.0)
    plain = replace(problem, objective=Objective(problem.objective.terms), blocks=problem.blocks[:1])
    scores = SolverPool(model.solver, model.verbose).solve(plain, model.tol).training_scores()
    high = float(limit_values(problem, scores).max())
    low = 1e-6 * high  # at 0 a hypothesis would exceed the limit by rounding
    best, value = solved(high)
    if abs(value) <= limit:
        return best, value
    best, value = solved(low)
    if abs(value) > limit:
        return best, value
    while abs(value) < 0.95 * limit and high > 1.01 * low:
        middle = 0.5 * (low + high)
        found, reached = solved(middle)
        if abs(reached) <= limit:
            best, value, low = found, reached, middle
        else:
            high = middle
    return best, value


def centred(v: Floats, s: Floats) -> Floats:
    """Return a real-valued viewpoint minus its weighted mean; two groups stay -1 and +1."""
    return v if len(np.unique(v)) <= 2 else v - np.average(v, weights=s)
