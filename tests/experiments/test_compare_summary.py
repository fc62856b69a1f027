"""What is said of a comparison: each number against a table small enough to do by hand."""

from __future__ import annotations

import json
import math

import matplotlib
import pandas as pd
import pytest

from nerm.errors import InvalidInputError
from nerm.experiments import compare
from nerm.experiments.compare import correct_claim, figure, summarize

matplotlib.use("Agg")
NAMES = [
    "problem",
    "family",
    "n",
    "solver",
    "tol",
    "seconds",
    "status",
    "correct_claim",
    "certified_gap",
    "peak_mb",
]


def by_hand():
    rows = [
        ["p1", "size", 10, "fast", 1e-3, 1.0, "solved", 1, 1e-4, 5.0],
        ["p2", "size", 20, "fast", 1e-3, 2.0, "solved", 1, 1e-5, 7.0],
        ["p3", "size", 40, "fast", 1e-3, 4.0, "solved", math.nan, 1e-6, 6.0],
        ["p1", "size", 10, "slow", 1e-3, 2.0, "solved", 1, 1e-4, 1.0],
        ["p2", "size", 20, "slow", 1e-3, 0.5, "inaccurate", 0, 1e-1, 1.0],
        ["p3", "size", 40, "slow", 1e-3, 0.0, "not taken", math.nan, math.nan, math.nan],
        ["p3", "size", 40, "never", 1e-3, 8.0, "time limit", math.nan, math.nan, 2.0],
    ]
    table = pd.DataFrame(rows, columns=NAMES)
    table.attrs["time_limit"] = 8.0
    return table


def test_summary():
    found = summarize(by_hand(), shift=1.0).set_index("solver")
    assert found.taken.to_dict() == {"fast": 3, "slow": 2, "never": 1}
    assert found.solved.to_dict() == {"fast": 1.0, "slow": 0.5, "never": 0.0}
    assert (found.claims["slow"], found.correct["slow"]) == (2, 0.5)
    assert math.isnan(found.correct["never"])
    assert found.mean_seconds["fast"] == pytest.approx((2.0 * 3.0 * 5.0) ** (1 / 3) - 1)
    assert found.mean_seconds["slow"] == pytest.approx(
        (3.0 * 9.0) ** 0.5 - 1
    )  # a failure counts as the limit
    assert found.mean_seconds["never"] == pytest.approx(8.0)
    assert found.times_best["fast"] == pytest.approx(1.0)
    assert found.times_best["slow"] == pytest.approx((3 / 2 * 9 / 3) ** 0.5)
    assert found.median_gap["fast"] == pytest.approx(1e-5)
    assert found.peak_mb["fast"] == 7.0
    assert found.index.tolist() == ["fast", "slow", "never"]


def test_figure_shows_profiles_and_exponents():
    left, right = figure(by_hand(), 1e-3)
    assert left.get_ylabel() == "share of 3 problems solved"
    assert [t.get_text() for t in left.get_legend().get_texts()] == ["fast", "slow", "never"]
    curves = [(line.get_xdata()[1:-1].tolist(), (3 * line.get_ydata()).tolist()) for line in left.lines]
    assert curves == [([1.0, 1.0, 1.0], [0, 1, 2, 3, 3]), ([2.0], [0, 1, 1]), ([], [0, 0])]
    # Seconds are n / 10 for the first solver; the second solved one size only, the third none.
    assert [t.get_text() for t in right.get_legend().get_texts()] == ["fast  $n^{1.00}$", "slow"]
    assert right.lines[0].get_xydata().tolist() == [[10.0, 1.0], [20.0, 2.0], [40.0, 4.0]]
    matplotlib.pyplot.close(left.figure)


def test_bad_input():
    with pytest.raises(InvalidInputError, match=r"'table' must come from nerm\.experiments\.compare_solvers"):
        summarize(pd.DataFrame({"a": [1]}))
    with pytest.raises(InvalidInputError, match=r"'tol' must be one in the table: 0\.001\. Got 0\.1"):
        figure(by_hand(), 0.1)
    with pytest.raises(InvalidInputError, match="'table' must have a solved run"):
        figure(by_hand()[-1:], 1e-3)


@pytest.mark.parametrize(
    "claim", ["optimal", "Solved", "converged", "optimal: the duality gap is within the tolerance"]
)
def test_claims_of_success(claim):
    assert (correct_claim(claim, True), correct_claim(claim, False)) == (1, 0)


@pytest.mark.parametrize(
    "claim",
    [
        "", "optimal_inaccurate", "solved inaccurate", "not converged: stuck", "user_limit",
        "error: optimal not found", "error: infeasible", "optimal: within the tolerance; but a relative gap of 1e-2 is left",
    ],
)  # fmt: skip
def test_reservations_are_no_claims(claim):
    assert math.isnan(correct_claim(claim, True))


@pytest.mark.parametrize("claim", ["infeasible", "Unbounded", "infeasible_inaccurate", "primal infeasible"])
def test_a_claim_that_there_is_no_optimum_is_wrong(claim):
    assert correct_claim(claim, True) == correct_claim(claim, False) == 0


@pytest.mark.long
def test_command(tmp_path, monkeypatch, capsys):
    from nerm.cli import main

    monkeypatch.setattr(compare, "cases", lambda which: [compare.Case("tiny", "size", n=20, d=2)])
    monkeypatch.setattr(
        "nerm.solvers.available", lambda: {"smo": __import__("nerm.solvers").solvers.known()["smo"]}
    )
    results, picture = tmp_path / "s.csv", tmp_path / "s.png"
    arguments = ["solvers", "--compare", "--quick", "--results", str(results), "--figure", str(picture)]
    with pytest.raises(SystemExit) as ended:
        main([*arguments, "--json"])
    assert ended.value.code in (0, None)
    said = json.loads(capsys.readouterr().out)
    assert said["runs"] == {"solved": 3}
    assert [row["solver"] for row in said["summary"]] == ["smo"] * 3
    assert picture.stat().st_size > 0
    with pytest.raises(SystemExit):
        main(arguments)  # nothing is left to run
    out = capsys.readouterr().out
    assert "smo" in out
    assert "0.001" in out
