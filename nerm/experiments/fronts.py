"""Averages over folds, and the points that no other point dominates."""

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nerm.errors import InvalidInputError
from nerm.typing import Bools


def non_dominated(quality: ArrayLike, risk: ArrayLike) -> Bools:
    """Return True for the points that no other point dominates.

    A point dominates another if its quality is at least as large and its risk at most as large, and not both are equal.
    A point with a nan is dominated; equal points stand or fall together.

    Parameters
    ----------
    quality, risk
        (k,); more of the first and less of the second is better.

    Returns
    -------
    ndarray of shape (k,)

    >>> non_dominated([0.9, 0.8, 0.7, 0.85], [0.3, 0.1, 0.2, 0.3]).tolist()
    [True, True, False, False]
    """
    q, r = np.asarray(quality, dtype=float), np.asarray(risk, dtype=float)
    if q.ndim != 1 or q.shape != r.shape:
        raise InvalidInputError(
            "'quality' and 'risk' must be vectors of one length", f"shapes {q.shape} and {r.shape}", "Pass two columns"
        )
    no_worse = (q[:, None] >= q) & (r[:, None] <= r)
    better = (q[:, None] > q) | (r[:, None] < r)
    front: Bools = ~(no_worse & better).any(axis=0) & ~np.isnan(q) & ~np.isnan(r)
    return front


def front(table: Any, quality: str = "auc", risk: str = "neutrality_risk") -> Any:
    """Return means and standard deviations of two measures by data set, method and eta, and which are not dominated.

    Parameters
    ----------
    table
        From `tradeoff`.
    quality, risk
        Two of its measures. A signed one enters by its absolute value as a risk.

    Returns
    -------
    DataFrame
        With the columns dataset, method, eta, the two means, their standard deviations (``…_std``, over all folds),
        fits, failed (folds without a result, which the means leave out) and non_dominated, judged among the etas of one
        method, as in the paper's figure 2.

    >>> import pandas as pd
    >>> table = pd.DataFrame({"dataset": "german", "method": "pr", "eta": [0.0, 1.0, 10.0] * 2, "status": "ok",
    ...                       "auc": [0.8, 0.7, 0.6, 0.9, 0.8, 0.7], "neutrality_risk": [0.5, 0.1, 0.2] * 2})
    >>> front(table)[["eta", "auc", "neutrality_risk", "fits", "non_dominated"]].round(2)
        eta   auc  neutrality_risk  fits  non_dominated
    0   0.0  0.85              0.5     2           True
    1   1.0  0.75              0.1     2           True
    2  10.0  0.65              0.2     2          False
    """
    missing = {"dataset", "method", "eta", "status", quality, risk} - set(table.columns)
    if missing:
        must = "'table' must come from nerm.experiments.tradeoff"
        got = f"a table without {', '.join(map(repr, sorted(missing)))}"
        raise InvalidInputError(must, got, "Pass the table that tradeoff returned")
    rows = table.assign(**{risk: table[risk].abs(), "failed": table["status"] == "failed"})
    groups = rows.groupby(["dataset", "method", "eta"], dropna=False, sort=True)
    means = groups.agg(
        **{
            quality: (quality, "mean"),
            risk: (risk, "mean"),
            f"{quality}_std": (quality, "std"),
            f"{risk}_std": (risk, "std"),
            "fits": ("failed", "size"),
            "failed": ("failed", "sum"),
        }
    ).reset_index()
    means["non_dominated"] = False
    for _, group in means.groupby(["dataset", "method"]):
        means.loc[group.index, "non_dominated"] = non_dominated(group[quality], group[risk])
    return means
