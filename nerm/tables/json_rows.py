"""The rows of JSON: one object a line, or one value that holds a table in any of the ways in which people write one."""

import json
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

from nerm.tables.opening import Opening, word_of

HEAD = 1000  # rows whose keys make the header


def json_rows(lines: Iterator[str], opening: Opening) -> Iterator[tuple[int, list[str]]]:
    """Yield the header and the rows of JSON lines, or of one JSON value; an object in a row becomes columns."""
    objects = ((number, _flat(row)) for number, row in _json_objects(lines, opening))
    first = list(islice(objects, HEAD))
    names = list(dict.fromkeys(name for _, row in first for name in row))
    known = set(names)
    yield 0, names
    for number, row in chain(first, objects):
        if not known.issuperset(row):
            strange = next(name for name in row if name not in known)
            got = f"{strange!r} first in line {number}"
            raise opening.refuse(
                f"have its keys in its first {HEAD} rows", got, "Write null where there is no value"
            )
        yield number, [word_of(row.get(name)) for name in names]


def _flat(row: dict[str, Any], before: str = "") -> dict[str, Any]:
    """Return an object whose values are no objects: {"a": {"b": 1}} has a column a.b."""
    found: dict[str, Any] = {}
    for name, value in row.items():
        found |= (
            _flat(value, f"{before}{name}.") if isinstance(value, dict) and value else {before + name: value}
        )
    return found


def _json_objects(lines: Iterator[str], opening: Opening) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the rows of a text with their numbers."""
    taken = [next(lines)]
    for line in lines:
        taken.append(line)
        if line.strip():
            break
    several = len(taken) > 1 and (taken[-1].lstrip().startswith("{") or _is_object(taken[0]))
    rowwise = several and not taken[0].lstrip().startswith("[")
    lines = chain(taken, lines)
    if not rowwise:
        found = _parsed("".join(_bounded(lines, opening)), 1, opening)
        for place, row in enumerate(_rows_in(found, opening), start=1):
            yield place, _as_object(row, place, opening)
        return
    for number, text in enumerate(lines, start=1):
        if text.strip():
            yield number, _as_object(_parsed(text, number, opening), number, opening)


def _is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except (ValueError, RecursionError):
        return False


def _parsed(text: str, number: int, opening: Opening) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        got = f"line {number}: {error}"
        raise opening.refuse("be JSON lines, one object a line", got, "Correct it") from None


def _as_object(row: Any, place: int, opening: Opening) -> dict[str, Any]:
    if isinstance(row, dict):
        return row
    do = 'Write one object a row, such as {"age": 31}'
    raise opening.refuse("hold objects", f"{type(row).__name__} in row {place}", do)


def _rows_in(found: Any, opening: Opening) -> Sequence[Any]:
    """Return the rows of one JSON value: a list of them, or an object in one of the shapes that pandas knows."""
    if isinstance(found, list):
        return found
    values = list(found.values())
    lists = {name: value for name, value in found.items() if isinstance(value, list)}
    if {"columns", "data"} <= set(lists) and all(isinstance(row, list) for row in lists["data"]):
        return [dict(zip(map(str, lists["columns"]), row, strict=False)) for row in lists["data"]]
    tables = [value for value in lists.values() if value and all(isinstance(row, dict) for row in value)]
    if len(tables) == 1:
        return tables[0]
    if found and all(isinstance(value, dict) for value in values):
        if all(name.isdigit() for name in found):  # by row
            return values
        if len({tuple(value) for value in values}) == 1:  # by column, then by row
            return [
                dict(zip(found, row, strict=True)) for row in zip(*(v.values() for v in values), strict=True)
            ]
    if not tables and len(lists) == len(found) > 1 and len({len(value) for value in values}) == 1:
        return [dict(zip(found, row, strict=True)) for row in zip(*values, strict=True)]
    if not lists:
        return [found]
    do = "Write a list of rows, such as [{...}, {...}], or JSON lines"
    raise opening.refuse("hold one table", f"an object of {', '.join(map(repr, list(found)[:5]))}", do)


def _bounded(lines: Iterator[str], opening: Opening) -> Iterator[str]:
    size = 0
    for line in lines:
        size += len(line)
        if size > opening.most / 20:  # what Python makes of JSON is larger
            raise opening.too_large("a list of more; JSON lines are read row by row")
        yield line
