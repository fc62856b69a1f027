"""The output of ``verbose=True``: one line per solve, and a progress bar if the output is a terminal."""

import sys
from collections.abc import Iterable

from nerm.certify.solution import SECONDS, Solution


def print_solve(solution: Solution, note: str = "") -> None:
    """Print one line about a solve: solver, rows, objective, certified relative gap, seconds, and a note."""
    stats, seconds = solution.stats, sum(getattr(solution.stats, name) for name in SECONDS)
    rows, gap = stats.details.get("rows", solution.problem.n), solution.certificate.relative_gap
    print_line(stats.solver, rows, solution.objective.total, gap, seconds, note)


def print_line(solver: str, rows: int, objective: float, gap: float, seconds: float, note: str) -> None:
    """Print one line of `print_solve`, or about one pass over chunks.

    >>> print_line("smo", 1000, 0.25, 1e-7, 0.5, "eta 1")
    smo                       1,000 rows  objective 0.25         gap 1.0e-07      0.50 s  eta 1
    """
    numbers = f"objective {objective:<12.8g} gap {gap:.1e}  {seconds:8.2f} s"
    print(f"{solver:<20} {rows:>10,} rows  {numbers}  {note}".rstrip(), flush=True)


def with_bar(solutions: Iterable[Solution], total: int) -> Iterable[Solution]:
    """Show a progress bar while solutions are computed, if there are several and the output is a terminal."""
    if total < 2 or not sys.stdout.isatty():
        return solutions
    from rich.progress import track

    return track(solutions, "solving", total=total, transient=True)
