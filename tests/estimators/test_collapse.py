"""Classifiers warn of themselves where neutrality made them say the same to everybody, and only there."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import nerm
from nerm import NearlyConstantWarning, NERMClassifier, NeutralSVC
from tests.conftest import make_data


def rare(n=1200, share=0.12, noise=0.5, seed=0):
    """Return data as Bank's: a rare class, told by the first column, which also tells a little of the viewpoint."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    risk = X[:, 0] + 0.4 * X[:, 1] + noise * rng.normal(size=n)
    y = np.where(risk > np.quantile(risk, 1 - share), "yes", "no")
    v = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, v


def quiet(model, *data, **more):
    """Fit, and let no warning pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return model.fit(*data, **more)


def test_a_constant_that_neutrality_made(tmp_path):
    X, y, v = rare()
    assert quiet(NERMClassifier(weights="balanced"), X, y, viewpoint=v).collapse_ is None
    with pytest.warns(
        NearlyConstantWarning, match=r"^The model predicts class 'no' for 100.0 % of rows .*smaller eta"
    ):
        model = NERMClassifier(eta=5.0, weights="balanced").fit(X, y, viewpoint=v)
    assert model.certificate_.relative_gap <= 1e-6  # proven to be optimal, and no use
    said = "The model predicts class 'no' for 100.0 % of rows (labels: 88.0 %): it is nearly constant."
    model.save(tmp_path / "model.nerm")
    for one in (model, nerm.load(tmp_path / "model.nerm")):
        assert one.collapse_ == said
        assert repr(one.explain()).startswith(said)


def test_it_is_the_models_place_that_is_warned_of():
    X, y, v = rare()
    with pytest.warns(NearlyConstantWarning) as caught:
        NeutralSVC(eta=5.0, lam=12.0, weights="balanced").fit(X, y, viewpoint=v)
    assert [warning.filename for warning in caught] == [__file__]


def collapsing(n=2000):
    """Return data on which some eta leaves few positives: two columns know the label, one of them the viewpoint."""
    rng = np.random.default_rng(1)
    v = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    X = np.column_stack([rng.normal(size=n) + v, rng.normal(size=n)])
    y = np.where(X[:, 0] + 0.7 * X[:, 1] + 0.3 * rng.normal(size=n) > 1.2, 1, 0)
    return X, y, v


def test_a_positive_rate_that_collapsed():
    X, y, v = collapsing()
    plain = quiet(NERMClassifier(), X, y, viewpoint=v)
    with pytest.warns(NearlyConstantWarning, match="its positive rate collapsed"):
        model = NERMClassifier(eta=0.3, weights="balanced").fit(X, y, viewpoint=v)
    now, then = (np.mean(one.predict(X)[v > 0] == 1) for one in (model, plain))
    assert 0.01 < now < then / 2
    assert (
        f"class 1 for {100 * now:.1f} % of the rows with viewpoint +1 (without neutrality: {100 * then:.1f} %)"
        in (model.collapse_)
    )


@pytest.mark.parametrize(
    "model", [NeutralSVC(), NERMClassifier(), NERMClassifier(loss="logistic", lam=0.001)]
)
def test_ordinary_data_are_not_warned_of(model):
    for seed in range(3):
        X, y, v = make_data(seed, n=200)
        quiet(model.set_params(eta=0.3), X, y, viewpoint=v)
        quiet(
            model.set_params(eta=0.3),
            X[:25],
            y[:25],
            viewpoint=v[:25],
            sample_weight=1e-3 + np.arange(25) % 3,
        )
        quiet(model.set_params(eta=0.0), X, y)


def test_a_truly_rare_class_is_not_warned_of():
    X, y, v = rare(n=4000, share=0.01, noise=0.1)
    for eta in (0.0, 0.001):
        model = quiet(NeutralSVC(lam=0.1, eta=eta), X, y, viewpoint=v)
        assert 0.002 < np.mean(model.predict(X) == "yes") < 0.012
    few = np.r_[np.flatnonzero(y == "yes")[:9], np.flatnonzero(y == "no")[:300]]  # too few to say anything
    assert (quiet(NeutralSVC(lam=1e4), X[few], y[few]).predict(X) == "no").all()


def test_one_class_of_many_may_never_win():
    rng = np.random.default_rng(0)
    y = rng.choice(4, size=800, p=[0.45, 0.45, 0.05, 0.05])
    X = rng.normal(size=(800, 2)) + np.array([[4, 0], [-4, 0], [0, 0], [0, 0]])[y]
    v = np.where(rng.random(800) < 0.5, 1, -1)
    model = quiet(NeutralSVC(lam=40.0, eta=0.5), X, y, viewpoint=v)
    assert len(np.unique(model.predict(X))) < 4
    with pytest.warns(NearlyConstantWarning, match="nearly constant"):
        NeutralSVC().fit(0.0 * X, y)


def test_a_class_without_weight_may_never_be_predicted():
    X, y, _ = rare()
    model = quiet(NeutralSVC(class_weight={"no": 1e3, "yes": 1e-4}), X, y)
    assert (model.predict(X) == "no").all()
