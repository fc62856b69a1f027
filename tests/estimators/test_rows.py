"""Canonical rows: exact multiplicities, whatever the order, even where hashes collide."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from nerm.estimators import rows as module
from nerm.estimators.rows import canonical_rows


def naive(X, extra, s):
    """Return {row: total weight} by a dictionary."""
    found = {}
    for x, e, weight in zip(X, extra, s, strict=True):
        if weight > 0:
            key = (*(x + 0.0).tolist(), *e.tolist())
            found[key] = found.get(key, 0.0) + weight
    return found


@pytest.mark.parametrize("collide", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_rows_are_merged_exactly(sparse, collide, monkeypatch):
    if collide:
        monkeypatch.setattr(module, "_hashes", lambda table: np.zeros(len(table), dtype=np.uint64))
    rng = np.random.default_rng(0)
    X = rng.integers(-1, 2, size=(200, 3)).astype(float)
    X[::7] *= -1.0  # some -0.0
    extra, s = rng.integers(0, 2, size=(200, 2)).astype(float), rng.integers(0, 3, size=200).astype(float)
    rows = canonical_rows(sp.csr_matrix(X) if sparse else X, extra, s)
    expected = naive(X, extra, s)
    found = {(*(X[i] + 0.0).tolist(), *extra[i].tolist()): w for i, w in zip(rows.first, rows.weight, strict=True)}
    assert found == expected
    np.testing.assert_array_equal(rows.kept, np.flatnonzero(s > 0))
    np.testing.assert_array_equal(X[rows.first[rows.merged]], X[rows.kept])
    np.testing.assert_array_equal(extra[rows.first[rows.merged]], extra[rows.kept])
    order = rng.permutation(200)
    Z = X[order]
    shuffled = canonical_rows(sp.csr_matrix(Z) if sparse else Z, extra[order], s[order])
    np.testing.assert_array_equal(Z[shuffled.first], X[rows.first])
    np.testing.assert_array_equal(shuffled.weight, rows.weight)


def test_a_gram_matrix_only_loses_rows_of_weight_zero():
    rows = canonical_rows(np.ones((4, 4)), np.zeros((4, 1)), np.array([1.0, 0.0, 2.0, 1.0]), merge=False)
    np.testing.assert_array_equal(rows.first, [0, 2, 3])
    np.testing.assert_array_equal(rows.weight, [1.0, 2.0, 1.0])
