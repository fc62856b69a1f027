"""A search on some rows (`part`) solves the problem of these rows, and measures on them."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, roc_auc_score

import nerm
from nerm import Logistic, Neutrality, Risk, SquaredL2
from nerm.neutralize import Target
from nerm.neutralize.neutralizing import part, search_for

PLAIN = Risk(Logistic()) + 0.01 * SquaredL2()
RNG = np.random.default_rng(5)
X = RNG.normal(size=(80, 3))
Y = np.where(X[:, 0] + RNG.normal(size=80) > 0.3, 1.0, -1.0)
SEX = np.where(X[:, 0] + RNG.normal(size=80) > 0, 1.0, -1.0)
RACE = np.where(X[:, 1] + RNG.normal(size=80) > 0.5, 1.0, -1.0)
USED = RNG.random(80) < 0.7
WEIGHT = RNG.uniform(0.5, 2.0, 80)


def search(measure="calders_verwer_score", views=None, objective=PLAIN, **weights):
    problem = objective.on(X, Y, viewpoint=SEX if views is None else views, **weights)
    whole = search_for(problem, Target(0.1, measure, tol=1e-9), weights.get("sample_weight"))
    return part(whole, np.flatnonzero(USED))


def test_plain_solution_of_some_rows():
    given = PLAIN + 0.5 * Neutrality(Logistic())  # its own term is dropped
    found = search(objective=given).plain.solution
    expected = PLAIN.on(X[USED], Y[USED]).solve(tol=1e-9)
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-4)
    assert found.objective.total == pytest.approx(expected.objective.total, rel=1e-8)


@pytest.mark.parametrize("eta", [0.0, 0.7])
def test_weighted_rows_count_by_their_weight(eta):
    """The gradient vanishes, with rows that count by weight and the divisor of the used rows."""
    made = search(sample_weight=WEIGHT)
    candidate = made.solve(Logistic(), np.array([-eta]), tol=1e-9) if eta else made.plain
    found = candidate.solution
    f, s = X @ found.coef + found.intercept, WEIGHT * USED
    groups = np.where(SEX > 0, s[SEX > 0].sum(), s[SEX < 0].sum())
    balanced = s.sum() / (2 * groups)
    falls = s * Y / (1 + np.exp(Y * f)) + eta * s * balanced * SEX / (1 + np.exp(SEX * f))
    divisor = 80 * s.sum() / WEIGHT.sum()
    np.testing.assert_allclose(X.T @ falls / divisor, 0.01 * found.coef, atol=1e-6)
    assert falls.sum() == pytest.approx(0.0, abs=1e-4)


def test_one_term_per_part():
    views = {"sex": SEX, "race": RACE}
    made = search("equalized_odds_difference", views)
    candidate = made.solve(nerm.Hinge(), np.array([0.1, -0.4, 0.2, -0.3]), tol=1e-9)
    names = ["equal_opportunity", "predictive_equality"] * 2
    terms = [
        abs(eta) * Neutrality(nerm.Hinge(), to=view, weights=name, side=side)
        for eta, side, name, view in zip(
            candidate.weights, candidate.sides, names, ["sex", "sex", "race", "race"], strict=True
        )
    ]
    few = {name: v[USED] for name, v in views.items()}
    expected = sum(terms, start=PLAIN).on(X[USED], Y[USED], viewpoint=few).solve(tol=1e-9)
    np.testing.assert_allclose(candidate.solution.coef, expected.coef, atol=1e-4)
    assert candidate.solution.objective.total == pytest.approx(expected.objective.total, rel=1e-7)


def test_measure_rates_and_quality_by_numpy():
    made = search("calders_verwer_score", {"sex": SEX, "race": RACE}, sample_weight=WEIGHT)
    scores, weight = X[USED, 0] - 0.2, WEIGHT[USED]
    expected = [
        [np.average(scores[v == side] > 0, weights=weight[v == side]) for side in (-1, 1)]
        for v in (SEX[USED], RACE[USED])
    ]
    found = made.table(None, scores).at_zero
    np.testing.assert_allclose(found.rates[0], np.ravel(expected), rtol=1e-12)
    np.testing.assert_allclose(found.parts[0], np.diff(expected).ravel(), atol=1e-12)
    np.testing.assert_allclose(made.directions(scores), found.parts[0], atol=1e-12)
    quality, given = made.quality(scores), {"sample_weight": weight}
    accuracy = accuracy_score(Y[USED] > 0, scores > 0, **given)
    assert quality["accuracy"] == pytest.approx(accuracy, rel=1e-12)
    assert found.accuracy[0] == pytest.approx(accuracy, rel=1e-12)
    assert quality["auc"] == pytest.approx(roc_auc_score(Y[USED] > 0, scores, **given), rel=1e-12)
