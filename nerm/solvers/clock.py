"""Deadlines: the moment at which a solver has to stop, on the clock of `time.perf_counter`."""

import math
from time import perf_counter

NEVER = math.inf


def after(seconds: float | None) -> float:
    """Return the deadline after so many seconds; NEVER for None."""
    return NEVER if seconds is None else perf_counter() + seconds


def is_up(deadline: float) -> bool:
    """Tell whether a deadline has passed."""
    return perf_counter() >= deadline


def left(deadline: float) -> float:
    """Return the seconds up to a deadline, at least 0.001: some solvers take 0 for no limit."""
    return max(deadline - perf_counter(), 1e-3)


def share(deadline: float, among: int) -> float:
    """Return the end of the first of so many equal shares of the time that is left.

    >>> share(NEVER, 2)
    inf
    """
    now = perf_counter()
    return now + (deadline - now) / among
