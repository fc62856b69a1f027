"""Row blocks on the cores of the machine: compiled kernels and BLAS release the lock, so plain threads serve."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

SMALL = 6_000  # rows below which handing work to a thread costs more than it gains
WIDE = 500  # columns from which on threads of BLAS pay in the Newton system


class Blocks:
    """Contiguous row blocks, one a worker; a context that owns its threads and leaves none behind.

    With several blocks, and with few columns, BLAS keeps to one thread: its own would wait for each other on products
    this small, for seconds where the machine is busy.
    """

    def __init__(self, n: int, columns: int) -> None:
        self.ranges = _ranges(n)
        self._one_thread = len(self.ranges) > 1 or columns < WIDE
        self._pool = ThreadPoolExecutor(len(self.ranges) - 1) if len(self.ranges) > 1 else None

    def fewer(self, n: int) -> Blocks:
        """Return blocks of fewer rows on the same threads, for as long as these are open."""
        blocks = Blocks.__new__(Blocks)
        blocks.ranges = _ranges(n)
        blocks._pool = self._pool
        return blocks

    def __enter__(self) -> Blocks:
        if self._one_thread:
            self._limits = _libraries().limit(limits=1, user_api="blas")
        return self

    def __exit__(self, *exc: object) -> None:
        if self._one_thread:
            self._limits.restore_original_limits()
        if self._pool is not None:
            self._pool.shutdown()

    def run(self, work: Callable[[int, int], T]) -> list[T]:
        """Return [work(start, stop) for each block], the first block on the calling thread."""
        if self._pool is None or len(self.ranges) == 1:
            return [work(*block) for block in self.ranges]
        others = [self._pool.submit(work, *block) for block in self.ranges[1:]]
        return [work(*self.ranges[0]), *(other.result() for other in others)]


@cache
def _libraries() -> ThreadpoolController:
    """Return the BLAS libraries that are loaded; to find them takes longer than a small problem."""
    return ThreadpoolController()


def _ranges(n: int) -> list[tuple[int, int]]:
    workers = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)
    count = max(1, min(workers, n // (SMALL // 2)))
    return list(pairwise(n * i // count for i in range(count + 1)))
