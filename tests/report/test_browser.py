"""The report in a real browser: what a click, a key and a printer make of it."""

from __future__ import annotations

import base64
import json

import pytest

from nerm.report.page import render_page

pytestmark = pytest.mark.long


@pytest.fixture
def page(browser, study, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(render_page(study, "nerm tradeoff census.csv"), encoding="utf-8")
    browser.get_log("performance")
    browser.get(path.as_uri())
    return browser


def shown(page, field):
    """Return the text of a field in the part that can be seen."""
    found = [e.text for e in page.find_elements("css selector", f"[data-field={field}]") if e.is_displayed()]
    assert len(found) == 1
    return found[0]


def expect(page, study, k):
    point = study.points[k]
    assert shown(page, "auc") == f"{point.measures['auc']:.3f}"
    assert shown(page, "csgn") == f"{point.measures['neutrality_risk']:.3f}"
    assert shown(page, "changed") == f"{point.decisions['changed']:.0f}"
    checked = page.find_elements("css selector", "svg.front .point[aria-checked=true]")
    assert [c.get_attribute("data-k") for c in checked] == [str(k)]


def point(page, k):
    return page.find_element("css selector", f"svg.front .point[data-k='{k}']")


def test_clicking_a_point_changes_the_numbers(page, study):
    from selenium.webdriver import ActionChains

    expect(page, study, study.chosen)
    for k in (0, len(study.points) - 1):
        ActionChains(page).move_to_element(
            point(page, k).find_element("css selector", ".dot")
        ).click().perform()
        expect(page, study, k)
        assert f"What {study.points[k].label} means" in page.find_element("tag name", "main").text
        assert page.find_element("id", "said").text.startswith(f"{study.points[k].label}: AUC")
    assert page.current_url.endswith(f"#eta={study.points[-1].model.eta:g}")
    page.refresh()  # the address remembers the choice
    expect(page, study, len(study.points) - 1)


def test_hovering_shows_what_a_point_is(page, study):
    from selenium.webdriver import ActionChains

    tip = page.find_element("id", "tip")
    assert not tip.is_displayed()
    ActionChains(page).move_to_element(point(page, 0).find_element("css selector", ".dot")).perform()
    assert tip.is_displayed()
    assert tip.text.startswith("η = 0: AUC")


def test_the_keyboard_is_enough(page, study):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    for _ in range(40):  # there is one stop for the whole chart
        ActionChains(page).send_keys(Keys.TAB).perform()
        if page.switch_to.active_element.get_attribute("role") == "radio":
            break
    assert page.switch_to.active_element.get_attribute("data-k") == str(study.chosen)
    ActionChains(page).send_keys(Keys.HOME).perform()
    expect(page, study, 0)
    ActionChains(page).send_keys(Keys.ARROW_RIGHT).perform()
    expect(page, study, 1)
    ActionChains(page).send_keys(Keys.END).perform()
    expect(page, study, len(study.points) - 1)


def slider(page):
    return page.find_element("css selector", "svg.front .limit")


def within(study, limit):
    """Return the best ranking of the models whose measure is within a limit, None where there is none."""
    sizes = [abs(point.measures[study.settings.aim.name]) for point in study.points]
    fit = [k for k, point in enumerate(study.points) if sizes[k] <= limit and point.collapse is None]
    return max(fit, key=lambda k: study.points[k].measures["auc"], default=None)


def test_dragging_the_line_picks_the_best_model_within_the_limit(page, study):
    from selenium.webdriver import ActionChains

    seen = {study.chosen}
    for pixels in (-60, -120, 90, 30):
        ActionChains(page).drag_and_drop_by_offset(
            slider(page).find_element("css selector", ".handle"), 0, pixels
        ).perform()
        limit = float(slider(page).get_attribute("aria-valuenow"))
        k = within(study, limit)
        seen.add(k)
        assert page.find_element("id", "said").text.startswith(f"at most {limit:.3f}: ")
        if k is not None:
            expect(page, study, k)
    assert len(seen) > 1


def test_the_limit_moves_by_keys(page, study):
    from selenium.webdriver import ActionChains
    from selenium.webdriver.common.keys import Keys

    page.execute_script("document.querySelector('svg.front .limit').focus()")
    ActionChains(page).send_keys(Keys.END).perform()
    expect(page, study, within(study, 1.0))
    assert slider(page).get_attribute("aria-valuenow") == slider(page).get_attribute("aria-valuemax")
    ActionChains(page).send_keys(Keys.PAGE_DOWN, Keys.ARROW_UP).perform()
    most, now = (float(slider(page).get_attribute(f"aria-value{which}")) for which in ("max", "now"))
    assert now == pytest.approx(most - 0.009)
    ActionChains(page).send_keys(Keys.HOME).perform()
    assert "at most 0.000: " in page.find_element("id", "said").text
    assert page.switch_to.active_element.get_attribute("role") == "slider"


def test_the_command_of_the_picked_model_can_be_copied(page, study):
    for k in (0, len(study.points) - 1):
        page.execute_script(f"document.querySelector('button.pick[data-k=\"{k}\"]').click()")
        code, button = (
            next(e for e in page.find_elements("css selector", f".command {part}") if e.is_displayed())
            for part in ("code", "button")
        )
        assert code.text == study.points[k].command
        button.click()
        assert page.execute_script("return getSelection().toString()").strip() == study.points[k].command
        assert button.text in ("Copied", "Press Ctrl+C")


def test_the_table_picks_too(page, study):
    page.find_element("css selector", "#front ~ details summary").click()
    page.find_element("css selector", "button.pick[data-k='1']").click()
    expect(page, study, 1)


def test_no_errors_and_no_network(page):
    assert page.get_log("browser") == []
    requests = [json.loads(entry["message"])["message"] for entry in page.get_log("performance")]
    addresses = [
        r["params"]["request"]["url"] for r in requests if r["method"] == "Network.requestWillBeSent"
    ]
    assert addresses
    assert all(address.startswith(("file:", "data:")) for address in addresses)


CONTRAST = """
function light(color) {
  const c = color.match(/[\\d.]+/g).slice(0, 3).map(Number).map(v => v / 255)
    .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
}
function behind(e) {
  for (; e; e = e.parentElement) {
    const c = getComputedStyle(e).backgroundColor;
    if (!c.startsWith("rgba(0, 0, 0, 0)")) return c;
  }
  return "rgb(255, 255, 255)";
}
return [...document.querySelectorAll("p, li, td, th, h1, h2, h3, span, b, figcaption, code, pre, summary, footer")]
  .filter(e => e.offsetParent && e.textContent.trim() && e.children.length === 0).map(e => {
    const a = light(getComputedStyle(e).color), b = light(behind(e));
    return (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  });
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_contrast_in_light_and_dark(page, scheme):
    feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    background = page.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (background == "rgb(255, 255, 255)") == (scheme == "light")
    ratios = page.execute_script(CONTRAST)
    assert len(ratios) > 50
    assert min(ratios) >= 4.5


def test_narrow_windows_do_not_scroll_sideways(page):
    page.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 380, "height": 800, "deviceScaleFactor": 1, "mobile": False},
    )
    try:
        assert page.execute_script("return document.documentElement.scrollWidth") <= 380
    finally:
        page.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_it_prints_on_a_few_pages(page):
    printed = page.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    pages = base64.b64decode(printed["data"]).count(b"/Type /Page\n")
    assert 2 <= pages <= 5
