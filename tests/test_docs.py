"""The site builds without a warning, is whole, needs no network, draws its formulas, and no link leads nowhere."""

from __future__ import annotations

import inspect
import os
import re
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
MODULES = ["nerm", *(f"nerm.{name}" for name in nerm.__all__ if inspect.ismodule(getattr(nerm, name)))]


#: In a page: how many formulas it has, how many were drawn, how many failed, and TeX that a reader would see.
COUNT_FORMULAS = r"""
const done = arguments[0], all = (what) => [...document.querySelectorAll(what)];
MathJax.startup.promise.then(() => {
    const shown = document.body.cloneNode(true);
    shown.querySelectorAll("code, pre, script, mjx-container").forEach((node) => node.remove());
    const raw = shown.textContent.match(/\\[a-zA-Z([]+|\$[^$\n]{1,40}\$/g) || [];
    const drawn = all("mjx-container").filter((node) => node.getBoundingClientRect().width > 0);
    done([all(".math").length, drawn.length, all("[data-mml-node=merror]").length, raw]);
});
"""


def test_the_site_is_built_without_a_warning_and_is_whole(tmp_path, request):
    """One test, because the build is what takes the time. Formulas come last: they need a browser."""
    build(tmp_path)
    assert list(missing_pages(tmp_path)) == []
    assert list(missing_names(tmp_path)) == []
    pages = {path: Page(path) for path in tmp_path.rglob("*.html")}
    assert list(broken_links(tmp_path, pages)) == []
    assert list(fetched(tmp_path, pages)) == []
    assert list(raw_formulas(tmp_path, pages)) == []
    assert sum(page.formulas for page in pages.values()) > 500
    browser = request.getfixturevalue("browser")
    for path in (path for path, page in pages.items() if page.formulas):
        browser.get(path.as_uri())
        counts = browser.execute_async_script(COUNT_FORMULAS)
        assert counts == [pages[path].formulas, pages[path].formulas, 0, []], path.relative_to(tmp_path)


def build(site: Path) -> None:
    """Build by the command of CONTRIBUTING.md, but elsewhere."""
    code = (ROOT / "CONTRIBUTING.md").read_text("utf-8").split("`")
    command = next(piece for piece in code if piece.startswith("sphinx-build "))
    places = {"docs": str(DOCS), "build/docs": str(site)}
    words = [places.get(word, word) for word in command.split()[1:]]
    assert {"-n", "-W", *places.values()} <= set(words)
    calm = {key: value for key, value in os.environ.items() if key != "PYTHONWARNINGS"}
    built = subprocess.run(
        [sys.executable, "-m", "sphinx", "-q", *words], capture_output=True, text=True, env=calm
    )
    assert built.stderr == ""
    assert built.returncode == 0


def missing_pages(site: Path) -> Iterator[str]:
    """Yield the pages, notebooks and modules that the site should have and has not."""
    sources = [path.relative_to(DOCS) for path in DOCS.rglob("*.md")]
    sources += [Path("notebooks", path.name) for path in (ROOT / "notebooks").glob("*.ipynb")]
    sources += [Path("api", f"{module}.html") for module in MODULES]
    for source in sources:
        if not (site / source.with_suffix(".html")).exists():
            yield str(source)


def missing_names(site: Path) -> Iterator[str]:
    """Yield the public names that have no entry in the reference, or two: their own name and nerm's short one."""
    from sphinx.util.inventory import InventoryFile

    inventory = InventoryFile.loads((site / "objects.inv").read_bytes(), uri="")
    entries = {
        name: item.uri
        for kind, names in inventory.data.items()
        if kind.startswith("py:")
        for name, item in names.items()
    }
    for module in map(import_module, MODULES):
        for name in module.__all__:
            short = f"nerm.{name}" if getattr(nerm, name, None) is getattr(module, name) else ""
            found = {entries[one] for one in (f"{module.__name__}.{name}", short) if one in entries}
            if len(found) != 1:  # the second name may be an alias of the first, at the same place
                yield f"{module.__name__}.{name}: {sorted(found)}"


class Page(HTMLParser):
    """The places that a page has, the links that it makes, what it loads, its formulas and its prose."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.formulas = 0
        self.prose: list[str] = []
        self._open: list[str] = []  # the tags around the text that is read, whose text is no prose
        self.feed(path.read_text("utf-8"))

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        self.places.update(given[key] for key in ("id", "name") if given.get(key))
        self.links += [given[key] for key in ("href", "src") if given.get(key)]
        if tag in ("script", "img", "iframe", "link") and given.get("rel") not in (
            "canonical",
            "index",
            "search",
        ):
            self.loaded += [given[key] for key in ("href", "src") if given.get(key)]
        formula = "math" in (given.get("class") or "").split()
        self.formulas += formula
        if formula or tag in ("code", "pre", "script", "style") or tag in self._open:
            self._open.append(tag)

    def handle_endtag(self, tag):
        if self._open and self._open[-1] == tag:
            self._open.pop()

    def handle_data(self, data):
        if not self._open:
            self.prose.append(data)


def broken_links(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Yield the links to files and places within the site that are not there."""
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            place = unquote(parts.fragment)
            if not target.exists() or (place and target in pages and place not in pages[target].places):
                yield f"{path.relative_to(site)}: {link}"


def fetched(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Yield what a page would have to fetch from elsewhere: scripts, styles, pictures."""
    for path, page in pages.items():
        yield from (f"{path.relative_to(site)}: {link}" for link in page.loaded if urlsplit(link).netloc)


def raw_formulas(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """Yield the TeX that stands in prose, where nothing would draw it."""
    for path, page in pages.items():
        for found in re.finditer(r"\\(?:[a-zA-Z]{2,}|[(\[])|\$\$|\$[^$\n ]{1,40}\$", "".join(page.prose)):
            yield f"{path.relative_to(site)}: {found[0]}"
