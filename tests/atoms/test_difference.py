"""The ramp and differences of convex functions of one's own, against their formulas in plain numpy."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import nerm
from nerm.atoms.losses import HingePiece
from nerm.testing import check_margin_function


def ramp(m, width=1.0):
    """min(1, max(0, (1 - m / width) / 2)), in plain loops."""
    return np.array([min(1.0, max(0.0, (1 - x / width) / 2)) for x in np.ravel(m)]).reshape(np.shape(m))


def around(*kinks):
    return np.unique([*(k + s for k in kinks for s in (-1e-3, 0.0, 1e-3)), *np.linspace(-5, 5, 41)])


@pytest.mark.parametrize("width", [0.1, 1.0, 3.0])
def test_the_ramp_is_its_formula_and_its_parts(width):
    atom, m = nerm.Ramp(width), around(-width, width)
    np.testing.assert_allclose(atom.value(m), ramp(m, width), atol=1e-15)
    assert atom.value(m).max() == 1.0
    assert atom.value(m).min() == 0.0
    convex, subtracted, two_sided = atom.parts
    np.testing.assert_allclose(convex.value(m) - subtracted.value(m), ramp(m, width), atol=1e-12)
    np.testing.assert_allclose(two_sided.value(m), np.abs(1 - m / width) / 2, atol=1e-12)
    dead = np.maximum(0, np.abs(m / width) - 1) / 2  # even in m, so equal for both sides
    np.testing.assert_allclose(two_sided.value(m) - dead, ramp(m, width), atol=1e-12)
    np.testing.assert_allclose(subtracted.value(m) + subtracted.value(-m), dead, atol=1e-12)
    np.testing.assert_allclose(atom.value(m) + atom.value(-m), 1.0, atol=1e-15)
    for part in atom.parts:
        check_margin_function(part)


def test_slopes_of_the_ramp_hold_its_secants():
    atom, step = nerm.Ramp(0.5), 1e-7
    m = around(-0.5, 0.5)
    low, high = atom.subgradient(m)
    for secant in ((ramp(m + step, 0.5) - ramp(m, 0.5)) / step, (ramp(m, 0.5) - ramp(m - step, 0.5)) / step):
        assert np.all((low - 1e-6 <= secant) & (secant <= high + 1e-6))
    assert atom.facts.slopes == (-1.0, 0.0)
    assert (atom.facts.at_zero, atom.facts.minimum, atom.facts.monotone) == (0.5, 0.0, "decreasing")


def test_lines_keep_the_contract_of_margin_functions():
    for lines in (
        HingePiece(1.0, 0.0, -1.0, 0.0),
        HingePiece(-0.25, 0.0, -0.5, 2.0),
        HingePiece(2.0, 0.0, 1.0, 1.0),
    ):
        check_margin_function(lines)
    np.testing.assert_array_equal(
        HingePiece(1.0, 0.0, -1.0, 0.0).value([0.0, 2.0]), nerm.Hinge().value([0.0, 2.0])
    )


@pytest.mark.long
def test_a_difference_of_ones_own():
    mine = nerm.dc_function(convex=lambda m: cp.pos(1 - m), concave=lambda m: -cp.pos(-1 - m), name="mine")
    later = nerm.margin_function(lambda m: cp.pos(-1 - m), name="later")
    subtracted = nerm.dc_function(convex=nerm.Hinge(), concave=later, name="mine")
    m = around(-1.0, 1.0)
    for atom in (mine, subtracted):
        np.testing.assert_allclose(atom.value(m), 2 * ramp(m), atol=1e-12)
        assert atom.value(np.zeros((2, 3))).shape == (2, 3)
        np.testing.assert_allclose(atom.parts.two_sided.value(m), np.abs(1 - m), atol=1e-12)
        assert not atom.facts.surrogate_only
        low, high = atom.subgradient(m)
        assert np.all(low <= high)
    check_margin_function(subtracted.parts.two_sided)
    assert repr(1.0 * nerm.Risk(subtracted)).startswith("Risk(CustomDCFunction(label='mine'")
    assert str(1.0 * nerm.Risk(mine)) == "minimise mean mine(y f)"
    affine = nerm.dc_function(
        convex=lambda m: cp.square(m), concave=lambda m: 1 - m
    )  # affine is concave: added
    np.testing.assert_allclose(affine.value(m), m**2 + 1 - m, atol=1e-12)


def test_slopes_of_a_difference_hold_its_secants():
    """Of both parts, whose slopes have either sign, at kinks and between."""
    mine = nerm.dc_function(
        convex=lambda m: cp.abs(m - 1) + 0.5 * m,
        concave=lambda m: -0.5 * cp.abs(m + 1) + 0.25 * m,
        name="mine",
    )
    m, step = around(-1.0, 1.0), 1e-6
    low, high = mine.subgradient(m)
    for side in (-step, step):
        secant = (mine.value(m + side) - mine.value(m)) / side
        assert np.all((low - 1e-6 <= secant) & (secant <= high + 1e-6))
    assert np.all(high - low <= 3 + 1e-6)
    smooth = np.abs(np.abs(m) - 1) > 1e-2
    np.testing.assert_allclose(high[smooth] - low[smooth], 0.0, atol=1e-5)


@pytest.mark.long
def test_smooth_parts_make_a_smooth_whole_that_the_engine_takes():
    later = nerm.margin_function(lambda m: cp.logistic(-1 - m))
    sigmoid = nerm.dc_function(convex=nerm.Logistic(), concave=later)
    check_margin_function(sigmoid.parts.two_sided)
    m, h = np.linspace(-3, 3, 7) + 0.1, 1e-3
    bend = (
        sum(sign * sigmoid.parts.two_sided.value(m + k * h) for k, sign in ((-1, 1), (0, -2), (1, 1))) / h**2
    )
    np.testing.assert_allclose(sigmoid.parts.two_sided.curvature(m), bend, rtol=1e-4)


def test_what_is_no_difference_is_refused():
    wavy = lambda m: cp.pos(m) - cp.square(m)  # noqa: E731
    with pytest.raises(nerm.InvalidInputError, match="'convex part of phi' must be convex by cvxpy's rules"):
        nerm.dc_function(convex=wavy, concave=lambda m: -cp.square(m))
    for concave in (wavy, lambda m: cp.square(m)):
        with pytest.raises(
            nerm.InvalidInputError, match="'minus the concave part of wavy' must be convex by cvxpy's rules"
        ):
            nerm.dc_function(convex=lambda m: cp.square(m), concave=concave, name="wavy")
    with pytest.raises(nerm.InvalidInputError, match="must map a cvxpy expression to a cvxpy expression"):
        nerm.dc_function(convex=lambda m: cp.square(m), concave=lambda m: "no")
    with pytest.raises(nerm.InvalidInputError, match="must work elementwise"):
        nerm.dc_function(convex=lambda m: cp.square(m), concave=lambda m: -cp.sum(m))
    with pytest.raises(nerm.InvalidInputError, match="the convex part of phi must be convex"):
        nerm.dc_function(convex=nerm.Ramp(), concave=nerm.Hinge())
    for width in (0.0, -1.0, np.nan, "wide"):
        with pytest.raises(nerm.InvalidInputError, match="'width' must be"):
            nerm.Ramp(width)


def test_a_loss_must_be_bounded_below():
    unbounded = nerm.dc_function(convex=lambda m: cp.pos(m), concave=lambda m: -cp.abs(m))  # -|m| for m < 0
    assert unbounded.facts.surrogate_only
    with pytest.raises(nerm.InvalidInputError, match="a loss must be bounded below"):
        nerm.Risk(unbounded)
    assert nerm.Neutrality(unbounded).side == "both"
    with pytest.raises(nerm.UnsupportedProblemError, match="can be combined"):
        nerm.Ramp() + nerm.Ramp()


@pytest.mark.parametrize(
    "ask", [lambda a: a.conjugate(0.0), lambda a: a.prox(0.0), lambda a: a.expression(cp.Variable(2))]
)
def test_what_only_convex_functions_have_is_refused(ask):
    with pytest.raises(
        nerm.UnsupportedProblemError, match=r"Got Ramp\(width=1.0\), a difference of convex functions"
    ):
        ask(nerm.Ramp())


def test_bounds_know_that_it_is_not_convex():
    from nerm.bounds.theorems import extremes, slope_and_range

    assert slope_and_range(nerm.Ramp(0.5), 4.0, "surrogate") == (1.0, 1.0)
    assert extremes(nerm.Ramp(), 4.0, "surrogate") == (0.0, 1.0)
    bump = nerm.dc_function(convex=lambda m: cp.pos(cp.abs(m) - 1), concave=lambda m: -cp.abs(m), name="bump")
    m = np.linspace(-4, 4, 801)
    slope, width = slope_and_range(bump, 4.0, "surrogate")
    assert slope >= np.abs(np.diff(bump.value(m)) / np.diff(m)).max() - 1e-9
    assert width >= np.ptp(bump.value(m))
    low, high = extremes(bump, 4.0, "surrogate")
    assert low <= bump.value(m).min()
    assert high >= bump.value(m).max()
