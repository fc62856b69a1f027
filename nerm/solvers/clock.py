"""Deadlines: the time at which a solver must stop, on the clock of `time.perf_counter`."""

import math
from time import perf_counter

NEVER = math.inf


def after(seconds: float | None) -> float:
    """Return the deadline that is `seconds` from now; NEVER for None."""
    return NEVER if seconds is None else perf_counter() + seconds


def is_up(deadline: float) -> bool:
    """Return whether a deadline has passed."""
    return perf_counter() >= deadline


def left(deadline: float) -> float:
    """Return the seconds until a deadline, at least 0.001, because 0 means no limit for some solvers."""
    return max(deadline - perf_counter(), 1e-3)


def share(deadline: float, among: int) -> float:
    """Divide the time until the deadline into `among` equal parts and return the end of the first part.

    >>> share(NEVER, 2)
    inf
    """
    now = perf_counter()
    return now + (deadline - now) / among
