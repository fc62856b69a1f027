"""The shape of pages: the README is short, a page opens with its use, a decision fits on one page.

And the figures that pages quote are those that are stored beside the benchmarks.
"""

from __future__ import annotations

import csv
import json
import re
from pathlib import Path

import pytest

import nerm
from nerm.cli.options import measure_options

ROOT = Path(nerm.__file__).parent.parent
DOCS = ROOT / "docs"
WITHOUT_USE = {"index.md", "changelog.md", "contributing.md", "decisions/index.md"}
DECISIONS = sorted((DOCS / "decisions").glob("0*.md"))
BUILT = ("api/", "notebooks/")  # written by a build of the site
GUIDE = [
    path
    for path in sorted(DOCS.rglob("*.md"))
    if path not in DECISIONS
    and (name := path.relative_to(DOCS).as_posix()) not in WITHOUT_USE
    and not name.startswith(BUILT)
]
OPENINGS = ("With this page you", "With these notebooks you", "*")  # a command's page opens with a question
WORDS = 900  # of a decision: about one page


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").splitlines()) <= 90


@pytest.mark.parametrize("path", GUIDE, ids=lambda path: str(path.relative_to(DOCS)))
def test_a_page_opens_with_its_use_and_has_an_example(path):
    title, use, *rest = path.read_text("utf-8").split("\n\n")
    assert title.startswith("# ")
    assert use.startswith(OPENINGS)
    assert "```" in "".join(rest)


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_has_context_decision_and_consequences_on_one_page(path):
    text = path.read_text("utf-8")
    places = [text.find(f"**{part}") for part in ("Context", "Decision", "Consequences")]
    assert -1 not in places
    assert places == sorted(places)
    assert len(text.split()) <= WORDS


def test_the_page_of_limits_pairs_measures_with_options_of_the_command():
    page = (DOCS / "howto/level.md").read_text("utf-8")
    pairs = measure_options()
    assert [f'| `"{name}"` | `{option}` |' in page for option, name in pairs.items()] == [True] * len(pairs)


def stored(name: str) -> list[dict[str, str]]:
    """Return the rows of a file of results beside the benchmarks."""
    with (ROOT / "benchmarks" / name).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def rounded(ratio: float) -> str:
    """Return a ratio as a page shows it.

    >>> rounded(67.2), rounded(0.786), rounded(5.45)
    ('67', '0.79', '5.5')
    """
    return f"{ratio:.0f}" if ratio >= 15 else f"{ratio:.1f}" if ratio >= 1 else f"{ratio:.2f}"


def test_the_ratios_of_the_page_on_speed_are_the_stored_ones():
    numbers = set(re.findall(r"(?<![\d.])\d+(?:\.\d+)?(?![\d.]\d)", (DOCS / "speed.md").read_text("utf-8")))
    for row in stored("history.csv"):
        ratio = float(row["ratio"])
        shown = rounded(
            1 / ratio if row["against"] == "svc" else ratio
        )  # of a kernel, nerm's time over SVC's
        assert shown in numbers, row


def test_the_times_of_the_page_on_large_data_are_the_stored_ones():
    page = (DOCS / "howto" / "large.md").read_text("utf-8")
    times = [
        (int(row["passes"]), float(row["processor"]), float(row["GiB"]))
        for row in stored("chunks_growth.csv")
    ]
    for passes, seconds, memory in re.findall(r"(\d+) passes, ([\d.]+) s, ([\d.]+) GiB", page):
        quoted = (int(passes), float(seconds), float(memory))
        assert any(
            quoted[0] == one[0]
            and quoted[1] == pytest.approx(one[1], rel=0.02)
            and quoted[2] == pytest.approx(one[2], rel=0.02)
            for one in times
        ), quoted


def test_the_table_of_the_page_on_regression_is_the_stored_one():
    page = (DOCS / "howto" / "regression.md").read_text("utf-8")
    _, section = page.split("## What it costs on real data")
    lines = re.findall(
        r"^\| .* \| (yes|no) \| ([\d.]+) \| ([\d.]+) \| \+?([\d.]+) \|$", section, re.MULTILINE
    )
    rows = [row for row in stored("communities.csv") if row["race as a"] == "group"]
    assert len(lines) == len(rows)
    for (sees, *quoted), row in zip(lines, rows, strict=True):
        assert sees == row["sees"]
        assert [float(one) for one in quoted] == [
            round(float(row["KS"]), 3),
            round(float(row["|mean diff|"]), 3),
            float(row["excess"]),
        ]
        assert float(row["over the limit (train)"] or 0) == 0


@pytest.mark.parametrize(
    ("page", "notebook"),
    [
        ("filter_bubble", "10_filter_bubble"),
        ("without_the_attribute", "11_without_the_attribute"),
    ],
)
def test_the_tables_of_an_application_are_in_the_outputs_of_its_notebook(page, notebook):
    """Every number of a table is the rounded value of some number that the notebook printed."""
    cells = json.loads((ROOT / "notebooks" / f"{notebook}.ipynb").read_text("utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", [])]
    texts = ["".join(one.get("text") or one.get("data", {}).get("text/plain") or "") for one in outputs]
    printed = [float(number) for number in re.findall(r"-?\d+\.\d+", " ".join(texts))]
    table = re.findall(r"^\|.*\|$", (DOCS / "applications" / f"{page}.md").read_text("utf-8"), re.MULTILINE)
    quoted = [number for line in table for number in re.findall(r"(?<=\| )-?\d\.\d+(?= \|)", line)]
    assert len(quoted) >= 20
    for number in quoted:
        half = 0.5 * 10.0 ** -len(number.partition(".")[2])
        assert min(abs(float(number) - one) for one in printed) <= half + 1e-9, number
