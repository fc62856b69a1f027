"""Fit classifiers within a limit on measured neutrality, and prove that the limit holds on new rows.

The proof (`Promise`) uses a hold-out: rows that are not used to fit the k candidates. With probability
1 - delta, the measure of every candidate on new rows is at most its value on the hold-out plus the width of a
bound at level delta / k (`nerm.bounds`). The result is the first candidate, in order of increasing weight of
neutrality, whose bound is within the limit. If there is none, `NoPromiseError` is raised.

The bounds are Hoeffding's. A measure is a mean or a difference of rates P(f > 0 | A), where A is a condition
such as v > 0. The bound needs the hold-out rows in A to be i.i.d. draws given A, independent of the rows
used to fit f. If the rows (x, y, v) are i.i.d. and the hold-out is drawn within strata, this holds,
conditionally on the strata of all rows, if every A lies within one stratum. If a stratum boundary divides A,
the proportions of the strata in the hold-out depend on the rows used to fit f, and the bound does not hold.
The strata are therefore the conditions of the measure: the viewpoint for parity; label and viewpoint for
rates given the label. There are no strata for C_sgn, for several viewpoints, or for rates given the label
with more than two classes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np

from nerm import weights as neutrality_weights
from nerm.bounds import holdout_neutrality_bound, holdout_parity_bound, holdout_ratio_bound
from nerm.errors import InvalidInputError, NoPromiseError, NotNeutralError
from nerm.estimators.design import TrainingRows, as_atom
from nerm.metrics import METRICS, Metric
from nerm.neutralize import Neutralized, Target
from nerm.neutralize.neutralizing import answers, predicted, search_for, target_groups
from nerm.neutralize.search import Search
from nerm.signs import sign
from nerm.splitting import HOLD_OUT, hold_out
from nerm.typing import Bools, Floats, Ints

TIGHTENED = tuple(0.5**k for k in range(1, 5))  # limits of candidates, as fractions of the limit


@dataclass(frozen=True)
class Promise:
    """The statement that the measure on new rows is at most `bound`, with probability `confidence`.

    Attributes
    ----------
    measure, limit, confidence
        The name of the measure, its limit, and the probability that the user set.
    bound, measured : float
        The upper bound on the measure of new rows, at most `limit`, and the measure on the hold-out.
    rows, candidates : int
        The number of rows in the hold-out, and the number of models compared on them.

    """

    measure: str
    limit: float
    confidence: float
    bound: float
    measured: float
    rows: int
    candidates: int

    def __str__(self) -> str:
        return (
            f"with probability {self.confidence:g} the {self.measure} of new rows is at "
            f"{'least' if METRICS[self.measure].best else 'most'} {self.bound:.4f} "
            f"(limit {self.limit:g}; {self.measured:.4f} on {self.rows} rows held out, "
            f"{self.candidates} candidates)"
        )


def target_of(model: Any) -> Target | None:
    """Return the validated target from a classifier's parameters; None if it has no limit."""
    if model.limit is None:
        if model.confidence is not None:
            must = "'confidence' must come with a limit"
            raise InvalidInputError(must, f"{model.confidence!r} and no limit", "Pass limit=")
        return None
    surrogate = model.surrogate
    if not (isinstance(surrogate, str) and surrogate == "auto"):
        surrogate = as_atom(surrogate, "surrogate")
    given = model.limit, model.measure, model.tol, surrogate, model.prefer, model.keep
    return Target(*given, groups=model.groups, confidence=model.confidence, verbose=model.verbose)


def rows_to_learn_from(rows: TrainingRows, target: Target | None) -> Ints:
    """Return the indices of the training rows: all, or with a confidence those not in the hold-out."""
    if target is None or target.confidence is None:
        return np.arange(len(rows.codes))
    learned = np.flatnonzero(~held_out(rows, target.metric))
    if len(np.unique(rows.codes[learned])) < len(np.unique(rows.codes)):
        failed = "Every class must have rows to learn from beside those that are held out"
        raise NoPromiseError(failed, "All rows of one class are held out", [("rows", "use more")])
    return learned


def neutralized(
    model: Any, rows: TrainingRows, classes: Sequence[int], target: Target, learned: Ints
) -> tuple[list[Neutralized], Promise | None]:
    """Search for models within the limit; return one result per binary problem, and the promise.

    Parameters
    ----------
    model, rows
        The classifier, and all rows including the hold-out.
    classes : sequence of int
        The index of the positive class of each binary problem.
    target : Target
        The limit, the measure and the options of the search.
    learned : array of int
        Indices of the rows used for training; the others are the hold-out.

    Returns
    -------
    results : list of Neutralized
        One per binary problem.
    promise : Promise or None
        None if the target has no confidence.
    """
    if not rows.viewpoints:
        must = "'viewpoint' must be given when a limit is"
        raise InvalidInputError(must, "None", "Call fit(X, y, viewpoint=...), or set limit=None")
    if target.metric.is_custom and np.ptp(rows.sample_weight) > 0:
        must = "a measure of one's own must count rows the same"
        do = "Name a measure of nerm.metrics, or leave the weights out"
        raise InvalidInputError(must, "sample weights that differ", do)
    if target.confidence is None:
        return answers(_searches(model, rows, classes, target)), None
    held = rows.at(np.setdiff1d(np.arange(len(rows.codes)), learned), against=learned)
    metric, m = target.metric, len(held.codes)
    if not (metric.is_agreement or metric.best):
        do = "Use 'calders_verwer_score', 'neutrality_risk' or a difference of rates, or leave confidence out"
        raise InvalidInputError("a promise must be about a measure that has a bound", f"{metric.name!r}", do)
    try:  # before the search: is the measure defined on the hold-out?
        statements = len(_bounds(target, held, classes, np.ones((m, len(classes))), 0.5))
    except InvalidInputError as error:
        must, got, _ = error.parts
        advice = [("rows", "use more"), ("confidence", "leave out")]
        raise NoPromiseError(f"Among the rows that are held out {must}", f"Got {got}", advice) from None
    candidates = _tightened(model, rows.at(learned), classes, target)
    # The answer is the first candidate whose bounds on new rows are within the limit.
    delta = (1 - target.confidence) / (len(candidates) * statements)
    bounds = []
    for found in candidates:
        scores = np.column_stack([one.solution.decision_function(held.X) for one in found])
        shown = predicted(scores) if len(classes) > 1 else scores
        bounds.append(_bounds(target, held, classes, shown, delta))
        bound, value = bounds[-1].max(axis=0).tolist()
        if bound <= target.allowance:  # candidates are in order of decreasing limit
            bound, value = abs(metric.best - bound), abs(metric.best - value)
            confidence = float(target.confidence)
            promise = Promise(metric.name, target.limit, confidence, bound, value, m, len(candidates))
            return found, promise
    raise no_promise(target, bounds, m)


def _searches(model: Any, rows: TrainingRows, classes: Sequence[int], target: Target) -> list[Search]:
    """Return one search per binary problem."""
    problem, found = None, []
    for k in classes:
        problem = model._problem(rows, k, problem)
        options = {"first": float(problem.etas.max()) or None, "one_of_several": len(classes) > 1}
        found.append(search_for(problem, target, rows.sample_weight, solver=model.solver, **options))
    return found


def _tightened(
    model: Any, rows: TrainingRows, classes: Sequence[int], target: Target
) -> list[list[Neutralized]]:
    """Return the candidates: models within ever smaller fractions (`TIGHTENED`) of the limit.

    Each candidate is a list with one result, a ranking and a threshold, per binary problem. The list ends at
    the first limit that no model reaches, and equal consecutive candidates appear once. For each class, the
    surrogate chosen at the first limit is used at all limits.
    """
    found: list[list[Neutralized]] = []
    surrogates, best = [target.surrogate] * len(classes), target.metric.best
    for share in TIGHTENED:
        tight = replace(target, limit=best + share * (target.limit - best))
        try:
            new = answers(_searches(model, rows, classes, tight), surrogates)
        except NotNeutralError as error:
            if not found:
                limit = f"{share:g} of the limit {target.limit:g}"
                failed = f"No model within {limit} leaves a margin for new rows"
                raise NoPromiseError(failed, ". ".join(error.parts[:2]), error.advice) from error
            break
        same = [np.array_equal(a.solution.coef, b.solution.coef) and a.threshold == b.threshold
                for a, b in zip(new, found[-1], strict=True)] if found else [False]  # fmt: skip
        found += [] if all(same) else [new]
        surrogates = [one.surrogate for one in new]
    return found


def held_out(rows: TrainingRows, metric: Metric) -> Bools:
    """Return which rows are in the hold-out, (n,) bool.

    The hold-out is stratified by the conditions of the measure (see the docstring of this module).
    """
    if np.ptp(rows.sample_weight) > 0:
        must = "a promise must rest on rows that count the same"
        raise InvalidInputError(must, "sample weights that differ", "Leave them out")
    strata = [np.zeros(len(rows.codes))]
    if len(rows.viewpoints) == 1 and "uniform" not in metric.weights:
        (v,) = rows.viewpoints.values()
        if not metric.needs_y:
            strata = [sign(v)]
        elif len(np.unique(rows.codes)) == 2:  # with more, a one-vs-rest label -1 spans several strata
            strata = [rows.codes, sign(v)]
    return hold_out(strata, HOLD_OUT, 0)


def _bounds(
    target: Target, held: TrainingRows, classes: Sequence[int], scores: Floats, delta: float
) -> Floats:
    """Return bounds on new rows for the parts of a measure, (number of parts, 2).

    The first column is an upper bound on the distance from the best value, which holds with probability
    1 - delta; the second is the distance on the hold-out. There is a part for every class, pair of groups and
    entry of `metric.weights`. `scores` has one column per class; the labels are +1 for the class and -1 for
    the rest.
    """
    ones, found, metric = np.ones(len(held.codes)), [], target.metric
    for k, f in zip(classes, scores.T, strict=True):
        y = np.where(held.codes == k, 1.0, -1.0)
        for groups in target_groups(held.viewpoints, target):
            for one, other in [*combinations(range(len(groups.names)), 2)] or [(0, 0)]:
                v = np.where(groups.codes == other, 1.0, -1.0)
                pair = ones * ((groups.codes == one) | (groups.codes == other))
                for weights in metric.weights:
                    among = pair * neutrality_weights.resolve(weights, y, v, pair) > 0
                    bound = holdout_neutrality_bound if weights == "uniform" else holdout_parity_bound
                    if metric.best:
                        bound = holdout_ratio_bound
                    given = y[among], f[among], v[among], ones[among]
                    value = abs(replace(metric, weights=(weights,)).parts(*given)[0])
                    found.append((bound(f[among], v[among], delta=delta), value))
    return np.array(found)


def no_promise(target: Target, bounds: Sequence[Floats], rows: int) -> NoPromiseError:
    """Return the error with the closest candidate and the number of rows that would suffice.

    A bound is value + width. With t times as many rows, each width is divided by sqrt(t), so the limit is met
    for t = max ((width / (limit - value))^2) over the parts. `bounds` has one (number of parts, 2) array per
    candidate, with columns (bound, value); `rows` is the number of rows in the hold-out.
    """
    limit = target.allowance
    bound, value = min(found.max(axis=0).tolist() for found in bounds)
    advice = [("limit", "raise"), ("rows", "use many more")]
    within = [found for found in bounds if (found[:, 1] < limit).all()]
    if within:
        times = min(float(((b[:, 0] - b[:, 1]) / (limit - b[:, 1])).max()) ** 2 for b in within)
        more = int(np.ceil(rows * (times - 1) / HOLD_OUT))
        advice = [("rows", f"use about {more} more")]
    condition = target.metric.condition(target.limit)
    failed = f"No model has {condition} on new rows with probability {target.confidence:g}"
    best = f"The best of {len(bounds)} has a bound of {bound:.4f} ({value:.4f} on {rows} rows held out)"
    return NoPromiseError(failed, best, advice)
