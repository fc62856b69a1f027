"""What an atom may hide in a claim counts against it: a value, a conjugate or a slope that is not its function's."""

from __future__ import annotations

from dataclasses import dataclass, replace

import cvxpy as cp
import numpy as np
import pytest

import nerm
from nerm import Hinge, Neutrality, Risk, SquaredL2
from nerm.certify.solution import combine
from tests.conftest import make_data
from tests.oracle import hinge_optimum


def test_slack_counts_and_adds_up():
    one = nerm.Certificate(1.0, 1.0, slack=1e-3)
    assert one.relative_gap == pytest.approx(1e-3)
    assert (one + one).slack == one.times(2.0).slack == 2e-3
    # an optimum of nothing is relative to 1e-8 of the zero hypothesis
    assert nerm.Certificate(0.0, 0.0, scale=1.0, slack=1e-9).relative_gap == pytest.approx(0.1)


@pytest.mark.long
@pytest.mark.parametrize("weight", [1.0, 0.7, 2 / 3, 1e-2, 1e-5])
def test_numeric_conjugates_never_lift_the_bound(weight):
    """A scaled hinge as a user writes it: the bound stays below the optimum of the textbook QP."""
    X, y, v = make_data(1)
    atom = nerm.margin_function(lambda m: weight * cp.pos(1 - m))
    problem = (1 / weight * Risk(atom) + 0.1 * SquaredL2() + 1 / weight * Neutrality(atom)).on(
        X, y, viewpoint=v
    )
    optimum, _, _ = hinge_optimum(X, y, v, 0.1, 1.0)
    solution = problem.solve()
    assert solution.status == "optimal"
    assert solution.certificate.dual <= optimum * (1 + 1e-9)
    assert problem.certify(0.3 * solution.coef, solution.intercept, solution.multipliers).relative_gap > 1e-3
    u = np.linspace(-weight, 0, 101)
    assert (atom.conjugate(u) >= u - 1e-12).all()


def test_a_wrong_conjugate_certifies_nothing(data):
    X, y, _ = data

    @dataclass(frozen=True)
    class Lying(Hinge):
        def conjugate(self, u):
            return super().conjugate(u) - 1.0

    solution = (Risk(Lying()) + 0.1 * SquaredL2()).on(X, y).solve("clarabel")
    assert solution.status == "inaccurate"


def dipped(m):
    return np.maximum(1 - m, 0) - 5 * np.maximum(0, 0.05 - np.abs(m - 30.1))


def test_a_value_that_is_not_its_expression_is_found_at_the_solution(data):
    """A dip too narrow for any probe but the margins themselves."""

    @dataclass(frozen=True)
    class Dip(Hinge):
        def value(self, m):
            return dipped(np.asarray(m, dtype=float))

    X, y = np.array([[30.1], [1.0], [-1.0], [-30.1]]), [1, 1, -1, -1]
    problem = (Risk(Dip()) + 1e-3 * SquaredL2()).on(X, y, intercept=False)
    assert problem.certify([1.0]).slack > 0.1
    assert problem.certify([1.0]).relative_gap > 1e-2


def test_a_conjugate_that_is_a_little_too_low_takes_from_the_claim(data):
    """A hypothesis that is off by as much as the conjugate is wrong is not called optimal for it."""
    X, y, _ = data

    @dataclass(frozen=True)
    class Low(nerm.Squared):
        def conjugate(self, u):
            return super().conjugate(u) - 9e-5

    objective = Risk(nerm.Squared()) + 1e-2 * SquaredL2()
    best = objective.on(X, y).solve(tol=1e-9)
    problem = (Risk(Low()) + 1e-2 * SquaredL2()).on(X, y)
    for shift in (0.0, 0.005, 0.01):
        certificate = problem.certify(best.coef + shift, best.intercept, best.multipliers)
        worse = certificate.primal / best.objective.total - 1
        assert certificate.relative_gap >= 0.99 * worse
        assert certificate.slack >= 8e-5


def test_built_in_is_a_fact_of_the_atom():
    @dataclass(frozen=True)
    class Mine(Hinge):
        pass

    custom = nerm.margin_function(lambda m: cp.pos(1 - m))
    parts = nerm.Ramp().parts
    assert all(
        atom.built_in for atom in (Hinge(), nerm.Logistic(), parts.convex, parts.subtracted, parts.two_sided)
    )
    assert not Mine().built_in
    assert not custom.built_in


def test_elastic_net_has_the_slack_of_its_parts():
    X, y, _ = make_data(2)
    X = X + 1e6
    spelled = (Risk(Hinge()) + 0.1 * nerm.ElasticNet(0.5)).on(X, y)
    parts = (Risk(Hinge()) + 0.05 * nerm.L1() + 0.05 * SquaredL2()).on(X, y)
    coef = np.linspace(-1.0, 1.0, X.shape[1])
    one, two = (problem.certify(coef, 0.3) for problem in (spelled, parts))
    assert one.primal == pytest.approx(two.primal, rel=1e-12)
    assert one.slack == pytest.approx(two.slack, rel=1e-6)


def test_a_limit_does_not_hide_rounding():
    """With columns near 1e6 the slack of a limited problem is about that of the same problem with a weight."""
    X, y, v = make_data(2)
    objective = Risk(Hinge()) + 0.05 * SquaredL2()
    limited = objective.subject_to(Neutrality(Hinge()) <= 1.05).on(X + 1e6, y, viewpoint=v).solve()
    (eta,) = limited.multipliers.limits
    weighted = (objective + eta * Neutrality(Hinge())).on(X + 1e6, y, viewpoint=v).solve()
    assert limited.certificate.slack > 0.1 * weighted.certificate.slack > 0


def test_of_two_uncertified_solutions_the_lower_objective_is_kept():
    X, y, v = make_data(3)
    solved = (Risk(Hinge()) + 0.05 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v).solve()
    value = solved.certificate.primal
    low = replace(solved, certificate=nerm.Certificate(value, value - 1), status=nerm.Status.INACCURATE)
    high = replace(solved, certificate=nerm.Certificate(value + 1, value), status=nerm.Status.INACCURATE)
    assert combine(low, high) is low
    assert combine(high, low) is low
