"""Random problems of all supported kinds: certified, and equal to Clarabel."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm import Hinge, Identity, Logistic, Neutrality, Risk, SmoothHinge, Squared, SquaredHinge, SquaredL2
from nerm.solvers.interior_point.engine import Engine

REGULARIZERS = {
    "ridge": SquaredL2(),
    "l1": nerm.L1(),
    "elastic net": nerm.ElasticNet(l1_ratio=0.5),
    "group": nerm.GroupL2([0, 0, 1, 1, 2]),
    "l-infinity": nerm.LInf(),
}
ATOMS = [Hinge(), SquaredHinge(), SmoothHinge(), Logistic(), Squared()]


def data(seed, n=80, d=5, kind="gaussian"):
    rng = np.random.default_rng(seed)
    if kind == "counts":
        X = rng.poisson(0.5, (n, d)).astype(float)
    elif kind == "levels":
        X = np.eye(d)[rng.integers(0, d, n)]
    else:
        X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] - X[:, 1] + rng.logistic(size=n) > 0, 1, -1)
    v = np.where(X[:, 0] + X[:, 2] + rng.normal(size=n) > 0.3, 1, -1)
    y[:2] = v[:2] = [-1, 1]
    return X, y, v


def check(problem, tol=1e-6, rel=3e-6):
    """Solve, and compare the certified objective with that of an independent solver."""
    ours = problem.solve("interior-point", tol)
    assert ours.status is nerm.Status.OPTIMAL
    assert ours.certificate.relative_gap <= tol
    reference = problem.solve("clarabel", 1e-7).objective.total
    assert ours.objective.total == pytest.approx(reference, rel=rel, abs=1e-9)
    return ours


@pytest.mark.parametrize("loss", ATOMS, ids=repr)
@pytest.mark.parametrize("surrogate", [Hinge(), Logistic(), Identity()], ids=repr)
def test_loss_and_surrogate_agree_with_clarabel(loss, surrogate):
    X, y, v = data(1)
    check((Risk(loss) + 0.05 * SquaredL2() + 0.7 * Neutrality(surrogate)).on(X, y, viewpoint=v))


@pytest.mark.parametrize("name", REGULARIZERS)
@pytest.mark.parametrize("kind", ["gaussian", "counts", "levels"])
def test_regularizer_agrees_with_clarabel(name, kind):
    X, y, v = data(2, kind=kind)
    objective = Risk(Hinge()) + 0.03 * REGULARIZERS[name] + 0.5 * Neutrality(Hinge())
    check(objective.on(sp.csr_matrix(X) if kind == "counts" else X, y, viewpoint=v))


@pytest.mark.parametrize("eta", [0.0, 1e-12, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("intercept", [True, False])
def test_extreme_neutrality_weights_agree_with_clarabel(eta, intercept):
    X, y, v = data(3, kind="levels")
    objective = Risk(Hinge()) + 0.02 * SquaredL2() + eta * Neutrality(Hinge())
    check(objective.on(X, y, viewpoint=v, intercept=intercept))


def test_viewpoint_equal_to_label_and_its_opposite_agree_with_clarabel():
    X, y, _ = data(4)
    for v in (y, -y):  # theta at 1 and at 0
        check((Risk(Hinge()) + 0.05 * SquaredL2() + 2.0 * Neutrality(Hinge())).on(X, y, viewpoint=v))


def test_equal_sides_agree_with_clarabel():
    """Mirrored rows make both sides of the neutrality term equal at every f."""
    X, y, v = data(5, n=40)
    X2, y2, v2 = np.vstack([X, X]), np.concatenate([y, y]), np.concatenate([v, -v])
    found = check((Risk(Hinge()) + 0.05 * SquaredL2() + 1.0 * Neutrality(Hinge())).on(X2, y2, viewpoint=v2))
    plus = nerm.metrics.relaxed_neutrality_risk(found.decision_function(X2), v2, Hinge())
    minus = nerm.metrics.relaxed_neutrality_risk(found.decision_function(X2), -v2, Hinge())
    assert plus == pytest.approx(minus)


def test_rows_on_kinks_are_certified():
    """Few distinct rows and a large eta put most margins exactly on a kink."""
    rng = np.random.default_rng(6)
    X = rng.integers(0, 2, (300, 3)).astype(float)
    y = np.where(rng.random(300) < 0.1, 1, -1)
    v = np.where(rng.random(300) < 0.5, 1, -1)
    for eta in (0.01, 1.0, 100.0):
        check((Risk(Hinge()) + 1e-3 * SquaredL2() + eta * Neutrality(Hinge())).on(X, y, viewpoint=v))


def test_two_neutrality_terms_and_weights_agree_with_clarabel():
    X, y, v = data(7)
    other = np.where(X[:, 3] > 0, 1, -1)
    objective = (
        Risk(Hinge())
        + 0.05 * SquaredL2()
        + 0.5 * Neutrality(Hinge(), to="a", weights="balanced")
        + 0.3 * Neutrality(Logistic(), to="b", side="agreement")
    )
    weights = np.random.default_rng(0).uniform(0, 2, len(y))
    check(objective.on(X, y, viewpoint={"a": v, "b": other}, sample_weight=weights))


def test_limit_on_neutrality_agrees_with_clarabel():
    X, y, v = data(8)
    objective = (Risk(Hinge()) + 0.05 * SquaredL2()).subject_to(Neutrality(Hinge()) <= 1.02)
    check(objective.on(X, y, viewpoint=v), rel=1e-5)


def test_separable_data_and_tiny_regularization_are_certified():
    X, _, v = data(9)
    y = np.where(X[:, 0] > 0, 1, -1)
    check(
        (Risk(SquaredHinge()) + 1e-6 * SquaredL2() + 0.0 * Neutrality(Hinge())).on(X, y, viewpoint=v),
        rel=1e-4,
    )


def test_wide_data_agree_with_clarabel():
    X, y, v = data(10, n=40, d=230)
    check((Risk(Hinge()) + 0.1 * SquaredL2() + 0.5 * Neutrality(Hinge())).on(X, y, viewpoint=v))


def test_far_offset_and_scales_of_columns_agree_with_standardised_data():
    X, y, v = data(11)
    objective = Risk(Hinge()) + 0.05 * SquaredL2() + 0.5 * Neutrality(Hinge())
    here = objective.on(X, y, viewpoint=v).solve("interior-point", 1e-8)
    far = objective.on(X + 1e4, y, viewpoint=v).solve("interior-point", 1e-8)
    assert far.objective.total == pytest.approx(here.objective.total, rel=1e-6)


@pytest.mark.parametrize("kind", ["gaussian", "counts", "levels"])
@pytest.mark.parametrize("atom", [Hinge(), SquaredHinge()], ids=repr)
def test_condensed_problem_has_the_optimum_of_all_rows(kind, atom):
    """More rows than the least for condensing; the certificate is computed on all of them."""
    X, y, v = data(12, n=4000, d=6, kind=kind)
    X = X + 0.01 * np.random.default_rng(0).normal(size=X.shape)  # rows stay distinct
    problem = (Risk(atom) + 1e-3 * SquaredL2() + 1.0 * Neutrality(atom)).on(X, y, viewpoint=v)
    for eta, found in zip(
        [0.0, 0.1, 1.0, 10.0], problem.path([0.0, 0.1, 1.0, 10.0], "interior-point"), strict=True
    ):
        assert found.status is nerm.Status.OPTIMAL
        alone = problem.with_neutrality(eta).solve("interior-point", 1e-7)
        assert found.objective.total == pytest.approx(alone.objective.total, rel=2e-6)


def test_one_thread_and_all_threads_agree():
    X, y, v = data(13, n=7000, d=4)
    problem = (Risk(Hinge()) + 1e-3 * SquaredL2() + 1.0 * Neutrality(Hinge())).on(X, y, viewpoint=v)
    totals = []
    for workers in (1, 2, 3):
        totals.append(Engine(problem, workers).answer(problem, 1e-8, {}).details["primal"])
    assert totals == pytest.approx([totals[0]] * 3, rel=1e-8)
