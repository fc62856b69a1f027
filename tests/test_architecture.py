"""The walk in docs/architecture.md is the one that data take: files in the order in which they are first entered."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

import nerm
from tests.conftest import make_data

PACKAGE = Path(nerm.__file__).parent
PAGE = (PACKAGE.parent / "docs" / "architecture.md").read_text("utf-8")

#: Asked by everybody on the way, so in no list.
EVERYWHERE = ("atoms/", "errors.py", "validation.py", "signs.py", "kernels.py", "__init__.py")


def listed(heading: str) -> list[str]:
    """Return the files that a numbered list of the page names, in order."""
    section = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    items = "".join(re.findall(r"^\d+\. .*\n(?: {3,}.*\n)*", section, re.MULTILINE))
    files = re.findall(r"`([\w/]+\.py)`", items)
    return files if sys.version_info < (3, 12) else [file for file in files if not is_compiled(file)]


def is_compiled(file: str) -> bool:
    """Whether a file holds functions for numba's compiler."""
    return "@numba.njit" in (PACKAGE / file).read_text("utf-8")


def entered(walk) -> list[str]:
    """Return the files of nerm whose functions are called, each once, in the order of their first call."""
    found: dict[str, None] = {}

    def note(frame, event, arg):
        file = Path(frame.f_code.co_filename)
        if event == "call" and frame.f_code.co_name != "<module>" and file.is_relative_to(PACKAGE):
            found[file.relative_to(PACKAGE).as_posix()] = None

    sys.setprofile(note)  # from Python 3.12 on it is not told of compiled functions
    try:
        walk()
    finally:
        sys.setprofile(None)
    here = [file for file in found if not file.startswith(EVERYWHERE)]
    return here if sys.version_info < (3, 12) else [file for file in here if not is_compiled(file)]


def solve():
    X, y, v = make_data(0, n=200)
    objective = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())
    repr(objective.on(X, y, viewpoint=v).solve())


def fit():
    X, y, v = make_data(0, n=200)
    nerm.NeutralSVC(lam=10.0, eta=1.0).fit(X, y, viewpoint=v)


@pytest.fixture(scope="module", autouse=True)
def all_is_imported():
    solve()
    fit()


def test_from_an_objective_to_a_solution():
    walked = entered(solve)
    page = listed("From an objective to a solution")
    asked = {
        file for file in walked if file.startswith("solvers/") and file not in page
    }  # whether they take it
    assert [file for file in walked if file not in asked] == page


def test_a_classifier_joins_the_walk():
    walked = entered(fit)
    own, shared = listed("NeutralSVC.fit"), listed("From an objective to a solution")
    assert [file for file in walked if file in own] == own
    assert {file for file in walked if not file.startswith("solvers/")} <= {*own, *shared}
