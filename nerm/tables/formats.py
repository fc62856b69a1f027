"""Opening a table's file, whatever its format: lines of text, or rows of cells written as words.

The first bytes say what a file is, never its name: CSV and its kin, JSON, Excel, Parquet, Feather, and any of
these compressed. What is no table gets advice for what it is.
"""

import bz2
import gzip
import io
import lzma
import sys
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import IO, Any

from nerm.errors import InvalidInputError, MissingPackageError
from nerm.tables.json_rows import json_rows
from nerm.tables.opening import Opening, word_of

LONGEST_LINE = 50_000_000  # characters
COMPRESSED: dict[bytes, tuple[str, Callable[[Any], Any]]] = {
    b"\x1f\x8b": ("gzip", gzip.open),
    b"BZh": ("bzip2", bz2.open),
    b"\xfd7zXZ\0": ("xz", lzma.open),
}
BY_NAME = "Write the table as CSV, Excel, Parquet or JSON lines"
#: Beginnings of files that are no tables: what they are, and what to do.
OTHERS = {
    b"\xd0\xcf\x11\xe0": ("an old Excel file (.xls)", "Save it as .xlsx or as CSV"),
    b"\x28\xb5\x2f\xfd": ("a Zstandard archive", "Unpack it with zstd -d"),
    b"7z\xbc\xaf": ("a 7z archive", "Unpack it"),
    b"SQLite format 3": ("an SQLite database", "Export the table, for instance with: sqlite3 -header -csv"),
    b"\x89HDF": ("an HDF5 file", BY_NAME),
    b"\x80\x03": ("a pickle", BY_NAME),
    b"\x80\x04": ("a pickle", BY_NAME),
    b"\x80\x05": ("a pickle", BY_NAME),
    b"$FL": ("an SPSS file", BY_NAME),
    b"%PDF": ("a PDF document", BY_NAME),
    b"<!doctype": ("a web page", "Download the table itself; the page may be a login"),
    b"<html": ("a web page", "Download the table itself; the page may be a login"),
}


@dataclass(frozen=True, eq=False)
class Opened:
    """An open table: either lines of text, or numbered rows of words, the first of them the header where `named`."""

    lines: Iterator[str] = field(default_factory=lambda: iter(()))
    rows: Iterator[tuple[int, list[str]]] | None = None
    named: bool = False
    notes: tuple[str, ...] = ()


@contextmanager
def opened(
    path: Any, encoding: str | None, sheet: str | None, most: int
) -> Iterator[tuple[Opened, Callable[[], float]]]:
    """Open a file, or standard input for "-"; yield it, and a function that says which share of it was read."""
    opening = Opening("standard input" if str(path) == "-" else Path(path).name, encoding, sheet, most)
    try:
        stream: Any = sys.stdin.buffer if str(path) == "-" else open(path, "rb")  # noqa: SIM115 (closed below)
    except OSError as error:
        said = {
            FileNotFoundError: ("the file must exist", f"no file {str(path)!r}", "Check its name and folder"),
            IsADirectoryError: (
                "the table must be a file",
                f"the folder {str(path)!r}",
                "Name a file in this folder",
            ),
        }
        other = ("the file must be readable", f"{error.strerror} for {str(path)!r}", "Check its permissions")
        raise InvalidInputError(*said.get(type(error), other)) from None
    regular = str(path) != "-" and stream.seekable()
    size = stream.seek(0, io.SEEK_END) if regular else 0
    if regular:
        stream.seek(0)
    try:
        yield _recognised(stream, opening, regular), lambda: stream.tell() / size if size else 0.0
    finally:
        if str(path) != "-":
            stream.close()


def _recognised(stream: Any, opening: Opening, seekable: bool) -> Opened:
    """Return what a stream holds, by its first bytes."""
    stream = stream if isinstance(stream, io.BufferedReader) else io.BufferedReader(stream)
    head = stream.peek(16)[:16]
    for magic, (name, unpack) in COMPRESSED.items():
        if head.startswith(magic):
            return _recognised(_Unpacked(unpack(stream), name, opening), opening, seekable=False)
    for magic, (got, do) in OTHERS.items():
        if head.lower().startswith(magic.lower()):
            raise opening.refuse("be a table", got, do)
    if head.startswith(b"PK\3\4"):
        return _zipped(_whole(stream, opening, seekable), opening)
    if head.startswith(b"PAR1"):
        return _parquet(_whole(stream, opening, seekable), opening)
    if head.startswith((b"ARROW1", b"FEA1")):
        return _feather(_whole(stream, opening, seekable), opening)
    lines = _lines(stream, opening)
    taken: list[str] = []
    while not (taken and taken[-1].strip()) and (line := next(lines, "")):
        taken.append(line)
    lines, first = chain(taken, lines), taken[-1] if taken else ""
    if first.lstrip().startswith(("{", "[{")) or first.strip() == "[":
        return Opened(rows=json_rows(lines, opening), named=True)
    return Opened(lines)


class _Unpacked(io.RawIOBase):
    """A decompressed stream that says in one sentence that its file is damaged."""

    def __init__(self, stream: Any, name: str, opening: Opening) -> None:
        self._stream, self._name, self._opening = stream, name, opening

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        try:
            part = self._stream.read(len(buffer))
        except (EOFError, OSError, zlib.error, lzma.LZMAError, zipfile.BadZipFile, RuntimeError) as error:
            got = f"one that ends early or is damaged ({error})"
            raise self._opening.refuse(
                f"be a whole {self._name} file", got, "Copy or download it again"
            ) from None
        buffer[: len(part)] = part
        return len(part)


def _whole(stream: Any, opening: Opening, seekable: bool) -> Any:
    """Return a stream that can be read at any place: itself, or its bytes in memory."""
    if seekable:
        return stream
    content = stream.read(opening.most + 1)
    if len(content) > opening.most:
        raise opening.too_large("more")
    return io.BytesIO(content)


# --- text -----------------------------------------------------------------------------------------


def _lines(stream: IO[bytes], opening: Opening) -> Iterator[str]:
    """Yield the lines of a text, decoded one by one so that a strange byte has a line."""
    wide = opening.encoding or _by_mark(stream)
    if wide and wide.lower().replace("-", "").startswith(
        ("utf16", "utf32")
    ):  # their line ends are no single bytes
        text = io.TextIOWrapper(stream, wide, newline="")
        try:
            yield from _checked(text, opening)
        finally:
            text.detach()  # who opened the stream closes it
        return
    yield from _checked(_decoded(stream, opening), opening)


def _by_mark(stream: Any) -> str | None:
    """Return the wide encoding that the first bytes show, by a mark or by where their zeros are."""
    head = stream.peek(64)[:64]
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")):
        return "utf-32"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return "utf-16"
    even, odd = head[::2], head[1::2]
    if odd and not any(odd) and all(even):
        return "utf-16-le"
    return "utf-16-be" if odd and not any(even) and all(odd) else None


def _decoded(stream: IO[bytes], opening: Opening) -> Iterator[str]:
    encoding = opening.encoding or "utf-8"
    for number, raw in enumerate(iter(lambda: stream.readline(LONGEST_LINE), b""), start=1):
        if len(raw) == LONGEST_LINE:
            raise opening.refuse(
                "have lines of text", f"line {number} with {LONGEST_LINE:,} bytes", "Check its format"
            )
        try:
            text = raw.decode(encoding)
        except LookupError:
            do = "Use cp1252, latin-1, utf-16, …"
            raise InvalidInputError("--encoding must be one that Python knows", repr(encoding), do) from None
        except UnicodeDecodeError as error:
            got = f"byte 0x{raw[error.start]:02x} in line {number}"
            if opening.encoding:
                do = "Name another with --encoding"
                raise opening.refuse(f"be {encoding} text", got, do) from None
            do = "Name its encoding, for instance --encoding cp1252 for a file from Windows, or convert it with iconv"
            raise opening.refuse("be UTF-8 text", got, do) from None
        text = text.removeprefix("\ufeff") if number == 1 else text
        if "\r" in text[:-2]:
            yield from io.StringIO(text, newline="")
        else:
            yield text


def _checked(lines: Iterable[str], opening: Opening) -> Iterator[str]:
    """Yield lines, refusing what only binary files have."""
    try:
        for number, line in enumerate(lines, start=1):
            if "\0" in line:
                raise opening.refuse("be a text file", f"a NUL byte in line {number}", "Export it as CSV")
            yield line
    except UnicodeError as error:
        got = f"other bytes ({error})"
        raise opening.refuse(
            f"be {opening.encoding or 'UTF-16'} text", got, "Name another with --encoding"
        ) from None


def read_text(path: Any) -> str:
    """Return the text of a file, unpacked where it is compressed; anything but UTF-8 is refused."""
    with opened(path, None, None, LONGEST_LINE) as (table, _):
        return "".join(table.lines)


# --- cells ----------------------------------------------------------------------------------------


def _needed(module: str, what: str) -> Any:
    """Return a module that an extra brings."""
    try:
        return import_module(module)
    except ImportError:
        package = module.partition(".")[0]
        raise MissingPackageError(
            f"reading {what} needs the package {package!r}. It is not installed. "
            "Install it, for instance with: pip install 'nerm-learn[tables]'."
        ) from None


def _zipped(stream: Any, opening: Opening) -> Opened:
    """Return the one file of an archive, or the sheet of a workbook, which is an archive too."""
    try:
        archive = zipfile.ZipFile(stream)
        members = [
            info
            for info in archive.infolist()
            if not info.is_dir() and not info.filename.startswith("__MACOSX")
        ]
    except zipfile.BadZipFile as error:
        raise opening.refuse(
            "be a whole zip or Excel file", str(error), "Copy or download it again"
        ) from None
    names = {info.filename for info in members}
    if "xl/workbook.xml" in names:
        if (size := sum(info.file_size for info in members)) > opening.most:
            raise opening.too_large(f"a workbook of {size / 1e9:.3g} GB")
        return _excel(stream, opening)
    if "header.json" in names:
        raise opening.refuse(
            "be a table", "a model that nerm has saved", "Name the table; predict takes both"
        )
    if "mimetype" in names or "[Content_Types].xml" in names or "xl/workbook.bin" in names:
        raise opening.refuse("be a table", "a document of an office program", "Save it as .xlsx or as CSV")
    if len(members) != 1:
        got = f"{len(members)}: {', '.join(sorted(names)[:3])}" + (", …" if len(members) > 3 else "")
        raise opening.refuse("be an archive of one file", got, "Unpack it and name the table")
    try:
        inner = archive.open(members[0])
    except (RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise opening.refuse(
            "be a zip file that can be unpacked", str(error), "Unpack it and name the table"
        ) from None
    return _recognised(_Unpacked(inner, "zip", opening), opening, seekable=False)


def _excel(stream: Any, opening: Opening) -> Opened:
    """Return a sheet: the named one, or the first."""
    openpyxl = _needed("openpyxl", "Excel files")
    try:
        book = openpyxl.load_workbook(stream, read_only=True, data_only=True)
    except Exception as error:  # a damaged workbook can make its reader raise anything
        raise opening.refuse(
            "be a whole Excel file", f"{type(error).__name__} ({error})", "Save it again"
        ) from None
    sheets = book.sheetnames
    if opening.sheet is not None and opening.sheet not in sheets:
        known = ", ".join(map(repr, sheets))
        raise InvalidInputError(f"--sheet must be one of {known}", repr(opening.sheet), "Name one of these")
    sheet = book[opening.sheet or sheets[0]]
    sheet.reset_dimensions()  # programs write wrong ones
    notes = (f"the sheet {sheets[0]!r} was read, the first of {len(sheets)}; --sheet takes another",)
    return Opened(rows=_excel_rows(sheet), notes=notes if len(sheets) > 1 and opening.sheet is None else ())


def _excel_rows(sheet: Any) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows that are not empty, without empty cells at their ends."""
    for number, cells in enumerate(sheet.iter_rows(values_only=True), start=1):
        words = [word_of(cell) for cell in cells]
        while words and not words[-1]:
            words.pop()
        if words:
            yield number, words


def _parquet(stream: Any, opening: Opening) -> Opened:
    parquet = _needed("pyarrow.parquet", "Parquet files")
    return _batches(
        lambda: parquet.ParquetFile(stream), lambda file: file.iter_batches(10_000), opening, "Parquet"
    )


def _feather(stream: Any, opening: Opening) -> Opened:
    feather = _needed("pyarrow.feather", "Feather files")
    return _batches(
        lambda: feather.read_table(stream), lambda table: table.to_batches(10_000), opening, "Feather"
    )


def _batches(open_file: Callable[[], Any], read: Callable[[Any], Any], opening: Opening, what: str) -> Opened:
    """Return the rows of a file of columns."""

    def numbered() -> Iterator[tuple[int, list[str]]]:
        try:
            file = open_file()
            schema = getattr(file, "schema_arrow", None) or file.schema
            yield 0, list(schema.names)
            rows = chain.from_iterable(
                zip(*(c.to_pylist() for c in batch.columns), strict=True) for batch in read(file)
            )
            for place, cells in enumerate(rows, start=1):
                yield place, [word_of(cell) for cell in cells]
        except Exception as error:  # a damaged file can make its reader raise anything
            raise opening.refuse(
                f"be a whole {what} file", str(error)[:80], "Copy or write it again"
            ) from None

    return Opened(rows=numbered(), named=True)
