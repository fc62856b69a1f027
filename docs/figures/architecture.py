"""Draw docs/figures/architecture.svg: the files that data pass on their way from an objective to a solution.

python docs/figures/architecture.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl
import matplotlib.pyplot as plt
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

INK, LIGHT = "#1b2733", "#5b6b7a"
COLOURS = {"write": "#e8f1fa", "bind": "#fdf3e1", "solve": "#e9f5ec", "judge": "#f8e9ef", "use": "#f1f1f4"}

# name: (column, row, width, what stands in it, its part of the house)
BOXES = {
    "people": (0.0, 0, 2, ("Risk + 0.05 SquaredL2 + Neutrality", "atoms/ · objective · algebra"), "write"),
    "fit": (
        2.15,
        0,
        1.85,
        ("NeutralSVC.fit(X, y, viewpoint=v)", "estimators/ · viewpoint · defaults"),
        "write",
    ),
    "bind": (
        0.0,
        1,
        4,
        ("objective.on(X, y, viewpoint=v)", "problem: checks and owns everything, once"),
        "bind",
    ),
    "rows": (0.0, 2, 1.3, ("equal rows merged", "rows · row_hashes"), "bind"),
    "hypothesis": (1.35, 2, 1.3, ("f = X w + b  or  K c + b", "hypothesis · kernels"), "bind"),
    "blocks": (2.7, 2, 1.3, ("(atom, weights, targets)", "blocks · weights"), "bind"),
    "solve": (
        0.0,
        3,
        4,
        ("problem.solve()", "solvers/: chooses, opens a session, asks until content"),
        "solve",
    ),
    "engine": (0.0, 4, 1.3, ("interior point", "engine/"), "solve"),
    "smo": (1.35, 4, 1.3, ("pair steps · explicit QPs", "smo/ · svm/"), "solve"),
    "modelling": (2.7, 4, 1.3, ("cvxpy and its solvers", "modelling/"), "solve"),
    "answer": (0.0, 5, 4, ("Answer", "hypothesis, multipliers, a claim that grants nothing"), "judge"),
    "judge": (
        0.0,
        6,
        4,
        ("is it optimal?", "solution · certificate · value · multipliers · recovery"),
        "judge",
    ),
    "solution": (
        0.0,
        7,
        4,
        ("Solution: status, coef, certificate", "what a fitted classifier holds"),
        "judge",
    ),
    "use": (
        0.0,
        8,
        4,
        ("read by", "metrics · bounds/ · saving · plots · experiments/ · report/ · cli/"),
        "use",
    ),
}
ARROWS = [
    ("people", "bind"), ("fit", "bind"), ("bind", "rows"), ("bind", "hypothesis"), ("bind", "blocks"),
    ("rows", "solve"), ("hypothesis", "solve"), ("blocks", "solve"),
    ("solve", "engine"), ("solve", "smo"), ("solve", "modelling"),
    ("engine", "answer"), ("smo", "answer"), ("modelling", "answer"),
    ("answer", "judge"), ("judge", "solution"), ("solution", "use"),
]  # fmt: skip
HEIGHT, STEP = 0.62, 1.0


def draw() -> plt.Figure:
    """Return the figure: one box a station, arrows in the direction of the data."""
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
