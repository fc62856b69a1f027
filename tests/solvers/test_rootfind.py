"""The bracketing root finder."""

import math

import pytest

from nerm.solvers.rootfind import Bracket

FUNCTIONS = {
    "line": (lambda x: 3.0 - x, 3.0),
    "convex": (lambda x: math.exp(-x) - 0.01, math.log(100.0)),
    "flat then steep": (lambda x: 1e-6 if x < 2.0 else 1e-6 - (x - 2.0), 2.0 + 1e-6),
    "jump": (lambda x: 1.0 if x < math.e else -5.0, math.e),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_bracket_converges_from_both_sides(name):
    function, root = FUNCTIONS[name]
    bracket = Bracket()
    for x in (0.0, 10.0):
        bracket.add(x, function(x))
    while bracket.high - bracket.low > 1e-9 and function(bracket.high) < 0:
        x = bracket.next()
        assert bracket.low < x < bracket.high
        bracket.add(x, function(x))
        assert bracket.low <= root <= bracket.high
    assert bracket.high == pytest.approx(root, abs=1e-8)


def test_bracket_forgets_an_end():
    bracket = Bracket(low=0.0, low_value=1.0)
    assert not bracket.is_closed
    bracket.add(1.0, -1.0)
    assert bracket.is_closed
    assert bracket.next() == 0.5
    bracket.open(-1)
    assert not bracket.is_closed
    assert bracket.low == 0.0
