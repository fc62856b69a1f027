"""The neutrality scorer reads a viewpoint as `fit` does."""

from __future__ import annotations

import numpy as np
import pytest
import sklearn
from sklearn.model_selection import GridSearchCV

import nerm
from nerm.metrics import make_neutrality_scorer
from tests.conftest import make_data


def test_scorer_reads_groups_as_fit_does():
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


def test_scorer_refuses_three_values():
    X, y, _ = make_data(0)
    with sklearn.config_context(enable_metadata_routing=True):
        model = nerm.NeutralSVC(lam=4.0).fit(X, y)
        with pytest.raises(
            nerm.InvalidInputError, match=r"numbers of both signs, or two groups\. Got 3 values"
        ):
            make_neutrality_scorer()(model, X, y, viewpoint=np.resize([1.0, 2.0, 3.0], len(y)))
