"""Intervals of rates and differences against their definition and the literature."""

from __future__ import annotations

import math

import pytest
from scipy.stats import norm

from nerm.report.measuring import absolute_interval, difference_interval, rate_interval


@pytest.mark.parametrize(("count", "n"), [(1, 9), (7, 30), (150, 200), (3, 45000)])
def test_rate_interval_solves_wilsons_equation(count, n):
    z = norm.ppf(0.975)
    for q in rate_interval(count, n):
        assert abs(count / n - q) == pytest.approx(z * math.sqrt(q * (1 - q) / n))


@pytest.mark.parametrize(  # Newcombe 1998, table II, method 10
    ("one", "other", "low", "high"),
    [
        ((56, 70), (48, 80), 0.0524, 0.3339),
        ((9, 10), (3, 10), 0.1705, 0.8090),
        ((6, 7), (2, 7), 0.0582, 0.8062),
        ((5, 56), (0, 29), -0.0381, 0.1926),
        ((10, 10), (0, 10), 0.6075, 1.0),
    ],
)
def test_difference_interval_is_newcombes(one, other, low, high):
    assert difference_interval(one, other) == pytest.approx((low, high), abs=1e-4)
    assert difference_interval(other, one) == pytest.approx((-high, -low), abs=1e-4)


def test_intervals_of_no_rows():
    assert rate_interval(0, 0) == (0, 1)
    assert difference_interval((0, 0), (3, 5)) == (-1, 1)


@pytest.mark.parametrize(
    ("given", "sizes"), [((-0.2, 0.1), (0, 0.2)), ((0.1, 0.2), (0.1, 0.2)), ((-0.2, -0.1), (0.1, 0.2))]
)
def test_absolute_interval(given, sizes):
    assert absolute_interval(given) == sizes
