"""A problem with terms on some of its rows is the problem of these rows; what solutions do is counted row by row."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, roc_auc_score

import nerm
from nerm import Logistic, Neutrality, Risk, SquaredL2
from nerm.neutralize import Asking

PLAIN = Risk(Logistic()) + 0.01 * SquaredL2()
RNG = np.random.default_rng(5)
X = RNG.normal(size=(80, 3))
Y = np.where(X[:, 0] + RNG.normal(size=80) > 0.3, 1.0, -1.0)
SEX = np.where(X[:, 0] + RNG.normal(size=80) > 0, 1.0, -1.0)
RACE = np.where(X[:, 1] + RNG.normal(size=80) > 0.5, 1.0, -1.0)
USED = RNG.random(80) < 0.7
WEIGHT = RNG.uniform(0.5, 2.0, 80)


def trial(measure="calders_verwer_score", views=None, objective=PLAIN, **weights):
    problem = objective.on(X, Y, viewpoint=SEX if views is None else views, **weights)
    study = Asking(0.1, measure, tol=1e-9, row_weight=weights.get("sample_weight")).study(problem)
    return replace(study.trial, used=USED)


def test_the_plain_problem_of_some_rows():
    given = PLAIN + 0.5 * Neutrality(Logistic())  # whatever terms it has
    found = trial(objective=given).plain()
    expected = PLAIN.on(X[USED], Y[USED]).solve(tol=1e-9)
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-4)
    assert found.intercept == pytest.approx(expected.intercept, abs=1e-4)
    assert found.objective.total == pytest.approx(expected.objective.total, rel=1e-8)


@pytest.mark.parametrize("name", ["balanced", "uniform"])
def test_one_term_on_some_rows(name):
    measure = {"balanced": "calders_verwer_score", "uniform": "neutrality_risk"}[name]
    found = trial(measure).solve(Logistic(), [0.7], ["agreement"])
    term = Neutrality(Logistic(), weights=name, side="agreement")
    expected = (PLAIN + 0.7 * term).on(X[USED], Y[USED], viewpoint=SEX[USED]).solve(tol=1e-9)
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-4)
    assert found.objective.total == pytest.approx(expected.objective.total, rel=1e-7)


@pytest.mark.parametrize("eta", [0.0, 0.7])
def test_weighted_rows_pull_by_their_weight(eta):
    """The gradient is 0: rows count by their weight, and those that are not used lower what sums are divided by."""
    made = trial(sample_weight=WEIGHT)
    found = made.solve(Logistic(), [eta], ["disagreement"]) if eta else made.plain()
    f, s = X @ found.coef + found.intercept, WEIGHT * USED
    groups = np.where(SEX > 0, s[SEX > 0].sum(), s[SEX < 0].sum())
    balanced = s.sum() / (2 * groups)
    falls = s * Y / (1 + np.exp(Y * f)) + eta * s * balanced * SEX / (1 + np.exp(SEX * f))
    divisor = 80 * s.sum() / WEIGHT.sum()
    np.testing.assert_allclose(X.T @ falls / divisor, 0.01 * found.coef, atol=1e-6)
    assert falls.sum() == pytest.approx(0.0, abs=1e-4)


def test_a_term_for_every_part():
    views = {"sex": SEX, "race": RACE}
    made = trial("equalized_odds_difference", views)
    assert [part.viewpoint for part in made.parts] == ["sex", "sex", "race", "race"]
    etas, sides = [0.1, 0.4, 0.2, 0.3], ["agreement", "disagreement", "agreement", "disagreement"]
    found = made.solve(nerm.Hinge(), etas, sides)
    names = ["equal_opportunity", "predictive_equality"] * 2
    terms = [
        eta * Neutrality(nerm.Hinge(), to=view, weights=name, side=side)
        for eta, side, name, view in zip(etas, sides, names, ["sex", "sex", "race", "race"], strict=True)
    ]
    few = {name: v[USED] for name, v in views.items()}
    expected = sum(terms, start=PLAIN).on(X[USED], Y[USED], viewpoint=few).solve(tol=1e-9)
    np.testing.assert_allclose(found.coef, expected.coef, atol=1e-4)
    assert found.objective.total == pytest.approx(expected.objective.total, rel=1e-7)


@pytest.mark.parametrize("rows", [None, ~USED], ids=["used", "others"])
def test_what_scores_do_to_people(rows):
    made = trial("calders_verwer_score", {"sex": SEX, "race": RACE}, sample_weight=WEIGHT)
    scores = X[:, 0] - 0.2
    some = USED if rows is None else rows
    expected = [
        [np.average(scores[g] > 0, weights=WEIGHT[g]) for g in (some & (v == side) for side in (-1, 1))]
        for v in (SEX, RACE)
    ]
    np.testing.assert_allclose(made.rates(scores, rows), expected, rtol=1e-12)
    np.testing.assert_allclose(made.measured(scores, rows), np.diff(expected).ravel(), atol=1e-12)
    quality, given = made.quality(scores, rows), {"sample_weight": WEIGHT[some]}
    assert quality["accuracy"] == pytest.approx(
        accuracy_score(Y[some] > 0, scores[some] > 0, **given), rel=1e-12
    )
    assert quality["auc"] == pytest.approx(roc_auc_score(Y[some] > 0, scores[some], **given), rel=1e-12)


def test_a_group_without_rows_has_the_rate_0():
    made = trial()
    np.testing.assert_array_equal(made.rates(np.ones(80), SEX > 0), [[0.0, 1.0]])
