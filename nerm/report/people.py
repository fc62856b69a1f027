"""What scores mean for people: rates in each group, and decisions per 1,000 that another model makes differently."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from nerm.tables.roles import TableTask

PER = 1000.0


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
class People:
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


def groups_of(task: TableTask, scores: np.ndarray) -> tuple[Group, ...]:
    """Return the rates of the favoured group and of the other one."""
    decided, wanted = scores > 0, task.y > 0
    groups = []
    for sign in (1, -1):
        among = (task.v > 0) == (sign > 0)
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


def people_of(task: TableTask, scores: np.ndarray, plain: np.ndarray) -> People:
    """Return decisions per 1,000 people, compared with those of the plain scores."""
    decided, before, wanted = scores > 0, plain > 0, task.y > 0

    def per(rows: np.ndarray) -> float:
        return float(PER * rows.mean())

    return People(
        correct=per(decided == wanted),
        positive=per(decided),
        to_positive=per(decided & ~before),
        to_negative=per(~decided & before),
        wrongly_negative=per(~decided & wanted),
        wrongly_positive=per(decided & ~wanted),
    )


def _rate(of: np.ndarray, among: np.ndarray) -> float:
    return float(of[among].mean()) if among.any() else float("nan")
