"""Draw the paper's two figures, models at target levels, paths of neutrality weights, and atoms.

Every function draws on the matplotlib Axes it is given, or on new ones, and returns them.

The look of a curve in the panels of target levels tells the kind of its method:

- circle: predictions do not depend on the group; square: they do; star: the method has no target level;
- hollow marker: predictions are random;
- solid line: the level is a parameter of the method; dashed line: a grid of weights was searched.

The colours of Okabe and Ito can be told apart by colour-blind readers. Markers and dashes differ too, so that
curves can be told apart in grey.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np

import nerm
from nerm.errors import InvalidInputError, import_optional
from nerm.experiments.convergence import slopes
from nerm.experiments.levels import LEVEL_METHODS, MEASURES, level_means
from nerm.experiments.methods import METHODS
from nerm.experiments.tradeoff import front
from nerm.typing import Array, Floats
from nerm.validation import check_known

__all__ = [
    "DASHES", "MARKERS", "OKABE_ITO", "atom", "convergence_panel", "eta_path", "figure_1",
    "figure_2", "figure_levels", "frontier", "level_panel", "tradeoff_panel",
]  # fmt: skip

#: Okabe and Ito's colours without the yellow, which is too pale for lines on white.
OKABE_ITO = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
#: One marker per colour, so that curves can be told apart in grey.
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
#: One dash pattern per colour, for the same reason.
DASHES: tuple[Any, ...] = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (3, 3)), (0, (1, 1)))


def style(k: int) -> dict[str, Any]:
    """Return colour, marker and dashes of the k-th curve, as options of ``Axes.plot``."""
    turn, place = divmod(k, len(OKABE_ITO))
    other = (place + turn) % len(OKABE_ITO)  # when colours repeat, combine them with other dashes and markers
    return {"color": OKABE_ITO[place], "marker": MARKERS[other], "linestyle": DASHES[other]}


def pyplot() -> Any:
    """Import and return matplotlib.pyplot, which the extra "plots" installs."""
    return import_optional("matplotlib.pyplot", "Drawing a figure", "'nerm-learn[plots]'")


def axes_or_new(ax: Any) -> Any:
    """Return `ax`, or new Axes if it is None."""
    return grid(ax, 1, 1, (4.2, 3.4))[0]


def grid(axes: Any, count: int, columns: int, size: tuple[float, float]) -> Array:
    """Return `count` Axes as a flat array: the given ones, or new ones in rows of `columns` Axes.

    `size` is the (width, height) of one new Axes in inches.
    """
    if axes is None:
        rows = -(-count // columns)
        whole = (size[0] * columns, size[1] * rows)
        figure = pyplot().figure(figsize=whole, layout="constrained")
        axes = [figure.add_subplot(rows, columns, k + 1) for k in range(count)]
    flat: Array = np.asarray(axes, dtype=object).ravel()
    if len(flat) != count:
        must, do = f"'axes' must hold {count} Axes", f"Make plt.subplots(1, {count})"
        raise InvalidInputError(must, f"{len(flat)}", do)
    return flat


def finish(ax: Any, legend: str = "inside", show_legend: bool = True) -> None:
    """Apply the common style to Axes; `legend` is "inside" or "outside" of them."""
    ax.grid(alpha=0.25, linewidth=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    ax.tick_params(labelsize=8)
    if show_legend:
        place = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5)} if legend == "outside" else {}
        ax.legend(frameon=False, fontsize=8, handlelength=2.6, **place)


AXIS = {
    "auc": "AUC",
    "accuracy": "accuracy",
    "neutrality_risk": "$C_{sgn}$",
    "calders_verwer_score": "|Calders-Verwer score|",
}
ERRORS = {
    "risk": "error of the risk",
    "neutrality": "error of the neutrality risk",
    "zero_one": "error of the 0/1 risk",
    "sign_neutrality": "error of $C_{sgn}$",
}
QUALITIES = ("auc", "accuracy")
WRONG = "Red cross: in most folds the level was not met on training rows, or only by a collapsed model."


def convergence_panel(table: Any, error: str = "risk", ax: Any = None) -> Any:
    """Draw one panel of figure 1: means and standard deviations of ``|test - train|`` against n.

    There is one curve per eta. The legend shows the slope fitted to each curve in log-log scale. The grey
    line is sqrt(c/n), where c is the geometric mean of the constants fitted to the curves.

    Parameters
    ----------
    table
        The result of `nerm.experiments.convergence`.
    error
        The error to draw: "risk", "neutrality", "zero_one" or "sign_neutrality".
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
        # Error bars must stay above 0 on a logarithmic axis. Shift each curve so that bars do not overlap.
        shift = 1.04 ** (k - (len(fitted) - 1) / 2)
        bars = [np.minimum(std.to_numpy(), 0.9 * mean.to_numpy()), std.to_numpy()]
        look = {**style(k), "markersize": 4, "capsize": 2, "linewidth": 1.2}
        label = f"η = {eta:g}  (slope {fitted.slope[eta]:.2f})"
        ax.errorbar(mean.index.to_numpy() * shift, mean.to_numpy(), yerr=bars, **look, label=label)
    sizes = np.sort(table["n"].unique()).astype(float)
    c = float(np.exp(np.log(fitted.c).mean()))
    line = {"color": "0.45", "linewidth": 2.5, "alpha": 0.6, "zorder": 0}
    ax.plot(sizes, np.sqrt(c / sizes), **line, label=r"$\sqrt{c/n}$")
    ax.set(xscale="log", yscale="log", xlabel="samples n", ylabel=f"{ERRORS[error]}, |test − train|")
    finish(ax)
    return ax


def figure_1(table: Any, axes: Any = None) -> Any:
    """Draw figure 1 of the paper: the errors of the risk and of the neutrality risk.

    Parameters
    ----------
    table
        The result of `nerm.experiments.convergence`.
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
    """Draw one panel of figure 2: C_sgn (vertical) against quality (horizontal).

    Good models are at the bottom right. A point is a mean over all folds. For each method, only the points
    that are not dominated by another point of the method are drawn. Methods without a neutrality weight have
    hollow markers. In the legend, † marks methods whose predictions depend on the group, and ‡ methods with
    random predictions. The grey lines are the best quality and the best neutrality of all methods.

    Parameters
    ----------
    table
        The result of `nerm.experiments.tradeoff`.
    dataset
        The name of a data set in the table; optional if there is only one.
    ax
        Axes to draw on; new ones by default.
    quality, risk
        Names of the table's columns for the horizontal and the vertical axis.
    dominated
        Whether to draw the dominated points too, small and pale.

    Returns
    -------
    Axes

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import pandas as pd
    >>> measures = {"auc": [0.8, 0.75, 0.7], "neutrality_risk": [0.4, 0.1, 0.2]}
    >>> table = pd.DataFrame({"method": "neutral-svm", "eta": [0.0, 1.0, 10.0], "status": "ok", **measures})
    >>> ax = tradeoff_panel(table.assign(dataset="german"))
    >>> ax.lines[2].get_xydata().tolist()  # eta = 10 is dominated by eta = 1
    [[0.75, 0.1], [0.8, 0.4]]
    """
    means = front(table, quality, risk)
    dataset = _one_dataset(means, dataset)
    means = means[means["dataset"] == dataset].sort_values(quality)
    points = means[means["non_dominated"]]
    if points.empty:
        must = f"'table' must have a result on {dataset!r}"
        raise InvalidInputError(must, "failed fits only", "Look at its column 'reason'")
    ax = axes_or_new(ax)
    guide = {"color": "0.6", "linewidth": 1, "linestyle": (0, (2, 2)), "zorder": 0}
    ax.axvline(points[quality].max(), **guide)
    ax.axhline(points[risk].min(), **guide)
    marks = {"sees_group": " †", "randomised": " ‡"}
    # Use the order of METHODS, so that a method looks the same in every panel.
    for k, name in enumerate(dict.fromkeys([*METHODS, *table["method"]])):
        own, look = points[points["method"] == name], {**style(k), "markersize": 5, "zorder": 2}
        if dominated:
            others = means[(means["method"] == name) & ~means["non_dominated"]]
            ax.plot(others[quality], others[risk], ".", color=look["color"], alpha=0.35, zorder=1)
        if own["eta"].isna().all():  # a single point, of a method without a weight
            look |= {"markerfacecolor": "none", "markersize": 8, "markeredgewidth": 1.8, "zorder": 4}
        label = METHODS[name].label if name in METHODS else name
        label += "".join(mark for fact, mark in marks.items() if fact in own and own[fact].any())
        if not own.empty:
            ax.plot(own[quality], own[risk], **look, linewidth=1.2, label=label)
    ax.set(xlabel=AXIS.get(quality, quality), ylabel=AXIS.get(risk, risk), title=dataset.capitalize())
    ax.margins(0.08)
    finish(ax)
    return ax


def _one_dataset(table: Any, dataset: str | None) -> str:
    """Return `dataset` if the table has it; if it is None, return the table's only data set."""
    known = table["dataset"].unique().tolist()
    found = known[0] if dataset is None and len(known) == 1 else dataset
    check_known(found, "'dataset'", known)
    return str(found)


def figure_2(table: Any, axes: Any = None, **options: Any) -> Any:
    """Draw figure 2 of the paper, one panel per data set, in the table's order.

    Parameters
    ----------
    table
        The result of `nerm.experiments.tradeoff`.
    axes
        One Axes per data set; new ones by default.
    options
        quality, risk and dominated, as for `tradeoff_panel`.

    Returns
    -------
    ndarray of Axes

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import pandas as pd
    >>> table = pd.DataFrame({"dataset": ["german", "adult"], "auc": [0.8, 0.9]})
    >>> table = table.assign(method="svm", eta=np.nan, status="ok", neutrality_risk=0.1)
    >>> [ax.get_title() for ax in figure_2(table)]
    ['German', 'Adult']
    """
    datasets = table["dataset"].unique().tolist()
    axes = grid(axes, len(datasets), min(len(datasets), 3), (4.0, 3.4))
    for ax, dataset in zip(axes, datasets, strict=True):
        tradeoff_panel(table, dataset, ax, **options)
    return axes


def _looks(means: Any) -> dict[str, dict[str, Any]]:
    """Return the plot options of each method (colour, marker, line, label), by its name.

    `means` is the table of all panels, so that a method looks the same in each of them.
    """
    rows = {row.method: row for row in means.itertuples()}
    found = {}
    for k, name in enumerate(name for name in dict.fromkeys([*LEVEL_METHODS, *rows]) if name in rows):
        row, color = rows[name], style(k)["color"]
        label = LEVEL_METHODS[name].label if name in LEVEL_METHODS else name
        plain = row.level == "none"
        facts = ["no level" if plain else row.level]
        facts += ["sees group"] * bool(row.sees_group) + ["randomised"] * bool(row.randomised)
        found[name] = {
            "color": color,
            "marker": "*" if plain else "s" if row.sees_group else "o",
            "markersize": 11 if plain else 5.5,
            "markerfacecolor": "none" if row.randomised else color,
            "linestyle": "--" if row.level == "grid" else "-",
            "linewidth": 1.1,
            "label": f"{label}  ({', '.join(facts)})",
        }
    return found


def level_panel(
    table: Any,
    dataset: str | None = None,
    measure: str = "calders_verwer_score",
    quality: str = "auc",
    ax: Any = None,
    *,
    legend: bool = True,
) -> Any:
    """Draw quality against measured neutrality on test rows, one curve per method.

    A curve has one point per target level, the mean over all folds in which the fit succeeded. A red cross on
    a point means that in most folds the level was not met on the training rows, or only by a model that
    collapsed. Dotted lines are the target levels.

    Parameters
    ----------
    table
        The result of `nerm.experiments.levels`.
    dataset
        The name of a data set in the table; optional if there is only one.
    measure, quality
        The limited measure (horizontal axis), and ``"auc"`` or ``"accuracy"`` (vertical axis).
    ax
        Axes to draw on; new ones by default.
    legend
        Whether the panel has a legend.

    Returns
    -------
    Axes

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from nerm.experiments import levels
    >>> few = {"measures": "calders_verwer_score", "limits": 0.05, "lam": 1.0, "folds": 2, "repetitions": 1}
    >>> ax = level_panel(levels("diabetes", ["thresholds", "lr"], **few))
    >>> ax.get_legend_handles_labels()[1]
    ['group thresholds  (asked, sees group)', 'plain LR  (no level)']
    """
    means = level_means(table)
    dataset = _one_dataset(means, dataset)
    check_known(measure, "'measure'", means["measure"].unique().tolist())
    check_known(quality, "'quality'", QUALITIES)
    ax = axes_or_new(ax)
    own = means[(means["dataset"] == dataset) & (means["measure"] == measure)]
    for limit in own["limit"].dropna().unique():
        ax.axvline(limit, color="0.6", linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
    for name, look in _looks(means).items():
        points = own[(own["method"] == name) & own["measured"].notna()].sort_values("limit", ascending=False)
        if not points.empty:
            ax.plot(points["measured"], points[quality], **look, zorder=3)
    wrong = own[2 * own[["collapsed", "not_reached"]].sum(axis=1) > own["fits"] - own["failed"]]
    ax.plot(wrong["measured"], wrong[quality], "x", color="#D00000", markersize=7, zorder=5)
    ax.set_xscale("symlog", linthresh=0.01)  # not "log": the measure of a constant model is 0
    ax.set_xlim(left=0.0)
    ax.set(xlabel=f"{AXIS[measure]} on test rows", ylabel=f"test {AXIS[quality]}", title=dataset.capitalize())
    finish(ax, show_legend=legend)
    return ax


def figure_levels(table: Any, axes: Any = None) -> Any:
    """Draw AUC and accuracy at target levels, one panel per limited measure, quality and data set.

    With several data sets, there is one column of panels per data set.

    Parameters
    ----------
    table
        The result of `nerm.experiments.levels`.
    axes
        One Axes per panel; new ones by default.

    Returns
    -------
    ndarray of Axes

    >>> import matplotlib; matplotlib.use("Agg")
    >>> from nerm.experiments import levels
    >>> few = {"limits": 0.05, "lam": 1.0, "folds": 2, "repetitions": 1}
    >>> axes = figure_levels(levels("diabetes", ["thresholds", "lr"], **few))
    >>> [(ax.get_ylabel(), ax.get_xlabel()) for ax in axes[:2]]
    [('test AUC', '$C_{sgn}$ on test rows'), ('test accuracy', '$C_{sgn}$ on test rows')]
    """
    datasets = table["dataset"].unique().tolist()
    measures = [name for name in MEASURES if name in set(table["measure"])]
    panels = list(product(measures, QUALITIES, datasets))
    columns = len(datasets) if len(datasets) > 1 else 2
    axes = grid(axes, len(panels), columns, (4.2, 3.0))
    for ax, (measure, quality, dataset) in zip(axes, panels, strict=True):
        level_panel(table, dataset, measure, quality, ax, legend=False)
    shown = [ax.get_legend_handles_labels() for ax in axes]
    lines = {label: line for panel in shown for line, label in zip(*panel, strict=True)}
    look = {"frameon": False, "fontsize": 8, "title": WRONG, "title_fontsize": 8, "ncols": min(columns, 3)}
    axes[0].figure.legend(lines.values(), lines, loc="outside lower center", **look)
    return axes


def eta_path(
    solutions: Sequence[Any], y: Any = None, viewpoint: Any = None, X: Any = None, axes: Any = None
) -> Any:
    """Draw the terms of the objective, C+ and C-, and theta against the neutrality weight eta.

    The first panel shows the terms without their weights, the second the two sides C+ and C- of the first
    neutrality term. The third shows theta, the dual weight of C+ in
    max(C+, C-) = max over theta in [0, 1] of theta C+ + (1 - theta) C-. The axis of eta is linear from 0 to
    the smallest positive weight, and logarithmic from there.

    Parameters
    ----------
    solutions
        The result of `Problem.path`.
    y, viewpoint, X
        Optional rows, for instance test rows. If they are given, a fourth panel shows the accuracy, the AUC
        and the absolute values of C_sgn and of the Calders-Verwer score on them.
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
    etas, reports = _etas(solutions), []
    if any(part is not None for part in (X, y, viewpoint)):
        reports = [nerm.metrics.report(y, solution.decision_function(X), viewpoint) for solution in solutions]
    axes = grid(axes, 4 if reports else 3, 2 if reports else 3, (4.0, 3.0))
    terms = [solution.objective.terms for solution in solutions]
    labels = {"risk": "risk", "regularizer": "regularizer Ω", "neutrality": "neutrality, max($C^+$, $C^-$)"}
    curves = [(labels[t.kind], [each[j].value for each in terms]) for j, t in enumerate(terms[0])]
    _curves(axes[0], etas, curves, "term, unweighted")
    first = next(j for j, t in enumerate(terms[0]) if t.kind == "neutrality")
    neutrality = [each[first] for each in terms]
    sides = [("$C^+$", [t.plus for t in neutrality]), ("$C^-$", [t.minus for t in neutrality])]
    _curves(axes[1], etas, sides, "side of the neutrality term")
    thetas = [np.nan if s.multipliers is None else float(s.multipliers.thetas[0]) for s in solutions]
    shown = np.where(etas == 0, np.nan, thetas)  # at eta = 0 every theta is optimal
    _curves(axes[2], etas, [("θ", shown)], "θ, weight of $C^+$")
    axes[2].set(ylim=(-0.05, 1.05), xlim=axes[1].get_xlim())
    if reports:
        names = ("accuracy", "auc", "neutrality_risk", "calders_verwer_score")
        _curves(axes[3], etas, [(AXIS[name], [abs(r[name]) for r in reports]) for name in names], "measure")
        axes[3].set_ylim(-0.02, 1.02)
    return axes


def frontier(curves: Any, models: Mapping[str, Any] | None = None, ax: Any = None) -> Any:
    """Draw a `nerm.proofs.Frontier`: the attained curve, the proved bound, and the band between them.

    Parameters
    ----------
    curves
        The result of `Problem.frontier`.
    models
        Models to show as points, by name; each is anything that `Frontier.place` takes.
    ax
        Axes to draw on; new ones by default.

    Returns
    -------
    Axes

    >>> import matplotlib; matplotlib.use("Agg")
    >>> import nerm
    >>> from nerm.datasets import load
    >>> d = load("synthetic", n=60, random_state=0)
    >>> goal = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())
    >>> curves = goal.on(d.X, d.y, viewpoint=d.viewpoint).frontier(0.05)
    >>> frontier(curves, {"zero": ([0.0] * 10, 0.0)}).get_xlabel()
    'relaxed neutrality risk C'
    """
    ax = axes_or_new(ax)
    corners = curves.inner[:, 0]
    c = np.unique([*np.linspace(corners[0], corners[-1], 200), *corners])
    inner, outer = np.interp(c, *curves.inner.T), curves.outer(c)
    ax.fill_between(c, outer, inner, color=OKABE_ITO[5], alpha=0.4, linewidth=0, label="not decided")
    ax.plot(c, inner, color=OKABE_ITO[0], label="attained")
    ax.plot(c, outer, color=OKABE_ITO[1], linestyle=DASHES[1], label="proved bound")
    for k, (name, model) in enumerate((models or {}).items()):
        placed = curves.place(model)
        ax.plot(placed.neutrality, placed.risk, **style(k + 2) | {"linestyle": ""}, label=name)
    ax.set(xlabel="relaxed neutrality risk C", ylabel="regularised risk")
    finish(ax)
    return ax


def _etas(solutions: Sequence[Any]) -> Floats:
    """Return the total weight of the neutrality terms of each solution, (number of solutions,)."""
    terms = [getattr(getattr(s, "objective", None), "terms", ()) for s in solutions]
    weights = [[t.weight for t in each if t.kind == "neutrality"] for each in terms]
    if not weights or not all(weights):
        must = "'solutions' must be a path of solutions with a neutrality term"
        raise InvalidInputError(must, repr(solutions)[:60], "Use problem.path([0, 1])")
    return np.array([sum(each) for each in weights])


def _curves(ax: Any, etas: Floats, curves: Sequence[tuple[str, Any]], label: str) -> None:
    order = np.argsort(etas, kind="stable")
    for k, (name, values) in enumerate(curves):
        ordered = np.asarray(values, dtype=float)[order]
        ax.plot(etas[order], ordered, **style(k), markersize=3.5, linewidth=1.2, label=name)
    ax.set_xscale("symlog", linthresh=min(etas[etas > 0], default=1.0))
    ax.set(xlabel="neutrality weight η", ylabel=label)
    finish(ax, show_legend=len(curves) > 1)


def atom(function: Any, axes: Any = None) -> Array:
    """Draw value, slope and conjugate of a margin function, each on Axes of its own.

    Parameters
    ----------
    function : MarginFunction
        A margin function, built-in or your own.
    axes : array of three Axes, optional
        New ones by default.

    Returns
    -------
    array of Axes
        Value and slope over the margin m, and the conjugate over its dual variable u.

    Examples
    --------
    >>> import nerm
    >>> [ax.get_title() for ax in nerm.plots.atom(nerm.Hinge())]
    ['value of Hinge()', 'slope of Hinge()', 'conjugate of Hinge()']
    """
    axes = grid(axes, 3, 3, (3.4, 2.8))
    special = np.array([0.0, 1.0, *function.facts.breakpoints])
    m = np.unique([*np.linspace(special.min() - 2.0, special.max() + 2.0, 801), *special])
    low, high = function.subgradient(m)
    first, last = np.clip(function.facts.slopes, np.nanmin(low), np.nanmax(high)).tolist()
    u = np.linspace(first, last, 401)
    color = OKABE_ITO[0]
    axes[0].plot(m, function.value(m), color=color)
    axes[1].plot(np.repeat(m, 2), np.column_stack([low, high]).ravel(), color=color)
    axes[2].plot(u, function.conjugate(u), color=color)
    for ax, label, x in zip(axes, ("value", "slope", "conjugate"), "mmu", strict=True):
        ax.set_xlabel(x)
        ax.set_title(f"{label} of {getattr(function, 'label', repr(function))}", fontsize=9)
        finish(ax, show_legend=False)
    for kink in function.facts.kinks:
        axes[0].axvline(kink, color="0.6", linewidth=0.8, linestyle=":")
    return axes
