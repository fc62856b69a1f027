"""Rows beyond memory: passes, seconds, resident memory and bytes, from files, and beside the engine in memory.

    python benchmarks/chunks.py write FOLDER --rows 10000000     # files of a million rows each
    python benchmarks/chunks.py growth FOLDER --rows 1000000 10000000
    python benchmarks/chunks.py memory --rows 1000000            # the same problem in memory, side by side

Success is the certificate. Every fit runs in a process of its own, whose resident memory is measured from outside.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from tasks import one_hot

import nerm
from nerm.chunks import save_chunk

PART = 1_000_000
CASES = [("hinge", 0.1), ("hinge", 1.0), ("hinge", 10.0), ("logistic", 1.0)]


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


def fit(folder: str, rows: int, name: str, eta: float, tol: float) -> dict[str, Any]:
    """Fit from files and return what it took."""
    started = time.perf_counter()
    paths = [str(path) for path in sorted(Path(folder).glob("*.npz"))[: rows // PART]]
    problem = objective(name, eta, rows).on(nerm.Chunks(paths))
    solution = problem.solve(tol)
    return {
        "case": f"{name}, eta {eta:g}", "rows": rows, "status": solution.status.value,
        "relative_gap": solution.certificate.relative_gap, "passes": 1 + solution.stats.details["passes"],
        "kept": solution.stats.details["kept"], "seconds": time.perf_counter() - started,
        "bytes_a_pass": sum(Path(path).stat().st_size for path in paths),
    }  # fmt: skip


def outside(*arguments: str) -> dict[str, Any]:
    """Run one fit in a process of its own; its largest resident set is the system's word."""
    done = subprocess.run([sys.executable, __file__, "fit", *arguments], capture_output=True, text=True, check=True)
    found = json.loads(done.stdout.splitlines()[-1])
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20  # the largest so far
    return {**found, "GiB": peak}


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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=("write", "growth", "memory", "fit"))
    parser.add_argument("folder", nargs="?", default="")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--tol", type=float, default=1e-5)
    parser.add_argument("--case", default="hinge:1")
    given = parser.parse_args()
    if given.what == "write":
        write(Path(given.folder), max(given.rows))
    elif given.what == "memory":
        in_memory(given.rows[0], given.tol)
    elif given.what == "fit":
        name, eta = given.case.split(":")
        print(json.dumps(fit(given.folder, given.rows[0], name, float(eta), given.tol)))
    else:
        for name, eta in CASES:
            for rows in given.rows:
                arguments = [given.folder, "--rows", str(rows), "--tol", str(given.tol), "--case", f"{name}:{eta}"]
                print(json.dumps(outside(*arguments)), flush=True)


if __name__ == "__main__":
    main()
