"""Summarize the table of `compare_solvers`: success rates, mean times, performance profiles, a figure."""

from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.experiments.running import check_columns


def summarize(table: Any, shift: float = 0.01) -> Any:
    """Return success rate, mean time and memory, one row per solver and accuracy.

    Parameters
    ----------
    table
        From `compare_solvers`.
    shift
        Shift of the geometric means, in seconds.

    Returns
    -------
    DataFrame
        With the columns

        - solver, tol;
        - taken: number of problems that the solver supports;
        - solved: share of these on which nerm certified the accuracy;
        - claims: number of runs in which the solver claimed success, infeasibility or unboundedness;
        - correct: share of these claims that the certificate confirms; nan without a claim;
        - mean_seconds: the shifted geometric mean exp(mean log(t + shift)) - shift of the times t over the
          problems taken. A failure counts as the time limit (``table.attrs["time_limit"]``; without it, the
          longest time in the table);
        - times_best: the geometric mean of (t + shift) / (best + shift) over the problems that this solver
          takes and at least one solver solved. Here best is the time of the fastest solver on that problem.
          Use this column to compare solvers that take different problems;
        - median_gap: median of the certified gaps;
        - peak_mb: largest growth of the process's memory, in megabytes.

    >>> import pandas as pd
    >>> rows = [["a", 1.0, "solved", 1, 1e-4], ["b", 4.0, "inaccurate", 0, 1e-1]]
    >>> names = ["solver", "seconds", "status", "correct_claim", "certified_gap"]
    >>> table = pd.DataFrame(rows, columns=names).assign(problem="p", tol=1e-3, peak_mb=2.0)
    >>> summarize(table)[["solver", "solved", "correct", "mean_seconds"]].round(3)
      solver  solved  correct  mean_seconds
    0      a     1.0      1.0           1.0
    1      b     0.0      0.0           4.0
    """
    ran = _ran(table)
    limit = float(ran.attrs.get("time_limit", ran["seconds"].max()))
    log_time = np.log(ran["seconds"].where(ran["solved"], limit) + shift)
    rows = ran.assign(log_time=log_time, log_ratio=log_time - np.log(ran["best"] + shift))
    found = rows.groupby(["solver", "tol"], sort=False, as_index=False).agg(
        taken=("solved", "size"),
        solved=("solved", "mean"),
        claims=("correct_claim", "count"),
        correct=("correct_claim", "mean"),
        mean_seconds=("log_time", "mean"),
        times_best=("log_ratio", "mean"),
        median_gap=("certified_gap", "median"),
        peak_mb=("peak_mb", "max"),
    )
    found["mean_seconds"] = np.exp(found["mean_seconds"]) - shift
    found["times_best"] = np.exp(found["times_best"])
    return found.sort_values(
        ["tol", "solved", "mean_seconds"], ascending=[False, False, True], ignore_index=True
    )


def labelled(table: Any) -> Any:
    """Make names unique: add the version to a solver, and the checksum to a problem, if it has several.

    >>> import pandas as pd
    >>> labelled(pd.DataFrame({"solver": ["a", "a", "b"], "version": ["1", "2", "1"]}))["solver"].tolist()
    ['a 1', 'a 2', 'b']
    """
    table = table.copy()
    for name, detail in (("solver", "version"), ("problem", "case")):
        if detail in table:
            several = table.groupby(name)[detail].transform("nunique") > 1
            table[name] = table[name].where(~several, table[name] + " " + table[detail])
    return table


def _ran(table: Any) -> Any:
    """Return the runs on supported problems, with two more columns.

    `solved` says whether the run succeeded; `best` is the shortest time of a solved run on the same problem
    at the same accuracy, nan if there is none.
    """
    check_columns(table, ["problem", "solver", "tol", "status", "seconds"], "compare_solvers")
    ran = labelled(table)[table["status"] != "not taken"]
    solved = ran["status"] == "solved"
    best = ran["seconds"].where(solved).groupby([ran["tol"], ran["problem"]]).transform("min")
    return ran.assign(solved=solved, best=best)


def figure(table: Any, tol: float, axes: Any = None) -> Any:
    """Draw the performance profile, and seconds against the number of rows in the family "size".

    The profile of Dolan and Moré (2002) shows the share of problems on which a solver is within a factor of
    the fastest one. At factor 1 this is the share on which it was the fastest, at the right edge the share
    that it solved. Shares are relative to the problems that some solver solved; a problem that a solver does
    not support counts as not solved. Solvers are sorted by the area under their curve. The right panel is
    log-log. Its legend has the exponent p of seconds = c n^p, fitted by least squares in logarithms to the
    solved runs of a solver with at least three sizes; p says little if a fixed cost per solve dominates the
    times (a few hundredths of a second through cvxpy).

    Parameters
    ----------
    table
        From `compare_solvers`.
    tol
        One of the accuracies in the table.
    axes
        Two Axes to draw on; by default a new figure is made.

    Returns
    -------
    ndarray of two Axes
    """
    from nerm.plots.style import finish, grid, style  # nerm.plots imports nerm.experiments

    ran = _ran(table)
    own = ran[ran["tol"] == tol]
    if own.empty:
        there = ", ".join(f"{t:g}" for t in sorted(set(table["tol"])))
        raise InvalidInputError(f"'tol' must be one of the table's: {there}", f"{tol:g}", "Use one of them")
    solved = own[own["solved"]]
    if solved.empty:
        raise InvalidInputError("'table' must have a solved run", "none", "Look at its column 'reason'")
    left, right = axes = grid(axes, 2, 2, (5.75, 4.2))
    styles = {name: style(k) for k, name in enumerate(sorted(set(labelled(table)["solver"])))}
    ratios = (own["seconds"] / own["best"]).where(own["solved"]).groupby(own["solver"])
    curves = {name: np.sort(ratio.dropna()) for name, ratio in ratios}
    total, most = solved["problem"].nunique(), ratios.max().max()
    for solver in sorted(curves, key=lambda name: -np.log(2 * most / curves[name]).sum()):
        r = curves[solver]
        heights = np.concatenate([[0], np.arange(1, len(r) + 1), [len(r)]]) / total
        look = {**styles[solver], "markersize": 4, "markevery": [-1], "linewidth": 1.3, "label": solver}
        left.step(np.concatenate([[1.0], r, [1.3 * most]]), heights, where="post", **look)
    left.set(xscale="log", xlim=(1.0, 1.3 * most), ylim=(0.0, 1.02), title=f"tol {tol:g}")
    left.set(xlabel="time, as a multiple of the fastest solver's", ylabel=f"share of {total} problems solved")
    sizes = solved[solved["family"] == "size"].sort_values("n")
    for solver in sizes.groupby("solver")["seconds"].max().sort_values(ascending=False).index:
        n, seconds = sizes[sizes["solver"] == solver][["n", "seconds"]].to_numpy(dtype=float).T
        p = np.polyfit(np.log(n), np.log(seconds), 1)[0] if len(set(n)) >= 3 else None
        label = solver if p is None else f"{solver}  $n^{{{p:.2f}}}$"
        right.plot(n, seconds, **styles[solver], markersize=4, linewidth=1.2, label=label)
    right.set(xscale="log", yscale="log", xlabel="rows n", ylabel="seconds", title=f"tol {tol:g}")
    for ax in axes:
        finish(ax, "outside")
    return axes
