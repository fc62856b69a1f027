"""Neutrality weights against the definitions, by loops that share no code with them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nerm import metrics
from nerm.errors import InvalidInputError, UnknownNameError
from nerm.weights import balanced_weights, equal_opportunity_weights, resolve, within

pairs = st.lists(st.tuples(st.sampled_from([-1, 1]), st.sampled_from([-1, 1])), min_size=2, max_size=30)


@given(pairs)
def test_balanced_weights_give_each_viewpoint_half_of_the_total(rows):
    v = [a for a, _ in rows]
    if len(set(v)) < 2:
        with pytest.raises(InvalidInputError, match=r"some row must have viewpoint [+-]1\. Got none among"):
            balanced_weights(v)
        return
    u = balanced_weights(v)
    for value in (-1, 1):
        assert sum(u[i] for i in range(len(v)) if v[i] == value) == pytest.approx(len(v) / 2, rel=1e-12)
    assert np.mean(u) == pytest.approx(1.0, rel=1e-12)
    assert [u[i] for i in range(len(v))] == pytest.approx([len(v) / (2 * v.count(a)) for a in v], rel=1e-14)


@given(pairs)
def test_equal_opportunity_weights_balance_the_positives_and_drop_the_rest(rows):
    v, y = [a for a, _ in rows], [b for _, b in rows]
    if rows.count((1, 1)) == 0 or rows.count((-1, 1)) == 0:
        with pytest.raises(InvalidInputError, match=r"viewpoint [+-]1 and y = \+1"):
            equal_opportunity_weights(y, v)
        return
    u = equal_opportunity_weights(y, v)
    expected = [len(v) / (2 * rows.count((a, 1))) if b == 1 else 0.0 for a, b in rows]
    assert u.tolist() == pytest.approx(expected, rel=1e-14)


def test_a_row_of_weight_two_is_two_rows():
    v, y, s = [1, 1, -1, -1], [1, 1, 1, -1], [2, 1, 1, 3]
    twice = np.repeat(np.arange(4), s)
    for weights in ("balanced", "equal_opportunity"):
        once = resolve(weights, y, v, sample_weight=s)
        spelled_out = resolve(weights, np.array(y)[twice], np.array(v)[twice])
        assert once[twice] == pytest.approx(spelled_out, rel=1e-14)


def test_real_viewpoints_count_by_their_sign_and_zero_counts_as_minus_one():
    assert balanced_weights([0.3, 0.0, -2.0, 7.0]).tolist() == [1, 1, 1, 1]


@pytest.mark.parametrize("uniform", ["uniform", None, 1.0])
def test_uniform_is_all_ones_even_for_a_constant_viewpoint(uniform):
    assert resolve(uniform, None, [1, 1, 1]).tolist() == [1, 1, 1]


def test_an_array_passes_through_checked():
    assert resolve([0, 2, 1], None, [1, 1, -1]).tolist() == [0, 2, 1]
    with pytest.raises(InvalidInputError, match=r"'weights' must be nonnegative. Got -1 at index 1"):
        resolve([0, -1, 1], None, [1, 1, -1])
    with pytest.raises(InvalidInputError, match=r"'weights' must have one entry for each of the 3 rows"):
        resolve([1, 1], None, [1, 1, -1])


def test_bad_input_is_named():
    with pytest.raises(
        UnknownNameError,
        match=r"'balanced', 'conditional', 'equal_opportunity', 'predictive_equality', 'uniform'. Got 'parity'",
    ):
        resolve("parity", None, [1, -1])
    with pytest.raises(InvalidInputError, match=r"'viewpoint' must be finite. Got nan at index 1"):
        balanced_weights([1, np.nan])
    with pytest.raises(InvalidInputError, match=r"some row must have viewpoint -1. Got none among 0 rows"):
        balanced_weights([])
    with pytest.raises(InvalidInputError, match=r"'y' must hold -1 and \+1 only. Got 0 at index 1"):
        equal_opportunity_weights([1, 0], [1, -1])


@pytest.mark.parametrize("value", [-1.0, 1.0])
def test_the_group_that_is_missing_is_named(value):
    with pytest.raises(InvalidInputError) as caught:
        balanced_weights(np.full(4, value))
    assert f"some row must have viewpoint {-value:+.0f}. Got none" in str(caught.value)


strata_and_sides = st.lists(
    st.tuples(st.sampled_from("abc"), st.sampled_from([-1, 1]), st.sampled_from([-1, 1])),
    min_size=2,
    max_size=40,
)


@given(strata_and_sides)
def test_within_strata_weighted_c_sgn_is_the_mean_difference_of_rates_by_share_of_rows(rows):
    strata, v, f = (list(column) for column in zip(*rows, strict=True))
    mixed = [s for s in set(strata) if {side for other, side, _ in rows if other == s} == {-1, 1}]
    if not mixed:
        with pytest.raises(InvalidInputError, match=r"some stratum must have rows of both groups\. Got"):
            within(strata, v)
        return
    u, total, expected = within(strata, v), 0, 0.0
    for s in mixed:
        own = [(side, score) for other, side, score in rows if other == s]
        rates = [[score > 0 for side, score in own if side == group] for group in (1, -1)]
        one, other = (sum(yes) / len(yes) for yes in rates)
        total, expected = total + len(own), expected + len(own) * (one - other)
    assert np.mean(u) == pytest.approx(1.0, rel=1e-12)
    assert all(u[i] == 0 for i in range(len(v)) if strata[i] not in mixed)
    assert metrics.neutrality_risk(f, v, u) == pytest.approx(abs(expected) / total, abs=1e-12)


def test_one_stratum_is_balanced_and_a_row_of_weight_two_is_two_rows():
    v, s, strata = [1, 1, -1, -1, 1], [2, 1, 1, 3, 2], [1, 1, 1, 2, 2]
    assert within(np.zeros(5), v).tolist() == pytest.approx(balanced_weights(v).tolist(), rel=1e-14)
    twice = np.repeat(np.arange(5), s)
    spelled_out = within(np.array(strata)[twice], np.array(v)[twice])
    assert within(strata, v, s)[twice] == pytest.approx(spelled_out, rel=1e-14)


def test_strata_that_do_not_fit_the_rows_are_named():
    with pytest.raises(InvalidInputError, match=r"'strata' must have one entry for each of the 3 rows"):
        within(["a", "b"], [1, -1, 1])
    with pytest.raises(InvalidInputError, match=r"'strata' must .* Got nan at index 1"):
        within([1.0, np.nan, 1.0], [1, -1, 1])
