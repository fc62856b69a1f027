"""A user's own margin function: six lines, checked, certified."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import nerm
from nerm.testing import check_margin_function
from tests.conftest import make_data

EXPRESSIONS = {
    "absolute": lambda m: cp.abs(1 - m),
    "squared-hinge": lambda m: cp.square(cp.pos(1 - m)),
    "steep-logistic": lambda m: cp.logistic(-2 * m),
    "huber": lambda m: cp.huber(1 - m),
    "exponential-hinge": lambda m: cp.exp(-m) + cp.pos(1 - m),
    "staircase": lambda m: cp.pos(1 - m) + 2 * cp.pos(-m) + 0.5 * cp.pos(m - 2),
}


def test_a_conjugate_that_is_reached_far_out_or_nowhere():
    """At the end of the slopes the supremum is a limit; beyond, or where it rises for ever, it is infinite."""
    raised = nerm.margin_function(lambda m: cp.logistic(-m) + 5, name="raised")
    np.testing.assert_allclose(
        raised.conjugate([0.0, -1.0, -0.5]), [-5.0, -5.0, -5.0 - np.log(2.0)], atol=1e-5
    )
    flat = nerm.margin_function(lambda m: cp.pos(1 - m) + 5, name="flat")
    np.testing.assert_allclose(flat.conjugate([0.0, -1.0]), [-5.0, -6.0], atol=1e-5)
    assert np.all(np.isinf(raised.conjugate([0.1, -1.1])))


@pytest.mark.long
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_contract_with_everything_derived(name):
    check_margin_function(nerm.margin_function(EXPRESSIONS[name], name=name))


@pytest.mark.long
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_solves_and_is_certified_as_loss_and_as_surrogate(name):
    X, y, v = make_data(3)
    atom = nerm.margin_function(EXPRESSIONS[name], name=name)
    objective = nerm.Risk(atom) + 0.1 * nerm.SquaredL2() + 0.5 * nerm.Neutrality(atom)
    solution = objective.on(X, y, viewpoint=v).solve()
    assert solution.status == "optimal"
    assert solution.certificate.relative_gap <= 1e-6


def test_derived_pieces_agree_with_the_built_in_ones():
    own, built_in = nerm.margin_function(lambda m: cp.logistic(-m)), nerm.Logistic()
    u = np.linspace(-0.999, -0.001, 31)
    np.testing.assert_allclose(own.conjugate(u), built_in.conjugate(u), atol=1e-7)
    m = np.linspace(-4, 4, 9)
    np.testing.assert_allclose(own.prox(m, 2.0), built_in.prox(m, 2.0), atol=1e-5)
    assert own.facts.slopes == (-1.0, 0.0)


def test_the_curvature_is_derived():
    atom = nerm.margin_function(lambda m: cp.logistic(-2 * m), name="steep")
    np.testing.assert_allclose(atom.curvature([0.0, 1.0]), [1.0, 0.419974341614], rtol=1e-9)
    assert atom.facts.smoothness == 1.0
    check_margin_function(atom)


@pytest.mark.parametrize(
    ("expression", "shown"),
    [
        (lambda m: cp.exp(1 - m) + m - 2, "exp(1 - m) + m - 2"),
        (lambda m: cp.maximum(0, 1 - m, 2 * (0.2 - m)), "maximum(0, 1 - m, 2 * (0.2 - m))"),
        (lambda m: cp.power(cp.pos(1 - m), 1.5), "power(maximum(1 - m, 0), 1.5)"),
    ],
)
def test_a_function_prints_as_its_formula(expression, shown):
    own = nerm.margin_function(expression, name="own")
    assert repr(own) == f"margin_function({shown}, name='own')"
    assert repr(nerm.Hinge() + 0.5 * own) == f"Hinge() + 0.5 * {own!r}"
    residual = nerm.residual_function(lambda r: cp.abs(r), name="mine")
    assert repr(residual) == "residual_function(abs(r), name='mine')"


def test_unbounded_below_is_a_surrogate_only():
    atom = nerm.margin_function(lambda m: cp.maximum(-m, -2 * m), name="slope")
    assert atom.facts.surrogate_only
    with pytest.raises(nerm.InvalidInputError, match=r"a loss must be bounded below"):
        nerm.Risk(atom)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: nerm.margin_function(lambda m: cp.sqrt(m), name="root"),
            "'expression' of 'root' must be convex by cvxpy's rules. Got an expression of curvature CONCAVE",
        ),
        (
            lambda: nerm.margin_function(lambda m: cp.sum(m)),
            "must work elementwise. Got shape () for an input of shape (301,)",
        ),
        (
            lambda: nerm.margin_function(lambda m: m + cp.sum(m)),
            "must work elementwise. Got entries that depend on each other",
        ),
        (
            lambda: nerm.margin_function(lambda m: np.exp(m.nothing)),
            "must map a cvxpy expression to a cvxpy expression",
        ),
    ],
)
def test_bad_expressions(make, text):
    with pytest.raises(nerm.InvalidInputError) as caught:
        make()
    assert text in str(caught.value)
