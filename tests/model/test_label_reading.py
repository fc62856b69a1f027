"""Labels that are no classes are refused in one sentence, before anything is computed."""

from __future__ import annotations

import datetime

import numpy as np
import pandas as pd
import pytest

import nerm
from nerm import Hinge, Risk, SquaredL2
from tests.conftest import make_data

X, Y, V = make_data(0, n=60)
DAYS = pd.date_range("2024-01-01", periods=60)
PAIRS = np.array(list(zip(Y > 0, np.arange(60.0), strict=True)), dtype=[("event", bool), ("time", float)])
TUPLES = np.empty(60, dtype=object)
TUPLES[:] = [tuple(pair) for pair in PAIRS.tolist()]

RECORDS = {"a structured array": (PAIRS, "event, time"), "tuples": (TUPLES, "records")}
DATES = {
    "datetime64": DAYS.to_numpy(),
    "two days": np.where(Y > 0, DAYS[0], DAYS[1]),
    "timestamps": pd.Series(DAYS, dtype=object),
    "with a time zone": pd.Series(DAYS.tz_localize("UTC")),
    "dates": np.array([datetime.date(2024, 1, 1 + i % 28) for i in range(60)], dtype=object),
    "durations": np.arange(60).astype("timedelta64[D]"),
}
READERS = {
    "a problem": lambda y: (Risk(Hinge()) + SquaredL2()).on(X, y),
    "a classifier": lambda y: nerm.NeutralSVC().fit(X, y),
    "chunks": lambda y: (Risk(Hinge()) + SquaredL2()).on(nerm.Chunks((X, np.asarray(y)))),
    "a baseline": lambda y: nerm.baselines.PrejudiceRemover().fit(X, y, viewpoint=V),
}
read = pytest.mark.parametrize("reader", READERS.values(), ids=READERS)


@read
@pytest.mark.parametrize(("y", "shown"), RECORDS.values(), ids=RECORDS)
def test_survival_pairs_are_no_classes(reader, y, shown):
    """(event, time) of 1,000 rows was fitted as 1,000 classes, for 47 seconds."""
    with pytest.raises(
        nerm.InvalidInputError, match=r"'y' must hold classes or real numbers\. Got records"
    ) as error:
        reader(y)
    assert shown in str(error.value)
    assert "Pass one column of it." in str(error.value)


@read
@pytest.mark.parametrize("y", DATES.values(), ids=DATES)
def test_dates_are_no_classes(reader, y):
    with pytest.raises(
        nerm.InvalidInputError, match=r"'y' must hold classes or real numbers\. Got dates\. Compare"
    ):
        reader(y)


@pytest.mark.parametrize("y", [np.arange(60), [f"row {i}" for i in range(60)], np.arange(60.0) % 31])
def test_a_classifier_refuses_more_classes_than_half_of_the_rows(y):
    """Numbers to predict, or names of rows: one binary problem per value would take long and mean nothing."""
    with pytest.raises(
        nerm.InvalidInputError, match=r"'y' must hold classes, each in several rows\. Got \d+ diff"
    ):
        nerm.NeutralSVC().fit(X, y)


def test_a_classifier_takes_as_many_classes_as_half_of_the_rows():
    model = nerm.NeutralSVC(lam=100.0).fit(X[:8], np.arange(8) % 4)
    assert len(model.classes_) == 4
