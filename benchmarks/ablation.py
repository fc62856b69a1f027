"""What each device of the engine is worth: it is switched off, on seven families of data, and the ratio is printed.

    NERM_DATA=... python benchmarks/ablation.py                     every family, every device
    NERM_DATA=... python benchmarks/ablation.py --families adult onehot --devices condensing extrapolation
    --repeat 7 python benchmarks/ablation.py --families onehot gaussian correlated --scale 0.1

A device is a field of `nerm.solvers.interior_point.Tuning` at a value that does nothing. Each is measured on
single solves at eta 0.1, 1 and 10 and on a path of 20 values, in turn with the engine as it is, so that a
noisy machine is noisy to both. A number above 1 is what is lost without the device: processor seconds, the
median over the repetitions, over those of the engine as it is; beside it the wall clock, and `work`, the
passes over rows (iterations times the share of the rows that each looks at), which no noise touches. The mean
over families is geometric. An answer whose relative gap, computed by `nerm.certify.certificate` from its
multipliers, is above the tolerance is marked with !, and has failed.

Families: three published data sets, one-hot (Adult, Bank, German; they need NERM_DATA), one-hot data as in
tasks.py, dense Gaussian data, one-hot data whose attributes are correlated, and a table of numbers and
dummies with a rare class.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from statistics import geometric_mean, median
from typing import Any

import numpy as np
import scipy.sparse as sp
from tasks import correlated, gaussian, mixed, one_hot

import nerm
from nerm.certify.certificate import best_certificate
from nerm.solvers.interior_point import Engine, Tuning, arrays

TOL = 1e-6
ETAS = (0.1, 1.0, 10.0)
PATH = (0.0, *np.geomspace(0.01, 100, 19))
OFF: dict[str, dict[str, Any]] = {
    "bold step": {"share": 0.0},
    "curved keep": {"curved_keep": Tuning().keep},
    "second-order bound": {"second_order": 1e6},
    "condensing": {"fewest": np.inf, "rounds": 0, "warm_rounds": 0},
    "condensing again": {"further": 0.0},
    "extrapolation": {"extrapolates": False},
    "stretches": {"stretch": 10**9},
}


def published(name: str) -> Callable[[float], tuple[Any, np.ndarray, np.ndarray]]:
    def load(scale: float) -> tuple[Any, np.ndarray, np.ndarray]:
        data = nerm.datasets.load(name, coding="one-hot")
        rows = slice(None, int(scale * len(data.y)))
        return sp.csr_matrix(data.X)[rows], data.y[rows], data.viewpoint[rows]

    return load


FAMILIES: dict[str, Callable[[float], tuple[Any, np.ndarray, np.ndarray]]] = {
    "adult": published("adult"),
    "bank": published("bank"),
    "german": published("german"),
    "onehot": lambda scale: one_hot(int(scale * 60_420)),
    "gaussian": lambda scale: gaussian(int(scale * 40_000)),
    "correlated": lambda scale: correlated(int(scale * 30_000)),
    "mixed": lambda scale: mixed(int(scale * 30_000)),
}


class Work:
    """Counts the rows that are looked at, as long as it is open."""

    def __enter__(self) -> Work:
        self.rows, self._linearise = 0, arrays.Arrays.linearise

        def counted(these: Any, *rest: Any) -> Any:
            self.rows += these.n_rows
            return self._linearise(these, *rest)

        arrays.Arrays.linearise = counted  # type: ignore[method-assign]
        return self

    def __exit__(self, *exc: object) -> None:
        arrays.Arrays.linearise = self._linearise  # type: ignore[method-assign]


def run(problems: list[Any], tuning: Tuning) -> tuple[float, float, float, bool]:
    """Return processor seconds, wall seconds, passes over rows, and whether the certificate is content with all."""
    first = problems[0]
    points = [(each.factors, sum(weight for weight, _ in each.regularizers)) for each in problems]
    with Work() as work:
        wall, cpu = time.perf_counter(), time.process_time()
        engine = Engine(
            first.hypothesis.X, first.blocks, first.divisor, intercept=first.intercept, tuning=tuning
        )
        answers = engine.path(points, 0.9 * TOL)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    certified = all(
        best_certificate(problem, answer.coef, answer.intercept, answer.multipliers)[1].relative_gap <= TOL
        for problem, answer in zip(problems, answers, strict=True)
    )
    return cpu, wall, work.rows / first.hypothesis.n, certified


def tasks(X: Any, y: np.ndarray, v: np.ndarray, atom: Any) -> dict[str, list[Any]]:
    """Return the problems of each measurement: one, or a path of them."""
    objective = nerm.Risk(atom) + 1.0 / len(y) * nerm.SquaredL2() + 1.0 * nerm.Neutrality(atom)
    problem = objective.on(X, y, viewpoint=v)
    singles = {f"{eta:g}": [problem.with_neutrality(eta)] for eta in ETAS}
    return {**singles, "path": [problem.with_neutrality(eta) for eta in PATH]}


def measure(
    problems: list[Any], devices: list[str], repeat: int
) -> dict[str, tuple[float, float, float, bool]]:
    """Return for the engine as it is and for each device without it the medians over interleaved runs."""
    tunings = {"": Tuning()} | {device: replace(Tuning(), **OFF[device]) for device in devices}
    runs: dict[str, list[tuple[float, float, float, bool]]] = {name: [] for name in tunings}
    for _ in range(repeat):
        for name, tuning in tunings.items():
            runs[name].append(run(problems, tuning))
    return {
        name: (*(median(each[k] for each in found) for k in range(3)), all(each[3] for each in found))  # type: ignore[misc]
        for name, found in runs.items()
    }


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--families", nargs="+", choices=FAMILIES, default=list(FAMILIES))
    parser.add_argument("--devices", nargs="+", choices=OFF, default=list(OFF))
    parser.add_argument("--atom", choices=("Hinge", "SmoothHinge", "SquaredHinge"), default="Hinge")
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the number of rows, for a trial")
    args = parser.parse_args(argv)
    ratios: dict[tuple[str, str, int], list[float]] = {}
    failed: dict[str, int] = {}
    for family in args.families:
        data = FAMILIES[family](args.scale)
        for task, problems in tasks(*data, getattr(nerm, args.atom)()).items():
            run(problems, Tuning())  # compiles and warms up
            found = measure(problems, args.devices, args.repeat)
            cpu, wall, work, certified = found.pop("")
            print(
                f"{family}, {task}: {cpu:.3f} s of processor, {wall:.3f} s, work {work:.1f}{'' if certified else ' !'}"
            )
            for device, row in found.items():
                against = [now / before for now, before in zip(row, (cpu, wall, work), strict=False)]
                mark = "" if row[3] else " !"
                print(
                    f"  without {device:26s} {against[0]:6.2f} {against[1]:6.2f} {against[2]:6.2f}{mark}",
                    flush=True,
                )
                failed[device] = failed.get(device, 0) + (not row[3])
                for k in range(3):
                    ratios.setdefault((device, "path" if task == "path" else "single", k), []).append(
                        against[k]
                    )
    print(
        "\nmean over families, without       single: processor, wall, work    path: processor, wall, work    failed"
    )
    for device in args.devices:
        means = [geometric_mean(ratios[device, kind, k]) for kind in ("single", "path") for k in range(3)]
        print(f"{device:34s}", *(f"{mean:9.2f}" for mean in means), f"{failed[device]:9d}")


if __name__ == "__main__":
    sys.exit(main())
