"""Compare the times of two trees of nerm case by case, and print each ratio and the geometric mean.

    python benchmarks/before_after.py 9ba0902                       every case, against a git revision
    python benchmarks/before_after.py 9ba0902 onehot path --repeat 9
    python benchmarks/before_after.py 9ba0902 --quick               small sizes, three runs each
    python benchmarks/before_after.py ../before                     against another working tree

A revision is checked out into a temporary worktree, which is removed at the end. Each tree runs in a process
of its own, which warms up on a small problem of the case and then solves the case again and again, alternating
with the other tree, so that noise on the machine is noise for both. Before each run there is a pause, because
BLAS threads of one tree keep their core for up to 0.1 s. The ratio is the minimum of the times here over the
minimum of the times before; a case whose answers are not certified within the tolerance is marked.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import geometric_mean
from typing import Any

HERE = Path(__file__).resolve().parents[1]
CLOCKS = {"wall": time.perf_counter, "processor": time.process_time}
PAUSE = 0.3  # seconds until the threads of the other tree leave the cores


def cases() -> dict[str, Callable[[float], Callable[[], float]]]:
    """Return functions by name that draw data at a scale and return a run; a run returns gap / tolerance."""
    import numpy as np
    import scipy.sparse as sp
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

    def wide(n: int) -> tuple[Any, np.ndarray, np.ndarray]:
        rng = np.random.default_rng(0)
        X = sp.random_array((n, 10 * n), density=40 / (10 * n), format="csr", rng=rng)
        w = rng.standard_normal((10 * n, 2))
        y, v = np.where(X @ w + 0.1 * rng.standard_normal((n, 2)) > 0, 1.0, -1.0).T
        return X, y, v

    def kernel(n: int, loss: Any = None, tol: float = 1e-4, columns: int | None = None) -> Any:
        def prepare(scale: float) -> Callable[[], float]:
            X, y, v = synthetic(max(100, int(scale * n)))
            X = X[:, :columns]
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
        "group-1": linear(gaussian, 20_000, 1.0, omega=nerm.GroupL2([[j, j + 1] for j in range(0, 50, 2)])),
        "wide-1": linear(wide, 2_000, 1.0),
        "small-1": linear(gaussian, 200, 1.0),
        "path": path(one_hot, 60_420),
        "path-dense": path(gaussian, 20_000),
        "kernel-200": kernel(200),
        "kernel-1000": kernel(1_000),
        "kernel-5000": kernel(5_000),
        "kernel-logistic-1500": kernel(1_500, nerm.Logistic()),
        "kernel-smooth-1500": kernel(1_500, nerm.SmoothHinge(), columns=2),
    }


def child() -> None:
    """Answer the requests "prepare NAME SCALE" and "run" with seconds and the gap / tolerance, as JSON."""
    out, sys.stdout = sys.stdout, sys.stderr
    known, run = cases(), None
    for line in sys.stdin:
        word, *rest = json.loads(line)
        if word == "prepare":
            known[rest[0]](0.02)()
            run = known[rest[0]](rest[1])
        assert run is not None
        started = CLOCKS[sys.argv[2]]()
        gap = run()
        print(json.dumps([CLOCKS[sys.argv[2]]() - started, gap]), file=out, flush=True)


class Tree:
    """A tree of nerm at work in its own process."""

    def __init__(self, folder: Path, clock: str) -> None:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), str(HERE / "benchmarks")])}
        command = [sys.executable, __file__, "--child", clock]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=env)

    def ask(self, *words: Any) -> tuple[float, float]:
        """Return the seconds and the gap / tolerance of one run."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        time.sleep(PAUSE)
        self.process.stdin.write(json.dumps(words) + "\n")
        self.process.stdin.flush()
        answer = self.process.stdout.readline()
        if not answer:
            raise SystemExit(f"a process ended during {' '.join(map(str, words))}; its error is above")
        seconds, gap = json.loads(answer)
        return seconds, gap

    def close(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.communicate()


@contextlib.contextmanager
def checked_out(before: str) -> Iterator[Path]:
    """Yield the folder of another tree: the one that is given, or a temporary worktree of a revision."""
    if Path(before).is_dir():
        yield Path(before).resolve()
        return
    git = ["git", "-C", str(HERE), "worktree"]
    with tempfile.TemporaryDirectory() as folder:
        tree = Path(folder) / "before"
        subprocess.run([*git, "add", "--quiet", "--detach", str(tree), before], check=True)
        try:
            yield tree
        finally:
            subprocess.run([*git, "remove", "--force", str(tree)], check=True)


def compare(names: list[str], trees: list[Tree], repeat: int, scale: float) -> None:
    """Print one line per case, and the geometric mean of the ratios."""
    print(f"{'case':<22}{'here':>10}{'before':>10}{'ratio':>8}   largest gap / tolerance, here and before")
    ratios = []
    for name in names:
        first = [tree.ask("prepare", name, scale) for tree in trees]
        runs = [[tree.ask("run") for tree in trees] for _ in range(repeat)]
        here, before = (min(pair[k][0] for pair in runs) for k in range(2))
        gaps = [max([first[k][1], *(pair[k][1] for pair in runs)]) for k in range(2)]
        mark = "" if max(gaps) <= 1 else "   not certified"
        ratios.append(here / before)
        line = f"{name:<22}{here:>10.4f}{before:>10.4f}{ratios[-1]:>8.2f}   {gaps[0]:.2f} {gaps[1]:.2f}{mark}"
        print(line, flush=True)
    print(f"{'geometric mean':<42}{geometric_mean(ratios):>8.2f}   largest {max(ratios):.2f}")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("before", help="a git revision, or the folder of another tree")
    parser.add_argument("names", nargs="*", help="cases, or beginnings of their names")
    parser.add_argument("--repeat", type=int, default=7, help="runs of each tree (7)")
    parser.add_argument("--scale", type=float, default=1.0, help="multiplies the number of rows (1.0)")
    parser.add_argument("--quick", action="store_true", help="the same as --repeat 3 --scale 0.1")
    parser.add_argument("--clock", choices=[*CLOCKS], default="wall", help="processor: for busy cores")
    chosen = parser.parse_args()
    repeat, scale = (3, 0.1) if chosen.quick else (chosen.repeat, chosen.scale)
    known = cases()
    names = [name for name in known if not chosen.names or name.startswith(tuple(chosen.names))]
    if not names:
        parser.error(f"no case begins with {' or '.join(chosen.names)}; there are {', '.join(known)}")
    with checked_out(chosen.before) as folder:
        trees = [Tree(HERE, chosen.clock), Tree(folder, chosen.clock)]
        try:
            compare(names, trees, repeat, scale)
        finally:
            for tree in trees:
                tree.close()


if __name__ == "__main__":
    child() if sys.argv[1:2] == ["--child"] else main()
