"""Ranges of rows on the cores of the machine: compiled kernels and BLAS release the lock, so plain threads serve."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from copy import copy
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

from nerm.typing import Floats

T = TypeVar("T")

SMALL = 6_000  # rows below which handing work to a thread costs more than it gains
WIDE = 500  # columns from which on threads of BLAS pay in the Newton system


class RowThreads:
    """Contiguous ranges of rows, one a thread; as a context it owns its threads and leaves none behind.

    With several ranges, and with few columns, BLAS keeps to one thread: its own would wait for each other on
    products this small, for seconds where the machine is busy. With `count` = 1 the other cores are somebody
    else's.

    Parameters
    ----------
    n, columns
        The size of the matrix whose rows are shared out.
    count
        The most threads; by default one a core.
    """

    def __init__(self, n: int, columns: int, count: int | None = None) -> None:
        self.count = cores() if count is None else count
        self.ranges = self._ranges(n)
        self._one_thread = len(self.ranges) > 1 or columns < WIDE or count == 1
        self._pool: ThreadPoolExecutor | None = None

    def fewer(self, n: int) -> RowThreads:
        """Return ranges of fewer rows on the same threads, for as long as these are open."""
        few = copy(self)
        few.ranges = self._ranges(n)
        return few

    def _ranges(self, n: int) -> list[tuple[int, int]]:
        count = max(1, min(self.count, n // (SMALL // 2)))
        return list(pairwise(n * i // count for i in range(count + 1)))

    def __enter__(self) -> RowThreads:
        self._held = ExitStack()
        if self._one_thread:
            self._held.enter_context(blas.held())
        if len(self.ranges) > 1:
            self._pool = self._held.enter_context(
                ThreadPoolExecutor(len(self.ranges) - 1, initializer=blas.limit)
            )
        return self

    def __exit__(self, *exc: object) -> None:
        self._pool = None
        self._held.close()

    def run(self, work: Callable[[int, int], T]) -> list[T]:
        """Return [work(start, stop) for each range], the first on the calling thread."""
        if self._pool is None or len(self.ranges) == 1:
            return [work(*part) for part in self.ranges]
        others = [self._pool.submit(work, *part) for part in self.ranges[1:]]
        return [work(*self.ranges[0]), *(other.result() for other in others)]

    def add_up(self, work: Callable[[int, int], Floats]) -> Floats:
        """Return the sum of work(start, stop) over the ranges."""
        parts = self.run(work)
        return parts[0] if len(parts) == 1 else np.asarray(np.sum(parts, axis=0))


def cores() -> int:
    """Return the number of cores that this process may use, at most 8."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)


class _Blas:
    """The BLAS libraries that are loaded, held to one thread by those who ask for it.

    How many threads they use belongs to the calling thread or to the process, by build, and of a process only
    one thread may be allowed to set it. So everybody sets it and gives back what he found, and the last to go
    gives back what the first one found.
    """

    def __init__(self) -> None:
        self._lock, self._holders = Lock(), 0
        self._first: Any = None

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        return ThreadpoolController()  # to find them takes longer than a small problem

    def limit(self) -> Any:
        """Hold BLAS to one thread, until what is returned gives back what it found."""
        return self._libraries.limit(limits=1, user_api="blas")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold BLAS to one thread within a block of code."""
        with self._lock:
            found = self.limit()
            self._first = found if self._holders == 0 else self._first
            self._holders += 1
        try:
            yield
        finally:
            with self._lock:
                found.restore_original_limits()
                self._holders -= 1
                if self._holders == 0:
                    self._first.restore_original_limits()


blas = _Blas()
