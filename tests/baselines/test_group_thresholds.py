"""Group thresholds against every pair of cuts, tried one by one in plain loops; unprocessing likewise."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB

from nerm.baselines import CV2NB, EtaNeutralLogisticRegression, GroupThresholds, Unprocessed
from nerm.errors import InvalidInputError

MEASURES = [
    "calders_verwer_score",
    "neutrality_risk",
    "equal_opportunity_difference",
    "predictive_equality_difference",
    "equalized_odds_difference",
]


class Given:
    """A model whose scores are the first column."""

    def decision_function(self, X):
        return np.asarray(X)[:, 0]


def tiny(seed, n=14, values=6):
    """Few rows with tied scores, every cell filled."""
    random = np.random.default_rng(seed)
    scores = random.integers(-values, values, size=n) / 3.0
    y, v = random.choice([-1, 1], size=n), random.choice([-1, 1], size=n)
    y[:4], v[:4] = [1, 1, -1, -1], [1, -1, 1, -1]
    return scores, y, v


def value(measure, predicted, y, v):
    """Return the measure of predictions, row by row."""

    def share(group, labels):
        rows = [i for i in range(len(y)) if v[i] == group and y[i] in labels]
        return sum(bool(predicted[i]) for i in rows) / len(rows)

    def difference(labels):
        return share(1, labels) - share(-1, labels)

    if measure == "neutrality_risk":
        return abs(sum((1 if p else -1) * g for p, g in zip(predicted, v, strict=True))) / len(v)
    if measure == "equalized_odds_difference":
        return max(abs(difference([1])), abs(difference([-1])))
    among = {"equal_opportunity_difference": [1], "predictive_equality_difference": [-1]}
    return abs(difference(among.get(measure, [-1, 1])))


def tried(measure, scores, y, v):
    """Yield accuracy and measure of every pair of thresholds, a score itself or below all."""
    cuts = [-math.inf, *sorted(set(scores))]
    for low in cuts:
        for high in cuts:
            predicted = [f > (high if g > 0 else low) for f, g in zip(scores, v, strict=True)]
            hits = sum(p == (label > 0) for p, label in zip(predicted, y, strict=True))
            yield hits / len(y), value(measure, predicted, y, v)


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("seed", range(8))
def test_no_pair_of_cuts_is_better(measure, seed):
    scores, y, v = tiny(seed, n=11 + seed % 4)
    X, pairs = scores[:, None], list(tried(measure, scores, y, v))
    for limit in (0.0, 0.1, 0.25, 1 / 3, math.inf):
        allowed = [accuracy for accuracy, reached in pairs if reached <= limit + 1e-12]
        model = GroupThresholds(Given(), limit=limit, measure=measure)
        if not allowed:
            least = f"{min(reached for _, reached in pairs):.3g}"
            with pytest.raises(
                InvalidInputError, match=f"must be at least {least}, the smallest {measure} of these scores"
            ):
                model.fit(X, y, viewpoint=v)
            continue
        predicted = model.fit(X, y, viewpoint=v).predict(X, viewpoint=v) > 0
        assert model.objective_ == pytest.approx(max(allowed))
        assert np.mean(predicted == (y > 0)) == pytest.approx(max(allowed))
        assert value(measure, predicted, y, v) <= limit + 1e-12
        assert abs(model.neutrality_) == pytest.approx(value(measure, predicted, y, v))


def test_only_c_sgn_can_be_impossible_to_meet():
    scores, y, v = tiny(0, n=15)
    assert (
        min(m for _, m in tried("neutrality_risk", scores, y, v)) > 0
    )  # of an odd number of signs the sum is odd
    with pytest.raises(InvalidInputError, match=r"'limit' must be at least .* Got 0.0. Raise the limit."):
        GroupThresholds(Given(), measure="neutrality_risk").fit(scores[:, None], y, viewpoint=v)


def test_neighbouring_numbers_are_told_apart():
    close = np.array([1.0, np.nextafter(1.0, 2.0), 1.0, np.nextafter(1.0, 2.0)])
    y = np.array([-1, 1, -1, 1])
    v = np.array([-1, -1, 1, 1])
    model = GroupThresholds(Given()).fit(close[:, None], y, viewpoint=v)
    assert model.objective_ == 1.0
    assert model.predict(close[:, None], viewpoint=v).tolist() == y.tolist()


def test_what_is_fitted_is_used_as_it_is_and_the_rest_is_fitted():
    random = np.random.default_rng(1)
    v = np.repeat([-1, 1], 60)
    X = random.normal(size=(120, 3)) + 0.4 * v[:, None]
    y = np.where(X.sum(axis=1) + random.normal(size=120) > 0, 1, -1)
    fitted = LogisticRegression().fit(X[:60, :], y[:60])
    assert GroupThresholds(fitted).fit(X, y, viewpoint=v).model_ is fitted
    frozen = clone(GroupThresholds(FrozenEstimator(fitted))).fit(X, y, viewpoint=v)
    np.testing.assert_array_equal(frozen.model_.decision_function(X), fitted.decision_function(X))
    shifts = fitted.decision_function(X) - frozen.decision_function(X, viewpoint=v)
    np.testing.assert_allclose(shifts, frozen.thresholds_[(v > 0).astype(int)])
    new = GaussianNB()
    assert GroupThresholds(new).fit(X, y, viewpoint=v).model_ is not new
    assert not hasattr(new, "classes_")
    with_group = GroupThresholds(EtaNeutralLogisticRegression()).fit(X, y, viewpoint=v)
    assert with_group.model_.groups_.tolist() == [-1, 1]


def test_unprocessing_is_the_best_without_a_limit():
    for seed in range(5):
        scores, y, v = tiny(seed)
        best = max(accuracy for accuracy, _ in tried("calders_verwer_score", scores, y, v))
        assert Unprocessed(Given()).fit(scores[:, None], y, viewpoint=v).objective_ == pytest.approx(best)
    held = Unprocessed(Given(), limit=0.0).fit(scores[:, None], y, viewpoint=v)
    equal = GroupThresholds(Given()).fit(scores[:, None], y, viewpoint=v)
    assert held.thresholds_.tolist() == equal.thresholds_.tolist()


def test_unprocessing_undoes_a_model_that_predicts_by_group():
    random = np.random.default_rng(0)
    X, v = random.integers(0, 3, size=(200, 3)), np.repeat([-1, 1], 100)
    y = np.where(X[:, 0] + 0.7 * v + random.normal(size=200) > 1, 1, -1)
    neutral = CV2NB().fit(X, y, viewpoint=v)
    free = Unprocessed(neutral).fit(X, y, viewpoint=v)
    assert free.objective_ >= neutral.score(X, y, viewpoint=v)
    assert free.score(X, y, viewpoint=v) == pytest.approx(free.objective_)


def test_what_may_come_in_wrong():
    scores, y, v = tiny(0)
    with pytest.raises(
        InvalidInputError, match=r"'limit' must be at least 0. Got -0.1. Use math.inf for no limit."
    ):
        GroupThresholds(Given(), limit=-0.1).fit(scores[:, None], y, viewpoint=v)
    with pytest.raises(InvalidInputError, match="'measure' must be one of"):
        GroupThresholds(Given(), measure="accuracy").fit(scores[:, None], y, viewpoint=v)
