"""Measure decisions: rates by group, differences, measures with intervals, calibration, and bounds."""

import math
import shlex
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import binomtest

from nerm import bounds, metrics
from nerm.bounds.guarantee import Statement
from nerm.bounds.theorems import HELD_OUT
from nerm.errors import InvalidInputError, NermError
from nerm.estimators.parameters import atom_name
from nerm.report.fitting import PARTS, FittedModel
from nerm.report.settings import Level, Settings
from nerm.tables.roles import FEW_ROWS, TableTask
from nerm.typing import Bools, Floats, Ints

Interval = tuple[float, float]


@dataclass(frozen=True)
class Group:
    """One group: how many rows, and rates in [0, 1]; nan where no row can show the rate.

    Attributes
    ----------
    name, rows
        As in "sex = f", and how many of them.
    base_rate, positive_rate, true_positive_rate, false_positive_rate, accuracy
        The rates.
    intervals
        The 95 % interval (Wilson) of each rate, by its name.
    """

    name: str
    rows: int
    base_rate: float
    positive_rate: float
    true_positive_rate: float
    false_positive_rate: float
    accuracy: float
    intervals: dict[str, Interval]

    @property
    def few(self) -> bool:
        """Whether there are too few rows to say much."""
        return self.rows < FEW_ROWS

    @property
    def rates(self) -> dict[str, float]:
        """The rates by name."""
        return {name: getattr(self, name) for name in self.intervals}


@dataclass(frozen=True)
class Difference:
    """A difference of the positive rates of two groups, with its 95 % interval (Newcombe)."""

    one: str
    other: str
    value: float
    interval: Interval
    few: bool


@dataclass(frozen=True)
class Measures:
    """The measures of scores; of several groups against the rest, the largest in size counts.

    Attributes
    ----------
    values
        Those of `nerm.metrics.report`, by name.
    intervals
        The 95 % intervals of those that are rates or differences of rates.
    undefined
        Why a measure is not defined.
    """

    values: dict[str, float]
    intervals: dict[str, Interval]
    undefined: dict[str, str]


@dataclass(frozen=True)
class Decisions:
    """Counts per 1,000 individuals (of all groups together), compared with the model without neutrality."""

    correct: float
    positive: float
    to_positive: float
    to_negative: float
    wrongly_negative: float
    wrongly_positive: float

    @property
    def changed(self) -> float:
        """Decisions that differ from those without neutrality."""
        return self.to_positive + self.to_negative


@dataclass(frozen=True)
class Bin:
    """Rows with similar probabilities: their mean, and the rate of positives with its 95 % interval."""

    rows: int
    said: float
    came_true: float
    interval: Interval


@dataclass(frozen=True)
class Calibration(Bin):
    """All rows of one group, and the same in bins of equally many rows."""

    group: str
    bins: tuple[Bin, ...]


@dataclass(frozen=True)
class OtherMethod:
    """Another method at one weight (or without one), measured on the same held-out rows."""

    method: str
    eta: float | None
    measures: dict[str, float]
    intervals: dict[str, Interval]

    @property
    def name(self) -> str:
        """The method with its weight."""
        return self.method if self.eta is None else f"{self.method}, η = {self.eta:g}"


@dataclass(frozen=True)
class Point:
    """One model of a study: its level, and its measures on held-out rows.

    Attributes
    ----------
    level
        What was asked for: a limit, a weight, or (the plain model) neither.
    model
        The shown model: its weight, certificate and coefficients. None for given scores.
    measures, training
        The measures of `nerm.metrics.report` on held-out rows, and on the training rows.
    intervals
        The 95 % intervals of measures, by name. AUC and mutual information have none.
    groups
        Every group with its rates.
    differences
        In positive rates: each group against the rest and, with several, the largest between any two groups.
    calibration
        Of probabilities in each group; empty where the loss is not logistic.
    decisions
        Per 1,000 individuals.
    statements
        The bounds.
    collapse
        A sentence if the model is nearly constant or its positive rate collapsed.
    command
        The `nerm fit` command that makes this model; empty where there is none.
    name
        Of given scores.
    """

    level: Level
    model: FittedModel | None
    measures: dict[str, float]
    intervals: dict[str, Interval]
    training: dict[str, float]
    groups: tuple[Group, ...]
    differences: tuple[Difference, ...]
    calibration: tuple[Calibration, ...]
    decisions: Decisions
    statements: tuple[Statement, ...]
    collapse: str | None
    command: str
    name: str = ""

    @property
    def label(self) -> str:
        """Its name: "limit 0.02", "no limit", "η = 0.5", or the name of given scores."""
        return self.name or self.level.label

    @property
    def eta(self) -> float:
        """The neutrality weight."""
        return 0.0 if self.model is None else self.model.eta

    @property
    def certified(self) -> str:
        """The certified relative gap, or the status where there is no gap."""
        if self.model is None:
            return "–"
        status = self.model.solution.status.value
        return status if status == "stationary" else f"{self.model.relative_gap:.0e}"

    def aim(self, settings: Settings) -> float:
        """Return the size of the measure that is limited, on held-out rows."""
        return abs(self.measures[settings.aim.name])


def rate_interval(count: int, n: int) -> Interval:
    """Return the 95 % interval of Wilson for a rate, [0, 1] where n is 0.

    >>> [round(end, 3) for end in rate_interval(1, 9)]
    [0.02, 0.435]
    """
    if n == 0:
        return 0.0, 1.0
    found = binomtest(count, n).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def difference_interval(one: tuple[int, int], other: tuple[int, int]) -> Interval:
    """Return the 95 % interval of Newcombe for the difference of two rates, each given as (count, n).

    With p, p' and their Wilson intervals (l, u), (l', u')::

        p - p' - sqrt((p - l)^2 + (u' - p')^2)  ...  p - p' + sqrt((u - p)^2 + (p' - l')^2)

    >>> [round(end, 3) for end in difference_interval((56, 70), (48, 80))]
    [0.052, 0.334]
    """
    (k, n), (k2, n2) = one, other
    if not n or not n2:
        return -1.0, 1.0
    (low, high), (low2, high2) = rate_interval(k, n), rate_interval(k2, n2)
    p, p2 = k / n, k2 / n2
    return p - p2 - math.hypot(p - low, high2 - p2), p - p2 + math.hypot(high - p, p2 - low2)


def absolute_interval(interval: Interval) -> Interval:
    """Return the absolute values of the numbers in an interval.

    >>> absolute_interval((-0.1, 0.3)), absolute_interval((-0.3, -0.1))
    ((0.0, 0.3), (0.1, 0.3))
    """
    low, high = sorted(map(abs, interval))
    return (0.0 if interval[0] < 0 < interval[1] else low), high


def groups_of(task: TableTask, scores: Floats) -> tuple[Group, ...]:
    """Return the rates of every group.

    Parameters
    ----------
    task
        The rows.
    scores
        f of each row, (n,); a positive one is a positive decision.
    """
    decided, wanted = scores > 0, task.y > 0
    groups = []
    for name, among in task.groups.items():
        counts = {
            "base_rate": _count(wanted, among),
            "positive_rate": _count(decided, among),
            "true_positive_rate": _count(decided, among & wanted),
            "false_positive_rate": _count(decided, among & ~wanted),
            "accuracy": _count(decided == wanted, among),
        }
        rates = {rate: k / n if n else math.nan for rate, (k, n) in counts.items()}
        intervals = {rate: rate_interval(k, n) for rate, (k, n) in counts.items()}
        groups.append(Group(name, int(among.sum()), **rates, intervals=intervals))
    return tuple(groups)


def differences_of(task: TableTask, scores: Floats) -> tuple[Difference, ...]:
    """Return the differences in positive rates: each group against the rest, then the largest between two.

    Parameters
    ----------
    task, scores
        As for `groups_of`.
    """
    decided, groups = scores > 0, task.groups
    found = []
    for name, signs in task.terms.items():
        rest = next((other for other, among in groups.items() if (among == (signs < 0)).all()), "the rest")
        found.append(_difference(decided, name, rest, signs > 0, signs < 0))
    if len(found) > 1:
        enough = [g for g, among in groups.items() if among.sum() >= FEW_ROWS]
        enough = enough or [g for g, among in groups.items() if among.any()]
        rate = {g: float(decided[groups[g]].mean()) for g in enough}
        pairs = [(a, b) for a in rate for b in rate if a.partition(" = ")[0] == b.partition(" = ")[0]]
        high, low = max(pairs, key=lambda pair: rate[pair[0]] - rate[pair[1]])
        found.append(_difference(decided, high, low, groups[high], groups[low]))
    return tuple(found)


def _difference(decided: Bools, one: str, other: str, these: Bools, those: Bools) -> Difference:
    (k, n), (k2, n2) = _count(decided, these), _count(decided, those)
    value = k / n - k2 / n2 if n and n2 else math.nan
    return Difference(one, other, value, difference_interval((k, n), (k2, n2)), min(n, n2) < FEW_ROWS)


def measures_of(task: TableTask, scores: Floats) -> Measures:
    """Return the measures of scores.

    Parameters
    ----------
    task, scores
        As for `groups_of`.
    """
    reports = [(metrics.report(task.y, scores, v), v) for v in task.terms.values()]
    found = Measures({}, {}, {})
    for name in reports[0][0].as_dict():
        report, v = max(reports, key=lambda pair: np.nan_to_num(abs(pair[0].as_dict()[name]), nan=-1.0))
        found.values[name] = report.as_dict()[name]
        if name in report.undefined:
            found.undefined[name] = report.undefined[name]
        elif interval := _measure_interval(name, scores > 0, task.y > 0, v > 0):
            found.intervals[name] = interval
    return found


def _measure_interval(name: str, decided: Bools, wanted: Bools, favoured: Bools) -> Interval | None:
    """Return the 95 % interval of a measure, None where it is made of no rates.

    C_sgn is |2 p - 1| of the rate p of agreement. The larger of two differences in size lies between the
    larger lower end and the larger upper end.
    """
    everyone = np.ones_like(wanted)
    among = {"balanced": everyone, "equal_opportunity": wanted, "predictive_equality": ~wanted}
    if name == "accuracy":
        return rate_interval(*_count(decided == wanted, everyone))
    metric = metrics.METRICS.get(name)
    if metric is None or not metric.is_agreement or not metric.weights:
        return None
    if metric.weights == ("uniform",):
        low, high = rate_interval(*_count(decided == favoured, everyone))
        return absolute_interval((2 * low - 1, 2 * high - 1))
    if not among.keys() >= set(metric.weights):
        return None
    ends = [
        difference_interval(_count(decided, among[w] & favoured), _count(decided, among[w] & ~favoured))
        for w in metric.weights
    ]
    if len(ends) == 1:
        return ends[0]
    sizes = [absolute_interval(end) for end in ends]
    return max(low for low, _ in sizes), max(high for _, high in sizes)


def decisions_of(task: TableTask, scores: Floats, plain: Floats) -> Decisions:
    """Return decisions per 1,000 individuals.

    Parameters
    ----------
    task, scores
        As for `groups_of`.
    plain
        The scores of the model without neutrality, (n,).
    """
    decided, before, wanted = scores > 0, plain > 0, task.y > 0
    counted = {
        "correct": decided == wanted,
        "positive": decided,
        "to_positive": decided & ~before,
        "to_negative": ~decided & before,
        "wrongly_negative": ~decided & wanted,
        "wrongly_positive": decided & ~wanted,
    }
    return Decisions(**{name: float(1000 * rows.mean()) for name, rows in counted.items()})


def calibration_of(task: TableTask, probability: Floats) -> tuple[Calibration, ...]:
    """Compare probabilities with the rates of positives, in each group.

    Parameters
    ----------
    task
        The rows.
    probability
        Of the positive class, (n,).
    """
    found = []
    for name, among in task.groups.items():
        rows = np.flatnonzero(among)
        if len(rows):
            rows = rows[np.argsort(probability[rows], kind="stable")]
            parts = np.array_split(rows, min(PARTS, len(rows)))
            bins = tuple(Bin(*_calibrated(task, probability, part)) for part in parts)
            found.append(Calibration(*_calibrated(task, probability, rows), name, bins))
    return tuple(found)


def _calibrated(task: TableTask, probability: Floats, rows: Ints) -> tuple[int, float, float, Interval]:
    k, n = int((task.y[rows] > 0).sum()), len(rows)
    return n, float(probability[rows].mean()), k / n, rate_interval(k, n)


def other_of(task: TableTask, method: str, eta: float | None, scores: Floats) -> OtherMethod:
    """Return another method, measured on these rows."""
    measured = measures_of(task, scores)
    return OtherMethod(method, eta, measured.values, measured.intervals)


def point_of(held: TableTask, scores: Floats, plain: Floats, settings: Settings, **more: Any) -> Point:
    """Return the point of scores on held-out rows.

    Parameters
    ----------
    held, scores, plain
        The rows, f of each, and f without neutrality, (n,).
    settings
        Of the study.
    more
        The other fields of a `Point`.
    """
    measured, probability = measures_of(held, scores), settings.probability(scores, held.y)
    return Point(
        measures=measured.values,
        intervals=measured.intervals,
        groups=groups_of(held, scores),
        differences=differences_of(held, scores),
        calibration=() if probability is None else calibration_of(held, probability),
        decisions=decisions_of(held, scores, plain),
        **more,
    )


def completed(command: str, model: FittedModel) -> str:
    """Return the command that fits this model again.

    Parameters
    ----------
    command
        Without the level; empty for none.
    model
        To fit.
    """
    if not command:
        return ""
    surrogate = ""
    if model.level.limit is not None and model.surrogate is not None and "--surrogate" not in command:
        surrogate = f" --surrogate {shlex.quote(atom_name(model.surrogate))}"
    return f"{command} {model.level.option}{surrogate} --out model.nerm"


def held_out_bounds(
    task: TableTask, scores: Floats, delta: float, part: Ints | None = None, models: int = 1
) -> list[Statement]:
    """Return the hold-out bounds, which hold for all models at once.

    They share delta among all models, groups and parts: a model may be chosen after looking. With several
    parts they are about the mean over the models of the parts.

    Parameters
    ----------
    task, scores
        Rows that no fit has seen, and f of each, (n,).
    delta
        Probability with which a bound may fail.
    part
        The part that held each row out, (n,).
    models
        How many models are compared.
    """
    part = np.zeros(len(task), dtype=int) if part is None else part
    parts = np.unique(part)
    share = delta / (models * len(parts) * len(task.terms))
    about = "this model" if len(parts) == 1 else f"the mean over the {len(parts)} parts' models"
    note = f"about {about}" + (", for all models at once" if models > 1 else "; rows not used before")
    statements = []
    for quantity, measure, bound in HELD_OUT:
        try:
            means = [
                np.mean([bound(scores[part == k], v[part == k], delta=share) for k in parts])
                for v in task.terms.values()
            ]
        except InvalidInputError:  # a part without one of the groups
            continue
        most = float(max(means))
        sample = max(abs(measure(scores, v)) for v in task.terms.values())
        said = note if most < 1 else "no better than the largest possible value, 1"
        statements.append(Statement(quantity, "held-out rows", sample, min(most, 1.0), "", most >= 1, said))
    return statements


def theorems(model: FittedModel, delta: float) -> list[Statement]:
    """Return the bounds of the theorems on a model, none where they do not apply.

    Parameters
    ----------
    model
        The model.
    delta
        Probability with which a bound may fail.
    """
    try:
        stated = bounds.guarantee(model.facts(), delta=delta)
    except NermError:
        return []
    return [statement for statement in stated if statement.source not in ("hold-out", "through psi")]


def _count(of: Bools, among: Bools) -> tuple[int, int]:
    """Return how many of these rows are among those, and how many those are."""
    return int(np.count_nonzero(of & among)), int(np.count_nonzero(among))
