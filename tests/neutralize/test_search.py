"""The searches for weights, on measures that are formulas: what is found can be worked out by hand."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import nerm
from nerm.neutralize.search import Attempt, Measured, WeightSearch, damped_secant

LIMIT = 0.05


def search(curve, limit=LIMIT, known=(), surrogate=None, **options):
    """Return a search in which the solution at weights x has the parts curve(x), and where it has been."""
    asked, noted = [], []

    def solve(surrogate, etas, sides, start):
        signs = [1 if side == "agreement" else -1 for side in sides]
        asked.append((np.multiply(etas, signs), start))
        return asked[-1][0]

    trial = SimpleNamespace(solve=solve, scores=np.sin, measured=lambda scores: curve(np.arcsin(scores)))
    plain = point(curve, np.zeros(len(curve(np.zeros(9)))))
    note = lambda surrogate, point: noted.append(point)  # noqa: E731
    found = WeightSearch(
        trial,
        surrogate or nerm.Logistic(),
        limit,
        plain,
        note,
        curve,
        known=[point(curve, x) for x in known],
        **options,
    )
    return found, asked, noted


def point(curve, x):
    x = np.atleast_1d(np.asarray(x, dtype=float))
    return Attempt(np.atleast_1d(curve(x)), x, ("agreement",) * len(x), x, np.sin(x))


CURVES = {  # falling from a measure beyond the limit through 0, at weights of very different sizes
    "straight": lambda x: 0.4 - 0.3 * x[:1],
    "early": lambda x: 0.4 - 40 * x[:1],
    "late": lambda x: 0.4 - 0.004 * x[:1],
    "bent": lambda x: 0.5 - np.sqrt(np.abs(x[:1])),
    "saturated": lambda x: 0.4 - 0.6 * np.tanh(x[:1] / 5),
    "steep": lambda x: -np.tanh(8 * (x[:1] - 2.0)),
    "flat": lambda x: 0.45 / (1 + x[:1]) ** 2 - 0.02,
}


@pytest.mark.parametrize("limit", [0.1, 0.05, 0.01])
@pytest.mark.parametrize("opposed", [False, True])
@pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)
def test_one_weight_makes_the_measure_as_large_as_the_limit_allows(curve, opposed, limit):
    turned = (lambda x: -curve(-x)) if opposed else curve
    found, asked, noted = search(turned, limit)
    best, *_ = found.run()
    assert 0.5 * limit <= best.value <= limit
    assert np.sign(best.weights[0]) == (-1 if opposed else 1)
    assert best.sides == ("disagreement" if opposed else "agreement",)
    assert noted == [p for p in noted if p.parts == turned(p.weights)]
    for p, (x, _) in zip(noted, asked, strict=True):
        np.testing.assert_array_equal(p.weights, x)
        np.testing.assert_array_equal(p.scores, np.sin(x))
        assert p.etas == (abs(x[0]),)


def test_no_solve_leaves_the_bracket_of_those_before():
    for curve in CURVES.values():
        _, asked, noted = (found := search(curve, 0.001))
        found[0].run()
        low, high = 0.0, np.inf
        for p in noted:
            assert low < p.weights[0] < high
            low, high = (p.weights[0], high) if p.parts[0] > 0.001 else (low, p.weights[0])
        starts = [float(np.max(start)) for _, start in asked]  # from the last one before the limit
        assert starts == [
            max([0.0, *(x for x, _ in asked[:i] if curve(x) > 0.001)]) for i in range(len(asked))
        ]


@pytest.mark.parametrize("at", [0.07, 1.3, 40.0])
def test_a_jump_over_the_limit_is_closed_in_and_both_its_sides_are_known(at):
    curve = lambda x: np.where(x[:1] < at, 0.4, -0.3)  # noqa: E731
    found, _, noted = search(curve)
    nearest, *rest = found.run()
    assert (nearest.value, nearest.weights[0] >= at) == (0.3, True)
    assert all(a.value <= b.value for a, b in zip([nearest, *rest], rest, strict=False))
    etas = np.array([p.etas[0] for p in noted])
    assert etas[etas >= at].min() < 1.3 * etas[etas < at].max()
    assert len(noted) <= 14


def test_a_narrow_bracket_ends_the_search():
    curve = lambda x: np.where(x[:1] < 2.0, 0.4, -0.3)  # noqa: E731
    found, _, noted = search(curve, known=[1.9995, 2.0001])
    found.run()
    assert not noted
    found, _, noted = search(curve, known=[1.9, 2.1])
    found.run()
    assert noted
    assert all(1.9 < p.etas[0] < 2.1 for p in noted)


def test_what_is_known_is_not_solved_again():
    curve = CURVES["straight"]
    found, _, noted = search(curve, known=[0.3, 1.2])  # the second is within the limit, and near enough
    assert found.run()[0].etas == (1.2,)
    assert not noted
    found, _, noted = search(curve, known=[0.3, 0.9])
    best = found.run()[0]
    assert 0.5 * LIMIT <= best.value <= LIMIT
    assert all(p.etas[0] > 0.9 for p in noted)


def test_of_all_points_within_the_limit_the_least_neutralised_is_first():
    found, _, _ = search(lambda x: 0.04 * np.cos(x[:1]) + 0.06 * (x[:1] < 0.2), known=[3.0, 0.7, 2.0])
    points = found.run()
    assert [p.etas[0] for p in points] == sorted(p.etas[0] for p in points)
    assert points[0].etas == (0.7,)


def test_a_measure_that_never_falls_ends_with_the_nearest():
    found, _, noted = search(lambda x: 0.2 + 0.2 / (1 + x[:1]))
    points = found.run()
    assert points[0].value == min(p.value for p in noted)
    assert len(noted) <= 14
    assert noted[-1].etas[0] > 1e4  # it has been far
    assert [p.etas[0] for p in noted] == sorted(p.etas[0] for p in noted)


def test_an_increasing_surrogate_punishes_on_the_other_side():
    falling, rising = (search(CURVES["straight"], surrogate=s)[0] for s in (nerm.Hinge(), nerm.Identity()))
    assert nerm.Identity().facts.monotone == "increasing"
    assert [falling._side(way) for way in (1.0, 0.0, -1.0)] == ["agreement", "agreement", "disagreement"]
    assert [rising._side(way) for way in (1.0, 0.0, -1.0)] == ["disagreement", "disagreement", "agreement"]


def test_growing_weights_stay_below_the_largest():
    found, _, _ = search(CURVES["straight"], first=0.5)
    assert found._larger(0.0, np.inf) == 0.5
    assert found._larger(0.0, 0.5) == 0.25
    assert found._larger(2.0, np.inf) > 2.0
    for eta in (0.0, 1.0, 7.9):
        assert eta < found._larger(eta, 8.0) < 8.0


def test_a_straight_line_is_met_in_the_middle_of_what_is_near_enough():
    found, _, _ = search(CURVES["straight"])
    for low, high in ((0.0, 2.0), (1.0, 1.3), (0.5, 3.0)):
        ends = [(x, float(0.4 - 0.3 * x)) for x in (low, high)]
        x = found._between(*ends, [1.0, 1.0])
        assert 0.4 - 0.3 * x == pytest.approx(0.75 * LIMIT)
        assert (
            found._between(*ends, [1.0, 0.5]) > x > found._between(*ends, [0.5, 1.0])
        )  # the lighter end is left
    inner = [found._between((0.0, 0.4), (1.0, under), [1.0, 1.0]) for under in (0.75 * LIMIT, 0.03749, -1e9)]
    assert all(0.0 < x < 1.0 for x in inner)
    assert (
        found._between((0.0, 0.03), (1.0, 0.04), [1.0, 1.0]) == 0.5
    )  # of a bracket that says nothing, the middle


@pytest.mark.parametrize("above", [True, False])
def test_an_end_that_stays_twice_counts_half(above):
    halved = [1.0, 0.5] if above else [0.5, 1.0]
    stays = 1 if above else -1
    assert WeightSearch._illinois([1.0, 1.0], above, stays) == halved
    assert WeightSearch._illinois(halved, above, stays) == [weight**2 for weight in halved]
    assert WeightSearch._illinois(halved, above, -stays) == [1.0, 1.0]
    assert WeightSearch._illinois([1.0, 1.0], above, 0) == [1.0, 1.0]


@pytest.mark.parametrize("n", [2, 3, 5])
def test_several_weights_of_a_linear_measure_are_found_at_once(n):
    rng = np.random.default_rng(n)
    turn = np.linalg.qr(rng.normal(size=(n, n)))[0]
    begin = np.sign(rng.normal(size=n)) * rng.uniform(0.5, 1.0, n)

    def evaluate(x, start):
        return Measured(begin - turn @ x)

    points = damped_secant(evaluate, np.zeros(n), Measured(begin), np.full(n, 0.7), 0.02)
    assert len(points) == n + 1  # one step of each weight, and one of all
    assert 0.009 <= points[-1].value <= 0.02
    for k in range(n):
        np.testing.assert_allclose(points[k].parts, begin - 0.7 * turn[:, k], atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_several_weights_of_bent_measures(seed):
    rng = np.random.default_rng(seed)
    n = 2 + seed % 3
    mixing = 3 * np.eye(n) + rng.normal(size=(n, n)) / n
    signs = np.sign(rng.normal(size=n))
    seen = []

    def curve(x):
        return signs * 0.4 - np.tanh(mixing @ x[:n])

    found, asked, noted = search(curve, 0.03)
    points = found.run()
    assert points[0].value <= 0.03
    assert [sum(p.etas) for p in points] == sorted(sum(p.etas) for p in points)
    starts = {tuple(np.round(start, 12)) for _, start in asked}
    seen = {tuple(np.round(p.weights, 12)) for p in noted} | {(0.0,) * n}
    assert starts <= seen  # every solve starts from a solution
    for k in range(n):  # first each weight alone, towards less of its part
        assert np.flatnonzero(asked[k][0]).tolist() == [k]
        assert np.sign(asked[k][0][k]) == signs[k]


def test_what_is_within_half_of_the_limit_is_left_alone():
    begin = np.array([0.4, 0.01])
    points = damped_secant(
        lambda x, start: Measured(begin - x), np.zeros(2), Measured(begin), np.array([0.3, 1e-3]), 0.05
    )
    np.testing.assert_allclose(points[-1].parts, [0.025, 0.01], atol=1e-3)


def test_weights_that_move_nothing_are_given_up():
    points = damped_secant(lambda x, start: start, np.zeros(2), Measured(np.ones(2)), np.ones(2), 0.1)
    assert len(points) < 20


def test_no_step_is_more_than_twice_what_is_known():
    """A part that hardly moves would send its weight to a place where nothing of what was learned holds."""
    asked = []

    def evaluate(x, start):
        asked.append(x)
        return Measured(1 - 1e-3 * x)

    damped_secant(evaluate, np.zeros(2), Measured(np.ones(2)), np.full(2, 0.3), 0.1)
    sizes = np.abs(asked).max(axis=1)
    assert (np.abs(np.diff(asked[2:], axis=0)).max(axis=1) <= 2 * sizes[2:-1] * (1 + 1e-12)).all()
    assert sizes[2] <= 0.6 + 0.3
    assert sizes[-1] > 500  # and yet it gets there
