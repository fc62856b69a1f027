"""Classifiers within a limit of measured neutrality, and the promise that it will hold on new rows.

A hold-out of m rows that no candidate has seen judges k candidates: with probability 1 - delta all of them
have a measure within its value there plus the width of a bound at delta / k (`nerm.bounds`). The best
candidate whose bound is within the limit is the answer; if there is none, there is no model.

The bounds are Hoeffding's. A measure is a mean or a difference of rates P(f > 0 given A), and the rows of A
that are held out must be i.i.d. draws given A, independent of the rows that are learned from. With i.i.d.
rows (x, y, v) and a hold-out that is drawn within strata this is so, given the strata of all rows, where
every A lies within one stratum. Strata that cut A give the hold-out the shares that the learning rows have,
by which f was chosen, and the rows of A are not those of the population: then nothing is proved. So the
strata are what the measure conditions on: the viewpoint for parity, label and viewpoint for rates among the
labels, nothing for C_sgn, and nothing where several overlap.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm.bounds import holdout_neutrality_bound, holdout_parity_bound
from nerm.errors import InvalidInputError, NoPromiseError, NotNeutralError
from nerm.estimators.parameters import as_atom
from nerm.metrics import Metric, as_metric
from nerm.model import weights as neutrality_weights
from nerm.neutralize import Asking, Neutralized
from nerm.neutralize.attempts import Attempts
from nerm.neutralize.classes import predicted
from nerm.signs import sign
from nerm.splitting import hold_out
from nerm.typing import Bools, Floats, Ints
from nerm.validation import as_nonnegative

if TYPE_CHECKING:
    from nerm.estimators.design import Design, TrainingRows

HOLD_OUT = 0.3  # of the rows
TIGHTENED = (0.75, 0.5, 0.25, 0.1)  # the limits of the candidates, as shares of what is asked for


@dataclass(frozen=True)
class Asked:
    """What is asked of a classifier: a measure within a limit on training rows or, with confidence, on new ones."""

    limit: float
    measure: Any
    confidence: float | None
    surrogate: Any
    prefer: Any
    keep: float

    @classmethod
    def of(cls, model: Any) -> Asked | None:
        """Return what a classifier's parameters ask for, checked; None without a limit."""
        confidence = model.confidence
        if model.limit is None:
            if confidence is not None:
                must = "'confidence' must come with a limit"
                raise InvalidInputError(must, f"{confidence!r} and no limit", "Pass limit=")
            return None
        if confidence is not None and not 0 < as_nonnegative(confidence, "confidence") < 1:
            must = "'confidence' must be between 0 and 1"
            raise InvalidInputError(must, f"{confidence!r}", "Pass 0.95, for instance")
        surrogate = getattr(model, "surrogate", "auto")
        if not (isinstance(surrogate, str) and surrogate == "auto"):
            surrogate = as_atom(surrogate, "surrogate")
        limit = as_nonnegative(model.limit, "limit")
        return cls(
            limit, model.measure, confidence, surrogate, model.prefer, as_nonnegative(model.keep, "keep")
        )


@dataclass(frozen=True)
class Promise:
    """What holds on new rows: with this confidence the measure is at most `bound`, which is within the limit.

    Attributes
    ----------
    measure, limit, confidence
        What was asked for.
    bound, measured : float
        The bound on the measure of new rows, and its value on the hold-out.
    rows, candidates : int
        Rows that were held out, and models that they judged.

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
            f"with probability {self.confidence:g} the {self.measure} of new rows is at most {self.bound:.4f} (asked: "
            f"{self.limit:g}; {self.measured:.4f} on {self.rows} rows held out, {self.candidates} candidates)"
        )


def learned_from(rows: TrainingRows, asked: Asked | None) -> Ints:
    """Return the rows to learn from: all, or where a promise is asked for, those that are not held out."""
    if asked is None or asked.confidence is None:
        return np.arange(len(rows.codes))
    learned = np.flatnonzero(~held_out(rows, as_metric(asked.measure)))
    if len(np.unique(rows.codes[learned])) < len(np.unique(rows.codes)):
        failed = "Every class must have rows to learn from beside those that are held out"
        raise NoPromiseError(failed, "All rows of one class are held out", [("rows", "use more")])
    return learned


def neutralized(
    design: Design, rows: TrainingRows, classes: Sequence[int], asked: Asked, learned: Ints
) -> tuple[list[Neutralized], Promise | None]:
    """Return one result a class, and the promise if one was asked for, of the rows that are learned from."""
    if not rows.viewpoints:
        must = "'viewpoint' must be given when a limit is"
        raise InvalidInputError(must, "None", "Call fit(X, y, viewpoint=...), or set limit=None")
    measure = as_metric(asked.measure)
    if measure.is_custom and np.ptp(rows.sample_weight) > 0:
        do = "Name a measure of nerm.metrics, or leave the weights out"
        raise InvalidInputError(
            "a measure of one's own must count rows the same", "sample weights that differ", do
        )
    surrogates = [asked.surrogate] * len(classes)
    if asked.confidence is None:
        asking, studies = _studies(design, rows, classes, asked)
        return asking.answers(studies, surrogates), None
    pairwise = design.kernel is not None and design.kernel.name == "precomputed"
    apart = np.setdiff1d(np.arange(len(rows.codes)), learned)
    held, X = rows.at(apart, pairwise), rows.X[apart][:, learned] if pairwise else rows.X[apart]
    _check_bounded(measure, held, classes)
    candidates = _tightened(design, rows.at(learned, pairwise), classes, asked, surrogates)
    statements = len(candidates) * len(classes) * len(rows.viewpoints) * len(measure.weights)
    delta = (1 - asked.confidence) / statements
    judged = []
    for found in candidates:
        scores = np.column_stack([one.solution.decision_function(X) for one in found])
        shown = predicted(scores) if len(classes) > 1 else scores
        bounds = [
            pair
            for k, f in zip(classes, shown.T, strict=True)
            for v in held.viewpoints.values()
            for pair in _bounds(measure, np.where(held.codes == k, 1.0, -1.0), f, v, delta)
        ]
        judged.append(np.array(bounds))
    good = [i for i, bounds in enumerate(judged) if bounds[:, 0].max() <= asked.limit]
    if not good:
        raise _no_promise(asked, measure, judged, len(held.codes))
    best = good[0]  # the least neutralised comes first
    bound, value = judged[best].max(axis=0).tolist()
    confidence = float(asked.confidence)
    promise = Promise(measure.name, asked.limit, confidence, bound, value, len(held.codes), len(candidates))
    return candidates[best], promise


def neutrality_of_classes(
    found: Sequence[Neutralized], rows: TrainingRows, learned: Ints, classes: Sequence[int], asked: Asked
) -> float:
    """Return the largest part of the measure of the predicted classes, in size, on the rows that were learned from."""
    shown, s = (
        predicted(np.column_stack([one.solution.training_scores() for one in found])),
        rows.sample_weight,
    )
    measure, parts = as_metric(asked.measure), []
    for k, f in zip(classes, shown.T, strict=True):
        y = np.where(rows.codes[learned] == k, 1.0, -1.0)
        parts += [measure.parts(y, f, v[learned], s[learned]) for v in rows.viewpoints.values()]
    return float(np.abs(parts).max())


def _studies(
    design: Design, rows: TrainingRows, classes: Sequence[int], asked: Asked
) -> tuple[Asking, list[Attempts]]:
    """Return what is asked of every class, and its plain solution."""
    asking = Asking(
        asked.limit, asked.measure, tol=design.tol, prefer=asked.prefer, keep=asked.keep, solver=design.solver,
        row_weight=rows.sample_weight, first=max(design.eta.values()) or None,
    )  # fmt: skip
    problem, studies = None, []
    for k in classes:
        problem = design.problem(rows, k, like=problem)
        studies.append(asking.study(problem, among_classes=len(classes) > 1))
    return asking, studies


def _tightened(
    design: Design, rows: TrainingRows, classes: Sequence[int], asked: Asked, surrogates: Sequence[Any]
) -> list[list[Neutralized]]:
    """Return the candidates, from the loosest limit to the tightest that is reached, none of them twice.

    One surrogate serves a class at all limits, and what was solved for one limit brackets the next.
    """
    found: list[list[Neutralized]] = []
    asking, studies = _studies(design, rows, classes, asked)
    for share in TIGHTENED:
        for study in studies:
            study.limit = share * asked.limit
        try:
            new = asking.answers(studies, surrogates)
        except NotNeutralError as error:
            if not found:
                failed = (
                    f"No model within {share:g} of the limit {asked.limit:g} leaves a margin for new rows"
                )
                raise NoPromiseError(failed, ". ".join(error.parts[:2]), error.advice) from error
            break
        if not found or any(
            one.solution is not old.solution for one, old in zip(new, found[-1], strict=True)
        ):
            found.append(new)
        surrogates = [one.surrogate for one in new]
    return found


def held_out(rows: TrainingRows, measure: Metric) -> Bools:
    """Return the rows of the hold-out, stratified by what the measure conditions on (see above)."""
    if np.ptp(rows.sample_weight) > 0:
        must = "a promise must rest on rows that count the same"
        raise InvalidInputError(must, "sample weights that differ", "Leave them out")
    strata = [np.zeros(len(rows.codes))]
    if len(rows.viewpoints) == 1 and "uniform" not in measure.weights:
        (v,) = rows.viewpoints.values()
        if "balanced" in measure.weights:
            strata = [sign(v)]
        elif len(np.unique(rows.codes)) == 2:  # of more labels, "not this one" is several
            strata = [rows.codes, sign(v)]
    return hold_out(strata, HOLD_OUT, 0)


def _check_bounded(measure: Metric, held: TrainingRows, classes: Sequence[int]) -> None:
    """Refuse a measure that has no bound, and a hold-out on which it is not defined."""
    if not measure.is_agreement:
        do = "Use 'calders_verwer_score', 'neutrality_risk' or a difference of rates, or leave confidence out"
        raise InvalidInputError("a promise must be about a measure that has a bound", f"{measure.name!r}", do)
    try:
        for k in classes:
            y = np.where(held.codes == k, 1.0, -1.0)
            for v in held.viewpoints.values():
                measure.parts(y, y, v, np.ones(len(y)))
    except InvalidInputError as error:
        must, got, _ = error.parts
        advice = [("rows", "use more"), ("confidence", "leave out")]
        raise NoPromiseError(f"Among the rows that are held out {must}", f"Got {got}", advice) from None


def _bounds(measure: Metric, y: Floats, scores: Floats, v: Floats, delta: float) -> list[tuple[float, float]]:
    """Return for each part a bound on new rows that holds with probability 1 - delta, and its size on these."""
    ones = np.ones(len(y))
    bounds = []
    for weights, value in zip(measure.weights, measure.parts(y, scores, v, ones), strict=True):
        part = neutrality_weights.resolve(weights, y, v, ones) > 0
        bound = holdout_neutrality_bound if weights == "uniform" else holdout_parity_bound
        bounds.append((bound(scores[part], v[part], delta=delta), abs(value)))
    return bounds


def _no_promise(asked: Asked, measure: Metric, judged: Sequence[Floats], rows: int) -> NoPromiseError:
    """Return the refusal: the nearest candidate, and how many rows would have sufficed.

    A bound is value + width, and t times the rows divide each width by sqrt(t): t = max ((width / (limit -
    value))^2).
    """
    bound, value = min(bounds.max(axis=0).tolist() for bounds in judged)
    advice = [("limit", "raise"), ("rows", "use many more")]
    within = [bounds for bounds in judged if (bounds[:, 1] < asked.limit).all()]
    if within:
        times = min(float(((b[:, 0] - b[:, 1]) / (asked.limit - b[:, 1])).max()) ** 2 for b in within)
        more = int(np.ceil(rows * (times - 1) / HOLD_OUT))
        advice = [("rows", f"use about {more} more")]
    failed = (
        f"No model has |{measure.name}| <= {asked.limit:g} on new rows with probability {asked.confidence:g}"
    )
    best = f"The best of {len(judged)} has a bound of {bound:.4f} ({value:.4f} on {rows} rows held out)"
    return NoPromiseError(failed, best, advice)
