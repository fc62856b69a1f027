"""Neutrality weights, which turn the neutrality risk into a parity between groups.

The neutrality risk is `C_sgn = |mean(u * sign f * sign v)|` with neutrality weights u; the paper has u = 1.
With u = 1 it is uncentred: if f is independent of the viewpoint, it is `|E sign v| |E sign f|`, not 0. With
weights of equal sum in the two groups v > 0 and v <= 0, C_sgn is the absolute Calders-Verwer score
(demographic parity). With such weights on the rows y = +1 and zeros elsewhere, it is the absolute
equal-opportunity difference. The weights depend on the data only, so the relaxed problem stays convex.

All weights have mean 1, so that eta has the same meaning for all of them. Every function of this module
called ``NAME_weights`` can be chosen by its NAME; its arguments are some of `y`, `viewpoint` and
`sample_weight`. To add weights, add such a function. For weights that need other arguments, such as `within`,
call the function and pass the array.
"""

from typing import Any

import numpy as np

from nerm.errors import InvalidInputError, UndefinedMeasureError
from nerm.typing import Floats
from nerm.validation import as_signs, as_weights, check_finite, check_known, check_present, flat
from nerm.viewpoint import as_sides


def uniform_weights(viewpoint: Any) -> Floats:
    """Return ones, (n,), the weights of the paper.

    Examples
    --------
    >>> uniform_weights([1, -1, -1])
    array([1., 1., 1.])
    """
    return np.ones(np.size(viewpoint))


def balanced_weights(viewpoint: Any, sample_weight: Any = None) -> Floats:
    """Return u_i = 1 / (2 P(sign v = sign v_i)), (n,): both groups get half of the total weight.

    Parameters
    ----------
    viewpoint : array-like of shape (n,)
        Two groups, or real numbers of which only the signs matter (`nerm.viewpoint`).
    sample_weight : array-like of shape (n,), optional
        Weights s with which the frequency P is computed; a row of weight 2 counts as two rows. The total
        weight of row i is then s_i u_i.

    Examples
    --------
    >>> balanced_weights([1, 1, 1, -1])
    array([0.66666667, 0.66666667, 0.66666667, 2.        ])
    """
    return _balance(viewpoint, sample_weight)


def equal_opportunity_weights(y: Any, viewpoint: Any, sample_weight: Any = None) -> Floats:
    """Return u_i = n / (2 n_{v_i, +1}) where y_i = +1 and 0 elsewhere, (n,).

    n_{v, +1} is the number of rows with y = +1 and the viewpoint sign v. With sample weights, both n and
    n_{v, +1} are sums of weights.

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
    return _balance(viewpoint, sample_weight, y, 1)


def predictive_equality_weights(y: Any, viewpoint: Any, sample_weight: Any = None) -> Floats:
    """Return u_i = n / (2 n_{v_i, -1}) where y_i = -1 and 0 elsewhere, (n,).

    n_{v, -1} is the number of rows with y = -1 and the viewpoint sign v.

    Parameters
    ----------
    y, viewpoint, sample_weight : array-like of shape (n,)
        As for `equal_opportunity_weights`.

    Examples
    --------
    >>> predictive_equality_weights([-1, -1, -1, 1], [1, 1, -1, -1])
    array([1., 1., 2., 0.])
    """
    return _balance(viewpoint, sample_weight, y, -1)


def conditional_weights(y: Any, viewpoint: Any, sample_weight: Any = None) -> Floats:
    """Return weights that are balanced within each bin of y, (n,): equal treatment given y.

    The bins are the labels of a classification, and five groups between quantiles of a real y (`within`).

    Parameters
    ----------
    y, viewpoint, sample_weight : array-like of shape (n,)
        As for `equal_opportunity_weights`; y may be real.

    Examples
    --------
    >>> conditional_weights([0.0, 0.0, 0.0, 9.0, 9.0], [1, -1, -1, 1, -1])
    array([1.5 , 0.75, 0.75, 1.  , 1.  ])
    """
    values = np.asarray(y)
    if len(np.unique(values)) > 2:
        values = np.searchsorted(np.quantile(values, np.arange(1, 5) / 5), values)
    return within(values, viewpoint, sample_weight)


def within(strata: Any, viewpoint: Any, sample_weight: Any = None) -> Floats:
    """Return u_i = n_s / (2 n_{s, v_i}) for row i in stratum s, (n,): balanced within each stratum.

    Here n_s is the number of rows in stratum s, and n_{s, v} the number of those with the viewpoint sign v.
    The weights define conditional neutrality (Zliobaite, Kamiran and Calders 2011): an explanatory attribute
    may justify a part of the difference between the groups, and only the difference among rows with equal
    attribute should vanish. With these weights the weighted agreement is the mean of the Calders-Verwer
    scores CV_s of the strata, weighted by their numbers of rows::

        (1/n) sum_i u_i sign f_i sign v_i = sum_s (n_s / n) CV_s,
        CV_s = P(f > 0 given v > 0, s) - P(f > 0 given v <= 0, s)

    Rows of a stratum with only one group get weight 0 and are not counted in n. The other weights are scaled
    so that u has mean 1.

    Parameters
    ----------
    strata : array-like of shape (n,)
        The explanatory attribute; each value is a stratum. Combine several attributes into one before, and
        group numbers into bins.
    viewpoint, sample_weight : array-like of shape (n,)
        As for `balanced_weights`.

    Examples
    --------
    >>> within(["a", "a", "a", "b", "b"], [1, -1, -1, 1, -1])
    array([1.5 , 0.75, 0.75, 1.  , 1.  ])
    """
    v = as_sides(viewpoint, np.size(viewpoint))
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
    """Return the neutrality weights, (n,), for a name of `NAMES`, an array or None (uniform).

    Examples
    --------
    >>> resolve("uniform", None, [1, -1])
    array([1., 1.])
    >>> resolve("fair", None, [1, -1])
    Traceback (most recent call last):
        ...
    nerm.errors.UnknownNameError: 'weights' must be one of 'balanced', 'conditional', ... Got 'fair'.
    ...
    """
    if not isinstance(weights, str):
        return as_weights(weights, np.size(viewpoint), "weights")
    check_known(weights, "'weights'", NAMES, "Use one of these names, or an array of nonnegative numbers")
    given = {"y": y, "viewpoint": viewpoint, "sample_weight": sample_weight}
    function = _FUNCTIONS[f"{weights}_weights"]
    code = function.__code__  # inspect.signature takes longer than the weights of a small problem
    return function(**{name: given[name] for name in code.co_varnames[: code.co_argcount]})


def _balance(viewpoint: Any, sample_weight: Any, y: Any = None, label: int = 0) -> Floats:
    """Return weights u, (n,), that give both groups v <= 0 and v > 0 half of the total weight sum_i s_i.

    Here s are the sample weights, and the weight of a group is the sum of s_i u_i over its rows. u is
    constant in each group. If labels `y` are given, u is 0 where y is not `label`.
    """
    v = as_sides(viewpoint, np.size(viewpoint))
    s = as_weights(sample_weight, len(v), "sample_weight")
    among, condition = np.ones(len(v), dtype=bool), ""
    if label:
        among, condition = as_signs(y, len(v)) == label, f" and y = {label:+d}"
    below, above = (float(s[among & (v == side)].sum()) for side in (-1, 1))
    if not (below and above):
        must = f"some row must have viewpoint {'+1' if below else '-1'}{condition}"
        do = 'Use data with both groups, weights="uniform", or, for a limit, measure="neutrality_risk"'
        raise UndefinedMeasureError(must, f"none among {len(v)} rows", do)
    return np.where(among, s.sum() / (2.0 * np.where(v > 0, above, below)), 0.0)


_FUNCTIONS: dict[str, Any] = {
    name: function
    for name, function in globals().items()
    if name.endswith("_weights") and function.__module__ == __name__
}
#: The names of the weights that `resolve` accepts.
NAMES = tuple(name.removesuffix("_weights") for name in _FUNCTIONS)

__all__ = ["NAMES", "resolve", "within", *_FUNCTIONS]
