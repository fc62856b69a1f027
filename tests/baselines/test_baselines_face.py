"""The face that all baselines share, and the sentences for everything that may come in wrong."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

import nerm.baselines
from nerm.baselines import (
    CV2NB,
    EtaNeutralLogisticRegression,
    FairlearnReduction,
    FairlearnThresholds,
    GroupThresholds,
    LearningFairRepresentations,
    NominalNaiveBayes,
    PrejudiceRemover,
    Unprocessed,
)
from nerm.errors import InvalidInputError, MissingPackageError
from nerm.experiments import METHODS, from_estimator

random = np.random.default_rng(0)
S = np.where(random.random(90) < 0.55, 1, -1)
X = random.integers(0, 3, size=(90, 4)).astype(float)
Y = np.where(X[:, 0] + 0.7 * S + random.normal(size=90) > 1, 1, -1)

OURS = [
    NominalNaiveBayes(),
    CV2NB(),
    PrejudiceRemover(),
    EtaNeutralLogisticRegression(eta=0.05),
    LearningFairRepresentations(2, n_init=1, tol=0.01, random_state=0),
    GroupThresholds(limit=0.05),
    Unprocessed(),
]
ADAPTERS = [FairlearnReduction(), FairlearnThresholds()]
LOGISTIC = [model for model in OURS if not isinstance(model, NominalNaiveBayes)]
BY_GROUP = [model for model in OURS if model.sees_group]
WITH_GROUPS = [model for model in OURS if type(model) is not NominalNaiveBayes]


def named(models):
    return pytest.mark.parametrize("model", models, ids=lambda model: type(model).__name__)


def sentence_of(action):
    with pytest.raises(InvalidInputError) as caught:
        action()
    return str(caught.value)


def test_every_baseline_is_looked_at_here():
    tested = {type(model).__name__ for model in OURS + ADAPTERS}
    regressors = {"BoundedGroupLoss", "FairRidge", "ResidualisedRidge", "WassersteinBarycentre"}
    assert tested == set(nerm.baselines.__all__) - regressors  # tests/baselines/test_regression.py


@named(OURS)
def test_sensitive_features_is_another_name_of_viewpoint(model):
    fitted, renamed = clone(model).fit(X, Y, viewpoint=S), clone(model).fit(X, Y, sensitive_features=S)
    scores = renamed.decision_function(X, viewpoint=S)
    assert np.array_equal(scores, fitted.decision_function(X, viewpoint=S))
    assert "two names of one argument" in sentence_of(
        lambda: clone(model).fit(X, Y, viewpoint=S, sensitive_features=S)
    )


@named(OURS)
def test_who_sees_the_group_says_so(model):
    fitted = clone(model).fit(X, Y, viewpoint=S)
    scores = [fitted.decision_function(X, viewpoint=np.full(90, group)) for group in (-1, 1)]
    assert model.sees_group == (np.abs(scores[1] - scores[0]).max() > 0)


def test_the_experiments_say_of_a_method_what_its_class_says():
    classes = {"cv2nb": CV2NB(), "pr": PrejudiceRemover(), "eta-lr": EtaNeutralLogisticRegression()}
    for name, model in classes.items():
        for fact in ("sees_group", "randomised", "level"):
            assert getattr(METHODS[name], fact) == getattr(model, fact), (name, fact)
    made = from_estimator("fairlearn", FairlearnThresholds())
    assert (made.sees_group, made.randomised, made.level) == (True, True, "asked")
    assert {model.level for model in OURS + ADAPTERS} == {"asked", "grid", "none"}


@named(OURS)
def test_a_third_argument_is_never_taken_for_a_viewpoint(model):
    with pytest.raises(TypeError, match="positional argument"):
        clone(model).fit(X, Y, S)
    fitted = clone(model).fit(X, Y, viewpoint=S)
    with pytest.raises(TypeError, match="positional argument"):
        fitted.score(X, Y, S)


@named(OURS)
def test_fit_predict_and_scores(model):
    fitted = clone(model)
    assert fitted.fit(X, Y, viewpoint=S) is fitted
    assert is_classifier(fitted)
    scores = fitted.decision_function(X, viewpoint=S)
    assert scores.shape == (90,)
    np.testing.assert_array_equal(fitted.predict(X, viewpoint=S), np.where(scores > 0, 1, -1))
    assert fitted.score(X, Y, viewpoint=S) == (fitted.predict(X, viewpoint=S) == Y).mean() > 0.6
    assert np.isfinite(fitted.objective_)
    assert fitted.n_iter_ >= 0
    assert fitted.converged_
    assert fitted.n_features_in_ == 4
    assert clone(fitted).get_params() == model.get_params()


@named(OURS)
def test_labels_and_groups_may_be_any_two_values(model):
    plain = clone(model).fit(X, Y, viewpoint=S)
    words = clone(model).fit(X, np.where(Y > 0, "yes", "no"), viewpoint=np.where(S > 0, 20, 10))
    scores = words.decision_function(X, viewpoint=np.where(S > 0, 20, 10))
    np.testing.assert_allclose(scores, plain.decision_function(X, viewpoint=S))
    assert words.classes_.tolist() == ["no", "yes"]


@named(BY_GROUP)
def test_one_group_alone_may_be_predicted(model):
    fitted = clone(model).fit(X, Y, viewpoint=S)
    whole = fitted.decision_function(X, viewpoint=S)
    np.testing.assert_allclose(
        fitted.decision_function(X[S > 0], viewpoint=S[S > 0]), whole[S > 0], atol=1e-9
    )


@named(OURS)
def test_unfitted(model):
    with pytest.raises(NotFittedError):
        clone(model).predict(X, viewpoint=S)


@named(WITH_GROUPS)
def test_viewpoints_of_fit(model):
    assert sentence_of(lambda: clone(model).fit(X, Y)) == (
        "'viewpoint' must have one label for each of the 90 rows. Got None. Pass viewpoint=...."
    )
    assert sentence_of(lambda: clone(model).fit(X, Y, viewpoint=np.ones(90))) == (
        "'viewpoint' must hold exactly two classes. Got a single class: 1.0. Select or merge classes so "
        "that two remain."
    )
    three = sentence_of(lambda: clone(model).fit(X, Y, viewpoint=np.array(list("abc") * 30)))
    assert three.startswith("'viewpoint' must hold exactly two classes. Got 3 classes: 'a', 'b', 'c'.")
    assert sentence_of(lambda: clone(model).fit(X, Y, viewpoint=Y)) == (
        "Each group of 'viewpoint' must have rows of both classes. Got group -1 without a row of class 1. "
        "Use more rows, stratify "
        "the folds by group and class, or leave this viewpoint out."
    )


@named(BY_GROUP)
def test_viewpoints_of_predict(model):
    fitted = clone(model).fit(X, Y, viewpoint=S)
    assert sentence_of(lambda: fitted.predict(X)) == (
        "'viewpoint' must have one entry for each of the 90 rows. Got None. Pass viewpoint=...."
    )
    assert sentence_of(lambda: fitted.predict(X, viewpoint=S[:5])) == (
        "'viewpoint' must have one entry for each of the 90 rows. Got shape (5,). Pass a vector of length 90."
    )
    assert sentence_of(lambda: fitted.predict(X, viewpoint=np.full(90, 7))) == (
        "'viewpoint' must hold the groups seen in fit, -1 and 1. Got 7 at index 0. Code the groups as in fit."
    )


@named(OURS)
def test_labels_of_fit(model):
    assert sentence_of(lambda: clone(model).fit(X, np.arange(90) % 3, viewpoint=S)) == (
        "'y' must hold exactly two classes. Got 3 classes: 0, 1, 2. Select or merge classes so that two remain."
    )
    assert sentence_of(lambda: clone(model).fit(X, Y[:3], viewpoint=S)) == (
        "'y' must have one label for each of the 90 rows. Got shape (3,). Pass a vector of length 90."
    )


@named(LOGISTIC)
def test_nan_and_other_columns(model):
    holes = X.copy()
    holes[4, 2] = np.nan
    assert sentence_of(lambda: clone(model).fit(holes, Y, viewpoint=S)) == (
        "'X' must be finite. Got nan at row 4, column 2. Drop or impute these rows."
    )
    fitted = clone(model).fit(sp.csr_matrix(X), Y, viewpoint=S)
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 4 features as input"):
        fitted.predict(X[:, :2], viewpoint=S)


@pytest.mark.parametrize(
    ("model", "name", "got"),
    [
        (PrejudiceRemover(eta=-1), "eta", "-1"),
        (PrejudiceRemover(lam=-0.5), "lam", "-0.5"),
        (EtaNeutralLogisticRegression(eta=-0.1), "eta", "-0.1"),
        (EtaNeutralLogisticRegression(lam=-2), "lam", "-2"),
        (LearningFairRepresentations(A_z=-3), "A_z", "-3"),
    ],
)
def test_negative_weights(model, name, got):
    assert sentence_of(lambda: model.fit(X, Y, viewpoint=S)) == (
        f"'{name}' must be a finite number, at least 0. Got {got}. Use 0 or a positive number."
    )


# ---------------------------------------------------------------- the adapters


@pytest.mark.parametrize(
    ("model", "module", "message"),
    [
        (
            FairlearnReduction(),
            "fairlearn.reductions",
            "FairlearnReduction needs the package 'fairlearn', which cannot be imported",
        ),
        (
            FairlearnThresholds(),
            "fairlearn.postprocessing",
            "FairlearnThresholds needs the package 'fairlearn', which cannot be imported",
        ),
    ],
)
def test_an_absent_package_is_named(model, module, message, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingPackageError) as caught:
        model.fit(X, Y, viewpoint=S)
    assert str(caught.value).startswith(message)
    assert "pip install 'nerm-learn[compare]'" in str(caught.value)


def test_fairlearn_has_the_same_face():
    pytest.importorskip("fairlearn", reason="needs fairlearn (extra 'compare')")
    fitted = clone(FairlearnReduction(eps=0.02)).fit(sp.csr_matrix(X), Y, viewpoint=S)
    scores = fitted.decision_function(X)
    assert np.abs(scores).max() <= 0.5 + 1e-9
    rates = [(scores[g == S] + 0.5).mean() for g in (-1, 1)]
    assert abs(rates[1] - rates[0]) < 0.1
    assert set(fitted.predict(X)) == {-1, 1}
    assert fitted.n_iter_ > 0


def test_fairlearn_is_asked_for_the_level():
    pytest.importorskip("fairlearn", reason="needs fairlearn (extra 'compare')")
    leaning, share = X + S[:, None], max(np.mean(S > 0), np.mean(S < 0))
    for limit in (0.05, 0.2):
        scores = FairlearnReduction(eps=limit * share).fit(leaning, Y, viewpoint=S).decision_function(leaning)
        rates = [(scores[g == S] + 0.5).mean() for g in (-1, 1)]
        assert limit - 0.04 < rates[1] - rates[0] < limit + 0.04


def test_fairlearns_thresholds_have_the_same_face():
    pytest.importorskip("fairlearn", reason="needs fairlearn (extra 'compare')")
    for limit, model in ((0.0, FairlearnThresholds()), (0.1, FairlearnThresholds(limit=0.1))):
        fitted = clone(model).fit(sp.csr_matrix(X), Y, viewpoint=S)
        chance = fitted.decision_function(X, viewpoint=S) + 0.5
        assert chance.min() >= -1e-9
        assert chance.max() <= 1 + 1e-9
        rates = [chance[g == S].mean() for g in (-1, 1)]
        assert abs(rates[1] - rates[0]) <= limit + 1e-9
        assert fitted.objective_ == pytest.approx(np.mean(np.where(Y > 0, 1 - chance, chance)))
        assert fitted.converged_
