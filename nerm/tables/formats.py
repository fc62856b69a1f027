"""Open the file of a table and read its rows of cells: text, JSON, Excel, Parquet or Feather.

The first bytes of the file decide its format, not its name. The file may be compressed.
"""

import bz2
import csv
import gzip
import io
import json
import lzma
import re
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from itertools import chain, islice, tee
from pathlib import Path
from statistics import mode
from typing import Any

import pandas as pd

from nerm.errors import InvalidInputError, MissingPackageError, NermError, UnknownNameError, check_known
from nerm.tables.values import word_of

SEPARATORS = {"tab": "\t", "semicolon": ";", "pipe": "|", "comma": ",", "space": " "}
_COMPRESSED: dict[bytes, Any] = {b"\x1f\x8b": gzip.open, b"BZh": bz2.open, b"\xfd7zXZ\0": lzma.open}
_JSON = re.compile(rb"[\s\xef\xbb\xbf]*(\{|\[\s*\{)")
Record = tuple[int, list[str]]  # line and cells


@dataclass(frozen=True, eq=False)
class Content:
    """The content of a file.

    Attributes
    ----------
    records
        (line or row number, cells) of each row that is not blank, the header first.
    notes
        Messages for the user, such as which sheet was read.
    separator
        The separator of a text; None for other formats.
    """

    records: Iterator[Record]
    notes: tuple[str, ...] = ()
    separator: str | None = None


@dataclass(frozen=True)
class Layout:
    """Options for reading a file.

    Parameters
    ----------
    name
        Name of the file in messages.
    encoding
        Encoding of a text file. The default is UTF-8, or UTF-16 if the file begins with its byte order mark.
    sheet
        Name of the sheet of an Excel file; by default the first.
    separator
        One character or a name in `SEPARATORS`. By default, the separator that occurs equally often in the
        first two lines.
    columns, header
        `columns` gives the column names of a file without a header line. `header=False` without `columns`
        names them c1, c2, ….
    skip_lines
        Number of lines to skip at the top of the file.
    skip_bad_rows
        Whether to leave out rows with a wrong number of fields; otherwise they are an error.
    decimal
        The decimal mark: "comma" or "point"; by default it is guessed for each column.
    usual
        The decimal mark of the table that a model was fitted on, for columns that can be read with both.
    exact
        Whether values that differ only by case, blanks or accents are different values.
    same
        By value, another value of the target or the viewpoint that means the same.
    missing
        Words that mean "missing", beside `nerm.tables.values.MISSING`.
    """

    name: str
    encoding: str | None = None
    sheet: str | None = None
    separator: str | None = None
    columns: Sequence[str] | None = None
    header: bool = True
    skip_lines: int = 0
    skip_bad_rows: bool = False
    decimal: str | None = None
    usual: str | None = None
    exact: bool = False
    same: Mapping[str, str] = field(default_factory=dict)
    missing: Sequence[str] = ()

    def refuse(self, must: str, got: str, do: str) -> InvalidInputError:
        """Return an error about this file: what it must be, what was found, and what to do."""
        return InvalidInputError(f"{self.name!r} must {must}", got, do)


@contextmanager
def opened(path: Any, layout: Layout) -> Iterator[tuple[Content, Callable[[], float]]]:
    """Open a file, or standard input for "-"; yield its content and a progress function.

    The progress function returns the share of the file that has been read, in [0, 1]; 0 for standard input.
    """
    standard = str(path) == "-"
    try:
        source: Any = nullcontext(sys.stdin.buffer) if standard else open(path, "rb")  # noqa: SIM115
    except OSError as error:
        kinds = {FileNotFoundError: "no file", IsADirectoryError: "the folder"}
        got = f"{kinds.get(type(error), error.strerror)} {str(path)!r}"
        raise InvalidInputError("the table must be a file that can be read", got, "Check its name") from None
    size = 0 if standard else Path(path).stat().st_size
    with source as stream:
        try:
            yield _content(stream, layout), lambda: stream.tell() / size if size else 0.0
        except NermError:
            raise
        except ImportError as error:  # pandas names the package in its message only
            found = re.search(r"[`'](?:Import )?(\w+)", str(error))
            package = error.name or (found[1] if found else "'nerm-learn[tables]'")
            text = f"{layout.name!r} needs the package {package}, which is not installed. Install it: "
            raise MissingPackageError(f"{text}pip install {package.partition('.')[0]}.") from None
        except Exception as error:  # a damaged file can make its reader raise anything
            got = f"one that ends early or is damaged ({type(error).__name__}: {str(error)[:80]})"
            raise layout.refuse("be a whole file", got, "Copy, download or write it again") from error


def _content(stream: Any, layout: Layout) -> Content:
    """Return the content of a binary stream; its first bytes decide the format."""
    head = stream.peek(16)
    for magic, unpack in _COMPRESSED.items():
        if head.startswith(magic):
            return _content(unpack(stream), layout)
    if head.startswith((b"PK\3\4", b"PAR1", b"ARROW1", b"FEA1")):
        read = _zipped if head.startswith(b"PK") else _parquet if head.startswith(b"PAR1") else _feather
        return read(stream if stream.seekable() else io.BytesIO(stream.read()), layout)
    lines = _lines(stream, layout)
    return _json("".join(lines), layout) if _JSON.match(head) else text_content(lines, layout)


def _lines(stream: Any, layout: Layout) -> Iterator[str]:
    """Yield the lines of a text; the error for bytes that cannot be decoded names their line."""
    wide = stream.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff")
    encoding = layout.encoding or ("utf-16" if wide else "utf-8-sig")
    try:
        text = io.TextIOWrapper(stream, encoding, newline="")
    except LookupError:
        do = "Use cp1252, latin-1, utf-16, …"
        raise InvalidInputError("--encoding must be one that Python knows", repr(encoding), do) from None
    number = 0
    do = "Name the encoding of a text, such as --encoding cp1252 for a file from Windows, or save the table "
    do += "as CSV, Excel (.xlsx), Parquet or JSON lines"
    try:
        for number, line in enumerate(text, start=1):
            if "\0" in line:
                raise layout.refuse("be a text file", f"a NUL byte in line {number}", do)
            yield line
    except UnicodeDecodeError as error:
        at = number + 1 + error.object[: error.start].count(b"\n")
        got = f"byte 0x{error.object[error.start]:02x} in line {at}"
        raise layout.refuse(f"be {layout.encoding or 'UTF-8'} text", got, do) from None
    finally:
        with suppress(ValueError):  # closed already
            text.detach()  # `opened` closes the stream


def text_content(lines: Iterable[str], layout: Layout) -> Content:
    """Return the content of a text whose columns are separated by one character."""
    lines, ahead = tee(islice(lines, layout.skip_lines, None))
    separator = _separator(layout, list(islice(ahead, 20)))
    return Content(_fields(lines, separator, layout), separator=separator)


def _separator(layout: Layout, lines: Sequence[str]) -> str:
    """Return the given separator, or the one that occurs equally often in the first two of these lines.

    If several do, the first in `SEPARATORS` is taken; if none does, the most frequent one in the first line.
    A space is the last choice.
    """
    if layout.separator is not None:
        mark = SEPARATORS.get(layout.separator, layout.separator)
        if len(mark) != 1:
            do = "Use one of these names, or one character"
            raise UnknownNameError("'separator'", layout.separator, SEPARATORS, do)
        return mark
    sample = [line.strip() for line in lines if line.strip()]
    if not sample:
        return ","

    def marks_in(line: str, mark: str) -> int:
        """Return how often a separator occurs outside of quotes."""
        return len(next(csv.reader([line], delimiter=mark, skipinitialspace=True))) - 1

    first = sample[0]
    counts = {m: [marks_in(line, m) for line in sample] for m in SEPARATORS.values() if m in first}
    alike = [mark for mark, times in counts.items() if mark != " " and times[0] == times[:2][-1]]
    do = "Separate columns by commas, or name the separator with --separator"
    for mark in () if alike else islice(SEPARATORS.values(), 4):  # lines above the header?
        times = [marks_in(line, mark) for line in sample]
        usual = mode(times)
        if usual > times[0] + 1:  # R leaves the name of the row names out
            header = sample[times.index(usual)]
            skip = layout.skip_lines + next(k for k, line in enumerate(lines) if line.strip() == header)
            do = f"Leave out the lines above the header with --skip-lines {skip}"
            raise layout.refuse(
                "begin with its header", f"{first[:40]!r} above lines of {usual + 1} fields", do
            )
    if not counts:
        raise layout.refuse("have at least two columns", f"{first[:40]!r}", do)
    return alike[0] if alike else max(counts, key=lambda mark: (mark != " ", counts[mark][0]))


def _fields(lines: Iterator[str], mark: str, layout: Layout) -> Iterator[Record]:
    """Yield (line number, fields) of each line that is not blank; `mark` is the separator.

    Several spaces in a row count as one separator.
    """
    if mark == " ":
        lines = (line.strip() + "\n" for line in lines)
    reader = csv.reader(lines, delimiter=mark, skipinitialspace=True, strict=True)
    start = 1 + layout.skip_lines
    try:
        for record in reader:
            if record and (len(record) > 1 or record[0].strip()):
                yield start, [field.strip() for field in record]
            start = reader.line_num + 1 + layout.skip_lines
    except csv.Error as error:
        raise layout.refuse("be well-formed CSV", f"line {start}: {error}", "Correct its quotes") from None


def _json(text: str, layout: Layout) -> Content:
    """Return the content of JSON lines, or of one JSON list of objects."""
    try:
        lined = [line for line in text.split("\n") if line.strip()]
        rows = [json.loads(line) for line in lined] if lined[0].lstrip()[0] == "{" else json.loads(text)
    except (ValueError, RecursionError) as error:
        must = "be JSON lines, one object per line, or a list of objects"
        raise layout.refuse(must, str(error), "Correct it") from None
    frame = pd.DataFrame(rows, dtype=object)
    return Content(_records(chain([map(str, frame.columns)], frame.itertuples(index=False)), layout))


def _records(rows: Iterable[Iterable[Any]], layout: Layout) -> Iterator[Record]:
    """Yield (row number from 1, cells as strings) for each row that is not empty."""
    for number, row in enumerate(islice(rows, layout.skip_lines, None), start=1 + layout.skip_lines):
        words = [word_of(cell) for cell in row]
        if any(words):
            yield number, words


def _zipped(stream: Any, layout: Layout) -> Content:
    """Return the content of an Excel file, or of a zip archive that holds one file."""
    archive = zipfile.ZipFile(stream)
    members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX")]
    names = sorted(member.filename for member in members)
    if "xl/workbook.xml" in names:
        return _excel(stream, layout)
    if len(members) != 1:
        got = f"{len(members)}: {', '.join(names[:3])}"
        raise layout.refuse("be an Excel file or an archive of one file", got, "Unpack it and name the table")
    return _content(archive.open(members[0]), layout)


def _excel(stream: Any, layout: Layout) -> Content:
    """Return the content of one sheet of an Excel file, by default the first."""
    book = pd.ExcelFile(stream)
    sheets = list(map(str, book.sheet_names))
    if layout.sheet is not None:
        check_known(layout.sheet, "--sheet", sheets)
    frame = pd.read_excel(book, layout.sheet or sheets[0], header=None, dtype=object, na_filter=False)
    notes = (f"the sheet {sheets[0]!r} was read, the first of {len(sheets)}; --sheet takes another",)
    guessed = len(sheets) > 1 and layout.sheet is None
    return Content(_records(frame.itertuples(index=False), layout), notes if guessed else ())


def _parquet(stream: Any, layout: Layout) -> Content:
    """Return the content of a Parquet file."""
    from pyarrow.parquet import ParquetFile

    file = ParquetFile(stream)
    return _columnar(file.schema_arrow.names, file.iter_batches(), layout)


def _feather(stream: Any, layout: Layout) -> Content:
    """Return the content of a Feather file."""
    from pyarrow.feather import read_table

    table = read_table(stream)
    return _columnar(table.schema.names, table.to_batches(), layout)


def _columnar(names: Sequence[str], batches: Iterable[Any], layout: Layout) -> Content:
    """Return the content of batches of columns."""
    rows = chain.from_iterable(zip(*(c.to_pylist() for c in b.columns), strict=True) for b in batches)
    return Content(_records(chain([names], rows), layout))
