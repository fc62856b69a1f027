"""The classes of a search for neutrality: `Target`, `Candidate` and the result, `Neutralized`.

A model is **nearly constant** in two cases. Let c be the class that it predicts most often. In the first
case, the number of rows predicted as another class than c is less than a tenth (`NEARLY`) of the number of
rows labelled as another class. In the second case, its scores differ by at most a solver's tolerance, so that
their signs are determined by rounding. The comparison is with the labels and not with all rows: predicting
0.6 % positive is ordinary if 1 % of the labels are positive, and nearly constant if half of them are. With
several classes, only c matters: it is ordinary that a rare class is never predicted.

The positive rate of a model **collapsed** if in some group it is below half of both rates of the plain model
(the same model with eta = 0): the rate in that group and the rate among all rows. The second condition allows
the rate of a favoured group to fall to the common rate. To save time, the plain model is solved only if the
labels, used in place of its predictions, show a collapse.

Both conditions need at least ten rows, since a tenth of fewer is less than one row. A model is called nearly
constant only if at least ten rows have another label than c, also when they are counted by their weights in
the risk: a class of small total weight need not be predicted. A group has a collapsed rate only if the plain
model predicts positive for at least ten of its rows.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from nerm.certify.solution import Solution, Status
from nerm.defaults import DEFAULTS
from nerm.errors import InvalidInputError
from nerm.metrics import METRICS, Metric, as_metric, combined
from nerm.typing import Bools, Floats, Ints
from nerm.validation import as_nonnegative, as_positive, check_known

Prefer = str | Callable[[Floats, Floats], float]


@dataclass(frozen=True)
class Target:
    """The target of a search: limit, measure and options (see `nerm.Problem.neutralize`).

    If `confidence` is given, the measure must be within the limit on new rows with that probability, also if
    the shares of the groups differ by `shift`. If `verbose`, the search prints one line per solve.
    """

    limit: Any
    measure: Any = "calders_verwer_score"
    tol: float = 1e-6
    surrogate: Any = "auto"
    prefer: Prefer = "accuracy"
    keep: float = 0.5
    random_state: int = 0
    groups: str = "each"
    confidence: float | None = None
    verbose: bool = False
    shift: float = 0.0

    def __post_init__(self) -> None:
        as_nonnegative(self.allowance, "limit")
        METRICS["accuracy"].allowance(self.least_accuracy)
        as_nonnegative(self.shift, "shift")
        as_nonnegative(self.keep, "keep")
        as_positive(self.tol, "tol")
        if not callable(self.prefer):
            do = "Use one of these, or a function (y, scores)"
            check_known(self.prefer, "'prefer'", ("accuracy", "auc"), do)
        check_known(self.groups, "'groups'", ("each", "intersect"))
        if self.confidence is not None and not 0 < as_nonnegative(self.confidence, "confidence") < 1:
            must = "'confidence' must be between 0 and 1"
            raise InvalidInputError(must, f"{self.confidence!r}", "Pass 0.95, for instance")

    @property
    def rough_tol(self) -> float:
        """The tolerance of solves that are only compared: tol^(2/3), for instance 1e-4 for 1e-6."""
        return max(self.tol, float(self.tol ** (2 / 3)))

    @cached_property
    def metric(self) -> Metric:
        """The measure that is limited.

        For several limits it is the largest ratio of a measure's distance to its limit.
        """
        if not isinstance(self.limit, Mapping):
            return as_metric(self.measure)
        return combined({name: limit for name, limit in self.limit.items() if name != "accuracy"})

    @property
    def least_accuracy(self) -> float:
        """The smallest accuracy that is allowed."""
        return self.limit.get("accuracy", 0.0) if isinstance(self.limit, Mapping) else 0.0

    @property
    def allowance(self) -> float:
        """The largest distance of the measure from its best value that the limit allows."""
        return 1.0 if self.metric.limits else self.metric.allowance(self.limit)

    @property
    def statements(self) -> tuple[tuple[Metric, float], ...]:
        """The pairs of a measure and its limit; the accuracy is last."""
        floor = ((METRICS["accuracy"], self.least_accuracy),) if self.least_accuracy else ()
        return (self.metric.limits or ((self.metric, self.limit),)) + floor

    @property
    def condition(self) -> str:
        """The limits, as text."""
        return " and ".join(metric.condition(limit) for metric, limit in self.statements)

    def tightened(self, share: float) -> "Target":
        """Return the target with tighter limits.

        They allow only this share of the distance of each measure from its best value.
        """
        tight = {m.name: m.best + share * (limit - m.best) for m, limit in self.statements if m.weights}
        if not self.metric.limits:
            return replace(self, limit=next(iter(tight.values())))
        return replace(self, limit=tight | {"accuracy": self.least_accuracy})


@dataclass(frozen=True, eq=False)
class Candidate:
    """The result of one solve, a ranking of the rows, and its best threshold.

    Attributes
    ----------
    surrogate : MarginFunction or None
        psi of the neutrality terms; None for the plain model.
    weights : (number of terms,) array
        The signed weights of the one-sided terms; negative if a term penalizes disagreement with the
        viewpoint.
    solution : Solution
        The certified solution, before its threshold is applied.
    scores : (n,) array
        The scores f of the rows minus the threshold.
    threshold : float
        The most accurate admissible threshold; if there is none, the one with the smallest distance.
    parts : (number of parts,) array
        The signed parts of the measure at the threshold.
    rates : (number of groups,) array
        The positive rates of the groups at the threshold.
    objection : str
        The first condition on a usable model that no threshold meets; empty if there is none.
    admissible : bool
        Whether the model is usable and within the limit.
    directions : (number of terms,) array
        The weighted agreement of each term, at the threshold that is the most accurate without a limit.
    distance : float
        The distance of the measure from its best value at that threshold; infinite if nothing was solved.
    free, cost : float
        The accuracy at that threshold, and how much of it `threshold` costs.
    quality : dict
        Accuracy and AUC of the scores, and "worth", the criterion `prefer`.

    """

    surrogate: Any
    weights: Floats
    solution: Solution
    scores: Floats
    threshold: float
    parts: Floats
    rates: Floats
    objection: str
    admissible: bool
    directions: Floats
    distance: float
    free: float
    cost: float
    quality: Mapping[str, float]

    @property
    def value(self) -> float:
        """The distance of the measure from its best value: the largest absolute value of its parts."""
        return float(np.abs(self.parts).max())

    @property
    def sides(self) -> tuple[str, ...]:
        """What each term penalizes: "agreement" or "disagreement" with the viewpoint."""
        return tuple(side_of(self.surrogate, weight) for weight in self.weights.tolist())

    @property
    def etas(self) -> tuple[float, ...]:
        """The absolute values of the weights."""
        return tuple(np.abs(self.weights).tolist())

    @property
    def shown_etas(self) -> str:
        """The absolute values of the weights, as text."""
        return ", ".join(f"{eta:.4g}" for eta in self.etas)


def side_of(surrogate: Any, weight: float) -> str:
    """Return what a term of this signed weight penalizes: "agreement" or "disagreement".

    A nonnegative weight penalizes agreement of the predictions with the viewpoint, a negative one
    disagreement. An increasing psi exchanges the two.
    """
    increasing = surrogate is not None and surrogate.facts.monotone == "increasing"
    return "agreement" if (weight >= 0) != increasing else "disagreement"


def shown(values: tuple[Any, ...]) -> Any:
    """Return the value itself if there is only one, else the tuple."""
    return values[0] if len(values) == 1 else values


def trace_rows(candidate: Candidate, measured: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the rows of the trace for a candidate, one per convex solve.

    `measured` holds the measures of the last solve. A nonconvex candidate has one row per convex step, and
    only the last one is measured. The status is that of the convex step; in the last row it is "stationary".
    """
    solution = candidate.solution
    row = {
        "surrogate": "" if candidate.surrogate is None else repr(candidate.surrogate),
        "eta": shown(candidate.etas),
        "side": shown(candidate.sides),
    }
    steps = [] if solution.problem.is_convex else solution.stats.details["trace"]
    gaps = [step["relative_gap"] for step in steps] or [solution.certificate.relative_gap]
    found = [(Status.OPTIMAL if gap <= solution.tol else Status.INACCURATE, gap) for gap in gaps]
    if solution.status.success or not steps:
        found[-1] = solution.status, gaps[-1]
    rows = [row | {"status": status.value, "relative_gap": gap} for status, gap in found]
    rows[-1] = row | measured | rows[-1]
    return rows


@dataclass(frozen=True, eq=False, repr=False)
class Neutralized:
    """A model within a limit on measured neutrality: a certified ranking, and its best threshold.

    Attributes
    ----------
    solution : Solution
        The certified solution of the problem with one-sided neutrality terms of weight `eta`. Its intercept
        is the certified one minus the threshold.
    threshold : float
        The most accurate threshold within the limit, found exactly. The certificate is about the ranking,
        before the threshold.
    eta, side
        Weight of the neutrality term, and what it penalizes: "agreement" or "disagreement" with the
        viewpoint. With several terms these are tuples.
    surrogate : MarginFunction
        psi of the neutrality terms.
    measure, limit : str, float
        Name of the measure, and its limit; for several measures a dict of limits.
    value : float
        The measure of the predictions, with its sign if the measure has one part only.
    reached : bool
        Whether the measure is within the limit.
    trace : pandas.DataFrame
        One row per convex solve: surrogate, weight, measure at the threshold, threshold, rows, accuracy,
        AUC, positive rates, status, certified gap, and whether it was `chosen`. Solves that are only
        compared have a larger tolerance, and may use a part of the rows.
    choice : pandas.DataFrame
        The comparison of the surrogates on rows that they were not fitted on; empty if there was nothing to
        compare.
    groups : tuple of str
        The groups that were compared, if they are more than two; a pooled one is "pooled: a or b".

    >>> import numpy as np, nerm
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 2)); v = np.where(X[:, 0] + rng.normal(size=300) > 0, 1, -1)
    >>> y = np.where(X.sum(axis=1) > 0, 1, -1)
    >>> problem = (nerm.Risk(nerm.Logistic()) + 0.01 * nerm.SquaredL2()).on(X, y, viewpoint=v)
    >>> found = problem.neutralize(0.05, surrogate=nerm.Hinge())
    >>> found.side, found.reached, found.trace["status"].unique().tolist()
    ('agreement', True, ['optimal'])
    >>> found.solves == len(found.trace), found.solution.threshold == found.threshold
    (True, True)

    """

    solution: Solution
    threshold: float
    eta: float | tuple[float, ...]
    side: str | tuple[str, ...]
    surrogate: Any
    measure: str
    limit: float
    value: float
    reached: bool
    trace: pd.DataFrame = field(repr=False)
    choice: pd.DataFrame = field(repr=False)
    groups: tuple[str, ...] = ()

    @property
    def solves(self) -> int:
        """The number of convex solves."""
        return len(self.trace)

    def __repr__(self) -> str:
        eta = ", ".join(f"{weight:.4g}" for weight in np.ravel(self.eta))
        chosen = self.trace[self.trace["chosen"]].iloc[0]
        kind = "" if self.solution.problem.is_convex else " (not convex: a stationary point)"
        return (
            f"{self.measure} {self.value:+.4f} (limit {self.limit}), by {self.surrogate!r}{kind} with "
            f"eta {eta} and threshold {self.threshold:.4g}: accuracy {chosen['accuracy']:.4f}, AUC "
            f"{chosen['auc']:.4f} on the training rows, {self.solves} solves; the certificate "
            f"({self.solution.certificate}) is about the ranking, before the threshold"
        )


NEARLY = 0.1  # see the docstring of this module


def collapse(
    scores: Floats,
    labels: Ints,
    classes: Iterable[str],
    groups: Mapping[str, Bools] | None = None,
    *,
    plain: Callable[[], Floats | None] | None = None,
    weight: Floats | None = None,
    risk_weight: Floats | None = None,
) -> str | None:
    """Return a warning text if a model is nearly constant or its positive rate collapsed, else None.

    The docstring of this module defines both conditions.

    Parameters
    ----------
    scores
        The scores f of the training rows, (n,), or (n, number of classes).
    labels
        The index of each row's class, (n,).
    classes
        The names of the classes for the text, in the order of their indices.
    groups
        One (n,) mask per group, by the group's name.
    plain
        Function that returns the scores of the same model without neutrality, (n,), or None.
    weight
        The sample weights, (n,); 1 by default.
    risk_weight
        The sample weights times the class weights, (n,); by default the sample weights.

    Examples
    --------
    >>> scores, labels = np.full(100, -1.0), np.repeat([0, 1], [80, 20])
    >>> scores[-1] = 0.5
    >>> collapse(scores, labels, ["class no", "class yes"])
    'The model predicts class no for 99.0 % of rows (labels: 80.0 %): it is nearly constant.'
    >>> collapse(np.arange(-80, 20), labels, ["class no", "class yes"]) is None
    True
    """
    s = np.ones(len(labels)) if weight is None else weight
    names = tuple(classes)
    decided = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
    usual = int(np.bincount(decided, s).argmax())
    rare, counted = labels != usual, s if risk_weight is None else risk_weight
    if min(rare.sum(), (counted * rare).sum() / counted.mean()) >= 1 / NEARLY:
        others, wanted = (float((s * (answers != usual)).sum() / s.sum()) for answers in (decided, labels))
        if others < NEARLY * wanted:
            shares = f"{_percent(1 - others)} of rows (labels: {_percent(1 - wanted)})"
            return f"The model predicts {names[usual]} for {shares}: it is nearly constant."
        spread = float(np.ptp(scores, axis=0).max())
        if spread <= DEFAULTS.tol:
            return f"The model's scores differ by no more than {spread:.1e}: it is constant but for rounding."
    if plain is None or not groups or scores.ndim == 2:
        return None
    if _collapsed(decided, labels, groups, names[1], s) is None:
        return None
    before = plain()
    return None if before is None else _collapsed(decided, (before > 0).astype(int), groups, names[1], s)


def _collapsed(
    decided: Ints, before: Ints, groups: Mapping[str, Bools], positive: str, s: Floats
) -> str | None:
    """Return a warning text about the first group whose positive rate collapsed; None if there is none.

    `decided` and `before` are the 0/1 predictions of the model and of the plain model, (n,); `positive` is
    the name of class 1 and `s` are the sample weights.
    """
    everybody = s @ before / s.sum()
    for name, among in groups.items():
        if np.count_nonzero(among & (before > 0)) < 1 / NEARLY:
            continue
        weights = s * among  # cheaper than gathering rows
        now, then = (weights @ answers / weights.sum() for answers in (decided, before))
        if now < DEFAULTS.keep * min(then, everybody):
            rates = f"{_percent(now)} of the rows with {name} (without neutrality: {_percent(then)})"
            return f"The model predicts {positive} for {rates}: its positive rate collapsed."
    return None


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
