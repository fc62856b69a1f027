"""What all formats share: how a file is read, what its errors say, and cells as words in rows and in sentences."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from typing import Any

from nerm.errors import InvalidInputError


@dataclass(frozen=True)
class Opening:
    """What is known while a file is opened: what messages call it, and how it is to be read."""

    source: str
    encoding: str | None
    sheet: str | None
    most: int

    def refuse(self, must: str, got: str, do: str) -> InvalidInputError:
        """Return the error of this file."""
        return InvalidInputError(f"{self.source!r} must {must}", got, do)

    def too_large(self, got: str) -> InvalidInputError:
        """Return the error of a file that would not fit."""
        do = "Use fewer rows or columns, or allow more with --memory"
        return self.refuse(f"fit into {self.most / 1e9:g} GB of memory", got, do)


def word_of(value: Any) -> str:
    """Return a cell as the word that a CSV file would have; nothing for what is missing.

    >>> [word_of(v) for v in (None, float("nan"), 3.0, 2.5, True, datetime(2024, 5, 1), "a ")]
    ['', '', '3', '2.5', 'True', '2024-05-01', 'a']
    """
    if isinstance(value, str):
        return value.strip()
    if value is None or type(value).__name__ in ("NAType", "NaTType"):  # of pandas
        return ""
    if isinstance(value, datetime):
        return value.isoformat(" ").removesuffix(" 00:00:00")
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, timedelta):
        return word_of(value / timedelta(days=1))
    if isinstance(value, bytes):
        return value.decode("utf-8", "replace")
    if hasattr(value, "item") and getattr(value, "ndim", 1) == 0:
        value = value.item()
    if isinstance(value, float):
        if not math.isfinite(value):
            return "" if math.isnan(value) else str(value)
        return str(int(value)) if value.is_integer() and abs(value) < 2**53 else repr(value)
    return str(value)


def listed(names: Sequence[str], most: int = 5) -> str:
    """Return some names for a sentence."""
    return ", ".join(map(repr, names[:most])) + (
        f" and {len(names) - most} more" if len(names) > most else ""
    )


def quoted(cell: Any, most: int = 60) -> str:
    """Return a cell for a sentence, the middle of a long one left out.

    >>> quoted("ja"), len(quoted("x" * 10_000))
    ("'ja'", 60)
    """
    text = repr(str(cell))
    half = most // 2 - 1
    return text if len(text) <= most else f"{text[:half]} …{text[-half:]}"
