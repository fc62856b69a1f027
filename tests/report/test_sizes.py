"""The report in a real browser at the sizes of a phone, a tablet, a screen and paper, and its accessibility."""

from __future__ import annotations

import importlib.resources
import importlib.util
from contextlib import contextmanager
from itertools import combinations

import pytest

from nerm.report.fitting import Settings
from nerm.report.page import render_page
from nerm.report.study import run_study
from nerm.tables import make_task, parse_table
from tests.cli.conftest import as_csv, census

pytestmark = pytest.mark.long
WIDTHS = (360, 768, 1280)
PAPER = (718, 1046)  # A4 without the browser's margins, in CSS pixels


@pytest.fixture
def page(browser, study, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(render_page(study, "nerm tradeoff census.csv"), encoding="utf-8")
    browser.get(path.as_uri())
    return browser


@contextmanager
def emulated(page, width, height=800, **media):
    size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
    page.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", media)
    try:
        yield
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "", "features": []})


TEXTS = """
return [...document.querySelectorAll("svg.front")].filter(s => s.getClientRects().length).flatMap(svg => {
  const all = svg.getBoundingClientRect(), scale = all.width / svg.viewBox.baseVal.width;
  return [...svg.querySelectorAll("text")].filter(t => getComputedStyle(t).visibility === "visible").map(t => {
    const box = t.getBoundingClientRect();
    return {words: t.textContent, size: scale * parseFloat(getComputedStyle(t).fontSize), name: t.matches(".name"),
      inside: box.left >= all.left && box.right <= all.right && box.top >= all.top && box.bottom <= all.bottom,
      box: [box.left, box.top, box.right, box.bottom]};
  });
});
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_the_text_of_the_chart_is_legible_and_whole(page, width):
    with emulated(page, width):
        texts = page.execute_script(TEXTS)
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert len(texts) > 10
    assert min(text["size"] for text in texts) >= 11
    assert [text["words"] for text in texts if not text["inside"]] == []


@pytest.mark.parametrize("width", WIDTHS)
def test_no_name_overprints_another_whatever_is_picked(page, study, width):
    with emulated(page, width):
        for k, point in enumerate(study.points):
            page.execute_script(f"document.querySelector('button.pick[data-k=\"{k}\"]').click()")
            names = [text for text in page.execute_script(TEXTS) if text["name"]]
            assert point.label in [text["words"] for text in names]
            for a, b in combinations(names, 2):
                (left, top, right, bottom), (x0, y0, x1, y1) = a["box"], b["box"]
                assert right <= x0 or x1 <= left or bottom <= y0 or y1 <= top, (a["words"], b["words"])


def test_on_paper_the_chart_is_on_the_first_page_and_tables_are_whole(page):
    with emulated(page, *PAPER, media="print"):
        page.execute_script("window.dispatchEvent(new Event('beforeprint'))")
        bottom = page.execute_script("return document.querySelector('figure').getBoundingClientRect().bottom")
        assert PAPER[1] / 2 < bottom <= PAPER[1]
        split = "return [...document.querySelectorAll('table')].map(t => getComputedStyle(t).breakInside)"
        assert set(page.execute_script(split)) == {"avoid"}
        closed = "return document.querySelectorAll('details:not([open])').length"
        assert page.execute_script(closed) == 0
        assert not page.find_element("css selector", "svg.front .limit").is_displayed()
        page.execute_script("window.dispatchEvent(new Event('afterprint'))")
    assert page.execute_script(closed) > 0


@pytest.mark.parametrize(("width", "scheme"), [(360, "light"), (768, "dark")])
def test_axe_finds_nothing(page, study, width, scheme):
    if importlib.util.find_spec("axe_core_python") is None:
        pytest.skip("axe-core-python is not installed: no test of accessibility")
    axe = importlib.resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    with emulated(page, width, features=[{"name": "prefers-color-scheme", "value": scheme}]):
        page.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        page.execute_script(axe)
        page.set_script_timeout(60)
        found = page.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    assert len(found["passes"]) > 15
    assert [(one["id"], [node["html"] for node in one["nodes"]]) for one in found["violations"]] == []


@pytest.fixture(scope="module")
def crowded():
    """Return a study of seven groups whose column and values have long names."""
    names = [
        "Facharbeiterinnen und Facharbeiter",
        "Öffentlicher Dienst",
        "Selbstständige",
        "x",
        "y",
        "z",
        "Ruhestand",
    ]
    column, rows = "Berufliche Stellung laut Kreditantragsformular", census()
    for k, row in enumerate(rows):
        row[column] = names[k % 7]
    task = make_task(parse_table(as_csv(rows), "census.csv"), "income", column)
    return run_study(task, Settings(etas=(0.0, 0.5)))


INSIDE = """
return [...document.querySelectorAll("h1, h2, p, .card, .bars > *, caption span, pre")]
  .filter(e => e.getClientRects().length && e.getBoundingClientRect().right > document.documentElement.clientWidth)
  .map(e => e.textContent);
"""


@pytest.mark.parametrize("width", WIDTHS)
def test_long_names_of_many_groups_fit(browser, crowded, width, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(render_page(crowded), encoding="utf-8")
    browser.get(path.as_uri())
    with emulated(browser, width):
        browser.execute_script("document.querySelectorAll('details').forEach(d => { d.open = true; })")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= width
        assert browser.execute_script(INSIDE) == []
        bars = browser.execute_script("return [...document.querySelectorAll('.bar')].map(b => b.offsetWidth)")
    assert min(bar for bar in bars if bar) > width / 3
    assert '<th scope="row">Ruhestand</th>' in path.read_text(encoding="utf-8")  # the column is in the title
