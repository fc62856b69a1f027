"""Rows of the Gram matrix K: all of them where K fits into memory, otherwise those used most recently."""

from __future__ import annotations

from typing import NamedTuple

import numba
import numpy as np
from numpy.typing import NDArray

from nerm.model.hypothesis import Hypothesis, KernelHypothesis
from nerm.model.kernels import Linear
from nerm.typing import Floats, Ints

MEGABYTES = 512.0  # of a table of rows
BATCH = 32  # rows computed by one call of a kernel, which has a fixed cost


class CachedRows(NamedTuple):
    """Arrays for compiled loops: row i of K is `table[slot_of[i]]`; ``slot_of[i] < 0`` where it is not held.

    `last_used[slot]` is a time on `clock`, -1 for an empty slot. numba writes the name of this class into its
    cache on disk: delete __pycache__ after a change.
    """

    diagonal: Floats
    table: Floats
    slot_of: NDArray[np.int64]
    last_used: NDArray[np.int64]
    clock: NDArray[np.int64]


class GramCache:
    """Rows of K on demand; a row that was not used for the longest time is replaced first.

    Parameters
    ----------
    hypothesis : LinearHypothesis or KernelHypothesis
        K is its Gram matrix; X X' for a linear one.
    megabytes : float
        The size of the table. A matrix that the hypothesis keeps is used as it is.

    Attributes
    ----------
    rows : CachedRows
        The table with its index.

    """

    def __init__(self, hypothesis: Hypothesis, megabytes: float = MEGABYTES) -> None:
        n = hypothesis.n
        self._hypothesis = hypothesis
        most = max(2, int(megabytes * 2**20) // (8 * n))
        self._whole = most >= n
        if isinstance(hypothesis, KernelHypothesis) and hypothesis.keeps_gram:
            table = np.ascontiguousarray(hypothesis.gram)
            self._whole = True
        elif self._whole:
            table = self._computed(np.arange(n))
        else:
            table = np.empty((most, n))
        self._owner = np.full(len(table), -1)
        slot_of = np.arange(n) if self._whole else np.full(n, -1)
        last_used = np.full(len(table), -1)
        diagonal = hypothesis.squared_row_norms()
        self.rows = CachedRows(diagonal, table, slot_of, last_used, np.zeros(1, dtype=np.int64))

    def _computed(self, rows: Ints) -> Floats:
        """Return K[rows, :]."""
        if isinstance(self._hypothesis, KernelHypothesis):
            return self._hypothesis.gram_rows(rows)
        return Linear()(self._hypothesis.X[rows], self._hypothesis.X)

    def load(self, rows: Ints) -> bool:
        """Make the table hold these rows; return False where it is too small for them."""
        slot_of, last_used = self.rows.slot_of, self.rows.last_used
        if self._whole:
            return True
        if len(rows) > len(last_used):
            return False
        self.rows.clock[0] += 1
        held = slot_of[rows] >= 0
        last_used[slot_of[rows[held]]] = self.rows.clock[0]
        new = rows[~held]
        slots = np.argsort(last_used, kind="stable")[: len(new)]
        replaced = self._owner[slots]
        slot_of[replaced[replaced >= 0]] = -1
        for start in range(0, len(new), BATCH):
            batch = slice(start, start + BATCH)
            self.rows.table[slots[batch]] = self._computed(new[batch])
        self._owner[slots] = new
        slot_of[new] = slots
        last_used[slots] = self.rows.clock[0]
        return True

    def load_with(self, wanted: int, likely: Ints) -> None:
        """Load a row, and in the same call some of those that are likely to be used next.

        A batch is at most a quarter of the table, so that the rows in use stay.
        """
        count = max(1, min(BATCH, len(self.rows.table) // 4))
        new = np.append(wanted, likely[(self.rows.slot_of[likely] < 0) & (likely != wanted)])
        order = np.sort(np.unique(new, return_index=True)[1])
        self.load(new[order][:count])

    def product(self, rows: Ints, weights: Floats) -> Floats:
        """Return K[:, rows] weights, (n, k), for weights of shape (rows, k)."""
        assert isinstance(self._hypothesis, KernelHypothesis)
        missing = np.count_nonzero(self.rows.slot_of[rows] < 0)
        # By symmetry a product with all of K costs as much as half of its rows.
        if 2 * missing > self._hypothesis.n or not self.load(rows):
            return self._hypothesis.product(rows, weights)
        return row_sums(self.rows.table, self.rows.slot_of[rows], weights)

    def square(self, rows: Ints) -> Floats:
        """Return K[rows, rows]; K itself where these are all rows."""
        if self._whole and len(rows) == len(self.rows.table):
            return self.rows.table
        if self.load(rows):
            return self.rows.table[np.ix_(self.rows.slot_of[rows], rows)]
        assert isinstance(self._hypothesis, KernelHypothesis)
        some = self._hypothesis.X[rows]
        return self._hypothesis.kernel(some, some)


def row_sums(table: Floats, rows: Ints, weights: Floats) -> Floats:
    """Return table[rows]' weights, (n, k), for weights of shape (rows, k)."""
    return np.asarray(_row_sums(table, rows, np.ascontiguousarray(weights.T)).T)


@numba.njit(cache=True, nogil=True)
def _row_sums(table, rows, weights):  # type: ignore[no-untyped-def]
    """Return weights @ table[rows] without a copy of the rows.

    Four rows are added at a time, over columns that stay in cache: memory traffic takes most of the time.
    """
    n, count, whole = table.shape[1], weights.shape[0], len(rows) - len(rows) % 4
    out = np.zeros((count, n))
    for start in range(0, n, 8192):
        stop = min(start + 8192, n)
        for i in range(0, whole, 4):
            one, two = table[rows[i], start:stop], table[rows[i + 1], start:stop]
            three, four = table[rows[i + 2], start:stop], table[rows[i + 3], start:stop]
            for k in range(count):
                a, b, c, d = weights[k, i], weights[k, i + 1], weights[k, i + 2], weights[k, i + 3]
                if a != 0.0 or b != 0.0 or c != 0.0 or d != 0.0:
                    part = out[k, start:stop]
                    for j in range(stop - start):
                        part[j] += (a * one[j] + b * two[j]) + (c * three[j] + d * four[j])
        for i in range(whole, len(rows)):
            row = table[rows[i], start:stop]
            for k in range(count):
                part = out[k, start:stop]
                for j in range(stop - start):
                    part[j] += weights[k, i] * row[j]
    return out
