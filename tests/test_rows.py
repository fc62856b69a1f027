"""Equal rows: found exactly, against a dictionary of tuples, in an order that the given order does not change."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nerm.model.rows import as_given, distinct_rows


def table(seed, n=200, d=4):
    rng = np.random.default_rng(seed)
    return rng.integers(-1, 2, size=(n, d)).astype(float), rng.integers(0, 2, size=(2, n)).astype(float)


@pytest.mark.parametrize("canonical", [False, True])
@pytest.mark.parametrize("kind", [np.array, sp.csr_matrix], ids=["dense", "sparse"])
@pytest.mark.parametrize("seed", range(5))
def test_groups_are_those_of_a_dictionary(seed, kind, canonical):
    X, extra = table(seed)
    rows = distinct_rows(kind(X), extra, canonical=canonical)
    keys = [tuple(x) + tuple(e) for x, e in zip(X, extra.T, strict=True)]
    seen = {}
    for i, key in enumerate(keys):
        seen.setdefault(key, i)
    assert len(rows.first) == len(seen)
    assert all(rows.first[rows.index[i]] == seen[key] for i, key in enumerate(keys))
    if not canonical:
        assert (np.diff(rows.first) > 0).all()


def test_canonical_order_does_not_depend_on_the_given_one():
    X, extra = table(9)
    order = np.random.default_rng(0).permutation(len(X))
    one, two = (
        distinct_rows(X, extra, canonical=True),
        distinct_rows(X[order], extra[:, order], canonical=True),
    )
    np.testing.assert_array_equal(X[one.first], X[order][two.first])
    np.testing.assert_array_equal(extra[:, one.first], extra[:, order][:, two.first])


def test_negative_zero_is_zero_and_dense_rows_are_sparse_rows():
    X = np.array([[0.0, 1.0], [-0.0, 1.0], [1.0, 0.0]])
    for Z in (X, sp.csr_matrix(X + 0.0)):
        assert distinct_rows(Z, np.zeros((1, 3))).index.tolist() == [0, 0, 1]


def test_weights_add_up_and_values_spread():
    X, extra = table(2)
    rows = distinct_rows(X, extra)
    weights = np.random.default_rng(1).random(len(X))
    total = np.array([weights[rows.index == g].sum() for g in range(len(rows.first))])
    np.testing.assert_allclose(rows.add_up(weights), total, rtol=1e-13)
    values = np.arange(float(len(rows.first)))
    np.testing.assert_array_equal(rows.spread(values), rows.index)
    placed = rows.place(values)
    np.testing.assert_allclose(rows.add_up(placed), values)
    assert not as_given(3).merged


def test_rows_of_one_hash_are_still_told_apart():
    from nerm.model.row_hashes import groups

    X, extra = table(4, n=50, d=2)
    bits = (X + 0.0).view(np.uint64).ravel()
    ends = np.arange(0, 101, 2)
    index, first, placed = groups(
        np.zeros(50, dtype=np.uint64),
        ends,
        np.empty(0, np.int32),
        bits,
        np.ascontiguousarray(extra).view(np.uint64),
    )
    expected = distinct_rows(X, extra)
    np.testing.assert_array_equal(index, expected.index)
    np.testing.assert_array_equal(first, expected.first)
    assert sorted(placed) == list(range(len(first)))
