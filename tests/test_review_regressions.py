"""Defects that a reading by outsiders found: each stays fixed."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import sklearn
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV

import nerm
from nerm.baselines import CV2NB, EtaNeutralLogisticRegression, PrejudiceRemover
from nerm.bounds import guarantee
from nerm.metrics import make_neutrality_scorer
from tests.conftest import make_data


def test_the_scorer_reads_groups_as_fit_does():
    """The coding of two groups, -1/+1, 0/1, 1/2 or words, does not change a grid search."""
    X, y, v = make_data(0, n=90)
    codings = [v, (v > 0).astype(int), np.where(v > 0, 2, 1), np.where(v > 0, "m", "f")]
    results = []
    with sklearn.config_context(enable_metadata_routing=True):
        for coded in codings:
            model = nerm.NeutralSVC(lam=4.0).set_fit_request(viewpoint=True)
            search = GridSearchCV(model, {"eta": [0.0, 1.0, 5.0]}, scoring=make_neutrality_scorer(), cv=3)
            results.append(search.fit(X, y, viewpoint=coded).cv_results_["mean_test_score"])
    for other in results[1:]:
        np.testing.assert_allclose(other, results[0])
    assert results[0][2] > results[0][0]


def test_the_scorer_refuses_what_it_cannot_read():
    X, y, _ = make_data(0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = nerm.NeutralSVC(lam=4.0).fit(X, y)
        with pytest.raises(
            nerm.InvalidInputError, match=r"numbers of both signs, or two groups\. Got 3 values"
        ):
            make_neutrality_scorer()(model, X, y, viewpoint=np.resize([1.0, 2.0, 3.0], len(y)))


@pytest.mark.parametrize(
    "model", [PrejudiceRemover(eta=1.0, lam=1.0), EtaNeutralLogisticRegression(eta=0.1, lam=1.0), CV2NB()]
)
def test_baselines_refuse_reordered_columns(model):
    X, y, v = make_data(1, n=120)
    frame = pd.DataFrame(np.sign(X) if isinstance(model, CV2NB) else X, columns=list("abcd"))
    model.fit(frame, y, viewpoint=v)
    with pytest.raises(
        nerm.InvalidInputError, match=r"'X' must have the columns seen in fit, in the same order\. Got 'd'"
    ):
        model.predict(frame[list("dcba")], viewpoint=v)
    assert len(model.predict(frame, viewpoint=v)) == 120


def test_cv2nb_takes_pandas_missing_values():
    X, y, v = make_data(2, n=80)
    frame = pd.DataFrame(np.where(X > 0, "high", "low"), columns=list("abcd")).astype("string")
    frame.iloc[3, 1] = pd.NA
    assert len(CV2NB().fit(frame, y, viewpoint=v).predict(frame, viewpoint=v)) == 80


def test_terms_never_hide_each_other():
    X, y, v = make_data(3, n=60)
    race = np.resize(["a", "b", "c"], 60)
    with pytest.raises(
        nerm.InvalidInputError, match=r"neutrality terms must have different names\. Got 'r=a' twice"
    ):
        nerm.NeutralSVC(eta=1.0).fit(X, y, viewpoint={"r": race, "r=a": v})
    with pytest.raises(nerm.InvalidInputError, match=r"must have different names\. Got 's' twice"):
        nerm.NeutralSVC(eta=1.0).fit(
            X, y, viewpoint=pd.DataFrame(np.column_stack([v, X[:, 1]]), columns=["s", "s"])
        )


def test_a_failed_fit_leaves_an_unfitted_model():
    X, y, _ = make_data(4)
    model = nerm.NeutralSVC(eta=1.0)
    with pytest.raises(nerm.InvalidInputError):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)


def test_guarantee_takes_a_problem_and_survives_an_infinite_class():
    X, y, v = make_data(5)
    objective = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())
    assert "Theorem 2" in repr(guarantee(objective.on(X, y, viewpoint=v)))
    X[0] = 2000.0
    steep = nerm.NERMClassifier("exponential", surrogate="exponential", eta=1.0, lam=0.001).fit(
        X, y, viewpoint=v
    )
    text = repr(guarantee(steep))
    assert "must be finite on the values of the class" in text
    assert "corollary" in text


def test_what_was_learned_from_the_rows_is_named():
    X, y, v = make_data(6)
    learned = repr(guarantee(nerm.NeutralSVC(kernel="rbf", eta=1.0, lam=5.0).fit(X, y, viewpoint=v)))
    fixed = repr(guarantee(nerm.NeutralSVC(kernel="rbf", gamma=0.5, eta=1.0, lam=5.0).fit(X, y, viewpoint=v)))
    assert "the kernel's width, learned from these rows and treated as fixed" in learned
    assert "kernel's width" not in fixed
