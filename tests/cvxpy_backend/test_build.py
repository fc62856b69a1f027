"""The cvxpy model: DPP, one compilation a path, readable variables, the same optimum as cvxpy's own value."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm import Hinge, Neutrality, Risk, SquaredL2
from nerm.cvxpy_backend.build import Model
from tests.conftest import make_data


def problem_of(data, **kwargs):
    X, y, v = data
    return (Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v, **kwargs)


def test_every_weight_is_a_parameter_and_the_problem_is_dpp(data):
    model = problem_of(data).to_cvxpy()
    assert isinstance(model, cp.Problem)
    assert model.is_dcp(dpp=True)
    assert sorted(p.name() for p in model.parameters()) == ["eta_0", "regularizer_0", "risk_0"]
    assert {"coef", "intercept", "scores"} <= {v.name() for v in model.variables()}


def test_a_user_may_steer_the_cvxpy_problem_by_hand(data):
    problem = problem_of(data)
    model = problem.to_cvxpy()
    model.param_dict["eta_0"].value = 5.0
    model.solve(solver="CLARABEL")
    assert model.value == pytest.approx(problem.with_neutrality(5.0).solve().objective.total, rel=1e-6)


@pytest.mark.parametrize("atom", [cls() for cls in nerm.atoms.margin_functions().values()], ids=repr)
def test_cvxpys_value_is_numpys_value(atom, data):
    X, y, v = data
    loss = Hinge() if atom.facts.surrogate_only else atom
    problem = (Risk(loss) + 0.1 * SquaredL2() + 0.7 * Neutrality(atom)).on(
        X, y, viewpoint=v, sample_weight=np.arange(60.0)
    )
    model = Model(problem)
    model.problem.solve(solver="CLARABEL")
    assert model.problem.value == pytest.approx(problem.evaluate(*model.hypothesis()).total, rel=1e-6)


def test_a_path_compiles_once():
    X, y, v = make_data(0, n=200, d=10)
    problem = (Risk(Hinge()) + 0.05 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v)
    solutions = problem.path(np.geomspace(0.01, 100, 20), solver="clarabel")
    assert all(s.status == "optimal" for s in solutions)
    # the model is compiled for the first solution only; later ones set Parameters
    assert solutions[0].stats.build_seconds > 0
    assert all(s.stats.build_seconds == 0 for s in solutions[1:])


def test_path_equals_single_solves(data):
    problem = problem_of(data)
    for eta, solution in zip([0, 0.3, 3], problem.path([0, 0.3, 3]), strict=True):
        assert solution.objective.total == pytest.approx(
            problem.with_neutrality(eta).solve().objective.total, rel=1e-6
        )


def test_sparse_data_stay_sparse_in_the_model():
    rng = np.random.default_rng(0)
    X = sp.random(300, 80, density=0.05, random_state=0, format="csr")
    y = np.where(rng.random(300) > 0.5, 1.0, -1.0)
    problem = (Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())).on(
        X, y, viewpoint=y * np.where(rng.random(300) > 0.3, 1, -1)
    )
    data, _, _ = problem.to_cvxpy().get_problem_data("CLARABEL")
    assert data["A"].nnz < 20 * 300
    assert problem.solve("clarabel").status == "optimal"
