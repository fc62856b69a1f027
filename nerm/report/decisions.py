"""What scores mean for people: rates in each group, and decisions per 1,000 that another model makes differently."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from nerm import metrics
from nerm.intervals import FEW, Interval, absolute_interval, difference_interval, rate_interval
from nerm.neutralize.collapse import collapse
from nerm.tables.roles import TableTask
from nerm.typing import Bools, Floats

PER = 1000.0
ADVICE = "try --class-weight balanced, or a smaller --lam or --eta"


@dataclass(frozen=True)
class Group:
    """One group: how many rows, and rates in [0, 1]; nan where no row could show the rate.

    Attributes
    ----------
    name, rows
        As in "sex = f", and how many of them.
    base_rate, positive_rate, true_positive_rate, false_positive_rate, accuracy
        The rates.
    intervals
        By the name of a rate, where it may be (Wilson, 95 %).
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
        return self.rows < FEW

    @property
    def rates(self) -> dict[str, float]:
        """The rates by name."""
        return {name: getattr(self, name) for name in self.intervals}


@dataclass(frozen=True)
class Difference:
    """How much more often the first of two sides gets a positive decision, and where that may be (Newcombe, 95 %)."""

    one: str
    other: str
    value: float
    interval: Interval
    few: bool

    @property
    def name(self) -> str:
        """Who is compared with whom."""
        return f"{self.one} − {self.other}"


@dataclass(frozen=True)
class Measures:
    """The measures of some scores; of several groups that are set against the rest, the largest in size counts.

    Attributes
    ----------
    values
        Those of `nerm.metrics.report`, by name.
    intervals
        Where they may be (95 %), for those that are rates or differences of rates.
    undefined
        Why a measure is not defined.
    """

    values: dict[str, float]
    intervals: dict[str, Interval]
    undefined: dict[str, str]


@dataclass(frozen=True)
class Decisions:
    """Counts per 1,000 people (of everyone, not of a group), against the model without neutrality."""

    correct: float
    positive: float
    to_positive: float
    to_negative: float
    wrongly_negative: float
    wrongly_positive: float

    @property
    def changed(self) -> float:
        """Decisions that are different from those without neutrality."""
        return self.to_positive + self.to_negative


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
        rates = {rate: k / n if n else float("nan") for rate, (k, n) in counts.items()}
        intervals = {rate: rate_interval(k, n) for rate, (k, n) in counts.items()}
        groups.append(Group(name, int(among.sum()), **rates, intervals=intervals))
    return tuple(groups)


def differences_of(task: TableTask, scores: Floats) -> tuple[Difference, ...]:
    """Return the differences in positive rates: each group against the rest, then the largest between any two.

    Parameters
    ----------
    task, scores
        As for `groups_of`.
    """
    decided, groups = scores > 0, task.groups
    found = []
    for name, signs in task.terms.items():
        others = [other for other, among in groups.items() if (among == (signs < 0)).all()]
        found.append(_difference(decided, name, others[0] if others else "the rest", signs > 0, signs < 0))
    if len(found) > 1:
        enough = [name for name, among in groups.items() if among.sum() >= FEW]
        enough = enough or [name for name, among in groups.items() if among.any()]
        rates = {name: float(decided[groups[name]].mean()) for name in enough}
        columns = {name.partition(" = ")[0] for name in rates}
        pairs = []
        for column in columns:
            own = [name for name in rates if name.partition(" = ")[0] == column]
            pairs.append((max(own, key=rates.__getitem__), min(own, key=rates.__getitem__)))
        high, low = max(pairs, key=lambda pair: rates[pair[0]] - rates[pair[1]])
        found.append(_difference(decided, high, low, groups[high], groups[low]))
    return tuple(found)


def _difference(decided: Bools, one: str, other: str, these: Bools, those: Bools) -> Difference:
    (k, n), (k2, n2) = _count(decided, these), _count(decided, those)
    value = k / n - k2 / n2 if n and n2 else float("nan")
    return Difference(one, other, value, difference_interval((k, n), (k2, n2)), min(n, n2) < FEW)


def measures_of(task: TableTask, scores: Floats) -> Measures:
    """Return the measures of some scores.

    Parameters
    ----------
    task, scores
        As for `groups_of`.
    """
    reports = [(metrics.report(task.y, scores, v), v) for v in task.terms.values()]
    values, intervals, undefined = dict[str, float](), dict[str, Interval](), dict[str, str]()
    for name in reports[0][0].as_dict():
        report, v = max(reports, key=lambda pair: np.nan_to_num(abs(pair[0].as_dict()[name]), nan=-1.0))
        values[name] = report.as_dict()[name]
        if name in report.undefined:
            undefined[name] = report.undefined[name]
        elif name in INTERVALS:
            intervals[name] = INTERVALS[name](scores > 0, task.y > 0, v > 0)
    return Measures(values, intervals, undefined)


def _of_agreement(decided: Bools, wanted: Bools, favoured: Bools) -> Interval:
    """C_sgn is |2 p - 1| of the rate p of agreement."""
    low, high = rate_interval(*_count(decided == favoured, np.ones(len(decided), dtype=bool)))
    return absolute_interval((2 * low - 1, 2 * high - 1))


def _of_rates(decided: Bools, among: Bools, favoured: Bools) -> Interval:
    return difference_interval(_count(decided, among & favoured), _count(decided, among & ~favoured))


def _of_odds(decided: Bools, wanted: Bools, favoured: Bools) -> Interval:
    """Of the larger of two differences in size: from the larger lower end to the larger upper end."""
    ends = [absolute_interval(_of_rates(decided, among, favoured)) for among in (wanted, ~wanted)]
    return max(low for low, _ in ends), max(high for _, high in ends)


#: (decided, wanted, favoured) -> interval, by the measure's name.
INTERVALS: dict[str, Callable[[Bools, Bools, Bools], Interval]] = {
    "accuracy": lambda decided, wanted, favoured: rate_interval(
        *_count(decided == wanted, np.ones_like(wanted))
    ),
    "neutrality_risk": _of_agreement,
    "calders_verwer_score": lambda decided, wanted, favoured: _of_rates(
        decided, np.ones_like(wanted), favoured
    ),
    "equal_opportunity_difference": _of_rates,
    "equalized_odds_difference": _of_odds,
}


def decisions_of(task: TableTask, scores: Floats, plain: Floats) -> Decisions:
    """Return decisions per 1,000 people.

    Parameters
    ----------
    task, scores
        As for `groups_of`.
    plain
        The scores of the model without neutrality, (n,).
    """
    decided, before, wanted = scores > 0, plain > 0, task.y > 0
    return Decisions(
        correct=_per(decided == wanted),
        positive=_per(decided),
        to_positive=_per(decided & ~before),
        to_negative=_per(~decided & before),
        wrongly_negative=_per(~decided & wanted),
        wrongly_positive=_per(decided & ~wanted),
    )


def collapse_of(task: TableTask, scores: Floats, plain: Callable[[], Floats] | None = None) -> str | None:
    """Say that a model is nearly constant or that its positive rate collapsed, in the words of the table.

    Parameters
    ----------
    task, scores
        As for `groups_of`.
    plain
        Returns the scores of the model without neutrality, (n,).
    """
    classes = [f"“{task.target.group(sign)}”" for sign in (-1, 1)]
    return collapse(scores, (task.y > 0).astype(int), classes, task.groups, plain=plain)


def _per(rows: Bools) -> float:
    return float(PER * rows.mean())


def _count(of: Bools, among: Bools) -> tuple[int, int]:
    """Return how many of these rows are among those, and how many those are."""
    return int(np.count_nonzero(of & among)), int(np.count_nonzero(among))
