"""The augmented Lagrangian on every corner of its class, against a solver that shares nothing with it."""

import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm import Hinge, Neutrality, Risk, SquaredL2
from nerm.errors import UnknownNameError, UnsupportedProblemError
from nerm.solvers.registry import SolverPool

NAME = "augmented-lagrangian"


def wide(seed=0, n=40, d=70):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.2)
    y, v, z = np.where(rng.normal(size=(3, n)) + X[:, :3].T > 0, 1.0, -1.0)
    return X, y, {"v": v, "z": z}


def on_wide(objective, **kwargs):
    X, y, viewpoints = wide()
    return objective.on(sp.csr_matrix(X), y, viewpoint=viewpoints, **kwargs)


def neutral(eta, psi=None, loss=None, mu=0.02, **kwargs):
    return Risk(loss or Hinge()) + mu * SquaredL2() + eta * Neutrality(psi or Hinge(), to="v", **kwargs)


CORNERS = {
    "eta 0": (neutral(0.0), {}),
    "theta 0 or 1": (neutral(0.05), {}),
    "theta inside": (neutral(5.0), {}),
    "huge eta": (neutral(1e3), {}),
    "one side": (neutral(0.7, side="agreement"), {}),
    "two viewpoints": (neutral(1.0) + 2.0 * Neutrality(Hinge(), to="z"), {}),
    "two viewpoints, one of them off": (neutral(0.0) + 2.0 * Neutrality(Hinge(), to="z"), {}),
    "no intercept": (neutral(1.0), {"intercept": False}),
    "weights": (neutral(1.0, weights="balanced"), {"sample_weight": np.arange(40.0) % 3}),
    "covariance": (neutral(3.0, nerm.Identity()), {}),
    "logistic": (neutral(1.0, nerm.Logistic(), nerm.Logistic()), {}),
    "mixed": (neutral(1.0, Hinge(), nerm.Logistic()), {}),
    "curved": (neutral(1.0, nerm.SmoothHinge(0.2), nerm.SquaredHinge()), {}),
    "exponential": (neutral(0.5, nerm.Exponential(), nerm.Exponential()), {}),
    "quantile": (neutral(1.0, Hinge(), nerm.Pinball(0.3)), {}),
    "little regularisation": (neutral(1.0, mu=1e-5), {}),
    "much regularisation": (neutral(1.0, mu=1e2), {}),
    "hardly anything but the intercept": (neutral(1.0, mu=1e6), {}),
}


@pytest.mark.parametrize("corner", CORNERS)
def test_agrees_with_clarabel(corner):
    objective, kwargs = CORNERS[corner]
    problem = on_wide(objective, **kwargs)
    found, other = problem.solve(NAME, tol=1e-6), problem.solve("clarabel", tol=1e-5)
    assert found.status == "optimal"
    assert found.objective.total == pytest.approx(other.objective.total, rel=2e-5, abs=1e-9)


def test_contradicting_labels():
    X, y, viewpoints = wide()
    twice = {name: np.tile(v, 2) for name, v in viewpoints.items()}
    problem = neutral(1.0).on(
        np.vstack([X, X]), np.concatenate([y, np.where(np.arange(40) % 4, y, -y)]), viewpoint=twice
    )
    found = problem.solve(NAME)
    assert found.status == "optimal"
    assert found.objective.total == pytest.approx(problem.solve("interior-point").objective.total, rel=3e-6)


def test_empty_row_and_constant_viewpoint():
    X, y, viewpoints = wide()
    X[3] = 0.0
    problem = neutral(1.0).on(sp.csr_matrix(X), y, viewpoint={"v": np.ones(40), "z": viewpoints["z"]})
    assert problem.solve(NAME).status == "optimal"


def test_path_agrees_with_interior_point():
    problem, etas = on_wide(neutral(1.0)), [10.0, 0.0, 0.3, 1.0]
    for eta, solution in zip(etas, problem.path(etas, NAME), strict=True):
        alone = problem.with_neutrality(eta).solve("interior-point")
        assert solution.status == "optimal"
        assert solution.objective.total == pytest.approx(alone.objective.total, rel=3e-6)


def test_problems_with_other_terms_in_one_session():
    pool = SolverPool(NAME)
    for objective in (neutral(1.0), neutral(0.5, side="disagreement"), neutral(1.0, nerm.Logistic())):
        assert pool.solve(on_wide(objective), 1e-6).status == "optimal"


def test_limit_agrees_with_clarabel():
    problem = on_wide((Risk(Hinge()) + 0.02 * SquaredL2()).subject_to(Neutrality(Hinge(), to="v") <= 1.05))
    found, other = problem.solve(NAME, tol=1e-5), problem.solve("clarabel", tol=1e-5)
    assert found.status == "optimal"
    assert found.objective.total == pytest.approx(other.objective.total, rel=3e-5)


def test_unsupported_problems_are_named():
    X, y, _ = wide()
    with pytest.raises(UnsupportedProblemError, match=r"augmented-lagrangian.*squared l2.*L1"):
        (Risk(Hinge()) + nerm.L1()).on(X, y).solve(NAME)
    with pytest.raises(UnknownNameError, match="an option of 'augmented-lagrangian'"):
        on_wide(neutral(1.0)).solve(NAME, sweeps=3)


def test_time_limit():
    solution = on_wide(neutral(1.0)).solve(NAME, tol=1e-15, time_limit=1e-9)
    assert solution.stats.timed_out
