"""`nerm tradeoff --proof` says what is proved, and what is not."""

from __future__ import annotations

import json
import re
from importlib import resources

import pytest

from nerm.cli import main


@pytest.mark.long
def test_the_paragraph_claims_no_more_than_the_curve_proves(tmp_path, capsys):
    table, page = tmp_path / "census.csv", tmp_path / "front.html"
    lines = resources.files("nerm.cli").joinpath("demo.csv").read_text(encoding="utf-8").splitlines()
    table.write_text("\n".join(lines[:500]), encoding="utf-8")
    words = ["tradeoff", str(table), "--target", "wage", "--viewpoint", "race", "--limits", "0.1", "--proof"]
    with pytest.raises(SystemExit):
        main([*words, "--json", "--report", str(page)])
    notes = json.loads(capsys.readouterr().out)["notes"]
    (said,) = [note for note in notes if note.startswith("Proof")]
    least, known = (
        float(x)
        for x in re.search(
            r"at least ([\d.]+), and one with at most this C and P of at most ([\d.]+)", said
        ).groups()
    )
    assert least <= known
    assert "training rows" in said
    for limit_of_the_claim in (
        "counted decisions",
        "other rows",
        "other kinds of models",
        "without the regularizer",
    ):
        assert limit_of_the_claim in said.split("Not proved")[1]
    assert "Not proved" in page.read_text(encoding="utf-8")


def test_bounds_are_rounded_to_the_side_on_which_they_hold():
    from nerm.report.page import _down, _up

    assert (str(_down(0.51239999)), str(_up(0.51230001))) == ("0.5123", "0.5124")
    assert (str(_down(-0.00001)), str(_up(0.5))) == ("-0.0001", "0.5000")
