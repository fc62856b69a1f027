"""Read tables into columns of strings, as a whole or in parts.

The docstrings of `nerm.tables` call the string in a cell a word.

Files are text, JSON, Excel, Parquet or Feather. The first bytes of the file decide its format, not its name.
The file may be compressed.
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
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field, replace
from itertools import chain, islice, tee
from pathlib import Path
from statistics import mode
from typing import Any, Self

import numpy as np
import pandas as pd

from nerm.errors import InvalidInputError, MissingPackageError, NermError, check_known
from nerm.tables import values
from nerm.tables.values import MARKS, MISSING, key_of, numbers_in
from nerm.typing import Array, Bools, Floats, Ints

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
    training_decimal
        The decimal mark of the table that a model was fitted on, for columns that can be read with both.
    exact
        Whether values that differ only by case, blanks or accents are different values.
    synonyms
        For the target and the viewpoint: by value, another value with the same meaning that replaces it.
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
    training_decimal: str | None = None
    exact: bool = False
    synonyms: Mapping[str, str] = field(default_factory=dict)
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
        raise InvalidInputError("the table must be a file that can be read", got, "Check the path") from None
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
        read = _zipped if head.startswith(b"PK") else _columnar
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
        raise InvalidInputError("--encoding must be known to Python", repr(encoding), do) from None
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
        if len(layout.separator) != 1:
            check_known(
                layout.separator, "'separator'", SEPARATORS, "Use one of these names, or one character"
            )
        return SEPARATORS.get(layout.separator, layout.separator)
    sample = [line.strip() for line in lines if line.strip()]
    if not sample:
        return ","
    counts = {mark: list(_marks_in(sample, mark)) for mark in SEPARATORS.values()}
    used = [mark for mark in counts if mark in sample[0]]
    alike = [mark for mark in used if mark != " " and counts[mark][0] == counts[mark][:2][-1]]
    if alike:
        return alike[0]
    do = "Separate columns by commas, or name the separator with --separator"
    for times in islice(counts.values(), 4):  # lines above the header?
        usual = mode(times)
        if usual > times[0] + 1:  # R leaves the name of the row names out
            header = sample[times.index(usual)]
            skip = layout.skip_lines + next(k for k, line in enumerate(lines) if line.strip() == header)
            got = f"{sample[0][:40]!r} above lines of {usual + 1} fields"
            do = f"Leave out the lines above the header with --skip-lines {skip}"
            raise layout.refuse("begin with its header", got, do)
    if not used:
        raise layout.refuse("have at least two columns", f"{sample[0][:40]!r}", do)
    return max(used, key=lambda mark: (mark != " ", counts[mark][0]))


def _marks_in(lines: Iterable[str], mark: str) -> Iterator[int]:
    """Yield how often a separator occurs outside of quotes in each line."""
    for line in lines:
        yield len(next(csv.reader([line], delimiter=mark, skipinitialspace=True))) - 1


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
        words = [values.word_of(cell) for cell in row]
        if any(words):
            yield number, words


def _zipped(stream: Any, layout: Layout) -> Content:
    """Return the content of an Excel file, or of a zip archive that holds one file."""
    archive = zipfile.ZipFile(stream)
    names = sorted(name for name in archive.namelist() if not name.startswith("__MACOSX") and name[-1] != "/")
    if "xl/workbook.xml" in names:
        return _excel(stream, layout)
    if len(names) != 1:
        got = f"{len(names)}: {', '.join(names[:3])}"
        raise layout.refuse("be an Excel file or an archive of one file", got, "Unpack it and name the table")
    return _content(archive.open(names[0]), layout)


def _excel(stream: Any, layout: Layout) -> Content:
    """Return the content of one sheet of an Excel file, by default the first."""
    book = pd.ExcelFile(stream)
    first, *others = sheets = list(map(str, book.sheet_names))
    check_known(layout.sheet or first, "--sheet", sheets)
    frame = pd.read_excel(book, layout.sheet or first, header=None, dtype=object, na_filter=False)
    note = f"the sheet {first!r} was read, the first of {len(sheets)}; --sheet takes another"
    notes = (note,) if others and layout.sheet is None else ()
    return Content(_records(frame.itertuples(index=False), layout), notes)


def _columnar(stream: Any, layout: Layout) -> Content:
    """Return the content of a Parquet file, which is read in batches, or of a Feather file."""
    if stream.read(4) == b"PAR1":
        from pyarrow.parquet import ParquetFile

        file = ParquetFile(stream)
        schema, batches = file.schema_arrow, file.iter_batches()
    else:
        from pyarrow.feather import read_table

        table = read_table(stream)
        schema, batches = table.schema, table.to_batches()
    rows = chain.from_iterable(zip(*(c.to_pylist() for c in b.columns), strict=True) for b in batches)
    return Content(_records(chain([schema.names], rows), layout))


PART_CELLS = 1_000_000  # largest number of cells in one part of a table


@dataclass(frozen=True, eq=False)
class TextTable:
    r"""A table whose cells are strings.

    Attributes
    ----------
    source
        Name of the table in messages.
    frame
        The cells. The index is the number of each row in the file, counted from 1 below the header.
    marks
        By column name, the decimal mark, for columns whose numbers Python's float() would misread.
    notes
        Messages for the user about how the file was read.
    exact, synonyms
        As for `nerm.tables.reading.Layout`.
    missing
        All words that mean "missing", in upper or lower case.

    Examples
    --------
    >>> table = parse_table("age,sex\n31,f\n\n?,m\n", "census.csv")
    >>> table["age"].tolist(), table.places.tolist()
    (['31', '?'], [1, 2])
    >>> table.rows(table["sex"] == "m")["age"].tolist()
    ['?']
    >>> table["income"]
    Traceback (most recent call last):
        ...
    nerm.errors.UnknownNameError: a column of census.csv must be one of 'age', 'sex'. Got 'income'. Name a
    column ...
    """

    source: str
    frame: pd.DataFrame
    marks: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    exact: bool = False
    synonyms: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = MISSING

    def __len__(self) -> int:
        return len(self.frame)

    def __getitem__(self, name: str) -> Array:
        check_known(name, f"a column of {self.source}", self.frame.columns, "Name a column of the file")
        return self.frame[name].to_numpy()

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the columns, in order."""
        return tuple(self.frame.columns)

    @property
    def places(self) -> Ints:
        """The number of each row in the file, (n,)."""
        return self.frame.index.to_numpy()

    def unknown(self, name: str) -> Bools:
        r"""Return a mask of the missing cells of a column, (n,).

        >>> parse_table("a,b\n1,x\n?,y\n,z\n", "t").unknown("a")
        array([False,  True,  True])
        """
        missing, (codes, distinct) = {word.lower() for word in self.missing}, pd.factorize(self[name])
        return np.array([word.lower() in missing for word in distinct], dtype=bool)[codes]

    def known(self, name: str) -> dict[str, None]:
        """Return the different known cells of a column, in their order."""
        return dict.fromkeys(self[name][~self.unknown(name)].tolist())

    def numbers(self, name: str) -> Floats:
        r"""Return the numbers of a column, (n,), read with its decimal mark; nan if a cell holds none.

        >>> parse_table("a,b\n-99,1\n2,3\n", "t", missing=["-99"]).numbers("a")
        array([nan,  2.])
        """
        words, mark = self[name], self.marks.get(name)
        numbers = numbers_in(words, mark)
        if mark is None and self.main_decimal:  # the mark may occur for the first time in a later part
            strange = np.isnan(numbers)
            numbers[strange] = numbers_in(words[strange], self.main_decimal)
        return np.where(self.unknown(name), np.nan, numbers)

    @property
    def main_decimal(self) -> str | None:
        """The most frequent of the `marks`; None if there are none."""
        return mode(self.marks.values()) if self.marks else None

    def categories(self, name: str, *, role: bool = False) -> tuple[Array, list[str]]:
        r"""Return the values of a column, (n,), with one spelling for each, and notes on what was merged.

        Values that differ only by case, blanks or accents are one value, unless the table is `exact`. `role`
        is True for a target or viewpoint, whose values `synonyms` merges too.

        >>> parse_table("a,y\n1,yes\n2,Yes\n3,yes\n", "t").categories("y")
        (array(['yes', 'yes', 'yes'], dtype=object),
         ["'Yes' (1 row) in 'y' is read as 'yes'; --exact keeps them apart"])
        """
        counts = Counter(self[name].tolist())
        key, alike = self._keys(role=role)
        common = sorted(counts, key=lambda word: (counts[word], word))
        words = self.matched(
            name, {key(word): word for word in common if key(word) not in alike}.values(), role=role
        )
        merged = defaultdict[str, dict[str, int]](dict)
        for word, spelling in dict(zip(self[name].tolist(), words.tolist(), strict=True)).items():
            if word != spelling:
                merged[spelling][word] = counts[word]
        notes = []
        for spelling, others in merged.items():
            verb = "is" if len(others) == 1 else "are"
            end = "; --exact keeps them apart" if {key_of(w) for w in others} == {key_of(spelling)} else ""
            notes.append(
                f"{values.counted(others)} in {name!r} {verb} read as {values.quoted(spelling)}{end}"
            )
        return words, notes

    def matched(self, name: str, known: Iterable[str], *, role: bool = False) -> Array:
        """Return a column, (n,), in which values that differ from a known one by spelling are replaced by it.

        `role` is as for `categories`. Other values are unchanged.
        """
        known, (key, alike) = set(known), self._keys(role=role)
        times = Counter(map(key, known))
        unique = {key(word): word for word in known if times[key(word)] == 1}
        words = self[name].tolist()
        found = {word: unique.get(alike.get(key(word), key(word)), word) for word in set(words) - known}
        return np.array([found.get(word, word) for word in words], dtype=object)

    def _keys(self, *, role: bool) -> tuple[Callable[[str], str], dict[str, str]]:
        """Return a function `key` and the synonyms by their keys.

        Words with the same key are one value.
        """
        key = str if self.exact else key_of
        return key, {key(word): key(other) for word, other in (self.synonyms if role else {}).items()}

    def refuse(self, name: str, cells: Bools, must: str, do: str, got: str = "{}") -> None:
        """Raise an error that names the first of these cells of a column, if there are any.

        In `do`, {} stands for the first cell; in `got`, for the first cell and its row.
        """
        if cells.any():
            i = int(np.flatnonzero(cells)[0])
            cell = values.quoted(self[name][i])
            found = got.replace("{}", f"{cell} in row {self.places[i]}")
            raise InvalidInputError(must, found, do.replace("{}", cell))

    def rows(self, kept: Bools | Ints) -> Self:
        """Return a table of the selected rows.

        `kept` is a mask, (n,), or an array of row indices.
        """
        return replace(self, frame=self.frame.iloc[kept])


def read_table(path: Any, **options: Any) -> TextTable:
    r"""Read a table: CSV, Excel, Parquet, Feather or JSON lines, plain or compressed.

    Parameters
    ----------
    path
        Path of the file, or "-" for standard input.
    options
        As for `read_parts`.

    Returns
    -------
    TextTable

    Examples
    --------
    >>> import gzip, tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "census.csv.gz"
    ...     _ = path.write_bytes(gzip.compress(b"age;sex\n31;f\n"))
    ...     read_table(path)["sex"].tolist()
    ['f']
    """
    return next(read_parts(path, cells=0, **options))


def read_parts(
    path: Any, *, cells: int | None = None, progress: Callable[[float], None] = lambda _: None, **options: Any
) -> Iterator[TextTable]:
    r"""Read a table in parts, so that a long text or Parquet file needs no more memory than a short one.

    Parameters
    ----------
    path
        Path of the file, or "-" for standard input.
    cells
        Largest number of cells in one part; None means a million, and 0 reads the whole table as one part.
    progress
        Called before each part with the share of the file that has been read.
    options
        As for `nerm.tables.reading.Layout`.

    Yields
    ------
    TextTable
        One per part.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = Path(folder) / "numbers.csv"
    ...     _ = path.write_text("a,b\n" + "1,2\n" * 5)
    ...     [len(part) for part in read_parts(path, cells=6)]
    [3, 2]
    """
    name = "standard input" if str(path) == "-" else str(path).replace("\\", "/").rpartition("/")[2]
    layout = Layout(name, **options)
    with opened(path, layout) as (content, share):
        for table in _tables(content, layout, PART_CELLS if cells is None else cells):
            progress(share())
            yield table


def parse_table(text: str, source: str, **options: Any) -> TextTable:
    r"""Parse a table from text whose columns are separated by commas, tabs or another character.

    Parameters
    ----------
    text, source
        The text, and its name in messages.
    options
        As for `nerm.tables.reading.Layout`.

    Examples
    --------
    >>> parse_table("age sex\n31 f\n52 m\n", "census.txt")["age"].tolist()
    ['31', '52']
    >>> parse_table("age sex\n31 f\n52 m extra\n47 f\n", "census.txt")
    Traceback (most recent call last):
        ...
    nerm.errors.InvalidInputError: every row of 'census.txt' must have 2 fields, one per column. Got 1 of 3
    ...
    """
    layout = Layout(source, **options)
    return next(_tables(text_content(io.StringIO(text, newline=""), layout), layout, 0))


def table_of(frame: Any, source: str = "the table", *, exact: bool = False) -> TextTable:
    """Convert a DataFrame of pandas, polars or pyarrow to a table of strings; `source` names it in errors.

    `exact` is as for `TextTable`.

    >>> import pandas as pd
    >>> table_of(pd.DataFrame({"age": [31.0, None], "sex": ["f", "m"]}))["age"].tolist()
    ['31', '']
    """
    from nerm.validation import as_pandas  # imports scipy, which a mistyped column must not wait for

    frame = as_pandas(frame)
    if not hasattr(frame, "iloc"):
        must = f"{source} must be a DataFrame of pandas, polars or pyarrow"
        raise InvalidInputError(must, type(frame).__name__, "Convert it to a pandas DataFrame")
    names = _named_once([str(name) for name in frame.columns], source)
    columns = {name: list(map(values.word_of, frame.iloc[:, j])) for j, name in enumerate(names)}
    cells = pd.DataFrame(columns, index=range(1, len(frame) + 1), dtype=object)
    return TextTable(source, cells, exact=exact)


def _named_once(names: list[str], source: str) -> list[str]:
    """Return the names of columns; raise an error if two are equal."""
    name, times = Counter(names).most_common(1)[0] if names else ("", 1)
    if times > 1:
        must = f"{source!r} must name every column once"
        raise InvalidInputError(must, f"{name!r} {times} times", "Rename one of them")
    return names


def _tables(content: Content, layout: Layout, cells: int) -> Iterator[TextTable]:
    """Yield the parts of an open table, each of at most `cells` cells; 0 yields the whole table."""
    if layout.decimal is not None:
        check_known(layout.decimal, "'decimal'", MARKS)
    records = content.records
    first = next(records, None)
    if first is None:
        raise layout.refuse("hold a header and rows", "an empty file", "Check how it was written")
    names = first[1] if layout.header else [f"c{j + 1}" for j in range(len(first[1]))]
    if layout.columns is not None and list(map(key_of, layout.columns)) == list(map(key_of, names)):
        got = "a first line of these names"
        raise layout.refuse("have no header line if --columns is given", got, "Remove --columns")
    if layout.columns is not None or not layout.header:
        names, records = list(layout.columns or names), chain([first], records)
    per_part = max(1, cells // len(names)) if cells else None
    rows = list(islice(records, per_part))
    names, named = _completed(names, rows, layout, content.separator)
    if not rows:
        raise layout.refuse("hold at least one row", "only a header", "Check how it was written")
    start, missing = 0, (*MISSING, *layout.missing)
    while rows:
        frame, notes = _frame(names, rows, start, layout), list[str]()
        if not start:
            marks = values.decimal_marks(
                frame, MARKS.get(layout.decimal or ""), content.separator, layout.training_decimal
            )
            notes += [*content.notes, *named, *_decimal_notes(marks)]
        if bad := len(rows) - len(frame):
            notes.append(f"{bad} rows with a wrong number of fields were left out")
        yield TextTable(layout.name, frame, marks, tuple(notes), layout.exact, layout.synonyms, missing)
        start += len(rows)
        rows = list(islice(records, per_part))


def _completed(
    names: list[str], rows: Sequence[Record], layout: Layout, separator: str | None
) -> tuple[list[str], tuple[str, ...]]:
    """Return a name for every column, and notes on the names that were generated.

    A column of row names often has no name: pandas writes an empty one, and R leaves its header field out.
    """
    if layout.columns is None and rows and all(len(row) == len(names) + 1 for _, row in rows):
        names = ["", *names] if any(row[-1] for _, row in rows) else [*names, ""]
    blank = [j for j, name in enumerate(names) if not name]
    above = "Leave out lines above it with --skip-lines"
    if len(blank) > len(names) / 2 or (separator is None and not any(names[1:])):
        whole = next((f" {line - 1}" for line, row in rows if all(row) and len(row) > 1), "")
        got, do = f"no name for {len(blank)} of {len(names)}", "or use --no-header if the first line is data"
        raise layout.refuse("name its columns in the header", got, f"{above}{whole}, {do}")
    for j in blank:
        names[j] = next(name for k in range(len(names)) if (name := f"c{j + 1}{'_' * k}") not in names)
    _named_once(names, layout.name)
    if len(names) < 2:
        do = "Name the separator with --separator" if separator else above
        raise layout.refuse("have at least two columns", "one", do)
    return names, tuple(f"column {j + 1} has no name in the header and is called {names[j]!r}" for j in blank)


def _frame(names: list[str], rows: Sequence[Record], start: int, layout: Layout) -> pd.DataFrame:
    """Return the rows as a DataFrame of strings, indexed by their number in the file from start + 1.

    Rows with a wrong number of fields are refused, or left out with `skip_bad_rows`.
    """
    bad = [(line, len(words)) for line, words in rows if len(words) != len(names)]
    if bad and (not layout.skip_bad_rows or len(bad) == len(rows)):
        share = f"{len(bad)} of {len(rows)} rows ({100 * len(bad) / len(rows):.3g} %)"
        must = f"every row of {layout.name!r} must have {len(names)} fields, one per column"
        got = f"{share} with another number, first {bad[0][1]} in line {bad[0][0]}"
        do = "Correct them, name the columns with --columns, or leave such rows out with --skip-bad-rows"
        raise InvalidInputError(must, got, do)
    good = {place: words for place, (_, words) in enumerate(rows, start + 1) if len(words) == len(names)}
    return pd.DataFrame(good.values(), index=list(good), columns=names, dtype=object)


def _decimal_notes(marks: Mapping[str, str]) -> Iterator[str]:
    """Yield one note per decimal mark, with the columns that were read with it."""
    for word, mark in MARKS.items():
        if names := [name for name, its in marks.items() if its == mark]:
            yield f"{values.listed(names)} read with a decimal {word}; --decimal says otherwise"
