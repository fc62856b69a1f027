"""The results file of an experiment: appended to as results come, resumed after a kill, refused when foreign.

A CSV file whose first line is a comment with the experiment's settings. While the experiment runs the rows
stand in the order in which they came; at its end the file is rewritten in sorted order, so that the same
experiment always ends in the same bytes. Seconds, which never repeat, are kept in a file of their own beside
it.
"""

import csv
import io
import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from nerm.errors import InvalidInputError
from nerm.files import append_whole, write_atomically

MARK = "# nerm experiment "
# What a row is about, and what came of it, in words; all other columns are numbers and truth values.
ABOUT = ("dataset", "measure", "method", "level", "tuning", "problem", "case", "family", "solver", "version")
WORDS = (*ABOUT, "claim", "status", "reason")
Row = dict[str, Any]
Key = tuple[str, ...]
Cells = list[str]


@dataclass(eq=False)
class Records:
    """Rows of an experiment, in memory and, where a path is given, in a file that survives a kill.

    Attributes
    ----------
    results
        A .csv file, or None.
    settings
        What makes this experiment another than others; JSON can hold it.
    columns, keys
        The columns in order, and those of them that name one task, the unit that is done or not done.
    sizes
        How many rows each task has, in the order of the table, so that a half-written one is recognised.
        None: one row each, in sorted order, and what the file has of other tasks stays.
    cells
        The rows of each finished task as they stand in the file, the seconds last.
    """

    results: str | os.PathLike[str] | None
    settings: Mapping[str, Any]
    columns: Sequence[str]
    keys: Sequence[str]
    sizes: Mapping[Key, int] | None = None
    cells: dict[Key, list[Cells]] = field(default_factory=dict, init=False)
    _file: Any = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.path = None if self.results is None else Path(self.results)
        if self.path is not None:
            if self.path.suffix != ".csv":
                must = "'results' must name a .csv file"
                raise InvalidInputError(
                    must, repr(str(self.path)), "Give results='tradeoff.csv', for instance"
                )
            self.times_path = self.path.with_name(f"{self.path.stem}-times.csv")

    @contextmanager
    def opened(self) -> Iterator[Self]:
        """Hold the file and its lock, so that two runs cannot write into one; put it in order when all went well."""
        if self.path is None:
            yield self
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with open(self.path, "a+b") as self._file:
            _lock(self._file, self.path)
            try:
                self._recover()
            except OSError:  # no room for its first lines: what is empty goes again
                if not os.fstat(self._file.fileno()).st_size:
                    self.path.unlink()
                    self.times_path.unlink(missing_ok=True)
                raise
            yield self
            with write_atomically(self.path) as file:
                file.write(self._head() + self._lines(self._ordered()))
            self._write_times(self._ordered())

    def add(self, key: Key, rows: Sequence[Row]) -> None:
        """Keep the rows of one finished task, on disk before anything else happens.

        A row has its `seconds` beside the columns; a column that it lacks is nan.
        """
        columns = [*self.columns, "seconds"]
        self.cells[key] = [[_shown(row.get(column, math.nan)) for column in columns] for row in rows]
        assert len(rows) == (1 if self.sizes is None else self.sizes[key]), (key, len(rows))
        if self._file is not None:
            # Times first: a task whose rows are in the file then always has its times too.
            with open(self.times_path, "ab") as times:
                append_whole(times, self._times([key]))
            append_whole(self._file, self._lines([key]))

    def frame(self) -> Any:
        """Return all rows as a DataFrame in the table's order, with a column `seconds`."""
        return _frame(
            [cells for key in self._ordered() for cells in self.cells[key]], [*self.columns, "seconds"]
        )

    def _ordered(self) -> list[Key]:
        return [
            key for key in (sorted(self.cells) if self.sizes is None else self.sizes) if key in self.cells
        ]

    def _head(self) -> bytes:
        settings = json.dumps({"settings": self.settings})
        return f"{MARK}{settings}\n".encode() + _as_csv([self.columns])

    def _lines(self, keys: Iterable[Key]) -> bytes:
        return _as_csv(cells[:-1] for key in keys for cells in self.cells[key])

    def _times(self, keys: Iterable[Key]) -> bytes:
        return _as_csv([*key, k, cells[-1]] for key in keys for k, cells in enumerate(self.cells[key]))

    def _write_times(self, keys: Iterable[Key]) -> None:
        with write_atomically(self.times_path) as file:
            file.write(_as_csv([[*self.keys, "row", "seconds"]]) + self._times(keys))

    def _recover(self) -> None:
        """Read what an earlier run of the same experiment left, drop what it did not finish, refuse anything else."""
        assert self.path is not None
        self._file.seek(0)
        content, head = self._file.read(), self._head()
        # A file cut inside its first two lines holds no result: it is begun anew if it began as ours would.
        if not head.startswith(content):
            columns, *lines = _whole_lines(content) or [[]]
            self._check({**_settings_in(self.path, content), "columns": columns})
            for number, cells in enumerate(lines, start=3):
                if len(cells) != len(columns):
                    must = f"every line of the results file '{self.path}' must have {len(columns)} entries"
                    got = f"{len(cells)} on line {number}"
                    raise InvalidInputError(must, got, "Delete that line, or start anew with another file")
                self.cells.setdefault(tuple(cells[columns.index(name)] for name in self.keys), []).append(
                    cells
                )
            if self.sizes is not None:
                self.cells = {
                    key: rows for key, rows in self.cells.items() if len(rows) == self.sizes.get(key)
                }
        lines = _whole_lines(self.times_path.read_bytes()) if self.cells and self.times_path.is_file() else []
        times = {tuple(place): seconds for *place, seconds in lines}
        for key, rows in self.cells.items():
            for k, cells in enumerate(rows):
                cells.append(times.get((*key, str(k)), ""))
        self._write_times(self.cells)
        kept = head + self._lines(self.cells)
        if kept != content:
            whole = len(kept) if content.startswith(kept) else 0
            self._file.truncate(whole)
            append_whole(self._file, kept[whole:])

    def _check(self, theirs: dict[str, Any]) -> None:
        """Refuse the file of another experiment, and say in what it differs."""
        for name, ours in json.loads(json.dumps({**self.settings, "columns": self.columns})).items():
            if theirs.get(name) != ours:
                what = name.replace("_", " ")
                must = f"the results file '{self.path}' must be one of {what} {_short(ours)}"
                got = f"one of {what} {_short(theirs.get(name))}"
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
    settings = _settings_in(where, content)
    columns, *lines = _whole_lines(content)
    return _frame(lines, columns), settings


def _settings_in(path: Path, content: bytes) -> dict[str, Any]:
    """Return the settings that the first line holds; refuse a file that is not ours."""
    first = content.partition(b"\n")[0].decode(errors="replace")
    try:
        return dict(json.loads(first.removeprefix(MARK))["settings"])
    except (ValueError, KeyError, TypeError):
        must = f"the file '{path}' must be a results file of nerm"
        got = f"a first line that begins with {first[:30]!r}"
        raise InvalidInputError(must, got, "Give another file name: this one is left as it is") from None


def _short(value: object) -> str:
    return text if len(text := str(value)) <= 60 else f"{text[:60]}…"


def _whole_lines(content: bytes) -> list[Cells]:
    """Return the cells of each line but the first; a last line that a kill cut short is dropped."""
    return list(csv.reader(content[: content.rfind(b"\n") + 1].decode().splitlines()[1:]))


def _as_csv(rows: Iterable[Sequence[object]]) -> bytes:
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue().encode()


def _frame(lines: Sequence[Cells], columns: Sequence[str]) -> Any:
    import pandas as pd

    table = [[_value(column, cell) for column, cell in zip(columns, cells, strict=True)] for cells in lines]
    return pd.DataFrame(table, columns=list(columns))


def _shown(value: object) -> str:
    """Write a number so that it reads back as the same number; nan is empty, a sentence stays on one line."""
    if isinstance(value, float):
        return "" if math.isnan(value) else repr(float(value))
    return " ".join(str(value).split())


def _value(column: str, cell: str) -> Any:
    if column in WORDS:
        return cell
    if cell in ("True", "False"):
        return cell == "True"
    return math.nan if cell == "" else int(cell) if cell.lstrip("-").isdigit() else float(cell)


def _lock(file: Any, path: Path) -> None:
    try:
        import fcntl
    except ImportError:  # not on Windows, where an open file is not replaced from outside anyway
        return
    try:
        fcntl.flock(file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        must = f"the results file '{path}' must not be in use"
        got = "a file that another run is writing"
        raise InvalidInputError(must, got, "Wait for that run, or give another file name") from None
