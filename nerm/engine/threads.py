"""Row blocks on the cores of the machine: compiled kernels and BLAS release the lock, so plain threads serve."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from copy import copy
from functools import cached_property
from itertools import pairwise
from threading import Lock
from typing import Any, TypeVar

from threadpoolctl import ThreadpoolController

T = TypeVar("T")

SMALL = 6_000  # rows below which handing work to a thread costs more than it gains
WIDE = 500  # columns from which on threads of BLAS pay in the Newton system


class Blocks:
    """Contiguous row blocks, one a worker; a context that owns its threads and leaves none behind.

    With several blocks, and with few columns, BLAS keeps to one thread: its own would wait for each other on products
    this small, for seconds where the machine is busy. With `workers` = 1 the other cores are somebody else's.
    """

    def __init__(self, n: int, columns: int, workers: int | None = None) -> None:
        self._workers = cores() if workers is None else workers
        self.ranges = self._ranges(n)
        self._one_thread = len(self.ranges) > 1 or columns < WIDE or workers == 1
        self._pool = ThreadPoolExecutor(len(self.ranges) - 1, initializer=blas.limit) if len(self.ranges) > 1 else None

    def fewer(self, n: int) -> Blocks:
        """Return blocks of fewer rows on the same threads, for as long as these are open."""
        blocks = copy(self)
        blocks.ranges = self._ranges(n)
        return blocks

    def _ranges(self, n: int) -> list[tuple[int, int]]:
        count = max(1, min(self._workers, n // (SMALL // 2)))
        return list(pairwise(n * i // count for i in range(count + 1)))

    def __enter__(self) -> Blocks:
        if self._one_thread:
            self._found = blas.hold()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._pool is not None:
            self._pool.shutdown()
        if self._one_thread:
            blas.release(self._found)

    def run(self, work: Callable[[int, int], T]) -> list[T]:
        """Return [work(start, stop) for each block], the first block on the calling thread."""
        if self._pool is None or len(self.ranges) == 1:
            return [work(*block) for block in self.ranges]
        others = [self._pool.submit(work, *block) for block in self.ranges[1:]]
        return [work(*self.ranges[0]), *(other.result() for other in others)]


def cores() -> int:
    """Return the number of cores that this process may use, at most 8."""
    return min(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, 8)


class _Blas:
    """The BLAS libraries that are loaded, held to one thread by those who ask for it.

    How many threads they use belongs to the calling thread or to the process, by build, and of a process only one
    thread may be allowed to set it. So everybody sets it and gives back what he found, and the last to go gives back
    what the first one found.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._holders = 0

    @cached_property
    def _libraries(self) -> ThreadpoolController:
        return ThreadpoolController()  # to find them takes longer than a small problem

    def limit(self) -> Any:
        """Hold BLAS to one thread, until what is returned gives back what it found."""
        return self._libraries.limit(limits=1, user_api="blas")

    def hold(self) -> Any:
        with self._lock:
            found = self.limit()
            if self._holders == 0:
                self._first = found
            self._holders += 1
            return found

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold BLAS to one thread within a block of code."""
        found = self.hold()
        try:
            yield
        finally:
            self.release(found)

    def release(self, found: Any) -> None:
        with self._lock:
            found.restore_original_limits()
            self._holders -= 1
            if self._holders == 0 and self._first is not found:
                self._first.restore_original_limits()


blas = _Blas()
