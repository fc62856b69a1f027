"""nerm beside its peers: objective, gap, time, peak memory and the ratio of times.

    python benchmarks/engine.py all --json measured.json          every case below, and a line for every target
    python benchmarks/engine.py all --scale 0.03                  a small run, on small data
    python benchmarks/engine.py all --history benchmarks/history.csv     ratios of a release, kept: a peer's time over
                                                                  nerm's, and of a path in median cold solves
    python benchmarks/engine.py onehot --eta 0.1 1 10             60,420 one-hot rows, the cvxpy solvers
    python benchmarks/engine.py onehot --eta 0 --peers liblinear --accuracy 1e-4
    python benchmarks/engine.py onehot --peers rehline --accuracy 1e-4
    python benchmarks/engine.py dense --n 100000 --d 50
    python benchmarks/engine.py logistic --peers clarabel sklearn
    python benchmarks/engine.py growth --n 100000 1000000         the time's exponent and the peak memory
    python benchmarks/engine.py path                              20 values of eta against one
    python benchmarks/engine.py kernel                            rbf beside SVC; nerm's certificate is part of its time
    python benchmarks/engine.py kernel --n 1500 --lam 0.1 1 100 --peers clarabel piqp osqp
    python benchmarks/engine.py kernel --n 20000 --peers          nerm alone: its memory
    python benchmarks/engine.py kernel-logistic                   the same with the logistic loss beside SVC's hinge
    python benchmarks/engine.py kernel-path                       20 values of eta against one, with a kernel

Every contestant runs in a process of its own (peak memory is that process's), is timed after its imports and
one tiny problem, and is killed from outside --limit seconds after it was ready or gave its last answer.
Objectives are computed here from the coefficients. The gap of every contestant is taken to the same lower
bound, nerm's, itself recomputed here from its multipliers: a claim of success is not success, and who does
not reach the accuracy is not counted as the fastest. A ratio is a contestant's time over nerm's. How each
peer is set up, and how its tolerance is chosen in its favour, is written in benchmarks/peers.py; the problems
are in benchmarks/tasks.py.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import json
import multiprocessing
import os
import sys
import time
from dataclasses import dataclass, replace
from itertools import pairwise, product
from pathlib import Path
from typing import Any

import norms
import numpy as np
import paths
import wide
from peers import CONTESTANTS, CVXPY, PLAIN, contest
from tasks import Task

PREPARING = 900.0  # seconds for imports, data, and a tiny problem
ALONE = 10  # times the limit where there is nobody to compare with, so that memory is measured to the end
PACKAGES = (
    "numpy", "scipy", "numba", "scikit-learn", "rehline",
    "cvxpy", "clarabel", "piqp", "osqp", "ecos", "scs",
)  # fmt: skip
HEAD = ("suite", "n", "d", "lam", "eta", "accuracy", "limit")
Row = dict[str, Any]


@dataclass(frozen=True)
class Case:
    """What one table or a few of them are made of."""

    suite: str
    n: tuple[int, ...] = (60_420,)
    d: int = 100
    lam: tuple[float, ...] = (1.0,)
    eta: tuple[float, ...] = (1.0,)
    accuracy: float = 1e-6
    peers: tuple[str, ...] = ()


#: What a suite is when nothing else is said.
SUITES = {
    case.suite: case
    for case in (
        Case("onehot", peers=CVXPY),
        Case("dense", n=(100_000,), d=50, peers=CVXPY),
        Case("logistic", peers=CVXPY),
        Case("growth", n=(100_000, 1_000_000)),
        Case("path"),
        Case("kernel", n=(5_000, 10_000, 20_000), d=10, accuracy=1e-4, peers=("svc",)),
        Case("kernel-logistic", n=(5_000,), d=10, accuracy=1e-4, peers=("svc",)),
        Case("kernel-path", n=(5_000,), d=10, accuracy=1e-4),
    )
}
ALL = (
    replace(SUITES["onehot"], eta=(0.1, 1.0, 10.0)),
    replace(SUITES["onehot"], eta=(0.0,), accuracy=1e-4, peers=("liblinear",)),
    replace(SUITES["onehot"], accuracy=1e-4, peers=("rehline",)),
    SUITES["dense"],
    replace(SUITES["logistic"], peers=(*CVXPY, "sklearn")),
    SUITES["growth"],
    SUITES["path"],
    SUITES["kernel"],
    replace(SUITES["kernel"], n=(1_500,), peers=CVXPY),
    SUITES["kernel-logistic"],
    replace(SUITES["kernel-logistic"], n=(10_000,), peers=()),
    SUITES["kernel-path"],
)
#: By suite and opponent: nerm's time is to be at most 1 / this of the opponent's.
TARGETS = {
    ("onehot", "cvxpy"): 30.0,
    ("onehot", "liblinear"): 1 / 4,  # without neutrality, and nerm's answer is certified
    ("onehot", "rehline"): 1.0,
    ("dense", "cvxpy"): 10.0,
    ("logistic", "cvxpy"): 20.0,
    ("logistic", "sklearn"): 1 / 10,  # without neutrality
    ("kernel", "cvxpy"): 20.0,
    ("kernel", "svc"): 1 / 8,  # without neutrality, at its default tolerance
    ("kernel-logistic", "svc"): 1 / 35,  # the same, and another loss
}
EXPONENT = 1.15  # time may grow with n to this power at most
PATHS = {"path": 7.0, "kernel-path": 6.0}  # median cold solves that a path of 20 values may take
#: By suite and rows: mebibytes that nerm may take at its peak.
MEMORY = {("kernel", 20_000): 2048.0, ("kernel-logistic", 10_000): 2048.0}


def measure(name: str, task: Task, limit: float) -> Row:
    """Run one contestant in a process of its own; what it reached is kept when it is killed."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=False)
    process = context.Process(target=contest, args=(name, task, theirs))
    process.start()
    theirs.close()
    row: Row = {"seconds": np.nan, "objective": np.nan, "peak": np.nan, "note": ""}
    end, ready = time.monotonic() + PREPARING, False
    while True:
        if not ours.poll(max(0.0, end - time.monotonic())):
            row = _with_note(row, f"time limit ({limit:g} s)" if ready else "not ready in time")
            break
        try:
            word, found = ours.recv()
        except EOFError:
            process.join()
            row = _with_note(row, f"crashed (exit code {process.exitcode})")
            break
        if word == "end":
            row = _with_note(row, found.get("note", ""))
            break
        if word != "partial":
            end, ready = time.monotonic() + limit, True
        if (
            np.isnan(row["objective"]) or found["objective"] < row["objective"]
        ):  # a later answer may be a worse one
            row |= found
    process.kill()
    process.join()
    return row


def _with_note(row: Row, note: str) -> Row:
    return row | {"note": "; ".join(part for part in (row["note"], note) if part)}


def table(case: Case, n: int, lam: float, eta: float, limit: float) -> list[Row]:
    """Measure nerm and the peers on one problem; print and return a row each."""
    limit *= 1 if case.peers else ALONE
    kind = "onehot" if case.suite == "growth" else case.suite
    task = Task(kind, n, case.d, lam, eta, case.accuracy)
    print(
        f"\n{case.suite}: n = {n}, d = {case.d}, lambda = {lam:g}, eta = {eta:g}, accuracy {case.accuracy:g}"
    )
    print("contestant       objective       gap   seconds  peak MiB    ratio  reached, note")
    head = dict(zip(HEAD, (case.suite, n, case.d, lam, eta, case.accuracy, limit), strict=True))
    ours, rows, plain = measure("nerm", task, limit), [], None
    for name in ("nerm", *case.peers):
        peer_task = replace(task, bound=ours.get("bound", np.nan))
        if name in PLAIN and eta:
            plain = plain or measure("nerm", replace(task, eta=0.0), limit)
            peer_task = replace(task, eta=0.0, bound=plain.get("bound", np.nan))
        row = ours if name == "nerm" else measure(name, peer_task, limit)
        gap = peer_task.gap(row["objective"])
        row = {**head, "contestant": name, **row, "gap": gap, "reached": bool(gap <= case.accuracy)}
        row["ratio"] = row["seconds"] / ours["seconds"]
        rows.append(row)
        print(
            f"{name:12s} {row['objective']:13.9f} {gap:9.1e} {row['seconds']:9.3f} {row['peak']:9.0f}"
            f" {row['ratio']:8.3g}  {'yes' if row['reached'] else 'no'}, {row['note']}",
            flush=True,
        )
    return rows


def run(case: Case, limit: float) -> list[Row]:
    if case.suite in PATHS:
        return [path(case, n, lam, limit) for n, lam in product(case.n, case.lam)]
    rows = [
        row for n, lam, eta in product(case.n, case.lam, case.eta) for row in table(case, n, lam, eta, limit)
    ]
    return [*rows, *growth(rows)] if case.suite == "growth" else rows


def growth(rows: list[Row]) -> list[Row]:
    """Compare adjacent sizes at equal weights."""
    found = []
    for first, last in pairwise(sorted(rows, key=lambda row: (row["lam"], row["eta"], row["n"]))):
        if first["n"] < last["n"]:
            exponent = np.log(last["seconds"] / first["seconds"]) / np.log(last["n"] / first["n"])
            allowed = 6 * last.get("data", np.nan) / 2**20 + 1024
            print(f"from n = {first['n']} to {last['n']}: time exponent {exponent:.3f}")
            print(f"peak {last['peak']:.0f} MiB, 6 x data + 1 GiB = {allowed:.0f} MiB")
            kept = {key: last[key] for key in (*HEAD, "peak")}
            found.append({**kept, "from": first["n"], "exponent": exponent, "allowed": allowed})
    return found


def path(case: Case, n: int, lam: float, limit: float) -> Row:
    """Measure 20 values of eta in one path against each of them alone, cold."""
    kind = "onehot" if case.suite == "path" else "kernel"
    row = measure(case.suite, Task(kind, n, case.d, lam, 100.0, case.accuracy), ALONE * limit)
    row |= {"suite": case.suite, "n": n, "d": case.d, "lam": lam, "accuracy": case.accuracy}
    print(f"\n{case.suite}: n = {n}, d = {case.d}, lambda = {lam:g}, accuracy {case.accuracy:g}")
    print("eta = 0 and 19 values from 0.01 to 100")
    if "cold" not in row:
        print(row["note"])
        return row
    cold, seconds = np.array(row["cold"]), row["seconds"]
    row["ratio"] = seconds / np.median(cold)
    print(
        f"path {seconds:.3f} s, gap {row['worst_gap']:.1e}, {row['passes']} passes, iterations: {row['iterations']}"
    )
    print(
        f"each alone, cold: median {np.median(cold):.3f} s, from {cold.min():.3f} to {cold.max():.3f}, "
        f"together {cold.sum():.3f} s, worst gap {row['worst_cold_gap']:.1e}, iterations {row['cold_iterations']}"
    )
    print(f"the path takes {row['ratio']:.1f} median cold solves, {seconds / cold.sum():.2f} of all 20")
    return row


def races(rows: list[Row]) -> dict[tuple[str, int, float, str], tuple[float, str]]:
    """Return by suite, n, accuracy and opponent its time over nerm's, and where; of several weights the worst."""
    problems: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if "contestant" in row:
            problems.setdefault(tuple(row[key] for key in HEAD), []).append(row)
    found: dict[tuple[str, int, float, str], tuple[float, str]] = {}
    for group in problems.values():
        ours, entered = group[0], {row["contestant"] for row in group[1:]}
        for opponent in [*(["cvxpy"] if entered & set(CVXPY) else []), *sorted(entered - set(CVXPY))]:
            names = CVXPY if opponent == "cvxpy" else (opponent,)
            key = (ours["suite"], ours["n"], ours["accuracy"], opponent)
            race = _race(ours, [row for row in group if row["contestant"] in names])
            found[key] = min(race, found.get(key, race))
    return found


def summary(rows: list[Row]) -> list[str]:
    """Return a line for every target, and for all else that was measured."""
    lines = []
    for (suite, n, accuracy, opponent), (ratio, who) in races(rows).items():
        against = "the fastest cvxpy solver" if opponent == "cvxpy" else opponent
        place, target = f"{suite}, n = {n}, accuracy {accuracy:g}", TARGETS.get((suite, opponent))
        wanted, verdict = "no target", ""
        if target is not None:
            wanted = f"target: at most {_fraction(target)} of {against}"
            verdict = ": holds" if ratio >= target else ": FAILS"
        lines.append(f"{place}: {wanted}; measured {_fraction(ratio)} of {against} ({who}){verdict}")
    for row in rows:
        place = f"{row['suite']}, n = {row['n']}"
        ours = row.get("contestant") == "nerm"
        allowed = row.get("allowed") or (MEMORY.get((row["suite"], row["n"])) if ours else None)
        if allowed:
            holds = "holds" if row["peak"] <= allowed else "FAILS"
            lines.append(
                f"{place}: target: peak memory at most {allowed:.0f} MiB; measured {row['peak']:.0f}: {holds}"
            )
        if "exponent" in row:
            holds = "holds" if row["exponent"] <= EXPONENT else "FAILS"
            grows = f"time grows like n^{row['exponent']:.2f} from n = {row['from']}"
            lines.append(f"{place}: target: at most n^{EXPONENT}; {grows}: {holds}")
        if row["suite"] in PATHS and "ratio" in row:
            most = PATHS[row["suite"]]
            holds = "holds" if row["ratio"] <= most else "FAILS"
            lines.append(
                f"{place}: target: at most {most:g} cold solves; 20 values take {row['ratio']:.1f}: {holds}"
            )
    return lines


def _race(ours: Row, entered: list[Row]) -> tuple[float, str]:
    """Return the fastest successful peer's time over nerm's, and its name; 0 where nerm itself did not succeed."""
    where = f"lambda = {ours['lam']:g}, eta = {ours['eta']:g}"
    if not ours["reached"]:
        return 0.0, f"nerm did not reach the accuracy; {where}"
    reached = [row for row in entered if row["reached"] or row["contestant"] == "svc"]
    if reached:
        best = min(reached, key=lambda row: row["seconds"])
        return best["ratio"], f"{best['contestant']}; {where}"
    if any("time limit" in row["note"] for row in entered):
        return ours["limit"] / ours["seconds"], f"or less: nobody reached the accuracy in time; {where}"
    return np.inf, f"nobody reached the accuracy; {where}"


def _fraction(ratio: float) -> str:
    """Return nerm's share of a peer's time in words: 30 is 1/30, 0.5 is 2 times."""
    if ratio in (0.0, np.inf):
        return "no share"
    return f"1/{ratio:.3g}" if ratio >= 1 else f"{1 / ratio:.3g} times that"


def versions() -> dict[str, str]:
    import nerm

    found = {"nerm": nerm.__version__}
    for package in PACKAGES:
        try:
            found[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            found[package] = "missing"
    return found


def remember(rows: list[Row], file: Path) -> None:
    """Add ratios to a table, a line a race or a path, in place of those that this version had there before."""
    version = versions()["nerm"]
    lines = [
        f"{version},{suite},{n},{accuracy:g},{peer},{ratio:.3g}"
        for (suite, n, accuracy, peer), (ratio, _) in races(rows).items()
    ]
    lines += [
        f"{version},{row['suite']},{row['n']},{row['accuracy']:g},cold solves,{row['ratio']:.3g}"
        for row in rows
        if row["suite"] in PATHS and "ratio" in row
    ]
    head, *old = (
        file.read_text().splitlines() if file.exists() else ["version,suite,rows,accuracy,against,ratio"]
    )
    same = {line.rpartition(",")[0] for line in lines}
    file.write_text(
        "\n".join([head, *(line for line in old if line.rpartition(",")[0] not in same), *lines]) + "\n"
    )


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("suite", choices=["all", *SUITES])
    parser.add_argument("--n", type=int, nargs="+", help="rows")
    parser.add_argument("--d", type=int, help="columns")
    parser.add_argument("--lam", type=float, nargs="+")
    parser.add_argument("--eta", type=float, nargs="+")
    parser.add_argument("--accuracy", type=float, help="relative gap to reach")
    names = [name for name in CONTESTANTS if name not in ("nerm", *PATHS)]
    parser.add_argument("--peers", nargs="*", choices=names, help="default: the cvxpy solvers")
    parser.add_argument(
        "--limit", type=float, default=120.0, help="seconds for an answer (%(default)s; nerm alone: 10 x)"
    )
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies every n, for a small run")
    parser.add_argument("--json", type=Path, help="file for all rows, the summary and the versions")
    parser.add_argument(
        "--history", type=Path, help="table to which this version's ratios are added, as history.csv"
    )
    args = parser.parse_args(argv)
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in vars(args).items()}
    changes = {
        key: given[key] for key in ("n", "d", "lam", "eta", "accuracy", "peers") if given[key] is not None
    }
    if args.suite == "all" and changes:
        parser.error(f"'all' has its own {', '.join(changes)}: name one suite to change them")
    rows: list[Row] = []
    for case in ALL if args.suite == "all" else [replace(SUITES[args.suite], **changes)]:
        rows += run(replace(case, n=tuple(max(200, round(n * args.scale)) for n in case.n)), args.limit)
    lines = summary(rows)
    if args.suite == "all":
        lines += wide.run(
            [name for name in wide.FAMILIES if name != "news" or "NERM_DATA" in os.environ], args.scale
        )
        lines += [*paths.run(paths.here(), args.scale), *norms.run(args.scale)]
    print("\nsummary", *lines, sep="\n")
    if args.json:
        finite = [{key: None if value != value else value for key, value in row.items()} for row in rows]
        args.json.write_text(
            json.dumps({"versions": versions(), "rows": finite, "summary": lines}, indent=1) + "\n"
        )
    if args.history:
        remember(rows, args.history)


if __name__ == "__main__":
    sys.exit(main())
