"""The site builds without a warning, has every page and every public name, and no link of it leads nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import nerm

pytestmark = pytest.mark.long

pytest.importorskip("sphinx", reason="the site needs the extra 'docs'")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


def test_the_site_is_built_without_a_warning_and_is_whole(tmp_path):
    """One test, because the build is what takes the time."""
    build(tmp_path)
    assert list(missing_pages(tmp_path)) == []
    assert list(missing_names(tmp_path)) == []
    assert list(broken_links(tmp_path)) == []


def build(site: Path) -> None:
    """Build by the command of CONTRIBUTING.md, but elsewhere."""
    code = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("`")
    command = next(piece for piece in code if piece.startswith("sphinx-build "))
    places = {"docs": str(DOCS), "build/docs": str(site)}
    words = [places.get(word, word) for word in command.split()[1:]]
    assert {"-n", "-W", *places.values()} <= set(words)
    calm = {key: value for key, value in os.environ.items() if key != "PYTHONWARNINGS"}
    built = subprocess.run([sys.executable, "-m", "sphinx", "-q", *words], capture_output=True, text=True, env=calm)
    assert built.stderr == ""
    assert built.returncode == 0


def missing_pages(site: Path) -> Iterator[str]:
    """Yield the pages, notebooks and rooms that the site should have and has not."""
    sources = [path.relative_to(DOCS) for path in DOCS.rglob("*.md")]
    sources += [Path("notebooks", path.name) for path in (ROOT / "notebooks").glob("*.ipynb")]
    sources += [Path("api", f"{room}.html") for room in ("nerm", *(f"nerm.{room}" for room in nerm._ROOMS))]
    for source in sources:
        if not (site / source.with_suffix(".html")).exists():
            yield str(source)


def missing_names(site: Path) -> Iterator[str]:
    """Yield the public names that have no entry in the reference, or two: their own name and nerm's short one."""
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    entries = {name for kind, names in inventory.data.items() if kind.startswith("py:") for name in names}
    for room in (nerm, *(import_module(f"nerm.{room}") for room in nerm._ROOMS)):
        for name in room.__all__:
            short = f"nerm.{name}" if getattr(nerm, name, None) is getattr(room, name) else ""
            found = entries & {f"{room.__name__}.{name}", short}
            if len(found) != 1:
                yield f"{room.__name__}.{name}: {sorted(found)}"


class Page(HTMLParser):
    """The places that a page has, and the links that it makes."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.places.update(given[key] for key in ("id", "name") if given.get(key))
        self.links += [given[key] for key in ("href", "src") if given.get(key)]


def broken_links(site: Path) -> Iterator[str]:
    """Yield the links to files and places within the site that are not there."""
    pages = {path: Page(path) for path in site.rglob("*.html")}
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.exists() or (place and target in pages and place not in pages[target].places):
                yield f"{path.relative_to(site)}: {link}"
