"""Measure decisions: rates by group, measures with 95 % intervals, and bounds."""

import math
import tomllib
import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import binomtest

from nerm import metrics
from nerm.bounds.guarantee import Statement
from nerm.bounds.theorems import HELD_OUT
from nerm.errors import InvalidInputError
from nerm.neutralize.target import collapse
from nerm.report.fitting import FittedModel
from nerm.tables.roles import FEW_ROWS, TableTask
from nerm.typing import Array, Bools, Floats, Ints

Interval = tuple[float, float]
Measured = tuple[dict[str, float], dict[str, Interval], dict[str, str]]


def rounded(value: float, digits: int = 3, sign: str = "") -> str:
    """Format a number with this many significant digits; only very large or small ones have an exponent.

    >>> rounded(295123.0), rounded(0.001234, 2), rounded(-3424.6, 4, "+")
    ('295,000', '0.0012', '-3,425')
    """
    return format(float(f"{value:.{digits}g}"), f"{sign},.10g")


@dataclass(frozen=True)
class Display:
    """How results are shown, of a classification or of a regression.

    Attributes
    ----------
    quality
        The measure of quality to which the budget applies, and its name in texts.
    correct
        The measure by which alternatives in an audit are ranked, and its name in texts.
    measures
        All measures, in words.
    columns, more
        By measure, the head of its column in trade-off tables; `more` are further columns of the page.
    cards
        By field of the page, the measures that are shown large.
    signed
        The measures that are shown with their sign.
    rates
        The heads of the rates of a group; {} is the positive decision or the target.
    averages, compared
        The words for all rates of a group, and for that by which groups are compared.
    legend
        The explanation of the columns.
    form
        "fixed": a number has a fixed number of decimals; "rounded": four significant digits.
    """

    quality: tuple[str, str]
    correct: tuple[str, str]
    measures: dict[str, str]
    columns: dict[str, str]
    more: dict[str, str]
    cards: dict[str, str]
    signed: tuple[str, ...]
    rates: tuple[str, ...]
    averages: str
    compared: str
    legend: str
    form: str

    def text(self, value: float, name: str = "", digits: int = 3) -> str:
        """Format the value of a measure, or a rate if it has no name.

        A dash stands for a value that is not finite.
        """
        if not math.isfinite(value):
            return "–"
        sign = "+" if name in self.signed else ""
        return rounded(value, 4, sign) if self.form == "rounded" else format(value, f"{sign}.{digits}f")

    @property
    def difference(self) -> str:
        """The measure that compares two groups."""
        return [*self.columns][-1]

    def heads(self, task: TableTask) -> list[str]:
        """Return the column heads of the rates of a group."""
        return [head.replace("{}", task.outcome) for head in self.rates]


_WORDS = tomllib.loads(resources.files("nerm.report").joinpath("words.toml").read_text("utf-8"))
_ALL = {name: metric.words for name, metric in metrics.METRICS.items()}
OF_DECISIONS, OF_NUMBERS = Display(measures=_ALL, **_WORDS["decisions"]), Display(**_WORDS["numbers"])


@dataclass(frozen=True)
class Group:
    """The rates of one group, such as "sex = f", with their 95 % intervals.

    Attributes
    ----------
    name, rows
        Name of the group, and its number of rows.
    rates
        base_rate, positive_rate, true_positive_rate, false_positive_rate and accuracy, by name; nan if the
        group has no row to which the rate applies.
    intervals
        The Wilson intervals of the rates, by name.
    few
        Whether the group has fewer than FEW_ROWS rows, so that its rates are uncertain.
    """

    name: str
    rows: int
    rates: dict[str, float]
    intervals: dict[str, Interval]
    few: bool


@dataclass(frozen=True)
class Difference:
    """The positive rate of group `one` minus that of group `other`.

    `interval` is its 95 % interval (Newcombe). `few` says whether one of them has fewer than FEW_ROWS rows.
    """

    one: str
    other: str
    value: float
    interval: Interval
    few: bool


@dataclass(frozen=True, eq=False)
class Point:
    """The scores of one predictor with all their measures.

    The predictor is a model of a study, or an audited predictor.

    Attributes
    ----------
    label
        Name of the predictor.
    task, scores
        The rows on which it is measured, and their scores, (n,).
    measures
        The measures of `nerm.metrics.report` by name. With several terms, the least neutral value of them.
    intervals
        The 95 % intervals of the measures that are rates or differences of rates, by name.
    undefined
        By name of each measure that is not defined, the reason.
    groups
        The rates of every group.
    differences
        Differences in positive rates: each group against the rest and, if there are several, the largest
        difference between two groups.
    decisions
        Counts of decisions per 1,000 rows, compared with the model without neutrality.
    collapse
        A sentence if the scores are nearly constant, or if the positive rate in some group is far below that
        of the plain model (`nerm.neutralize.target` has the conditions); else None.
    model
        The fitted model; None for an audited predictor.
    training
        The measures on the training rows; None for an audited predictor.
    command
        The `nerm fit` command that fits this model; empty if there is none.
    """

    label: str
    task: TableTask
    scores: Floats
    measures: dict[str, float]
    intervals: dict[str, Interval]
    undefined: dict[str, str]
    groups: tuple[Group, ...]
    differences: tuple[Difference, ...]
    decisions: dict[str, float]
    collapse: str | None
    model: FittedModel | None = None
    training: dict[str, float] | None = None
    command: str = ""

    @property
    def display(self) -> Display:
        """How the measures are shown."""
        return OF_DECISIONS if self.task.numbers is None else OF_NUMBERS

    @property
    def of_one_decision(self) -> float:
        """The accuracy of the constant prediction: the more frequent label for all rows."""
        return float(max((self.task.y > 0).mean(), (self.task.y < 0).mean()))

    @property
    def certified(self) -> str:
        """The certified relative gap as text; "stationary" or a dash if there is none."""
        if self.model is None:
            return "–"
        status = self.model.solution.status.value
        return status if status == "stationary" else f"{self.model.solution.certificate.relative_gap:.0e}"


def point_of(
    label: str, task: TableTask, scores: Floats, plain: Floats | None = None, seen: Any = (), **more: Any
) -> Point:
    """Measure the scores of one predictor; return the `Point`.

    Parameters
    ----------
    label, task, scores
        Name of the predictor, the rows, and their scores, (n,).
    plain
        The scores of the model without neutrality, (n,), with which decisions are compared.
    seen
        Of a fitted model: the training rows, their scores, (n,), and a function that returns the scores of
        the model without neutrality.
    more
        The other fields of a `Point`.
    """
    groups, differences = groups_of(task, scores), differences_of(task, scores)
    decisions = decisions_of(task, scores, scores if plain is None else plain)
    collapse = (collapse_of(*seen) if seen else None) or collapse_of(task, scores, lambda: plain)
    if seen:
        more["training"] = measures_of(*seen[:2])[0]
    measured = measures_of(task, scores)
    return Point(label, task, scores, *measured, groups, differences, decisions, collapse, **more)


def collapse_of(task: TableTask, scores: Floats, plain: Callable[[], Floats | None]) -> str | None:
    """Return a sentence if a model is nearly constant or its positive rate collapsed, else None.

    Parameters
    ----------
    task, scores
        The rows, and their scores, (n,).
    plain
        A function that returns the scores of the model without neutrality, (n,), or None.
    """
    if task.numbers is not None:
        text = "The predictions vary by less than 1 % of the target: they are nearly constant."
        return text if scores.std() < 0.01 * task.numbers.std() else None
    classes = [f"“{task.target.group(sign)}”" for sign in (-1, 1)]
    return collapse(scores, (task.y > 0).astype(int), classes, task.groups, plain=plain)


def rate_interval(count: int, n: int) -> Interval:
    """Return the 95 % Wilson interval of the rate count / n; (0, 1) if n is 0.

    >>> [round(end, 3) for end in rate_interval(1, 9)]
    [0.02, 0.435]
    """
    if n == 0:
        return 0.0, 1.0
    found = binomtest(count, n).proportion_ci(method="wilson")
    return float(found.low), float(found.high)


def difference_interval(one: tuple[int, int], other: tuple[int, int]) -> Interval:
    """Return the 95 % interval of Newcombe for the difference of two rates.

    Each rate is given as (count, n). With the rates p and p' and their Wilson intervals (l, u) and (l', u'),
    the interval is::

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
    """Return the interval of the absolute values of the numbers in an interval.

    >>> absolute_interval((-0.1, 0.3)), absolute_interval((-0.3, -0.1))
    ((0.0, 0.3), (0.1, 0.3))
    """
    low, high = sorted(map(abs, interval))
    return (0.0 if interval[0] < 0 < interval[1] else low), high


def estimate(sample: Array, other: Array | None = None) -> tuple[float, Interval]:
    """Return the mean of a sample and its 95 % interval.

    If another sample is given, return the difference of the two means and its interval. Of booleans the means
    are rates, with the intervals of Wilson and of Newcombe; of numbers the interval is normal. The value is
    nan if a sample is empty.
    """
    samples = [sample] if other is None else [sample, other]
    least = min(map(len, samples))
    value = math.nan if not least else float(sample.mean() - (0.0 if other is None else other.mean()))
    if sample.dtype == bool:
        counts = [(int(each.sum()), len(each)) for each in samples]
        return value, rate_interval(*counts[0]) if other is None else difference_interval(*counts)
    if least < 2:
        return value, (-math.inf, math.inf)
    end = 1.96 * math.sqrt(sum(each.var(ddof=1) / len(each) for each in samples))
    return value, (value - end, value + end)


def groups_of(task: TableTask, scores: Floats) -> tuple[Group, ...]:
    """Return the rates of every group; for a regression, means of target, prediction and error.

    Parameters
    ----------
    task
        The rows.
    scores
        The scores of the rows, (n,); a score above 0 is a positive decision.
    """
    groups, decided, wanted = [], scores > 0, task.y > 0
    for name, among in task.groups.items():
        if task.numbers is None:
            samples = {
                "base_rate": wanted[among],
                "positive_rate": decided[among],
                "true_positive_rate": decided[among & wanted],
                "false_positive_rate": decided[among & ~wanted],
                "accuracy": (decided == wanted)[among],
            }
        else:
            y, f = task.numbers[among], scores[among]
            samples = {"mean_target": y, "mean_prediction": f, "mean_error": f - y}
        found, rows = {rate: estimate(sample) for rate, sample in samples.items()}, int(among.sum())
        rates = {rate: value for rate, (value, _) in found.items()}
        intervals = {rate: ends for rate, (_, ends) in found.items()}
        groups.append(Group(name, rows, rates, intervals, rows < FEW_ROWS))
    return tuple(groups)


def impact_ratios(task: TableTask, scores: Floats) -> list[dict[str, Any]]:
    """Return positive rates and impact ratios by group: for each viewpoint, and for all combinations.

    The impact ratio of a group is its positive rate divided by the highest one (Local Law 144 of New York)
    among the groups of at least FEW_ROWS rows, if there are two.
    Combinations without rows are left out.

    Parameters
    ----------
    task, scores
        As for `groups_of`.
    """
    words, found = task.words, list[dict[str, Any]]()
    kinds = [words[column] for column in words]
    for names in [*kinds, task.crossed] if len(kinds) > 1 else kinds:
        rates = pd.Series(scores > 0).groupby(names, sort=False).agg(["size", "sum", "mean"])
        enough = rates["mean"][rates["size"] >= FEW_ROWS]
        highest = (enough if len(enough) > 1 else rates["mean"]).max() or 1.0
        for name, n, k, rate in rates.itertuples():
            row = {"name": name, "rows": n, "selected": k, "rate": rate, "impact_ratio": rate / highest}
            found.append({**row, "few": n < FEW_ROWS})
    return found


def differences_of(task: TableTask, scores: Floats) -> tuple[Difference, ...]:
    """Return the differences in positive rates between groups.

    There is one difference per term: a group against the rest. If there are several terms, the last
    difference is the largest one between two groups.

    Parameters
    ----------
    task, scores
        As for `groups_of`.
    """
    decided, groups = scores > 0 if task.numbers is None else scores, task.groups
    found = []
    for name, signs in task.terms.items():
        rest = next((other for other, among in groups.items() if (among == (signs < 0)).all()), "the rest")
        found.append(_difference(decided, name, rest, signs > 0, signs < 0))
    if len(found) > 1:
        enough = [g for g, among in groups.items() if among.sum() >= FEW_ROWS] or list(task.terms)
        pairs = [(a, b) for a in enough for b in enough if a.partition(" = ")[0] == b.partition(" = ")[0]]
        every = [_difference(decided, a, b, groups[a], groups[b]) for a, b in pairs]
        found.append(max(every, key=lambda difference: np.nan_to_num(difference.value, nan=-1.0)))
    return tuple(found)


def _difference(decided: Array, one: str, other: str, these: Bools, those: Bools) -> Difference:
    few = bool(min(these.sum(), those.sum()) < FEW_ROWS)
    return Difference(one, other, *estimate(decided[these], decided[those]), few)


def counted_terms(task: TableTask) -> dict[str, Floats]:
    """Return the terms with FEW_ROWS rows on both sides; all terms if there are none.

    Only these terms count in the measures.
    """
    sizes = {name: min((v > 0).sum(), (v < 0).sum()) for name, v in task.terms.items()}
    least = FEW_ROWS if max(sizes.values()) >= FEW_ROWS else 0
    return {name: v for name, v in task.terms.items() if sizes[name] >= least}


def measures_of(task: TableTask, scores: Floats) -> Measured:
    """Return the fields `measures`, `intervals` and `undefined` of a `Point`.

    Parameters
    ----------
    task, scores
        As for `groups_of`.
    """
    if task.numbers is not None:
        return _measures_of_numbers(task, scores)
    with warnings.catch_warnings(action="ignore"):  # `collapse` tells a model that says yes to everybody
        reports = [(metrics.report(task.y, scores, v), v) for v in counted_terms(task).values()]
    values, intervals, undefined = dict[str, float](), dict[str, Interval](), dict[str, str]()
    for name in reports[0][0]:
        best = metrics.METRICS[name].best if name in metrics.METRICS else 0.0  # the worst of the terms counts
        away = [np.nan_to_num(abs(report[name] - best), nan=-1.0) for report, _ in reports]
        report, v = reports[int(np.argmax(away))]
        values[name] = report[name]
        if name in report.undefined:
            undefined[name] = report.undefined[name]
        elif interval := _measure_interval(name, scores > 0, task.y > 0, v > 0):
            intervals[name] = interval
    return values, intervals, undefined


def _measures_of_numbers(task: TableTask, scores: Floats) -> Measured:
    """Return the same fields as `measures_of`, for the predictions of a regression."""
    y, differences = np.asarray(task.numbers), differences_of(task, scores)
    enough = [difference for difference in differences if not difference.few] or differences
    error = scores - y
    values = {"rmse": float(np.sqrt(np.mean(error**2))), "mean_absolute_error": float(np.abs(error).mean())}
    values["r2"] = 1 - float(np.mean(error**2) / np.var(y)) if np.ptp(y) else math.nan
    worst = max(enough, key=lambda d: np.nan_to_num(abs(d.value), nan=-1.0))
    values["mean_difference"] = worst.value
    sides = [v for v in counted_terms(task).values() if len(np.unique(v)) > 1]
    correlations = [metrics.correlation(scores, v) for v in sides]
    values["correlation"] = max(correlations, key=abs, default=math.nan)
    values["ks_distance"] = max((metrics.ks_distance(scores, v) for v in sides), default=math.nan)
    return values, {"mean_difference": worst.interval}, {}


def _measure_interval(name: str, decided: Bools, wanted: Bools, favoured: Bools) -> Interval | None:
    """Return the 95 % interval of a measure.

    Return None if the measure is not computed from rates. C_sgn is `|2 p - 1|`, where p is the share of rows
    whose decision agrees with the viewpoint. Some measures are the larger of two absolute differences `|d_1|`
    and `|d_2|`. If the intervals of these are (l_1, u_1) and (l_2, u_2), the interval of the measure is::

        max(l_1, l_2)  ...  max(u_1, u_2)

    Parameters
    ----------
    name
        The name of the measure.
    decided
        Mask of the rows with a positive decision, (n,).
    wanted
        Mask of the rows with a positive label, (n,).
    favoured
        Mask of the rows with a positive viewpoint, (n,).
    """
    among = {"balanced": np.ones_like(wanted), "equal_opportunity": wanted, "predictive_equality": ~wanted}
    metric = metrics.METRICS.get(name)
    weights = metric.weights if metric is not None and metric.is_agreement else ()
    if name == "accuracy":
        return estimate(decided == wanted)[1]
    if weights == ("uniform",):
        low, high = estimate(decided == favoured)[1]
        return absolute_interval((2 * low - 1, 2 * high - 1))
    if not weights or not among.keys() >= set(weights):
        return None
    ends = [estimate(decided[among[w] & favoured], decided[among[w] & ~favoured])[1] for w in weights]
    sizes = ends if len(ends) == 1 else [absolute_interval(end) for end in ends]
    return max(low for low, _ in sizes), max(high for _, high in sizes)


def decisions_of(task: TableTask, scores: Floats, plain: Floats) -> dict[str, float]:
    """Return counts of decisions per 1,000 rows, by name.

    They count the decisions that are right, positive or wrong, and those that differ from the plain model's.

    Parameters
    ----------
    task, scores
        As for `groups_of`.
    plain
        The scores of the model without neutrality, (n,).
    """
    if task.numbers is not None:
        return {}
    decided, before, wanted = scores > 0, plain > 0, task.y > 0
    counted = {
        "correct": decided == wanted,
        "positive": decided,
        "to_positive": decided & ~before,
        "to_negative": ~decided & before,
        "changed": decided != before,
        "wrongly_negative": ~decided & wanted,
        "wrongly_positive": decided & ~wanted,
    }
    return {name: float(1000 * rows.mean()) for name, rows in counted.items()}


def held_out_bounds(
    task: TableTask, scores: Floats, delta: float, part: Ints | None = None, models: int = 1
) -> list[Statement]:
    """Return the hold-out bounds, which hold for all compared models simultaneously.

    delta is divided by the number of models, terms and folds, so the bounds stay valid if a model is chosen
    after looking at them. With several folds they are about the mean over the models of the folds.

    Parameters
    ----------
    task, scores
        Rows that were not used in a fit, and their scores, (n,).
    delta
        Probability with which a bound may fail.
    part
        The fold in which each row was held out, (n,); by default there is one fold.
    models
        Number of models that are compared.
    """
    part, views = np.zeros(len(task), dtype=int) if part is None else part, [*task.terms.values()]
    parts = np.unique(part)
    share = delta / (models * len(parts) * len(views))
    note = (
        f"about the mean of {len(parts)} models" if len(parts) > 1 else "if these rows are new to the model"
    )
    note += ", for all models at once" if models > 1 else ""
    statements = []
    for quantity, measure, bound in HELD_OUT:
        with suppress(InvalidInputError), warnings.catch_warnings(action="ignore"):  # a part may lack a group
            parted = [[bound(scores[part == k], v[part == k], delta=share) for k in parts] for v in views]
            most = float(np.mean(parted, axis=1).max())
            sample = max(abs(measure(scores, v)) for v in views)
            remark = note if most < 1 else "no better than the largest possible value, 1"
            statements.append(
                Statement(quantity, "held-out rows", sample, min(most, 1.0), "", most >= 1, remark)
            )
    return statements
