"""Measure the first minute with nerm: installation, demo, and the first solve of a new process.

    python benchmarks/first_minute.py                # the wheel that pip builds, and a copy of site-packages at another path
    python benchmarks/first_minute.py --without      # the same without compiling ahead (NERM_COMPILE=0)
    python benchmarks/first_minute.py --here         # this environment, with whatever is in its cache

The script makes its virtual environments in a temporary folder. Seconds are processor seconds of a whole process, imports included, on one thread; the least and the
median of `--repeat` processes. `compiled` counts the functions of nerm that numba compiled in the first process. The environment has a home folder of its own, so that
no cache of an earlier run helps. Reading the files for the first time is not in these seconds.
"""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LIMITS = {"hinge": 1.5, "logistic": 1.5, "own atom": 1.5, "rbf": 3.0, "wide": 3.0}
DEMO = 8.0, 4.0  # the first and the second time

SOLVE = """
import json, sys, time
kind = sys.argv[1]
import numpy as np
numpy_seconds = time.process_time()
own = None
if kind == "own atom":
    import cvxpy as cp
    own = lambda m: cp.pos(1 - m) + 0.5 * cp.square(cp.pos(-m))
outside = time.process_time()
import nerm
rng = np.random.default_rng(5)
n, d = {"rbf": (3000, 10), "wide": (5000, 20000)}.get(kind, (2000, 10))
if kind == "wide":
    import scipy.sparse as sp
    X = sp.csr_array((rng.random(n * 100) + 0.1, rng.integers(0, d, n * 100), np.arange(0, n * 100 + 1, 100)), shape=(n, d))
    X.sum_duplicates()
    signal = X @ rng.normal(size=d)
else:
    X = rng.normal(size=(n, d))
    signal = X[:, 0] + X[:, 1]
signal = signal / signal.std()
y = np.where(signal + 0.5 * rng.normal(size=n) > 0, 1, -1)
v = np.where(signal + rng.normal(size=n) > 0, 1, -1)
atom = nerm.Logistic() if kind == "logistic" else nerm.margin_function(own, name="own") if own else nerm.Hinge()
objective = nerm.Risk(atom) + 0.05 * nerm.SquaredL2() + nerm.Neutrality(atom)
problem = objective.on(X, y, viewpoint=v, kernel="rbf" if kind == "rbf" else None)
bound = time.process_time()
solution = problem.solve()
first = time.process_time()
objective.on(X, y, viewpoint=v, kernel="rbf" if kind == "rbf" else None).solve()
again = time.process_time()
import gc
from numba.core.dispatcher import Dispatcher
ours = [o for o in gc.get_objects() if isinstance(o, Dispatcher) and o.py_func.__module__.startswith("nerm.")]
print(json.dumps({"total": first, "numpy and cvxpy": outside, "first solve": first - bound, "second solve": again - first,
    "compiled": sum(sum(o.stats.cache_misses.values()) for o in ours), "solver": solution.stats.solver, "status": str(solution.status)}))
"""

DEMO_CODE = """
import contextlib, io, json, time
from nerm.cli import main
with contextlib.suppress(SystemExit), contextlib.redirect_stdout(io.StringIO()):
    main(["demo"])
print(json.dumps({"total": time.process_time()}))
"""


class Environment:
    """A Python with nerm, and the folder that its processes use as home and to work in."""

    def __init__(self, python: Path, home: Path, path: Path | None = None) -> None:
        self.python, self.home, self.path = python, home, path
        home.mkdir(parents=True, exist_ok=True)

    def run(self, code: str, *arguments: str) -> dict[str, float]:
        """Run code in a new process; return the JSON object that it prints last."""
        variables = {k: v for k, v in os.environ.items() if k not in ("PYTHONPATH", "NUMBA_CACHE_DIR")}
        variables |= dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        variables |= {"HOME": str(self.home)} | ({"PYTHONPATH": str(self.path)} if self.path else {})
        command = [str(self.python), "-c", code, *arguments]
        done = subprocess.run(command, cwd=self.home, env=variables, capture_output=True, text=True)
        if done.returncode:
            raise SystemExit(done.stderr)
        return json.loads(done.stdout.splitlines()[-1])


def installed(folder: Path, *, ahead: bool) -> Environment:
    """Make a virtual environment and install this repository with pip; print how long it takes."""
    venv.create(folder, with_pip=True)
    python = folder / ("Scripts" if os.name == "nt" else "bin") / "python"
    before = os.times()
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"} | {"NERM_COMPILE": str(int(ahead))}
    subprocess.run([python, "-m", "pip", "install", "-q", str(ROOT)], check=True, env=variables)
    after = os.times()
    seconds = after.children_user + after.children_system - before.children_user - before.children_system
    print(f"pip install .: {seconds:.0f} processor seconds, {after.elapsed - before.elapsed:.0f} s")
    return Environment(python, folder / "home")


def measure(environment: Environment, repeat: int) -> None:
    """Print a table: the demo twice, then the first solve of each kind."""
    for limit, time in zip(DEMO, ("first", "second"), strict=True):
        seconds = environment.run(DEMO_CODE)["total"]
        print(f"  nerm demo, {time:6} time  {seconds:6.2f} s   (at most {limit:g})")
    for kind, limit in LIMITS.items():
        runs = [environment.run(SOLVE, kind) for _ in range(repeat)]
        totals = [run["total"] for run in runs]
        parts = {
            k: statistics.median(run[k] for run in runs)
            for k in ("numpy and cvxpy", "first solve", "second solve")
        }
        split = ", ".join(f"{k} {v:.2f}" for k, v in parts.items())
        print(
            f"  {kind:10} least {min(totals):5.2f} median {statistics.median(totals):5.2f} s (at most {limit:g}; {split});",
            end=" ",
        )
        print(f"compiled {runs[0]['compiled']}, {runs[0]['solver']}, {runs[0]['status']}", flush=True)


def main() -> None:
    """Read the options and measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--without", action="store_true", help="install without compiling ahead")
    parser.add_argument("--here", action="store_true", help="measure the environment of this Python")
    parser.add_argument("--repeat", type=int, default=3, help="processes per kind")
    options = parser.parse_args()
    load = f", load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores" if hasattr(os, "getloadavg") else ""
    print(f"Python {sys.version.split()[0]}{load}")
    with tempfile.TemporaryDirectory() as work:
        if options.here:
            measure(Environment(Path(sys.executable), Path(work), ROOT), options.repeat)
            return
        first = installed(Path(work) / "venv", ahead=not options.without)
        packages = next((Path(work) / "venv").glob("[Ll]ib*/**/site-packages"))
        print("after pip install .")
        measure(first, options.repeat)
        print("after copying site-packages to another path")
        copy = Path(work) / "elsewhere" / "packages"
        shutil.copytree(packages, copy)
        shutil.rmtree(packages / "nerm")
        measure(Environment(first.python, Path(work) / "other home", copy), options.repeat)


if __name__ == "__main__":
    main()
