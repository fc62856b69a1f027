"""Measures against plain loops over rows, their symmetries, and scikit-learn's machinery around them."""

import copy
import math
import pickle
from functools import partial

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_validate
from sklearn.naive_bayes import GaussianNB

from nerm import metrics
from nerm.atoms import Hinge
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.weights import balanced_weights, equal_opportunity_weights

HINGE = Hinge()

# Scores and viewpoints of exactly 0 are drawn on purpose: ties go to -1.
score = st.sampled_from([-2.5, -1.0, -0.25, 0.0, 0.25, 1.0, 3.0])
row = st.tuples(score, score, st.sampled_from([-1, 1]), st.integers(0, 3))
samples = st.lists(row, min_size=1, max_size=25).filter(lambda rows: any(r[3] for r in rows))


def columns(rows):
    f, v, y, w = (np.array(c, dtype=float) for c in zip(*rows, strict=True))
    return f, v, y, w


def as_read(rows):
    """Return the rows with two different viewpoints as -1 and +1; rows of weight 0 do not count."""
    seen = sorted({v for _, v, _, w in rows if w})
    assume(len(seen) < 3 or seen[0] < 0 < seen[-1])  # several numbers of one sign are refused
    if len(seen) != 2:
        return rows
    return [(f, 1.0 if v == seen[1] else -1.0, y, w) for f, v, y, w in rows]


def plus(value):
    return value > 0


def loop_probability(rows, event, given_that=lambda f, v, y: True):
    """P(event | given_that), counting each row w times; None when the condition is never met."""
    hits = total = 0
    for f, v, y, w in rows:
        if given_that(f, v, y):
            total += w
            hits += w * bool(event(f, v, y))
    return hits / total if total else None


def loop_information(rows, a, b):
    """I(A; B) / sqrt(H(A) H(B)) by the textbook sums over probabilities."""
    information, entropy = 0.0, {"a": 0.0, "b": 0.0}
    for i in (False, True):
        p_a = loop_probability(rows, lambda f, v, y, i=i: a(f, v, y) == i)
        p_b = loop_probability(rows, lambda f, v, y, i=i: b(f, v, y) == i)
        entropy["a"] -= p_a * math.log(p_a) if p_a else 0.0
        entropy["b"] -= p_b * math.log(p_b) if p_b else 0.0
        for j in (False, True):
            q = loop_probability(rows, lambda f, v, y, j=j: b(f, v, y) == j)
            both = loop_probability(rows, lambda f, v, y, i=i, j=j: a(f, v, y) == i and b(f, v, y) == j)
            if both:
                information += both * math.log(both / (p_a * q))
    product = entropy["a"] * entropy["b"]
    return information / math.sqrt(product) if product else 0.0


def loop_difference(rows, label=None):
    rates = [
        loop_probability(
            rows, lambda f, v, y: f > 0, lambda f, v, y, s=s: (v > 0) == s and (label is None or y == label)
        )
        for s in (True, False)
    ]
    return None if None in rates else rates[0] - rates[1]


@given(samples)
def test_neutrality_risk_is_agreement_minus_disagreement(rows):
    f, v, _, w = columns(rows)
    rows = as_read(rows)
    agree = loop_probability(rows, lambda f, v, y: plus(f) == plus(v))
    assert metrics.neutrality_risk(f, v, w) == pytest.approx(abs(2 * agree - 1), abs=1e-12)


@given(samples)
def test_relaxed_risk_by_loops_and_its_floor_at_zero(rows):
    f, v, _, w = columns(rows)
    rows = as_read(rows)
    total = sum(w)
    up = sum(b * max(0.0, 1 - a * c) for a, c, _, b in rows) / total
    down = sum(b * max(0.0, 1 + a * c) for a, c, _, b in rows) / total
    value = metrics.relaxed_neutrality_risk(f, v, HINGE, w)
    assert value == pytest.approx(max(up, down), rel=1e-12)
    assert value >= 1 - 1e-12  # C_psi >= psi(0) for convex psi
    small = f / max(1.0, np.abs(columns(rows)[1] * f).max())
    mean_product = sum(b * a * c for (_, c, _, b), a in zip(rows, small, strict=True)) / total
    inside = metrics.relaxed_neutrality_risk(small, v, HINGE, w)
    assert inside == pytest.approx(1 + abs(mean_product), rel=1e-12)  # exact when |v f| <= 1


@given(samples)
def test_rate_differences_by_loops(rows):
    f, v, y, w = columns(rows)
    rows = as_read(rows)
    cases = [
        (None, lambda: metrics.calders_verwer_score(f, v, w)),
        (1, lambda: metrics.equal_opportunity_difference(y, f, v, w)),
        (-1, lambda: metrics.predictive_equality_difference(y, f, v, w)),
    ]
    for label, measure in cases:
        expected = loop_difference(rows, label)
        if expected is None:
            with pytest.raises(InvalidInputError, match=r"some row must have viewpoint [+-]1"):
                measure()
        else:
            assert measure() == pytest.approx(expected, abs=1e-12)
    both = [loop_difference(rows, 1), loop_difference(rows, -1)]
    if None not in both:
        worst = max(abs(d) for d in both)
        assert metrics.equalized_odds_difference(y, f, v, w) == pytest.approx(worst, abs=1e-12)


@given(samples)
def test_mutual_information_by_loops(rows):
    f, v, y, w = columns(rows)
    rows = as_read(rows)
    npi = loop_information(rows, lambda f, v, y: f > 0, lambda f, v, y: v > 0)
    assert metrics.normalized_prejudice_index(f, v, w) == pytest.approx(npi, abs=1e-9)
    if len(set(y)) == 2:
        nmi = loop_information(rows, lambda f, v, y: f > 0, lambda f, v, y: y > 0)
        assert metrics.normalized_mutual_information(y, f, w) == pytest.approx(nmi, abs=1e-9)


@given(samples)
def test_balanced_weights_make_it_demographic_parity(rows):
    f, v, y, _ = columns(as_read([(*row[:3], 1) for row in rows]))
    if len(set(v > 0)) == 2:
        parity = abs(metrics.calders_verwer_score(f, v))
        assert metrics.neutrality_risk(f, v, balanced_weights(v)) == pytest.approx(parity, abs=1e-14)
    if len(set((v > 0)[y > 0])) == 2:
        opportunity = abs(metrics.equal_opportunity_difference(y, f, v))
        weighted = metrics.neutrality_risk(f, v, equal_opportunity_weights(y, v))
        assert weighted == pytest.approx(opportunity, abs=1e-14)


def every_measure(f, v, y, w=None):
    r = metrics.report(y, f, v, w).as_dict()
    r["relaxed"] = metrics.relaxed_neutrality_risk(f, v, HINGE, w)
    return {k: value for k, value in r.items() if k != "n"}


@given(samples, st.randoms(use_true_random=False))
def test_order_does_not_matter_and_weight_two_is_two_rows(rows, random):
    f, v, y, w = columns(rows)
    as_read(rows)
    shuffled = list(rows)
    random.shuffle(shuffled)
    f2, v2, y2, w2 = columns(shuffled)
    repeated = np.repeat(np.arange(len(rows)), w.astype(int))
    weighted = every_measure(f, v, y, w)
    assert every_measure(f2, v2, y2, w2) == pytest.approx(weighted, abs=1e-12, nan_ok=True)
    spelled_out = every_measure(f[repeated], v[repeated], y[repeated])
    assert spelled_out == pytest.approx(weighted, abs=1e-12, nan_ok=True)


@given(samples)
def test_flipping_the_viewpoint_or_the_scores(rows):
    f, v, _, w = columns(as_read(rows))
    f[f == 0], v[v == 0] = -1.0, -1.0  # a tie does not flip
    if len(set((v > 0)[w > 0])) == 2:
        parity = metrics.calders_verwer_score(f, v, w)
        assert metrics.calders_verwer_score(f, -v, w) == pytest.approx(-parity, abs=1e-12)
        assert metrics.calders_verwer_score(-f, v, w) == pytest.approx(-parity, abs=1e-12)
    for even in (
        metrics.neutrality_risk,
        metrics.normalized_prejudice_index,
        partial(metrics.relaxed_neutrality_risk, surrogate=HINGE),
    ):
        assert even(f, -v, sample_weight=w) == pytest.approx(even(f, v, sample_weight=w), abs=1e-12)
        assert even(-f, v, sample_weight=w) == pytest.approx(even(f, v, sample_weight=w), abs=1e-12)


def test_uncentred_independence_is_not_zero():
    """Independent of the viewpoint by construction, and yet C_sgn = |E v| |E yhat|."""
    v = np.repeat([1, 1, 1, -1], 4)
    f = np.tile([1, 1, 1, -1], 4)
    assert metrics.calders_verwer_score(f, v) == 0
    assert metrics.normalized_prejudice_index(f, v) == pytest.approx(0, abs=1e-15)
    assert metrics.neutrality_risk(f, v) == 0.25
    assert metrics.report(np.tile([1, -1], 8), f, v).neutrality_risk_if_independent == 0.25


def test_report_holds_auc_and_accuracy_by_loops():
    rng = np.random.default_rng(0)
    f, v, y, w = (
        rng.integers(-3, 4, 40),
        rng.choice([-1, 1], 40),
        rng.choice([-1, 1], 40),
        rng.integers(0, 4, 40),
    )
    up = down = hits = 0.0
    for i in range(40):
        hits += w[i] * ((f[i] > 0) == (y[i] > 0))
        for j in range(40):
            if y[i] > 0 > y[j]:
                up += w[i] * w[j] * (1.0 if f[i] > f[j] else 0.5 if f[i] == f[j] else 0.0)
                down += w[i] * w[j]
    r = metrics.report(y, f, v, w)
    assert r.auc == pytest.approx(up / down, rel=1e-12)
    assert r.accuracy == pytest.approx(hits / w.sum(), rel=1e-12)
    assert r.undefined == {}
    text = repr(r)
    assert text.startswith("Report on 40 rows")
    assert all(f"{name} " in text for name in r.as_dict() if name != "n")


def test_a_report_travels_and_knows_its_measures_only():
    r = metrics.report([1, -1, 1, -1], [1.0, 1.0, -1.0, 1.0], [1, 1, -1, -1])
    assert pickle.loads(pickle.dumps(r)) == r
    assert copy.deepcopy(r).accuracy == r.accuracy == r.as_dict()["accuracy"]
    assert "calders_verwer_score" in dir(r)
    with pytest.raises(AttributeError, match="a Report has no measure 'fairness'"):
        _ = r.fairness


def test_report_says_what_is_undefined_and_why():
    r = metrics.report([1, 1], [0.5, -0.5], [1, 1])
    assert math.isnan(r.auc)
    assert math.isnan(r.calders_verwer_score)
    assert r.undefined["auc"] == "AUC needs rows of both classes"
    assert "some row must have viewpoint -1" in repr(r)
    assert r.normalized_prejudice_index == 0.0  # 0/0: a constant tells nothing


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: metrics.neutrality_risk([], []), r"'scores' must have at least one entry"),
        (
            lambda: metrics.neutrality_risk([1, 2], [1]),
            r"'viewpoint' must have one entry for each of the 2 rows",
        ),
        (
            lambda: metrics.neutrality_risk([1, np.nan], [1, 1]),
            r"'scores' must be finite\. Got nan at index 1",
        ),
        (
            lambda: metrics.neutrality_risk([1, 1], [1, np.inf]),
            r"'viewpoint' must be finite\. Got inf at index 1",
        ),
        (lambda: metrics.neutrality_risk([1], [1], [-1]), r"'sample_weight' must be nonnegative"),
        (lambda: metrics.neutrality_risk([1], [1], [0]), r"'sample_weight' must have a positive entry"),
        (lambda: metrics.calders_verwer_score([1, 1], [1, 1]), r"viewpoint -1\. Got none among 2 rows"),
        (
            lambda: metrics.equal_opportunity_difference([-1, 1], [1, 1], [1, -1]),
            r"some row must have viewpoint \+1 and y = \+1",
        ),
        (
            lambda: metrics.equalized_odds_difference([1, 1], [1, 1], [1, -1]),
            r"some row must have viewpoint -1 and y = -1",
        ),
        (lambda: metrics.report([1, 2, 3], [1, 1, 1], [1, 1, 1]), r"'y' must hold exactly two classes"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_labels_of_any_two_values():
    f, v = [1.0, 1.0, -1.0, 1.0], [1, -1, 1, -1]
    expected = metrics.equal_opportunity_difference([1, 1, 1, -1], f, v)
    assert metrics.equal_opportunity_difference(["yes", "yes", "yes", "no"], f, v) == expected
    assert metrics.equal_opportunity_difference([1, 1, 1, 0], f, v) == expected


@pytest.fixture
def data():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(120, 3))
    y = np.where(X[:, 0] + 0.3 * rng.normal(size=120) > 0, "yes", "no")
    v = np.where(X[:, 0] + X[:, 1] > 0, 1.0, -1.0)
    return X, y, v


@pytest.mark.long
def test_grid_search_in_parallel_carries_the_viewpoint(data):
    X, y, v = data
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(
            LogisticRegression(),
            {"C": [1e-4, 1.0]},
            scoring={"accuracy": "accuracy", "neutrality": metrics.make_neutrality_scorer()},
            refit="accuracy",
            cv=3,
            n_jobs=2,
        ).fit(X, y, viewpoint=v)
        scorer = metrics.make_neutrality_scorer()
        by_hand = []
        for train, test in StratifiedKFold(3).split(X, y):
            model = LogisticRegression(C=1.0).fit(X[train], y[train])
            by_hand.append(-metrics.neutrality_risk(model.decision_function(X[test]), v[test]))
            assert scorer(model, X[test], y[test], viewpoint=v[test]) == by_hand[-1]
    assert search.cv_results_["mean_test_neutrality"][1] == pytest.approx(np.mean(by_hand), rel=1e-12)


@pytest.mark.parametrize(
    "metric",
    [
        "neutrality_risk",
        "calders_verwer_score",
        "normalized_prejudice_index",
        "equal_opportunity_difference",
        "predictive_equality_difference",
        "equalized_odds_difference",
        partial(metrics.relaxed_neutrality_risk, surrogate=HINGE),
    ],
)
def test_every_measure_makes_a_scorer(data, metric):
    X, y, v = data
    model = LogisticRegression().fit(X, y)
    scorer = metrics.make_neutrality_scorer(metric)
    f = model.decision_function(X)
    function = metric if callable(metric) else getattr(metrics, metric)
    with_labels = not callable(metric) and metric.startswith(("equal", "predictive"))
    expected = -abs(function(y, f, v) if with_labels else function(f, v))
    with sklearn.config_context(enable_metadata_routing=True):
        assert scorer(model, X, y, viewpoint=v) == expected
        weights = np.arange(1.0, 121.0)
        weighted = scorer.set_score_request(viewpoint=True, sample_weight=True)
        result = weighted(model, X, y, viewpoint=v, sample_weight=weights)
    arguments = (y, f, v) if with_labels else (f, v)
    assert result == -abs(function(*arguments, sample_weight=weights))


def test_probabilities_are_cut_at_one_half(data):
    X, y, v = data
    model = GaussianNB().fit(X, y)
    predicted = np.where(model.predict(X) == "yes", 1.0, -1.0)
    scorer = pickle.loads(pickle.dumps(metrics.make_neutrality_scorer(response_method="predict_proba")))
    with sklearn.config_context(enable_metadata_routing=True):
        assert scorer(model, X, y, viewpoint=v) == -metrics.neutrality_risk(predicted, v)


@pytest.mark.parametrize(
    "coded",
    [
        lambda v: np.where(v > 0, 7.0, 3.0),  # two groups, whatever their numbers
        lambda v: np.where(v > 0, -3.0, -7.0),
        lambda v: v * np.linspace(0.5, 2.0, len(v)),  # real numbers of both signs
    ],
)
def test_a_scorer_reads_two_groups_or_two_signs(data, coded):
    X, y, v = data
    model, scorer = LogisticRegression().fit(X, y), metrics.make_neutrality_scorer()
    with sklearn.config_context(enable_metadata_routing=True):
        assert scorer(model, X, y, viewpoint=coded(v)) == scorer(model, X, y, viewpoint=v)
        assert (
            scorer(model, X[v > 0], y[v > 0], viewpoint=v[v > 0]) <= 0
        )  # a fold with one group, coded as signs
        with pytest.raises(
            InvalidInputError, match=r"numbers of both signs, or two groups\. Got 3 values, first 1\.0"
        ):
            scorer(model, X, y, viewpoint=np.where(v > 0, 1.0, np.arange(len(v)) % 2 + 2.0))


def test_a_scorer_without_a_viewpoint_says_so(data):
    X, y, _ = data
    scorer = metrics.make_neutrality_scorer()
    with pytest.raises(
        InvalidInputError, match=r"a neutrality scorer must be given the viewpoint\. Got none"
    ):
        cross_validate(LogisticRegression(), X, y, scoring=scorer, cv=2, error_score="raise")
    with pytest.raises(UnknownNameError, match=r"'metric' must be one of 'calders_verwer_score'"):
        metrics.make_neutrality_scorer("parity")
    with pytest.raises(UnknownNameError, match=r"'response_method' must be one of"):
        metrics.make_neutrality_scorer(response_method="predict")


@pytest.mark.parametrize(
    "coded",
    [
        lambda v: np.where(v > 0, "m", "f"),
        lambda v: pd.Series(np.where(v > 0, "m", "f"), dtype="category"),
        lambda v: v > 0,
        lambda v: np.where(v > 0, 2, 1),
    ],
)
def test_groups_are_read_as_the_classifiers_read_them(coded):
    rng = np.random.default_rng(0)
    y, f, v = np.sign(rng.normal(size=50)), rng.normal(size=50), np.sign(rng.normal(size=50))
    assert metrics.report(np.where(y > 0, "yes", "no"), f, coded(v)) == metrics.report(y, f, v)
    assert metrics.calders_verwer_score(f, coded(v)) == metrics.calders_verwer_score(f, v)


@pytest.mark.parametrize(
    ("viewpoint", "text"),
    [
        (["m", "f"], r"one entry for each of the 3 rows\. Got shape \(2,\)"),
        (["m", "f", "x"], r"must hold two groups, or real numbers\. Got 3 values, first 'f'"),
        (["m", None, "f"], r"must not be missing\. Got None at index 1"),
        (["m", "m", "m"], r"must take at least two values\. Got a single value, 'm'"),
        ([10**400, 1, 2], r"must hold two groups, or real numbers\. Got 3 values, first 1"),
        ([0, 1, 2], r"must hold two groups, or real numbers\. Got 3 values, first 0"),
        ([18.0, 40.0, 65.0], r"must hold numbers of both signs, or two groups\. Got 3 values, first 18\.0"),
    ],
)
def test_groups_that_cannot_be_read(viewpoint, text):
    with pytest.raises(InvalidInputError, match=text):
        metrics.report([1, -1, 1], [0.5, -1.0, 1.0], viewpoint)


def test_a_report_of_a_regression_or_of_three_groups_is_refused_with_advice():
    f, v = np.linspace(-1, 1, 6), np.array(list("aabbab"))
    with pytest.raises(InvalidInputError, match=r"two classes\. Got 6 values\. .* mean_difference"):
        metrics.report(f + 0.5, f, v)
    with pytest.raises(InvalidInputError, match="Compare one group with the rest"):
        metrics.report(f > 0, f, list("abcabc"))
