"""One small study for all tests of the report, and a real browser where there is one."""

from __future__ import annotations

import shutil
import warnings

import pytest

from nerm.report import Settings, run_study
from nerm.tables import make_task, parse_table
from tests.cli.conftest import as_csv, people

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1100,1400",
)


@pytest.fixture(scope="session")
def study():
    rows = [{**row, "job": f"<b>{row['job']}</b> & co" if row["job"] else ""} for row in people()]
    task = make_task(parse_table(as_csv(rows), "<people>.csv"), "income", "sex")
    return run_study(
        task, Settings(etas=(0.0, 0.2, 0.5, 1.0, 5.0)), command="nerm fit people.csv --target income --viewpoint sex"
    )


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Return a headless Chromium, driven by Selenium."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed: no browser test")
    binary = next((path for name in BROWSERS if (path := shutil.which(name))), None)
    driver = shutil.which("chromedriver")
    if binary is None or driver is None:
        pytest.skip("no Chromium with chromedriver on this machine: no browser test")
    options = webdriver.ChromeOptions()
    options.binary_location = binary
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        chrome = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver))
    yield chrome
    chrome.quit()
