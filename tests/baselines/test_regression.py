"""The rivals of neutral regression do what their papers say, by their definitions."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import ks_2samp

import nerm
from nerm.baselines import BoundedGroupLoss, FairRidge, ResidualisedRidge, WassersteinBarycentre


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    v = np.where(X[:, 0] + rng.normal(size=400) > 0, 1, -1)
    y = X @ [1.0, 0.5, 0.0] + 0.5 * v + 0.3 * rng.normal(size=400)
    return X, (y - y.min()) / np.ptp(y), v


def test_residualised_columns_are_uncorrelated_with_a_group_or_a_number(rows):
    X, y, v = rows
    for viewpoint in (v, X[:, 0] + 5.0):
        f = ResidualisedRidge().fit(X, y, viewpoint=viewpoint).predict(X, viewpoint=viewpoint)
        assert abs(np.corrcoef(f, viewpoint)[0, 1]) < 1e-10
        assert np.corrcoef(f, y)[0, 1] > 0.3


@pytest.mark.parametrize("model", [ResidualisedRidge(), FairRidge(), WassersteinBarycentre()])
def test_sensitive_features_is_another_name_of_viewpoint(model, rows):
    X, y, v = rows
    named = model.fit(X, y, viewpoint=v).predict(X, viewpoint=v)
    assert np.array_equal(model.fit(X, y, sensitive_features=v).predict(X, viewpoint=v), named)
    with pytest.raises(nerm.InvalidInputError, match="two names of one argument"):
        model.fit(X, y, viewpoint=v, sensitive_features=v)
    with pytest.raises(nerm.InvalidInputError, match=r"'viewpoint' must .* Got None"):
        model.fit(X, y)


def test_the_fair_ridge_explains_at_most_its_share(rows):
    X, y, v = rows
    for share in (0.0, 0.1, 0.9):
        f = FairRidge(unfairness=share).fit(X, y, viewpoint=v).predict(X, viewpoint=v)
        assert np.corrcoef(f, v)[0, 1] ** 2 <= share + 1e-9
    free = FairRidge(lam=0.0, unfairness=1.0).fit(X, y, viewpoint=v).predict(X, viewpoint=v)
    design = np.column_stack([X, v, np.ones(len(y))])
    np.testing.assert_allclose(free, design @ np.linalg.lstsq(design, y, rcond=None)[0], atol=1e-8)


def test_the_barycentre_equalises_the_distributions(rows):
    X, y, v = rows
    model = WassersteinBarycentre().fit(X, y, viewpoint=v)
    f = model.predict(X, viewpoint=v)
    plain = model.model_.predict(X)
    assert ks_2samp(plain[v > 0], plain[v < 0]).statistic > 0.3
    assert ks_2samp(f[v > 0], f[v < 0]).statistic < 0.02
    for side in (1, -1):  # the order inside a group stays
        np.testing.assert_array_equal(np.argsort(f[v == side]), np.argsort(plain[v == side]))
    with pytest.raises(
        nerm.InvalidInputError, match=r"'viewpoint' must have one entry for each of the 400 rows. Got None."
    ):
        model.predict(X)


def test_bounded_group_loss_lowers_the_worst_error(rows):
    pytest.importorskip("fairlearn")
    X, y, v = rows
    model = BoundedGroupLoss(bound=0.01).fit(X, y, viewpoint=v)
    assert model.predict(X).shape == y.shape
    assert not model.sees_group
