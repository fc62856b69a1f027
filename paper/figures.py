"""Draw the figure of the paper: what a limit costs, and whether it is kept.

Run from the project's root, in seconds:

python paper/figures.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import nerm

LEARNED = 400
LIMITS = (0.3, 0.2, 0.1, 0.05, 0.02)
BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"


def measured(solution: nerm.Solution, X: np.ndarray, y: np.ndarray, v: np.ndarray) -> tuple[float, float]:
    """Return neutrality risk and accuracy on rows."""
    scores = solution.decision_function(X)
    return nerm.metrics.neutrality_risk(scores, v), float(np.mean(nerm.signs.sign(scores) == y))


def main() -> None:
    """Solve a path and five limits on one sample, measure on another of the same construction, draw both."""
    data = nerm.datasets.load("synthetic", n=LEARNED + 4000, random_state=9)
    known = data.X[:LEARNED], data.y[:LEARNED], data.viewpoint[:LEARNED]
    new = data.X[LEARNED:], data.y[LEARNED:], data.viewpoint[LEARNED:]
    plain = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2()
    problem = (plain + 1.0 * nerm.Neutrality(nerm.Hinge())).on(known[0], known[1], viewpoint=known[2])
    path = problem.path([0.0, *np.geomspace(0.05, 10, 15)])
    assert all(solution.status == "optimal" for solution in path)
    bound = plain.on(known[0], known[1], viewpoint=known[2])
    asked = [bound.neutralize(limit, "neutrality_risk", surrogate=nerm.Logistic()) for limit in LIMITS]
    along = [measured(solution, *new) for solution in path]
    at = [measured(one.solution, *new) for one in asked]

    figure, (left, right) = plt.subplots(1, 2, figsize=(8.4, 3.2), layout="constrained")
    left.plot(
        *zip(*along, strict=True),
        color=BLUE,
        marker="o",
        markersize=3,
        linewidth=1,
        label=r"path of weights $\eta$",
    )
    left.plot(
        *zip(*at, strict=True), color=ORANGE, marker="s", linestyle="--", label="limits that were asked for"
    )
    left.set(xlabel=r"neutrality risk $C_{sgn}$, new rows", ylabel="accuracy, new rows")
    right.plot(LIMITS, LIMITS, color="black", linewidth=0.8, label="what was asked for")
    right.plot(
        LIMITS,
        [abs(one.value) for one in asked],
        color=GREEN,
        marker="^",
        linestyle="",
        label="rows learned from",
    )
    right.plot(LIMITS, [risk for risk, _ in at], color=ORANGE, marker="s", linestyle="", label="new rows")
    right.set(xlabel=r"limit on $C_{sgn}$", ylabel=r"$C_{sgn}$ measured")
    for axes in (left, right):
        axes.grid(alpha=0.25, linewidth=0.6)
        axes.legend(fontsize=8, frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).parent / "figures" / "levels.png", dpi=200)


if __name__ == "__main__":
    main()
