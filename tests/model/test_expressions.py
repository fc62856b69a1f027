"""Objectives as algebra: +, *, repr, formula, LaTeX."""

from __future__ import annotations

import pytest

import nerm
from nerm import L1, Hinge, Logistic, Neutrality, Risk, SquaredL2


def test_repr_gives_the_algebra_back():
    objective = Risk(Hinge()) + 0.05 * SquaredL2() + 2 * Neutrality(Logistic(), to="sex", weights="balanced")
    text = "Risk(Hinge()) + 0.05 * SquaredL2() + 2 * Neutrality(Logistic(), to='sex', weights='balanced')"
    assert repr(objective) == text
    assert repr(eval(text, {**vars(nerm)})) == text


def test_formula_and_latex():
    objective = Risk(Hinge()) + 0.05 * SquaredL2() + Neutrality(Hinge())
    assert str(objective) == "minimise mean hinge(y f) + 0.05 ½‖w‖² + max(mean hinge(v f), mean hinge(-v f))"
    latex = objective._repr_latex_()
    assert latex.startswith("$")
    assert latex.endswith("$")
    assert r"\max(0,\ 1 - y_i f(x_i))" in latex
    assert r"\max_{\pm}\ \frac1n\sum_i \max(0,\ 1 \mp v_i f(x_i))" in latex


@pytest.mark.parametrize("atom", [cls() for cls in nerm.atoms.margin_functions().values()], ids=repr)
def test_every_atom_has_balanced_latex(atom):
    text = Neutrality(atom).formula(latex=True)
    assert text.count("{") == text.count("}")
    assert text.count("(") == text.count(")")


def test_weights_multiply_and_distribute():
    objective = 2 * (Risk(Hinge()) + 3 * SquaredL2()) / 4
    assert [t.weight for t in objective.terms] == [0.5, 1.5]
    assert repr(SquaredL2() * 2) == repr(2 * SquaredL2())
    assert repr(sum([Risk(Hinge()), 2 * L1()])) == "Risk(Hinge()) + 2 * L1()"


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (
            lambda: -1 * SquaredL2(),
            nerm.InvalidInputError,
            "'weight' must be a finite number, at least 0. Got -1. A negative weight would make the objective",
        ),
        (lambda: float("nan") * SquaredL2(), nerm.InvalidInputError, "'weight' must be a finite number"),
        (lambda: 2 + SquaredL2(), TypeError, "unsupported operand"),
        (lambda: Risk(Hinge()) * SquaredL2(), nerm.InvalidInputError, "a term must be weighted by a number"),
        (
            lambda: Hinge() + SquaredL2(),
            TypeError,
            "Write Risk(Hinge()) for a loss or Neutrality(Hinge()) for a surrogate.",
        ),
        (lambda: Risk(Hinge), nerm.InvalidInputError, "Risk needs a margin function"),
        (
            lambda: Neutrality("hinge"),
            nerm.InvalidInputError,
            "Neutrality needs a margin function. Got 'hinge'.",
        ),
        (
            lambda: Risk(nerm.Identity()),
            nerm.InvalidInputError,
            "a loss must be bounded below. Got Identity()",
        ),
        (
            lambda: Neutrality(Hinge(), weights="fair"),
            nerm.UnknownNameError,
            "'weights' of a neutrality term must be one of 'balanced', 'conditional', 'equal_opportunity', ",
        ),
    ],
)
def test_mistakes_are_named_at_once(make, error, text):
    with pytest.raises(error) as caught:
        make()
    assert text in str(caught.value)


def test_a_single_term_can_meet_its_data(data):
    X, y, _ = data
    assert Risk(Hinge()).on(X, y).evaluate([0.0] * 4).total == pytest.approx(1.0)


def test_equal_objectives_are_equal_and_numpy_numbers_are_weights():
    import numpy as np

    assert Risk(Hinge()) + Neutrality(Hinge()) == Risk(Hinge()) + Neutrality(Hinge())
    assert Neutrality(Hinge(), weights=[1.0, 2.0]) != Neutrality(Hinge(), weights=[1.0, 3.0])
    assert repr(np.float64(2.0) * SquaredL2()) == "2 * SquaredL2()"
    with pytest.raises(nerm.InvalidInputError, match=r"Got ndarray"):
        np.array([1.0, 2.0]) * SquaredL2()
    with pytest.raises(TypeError, match=r"Got the class SquaredL2\. Write SquaredL2"):
        Risk(Hinge()) + SquaredL2


@pytest.mark.parametrize(
    "mistake",
    [
        lambda: Risk(Hinge()) + SquaredL2,
        lambda: Hinge() - Hinge(),
        lambda: bool(Neutrality(Hinge()) <= 1),
    ],
)
def test_type_errors_are_nerm_errors(mistake):
    with pytest.raises(nerm.NermError) as caught:
        mistake()
    assert isinstance(caught.value, TypeError)
