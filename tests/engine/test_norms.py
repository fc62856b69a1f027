"""Norms as a saddle of their own: where they stand and how they move, against the equations of their central path."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.solvers.interior_point.norms import Balls, Diamonds

GROUPS = np.array([[0, 1, 2], [3, 4, 5]])
OMEGA, GOAL = np.array([0.5, 2.0]), np.array([0.7, 1.3])
W = np.array([0.4, -0.3, 0.9, 1e-3, 0.0, -2e-3])
KINDS = pytest.mark.parametrize("kind", [Balls, Diamonds])
BARRIERS = pytest.mark.parametrize("barrier", [0.5, 1e-2])


def at(kind, barrier, w=W):
    return kind(GROUPS, OMEGA, GOAL, w, barrier)


@KINDS
@BARRIERS
def test_a_start_is_on_the_central_path(kind, barrier):
    """Its equations hold, and each group's products add up to its barrier."""
    pull, w = at(kind, barrier), W[GROUPS]
    np.testing.assert_allclose(pull.products, barrier * GOAL, rtol=1e-9)
    if kind is Balls:
        room = 1 - (pull.u**2).sum(axis=1, keepdims=True)
        np.testing.assert_allclose(w, pull.t * pull.u, atol=1e-12)
        np.testing.assert_allclose(pull.t * room, barrier * GOAL[:, None], rtol=1e-9)
    else:
        np.testing.assert_allclose(pull.over, pull.t - w, rtol=1e-9)
        np.testing.assert_allclose(pull.under, pull.t + w, rtol=1e-9)
        for side, distance in ((pull.a, pull.over), (pull.b, pull.under)):
            np.testing.assert_allclose(
                side * distance, np.repeat(barrier * GOAL[:, None] / 6, 3, axis=1), rtol=1e-9
            )
        np.testing.assert_allclose((pull.a + pull.b).sum(axis=1), 1.0, rtol=1e-9)
        np.testing.assert_allclose(pull.u, pull.a - pull.b, rtol=1e-12)


@KINDS
@BARRIERS
def test_aimed_at_where_it_stands_nothing_moves(kind, barrier):
    pull = at(kind, barrier)
    np.testing.assert_allclose(pull.aim(W[GROUPS], barrier, np.inf), 0.0, atol=1e-9)
    pull.follow(np.zeros((2, 3)))
    np.testing.assert_allclose(pull.du, 0.0, atol=1e-9)
    np.testing.assert_allclose(pull.dt, 0.0, atol=1e-9)


@KINDS
@BARRIERS
def test_a_short_direction_is_the_derivative_of_the_central_path(kind, barrier):
    """Of u along w and along the barrier: K is the first, and the aim the second."""
    rng, eps = np.random.default_rng(0), 1e-6
    dw = rng.normal(size=6)
    for along, more in ((dw, 0.0), (0.0 * dw, 1.0), (dw, -0.7)):
        ahead, behind = (
            at(kind, barrier * (1 + s * eps * more), W + s * eps * barrier * along) for s in (1, -1)
        )
        pull = at(kind, barrier)
        aim = pull.aim(W[GROUPS], barrier * (1 + eps * more), np.inf)
        step = eps * barrier * along[GROUPS]
        pull.follow(step)
        np.testing.assert_allclose(pull.du / eps, (ahead.u - behind.u) / (2 * eps), rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(pull.dt / eps, (ahead.t - behind.t) / (2 * eps), rtol=1e-3, atol=1e-4)
        K = pull.curvature()
        np.testing.assert_allclose(pull.du / eps, (np.einsum("gij,gj->gi", K, step) + aim) / eps, atol=1e-5)


@KINDS
def test_a_second_aim_takes_in_what_the_first_direction_bends(kind):
    """Steps from the path at one barrier to that at another: the corrected one misses it by much less."""
    dw, errors = 0.05 * np.random.default_rng(1).normal(size=6), []
    for corrected in (False, True):
        pull, target = at(kind, 0.3), 0.25
        want = at(kind, target, W + dw)
        pull.aim(W[GROUPS], target, np.inf)
        pull.follow(dw[GROUPS])
        if corrected:
            pull.aim(W[GROUPS], target, np.inf)
            pull.follow(dw[GROUPS])
        pull.advance(1.0, 1e-3)
        errors.append((np.abs(pull.u - want.u).max(), np.abs(pull.products / want.products - 1).max()))
    assert errors[1][0] < 0.5 * errors[0][0]
    assert errors[1][1] < 0.5 * errors[0][1]


@KINDS
def test_whatever_the_direction_the_dual_norm_stays_below_one(kind):
    rng = np.random.default_rng(2)
    pull = at(kind, 0.1)
    for _ in range(30):
        pull.aim(W[GROUPS], 0.01, 0.1)
        pull.follow(3.0 * rng.normal(size=(2, 3)))
        pull.advance(1.0, 0.1)
        size = np.linalg.norm(pull.u, axis=1) if kind is Balls else np.abs(pull.u).sum(axis=1)
        assert (size <= 1 + 1e-12).all()
        assert (pull.products > 0).all()


def test_the_nearest_feasible_multipliers():
    u = np.array([[0.3, -0.4, 0.0], [3.0, -4.0, 0.0], [0.9, -0.9, 0.2]])
    np.testing.assert_allclose(
        Balls.nearest(u), [[0.3, -0.4, 0.0], [0.6, -0.8, 0.0], u[2] / np.linalg.norm(u[2])]
    )
    np.testing.assert_allclose(
        Diamonds.nearest(u), [[0.3, -0.4, 0.0], [0.0, -1.0, 0.0], [0.5, -0.5, 0.0]], atol=1e-12
    )
