"""Measure the loss of speed without a device: set a constant by its dotted name to a value that disables it.

    python benchmarks/ablation.py --list
    python benchmarks/ablation.py nerm.solvers.interior_point.engine.Tuning.left_behind=0.0 --families correlated mixed
    python benchmarks/ablation.py nerm.some.module.ROUNDS=1 nerm.some.module.SHARE=inf --scale 0.1 --repeat 3

Each assignment is measured by itself (with --at-once all of them at once) on families of data, in turn with
the package as it is, each in a process of its own. A ratio above 1 is lost without the device: the minimum of
processor seconds with the assignment over the minimum without. The name is that of a module's constant, which
is replaced in all modules that imported it, or of a field of a dataclass, whose default is replaced. Compiled
functions keep the constants that they were compiled with: --compiled gives each process an empty cache of
numba. A run whose answers are not certified within the tolerance is marked with "!".

Families: one-hot data as in tasks.py, dense Gaussian data, one-hot data with correlated attributes, a table of
numbers and dummies with a rare class, an rbf kernel, and wide sparse data. A device stays in the package if
two families on which it was not tuned lose more than 10 % without it.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import importlib
import json
import math
import os
import pkgutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parents[1]
TOL = 1e-6


def families() -> dict[str, Callable[[float], Any]]:
    """Return functions by name that draw a problem at a scale."""
    import scipy.sparse as sp
    from tasks import correlated, gaussian, mixed, one_hot, synthetic

    import nerm

    def wide(n: int) -> tuple[Any, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        X = sp.random_array((n, 10 * n), density=4 / n, format="csr", rng=rng)
        y, v = np.where(X @ rng.standard_normal((10 * n, 2)) > 0, 1.0, -1.0).T
        return X, y, v

    def drawn(draw: Callable[[int], Any], n: int, **options: Any) -> Callable[[float], Any]:
        def problem(scale: float) -> Any:
            X, y, v = draw(max(200, int(scale * n)))
            hinge = nerm.Hinge()
            objective = nerm.Risk(hinge) + 1.0 / len(y) * nerm.SquaredL2() + 1.0 * nerm.Neutrality(hinge)
            return objective.on(X, y, viewpoint=v, **options)

        return problem

    return {
        "onehot": drawn(one_hot, 60_420),
        "gaussian": drawn(gaussian, 40_000),
        "correlated": drawn(correlated, 30_000),
        "mixed": drawn(mixed, 30_000),
        "kernel": drawn(synthetic, 2_000, kernel="rbf"),
        "wide": drawn(wide, 2_000),
    }


def modules() -> Iterator[Any]:
    """Yield every module of nerm."""
    import nerm

    nerm.solvers.known()  # in the order of a user's first solve
    for found in pkgutil.walk_packages(nerm.__path__, "nerm."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


def constants() -> Iterator[tuple[str, Any]]:
    """Yield the dotted names and values of module-level numbers and of numeric fields of dataclasses."""
    for module in modules():
        for name, value in vars(module).items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if name.isupper() and number:
                yield f"{module.__name__}.{name}", value
            elif name.endswith("Tuning") and getattr(value, "__module__", "") == module.__name__:
                for field in dataclasses.fields(value):
                    yield f"{module.__name__}.{name}.{field.name}", field.default


def assign(dotted: str, value: Any) -> None:
    """Set a constant of a module, wherever it was imported, or the default of a field of a dataclass."""
    owner_name, _, name = dotted.rpartition(".")
    try:
        owner = importlib.import_module(owner_name)
    except ModuleNotFoundError:
        module_name, _, class_name = owner_name.rpartition(".")
        owner = getattr(importlib.import_module(module_name), class_name)
    if not hasattr(owner, name):
        raise SystemExit(f"{dotted} does not exist; see --list")
    old = getattr(owner, name)
    if isinstance(owner, type):
        setattr(owner, name, value)
        fields = [
            field.name for field in dataclasses.fields(owner) if field.default is not dataclasses.MISSING
        ]
        defaults = list(owner.__init__.__defaults__)
        defaults[fields.index(name)] = value
        owner.__init__.__defaults__ = tuple(defaults)
        for module in modules():
            for other, thing in list(vars(module).items()):
                if isinstance(thing, owner) and not isinstance(thing, type):
                    setattr(module, other, dataclasses.replace(thing, **{name: value}))
        return
    for module in modules():
        if getattr(module, name, None) is old:
            setattr(module, name, value)


def child(assignments: list[str]) -> None:
    """Answer the requests ["prepare", family, scale] and ["run"] with processor seconds and the largest gap."""
    out, sys.stdout = sys.stdout, sys.stderr
    for assignment in assignments:
        dotted, _, text = assignment.partition("=")
        assign(dotted, math.inf if text == "inf" else ast.literal_eval(text))
    known, problem = families(), None
    for line in sys.stdin:
        word, *rest = json.loads(line)
        if word == "prepare":
            problem = known[rest[0]](rest[1])
        assert problem is not None
        started = time.process_time()
        solutions = [problem.with_neutrality(eta).solve(tol=TOL) for eta in (0.1, 10.0)]
        solutions += problem.path([0.0, *np.geomspace(0.01, 100, 7)], tol=TOL)
        gap = max(solution.certificate.relative_gap for solution in solutions)
        print(json.dumps([time.process_time() - started, gap]), file=out, flush=True)


class Variant:
    """The package with some assignments, in a process of its own."""

    def __init__(self, assignments: list[str], cache: str | None) -> None:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE), str(HERE / "benchmarks")])}
        if cache is not None:
            env["NUMBA_CACHE_DIR"] = cache
        command = [sys.executable, __file__, "--child", *assignments]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env)

    def ask(self, *words: Any) -> tuple[float, float]:
        """Return processor seconds and the largest gap of one run."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit("a process ended; its error is above")
        seconds, gap = json.loads(answer)
        return seconds, gap

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


def compare(groups: list[list[str]], chosen: argparse.Namespace, cache: Callable[[int], str | None]) -> None:
    """Print the ratios of each group of assignments by family, and their geometric means."""
    variants = [Variant(group, cache(k)) for k, group in enumerate([[], *groups])]
    try:
        ratios: list[list[float]] = [[] for _ in groups]
        for family in chosen.families:
            first = [variant.ask("prepare", family, chosen.scale) for variant in variants]
            runs = [[variant.ask("run") for variant in variants] for _ in range(chosen.repeat)]
            seconds = [min(run[k][0] for run in runs) for k in range(len(variants))]
            print(f"{family}: {seconds[0]:.3f} s of processor")
            for k, group in enumerate(groups, start=1):
                ratios[k - 1].append(seconds[k] / seconds[0])
                mark = "" if max(run[k][1] for run in [first, *runs]) <= TOL else " !"
                print(f"  {seconds[k] / seconds[0]:6.2f}  {' '.join(group)}{mark}", flush=True)
        print("geometric mean")
        for group, found in zip(groups, ratios, strict=True):
            print(f"  {geometric_mean(found):6.2f}  {' '.join(group)}")
    finally:
        for variant in variants:
            variant.close()


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    names = ("onehot", "gaussian", "correlated", "mixed", "kernel", "wide")
    parser.add_argument("assignments", nargs="*", metavar="NAME=VALUE")
    parser.add_argument("--families", nargs="+", choices=names, default=["correlated", "mixed"])
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the number of rows")
    parser.add_argument("--at-once", action="store_true", help="all assignments at once")
    parser.add_argument("--compiled", action="store_true", help="an empty cache of numba for each process")
    parser.add_argument("--list", action="store_true", help="print the constants and their values")
    chosen = parser.parse_args()
    if chosen.list:
        for dotted, value in sorted(set(constants())):
            print(f"{dotted} = {value!r}")
        return
    if not chosen.assignments:
        parser.error("give NAME=VALUE, or --list")
    groups = [chosen.assignments] if chosen.at_once else [[each] for each in chosen.assignments]
    with tempfile.TemporaryDirectory() as folder:
        compare(groups, chosen, lambda k: f"{folder}/{k}" if chosen.compiled else None)


if __name__ == "__main__":
    child(sys.argv[2:]) if sys.argv[1:2] == ["--child"] else main()
