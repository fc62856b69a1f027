"""Time losses and surrogates of one's own, one line of cvxpy each, beside the built-in hinge and logistic loss.

    python benchmarks/own_atoms.py                      all cases: dense and one-hot, 20,000 and 60,420 rows; rbf; wide; small
    python benchmarks/own_atoms.py --data rbf wide      some of them
    python benchmarks/own_atoms.py --clarabel           Clarabel beside it, where it takes less than --limit seconds

Twelve formulas: six piecewise quadratic, three smooth, three neither. Half of them (marked *) were not used to
develop the code. The time is the least processor time of three runs of `Problem.solve` with the certificate; the ratio
is to the built-in hinge (piecewise quadratic formulas, per block that the formula needs) or logistic loss (the others).
At 200 rows the seconds beyond the built-in are shown, those to make the atom and the problem included. A line ends with
"too slow" where the ratio exceeds the bound of its case (`BOUNDS`) or the gap exceeds 1e-6.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import cvxpy as cp
import numpy as np
import scipy.sparse as sp
from tasks import gaussian, one_hot, synthetic

import nerm

FORMULAS: dict[str, tuple[str, Any]] = {
    "multi-hinge": ("quadratic", lambda m: cp.maximum(0, 1 - m, 2 * (0.2 - m))),
    "huber": ("quadratic", lambda m: cp.huber(1 - m, 2.0)),
    "soft hinge": ("quadratic", lambda m: cp.huber(cp.pos(1 - m), 0.5)),
    "two squares *": ("quadratic", lambda m: cp.square(cp.pos(1 - m)) + 0.5 * cp.square(cp.pos(-1 - m))),
    "insensitive *": ("quadratic", lambda m: cp.pos(cp.abs(1 - m) - 0.3)),
    "reward *": ("quadratic", lambda m: cp.maximum(1 - m, 0.2 * (1 - m), 0.05 * (m - 3))),
    "softplus": ("smooth", lambda m: cp.logistic(2 * (1 - m)) / 2),
    "linex *": ("smooth", lambda m: cp.exp(1 - m) + m - 2),
    "pseudo-huber *": (
        "smooth",
        lambda m: cp.norm(cp.vstack([1 - m, np.ones(m.shape)]), 2, axis=0) - 0.5 * m,
    ),
    "power 1.5": ("neither", lambda m: cp.power(cp.pos(1 - m), 1.5)),
    "exp pos": ("neither", lambda m: cp.exp(cp.pos(0.3 - m))),
    "logistic + pos *": ("neither", lambda m: cp.logistic(-2 * m) + 0.7 * cp.pos(0.5 - m)),
}


CASES = [("small", 200), ("dense", 20_000), ("one-hot", 20_000), ("dense", 60_420), ("one-hot", 60_420), ("rbf", 3_000),
         ("wide", 5_000)]  # fmt: skip
#: The largest ratios of quadratic, smooth and other formulas; at 200 rows the largest additional seconds.
BOUNDS = {
    "dense": (2, 4, 10),
    "one-hot": (2, 4, 10),
    "rbf": (3, 3, 6),
    "wide": (3, 3, 6),
    "small": (0.02, 0.02, 0.02),
}
FAMILIES = ("quadratic", "smooth", "neither")


def draw(kind: str, n: int) -> tuple[Any, Any, Any, dict[str, Any]]:
    """Return X, y, viewpoint and the options of `Objective.on`."""
    if kind == "wide":
        rng = np.random.default_rng(1)
        X = sp.random_array((n, 4 * n), density=40 / (4 * n), format="csr", rng=rng)
        w = rng.standard_normal((4 * n, 2))
        y, v = np.where(X @ w + 0.1 * rng.standard_normal((n, 2)) > 0, 1.0, -1.0).T
        return X, y, v, {}
    if kind == "rbf":
        return *synthetic(n), {"kernel": "rbf"}
    return *(one_hot if kind == "one-hot" else gaussian)(n), {}


def bound(atom: Any, role: str, data: tuple[Any, Any, Any, dict[str, Any]]) -> Any:
    """Return the problem with an atom as loss or as surrogate; the other one is the hinge."""
    X, y, v, options = data
    loss, psi = (atom, nerm.Hinge()) if role == "loss" else (nerm.Hinge(), atom)
    objective = nerm.Risk(loss) + (1 / len(y)) * nerm.SquaredL2() + nerm.Neutrality(psi)
    return objective.on(X, y, viewpoint=v, **options)


def timed(problem: Any, solver: str, limit: float) -> tuple[float, Any]:
    """Return the least processor seconds of three runs, fewer if they are long, and the solution."""
    best = np.inf
    for _ in range(3):
        started = time.process_time()
        solution = problem.solve(solver, time_limit=limit)
        best = min(best, time.process_time() - started)
        if best > 5:
            break
    return best, solution


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", nargs="+", default=list(BOUNDS), help="dense one-hot rbf wide small (all)")
    parser.add_argument("--clarabel", action="store_true")
    parser.add_argument("--limit", type=float, default=60.0, help="seconds per solve (60)")
    chosen = parser.parse_args()
    for atom in (nerm.Hinge(), nerm.Logistic()):  # compile before anything is timed
        for kind in ("small", "rbf"):
            bound(atom, "loss", draw(kind, 200)).solve()
    for kind, rows in CASES:
        if kind not in chosen.data:
            continue
        data = draw(kind, rows)
        for role in ("loss", "surrogate"):
            hinge, logistic = (
                timed(bound(atom, role, data), "auto", chosen.limit)[0]
                for atom in (nerm.Hinge(), nerm.Logistic())
            )
            print(f"{kind} {rows}, as {role}: hinge {hinge:.3f} s, logistic {logistic:.3f} s", flush=True)
            for name, (family, formula) in FORMULAS.items():
                started = time.process_time()
                atom = nerm.margin_function(formula, name=name)
                blocks = len(atom.parts) if family == "quadratic" else 1
                problem = bound(atom, role, data)
                built = time.process_time() - started
                seconds, solution = timed(problem, "auto", chosen.limit)
                beside = hinge if family == "quadratic" else logistic
                figure = built + seconds - beside if kind == "small" else seconds / beside / blocks
                gap = solution.certificate.relative_gap
                slow = figure > BOUNDS[kind][FAMILIES.index(family)] or gap > 1e-6
                line = f"  {name:<18}{family:<10}{seconds:8.3f} s  {'more' if kind == 'small' else 'ratio'} {figure:6.3f}"
                line += f"  gap {gap:.0e}  {solution.stats.solver}, built in {built:.3f} s"
                if chosen.clarabel:
                    line += f"  clarabel {timed(problem, 'clarabel', chosen.limit)[0]:.1f} s"
                print(line + ("  too slow" if slow else ""), flush=True)


if __name__ == "__main__":
    main()
