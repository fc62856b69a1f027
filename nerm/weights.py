"""Neutrality weights: what turns the (uncentred) neutrality risk into a parity between groups.

The neutrality risk `C_sgn = |mean(u * sign f * sign v)|` with u = 1 is the paper's. It is uncentred: a
hypothesis that is independent of the viewpoint scores `|E v| |E sign f|`, not 0. Weights repair that. With
weights that give both viewpoints the same total, C_sgn *is* the absolute Calders-Verwer score (demographic
parity); with the same among y = +1 and zeros elsewhere it is the equal-opportunity difference. The weights
depend on the data only, so the relaxed problem stays convex.

All weights here have mean 1, so a neutrality weight eta keeps its meaning whichever are used.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nerm.errors import InvalidInputError, UnknownNameError
from nerm.signs import sign
from nerm.validation import as_vector, as_weights

__all__ = ["NAMES", "balanced_weights", "equal_opportunity_weights", "resolve"]

#: The weights that can be asked for by name: the paper's, those of demographic parity, those of equal opportunity.
NAMES = ("uniform", "balanced", "equal_opportunity")


def balanced_weights(viewpoint: Any, sample_weight: Any = None) -> np.ndarray:
    """Return u_i = 1 / (2 P(sign v = sign v_i)), (n,): both viewpoints get half of the total weight.

    With sample weights s the probability is the weighted one, and s_i u_i is the weight to use; then a row of
    weight 2 counts as two rows.

    >>> balanced_weights([1, 1, 1, -1])
    array([0.66666667, 0.66666667, 0.66666667, 2.        ])
    """
    v = _signs(viewpoint)
    s = as_weights(sample_weight, len(v), "sample_weight")
    return _balance(v, s, np.ones(len(v), dtype=bool), "")


def equal_opportunity_weights(y: Any, viewpoint: Any, sample_weight: Any = None) -> np.ndarray:
    """Return u_i = n / (2 n_{v_i, +1}) where y_i = +1 and 0 elsewhere, (n,); y holds -1 and +1.

    n_{v, +1} counts the rows with y = +1 and viewpoint v, by sample weight if there is one.

    >>> equal_opportunity_weights([1, 1, 1, -1], [1, 1, -1, -1])
    array([1., 1., 2., 0.])
    """
    v = _signs(viewpoint)
    labels = as_vector(y, len(v), "y")
    if not np.isin(labels, (-1.0, 1.0)).all():
        i = int(np.flatnonzero(~np.isin(labels, (-1.0, 1.0)))[0])
        raise InvalidInputError(
            "'y' must hold -1 and +1 only",
            f"{labels[i]:g} at index {i}",
            "Code the favourable class as +1 and the other as -1",
        )
    s = as_weights(sample_weight, len(v), "sample_weight")
    return _balance(v, s, labels > 0, " and y = +1")


def resolve(weights: Any, y: Any, viewpoint: Any, sample_weight: Any = None) -> np.ndarray:
    """Turn "uniform", "balanced", "equal_opportunity", an array or None (uniform) into neutrality weights, (n,).

    >>> resolve("uniform", None, [1, -1])
    array([1., 1.])
    >>> resolve("fair", None, [1, -1])
    Traceback (most recent call last):
        ...
    nerm.errors.UnknownNameError: 'weights' must be one of 'balanced', 'equal_opportunity', 'uniform'. Got ...
    """
    if isinstance(weights, str):
        if weights == "uniform":
            return np.ones(len(_signs(viewpoint)))
        if weights == "balanced":
            return balanced_weights(viewpoint, sample_weight)
        if weights == "equal_opportunity":
            return equal_opportunity_weights(y, viewpoint, sample_weight)
        raise UnknownNameError(
            "'weights'", weights, NAMES, "Use one of these names, or an array of nonnegative numbers"
        )
    return as_weights(weights, len(_signs(viewpoint)), "weights")


def _signs(viewpoint: Any) -> np.ndarray:
    """Return the signs of a finite, nonempty viewpoint."""
    n = np.size(viewpoint)
    if n == 0:
        raise InvalidInputError(
            "'viewpoint' must have at least one entry", "none", "Check how the data were loaded or filtered"
        )
    return sign(as_vector(viewpoint, n, "viewpoint"))


def _balance(v: np.ndarray, s: np.ndarray, among: np.ndarray, condition: str) -> np.ndarray:
    """Return u with sum_{i: v_i = v} s_i u_i equal to half of sum s, for both v, supported on `among`."""
    u = np.zeros(len(v))
    for value in (-1.0, 1.0):
        group = among & (v == value)
        size = float(s[group].sum())
        if size == 0:
            raise InvalidInputError(
                f"some row must have viewpoint {value:+.0f}{condition}",
                f"none among {len(v)} rows",
                'Balanced weights need both groups: use weights="uniform", or data where both are seen',
            )
        u[group] = s.sum() / (2.0 * size)
    return u
