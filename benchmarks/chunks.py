"""Rows beyond memory: passes, processor time, resident memory and bytes, from files, and beside the engine in memory.

    python benchmarks/chunks.py write FOLDER --rows 10000000              # files of a million rows each, 1.8 GB in all
    python benchmarks/chunks.py targets FOLDER --rows 1000000 10000000    # all that follows, one line a target
    python benchmarks/chunks.py growth FOLDER --rows 100000 1000000 10000000 --table notebooks/growth.csv
    python benchmarks/chunks.py cluster FOLDER --rows 10000000            # two workers of dask; one of them is killed
    python benchmarks/chunks.py memory --rows 1000000                     # beside the engine in memory
    python benchmarks/chunks.py unlike FOLDER --rows 4000000              # chunks that differ from each other

Success is the certificate. Every fit from files runs in a process of its own, whose resident memory, with
that of all processes that it starts, is read from outside.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp
from tasks import one_hot

import nerm
from nerm.chunks import save_chunk

PART = 1_000_000
SITES = 40
UNLIKE = ("sites", "constant", "label", "group", "other", "heavy")
CASES = [("hinge", 1.0), ("logistic", 1.0), ("hinge", 0.1), ("hinge", 10.0)]
COLUMNS = [
    "case",
    "rows",
    "status",
    "relative_gap",
    "passes",
    "kept",
    "seconds",
    "processor",
    "GiB",
    "bytes_a_pass",
]


def objective(name: str, eta: float, n: int) -> Any:
    """Return an objective; the name is that of the loss and the surrogate, or of both with "+" between."""
    atoms = {"hinge": nerm.Hinge(), "logistic": nerm.Logistic()}
    loss, surrogate = (name.split("+") * 2)[:2]
    return nerm.Risk(atoms[loss]) + 1.0 / n * nerm.SquaredL2() + eta * nerm.Neutrality(atoms[surrogate])


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


def unlike_part(data: str, site: int, rows: int, seed: int = 11) -> tuple[Any, np.ndarray, np.ndarray]:
    """Draw the rows of a site that differs from the other sites.

    "sites": one-hot rows whose cut points are those of the site. "constant": the same, and the optimum is
    nearly constant. "label" and "group": sorted by label or group. "other": numbers, of another distribution
    in one site. "heavy": numbers with heavy tails.
    """
    rng, population = np.random.default_rng([seed, site]), np.random.default_rng(seed)
    w, u, shift = population.normal(size=(3, 12))
    w, u = w / np.linalg.norm(w), u / np.linalg.norm(u)
    Z = rng.gamma(2.0, size=(rows, 12)) - 2.0 + 0.3 * rng.normal(size=12) + 0.1 * shift
    flat, level = {"constant": (0.05, 2.0), "sites": (0.6, 1.0)}.get(data, (1.0, 0.3))
    y = np.where(flat * (Z @ w) + level + rng.logistic(size=rows) > 0, 1.0, -1.0)
    v = np.where(Z @ (u + 0.5 * w) + rng.logistic(size=rows) > 0, 1.0, -1.0)
    if data == "heavy":
        return Z * rng.pareto(1.5, size=(rows, 1)), y, v
    if data == "other":
        return (Z, y, v) if site != SITES // 2 else (50 * Z - 20, rng.permutation(y), v)
    cuts = np.sort(rng.gamma(2.0, size=(12, 6)) - 2.0, axis=1)
    codes = np.stack([np.searchsorted(cuts[j], Z[:, j]) for j in range(12)], axis=1) + 7 * np.arange(12)
    X = sp.csr_matrix((np.ones(codes.size), codes.ravel(), np.arange(0, codes.size + 1, 12)), (rows, 84))
    if data in ("label", "group"):
        # files of sorted rows: each site has one label (group) only, in the share of the population
        key = {"label": y, "group": v}[data]
        kept = np.flatnonzero(key == (1.0 if site < round(SITES * np.mean(key > 0)) else -1.0))
        kept = np.resize(kept, rows)
        return X[kept], y[kept], v[kept]
    return X, y, v


def unlike(
    folder: str, rows: int, tol: float, kinds: list[str], names: list[str]
) -> Iterator[tuple[bool, str]]:
    """Fit files that differ from each other: certified, in at most 40 passes and 1.5 GiB."""
    for data in kinds:
        there = Path(folder) / f"{data}-{rows}"
        there.mkdir(parents=True, exist_ok=True)
        for site in range(SITES):
            if not (there / f"{site:03d}.npz").exists():
                save_chunk(there / f"{site:03d}.npz", *unlike_part(data, site, rows // SITES))
        for name in names:
            one = outside([str(there), "--rows", str(rows), "--tol", str(tol), "--case", f"{name}:1"])
            text = f"{data}, {name}, {rows} rows: gap {one['relative_gap']:.1e}, {one['passes']} passes, "
            text += f"{one['GiB']:.2f} GiB, {one['processor']:.0f} s of processor, {one['seconds']:.0f} s"
            yield one["relative_gap"] <= tol and one["passes"] <= 40 and one["GiB"] <= 1.5, text
        shutil.rmtree(there)


def files(folder: str, rows: int) -> list[str]:
    """Return the files of so many rows; fewer than a million are cut from the first one."""
    if list(Path(folder).glob("039.npz")):
        return [str(path) for path in sorted(Path(folder).glob("*.npz"))]
    if rows >= PART:
        return [str(path) for path in sorted(Path(folder).glob("*.npz"))[: rows // PART]]
    path = Path(folder) / f"cut-{rows}" / "000.npz"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        X, y, v = one_hot_part(0)
        save_chunk(path, X[:rows], y[:rows], v[:rows])
    return [str(path)]


class Deadly:
    """The work of a pass that ends the worker with the last of the files, once."""

    def __init__(self, work: Any, name: str, marker: str) -> None:
        self.work, self.name, self.marker = work, name, marker

    def __call__(self, raw: Any) -> Any:
        if self.name in raw.name and not Path(self.marker).exists():
            Path(self.marker).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.work(raw)


class Disturbed(nerm.Chunks):
    """Chunks whose second pass loses a worker."""

    marker = ""

    def sweep(self, work: Any) -> Any:
        deadly = self.passes == 1 and self.marker
        return super().sweep(Deadly(work, Path(self.pieces[-1].path).name, self.marker) if deadly else work)


def fit(
    folder: str, rows: int, case: str, tol: float, workers: int = 0, kill: bool = False
) -> dict[str, Any]:
    """Fit from files, on a cluster where workers are asked for, and return what it took."""
    name, eta = case.split(":")
    paths = files(folder, rows)
    with ExitStack() as stack:
        if workers:
            from distributed import Client, LocalCluster

            local = LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None)
            stack.enter_context(Client(stack.enter_context(local)))
        started = time.perf_counter(), time.process_time()
        chunks = Disturbed(paths)
        if kill:
            chunks.marker = f"{stack.enter_context(tempfile.TemporaryDirectory())}/died"
        problem = objective(name, float(eta), rows).on(chunks)
        solution = problem.solve(tol=tol)
        killed = bool(chunks.marker) and Path(chunks.marker).exists()
        seconds, processor = time.perf_counter() - started[0], time.process_time() - started[1]
    return {
        "case": f"{name}, eta {eta}", "rows": rows, "status": solution.status.value,
        "relative_gap": solution.certificate.relative_gap, "passes": 1 + solution.stats.details["passes"],
        "read": problem.chunks.passes, "kept": solution.stats.details["kept"], "seconds": seconds, "killed": killed,
        "processor": processor, "bytes_a_pass": sum(Path(path).stat().st_size for path in paths),
        "total": solution.objective.total, "coef": solution.coef.tolist(), "intercept": solution.intercept,
        "decisions": solution.stats.details["decisions"][0].sum(axis=0).tolist(),
    }  # fmt: skip


def family(pid: int) -> list[int]:
    """Return a process and all that it has started."""
    try:
        children = [
            int(c) for t in Path(f"/proc/{pid}/task").iterdir() for c in (t / "children").read_text().split()
        ]
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

    "GiB" is the largest resident set that the system saw of any of its processes (VmHWM), "GiB of all" the
    largest sum at one moment.
    """
    command = [sys.executable, __file__, "fit", *arguments]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    peak, total_memory = 0.0, 0.0
    while running.poll() is None:
        members = family(running.pid)
        peak = max([peak, *(resident(pid, "VmHWM") for pid in members)])
        total_memory = max(total_memory, sum(resident(pid, "VmRSS") for pid in members))
        watch(running)
        time.sleep(0.05)
    output = running.communicate()[0].splitlines()
    found = json.loads(output[-1]) if output else {"status": f"ended by signal {-running.returncode}"}
    return {**found, "GiB": peak, "GiB of all": total_memory}


def in_memory(rows: int, tol: float, repeat: int = 2) -> Iterator[tuple[bool, str]]:
    """Solve in memory, by the engine and through Chunks, in turns: processor time, and whether the answers agree."""
    X, y, v = one_hot_part(0, rows)
    for name, eta in CASES:
        seconds: dict[str, list[float]] = {"memory": [], "chunks": []}
        problem, found = objective(name, eta, rows), {}
        for way in (X[:2000], nerm.Chunks((X[:2000], y[:2000], v[:2000]))):  # compiled before it is timed
            given = {} if isinstance(way, nerm.Chunks) else {"y": y[:2000], "viewpoint": v[:2000]}
            problem.on(way, **given).solve()
        for _ in range(repeat):
            for way in seconds:
                started = time.process_time()
                bound = (
                    problem.on(X, y, viewpoint=v) if way == "memory" else problem.on(nerm.Chunks((X, y, v)))
                )
                found[way] = bound.solve(tol=tol)
                seconds[way].append(time.process_time() - started)
        one, other = min(seconds["chunks"]), min(seconds["memory"])
        text = f"{name}, eta {eta:g}, {rows} rows in memory: chunks {one:.1f} s, engine {other:.1f} s"
        yield one <= 2 * other, f"{text}, ratio {one / other:.2f} of at most 2 (processor time)"
        whole, apart = found["memory"], found["chunks"]
        total = problem.on(X, y, viewpoint=v).evaluate(apart.coef, apart.intercept).total
        worse = total / whole.certificate.dual - 1
        alike = float(np.mean(whole.predict(X) == apart.predict(X)))
        text = f"{name}, eta {eta:g}: at most {worse:.1e} above the bound in memory, {alike:.2%} of decisions alike"
        yield worse <= 2 * tol, text


def on_cluster(folder: str, rows: int, tol: float) -> Iterator[tuple[bool, str]]:
    """Fit on two workers of dask, undisturbed and with a worker killed in the second pass."""
    alone = outside([folder, "--rows", str(rows), "--tol", str(tol)])
    for victim in (False, True):
        arguments = [folder, "--rows", str(rows), "--tol", str(tol), "--workers", "2"]
        found = outside([*arguments, *(["--kill"] if victim else [])])
        same = abs(found["total"] / alone["total"] - 1)
        apart = float(np.abs(np.subtract(found["coef"], alone["coef"])).max())
        what = f"a worker killed in pass 2 (killed: {found['killed']})" if victim else "two workers"
        text = f"{what}, {rows} rows: gap {found['relative_gap']:.1e}, {found['passes']} passes, objective apart by "
        text += f"{same:.1e}, coefficients by {apart:.1e}; {found['GiB']:.2f} GiB a process, "
        text += f"{found['GiB of all']:.2f} GiB of all"
        good = (
            found["status"] == "optimal" and same <= 2 * tol and found["passes"] <= 12 and found["GiB"] <= 1.5
        )
        yield good and (found["killed"] or not victim), text


def growth(folder: str, rows: list[int], tol: float, table: str) -> Iterator[tuple[bool, str]]:
    """Fit every case at every size from files, and write the table."""
    found: list[dict[str, Any]] = []
    for name, eta in CASES:
        for n in rows:
            one = outside([folder, "--rows", str(n), "--tol", str(tol), "--case", f"{name}:{eta:g}"])
            found.append(one)
            text = f"{one['case']}, {n} rows: gap {one['relative_gap']:.1e}, {one['passes']} passes, "
            text += f"{one['GiB']:.2f} GiB, {one['processor']:.1f} s of processor, {one['seconds']:.0f} s"
            yield one["relative_gap"] <= tol and one["passes"] <= 12 and one["GiB"] <= 1.5, text
            if table:
                pd.DataFrame(found)[COLUMNS].to_csv(table, index=False, float_format="%.4g")
        if len(rows) > 1:
            first, last = found[-2], found[-1]
            power = np.log(last["processor"] / first["processor"]) / np.log(last["rows"] / first["rows"])
            text = f"{last['case']}: from {first['rows']} to {last['rows']} rows as n^{power:.2f}, of at most n^1.1"
            yield power <= 1.1, text


def told(found: Iterator[tuple[bool, str]]) -> None:
    """Print one line a target."""
    for good, text in found:
        print(f"{'met   ' if good else 'MISSED'} {text}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=("write", "targets", "growth", "memory", "cluster", "unlike", "fit"))
    parser.add_argument("folder", nargs="?", default="")
    parser.add_argument("--rows", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--tol", type=float, default=1e-5)
    parser.add_argument("--case", default="hinge:1")
    parser.add_argument("--data", nargs="+", default=UNLIKE, choices=UNLIKE)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--kill", action="store_true")
    parser.add_argument("--table", default="")
    given = parser.parse_args()
    folder, rows, tol = given.folder, given.rows, given.tol
    if given.what == "write":
        write(Path(folder), max(rows))
    elif given.what == "fit":
        print(json.dumps(fit(folder, rows[0], given.case, tol, given.workers, given.kill)))
    if given.what in ("growth", "targets"):
        told(growth(folder, rows, tol, given.table))
    if given.what in ("cluster", "targets"):
        told(on_cluster(folder, max(rows), tol))
    if given.what == "unlike":
        told(unlike(folder, max(rows), tol, given.data, ["hinge", "logistic+hinge"]))
    if given.what in ("memory", "targets"):
        told(in_memory(min(max(rows), PART), tol))


if __name__ == "__main__":
    main()
