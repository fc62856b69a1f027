"""Neutrality terms have different names, and a failed fit leaves nothing behind."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError

import nerm
from tests.conftest import make_data


def test_terms_have_different_names():
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


def test_failed_fit_leaves_model_unfitted():
    X, y, _ = make_data(4)
    model = nerm.NeutralSVC(eta=1.0)
    with pytest.raises(nerm.InvalidInputError):
        model.fit(X, y)
    with pytest.raises(NotFittedError):
        model.predict(X)
