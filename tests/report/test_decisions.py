"""Rates, differences and measures of a table's groups, against plain counts."""

from __future__ import annotations

import numpy as np
import pytest

from nerm import metrics
from nerm.report.fitting import Level, Settings
from nerm.report.measuring import differences_of, groups_of, measures_of
from nerm.tables import make_task, parse_table
from tests.cli.conftest import as_csv, census


@pytest.fixture(scope="module")
def task():
    rows = [{**row, "job": row["job"] or "nurse"} for row in census(300)]
    return make_task(parse_table(as_csv(rows), "census.csv"), "income", ["sex", "job"])


@pytest.fixture(scope="module")
def scores(task):
    return np.random.default_rng(2).normal(size=len(task)) + 0.7 * task.y + 0.4 * task.v


def test_groups_and_terms_of_two_columns(task):
    assert list(task.groups) == ["sex = male", "sex = female", "job = clerk", "job = nurse", "job = smith"]
    assert set(task.terms) == {"sex = male", "job = clerk", "job = nurse", "job = smith"}
    for name, signs in task.terms.items():
        assert ((signs > 0) == task.groups[name]).all()


def test_the_least_neutral_value_of_all_terms_counts(task, scores):
    values, intervals, _ = measures_of(task, scores)
    reports = [metrics.report(task.y, scores, v).as_dict() for v in task.terms.values()]
    for name in metrics.report(task.y, scores, task.v).as_dict():
        best = metrics.METRICS[name].best if name in metrics.METRICS else 0.0  # a ratio of 1 is neutral
        assert abs(values[name] - best) == pytest.approx(max(abs(report[name] - best) for report in reports))
    for name, (low, high) in intervals.items():
        assert low <= values[name] <= high


def test_intervals_stand_around_their_rates(task, scores):
    for group in groups_of(task, scores):
        among = task.groups[group.name]
        assert group.rows == among.sum()
        assert group.rates["positive_rate"] == pytest.approx((scores[among] > 0).mean())
        for name, (low, high) in group.intervals.items():
            assert 0 <= low <= group.rates[name] <= high <= 1
    *against, largest = differences_of(task, scores)
    assert [d.one for d in against] == list(task.terms)
    assert against[0].other == "sex = female"
    rates = {g.name: g.rates["positive_rate"] for g in groups_of(task, scores)}
    spreads = [[rate for name, rate in rates.items() if name.startswith(column)] for column in ("sex", "job")]
    assert largest.value == pytest.approx(max(max(of) - min(of) for of in spreads))
    assert all(d.interval[0] < d.value < d.interval[1] for d in (*against, largest))


@pytest.mark.parametrize(("name", "power"), [("balanced", 1.0), ("root", 0.5)])
def test_class_weights_are_powers_of_balanced_ones(name, power):
    y = np.repeat([-1.0, 1.0], [75, 25])
    found = Settings(class_weight=name).class_weights(y)
    assert found == pytest.approx({-1.0: (100 / 150) ** power, 1.0: (100 / 50) ** power})
    assert Settings(class_weight="none").class_weights(y) is None


def test_levels_go_from_plain_to_tight():
    assert [level.label for level in Settings(limits=(0.01, 0.1)).levels] == [
        "no limit",
        "limit 0.1",
        "limit 0.01",
    ]
    assert [level.label for level in Settings(etas=(2.0,)).levels] == ["η = 0", "η = 2"]
    assert (Level(0.02).option, Level().option, Level(eta=0.5).option) == (
        "--limit 0.02",
        "--eta 0",
        "--eta 0.5",
    )
