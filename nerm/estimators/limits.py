"""Classifiers within a limit of measured neutrality, and the promise that it will hold on new rows.

A hold-out of m rows that no candidate has seen judges k candidates: with probability 1 - delta all of them have a
measure within its value there plus the width of a bound at delta / k (`nerm.bounds`). The best candidate whose bound is
within the limit is the answer; if there is none, there is no model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from nerm.bounds import holdout_neutrality_bound, holdout_parity_bound
from nerm.errors import InvalidInputError, NoPromiseError, NotNeutralError
from nerm.estimators.parameters import as_atom
from nerm.neutralize import Neutralized, neutralize
from nerm.neutralize.measures import Measure, as_measure
from nerm.signs import sign
from nerm.splitting import hold_out
from nerm.typing import Floats, Ints
from nerm.validation import as_nonnegative

if TYPE_CHECKING:
    from nerm.estimators.design import Design, TrainingRows

HOLD_OUT = 0.3  # of the rows
FEWEST = 4  # rows of one class and one side of each viewpoint that are drawn from by themselves
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
        return cls(limit, model.measure, confidence, surrogate, model.prefer, as_nonnegative(model.keep, "keep"))


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


def neutralized(
    design: Design, rows: TrainingRows, classes: Sequence[int], asked: Asked
) -> tuple[list[Neutralized], Promise | None, Ints]:
    """Return one result a class, the promise if one was asked for, and the rows that were learned from."""
    if not rows.viewpoints:
        must = "'viewpoint' must be given when a limit is"
        raise InvalidInputError(must, "None", "Call fit(X, y, viewpoint=...), or set limit=None")
    measure, everybody = as_measure(asked.measure), np.arange(len(rows.codes))
    if measure.function is not None and np.ptp(rows.sample_weight) > 0:
        do = "Name a measure of nerm.metrics, or leave the weights out"
        raise InvalidInputError("a measure of one's own must count rows the same", "sample weights that differ", do)
    if asked.confidence is None:
        return _fitted(design, rows, classes, asked, asked.limit), None, everybody
    apart = held_out(rows)
    learning = rows.at(np.flatnonzero(~apart), design)
    held, X = rows.at(np.flatnonzero(apart), design), rows.X[apart]
    if design.kernel is not None and design.kernel.name == "precomputed":
        X = rows.X[apart][:, ~apart]
    _check_bounded(measure, held, classes)
    candidates = _tightened(design, learning, classes, asked)
    statements = len(candidates) * len(classes) * len(rows.viewpoints) * len(measure.weights)
    delta = (1 - asked.confidence) / statements
    judged = []
    for found in candidates:
        bounds = [
            pair
            for k, one in zip(classes, found, strict=True)
            for v in held.viewpoints.values()
            for pair in _bounds(
                measure, np.where(held.codes == k, 1.0, -1.0), one.solution.decision_function(X), v, delta
            )
        ]
        judged.append(np.array(bounds))
    good = [i for i, bounds in enumerate(judged) if bounds[:, 0].max() <= asked.limit]
    if not good:
        raise _no_promise(asked, measure, judged, len(held.codes))
    best = good[0]  # the least neutralised comes first
    bound, value = judged[best].max(axis=0).tolist()
    confidence = float(asked.confidence)
    promise = Promise(measure.name, asked.limit, confidence, bound, value, len(held.codes), len(candidates))
    return candidates[best], promise, np.flatnonzero(~apart)


def _fitted(
    design: Design, rows: TrainingRows, classes: Sequence[int], asked: Asked, limit: float
) -> list[Neutralized]:
    """Return one result a class."""
    problem, found = None, []
    for k in classes:
        problem = design.problem(rows, k, like=problem)
        one = neutralize(
            problem, limit, asked.measure, tol=design.tol, surrogate=asked.surrogate, prefer=asked.prefer,
            keep=asked.keep, row_weight=rows.sample_weight, first=max(design.eta.values()) or None,
            among_classes=len(classes) > 1, solver=design.solver,
        )  # fmt: skip
        found.append(one)
    return found


def _tightened(design: Design, rows: TrainingRows, classes: Sequence[int], asked: Asked) -> list[list[Neutralized]]:
    """Return the candidates, from the loosest limit to the tightest that can be reached; one surrogate serves all."""
    found: list[list[Neutralized]] = []
    for share in TIGHTENED:
        try:
            found.append(_fitted(design, rows, classes, asked, share * asked.limit))
        except NotNeutralError as error:
            if not found:
                must = f"a model within {asked.limit:g} of neutrality must leave room for what new rows may add"
                raise NoPromiseError(
                    must, f"that {share:g} of the limit is out of reach: {error}", error.parts[2]
                ) from error
            break
        asked = replace(asked, surrogate=found[0][0].surrogate)
    return found


def held_out(rows: TrainingRows) -> Any:
    """Return the rows of the hold-out, stratified by class and viewpoint."""
    if np.ptp(rows.sample_weight) > 0:
        must = "a promise must rest on rows that count the same"
        raise InvalidInputError(must, "sample weights that differ", "Leave them out")
    cells = np.column_stack([rows.codes, *(sign(v) for v in rows.viewpoints.values())])
    _, cell, counts = np.unique(cells, axis=0, return_inverse=True, return_counts=True)
    # A share of a row or two is nothing or half: such cells are drawn from together.
    return hold_out([np.where(counts[cell] < FEWEST, -1, cell)], HOLD_OUT, 0)


def _check_bounded(measure: Measure, held: TrainingRows, classes: Sequence[int]) -> None:
    """Refuse a measure that has no bound, and a hold-out on which it is not defined."""
    if measure.function is not None or measure.name == "normalized_prejudice_index":
        do = "Use 'calders_verwer_score', 'neutrality_risk' or a difference of rates, or leave confidence out"
        raise InvalidInputError("a promise must be about a measure that has a bound", f"{measure.name!r}", do)
    try:
        for k in classes:
            y = np.where(held.codes == k, 1.0, -1.0)
            for v in held.viewpoints.values():
                measure.parts(y, y, v, np.ones(len(y)))
    except InvalidInputError as error:
        must, got, _ = error.parts
        do = "Every group must be seen there: use more rows of it, or leave confidence out"
        raise NoPromiseError(f"among the rows that are held out {must}", got, do) from None


def _bounds(measure: Measure, y: Floats, scores: Floats, v: Floats, delta: float) -> list[tuple[float, float]]:
    """Return for each part a bound on new rows that holds with probability 1 - delta, and its size on these."""
    among = {"equal_opportunity": y > 0, "predictive_equality": y <= 0}  # else all rows
    bounds = []
    for weights, value in zip(measure.weights, measure.parts(y, scores, v, np.ones(len(y))), strict=True):
        part = among.get(weights, np.ones(len(y), dtype=bool))
        bound = holdout_neutrality_bound if weights == "uniform" else holdout_parity_bound
        bounds.append((bound(scores[part], v[part], delta=delta), abs(value)))
    return bounds


def _no_promise(asked: Asked, measure: Measure, judged: Sequence[Floats], rows: int) -> NoPromiseError:
    """Return the refusal: the nearest candidate, and how many rows would have sufficed.

    A bound is value + width, and t times the rows divide each width by sqrt(t): t = max ((width / (limit - value))^2).
    """
    bound, value = min(bounds.max(axis=0).tolist() for bounds in judged)
    advice = "On these rows none is within the limit itself: raise the limit, or use many more rows"
    within = [bounds for bounds in judged if (bounds[:, 1] < asked.limit).all()]
    if within:
        times = min(float(((b[:, 0] - b[:, 1]) / (asked.limit - b[:, 1])).max()) ** 2 for b in within)
        more = int(np.ceil(rows * (times - 1) / HOLD_OUT))
        advice = f"If all else stays, about {more} more rows would have sufficed"
    return NoPromiseError(
        f"the {measure.name} of new rows must be within {asked.limit:g} with probability {asked.confidence:g}",
        f"{len(judged)} candidates, of which the best has a bound of {bound:.4f} ({value:.4f} on {rows} rows held out)",
        advice,
    )
