"""Rows beyond memory: passes, seconds, resident memory and bytes, from files, and beside the engine in memory.

    python benchmarks/chunks.py write FOLDER --rows 10000000     # files of a million rows each
    python benchmarks/chunks.py growth FOLDER --rows 1000000 10000000
    python benchmarks/chunks.py memory --rows 1000000            # the same problem in memory, side by side

Success is the certificate. Every fit runs in a process of its own, whose resident memory is measured from outside.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tasks import one_hot

import nerm
from nerm.chunks import save_chunk

PART = 1_000_000
CASES = [("hinge", 1.0), ("logistic", 1.0), ("hinge", 0.1), ("hinge", 10.0)]
COLUMNS = ["case", "rows", "status", "relative_gap", "passes", "kept", "seconds", "processor", "GiB", "bytes_a_pass"]


def objective(name: str, eta: float, n: int) -> Any:
    phi = {"hinge": nerm.Hinge(), "logistic": nerm.Logistic()}[name]
    return nerm.Risk(phi) + 1.0 / n * nerm.SquaredL2() + eta * nerm.Neutrality(phi)


def write(folder: Path, rows: int) -> None:
    """Write files of a million rows, every one from a seed of its own and all of one population."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in range(rows // PART):
        path = folder / f"{part:03d}.npz"
        if not path.exists():
            X, y, v = one_hot_part(part)
            save_chunk(path, X, y, v)


def one_hot_part(part: int, rows: int = PART) -> tuple[Any, np.ndarray, np.ndarray]:
    """Draw rows of the benchmark's one-hot data, labels and viewpoint from the same two models in every part."""
    X, *_ = one_hot(rows, seed=1000 + part)
    rng, noise = np.random.default_rng(7), np.random.default_rng(2000 + part)
    direction = rng.normal(size=X.shape[1])
    found = []
    for w in (direction, 0.5 * direction + rng.normal(size=X.shape[1])):
        scores = X @ w
        found.append(np.where(scores - 0.6 * w.sum() / 8 + noise.logistic(size=rows) > 0, 1.0, -1.0))
    return X, found[0], found[1]


def files(folder: str, rows: int) -> list[str]:
    """Return the files of so many rows; fewer than a million are cut from the first one."""
    if rows >= PART:
        return [str(path) for path in sorted(Path(folder).glob("*.npz"))[: rows // PART]]
    path = Path(folder) / f"cut-{rows}" / "000.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        X, y, v = one_hot_part(0)
        save_chunk(path, X[:rows], y[:rows], v[:rows])
    return [str(path)]


def fit(folder: str, rows: int, case: str, tol: float, workers: int = 0, checkpoint: str = "") -> dict[str, Any]:
    """Fit from files, on a cluster where workers are asked for, and return what it took."""
    name, eta = case.split(":")
    paths = files(folder, rows)
    with ExitStack() as stack:
        if workers:
            from distributed import Client, LocalCluster

            local = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
            stack.enter_context(Client(stack.enter_context(local)))
        started = time.perf_counter(), time.process_time()
        problem = objective(name, float(eta), rows).on(nerm.Chunks(paths))
        start = (np.zeros(problem.frame.hypothesis.size), 0.0) if checkpoint else None  # far off: more passes
        solution = problem.solve(tol, checkpoint=checkpoint or None, start=start)
        seconds, processor = time.perf_counter() - started[0], time.process_time() - started[1]
    return {
        "case": f"{name}, eta {eta}", "rows": rows, "status": solution.status.value,
        "relative_gap": solution.certificate.relative_gap, "passes": 1 + solution.stats.details["passes"],
        "read": problem.chunks.passes, "kept": solution.stats.details["kept"], "seconds": seconds,
        "processor": processor, "bytes_a_pass": sum(Path(path).stat().st_size for path in paths),
        "total": solution.objective.total, "coef": solution.coef.tolist(), "intercept": solution.intercept,
        "decisions": solution.stats.details["decisions"][0].sum(axis=0).tolist(),
    }  # fmt: skip


def family(pid: int) -> list[int]:
    """Return a process and all that it has started."""
    try:
        children = [int(c) for t in Path(f"/proc/{pid}/task").iterdir() for c in (t / "children").read_text().split()]
    except OSError:
        return []
    return [pid, *(one for child in children for one in family(child))]


def resident(pid: int, field: str) -> float:
    """Return a line of /proc/PID/status in GiB; 0 for a process that is gone."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 2**20 for line in lines if line.startswith(field)), 0.0)


def outside(arguments: list[str], watch: Callable[[Any], None] = lambda _: None) -> dict[str, Any]:
    """Run one fit in a process of its own, whose memory is read from outside while it runs.

    "GiB" is the largest resident set that the system saw of any of its processes (VmHWM), "GiB of all" the largest
    sum at one moment.
    """
    command = [sys.executable, __file__, "fit", *arguments]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak, together = 0.0, 0.0
    while running.poll() is None:
        members = family(running.pid)
        peak = max([peak, *(resident(pid, "VmHWM") for pid in members)])
        together = max(together, sum(resident(pid, "VmRSS") for pid in members))
        watch(running)
        time.sleep(0.05)
    output = running.communicate()[0].splitlines()
    found = json.loads(output[-1]) if output else {"status": f"ended by signal {-running.returncode}"}
    return {**found, "GiB": peak, "GiB of all": together}


def in_memory(rows: int, tol: float) -> None:
    """Time the engine in memory and the same rows through Chunks, in turns, and print the ratio."""
    parts = [one_hot_part(0, rows)]
    X, y, v = parts[0]
    for name, eta in CASES:
        seconds = {"memory": [], "chunks": []}
        problem = objective(name, eta, rows)
        problem.on(X[:2000], y[:2000], viewpoint=v[:2000]).solve()  # compiled before it is timed
        for _ in range(3):
            for way in seconds:
                started = time.perf_counter()
                bound = problem.on(X, y, viewpoint=v) if way == "memory" else problem.on(nerm.Chunks((X, y, v)))
                solution = bound.solve(tol=tol)
                seconds[way].append(time.perf_counter() - started)
                assert solution.status == "optimal", solution
        one, other = (float(np.median(seconds[way])) for way in ("chunks", "memory"))
        print(f"{name}, eta {eta:g}: chunks {one:.2f} s, memory {other:.2f} s, ratio {one / other:.2f}", flush=True)


def growth(folder: str, rows: list[int], tol: float, table: str) -> None:
    """Fit every case at every size, print it, and write the table."""
    found = []
    for name, eta in CASES:
        for n in rows:
            found.append(outside([folder, "--rows", str(n), "--tol", str(tol), "--case", f"{name}:{eta:g}"]))
            print({key: value for key, value in found[-1].items() if key in COLUMNS}, flush=True)
            if table:
                frame = pd.DataFrame(found)[COLUMNS]
                frame.to_csv(table, index=False, float_format="%.4g")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "growth", "memory", "fit"))
    parser.add_argument("folder", nargs="?", default="")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--tol", type=float, default=1e-5)
    parser.add_argument("--case", default="hinge:1")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--checkpoint", default="")
    parser.add_argument("--table", default="")
    given = parser.parse_args()
    if given.what == "write":
        write(Path(given.folder), max(given.rows))
    elif given.what == "memory":
        in_memory(given.rows[0], given.tol)
    elif given.what == "growth":
        growth(given.folder, given.rows, given.tol, given.table)
    else:
        print(json.dumps(fit(given.folder, given.rows[0], given.case, given.tol, given.workers, given.checkpoint)))


if __name__ == "__main__":
    main()
