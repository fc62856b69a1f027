"""The search for weights, on measures that are formulas: the answer is known by hand."""

from __future__ import annotations

import numpy as np
import pytest

import nerm
from nerm.neutralize.search import Search, damped_secant
from nerm.neutralize.target import Candidate, Target

LIMIT = 0.05
LOGISTIC = nerm.Logistic()


class FormulaSearch(Search):
    """A search in which the candidate at weights x has the parts curve(x)."""

    def __init__(self, curve, limit=LIMIT, count=1, first=None):
        X, v = np.array([[1.0], [2.0], [-1.0]]), [1, -1, 1]
        problem = (nerm.Risk(nerm.Hinge()) + nerm.SquaredL2()).on(X, [1, 1, -1], viewpoint=v)
        target, every = Target(limit, keep=0.0), np.ones(3, dtype=bool)
        super().__init__(problem, target, ("viewpoint",), np.ones(3), every, first=first)
        self.curve = curve
        self.starts = []
        self.plain = self.solve(None, np.zeros(count), None)

    def solve(self, surrogate, weights, start):
        self.starts.append(None if start is None else start.weights)
        found = Candidate(surrogate, weights, None, np.zeros(3), np.atleast_1d(self.curve(weights)))
        self.history.candidates.append(found)
        return found

    def objection(self, candidate):
        return ""

    @property
    def tried(self):
        return self.history.of(LOGISTIC)


CURVES = {  # falling from a measure beyond the limit through 0, at weights of very different sizes
    "straight": lambda x: 0.4 - 0.3 * x[:1],
    "early": lambda x: 0.4 - 40 * x[:1],
    "late": lambda x: 0.4 - 0.004 * x[:1],
    "bent": lambda x: 0.5 - np.sqrt(np.abs(x[:1])),
    "saturated": lambda x: 0.4 - 0.6 * np.tanh(x[:1] / 5),
    "steep": lambda x: -np.tanh(8 * (x[:1] - 2.0)),
    "flat": lambda x: 0.45 / (1 + x[:1]) ** 2 - 0.02,
}


@pytest.mark.parametrize("limit", [0.1, 0.01])
@pytest.mark.parametrize("opposed", [False, True])
@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_one_weight_fills_the_limit(curve, opposed, limit):
    search = FormulaSearch((lambda x: -curve(-x)) if opposed else curve, limit)
    best = search.find(LOGISTIC)
    assert 0.5 * limit <= best.value <= limit
    assert np.sign(best.weights[0]) == (-1 if opposed else 1)


def test_one_weight_stays_within_the_bracket():
    for curve in CURVES.values():
        search = FormulaSearch(curve, 0.001)
        search.find(LOGISTIC)
        low, high = 0.0, np.inf
        for found in search.tried:
            assert low < found.weights[0] < high
            low, high = (found.weights[0], high) if found.parts[0] > 0.001 else (low, found.weights[0])


@pytest.mark.parametrize("at", [0.07, 1.3, 40.0])
def test_jump_over_the_limit_is_enclosed(at):
    search = FormulaSearch(lambda x: np.where(x[:1] < at, 0.4, -0.3))
    assert search.find(LOGISTIC) is None
    closest = search.history.closest(LIMIT)
    assert (closest.value, closest.weights[0] >= at) == (0.3, True)
    etas = np.array([found.etas[0] for found in search.tried])
    assert etas[etas >= at].min() < 1.3 * etas[etas < at].max()


def test_known_candidates_are_not_solved_again():
    search = FormulaSearch(CURVES["straight"])
    best = search.find(LOGISTIC)
    count = len(search.tried)
    assert search.find(LOGISTIC) is best
    assert len(search.tried) == count


def test_of_all_within_the_limit_the_least_weight_is_found():
    search = FormulaSearch(lambda x: 0.04 * np.cos(x[:1]) + 0.06 * (x[:1] < 0.2))
    for weight in (3.0, 0.7, 2.0):
        search.solve(LOGISTIC, np.array([weight]), search.plain)
    assert search.find(LOGISTIC).etas == (0.7,)


def test_measure_that_never_falls_ends_with_the_closest():
    search = FormulaSearch(lambda x: 0.2 + 0.2 / (1 + x[:1]))
    assert search.find(LOGISTIC) is None
    assert search.history.closest(LIMIT).value == min(found.value for found in search.tried)
    etas = [found.etas[0] for found in search.tried]
    assert etas == sorted(etas)
    assert etas[-1] > 1e4


@pytest.mark.parametrize("seed", range(3))
def test_several_weights_meet_the_limit(seed):
    rng = np.random.default_rng(seed)
    n = 2 + seed % 3
    mixing = 3 * np.eye(n) + rng.normal(size=(n, n)) / n
    signs = np.sign(rng.normal(size=n))
    search = FormulaSearch(lambda x: signs * 0.4 - np.tanh(mixing @ x), 0.03, n)
    assert search.find(LOGISTIC).value <= 0.03


@pytest.mark.parametrize("n", [2, 5])
def test_damped_secant_solves_linear_measures_at_once(n):
    rng = np.random.default_rng(n)
    turn = np.linalg.qr(rng.normal(size=(n, n)))[0]
    begin = np.sign(rng.normal(size=n)) * rng.uniform(0.5, 1.0, n)
    found = damped_secant(
        lambda x, _: (begin - turn @ x, None), np.zeros(n), (begin, None), np.full(n, 0.7), 0.02
    )
    assert len(found) == n + 1  # one step of each weight, and one of all
    assert np.abs(found[-1][0]).max() <= 0.02


def test_damped_secant_stops_where_weights_move_nothing():
    ones = np.ones(2)
    assert len(damped_secant(lambda x, _: (ones, None), np.zeros(2), (ones, None), ones, 0.1)) < 20
