"""Quality against the measured neutrality at asked levels.

What a reader must know of a method is drawn and said: squares see the group when they predict, circles do not; hollow
ones draw their predictions; along a full line the levels were asked for, along a dashed one a grid was searched.
"""

from typing import Any

from nerm.experiments.levels import LEVEL_METHODS, MEASURES, level_means
from nerm.figure_style import OKABE_ITO, axes_or_new, finish, grid
from nerm.plots.paper_figures import AXIS, NAMES
from nerm.validation import check_known

MEASURED = {"neutrality_risk": "$C_{sgn}$ on test rows", "calders_verwer_score": "|parity| on test rows"}
QUALITIES = ("auc", "accuracy")
#: Of the methods that see the group, which are no rivals of the others.
GREYS = ("0.0", "0.35", "0.5", "0.65", "0.75")


def _looks(means: Any) -> dict[str, dict[str, Any]]:
    """Return colour, marker, filling and line of each method, the same in every panel of one figure."""
    first = means.drop_duplicates("method").set_index("method")
    names = sorted(first.index, key=[*LEVEL_METHODS, *first.index].index)
    found: dict[str, dict[str, Any]] = {}
    for name in names:
        facts = first.loc[name]
        seen, plain = bool(facts["sees_group"]), facts["level"] == "none"
        colors = ("0.0", "0.6") if plain else GREYS if seen else OKABE_ITO[:-1]
        alike = sum(1 for other in found if first.loc[other, "sees_group"] == seen and found[other]["plain"] == plain)
        color = colors[alike % len(colors)]
        known = LEVEL_METHODS.get(name)
        words = [
            {"none": "no level"}.get(facts["level"], facts["level"]),
            "sees group" if seen else "",
            "randomised" if facts["randomised"] else "",
        ]
        found[name] = {
            "plain": plain,
            "color": color,
            "marker": "*" if plain else "s" if seen else "o",
            "markerfacecolor": "none" if facts["randomised"] else color,
            "linestyle": "--" if facts["level"] == "grid" else "-",
            "label": f"{known.label if known else name}  ({', '.join(filter(None, words))})",
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
    """Draw test quality against the measured neutrality on test rows: a curve a method, a point an asked level.

    Means over all folds with a model. A cross on a point says that in most folds the level was met on the training rows
    only by denying people, or not met at all. Dotted lines are the levels that were asked for.

    Parameters
    ----------
    table
        From `nerm.experiments.levels`.
    dataset
        One of the table's; may be left out where it has one only.
    measure, quality
        What was limited, and ``"auc"`` or ``"accuracy"``.
    ax
        Axes to draw on; new ones by default.
    legend
        Whether to say in the panel which method is which.

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
    known = means["dataset"].unique().tolist()
    dataset = str(known[0]) if dataset is None and len(known) == 1 else dataset
    check_known(dataset, "'dataset'", known)
    check_known(measure, "'measure'", means["measure"].unique().tolist())
    check_known(quality, "'quality'", QUALITIES)
    ax = axes_or_new(ax)
    own = means[(means["dataset"] == dataset) & (means["measure"] == measure)]
    for limit in own["limit"].dropna().unique():
        ax.axvline(limit, color="0.6", linewidth=0.8, linestyle=(0, (1, 2)), zorder=0)
    for k, (name, look) in enumerate(_looks(means).items()):
        points = own[(own["method"] == name) & own["measured"].notna()].sort_values("limit", ascending=False)
        shape = {key: value for key, value in look.items() if key != "plain"}
        if not points.empty:
            size = 11 if look["plain"] else 5.5
            ax.plot(points["measured"], points[quality], **shape, markersize=size, linewidth=1.1, zorder=3 + k / 100)
            wrong = points[2 * points["ok"] < points["fits"]]
            ax.plot(wrong["measured"], wrong[quality], "x", color="#D00000", markersize=7, zorder=5)
    ax.set(
        xscale="log", xlabel=MEASURED[measure], ylabel=f"test {AXIS[quality]}", title=NAMES.get(str(dataset), dataset)
    )
    finish(ax, show_legend=legend)
    return ax


def figure_levels(table: Any, axes: Any = None) -> Any:
    """Draw what methods give at asked levels: a column a data set, AUC and accuracy for each measure that was limited.

    Parameters
    ----------
    table
        From `nerm.experiments.levels`.
    axes
        As many Axes as there are panels; new ones by default.

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
    rows = [(measure, quality) for measure in measures for quality in QUALITIES]
    axes = grid(axes, len(rows) * len(datasets), len(datasets), (4.2, 3.0))
    panels = [(dataset, *row) for row in rows for dataset in datasets]
    for ax, (dataset, measure, quality) in zip(axes, panels, strict=True):
        level_panel(table, dataset, measure, quality, ax, legend=False)
    entries = {label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    columns = min(len(datasets), 3)
    axes[0].figure.legend(
        entries.values(), entries.keys(), loc="outside lower center", ncols=columns, frameon=False, fontsize=8
    )
    return axes
