"""Every way to give a viewpoint is the same viewpoint."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.tree import DecisionTreeRegressor

import nerm
from nerm import NeutralSVC
from nerm.viewpoint import Column, Learned, resolve
from tests.conftest import make_data

X, Y, V = make_data(0, n=60)
FRAME = pd.DataFrame(X, columns=list("abcd")).assign(sex=np.where(V > 0, "m", "f"))


def fit(X=X, viewpoint=V, **params):
    return NeutralSVC(**{"eta": 0.5, "lam": 2.0, **params}).fit(X, Y, viewpoint=viewpoint)


EXPECTED = fit().decision_function(X)


@pytest.mark.parametrize(
    "viewpoint",
    [
        V.tolist(),
        V.astype(int),
        V > 0,
        np.where(V > 0, "m", "f"),
        np.where(V > 0, 1, 0),
        np.where(V > 0, 2.0, 1.0),
        pd.Series(np.where(V > 0, "m", "f")),
        pd.Categorical(np.where(V > 0, "m", "f")),
        V.reshape(-1, 1),
        pd.DataFrame({"sex": V}),
        {"sex": V},
        lambda X: V,
    ],
    ids=lambda v: type(v).__name__,
)
def test_two_groups_are_one_viewpoint_however_they_are_coded(viewpoint):
    np.testing.assert_array_equal(fit(viewpoint=viewpoint).decision_function(X), EXPECTED)


def test_the_sign_of_the_viewpoint_does_not_matter():
    np.testing.assert_allclose(fit(viewpoint=-V).decision_function(X), EXPECTED, atol=1e-3)


@pytest.mark.parametrize("key", ["sex", Column("sex", drop=True)])
def test_a_column_by_name(key):
    frame = FRAME if isinstance(key, Column) else FRAME.assign(sex=V)
    model = fit(frame, key)
    assert model.n_features_in_ == 5
    assert list(model.solutions_[0].thetas) == ["sex"]
    if isinstance(key, Column):
        np.testing.assert_array_equal(model.decision_function(frame), EXPECTED)
        assert model.coef_.shape == (1, 5)
        assert model.coef_[0, 4] == 0
    else:
        kept = fit(np.column_stack([X, V]))
        np.testing.assert_array_equal(
            model.decision_function(frame), kept.decision_function(np.column_stack([X, V]))
        )


@pytest.mark.parametrize("container", [np.asarray, sp.csr_matrix, sp.csc_array])
@pytest.mark.parametrize("position", [0, -5])
def test_a_column_by_position_can_be_dropped(container, position):
    Z = container(np.column_stack([V, X]))
    model = fit(Z, Column(position, drop=True))
    np.testing.assert_allclose(model.decision_function(Z), EXPECTED, atol=1e-3)
    assert model.coef_[0, 0] == 0
    kernel = fit(Z, Column(position, drop=True), kernel="rbf")
    plain = fit(X if container is np.asarray else container(X), kernel="rbf")
    np.testing.assert_allclose(kernel.decision_function(Z), plain.decision_function(X), atol=1e-3)
    assert fit(Z, 0).coef_[0, 0] != 0


def test_a_fitted_estimator_is_its_decision_function():
    g = LogisticRegression().fit(X, V)
    np.testing.assert_array_equal(
        fit(viewpoint=g).decision_function(X), fit(viewpoint=g.decision_function(X)).decision_function(X)
    )
    bayes = GaussianNB().fit(X, V)
    np.testing.assert_array_equal(
        fit(viewpoint=bayes).decision_function(X),
        fit(viewpoint=2 * bayes.predict_proba(X)[:, 1] - 1).decision_function(X),
    )
    tree = DecisionTreeRegressor(max_depth=3, random_state=0).fit(X, V)
    np.testing.assert_array_equal(
        fit(viewpoint=tree).decision_function(X),
        fit(viewpoint=lambda X: tree.predict(X)).decision_function(X),
    )


def test_an_unfitted_estimator_is_fitted_on_its_own_sample():
    Z, _, U = make_data(5, n=40)
    unfitted = LogisticRegression()
    model = fit(viewpoint=Learned(unfitted, Z, np.where(U > 0, "left", "right")))
    by_hand = LogisticRegression().fit(Z, np.where(U > 0, "left", "right"))
    np.testing.assert_array_equal(model.decision_function(X), fit(viewpoint=by_hand).decision_function(X))
    assert not hasattr(unfitted, "coef_")
    objective = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())
    problem = objective.on(X, Y, viewpoint=Learned(unfitted, Z, U))
    np.testing.assert_array_equal(
        problem.viewpoints["viewpoint"], LogisticRegression().fit(Z, U).decision_function(X)
    )


def test_several_values_are_one_term_each():
    race = np.array(["a", "b", "c"])[np.arange(60) % 3]
    model = fit(viewpoint=race)
    one_by_one = {f"race={value}": np.where(race == value, 1.0, -1.0) for value in "abc"}
    named = fit(viewpoint={"race": race})
    assert list(model.solutions_[0].thetas) == ["viewpoint=a", "viewpoint=b", "viewpoint=c"]
    assert list(named.solutions_[0].thetas) == list(one_by_one)
    np.testing.assert_array_equal(named.decision_function(X), fit(viewpoint=one_by_one).decision_function(X))
    np.testing.assert_array_equal(fit(viewpoint=np.arange(60) % 3).coef_, model.coef_)
    # an estimator of several classes likewise gives one term per class, by its decision function
    g = LogisticRegression().fit(X, race)
    columns = {f"viewpoint={c}": g.decision_function(X)[:, k] for k, c in enumerate("abc")}
    np.testing.assert_array_equal(fit(viewpoint=g).coef_, fit(viewpoint=columns).coef_)
    learned = fit(viewpoint=Learned(LogisticRegression(), X, race))
    assert list(learned.solutions_[0].thetas) == list(columns)
    np.testing.assert_array_equal(learned.coef_, fit(viewpoint=g).coef_)


def test_a_value_of_weight_zero_only_is_no_group():
    race, s = np.array(["a", "b", "c"])[np.arange(60) % 3], (np.arange(60) % 3 < 2).astype(float)
    model = NeutralSVC(eta=0.5).fit(X, Y, viewpoint=race, sample_weight=s)
    without = NeutralSVC(eta=0.5).fit(X[s > 0], Y[s > 0], viewpoint=race[s > 0])
    assert list(model.solutions_[0].thetas) == ["viewpoint"]
    np.testing.assert_array_equal(model.coef_, without.coef_)


def test_neutral_to_every_value():
    rng = np.random.default_rng(0)
    race = rng.integers(0, 3, 600)
    Z = rng.normal(size=(600, 3)) + np.eye(3)[race]
    y = np.where(Z[:, 0] - Z[:, 1] + rng.normal(size=600) > 0, 1, -1)

    def spread(eta):
        scores = NeutralSVC(lam=6, eta=eta, weights="balanced").fit(Z, y, viewpoint=race).decision_function(Z)
        rates = [np.mean(scores[race == k] > 0) for k in range(3)]
        return max(rates) - min(rates)

    assert spread(0.0) > 0.4
    with pytest.warns(nerm.NearlyConstantWarning, match="predicts class 1 for 100"):  # how it is reached here
        assert spread(3.0) < 0.1


def test_several_viewpoints_and_an_eta_each():
    race = np.array(["a", "b", "c"])[np.arange(60) % 3]
    both = fit(viewpoint={"sex": V, "race": race}, eta={"sex": 0.5, "race": 0.0})
    np.testing.assert_allclose(both.decision_function(X), EXPECTED, atol=1e-3)
    assert {k: bool(np.isnan(t)) for k, t in both.solutions_[0].thetas.items()} == {
        "sex": False,
        "race=a": True,
        "race=b": True,
        "race=c": True,
    }
    table = pd.DataFrame({"sex": V, "race": race})
    np.testing.assert_array_equal(fit(viewpoint=table).coef_, fit(viewpoint={"sex": V, "race": race}).coef_)
    pair = fit(viewpoint=np.column_stack([V, X[:, 3]]))
    assert list(pair.solutions_[0].thetas) == ["viewpoint 0", "viewpoint 1"]


def test_real_numbers_stay_numbers():
    assert resolve(X[:, 0], X, 60, several=True)["viewpoint"] is not None
    np.testing.assert_array_equal(resolve(X[:, 0], X, 60, several=True)["viewpoint"], X[:, 0])
    np.testing.assert_array_equal(resolve({"g": Column(0)}, X, 60)["g"], X[:, 0])
    np.testing.assert_array_equal(resolve(1, X, 60)["viewpoint"], X[:, 1])


def as_polars(frame):
    return pytest.importorskip("polars").DataFrame(frame.to_dict("list"))


def as_arrow(frame):
    return pytest.importorskip("pyarrow").table(frame.to_dict("list"))


@pytest.mark.parametrize("kind", [lambda frame: frame, as_polars, as_arrow])
def test_a_column_of_words_is_no_feature_and_need_not_be_there_in_predict(kind):
    words = FRAME.assign(sex=np.where(V > 0, "m", "f"))
    for key in ("sex", Column("sex", drop=True)):
        model = fit(kind(words), key)
        np.testing.assert_array_equal(model.decision_function(kind(words)), EXPECTED)
        np.testing.assert_array_equal(model.decision_function(kind(words.drop(columns="sex"))), EXPECTED)
        with pytest.raises(ValueError, match="feature names should match"):
            model.predict(kind(words.drop(columns=words.columns[0])))


def test_words_of_the_wrong_length_are_told_so():
    for viewpoint in (["m", "f"], np.array(["m", "f", "m"], dtype=object)):
        with pytest.raises(
            nerm.InvalidInputError, match=rf"one entry for each of the 60 rows\. Got shape \({len(viewpoint)}"
        ):
            fit(viewpoint=viewpoint)
