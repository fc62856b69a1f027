"""One solver on one problem at one accuracy, in a process of its own: what the child of a fork server does.

It says where it is ("solving", "judging", "done") so that the server can hold it to its time, and what it has found so
far, so that nothing is lost when it is killed.
"""

import importlib
import math
import pickle
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from nerm.errors import UnsupportedProblemError

Say = Callable[..., None]
_SUCCESS = re.compile(r"(optimal|solved|converged)\b(?!.*(inaccurate|; but))", re.IGNORECASE)


def claims_success(claim: str) -> bool:
    """Whether a solver's own words say that the problem is solved, without a reservation.

    >>> [claims_success(c) for c in ("optimal", "optimal_inaccurate", "solved inaccurate", "not converged")]
    [True, False, False, False]
    """
    return _SUCCESS.match(claim) is not None


def claims_no_optimum(claim: str) -> bool:
    """Whether a solver says that the problem is infeasible or unbounded.

    >>> claims_no_optimum("infeasible_inaccurate"), claims_no_optimum("optimal")
    (True, False)
    """
    return any(word in claim.lower() for word in ("infeasible", "unbounded")) and not claim.startswith("error")


def run(payload: bytes, say: Say) -> None:
    """Make the problem, solve it, judge the answers; everything that is known goes through ``say(phase, **facts)``."""
    reference, case, tol = pickle.loads(payload)
    from nerm.solvers import known

    problem = case.problem()
    say("preparing", n=problem.n, d=int(problem.hypothesis.X.shape[1]))
    try:
        solver = known()[reference] if isinstance(reference, str) else reference
        obstacle = solver.obstacle(problem)
        if obstacle is not None:
            say("done", status="not taken", reason=obstacle)
            return
        importlib.import_module(solver.module)  # not a part of solving
        _solve(solver, problem, tol, say)
    except UnsupportedProblemError as error:
        say("done", status="not taken", reason=str(error))
    except BaseException as error:
        say("done", status="error", reason=f"{type(error).__name__}: {error}")


def _solve(solver: Any, problem: Any, tol: float, say: Say) -> None:
    """Ask for an answer, and for finer ones while nerm's certificate is not content, as `Problem.solve` does."""
    session, spent, gap = None, 0.0, math.nan
    start = peak_megabytes()
    for accuracy in solver.accuracies(tol):
        say("solving", start_mb=start)
        started = time.perf_counter()
        session = session or solver.open(problem)
        answer = session.answer(problem, accuracy, {})
        spent += time.perf_counter() - started
        claim = str(answer.claim)
        say("judging", seconds=spent, peak_mb=peak_megabytes() - start, claim=claim)
        found, complaint = _judged(problem, answer, tol)
        gap = found if math.isnan(gap) else min(gap, found) if not math.isnan(found) else gap
        if gap <= tol:
            say("done", status="solved", certified_gap=gap, reason="")
            return
        status = "no answer" if math.isnan(gap) else "inaccurate"
        say("judged", status=status, certified_gap=gap, reason=complaint)
    say("done")


def _judged(problem: Any, answer: Any, tol: float) -> tuple[float, str]:
    """Return the relative gap that nerm certifies, recomputed from the numbers alone, and what is wrong with it."""
    from nerm.certificate import judge

    if answer.coef is None:
        return math.nan, "it returned no hypothesis"
    coef = np.asarray(answer.coef, dtype=float)
    if coef.shape != (problem.hypothesis.size,):
        return math.nan, f"it returned coefficients of shape {coef.shape}"
    if not (np.isfinite(coef).all() and math.isfinite(answer.intercept)):
        return math.nan, "it returned numbers that are not finite"
    _, certificate, _ = judge(problem, coef, float(answer.intercept), answer.multipliers, tol)
    gap = certificate.relative_gap
    return gap, f"nerm certifies a relative gap of {gap:.1e} only"


def peak_megabytes() -> float:
    """Return the most memory that this process has held at any time."""
    import resource

    return in_megabytes(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def in_megabytes(maxrss: float) -> float:
    """Return what `resource` calls ru_maxrss in megabytes: it counts kilobytes, on macOS bytes."""
    return maxrss / (2**20 if sys.platform == "darwin" else 2**10)
