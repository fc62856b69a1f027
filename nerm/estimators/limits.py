"""Classifiers within a limit on measured neutrality, and the promise that it will hold on new rows.

A hold-out of m rows that no candidate has seen compares k candidates: with probability 1 - delta all of them
have a measure within its value there plus the width of a bound at delta / k (`nerm.bounds`). The best
candidate whose bound is within the limit is the answer; if there is none, there is no model.

The bounds are Hoeffding's. A measure is a mean or a difference of rates P(f > 0 given A), and the rows of A
that are held out must be i.i.d. draws given A, independent of the rows that are learned from. With i.i.d.
rows (x, y, v) and a hold-out that is drawn within strata this is so, given the strata of all rows, where
every A lies within one stratum. Strata that cut A give the hold-out the shares that the learning rows have,
by which f was chosen, and the rows of A are not those of the population: then nothing is proved. So the
strata are the conditions of the measure: the viewpoint for parity, label and viewpoint for rates among the
labels, nothing for C_sgn, and nothing where several overlap.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm import weights as neutrality_weights
from nerm.bounds import holdout_neutrality_bound, holdout_parity_bound
from nerm.errors import InvalidInputError, NoPromiseError, NotNeutralError
from nerm.estimators.design import as_atom
from nerm.metrics import Metric
from nerm.neutralize import Neutralized, Target
from nerm.neutralize.neutralizing import answers, predicted, search_for
from nerm.neutralize.search import Search
from nerm.signs import sign
from nerm.splitting import HOLD_OUT, hold_out
from nerm.typing import Bools, Floats, Ints

if TYPE_CHECKING:
    from nerm.estimators.design import Design, TrainingRows

TIGHTENED = (0.75, 0.5, 0.25, 0.1)  # the limits of the candidates for a promise, as shares of the target's


@dataclass(frozen=True)
class Promise:
    """The statement about new rows: with this confidence the measure is at most `bound`, within the limit.

    Attributes
    ----------
    measure, limit, confidence
        The target.
    bound, measured : float
        The bound on the measure of new rows, and its value on the hold-out.
    rows, candidates : int
        Rows that were held out, and models that were compared on them.

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
            f"with probability {self.confidence:g} the {self.measure} of new rows is at most "
            f"{self.bound:.4f} (limit {self.limit:g}; {self.measured:.4f} on {self.rows} rows held out, "
            f"{self.candidates} candidates)"
        )


def target_of(model: Any) -> Target | None:
    """Return the target of a classifier's parameters, checked; None without a limit."""
    if model.limit is None:
        if model.confidence is not None:
            must = "'confidence' must come with a limit"
            raise InvalidInputError(must, f"{model.confidence!r} and no limit", "Pass limit=")
        return None
    surrogate = getattr(model, "surrogate", "auto")
    if not (isinstance(surrogate, str) and surrogate == "auto"):
        surrogate = as_atom(surrogate, "surrogate")
    given = model.limit, model.measure, model.tol, surrogate, model.prefer, model.keep
    return Target(*given, confidence=model.confidence)


def rows_to_learn_from(rows: TrainingRows, target: Target | None) -> Ints:
    """Return the rows to learn from: all or, for a promise, those that are not held out."""
    if target is None or target.confidence is None:
        return np.arange(len(rows.codes))
    learned = np.flatnonzero(~held_out(rows, target.metric))
    if len(np.unique(rows.codes[learned])) < len(np.unique(rows.codes)):
        failed = "Every class must have rows to learn from beside those that are held out"
        raise NoPromiseError(failed, "All rows of one class are held out", [("rows", "use more")])
    return learned


def neutralized(
    design: Design, rows: TrainingRows, classes: Sequence[int], target: Target, learned: Ints
) -> tuple[list[Neutralized], Promise | None]:
    """Return one result per class and, with confidence, the promise, of the rows to learn from."""
    if not rows.viewpoints:
        must = "'viewpoint' must be given when a limit is"
        raise InvalidInputError(must, "None", "Call fit(X, y, viewpoint=...), or set limit=None")
    if target.metric.is_custom and np.ptp(rows.sample_weight) > 0:
        must = "a measure of one's own must count rows the same"
        do = "Name a measure of nerm.metrics, or leave the weights out"
        raise InvalidInputError(must, "sample weights that differ", do)
    if target.confidence is None:
        return answers(_searches(design, rows, classes, target)), None
    pairwise = design.kernel is not None and design.kernel.name == "precomputed"
    apart = np.setdiff1d(np.arange(len(rows.codes)), learned)
    held, X = rows.at(apart, pairwise), rows.X[apart][:, learned] if pairwise else rows.X[apart]
    _check_bounded(target.metric, held, classes)
    candidates = _tightened(_searches(design, rows.at(learned, pairwise), classes, target), target)
    # The answer is the first candidate whose bounds on new rows are within the limit.
    metric, m = target.metric, len(held.codes)
    statements = len(candidates) * len(classes) * len(held.viewpoints) * len(metric.weights)
    delta = (1 - target.confidence) / statements
    bounds = []
    for found in candidates:
        scores = np.column_stack([one.solution.decision_function(X) for one in found])
        shown = predicted(scores) if len(classes) > 1 else scores
        pairs = [_bounds(metric, y, f, v, delta) for y, f, v in _decisions(held, classes, shown)]
        bounds.append(np.concatenate(pairs))
        bound, value = bounds[-1].max(axis=0).tolist()
        if bound <= target.limit:  # the first has the least weight of neutrality
            confidence = float(target.confidence)
            promise = Promise(metric.name, target.limit, confidence, bound, value, m, len(candidates))
            return found, promise
    raise no_promise(target, bounds, m)


def _decisions(
    rows: TrainingRows, classes: Sequence[int], scores: Floats
) -> Iterator[tuple[Floats, Floats, Floats]]:
    """Yield labels, scores and viewpoint of every class and viewpoint."""
    for k, f in zip(classes, scores.T, strict=True):
        for v in rows.viewpoints.values():
            yield np.where(rows.codes == k, 1.0, -1.0), f, v


def _searches(design: Design, rows: TrainingRows, classes: Sequence[int], target: Target) -> list[Search]:
    """Return the search of every class."""
    problem, found = None, []
    options = {"first": max(design.eta.values()) or None, "one_of_several": len(classes) > 1}
    for k in classes:
        problem = design.problem(rows, k, like=problem)
        found.append(search_for(problem, target, rows.sample_weight, solver=design.solver, **options))
    return found


def _tightened(searches: Sequence[Search], target: Target) -> list[list[Neutralized]]:
    """Return the candidates, from the loosest limit to the tightest that is reached, none of them twice.

    One surrogate serves a class at all limits, and the solves for one limit bracket the next.
    """
    found: list[list[Neutralized]] = []
    surrogates = [target.surrogate] * len(searches)
    for share in TIGHTENED:
        for search in searches:
            search.target = replace(target, limit=share * target.limit)
        try:
            new = answers(searches, surrogates)
        except NotNeutralError as error:
            if not found:
                limit = f"{share:g} of the limit {target.limit:g}"
                failed = f"No model within {limit} leaves a margin for new rows"
                raise NoPromiseError(failed, ". ".join(error.parts[:2]), error.advice) from error
            break
        if not found or [one.solution for one in new] != [old.solution for old in found[-1]]:
            found.append(new)
        surrogates = [one.surrogate for one in new]
    return found


def held_out(rows: TrainingRows, metric: Metric) -> Bools:
    """Return the rows of the hold-out, stratified by the conditions of the measure (see above)."""
    if np.ptp(rows.sample_weight) > 0:
        must = "a promise must rest on rows that count the same"
        raise InvalidInputError(must, "sample weights that differ", "Leave them out")
    strata = [np.zeros(len(rows.codes))]
    if len(rows.viewpoints) == 1 and "uniform" not in metric.weights:
        (v,) = rows.viewpoints.values()
        if not metric.needs_y:
            strata = [sign(v)]
        elif len(np.unique(rows.codes)) == 2:  # of more labels, "not this one" is several
            strata = [rows.codes, sign(v)]
    return hold_out(strata, HOLD_OUT, 0)


def _check_bounded(metric: Metric, held: TrainingRows, classes: Sequence[int]) -> None:
    """Refuse a measure that has no bound, and a hold-out on which it is not defined."""
    if not metric.is_agreement:
        do = "Use 'calders_verwer_score', 'neutrality_risk' or a difference of rates, or leave confidence out"
        raise InvalidInputError("a promise must be about a measure that has a bound", f"{metric.name!r}", do)
    try:
        for y, f, v in _decisions(held, classes, np.ones((len(held.codes), len(classes)))):
            metric.parts(y, f, v, np.ones(len(y)))
    except InvalidInputError as error:
        must, got, _ = error.parts
        advice = [("rows", "use more"), ("confidence", "leave out")]
        raise NoPromiseError(f"Among the rows that are held out {must}", f"Got {got}", advice) from None


def _bounds(metric: Metric, y: Floats, scores: Floats, v: Floats, delta: float) -> Floats:
    """Return for each part a bound on new rows at confidence 1 - delta, and its size on these."""
    ones, found = np.ones(len(y)), []
    for weights, value in zip(metric.weights, metric.parts(y, scores, v, ones), strict=True):
        among = neutrality_weights.resolve(weights, y, v, ones) > 0
        bound = holdout_neutrality_bound if weights == "uniform" else holdout_parity_bound
        found.append((bound(scores[among], v[among], delta=delta), abs(value)))
    return np.array(found)


def no_promise(target: Target, bounds: Sequence[Floats], rows: int) -> NoPromiseError:
    """Return the error: the closest candidate, and how many rows would have sufficed.

    A bound is value + width, and t times the rows divide each width by sqrt(t): t = max ((width / (limit -
    value))^2). `bounds` has (bound, value) of each part, for each candidate.
    """
    limit = target.limit
    bound, value = min(found.max(axis=0).tolist() for found in bounds)
    advice = [("limit", "raise"), ("rows", "use many more")]
    within = [found for found in bounds if (found[:, 1] < limit).all()]
    if within:
        times = min(float(((b[:, 0] - b[:, 1]) / (limit - b[:, 1])).max()) ** 2 for b in within)
        more = int(np.ceil(rows * (times - 1) / HOLD_OUT))
        advice = [("rows", f"use about {more} more")]
    name = target.metric.name
    failed = f"No model has |{name}| <= {limit:g} on new rows with probability {target.confidence:g}"
    best = f"The best of {len(bounds)} has a bound of {bound:.4f} ({value:.4f} on {rows} rows held out)"
    return NoPromiseError(failed, best, advice)
