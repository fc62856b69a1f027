"""Open a table's file: text lines, or rows of cells from JSON, Excel, Parquet and Feather, compressed or not.

The first bytes decide the format, never the file's name.
"""

import bz2
import gzip
import io
import json
import lzma
import sys
import zipfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Any

import pandas as pd

from nerm.errors import InvalidInputError, MissingPackageError, NermError
from nerm.tables.values import word_of

CELL_BYTES = 64  # memory per cell, besides its letters
_COMPRESSED: dict[bytes, Callable[[Any], Any]] = {
    b"\x1f\x8b": gzip.open,
    b"BZh": bz2.open,
    b"\xfd7zXZ\0": lzma.open,
}
#: First bytes of files that are no tables.
_OTHERS = {
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls)",
    b"\x28\xb5\x2f\xfd": "a Zstandard archive",
    b"sqlite format 3": "an SQLite database",
    b"\x89hdf": "an HDF5 file",
    b"\x80\x04": "a pickle",
    b"\x80\x05": "a pickle",
    b"%pdf": "a PDF document",
    b"<!doctype": "a web page",
    b"<html": "a web page",
}
Record = tuple[int, list[str]]  # line and cells


@dataclass(frozen=True)
class Source:
    """A file that is being read: its name in messages, its options, and how many bytes its table may take."""

    name: str
    encoding: str | None
    sheet: str | None
    most: int

    def refuse(self, must: str, got: str, do: str) -> InvalidInputError:
        """Return an error about this file."""
        return InvalidInputError(f"{self.name!r} must {must}", got, do)

    def too_large(self, got: str) -> InvalidInputError:
        """Return the error of a table that takes too much memory."""
        do = "Use fewer rows or columns, or allow more with --memory"
        return self.refuse(f"fit into {self.most / 1e9:g} GB of memory", got, do)


@dataclass(frozen=True, eq=False)
class Opened:
    """An open table: lines of text, or records, the first of them the header where `named`."""

    lines: Iterator[str] = field(default_factory=lambda: iter(()))
    records: Iterator[Record] | None = None
    named: bool = False
    notes: tuple[str, ...] = ()


@contextmanager
def opened(path: Any, source: Source) -> Iterator[tuple[Opened, Callable[[], float]]]:
    """Open a file, or standard input for "-"; yield it with a function that returns the share read so far."""
    standard = str(path) == "-"
    try:
        stream: Any = sys.stdin.buffer if standard else open(path, "rb")  # noqa: SIM115 (closed below)
    except OSError as error:
        kinds = {FileNotFoundError: "no file", IsADirectoryError: "the folder"}
        got = f"{kinds.get(type(error), error.strerror)} {str(path)!r}"
        raise InvalidInputError("the table must be a file that can be read", got, "Check its name") from None
    size = 0 if standard or not stream.seekable() else Path(path).stat().st_size
    try:
        yield _recognized(stream, source, seekable=size > 0), lambda: stream.tell() / size if size else 0.0
    except NermError:
        raise
    except Exception as error:  # a damaged file can make its reader raise anything
        got = f"one that ends early or is damaged ({type(error).__name__}: {str(error)[:80]})"
        raise source.refuse("be a whole file", got, "Copy, download or write it again") from error
    finally:
        if not standard:
            stream.close()


def _recognized(stream: Any, source: Source, seekable: bool) -> Opened:
    """Return the content of a stream by its first bytes."""
    head = stream.peek(16)[:16]
    for magic, unpack in _COMPRESSED.items():
        if head.startswith(magic):
            return _recognized(unpack(stream), source, seekable=False)
    for magic, what in _OTHERS.items():
        if head.lower().startswith(magic):
            do = "Write the table as CSV, Excel (.xlsx), Parquet or JSON lines"
            raise source.refuse("be a table", what, do)
    if head.startswith((b"PK\3\4", b"PAR1", b"ARROW1", b"FEA1")):
        if not seekable:
            content = stream.read(source.most + 1)
            if len(content) > source.most:
                raise source.too_large("more")
            stream = io.BytesIO(content)
        return _zipped(stream, source) if head.startswith(b"PK") else _columnar(stream, head[:1] == b"P")
    lines = _lines(stream, source)
    taken: list[str] = []
    while not (taken and taken[-1].strip()) and (line := next(lines, "")):
        taken.append(line)
    first = taken[-1].strip() if taken else ""
    lines = chain(taken, lines)
    if first.startswith(("{", "[{")) or first == "[":
        return _json(lines, source, by_line=first[0] == "{")
    return Opened(lines)


def _lines(stream: Any, source: Source) -> Iterator[str]:
    """Yield the lines of a text; bytes that cannot be decoded are refused by their line."""
    wide = stream.peek(2)[:2] in (b"\xff\xfe", b"\xfe\xff")
    encoding = source.encoding or ("utf-16" if wide else "utf-8-sig")
    try:
        text = io.TextIOWrapper(stream, encoding, newline="")
    except LookupError:
        do = "Use cp1252, latin-1, utf-16, …"
        raise InvalidInputError("--encoding must be one that Python knows", repr(encoding), do) from None
    number = 0
    try:
        while line := text.readline(source.most):
            number += 1
            if len(line) == source.most:
                raise source.too_large(f"line {number} with {source.most:,} letters")
            if "\0" in line:
                raise source.refuse("be a text file", f"a NUL byte in line {number}", "Export it as CSV")
            yield line
    except UnicodeDecodeError as error:
        at = number + 1 + error.object[: error.start].count(b"\n")
        do = "Name its encoding, such as --encoding cp1252 for a file from Windows, or convert it with iconv"
        must = f"be {source.encoding or 'UTF-8'} text"
        raise source.refuse(must, f"byte 0x{error.object[error.start]:02x} in line {at}", do) from None
    finally:
        text.detach()  # its owner closes the stream


def _json(lines: Iterator[str], source: Source, by_line: bool) -> Opened:
    """Return the rows of JSON lines, or of one list of objects."""
    text = io.StringIO()
    for line in lines:
        if CELL_BYTES * (text.tell() + len(line)) > source.most:  # a letter may be a cell
            raise source.too_large("a JSON text of more")
        text.write(line)
    try:
        lined = text.getvalue().splitlines()
        rows = (
            [json.loads(line) for line in lined if line.strip()] if by_line else json.loads(text.getvalue())
        )
    except (ValueError, RecursionError) as error:
        must = "be JSON lines, one object per line, or a list of objects"
        raise source.refuse(must, str(error), "Correct it") from None
    frame = pd.DataFrame(rows, dtype=object)
    return Opened(records=_rows(list(map(str, frame.columns)), frame.itertuples(index=False)), named=True)


def _rows(names: list[str], rows: Iterable[Iterable[Any]]) -> Iterator[Record]:
    """Yield the header and the rows of typed cells, numbered from 1."""
    yield 0, names
    for place, row in enumerate(rows, start=1):
        yield place, [word_of(cell) for cell in row]


def _needed(module: str, what: str) -> Any:
    """Import a module of the extra `tables`."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f"reading {what} needs the package {package!r}. It is not installed. "
            "Install it, for instance with: pip install 'nerm-learn[tables]'."
        ) from None


def _zipped(stream: Any, source: Source) -> Opened:
    """Return the sheet of a workbook, or the one file of an archive."""
    archive = zipfile.ZipFile(stream)
    members = [m for m in archive.infolist() if not m.is_dir() and not m.filename.startswith("__MACOSX")]
    names = {member.filename for member in members}
    if "xl/workbook.xml" in names:
        size = sum(member.file_size for member in members)
        if size > source.most:
            raise source.too_large(f"a workbook of {size / 1e9:.3g} GB")
        return _excel(stream, source)
    if len(members) != 1:
        got = f"{len(members)}: {', '.join(sorted(names)[:3])}"
        raise source.refuse("be an Excel file or an archive of one file", got, "Unpack it and name the table")
    return _recognized(archive.open(members[0]), source, seekable=False)


def _excel(stream: Any, source: Source) -> Opened:
    """Return a sheet, by default the first; empty rows, and empty cells at the end of a row, are left out."""
    book = _needed("openpyxl", "Excel files").load_workbook(stream, read_only=True, data_only=True)
    sheets = book.sheetnames
    if source.sheet is not None and source.sheet not in sheets:
        must = f"--sheet must be one of {', '.join(map(repr, sheets))}"
        raise InvalidInputError(must, repr(source.sheet), "Name one of these")
    sheet = book[source.sheet or sheets[0]]
    sheet.reset_dimensions()  # programs write wrong ones
    notes = (f"the sheet {sheets[0]!r} was read, the first of {len(sheets)}; --sheet takes another",)

    def records() -> Iterator[Record]:
        for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
            words = [word_of(cell) for cell in cells]
            while words and not words[-1]:
                words.pop()
            if words:
                yield number, words

    return Opened(records=records(), notes=notes if len(sheets) > 1 and source.sheet is None else ())


def _columnar(stream: Any, parquet: bool) -> Opened:
    """Return the rows of a Parquet or Feather file."""
    if parquet:
        file = _needed("pyarrow.parquet", "Parquet files").ParquetFile(stream)
        names, batches = file.schema_arrow.names, file.iter_batches()
    else:
        table = _needed("pyarrow.feather", "Feather files").read_table(stream)
        names, batches = table.schema.names, table.to_batches()
    rows = chain.from_iterable(zip(*(c.to_pylist() for c in b.columns), strict=True) for b in batches)
    return Opened(records=_rows(list(names), rows), named=True)
