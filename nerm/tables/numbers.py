"""Numbers as people write them: decimal points or commas, thousands apart, a currency, a unit; times as hours.

Which mark is the decimal one is seen in a column as a whole, and where that leaves it open, in the other
columns.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nerm.typing import Array, Floats

MARKS = {"point": ".", "comma": ","}
TIME = ":"  # the mark of columns that hold times of day or durations, in hours
_CURRENCIES = "EUR|USD|GBP|CHF|JPY|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|RUB|TRY|BRL|MXN|ZAR|AUD|CAD|NZD|[€$£¥]"
_MINUS = "−–-"  # the plain one last: between two others it would be a range
#: A sign, a currency, digits, a sign again (as SAP has it) and a unit; in accounts, parentheses are a minus.
_FORM = (
    rf"\s*(?P<open>\()?\s*(?P<sign>[+{_MINUS}])?\s*(?:{_CURRENCIES})?\s*(?P<later>[+{_MINUS}])?"
    rf"(?P<digits>%s)\s*(?P<last>[{_MINUS}])?\s*(?P<unit>[%%€$£¥]|[^\W\d_]{{1,12}}[.²³]?)?\s*(?(open)\))"
)
_EXPONENT = r"(?:[eE][+-]?\d+)?"
#: What a number looks like, by its decimal mark; thousands are apart by the other mark, a space or an apostrophe.
_FORMS = {
    ".": re.compile(_FORM % (r"(?:\d{1,3}(?:[,\s'’]\d{3})+|\d*)(?:\.\d*)?" + _EXPONENT)),
    ",": re.compile(_FORM % (r"(?:\d{1,3}(?:[.\s'’]\d{3})+|\d*)(?:,\d*)?" + _EXPONENT)),
}
_APART = {".": re.compile(r"[,\s'’]"), ",": re.compile(r"[.\s'’]")}
_DOTTED = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+")
_TIME = re.compile(r"(\d{1,3}):([0-5]\d)(?::([0-5]\d(?:[.,]\d+)?))?\s?(?:([AaPp])\.?[Mm]\.?)?")


def numbers_in(words: Iterable[str], decimal: str | None = None) -> Floats:
    """Return the finite numbers that words spell, nan for a word that spells none.

    Parameters
    ----------
    words
        As in the file.
    decimal
        The decimal mark of numbers as people write them, `TIME` for times; None takes them as Python does.

    Examples
    --------
    >>> numbers_in(["-2.5e3", "1_000", "inf", "A11"]).tolist()
    [-2500.0, nan, nan, nan]
    >>> numbers_in(["1.234,5", "7 %", "-0,5 €"], ",").tolist(), numbers_in(["$1,234.5", "12 000"], ".").tolist()
    ([1234.5, 7.0, -0.5], [1234.5, 12000.0])
    >>> numbers_in(["(12.50)", "12.50-", "−7", "80 kg"], ".").tolist(), numbers_in(["14:30", "2:15 pm"], TIME).tolist()
    ([-12.5, -12.5, -7.0, 80.0], [14.5, 14.25])
    """
    read = _number if decimal is None else _hours if decimal == TIME else lambda word: _written(word, decimal)
    return np.array([read(word) for word in words], dtype=float)


def _number(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) and "_" not in word else math.nan


def _written(word: str, decimal: str) -> float:
    found = _FORMS[decimal].fullmatch(word)
    if not found:
        return math.nan
    number = _number(_APART[decimal].sub("", found["digits"]).replace(",", "."))
    minus = found["open"] or any(found[name] and found[name] in _MINUS for name in ("sign", "later", "last"))
    return -number if minus else number


def _hours(word: str) -> float:
    found = _TIME.fullmatch(word)
    if not found:
        return math.nan
    hours = float(found[1])
    if found[4]:
        hours = hours % 12 + 12 * (found[4] in "pP")
    return hours + float(found[2]) / 60 + float((found[3] or "0").replace(",", ".")) / 3600


def decimal_marks(
    columns: Mapping[str, Array], missing: Sequence[str], given: str | None, separator: str | None
) -> dict[str, str]:
    """Return the decimal mark of each column of numbers that Python would not read, or not as they are meant.

    The mark of a column of times is `TIME`.

    Parameters
    ----------
    columns
        The words by name.
    missing
        The words for "missing".
    given
        The decimal mark of the whole file, None to find out.
    separator
        Of the file: where nothing else tells, a comma is a decimal one unless it separates columns.
    """
    found: dict[str, str] = {}
    plain: dict[str, set[str]] = {}
    either = []
    for name, column in columns.items():
        words = set(column.tolist()).difference(missing)
        strange = [word for word in words if math.isnan(_number(word))]
        if not strange:
            plain[name] = words
            continue
        marks = [mark for mark in _FORMS if given in (None, mark) and _all_spell(words, mark)]
        if all(map(_TIME.fullmatch, words)):
            found[name] = TIME
        elif len(marks) == 1:
            found[name] = marks[0]
        elif marks:
            either.append(name)
    usual = given or usual_mark(found)
    if usual == ",":
        found |= {
            name: "," for name, words in plain.items() if _dotted(words)
        }  # 1.234 where commas are decimal
    return found | dict.fromkeys(either, usual or ("." if separator == "," else ","))


def usual_mark(marks: Mapping[str, str]) -> str | None:
    """Return the decimal mark of the most columns, None where no column shows one."""
    seen = Counter(mark for mark in marks.values() if mark != TIME).most_common(1)
    return seen[0][0] if seen else None


def _all_spell(words: Iterable[str], mark: str) -> bool:
    """Whether all words are numbers; a unit of letters must be that of every word, one for one and many at most."""
    units = set()
    for word in words:
        found = _FORMS[mark].fullmatch(word)
        if not found or not any(letter.isdigit() for letter in found["digits"]):
            return False
        units.add((found["unit"] or "").rstrip("."))
    if not any(unit[:1].isalpha() for unit in units):
        return True
    shortest, *others = sorted(units, key=len)
    return shortest != "" and all(len(units) == 2 and unit.startswith(shortest) for unit in others)


def _dotted(words: Iterable[str]) -> bool:
    """Whether all points stand before three digits."""
    pointed = [word for word in words if "." in word]
    return bool(pointed) and all(_DOTTED.fullmatch(word) for word in pointed)
