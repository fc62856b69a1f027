"""Equal rows, merged exactly and once: samples that agree in (x, y, v_1, ...) differ by weights only, which add up.

A block's sum over all rows is a sum over the distinct ones with added weights, so whatever is computed from a
problem (values, bounds, models, steps) is computed on the distinct rows, and spread over the given ones only
to be shown.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nerm.typing import Floats, Ints, Matrix


@dataclass(frozen=True, eq=False)
class Rows:
    """Which distinct row stands for each given one.

    Attributes
    ----------
    first : (m,) array
        The first given row behind each distinct one.
    index : (n,) array
        The distinct row that stands for each given one.

    """

    first: Ints
    index: Ints

    @property
    def merged(self) -> bool:
        """Whether some rows were equal."""
        return len(self.first) < len(self.index)

    def add_up(self, weights: Floats) -> Floats:
        """Return the total weight of each distinct row, (m,)."""
        if not self.merged:
            return weights[self.first]
        return np.asarray(np.bincount(self.index, weights, len(self.first)), dtype=float)

    def spread(self, values: Floats) -> Floats:
        """Return values of the distinct rows, (..., m), on the given ones, (..., n)."""
        return values.take(self.index, axis=-1)  # many times faster than values[..., index]

    def place(self, coef: Floats) -> Floats:
        """Return kernel coefficients of the distinct rows on the given ones: each on its first, zeros elsewhere."""
        placed = np.zeros(len(self.index))
        placed[self.first] = coef
        return placed


def as_given(n: int) -> Rows:
    """Return n rows that all stand for themselves."""
    return Rows(np.arange(n), np.arange(n))


def distinct_rows(X: Matrix, extra: Floats, *, canonical: bool = False) -> Rows:
    """Return the distinct rows of X and `extra`.

    Parameters
    ----------
    X : (n, d) array or CSR matrix
        A CSR matrix must have sorted indices and no explicit zeros.
    extra : (k, n) array
        Further values of each row: labels, viewpoints.
    canonical : bool
        Order the distinct rows by their content, so that the order in which rows were given leaves no trace;
        otherwise they come as they were first seen.

    >>> rows = distinct_rows(np.array([[1.0], [2.0], [1.0]]), np.zeros((1, 3)))
    >>> rows.index, rows.first
    (array([0, 1, 0]), array([0, 1]))

    """
    from nerm.model.row_hashes import groups, hashes  # compiled: only those who bind data pay for numba

    n, d = X.shape
    if sp.issparse(X):
        layout = X.indptr, X.indices, X.data.view(np.uint64)  # no zeros, so no -0.0
    else:
        layout = np.arange(0, n * d + 1, d, dtype=np.int64), np.empty(0, dtype=np.int32), _bits(X).ravel()
    words = _bits(extra)
    keys = hashes(*layout, words)
    index, first, placed = groups(keys, *layout, words)
    if not canonical:
        return Rows(first, index)
    order = placed[np.argsort(keys[first[placed]], kind="stable")]  # at once, since they nearly are in order
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    return Rows(first[order], place[index])


def _bits(values: Any) -> NDArray[np.uint64]:
    """View floats as 64-bit words, after -0.0 became 0.0 so that equal numbers have equal bits."""
    return np.ascontiguousarray(np.asarray(values, dtype=float) + 0.0).view(np.uint64)
