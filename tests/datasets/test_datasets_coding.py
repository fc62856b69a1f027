"""Discretize and OneHot against a literal transcription of the coding in plain Python."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from nerm.datasets import Discretize, OneHot
from nerm.errors import InvalidInputError


def literal_bins(column):
    """Bin number of each entry: cuts sorted[floor(n k / 4)], first bin with x <= cut; None for missing."""
    present = sorted(x for x in column if not math.isnan(x))
    cuts = [present[math.floor(len(present) * k / 4)] for k in (1, 2, 3)] if present else []
    bins = []
    for x in column:
        if math.isnan(x):
            bins.append(None)
        else:
            bins.append(next((k for k, cut in enumerate(cuts) if x <= cut), 3))
    return bins


def literal_pool(values, at_most):
    counts = {v: values.count(v) for v in values if v is not None}
    return [None if v is None else ("Pool" if counts[v] <= at_most else v) for v in values]


def same_partition(codes, values):
    """Both columns group the rows alike (names aside) and are missing in the same places."""
    pairs = {(c, v) for c, v in zip(codes, values, strict=True) if not (math.isnan(c) and v is None)}
    return len({c for c, _ in pairs}) == len(pairs) == len({v for _, v in pairs})


numbers = st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, 10.0, float("nan")]), min_size=1, max_size=40)


@pytest.mark.long
@settings(max_examples=150, deadline=None)
@given(numbers, st.integers(0, 6))
def test_bins_of_numbers_agree_with_the_literal_rule(column, at_most):
    codes = Discretize(pool_at_most=at_most).fit_transform(pd.DataFrame({"a": column}, dtype=float))["a"]
    assert same_partition(codes, literal_pool(literal_bins(column), at_most))


@pytest.mark.long
@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(["a", "b", "c", "?"]), min_size=1, max_size=30), st.integers(0, 6))
def test_pooling_of_labels_agrees_with_the_literal_rule(column, at_most):
    codes = Discretize(pool_at_most=at_most).fit_transform(pd.DataFrame({"a": column}))["a"]
    assert same_partition(codes, literal_pool([None if v == "?" else v for v in column], at_most))


def test_a_value_seen_exactly_at_most_times_is_pooled_and_one_more_is_kept():
    table = pd.DataFrame({"a": ["x"] * 50 + ["y"] * 51 + ["z"]})
    assert Discretize().fit(table).categories_ == {"a": ["y", "Pool"]}


def test_unseen_values_go_to_pool_or_else_become_missing():
    train = pd.DataFrame({"pooled": ["x"] * 3 + ["y"], "plain": ["x", "y"] * 2})
    discretize = Discretize(pool_at_most=1).fit(train)
    new = discretize.transform(pd.DataFrame({"pooled": ["new"], "plain": ["new"]}))
    assert new["pooled"].tolist() == [1.0]
    assert np.isnan(new["plain"][0])


def test_numbers_beyond_the_fitted_range_fall_into_the_outer_bins():
    train = pd.DataFrame({"a": np.arange(100)})
    codes = Discretize(pool_at_most=0).fit(train).transform(pd.DataFrame({"a": [-5, 1000]}))["a"]
    assert codes.tolist() == [0.0, 3.0]


def test_cuts_are_learnt_in_fit_only():
    discretize = Discretize(pool_at_most=0).fit(pd.DataFrame({"a": np.arange(8)}))
    assert discretize.cuts_["a"].tolist() == [2, 4, 6]
    discretize.transform(pd.DataFrame({"a": np.arange(800)}))
    assert discretize.cuts_["a"].tolist() == [2, 4, 6]


def test_one_hot_columns_missing_and_unseen():
    table = pd.DataFrame({"two": [0.0, 1.0, np.nan], "three": [0.0, 1.0, 2.0], "one": [5.0, 5.0, 5.0]})
    one_hot = OneHot().fit(table)
    assert one_hot.get_feature_names_out().tolist() == ["two=1", "three=0", "three=1", "three=2", "one=5"]
    assert one_hot.transform(table).toarray().tolist() == [[0, 1, 0, 0, 1], [1, 0, 1, 0, 1], [0, 0, 0, 1, 1]]
    unseen = pd.DataFrame({"two": [7.0], "three": [7.0], "one": [np.nan]})
    assert one_hot.transform(unseen).nnz == 0


def test_they_clone_and_work_in_a_pipeline_on_arrays_too():
    X = np.column_stack([np.arange(40.0), np.tile([1.0, 2.0], 20)])
    y = np.tile([-1, 1], 20)
    model = make_pipeline(clone(Discretize(pool_at_most=0)), OneHot(), LogisticRegression()).fit(X, y)
    assert model.score(X, y) == 1.0
    assert model[:-1].get_feature_names_out().tolist() == ["x0=0", "x0=1", "x0=2", "x0=3", "x1=1"]


def test_categories_and_codes_are_the_same_coding():
    table = pd.DataFrame({"a": ["x", "y", None, "y"], "b": [1, 2, 3, 4]})
    codes = Discretize(pool_at_most=0).fit_transform(table)
    labels = Discretize(pool_at_most=0, output="categories").fit_transform(table)
    for column in table:
        back = labels[column].cat.codes.astype(float)
        np.testing.assert_array_equal(back.where(back >= 0), codes[column])


@pytest.mark.parametrize("coder", [Discretize(), OneHot()])
def test_other_columns_are_refused(coder):
    coder.fit(pd.DataFrame({"a": [1, 2], "b": [1, 2]}))
    with pytest.raises(ValueError, match=r"unseen at fit time:\n- c\nFeature names seen at fit time.*\n- b"):
        coder.transform(pd.DataFrame({"a": [1], "c": [1]}))
    with pytest.raises(ValueError, match="must be in the same order as they were in fit"):
        coder.transform(pd.DataFrame({"b": [1], "a": [1]}))
    with pytest.raises(ValueError, match=r"X has 3 features, but .* is expecting 2 features"):
        coder.fit(np.ones((2, 2))).transform(np.ones((2, 3)))


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (
            lambda: Discretize().fit(np.arange(3.0)),
            "'X' must be a dense table with at least one row and one column. Got a ndarray of shape (3,). "
            "Pass a DataFrame or a two-dimensional array.",
        ),
        (
            lambda: Discretize(n_bins=0).fit(np.ones((2, 2))),
            "'n_bins' must be a whole number, at least 1. Got 0. Use 4, as the paper.",
        ),
        (
            lambda: Discretize(output="x").fit(np.ones((2, 2))),
            "'output' must be one of 'categories', 'codes'. Got 'x'. Use one of these names.",
        ),
        (
            lambda: (
                Discretize().fit(pd.DataFrame({"a": [1, 2]})).transform(pd.DataFrame({"a": ["1", "?", "x"]}))
            ),
            "Column 'a' must be numeric, as in fit. Got 'x' at row 2. Correct the value, or mark it as missing with "
            "'?' or NaN.",
        ),
        (
            lambda: OneHot().fit(pd.DataFrame({"a": [np.nan]})),
            "'X' must have a value that is not missing. Got only missing entries. Check the table.",
        ),
    ],
)
def test_bad_input_is_one_clear_sentence(action, message):
    with pytest.raises(InvalidInputError) as caught:
        action()
    assert str(caught.value) == message
