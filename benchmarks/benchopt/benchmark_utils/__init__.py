"""The problems and peers of the benchmarks beside this folder."""

import sys
from pathlib import Path

from benchopt.stopping_criterion import NoCriterion

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))


#: One run after the other, until --max-runs or --timeout: equal answers at two loose tolerances say nothing.
EVER_FINER = NoCriterion(strategy="tolerance")


def bounded(tolerance: float) -> float:
    """Return a tolerance about a tenth of the last run's, within what solvers take; benchopt divides by 1.5 a run."""
    return min(max(min(tolerance, 1.0) ** 6, 1e-9), 0.1)
