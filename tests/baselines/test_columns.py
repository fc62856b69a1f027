"""Baselines check the columns of a table and take its missing values."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from nerm.baselines import CV2NB, EtaNeutralLogisticRegression, PrejudiceRemover
from tests.conftest import make_data


@pytest.mark.parametrize(
    "model", [PrejudiceRemover(eta=1.0, lam=1.0), EtaNeutralLogisticRegression(eta=0.1, lam=1.0), CV2NB()]
)
def test_baselines_refuse_reordered_columns(model):
    X, y, v = make_data(1, n=120)
    frame = pd.DataFrame(np.sign(X) if isinstance(model, CV2NB) else X, columns=list("abcd"))
    model.fit(frame, y, viewpoint=v)
    with pytest.raises(ValueError, match="Feature names must be in the same order as they were in fit"):
        model.predict(frame[list("dcba")], viewpoint=v)
    assert len(model.predict(frame, viewpoint=v)) == 120


def test_cv2nb_takes_pandas_missing_values():
    X, y, v = make_data(2, n=80)
    frame = pd.DataFrame(np.where(X > 0, "high", "low"), columns=list("abcd")).astype("string")
    frame.iloc[3, 1] = pd.NA
    assert len(CV2NB().fit(frame, y, viewpoint=v).predict(frame, viewpoint=v)) == 80
