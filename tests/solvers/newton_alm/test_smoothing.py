"""Blocks smoothed around a centre, against a maximum over a grid of multipliers and finite differences."""

import numpy as np
import pytest

import nerm
from nerm.model.blocks import Block
from nerm.solvers.newton_alm.smoothing import Blocks

ATOMS = [nerm.Hinge(), nerm.Pinball(0.5), nerm.SmoothHinge(0.3), nerm.SquaredHinge(), nerm.Identity()]


def one_block(atom, margins):
    n = len(margins)
    return Blocks([Block(atom, np.ones(n), np.ones(n), 0, 0)], np.ones(1), np.ones(1))


@pytest.mark.parametrize("atom", ATOMS, ids=repr)
@pytest.mark.parametrize("tau", [2.0, 0.1])
def test_smoothed_value_is_the_maximum_over_multipliers(atom, tau):
    margins = np.array([-2.0, 0.0, 0.7, 1.0, 1.05, 3.0])  # kinks included
    low, high = atom.facts.slopes
    grid = np.linspace(max(low, -10.0), high, 20_001)
    centre = float(np.clip(-0.4, low, high))
    q = atom.facts.quadratic[1]
    found = one_block(atom, margins).smoothed(margins, np.full((1, 6), centre), tau)
    penalty = 0.5 * max(tau - q, 0.0) * (grid - centre) ** 2
    best = [np.max(grid * m - atom.conjugate(grid) - penalty) for m in margins]
    assert found.values[0] == pytest.approx(sum(best), abs=1e-5)
    assert found.values[0] <= atom.value(margins).sum() + 1e-12
    assert found.conjugates[0] == pytest.approx(atom.conjugate(found.u[0]).sum())


@pytest.mark.parametrize("atom", [*ATOMS, nerm.Logistic(), nerm.Exponential()], ids=repr)
def test_smoothed_derivatives(atom):
    low, high = atom.facts.slopes
    centre = np.full((1, 1), np.clip(-0.4, low, high))
    blocks, h = one_block(atom, [0.0]), 1e-6
    for m in (-1.3, 0.83, 0.97, 1.4):
        at, before, after = (blocks.smoothed(np.array([x]), centre, 0.3) for x in (m, m - h, m + h))
        assert at.u[0, 0] == pytest.approx((after.values[0] - before.values[0]) / (2 * h), abs=1e-6)
        assert at.curvature[0, 0] == pytest.approx((after.u[0, 0] - before.u[0, 0]) / (2 * h), abs=1e-5)


def test_smoothed_rows_at_a_kink_leave_their_bounds():
    blocks, centre = one_block(nerm.Hinge(), [0.0, 0.0]), np.array([[-0.5, -1.0]])
    at = blocks.smoothed(np.array([0.0, 0.0]), centre, 0.1, extend=True)
    assert at.extended[0] == pytest.approx(
        [-10.5, -1.0]
    )  # the first was free and goes on, the second stays at its end
    assert at.curvature[0] == pytest.approx([10.0, 0.0])
    assert at.u[0] == pytest.approx([-1.0, -1.0])


def test_rows_without_weight_have_no_target():
    block = Block(nerm.Exponential(), np.array([1.0, 0.0]), np.array([1.0, 1.0]), 0, 0)
    blocks = Blocks([block], np.ones(1), np.ones(1))
    assert np.isfinite(blocks.values(np.array([0.0, -1e4]))).all()
