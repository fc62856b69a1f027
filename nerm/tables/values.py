"""Cells of a table: words, numbers, dates, and which of two words is the positive one."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from typing import Any

import numpy as np
import pandas as pd

from nerm.typing import Array, Bools, Floats

MISSING = ("", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "n/a", "#N/A", "<NA>", "NaT")
MARKS = {"point": ".", "comma": ","}
_DIGITS = r"(?:\d{1,3}(?:[%s\s'’]\d{3})+|\d*)(?:[%s]\d*)?(?:[eE][+-]?\d+)?"
_NUMBER = r"\s*[+−-]?\s*[€$£¥]?\s*[+−-]?" + _DIGITS + r"\s*[%%€$£¥]?\s*"
#: The written form of a number by its decimal mark: thousands separators, a currency or a percent sign.
_FORMS = {".": re.compile(_NUMBER % (",", ".")), ",": re.compile(_NUMBER % (".", ","))}
_THOUSANDS = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+")
_CLOCK = r"[T\s,]+\d{1,2}:\d{2}.*$"
#: How a date order is named in notes.
ORDERS = {
    "ymd": "year-month-day",
    "dmy": "day.month.year",
    "mdy": "month/day/year",
    "named": "months by name",
    "ym": "year-month",
    "my": "month/year",
    "compact": "yyyymmdd",
}
_FORMATS = {
    "ymd": ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d"),
    "dmy": ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%d.%m.%y", "%d/%m/%y", "%d-%m-%y"),
    "mdy": ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y", "%m-%d-%y"),
    "named": ("%d %b %Y", "%d-%b-%Y", "%d-%b-%y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%b %Y", "%B %Y"),
    "ym": ("%Y-%m", "%Y/%m"),
    "my": ("%m/%Y",),
    "compact": ("%Y%m%d",),
}
_PAIRS = """
yes no, y n, true false, t f, 1 0, 1 -1, +1 -1, good bad, high low, pass fail, passed failed, pos neg,
positive negative, approved rejected, approved denied, accepted rejected, granted denied, granted refused,
admitted rejected, hired rejected, success failure, won lost, on off, present absent, >50k <=50k, ja nein,
j n, wahr falsch, oui non, o n, vrai faux, sí no, si no, s n, sim não, sì no, ja nee, tak nie, да нет, 是 否
"""
_POSITIVE = {frozenset(pair.split()): pair.split()[0] for pair in _PAIRS.replace("\n", " ").split(",")}


def word_of(value: Any) -> str:
    """Return a cell as the word that a CSV file would have; "" for a missing value.

    >>> [word_of(v) for v in (None, float("nan"), 3.0, 2.5, True, datetime(2024, 5, 1), "a ")]
    ['', '', '3', '2.5', 'True', '2024-05-01', 'a']
    """
    if isinstance(value, str):
        return value.strip()
    if value is None or value is pd.NA or value is pd.NaT:
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return word_of(value / timedelta(days=1))
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return "" if math.isnan(value) else str(value)
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value)


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first names for a sentence, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def quoted(cell: Any, most: int = 60) -> str:
    """Return a cell for a sentence, without the middle of a long one.

    >>> quoted("ja"), len(quoted("x" * 10_000))
    ("'ja'", 60)
    """
    text = repr(str(cell))
    half = most // 2 - 1
    return text if len(text) <= most else f"{text[:half]} …{text[-half:]}"


def missing_in(column: Array, tokens: Sequence[str] = MISSING) -> Bools:
    """Return a mask of the entries that are words for "missing", (n,).

    >>> missing_in(np.array(["1", "?", ""], dtype=object))
    array([False,  True,  True])
    """
    known = frozenset(tokens)
    return np.fromiter((word in known for word in column), dtype=bool, count=len(column))


def positive_of(first: str, second: str) -> str | None:
    """Return the positive one of two values, None where neither is known to be.

    >>> positive_of("nein", "Ja"), positive_of("0.0", "1.0"), positive_of("a", "b")
    ('Ja', '1.0', None)
    """
    small = {word.casefold().strip().removesuffix(".").removesuffix(".0"): word for word in (first, second)}
    known = _POSITIVE.get(frozenset(small))
    return None if known is None else small[known]


def numbers_in(words: Iterable[str], decimal: str | None = None) -> Floats:
    """Return the finite numbers that words spell, nan for any other word.

    Parameters
    ----------
    words
        As in the file.
    decimal
        The decimal mark, "." or ",": then thousands separators, currency and percent signs are read too.
        None reads numbers as Python does.

    Examples
    --------
    >>> numbers_in(["-2.5e3", "1_000", "inf", "A11"]).tolist()
    [-2500.0, nan, nan, nan]
    >>> numbers_in(["1.234,5", "7 %", "-0,5 €"], ",").tolist()
    [1234.5, 7.0, -0.5]
    >>> numbers_in(["$1,234.5", "12 000"], ".").tolist()
    [1234.5, 12000.0]
    """
    read = _number if decimal is None else lambda word: _written(word, decimal)
    return np.array([read(word) for word in words], dtype=float)


def _number(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) and "_" not in word else math.nan


def _written(word: str, decimal: str) -> float:
    if not _FORMS[decimal].fullmatch(word):
        return math.nan
    kept = re.sub(r"[^\d.,eE+-]", "", word.replace("−", "-"))
    return _number(kept.replace("," if decimal == "." else ".", "").replace(",", "."))


def decimal_marks(columns: Mapping[str, Array], given: str | None, separator: str | None) -> dict[str, str]:
    """Return the decimal mark of each column whose numbers Python would not read, or not as meant.

    A column that both marks can read takes the mark of the other columns.

    Parameters
    ----------
    columns
        The words by name.
    given
        The decimal mark of the whole file, None to find out.
    separator
        Of the file: where no column decides, a comma is the decimal mark unless it separates columns.
    """
    found: dict[str, str] = {}
    plain: dict[str, set[str]] = {}
    either = []
    for name, column in columns.items():
        words = set(column.tolist()).difference(MISSING)
        if not any(math.isnan(_number(word)) for word in words):
            plain[name] = words
            continue
        marks = [
            mark
            for mark in _FORMS
            if given in (None, mark) and not any(math.isnan(_written(word, mark)) for word in words)
        ]
        if len(marks) == 1:
            found[name] = marks[0]
        elif marks:
            either.append(name)
    usual = given or usual_mark(found)
    if usual == ",":  # then 1.234 is a thousand
        for name, words in plain.items():
            pointed = [word for word in words if "." in word]
            if pointed and all(map(_THOUSANDS.fullmatch, pointed)):
                found[name] = ","
    return found | dict.fromkeys(either, usual or ("." if separator == "," else ","))


def usual_mark(marks: Mapping[str, str]) -> str | None:
    """Return the decimal mark of most columns, None where no column shows one."""
    seen = Counter(marks.values()).most_common(1)
    return seen[0][0] if seen else None


def days_in(words: Iterable[str], order: str) -> Floats:
    """Return the days since 1970 that words spell, nan for any other word; the time of day is ignored.

    Parameters
    ----------
    words
        As in the file.
    order
        One of `ORDERS`; a month without a day is its first day.

    Examples
    --------
    >>> days_in(["02.01.1970", "1.3.70", "31.02.1970", "soon"], "dmy").tolist()
    [1.0, 59.0, nan, nan]
    >>> days_in(["2 Jan 1970", "March 1, 1970", "mar 1970", "1 Foo 1970"], "named").tolist()
    [1.0, 59.0, 59.0, nan]
    """
    codes, distinct = pd.factorize(np.array([*words], dtype=object))
    text = pd.Series(distinct, dtype=object).str.replace(_CLOCK, "", regex=True)
    days = np.full(len(distinct), np.nan)
    for form in _FORMATS[order]:
        dates = pd.to_datetime(text, format=form, errors="coerce").to_numpy()
        new = np.isnan(days) & ~np.isnat(dates)
        days[new] = dates[new].astype("datetime64[D]").astype(float)
    return days[codes]


def date_orders(words: Iterable[str]) -> list[str]:
    """Return the orders in which the most words spell dates; none unless more than half of them do."""
    distinct = list(words)
    tried = [order for order in ORDERS if order != "compact"]  # these look like numbers, and are read so
    if all(np.isnan(days_in((distinct[0], distinct[-1]), order)).all() for order in tried):
        return []
    counts = {order: int((~np.isnan(days_in(distinct, order))).sum()) for order in tried}
    most = max(counts.values())
    return [order for order, count in counts.items() if count == most] if most > len(distinct) / 2 else []


def date_parts(days: Floats) -> dict[str, Floats]:
    """Return year, month and days of each date, (n,) each; nan stays nan.

    >>> {name: part.tolist() for name, part in date_parts(np.array([59.0])).items()}
    {'year': [1970.0], 'month': [3.0], 'days': [59.0]}
    """
    known = ~np.isnan(days)
    months = np.where(known, days, 0).astype("datetime64[D]").astype("datetime64[M]").astype(int)
    parts = {"year": 1970 + months // 12, "month": 1 + months % 12, "days": days}
    return {name: np.where(known, part, np.nan) for name, part in parts.items()}
