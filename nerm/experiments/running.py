"""Run independent jobs in parallel, and keep their rows in a CSV file from which a killed run resumes.

`run_jobs` skips the jobs whose rows are in the `Journal` already, runs the others on joblib workers or a dask
cluster, appends the rows of each as it finishes, and returns one table.
"""

import contextlib
import csv
import importlib
import importlib.util
import io
import json
import math
import os
import pickle
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from pathlib import Path
from typing import Any

from nerm.errors import InvalidInputError, MissingPackageError
from nerm.files import append_whole, write_atomically
from nerm.validation import check_known

MARK = "# nerm experiment "
DIED = "the worker process died (killed, out of memory, or a crash in compiled code)"
#: The columns of text; all others hold numbers and truth values.
TEXT = (
    "dataset", "measure", "method", "level", "tuning", "problem", "case", "family", "solver", "version",
    "claim", "status", "reason",
)  # fmt: skip
Row = dict[str, Any]
Key = tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Job:
    """One unit of work of an experiment, which is either finished or not.

    Attributes
    ----------
    places
        The first columns of each of its rows.
    work
        ``work(data, places, *arguments)`` yields the other columns of each row.
    arguments
        For `work`.
    data
        The name of the data that it works on.

    >>> def quotients(data, places, by):
    ...     for place in places:
    ...         yield {"quotient": data[place["k"]] / by}
    >>> Job(({"k": 0}, {"k": 1}), quotients, (2,)).rows([8, "x"])[0]
    {'k': 0, 'status': 'ok', 'reason': '', 'quotient': 4.0}
    >>> Job(({"k": 0}, {"k": 1}), quotients, (2,)).rows([8, "x"])[1]["status"]
    'failed'
    """

    places: tuple[Row, ...]
    work: Callable[..., Iterator[Row]]
    arguments: Sequence[Any] = ()
    data: str = ""

    def rows(self, data: Any) -> list[Row]:
        """Do the work on one thread; an error becomes the reason of the rows that are then missing."""
        from threadpoolctl import threadpool_limits

        found: list[Row] = []
        try:
            with threadpool_limits(1):  # the order of sums must not depend on the number of workers
                for row in self.work(data, self.places, *self.arguments):
                    found.append({"status": "ok", "reason": "", **row})
            reason = f"the method gave {len(found)} fits for {len(self.places)} neutrality weights"
        except Exception as error:
            reason = f"{type(error).__name__}: {error}"
        rest = self.failed(reason)[len(found) :]
        return [{**place, **row} for place, row in zip(self.places, found, strict=False)] + rest

    def failed(self, reason: str) -> list[Row]:
        """Return the rows of a job without results."""
        return [{**place, "status": "failed", "reason": reason, "seconds": math.nan} for place in self.places]


@dataclass(frozen=True)
class Workers:
    """The processes that run jobs: `n_jobs` of joblib, or those of a dask cluster."""

    n_jobs: int = 1
    backend: str = "joblib"
    client: Any = None

    def __post_init__(self) -> None:
        check_known(self.backend, "'backend'", ("joblib", "dask"))
        whole = isinstance(self.n_jobs, int) and not isinstance(self.n_jobs, bool)
        if not whole or self.n_jobs == 0 or self.n_jobs < -1:
            must = "'n_jobs' must be a positive whole number, or -1 for all cores"
            raise InvalidInputError(must, repr(self.n_jobs), "Give n_jobs=2, for instance")
        if self.client is not None and self.backend != "dask":
            must = "'client' must be given with backend='dask' only"
            raise InvalidInputError(must, repr(self.backend), "Add backend='dask'")
        if self.backend == "dask" and importlib.util.find_spec("distributed") is None:
            raise MissingPackageError(
                "backend='dask' needs the package 'distributed'. It is not installed. "
                "Install nerm-learn[dask], or use backend='joblib'."
            )


def run_jobs(
    jobs: Sequence[Job],
    journal: "Journal",
    *,
    data: Mapping[str, Any],
    workers: Workers,
    title: str,
    progress: bool | None,
) -> Any:
    """Run the jobs that the journal does not have; return the journal's table.

    Parameters
    ----------
    jobs
        Folds alternate between data sets and methods, so that the time left is estimated from all of them.
    journal
        The table so far; `Journal.sizes` is set here where it is not None.
    data
        ``data[job.data]`` is passed to the job.
    workers
        The processes.
    title, progress
        The text of a progress bar, and whether there is one; by default on a terminal only.
    """
    if journal.sizes is not None:
        journal.sizes = {journal.key(job.places[0]): len(job.places) for job in jobs}
    with journal.opened():
        left = [[place for place in job.places if journal.key(place) not in journal.rows] for job in jobs]
        todo = [replace(job, places=tuple(own)) for job, own in zip(jobs, left, strict=True) if own]
        todo.sort(key=lambda job: [job.places[0].get(name, 0) for name in ("repetition", "fold")])
        with progress_bar(title, len(jobs), len(jobs) - len(todo), progress) as step:
            for rows in _results(todo, data, workers):
                for key, group in groupby(rows, journal.key):
                    journal.add(key, list(group))
                step(any(row["status"] == "failed" for row in rows))
        return journal.frame()


def _results(jobs: Sequence[Job], data: Mapping[str, Any], workers: Workers) -> Iterator[list[Row]]:
    """Yield the rows of each job as it finishes; a job that kills its worker twice has failed."""
    if not jobs:
        return
    if workers.backend == "dask":
        yield from _with_dask(jobs, data, workers)
    elif workers.n_jobs == 1:
        yield from (job.rows(data[job.data]) for job in jobs)
    else:
        yield from _with_joblib(dict(enumerate(jobs)), data, workers.n_jobs)


def _with_joblib(pending: dict[int, Job], data: Mapping[str, Any], n_jobs: int) -> Iterator[list[Row]]:
    from joblib import effective_n_jobs
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    while pending:
        try:
            for number, rows in _parallel(pending, data, n_jobs):
                del pending[number]
                yield rows
        except TerminatedWorkerError:
            # A dead worker ends the whole pool and does not name its job, which is one of the first pending
            # ones: each of them runs alone, and has failed if it kills its worker again.
            for number in list(pending)[: 2 * effective_n_jobs(n_jobs) + 2]:
                job = pending.pop(number)
                try:
                    yield from (rows for _, rows in _parallel({number: job}, data, max(n_jobs, 2)))
                except TerminatedWorkerError:
                    yield job.failed(DIED)


def _parallel(
    jobs: Mapping[int, Job], data: Mapping[str, Any], n_jobs: int
) -> Iterator[tuple[int, list[Row]]]:
    """Yield numbers and rows of jobs; few jobs are dispatched ahead, so few are lost when a worker dies."""
    from joblib import Parallel, delayed

    ahead = {"batch_size": 1, "pre_dispatch": "n_jobs"}
    pool = Parallel(n_jobs, return_as="generator_unordered", backend="loky", max_nbytes="1M", **ahead)
    yield from pool(delayed(_numbered)(number, job, data[job.data]) for number, job in list(jobs.items()))


def _numbered(number: int, job: Job, data: Any) -> tuple[int, list[Row]]:
    return number, job.rows(data)


def _with_dask(jobs: Sequence[Job], data: Mapping[str, Any], workers: Workers) -> Iterator[list[Row]]:
    distributed = importlib.import_module("distributed")  # an extra: type checkers need not have it
    with contextlib.ExitStack() as stack:
        client = workers.client
        if client is None:
            # One thread per process: warnings are caught per process, and threads would share them.
            count = None if workers.n_jobs == -1 else workers.n_jobs
            local = {"threads_per_worker": 1, "processes": True, "dashboard_address": ":0"}
            client = stack.enter_context(distributed.LocalCluster(count, **local))
        if not isinstance(client, distributed.Client):  # an address, or the cluster
            client = stack.enter_context(distributed.Client(client))
        # A task per data set: unlike scattered data, its result is computed again when a worker dies.
        held = {
            name: client.submit(_unpacked, zlib.compress(pickle.dumps(content), 1), pure=False)
            for name, content in data.items()
        }
        futures = {
            client.submit(_numbered, k, job, held[job.data], pure=False): job for k, job in enumerate(jobs)
        }
        for future in distributed.as_completed(list(futures)):
            job = futures.pop(future)
            try:
                rows = future.result()[1]
            except distributed.KilledWorker:  # dask has tried it on several workers
                rows = job.failed(DIED)
            except Exception as error:
                rows = job.failed(f"{type(error).__name__}: {error}")
            yield rows


def _unpacked(content: bytes) -> Any:
    return pickle.loads(zlib.decompress(content))


@contextlib.contextmanager
def progress_bar(
    title: str, total: int, done: int = 0, show: bool | None = None
) -> Iterator[Callable[[bool], None]]:
    """Show finished jobs, failures and the time left on stderr; by default on a terminal only.

    Yields
    ------
    callable
        ``step(failed)`` counts one more job.
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

    times = (progress.BarColumn(), progress.MofNCompleteColumn(), "left", progress.TimeRemainingColumn())
    columns = ("{task.description}", *times, "{task.fields[note]}")
    failures = 0
    # The estimate of the time left looks back over quick and slow methods.
    with progress.Progress(*columns, console=Console(stderr=True), speed_estimate_period=600) as bar:
        task = bar.add_task(title, total=total, completed=done, note="")

        def step(failed: bool) -> None:
            nonlocal failures
            failures += failed
            bar.update(task, advance=1, note=f"{failures} failed" if failures else "")

        yield step


@dataclass(eq=False)
class Journal:
    """The rows of an experiment, in memory and, with a path, in a CSV file.

    The first line of the file is a comment with the settings of the experiment. Rows are appended as they
    come; at the end the file is rewritten in the table's order, so that equal experiments end in equal bytes.
    Seconds, which differ from run to run, are in a file ``…-times.csv`` beside it.

    Attributes
    ----------
    results
        A .csv file, or None.
    settings
        The settings that tell this experiment from others, as JSON holds them: a file with others is refused.
    columns, keys
        The columns in order, and those of them that name one finished unit.
    sizes
        The number of rows of each unit, in the order of the table, by which a half-written unit is found.
        None: one row each, in sorted order, and rows of other experiments with these settings stay.
    rows
        The cells of each finished unit, its seconds last.
    """

    results: str | os.PathLike[str] | None
    settings: Mapping[str, Any]
    columns: Sequence[str]
    keys: Sequence[str]
    sizes: Mapping[Key, int] | None = field(default_factory=dict)
    rows: dict[Key, list[list[str]]] = field(default_factory=dict, init=False)
    _file: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.path = None if self.results is None else Path(self.results)
        if self.path is not None and self.path.suffix != ".csv":
            must = "'results' must name a .csv file"
            raise InvalidInputError(must, repr(str(self.path)), "Give results='tradeoff.csv', for instance")

    def key(self, row: Row) -> Key:
        """Return the key of the unit that a row belongs to."""
        return tuple(str(row[name]) for name in self.keys)

    @contextlib.contextmanager
    def opened(self) -> Iterator[None]:
        """Lock the file and read it; rewrite it in order when the block ends without an error."""
        if self.path is None:
            yield
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a+b") as self._file:
            _lock(self._file, self.path)
            try:
                self._recover()
            except OSError:  # the disk is full: leave no empty file
                if not os.fstat(self._file.fileno()).st_size:
                    self.path.unlink()
                    self._times_path.unlink(missing_ok=True)
                raise
            yield
            with write_atomically(self.path) as file:
                file.write(self._head() + self._lines(self._ordered()))
            self._write_times(self._ordered())

    def add(self, key: Key, rows: Sequence[Row]) -> None:
        """Keep the rows of one finished unit, on disk before this returns; a missing column is nan."""
        columns = [*self.columns, "seconds"]
        self.rows[key] = [[_cell(row.get(column, math.nan)) for column in columns] for row in rows]
        if self._file is not None:
            with open(self._times_path, "ab") as times:  # first: a unit in the file then has its times
                append_whole(times, self._times([key]))
            append_whole(self._file, self._lines([key]))

    def frame(self) -> Any:
        """Return all rows as a DataFrame in the table's order, with a column `seconds`."""
        return _frame(
            [cells for key in self._ordered() for cells in self.rows[key]], [*self.columns, "seconds"]
        )

    @property
    def _times_path(self) -> Path:
        assert self.path is not None
        return self.path.with_name(f"{self.path.stem}-times.csv")

    def _ordered(self) -> list[Key]:
        order = sorted(self.rows) if self.sizes is None else self.sizes
        return [key for key in order if key in self.rows]

    def _head(self) -> bytes:
        return f"{MARK}{json.dumps({'settings': self.settings})}\n".encode() + _as_csv([self.columns])

    def _lines(self, keys: Iterable[Key]) -> bytes:
        return _as_csv(cells[:-1] for key in keys for cells in self.rows[key])

    def _times(self, keys: Iterable[Key]) -> bytes:
        return _as_csv([*key, k, cells[-1]] for key in keys for k, cells in enumerate(self.rows[key]))

    def _write_times(self, keys: Iterable[Key]) -> None:
        with write_atomically(self._times_path) as file:
            file.write(_as_csv([[*self.keys, "row", "seconds"]]) + self._times(keys))

    def _recover(self) -> None:
        """Read the finished units of an earlier run; refuse the file of another experiment."""
        assert self.path is not None
        self._file.seek(0)
        content, head = self._file.read(), self._head()
        if not head.startswith(content):  # a file cut inside its first two lines holds no result
            columns, *lines = _whole_lines(content) or [[]]
            self._check({**_settings_in(self.path, content), "columns": columns})
            for number, cells in enumerate(lines, start=3):
                if len(cells) != len(columns):
                    must = f"every line of the results file '{self.path}' must have {len(columns)} entries"
                    do = "Delete that line, or start anew with another file"
                    raise InvalidInputError(must, f"{len(cells)} on line {number}", do)
                self.rows.setdefault(self.key(dict(zip(columns, cells, strict=True))), []).append(cells)
            if self.sizes is not None:
                self.rows = {key: rows for key, rows in self.rows.items() if len(rows) == self.sizes.get(key)}
        lines = _whole_lines(self._times_path.read_bytes()) if self._times_path.is_file() else []
        times = {tuple(place): seconds for *place, seconds in lines}
        for key, rows in self.rows.items():
            for k, cells in enumerate(rows):
                cells.append(times.get((*key, str(k)), ""))
        self._write_times(self.rows)
        kept = head + self._lines(self.rows)
        if kept != content:
            whole = len(kept) if content.startswith(kept) else 0
            self._file.truncate(whole)
            append_whole(self._file, kept[whole:])

    def _check(self, theirs: dict[str, Any]) -> None:
        """Refuse the file of another experiment, and name the difference."""
        for name, ours in json.loads(json.dumps({**self.settings, "columns": self.columns})).items():
            if theirs.get(name) != ours:
                setting = name.replace("_", " ")
                must = f"the results file '{self.path}' must be one of {setting} {_short(ours)}"
                got = f"one of {setting} {_short(theirs.get(name))}"
                raise InvalidInputError(must, got, "Give another file name: this one is left as it is")


def read(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Return the table of a results file and the settings of its experiment.

    >>> import tempfile
    >>> from nerm.experiments import convergence
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = convergence([40], [1.0], repetitions=1, folds=2, results=f"{folder}/figure-1.csv")
    ...     again, settings = read(f"{folder}/figure-1.csv")
    >>> settings["experiment"], settings["folds"]
    ('convergence', 2)
    >>> again.risk_error.tolist() == table.risk_error.tolist()  # to the last digit
    True
    """
    where = Path(path)
    if not where.is_file():
        raise InvalidInputError("the results file must exist", f"no file '{where}'", "Check the path")
    content = where.read_bytes()
    columns, *lines = _whole_lines(content) or [[]]
    return _frame(lines, columns), _settings_in(where, content)


def _settings_in(path: Path, content: bytes) -> dict[str, Any]:
    """Return the settings in the first line; refuse a file that is not a results file."""
    first = content.partition(b"\n")[0].decode(errors="replace")
    try:
        return dict(json.loads(first.removeprefix(MARK))["settings"])
    except (ValueError, KeyError, TypeError):
        must = f"the file '{path}' must be a results file of nerm"
        got = f"a first line that begins with {first[:30]!r}"
        raise InvalidInputError(must, got, "Give another file name: this one is left as it is") from None


def _short(value: object) -> str:
    return text if len(text := str(value)) <= 60 else f"{text[:60]}…"


def _whole_lines(content: bytes) -> list[list[str]]:
    """Return the cells of each line but the first; a last line that a kill cut short is dropped."""
    return list(csv.reader(content[: content.rfind(b"\n") + 1].decode().splitlines()[1:]))


def _as_csv(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _frame(lines: Iterable[Sequence[str]], columns: Sequence[str]) -> Any:
    import pandas as pd

    table = [[_value(column, cell) for column, cell in zip(columns, cells, strict=True)] for cells in lines]
    return pd.DataFrame(table, columns=list(columns))


def _value(column: str, cell: str) -> Any:
    if column in TEXT:
        return cell
    if cell in ("True", "False"):
        return cell == "True"
    return math.nan if cell == "" else int(cell) if cell.lstrip("-").isdigit() else float(cell)


def _cell(value: object) -> str:
    """Write a number so that it reads back as itself, nan as nothing, and a sentence on one line."""
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    return " ".join(str(value).split())


def _lock(file: Any, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # on Windows an open file cannot be replaced anyway
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        must = f"the results file '{path}' must not be in use"
        do = "Wait for that run, or give another file name"
        raise InvalidInputError(must, "a file that another run is writing", do) from None
