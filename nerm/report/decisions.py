"""What scores mean for people: rates in each group, and decisions per 1,000 that another model makes differently."""

from collections.abc import Callable
from dataclasses import dataclass

from nerm.collapse import collapse
from nerm.tables.roles import TableTask
from nerm.typing import Bools, Floats

PER = 1000.0
ADVICE = "try --class-weight balanced, or a smaller --lam or --eta"


@dataclass(frozen=True)
class Group:
    """One group: how many rows, and rates in [0, 1]; nan where no row could show the rate."""

    name: str
    rows: int
    base_rate: float
    positive_rate: float
    true_positive_rate: float
    false_positive_rate: float
    accuracy: float


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
    """Return the rates of the favoured group and of the other one.

    Parameters
    ----------
    task
        The rows.
    scores
        f of each row, (n,); a positive one is a positive decision.
    """
    decided, wanted = scores > 0, task.y > 0
    groups = []
    for sign in (1, -1):
        among = task.v * sign > 0
        groups.append(
            Group(
                name=task.viewpoint.group(sign),
                rows=int(among.sum()),
                base_rate=_rate(wanted, among),
                positive_rate=_rate(decided, among),
                true_positive_rate=_rate(decided, among & wanted),
                false_positive_rate=_rate(decided, among & ~wanted),
                accuracy=_rate(decided == wanted, among),
            )
        )
    return tuple(groups)


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
    groups = {task.viewpoint.group(sign): task.v * sign > 0 for sign in (1, -1)}
    return collapse(scores, (task.y > 0).astype(int), classes, groups, plain=plain)


def _per(rows: Bools) -> float:
    return float(PER * rows.mean())


def _rate(of: Bools, among: Bools) -> float:
    return float(of[among].mean()) if among.any() else float("nan")
