"""l1 and elastic net through the engine: the optimum of the problem as stated, dense and sparse, with and without b."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm import L1, ElasticNet, Hinge, Logistic, Neutrality, Risk, SquaredL2
from tests.conftest import make_data

pytestmark = pytest.mark.long

ATOMS = [Hinge(), Logistic(), nerm.SquaredHinge(), nerm.Exponential(), nerm.Pinball(0.5)]


@pytest.mark.parametrize("omega", [0.05 * L1(), 0.1 * ElasticNet(0.3), 0.02 * L1() + 0.01 * SquaredL2()], ids=repr)
@pytest.mark.parametrize("loss", ATOMS, ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
def test_agrees_with_clarabel(loss, omega, intercept):
    X, y, v = make_data(2, n=90, d=6, real_viewpoint=True)
    rng = np.random.default_rng(1)
    objective = Risk(loss) + omega + 0.7 * Neutrality(Hinge(), weights=rng.random(90))
    for data in (X, sp.csr_matrix(X)):
        problem = objective.on(data, y, viewpoint=v, intercept=intercept, sample_weight=rng.random(90))
        ours, reference = problem.solve("l1"), problem.solve("clarabel", tol=1e-7)
        assert ours.status == "optimal"
        assert ours.objective.total == pytest.approx(reference.objective.total, rel=1.5e-6)


@pytest.mark.parametrize("weight", [1e-5, 1e-3, 1.0, 100.0])
def test_from_dense_to_empty(weight):
    """A small weight keeps every coefficient, a large one none; both are certified."""
    X, y, v = make_data(3, n=100, d=8)
    problem = (Risk(Logistic()) + weight * L1() + 0.5 * Neutrality(Logistic())).on(X, y, viewpoint=v)
    solution = problem.solve()
    assert solution.stats.solver in ("l1", "clarabel")
    assert solution.status == "optimal"
    if weight >= 1.0:
        assert np.abs(solution.coef).max() < 1e-6


@pytest.mark.long
def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 150))
    y = np.where(X[:, 0] > 0, 1.0, -1.0)
    problem = (Risk(Hinge()) + 0.05 * L1() + Neutrality(Hinge())).on(X, y, viewpoint=np.where(X[:, 1] > 0, 1.0, -1.0))
    best = problem.solve("clarabel").objective.total
    auto, named = problem.solve(), problem.solve("l1")
    assert auto.status == "optimal"
    assert auto.objective.total == pytest.approx(best, rel=1.5e-6)
    # asked for by name it answers itself, and stops early on this degenerate problem without claiming more
    assert named.certificate.dual <= best * (1 + 1e-9)
    assert named.status == "inaccurate" or named.objective.total <= best * (1 + 1.5e-6)


def test_a_mismatch_is_named():
    X, y, _ = make_data(3)
    with pytest.raises(nerm.UnsupportedProblemError, match=r"Got a problem with no l1 part of positive weight"):
        (Risk(Hinge()) + SquaredL2()).on(X, y).solve("l1")
    with pytest.raises(nerm.UnsupportedProblemError, match=r"Got a problem with GroupL2"):
        (Risk(Hinge()) + L1() + nerm.GroupL2()).on(X, y).solve("l1")
