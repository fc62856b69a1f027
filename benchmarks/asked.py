"""A limit on the measured difference of positive rates: a search in single solves, and fairlearn's reductions.

    python benchmarks/asked.py              n = 60,420, one-hot, limits 0.05, 0.02 and 0.01
    python benchmarks/asked.py --peer       and fairlearn's ExponentiatedGradient at the tightest
    python benchmarks/asked.py --data adult --peer

Processor seconds, which others at work on the machine disturb least. A single solve is `Problem.solve` at the
weight that the search found, cold, the median of three, timed next to it. fairlearn is asked for the same
limit, once, with scikit-learn's LogisticRegression (lbfgs, to its own default tolerance), and need not meet
it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from sklearn.linear_model import LogisticRegression
from tasks import one_hot

from nerm import Hinge, Identity, Logistic, Neutrality, Ramp, Risk, SquaredL2
from nerm.baselines import FairlearnReduction
from nerm.datasets import load


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.process_time()
    result = call()
    return time.process_time() - started, result


def rows(data: str, n: int) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return X one-hot, labels and viewpoint."""
    if data == "drawn":
        return one_hot(n)
    loaded = load(data, coding="one-hot")
    return loaded.X, loaded.y, loaded.viewpoint


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", default="drawn", help="or a data set by name: adult, ...")
    parser.add_argument("--n", type=int, default=60_420, help="rows that are drawn")
    parser.add_argument("--limits", nargs="+", type=float, default=[0.05, 0.02, 0.01])
    parser.add_argument("--ramp", action="store_true", help="with a ramp too, whose single solves are many")
    parser.add_argument("--peer", action="store_true", help="fairlearn's ExponentiatedGradient too")
    chosen = parser.parse_args()
    warnings.simplefilter("ignore")
    X, y, v = rows(chosen.data, chosen.n)
    plain = Risk(Logistic()) + 1.0 / len(y) * SquaredL2()
    problem, ratios, slowest = plain.on(X, y, viewpoint=v), [], 0.0
    for surrogate in (Logistic(), Hinge(), Identity(), *([Ramp(1.0)] if chosen.ramp else [])):
        (plain + Neutrality(surrogate, weights="balanced", side="agreement")).on(
            X, y, viewpoint=v
        ).solve()  # compiles
        for limit in chosen.limits:
            seconds, found = timed(lambda psi=surrogate, t=limit: problem.neutralize(t, surrogate=psi))
            term = Neutrality(surrogate, weights="balanced", side=found.side)
            alone = (plain + found.eta * term).on(X, y, viewpoint=v)
            single = median(timed(alone.solve)[0] for _ in range(3))
            ratios.append(seconds / single)
            slowest = max(slowest, seconds)
            said = (
                f"{surrogate!r} at {limit:g}: {found.value:+.4f}, {len(found.trace)} solves, {seconds:.2f} s"
            )
            print(f"{said} = {ratios[-1]:.1f} single solves of {single:.3f} s", flush=True)
    print(f"most: {max(ratios):.1f} single solves, median {median(ratios):.1f}")
    if chosen.peer:
        limit = min(chosen.limits)
        eps = limit * max(np.mean(v > 0), np.mean(v < 0))
        model = FairlearnReduction(LogisticRegression(max_iter=1000), eps=eps)
        seconds, _ = timed(lambda: model.fit(X, y, viewpoint=v))
        chance = model.decision_function(X) + 0.5
        value = chance[v > 0].mean() - chance[v < 0].mean()
        said = f"ExponentiatedGradient at {limit:g}: {value:+.4f}, {model.n_iter_} turns, {seconds:.1f} s"
        print(f"{said} = {seconds / slowest:.0f} times the slowest search above")


if __name__ == "__main__":
    main()
