"""Cells of a table: words, numbers, dates, and which of two words is the positive one."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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
#: By order of year, month and day, the formats of dates.
ORDERS = {
    "year-month-day": ("%Y-%m-%d", "%Y/%m/%d", "%Y.%m.%d"),
    "day.month.year": ("%d.%m.%Y", "%d/%m/%Y", "%d-%m-%Y", "%d.%m.%y", "%d/%m/%y", "%d-%m-%y"),
    "month/day/year": ("%m/%d/%Y", "%m-%d-%Y", "%m/%d/%y", "%m-%d-%y"),
    "months by name": (
        "%d %b %Y",
        "%d-%b-%Y",
        "%d-%b-%y",
        "%d %B %Y",
        "%b %d, %Y",
        "%B %d, %Y",
        "%b %Y",
        "%B %Y",
    ),
    "year-month": ("%Y-%m", "%Y/%m", "%m/%Y"),
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

    >>> [word_of(v) for v in (None, float("nan"), 3.0, 2.5, True, pd.Timestamp(2024, 5, 1), "a ")]
    ['', '', '3', '2.5', 'True', '2024-05-01', 'a']
    """
    if value is None or pd.isna(value) is True:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return str(value).strip().removesuffix(" 00:00:00")


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first names for a sentence, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def quoted(cell: Any, most: int = 60) -> str:
    """Return a cell for a sentence, without the end of a long one.

    >>> quoted("ja"), len(quoted("x" * 10_000))
    ("'ja'", 60)
    """
    text = repr(str(cell))
    return text if len(text) <= most else f"{text[: most - 2]} …"


def missing_in(column: Array, tokens: Sequence[str] = MISSING) -> Bools:
    """Return a mask of the entries that are words for "missing", (n,).

    >>> missing_in(np.array(["1", "?", ""], dtype=object))
    array([False,  True,  True])
    """
    return pd.Series(column, dtype=object).isin(tokens).to_numpy()


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
    return np.array([_number(word, decimal) for word in words], dtype=float)


def _number(word: str, decimal: str | None = None) -> float:
    if decimal is not None:
        if not _FORMS[decimal].fullmatch(word):
            return math.nan
        word = re.sub(r"[^\d.,eE+-]", "", word.replace("−", "-"))
        word = word.replace("," if decimal == "." else ".", "").replace(",", ".")
    try:
        number = float(word)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) and "_" not in word else math.nan


def decimal_marks(columns: Any, given: str | None, separator: str | None) -> dict[str, str]:
    """Return the decimal mark of each column whose numbers Python would not read, or not as meant.

    A column that both marks can read takes the mark of the other columns.

    Parameters
    ----------
    columns
        The words, a column per name.
    given
        The decimal mark of the whole file, None to find out.
    separator
        Of the file: where no column decides, a comma is the decimal mark unless it separates columns.
    """
    words = {name: set(column).difference(MISSING) for name, column in columns.items()}
    strange = {name: known for name, known in words.items() if np.isnan(numbers_in(known)).any()}
    marks = {
        name: [mark for mark in (given or ".,") if not np.isnan(numbers_in(known, mark)).any()]
        for name, known in strange.items()
    }
    found = {name: able[0] for name, able in marks.items() if len(able) == 1}
    usual = given or usual_mark(found)
    if usual == ",":  # then 1.234 is a thousand
        for name in words.keys() - strange.keys():
            pointed = [word for word in words[name] if "." in word]
            if pointed and all(map(_THOUSANDS.fullmatch, pointed)):
                found[name] = ","
    either = [name for name, able in marks.items() if len(able) == 2]
    found |= dict.fromkeys(either, usual or ("." if separator == "," else ","))
    return {name: found[name] for name in columns if name in found}


def usual_mark(marks: Mapping[str, str]) -> str | None:
    """Return the decimal mark of most columns, None where no column shows one."""
    seen = Counter(marks.values()).most_common(1)
    return seen[0][0] if seen else None


def dates_in(words: Iterable[str], order: str) -> pd.DatetimeIndex:
    """Return the dates that words spell, NaT for any other word; the time of day is ignored.

    Parameters
    ----------
    words
        As in the file.
    order
        One of `ORDERS`; a month without a day is its first day.

    Examples
    --------
    >>> dates_in(["02.01.1970", "1.3.70", "31.02.1970", "soon"], "day.month.year").day.tolist()
    [2.0, 1.0, nan, nan]
    >>> dates_in(["2 Jan 1970", "March 1, 1970", "mar 1970", "1 Foo 1970"], "months by name").month.tolist()
    [1.0, 3.0, 3.0, nan]
    """
    codes, distinct = pd.factorize(np.array([*words], dtype=object))
    text = pd.Series(distinct, dtype=object).str.replace(_CLOCK, "", regex=True)
    dates = pd.Series(pd.NaT, index=text.index, dtype="datetime64[s]")
    for form in ORDERS[order]:
        dates = dates.fillna(pd.to_datetime(text, format=form, errors="coerce").astype("datetime64[s]"))
    return pd.DatetimeIndex(dates.to_numpy()[codes])


def date_orders(words: Iterable[str]) -> list[str]:
    """Return the orders in which the most words spell dates; none unless more than half of them do."""
    distinct = list(words)
    if all(dates_in((distinct[0], distinct[-1]), order).isna().all() for order in ORDERS):
        return []
    counts = {order: int(dates_in(distinct, order).notna().sum()) for order in ORDERS}
    most = max(counts.values())
    return [order for order, count in counts.items() if count == most] if most > len(distinct) / 2 else []


def date_parts(dates: pd.DatetimeIndex) -> dict[str, Floats]:
    """Return year, month and days since 1970 of each date, (n,) each; nan for NaT.

    >>> {name: part.tolist() for name, part in date_parts(pd.DatetimeIndex(["1970-03-01"])).items()}
    {'year': [1970.0], 'month': [3.0], 'days': [59.0]}
    """
    parts = {"year": dates.year, "month": dates.month, "days": (dates - pd.Timestamp(0)).days}
    return {name: np.asarray(part, dtype=float) for name, part in parts.items()}
