"""Run independent jobs in parallel and write their rows to a CSV file, so that a killed run can resume.

`run_jobs` skips the jobs whose rows are already in the file and runs the others with joblib. It appends the
rows of each finished job to the file and returns one table.
"""

import io
import json
import os
import sys
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from nerm.errors import InvalidInputError
from nerm.files import write_atomically
from nerm.splitting import as_count
from nerm.validation import as_positive

MARK = "# nerm experiment "
#: The columns of text; all others hold numbers or booleans.
TEXT = (
    "dataset", "measure", "method", "level", "tuning", "problem", "case", "family", "solver", "version",
    "claim", "status", "reason",
)  # fmt: skip
Row = dict[str, Any]


def reason_of(error: Exception) -> str:
    """Return the class name and the message of an error on one line."""
    return " ".join(f"{type(error).__name__}: {error}".split())


def as_grid(values: Any, name: str, check: Callable[[Any, str], Any] = as_positive) -> list[Any]:
    """Return a number or a list of numbers as a sorted list of distinct values, each checked by ``check``.

    >>> as_grid([10, 1.0, 1], "lam"), as_grid(0.1, "limits")
    ([1.0, 10.0], [0.1])
    """
    found = sorted({check(value, name) for value in np.atleast_1d(values).tolist()})
    if not found:
        raise InvalidInputError(f"{name!r} must not be empty", repr(values), "Remove the argument")
    return found


def by_name(items: Iterable[Any], what: str) -> dict[str, Any]:
    """Return methods or data sets as a dict by their names.

    Raise an error if there are none, or two of one name.
    """
    found: dict[str, Any] = {}
    for item in items:
        if item.name in found:
            must = f"each of {what!r} must have its own name"
            raise InvalidInputError(must, repr(item.name), "Rename one")
        found[item.name] = item
    if not found:
        raise InvalidInputError(f"{what!r} must not be empty", "none", "Remove the argument")
    return found


def check_columns(table: Any, needed: Iterable[str], function: str) -> None:
    """Raise an error if a table lacks columns that the experiment `function` returns."""
    missing = sorted(set(needed) - set(table.columns))
    if missing:
        must = f"'table' must come from nerm.experiments.{function}"
        got = f"a table without {', '.join(map(repr, missing))}"
        raise InvalidInputError(must, got, f"Pass the table that {function} returned")


class Job(NamedTuple):
    """One unit of work of an experiment, which computes one or more rows of the result table.

    Attributes
    ----------
    places
        One dictionary per row: the values of the first columns, which identify the row in a file.
    work
        ``work(places)`` yields the other columns of each row. A resumed job has only the places whose rows
        are missing.

    >>> def halves(places):
    ...     for place in places:
    ...         yield {"half": [8, "x"][place["k"]] / 2}
    >>> Job(({"k": 0}, {"k": 1}), halves).rows()[0]
    {'k': 0, 'status': 'ok', 'reason': '', 'half': 4.0}
    >>> Job(({"k": 0}, {"k": 1}), halves).rows()[1]["status"]
    'failed'
    """

    places: tuple[Row, ...]
    work: Callable[[Sequence[Row]], Iterator[Row]]

    def rows(self) -> list[Row]:
        """Do the work on one thread; return one row per place.

        After an error, the remaining rows have the status "failed" and the error as `reason`.
        """
        from threadpoolctl import threadpool_limits

        found: list[Row] = []
        try:
            with threadpool_limits(1):  # so that results do not depend on the number of workers
                for row in self.work(self.places):
                    found.append({"status": "ok", "reason": "", **row})
            reason = f"the method gave {len(found)} fits for {len(self.places)} neutrality weights"
        except Exception as error:
            reason = reason_of(error)
        rest = self.failed(reason)[len(found) :]
        return [{**place, **row} for place, row in zip(self.places, found, strict=False)] + rest

    def failed(self, reason: str) -> list[Row]:
        """Return one row per place with the status "failed" and this reason."""
        return [{**place, "status": "failed", "reason": reason, "seconds": np.nan} for place in self.places]


def run_jobs(
    jobs: Sequence[Job],
    measured: Iterable[str],
    settings: Mapping[str, Any],
    *,
    n_jobs: int = 1,
    results: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> Any:
    """Run the jobs whose rows are not in the results file; return the table of all rows.

    Parameters
    ----------
    jobs
        All jobs. They run sorted by repetition and fold, so that the estimate of the remaining time is based
        on all data sets and methods.
    measured
        Names of the columns that the jobs compute. The table has first the columns that identify a row
        (`Job.places`), then these, then status, reason and seconds. A value that a row does not have is nan.
    settings
        The name of the experiment and all its settings, as JSON values. A file with other settings is
        refused.
    n_jobs
        Number of worker processes, -1 for all cores. ``joblib.parallel_config`` sets the backend.
    results
        A .csv file or None. Rows of the file that belong to no job are kept, after the others.
    progress
        Whether to show a progress bar; by default on a terminal only.

    Returns
    -------
    DataFrame
        The rows in the order of the jobs.
    """
    from rich.console import Console
    from rich.progress import track

    if n_jobs != -1:
        as_count(n_jobs, "n_jobs", do="Use -1 for all cores")
    path = None if results is None else Path(results)
    if path is not None and path.suffix != ".csv":
        must = "'results' must name a .csv file"
        raise InvalidInputError(must, repr(str(path)), "Give results='tradeoff.csv', for instance")
    names = list(jobs[0].places[0])
    columns = list(dict.fromkeys([*names, *measured, "status", "reason", "seconds"]))
    rows = {_key(place, names): Row() for job in jobs for place in job.places}  # in the order of the table
    if path is not None and path.is_file():
        rows |= _resumed(path, settings, names)
    left = [[place for place in job.places if not rows[_key(place, names)]] for job in jobs]
    todo = [job._replace(places=tuple(own)) for job, own in zip(jobs, left, strict=True) if own]
    todo.sort(key=lambda job: [job.places[0].get(name, 0) for name in ("repetition", "fold")])

    def saved() -> Any:
        text = _as_csv([row for row in rows.values() if row], columns)
        if path is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            with write_atomically(path, "w", encoding="utf-8", newline="") as file:
                file.write(f"{MARK}{json.dumps({'settings': settings})}\n{text}")
        return _parsed(text)

    saved()
    shown = sys.stderr.isatty() if progress is None else progress
    finished = _results(todo, n_jobs)
    console = Console(stderr=True)
    for found in track(finished, settings["experiment"], len(todo), console=console, disable=not shown):
        rows |= {_key(row, names): row for row in found}
        if path is not None:
            with open(path, "a", encoding="utf-8", newline="") as file:
                file.write(_as_csv(found, columns, header=False))
    return saved()


def _results(jobs: Sequence[Job], n_jobs: int) -> Iterator[list[Row]]:
    """Yield the rows of each job, in order.

    If a worker process dies, the job is run again alone; it has failed if its worker dies again.
    """
    from joblib import Parallel, delayed, effective_n_jobs

    pending, alone = list(jobs), 0  # `alone` is the number of next jobs that each run alone
    while pending:
        # Few jobs are dispatched in advance, so that few are lost if a worker dies.
        pool = Parallel(n_jobs, batch_size=1, pre_dispatch="n_jobs", return_as="generator")
        try:
            for rows in pool([delayed(Job.rows)(job) for job in pending[: 1 if alone else None]]):
                pending.pop(0)
                yield rows
        except Exception as error:
            # If a worker dies, the whole pool ends, and joblib does not say which job was the cause. It is
            # one of the first pending jobs.
            if alone:
                yield pending.pop(0).failed(reason_of(error))
            else:
                alone = effective_n_jobs(n_jobs) + 1
        alone = max(alone - 1, 0)


def read(path: str | os.PathLike[str]) -> tuple[Any, dict[str, Any]]:
    """Return the table of a results file and the settings of its experiment.

    >>> import tempfile
    >>> from nerm.experiments import convergence
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     table = convergence([40], [1.0], repetitions=1, folds=2, results=f"{folder}/figure-1.csv")
    ...     again, settings = read(f"{folder}/figure-1.csv")
    >>> settings["experiment"], settings["folds"]
    ('convergence', 2)
    >>> again.equals(table)  # to the last digit
    True
    """
    where = Path(path)
    if not where.is_file():
        raise InvalidInputError("the results file must exist", f"no file '{where}'", "Check the path")
    with open(where, encoding="utf-8", errors="replace", newline="") as file:
        first = file.readline()
        try:
            settings = dict(json.loads(first.removeprefix(MARK))["settings"])
        except (ValueError, KeyError, TypeError):
            must = f"the file '{where}' must be a results file of nerm"
            got = f"a first line that begins with {first.strip()[:30]!r}"
            raise InvalidInputError(must, got, "Choose another file name; this file is not changed") from None
        return _parsed(file.read()), settings


def _resumed(path: Path, settings: Mapping[str, Any], names: Sequence[str]) -> dict[tuple[str, ...], Row]:
    """Return the rows of a results file by their keys; refuse a file with other settings."""
    table, theirs = read(path)
    for name, ours in json.loads(json.dumps(settings)).items():
        if theirs.get(name) != ours:
            setting = name.replace("_", " ")
            shown = [textwrap.shorten(str(value), 60, placeholder="…") for value in (ours, theirs.get(name))]
            must = f"the results file '{path}' must be of this experiment, with {setting} {shown[0]}"
            got = f"{setting} {shown[1]}"
            raise InvalidInputError(must, got, "Choose another file name; this file is not changed")
    return {_key(row, names): row for row in table.to_dict("records")}


def _key(row: Row, names: Sequence[str]) -> tuple[str, ...]:
    """Return the key of a row: the values of the columns `names`, as text."""
    return tuple(str(row[name]) for name in names)


def _as_csv(rows: Sequence[Row], columns: list[str], header: bool = True) -> str:
    import pandas as pd

    table = pd.DataFrame(rows, columns=columns)
    return str(table.to_csv(index=False, header=header, lineterminator="\n"))


def _parsed(text: str) -> Any:
    """Return the table of a CSV text; empty cells of text columns become "".

    A last line without a line end is dropped, because an interruption may have cut it short.
    """
    import pandas as pd

    whole = io.StringIO(text[: text.rfind("\n") + 1])
    texts = dict.fromkeys(TEXT, str)
    table = pd.read_csv(whole, dtype=texts, keep_default_na=False, na_values=[""])
    return table.fillna({column: "" for column in TEXT if column in table})
