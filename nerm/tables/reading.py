"""Read tables into columns of words, all at once or in parts; each row keeps its line for messages."""

import csv
import io
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from typing import Any, Self

import numpy as np

from nerm.errors import InvalidInputError, UnknownNameError
from nerm.tables.formats import CELL_BYTES, Opened, Record, Source, opened
from nerm.tables.values import (
    MARKS,
    decimal_marks,
    listed,
    numbers_in,
    quoted,
    usual_mark,
    word_of,
)
from nerm.typing import Array, Bools, Floats, Ints
from nerm.validation import as_pandas, as_positive, check_known

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "pipe": "|"}
MEMORY = 2.0  # GB that a table may take
PART_CELLS = 1_000_000  # of a table that is read in parts
HEAD_ROWS = 1000  # from which the separator and the header are found


@dataclass(frozen=True)
class Layout:
    """How a table is to be read.

    Parameters
    ----------
    separator
        One character or a name in `SEPARATORS`; None takes the one that splits the first lines alike.
    columns, header
        Names for a file without a header line; `header=False` alone names them c1, c2, ….
    skip_lines
        Lines to leave out at the top, such as a comment.
    skip_bad_rows
        Leave out rows with another number of fields instead of refusing the file; `skipped` counts them.
    decimal
        "comma" or "point"; None finds out, column by column.
    """

    separator: str | None = None
    columns: Sequence[str] | None = None
    header: bool = True
    skip_lines: int = 0
    skip_bad_rows: bool = False
    decimal: str | None = None


@dataclass(frozen=True, eq=False)
class TextTable:
    r"""Columns of words by name, all of one length n.

    Attributes
    ----------
    source
        Its name in messages.
    names, columns
        The names in order, and the words of each column, (n,).
    lines
        The line of the file in which each row starts, (n,).
    places
        The number of each row in the file, counted from 1 and with the rows that were skipped, (n,).
    skipped
        How many rows were left out.
    marks
        The decimal mark of columns whose numbers are not written as Python does.
    notes
        On what was found out about the file.

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


def read_table(path: Any, **options: Any) -> TextTable:
    r"""Read a table: CSV, Excel, Parquet, Feather or JSON lines, plain or compressed.

    Parameters
    ----------
    path
        Of the file; "-" is standard input.
    options
        As for `read_parts`.

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
    return next(read_parts(path, rows=0, **options))


def read_parts(
    path: Any,
    *,
    encoding: str | None = None,
    sheet: str | None = None,
    memory: float = MEMORY,
    rows: int | None = None,
    progress: Callable[[float], None] = lambda _: None,
    **options: Any,
) -> Iterator[TextTable]:
    r"""Read a table in parts, so that a long file needs no more memory than a short one.

    Parameters
    ----------
    path
        Of the file; "-" is standard input.
    encoding
        Of text; UTF-8 by default, and UTF-16 where the file has its byte order mark.
    sheet
        Of a workbook, by default the first.
    memory
        How many GB a part may take; a larger one is refused.
    rows
        Of a part; None takes about a million cells, 0 the whole table.
    progress
        Called with the share of the file that was read.
    options
        As for `Layout`.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "numbers.csv"
    ...     _ = path.write_text("a,b\n" + "1,2\n" * 5)
    ...     [len(part) for part in read_parts(path, rows=3)]
    [3, 2]
    """
    name = "standard input" if str(path) == "-" else str(path).replace("\\", "/").rpartition("/")[2]
    source = Source(name, encoding, sheet, int(1e9 * as_positive(memory, "--memory")))
    with opened(path, source) as (file, share):
        for table in _tables(file, source, Layout(**options), rows):
            progress(share())
            yield table


def parse_table(text: str, source: str, **options: Any) -> TextTable:
    r"""Parse separated text.

    Parameters
    ----------
    text, source
        The text, and its name in messages.
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
    nerm.errors.InvalidInputError: every row of 'people.txt' must have 2 fields, one per column. Got 1 of 3
    ...
    """
    lines = io.StringIO(text, newline="")
    memory = int(1e9 * MEMORY) + CELL_BYTES * len(text)
    return next(_tables(Opened(lines), Source(source, None, None, memory), Layout(**options), 0))


def table_of(frame: Any, source: str = "the table") -> TextTable:
    """Return a DataFrame of pandas, polars or pyarrow as a table of words.

    >>> import pandas as pd
    >>> table_of(pd.DataFrame({"age": [31.0, None], "sex": ["f", "m"]}))["age"].tolist()
    ['31', '']
    """
    frame = as_pandas(frame)
    if not hasattr(frame, "iloc"):
        must = f"{source} must be a DataFrame of pandas, polars or pyarrow"
        raise InvalidInputError(must, type(frame).__name__, "Convert it")
    columns = {
        str(name): np.array([word_of(v) for v in frame.iloc[:, j].tolist()], dtype=object)
        for j, name in enumerate(frame.columns)
    }
    places = np.arange(1, len(frame) + 1)
    return TextTable(source, tuple(columns), columns, places, places)


def _tables(file: Opened, source: Source, layout: Layout, part: int | None) -> Iterator[TextTable]:
    """Yield the parts of an open table."""
    decimal = None if layout.decimal is None else MARKS.get(layout.decimal, layout.decimal)
    if decimal not in (None, *MARKS.values()):
        raise UnknownNameError("'decimal'", layout.decimal, MARKS)
    separator = None
    if file.records is None:
        separator, records = _text_records(file.lines, layout, source)
    else:
        records = (record for record in file.records if file.named or record[0] > layout.skip_lines)
    names, records, notes = _header(records, file, layout, source)
    if file.records is not None:
        records = ((line, words + [""] * (len(names) - len(words))) for line, words in records)
    rows = 1 + PART_CELLS // len(names) if part is None else part or None
    start = 0
    marks: Mapping[str, str] = {}
    while True:
        table, bad = _collected(names, islice(records, rows), start, source)
        read = len(table) + len(bad)
        if start and not read:
            return
        _check_rows(names, read, bad, source, layout.skip_bad_rows)
        if not start:
            marks = decimal_marks(table.columns, decimal, separator)
            notes = (*file.notes, *notes, *_decimal_notes(table.columns, marks))
        yield replace(table, skipped=len(bad), marks=marks, notes=() if start else notes)
        start += read
        if rows is None or read < rows:
            return


def _text_records(lines: Iterator[str], layout: Layout, source: Source) -> tuple[str, Iterator[Record]]:
    """Return the separator of a text and its records, blank lines left out."""
    skipped = layout.skip_lines
    lines = islice(lines, skipped, None)
    first = next(lines, None)
    while first is not None and not first.strip():
        first = next(lines, None)
        skipped += 1
    if first is None:
        return ",", iter(())
    sample = [first, *islice(lines, HEAD_ROWS)]
    mark = _separator(layout.separator, [line for line in sample if line.strip()], source.name)
    return mark, _fields(chain(sample, lines), mark, source, skipped)


def _separator(given: str | None, sample: Sequence[str], name: str) -> str:
    """Return the separator: the given one, or the one that splits the first lines alike."""
    if given is not None:
        mark = SEPARATORS.get(given, given)
        if len(mark) != 1:
            do = "Use one of these names, or one character"
            raise UnknownNameError("'separator'", given, SEPARATORS, do)
        return mark
    counts = {mark: [line.count(mark) for line in sample] for mark in ("\t", ";", "|", ",")}
    for mark, found in counts.items():
        if len(found) > 1 and found[0] and len(set(found)) == 1:
            return mark
    best = max(counts, key=lambda mark: counts[mark][0])
    if counts[best][0]:
        return best
    if len(sample[0].split()) > 1:
        return " "
    got = "one column" if len(sample) > 1 else f"only {sample[0].strip()[:40]!r}"
    do = "Separate columns by commas, or name the separator with --separator"
    raise InvalidInputError(f"{name!r} must have at least two columns", got, do)


def _fields(lines: Iterator[str], mark: str, source: Source, skipped: int) -> Iterator[Record]:
    """Yield the fields of each line that is not blank, with its number; runs of spaces separate once."""
    if mark == " ":
        yield from ((n, line.split()) for n, line in enumerate(lines, start=1 + skipped) if line.strip())
        return
    reader = csv.reader(lines, delimiter=mark, skipinitialspace=True, strict=True)
    start = 1 + skipped
    try:
        for record in reader:
            if record and (len(record) > 1 or record[0].strip()):
                yield start, [field.strip() for field in record]
            start = reader.line_num + 1 + skipped
    except csv.Error as error:
        raise source.refuse("be well-formed CSV", f"line {start}: {error}", "Correct its quotes") from None


def _header(
    records: Iterator[Record], file: Opened, layout: Layout, source: Source
) -> tuple[list[str], Iterator[Record], tuple[str, ...]]:
    """Return the names of the columns, the records below the header, and notes on names that were made up.

    A column of row names often has none: pandas writes an empty name for it, R leaves its field out.
    """
    first = next(records, None)
    if first is None:
        raise source.refuse("hold a header and rows", "an empty file", "Check how it was written")
    if layout.columns is not None and not file.named:
        names = list(layout.columns)
        _check_names(names, "--columns")
        return names, chain([first], records), ()
    if not (layout.header or file.named):
        names = [f"c{j + 1}" for j in range(len(first[1]))]
        return names, chain([first], records), ()
    names = [name.strip() for name in first[1]]
    below = list(islice(records, HEAD_ROWS))
    if below and all(len(row) == len(names) + 1 for _, row in below):
        names = ["", *names] if any(row[-1].strip() for _, row in below) else [*names, ""]
    blank = [j for j, name in enumerate(names) if not name]
    if len(blank) > len(names) / 2:
        must = f"name its columns in the header, line {first[0]}"
        do = "Leave out lines above it with --skip-lines, or use --no-header if the first line is data"
        raise source.refuse(must, f"no name for {len(blank)} of {len(names)}", do)
    for j in blank:
        name = f"c{j + 1}"
        while name in names:
            name += "_"
        names[j] = name
    _check_names(names, f"the header of {source.name!r}")
    notes = tuple(f"column {j + 1} has no name in the header and is called {names[j]!r}" for j in blank)
    return names, chain(below, records), notes


def _check_names(names: list[str], where: str) -> None:
    """Refuse tables of one column, and columns without a name or with the same one."""
    if len(names) < 2:
        must = f"{where} must name at least two columns"
        raise InvalidInputError(must, "one column", "Name the separator with --separator")
    if "" in names:
        must = f"{where} must name every column"
        raise InvalidInputError(must, f"no name for column {names.index('') + 1}", "Add it")
    name, times = Counter(names).most_common(1)[0]
    if times > 1:
        must = f"{where} must name every column once"
        raise InvalidInputError(must, f"{name!r} {times} times", "Rename one")


def _collected(
    names: Sequence[str], records: Iterator[Record], start: int, source: Source
) -> tuple[TextTable, list[tuple[int, int]]]:
    """Return the rows that have one field per column as a table, and (line, fields) of the others."""
    columns: list[list[str]] = [[] for _ in names]
    lines: list[int] = []
    places: list[int] = []
    bad: list[tuple[int, int]] = []
    words: dict[str, str] = {}  # a word that is seen again is the same object
    size = 0
    for place, (line, record) in enumerate(records, start=start + 1):
        if len(record) != len(names):
            bad.append((line, len(record)))
            continue
        size += CELL_BYTES * len(record) + sum(map(len, record))
        if size > source.most:
            raise source.too_large(f"more with row {place:,}")
        lines.append(line)
        places.append(place)
        for column, word in zip(columns, record, strict=True):
            column.append(words.setdefault(word, word))
    arrays = {name: np.array(column, dtype=object) for name, column in zip(names, columns, strict=True)}
    table = TextTable(source.name, tuple(names), arrays, np.array(lines, int), np.array(places, int))
    return table, bad


def _check_rows(
    names: Sequence[str], read: int, bad: list[tuple[int, int]], source: Source, skip_bad_rows: bool
) -> None:
    """Refuse rows without one field per column, and a table without rows."""
    if bad and (not skip_bad_rows or len(bad) == read):
        line, fields = bad[0]
        share = f"{len(bad)} of {read} rows ({100 * len(bad) / read:.3g} %)"
        must = f"every row of {source.name!r} must have {len(names)} fields, one per column"
        do = "Correct them, name the columns with --columns, or leave such rows out with --skip-bad-rows"
        raise InvalidInputError(must, f"{share} with another number, first {fields} in line {line}", do)
    if not read:
        raise source.refuse("hold at least one row", "only a header", "Check how it was written")


def _decimal_notes(columns: Mapping[str, Array], marks: Mapping[str, str]) -> Iterator[str]:
    """Yield which columns were read with which decimal mark, with an example."""
    for word, mark in MARKS.items():
        if names := [name for name, its in marks.items() if its == mark]:
            column = columns[names[0]]
            plain, read = numbers_in(column), numbers_in(column, mark)
            odd = int(np.flatnonzero(~np.isnan(read) & (read != plain))[0])
            shown = f"{quoted(column[odd])} is {read[odd]:.12g}"
            yield f"{listed(names)} read with a decimal {word} ({shown}); --decimal says otherwise"
