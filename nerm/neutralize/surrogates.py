"""Choose a surrogate: fit a model with each on a part of the rows, and compare them on the other rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from nerm.atoms.difference import DCFunction, Ramp
from nerm.atoms.losses import Hinge, Identity, Logistic
from nerm.atoms.margin import MarginFunction
from nerm.certify.conjugates import square_weight
from nerm.errors import InvalidInputError
from nerm.model.expressions import Risk
from nerm.neutralize.target import History
from nerm.signs import sign
from nerm.splitting import HOLD_OUT, hold_out
from nerm.typing import Bools, Floats

if TYPE_CHECKING:
    from nerm.neutralize.search import Search

#: The surrogates of "auto": the logistic function (smooth), the paper's hinge, the identity (covariance), and
#: two ramps, which have slope 0 at large scores.
AUTO: tuple[MarginFunction | DCFunction, ...] = (Logistic(), Hinge(), Identity(), Ramp(1.0), Ramp(2.0))


def surrogates_of(surrogate: Any, search: Search | None = None) -> list[Any]:
    """Return the surrogates to compare, as a list.

    "auto" stands for `AUTO`. If a search is given, surrogates that make its problem unbounded below are left
    out.
    """
    if isinstance(surrogate, str) and surrogate == "auto":
        return [one for one in AUTO if search is None or largest_weight(search, one, search.plain.parts) > 0]
    given = list(surrogate) if isinstance(surrogate, list | tuple) else [surrogate]
    if not given or not all(isinstance(one, MarginFunction | DCFunction) for one in given):
        must = "'surrogate' must be 'auto', a margin function or a list of them"
        raise InvalidInputError(must, repr(surrogate), "Pass nerm.Logistic(), for instance")
    return given


def compare(search: Search, surrogates: Sequence[Any]) -> pd.DataFrame:
    """Compare surrogates on a validation set; return a table with one row per surrogate, best first.

    Each surrogate is used in a search on the other rows, with a larger tolerance. The column "worth" is the
    criterion `prefer` on the validation set. A surrogate is tied with the best if its worth is smaller by at
    most two standard errors of the difference; among tied surrogates the AUC decides. The index of a row is
    the position in `surrogates`.
    """
    p, target = search.problem, search.target
    strata = [p.y, *(sign(p.viewpoints[name]) for name in search.viewpoints)]
    apart = hold_out(strata, HOLD_OUT, target.random_state)
    if len(np.unique(p.y[apart])) < 2:  # too few rows to compare on
        return pd.DataFrame({"surrogate": [repr(one) for one in surrogates], "worth": np.nan})
    given = p, replace(target, tol=target.rough_tol), search.viewpoints, search.row_weight, ~apart
    inner = type(search)(*given, solver=search.solver, history=History(rows=search.history.rows))
    rows, worths = [], {}
    for i, surrogate in enumerate(surrogates):
        row: dict[str, Any] = {"surrogate": repr(surrogate), "worth": -np.inf}
        found = inner.find(surrogate)
        if found is not None:
            worths[i] = _worth(inner, found.scores, apart)
            row["worth"] = float(worths[i].mean())
            row |= inner.quality(found.scores, apart)
            row["eta"] = max(found.etas)
            with suppress(InvalidInputError):  # a group may have no row in the validation set
                row["measure"] = float(np.abs(inner.measure(found.scores, apart)).max())
        rows.append(row)
    frame = pd.DataFrame(rows).assign(tied=False)
    if not worths:
        return frame
    best = worths[int(frame["worth"].idxmax())]
    for i, worth in worths.items():
        lost = best - worth
        frame.loc[i, "tied"] = lost.mean() <= 2 * lost.std() / np.sqrt(len(lost))
    order = frame.assign(ranking=frame["auc"].where(frame["tied"]))
    order = order.sort_values(["tied", "ranking", "worth"], ascending=False, kind="stable")
    return order.drop(columns="ranking")


def _worth(search: Search, scores: Floats, rows: Bools) -> Floats:
    """Return the criterion `prefer` of a model on some rows, given as a mask.

    For "accuracy" this is one weighted 0/1 value per row, with the accuracy as mean; else an array of length
    1.
    """
    y, prefer = search.problem.y[rows], search.target.prefer
    if callable(prefer):
        return np.array([float(prefer(y, scores[rows]))])
    if prefer == "auc":
        return np.array([search.quality(scores, rows)["auc"]])
    weight = search.row_weight[rows] / search.row_weight[rows].mean()
    return weight * (sign(scores[rows]) == y)


def largest_weight(search: Search, surrogate: MarginFunction | DCFunction, ways: Floats) -> float:
    """Return the largest weight eta for which the problem is bounded below; 0 if it is unknown.

    If the surrogate psi is bounded below, every eta is allowed, and the result is inf. The identity is not
    bounded below. Its term, with neutrality weights u, is ``eta mean(u v f) = eta (w.q + b c)`` with
    ``q = mean(u v x)`` and ``c = mean(u v)``. The part w.q is dominated by a squared norm of w. The part b c
    is bounded by the risk alone: as b goes to infinity in the direction that lowers b c, the risk grows
    linearly, with a slope r that is the weight of the rows of the opposite label times the slope of the loss.
    The problem is bounded below up to ``eta |c| = r``.

    If the weights u balance two groups v = -1 and +1, as for parity and for rates given the label, c = 0. For
    C_sgn, c is not 0; at the largest weight f is a constant that opposes the larger group, so every level of
    the measure is reached at a smaller weight.

    Parameters
    ----------
    search, surrogate
        The search, which has the problem and its terms, and psi.
    ways : (number of parts,) array
        Positive where agreement with the viewpoint is to be penalized, negative where disagreement is.

    """
    if surrogate.facts.minimum != -np.inf:
        return np.inf
    p = search.problem
    if not square_weight(p.regularizers) > 0:
        return 0.0
    terms = [(u, v) for _, u, v in search.term_rows()]
    slopes = np.array([way * (u @ v) / np.abs(u * v).sum() for way, (u, v) in zip(ways, terms, strict=True)])
    rounding = np.sqrt(np.finfo(float).eps)
    if not p.intercept or (np.abs(slopes) <= rounding * np.abs(ways)).all():
        return np.inf
    if len(slopes) > 1:
        return 0.0  # the slopes of several terms may add up or cancel
    ((u, v),) = terms
    toward = -np.sign(slopes[0])
    rises = np.zeros(p.n)
    for t in p.objective.terms:
        if isinstance(t.term, Risk):
            low, high = t.term.loss.facts.slopes
            s = t.term.row_weights(p.y, p.sample_weight)
            rises += t.weight * s * np.where(s > 0, np.where(toward * p.y > 0, high, -low), 0.0)
    return float(rises[search.used].sum() / abs(u @ v))
