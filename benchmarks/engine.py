"""The engine beside its peers: objective, gap, time, peak memory and the ratio of times.

    python benchmarks/engine.py onehot --n 60420 --eta 0.1 1 10 --peers clarabel piqp
    python benchmarks/engine.py onehot --n 60420 --eta 0 --peers liblinear --accuracy 1e-4
    python benchmarks/engine.py onehot --n 60420 --eta 1 --peers rehline --accuracy 1e-4
    python benchmarks/engine.py dense --n 100000 --d 50 --peers clarabel
    python benchmarks/engine.py logistic --n 60420 --peers clarabel sklearn
    python benchmarks/engine.py growth --n 100000 1000000
    python benchmarks/engine.py path --n 60420

Every contestant runs in a process of its own (peak memory is that process's) and is timed there after its imports and,
for the engine, after one tiny problem that loads the compiled code, as the median of 5. Times through cvxpy include its
compilation, which a user pays too. Objectives are recomputed here from the coefficients. The gap of every contestant is
taken to the same lower bound, the engine's, itself recomputed from its multipliers; a claim of success is not success.

Settings: data with 13 categorical attributes of about 100 values, frequencies falling like 1/rank, or Gaussian; sum
form with lambda (default 1), intercept free, one viewpoint of -1/+1. cvxpy models tie the scores by an equality and run
with the solver's tolerances at --solver-tol (default: the requested accuracy), for PIQP and OSQP absolute and relative.
LIBLINEAR and ReHLine know no free intercept: they get a column of 10s, whose weight is part of their norm. ReHLine
knows no maximum: theta is found by bisection on the sign of C^+ - C^-, each solve warm started, until the accuracy is
reached.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import sys
import time
from itertools import pairwise
from typing import Any

import numpy as np
import scipy.sparse as sp

CVXPY = ("clarabel", "osqp", "ecos", "scs", "piqp")
CONSTANT = 10.0
REPEATS = 5  # of the engine, whose median is reported; the peers run longer and once


def one_hot(n: int, columns: int = 100, attributes: int = 13, seed: int = 0) -> tuple[Any, np.ndarray, np.ndarray]:
    """Draw one-hot data with a label and a viewpoint from correlated logistic models."""
    rng = np.random.default_rng(seed)
    sizes = [columns // attributes + (a < columns % attributes) for a in range(attributes)]
    index = np.empty((n, attributes), dtype=np.int32)
    for a, size in enumerate(sizes):
        share = 1.0 / np.arange(1, size + 1)
        index[:, a] = sum(sizes[:a]) + rng.choice(size, n, p=share / share.sum())
    pointer = np.arange(0, n * attributes + 1, attributes)
    X = sp.csr_matrix((np.ones(n * attributes), index.ravel(), pointer), shape=(n, columns))
    return X, *_targets(X, rng)


def gaussian(n: int, columns: int = 50, seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Draw dense Gaussian data in the same way."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, columns))
    return X, *_targets(X, rng)


def _targets(X: Any, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    direction = rng.normal(size=X.shape[1])
    found = []
    for w in (direction, 0.5 * direction + rng.normal(size=X.shape[1])):
        scores = X @ w
        noise = rng.logistic(size=X.shape[0])
        found.append(np.where(scores - np.median(scores) + noise > 0, 1.0, -1.0))
    return found[0], found[1]


def hinge(m: np.ndarray) -> np.ndarray:
    return np.maximum(0.0, 1.0 - m)


def logistic(m: np.ndarray) -> np.ndarray:
    return np.logaddexp(0.0, -m)


class Task:
    """One problem: how to draw its data, its weights and its atom; cheap to send to another process."""

    def __init__(self, kind: str, n: int, d: int, lam: float, eta: float, accuracy: float, solver_tol: float) -> None:
        self.kind, self.n, self.d, self.lam, self.eta = kind, n, d, lam, eta
        self.accuracy, self.solver_tol = accuracy, solver_tol
        self.value = logistic if kind == "logistic" else hinge

    def data(self) -> tuple[Any, np.ndarray, np.ndarray]:
        return gaussian(self.n, self.d) if self.kind == "dense" else one_hot(self.n, self.d)

    def objective(self, X: Any, y: np.ndarray, v: np.ndarray, coef: np.ndarray, intercept: float) -> float:
        f = X @ coef + intercept
        neutrality = max(self.value(v * f).mean(), self.value(-v * f).mean()) if self.eta else 0.0
        return float(self.value(y * f).mean() + self.lam / (2 * self.n) * (coef @ coef) + self.eta * neutrality)


def run_engine(task: Task) -> dict[str, Any]:
    from nerm.engine import solve

    X, y, v = task.data()
    small = Task(task.kind, 200, task.d, task.lam, task.eta, task.accuracy, task.solver_tol)
    solve(_model(small, *small.data()))
    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    model, times = _model(task, X, y, v), []
    for _ in range(REPEATS if task.n <= 200_000 else 1):
        started = time.perf_counter()
        result = solve(model, task.accuracy)
        times.append(time.perf_counter() - started)
    seconds = float(np.median(times))
    return {
        "seconds": seconds,
        "objective": task.objective(X, y, v, result.coef, result.intercept),
        "bound": _bound(task, X, y, v, result),
        "note": f"{result.iterations} iterations, {result.rows} distinct rows",
        "data": _size(X),
        "held": held,
    }


def _model(task: Task, X: Any, y: np.ndarray, v: np.ndarray) -> Any:
    from nerm.engine import HINGE, LOGISTIC, LinearModel, LossTerm, NeutralityTerm

    margin = LOGISTIC if task.kind == "logistic" else HINGE
    one = np.ones(len(y))
    return LinearModel(
        X, y, (LossTerm(margin, one),), task.lam / len(y), (NeutralityTerm(margin, task.eta, v, one),)
    )  # fmt: skip


def _size(X: Any) -> int:
    return int(X.data.nbytes + X.indices.nbytes + X.indptr.nbytes) if sp.issparse(X) else int(X.nbytes)


def _bound(task: Task, X: Any, y: np.ndarray, v: np.ndarray, result: Any) -> float:
    """Recompute the dual bound from the multipliers; nan if they are not feasible."""
    theta, n = result.theta[0], len(y)
    parts = [(1.0, y, result.alpha[0])]
    if task.eta:
        parts += [
            (task.eta * theta, v, result.beta_plus[0]),
            (task.eta * (1 - theta), -v, result.beta_minus[0]),
        ]
    c, value = np.zeros(n), 0.0
    for weight, target, m in parts:
        if (m < -1e-12).any() or (m > 1 + 1e-12).any():
            return np.nan
        m = np.clip(m, 0.0, 1.0)
        c += weight * target * m
        conjugate = -m
        if task.kind == "logistic":
            from scipy.special import xlogy

            conjugate = xlogy(m, m) + xlogy(1 - m, 1 - m)
        value -= weight * conjugate.mean()
    if abs(c.sum()) > 1e-9 * np.abs(c).sum():
        return np.nan
    q = X.T @ c
    return float(value - q @ q / (2 * task.lam * n))


def run_cvxpy(task: Task, solver: str) -> dict[str, Any]:
    import warnings

    import cvxpy as cp

    X, y, v = task.data()
    tol = task.solver_tol
    options = {
        "clarabel": {"tol_gap_abs": tol, "tol_gap_rel": tol, "tol_feas": tol},
        "ecos": {"abstol": tol, "reltol": tol, "feastol": tol},
        "scs": {"eps_abs": tol, "eps_rel": tol, "max_iters": 10**6},
        "osqp": {"eps_abs": tol, "eps_rel": tol, "max_iter": 10**6},
        "piqp": {"eps_abs": tol, "eps_rel": tol},
    }[solver]
    started = time.perf_counter()
    w, b, f = cp.Variable(X.shape[1]), cp.Variable(), cp.Variable(task.n)
    atom = cp.logistic if task.kind == "logistic" else (lambda m: cp.pos(1 + m))
    value = cp.sum(atom(-cp.multiply(y, f))) + task.lam / 2 * cp.sum_squares(w)
    if task.eta:
        sides = [cp.sum(atom(-cp.multiply(sign * v, f))) for sign in (1.0, -1.0)]
        value += task.eta * cp.maximum(*sides)
    problem = cp.Problem(cp.Minimize(value), [f == X @ w + b])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        problem.solve(solver=solver.upper(), **options)
    seconds = time.perf_counter() - started
    if w.value is None:
        return {"seconds": seconds, "objective": np.nan, "note": problem.status}
    objective = task.objective(X, y, v, w.value, float(b.value))
    return {"seconds": seconds, "objective": objective, "note": problem.status}


def _with_constant(X: Any) -> Any:
    column = np.full((X.shape[0], 1), CONSTANT)
    return sp.hstack([X, sp.csr_matrix(column)], format="csr") if sp.issparse(X) else np.hstack([X, column])


def run_liblinear(task: Task) -> dict[str, Any]:
    """Tighten LIBLINEAR's own tolerance by tens; the first run is the one reported if its objective is good enough."""
    import warnings

    from sklearn.svm import LinearSVC

    X, y, v = task.data()
    bound, best = run_engine(task)["bound"], {}
    for tol in (1e-1, 1e-2, 1e-3, 1e-4):
        machine = LinearSVC(
            loss="hinge",
            C=1 / task.lam,
            intercept_scaling=CONSTANT,
            tol=tol,
            max_iter=100_000,
            dual=True,
            random_state=0,
        )
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine.fit(X, y)
        seconds = time.perf_counter() - started
        objective = task.objective(X, y, v, machine.coef_[0], float(machine.intercept_[0]))
        best = {"seconds": seconds, "objective": objective, "note": f"eta = 0 only, tol {tol:g}"}
        if objective - bound <= task.accuracy * abs(objective):
            break
    return best


def run_sklearn(task: Task) -> dict[str, Any]:
    """Fit plain logistic regression (eta = 0) at the tolerance that reaches the accuracy on its own objective."""
    import warnings

    from sklearn.linear_model import LogisticRegression

    X, y, v = task.data()
    plain = Task("logistic", task.n, task.d, task.lam, 0.0, task.accuracy, task.solver_tol)
    bound, best = run_engine(plain)["bound"], {}
    for tol in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7):
        machine = LogisticRegression(C=1 / task.lam, tol=tol, max_iter=10_000)
        started = time.perf_counter()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            machine.fit(X, y)
        seconds = time.perf_counter() - started
        objective = plain.objective(X, y, v, machine.coef_[0], float(machine.intercept_[0]))
        gap = (objective - bound) / objective
        best = {"seconds": seconds, "objective": objective, "gap": gap, "note": f"eta = 0, tol {tol:g}"}
        if gap <= task.accuracy:
            break
    return best


def run_rehline(task: Task) -> dict[str, Any]:
    """Bisect on theta; a solve is one ReHLine run on 3 n hinges."""
    from rehline import ReHLine_solver

    X, y, v = task.data()
    bound = run_engine(task)["bound"]
    wide = _with_constant(X)
    low, high, best, multipliers, runs = 0.0, 1.0, np.inf, None, 0
    started = time.perf_counter()
    while runs < 40:
        theta = 0.5 * (low + high)
        weights = np.array([1.0, task.eta * theta, task.eta * (1 - theta)]) / task.lam
        U = np.vstack([-weights[0] * y, -weights[1] * v, weights[2] * v])
        V = np.repeat(weights[:, None], task.n, axis=1)
        found = ReHLine_solver(wide, U, V, Lambda=multipliers, max_iter=100_000, tol=0.1 * task.accuracy, verbose=0)
        multipliers, runs = found.Lambda, runs + 1
        coef, intercept = found.beta[:-1], CONSTANT * found.beta[-1]
        best = min(best, task.objective(X, y, v, coef, float(intercept)))
        if best - bound <= task.accuracy * abs(best):
            break
        f = X @ coef + intercept
        low, high = (theta, high) if hinge(v * f).mean() > hinge(-v * f).mean() else (low, theta)
    return {"seconds": time.perf_counter() - started, "objective": best, "note": f"{runs} values of theta"}


def contest(name: str, task: Task, out: Any) -> None:
    runs = {"engine": run_engine, "liblinear": run_liblinear, "sklearn": run_sklearn, "rehline": run_rehline}
    try:
        row = runs[name](task) if name in runs else run_cvxpy(task, name)
    except Exception as error:
        row = {"seconds": np.nan, "objective": np.nan, "note": f"{type(error).__name__}: {error}"[:60]}
    row["peak"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    out.put(row)


def measure(name: str, task: Task, limit: float) -> dict[str, Any]:
    """Run one contestant in a process of its own."""
    context = multiprocessing.get_context("spawn")
    out = context.Queue()
    process = context.Process(target=contest, args=(name, task, out))
    process.start()
    try:
        row = out.get(timeout=limit)
    except Exception:
        row = {"seconds": np.nan, "objective": np.nan, "peak": 0, "note": f"no answer in {limit:g} s"}
    process.terminate()
    process.join()
    return row


def table(args: argparse.Namespace, eta: float, n: int) -> dict[str, Any]:
    solver_tol = args.solver_tol or args.accuracy
    task = Task(args.suite if args.suite != "growth" else "onehot", n, args.d, args.lam, eta, args.accuracy, solver_tol)
    print(f"\n{args.suite}: n = {n}, d = {args.d}, lambda = {args.lam:g}, eta = {eta:g}, accuracy {args.accuracy:g}")
    print("contestant       objective       gap   seconds  peak MiB    ratio  reached, note")
    ours = measure("engine", task, args.limit)
    for name in ["engine", *args.peers]:
        row = ours if name == "engine" else measure(name, task, args.limit)
        gap = row.get("gap", (row["objective"] - ours.get("bound", np.nan)) / abs(row["objective"]))
        reached = "yes" if gap <= args.accuracy else "no"
        ratio = row["seconds"] / ours["seconds"]
        print(
            f"{name:12s} {row['objective']:13.9f} {gap:9.1e} {row['seconds']:9.3f} {row['peak'] / 1024:9.0f}"
            f" {ratio:8.1f}  {reached}, {row['note']}",
            flush=True,
        )
    return ours


def growth(args: argparse.Namespace) -> None:
    for eta in args.eta:
        rows = [table(args, eta, n) for n in args.n]
        for (small, big), (first, last) in zip(pairwise(args.n), pairwise(rows), strict=True):
            exponent = np.log(last["seconds"] / first["seconds"]) / np.log(big / small)
            allowed = 6 * last["data"] / 2**20 + 1024
            peak = last["peak"] / 1024
            print(f"time exponent {exponent:.3f}; peak {peak:.0f} MiB, 6 x data + 1 GiB = {allowed:.0f} MiB")


def path(args: argparse.Namespace) -> None:
    from nerm.engine import solve, solve_path

    for n in args.n:
        task = Task("onehot", n, args.d, args.lam, 1.0, args.accuracy, args.accuracy)
        model = _model(task, *task.data())
        solve(model, args.accuracy)
        singles = []
        for eta in (0.1, 1.0, 10.0):
            started = time.perf_counter()
            solve(model.with_eta_scaled(eta), args.accuracy)
            singles.append(time.perf_counter() - started)
        started = time.perf_counter()
        results = solve_path(model, [0.0, *np.geomspace(0.01, 100, 19)], args.accuracy)
        seconds = time.perf_counter() - started
        worst = max(r.relative_gap for r in results)
        single = float(np.mean(singles))
        print(
            f"path: n = {n}, 20 values of eta: {seconds:.3f} s; a single solve (mean of eta 0.1, 1, 10): {single:.3f} s"
        )
        print(f"ratio {seconds / single:.1f}; worst gap {worst:.1e}; iterations {[r.iterations for r in results]}")


def main(argv: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suite", choices=["onehot", "dense", "logistic", "growth", "path"])
    parser.add_argument("--n", type=int, nargs="+", default=[60_420])
    parser.add_argument("--d", type=int, default=100)
    parser.add_argument("--lam", type=float, default=1.0)
    parser.add_argument("--eta", type=float, nargs="+", default=[1.0])
    parser.add_argument("--accuracy", type=float, default=1e-6)
    parser.add_argument("--solver-tol", type=float, default=None)
    parser.add_argument("--peers", nargs="*", default=[], choices=[*CVXPY, "liblinear", "sklearn", "rehline"])
    parser.add_argument("--limit", type=float, default=900.0, help="seconds granted to each contestant")
    args = parser.parse_args(argv)
    if args.suite == "path":
        path(args)
    elif args.suite == "growth":
        growth(args)
    else:
        for n in args.n:
            for eta in args.eta:
                table(args, eta, n)


if __name__ == "__main__":
    sys.exit(main())
