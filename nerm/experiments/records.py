"""The results file of an experiment: appended to as results come, resumed after a kill, refused when foreign.

A CSV file whose first line is a comment with the experiment's settings and their fingerprint. While the experiment runs
the rows stand in the order in which they came; at its end the file is rewritten in sorted order, so that the same
experiment always ends in the same bytes. Seconds, which never repeat, are kept in a file of their own beside it.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from nerm.errors import InvalidInputError

MARK = "# nerm experiment "
# All other columns are numbers.
WORDS = ("dataset", "method", "tuning", "status", "reason", "problem", "case", "family", "solver", "version", "claim")
Row = dict[str, Any]
Key = tuple[str, ...]


def fingerprint(settings: dict[str, Any]) -> str:
    """Return 16 hex digits that stand for these settings.

    >>> fingerprint({"a": 1, "b": 2}) == fingerprint({"b": 2, "a": 1}) != fingerprint({"a": 1, "b": 3})
    True
    """
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()[:16]


class Records:
    """Rows of an experiment, in memory and, where a path is given, in a file that survives a kill.

    `columns` are the columns in order and `keys` those of them that name one task, the unit that is done or not done;
    `rows_per_task` tells how many rows a task has, so that a half-written one is recognised.

    A context: it holds the file's lock, so that two runs cannot write into one file.
    """

    def __init__(
        self,
        path: str | os.PathLike[str] | None,
        settings: dict[str, Any],
        columns: Sequence[str],
        keys: Sequence[str],
        rows_per_task: Mapping[Key, int],
    ) -> None:
        self.columns, self.keys, self.rows_per_task = list(columns), list(keys), rows_per_task
        self.settings, self.fingerprint = settings, fingerprint(settings)
        self.rows: dict[Key, list[Row]] = {}
        self.seconds: dict[Key, list[float]] = {}
        self.path = None if path is None else Path(path)
        self._file: Any = None
        if self.path is not None:
            if self.path.suffix != ".csv":
                raise InvalidInputError(
                    "'results' must name a .csv file", repr(str(path)), "Give results='tradeoff.csv', for instance"
                )
            self.times_path = self.path.with_name(f"{self.path.stem}-times.csv")

    def __enter__(self) -> Records:
        if self.path is None:
            return self
        self.path.parent.mkdir(parents=True, exist_ok=True)
        self._file = open(self.path, "a+b")
        try:
            _lock(self._file, self.path)
            self._recover()
        except BaseException:
            self._file.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        if self._file is not None:
            self._file.close()

    def done(self, key: Key) -> bool:
        """Whether all rows of this task are here."""
        return key in self.rows

    def add(self, key: Key, rows: list[Row], seconds: list[float]) -> None:
        """Keep the rows of one finished task, on disk before anything else happens."""
        assert len(rows) == self.rows_per_task[key], (key, len(rows))
        # As they will be read back: the table is the same whether the experiment was interrupted or not.
        self.rows[key] = [{column: _read(column, _show(row[column])) for column in self.columns} for row in rows]
        self.seconds[key] = seconds
        if self._file is not None:
            # Times first: a task whose rows are in the file then always has its times too.
            with open(self.times_path, "ab") as times:
                times.write(_lines([[*key, k, repr(s)] for k, s in enumerate(seconds)]))
            self._file.write(_lines(self._cells(row) for row in rows))
            self._file.flush()
            os.fsync(self._file.fileno())

    def finish(self) -> None:
        """Rewrite the files in sorted order, which does not depend on workers or interruptions."""
        if self.path is None:
            return
        ordered = [key for key in self.rows_per_task if key in self.rows]
        _replace(self.path, self._head() + _lines(self._cells(row) for key in ordered for row in self.rows[key]))
        head = _lines([[*self.keys, "row", "seconds"]])
        times = [[*key, k, repr(s)] for key in ordered for k, s in enumerate(self.seconds[key])]
        _replace(self.times_path, head + _lines(times))

    def frame(self) -> Any:
        """Return all rows as a DataFrame in sorted order, with a column `seconds`."""
        ordered = [key for key in self.rows_per_task if key in self.rows]
        table = _frame([row for key in ordered for row in self.rows[key]], self.columns)
        table["seconds"] = [s for key in ordered for s in self.seconds[key]]
        return table

    def _head(self) -> bytes:
        about = {"fingerprint": self.fingerprint, "settings": self.settings}
        return f"{MARK}{json.dumps(about, sort_keys=True)}\n".encode() + _lines([self.columns])

    def _cells(self, row: Row) -> list[str]:
        return [_show(row[column]) for column in self.columns]

    def _recover(self) -> None:
        """Read what an earlier run of the same experiment left, drop what it did not finish, refuse anything else."""
        self._file.seek(0)
        content = self._file.read()
        head = self._head()
        # A file cut inside its first two lines holds no result: it is begun anew if it began as ours would.
        if head.startswith(content):
            self._file.truncate(0)
            self._file.write(head)
            self._file.flush()
            _replace(self.times_path, _lines([[*self.keys, "row", "seconds"]]))
            return
        assert self.path is not None
        check_header(self.path, content, self.fingerprint, self.columns)
        # Up to the last line break: a line that a kill cut short is dropped, and its task done again.
        whole = content[: content.rfind(b"\n") + 1].decode()
        by_task: dict[Key, list[Row]] = {}
        for number, cells in enumerate(csv.reader(whole.splitlines()[2:]), start=3):
            if len(cells) != len(self.columns):
                raise InvalidInputError(
                    f"every line of the results file '{self.path}' must have {len(self.columns)} entries",
                    f"{len(cells)} on line {number}",
                    "Delete that line, or start anew with another file",
                )
            row: Row = {column: _read(column, cell) for column, cell in zip(self.columns, cells, strict=True)}
            by_task.setdefault(tuple(str(row[k]) for k in self.keys), []).append(row)
        times = _times(self.times_path, len(self.keys))
        for key, rows in by_task.items():
            if len(rows) == self.rows_per_task.get(key):
                self.rows[key] = rows
                self.seconds[key] = [times.get((*key, str(k)), math.nan) for k in range(len(rows))]
        kept = head + _lines(self._cells(row) for rows in self.rows.values() for row in rows)
        if kept != content:
            self._file.truncate(0)
            self._file.write(kept)
            self._file.flush()


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
    about = check_header(where, content, None, None)
    columns, *lines = csv.reader(content[: content.rfind(b"\n") + 1].decode().splitlines()[1:])
    rows = [{column: _read(column, cell) for column, cell in zip(columns, line, strict=True)} for line in lines]
    return _frame(rows, columns), about["settings"]


def check_header(path: Path, content: bytes, expected: str | None, columns: list[str] | None) -> dict[str, Any]:
    """Return what the first line says; refuse a file that is not ours or belongs to another experiment."""
    first, _, rest = content.partition(b"\n")
    about: dict[str, Any] = {}
    if first.startswith(MARK.encode()):
        try:
            about = json.loads(first[len(MARK) :])
        except ValueError:
            about = {}
    if "fingerprint" not in about:
        raise InvalidInputError(
            f"the file '{path}' must be a results file of nerm",
            f"a first line that begins with {first[:30].decode(errors='replace')!r}",
            "Give another file name: this one is left as it is",
        )
    names = None if columns is None else _lines([columns])
    if expected is not None and (about["fingerprint"] != expected or not rest.startswith(names or b"")):
        raise InvalidInputError(
            f"the results file '{path}' must belong to this experiment, fingerprint {expected}",
            f"one of fingerprint {about['fingerprint']}",
            "Give another file name, or the settings that its first line shows",
        )
    return about


def _frame(rows: list[Row], columns: Sequence[str]) -> Any:
    import pandas as pd

    return pd.DataFrame(rows, columns=list(columns))


def _times(path: Path, keys: int) -> dict[Key, float]:
    """Return seconds by task and row; a half-written last line is passed over."""
    if not path.is_file():
        return {}
    content = path.read_bytes()
    found = {}
    for cells in csv.reader(io.StringIO(content[: content.rfind(b"\n") + 1].decode())):
        if len(cells) == keys + 2 and cells[-1] != "seconds":
            found[tuple(cells[:-1])] = float(cells[-1])
    return found


def _lines(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _show(value: object) -> str:
    """Write a number so that it reads back as the same number; nan is empty, a sentence stays on one line."""
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    if isinstance(value, str):
        return " ".join(value.split())
    return str(value)


def _read(column: str, cell: str) -> Any:
    if column in WORDS:
        return cell
    return math.nan if cell == "" else int(cell) if cell.lstrip("-").isdigit() else float(cell)


def _replace(path: Path, content: bytes) -> None:
    """Write a whole file or nothing of it."""
    part = path.with_name(path.name + ".part")
    with open(part, "wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(part, path)


def _lock(file: Any, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on Windows, where an open file is not replaced from outside anyway
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        raise InvalidInputError(
            f"the results file '{path}' must not be in use",
            "a file that another run is writing",
            "Wait for that run, or give another file name",
        ) from None
