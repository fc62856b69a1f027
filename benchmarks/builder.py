"""The builder against cvxpy by hand, and the cost of compiling a path, side by side in one run.

    python benchmarks/builder.py --rows 5000 --columns 50 --repeat 5

Prints (1) the time to build and solve the neutral SVM through nerm's builder and written by hand in cvxpy,
both with Clarabel at the same tolerances, as a ratio of medians; (2) cvxpy's own compilation times summed
over a path of twenty neutrality weights against one fresh compilation.
"""

from __future__ import annotations

import argparse
import statistics
import time

import cvxpy as cp
import numpy as np

import nerm

TOLERANCES = {"tol_gap_abs": 1e-8, "tol_gap_rel": 1e-8, "tol_feas": 1e-8}


def make_data(n, d):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)


def by_hand(X, y, v, mu, eta):
    """Write the neutral SVM as a cvxpy user does, with the scores as a variable."""
    n, d = X.shape
    w, b, f = cp.Variable(d), cp.Variable(), cp.Variable(n)
    risk = cp.sum(cp.pos(1 - cp.multiply(y, f))) / n
    sides = [cp.sum(cp.pos(1 - cp.multiply(side * v, f))) / n for side in (1, -1)]
    return cp.Problem(
        cp.Minimize(risk + mu / 2 * cp.sum_squares(w) + eta * cp.maximum(*sides)), [f == X @ w + b]
    )


def timed(make):
    started = time.perf_counter()
    problem = make()
    problem.solve(solver="CLARABEL", **TOLERANCES)
    return time.perf_counter() - started, problem.value


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--columns", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=5)
    arguments = parser.parse_args()

    X, y, v = make_data(arguments.rows, arguments.columns)
    objective = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    problem = objective.on(X, y, viewpoint=v)
    pairs = [
        (timed(problem.to_cvxpy), timed(lambda: by_hand(X, y, v, 0.05, 1.0))) for _ in range(arguments.repeat)
    ]
    ours, theirs = (statistics.median(pair[k][0] for pair in pairs) for k in (0, 1))
    print(f"build and solve, n = {arguments.rows}, d = {arguments.columns}, median of {arguments.repeat}")
    print(f"  builder {ours:7.3f} s   objective {pairs[0][0][1]:.9f}")
    print(f"  by hand {theirs:7.3f} s   objective {pairs[0][1][1]:.9f}")
    print(f"  ratio   {ours / theirs:7.3f}")

    X, y, v = make_data(2000, 50)
    problem = objective.on(X, y, viewpoint=v)
    fresh = problem.to_cvxpy()
    fresh.get_problem_data("CLARABEL")
    path = problem.path(np.geomspace(0.01, 100, 20), solver="clarabel")
    spent = sum(s.stats.details["compilation_seconds"] for s in path)
    worst = max(s.certificate.relative_gap for s in path)
    print(
        f"path of 20, n = 2000, d = 50: {spent:.4f} s of compilation, {fresh.compilation_time:.4f} s for a fresh build"
    )
    print(f"  ratio   {spent / fresh.compilation_time:7.3f}   (worst certified relative gap {worst:.1e})")


if __name__ == "__main__":
    main()
