"""How well probabilities hold: what was said, and how often it came true, in each group."""

from dataclasses import dataclass

import numpy as np

from nerm.intervals import Interval, rate_interval
from nerm.tables.roles import TableTask
from nerm.typing import Floats, Ints

BINS = 5


@dataclass(frozen=True)
class Bin:
    """Rows of one group with similar probabilities: their mean, and how many of them were positive (Wilson, 95 %)."""

    rows: int
    said: float
    came_true: float
    interval: Interval


@dataclass(frozen=True)
class Calibration:
    """One group: the mean probability, the rate of positives, and the same in bins of equally many rows."""

    group: str
    rows: int
    said: float
    came_true: float
    interval: Interval
    bins: tuple[Bin, ...]


def calibration_of(task: TableTask, probability: Floats) -> tuple[Calibration, ...]:
    """Return how well probabilities hold in each group.

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
        rows = rows[np.argsort(probability[rows], kind="stable")]
        bins = [
            _bin(task, probability, part) for part in np.array_split(rows, min(BINS, len(rows))) if len(part)
        ]
        if bins:
            every = _bin(task, probability, rows)
            found.append(
                Calibration(name, len(rows), every.said, every.came_true, every.interval, tuple(bins))
            )
    return tuple(found)


def _bin(task: TableTask, probability: Floats, rows: Ints) -> Bin:
    positive = int((task.y[rows] > 0).sum())
    said = float(probability[rows].mean())
    return Bin(len(rows), said, positive / len(rows), rate_interval(positive, len(rows)))
