"""Intervals of rates and differences against scipy's, the literature's and the definition."""

from __future__ import annotations

import math

import pytest
from scipy.stats import binomtest, norm

from nerm.intervals import absolute_interval, difference_interval, rate_interval


@pytest.mark.parametrize(("count", "n"), [(0, 9), (1, 9), (9, 9), (50, 200), (3, 45000), (1, 1)])
@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_rates_are_wilsons(count, n, confidence):
    expected = binomtest(count, n).proportion_ci(confidence, method="wilson")
    assert rate_interval(count, n, confidence) == pytest.approx((expected.low, expected.high), abs=1e-12)


@pytest.mark.parametrize(("count", "n"), [(1, 9), (7, 30), (150, 200)])
def test_an_end_is_where_the_rate_is_just_not_refused(count, n):
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
def test_differences_are_newcombes(one, other, low, high):
    assert difference_interval(one, other) == pytest.approx((low, high), abs=1e-4)
    assert difference_interval(other, one) == pytest.approx((-high, -low), abs=1e-4)


def test_nobody_says_nothing():
    assert rate_interval(0, 0) == (0, 1)
    assert difference_interval((0, 0), (3, 5)) == (-1, 1)


@pytest.mark.parametrize(
    ("given", "sizes"), [((-0.2, 0.1), (0, 0.2)), ((0.1, 0.2), (0.1, 0.2)), ((-0.2, -0.1), (0.1, 0.2))]
)
def test_sizes(given, sizes):
    assert absolute_interval(given) == sizes
