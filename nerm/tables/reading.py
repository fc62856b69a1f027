"""Reading separated text into columns of words, with the line of each row kept for messages."""

import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import numpy as np

from nerm.datasets.published_files import read_bytes
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.typing import Array, Bools, Ints
from nerm.validation import check_known

MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL")
SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "pipe": "|"}


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
    nerm.errors.UnknownNameError: a column of people.csv must be one of 'age', 'sex'. Got 'income'. Name a column ...
    """

    source: str
    names: tuple[str, ...]
    columns: dict[str, Array]
    lines: Ints
    places: Ints
    skipped: int = 0

    def __len__(self) -> int:
        return len(self.lines)

    def __getitem__(self, name: str) -> Array:
        check_known(name, f"a column of {self.source}", self.names, "Name a column of the file")
        return self.columns[name]

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


def read_table(path: Any, **options: Any) -> TextTable:
    r"""Read a CSV file, plain or gzip'ed, UTF-8. Options as for `parse_table`.

    >>> import gzip, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "people.csv.gz"
    ...     _ = path.write_bytes(gzip.compress(b"age;sex\n31;f\n"))
    ...     read_table(path).columns["sex"].tolist()
    ['f']
    """
    return parse_table(read_text(path), Path(path).name, **options)


def read_text(path: Any) -> str:
    """Return the text of a file, unzipped where it is gzip'ed; anything but UTF-8 is refused."""
    where = Path(path)
    try:
        content = read_bytes(where)
    except OSError as error:
        said = {
            FileNotFoundError: ("the file must exist", f"no file {str(path)!r}", "Check its name and folder"),
            IsADirectoryError: ("the table must be a file", f"the folder {str(path)!r}", "Name a file in this folder"),
        }
        other = ("the file must be readable", f"{error.strerror} for {str(path)!r}", "Check its permissions")
        raise InvalidInputError(*said.get(type(error), other)) from None
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        must = f"{where.name!r} must be UTF-8 text"
        got = f"byte 0x{content[error.start]:02x} in line {line}"
        raise InvalidInputError(must, got, "Save it as UTF-8, for instance with: iconv -f LATIN1 -t UTF-8") from None


def parse_table(
    text: str,
    source: str,
    *,
    separator: str | None = None,
    columns: Sequence[str] | None = None,
    header: bool = True,
    skip_lines: int = 0,
    skip_bad_rows: bool = False,
) -> TextTable:
    r"""Parse separated text.

    Parameters
    ----------
    text, source
        The text, and what messages call it.
    separator
        One character or a name in `SEPARATORS`; None takes the one that splits the first line most, spaces last.
    columns, header
        Names for a file without a header line; `header=False` alone names them c1, c2, ….
    skip_lines
        Lines to leave out at the top, such as a comment.
    skip_bad_rows
        Leave out rows with another number of fields instead of refusing the file; `TextTable.skipped` counts them.

    Examples
    --------
    >>> text = "age sex\n31 f\n52 m extra\n47 f\n"
    >>> table = parse_table(text, "people.txt", skip_bad_rows=True)
    >>> table["age"].tolist(), table.skipped
    (['31', '47'], 1)
    >>> parse_table(text, "people.txt")
    Traceback (most recent call last):
        ...
    nerm.errors.InvalidInputError: every row of 'people.txt' must have 2 fields, one a column. Got 1 of 3 rows ...
    """
    if "\0" in text:
        line = text.count("\n", 0, text.index("\0")) + 1
        raise InvalidInputError(f"{source!r} must be a text file", f"a NUL byte in line {line}", "Export it as CSV")
    body = "".join(io.StringIO(text).readlines()[skip_lines:])
    if not body.strip():
        raise InvalidInputError(f"{source!r} must hold a header and rows", "an empty file", "Check how it was written")
    mark = _separator(separator, body, source)
    records = [(line + skip_lines, record) for line, record in _records(body, mark, source)]
    if columns is None and header:
        names, records = [name.strip() for name in records[0][1]], records[1:]
    else:
        names = list(columns) if columns is not None else [f"c{j + 1}" for j in range(len(records[0][1]))]
    _check_names(names, source, given=columns is not None)
    return _assembled(names, records, source, skip_bad_rows)


def _separator(given: str | None, body: str, source: str) -> str:
    """Return the separator: the given one, or what the first line suggests."""
    if given is not None:
        mark = SEPARATORS.get(given, given)
        if len(mark) != 1:
            raise UnknownNameError("'separator'", given, SEPARATORS, "Use one of these names, or one character")
        return mark
    first = next(line for line in body.splitlines() if line.strip())
    counts = {mark: first.count(mark) for mark in (",", ";", "\t", "|")}
    best = max(counts, key=lambda mark: counts[mark])
    if counts[best]:
        return best
    if len(first.split()) > 1:
        return " "
    must = f"{source!r} must have at least two columns"
    got = "one column" if len(body.splitlines()) > 1 else f"only {first[:40]!r}"
    raise InvalidInputError(must, got, "Separate columns by commas, or name the separator with --separator")


def _records(body: str, mark: str, source: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of each line that is not blank, with its number; runs of spaces separate once."""
    if mark == " ":
        for number, line in enumerate(body.splitlines(), start=1):
            if line.strip():
                yield number, line.split()
        return
    reader = csv.reader(io.StringIO(body, newline=""), delimiter=mark, skipinitialspace=True, strict=True)
    start = 1
    try:
        for record in reader:
            if record and (len(record) > 1 or record[0].strip()):
                yield start, [field.strip() for field in record]
            start = reader.line_num + 1
    except csv.Error as error:
        must = f"{source!r} must be well-formed CSV"
        raise InvalidInputError(must, f"line {start}: {error}", "Correct its quotes") from None


def _check_names(names: list[str], source: str, *, given: bool) -> None:
    """Refuse tables of one column, and columns without a name or with the same one."""
    if len(names) < 2:
        do = "Name the separator with --separator"
        raise InvalidInputError(f"{source!r} must have at least two columns", "one column", do)
    where = "--columns" if given else f"the header of {source!r}"
    blank = [j + 1 for j, name in enumerate(names) if not name]
    if blank:
        must = f"{where} must name every column"
        got = f"no name for column {blank[0]}" + (f" (and {len(blank) - 1} more)" if len(blank) > 1 else "")
        raise InvalidInputError(must, got, "Add it, or use --no-header if the first line is data")
    doubles = sorted({name for name in names if names.count(name) > 1})
    if doubles:
        raise InvalidInputError(
            f"{where} must name every column once", f"{doubles[0]!r} {names.count(doubles[0])} times", "Rename one"
        )


def _assembled(names: list[str], records: list[tuple[int, list[str]]], source: str, skip_bad_rows: bool) -> TextTable:
    """Return the table after checking that every row has a field for every column."""
    bad = [(line, len(record)) for line, record in records if len(record) != len(names)]
    if bad and (not skip_bad_rows or len(bad) == len(records)):
        line, fields = bad[0]
        share = 100 * len(bad) / len(records)
        got = f"{len(bad)} of {len(records)} rows ({share:.3g} %) with another number, first {fields} in line {line}"
        do = "Correct them, name the columns with --columns, or leave such rows out with --skip-bad-rows"
        raise InvalidInputError(f"every row of {source!r} must have {len(names)} fields, one a column", got, do)
    good = [(k, line, record) for k, (line, record) in enumerate(records, start=1) if len(record) == len(names)]
    if not good:
        raise InvalidInputError(f"{source!r} must hold at least one row", "only a header", "Check how it was written")
    columns = {name: np.array([record[j] for *_, record in good], dtype=object) for j, name in enumerate(names)}
    places, lines = (np.array([entry[k] for entry in good]) for k in (0, 1))
    return TextTable(source, tuple(names), columns, lines, places, len(bad))
