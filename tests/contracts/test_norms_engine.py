"""l1, group l2, l-infinity and their sums through the engine: the optimum of the problem as stated, by plain cvxpy."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm import L1, ElasticNet, GroupL2, Hinge, LInf, Logistic, Neutrality, Risk, SquaredL2
from tests.conftest import make_data
from tests.contracts.norm_problems import Stated, drawn

GROUPS = [0, 1, 1, 2, 2, 2]
OMEGAS = {
    "l1": 0.05 * L1(),
    "elastic net": 0.1 * ElasticNet(0.3),
    "l1 and square": 0.02 * L1() + 0.01 * SquaredL2(),
    "groups": 0.05 * GroupL2(GROUPS, [1.0, 2.0, 0.5]),
    "one group": 0.1 * GroupL2(),
    "l-infinity": 0.1 * LInf(),
    "sparse groups": 0.02 * L1() + 0.03 * GroupL2(GROUPS),
    "elastic groups": 0.05 * GroupL2(GROUPS) + 0.05 * SquaredL2(),
    "everything": 0.01 * L1() + 0.02 * GroupL2(GROUPS) + 0.03 * LInf() + 0.01 * SquaredL2(),
}
ATOMS = [Hinge(), Logistic(), nerm.SquaredHinge(), nerm.Exponential(), nerm.Pinball(0.5)]


@pytest.mark.long
@pytest.mark.parametrize("omega", OMEGAS.values(), ids=OMEGAS)
@pytest.mark.parametrize("loss", ATOMS, ids=repr)
@pytest.mark.parametrize("intercept", [True, False])
def test_agrees_with_clarabel(loss, omega, intercept):
    X, y, v = make_data(2, n=90, d=6, real_viewpoint=True)
    rng = np.random.default_rng(1)
    objective = Risk(loss) + omega + 0.7 * Neutrality(Hinge(), weights=rng.random(90))
    weights = rng.random(90)
    for data in (X, sp.csr_matrix(X)):
        problem = objective.on(data, y, viewpoint=v, intercept=intercept, sample_weight=weights)
        ours = problem.solve("interior-point")
        assert ours.status == "optimal"
    reference = problem.solve("clarabel", tol=1e-7)
    assert ours.objective.total == pytest.approx(reference.objective.total, rel=1.5e-6)


@pytest.mark.parametrize("seed", range(40))
def test_random_corners_against_plain_cvxpy(seed):
    """Zero, constant, equal and far columns, fewer rows than columns, tiny and huge weights."""
    stated = drawn(seed)
    solution = stated.problem.solve("interior-point")
    optimum = stated.optimum()
    assert solution.certificate.dual <= optimum * (1 + 1e-6) + 1e-9
    assert solution.status == "optimal"
    assert solution.objective.total <= optimum * (1 + 1.5e-6) + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("first", range(40, 1040, 50))
def test_many_more_corners(first):
    """Where the engine stops early it says so, and auto asks somebody else."""
    early = 0
    for seed in range(first, first + 50):
        stated = drawn(seed)
        solution, optimum = stated.problem.solve("interior-point"), stated.optimum()
        assert solution.certificate.dual <= optimum * (1 + 1e-6) + 1e-9, seed
        if solution.status == "optimal":
            assert solution.objective.total <= optimum * (1 + 2e-6) + 1e-9, seed
        else:
            early += 1
            assert stated.problem.solve().status == "optimal", seed
    assert early <= 1


@pytest.mark.parametrize("weight", [1e-5, 1e-3, 1.0, 100.0])
@pytest.mark.parametrize("norm", [L1(), GroupL2([0, 0, 0, 1, 1, 1, 2, 2]), LInf()], ids=repr)
def test_from_dense_to_empty(norm, weight):
    """A small weight keeps every coefficient, a large one none; both are certified."""
    X, y, v = make_data(3, n=100, d=8)
    problem = (Risk(Logistic()) + weight * norm + 0.5 * Neutrality(Logistic())).on(X, y, viewpoint=v)
    solution = problem.solve()
    assert solution.stats.solver == "interior-point"
    assert solution.status == "optimal"
    if weight >= 100.0:
        assert np.abs(solution.coef).max() < 1e-6
    elif weight <= 1e-3:
        assert np.abs(solution.coef).max() > 0.1


def test_whole_groups_vanish_and_all_coefficients_tie():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2500, 12))
    y = np.where(X[:, :3] @ [2.0, 1.5, -1.0] + rng.normal(size=2500) > 0, 1, -1)
    v = np.where(X[:, 3] > 0, 1, -1)
    groups = np.repeat([0, 1, 2, 3], 3)
    solution = (
        (Risk(Hinge()) + 0.2 * GroupL2(groups) + 0.1 * Neutrality(Hinge())).on(X, y, viewpoint=v).solve()
    )
    assert (solution.stats.solver, solution.status) == ("interior-point", "optimal")
    sizes = [np.linalg.norm(solution.coef[groups == g]) for g in range(4)]
    assert sizes[0] > 0.1
    assert max(sizes[1:]) < 1e-4
    y = np.where(X.sum(axis=1) + rng.normal(size=2500) > 0, 1, -1)  # every column is as good as any other
    solution = (Risk(Hinge()) + 0.2 * LInf() + 0.1 * Neutrality(Hinge())).on(X, y, viewpoint=v).solve()
    assert (solution.stats.solver, solution.status) == ("interior-point", "optimal")
    assert (np.abs(solution.coef) > 0.999 * np.abs(solution.coef).max()).sum() >= 6


@pytest.mark.long
def test_more_columns_than_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 150))
    y, v = np.where(X[:, 0] > 0, 1.0, -1.0), np.where(X[:, 1] > 0, 1.0, -1.0)
    for norm in (L1(), GroupL2(np.repeat(np.arange(50), 3)), LInf()):
        problem = (Risk(Hinge()) + 0.05 * norm + Neutrality(Hinge())).on(X, y, viewpoint=v)
        best, solution = problem.solve("clarabel").objective.total, problem.solve()
        assert solution.status == "optimal"
        assert solution.objective.total == pytest.approx(best, rel=1.5e-6)


@pytest.mark.parametrize("solver", ["interior-point", "clarabel"])
def test_an_elastic_net_is_its_parts_to_the_last_digit(solver):
    X, y, v = make_data(2, n=90, d=6)
    rest = Risk(Hinge()) + 0.7 * Neutrality(Logistic())
    formula = nerm.regularizer(lambda w: 0.5 * cp.norm1(w) + cp.sum_squares(w) / 4, name="formula")
    whole, parts, own = (
        (rest + 0.1 * omega).on(X, y, viewpoint=v).solve(solver)
        for omega in (ElasticNet(), 0.5 * L1() + 0.5 * SquaredL2(), formula)
    )
    if solver == "interior-point":
        assert whole.certificate == parts.certificate
    assert whole.certificate.relative_gap == pytest.approx(parts.certificate.relative_gap, abs=1e-8)
    assert own.objective.total == pytest.approx(whole.objective.total, rel=1.5e-6)
    at = whole.coef, whole.intercept, whole.multipliers
    certificates = [(rest + 0.1 * omega).on(X, y, viewpoint=v).certify(*at)
                    for omega in (ElasticNet(), 0.5 * L1() + 0.5 * SquaredL2())]  # fmt: skip
    assert certificates[0] == certificates[1]


def test_the_norm_of_a_kernel_is_the_square_alone_and_an_own_regularizer_is_not_taken():
    X, y, _ = make_data(3)
    solver = nerm.solvers.known()["interior-point"]
    assert solver.why_unsupported((Risk(Hinge()) + L1()).on(X, y)) is None
    assert (
        solver.why_unsupported((Risk(Hinge()) + 0.0 * L1()).on(X, y)) == "no regularizer of positive weight"
    )
    own = nerm.regularizer(lambda w: cp.sum(cp.huber(w)), name="own")
    with pytest.raises(
        nerm.UnsupportedProblemError, match="must be given a linear problem with squares and norms"
    ):
        (Risk(Hinge()) + own).on(X, y).solve("interior-point")


def test_the_oracle_is_one():
    """On a problem that can be solved by hand: n = 2, x = -1 and 1, hinge, weight t of w: w = 1 if t < 1, else 0."""
    for weight, value in ((0.25, 0.25), (2.0, 1.0)):
        objective = Risk(Hinge()) + weight * LInf()
        problem = objective.on([[1.0], [-1.0]], [1, -1], intercept=False)
        stated = Stated(problem, np.array([[1.0], [-1.0]]), np.array([1.0, -1.0]), {}, "hinge", "hinge", 0.0,
                        [("linf", weight, None)], False)  # fmt: skip
        assert stated.optimum() == pytest.approx(value, abs=1e-6)
        assert problem.solve("interior-point").objective.total == pytest.approx(value, abs=1e-6)
