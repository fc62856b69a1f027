"""An audit of anybody's predictions, of several groups."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.cli.conftest import ROLES, as_csv, people


def scored(n=240, *, words=False):
    """Return rows with somebody's score, which follows sex; without inputs beside it if `words`."""
    rng = np.random.default_rng(3)
    rows = []
    for row in people(n):
        score = (float(row["hours"]) - 41) / 5 + 0.5 * rng.normal()
        kept = {name: row[name] for name in ("sex", "income")} if words else row
        rows.append({**kept, "points": f"{score:.4f}"})
    return rows


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "scored.csv"
    path.write_text(as_csv(scored(words=True)), encoding="utf-8")
    return path


def test_several_groups_are_compared(nerm, tmp_path):
    """Rates by hand: each group against the rest, and the largest difference."""
    path = tmp_path / "scored.csv"
    rows = [{**row, "job": row["job"] or "nurse"} for row in scored()]
    path.write_text(as_csv(rows), encoding="utf-8")
    roles = ("--target", "income", "--viewpoint", "job")
    plain = json.loads(nerm("audit", path, *roles, "--score", "points", "--json").out)
    decided = {
        job: [float(r["points"]) > 0 for r in rows if r["job"] == job] for job in ("clerk", "nurse", "smith")
    }
    rates = {job: np.mean(of) for job, of in decided.items()}
    assert {g["name"]: g["positive_rate"] for g in plain["groups"]} == {
        f"job = {job}": pytest.approx(rate) for job, rate in rates.items()
    }
    *against, largest = plain["differences"]
    for difference in against:
        job = difference["one"].removeprefix("job = ")
        rest = np.concatenate([of for other, of in decided.items() if other != job]).mean()
        assert difference["other"] == "the rest"
        assert difference["value"] == pytest.approx(rates[job] - rest)
    assert largest["value"] == pytest.approx(max(rates.values()) - min(rates.values()))
    worst = max(abs(difference["value"]) for difference in against)
    assert abs(plain["measures"]["calders_verwer_score"]) == pytest.approx(worst)


def test_combinations_and_few_rows_are_marked(nerm, tmp_path):
    path = tmp_path / "scored.csv"
    path.write_text(as_csv(scored()), encoding="utf-8")
    ran = nerm(
        "audit", path, "--target", "income", "--viewpoint", "sex,job", "--intersect", "--score", "points"
    )
    assert ran.code == 0, ran.err
    assert "sex and job = male, clerk" in ran.out
    few = tmp_path / "few.csv"
    few.write_text(as_csv(scored(40)), encoding="utf-8")
    assert "(few): below 30 rows" in nerm("audit", few, *ROLES, "--score", "points").out


def test_what_is_audited_is_named_once(nerm, file):
    ran = nerm("audit", file, *ROLES)
    assert ran.code == 2
    assert "one of --score and --prediction" in ran.err
