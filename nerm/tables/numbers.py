"""Numbers as people write them: decimal points or commas, thousands apart, a currency or a percent sign.

Which mark is the decimal one is seen in a column as a whole, and where that leaves it open, in the other columns.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from nerm.typing import Array, Floats

MARKS = {"point": ".", "comma": ","}
_SIGN = r"\s*[€$£¥]?\s*([+-]?"
_END = r"(?:[eE][+-]?\d+)?)\s*[€$£¥%]?\s*"
#: What a number looks like, by its decimal mark; thousands are apart by the other mark, a space or an apostrophe.
_FORMS = {
    ".": re.compile(_SIGN + r"(?:\d{1,3}(?:[,\s'’]\d{3})+|\d*)(?:\.\d*)?" + _END),
    ",": re.compile(_SIGN + r"(?:\d{1,3}(?:[.\s'’]\d{3})+|\d*)(?:,\d*)?" + _END),
}
_APART = {".": re.compile(r"[,\s'’]"), ",": re.compile(r"[.\s'’]")}
_DOTTED = re.compile(r"[+-]?\d{1,3}(?:\.\d{3})+")


def numbers_in(words: Iterable[str], decimal: str | None = None) -> Floats:
    """Return the finite numbers that words spell, nan for a word that spells none.

    Parameters
    ----------
    words
        As in the file.
    decimal
        The decimal mark of numbers as people write them; None takes them as Python does.

    Examples
    --------
    >>> numbers_in(["-2.5e3", "1_000", "inf", "A11"]).tolist()
    [-2500.0, nan, nan, nan]
    >>> numbers_in(["1.234,5", "7 %", "-0,5 €"], ",").tolist(), numbers_in(["$1,234.5", "12 000"], ".").tolist()
    ([1234.5, 7.0, -0.5], [1234.5, 12000.0])
    """
    return np.array([_number(word) if decimal is None else _written(word, decimal) for word in words], dtype=float)


def _number(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) and "_" not in word else math.nan


def _written(word: str, decimal: str) -> float:
    found = _FORMS[decimal].fullmatch(word)
    return _number(_APART[decimal].sub("", found[1]).replace(",", ".")) if found else math.nan


def decimal_marks(
    columns: Mapping[str, Array], missing: Sequence[str], given: str | None, separator: str | None
) -> dict[str, str]:
    """Return the decimal mark of each column of numbers that Python would not read, or not as they are meant.

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
        if len(marks) == 1:
            found[name] = marks[0]
        elif marks:
            either.append(name)
    seen = Counter(found.values()).most_common(1)
    usual = given or (seen[0][0] if seen else None)
    if usual == ",":
        found |= {name: "," for name, words in plain.items() if _dotted(words)}  # 1.234 where commas are decimal
    return found | dict.fromkeys(either, usual or ("." if separator == "," else ","))


def _all_spell(words: Iterable[str], mark: str) -> bool:
    return all(_FORMS[mark].fullmatch(word) and any(letter.isdigit() for letter in word) for word in words)


def _dotted(words: Iterable[str]) -> bool:
    """Whether all points stand before three digits."""
    pointed = [word for word in words if "." in word]
    return bool(pointed) and all(_DOTTED.fullmatch(word) for word in pointed)
