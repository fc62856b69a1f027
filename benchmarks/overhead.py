"""What stands around the engine costs: the engine alone, `Problem.solve`, and `NeutralSVC.fit`, on the same problem.

    python benchmarks/overhead.py --repeat 15

The three take turns, so that a noisy machine is noisy to all; medians of seconds and their ratios.
`Problem.solve` adds the session and the certificate, `NeutralSVC.fit` the checks, the binding of the data and
the facts that bounds ask for.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

from tasks import one_hot

import nerm
from nerm.solvers.interior_point.engine import Engine


def contestants(n: int, eta: float) -> dict[str, Callable[[], Any]]:
    X, y, v = one_hot(n)
    objective = nerm.Risk(nerm.Hinge()) + (1.0 / n) * nerm.SquaredL2() + eta * nerm.Neutrality(nerm.Hinge())
    problem = objective.on(X, y, viewpoint=v)

    def engine() -> Any:
        return Engine(problem).answer(problem, 1e-6, {})

    return {
        "engine": engine,
        "Problem.solve": lambda: problem.solve("interior-point"),
        "NeutralSVC.fit": lambda: nerm.NeutralSVC(lam=1.0, eta=eta).fit(X, y, viewpoint=v),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--n", type=int, default=60_420)
    parser.add_argument("--eta", type=float, nargs="+", default=[0.1, 1.0, 10.0])
    parser.add_argument("--repeat", type=int, default=15)
    chosen = parser.parse_args()
    for eta in chosen.eta:
        runs = contestants(chosen.n, eta)
        seconds: dict[str, list[float]] = {name: [] for name in runs}
        for turn in range(chosen.repeat + 2):  # two to warm up
            for name, run in runs.items():
                started = time.perf_counter()
                run()
                if turn >= 2:
                    seconds[name].append(time.perf_counter() - started)
        engine, solve, fit = (median(seconds[name]) for name in runs)
        print(
            f"eta {eta:<5g} engine {engine:.4f} s   Problem.solve {solve:.4f} s, {solve / engine:.2f} times   "
            f"NeutralSVC.fit {fit:.4f} s, {fit / solve:.2f} times Problem.solve"
        )


if __name__ == "__main__":
    main()
