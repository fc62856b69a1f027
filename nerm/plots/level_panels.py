"""Quality against the measured neutrality at asked levels.

What a reader must know of a method is drawn and said: coloured circles do not see the group when they
predict, grey angular markers do; hollow ones draw their predictions; along a full line the levels were asked
for, along a dashed one a grid was searched.
"""

from typing import Any

from nerm.experiments import LEVEL_METHODS, level_means
from nerm.experiments.methods import MEASURES
from nerm.plots.paper_figures import AXIS, NAMES
from nerm.plots.style import OKABE_ITO, axes_or_new, finish, grid
from nerm.validation import check_known

MEASURED = {"neutrality_risk": "$C_{sgn}$ on test rows", "calders_verwer_score": "|parity| on test rows"}
TICKS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
TICKS = (0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0)
QUALITIES = ("auc", "accuracy")
WRONG = (
    "Red cross: in most folds the level was not met on the training rows, or only by a model that collapsed."
)
SEEING = (("0.0", "s"), ("0.35", "D"), ("0.55", "v"), ("0.45", "^"), ("0.65", "P"))
BLIND = tuple((color, "o") for color in OKABE_ITO[:-1])
PLAIN = (("0.0", "*"), ("0.6", "*"))


def _looks(means: Any) -> dict[str, dict[str, Any]]:
    """Return colour, marker, filling, line and label of each method, the same in every panel of one figure."""
    rows = {row.method: row for row in means.itertuples()}
    found, turns = {}, dict.fromkeys((SEEING, BLIND, PLAIN), 0)
    for name in sorted(rows, key=[*LEVEL_METHODS, *rows].index):
        row = rows[name]
        looks = PLAIN if row.level == "none" else SEEING if row.sees_group else BLIND
        color, marker = looks[turns[looks] % len(looks)]
        turns[looks] += 1
        facts = ["no level" if row.level == "none" else row.level]
        facts += ["sees group"] * bool(row.sees_group) + ["randomised"] * bool(row.randomised)
        found[name] = {
            "color": color,
            "marker": marker,
            "markersize": 11 if looks is PLAIN else 5.5,
            "markerfacecolor": "none" if row.randomised else color,
            "linestyle": "--" if row.level == "grid" else "-",
            "label": f"{LEVEL_METHODS[name].label if name in LEVEL_METHODS else name}  ({', '.join(facts)})",
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

    Means over all folds with a model. A red cross on a point says that in most folds the level was not met on
    the training rows, or only by a model that collapsed. Dotted lines are the levels that were asked for.

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
    for name, look in _looks(means).items():
        points = own[(own["method"] == name) & own["measured"].notna()].sort_values("limit", ascending=False)
        if not points.empty:
            ax.plot(points["measured"], points[quality], **look, linewidth=1.1, zorder=3)
    wrong = own[2 * own[["collapsed", "not_reached"]].sum(axis=1) > own["fits"] - own["failed"]]
    ax.plot(wrong["measured"], wrong[quality], "x", color="#D00000", markersize=7, zorder=5)
    ax.set_xscale("symlog", linthresh=0.005, linscale=0.4)  # a constant has 0
    ax.set_xticks(TICKS, [f"{tick:g}" for tick in TICKS])
    ax.minorticks_off()
    ax.set(
        xlim=(-0.0005, 1.15 * own["measured"].max()), xlabel=MEASURED[measure], ylabel=f"test {AXIS[quality]}"
    )
    ax.set_title(NAMES.get(str(dataset), str(dataset)))
    finish(ax, show_legend=legend)
    return ax


def figure_levels(table: Any, axes: Any = None) -> Any:
    """Draw what methods give at asked levels: AUC and accuracy for each measure that was limited, a column a data set.

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
    columns = len(datasets) if len(datasets) > 1 else 2
    axes = grid(axes, len(rows) * len(datasets), columns, (4.2, 3.0))
    panels = [(dataset, *row) for row in rows for dataset in datasets]
    for ax, (dataset, measure, quality) in zip(axes, panels, strict=True):
        level_panel(table, dataset, measure, quality, ax, legend=False)
    entries = {
        label: line for ax in axes for line, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    labels = sorted(entries, key=[look["label"] for look in _looks(level_means(table)).values()].index)
    look = {"frameon": False, "fontsize": 8, "title": WRONG, "title_fontsize": 8, "ncols": min(columns, 3)}
    axes[0].figure.legend([entries[label] for label in labels], labels, loc="outside lower center", **look)
    return axes
