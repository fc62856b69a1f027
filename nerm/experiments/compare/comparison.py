"""`compare_solvers`: every solver on every problem at every accuracy, judged by nerm's certificate."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from nerm.errors import InvalidInputError, MissingPackageError
from nerm.experiments.compare.cases import EDITION, Case, chosen
from nerm.experiments.records import Key, Records, Row
from nerm.experiments.running import Workers, progress_bar
from nerm.validation import as_positive, check_known

if TYPE_CHECKING:
    from nerm.experiments.compare.fork_server import ForkServer

COLUMNS = (
    "problem", "family", "n", "d", "solver", "version", "tol", "peak_mb", "claim", "status", "certified_gap",
    "correct_claim", "reason", "case",
)  # fmt: skip
SHOWN = (*COLUMNS[:7], "seconds", *COLUMNS[7:])
KEYS = ("problem", "case", "solver", "version", "tol")
STATUS = COLUMNS.index("status")
SUCCESS = re.compile(r"(optimal|solved|converged)\b(?!.*(inaccurate|; but))", re.IGNORECASE)
TOLS = (1e-3, 1e-5, 1e-7)


def compare_solvers(
    problems: str | Sequence[Case] = "default",
    solvers: Sequence[Any] | None = None,
    *,
    tols: Sequence[float] = TOLS,
    time_limit: float = 10.0,
    memory_limit: float = 4096.0,
    n_jobs: int = 1,
    results: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Any:
    """Run every solver on every problem at every accuracy; return a table with one row a run.

    Parameters
    ----------
    problems
        "default" (at least 60), "quick", or a list of `Case`.
    solvers
        Names of `nerm.solvers.available()` (default: all of them), or `Solver` objects that can be pickled.
    tols
        Relative duality gaps that nerm is to certify.
    time_limit
        Seconds that a solver has for one run, enforced from outside: each run is a process of its own, which
        is killed. A solver that was killed at one accuracy is not asked for a finer one on that problem: its
        row says so.
    memory_limit
        Megabytes of address space that a run may add to what it starts with (Linux only); beyond it
        allocations fail.
    n_jobs
        Runs at a time; each uses one thread.
    results
        A .csv file: appended to as results come, resumed after an interruption, extended by a later run with
        other problems, solvers or accuracies. The table then has all its rows. One from another version of
        nerm or of the problem set, or with other limits, is refused.
    progress
        A bar with the time left; by default on a terminal only.

    Returns
    -------
    DataFrame
        With the columns problem, family, n, d, solver, version, tol; `seconds` spent by the solver (building
        its model included, nerm's certificate not); `peak_mb`, by how much the process grew meanwhile;
        `claim`, the solver's own words; `status`: solved (the only success), inaccurate, no answer, error,
        crashed, time limit or not taken (not held against a solver); `certified_gap`, recomputed by nerm;
        `correct_claim`: 1 or 0 where the solver claims success (0 too for "infeasible" or "unbounded", which
        these problems never are), else nan; `reason` in words; `case`, a fingerprint. ``table.attrs`` has the
        time limit.

    >>> table = compare_solvers([Case("tiny", "size", n=20, d=2)], ["clarabel"], tols=[1e-5])
    >>> table[["problem", "solver", "status", "correct_claim"]].values.tolist()
    [['tiny', 'clarabel', 'solved', 1]]
    """
    if not hasattr(os, "fork"):
        raise MissingPackageError(
            "compare_solvers needs a system on which processes can fork. This one cannot. Use Linux or macOS."
        )
    Workers(n_jobs)  # checked
    limit, memory = as_positive(time_limit, "time_limit"), as_positive(memory_limit, "memory_limit")
    accuracies = sorted({as_positive(tol, "tols") for tol in tols}, reverse=True)
    series = [_Series(case, s, v, limit, memory) for case in chosen(problems) for s, v in _solvers(solvers)]
    asked = {one.key(tol) for one in series for tol in accuracies}
    if not asked:
        raise InvalidInputError("'tols' and 'solvers' must not be empty", "nothing to run", "Leave them out")
    from nerm import __version__

    settings = {"experiment": "compare_solvers", "nerm": __version__, "edition": EDITION}
    settings |= {"time_limit": limit, "memory_limit": memory}
    with Records(results, settings, COLUMNS, KEYS).opened() as records:
        with progress_bar("solvers", len(asked), len(asked & records.cells.keys()), progress) as step:
            _run_all(series, accuracies, records, n_jobs, step)
        table = records.frame()[list(SHOWN)]
    table.attrs["time_limit"] = limit
    return table


@dataclass(frozen=True)
class _Series:
    """One solver on one problem, from the coarsest accuracy to the finest."""

    case: Case
    solver: Any
    version: str
    limit: float
    memory: float

    def key(self, tol: float) -> Key:
        name = self.solver if isinstance(self.solver, str) else str(self.solver.name)
        case = hashlib.sha256(json.dumps(asdict(self.case), sort_keys=True).encode()).hexdigest()[:8]
        return (self.case.name, case, name, self.version, str(tol))

    def run(self, server: ForkServer, tol: float, slow: float | None) -> Row:
        """Return the row of one accuracy; `slow` is a coarser one at which the time was up already."""
        if slow is None:
            found = server.run(self.solver, self.case, tol, self.limit, self.memory)
        else:
            reason = f"not tried: the time was up at tol {slow:g} already"
            found = {"status": "time limit", "seconds": self.limit, "reason": reason}
        row = {"n": self.case.n, "d": self.case.d, "claim": "", "reason": "", "peak_mb": math.nan, **found}
        row |= dict(zip(KEYS, self.key(tol), strict=True)) | {"family": self.case.family, "tol": tol}
        row |= {"peak_mb": round(row["peak_mb"], 2), "reason": row["reason"][:300]}
        row["correct_claim"] = _correct(row["claim"], row["status"] == "solved")
        return row


def _correct(claim: str, solved: bool) -> float:
    """Return 1 or 0 for a claim that is right or wrong, nan for none; these problems always have an optimum."""
    return int(solved) if claims_success(claim) else 0 if claims_no_optimum(claim) else math.nan


def claims_success(claim: str) -> bool:
    """Whether a solver's own words say that the problem is solved, without a reservation.

    >>> [claims_success(c) for c in ("optimal", "optimal_inaccurate", "solved inaccurate", "not converged")]
    [True, False, False, False]
    """
    return SUCCESS.match(claim) is not None


def claims_no_optimum(claim: str) -> bool:
    """Whether a solver says that the problem is infeasible or unbounded.

    >>> claims_no_optimum("infeasible_inaccurate"), claims_no_optimum("optimal")
    (True, False)
    """
    return any(word in claim.lower() for word in ("infeasible", "unbounded")) and not claim.startswith(
        "error"
    )


def _run_all(
    series: Sequence[_Series],
    tols: Sequence[float],
    records: Records,
    n_jobs: int,
    step: Callable[[bool], None],
) -> None:
    """Run and record what is not recorded yet, row by row; every server takes one series after the other."""
    from joblib import effective_n_jobs

    from nerm.experiments.compare import fork_server

    todo = [one for one in series if any(one.key(tol) not in records.cells for tol in tols)]
    servers = [fork_server.ForkServer() for _ in range(min(effective_n_jobs(n_jobs), len(todo)))]
    waiting, recording, ended = iter(todo), threading.Lock(), threading.Event()

    def serve(server: ForkServer) -> None:
        for one in waiting:
            slow = None
            for tol in tols:
                key = one.key(tol)
                if key not in records.cells and not ended.is_set():
                    row = one.run(server, tol, slow)
                    with recording:
                        if ended.is_set():  # it was closed under the run, which is worth nothing
                            server.close()
                            return
                        records.add(key, [row])
                        step(row["status"] not in ("solved", "not taken"))
                if slow is None and key in records.cells and records.cells[key][0][STATUS] == "time limit":
                    slow = tol

    with ThreadPoolExecutor(max(len(servers), 1)) as pool:
        try:
            for future in as_completed([pool.submit(serve, server) for server in servers]):
                future.result()
        finally:
            ended.set()
            for server in servers:
                server.close()


def _solvers(solvers: Sequence[Any] | None) -> list[tuple[Any, str]]:
    """Return names (or objects, where the registry has none of that name) with their versions."""
    from nerm.solvers.base import Solver
    from nerm.solvers.registry import available

    here = available()
    found: list[tuple[Any, str]] = []
    for solver in sorted(here) if solvers is None else solvers:
        if isinstance(solver, str):
            check_known(solver, "'solvers'", here)
            found.append((solver, here[solver].version()))
        elif isinstance(solver, Solver):
            found.append((solver, solver.version()))
        else:
            must = "'solvers' must hold names or Solver objects"
            raise InvalidInputError(must, repr(solver)[:60], "See nerm.solvers.available()")
    return found
