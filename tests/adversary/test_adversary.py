"""A seeded part of the attack, in the gate; and that its judge would notice."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import nerm
from tests.adversary import files
from tests.adversary.attack import Tally, attack, verdict
from tests.adversary.judge import MARGIN, Judge
from tests.adversary.problems import TIERS, case

ALLOWED = {"tame": 0, "moderate": 1, "extreme": 6}  # of 100 that may stay uncertified


@pytest.mark.long
@pytest.mark.parametrize("tier", TIERS)
def test_a_hundred_hostile_problems(tier):
    tally = Tally()
    for seed in range(100):
        attack(case(tier, seed, largest=12), tally)
    shown = "\n".join([*tally.notes, tally.table()])
    for outcome in ("wrong", "exception", "refused", "warning", "slow"):
        assert tally.total(outcome) == 0, shown
    assert tally.total("gave up") <= ALLOWED[tier], shown


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed",
    [
        911261,  # a group's turn underflows: the share of it that is taken overflowed
        1031,  # numbers too far apart to factor the Newton system
    ],
)
def test_what_ended_in_a_warning_or_an_exception(seed):
    hostile = case("extreme", seed)
    assert verdict(hostile, hostile.problem().solve(tol=1e-6), 1e-6)[0] in ("right", "gave up")


@pytest.mark.parametrize("tier", TIERS)
def test_a_thousand_more(tier):
    tally = Tally()
    for seed in range(1000, 2000):
        attack(case(tier, seed), tally)
    shown = "\n".join([*tally.notes, tally.table()])
    assert all(
        tally.total(outcome) == 0 for outcome in ("wrong", "exception", "refused", "warning", "slow")
    ), shown
    assert tally.total("gave up") <= 10 * ALLOWED[tier], shown


def test_the_judge_notices():
    """An answer a little off that calls itself optimal, a bound too high, a value that is another's."""
    one = case("tame", 3)
    solution = one.problem().solve()
    assert verdict(one, solution, 1e-6)[0] == "right"
    off = replace(solution, coef=solution.coef + 0.01)
    assert verdict(one, off, 1e-6)[0] == "wrong"
    primal = solution.certificate.primal
    high = replace(
        solution, certificate=replace(solution.certificate, dual=primal * (1 + 1e-8), primal=1.1 * primal)
    )
    assert verdict(one, replace(high, status="inaccurate"), 1e-6)[0] in ("wrong", "gave up")
    claimed = replace(solution, certificate=replace(solution.certificate, dual=0.0))
    assert verdict(one, claimed, 1e-6) == ("wrong", "status optimal at a relative gap of 1")


@pytest.mark.parametrize("name", MARGIN)
def test_the_judge_knows_the_functions(name):
    m = np.linspace(-3, 3, 121)
    assert np.allclose(
        nerm.atoms.margin_functions()[name]().value(m), MARGIN[name](m.astype(np.longdouble)).astype(float)
    )


def test_the_judge_values_a_hypothesis_as_nerm_does():
    for tier in TIERS[:2]:
        for seed in range(40):
            one = case(tier, seed, largest=8)
            problem = one.problem()
            size = len(one.y) if one.gamma is not None else one.X.shape[1]
            coef = np.linspace(-1, 1, size) / (1 + abs(one.X).max())
            value, _ = Judge(one).value(coef, 0.25 * one.intercept)
            assert problem.evaluate(coef, 0.25 * one.intercept).total == pytest.approx(float(value), rel=1e-9)


def test_damaged_files_are_refused_or_harmless():
    counts = files.fuzz(30.0, most=200)
    assert set(counts) <= {"refused", "harmless"}, counts
    assert counts["refused"] > counts["harmless"]
