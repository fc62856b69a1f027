"""Time limits: a solver is told the moment `deadline` at which it has to stop, on the clock of `time.perf_counter`."""

import math
from time import perf_counter

NEVER = math.inf


def after(seconds: float | None) -> float:
    """Return the moment that is so many seconds away; without a limit it never comes."""
    return NEVER if seconds is None else perf_counter() + seconds


def is_up(deadline: float) -> bool:
    """Tell whether a moment has come."""
    return perf_counter() >= deadline


def left(deadline: float) -> float:
    """Return the seconds up to a moment, at least a thousandth: to some solvers 0 means that there is no limit."""
    return max(deadline - perf_counter(), 1e-3)


def share(deadline: float, among: int) -> float:
    """Return the moment at which the first of so many equal shares of the time that is left ends.

    >>> share(NEVER, 2)
    inf
    """
    now = perf_counter()
    return now + (deadline - now) / among
