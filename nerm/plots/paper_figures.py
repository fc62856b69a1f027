"""The paper's two figures."""

from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.experiments.convergence import slopes
from nerm.experiments.methods import METHODS
from nerm.experiments.tradeoff import front
from nerm.plots.style import axes_or_new, finish, grid, style
from nerm.validation import check_known

NAMES = {
    "german": "German",
    "adult": "Adult",
    "bank": "Bank",
    "dutch": "Dutch census",
    "diabetes": "Diabetes",
}
AXIS = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "neutrality_risk": "$C_{sgn}$",
    "calders_verwer_score": "|Calders-Verwer score|",
    "normalized_prejudice_index": "normalised prejudice index",
    "equal_opportunity_difference": "|equal-opportunity difference|",
}
ERRORS = {
    "risk": "error of the risk",
    "neutrality": "error of the neutrality risk",
    "zero_one": "error of the 0/1 risk",
    "sign_neutrality": "error of $C_{sgn}$",
}


def convergence_panel(table: Any, error: str = "risk", ax: Any = None) -> Any:
    """Draw one panel of figure 1: mean ``|test - train|`` with standard deviations against n, and the line sqrt(c/n).

    The legend tells the fitted slope of each eta in log-log; c is fitted to all of them.

    Parameters
    ----------
    table
        From `nerm.experiments.convergence`.
    error
        "risk", "neutrality", "zero_one" or "sign_neutrality".
    ax
        Axes to draw on; new ones by default.

    Returns
    -------
    Axes

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import pandas as pd
    >>> n = np.array([100, 400, 1600])
    >>> table = pd.DataFrame({"n": n, "eta": 1.0, "risk_error": np.sqrt(4 / n)})
    >>> convergence_panel(table, "risk").get_legend_handles_labels()[1][1]
    'η = 1  (slope -0.50)'
    """
    check_known(error, "'error'", ERRORS)
    fitted = slopes(table, [error]).set_index("eta")
    ax = axes_or_new(ax)
    for k, (eta, group) in enumerate(table.groupby("eta", sort=True)):
        by_n = group.groupby("n")[f"{error}_error"]
        mean, std = by_n.mean(), by_n.std().fillna(0.0)
        # On a logarithmic axis a bar must not reach 0; and etas stand side by side, a few per cent apart.
        shift = 1.04 ** (k - (len(fitted) - 1) / 2)
        lower = np.minimum(std.to_numpy(), 0.9 * mean.to_numpy())
        ax.errorbar(
            mean.index.to_numpy() * shift,
            mean.to_numpy(),
            yerr=[lower, std.to_numpy()],
            **style(k),
            markersize=4,
            capsize=2,
            linewidth=1.2,
            label=f"η = {eta:g}  (slope {fitted.slope[eta]:.2f})",
        )
    sizes = np.sort(table["n"].unique()).astype(float)
    c = float(np.exp(np.log(fitted.c).mean()))
    ax.plot(
        sizes, np.sqrt(c / sizes), color="0.45", linewidth=2.5, alpha=0.6, zorder=0, label=r"$\sqrt{c/n}$"
    )
    ax.set(xscale="log", yscale="log", xlabel="samples n", ylabel=f"{ERRORS[error]}, |test − train|")
    finish(ax)
    return ax


def figure_1(table: Any, axes: Any = None) -> Any:
    """Draw figure 1 of the paper: the errors of the risk and of the neutrality risk.

    Parameters
    ----------
    table
        From `nerm.experiments.convergence`.
    axes
        Two Axes to draw on; new ones by default.

    Returns
    -------
    ndarray of two Axes

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from nerm.experiments import convergence
    >>> table = convergence([40, 80], [1.0], repetitions=1, folds=2)
    >>> [ax.get_ylabel() for ax in figure_1(table)]
    ['error of the risk, |test − train|', 'error of the neutrality risk, |test − train|']
    """
    axes = grid(axes, 2, 2, (4.2, 3.4))
    for ax, error in zip(axes, ("risk", "neutrality"), strict=True):
        convergence_panel(table, error, ax)
    return axes


def tradeoff_panel(
    table: Any,
    dataset: str | None = None,
    ax: Any = None,
    *,
    quality: str = "auc",
    risk: str = "neutrality_risk",
    dominated: bool = False,
) -> Any:
    """Draw one panel of figure 2: quality to the right, C_sgn upwards, so that the best is at the bottom right.

    Means over all folds; of each method only the points that none of its own dominates. Methods without a
    neutrality weight are hollow; † marks those that see the group when they predict, ‡ those that draw their
    predictions. The grey guide lines are the best quality and the best neutrality that any method reached.

    Parameters
    ----------
    table
        From `nerm.experiments.tradeoff`.
    dataset
        One of the table's; may be left out where it has one only.
    ax
        Axes to draw on; new ones by default.
    quality, risk
        Two of the table's measures.
    dominated
        Whether to add the points that are dominated, small and pale.

    Returns
    -------
    Axes

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import pandas as pd
    >>> table = pd.DataFrame({"dataset": "german", "method": "neutral-svm", "eta": [0.0, 1.0, 10.0], "status": "ok",
    ...                       "auc": [0.8, 0.75, 0.7], "neutrality_risk": [0.4, 0.1, 0.2]})
    >>> ax = tradeoff_panel(table)
    >>> ax.lines[2].get_xydata().tolist()  # eta = 10 is dominated by eta = 1
    [[0.75, 0.1], [0.8, 0.4]]
    """
    known = table["dataset"].unique().tolist() if "dataset" in table else []
    if dataset is None and len(known) == 1:
        dataset = str(known[0])
    check_known(dataset, "'dataset'", known)
    means = front(table[table["dataset"] == dataset], quality, risk).sort_values(quality)
    points = means[means["non_dominated"]]
    if points.empty:
        must = f"'table' must have a result on {dataset!r}"
        raise InvalidInputError(must, "failed fits only", "Look at its column 'reason'")
    ax = axes_or_new(ax)
    best_quality, best_risk = points[quality].max(), points[risk].min()
    ax.axvline(best_quality, color="0.6", linewidth=1, linestyle=(0, (2, 2)), zorder=0)
    ax.axhline(best_risk, color="0.6", linewidth=1, linestyle=(0, (2, 2)), zorder=0)
    # The order of METHODS, not of the table: a method looks the same in every panel.
    order = [*METHODS, *(m for m in table["method"].unique() if m not in METHODS)]
    for k, name in enumerate(order):
        own = points[points["method"] == name]
        color = style(k)["color"]
        if dominated:
            others = means[(means["method"] == name) & ~means["non_dominated"]]
            ax.plot(
                others[quality], others[risk], color=color, marker=".", linestyle="", alpha=0.35, zorder=1
            )
        if not own.empty:
            single = bool(
                own["eta"].isna().all()
            )  # no parameter, one point: hollow, and on top of the curves
            ax.plot(
                own[quality],
                own[risk],
                **style(k),
                markerfacecolor="none" if single else color,
                markersize=8 if single else 5,
                markeredgewidth=1.8 if single else 1.0,
                zorder=4 if single else 2,
                linewidth=1.2,
                alpha=0.9,
                label=_label(name, own),
            )
    ax.set(
        xlabel=AXIS.get(quality, quality),
        ylabel=AXIS.get(risk, risk),
        title=NAMES.get(str(dataset), str(dataset)),
    )
    ax.margins(0.08)
    finish(ax)
    return ax


def _label(name: str, rows: Any) -> str:
    """Return a method's name with the marks of what a reader must know."""
    marks = {"sees_group": " †", "randomised": " ‡"}
    known = METHODS[name].label if name in METHODS else name
    return known + "".join(mark for fact, mark in marks.items() if fact in rows and rows[fact].any())


def figure_2(
    table: Any,
    axes: Any = None,
    *,
    quality: str = "auc",
    risk: str = "neutrality_risk",
    dominated: bool = False,
) -> Any:
    """Draw figure 2 of the paper, one panel a data set, in the table's order.

    Parameters
    ----------
    table
        From `nerm.experiments.tradeoff`.
    axes
        As many Axes as data sets; new ones by default.
    quality, risk, dominated
        As for `tradeoff_panel`.

    Returns
    -------
    ndarray of Axes

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import pandas as pd
    >>> table = pd.DataFrame({"dataset": ["german", "adult"], "method": "svm", "eta": np.nan, "status": "ok",
    ...                       "auc": [0.8, 0.9], "neutrality_risk": [0.4, 0.1]})
    >>> [ax.get_title() for ax in figure_2(table)]
    ['German', 'Adult']
    """
    datasets = table["dataset"].unique().tolist()
    axes = grid(axes, len(datasets), min(len(datasets), 3), (4.0, 3.4))
    for ax, dataset in zip(axes, datasets, strict=True):
        tradeoff_panel(table, dataset, ax, quality=quality, risk=risk, dominated=dominated)
    return axes
