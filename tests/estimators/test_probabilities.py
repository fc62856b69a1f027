"""Probabilities of the logistic loss: from the definition, for two classes and more, and absent elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import nerm


def sample(classes=2, n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 3))
    return X, np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), np.linspace(-1, 1, classes + 1)[1:-1])


def test_without_neutrality_they_are_those_of_logistic_regression():
    X, y = sample()
    ours = nerm.NERMClassifier(loss="logistic", lam=0.01, tol=1e-9).fit(X, y).predict_proba(X)
    theirs = LogisticRegression(C=1 / (0.01 * len(y)), tol=1e-10).fit(X, y).predict_proba(X)
    assert np.abs(ours - theirs).max() < 1e-4


@pytest.mark.parametrize("classes", [2, 3])
def test_they_agree_with_the_prediction(classes):
    X, y = sample(classes)
    model = nerm.NERMClassifier(loss=nerm.Logistic(), eta=0.3).fit(X, y, viewpoint=X[:, 1] > 0)
    found = model.predict_proba(X)
    assert found.shape == (len(X), classes)
    assert np.allclose(found.sum(axis=1), 1)
    assert (model.classes_[found.argmax(axis=1)] == model.predict(X)).all()
    by_hand = 1 / (1 + np.exp(-model.decision_function(X)))
    by_hand = (
        np.column_stack([1 - by_hand, by_hand])
        if classes == 2
        else by_hand / by_hand.sum(axis=1, keepdims=True)
    )
    assert np.allclose(found, by_hand)


def test_far_away_they_stay_numbers():
    X, y = sample(3)
    model = nerm.NERMClassifier(loss="logistic").fit(X, y)
    far = model.predict_proba(1e6 * X)
    assert np.isfinite(far).all()
    assert np.allclose(far.sum(axis=1), 1)


@pytest.mark.parametrize(
    "model", [nerm.NERMClassifier(), nerm.NERMClassifier(loss="squared"), nerm.NeutralSVC()]
)
def test_other_losses_have_none(model):
    assert not hasattr(model, "predict_proba")
    with pytest.raises(AttributeError):
        _ = model.predict_proba
