"""Methods and the sweep over their weights, against fits by hand."""

from __future__ import annotations

import numpy as np
import pytest

import nerm
from nerm.experiments import METHODS, from_objective, sweep, tradeoff
from tests.conftest import make_data


class Sample:
    """Rows in one coding, which remembers what it was asked for."""

    def __init__(self, X, y, viewpoint):
        self.X, self.y, self.viewpoint, self.asked = X, y, viewpoint, []

    def parts(self, coding, train, test):
        self.asked.append(coding)
        return self.X[train], self.X[test]


def logistic(lam):
    return nerm.Risk(nerm.Logistic()) + lam * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Logistic())


@pytest.fixture
def sample():
    return Sample(*make_data(0))


def test_a_sweep_fits_on_some_rows_and_scores_others(sample):
    n = len(sample.y)
    train, test = np.arange(0, n, 2), np.arange(1, n, 2)
    fits = list(
        sweep(from_objective("mine", logistic, [0.0, 2.0], tol=1e-9), sample, train, test, 0.1 * len(train))
    )
    assert sample.asked == ["one-hot"]
    for eta, fit in zip((0.0, 2.0), fits, strict=True):
        objective = (
            nerm.Risk(nerm.Logistic()) + 0.1 * nerm.SquaredL2() + eta * nerm.Neutrality(nerm.Logistic())
        )
        problem = objective.on(sample.X[train], sample.y[train], viewpoint=sample.viewpoint[train])
        expected = problem.solve("clarabel", tol=1e-8).decision_function(sample.X[test])
        assert fit.scores == pytest.approx(expected, abs=1e-3)
        assert (fit.status, fit.reason) == ("ok", "")


@pytest.mark.long
def test_an_answer_that_is_not_certified_says_its_gap(sample):
    train = np.arange(len(sample.y))
    method = from_objective("early", hinge_objective, [1.0], solver="interior-point", tol=1e-16)
    (fit,) = sweep(method, sample, train, train, 1.0)
    assert fit.status == "not converged"
    assert fit.reason.startswith("certified relative gap ")


def hinge_objective(lam):
    return nerm.Risk(nerm.Hinge()) + lam * nerm.SquaredL2() + 1.0 * nerm.Neutrality(nerm.Hinge())


def test_an_objective_of_ones_own_joins_the_tradeoff(small):
    hinge = from_objective("hinge again", hinge_objective, [0.0, 5.0], tuning="svm")
    table = tradeoff(**{**small, "methods": ["neutral-svm", hinge]})
    ours = table[(table.method == "neutral-svm") & table.eta.isin([0.0, 5.0])]
    again = table[table.method == "hinge again"]
    assert again.auc.to_numpy() == pytest.approx(ours.auc.to_numpy(), abs=2e-3)
    assert (again.lam == 10.0).all()


def test_the_plain_svm_is_the_neutral_one_without_weights():
    assert METHODS["svm"].etas == ()
    assert METHODS["svm"].label == "plain SVM"


def test_the_kernel_of_an_objective(sample):
    train = np.arange(len(sample.y))
    method = from_objective("mine", logistic, [1.0], kernel="rbf")
    (fit,) = sweep(method, sample, train, train, 0.1 * len(train))
    problem = logistic(0.1).on(sample.X, sample.y, viewpoint=sample.viewpoint, kernel="rbf")
    assert fit.scores == pytest.approx(problem.solve("clarabel").decision_function(sample.X), abs=1e-3)
