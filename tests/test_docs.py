"""The site builds without a warning, has every page and every public name, and no link of it leads nowhere."""

from __future__ import annotations

import os
import subprocess
import sys
from html.parser import HTMLParser
from importlib import import_module
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import nerm

pytest.importorskip("sphinx", reason="the site needs the extra 'docs'")

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Build as CONTRIBUTING.md says, elsewhere."""
    out = tmp_path_factory.mktemp("site")
    command = next(
        line for line in (ROOT / "CONTRIBUTING.md").read_text().split("`") if line.startswith("sphinx-build")
    )
    words = [str(DOCS) if w == "docs" else str(out) if w == "build/docs" else w for w in command.split()[1:]]
    clean = {k: v for k, v in os.environ.items() if k != "PYTHONWARNINGS"}
    built = subprocess.run([sys.executable, "-m", "sphinx", "-q", *words], capture_output=True, text=True, env=clean)
    assert built.returncode == 0, built.stderr
    assert built.stderr == ""
    return out


class Page(HTMLParser):
    """The places that a page has, and the links that it makes."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: list[str] = []
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.ids.update(given[key] for key in ("id", "name") if given.get(key))
        self.links += [given[key] for key in ("href", "src") if given.get(key)]


def test_every_page_and_every_notebook_is_there(site):
    sources = [path.relative_to(DOCS) for path in DOCS.rglob("*.md")]
    sources += [Path("notebooks") / path.name for path in (ROOT / "notebooks").glob("*.ipynb")]
    sources += [Path("api") / f"nerm.{room}.rst" for room in nerm._ROOMS]
    missing = [str(path) for path in sources if not (site / path.with_suffix(".html")).exists()]
    assert missing == []


def test_every_public_name_is_in_the_reference_once(site):
    sys.path.insert(0, str(DOCS))
    try:
        import pages
    finally:
        sys.path.remove(str(DOCS))
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    entries = {name for kind, names in inventory.data.items() if kind.startswith("py:") for name in names}
    for room in [nerm, *(import_module(f"nerm.{room}") for room in nerm._ROOMS)]:
        public = room.__all__ if hasattr(room, "__all__") else pages.names(room)
        for name in public:
            full, thing = f"{room.__name__}.{name}", getattr(room, name)
            places = [entry for entry in (full, f"nerm.{name}") if entry in entries and pages.thing_at(entry) is thing]
            assert len(places) == 1 or room is nerm, f"{full} has {len(places)} entries"
            assert places, f"{full} has no entry"


def test_no_link_within_the_site_leads_nowhere(site):
    pages = {path: Page(path) for path in site.rglob("*.html")}
    broken = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            there = target.exists() and (
                not parts.fragment or target not in pages or unquote(parts.fragment) in pages[target].ids
            )
            if not there:
                broken.append(f"{path.relative_to(site)}: {link}")
    assert broken == []
