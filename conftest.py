"""Settings of all tests: which are quick, how hypothesis draws, and which files pytest must not collect.

pytest -m quick -n 2     while working: no test marked `long` or `slow`, no command, no page of documentation
pytest -n 2              the gate: all but `slow`; hypothesis draws the same examples every time
pytest -m slow -n 2      exhaustive checks, and every property of hypothesis on freshly drawn examples
"""

import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

collect_ignore_glob = ["docs/figures/*.py"]

settings.register_profile("gate", deadline=None, derandomize=True, max_examples=25)
settings.register_profile("explore", deadline=None, max_examples=250, print_blob=True)

# Examples in docstrings and pages cannot be marked one by one; tests of whole commands are many.
LONG_DOCTESTS = ("nerm/experiments/", "nerm/report/", "docs/", "README.md")
LONG_TESTS = ("tests/cli/", "tests/tables/test_habits.py")


def explores(config: pytest.Config) -> bool:
    """Return whether this is the slow set."""
    return config.option.markexpr == "slow"


def pytest_configure(config: pytest.Config) -> None:
    """Let hypothesis draw freely in the slow set only."""
    settings.load_profile("explore" if explores(config) else "gate")


@pytest.fixture(autouse=True)
def close_figures() -> Iterator[None]:
    """Close the figures of each test, so that many tests in one process do not hold many figures."""
    yield
    if "matplotlib.pyplot" in sys.modules:
        sys.modules["matplotlib.pyplot"].close("all")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark hypothesis tests `slow` in the slow set, and `quick` each test that is neither long nor slow."""
    for item in items:
        if explores(config) and getattr(getattr(item, "obj", None), "is_hypothesis_test", False):
            item.add_marker("slow")
        long = item.nodeid.startswith(LONG_TESTS)
        long |= isinstance(item, pytest.DoctestItem) and item.nodeid.startswith(LONG_DOCTESTS)
        if not long and not any(item.get_closest_marker(name) for name in ("long", "slow")):
            item.add_marker("quick")
    items.sort(key=lambda item: "test_notebooks" not in item.nodeid)  # the longest first keep all cores busy
