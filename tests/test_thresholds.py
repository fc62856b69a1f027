"""The best threshold against brute force: every threshold, measured by loops over rows."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest

from nerm import metrics
from nerm.errors import InvalidInputError, NotNeutralError

MEASURES = [
    "calders_verwer_score",
    "neutrality_risk",
    "equal_opportunity_difference",
    "predictive_equality_difference",
    "equalized_odds_difference",
    "selection_rate_ratio",
]


def rate(yes, w, rows):
    """Return the weighted share of positive predictions among some rows; None if their weight is 0."""
    total = sum(w[i] for i in rows)
    return None if total == 0 else sum(w[i] for i in rows if yes[i]) / total


def loop_measure(name, yes, y, v, w):
    """Return the absolute measure of predictions by loops over rows; for a ratio the ratio itself."""
    groups = sorted({g for g, weight in zip(v, w, strict=True) if weight > 0})
    rows = range(len(y))
    if name == "neutrality_risk":
        agree = sum(w[i] if yes[i] == (v[i] == groups[-1]) else -w[i] for i in rows)
        return abs(agree) / sum(w)
    labels = {
        "calders_verwer_score": [(-1, 1)],
        "selection_rate_ratio": [(-1, 1)],
        "equal_opportunity_difference": [(1,)],
        "predictive_equality_difference": [(-1,)],
        "equalized_odds_difference": [(1,), (-1,)],
    }[name]
    worst = 0.0
    for among in labels:
        rates = [rate(yes, w, [i for i in rows if v[i] == g and y[i] in among]) for g in groups]
        if name == "selection_rate_ratio":
            return min(rates) / max(rates) if max(rates) > 0 else 1.0
        worst = max([worst, *(abs(a - b) for a, b in itertools.combinations(rates, 2))])
    return worst


def loop_best(name, f, y, views, w, limit, keep):
    """Return the best accuracy of an admissible threshold, over all n + 1 of them; None if there is none."""
    best = None
    for t in [np.inf, *sorted(set(f)), -np.inf]:
        yes = [x >= t for x in f]
        values = [loop_measure(name, yes, y, v, w) for v in views]
        ratio = name == "selection_rate_ratio"
        if not all(x >= limit - 1e-12 if ratio else x <= limit + 1e-12 for x in values):
            continue
        if any(rate(yes, w, [i for i in range(len(y)) if v[i] == g and w[i] > 0]) < keep
               for v in views for g in {g for g, s in zip(v, w, strict=True) if s > 0}):  # fmt: skip
            continue
        right = sum(s for s, p, label in zip(w, yes, y, strict=True) if p == (label > 0)) / sum(w)
        best = right if best is None else max(best, right)
    return best


def draw(seed, n, groups, ties=True, weights=True):
    rng = np.random.default_rng(seed)
    v = rng.integers(0, groups, n)
    y = np.where(rng.random(n) < 0.5, 1, -1)
    for g in range(groups):  # every cell is seen with a positive weight
        v[2 * g : 2 * g + 2], y[2 * g : 2 * g + 2] = g, [-1, 1]
    f = rng.integers(-4, 5, n) / 2 if ties else rng.normal(size=n)
    w = rng.integers(0, 4, n).astype(float) if weights else np.ones(n)
    w[: 2 * groups] = np.maximum(w[: 2 * groups], 1)
    return f + 0.4 * (y > 0) + 0.5 * (v == 1), y, v, w


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("measure", MEASURES)
def test_best_threshold_is_that_of_brute_force(measure, groups):
    if measure == "neutrality_risk" and groups > 2:
        pytest.skip("C_sgn compares two groups")
    refused = 0
    for seed in range(40):
        f, y, v, w = draw(seed, 14 + seed % 7, groups, ties=bool(seed % 2), weights=bool(seed % 3))
        limit = [0.0, 0.05, 0.2, 0.5][seed % 4]
        limit = 1 - limit if measure == "selection_rate_ratio" else limit
        keep = [0.0, 0.2, 0.5][seed % 3]
        expected = loop_best(measure, f.tolist(), y, [v.tolist()], w, limit, keep)
        if expected is None:
            refused += 1
            with pytest.raises(NotNeutralError, match="No threshold gives"):
                metrics.best_threshold(f, y, v, limit, measure, w, keep=keep)
            continue
        t = metrics.best_threshold(f, y, v, limit, measure, w, keep=keep)
        found = w @ ((f - t > 0) == (y > 0)) / w.sum()
        assert found == pytest.approx(expected, abs=1e-12)
        value = loop_measure(measure, (f - t > 0).tolist(), y, v.tolist(), w)
        assert value >= limit - 1e-12 if measure == "selection_rate_ratio" else value <= limit + 1e-12
    assert refused < 40


@pytest.mark.parametrize("measure", ["calders_verwer_score", "neutrality_risk", "equalized_odds_difference"])
def test_limits_on_several_viewpoints_are_met_at_once(measure):
    for seed in range(10):
        f, y, v, w = draw(seed, 20, 2)
        other = np.roll(v, 5)
        y[:4], other[:4], w[:4] = [-1, 1, -1, 1], [0, 0, 1, 1], 1
        expected = loop_best(measure, f.tolist(), y, [v.tolist(), other.tolist()], w, 0.3, 0.0)
        for views in ({"sex": v, "race": other}, pd.DataFrame({"sex": v, "race": other})):
            t = metrics.best_threshold(f, y, views, 0.3, measure, w)
            assert w @ ((f - t > 0) == (y > 0)) / w.sum() == pytest.approx(expected, abs=1e-12)


def test_constant_scores_and_rows_of_weight_zero():
    y, v = [1, 1, -1], ["a", "b", "a"]
    t = metrics.best_threshold([0.5, 0.5, 0.5], y, v, 0.0)
    assert t < 0.5  # two of three rows are positive
    assert metrics.best_threshold([0.5, 0.5, 0.5], y, v, 0.0, sample_weight=[1, 1, 9]) >= 0.5
    f, w = [3.0, 2.0, 1.0, 0.5], [1, 1, 1, 0]
    assert 1.0 < metrics.best_threshold(f, [1, 1, -1, -1], [0, 1, 1, 0], 0.6, sample_weight=w) < 2.0


def test_one_group():
    f, y, v = [2.0, 1.0, -1.0], [1, 1, -1], [1, 1, 1]
    assert metrics.best_threshold(f, y, v, 1.0, "neutrality_risk") == 0.0
    with pytest.raises(NotNeutralError, match="No threshold gives"):
        metrics.best_threshold(f, y, v, 0.2, "neutrality_risk")
    with pytest.raises(InvalidInputError, match="each of two groups or more must have rows for the weights"):
        metrics.best_threshold(f, y, v, 0.1)


def test_a_threshold_that_changes_nothing_is_zero():
    assert metrics.best_threshold([2.0, 1.0, -1.0, -3.0], [1, 1, -1, -1], [0, 1, 0, 1], 0.0) == 0.0


def test_a_measure_of_ones_own():
    f, y, v, _ = draw(3, 60, 2, ties=False)

    def gap(y, scores, viewpoint):
        return np.mean(scores[viewpoint > 0] > 0) - np.mean(scores[viewpoint < 0] > 0)

    own = metrics.best_threshold(f, y, v, 0.1, gap)
    assert own == metrics.best_threshold(f, y, v, 0.1)


def test_ratio_by_hand():
    f, v = np.array([1.0, -1.0, 1.0, 1.0, -1.0, -1.0, -1.0, 1.0]), np.repeat(["a", "b"], 4)
    assert metrics.selection_rate_ratio(f, v) == pytest.approx(1 / 3)
    assert metrics.selection_rate_ratio(f, v, [1, 1, 1, 1, 0, 1, 1, 1]) == pytest.approx((1 / 3) / (3 / 4))
    assert metrics.selection_rate_ratio(-np.ones(4), [0, 0, 1, 1]) == 1.0
    assert metrics.report(np.sign(f), f, v).selection_rate_ratio == pytest.approx(1 / 3)
