"""Grids of weights: every pair is what it is alone, in the place where it was asked for."""

import numpy as np
import pytest

import nerm
from nerm.errors import InvalidInputError
from nerm.solvers.base import path_order
from tests.oracle import hinge_optimum

LAMS, ETAS = (0.1, 1.0, 0.01), (3.0, 0.0, 0.3)


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(60, 3))
    y, v = np.sign(X[:, 0] + rng.normal(size=60)), np.sign(X[:, 0] + X[:, 1] + rng.normal(size=60))
    return X, y, v


def bound(rows, omega, psi=None, **options):
    X, y, v = rows
    objective = nerm.Risk(nerm.Hinge()) + 0.5 * omega + 1.0 * nerm.Neutrality(psi or nerm.Hinge())
    return objective.on(X, y, viewpoint=v, **options)


@pytest.mark.parametrize("solver", ["auto", "smo", "augmented-lagrangian", "clarabel"])
def test_every_pair_is_the_optimum_of_its_weights(rows, solver):
    found = bound(rows, nerm.SquaredL2()).grid(lam=LAMS, eta=ETAS, solver=solver)
    assert all(solution.status is nerm.Status.OPTIMAL for row in found for solution in row)
    for lam, row in zip(LAMS, found, strict=True):
        for eta, solution in zip(ETAS, row, strict=True):
            assert solution.objective.total == pytest.approx(hinge_optimum(*rows, lam, eta)[0], rel=3e-6)


def test_regularizers_keep_their_ratio_and_kernels_share_their_factor(rows):
    mixed = bound(rows, nerm.SquaredL2() + 3 * nerm.L1()).grid(lam=[0.4, 0.04])
    for lam, (solution,) in zip([0.4, 0.04], mixed, strict=True):
        weights = [t.weight for t in solution.problem.objective.terms if t.term.kind == "regularizer"]
        assert weights == pytest.approx([lam / 4, 3 * lam / 4])
        assert solution.status is nerm.Status.OPTIMAL
    problem = bound(rows, nerm.SquaredL2(), kernel="rbf")
    for solution in problem.grid(lam=[0.1, 0.01], eta=[1.0])[1]:
        alone = problem.with_regularization(0.01).with_neutrality(1.0).solve("clarabel")
        assert solution.objective.total == pytest.approx(alone.objective.total, rel=3e-6)


def test_a_grid_of_one_kind_of_weight_keeps_the_other(rows):
    problem = bound(rows, nerm.SquaredL2())
    (row,) = problem.grid(eta=ETAS)
    assert [s.problem.etas.tolist() for s in row] == [[eta] for eta in ETAS]
    assert row[0].problem.regularizers == problem.regularizers
    column = problem.grid(lam=LAMS)
    assert [[s.problem.regularizers[0][0] for s in row] for row in column] == [[lam] for lam in LAMS]


def test_stationary_points_are_found_for_every_pair(rows):
    found = bound(rows, nerm.SquaredL2(), nerm.Ramp()).grid(lam=[0.1, 0.01], eta=[0.1, 1.0])
    assert {s.status for row in found for s in row} == {nerm.Status.STATIONARY}


def test_adjacent_problems_follow_each_other(rows):
    problem = bound(rows, nerm.SquaredL2())
    problems = [problem.with_regularization(lam).with_neutrality(eta) for lam in LAMS for eta in ETAS]

    places = [(LAMS[i // 3], ETAS[i % 3]) for i in path_order(problems)]
    assert places == [(lam, eta) for lam in (1.0, 0.1, 0.01) for eta in (0.0, 0.3, 3.0)]


def test_what_is_no_grid_is_refused(rows):
    problem = bound(rows, nerm.SquaredL2())
    with pytest.raises(InvalidInputError, match=r"a grid must have weights\. Got neither lam nor eta"):
        problem.grid()
    with pytest.raises(InvalidInputError, match="'lam' must be a nonempty list of regularization weights"):
        problem.grid(lam=0.1)
    with pytest.raises(InvalidInputError, match="'lam' must be a finite positive number"):
        problem.grid(lam=[0.0, 1.0])
    with pytest.raises(InvalidInputError, match="must have a regularizer term to weight by lam"):
        nerm.Risk(nerm.Hinge()).on(rows[0], rows[1]).with_regularization(1.0)
    assert problem.with_regularization(0).regularizers[0][0] == 0
