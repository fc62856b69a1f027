"""Neutrality weights, which turn the neutrality risk into a parity between groups.

The neutrality risk `C_sgn = |mean(u * sign f * sign v)|` with u = 1 is the paper's. It is uncentred: a
hypothesis that is independent of the viewpoint has the risk `|E v| |E sign f|`, not 0. With weights that give
both viewpoints the same total, C_sgn is the absolute Calders-Verwer score (demographic parity); with such
weights among y = +1 and zeros elsewhere it is the equal-opportunity difference. The weights depend on the
data only, so the relaxed problem stays convex.

All weights have mean 1, so that eta has the same meaning for all of them. A function of this module called
``..._weights`` is available by name: new weights are one new function. Its arguments are some of `y`,
`viewpoint` and `sample_weight`. A function that needs more, such as `within`, is called and its array passed.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from nerm.errors import InvalidInputError
from nerm.signs import sign
from nerm.typing import Bools, Floats
from nerm.validation import as_vector, as_weights, check_finite, check_known, check_present, flat


def uniform_weights(viewpoint: Any) -> Floats:
    """Return ones, (n,): the paper's.

    Examples
    --------
    >>> uniform_weights([1, -1, -1])
    array([1., 1., 1.])
    """
    return np.ones(np.size(viewpoint))


def balanced_weights(viewpoint: Any, sample_weight: Any = None) -> Floats:
    """Return u_i = 1 / (2 P(sign v = sign v_i)), (n,): both viewpoints get half of the total weight.

    Parameters
    ----------
    viewpoint : array-like of shape (n,)
        Only its signs count.
    sample_weight : array-like of shape (n,), optional
        With weights s the probability is the weighted one, and s_i u_i is the weight to use; then a row of
        weight 2 counts as two rows.

    Examples
    --------
    >>> balanced_weights([1, 1, 1, -1])
    array([0.66666667, 0.66666667, 0.66666667, 2.        ])
    """
    v = _signs(viewpoint)
    return _balance(v, sample_weight, np.ones(len(v), dtype=bool), "")


def equal_opportunity_weights(y: Any, viewpoint: Any, sample_weight: Any = None) -> Floats:
    """Return u_i = n / (2 n_{v_i, +1}) where y_i = +1 and 0 elsewhere, (n,).

    n_{v, +1} counts the rows with y = +1 and viewpoint v, by sample weight if there is one.

    Parameters
    ----------
    y : array-like of shape (n,)
        -1 and +1.
    viewpoint, sample_weight : array-like of shape (n,)
        As for `balanced_weights`.

    Examples
    --------
    >>> equal_opportunity_weights([1, 1, 1, -1], [1, 1, -1, -1])
    array([1., 1., 2., 0.])
    """
    v = _signs(viewpoint)
    return _balance(v, sample_weight, _labels(y, len(v)) > 0, " and y = +1")


def predictive_equality_weights(y: Any, viewpoint: Any, sample_weight: Any = None) -> Floats:
    """Return u_i = n / (2 n_{v_i, -1}) where y_i = -1 and 0 elsewhere, (n,).

    Parameters
    ----------
    y, viewpoint, sample_weight : array-like of shape (n,)
        As for `equal_opportunity_weights`.

    Examples
    --------
    >>> predictive_equality_weights([-1, -1, -1, 1], [1, 1, -1, -1])
    array([1., 1., 2., 0.])
    """
    v = _signs(viewpoint)
    return _balance(v, sample_weight, _labels(y, len(v)) < 0, " and y = -1")


def within(strata: Any, viewpoint: Any, sample_weight: Any = None) -> Floats:
    """Return u_i = n_s / (2 n_{s, v_i}) for row i in stratum s, (n,): balanced within each stratum.

    Conditional neutrality (Zliobaite, Kamiran and Calders 2011): an attribute explains a part of the
    difference between the groups, and only the difference within its values is to vanish. With these weights
    the weighted agreement is the mean of the strata's Calders-Verwer scores, weighted by their rows::

        (1/n) sum_i u_i sign f_i sign v_i = sum_s (n_s / n) ( P(f > 0 given v > 0, s) - P(f > 0 given v <= 0,
        s) )

    The rows of a stratum without one of the groups get weight 0 and are not counted in n, so that u has
    mean 1.

    Parameters
    ----------
    strata : array-like of shape (n,)
        The explanatory attribute, one stratum per value. Combine several into one, and bin numbers.
    viewpoint, sample_weight : array-like of shape (n,)
        As for `balanced_weights`.

    Examples
    --------
    >>> within(["a", "a", "a", "b", "b"], [1, -1, -1, 1, -1])
    array([1.5 , 0.75, 0.75, 1.  , 1.  ])
    """
    v = _signs(viewpoint)
    s = as_weights(sample_weight, len(v), "sample_weight")
    labels = flat(strata, len(v), "strata", f"entry for each of the {len(v)} rows")
    check_present(labels, "strata")
    if labels.dtype.kind == "f":
        check_finite(labels, "strata")
    _, stratum = np.unique(labels.astype(str) if labels.dtype.kind == "O" else labels, return_inverse=True)
    above, size = np.bincount(stratum, weights=s * (v > 0)), np.bincount(stratum, weights=s)
    size[(above == 0) | (above == size)] = 0.0  # one group only: nothing to compare
    if not size.any():
        must = "some stratum must have rows of both groups"
        do = "Use fewer strata, or data with both groups"
        raise InvalidInputError(must, f"{len(size)} strata with one group each", do)
    of_own = np.where(v > 0, above[stratum], (size - above)[stratum])
    u = np.divide(size[stratum], 2.0 * of_own, out=np.zeros(len(v)), where=size[stratum] > 0)
    return u * float(s.sum() / size.sum())


def resolve(weights: Any, y: Any, viewpoint: Any, sample_weight: Any = None) -> Floats:
    """Turn a name of `NAMES`, an array or None (uniform) into neutrality weights, (n,).

    Examples
    --------
    >>> resolve("uniform", None, [1, -1])
    array([1., 1.])
    >>> resolve("fair", None, [1, -1])
    Traceback (most recent call last):
        ...
    nerm.errors.UnknownNameError: 'weights' must be one of 'balanced', 'equal_opportunity', ... Got 'fair'.
    ...
    """
    if not isinstance(weights, str):
        return as_weights(weights, np.size(viewpoint), "weights")
    check_known(weights, "'weights'", NAMES, "Use one of these names, or an array of nonnegative numbers")
    given = {"y": y, "viewpoint": viewpoint, "sample_weight": sample_weight}
    function = _FUNCTIONS[f"{weights}_weights"]
    return function(**{name: given[name] for name in inspect.signature(function).parameters})


def _signs(viewpoint: Any) -> Floats:
    """Return the signs of a finite viewpoint."""
    return sign(as_vector(viewpoint, np.size(viewpoint), "viewpoint"))


def _labels(y: Any, n: int) -> Floats:
    """Return labels that are -1 and +1 already."""
    labels = as_vector(y, n, "y")
    strange = np.flatnonzero(np.abs(labels) != 1.0)
    if len(strange):
        do = "Code the favourable class as +1 and the other as -1"
        got = f"{labels[strange[0]]:g} at index {strange[0]}"
        raise InvalidInputError("'y' must hold -1 and +1 only", got, do)
    return labels


def _balance(v: Floats, sample_weight: Any, among: Bools, condition: str) -> Floats:
    """Return u with sum_{i: v_i = v} s_i u_i equal to half of sum s, for both v, supported on `among`."""
    s = as_weights(sample_weight, len(v), "sample_weight")
    u = np.zeros(len(v))
    for value in (-1.0, 1.0):
        group = among & (v == value)
        size = float(s[group].sum())
        if size == 0:
            must = f"some row must have viewpoint {value:+.0f}{condition}"
            do = 'Use data with both groups, weights="uniform", or, for a limit, measure="neutrality_risk"'
            raise InvalidInputError(must, f"none among {len(v)} rows", do)
        u[group] = s.sum() / (2.0 * size)
    return u


_FUNCTIONS: dict[str, Callable[..., Floats]] = {
    name: function
    for name, function in globals().items()
    if name.endswith("_weights") and function.__module__ == __name__
}
#: The names of weights.
NAMES = tuple(name.removesuffix("_weights") for name in _FUNCTIONS)

__all__ = ["NAMES", "resolve", "within", *_FUNCTIONS]
