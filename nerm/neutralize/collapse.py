"""Detect models whose neutrality comes from giving (nearly) every row the same prediction.

A model is **nearly constant** if the rows to which it does not give its most frequent prediction are less
than a tenth (`NEARLY`) of the rows that are not labelled so, or if its scores differ by no more than a
solver's tolerance, so that their signs are rounding. The share is measured against the labels and not against
all rows: where 1 % are positive, predicting 0.6 % positive is an ordinary model; where half are, it is
nearly constant. With several classes only the most frequent one counts: a rare class that is never predicted
is ordinary.

Its positive rate **collapsed** if in some group it fell below half of the rate that the same model without
neutrality (eta = 0) has in that group, and of that model's rate among all rows: a favoured group may come
down to the common rate. That model is solved only where the labels in its place give the same verdict.

Both need at least ten rows that should get another prediction, since a tenth of fewer is less than one row. A
class whose rows hardly count in the risk, by the user's weights, need not be predicted.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from nerm.defaults import DEFAULTS
from nerm.typing import Bools, Floats, Ints

NEARLY = 0.1  # of the rows that are labelled otherwise


def collapse(
    scores: Floats,
    labels: Ints,
    classes: Iterable[str],
    groups: Mapping[str, Bools] | None = None,
    *,
    plain: Callable[[], Floats | None] | None = None,
    weight: Floats | None = None,
    risk_weight: Floats | None = None,
) -> str | None:
    """Return a sentence if a model is nearly constant or its positive rate collapsed, else None.

    Parameters
    ----------
    scores
        f of the training rows, (n,), or (n, number of classes).
    labels
        The number of each row's class, (n,).
    classes
        The names of the classes in the sentence, in the order of their numbers.
    groups
        By name, the rows that belong to a group, (n,) each.
    plain
        Returns the scores of the same model without neutrality, (n,), or None if there are none.
    weight, risk_weight
        Sample weights, and these times class weights, (n,); by default 1, and the sample weights.

    Examples
    --------
    >>> scores, labels = np.full(100, -1.0), np.repeat([0, 1], [80, 20])
    >>> scores[-1] = 0.5
    >>> collapse(scores, labels, ["class no", "class yes"])
    'The model predicts class no for 99.0 % of rows (labels: 80.0 %): it is nearly constant.'
    >>> collapse(np.arange(-80, 20), labels, ["class no", "class yes"]) is None
    True
    """
    s = np.ones(len(labels)) if weight is None else weight
    names = tuple(classes)
    decided = scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
    usual = int(np.bincount(decided, s).argmax())
    missed, counted = labels != usual, s if risk_weight is None else risk_weight
    if min(missed.sum(), (counted * missed).sum() / counted.mean()) >= 1 / NEARLY:
        others, wanted = (float((s * (answers != usual)).sum() / s.sum()) for answers in (decided, labels))
        if others < NEARLY * wanted:
            shares = f"{_percent(1 - others)} of rows (labels: {_percent(1 - wanted)})"
            return f"The model predicts {names[usual]} for {shares}: it is nearly constant."
        spread = float(np.ptp(scores, axis=0).max())
        if spread <= DEFAULTS.tol:
            return f"The model's scores differ by no more than {spread:.1e}: it is constant but for rounding."
    if plain is None or not groups or scores.ndim == 2:
        return None
    if _collapsed(decided, labels, groups, names[1], s) is None:
        return None
    before = plain()
    return None if before is None else _collapsed(decided, (before > 0).astype(int), groups, names[1], s)


def _collapsed(
    decided: Ints, before: Ints, groups: Mapping[str, Bools], positive: str, s: Floats
) -> str | None:
    """Return a sentence about a group whose positive rate fell below half of what it was."""
    everybody = s @ before / s.sum()
    for name, among in groups.items():
        if np.count_nonzero(among & (before > 0)) < 1 / NEARLY:
            continue
        weights = s * among  # cheaper than gathering rows
        now, then = (weights @ answers / weights.sum() for answers in (decided, before))
        if now < DEFAULTS.keep * min(then, everybody):
            rates = f"{_percent(now)} of the rows with {name} (without neutrality: {_percent(then)})"
            return f"The model predicts {positive} for {rates}: its positive rate collapsed."
    return None


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
