"""Rows of the Gram matrix for the SMO: the whole matrix when it fits, otherwise those used most recently."""

from typing import Any

import numpy as np

from nerm.model.hypothesis import Hypothesis, KernelHypothesis
from nerm.model.kernels import Linear
from nerm.solvers.linalg.gram_sums import sums_of_rows
from nerm.solvers.smo.pair_steps import HeldRows
from nerm.typing import Floats, Ints

BLOCK_BYTES = 64 * 2**20
BATCH = 16  # rows computed together: a kernel call has a fixed cost


class GramCache:
    """Rows of K on demand: `table[slot_of[i]]` is row i, or ``slot_of[i] < 0`` where it is not held.

    `stamp[slot]` is the time of last use, written by the compiled loop: the slot with the smallest stamp is
    given up first. With the whole matrix in memory there are n slots and nothing is ever given up.

    Parameters
    ----------
    hypothesis : LinearHypothesis or KernelHypothesis
        Whose rows they are.
    megabytes : float
        The room there is. A matrix that the hypothesis holds already costs nothing.
    single : bool
        Whether single precision will do, where the matrix is not there yet: half of the time and of the room.

    """

    def __init__(self, hypothesis: Hypothesis, megabytes: float, *, single: bool = False) -> None:
        self.X, n = hypothesis.X, hypothesis.n
        self.kernel = hypothesis.kernel if isinstance(hypothesis, KernelHypothesis) else Linear()
        self.single = single and isinstance(hypothesis, KernelHypothesis) and not hypothesis.has_gram
        size, held = 4 if self.single else 8, "gram" in vars(hypothesis)
        self.whole = held or size * n * n <= megabytes * 2**20
        if self.whole:
            kept = isinstance(hypothesis, KernelHypothesis) and not self.single
            table: Any = hypothesis.gram if kept else self._computed(self.X)  # type: ignore[union-attr]
            table, slot_of, diagonal = np.ascontiguousarray(table), np.arange(n), np.diag(table).astype(float)
        else:
            precision = np.float32 if self.single else np.float64
            table = np.empty((max(2, min(n, int(megabytes * 2**20) // (size * n))), n), dtype=precision)
            slot_of, diagonal = np.full(n, -1), self.kernel.diagonal(self.X)
        self.owner = np.full(len(table), -1)
        self.used = 0
        self.batch = max(1, min(BATCH, len(table) // 4))
        stamp, clock = np.zeros(len(table), dtype=np.int64), np.zeros(1, dtype=np.int64)
        self.rows = HeldRows(diagonal, table, slot_of.astype(np.int64), stamp, clock)

    def _computed(self, rows: Any) -> Any:
        """Return k(x, x_j) for some rows x and all j."""
        return self.kernel.single(rows, self.X) if self.single else self.kernel(rows, self.X)

    def load(self, wanted: int, likely: Ints) -> None:
        """Compute row `wanted`, and with it some of the rows that are `likely` to be asked for next.

        They go into free slots or into those used least recently. The table has at least four times as many
        slots as a batch, so the row that the caller has just touched stays.
        """
        table, slot_of, stamp = self.rows.table, self.rows.slot_of, self.rows.stamp
        extra = likely[(slot_of[likely] < 0) & (likely != wanted)]
        extra = extra[np.sort(np.unique(extra, return_index=True)[1])]
        new = np.append(wanted, extra[: self.batch - 1])
        if self.used < len(table):
            slots = np.arange(self.used, min(self.used + len(new), len(table)))
            new = new[: len(slots)]
            self.used += len(slots)
        else:
            slots = np.argpartition(stamp, len(new) - 1)[: len(new)]
        given_up = self.owner[slots]
        slot_of[given_up[given_up >= 0]] = -1
        table[slots] = self._computed(self.X[new])
        self.owner[slots] = new
        slot_of[new] = slots
        stamp[slots] = self.rows.clock[0]

    def product(self, a: Floats) -> Floats:
        """Return K a, in blocks, touching only the columns with a_j != 0."""
        if self.whole and self.single:
            return sums_of_rows(self.rows.table, np.arange(len(a)), a[:, None])[:, 0]
        if self.whole:
            return np.asarray(self.rows.table @ a)
        held = np.flatnonzero(a)
        if not len(held):
            return np.zeros(len(a))
        columns, weights, step = self.X[held], a[held], max(1, BLOCK_BYTES // (8 * len(held)))
        return np.concatenate(
            [self.kernel(self.X[i : i + step], columns) @ weights for i in range(0, len(a), step)]
        )
