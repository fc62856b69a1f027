"""Parameters of atoms are parameters of estimators; metadata routing passes the viewpoint."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.base import clone
from sklearn.metrics import accuracy_score, make_scorer
from sklearn.model_selection import GridSearchCV, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import nerm
from nerm import NERMClassifier, NeutralSVC
from nerm.metrics import make_neutrality_scorer
from nerm.viewpoint import Column
from tests.conftest import make_data


def test_parameters_of_atoms_can_be_set():
    model = NERMClassifier(
        loss=nerm.SmoothHinge(0.5), regularizer=nerm.ElasticNet(0.3), kernel=nerm.kernels.RBF(2.0)
    )
    params = model.get_params()
    assert (params["loss__width"], params["regularizer__l1_ratio"], params["kernel__gamma"]) == (
        0.5,
        0.3,
        2.0,
    )
    assert "loss__width" not in model.get_params(deep=False)
    model.set_params(loss__width=0.1, lam=3.0)
    assert model.loss == nerm.SmoothHinge(0.1)
    assert model.lam == 3.0
    assert model.set_params(loss="smooth-hinge", loss__width=0.7).loss == nerm.SmoothHinge(0.7)
    copy = clone(model)
    assert copy.loss == model.loss
    assert copy.get_params() == model.get_params()


@pytest.mark.parametrize(
    ("params", "text"),
    [
        (
            {"loss__widht": 1},
            "a parameter of 'loss' must be one of ['width']. Got 'widht'. SmoothHinge(width=1.0) has no other",
        ),
        ({"lam__width": 1}, "a parameter of 'lam' must be one of []. Got 'width'."),
        ({"los__width": 1}, "a parameter must be one of 'class_weight', "),
    ],
)
def test_unknown_parameters_are_named(params, text):
    with pytest.raises(nerm.InvalidInputError) as caught:
        NERMClassifier(loss=nerm.SmoothHinge()).set_params(**params)
    assert text in str(caught.value)


def test_atoms_can_be_searched():
    X, y, _ = make_data(0)
    search = GridSearchCV(NERMClassifier(loss=nerm.SmoothHinge()), {"loss__width": [0.1, 2.0]}, cv=3).fit(
        X, y
    )
    assert search.best_params_["loss__width"] in (0.1, 2.0)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@pytest.mark.usefixtures("routing")
@pytest.mark.parametrize("name", ["viewpoint", "sensitive_features"])
def test_sensitive_features_are_routed_as_the_viewpoint(name):
    X, y, v = make_data(2, n=60)
    model = NeutralSVC(eta=0.5).set_fit_request(**{name: True})
    made = cross_validate(model, X, y, params={name: v}, cv=2, return_estimator=True)["estimator"][0]
    assert made.eta == 0.5
    assert made.explain().problems[0].terms[-1].kind == "neutrality"


def test_sensitive_features_is_another_name_of_viewpoint():
    X, y, v = make_data(2, n=60)
    one, other = (
        NeutralSVC(eta=0.5).fit(X, y, viewpoint=v),
        NeutralSVC(eta=0.5).fit(X, y, sensitive_features=v),
    )
    np.testing.assert_array_equal(one.coef_, other.coef_)
    with pytest.raises(nerm.InvalidInputError, match="'viewpoint' and 'sensitive_features' are two names"):
        NeutralSVC().fit(X, y, viewpoint=v, sensitive_features=v)


@pytest.mark.long
@pytest.mark.usefixtures("routing")
def test_grid_search_in_parallel_routes_the_viewpoint():
    X, y, v = make_data(1, n=90)
    search = GridSearchCV(
        NeutralSVC(weights="balanced").set_fit_request(viewpoint=True),
        {"eta": [0.0, 3.0]},
        scoring={"accuracy": "accuracy", "neutral": make_neutrality_scorer("calders_verwer_score")},
        refit=lambda results: int(np.argmax(results["mean_test_accuracy"] + results["mean_test_neutral"])),
        cv=2,
        n_jobs=2,
    ).fit(X, y, viewpoint=v)
    assert len(search.cv_results_["params"]) == 2
    assert not np.isnan(search.cv_results_["mean_test_neutral"]).any()
    by_eta = {
        p["eta"]: m
        for p, m in zip(search.cv_results_["params"], search.cv_results_["mean_test_neutral"], strict=True)
    }
    assert by_eta[3.0] > by_eta[0.0]
    assert search.best_estimator_.eta == search.best_params_["eta"]


@pytest.mark.usefixtures("routing")
def test_pipelines_and_cross_validation_carry_the_viewpoint():
    X, y, v = make_data(2, n=90)
    model = NeutralSVC(eta=0.5).set_fit_request(viewpoint=True, sample_weight=True)
    scaler = StandardScaler().set_fit_request(sample_weight=False)
    pipeline = make_pipeline(scaler, model)
    s = np.linspace(1, 2, 90)
    accuracy = make_scorer(accuracy_score).set_score_request(sample_weight=True)
    params = {"viewpoint": v, "sample_weight": s}
    result = cross_validate(pipeline, X, y, params=params, scoring=accuracy, cv=3, return_estimator=True)
    first = result["estimator"][0]
    from sklearn.model_selection import StratifiedKFold

    train = next(iter(StratifiedKFold(3).split(X, y)))[0]
    by_hand = clone(pipeline).fit(X[train], y[train], viewpoint=v[train], sample_weight=s[train])
    np.testing.assert_array_equal(first.decision_function(X), by_hand.decision_function(X))


@pytest.mark.usefixtures("routing")
def test_several_viewpoints_travel_as_a_table():
    X, y, v = make_data(3, n=90)
    table = pd.DataFrame({"sex": np.where(v > 0, "m", "f"), "region": np.arange(90) % 3})
    model = NeutralSVC(eta=0.2).set_fit_request(viewpoint=True)
    fitted = cross_validate(model, X, y, params={"viewpoint": table}, cv=3, return_estimator=True)[
        "estimator"
    ][0]
    assert list(fitted.solutions_[0].thetas) == ["sex", "region=0", "region=1", "region=2"]


def test_the_viewpoint_is_never_passed_on_unasked():
    X, y, v = make_data(4)
    with sklearn.config_context(enable_metadata_routing=True), pytest.raises(ValueError, match="viewpoint"):
        GridSearchCV(NeutralSVC(), {"eta": [0.0]}, cv=2).fit(X, y, viewpoint=v)


@pytest.mark.usefixtures("routing")
def test_a_column_travels_as_it_is():
    X, y, v = make_data(5, n=60)
    model = NeutralSVC().set_fit_request(viewpoint=True)
    search = GridSearchCV(model, {"eta": [0.1, 1.0]}, cv=2)
    search.fit(np.column_stack([X, v]), y, viewpoint=Column(4, drop=True))
    assert search.best_estimator_.coef_[0, 4] == 0
    frame = pd.DataFrame(X, columns=list("abcd")).assign(sex=v)
    assert list(search.fit(frame, y, viewpoint="sex").best_estimator_.solutions_[0].thetas) == ["sex"]


def test_a_notebook_shows_the_parameters():
    assert "SmoothHinge" in NERMClassifier(loss=nerm.SmoothHinge(0.5))._repr_html_()
