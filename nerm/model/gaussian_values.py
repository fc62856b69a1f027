"""How a Gaussian kernel is computed: from products of rows where these are exact enough, else from differences.

A squared distance is ||x||^2 - 2 x.z + ||z||^2, one product of longer rows: that costs least, and cancels
where rows are far from 0 beside their distance. The kernel does not see a shift, so they may be moved to 0
first; where that does not help, it takes their differences.
"""

from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.rounding import unit
from nerm.typing import Floats

PART = 2**17  # kernel values between a product of rows and their exponentials: they stay in cache
NEAR = 256.0  # gamma ||x||^2 up to which squared distances from products of rows are exact enough
NEAR_32 = 16.0  # the same in single precision


def values(X: Floats, Z: Floats, gamma: float) -> Floats:
    """Return exp(-gamma ||x_i - z_j||^2), (n, m), for dense rows; from differences where products would cancel."""
    near = _near(X, Z, gamma, NEAR)
    if near is not None:
        return np.asarray(_from_products(*near, gamma, np.float64))
    from scipy.spatial.distance import cdist

    return np.asarray(np.exp(-gamma * cdist(X, Z, "sqeuclidean")))


def single_values(X: Any, Z: Any, gamma: float) -> Any:
    """Return the same from single precision, where that is exact enough; else None."""
    near = _near(X, Z, gamma, NEAR_32)
    return None if near is None else _from_products(*near, gamma, np.float32)


def product(X: Any, Z: Any, weights: Floats, gamma: float) -> Floats | None:
    """Return K weights for weights of shape (m, k), by compiled code; None where distances need differences of rows."""
    near = _near(X, Z, gamma, NEAR)
    if near is None:
        return None
    from nerm.model.gaussian_tiles import product_by_tiles

    return np.asarray(product_by_tiles(*_sides(*near, gamma), np.ascontiguousarray(weights), Z is X))


def rounding(X: Floats, gamma: float) -> float:
    """Return by how much a value on these dense rows may be wrong."""
    reach = min(_reach(gamma, X), _reach(gamma, X - X.mean(axis=0)))
    return rounding_within(X.shape[1], reach if reach <= NEAR else 0.0)


def rounding_within(columns: int, reach: float) -> float:
    """Return by how much a value from products of rows may be wrong, whose gamma ||x||^2 is at most `reach`."""
    return unit(columns) * (2 + 4 * reach)


def _near(X: Any, Z: Any, gamma: float, most: float) -> tuple[Any, Any] | None:
    """Return rows near 0, perhaps shifted, whose squared distances may come from their products; else None.

    The kernel does not see a shift, and a difference of floats loses nothing. Sparse rows are not shifted.
    """
    if sp.issparse(X) or sp.issparse(Z):
        return None
    if _reach(gamma, X, Z) <= most:
        return X, Z
    with np.errstate(over="ignore", invalid="ignore"):
        centre = Z.mean(axis=0)
        X, Z = (X - centre, Z - centre) if X is not Z else (X - centre,) * 2
    return (X, Z) if _reach(gamma, X, Z) <= most else None


def _reach(gamma: float, *rows: Any) -> float:
    """Return gamma times the largest squared norm of a row."""
    return gamma * max(float(_squares(X).max(initial=0.0)) for X in rows)


def _squares(X: Floats) -> Floats:
    return np.asarray(np.einsum("ij,ij->i", X, X))


def _sides(X: Floats, Z: Floats, gamma: float) -> tuple[Floats, Floats]:
    """Return (left, right) with left right' = -gamma ||x_i - z_j||^2."""
    left = np.column_stack([2 * gamma * X, -gamma * _squares(X), np.ones(len(X))])
    return left, np.column_stack([Z, np.ones(len(Z)), -gamma * _squares(Z)])


def _from_products(X: Floats, Z: Floats, gamma: float, precision: Any) -> Any:
    """Return exp(-gamma ||x_i - z_j||^2); one product of rows has the squares in it, and the rest is done in place."""
    left, right = (side.astype(precision, copy=False) for side in _sides(X, Z, gamma))
    found = np.empty((len(X), len(Z)), dtype=precision)
    exponentials = _exponentials
    if found.size >= PART:  # compiled: who asks for few values need not load it
        from nerm.model.fast_exp import exp_in_place, exp_in_place_32

        exponentials = exp_in_place if precision is np.float64 else exp_in_place_32
    for k in range(0, len(X), step := max(64, PART // max(1, len(Z)))):
        part = found[k : k + step]
        np.matmul(left[k : k + step], right.T, out=part)
        exponentials(part)
    if X is Z:
        np.fill_diagonal(found, 1.0)
    return found


def _exponentials(values: Floats) -> None:
    """Replace values by exp min(value, 0)."""
    np.minimum(values, 0.0, out=values)
    np.exp(values, out=values)
