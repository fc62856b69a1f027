"""Many independent jobs, on one core, on the cores of a machine (joblib) or on a cluster (dask)."""

import contextlib
import importlib
import importlib.util
import math
import pickle
import sys
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from typing import Any

from nerm.errors import InvalidInputError, MissingPackageError
from nerm.experiments.records import Key, Records, Row
from nerm.validation import check_known

BACKENDS = ("joblib", "dask")
DIED = "the worker process died (killed, out of memory, or a crash in compiled code)"


@dataclass(frozen=True, eq=False)
class Job:
    """The unit of an experiment that is done or not done.

    Attributes
    ----------
    places
        What each of its rows is about: the first columns.
    work
        ``work(data, *arguments)`` yields the rest of each row.
    arguments
        For `work`.
    data
        The name of the data that it works on.

    >>> def halves(data, by):
    ...     for number in data:
    ...         yield {"half": number / by}
    >>> Job(({"k": 0}, {"k": 1}), halves, (2,)).rows([8, "x"])[0]
    {'k': 0, 'status': 'ok', 'reason': '', 'half': 4.0}
    >>> Job(({"k": 0}, {"k": 1}), halves, (2,)).rows([8, "x"])[1]["status"]
    'failed'
    """

    places: tuple[Row, ...]
    work: Callable[..., Iterator[Row]]
    arguments: Sequence[Any] = ()
    data: str = ""

    def rows(self, data: Any) -> list[Row]:
        """Do the work; an error is recorded in the rows that are missing then."""
        from threadpoolctl import threadpool_limits

        found: list[Row] = []
        try:
            with threadpool_limits(
                1
            ):  # with several, the order of sums depends on how many workers share the machine
                for row in self.work(data, *self.arguments):
                    found.append({"status": "ok", "reason": "", **row})
            reason = f"the method gave {len(found)} fits for {len(self.places)} neutrality weights"
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        rest = self.failed(reason)[len(found) :]
        return [{**place, **row} for place, row in zip(self.places, found, strict=False)] + rest

    def failed(self, reason: str) -> list[Row]:
        """Return the rows of a job that came to nothing."""
        return [{**place, "status": "failed", "reason": reason, "seconds": math.nan} for place in self.places]


@dataclass(frozen=True)
class Workers:
    """Where jobs run: `n_jobs` processes of joblib, or a dask cluster (of n_jobs processes, or that of `client`)."""

    n_jobs: int = 1
    backend: str = "joblib"
    client: Any = None

    def __post_init__(self) -> None:
        check_known(self.backend, "'backend'", BACKENDS)
        if (
            isinstance(self.n_jobs, bool)
            or not isinstance(self.n_jobs, int)
            or self.n_jobs == 0
            or self.n_jobs < -1
        ):
            must = "'n_jobs' must be a positive whole number, or -1 for all cores"
            raise InvalidInputError(must, repr(self.n_jobs), "Give n_jobs=2, for instance")
        if self.client is not None and self.backend != "dask":
            got = repr(self.backend)
            raise InvalidInputError(
                "'client' must be given with backend='dask' only", got, "Add backend='dask'"
            )
        if self.backend == "dask" and importlib.util.find_spec("distributed") is None:
            raise MissingPackageError(
                "backend='dask' needs the package 'distributed'. It is not installed. "
                "Install nerm-learn[dask], or use backend='joblib'."
            )


def record_all(
    jobs: Sequence[Job], shared: Row, workers: Workers, records: Records, title: str, progress: bool | None
) -> Any:
    """Run the jobs that are not recorded yet, record each as it comes, and return the table in the order of `jobs`.

    Parameters
    ----------
    jobs, shared, workers
        As for `run`. Folds take turns among data sets and methods, so that the time left is estimated from
        all of them.
    records
        Where to; how many rows each job has is told to it here.
    title, progress
        What a bar shows, and whether there is one; by default on a terminal only.
    """
    by_key = {tuple(str(job.places[0][name]) for name in records.keys): job for job in jobs}
    records.sizes = {key: len(job.places) for key, job in by_key.items()}
    with records.opened():
        turns = sorted(
            by_key, key=lambda key: [by_key[key].places[0].get(name, 0) for name in ("repetition", "fold")]
        )
        todo = {key: by_key[key] for key in turns if key not in records.cells}
        with progress_bar(title, len(jobs), len(jobs) - len(todo), progress) as step:
            for key, rows in run(todo, shared, workers):
                records.add(key, rows)
                step(any(row["status"] == "failed" for row in rows))
        return records.frame()


def run(
    jobs: Mapping[Key, Job], shared: Mapping[str, Any], workers: Workers
) -> Iterator[tuple[Key, list[Row]]]:
    """Yield (key, rows) of each job in the order in which they finish; ``shared[job.data]`` is what it works on.

    A job whose worker process dies, and dies again when it runs alone, has failed; the others go on.

    >>> job = Job(({"k": 1},), lambda data: iter([{"sum": sum(data)}]), data="x")
    >>> next(run({("1",): job}, {"x": [1, 2]}, Workers()))[1][0]["sum"]
    3
    """
    if not jobs:
        return
    if workers.backend == "dask":
        yield from _with_dask(jobs, shared, workers)
    elif workers.n_jobs == 1:
        for key, job in jobs.items():
            yield key, job.rows(shared[job.data])
    else:
        yield from _with_joblib(dict(jobs), shared, workers.n_jobs)


def _with_joblib(
    pending: dict[Key, Job], shared: Mapping[str, Any], n_jobs: int
) -> Iterator[tuple[Key, list[Row]]]:
    from joblib import effective_n_jobs
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    under_way = 2 * effective_n_jobs(n_jobs) + 2
    while pending:
        try:
            for key, rows in _parallel(pending, shared, n_jobs):
                del pending[key]
                yield key, rows
        except TerminatedWorkerError:
            # A dead worker takes the whole pool with it and does not say on which job. It was one of those
            # under way, the first of the pending ones: each of them is tried by itself, and only what kills
            # again is given up.
            for key in list(pending)[:under_way]:
                job = pending.pop(key)
                try:
                    yield from _parallel({key: job}, shared, max(n_jobs, 2))
                except TerminatedWorkerError:
                    yield key, job.failed(DIED)


def _parallel(
    jobs: Mapping[Key, Job], shared: Mapping[str, Any], n_jobs: int
) -> Iterator[tuple[Key, list[Row]]]:
    """Yield results as they come; nothing is dispatched far ahead, so that few jobs are lost when a worker dies."""
    from joblib import Parallel, delayed

    pool = Parallel(
        n_jobs,
        return_as="generator_unordered",
        batch_size=1,
        pre_dispatch="n_jobs",
        backend="loky",
        max_nbytes="1M",
    )
    yield from pool(delayed(_keyed)(key, job, shared[job.data]) for key, job in list(jobs.items()))


def _keyed(key: Key, job: Job, data: Any) -> tuple[Key, list[Row]]:
    return key, job.rows(data)


def _with_dask(
    jobs: Mapping[Key, Job], shared: Mapping[str, Any], workers: Workers
) -> Iterator[tuple[Key, list[Row]]]:
    distributed = importlib.import_module("distributed")  # an extra: type checkers need not have it
    with contextlib.ExitStack() as stack:
        client = workers.client
        if client is None:
            # Each job is tried again by itself at the end.
            once = importlib.import_module("dask").config.set({"distributed.scheduler.allowed-failures": 0})
            stack.enter_context(once)
            # Processes of one thread: warnings are caught per process, threads would share them.
            count = None if workers.n_jobs == -1 else workers.n_jobs
            client = stack.enter_context(
                distributed.LocalCluster(count, threads_per_worker=1, processes=True, dashboard_address=":0")
            )
        if not isinstance(client, distributed.Client):  # an address, or the cluster
            client = stack.enter_context(distributed.Client(client))
        # Data travel as a task of their own, compressed: unlike scattered data, they are not lost with a
        # worker.
        data = {
            name: client.submit(_unpacked, zlib.compress(pickle.dumps(content), 1), pure=False)
            for name, content in shared.items()
        }

        def submit(key: Key) -> Any:
            return client.submit(_keyed, key, jobs[key], data[jobs[key].data], pure=False)

        alone = set(jobs)
        for future in distributed.as_completed([submit(key) for key in jobs]):
            try:
                key, rows = future.result()
            except (
                Exception
            ):  # a job raises nothing: it is the worker, or a job that shared it with the guilty one
                continue
            alone.remove(key)
            future.release()
            yield key, rows
        for key in [key for key in jobs if key in alone]:
            try:
                yield submit(key).result()
            except (distributed.KilledWorker, CancelledError):
                yield key, jobs[key].failed(DIED)
            except Exception as error:
                yield key, jobs[key].failed(f"{type(error).__name__}: {error}")


def _unpacked(data: bytes) -> Any:
    return pickle.loads(zlib.decompress(data))


@contextlib.contextmanager
def progress_bar(
    title: str, total: int, done: int = 0, show: bool | None = None
) -> Iterator[Callable[[bool], None]]:
    """Show a bar on stderr with what is done, what failed and the time left; silent unless asked or on a terminal.

    Yields
    ------
    callable
        ``step(failed)`` counts one more.
    """
    if not (sys.stderr.isatty() if show is None else show):
        yield lambda failed: None
        return
    if importlib.util.find_spec("rich") is None:
        raise MissingPackageError(
            "progress=True needs the package 'rich'. It is not installed. Install it, or use progress=False."
        )
    from rich import progress
    from rich.console import Console

    times = (progress.TimeElapsedColumn(), "left", progress.TimeRemainingColumn())
    columns = ("{task.description}", progress.BarColumn(), progress.MofNCompleteColumn(), *times)
    failures = 0
    # The estimate looks back over many jobs, for quick and slow methods take turns.
    with progress.Progress(
        *columns, "{task.fields[note]}", console=Console(stderr=True), speed_estimate_period=600
    ) as bar:
        task = bar.add_task(title, total=total, completed=done, note="")

        def step(failed: bool) -> None:
            nonlocal failures
            failures += failed
            bar.update(task, advance=1, note=f"{failures} failed" if failures else "")

        yield step
