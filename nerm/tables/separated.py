"""Separated text: which character separates, which lines are no rows, and the fields of the others."""

import csv
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from nerm.errors import InvalidInputError, UnknownNameError

SEPARATORS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "pipe": "|"}
_EXCEL = re.compile(r"\ufeff?\"?[sS][eE][pP]=(\\t|.)\"?")  # a first line by which Excel is told the separator


@dataclass(frozen=True)
class Layout:
    """How separated text is to be read.

    Parameters
    ----------
    separator
        One character or a name in `SEPARATORS`; None takes the one that splits the first lines alike, spaces
        last.
    columns, header
        Names for a file without a header line; `header=False` alone names them c1, c2, ….
    skip_lines
        Lines to leave out at the top, such as a comment.
    skip_bad_rows
        Leave out rows with another number of fields instead of refusing the file; `TextTable.skipped` counts
        them.
    decimal
        "comma" or "point"; None finds out, column by column.
    """

    separator: str | None = None
    columns: Sequence[str] | None = None
    header: bool = True
    skip_lines: int = 0
    skip_bad_rows: bool = False
    decimal: str | None = None


def text_records(
    lines: Iterator[str], layout: Layout, source: str
) -> tuple[str, Iterator[tuple[int, list[str]]], tuple[str, ...]]:
    """Return the separator and the numbered records of text, and a note on lines at the top that are none.

    Parameters
    ----------
    lines, source
        The text, and what messages call it.
    layout
        How it is to be read.
    """
    lines = islice(lines, layout.skip_lines, None)
    sample = list(islice(lines, 30))
    if not any(line.strip() for line in sample):
        sample += [line for line in islice(lines, 100_000) if line.strip()][:2]
    if not any(line.strip() for line in sample):
        return ",", iter(()), ()
    given, above = layout.separator, 0
    notes: tuple[str, ...] = ()
    if found := _EXCEL.fullmatch(sample[0].strip()):
        given, above = given or found[1].replace("\\t", "\t"), 1
    mark = _separator(given, [line for line in sample[above:] if line.strip()], source)
    if not above and (above := _comments(sample, mark)):
        mark = _separator(given, [line for line in sample[above:] if line.strip()], source)
        notes = (f"{above} lines at the top that begin with # were left out",)
    return mark, _records(chain(sample[above:], lines), mark, source, layout.skip_lines + above), notes


def _comments(sample: Sequence[str], mark: str) -> int:
    """Return how many lines at the top are comments: they begin with #, and are not separated like the next ones."""
    count = next((k for k, line in enumerate(sample) if not line.startswith("#")), 0)
    following = sample[count].count(mark) if count else 0
    return count if all(line.count(mark) != following or not following for line in sample[:count]) else 0


def _separator(given: str | None, sample: Sequence[str], source: str) -> str:
    """Return the separator: the given one, or what the first lines suggest."""
    if given is not None:
        mark = SEPARATORS.get(given, given)
        if len(mark) != 1:
            raise UnknownNameError(
                "'separator'", given, SEPARATORS, "Use one of these names, or one character"
            )
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
    must = f"{source!r} must have at least two columns"
    got = "one column" if len(sample) > 1 else f"only {sample[0].strip()[:40]!r}"
    raise InvalidInputError(must, got, "Separate columns by commas, or name the separator with --separator")


def _records(lines: Iterator[str], mark: str, source: str, skipped: int) -> Iterator[tuple[int, list[str]]]:
    """Yield the fields of each line that is not blank, with its number; runs of spaces separate once."""
    if mark == " ":
        for number, line in enumerate(lines, start=1 + skipped):
            if line.strip():
                yield number, line.split()
        return
    reader = csv.reader(lines, delimiter=mark, skipinitialspace=True, strict=True)
    start = 1
    try:
        for record in reader:
            if record and (len(record) > 1 or record[0].strip()):
                yield start + skipped, [field.strip() for field in record]
            start = reader.line_num + 1
    except csv.Error as error:
        must = f"{source!r} must be well-formed CSV"
        raise InvalidInputError(must, f"line {start + skipped}: {error}", "Correct its quotes") from None
