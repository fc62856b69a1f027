"""A path of 20 values of eta in median single solves, family by family.

    python benchmarks/paths.py                           all families, one line each, then a line for every target
    python benchmarks/paths.py mixed bank --scale 0.2    some of them, on fewer rows

Hinge, lambda = 1 in sum form, eta = 0 and 19 values from 0.01 to 100, gap 1e-6, as a user has it:
`Problem.path` beside `Problem.solve` at each of the weights on a freshly bound problem, certificates
included, with the same cores for both. The warm starts of a path were tuned on Adult, German, `correlated` and
`mixed` of tasks.py with seeds 0 and 2; those are marked. All others are draws of other seeds and sizes, and
other data.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from statistics import median
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from tasks import correlated, gaussian, mixed, one_hot, published
from wide import timed

import nerm

ETAS = (0.0, *np.geomspace(0.01, 100, 19))
TOL = 1e-6
ROW = "{:<16}{:>15}{:>8}{:>9}{:>10}{:>8}{:>8}{:>8}{:>9}"
HEAD = ("family", "size", "path s", "median s", "path over", "by cpu", "all 20", "passes", "gap")
Draw = Callable[[float], tuple[Any, np.ndarray, np.ndarray]]


def breast_cancer(scale: float) -> tuple[Any, np.ndarray, np.ndarray]:
    """Return 569 tumours by 29 standardised measures: benign or not, neutral to whether the radius is large."""
    X, y = load_breast_cancer(return_X_y=True)
    radius = X[:, 0]
    return (
        StandardScaler().fit_transform(X[:, 1:]),
        2.0 * y - 1,
        np.where(radius > np.median(radius), 1.0, -1.0),
    )


#: By name: the draw, most median single solves that a path may take, and whether constants were tuned on it.
FAMILIES: dict[str, tuple[Draw, float, bool]] = {
    "onehot": (lambda scale: one_hot(int(scale * 60_420), seed=5), 7, False),
    "gaussian": (lambda scale: gaussian(int(scale * 40_000), seed=5), 7, False),
    "correlated": (lambda scale: correlated(int(scale * 30_000), seed=5), 7, False),
    "bank": (published("bank"), 7, False),
    "adult": (published("adult"), 7, True),
    "german": (published("german"), 7, True),
    "breast": (breast_cancer, 7, False),
    "mixed": (lambda scale: mixed(int(scale * 25_000), seed=5), 9, False),
    "mixed, wider": (lambda scale: mixed(int(scale * 20_000), attributes=12, levels=8, seed=6), 9, False),
    "mixed, tuned": (lambda scale: mixed(int(scale * 30_000), seed=0), 9, True),
}


def measure(family: str, scale: float) -> str:
    """Measure one family and print its line; return the line of its target."""
    draw, most, tuned = FAMILIES[family]
    X, y, v = draw(scale)
    objective = nerm.Risk(nerm.Hinge()) + 1.0 / len(y) * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())

    def bound() -> Any:
        return objective.on(X, y, viewpoint=v)

    bound().with_neutrality(1.0).solve(tol=0.1)  # what compiles has compiled
    problem = bound()
    seconds, cpu, found = timed(lambda: problem.path(ETAS, tol=TOL))
    singles = []
    for eta in ETAS:
        alone = bound().with_neutrality(eta)
        singles.append(timed(lambda alone=alone: alone.solve(tol=TOL)))
    wall, processor = (median(single[k] for single in singles) for k in (0, 1))
    gap = max(s.certificate.relative_gap for s in found)
    ratios = seconds / wall, cpu / processor
    passes = round(sum(s.stats.details.get("passes", 0) for s in found))
    share = cpu / sum(single[1] for single in singles)
    line = (
        f"{seconds:.2f}",
        f"{wall:.3f}",
        *(f"{r:.1f}" for r in ratios),
        f"{share:.2f}",
        passes,
        f"{gap:.1e}",
    )
    print(ROW.format(family + "*" * tuned, f"{X.shape[0]} x {X.shape[1]}", *line), flush=True)
    good = "met" if gap <= TOL and min(ratios) <= most else "MISSED"
    what = f"path of 20, {family}{' (tuned on)' * tuned}: at most {most} median single solves"
    return f"{what}: {ratios[0]:.1f} ({ratios[1]:.1f} by processor time), {good}"


def run(families: list[str], scale: float = 1.0) -> list[str]:
    """Measure families; return a line for every target."""
    print(ROW.format(*HEAD))
    return [measure(family, scale) for family in families]


def here() -> list[str]:
    """Return the families whose data are at hand."""
    needed = () if "NERM_DATA" in os.environ else ("adult", "bank", "german")
    return [family for family in FAMILIES if family not in needed]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("family", nargs="*", help=f"of {', '.join(FAMILIES)}; by default all")
    parser.add_argument("--scale", type=float, default=1.0)
    chosen = parser.parse_args()
    print("", *run(chosen.family or here(), chosen.scale), sep="\n")


if __name__ == "__main__":
    main()
