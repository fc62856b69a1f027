"""The paper's two figures, and what happens along a path of neutrality weights: functions that take and return Axes.

Colours are those of Okabe and Ito, which colour-blind readers can tell apart; markers and dashes differ too, so nothing
is lost in grey.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.experiments import METHODS, front, slopes
from nerm.figure_style import DASHES, MARKERS, OKABE_ITO, axes_or_new, finish, grid, style
from nerm.public import public_names
from nerm.typing import Floats
from nerm.validation import check_known

NAMES = {"german": "German", "adult": "Adult", "bank": "Bank", "dutch": "Dutch census", "diabetes": "Diabetes"}
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
    ax.plot(sizes, np.sqrt(c / sizes), color="0.45", linewidth=2.5, alpha=0.6, zorder=0, label=r"$\sqrt{c/n}$")
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

    Means over all folds; of each method only the points that none of its own dominates. Methods without a neutrality
    weight are hollow. The grey guide lines are the best quality and the best neutrality that any method reached.

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
            ax.plot(others[quality], others[risk], color=color, marker=".", linestyle="", alpha=0.35, zorder=1)
        if not own.empty:
            single = bool(own["eta"].isna().all())  # no parameter, one point: hollow, and on top of the curves
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
                label=METHODS[name].label if name in METHODS else name,
            )
    ax.set(xlabel=AXIS.get(quality, quality), ylabel=AXIS.get(risk, risk), title=NAMES.get(str(dataset), str(dataset)))
    ax.margins(0.08)
    finish(ax)
    return ax


def figure_2(
    table: Any, axes: Any = None, *, quality: str = "auc", risk: str = "neutrality_risk", dominated: bool = False
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


def eta_path(solutions: Sequence[Any], y: Any = None, viewpoint: Any = None, X: Any = None, axes: Any = None) -> Any:
    """Draw what happens along a path of neutrality weights.

    Three panels: the risk, the regularizer and the neutrality term without their weights; the two sides C+ and C- of
    the first neutrality term; and theta, the weight of C+ in the optimum's maximum. eta = 0 is drawn at the left edge
    of the logarithmic axis.

    Parameters
    ----------
    solutions
        From `Problem.path`.
    y, viewpoint, X
        Rows (new ones, say) on which a fourth panel shows accuracy, AUC, C_sgn and the Calders-Verwer score.
    axes
        Three or four Axes to draw on; new ones by default.

    Returns
    -------
    ndarray of Axes

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import nerm
    >>> from nerm.datasets import load
    >>> d = load("synthetic", n=60, random_state=0)
    >>> goal = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())
    >>> path = goal.on(d.X, d.y, viewpoint=d.viewpoint).path([0, 0.1, 1])
    >>> [ax.get_ylabel() for ax in eta_path(path)]
    ['term, unweighted', 'side of the neutrality term', 'θ, weight of $C^+$']
    """
    etas = _etas(solutions)
    given = [part is not None for part in (X, y, viewpoint)]
    if any(given) and not all(given):
        must = "'X', 'y' and 'viewpoint' must be given together"
        got = ", ".join(name for name, here in zip(("X", "y", "viewpoint"), given, strict=True) if here)
        raise InvalidInputError(must, got, "Give all three for the panel of measures, or none")
    axes = grid(axes, 3 + all(given), 2 if all(given) else 3, (4.0, 3.0))
    terms = [solution.objective.terms for solution in solutions]
    labels = {"risk": "risk", "regularizer": "regularizer Ω", "neutrality": "neutrality, max($C^+$, $C^-$)"}
    curves = [(labels[t.kind], [each[j].value for each in terms]) for j, t in enumerate(terms[0])]
    _curves(axes[0], etas, curves, "term, unweighted")
    first = next(j for j, t in enumerate(terms[0]) if t.kind == "neutrality")
    sides = [("$C^+$", [each[first].plus for each in terms]), ("$C^-$", [each[first].minus for each in terms])]
    _curves(axes[1], etas, sides, "side of the neutrality term")
    # At eta = 0 theta weighs nothing: any value is optimal, so none is shown.
    theta = [
        np.nan if s.multipliers is None or eta == 0 else float(s.multipliers.thetas[0])
        for s, eta in zip(solutions, etas, strict=True)
    ]
    _curves(axes[2], etas, [("θ", theta)], "θ, weight of $C^+$")
    axes[2].set(ylim=(-0.05, 1.05), xlim=axes[1].get_xlim())
    if all(given):
        from nerm.metrics import report

        reports = [report(y, solution.decision_function(X), viewpoint) for solution in solutions]
        shown = ("accuracy", "auc", "neutrality_risk", "calders_verwer_score")
        _curves(axes[3], etas, [(AXIS[name], [abs(r[name]) for r in reports]) for name in shown], "measure")
        axes[3].set_ylim(-0.02, 1.02)
    return axes


def coefficient_path(solutions: Sequence[Any], names: Sequence[str] | None = None, ax: Any = None, top: int = 7) -> Any:
    """Draw the coefficients w_j against the neutrality weight.

    Parameters
    ----------
    solutions
        From `Problem.path`, of a linear hypothesis.
    names
        Of the coefficients; w0, w1, … by default.
    ax
        Axes to draw on; new ones by default.
    top
        How many of those that move most are named; the others are grey.

    Returns
    -------
    Axes

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import nerm
    >>> from nerm.datasets import load
    >>> d = load("synthetic", n=60, random_state=0)
    >>> goal = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())
    >>> path = goal.on(d.X, d.y, viewpoint=d.viewpoint).path([0, 0.1, 1])
    >>> len(coefficient_path(path, d.feature_names).lines)
    11
    """
    etas = _etas(solutions)
    coefs = np.array([solution.coef for solution in solutions])
    d = coefs.shape[1]
    labels = [f"w{j}" for j in range(d)] if names is None else [str(name) for name in names]
    if len(labels) != d:
        must = f"'names' must have one entry for each of the {d} coefficients"
        raise InvalidInputError(must, f"{len(labels)}", "Pass feature_names")
    ax = axes_or_new(ax)
    moved = np.argsort(-np.ptp(coefs, axis=0), kind="stable")
    x = _positions(etas)
    for j in moved[top:]:
        ax.plot(x, coefs[:, j], color="0.8", linewidth=0.8, zorder=0)
    ax.axhline(0.0, color="0.5", linewidth=0.8, zorder=0)
    _curves(ax, etas, [(labels[j], coefs[:, j]) for j in moved[:top]], "coefficient", legend="outside")
    return ax


def _etas(solutions: Sequence[Any]) -> Floats:
    """Return the total weight of the neutrality terms of each solution."""
    terms = [getattr(getattr(s, "objective", None), "terms", ()) for s in solutions]
    weights = [[t.weight for t in each if t.kind == "neutrality"] for each in terms]
    if not weights or not all(weights):
        must = "'solutions' must be a path of solutions with a neutrality term"
        raise InvalidInputError(must, repr(solutions)[:60], "Use problem.path([0, 1])")
    return np.array([sum(each) for each in weights])


def _positions(etas: Floats) -> Floats:
    """Return where etas stand on a logarithmic axis: 0 half a decade to the left of the smallest other."""
    positive = etas[etas > 0]
    return np.where(etas > 0, etas, (positive.min() if len(positive) else 1.0) / 10**0.5)


def _curves(ax: Any, etas: Floats, curves: Sequence[tuple[str, Any]], label: str, legend: str = "inside") -> None:
    order = np.argsort(etas, kind="stable")
    x = _positions(etas)
    for k, (name, values) in enumerate(curves):
        ordered = np.asarray(values, dtype=float)[order]
        ax.plot(x[order], ordered, **style(k), markersize=3.5, linewidth=1.2, label=name)
    ax.set(xscale="log", xlabel="neutrality weight η", ylabel=label)
    if (etas == 0).any():
        _name_zero(ax, float(x.min()))
    finish(ax, legend, show_legend=len(curves) > 1)


def _name_zero(ax: Any, place: float) -> None:
    """Label the place of eta = 0 on the logarithmic axis "0"."""
    low, high = place * 1.5, ax.get_xlim()[1]
    decades = [10.0**k for k in range(int(np.floor(np.log10(low))), int(np.ceil(np.log10(high))) + 1)]
    shown = [t for t in decades if low <= t <= high]
    ax.set_xticks([place, *shown], ["0", *(f"{t:g}" for t in shown)])
    ax.minorticks_off()


__all__ = ["DASHES", "MARKERS", "OKABE_ITO", *public_names(globals())]
