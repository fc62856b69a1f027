"""Which solutions are ones to be used, and the record of what was solved."""

from __future__ import annotations

import inspect
from dataclasses import replace

import numpy as np
import pytest

import nerm
from nerm.neutralize import Asking
from nerm.neutralize.attempts import Attempts
from nerm.neutralize.search import Attempt

PLAIN = nerm.Risk(nerm.Logistic()) + 0.01 * nerm.SquaredL2()
RNG = np.random.default_rng(1)
X = RNG.normal(size=(200, 3))
Y = np.where(X[:, 0] + 0.5 * RNG.normal(size=200) > 0, 1.0, -1.0)
SEX = np.where(X[:, 0] + RNG.normal(size=200) > 0, 1.0, -1.0)
RACE = np.where(X[:, 1] + RNG.normal(size=200) > 0.5, 1.0, -1.0)


def study(limit=0.1, views=SEX, measure="calders_verwer_score", **asked) -> Attempts:
    return Asking(limit, measure, **asked).study(PLAIN.on(X, Y, viewpoint=views))


def at(made: Attempts, scores, eta=1.0) -> Attempt:
    return replace(made.plain, scores=scores, weights=np.full(len(made.plain.parts), eta))


def scores_with(rates):
    """Return scores that say yes to these shares of SEX - and +, those with the largest x_0 first."""
    scores = np.empty(200)
    for side, share in zip((-1, 1), rates, strict=True):
        rows = np.flatnonzero(side == SEX)
        order = rows[np.argsort(-X[rows, 0])]
        scores[order] = np.round(share * len(rows)) - np.arange(len(rows)) - 0.5
    return scores


def test_the_record_of_one_part():
    made = study()
    found = made.of(nerm.Logistic())
    answer = made.answer("psi", found, None)
    assert (answer.eta, answer.side, answer.value) == (found.etas[0], found.sides[0], found.parts[0])
    assert answer.reached
    assert [row["eta"] for row in made.rows] == [p.etas[0] for p in made.points]
    assert [row["side"] for row in made.rows] == [p.sides[0] for p in made.points]
    assert [row["measure"] for row in made.rows] == [p.parts[0] for p in made.points]
    assert [row["surrogate"] for row in made.rows] == ["", *["Logistic()"] * (len(made.rows) - 1)]
    np.testing.assert_array_equal(answer.trace["chosen"], [p is found for p in made.points])
    (chosen,) = answer.trace[answer.trace["chosen"]].to_dict("records")
    f = found.solution.training_scores()
    assert chosen["accuracy"] == np.mean((f > 0) == (Y > 0))
    for sign, side in (("-", -1), ("+", 1)):
        assert chosen[f"positive rate, viewpoint {sign}"] == pytest.approx(np.mean(f[side == SEX] > 0))


def test_the_record_of_several_parts():
    made = study(views={"sex": SEX, "race": RACE})
    assert len(made.plain.parts) == 2
    assert made.plain.sides == ("agreement", "agreement")
    np.testing.assert_array_equal(made.plain.weights, np.zeros(2))
    assert made.rows[0]["eta"] == (0.0, 0.0)
    assert made.rows[0]["side"] == ("agreement", "agreement")
    assert made.rows[0]["measure"] == np.abs(made.plain.parts).max()
    answer = made.answer("psi", made.plain, None)
    assert (answer.eta, answer.side) == ((0.0, 0.0), ("agreement", "agreement"))
    assert answer.value == np.abs(made.plain.parts).max()
    assert not answer.reached


def test_a_plain_model_within_the_limit_is_the_answer_unless_it_is_none_to_be_used():
    made = study(limit=1.0)
    assert made.of(nerm.Logistic()) is made.plain
    assert len(made.points) == 1
    made.plain = at(made, np.ones(200), eta=0.0)
    assert made.of(nerm.Logistic()) is None
    made.among_classes = True  # of one class among several it is
    assert made.of(nerm.Logistic()) is made.plain
    assert [point for _, point in made.nearest[1:]] == [made.plain] * 2


def test_the_limit_itself_is_within_the_limit():
    made = study(limit=float(study().plain.value))
    assert made.of(nerm.Logistic()) is made.plain


def test_what_is_kept_of_the_positive_rates():
    made = study(keep=0.5)
    made.plain = at(made, scores_with((0.5, 0.8)), eta=0.0)
    rates = made.trial.rates(made.plain.scores)[0]
    made.keep = 1.0
    assert made.objection(at(made, made.plain.scores)) == ""  # as much as is kept is enough
    made.keep = 0.5
    few = made.objection(at(made, scores_with((0.2, 0.7))))
    assert (
        few
        == f"{made.trial.rates(scores_with((0.2, 0.7)))[0, 0]:.1%} of the group viewpoint - would get yes, "
        + (f"{rates[0]:.1%} without neutrality")
    )
    made.keep = 1.0  # the group that is named has lost; the other is as it was
    assert "the group viewpoint + would get yes" in made.objection(at(made, scores_with((rates[0], 0.6))))


def test_solutions_that_are_none_to_be_used():
    made = study(keep=0.5)
    assert made.objection(made.plain) == ""
    assert made.objection(at(made, np.ones(200))) == "it says the same to everybody"
    assert (
        made.objection(at(made, -np.ones(200), 0.0)) == "the plain model already says the same to everybody"
    )
    assert made.objection(at(made, -made.plain.scores)) == "it ranks no better than chance"
    doubtful = replace(made.plain.solution, status=nerm.Status.INACCURATE)
    assert made.objection(replace(made.plain, solution=doubtful)) == "its solution was not certified"
    made.keep = 0.0
    assert made.objection(at(made, np.ones(200))) == ""


def test_solves_are_as_exact_as_any_other():
    assert Asking(0.1).tol == inspect.signature(nerm.Problem.solve).parameters["tol"].default


def test_a_refusal_names_the_nearest():
    made = study(limit=0.01)
    near, far = replace(made.plain, parts=np.array([0.02])), replace(made.plain, parts=np.array([-0.3]))
    made.nearest = [(nerm.Hinge(), far), (nerm.Logistic(), near)]
    error = made.refusal([nerm.Hinge(), nerm.Logistic()])
    assert (
        "none with Hinge(), Logistic(): the nearest has 0.0200 with Logistic() at eta 0, and that is beyond"
        in str(error)
    )
    assert error.best.value == 0.02
    constant = replace(made.plain, parts=np.array([0.01]), scores=np.ones(200), weights=np.array([2.5]))
    made.nearest.append((nerm.Hinge(), constant))
    assert "0.0100 with Hinge() at eta 2.5, and it says the same to everybody" in str(
        made.refusal([nerm.Hinge()])
    )
