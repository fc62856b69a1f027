"""The shape of pages: the README is short, a page opens with its use, a decision fits on one page."""

from __future__ import annotations

from pathlib import Path

import pytest

import nerm

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
