from __future__ import annotations

import numpy as np
import pytest

from nerm.experiments import front, non_dominated


def naive_front(points):
    """Every point against every other, in plain words."""
    kept = []
    for q, r in points:
        beaten = any(q2 >= q and r2 <= r and (q2 > q or r2 < r) for q2, r2 in points)
        kept.append(not beaten and q == q and r == r)
    return kept


def test_non_dominated_against_plain_loops():
    rng = np.random.default_rng(0)
    for _ in range(50):
        points = rng.integers(0, 5, size=(12, 2)).astype(float)  # a coarse grid: ties on purpose
        points[rng.random((12, 2)) < 0.05] = np.nan
        assert non_dominated(points[:, 0], points[:, 1]).tolist() == naive_front([tuple(p) for p in points])


def test_bad_front():
    with pytest.raises(
        ValueError, match=r"'risk' must have one value per entry of 'quality'. Got shape \(2,\)"
    ):
        non_dominated([1.0], [1.0, 2.0])


def test_front_of_a_foreign_table():
    pandas = pytest.importorskip("pandas")
    with pytest.raises(
        ValueError, match=r"'table' must come from nerm.experiments.tradeoff. Got a table without 'auc'"
    ):
        front(pandas.DataFrame({"dataset": []}))


def test_front_means_by_hand():
    pandas = pytest.importorskip("pandas")
    rows = [
        ("d", "a", 0.0, "ok", 0.8, -0.4),
        ("d", "a", 0.0, "ok", 0.6, 0.2),
        ("d", "a", 1.0, "ok", 0.5, 0.1),
        ("d", "a", 1.0, "failed", np.nan, np.nan),
        ("d", "b", np.nan, "ok", 0.1, 0.9),
    ]
    table = pandas.DataFrame(
        rows, columns=["dataset", "method", "eta", "status", "auc", "calders_verwer_score"]
    )
    found = front(table, risk="calders_verwer_score")
    assert found.auc.tolist() == pytest.approx([0.7, 0.5, 0.1])
    assert found.calders_verwer_score.tolist() == pytest.approx([0.3, 0.1, 0.9])
    assert found.failed.tolist() == [0, 1, 0]
    assert found.non_dominated.tolist() == [True, True, True]
