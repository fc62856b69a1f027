"""Draw docs/figures/architecture.svg: the packages that one solve passes, from objective to solution.

python docs/figures/architecture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

INK, LIGHT = "#1b2733", "#5b6b7a"
COLOURS = {"write": "#e8f1fa", "bind": "#fdf3e1", "solve": "#e9f5ec", "certify": "#f8e9ef", "use": "#f1f1f4"}

# name: (column, row, width, (what happens, where), part of the architecture)
BOXES = {
    "objective": (0.0, 0, 2, ("Risk + 0.05 SquaredL2 + Neutrality", "atoms/ · model/"), "write"),
    "estimator": (2.15, 0, 1.85, ("NeutralSVC.fit(X, y, viewpoint=v)", "estimators/"), "write"),
    "on": (0.0, 1, 4, ("objective.on(X, y, viewpoint=v)", "model/: validates the data, once"), "bind"),
    "hypothesis": (0.0, 2, 1.95, ("f = X w + b  or  f = K c + b", "model/"), "bind"),
    "blocks": (2.05, 2, 1.95, ("blocks: (atom, weights, targets)", "model/"), "bind"),
    "solve": (
        0.0,
        3,
        4,
        ("problem.solve()", "solvers/: choose by cost, merge equal rows, open a session"),
        "solve",
    ),
    "ipm": (0.0, 4, 0.95, ("interior point", "interior_point/"), "solve"),
    "alm": (1.0, 4, 0.98, ("Newton ALM", "newton_alm/"), "solve"),
    "smo": (2.03, 4, 0.9, ("SMO", "smo/"), "solve"),
    "cvxpy": (2.98, 4, 1.02, ("outside solvers", "cvxpy_backend/"), "solve"),
    "answer": (
        0.0,
        5,
        4,
        ("Answer: hypothesis, multipliers", "the solver's own status is recorded, not trusted"),
        "certify",
    ),
    "certify": (
        0.0,
        6,
        4,
        ("primal value and dual bound", "certify/: the only maker of certificates"),
        "certify",
    ),
    "solution": (0.0, 7, 4, ("Solution: status, coef, certificate", "certify/"), "certify"),
    "use": (0.0, 8, 4, ("read by", "metrics · neutralize/ · bounds/ · io · plots/ · report/ · cli/"), "use"),
}
ARROWS = [
    ("objective", "on"), ("estimator", "on"), ("on", "hypothesis"), ("on", "blocks"),
    ("hypothesis", "solve"), ("blocks", "solve"),
    ("solve", "ipm"), ("solve", "alm"), ("solve", "smo"), ("solve", "cvxpy"),
    ("ipm", "answer"), ("alm", "answer"), ("smo", "answer"), ("cvxpy", "answer"),
    ("answer", "certify"), ("certify", "solution"), ("solution", "use"),
]  # fmt: skip
HEIGHT, STEP = 0.62, 1.0


def draw() -> plt.Figure:
    """Return the figure: one box per step, arrows in the direction of the data."""
    figure, ax = plt.subplots(figsize=(8.6, 8.2))
    for column, row, width, (head, files), part in BOXES.values():
        y = -row * STEP
        look = {"boxstyle": "round,pad=0,rounding_size=0.06", "fc": COLOURS[part], "ec": LIGHT, "lw": 0.8}
        ax.add_patch(FancyBboxPatch((column, y), width, HEIGHT, **look))
        centred = {"ha": "center", "va": "center"}
        ax.text(column + width / 2, y + 0.40, head, fontsize=9.5, color=INK, **centred)
        ax.text(column + width / 2, y + 0.17, files, fontsize=8, color=LIGHT, family="monospace", **centred)
    for start, end in ARROWS:
        x, y, width = BOXES[start][0], -BOXES[start][1] * STEP, BOXES[start][2]
        to_x, to_y, to_width = BOXES[end][0], -BOXES[end][1] * STEP + HEIGHT, BOXES[end][2]
        middle = (x + width / 2) if width <= to_width else to_x + to_width / 2
        ends = (middle, y), (middle, to_y)
        ax.add_patch(FancyArrowPatch(*ends, arrowstyle="-|>", mutation_scale=9, color=LIGHT, lw=1))
    ax.set(xlim=(-0.05, 4.05), ylim=(-8.1, 0.75))
    ax.axis("off")
    return figure


if __name__ == "__main__":
    mpl.rcParams.update({"svg.hashsalt": "nerm", "svg.fonttype": "none"})
    draw().savefig(Path(__file__).with_suffix(".svg"), bbox_inches="tight", metadata={"Date": None})
