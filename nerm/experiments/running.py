"""Many independent tasks, on one core, on the cores of a machine (joblib) or on a cluster (dask)."""

from __future__ import annotations

import contextlib
import importlib
import importlib.util
import pickle
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

from nerm.errors import InvalidInputError, MissingPackageError, UnknownNameError
from nerm.experiments.records import Key, Records, Row

BACKENDS = ("joblib", "dask")
Work = Callable[[Any, Any], Any]  # (shared data, task) -> result; must not raise
DIED = "the worker process died (killed, out of memory, or a crash in compiled code)"


@dataclass(frozen=True)
class Dead:
    """In place of a result: why there is none."""

    reason: str = DIED


@dataclass(frozen=True)
class Workers:
    """Where tasks run: `n_jobs` processes of joblib, or a dask cluster (of n_jobs processes, or that of `client`)."""

    n_jobs: int = 1
    backend: str = "joblib"
    client: Any = None

    def __post_init__(self) -> None:
        check_workers(self.n_jobs, self.backend, self.client)


def record_all(
    work: Work,
    tasks: Mapping[Key, tuple[str, Any]],
    shared: Mapping[str, Any],
    records: Records,
    dead: Callable[[str, Any, str], tuple[list[Row], list[float]]],
    workers: Workers,
    title: str,
    progress: bool | None,
) -> None:
    """Run the tasks that are not recorded yet and record each as it comes.

    ``work(shared[name], task)`` returns rows and their seconds; ``dead(name, task, reason)`` the rows of a task whose
    worker died. When all are done the records are put in order.
    """
    todo = {key: task for key, task in tasks.items() if not records.done(key)}
    with Progress(title, len(tasks), len(tasks) - len(todo), progress) as bar:
        if todo:
            for key, result in run(work, todo, shared, workers):
                rows, seconds = dead(*tasks[key], result.reason) if isinstance(result, Dead) else result
                records.add(key, rows, seconds)
                bar.step(failed=any(row["status"] == "failed" for row in rows))
    records.finish()


def run(
    work: Work,
    tasks: Mapping[Key, tuple[str, Any]],
    shared: Mapping[str, Any],
    workers: Workers,
) -> Iterator[tuple[Key, Any]]:
    """Yield (key, work(shared[name], task)) for each ``tasks[key] = (name, task)``, in the order in which they finish.

    A task whose worker process dies, and dies again when it runs alone, is yielded as `Dead`; the others go on.

    >>> sorted(run(lambda data, task: data + task, {("a",): ("x", 1), ("b",): ("x", 2)}, {"x": 10}, Workers()))
    [(('a',), 11), (('b',), 12)]
    """
    if workers.backend == "dask":
        yield from _with_dask(work, tasks, shared, workers.n_jobs, workers.client)
    elif workers.n_jobs == 1:
        for key, (name, task) in tasks.items():
            yield key, work(shared[name], task)
    else:
        yield from _with_joblib(work, dict(tasks), shared, workers.n_jobs)


def check_workers(n_jobs: Any, backend: Any, client: Any = None) -> None:
    """Refuse a backend or a number of workers that cannot be had."""
    if backend not in BACKENDS:
        raise UnknownNameError("'backend'", backend, BACKENDS)
    if isinstance(n_jobs, bool) or not isinstance(n_jobs, int) or n_jobs == 0 or n_jobs < -1:
        raise InvalidInputError(
            "'n_jobs' must be a positive whole number, or -1 for all cores", repr(n_jobs), "Give n_jobs=2, for instance"
        )
    if client is not None and backend != "dask":
        raise InvalidInputError("'client' must be given with backend='dask' only", repr(backend), "Add backend='dask'")
    if backend == "dask" and importlib.util.find_spec("distributed") is None:
        raise MissingPackageError(
            "backend='dask' needs the package 'distributed'. It is not installed. "
            "Install nerm-learn[dask], or use backend='joblib'."
        )


def _with_joblib(work: Work, pending: dict[Key, Any], shared: Mapping[str, Any], n_jobs: int) -> Iterator[Any]:
    from joblib import effective_n_jobs
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    under_way = 2 * effective_n_jobs(n_jobs) + 2
    while pending:
        try:
            for key, result in _parallel(work, pending, shared, n_jobs):
                del pending[key]
                yield key, result
        except TerminatedWorkerError:
            # A dead worker takes the whole pool with it and does not say on which task. It was one of those under way,
            # the first of the pending ones: each of them is tried by itself, and only what kills again is given up.
            for key in list(pending)[:under_way]:
                task = pending.pop(key)
                try:
                    yield from _parallel(work, {key: task}, shared, max(n_jobs, 2))
                except TerminatedWorkerError:
                    yield key, Dead()


def _parallel(work: Work, tasks: Mapping[Key, Any], shared: Mapping[str, Any], n_jobs: int) -> Iterator[Any]:
    """Yield results as they come; nothing is dispatched far ahead, so that few tasks are lost when a worker dies."""
    from joblib import Parallel, delayed

    pool = Parallel(
        n_jobs=n_jobs,
        return_as="generator_unordered",
        batch_size=1,
        pre_dispatch="n_jobs",
        backend="loky",
        max_nbytes="1M",
    )
    return pool(delayed(_keyed)(work, key, shared[name], task) for key, (name, task) in list(tasks.items()))


def _keyed(work: Work, key: Key, data: Any, task: Any) -> tuple[Key, Any]:
    return key, work(data, task)


def _with_dask(
    work: Work, tasks: Mapping[Key, Any], shared: Mapping[str, Any], n_jobs: int, client: Any
) -> Iterator[Any]:
    distributed = importlib.import_module("distributed")  # an extra: type checkers need not have it

    with contextlib.ExitStack() as stack:
        if client is None:
            client = stack.enter_context(_local_client(distributed, n_jobs))
        elif isinstance(client, str):
            client = stack.enter_context(distributed.Client(client))
        # Data travel as a task of their own, compressed: unlike scattered data, they are not lost with a worker.
        places = {
            name: client.submit(_unpacked, zlib.compress(pickle.dumps(data), 1), pure=False)
            for name, data in shared.items()
        }

        def submit(key: Key) -> Any:
            name, task = tasks[key]
            return client.submit(work, places[name], task, pure=False)

        keys = {submit(key): key for key in tasks}
        alone = []
        for future in distributed.as_completed(list(keys)):
            key = keys.pop(future)
            try:
                result = future.result()
            except Exception:  # `work` raises nothing: it is the worker, or a task that shared it with the guilty one
                alone.append(key)
                continue
            future.release()
            yield key, result
        for key in alone:
            try:
                result = submit(key).result()
            except (distributed.KilledWorker, CancelledError):
                result = Dead()
            except Exception as error:
                result = Dead(f"{type(error).__name__}: {error}")
            yield key, result


@contextlib.contextmanager
def _local_client(distributed: Any, n_jobs: int) -> Iterator[Any]:
    """Open a cluster of n_jobs processes of one thread: warnings are caught per process, threads would share them."""
    dask = importlib.import_module("dask")
    # Each task is tried again by itself at the end: that is the retry.
    with (
        dask.config.set({"distributed.scheduler.allowed-failures": 0}),
        distributed.LocalCluster(
            n_workers=None if n_jobs == -1 else n_jobs, threads_per_worker=1, processes=True, dashboard_address=":0"
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


def _unpacked(data: bytes) -> Any:
    return pickle.loads(zlib.decompress(data))


class Progress:
    """A bar on stderr with what is done, what failed and the time left; silent unless asked or on a terminal."""

    def __init__(self, title: str, total: int, done: int = 0, show: bool | None = None) -> None:
        self.failed, self._bar = 0, None
        if not (sys.stderr.isatty() if show is None else show):
            return
        if importlib.util.find_spec("rich") is None:
            if show:
                raise MissingPackageError(
                    "progress=True needs the package 'rich'. It is not installed. Install it, or use progress=False."
                )
            return
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        columns: Sequence[Any] = (
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("left"),
            TimeRemainingColumn(),
            TextColumn("{task.fields[note]}"),
        )
        # The estimate looks back over many tasks, for quick and slow methods take turns.
        self._bar = RichProgress(*columns, console=Console(stderr=True), speed_estimate_period=600)
        self._task = self._bar.add_task(title, total=total, completed=done, note="")

    def __enter__(self) -> Progress:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *exc: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, failed: bool = False) -> None:
        """Count one more task."""
        self.failed += failed
        if self._bar is not None:
            self._bar.update(self._task, advance=1, note=f"{self.failed} failed" if self.failed else "")
