"""Solve hostile problems with nerm, check the solutions, and count outcomes by tier and class."""

from __future__ import annotations

import signal
import time
import warnings
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field

import nerm
from tests.adversary.problems import Case
from tests.adversary.reference import NEGLIGIBLE, L, Reference

SLOW = 20.0
OUTCOMES = ("right", "not certified", "wrong", "exception", "refused", "warning", "slow")


@dataclass
class Tally:
    """Counts of outcomes, and a note on each that is not right."""

    counts: Counter = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    loud: bool = False

    def add(self, case: Case, outcome: str, note: str) -> None:
        """Count one case."""
        self.counts[case.tier, case.kind, outcome] += 1
        if outcome != "right":
            self.notes.append(f"{outcome}: {case.tier} {case.seed} ({case.kind}, {case.loss}): {note}")
            if self.loud:
                print(self.notes[-1], flush=True)

    def total(self, outcome: str, tier: str | None = None) -> int:
        """Return how often an outcome occurred."""
        return sum(count for (t, _, o), count in self.counts.items() if o == outcome and tier in (None, t))

    def table(self) -> str:
        """Return the counts by tier and class."""
        rows = sorted({(tier, kind) for tier, kind, _ in self.counts})
        lines = [f"{'tier':<10}{'class':<36}" + "".join(f"{name:>11}" for name in OUTCOMES)]
        for tier, kind in rows:
            numbers = "".join(f"{self.counts[tier, kind, name]:>11}" for name in OUTCOMES)
            lines.append(f"{tier:<10}{kind:<36}{numbers}")
        for tier in sorted({tier for tier, _ in rows}):
            lines.append(
                f"{tier:<10}{'all':<36}" + "".join(f"{self.total(name, tier):>11}" for name in OUTCOMES)
            )
        return "\n".join(lines)


@contextmanager
def at_most(seconds: float):
    """Raise TimeoutError in a block that takes longer."""

    def ring(*_):
        raise TimeoutError(f"more than {seconds:g} s")

    before = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def attack(case: Case, tally: Tally, tol: float = 1e-6) -> None:
    """Solve one case and count its outcome."""
    started = time.process_time()
    try:
        with at_most(5 * SLOW), warnings.catch_warnings():
            warnings.simplefilter("error")
            warnings.filterwarnings("ignore", message=".*(not centred|in every row)")  # hostile viewpoints
            solution = case.problem().solve(tol=tol)
    except TimeoutError as error:
        return tally.add(case, "slow", str(error))
    except nerm.NermError as error:
        return tally.add(case, "refused", str(error))
    except Warning as error:
        return tally.add(case, "warning", repr(error))
    except Exception as error:
        return tally.add(case, "exception", repr(error))
    seconds = time.process_time() - started
    if seconds > SLOW:
        return tally.add(case, "slow", f"{seconds:.0f} s")
    return tally.add(case, *check(case, solution, tol))


def check(case: Case, solution: nerm.Solution, tol: float) -> tuple[str, str]:
    """Compare a solution with the reference; return the outcome and a note."""
    reference = Reference(case)
    value, hidden = reference.value(solution.coef, solution.intercept)
    zero, _ = reference.value(0 * solution.coef, 0.0)
    certificate = solution.certificate
    size = max(abs(value), NEGLIGIBLE * abs(zero))
    best = min(
        (reference.value(*other) for other in reference.competitors()), key=lambda pair: pair[0] + pair[1]
    )
    if value - hidden > zero + L(1e-9) * abs(zero):
        return "wrong", f"worse than f = 0: {float(value):.10g} against {float(zero):.10g}"
    if (solution.status == "optimal") != (certificate.relative_gap <= tol):
        return "wrong", f"status {solution.status} at a relative gap of {certificate.relative_gap:.2g}"
    if solution.status != "optimal":
        return "not certified", f"{certificate}, reference {float(best[0]):.10g}"
    allowed = tol * size + hidden + best[1]
    if value - best[0] > allowed:
        return "wrong", f"{float((value - best[0]) / size):.2g} above {float(best[0]):.10g}; {certificate}"
    if certificate.dual - best[0] > allowed:
        return "wrong", f"bound {float((certificate.dual - best[0]) / size):.2g} above {float(best[0]):.10g}"
    if abs(value - certificate.primal) > allowed:
        return "wrong", f"objective {certificate.primal:.12g}, in long doubles {float(value):.12g}"
    return "right", ""
