"""No command praises a constant: a rare target, and weights at which nobody gets yes."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.cli.conftest import as_csv

ROLES = ("--target", "bought", "--viewpoint", "loan", "--class-weight", "none")
READING = ROLES[:4]
ETAS = ("--etas", "0,0.02,1,5")


@pytest.fixture
def rare(tmp_path):
    """Write a file in which an eighth of the rows bought, and those with a loan less often."""
    rng = np.random.default_rng(0)
    n = 600
    loan = rng.random(n) < 0.4
    calls = rng.normal(size=n) - 0.7 * loan
    score = calls + 0.4 * rng.normal(size=n)
    bought = score > np.quantile(score, 0.875)
    rows = [
        {"calls": f"{c:.3f}", "loan": "yes" if v else "no", "bought": "yes" if b else "no"}
        for c, v, b in zip(calls, loan, bought, strict=True)
    ]
    path = tmp_path / "rare.csv"
    path.write_text(as_csv(rows), encoding="utf-8")
    return path


def test_the_arrow_stands_on_no_constant(nerm, rare, tmp_path):
    page, figure = tmp_path / "front.html", tmp_path / "front.svg"
    ran = nerm("tradeoff", rare, *ROLES, *ETAS, "--report", page, "--figure", figure)
    assert ran.code == 0, ran.err
    lines = ran.out.splitlines()
    assert lines[0].startswith(
        "η = 1: The model predicts “bought = no” for 100.0 % of rows (labels: 87.5 %): it is nearly"
    )
    assert "Not recommended: η = 1, η = 5; try --class-weight balanced" in " ".join(ran.out.split())
    marks = {line.split()[3]: line.split()[0] for line in lines if line.strip()[:1] in ("→", "×")}
    assert {eta for eta, mark in marks.items() if mark == "×"} == {"1", "5"}
    assert {eta for eta, mark in marks.items() if mark == "→"} <= {"0", "0.02"}
    assert sorted(marks.values()) == ["×", "×", "→"]
    text = page.read_text(encoding="utf-8")
    header = text.split("<header>")[1].split("</header>")[0]
    assert header.index("it is nearly constant. Not recommended: η = 1, η = 5") < header.index(
        '<p class="lead">'
    )
    for k, part in enumerate(text.split("data-choice=")[1:]):
        assert ("it is nearly constant. Not recommended." in part) is (k > 1)
        assert k < 2 or "(the choice made here)" not in part
    for drawn in (text, figure.read_text(encoding="utf-8")):
        assert drawn.count(", not recommended") == 2


def test_where_every_weight_collapses_none_is_recommended(nerm, rare, tmp_path):
    page = tmp_path / "front.html"
    ran = nerm("tradeoff", rare, *ROLES, "--etas", "0,5", "--lam", "100", "--report", page)
    assert ran.code == 4
    assert "→ " not in ran.out
    assert ran.out.count("\n× ") == 2
    assert "No model is recommended: each one is nearly constant" in ran.out
    assert "(the choice made here)" not in page.read_text(encoding="utf-8")
    plain = json.loads(nerm("tradeoff", rare, *ROLES, "--etas", "0,5", "--lam", "100", "--json").out)
    assert plain["chosen"] is None
    assert plain["warning"].startswith("η = 0: The model predicts “bought = no” for 100.0 %")
    assert all("nearly constant" in point["collapse"] for point in plain["points"])


def test_a_fit_says_it_first_and_in_its_exit_code(nerm, rare, tmp_path):
    model, page, scored = tmp_path / "m.nerm", tmp_path / "page.html", tmp_path / "scored.csv"
    ran = nerm("fit", rare, *ROLES, "--eta", 5, "--out", model, "--report", page)
    assert ran.code == 4
    assert ran.out.startswith("The model predicts “bought = no” for 100.0 % of rows (labels: 87.")
    assert model.is_file()  # somebody asked for it
    text = page.read_text(encoding="utf-8")
    assert "η = 5 is not recommended; look at another model." in text
    assert "(the choice made here)" not in text
    assert nerm("bound", rare, *ROLES, "--eta", 5).code == 4
    good = json.loads(nerm("fit", rare, *ROLES, "--eta", 0.02, "--json").out)
    assert good["warning"] is None
    assert nerm("predict", model, rare, "--keep", "bought,loan", "--out", scored, "-q").code == 0
    audited = nerm("audit", scored, *READING, "--prediction", "prediction")
    assert audited.code == 4
    assert audited.out.startswith("The model predicts “bought = no” for 100.0 % of rows (labels: 87.5 %)")
