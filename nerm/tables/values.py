"""Parse the cells of a table: missing values, numbers, dates, categories, the positive one of two values."""

import math
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import permutations
from statistics import mode
from typing import Any

import numpy as np
import pandas as pd

from nerm.typing import Array, Floats

MISSING = ("", "?", "NA", "N/A", "NaN", "null", "#N/A", "<NA>", "NaT")
MARKS = {"point": ".", "comma": ","}
_DIGITS = r"(?:\d{1,3}(?:[%s\s'’]\d{3})+|\d*)(?:[%s]\d*)?(?:[eE][+-]?\d+)?"
_NUMBER = r"\s*[+−-]?\s*[€$£¥]?\s*[+−-]?" + _DIGITS + r"\s*[%%€$£¥]?\s*"
#: The written form of a number by its decimal mark: thousands separators, a currency or a percent sign.
_FORMS = {".": re.compile(_NUMBER % (",", ".")), ",": re.compile(_NUMBER % (".", ","))}
_THOUSANDS = re.compile(r"[+-]?[1-9]\d{0,2}(?:\.\d{3})+")
_UNITS = re.compile(r"[€$£¥%]")
TWO_DIGITS = re.compile(r"^\d{1,2}[-./](\d{1,2}|[A-Za-z]{3})[-./]\d{2}\b(?![-./])")
_CLOCK = r"[T\s,]+\d{1,2}:\d{2}.*$"
#: By order of year, month and day, the date formats of strptime.
ORDERS = {
    "year-month-day": "%Y-%m-%d | %Y/%m/%d | %Y.%m.%d",
    "day.month.year": "%d.%m.%Y | %d/%m/%Y | %d-%m-%Y | %d.%m.%y | %d/%m/%y | %d-%m-%y",
    "month/day/year": "%m/%d/%Y | %m-%d-%Y | %m/%d/%y | %m-%d-%y",
    "months by name": "%d %b %Y | %d-%b-%Y | %d-%b-%y | %d %B %Y | %b %d, %Y | %B %d, %Y | %b %Y | %B %Y",
    "year-month": "%Y-%m | %Y/%m | %m/%Y",
}
_PAIRS = """
yes no, y n, true false, t f, 1 0, 1 -1, +1 -1, good bad, high low, pass fail, passed failed, pos neg,
positive negative, approved rejected, approved denied, accepted rejected, granted denied, granted refused,
admitted rejected, hired rejected, success failure, won lost, on off, present absent, >50k <=50k, ja nein,
j n, wahr falsch, oui non, o n, vrai faux, sí no, si no, s n, sim não, sì no, ja nee, tak nie, да нет, 是 否
"""
_UNKNOWN = {"none", "unknown", "not known", "missing", "n.a", "k.a", "keine angabe", "unbekannt", "inconnu"}


def key_of(word: str) -> str:
    """Return a word without case, accents and superfluous blanks, and without "." or ".0" at its end.

    Words with the same key are spellings of one value.

    >>> [key_of(word) for word in ("Ja ", "S\u00dcD", "not  paid", ">50K.", "1.0")]
    ['ja', 'sud', 'not paid', '>50k', '1']
    """
    letters = unicodedata.normalize("NFKD", word.casefold())
    plain = "".join(letter for letter in letters if not "\u0300" <= letter <= "\u036f")
    return " ".join(plain.split()).removesuffix(".").removesuffix(".0")


_POSITIVE = {
    frozenset(map(key_of, pair.split())): key_of(pair.split()[0])
    for pair in _PAIRS.replace("\n", " ").split(",")
}


def counted(counts: Mapping[str, int], most: int = 5) -> str:
    """Return the first `most` values with their numbers of rows, for a sentence.

    >>> counted({"f": 1200, "m": 3})
    "'f' (1,200 rows), 'm' (3)"
    """
    shown = [f"{quoted(word)} ({number:,})" for word, number in list(counts.items())[:most]]
    unit = "row" if next(iter(counts.values())) == 1 else "rows"
    shown[0] = f"{shown[0][:-1]} {unit})"
    more = f" and {len(counts) - most} more values" if len(counts) > most else ""
    return ", ".join(shown) + more


def doubtful(name: str, counts: Mapping[str, int], few: int) -> Iterator[str]:
    """Yield notes on values that may be equal (M and Male, a misspelling) or missing (a dash).

    Parameters
    ----------
    name
        Name of the column.
    counts
        By value, its number of rows.
    few
        A value of fewer rows may be a misspelling of one that differs by one letter.
    """
    keys = {word: key_of(word) for word in counts}
    for word, other in permutations(counts, 2):
        one, two = sorted((keys[word], keys[other]), key=len)
        if not two.isalpha() or (counts[word], word) > (counts[other], other):
            continue
        if (one and two.startswith(one)) or (counts[word] < few and _one_typo(one, two)):
            pair = counted({word: counts[word], other: counts[other]}).replace(", ", " and ")
            yield f"{pair} in {name!r} may mean the same: --same '{word}={other}' reads them as one"
    for word, key in keys.items():
        if key in _UNKNOWN or (not any(map(str.isalnum, key)) and len(counts) > 2):
            text = counted({word: counts[word]})
            yield f"{text} in {name!r} is read as a value of its own: --missing {word!r} reads it as missing"


def _one_typo(one: str, two: str) -> bool:
    """Whether words of at least four letters differ by one letter, or by two adjacent ones swapped.

    The second word is not shorter.
    """
    first = next((k for k, (a, b) in enumerate(zip(one, two, strict=False)) if a != b), len(one))
    rest, other = one[first:], two[first:]
    return len(one) >= 4 and (other[1:] in (rest, rest[1:]) or other == rest[1::-1] + rest[2:])


def word_of(value: Any) -> str:
    """Return a cell as the string that a CSV file would have; "" for a missing value.

    >>> [word_of(v) for v in (None, float("nan"), 3.0, 2.5, True, pd.Timestamp(2024, 5, 1), "a ")]
    ['', '', '3', '2.5', 'True', '2024-05-01', 'a']
    """
    if value is None or pd.isna(value) is True:
        return ""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)
    return str(value).strip().removesuffix(" 00:00:00")


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return the first `most` names, quoted, for a sentence, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(repr, names[:most])) + more


def quoted(cell: Any, most: int = 60) -> str:
    """Return a cell in quotes for a sentence, cut to `most` characters.

    >>> quoted("ja"), len(quoted("x" * 10_000))
    ("'ja'", 60)
    """
    text = repr(str(cell))
    return text if len(text) <= most else f"{text[: most - 2]} …"


def safe_words(words: Any) -> Any:
    """Put ' before strings that a spreadsheet would run as formulas; numbers stay unchanged.

    >>> safe_words(pd.Series(["=1+1", "-2.5", "plain"])).tolist()
    ["'=1+1", '-2.5', 'plain']
    """
    risky = words.str.match(r"[=+\-@\t\r]") & np.isnan(numbers_in(words))
    return words.mask(risky, "'" + words)


def written(unknown: Array) -> str:
    """Return the words for missing cells that occur in the table, for a sentence.

    It is "" if all missing cells are empty.

    >>> written(np.array(["", "NA", "NA"], dtype=object))
    ", written 'NA'"
    """
    words = sorted(set(unknown.tolist()) - {""})
    return f", written {listed(words)}" if words else ""


def positive_of(first: str, second: str) -> str | None:
    """Return the positive one of two values, or None if they are not a known pair such as yes/no.

    >>> positive_of("nein", "Ja"), positive_of("0.0", "1.0"), positive_of("a", "b")
    ('Ja', '1.0', None)
    """
    small = {key_of(word): word for word in (first, second)}
    known = _POSITIVE.get(frozenset(small))
    return None if known is None else small[known]


def numbers_in(words: Iterable[str], decimal: str | None = None) -> Floats:
    """Parse strings as finite numbers, (n,); nan if a string is no number.

    Parameters
    ----------
    words
        The strings as in the file.
    decimal
        The decimal mark, "." or ",". If it is given, thousands separators, currency and percent signs are
        accepted too, and a number in parentheses is negative. None parses numbers as Python's float() does.

    Examples
    --------
    >>> numbers_in(["-2.5e3", "1_000", "inf", "A11"]).tolist()
    [-2500.0, nan, nan, nan]
    >>> numbers_in(["1.234,5", "7 %", "-0,5 €"], ",").tolist()
    [1234.5, 7.0, -0.5]
    >>> numbers_in(["$1,234.5", "12 000", "(3.5)"], ".").tolist()
    [1234.5, 12000.0, -3.5]
    """
    codes, distinct = pd.factorize(np.array([*words], dtype=object))
    return np.array([_number(word, decimal) for word in distinct], dtype=float)[codes]


def _number(word: str, decimal: str | None = None) -> float:
    if decimal is not None:
        if word.startswith("(") and word.endswith(")"):  # negative, as in accounts
            return -abs(_number(word[1:-1], decimal))
        if not _FORMS[decimal].fullmatch(word):
            return math.nan
        word = re.sub(r"[^\d.,eE+-]", "", word.replace("−", "-"))
        word = word.replace("," if decimal == "." else ".", "").replace(",", ".")
    try:
        number = float(word)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) and "_" not in word else math.nan


def decimal_marks(
    columns: Any, given: str | None, separator: str | None, usual: str | None = None
) -> dict[str, str]:
    """Return the decimal mark by column, for columns whose numbers Python's float() would misread.

    A column that can be read with both marks gets the mark that most other columns have, or, if no other
    column decides, `usual`, the mark of the table that a model was fitted on. Words among the numbers, such
    as "unknown", do not matter if they are at most half of the different values.

    Parameters
    ----------
    columns
        A DataFrame of strings.
    given
        The decimal mark of the whole file, or None to guess it.
    separator
        The separator of the file. If no column decides, the mark is a point if columns are separated by
        commas, else a comma.
    """
    words = {name: set(column).difference(MISSING) for name, column in columns.items()}
    plain = {name: {word for word in known if not math.isnan(_number(word))} for name, known in words.items()}
    able = dict[str, list[str]]()
    for name in [name for name, known in words.items() if plain[name] != known]:
        counts = {m: sum(not math.isnan(_number(word, m)) for word in words[name]) for m in given or ".,"}
        most = max(counts.values())
        if most > max(len(plain[name]), len(words[name]) / 2):
            able[name] = [mark for mark, count in counts.items() if count == most]
    found = {name: marks[0] for name, marks in able.items() if len(marks) == 1}
    usual = given or (mode(found.values()) if found else usual)
    if usual == ",":  # then 1.234 means 1234
        for name in words.keys() - found.keys():
            pointed = [word for word in plain[name] if "." in word]
            if pointed and all(map(_THOUSANDS.fullmatch, pointed)):
                found[name] = ","
    usual = usual or ("." if separator == "," else ",")
    return {name: found.get(name, usual) for name in columns if name in found or name in able}


def number_notes(name: str, words: Iterable[str], mark: str | None) -> Iterator[str]:
    """Yield notes on numbers that can be read in two ways.

    Examples are 1.200 beside 950, and mixed units such as % and $. `words` are the different values of a
    column of numbers, `mark` is its decimal mark (`decimal_marks`).

    >>> list(number_notes("pay", ["1.200", "950"], None))
    ["'1.200' beside '950' in 'pay' is read with a decimal point; --decimal comma reads it as thousands"]
    """
    plain = [word for word in words if "." not in word and "," not in word]
    pointed = [word for word in words if "." in word]
    if mark is None and plain and pointed and all(map(_THOUSANDS.fullmatch, pointed)):
        beside = f"{min(pointed)!r} beside {max(plain, key=len)!r} in {name!r}"
        yield f"{beside} is read with a decimal point; --decimal comma reads it as thousands"
    units = sorted({"".join(_UNITS.findall(word)) for word in words})
    if any(word.startswith("(") for word in words):
        yield f"numbers in parentheses in {name!r} are read as negative"
    if len(units) > 1:
        named = " and ".join(unit or "no unit" for unit in units)
        yield f"{name!r} has numbers with {named}, which are read as if they had one unit"


def dates_in(words: Iterable[str], order: str) -> pd.DatetimeIndex:
    """Parse strings as dates, (n,); NaT if a string is no date. The time of day is ignored.

    Parameters
    ----------
    words
        The strings as in the file.
    order
        A key of `ORDERS`. A month without a day means its first day.

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
    for form in ORDERS[order].split(" | "):
        dates = dates.fillna(pd.to_datetime(text, format=form, errors="coerce").astype("datetime64[s]"))
    return pd.DatetimeIndex(dates.to_numpy()[codes])


def date_orders(words: Iterable[str]) -> list[str]:
    """Return the keys of `ORDERS` with which most strings are dates.

    If several are equally good, all are returned. The list is empty if at most half of the strings are dates.
    """
    distinct = list(words)
    ends = distinct[0], distinct[-1]
    if not any(map(str.isdigit, "".join(ends))) or all(dates_in(ends, key).isna().all() for key in ORDERS):
        return []
    counts = {order: int(dates_in(distinct, order).notna().sum()) for order in ORDERS}
    most = max(counts.values())
    return [order for order, count in counts.items() if count == most] if most > len(distinct) / 2 else []
