"""Reading tables into columns of words, with the line of each row kept for messages; all at once or in parts."""

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Self

import numpy as np

from nerm.errors import InvalidInputError, UnknownNameError
from nerm.tables.formats import Opened, opened
from nerm.tables.formats import read_text as read_text
from nerm.tables.header import check_names, header_of
from nerm.tables.numbers import MARKS, TIME, decimal_marks, numbers_in, usual_mark
from nerm.tables.opening import listed, quoted, word_of
from nerm.tables.separated import Layout, text_records
from nerm.typing import Array, Bools, Floats, Ints
from nerm.validation import as_pandas, as_positive, check_known

MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "n/a", "#N/A", "<NA>", "NaT")
MEMORY = 2.0  # GB that a table may take
BELOW = 3  # rows that are looked at to understand the header
CELL = 64  # bytes of a cell, besides its letters, until it is a number of the model
PART, LEAST_ROWS = (
    1_000_000,
    1000,
)  # cells that are read at once where a table is read in parts, and rows at least


@dataclass(frozen=True, eq=False)
class TextTable:
    r"""Columns of words by name, all of one length n.

    Attributes
    ----------
    source
        What messages call it.
    names, columns
        The names in order, and the words of each column, (n,).
    lines
        In which line of the file each row starts, (n,).
    places
        Which of the file's rows each one is, counted from 1 and with the rows that were skipped, (n,).
    skipped
        How many rows were left out.
    marks
        The decimal mark of columns whose numbers are not written as Python does.
    notes
        What was understood of the file.

    Examples
    --------
    >>> table = parse_table("age,sex\n31,f\n\n?,m\n", "people.csv")
    >>> table["age"].tolist(), table.lines.tolist(), table.places.tolist()
    (['31', '?'], [2, 4], [1, 2])
    >>> table.rows(table["sex"] == "m")["age"].tolist()
    ['?']
    >>> table["income"]
    Traceback (most recent call last):
        ...
    nerm.errors.UnknownNameError: a column of people.csv must be one of 'age', 'sex'. Got 'income'. Name a
    column ...
    """

    source: str
    names: tuple[str, ...]
    columns: dict[str, Array]
    lines: Ints
    places: Ints
    skipped: int = 0
    marks: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, name: str) -> Array:
        if name not in self.columns:
            check_known(name, f"a column of {self.source}", self.names, "Name a column of the file")
        return self.columns[name]

    def numbers(self, name: str) -> Floats:
        """Return the numbers of a column as they are written in this file, nan for words, (n,)."""
        words, mark = self[name], self.marks.get(name)
        numbers = numbers_in(words, mark)
        strange = np.isnan(numbers)
        usual = usual_mark(self.marks)
        if mark is None and usual and strange.any():  # a part of a file may be the first to show the mark
            numbers[strange] = numbers_in(words[strange], usual)
        return numbers

    def rows(self, kept: Bools | Ints) -> Self:
        """Return the table of these rows: a mask (n,), or their numbers."""
        columns = {name: column[kept] for name, column in self.columns.items()}
        return replace(self, columns=columns, lines=self.lines[kept], places=self.places[kept])


def missing_in(column: Array, tokens: Sequence[str] = MISSING) -> Bools:
    """Return which entries say that nothing is known.

    >>> missing_in(np.array(["1", "?", ""], dtype=object))
    array([False,  True,  True])
    """
    known = frozenset(tokens)
    return np.fromiter((word in known for word in column), dtype=bool, count=len(column))


def read_table(
    path: Any,
    *,
    encoding: str | None = None,
    sheet: str | None = None,
    memory: float = MEMORY,
    **options: Any,
) -> TextTable:
    r"""Read a table: CSV, Excel, Parquet, Feather or JSON lines, plain or compressed.

    Parameters
    ----------
    path
        Of the file; "-" is standard input.
    encoding
        Of text; UTF-8 by default, and UTF-16 where the file says so.
    sheet
        Of a workbook, by default the first.
    memory
        How many GB the table may take; one that would take more is refused.
    options
        As for `Layout`.

    Examples
    --------
    >>> import gzip, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv.gz"
    ...     _ = path.write_bytes(gzip.compress(b"age;sex\n31;f\n"))
    ...     read_table(path).columns["sex"].tolist()
    ['f']
    """
    return next(read_parts(path, encoding=encoding, sheet=sheet, memory=memory, whole=True, **options))


def read_parts(
    path: Any,
    *,
    encoding: str | None = None,
    sheet: str | None = None,
    memory: float = MEMORY,
    whole: bool = False,
    progress: Callable[[float], None] = lambda _: None,
    **options: Any,
) -> Iterator[TextTable]:
    r"""Read a table in parts of about a million cells, so that its length does not matter.

    Parameters
    ----------
    path, encoding, sheet, memory, options
        As for `read_table`.
    whole
        Whether to read all of it as one part.
    progress
        Told the share of the file that was read.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "numbers.csv"
    ...     _ = path.write_text("a,b\n" + "1,2\n" * 600_000)
    ...     [len(part) for part in read_parts(path)]
    [500000, 100000]
    """
    most = int(1e9 * as_positive(memory, "--memory"))
    with opened(path, encoding, sheet, most) as (file, share):
        source = "standard input" if str(path) == "-" else str(path).replace("\\", "/").rpartition("/")[2]
        for table in _tables(file, source, Layout(**options), most, whole):
            progress(share())
            yield table


def parse_table(text: str, source: str, **options: Any) -> TextTable:
    r"""Parse separated text.

    Parameters
    ----------
    text, source
        The text, and what messages call it.
    options
        As for `Layout`.

    Examples
    --------
    >>> text = "age sex\n31 f\n52 m extra\n47 f\n"
    >>> table = parse_table(text, "people.txt", skip_bad_rows=True)
    >>> table["age"].tolist(), table.skipped
    (['31', '47'], 1)
    >>> parse_table(text, "people.txt")
    Traceback (most recent call last):
        ...
    nerm.errors.InvalidInputError: every row of 'people.txt' must have 2 fields, one a column. Got 1 of 3 rows
    ...
    """
    return next(
        _tables(Opened(io.StringIO(text, newline="")), source, Layout(**options), len(text) * 1000, True)
    )


def table_of(frame: Any, source: str = "the table") -> TextTable:
    """Return a DataFrame of pandas, polars or pyarrow as a table of words.

    >>> import pandas as pd
    >>> table_of(pd.DataFrame({"age": [31.0, None], "sex": ["f", "m"]}))["age"].tolist()
    ['31', '']
    """
    frame = as_pandas(frame)
    if not hasattr(frame, "iloc"):
        got = type(frame).__name__
        raise InvalidInputError(
            f"{source} must be a DataFrame of pandas, polars or pyarrow", got, "Convert it"
        )
    names = [str(name) for name in frame.columns]
    columns = [
        np.array([word_of(v) for v in frame.iloc[:, j].tolist()], dtype=object) for j in range(len(names))
    ]
    places = np.arange(1, len(frame) + 1)
    return TextTable(source, tuple(names), dict(zip(names, columns, strict=True)), places, places)


def _tables(file: Opened, source: str, layout: Layout, most: int, whole: bool) -> Iterator[TextTable]:
    """Yield the parts of an open table."""
    decimal = None if layout.decimal is None else MARKS.get(layout.decimal, layout.decimal)
    if decimal not in (None, *MARKS.values()):
        raise UnknownNameError("'decimal'", layout.decimal, MARKS)
    separator, notes = None, file.notes
    if file.rows is None:
        separator, records, notes = text_records(file.lines, layout, source)
    else:
        records = (row for row in file.rows if file.named or row[0] > layout.skip_lines)
    first = next(records, None)
    if first is None:
        raise InvalidInputError(
            f"{source!r} must hold a header and rows", "an empty file", "Check how it was written"
        )
    headed = file.named or (layout.header and layout.columns is None)
    if layout.columns is not None:
        names = list(layout.columns)
    elif headed:
        below = list(islice(records, BELOW))
        names, more = header_of(first[1], [words for _, words in below], source)
        notes, records = (*notes, *more), chain(below, records)
    else:
        names = [f"c{j + 1}" for j in range(len(first[1]))]
    if not headed:
        records = chain([first], records)
    check_names(names, source, given=layout.columns is not None)
    if file.rows is not None:
        records = ((place, words + [""] * (len(names) - len(words))) for place, words in records)
    rows, start, marks = (None if whole else max(LEAST_ROWS, PART // len(names))), 0, None
    while True:
        columns, lines, places, bad = _collected(names, islice(records, rows), start, source, most)
        read = len(lines) + len(bad)
        if start and not read:
            return
        _check_rows(names, read, bad, source, layout.skip_bad_rows)
        marks = decimal_marks(columns, MISSING, decimal, separator) if marks is None else marks
        said = (*notes, *_decimal_notes(columns, marks)) if not start else ()
        yield TextTable(source, tuple(names), columns, lines, places, len(bad), marks, said)
        start += read
        if rows is None or read < rows:
            return


def _collected(
    names: Sequence[str], records: Iterable[tuple[int, list[str]]], start: int, source: str, most: int
) -> tuple[dict[str, Array], Ints, Ints, list[tuple[int, int]]]:
    """Return columns, lines and places of the rows that have a field a column, and (line, fields) of the others."""
    columns: list[list[str]] = [[] for _ in names]
    lines, places, bad = [], [], []
    words: dict[str, str] = {}  # a word that is seen again is the same object
    size = 0
    for place, (line, record) in enumerate(records, start=start + 1):
        if len(record) != len(names):
            bad.append((line, len(record)))
            continue
        size += CELL * len(record) + sum(map(len, record))
        if size > most:
            must = f"{source!r} must fit into {most / 1e9:g} GB of memory"
            do = "Use fewer rows or columns, or allow more with --memory"
            raise InvalidInputError(must, f"more with row {place:,}", do)
        lines.append(line)
        places.append(place)
        for column, word in zip(columns, record, strict=True):
            column.append(words.setdefault(word, word))
    arrays = {name: np.array(column, dtype=object) for name, column in zip(names, columns, strict=True)}
    return arrays, np.array(lines, dtype=int), np.array(places, dtype=int), bad


def _check_rows(
    names: Sequence[str], read: int, bad: list[tuple[int, int]], source: str, skip_bad_rows: bool
) -> None:
    """Refuse rows without a field for every column, and a table without rows."""
    if bad and (not skip_bad_rows or len(bad) == read):
        line, fields = bad[0]
        share = f"{len(bad)} of {read} rows ({100 * len(bad) / read:.3g} %)"
        got = f"{share} with another number, first {fields} in line {line}"
        do = "Correct them, name the columns with --columns, or leave such rows out with --skip-bad-rows"
        raise InvalidInputError(
            f"every row of {source!r} must have {len(names)} fields, one a column", got, do
        )
    if not read:
        raise InvalidInputError(
            f"{source!r} must hold at least one row", "only a header", "Check how it was written"
        )


def _decimal_notes(columns: Mapping[str, Array], marks: Mapping[str, str]) -> Iterator[str]:
    """Say which columns were read with which decimal mark, or as times, with an example."""
    said = {mark: (f"with a decimal {word}", "; --decimal says otherwise") for word, mark in MARKS.items()}
    for mark, (how, advice) in (said | {TIME: ("as times in hours", "")}).items():
        names = [name for name, its in marks.items() if its == mark]
        if names:
            column = columns[names[0]]
            plain, read = numbers_in(column), numbers_in(column, mark)
            odd = int(np.flatnonzero(~np.isnan(read) & (read != plain))[0])
            yield f"{listed(names)} read {how} ({quoted(column[odd])} is {read[odd]:.12g}){advice}"
