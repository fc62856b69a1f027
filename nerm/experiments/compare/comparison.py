"""`compare_solvers`: every solver on every problem at every accuracy, judged by nerm's certificate."""

from __future__ import annotations

import math
import os
import queue
import threading
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from nerm.errors import InvalidInputError, MissingPackageError, UnknownNameError
from nerm.experiments.compare.cases import EDITION, Case, chosen
from nerm.experiments.records import MARK, Key, Records, Row, check_header, fingerprint
from nerm.experiments.running import Progress, check_workers
from nerm.validation import as_positive

COLUMNS = (
    "problem", "family", "n", "d", "solver", "version", "tol", "peak_mb", "claim", "status", "certified_gap",
    "correct_claim", "reason", "case",
)  # fmt: skip
SHOWN = (*COLUMNS[:7], "seconds", *COLUMNS[7:])
KEYS = ("problem", "case", "solver", "version", "tol")
TOLS = (1e-3, 1e-5, 1e-7)
#: What can become of a run. Only the first is a success; the last is not held against a solver.
STATUSES = ("solved", "inaccurate", "no answer", "error", "crashed", "time limit", "not taken")


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

    problems
        "default" (at least 60), "quick", or a list of `Case`.
    solvers
        Names of `nerm.solvers.available()` (default: all of them), or `Solver` objects that can be pickled.
    tols
        Relative duality gaps that nerm is to certify.
    time_limit
        Seconds that a solver has for one run, enforced from outside: each run is a process of its own, which is killed.
        A solver that was killed at one accuracy is not asked for a finer one on that problem: its row says so.
    memory_limit
        Megabytes of address space that a run may add to what it starts with (Linux only); beyond it allocations fail.
    n_jobs
        Runs at a time; each uses one thread.
    results
        A .csv file: appended to as results come, resumed after an interruption, extended by a later run with other
        problems, solvers or accuracies. The table then has all its rows. One from another version of nerm or of the
        problem set, or with other limits, is refused.

    Columns: problem, family, n, d, solver, version, tol; `seconds` spent by the solver (building its model included,
    nerm's certificate not); `peak_mb`, by how much the process grew meanwhile; `claim`, the solver's own words;
    `status`: solved, inaccurate, no answer, error, crashed, time limit or not taken; `certified_gap`, recomputed by
    nerm; `correct_claim`: 1 or 0 where the solver claims success (0 too for
    "infeasible" or "unbounded", which these problems never are), else nan; `reason` in words; `case`, a fingerprint.
    ``table.attrs`` has the time limit.

    >>> table = compare_solvers([Case("tiny", "size", n=20, d=2)], ["clarabel"], tols=[1e-5])
    >>> table[["problem", "solver", "status", "correct_claim"]].values.tolist()
    [['tiny', 'clarabel', 'solved', 1]]
    """
    if not hasattr(os, "fork"):
        raise MissingPackageError(
            "compare_solvers needs a system on which processes can fork. This one cannot. Use Linux or macOS."
        )
    check_workers(n_jobs, "joblib")
    limit, memory = as_positive(time_limit, "time_limit"), as_positive(memory_limit, "memory_limit")
    accuracies = sorted({as_positive(tol, "tols") for tol in tols}, reverse=True)
    chains = [_Chain(case, s, v, limit, memory) for case in chosen(problems) for s, v in _solvers(solvers)]
    tasks = _OneRowEach({chain.key(tol): 1 for chain in chains for tol in accuracies})
    if not tasks:
        raise InvalidInputError("'tols' and 'solvers' must not be empty", "nothing to run", "Leave them out")
    from nerm import __version__

    settings = {"experiment": "compare_solvers", "nerm": __version__, "edition": EDITION, "time_limit": limit}
    settings["memory_limit"] = memory
    _check_version(results, settings)
    with (
        Records(results, settings, COLUMNS, KEYS, tasks) as records,
        Progress("solvers", len(tasks.asked), sum(records.done(key) for key in tasks.asked), progress) as bar,
    ):
        for key, row, seconds in _run_all(chains, accuracies, dict(records.rows), n_jobs):
            records.add(key, [row], [seconds])
            bar.step(failed=row["status"] not in ("solved", "not taken"))
        records.finish()
        table = records.frame()[list(SHOWN)]
    table.attrs["time_limit"] = limit
    return table


class _OneRowEach(dict[Key, int]):
    """The tasks of a run: every one has one row, also those that only the results file knows. In sorted order."""

    def __init__(self, tasks: dict[Key, int]) -> None:
        super().__init__(tasks)
        self.asked = list(tasks)

    def get(self, key: Key, default: Any = None) -> int:
        """Return 1, and remember the task."""
        return self.setdefault(key, 1)

    def __iter__(self) -> Iterator[Key]:
        return iter(sorted(self.keys()))


@dataclass(frozen=True)
class _Chain:
    """One solver on one problem, from the coarsest accuracy to the finest."""

    case: Case
    solver: Any
    version: str
    limit: float
    memory: float

    @property
    def name(self) -> str:
        return self.solver if isinstance(self.solver, str) else str(self.solver.name)

    def key(self, tol: float) -> Key:
        return (self.case.name, fingerprint(asdict(self.case))[:8], self.name, self.version, str(tol))

    def run(self, nursery: Any, tol: float, slow: float | None) -> tuple[Row, float]:
        """Return the row of one accuracy; `slow` is a coarser one at which the time was up already."""
        if slow is None:
            found = nursery.run(self.solver, self.case, tol, self.limit, self.memory)
        else:
            reason = f"not tried: the time was up at tol {slow:g} already"
            found = {"status": "time limit", "seconds": self.limit, "reason": reason}
        claim = str(found.get("claim", ""))
        row = {
            "problem": self.case.name,
            "family": self.case.family,
            "n": found.get("n", self.case.n),
            "d": found.get("d", self.case.d),
            "solver": self.name,
            "version": self.version,
            "tol": tol,
            "peak_mb": round(float(found.get("peak_mb", math.nan)), 2),
            "claim": claim,
            "status": found["status"],
            "certified_gap": float(found.get("certified_gap", math.nan)),
            "correct_claim": _correct(claim, found["status"] == "solved"),
            "reason": str(found.get("reason", ""))[:300],
            "case": self.key(tol)[1],
        }
        return row, float(found.get("seconds", math.nan))


def _correct(claim: str, solved: bool) -> float:
    """Return 1 or 0 for a claim that is right or wrong, nan for none; these problems always have an optimum."""
    from nerm.experiments.compare.one_run import claims_no_optimum, claims_success

    return int(solved) if claims_success(claim) else 0 if claims_no_optimum(claim) else math.nan


def _run_all(
    chains: Sequence[_Chain], tols: Sequence[float], done: dict[Key, list[Row]], n_jobs: int
) -> Iterator[tuple[Key, Row, float]]:
    """Yield what is not done yet, row by row as it comes; chains run side by side, each in a nursery of its thread."""
    from joblib import effective_n_jobs

    from nerm.experiments.compare.nursery import Nursery

    waiting: queue.SimpleQueue[_Chain] = queue.SimpleQueue()
    come: queue.SimpleQueue[Any] = queue.SimpleQueue()
    for chain in chains:
        if any(chain.key(tol) not in done for tol in tols):
            waiting.put(chain)
    nurseries = [Nursery() for _ in range(min(effective_n_jobs(n_jobs), waiting.qsize()))]
    stop = threading.Event()

    def serve(nursery: Any) -> None:
        try:
            while not stop.is_set():
                for item in _chain_rows(waiting.get_nowait(), tols, done, nursery):
                    come.put(item)
                    if stop.is_set():
                        return
        except queue.Empty:
            come.put(None)
        except BaseException as error:  # an error of ours, to be raised in the main thread
            come.put(error)

    threads = [threading.Thread(target=serve, args=(nursery,), daemon=True) for nursery in nurseries]
    for thread in threads:
        thread.start()
    try:
        active = len(threads)
        while active:
            item = come.get()
            if isinstance(item, BaseException):
                raise item
            if item is None:
                active -= 1
            else:
                yield item
    finally:
        stop.set()
        for nursery in nurseries:
            nursery.close()
        for thread in threads:
            thread.join(timeout=5)


def _chain_rows(
    chain: _Chain, tols: Sequence[float], done: dict[Key, list[Row]], nursery: Any
) -> Iterator[tuple[Key, Row, float]]:
    slow = None
    for tol in tols:
        key = chain.key(tol)
        if key in done:
            row = done[key][0]
        else:
            row, seconds = chain.run(nursery, tol, slow)
            yield key, row, seconds
        if row["status"] == "time limit" and slow is None:
            slow = tol


def _solvers(solvers: Sequence[Any] | None) -> list[tuple[Any, str]]:
    """Return names (or objects, where the registry has none of that name) with their versions."""
    from nerm.solvers import Solver, available

    here = available()
    found: list[tuple[Any, str]] = []
    for solver in sorted(here) if solvers is None else solvers:
        if isinstance(solver, str):
            if solver not in here:
                raise UnknownNameError("'solvers'", solver, here)
            found.append((solver, here[solver].version()))
        elif isinstance(solver, Solver):
            found.append((solver, solver.version()))
        else:
            raise InvalidInputError(
                "'solvers' must hold names or Solver objects", repr(solver)[:60], "See nerm.solvers.available()"
            )
    return found


def _check_version(results: str | os.PathLike[str] | None, settings: dict[str, Any]) -> None:
    """Refuse a results file of another version in words; whatever else is wrong with it, `Records` says."""
    if results is None or not Path(results).is_file():
        return
    content = Path(results).read_bytes()
    if b"\n" not in content or not content.startswith(MARK.encode()):
        return
    theirs = check_header(Path(results), content, None, None).get("settings", {})
    for name in ("nerm", "edition", "time_limit", "memory_limit"):
        what = name.replace("_", " ")
        if theirs.get(name) != settings[name]:
            raise InvalidInputError(
                f"the results file '{results}' must be one of {what} {settings[name]}",
                f"one of {what} {theirs.get(name)}",
                "Give another file name: this one is left as it is",
            )
