"""Gram rows for the SMO: the whole matrix when it fits, otherwise a least-recently-used cache of rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.kernels import Precomputed, check_gram
from nerm.svm.data import NeutralData

_BLOCK_BYTES = 64 * 2**20
_BATCH = 16


class GramRows:
    """Rows of K on demand. ``table[slot_of[i]]`` is row i, or ``slot_of[i] < 0`` when it is not held.

    ``stamp[slot]`` is the time of last use, written by the compiled loop: the slot with the smallest stamp is
    given up first. With the whole matrix in memory there are n slots and nothing is ever given up.
    """

    def __init__(self, data: NeutralData, cache_mb: float) -> None:
        self.X, self.kernel, n = data.X, data.kernel, data.n
        budget = int(cache_mb * 2**20)
        self.whole = isinstance(self.kernel, Precomputed) or 8 * n * n <= budget
        self.computed = 0
        if self.whole:
            self.table = _symmetric(self.kernel(self.X, self.X), self.kernel.always_psd)
            self.slot_of = np.arange(n, dtype=np.int64)
            self.diagonal = np.ascontiguousarray(np.diag(self.table))
            self.psd = "known" if self.kernel.always_psd else "checked"
        else:
            if not self.kernel.always_psd:
                # Too large to check as a whole: a principal submatrix must be positive semidefinite too.
                some = np.random.default_rng(0).choice(n, min(n, 1000), replace=False)
                check_gram(self.kernel(self.X[some], self.X[some]), psd=True)
            self.table = np.empty((max(2, min(n, budget // (8 * n))), n))
            self.slot_of = np.full(n, -1, dtype=np.int64)
            self.diagonal = np.asarray(self.kernel.diagonal(self.X), dtype=float)
            self.psd = "known" if self.kernel.always_psd else "sampled"
        self.owner = np.full(len(self.table), -1, dtype=np.int64)
        self.stamp = np.zeros(len(self.table), dtype=np.int64)
        self.used = 0
        self.batch = max(1, min(_BATCH, len(self.table) // 4))

    def load(self, wanted: int, likely: np.ndarray, now: int) -> None:
        """Compute row ``wanted``, and with it some of the rows that are ``likely`` to be asked for next.

        A kernel call has a fixed cost, so rows are computed a few at a time, into free slots or into those
        used least recently. The table has at least four times as many slots as a batch, so the row that
        the caller has just touched stays.
        """
        extra = likely[(self.slot_of[likely] < 0) & (likely != wanted)]
        extra = extra[np.sort(np.unique(extra, return_index=True)[1])]
        new = np.append(wanted, extra[: self.batch - 1])
        if self.used < len(self.table):
            slots = np.arange(self.used, min(self.used + len(new), len(self.table)))
            new = new[: len(slots)]
            self.used += len(slots)
        else:
            slots = np.argpartition(self.stamp, len(new) - 1)[: len(new)]
        given_up = self.owner[slots]
        self.slot_of[given_up[given_up >= 0]] = -1
        self.table[slots] = self.kernel(self.X[new], self.X)
        self.owner[slots] = new
        self.slot_of[new] = slots
        self.stamp[slots] = now
        self.computed += len(new)

    def product(self, a: np.ndarray) -> np.ndarray:
        """Return K a, in blocks, touching only the columns with a_j != 0."""
        if self.whole:
            return self.table @ a
        held = np.flatnonzero(a)
        out = np.zeros(len(a))
        if len(held) == 0:
            return out
        columns, weights = self.X[held], a[held]
        step = max(1, _BLOCK_BYTES // (8 * len(held)))
        for first in range(0, len(a), step):
            out[first : first + step] = self.kernel(self.X[first : first + step], columns) @ weights
        return out


def full_gram(data: NeutralData) -> np.ndarray:
    """Return the whole Gram matrix, checked to be semidefinite where the kernel does not promise it."""
    return _symmetric(data.kernel(data.X, data.X), data.kernel.always_psd)


def _symmetric(gram: Any, always_psd: bool) -> np.ndarray:
    gram = gram.toarray() if sp.issparse(gram) else gram
    return np.ascontiguousarray(gram if always_psd else check_gram(gram, psd=True), dtype=float)
