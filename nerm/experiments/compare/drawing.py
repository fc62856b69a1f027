"""The figures of a solver comparison, a performance profile and time against n: functions that take and return Axes."""

from typing import Any

import numpy as np

from nerm.experiments.compare.summary import at, exponents, labelled, profile, share_of_problems
from nerm.figure_style import axes_or_new, finish, grid, style


def performance_profile(table: Any, tol: float, ax: Any = None) -> Any:
    """Draw the performance profile of Dolan and Moré: how often a solver is within a factor of the fastest.

    At factor 1 a curve shows how often its solver was the fastest, at the right edge how often it solved at all. The
    share is of the problems that some solver solved; a problem that a solver cannot take counts as not solved.

    Parameters
    ----------
    table
        From `compare_solvers`.
    tol
        One of its accuracies.
    ax
        Axes to draw on; new ones by default.

    Returns
    -------
    Axes
    """
    ratios, total, styles = profile(table, tol), share_of_problems(table, tol), _styles(table)
    edge = max(float(r[-1]) for r in ratios.values() if len(r)) * 1.3
    ax = axes_or_new(ax)
    for solver, r in ratios.items():
        steps = np.concatenate([[1.0], r, [edge]])
        heights = np.concatenate([[0], np.arange(1, len(r) + 1), [len(r)]]) / total
        last = {"markersize": 4, "markevery": [-1], "clip_on": False}
        ax.step(steps, heights, where="post", **styles[solver], **last, linewidth=1.3, alpha=0.9, label=solver)
    ax.set(xscale="log", xlim=(1.0, edge), ylim=(0.0, 1.02), xlabel="time, as a multiple of the fastest solver's")
    ax.set(ylabel=f"share of {total} problems solved", title=f"tol {tol:g}")
    finish(ax, "outside")
    return ax


def time_against_n(table: Any, tol: float, family: str = "size", ax: Any = None) -> Any:
    """Draw seconds against the number of rows in one family, log-log, with the fitted exponent in the legend.

    Parameters
    ----------
    table, tol, ax
        As for `performance_profile`.
    family
        Of the problems.

    Returns
    -------
    Axes
    """
    fits, styles = exponents(table, tol, family).set_index("solver"), _styles(table)
    own = at(table, tol)
    own = own[(own["family"] == family) & own["solved"]]
    ax = axes_or_new(ax)
    for solver in own.groupby("solver")["seconds"].max().sort_values(ascending=False).index:
        runs, p = own[own["solver"] == solver].sort_values("n"), fits.exponent[solver]
        label = solver if np.isnan(p) else f"{solver}  $n^{{{p:.2f}}}$"
        ax.plot(runs["n"], runs["seconds"], **styles[solver], markersize=4, linewidth=1.2, label=label)
    ax.set(xscale="log", yscale="log", xlabel="rows n", ylabel="seconds", title=f"tol {tol:g}")
    finish(ax, "outside")
    return ax


def figure(table: Any, tol: float, axes: Any = None) -> Any:
    """Draw both side by side.

    Parameters
    ----------
    table, tol
        As for `performance_profile`.
    axes
        Two Axes to draw on; new ones by default.

    Returns
    -------
    ndarray of two Axes
    """
    axes = grid(axes, 2, 2, (5.75, 4.2))
    performance_profile(table, tol, axes[0])
    time_against_n(table, tol, ax=axes[1])
    return axes


def _styles(table: Any) -> dict[str, dict[str, Any]]:
    """Return the look of every solver, the same in every figure of a table."""
    return {name: style(k) for k, name in enumerate(sorted(set(labelled(table)["solver"])))}
