"""A limit C_psi(f) <= t by nerm's search over eta, in single solves, and beside Clarabel on the constrained model.

    python benchmarks/limits.py --peer 2

Ten limits between the plain model's C_psi and psi(0). A single solve is `Problem.solve` at the eta found,
cold, timed next to each search; all answers to the certified relative gap 1e-6. Clarabel solves the
constrained cvxpy model of the same distinct rows (`Problem.to_cvxpy`) for the first few limits only, since it
takes minutes.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from tasks import correlated, gaussian, one_hot

import nerm

FAMILIES = {"one-hot": one_hot, "correlated": correlated, "gaussian": gaussian}


def timed(call: Callable[[], Any]) -> tuple[float, Any]:
    started = time.perf_counter()
    result = call()
    return time.perf_counter() - started, result


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--family", choices=FAMILIES, default="one-hot")
    parser.add_argument("--n", type=int, default=60_420)
    parser.add_argument("--limits", type=int, default=10)
    parser.add_argument("--peer", type=int, default=0, help="how many limits Clarabel solves too")
    parser.add_argument("--loss", choices=("hinge", "logistic"), default="hinge")
    chosen = parser.parse_args()
    X, y, v = FAMILIES[chosen.family](chosen.n)
    atom = {"hinge": nerm.Hinge(), "logistic": nerm.Logistic()}[chosen.loss]
    plain = nerm.Risk(atom) + (1.0 / chosen.n) * nerm.SquaredL2()
    term = nerm.Neutrality(atom)
    bound = (plain + term).on(X, y, viewpoint=v)
    bound.solve()  # compiles
    highest, least = bound.path([0.0])[0].objective.terms[-1].value, atom.facts.at_zero
    ratios, peers = [], []
    for k, share in enumerate(np.linspace(0.05, 0.95, chosen.limits)):
        limit = least + share * (highest - least)
        problem = plain.subject_to(term <= limit).on(X, y, viewpoint=v)
        seconds, solution = timed(problem.solve)
        eta = float(solution.multipliers.limits[0])
        single = median(timed(bound.with_neutrality(eta).solve)[0] for _ in range(3))
        ratios.append(seconds / single)
        line = (
            f"t {limit:.4f}  eta {eta:8.4f}  {solution.status.value}, gap {solution.certificate.relative_gap:.1e}  "
            f"{seconds:.3f} s = {ratios[-1]:.1f} single solves of {single:.3f} s, "
            f"{solution.stats.details.get('solves')} etas"
        )
        if k < chosen.peer:
            peer, other = timed(lambda problem=problem: problem.solve("clarabel"))
            peers.append(peer / seconds)
            line += (
                f"; clarabel {peer:.1f} s = {peers[-1]:.0f} times, gap {other.certificate.relative_gap:.1e}"
            )
        print(line, flush=True)
    print(f"most: {max(ratios):.1f} single solves, median {median(ratios):.1f}")
    if peers:
        print(f"clarabel at least {min(peers):.0f} times slower")


if __name__ == "__main__":
    main()
