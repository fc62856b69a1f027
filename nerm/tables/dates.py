"""Dates as people write them, as days."""

import re
from collections.abc import Iterable
from datetime import date

import numpy as np

from nerm.typing import Floats

ORDERS = {"ymd": "year-month-day", "dmy": "day.month.year", "mdy": "month/day/year"}
_DATE = re.compile(
    r"(\d{1,4})([-./])(\d{1,2})\2(\d{1,4})(?:[T ]\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?\s?(?:Z|[+-]\d\d:?\d\d)?)?"
)
_EPOCH = date(1970, 1, 1).toordinal()
CENTURY = 69  # years of two digits from this on are in the twentieth century, as in POSIX


def days_in(words: Iterable[str], order: str) -> Floats:
    """Return the days since 1970 that words spell, nan for a word that spells no date; the time of day is left out.

    Parameters
    ----------
    words
        As in the file.
    order
        "ymd", "dmy" or "mdy".

    Examples
    --------
    >>> days_in(["02.01.1970", "1.3.70", "31.02.1970", "soon"], "dmy").tolist()
    [1.0, 59.0, nan, nan]
    """
    known: dict[str, float] = {}
    return np.array([known[w] if w in known else known.setdefault(w, _days(w, order)) for w in words], dtype=float)


def _days(word: str, order: str) -> float:
    found = _DATE.fullmatch(word)
    if found is None or (found[2] == "." and order == "mdy"):  # nobody writes that
        return np.nan
    fields = dict(zip(order, (found[1], found[3], found[4]), strict=True))
    year = int(fields["y"])
    if len(fields["y"]) == 2:
        year += 1900 if year >= CENTURY else 2000
    try:
        return float(date(year, int(fields["m"]), int(fields["d"])).toordinal() - _EPOCH) if year >= 1000 else np.nan
    except ValueError:
        return np.nan


def date_orders(words: Iterable[str], share: float) -> list[str]:
    """Return the orders of day, month and year in which the most words spell dates; none below this share of them."""
    distinct = list(words)
    if not any(_DATE.fullmatch(word) for word in (*distinct[:1], *distinct[-1:])):
        return []
    counts = {order: int((~np.isnan(days_in(distinct, order))).sum()) for order in ORDERS}
    most = max(counts.values())
    return [order for order, count in counts.items() if count == most] if most > share * len(distinct) else []


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
