"""The names and signatures that docs/stability.md promises to keep until 1.0 are still there.

`tests/stable_signatures.json` holds the promise: for each name its parameters, or null for an error class. To
promise a new name, add it with the value [] and run `python -m tests.test_stability`; an older promise stays.
"""

from __future__ import annotations

import inspect
import json
import re
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

import nerm

FILE = Path(__file__).with_name("stable_signatures.json")
PROMISED: dict[str, list[str] | None] = json.loads(FILE.read_text("utf-8"))
PAGE = FILE.parents[1] / "docs" / "stability.md"
KEYWORD_ONLY = "*"


def parameters(name: str) -> list[str] | None:
    """Return the parameters of a name with their defaults, "*" before those by keyword only; None for an error.

    >>> parameters("nerm.Problem.path")[:6]
    ['self', 'eta', "solver='auto'", 'tol=1e-06', '*', 'strict=False']
    """
    found: Any = reduce(getattr, name.split(".")[1:], nerm)
    if inspect.isclass(found) and issubclass(found, BaseException):
        return None
    said: list[str] = []
    for parameter in inspect.signature(found).parameters.values():
        if parameter.kind is parameter.KEYWORD_ONLY and KEYWORD_ONLY not in said:
            said.append(KEYWORD_ONLY)
        plain = parameter.replace(annotation=parameter.empty)
        said.append(re.sub(r"<(class|function) '?([\w.]+)[^>]*>", r"\2", str(plain)))
    return said


def broken(promised: list[str], now: list[str]) -> list[str]:
    """Return why a call that was written for the promised parameters may fail or mean something else now.

    >>> broken(["a", "b=1"], ["a", "b=1", "c=2", "*", "d=3"])
    []
    >>> broken(["a", "b=1", "*", "c=2"], ["a", "d", "b=1", "*", "c=3", "e"])
    ['by position: b=1', 'by keyword: c=2', 'needed now: d', 'needed now: e']
    """
    (places, keywords), (new_places, new_keywords) = map(_split, (promised, now))
    moved = [text for k, text in enumerate(places) if new_places[k : k + 1] != [text]]
    lost = [text for text in keywords if text not in new_keywords]
    needed = [text for text in (*new_places, *new_keywords) if not ("=" in text or text[0] == "*")]
    return [
        *(f"by position: {text}" for text in moved),
        *(f"by keyword: {text}" for text in lost),
        *(f"needed now: {text}" for text in needed if text not in promised),
    ]


def _split(said: list[str]) -> tuple[list[str], list[str]]:
    """Return the parameters by position and those by keyword only."""
    cut = said.index(KEYWORD_ONLY) if KEYWORD_ONLY in said else len(said)
    return said[:cut], said[cut + 1 :]


@pytest.mark.parametrize("name", PROMISED)
def test_promised_names_keep_their_parameters(name):
    promised, now = PROMISED[name], parameters(name)
    if promised is None or now is None:
        assert promised is now
    else:
        assert broken(promised, now) == []


def test_the_page_lists_the_promised_names():
    page = re.findall(r"`([^`\n]+)`", PAGE.read_text("utf-8"))
    words = set(re.findall(r"\w+", " ".join(page)))
    assert [name for name in PROMISED if name.split(".")[-1] not in words] == []


if __name__ == "__main__":
    filled = {name: parameters(name) if kept == [] else kept for name, kept in PROMISED.items()}
    lines = (f" {json.dumps(name)}: {json.dumps(kept)}" for name, kept in filled.items())
    FILE.write_text("{\n" + ",\n".join(lines) + "\n}\n", "utf-8")
