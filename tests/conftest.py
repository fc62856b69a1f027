"""Data that many tests share, where each test says what it needs of it, and a real browser where there is one."""

from __future__ import annotations

import os
import shutil
import warnings

# A conflict between cvxpy's parallel workers and BLAS threads would only add noise: tests are parallel by
# process.
os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import pytest

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


def make_data(seed: int, n: int = 60, d: int = 4, real_viewpoint: bool = False):
    """Return X, y, v with y and v correlated through the first feature, as in the paper's synthetic data."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2] = [-1.0, 1.0]
    g = X[:, 0] + X[:, 1] + 0.2 * rng.normal(size=n)
    v = g if real_viewpoint else np.where(g > 0, 1.0, -1.0)
    return X, y, v


@pytest.fixture
def data():
    return make_data(0)


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
