"""An optimum that no hypothesis attains is said to be that, and nothing else is."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import nerm
from nerm.certify.multipliers import NOT_ATTAINED, runs_away
from tests.conftest import make_data

X, _, V = make_data(0, n=50, d=3)
SEPARABLE = np.where(X[:, 0] > 0, 1.0, -1.0)
MIXED = make_data(0, n=50, d=3)[1]
LOGISTIC = 1.0 * nerm.Risk(nerm.Logistic())


@pytest.mark.parametrize(
    "objective",
    [
        LOGISTIC,
        1.0 * nerm.Risk(nerm.Exponential()),
        LOGISTIC + 0.1 * nerm.regularizer(lambda w: cp.norm1(w[1:]), name="others"),
    ],
    ids=str,
)
@pytest.mark.parametrize("intercept", [True, False])
def test_separable_rows_without_a_regularizer(objective, intercept):
    solution = objective.on(X, SEPARABLE, intercept=intercept).solve()
    assert solution.status == "inaccurate"
    assert solution.certificate.dual <= 1e-12
    assert solution.certificate.reason == NOT_ATTAINED
    assert NOT_ATTAINED in repr(solution)
    with pytest.raises(nerm.NotSolvedError, match="no hypothesis attains the optimum"):
        objective.on(X, SEPARABLE, intercept=intercept).solve(strict=True)


@pytest.mark.parametrize(
    ("objective", "y"),
    [
        (1.0 * nerm.Risk(nerm.Hinge()), SEPARABLE),
        (1.0 * nerm.Risk(nerm.SquaredHinge()), SEPARABLE),
        (LOGISTIC, MIXED),
        (
            LOGISTIC + nerm.Neutrality(nerm.Hinge()),
            SEPARABLE,
        ),  # the neutrality risk grows along every direction
        (LOGISTIC + nerm.Neutrality(nerm.Identity()), SEPARABLE),
        (LOGISTIC + 1e-6 * nerm.L1(), SEPARABLE),
        (LOGISTIC + 0.1 * nerm.regularizer(lambda w: cp.norm1(w[:1]), name="first"), SEPARABLE),
    ],
    ids=str,
)
def test_attained_optima_are_certified(objective, y):
    solution = objective.on(X, y, viewpoint=V).solve()
    assert solution.status == "optimal"
    assert solution.certificate.reason == ""


def test_the_reason_is_saved_with_the_solution(tmp_path):
    solution = LOGISTIC.on(X, SEPARABLE).solve()
    solution.save(tmp_path / "solution.nerm")
    assert nerm.load(tmp_path / "solution.nerm").certificate == solution.certificate


def test_an_intercept_alone_can_run_away():
    """All rows that count have one label: b grows for ever, whatever punishes w."""
    objective = LOGISTIC + 0.1 * nerm.SquaredL2()
    one_label = objective.on(X, MIXED, sample_weight=(MIXED > 0).astype(float))
    for problem, expected in ((one_label, True), (objective.on(X, MIXED), False)):
        hypothesis = np.zeros(3), 1.0
        assert runs_away(problem, *hypothesis, problem.evaluate(*hypothesis).total) is expected


def test_a_neutrality_term_of_a_straight_line_asks_for_its_sum_alone():
    """Along w the risk falls for ever, and the mean of v f stays 0."""
    x = np.array([[1.0], [1.0], [-1.0], [-1.0]])
    y, v = [1, 1, -1, -1], [1, -1, 1, -1]
    problem = (LOGISTIC + nerm.Neutrality(nerm.Identity())).on(x, y, viewpoint=v, intercept=False)
    assert problem.solve().certificate.reason == NOT_ATTAINED
