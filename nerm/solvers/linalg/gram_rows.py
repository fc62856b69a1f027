"""Rows of a Gram matrix K: all of them where the hypothesis keeps K, otherwise those used before."""

from __future__ import annotations

import numpy as np

from nerm.model import hypothesis as hypotheses
from nerm.model.hypothesis import KernelHypothesis
from nerm.model.kernels import CALLED_TILE
from nerm.typing import Floats, Ints


class GramRows:
    """Rows of K on demand, in a table as large as the largest Gram matrix that is kept.

    When the table is full, all rows are forgotten.
    """

    def __init__(self, hypothesis: KernelHypothesis) -> None:
        n = hypothesis.n
        whole = hypothesis.keeps_gram
        self._hypothesis = hypothesis
        self._table = hypothesis.gram if whole else np.empty((hypotheses.GRAM_LIMIT**2 // n, n))
        self._slots = np.arange(n) if whole else np.full(n, -1)  # row i of K is table[slots[i]]
        self._held = n if whole else 0

    def _load(self, rows: Ints) -> bool:
        """Make the table hold these rows; return False where it is too small for them."""
        if len(rows) > len(self._table):
            return False
        new = rows[self._slots[rows] < 0]
        if self._held + len(new) > len(self._table):
            self._slots[:] = -1
            self._held = 0
            new = rows
        self._slots[new] = self._held + np.arange(len(new))
        self._held += len(new)
        for start in range(0, len(new), CALLED_TILE):
            batch = new[start : start + CALLED_TILE]
            self._table[self._slots[batch]] = self._hypothesis.gram_rows(batch)
        return True

    def product(self, rows: Ints, weights: Floats) -> Floats:
        """Return K[:, rows] weights, (n, k), for weights of shape (rows, k)."""
        if len(rows) == self._hypothesis.n or not self._load(rows):
            return self._hypothesis.product(rows, weights)
        return np.asarray(self._table[self._slots[rows]].T @ weights)

    def square(self, rows: Ints) -> Floats:
        """Return K[rows, rows]; K itself where these are all rows."""
        if self._hypothesis.keeps_gram and len(rows) == len(self._table):
            return self._table
        if self._load(rows):
            return self._table[np.ix_(self._slots[rows], rows)]
        some = self._hypothesis.X[rows]
        return self._hypothesis.kernel(some, some)
