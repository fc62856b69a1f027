"""How far coefficients reach: every hypothesis that is good enough is within, and bounds that rest on it hold."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm.certify.conjugates import conjugate_within, parts_of
from nerm.certify.reach import coefficient_reach, score_range

LOSSES = [nerm.Squared(), nerm.Pinball(), nerm.Hinge(), nerm.Logistic(), nerm.ModifiedHuber()]


def bound_problem(loss, seed, *, intercept, eta=0.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(12, 2)) * [1e6, 1e-3]
    y, v = np.where(rng.random(12) < 0.5, 1, -1), rng.normal(size=12)
    y[:2] = 1, -1
    objective = nerm.Risk(loss) + 1e-9 * nerm.SquaredL2() + eta * nerm.Neutrality(nerm.SquaredHinge())
    weight = rng.integers(0, 3, size=12) + 0.1
    return objective.on(X, y, viewpoint=v, intercept=intercept, sample_weight=weight), rng


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("loss", LOSSES, ids=repr)
def test_whoever_is_good_enough_is_within_reach(loss, intercept):
    problem, rng = bound_problem(loss, 3, intercept=intercept)
    value = 1.5 * problem.value_at_zero()
    reach, (low, high) = coefficient_reach(problem, value), score_range(problem, value)
    assert np.isfinite([low, high]).all()
    inside, most = 0, np.zeros(2)
    for size in np.repeat([0.1, 0.5, 1.0, 2.0, 5.0], 60):
        w, b = size * rng.normal(size=2) * [1e-6, 1e3], intercept * size * rng.normal()
        if problem.evaluate(w, b).total <= value:
            scores = problem.hypothesis.scores(w, b)
            assert ((low <= scores) & (scores <= high)).all()
            assert (np.abs(w) <= reach).all()
            inside, most = inside + 1, np.maximum(most, np.abs(w))
    assert inside > 20
    assert (reach <= 1000 * most).all()  # and it says something


def test_where_nothing_holds_scores_nothing_is_claimed():
    """A hinge alone falls in one direction; equal columns, more columns than rows, and kernels say nothing of w."""
    X, y = np.array([[1.0, 2.0], [2.0, -1.0], [-1.0, 1.0]]), [1, -1, 1]
    plain = nerm.Risk(nerm.Hinge()) + nerm.SquaredL2()
    low, high = score_range(plain.on(X, y), 1.0)
    assert np.isfinite(np.where(np.array(y) > 0, low, high)).all()
    assert np.isinf(np.where(np.array(y) > 0, high, low)).all()
    assert coefficient_reach(plain.on(X, y), 1.0) is None
    squared = nerm.Risk(nerm.Squared()) + nerm.SquaredL2()
    assert coefficient_reach(squared.on(X, y), 1.0) is not None
    assert coefficient_reach(squared.on(X[:2], y[:2]), 1.0) is None
    assert coefficient_reach(squared.on(X[:, [0, 0]], y), 1.0) is None
    assert coefficient_reach(squared.on(X, y, kernel="rbf"), 1.0) is None
    assert coefficient_reach(squared.on(X * [1, 0], y), 1.0)[1] == 0.0
    one_sided = (
        nerm.Risk(nerm.Squared()) + nerm.Neutrality(nerm.Identity(), side="agreement") + nerm.SquaredL2()
    )
    assert coefficient_reach(one_sided.on(X, y, viewpoint=y), 1.0) is None


@pytest.mark.parametrize(
    "omega",
    [
        0.5 * nerm.SquaredL2(),
        0.3 * nerm.L1(),
        0.4 * nerm.ElasticNet(),
        0.2 * nerm.LInf() + 0.1 * nerm.SquaredL2(),
    ],
    ids=repr,
)
def test_the_conjugate_within_reach_is_above_every_gain(omega):
    rng = np.random.default_rng(0)
    terms = (nerm.Risk(nerm.Hinge()) + omega).terms[1:]
    parts = parts_of((t.weight, t.term) for t in terms)
    for _ in range(20):
        q, reach = rng.normal(size=2), rng.uniform(0.1, 2.0, size=2)
        bound = conjugate_within(parts, q, reach)
        grid = np.stack(np.meshgrid(*(np.linspace(-r, r, 41) for r in reach)), axis=-1).reshape(-1, 2)
        gains = [float(q @ w) - sum(t.weight * t.term.value(w) for t in terms) for w in grid]
        assert max(gains) <= bound + 1e-12
        assert bound <= max(gains) + 0.15 + 0.3 * float(np.abs(q) @ reach)


def test_columns_that_are_huge_and_cannot_be_shifted_are_certified():
    """Without an intercept, or sparse, sum c x of columns near 1e15 is rounding, and Omega* of that was everything."""
    rng = np.random.default_rng(5)
    X = np.where(rng.random((16, 2)) < 0.5, 1e15 * rng.uniform(1, 2, size=(16, 2)), 0.0)
    y, v = np.where(rng.random(16) < 0.5, 1, -1), np.where(rng.random(16) < 0.5, 1, -1)
    objective = nerm.Risk(nerm.Squared()) + 1e-7 * nerm.SquaredL2() + 8.0 * nerm.Neutrality(nerm.Hinge())
    for rows, intercept in ((sp.csr_matrix(X), True), (X, False)):
        far = objective.on(rows, y, viewpoint=v, intercept=intercept).solve()
        near = objective.on(rows / 1e15, y, viewpoint=v, intercept=intercept).solve()
        assert far.status == near.status == "optimal"
        assert far.objective.total <= near.objective.total * (1 + 2e-6)
        assert far.certificate.dual >= near.objective.total * (1 - 1e-4)  # 1e-7 |w|^2 is what differs
