"""Draw docs/figures/path.png, what neutrality costs on the paper's synthetic data.

Run from the project's root:

    python docs/figures/path.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import nerm


def main() -> None:
    """Solve the path on one sample, measure on another of the same construction, draw both."""
    data = nerm.datasets.load("synthetic", n=4400, random_state=9)
    X, X_new, y, y_new, v, v_new = (
        part for a in (data.X, data.y, data.viewpoint) for part in (a[:400], a[400:])
    )
    objective = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    etas = np.concatenate([[0.0], np.geomspace(0.01, 10, 25)])
    path = objective.on(X, y, viewpoint=v).path(etas)
    assert all(solution.status == "optimal" for solution in path)
    scores = [solution.decision_function(X_new) for solution in path]
    accuracy = [float(np.mean(nerm.signs.sign(f) == y_new)) for f in scores]
    neutrality = [nerm.metrics.neutrality_risk(f, v_new) for f in scores]
    plus, minus = (
        np.array([getattr(s.objective.terms[-1], side) for s in path]) for side in ("plus", "minus")
    )

    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
    x = np.where(etas > 0, etas, 0.005)
    left.plot(x, accuracy, color="#0072B2", marker="o", markersize=3, label="accuracy")
    left.plot(
        x, neutrality, color="#D55E00", marker="s", markersize=3, label="$C_{sgn}$, how far f follows g"
    )
    left.set(xscale="log", ylim=(0, 1), xlabel="neutrality weight η", title="On new data")
    right.plot(x, plus, color="#009E73", label="$C^+$")
    right.plot(x, minus, color="#CC79A7", linestyle="--", label="$C^-$")
    right.set(
        xscale="log", xlabel="neutrality weight η", title="The two sides of the neutrality term, in training"
    )
    for axis in (left, right):
        axis.set_xticks([0.005, 0.01, 0.1, 1, 10], ["0", "0.01", "0.1", "1", "10"])
        axis.minorticks_off()
        axis.grid(alpha=0.3)
        axis.legend(frameon=False)
    figure.savefig(Path(__file__).with_suffix(".png"), dpi=130)


if __name__ == "__main__":
    main()
