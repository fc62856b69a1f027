"""Draw docs/figures/neutrality.png and print the table of docs/neutrality.md.

Run from the project's root, with NERM_DATA set to the folder of the UCI files:

    python docs/figures/neutrality.py
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

MODELS = {
    "SVM, eta = 0": (0.0, "uniform"),
    "uniform, eta = 0.3": (0.3, "uniform"),
    "uniform, eta = 3": (3.0, "uniform"),
    "balanced, eta = 3": (3.0, "balanced"),
}
OFFSETS = {  # where each label stands from its point, in typographic points
    "SVM, eta = 0": (42, -14),
    "uniform, eta = 0.3": (48, 8),
    "uniform, eta = 3": (44, -8),
    "balanced, eta = 3": (44, -20),
}


def measure() -> tuple[dict[str, tuple[float, float]], dict[str, object], float]:
    """Fit the models on four fifths of Adult; return rates and reports on the rest, and P(v = +1)."""
    from sklearn.model_selection import StratifiedKFold

    import nerm
    from nerm.datasets import load
    from nerm.metrics import report

    adult = load("adult", coding="one-hot")
    X, y, v = adult.X, adult.y, adult.viewpoint
    train, test = next(StratifiedKFold(5, shuffle=True, random_state=0).split(X, y))
    rates, reports = {}, {}
    for name, (eta, weights) in MODELS.items():
        objective = nerm.Risk(nerm.Hinge()) + 1e-4 * nerm.SquaredL2()
        if eta > 0:
            objective = objective + eta * nerm.Neutrality(nerm.Hinge(), weights=weights)
        solution = objective.on(X[train], y[train], viewpoint=v[train]).solve()
        f = solution.decision_function(X[test])
        rates[name] = (float(np.mean(f[v[test] < 0] > 0)), float(np.mean(f[v[test] > 0] > 0)))
        reports[name] = report(y[test], f, v[test])
    return rates, reports, float(np.mean(v[test] > 0))


def draw(rates: dict[str, tuple[float, float]], share: float, path: Path) -> None:
    """Draw C_sgn over the two rates of positive predictions, with uniform and with balanced weights."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    top = 0.6
    minus, plus = np.meshgrid(np.linspace(0, top, 241), np.linspace(0, top, 241))
    figure, axes = plt.subplots(1, 2, figsize=(10.5, 5.0), sharey=True, layout="constrained")
    for axis, p, title in (
        (axes[0], share, f"uniform weights (the paper), P(v = +1) = {share:.2f}"),
        (axes[1], 0.5, "balanced weights: C_sgn = |Calders-Verwer score|"),
    ):
        signed = p * (2 * plus - 1) - (1 - p) * (2 * minus - 1)
        filled = axis.contourf(minus, plus, np.abs(signed), levels=np.arange(0, 0.85, 0.05), cmap="Blues")
        axis.contour(minus, plus, signed, levels=[0], colors="black", linewidths=2)
        axis.plot([0, top], [0, top], color="tab:orange", linestyle="--", linewidth=2)
        for name, (x, y) in rates.items():
            axis.plot(x, y, "o", color="tab:red", markeredgecolor="white", markersize=8)
            axis.annotate(
                name,
                (x, y),
                xytext=OFFSETS[name],
                textcoords="offset points",
                fontsize=9,
                va="center",
                bbox={"boxstyle": "round,pad=0.2", "facecolor": "white", "edgecolor": "none", "alpha": 0.85},
                arrowprops={"arrowstyle": "-", "color": "tab:red", "linewidth": 1},
            )
        axis.set(title=title, xlabel="P(predicted +1 | v = -1)", xlim=(0, top), ylim=(0, top), aspect="equal")
    axes[0].set_ylabel("P(predicted +1 | v = +1)")
    axes[0].text(0.03, 0.29, "C_sgn = 0", rotation=27, fontsize=10, fontweight="bold")
    axes[0].text(0.43, 0.385, "parity", rotation=45, fontsize=10, color="tab:orange", fontweight="bold")
    axes[1].text(0.36, 0.40, "C_sgn = 0 = parity", rotation=45, fontsize=10, fontweight="bold")
    figure.colorbar(filled, ax=axes, label="C_sgn", shrink=0.85)
    figure.savefig(path, dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    rates, reports, share = measure()
    columns = ("accuracy", "auc", "neutrality_risk", "neutrality_risk_if_independent", "calders_verwer_score")
    for name, row in reports.items():
        print(f"| {name} | " + " | ".join(f"{getattr(row, c):.3f}" for c in columns) + " |")
    draw(rates, share, Path(__file__).with_suffix(".png"))
