"""Row blocks on the cores of the machine: compiled kernels and BLAS release the lock, so plain threads serve."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import TypeVar

from threadpoolctl import threadpool_limits

T = TypeVar("T")

SMALL = 20_000  # rows below which handing work to a thread costs more than it gains


class Blocks:
    """Contiguous row blocks, one a worker; a context that owns its threads and leaves none behind.

    With several blocks BLAS keeps to one thread in each: its own threads would wait for each other on small products.
    """

    def __init__(self, n: int) -> None:
        workers = min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)
        count = max(1, min(workers, n // (SMALL // 2)))
        edges = [n * i // count for i in range(count + 1)]
        self.ranges = list(pairwise(edges))
        self._pool = ThreadPoolExecutor(count - 1) if count > 1 else None

    def __enter__(self) -> Blocks:
        if self._pool is not None:
            self._limits = threadpool_limits(1, user_api="blas")
        return self

    def __exit__(self, *exc: object) -> None:
        if self._pool is not None:
            self._limits.restore_original_limits()
            self._pool.shutdown()

    def run(self, work: Callable[[int, int], T]) -> list[T]:
        """Return [work(start, stop) for each block], the first block on the calling thread."""
        if self._pool is None:
            return [work(*block) for block in self.ranges]
        others = [self._pool.submit(work, *block) for block in self.ranges[1:]]
        return [work(*self.ranges[0]), *(other.result() for other in others)]
