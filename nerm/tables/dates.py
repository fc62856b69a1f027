"""Dates as people write them, as days."""

import re
from collections.abc import Collection, Iterable
from datetime import date

import numpy as np

from nerm.typing import Floats

#: How dates are written, and how that is told.
ORDERS = {
    "ymd": "year-month-day",
    "dmy": "day.month.year",
    "mdy": "month/day/year",
    "named": "months by name",
    "ym": "year-month",
    "my": "month/year",
    "compact": "yyyymmdd",
}
_CLOCK = r"(?:[T,\s]+\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s?(?:[AaPp]\.?[Mm]\.?)?\s?(?:Z|UTC|GMT|[+-]\d\d:?\d\d)?)?"
_WEEKDAY, _MONTH = r"(?:[^\W\d_]+\.?,?\s+)?", r"([^\W\d_]{3,})\.?"
_DATE = re.compile(r"(\d{1,4})([-./])\s?(\d{1,2})\2\s?(\d{1,4})\.?" + _CLOCK)
_DAY_FIRST = re.compile(
    _WEEKDAY + r"(?:(\d{1,2})\.?(?:\s|[-/])\s?)?" + _MONTH + r"(?:,?\s|[-/])\s?(\d{4}|\d{2})" + _CLOCK
)
_MONTH_FIRST = re.compile(_WEEKDAY + _MONTH + r"\s(\d{1,2})(?:st|nd|rd|th)?(?:,\s?|\s)(\d{4})" + _CLOCK)
_YEAR_MONTH, _MONTH_YEAR = re.compile(r"(\d{4})[-/](\d{1,2})"), re.compile(r"(\d{1,2})[-./](\d{4})")
_COMPACT, _DOTTED = (
    re.compile(r"((?:19|20)\d\d)(\d\d)(\d\d)"),
    re.compile(r"(?:0[1-9]|1[0-2])\.(?:19|20)\d\d"),
)
_EPOCH = date(1970, 1, 1).toordinal()
CENTURY = 69  # years of two digits from this on are in the twentieth century, as in POSIX
#: The months from January on: English, German, French, Spanish, Italian, Portuguese, Dutch, Polish.
_NAMES = """
january february march april may june july august september october november december
januar februar märz april mai juni juli august september oktober november dezember
janvier février mars avril mai juin juillet août septembre octobre novembre décembre
enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre novembre dicembre
janeiro fevereiro março abril maio junho julho agosto setembro outubro novembro dezembro
januari februari maart april mei juni juli augustus september oktober november december
stycznia lutego marca kwietnia maja czerwca lipca sierpnia września października listopada grudnia
"""


def _months() -> dict[str, int]:
    """Return the months by name and by every beginning of three letters or more that says which one it is."""
    found: dict[str, set[int]] = {}
    for names in _NAMES.strip().splitlines():
        for month, name in enumerate(names.split(), start=1):
            for end in range(3, len(name) + 1):
                found.setdefault(name[:end], set()).add(month)
    return {name: min(months) for name, months in found.items() if len(months) == 1}


MONTHS = _months()


def days_in(words: Iterable[str], order: str) -> Floats:
    """Return the days since 1970 that words spell, nan for a word that spells no date; the time of day is left out.

    Parameters
    ----------
    words
        As in the file.
    order
        One of `ORDERS`; a month without a day is its first.

    Examples
    --------
    >>> days_in(["02.01.1970", "1.3.70", "31.02.1970", "soon"], "dmy").tolist()
    [1.0, 59.0, nan, nan]
    >>> days_in(["2 Jan 1970", "March 1, 1970", "01-Mär-70", "mars 1970", "1 Foo 1970"], "named").tolist()
    [1.0, 59.0, 59.0, 59.0, nan]
    """
    known: dict[str, float] = {}
    return np.array(
        [known[w] if w in known else known.setdefault(w, _days(w, order)) for w in words], dtype=float
    )


def _days(word: str, order: str) -> float:
    fields = _fields(word, order)
    if fields is None:
        return np.nan
    year, month, day = fields
    full = int(year) + (0 if len(year) > 2 else 1900 if int(year) >= CENTURY else 2000)
    try:
        return float(date(full, int(month), int(day)).toordinal() - _EPOCH) if full >= 1000 else np.nan
    except ValueError:
        return np.nan


def _fields(word: str, order: str) -> tuple[str, str, str] | None:
    """Return year, month and day as they are written in this order, None for a word that is not."""
    if order == "named":
        if found := _DAY_FIRST.fullmatch(word):
            day, name, year = found[1] or "1", found[2], found[3]
        elif found := _MONTH_FIRST.fullmatch(word):
            name, day, year = found[1], found[2], found[3]
        else:
            return None
        month = MONTHS.get(name.casefold())
        return None if month is None else (year, str(month), day)
    if order in ("ym", "my"):
        found = (_YEAR_MONTH if order == "ym" else _MONTH_YEAR).fullmatch(word)
        return None if found is None else (found[1 + order.index("y")], found[1 + order.index("m")], "1")
    if order == "compact":
        found = _COMPACT.fullmatch(word)
        return None if found is None else (found[1], found[2], found[3])
    found = _DATE.fullmatch(word)
    if found is None:
        return None
    fields = dict(zip(order, (found[1], found[3], found[4]), strict=True))
    if found[2] == "." and (
        order == "mdy" or (order == "ymd" and len(fields["y"]) < 3)
    ):  # nobody writes that
        return None
    return fields["y"], fields["m"], fields["d"]


def date_orders(words: Iterable[str], share: float) -> list[str]:
    """Return the orders of day, month and year in which the most words spell dates; none below this share of them."""
    distinct = list(words)
    if not any(_fields(word, order) for word in (*distinct[:1], *distinct[-1:]) for order in ORDERS):
        return []
    counts = {order: int((~np.isnan(days_in(distinct, order))).sum()) for order in ORDERS}
    most = max(counts.values())
    return [order for order, count in counts.items() if count == most] if most > share * len(distinct) else []


def disguised_order(words: Collection[str]) -> str | None:
    """Return the order of dates that look like numbers, None where they are numbers.

    >>> disguised_order(["20240131", "19991224"]), disguised_order(["05.2014", "12.2013"])
    ('compact', 'my')
    >>> disguised_order(["20240131", "20241331"]), disguised_order(["20240131"])
    (None, None)
    """
    for order, form in (("compact", _COMPACT), ("my", _DOTTED)):
        if len(words) > 1 and all(map(form.fullmatch, words)) and not np.isnan(days_in(words, order)).any():
            return order
    return None


def parts_of(days: Floats) -> dict[str, Floats]:
    """Return year, month and days of each date, (n,) each; nan stays nan.

    >>> {name: part.tolist() for name, part in parts_of(np.array([59.0])).items()}
    {'year': [1970.0], 'month': [3.0], 'days': [59.0]}
    """
    known = ~np.isnan(days)
    dates = np.where(known, days, 0).astype("datetime64[D]")
    months = dates.astype("datetime64[M]").astype(int)
    parts = {"year": 1970 + months // 12, "month": 1 + months % 12, "days": days}
    return {name: np.where(known, part, np.nan) for name, part in parts.items()}
