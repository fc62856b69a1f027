"""CV2NB against a literal transcription of the algorithm: dictionaries, loops, probabilities multiplied out."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from nerm.baselines import CV2NB, NominalNaiveBayes
from nerm.baselines.naive_bayes import NominalCodes
from nerm.errors import InvalidInputError

NAN = float("nan")


def literal_cv2nb(X, y, s):
    """Calders and Verwer's loop, s = 1 favoured; returns the final N and the trace of (N, disc, numpos)."""
    n, d = X.shape
    values = [sorted({X[i, j] for i in range(n) if not math.isnan(X[i, j])}) for j in range(d)]
    N = {(c, g): float(sum(1 for i in range(n) if y[i] == c and s[i] == g)) for c in (0, 1) for g in (0, 1)}
    seen, present = {}, {}
    for i in range(n):
        for j in range(d):
            if not math.isnan(X[i, j]):
                key = (s[i], y[i], j)
                seen[*key, X[i, j]] = seen.get((*key, X[i, j]), 0) + 1
                present[key] = present.get(key, 0) + 1

    def probability(i, c):
        p = N[c, s[i]] + 0.5
        for j in range(d):
            if not math.isnan(X[i, j]):
                rows = present.get((s[i], c, j), 0)  # of this class and group, with a value in column j
                p *= (seen.get((s[i], c, j, X[i, j]), 0) + 1 / len(values[j])) / (rows + 1)
        return p

    def predictions():
        return [1 if probability(i, 1) > probability(i, 0) else 0 for i in range(n)]

    def state():
        yhat = predictions()
        rate = [
            sum(yhat[i] for i in range(n) if s[i] == g) / sum(1 for i in range(n) if s[i] == g)
            for g in (0, 1)
        ]
        return rate[1] - rate[0], sum(yhat)

    disc, numpos = state()
    trace = [(dict(N), disc, numpos)]
    while disc > 0:
        before = dict(N)
        if numpos < sum(y):
            d_ = 0.01 * N[0, 1]
            N[1, 0] += d_
            N[0, 0] -= d_
        else:
            d_ = 0.01 * N[1, 0]
            N[0, 1] += d_
            N[1, 1] -= d_
        if min(N.values()) < 0:
            N = before
            break
        disc, numpos = state()
        trace.append((dict(N), disc, numpos))
    odds = [math.log(probability(i, 1)) - math.log(probability(i, 0)) for i in range(n)]
    return N, trace, odds


def nominal_data(seed, n=60, d=4, lift=0.35):
    random = np.random.default_rng(seed)
    s = (random.random(n) < 0.5).astype(int)
    X = random.integers(0, 4, size=(n, d)).astype(float)
    y = (random.random(n) < 0.3 + lift * s + 0.1 * (X[:, 0] > 1)).astype(int)
    X[random.random((n, d)) < 0.1] = NAN
    return X, y, s


def as_matrix_of(N, swapped=False):
    columns = (1, 0) if swapped else (0, 1)
    return np.array([[N[c, g] for g in columns] for c in (0, 1)])


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("lift", [0.35, -0.25])
def test_every_step_agrees_with_the_literal_transcription(seed, lift):
    X, y, s = nominal_data(seed, lift=lift)
    model = CV2NB().fit(X, 2 * y - 1, viewpoint=2 * s - 1)
    swapped = model.favoured_ == -1  # favoured group 0: the transcription runs with the roles exchanged
    N, trace, odds = literal_cv2nb(X, y, 1 - s if swapped else s)
    assert trace[0][1] >= 0
    assert model.n_iter_ == len(trace) - 1
    np.testing.assert_allclose(model.trace_["discrimination"], [t[1] for t in trace], atol=1e-12)
    np.testing.assert_array_equal(model.trace_["positives"], [t[2] for t in trace])
    np.testing.assert_allclose(model.trace_["counts"], [as_matrix_of(t[0], swapped) for t in trace])
    np.testing.assert_allclose(model.counts_, as_matrix_of(N, swapped))
    np.testing.assert_allclose(model.decision_function(X, viewpoint=2 * s - 1), odds, atol=1e-9)


def test_both_orientations_were_among_the_random_cases():
    sides = set()
    for lift in (0.35, -0.25):
        X, y, s = nominal_data(0, lift=lift)
        sides.add(int(CV2NB(max_iter=0).fit(X, y, viewpoint=s).favoured_))
    assert sides == {0, 1}


def test_counts_are_rows_of_classes_and_columns_of_groups():
    X, y, s = nominal_data(3)
    model = CV2NB(max_iter=0).fit(X, y, viewpoint=s)
    expected = [[((y == c) & (s == g)).sum() for g in (0, 1)] for c in (0, 1)]
    np.testing.assert_array_equal(model.counts_, expected)
    assert model.n_iter_ == 0


def test_codes_strings_and_categories_are_one_model():
    X, y, s = nominal_data(5)
    letters = pd.DataFrame(X, columns=list("abcd")).map(lambda v: None if np.isnan(v) else "pqrs"[int(v)])
    scores = CV2NB().fit(X, y, viewpoint=s).decision_function(X, viewpoint=s)
    for table in (pd.DataFrame(X), letters, letters.astype("category"), letters.to_numpy(dtype=object)):
        again = clone(CV2NB()).fit(table, y, viewpoint=s).decision_function(table, viewpoint=s)
        np.testing.assert_allclose(again, scores)


def test_a_value_not_seen_in_fit_counts_as_seen_zero_times():
    X = np.array([[0.0], [0.0], [1.0], [1.0], [0.0], [1.0]] * 2)
    y, s = np.tile([0, 0, 1, 1, 1, 0], 2), np.repeat([0, 1], 6)
    model = CV2NB(max_iter=0).fit(X, y, viewpoint=s)
    # three rows of each class a group: (0 + 1/2) / (3 + 1) for both classes, so only the prior (equal) speaks
    assert model.decision_function([[7.0]], viewpoint=[0]) == pytest.approx(0.0, abs=1e-12)
    assert model.decision_function([[NAN]], viewpoint=[1]) == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(model.decision_function([[1.0]], viewpoint=[1]), math.log(2.5 / 1.5))


def test_missing_values_leave_the_chances_of_a_column_summing_to_one():
    """By hand: of three positive rows one lacks its value, so two rows are counted and not three."""
    X = np.array([[0.0], [0.0], [NAN], [1.0], [0.0], [1.0]] * 2)
    y, s = np.tile([1, 1, 1, 0, 0, 0], 2), np.repeat([0, 1], 6)
    model = CV2NB(max_iter=0).fit(X, y, viewpoint=s)
    positive, negative = (2 + 1 / 2) / (2 + 1), (1 + 1 / 2) / (3 + 1)
    assert model.decision_function([[0.0]], viewpoint=[1]) == pytest.approx(math.log(positive / negative))
    other, than = (0 + 1 / 2) / (2 + 1), (2 + 1 / 2) / (3 + 1)
    assert model.decision_function([[1.0]], viewpoint=[1]) == pytest.approx(math.log(other / than))
    assert positive + other == pytest.approx(1.0)


def test_naive_bayes_is_the_formula():
    X, y, _ = nominal_data(8)
    model = NominalNaiveBayes().fit(X, y)
    for i in (0, 1, 2):
        odds = math.log((y == 1).sum() + 0.5) - math.log((y == 0).sum() + 0.5)
        for j in range(X.shape[1]):
            if not math.isnan(X[i, j]):
                v = len(np.unique(X[~np.isnan(X[:, j]), j]))
                there = [X[(y == c) & ~np.isnan(X[:, j]), j] for c in (0, 1)]
                p = [((column == X[i, j]).sum() + 1 / v) / (len(column) + 1) for column in there]
                odds += math.log(p[1] / p[0])
        assert model.decision_function(X[[i]])[0] == pytest.approx(odds)


def test_adult_loses_its_discrimination_and_its_rows_are_read_once(adult, monkeypatch):
    data, passes = adult[0], []
    read = NominalCodes.codes
    monkeypatch.setattr(NominalCodes, "codes", lambda self, X: passes.append(len(X)) or read(self, X))
    model = CV2NB().fit(data.X, data.y, viewpoint=data.viewpoint)
    assert passes == [len(data.y)]  # the loop works on counts
    assert model.converged_
    assert model.objective_ <= 0
    assert model.trace_["discrimination"][0] > 0.15
    assert model.counts_.sum() == pytest.approx(len(data.y))


def test_a_loop_that_must_stop_early_says_what_is_left():
    # A feature that tells the classes apart beyond doubt: no admissible prior changes a prediction.
    s = np.array([0] * 20 + [1] * 20)
    y = np.array([1] + [0] * 19 + [1] * 19 + [0])
    X = np.repeat(y[:, None].astype(float), 50, axis=1)
    said = r"CV2NB did not converge: the discrimination is still 0\.9 and the next step .* count negative\. The trace"
    with pytest.warns(ConvergenceWarning, match=said):
        model = CV2NB().fit(X, y, viewpoint=s)
    assert not model.converged_
    assert model.counts_.min() >= 0


@pytest.mark.parametrize(
    ("X", "message"),
    [
        (
            np.zeros(4),
            "'X' must be a dense table with at least one row and one column. Got a ndarray of shape (4,). "
            "Pass a DataFrame or a two-dimensional array.",
        ),
        (
            sp.csr_matrix(np.ones((4, 2))),
            "'X' must be a dense table with at least one row and one column. Got a csr_matrix of shape (4, 2). "
            "Pass a DataFrame or a two-dimensional array.",
        ),
    ],
)
def test_tables_that_are_not_nominal(X, message):
    with pytest.raises(InvalidInputError) as caught:
        CV2NB().fit(X, [0, 1, 0, 1], viewpoint=[0, 0, 1, 1])
    assert str(caught.value) == message


def test_other_columns_at_predict():
    model = CV2NB().fit([[0], [1], [0], [1]], [0, 1, 0, 1], viewpoint=[0, 0, 1, 1])
    with pytest.raises(ValueError, match="X has 2 features, but CV2NB is expecting 1 features as input"):
        model.predict([[0, 1]], viewpoint=[0])
    with pytest.raises(InvalidInputError) as caught:
        CV2NB(max_iter=-1).fit([[0], [1], [0], [1]], [0, 1, 0, 1], viewpoint=[0, 0, 1, 1])
    assert (
        str(caught.value) == "'max_iter' must be a whole number, at least 0. Got -1. Use None for no limit."
    )
