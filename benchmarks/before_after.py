"""Two checkouts of nerm side by side: every case in turn in both, as the ratio of their times.

    git worktree add ../before COMMIT
    python benchmarks/before_after.py ../before                     every case
    python benchmarks/before_after.py ../before onehot path --repeat 9

Each checkout lives in a process of its own, which warms up on a small problem of the case and then solves it
again and again, alternating with the other, so that a noisy machine is noisy to both. Before each run there
is a pause: threads of BLAS wait for more work on a core of their own, up to 0.1 s after one checkout has
finished, and would take it from the other. A ratio is the median of this checkout's times over the median of
the other's; an answer that is not certified within its tolerance has no time.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from statistics import median
from typing import Any

HERE = Path(__file__).resolve().parents[1]
PAUSE = 0.3  # seconds until the other checkout leaves the cores alone


def cases() -> dict[str, Callable[[float], Callable[[], float]]]:
    """Return by name what draws the data at a scale and returns a run, which returns the relative gap it reached."""
    import numpy as np
    from tasks import gaussian, one_hot, synthetic

    import nerm

    def objective(lam: float, eta: float, loss: Any = None, omega: Any = None) -> Any:
        loss = nerm.Hinge() if loss is None else loss
        return (
            nerm.Risk(loss)
            + lam * (nerm.SquaredL2() if omega is None else omega)
            + eta * nerm.Neutrality(loss)
        )

    def linear(draw: Any, n: int, eta: float, tol: float = 1e-6, fresh: bool = False, **atoms: Any) -> Any:
        def prepare(scale: float) -> Callable[[], float]:
            X, y, v = draw(max(200, int(scale * n)))
            stated = objective(1.0 / len(y), eta, **atoms)
            bound = stated.on(X, y, viewpoint=v)

            def run() -> float:
                problem = stated.on(X, y, viewpoint=v) if fresh else bound
                return float(problem.solve(tol=tol).certificate.relative_gap / tol)

            return run

        return prepare

    def path(draw: Any, n: int) -> Any:
        def prepare(scale: float) -> Callable[[], float]:
            X, y, v = draw(max(200, int(scale * n)))
            problem = objective(1.0 / len(y), 1.0).on(X, y, viewpoint=v)
            grid = np.geomspace(0.01, 10, 20)
            return lambda: max(s.certificate.relative_gap for s in problem.path(grid)) / 1e-6

        return prepare

    def kernel(n: int, loss: Any = None, tol: float = 1e-4) -> Any:
        def prepare(scale: float) -> Callable[[], float]:
            X, y, v = synthetic(max(100, int(scale * n)))
            stated = objective(1.0 / len(y), 1.0, loss)
            return lambda: (
                stated.on(X, y, viewpoint=v, kernel="rbf").solve(tol=tol).certificate.relative_gap / tol
            )

        return prepare

    def fit(eta: float) -> Any:
        def prepare(scale: float) -> Callable[[], float]:
            X, y, v = one_hot(max(200, int(scale * 60_420)))
            return lambda: nerm.NeutralSVC(eta=eta).fit(X, y, viewpoint=v).certificate_.relative_gap / 1e-6

        return prepare

    return {
        "onehot-0": linear(one_hot, 60_420, 0.0),
        "onehot-0.1": linear(one_hot, 60_420, 0.1),
        "onehot-1": linear(one_hot, 60_420, 1.0),
        "onehot-10": linear(one_hot, 60_420, 10.0),
        "onehot-1-bound-anew": linear(one_hot, 60_420, 1.0, fresh=True),
        "fit-1": fit(1.0),
        "dense-1": linear(gaussian, 100_000, 1.0),
        "logistic-1": linear(one_hot, 60_420, 1.0, loss=nerm.Logistic()),
        "l1-1": linear(gaussian, 20_000, 1.0, omega=nerm.L1()),
        "million-1": linear(one_hot, 1_000_000, 1.0),
        "small-1": linear(gaussian, 200, 1.0),
        "path": path(one_hot, 60_420),
        "path-dense": path(gaussian, 20_000),
        "kernel-1500": kernel(1_500),
        "kernel-5000": kernel(5_000),
        "kernel-logistic-1500": kernel(1_500, nerm.Logistic()),
    }


def child() -> None:
    """Answer lines of JSON, "prepare NAME" and "run", with seconds and the gap in units of the tolerance."""
    out, sys.stdout = sys.stdout, sys.stderr
    known, run = cases(), None
    for line in sys.stdin:
        word, *rest = json.loads(line)
        if word == "prepare":
            known[rest[0]](0.02)()
            run = known[rest[0]](rest[1])
        assert run is not None
        started = time.perf_counter()
        gap = run()
        print(json.dumps([time.perf_counter() - started, gap]), file=out, flush=True)


class Checkout:
    """A checkout at work in its own process."""

    def __init__(self, folder: Path) -> None:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(HERE / "benchmarks")])}
        command = [sys.executable, __file__, "--child"]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env
        )

    def ask(self, *words: Any) -> tuple[float, float]:
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        time.sleep(PAUSE)
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        seconds, gap = json.loads(self.process.stdout.readline())
        return seconds, gap


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", type=Path, help="the other checkout")
    parser.add_argument("names", nargs="*", help="cases, or beginnings of their names")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--scale", type=float, default=1.0)
    chosen = parser.parse_args()
    names = [n for n in cases() if not chosen.names or any(n.startswith(begin) for begin in chosen.names)]
    both = [Checkout(HERE), Checkout(chosen.before.resolve())]
    print(f"{'case':<22}{'here':>10}{'before':>10}{'ratio':>8}   worst gap / tolerance, here and before")
    for name in names:
        first = [checkout.ask("prepare", name, chosen.scale) for checkout in both]
        runs = [[checkout.ask("run") for checkout in both] for _ in range(chosen.repeat)]
        times = [median(pair[k][0] for pair in runs) for k in range(2)]
        gaps = [max([first[k][1], *(pair[k][1] for pair in runs)]) for k in range(2)]
        verdict = "" if max(gaps) <= 1 else "   not certified"
        ratio = times[0] / times[1]
        print(
            f"{name:<22}{times[0]:>10.4f}{times[1]:>10.4f}{ratio:>8.2f}   {gaps[0]:.2f} {gaps[1]:.2f}{verdict}",
            flush=True,
        )


if __name__ == "__main__":
    child() if sys.argv[1:] == ["--child"] else main()
