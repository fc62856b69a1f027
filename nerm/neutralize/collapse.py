"""Whether a model bought its neutrality by saying the same to everybody: a constant is neutral, and worth nothing.

A model is **nearly constant** if the rows to which it does not give its most frequent answer are less than a
tenth (`SHARE`) of the rows that are not labelled so, or if its scores differ by no more than a solver's
tolerance (`SPREAD`), so that their signs are rounding. The share is measured against the labels and not
against all rows: where 1 % are positive, saying yes to 0.6 % is an ordinary model; where half are, it is
none. With several classes it is the most frequent of all that counts: a rare class that never wins is
ordinary.

Its positive rate **collapsed** if in some group it fell below half (`KEEP`) of what the same model without
neutrality (eta = 0) gives that group, and of what it gives everybody: a favoured group may come down to the
common rate. That model is asked for only where the labels would say the same in its place.

Both need at least ten rows (`ENOUGH`) that should get another answer, since a tenth of fewer is less than one
row. A class whose rows hardly count in the risk, by weights that somebody chose, should not get any.
"""

from collections.abc import Callable, Iterable, Mapping

import numpy as np

from nerm.typing import Bools, Floats, Ints

SHARE, KEEP, ENOUGH, SPREAD = 0.1, 0.5, 10, 1e-6


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
    """Say in one sentence that a model is nearly constant or that its positive rate collapsed; None if it is neither.

    Parameters
    ----------
    scores
        f of the training rows, (n,), or (n, number of classes).
    labels
        The number of each row's class, (n,).
    classes
        What the sentence calls the classes, in the order of their numbers.
    groups
        By name, who belongs to a group, (n,) each.
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
    names, decided = tuple(classes), scores.argmax(axis=1) if scores.ndim == 2 else (scores > 0).astype(int)
    usual = int(np.bincount(decided, s).argmax())
    missed, counted = labels != usual, s if risk_weight is None else risk_weight
    if min(missed.sum(), (counted * missed).sum() / counted.mean()) >= ENOUGH:
        others, wanted = (float((s * (answers != usual)).sum() / s.sum()) for answers in (decided, labels))
        if others < SHARE * wanted:
            shares = f"{_percent(1 - others)} of rows (labels: {_percent(1 - wanted)})"
            return f"The model predicts {names[usual]} for {shares}: it is nearly constant."
        spread = float(np.ptp(scores, axis=0).max())
        if spread <= SPREAD:
            return f"The model's scores differ by no more than {spread:.1e}: it is constant but for rounding."
    if (
        plain is None
        or not groups
        or scores.ndim == 2
        or _collapsed(decided, labels, groups, names[1], s) is None
    ):
        return None
    before = plain()
    return None if before is None else _collapsed(decided, (before > 0).astype(int), groups, names[1], s)


def _collapsed(
    decided: Ints, before: Ints, groups: Mapping[str, Bools], positive: str, s: Floats
) -> str | None:
    """Say which group's positive rate is below half of what it was, and of what everybody's was."""
    everybody = s @ before / s.sum()
    for name, among in groups.items():
        if np.count_nonzero(among & (before > 0)) < ENOUGH:
            continue
        weights = s * among  # cheaper than gathering rows
        now, then = (weights @ answers / weights.sum() for answers in (decided, before))
        if now < KEEP * min(then, everybody):
            rates = f"{_percent(now)} of the rows with {name} (without neutrality: {_percent(then)})"
            return f"The model predicts {positive} for {rates}: its positive rate collapsed."
    return None


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
