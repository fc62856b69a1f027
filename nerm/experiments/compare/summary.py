"""What a table of `compare_solvers` says: rates, means, profiles and exponents."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError

SHIFT = 0.01  # seconds


def summarize(table: Any, shift: float = SHIFT) -> Any:
    """Return one row a solver and accuracy.

    taken, solved
        On how many problems it ran, and the share of these on which nerm certified the accuracy.
    claims, correct
        How often it claimed to have solved (or that there is nothing to solve), and the share of these claims that the
        certificate bears out; nan without a claim.
    mean_seconds
        The shifted geometric mean exp(mean log(t + shift)) - shift over the problems it took, a failure counted at the
        time limit (``table.attrs["time_limit"]``; for a table without it, at the longest time in it).
    times_best
        The geometric mean of (t + shift) / (best + shift) over the problems that it took and somebody solved, where
        best is the fastest solver's time there: the number that compares solvers that take different problems.
    median_gap, peak_mb
        The median of the certified gaps that it reached, and the largest growth of its process.

    >>> import pandas as pd
    >>> rows = [["p", "a", 1e-3, 1.0, "solved", 1, 1e-4, 2.0], ["p", "b", 1e-3, 4.0, "inaccurate", 0, 1e-1, 2.0]]
    >>> names = ["problem", "solver", "tol", "seconds", "status", "correct_claim", "certified_gap", "peak_mb"]
    >>> summarize(pd.DataFrame(rows, columns=names))[["solver", "solved", "correct", "mean_seconds"]].round(3)
      solver  solved  correct  mean_seconds
    0      a     1.0      1.0           1.0
    1      b     0.0      0.0           4.0
    """
    import pandas as pd

    table = _ran(table)
    limit = float(table.attrs.get("time_limit", table["seconds"].max()))
    table = table.assign(t=np.where(table["status"] == "solved", table["seconds"], limit))
    best = _best(table)
    rows = []
    for (solver, tol), own in table.groupby(["solver", "tol"], sort=False):
        claims = own["correct_claim"].dropna()
        fastest = np.array([best.get((tol, problem), math.nan) for problem in own["problem"]])
        ratios = np.log((own["t"].to_numpy() + shift) / (fastest + shift))
        gaps = own["certified_gap"].dropna()
        rows.append(
            {
                "solver": solver,
                "tol": tol,
                "taken": len(own),
                "solved": float((own["status"] == "solved").mean()),
                "claims": len(claims),
                "correct": float(claims.mean()) if len(claims) else math.nan,
                "mean_seconds": float(np.exp(np.log(own["t"] + shift).mean()) - shift),
                "times_best": float(np.exp(np.nanmean(ratios))) if np.isfinite(ratios).any() else math.nan,
                "median_gap": float(gaps.median()) if len(gaps) else math.nan,
                "peak_mb": float(own["peak_mb"].max()),
            }
        )
    found = pd.DataFrame(rows)
    return found.sort_values(["tol", "solved", "mean_seconds"], ascending=[False, False, True], ignore_index=True)


def profile(table: Any, tol: float) -> dict[str, np.ndarray]:
    """Return the performance profile of each solver (Dolan and Moré, 2002), the best first.

    For each solver the sorted ratios r_1 <= r_2 <= ... of its time to the fastest solver's, one for each problem that
    it solved; its curve rises by 1 / (number of problems that anybody solved) at each of them. A problem that it failed
    or cannot take never counts. Solvers stand in the order of the area under their curve.
    """
    own = at(table, tol)
    best = _best(own)
    solved = own[own["status"] == "solved"]
    if solved.empty:
        raise InvalidInputError("'table' must have a solved run", "none", "Look at its column 'reason'")
    ratios = {
        str(solver): np.sort([t / best[tol, p] for p, t in zip(rows["problem"], rows["seconds"], strict=True)])
        for solver, rows in solved.groupby("solver")
    }
    for solver in sorted(set(own["solver"]) - set(ratios)):
        ratios[solver] = np.empty(0)
    edge = max(float(r.max()) for r in ratios.values() if len(r)) * 2
    return dict(sorted(ratios.items(), key=lambda item: -float(np.log(edge / item[1]).sum())))


def share_of_problems(table: Any, tol: float) -> int:
    """Return the number of problems that somebody solved: the denominator of `profile`."""
    return len(_best(at(table, tol)))


def exponents(table: Any, tol: float, family: str = "size") -> Any:
    """Return, for each solver, the least-squares fit of log seconds = log c + p log n over its solved runs.

    A family of problems that differ in n only. Fewer than three solved sizes have no exponent: nan. Where times are
    dominated by what every solve costs (a few hundredths of a second through cvxpy), the exponent says little.
    """
    import pandas as pd

    own = at(table, tol)
    own = own[own["family"] == family]
    rows = []
    for solver, runs in own.groupby("solver"):
        runs = runs[runs["status"] == "solved"]
        p, log_c = math.nan, math.nan
        if runs["n"].nunique() >= 3:
            p, log_c = np.polyfit(np.log(runs["n"].astype(float)), np.log(runs["seconds"]), 1)
        rows.append({"solver": solver, "sizes": int(runs["n"].nunique()), "exponent": p, "c": float(np.exp(log_c))})
    return pd.DataFrame(rows, columns=["solver", "sizes", "exponent", "c"])


def _ran(table: Any) -> Any:
    """Return the rows of solvers that took their problem; refuse another table."""
    if not {"problem", "solver", "tol", "status", "seconds"} <= set(table.columns):
        raise InvalidInputError(
            "'table' must come from nerm.experiments.compare_solvers",
            f"a table with the columns {', '.join(map(str, table.columns))}",
            "Pass the table that compare_solvers returned",
        )
    return labelled(table)[table["status"] != "not taken"]


def labelled(table: Any) -> Any:
    """Return the table with names that tell apart what a file has gathered: versions of a solver, problems of a name.

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


def at(table: Any, tol: float) -> Any:
    """Return the runs at one accuracy."""
    own = _ran(table)
    own = own[own["tol"] == tol]
    if own.empty:
        there = ", ".join(f"{t:g}" for t in sorted(set(table["tol"])))
        raise InvalidInputError(f"'tol' must be one of the table's: {there}", f"{tol:g}", "Use one of them")
    return own


def _best(table: Any) -> dict[tuple[float, str], float]:
    """Return the fastest time of a solved run, by accuracy and problem."""
    solved = table[table["status"] == "solved"]
    return {key: float(t) for key, t in solved.groupby(["tol", "problem"])["seconds"].min().items()}
