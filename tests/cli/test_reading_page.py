"""The page "How your data are read" says what the code does: words, numbers, options and notes."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from nerm.cli.options import role_options, table_options
from nerm.tables import recipe, roles, values

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "howto" / "reading.md").read_text("utf-8")
COMMAND = PAGE.partition("## In the command")[2]
ROWS = {row.split(" | ")[0].removeprefix("| "): row for row in COMMAND.splitlines() if row.startswith("| ")}


def row(beginning: str) -> str:
    """Return the one row of the page's table that begins so."""
    (found,) = (text for name, text in ROWS.items() if name.startswith(beginning))
    return found


def test_every_option_that_changes_a_reading_is_named():
    @table_options
    @role_options
    def command(**options: object) -> None:
        """Take the options."""

    options = [option.opts[0] for option in click.command()(command).params]
    assert [name for name in options if name not in COMMAND] == ["--target"]  # names a column, reads nothing


def test_words_for_missing():
    named = set(re.findall("`([^`]+)`", row("missing values").split(" | ")[1]))
    assert named == set(values.MISSING) - {""}


@pytest.mark.parametrize(
    ("beginning", "number"),
    [
        ("groups below 30 rows, of more", roles.FEW_ROWS),
        ("groups below 30 measured rows", roles.FEW_ROWS),
        ("groups below 30 rows in impact", roles.FEW_ROWS),
        ("a target with more than 12", roles.MOST_SHOWN),
        ("a column of more than 100", recipe.MOST_LEVELS),
        ("a column of more than 100", recipe.MOST_LEVELS - 1),
    ],
)
def test_numbers(beginning, number):
    assert str(number) in row(beginning)


def test_years_of_two_digits():
    first, last = re.findall(r"\d{4}", row("years of two digits"))
    read = [values.dates_in([f"01.01.{year[2:]}"], "day.month.year").year[0] for year in (first, last)]
    assert read == [int(first), int(last)]
    assert values.dates_in([f"01.01.{int(last[2:]) + 1}"], "day.month.year").year[0] == int(first)


def test_every_place_has_a_test():
    stories = {
        "traps": "tests/cli/test_traps.py",
        "files": "tests/cli/test_three_files.py",
        "tables": "tests/tables",
        "python": "tests/model/test_reading.py",
        "labels": "tests/model/test_label_reading.py",
        "viewpoints": "tests/model/test_viewpoint_reading.py",
    }
    tables = re.findall(r"^\|.*\| ([^|]+) \|$", PAGE, re.MULTILINE)
    named = {name.strip(" `") for cell in tables for name in cell.split(",")} - {"test", "---"}
    assert [name for name in named if not (ROOT / stories.get(name, name)).exists()] == []


def test_what_is_quoted_is_in_the_code():
    files = [*(ROOT / "nerm").rglob("*.py"), *(ROOT / "nerm").rglob("*.j2")]
    code = "".join(path.read_text("utf-8") for path in files)
    quoted = {text for row in ROWS.values() for text in re.findall(r'said: "([^"]+)"', row)}
    plain = [part for text in quoted for part in re.split(r"`[^`]+`|\.\.\.", text) if part.strip()]
    missing = [part.strip() for part in plain if part.strip() not in code]
    assert missing == [], plain
