"""One row's share of the dual against linear programming: hinges, pinballs, curved atoms, targets of 0."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import linprog, minimize_scalar

import nerm
from nerm import Hinge, Identity, Neutrality, Pinball, Risk, SquaredL2
from nerm.solvers.smo.fixed_theta import FixedTheta, Segments, set_all_slopes

Y = np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0])
V = np.array([1.0, 1.0, -1.0, 0.0, 0.4, -2.5, 1.0])
S = np.array([1.0, 2.0, 1.0, 0.5, 1.0, 1.0, 0.0])
U = np.array([1.0, 1.0, 3.0, 1.0, 0.7, 1.0, 0.0])
SHARES = (0.0, 0.1, 0.25, 0.5, 0.77, 1.0)


def problem(*terms):
    return (sum(terms) + SquaredL2()).on(np.arange(7.0).reshape(-1, 1), Y, viewpoint=V, sample_weight=S)


def level(segments, share):
    return (1 - share) * segments.breaks[:, 0] + share * segments.breaks[:, -1]


def attained(made, segments, a):
    """Return the multipliers at levels a, and the sum of all h_i(a_i)."""
    state = FixedTheta(made, segments, np.zeros((7, 7)), a)
    state.at.a[:] = a
    set_all_slopes(state.at)
    return state.multipliers().rows, state.standing().dual


def best_gain(columns, a):
    """Maximise sum gain * beta subject to sum target * beta = a over boxes, by linear programming."""
    targets, gains, bounds = zip(*columns, strict=True)
    answer = linprog(-np.array(gains), A_eq=[targets], b_eq=[a], bounds=bounds)
    assert answer.status == 0
    return -answer.fun


def check(made, theta, columns):
    """Hold the multipliers at several levels against the best ones; `columns` has (target, gain, bounds) of row i."""
    segments = Segments(made, theta)
    for share in SHARES:
        a = level(segments, share)
        rows, gain = attained(made, segments, a)
        total = 0.0
        for i in range(7):
            weights = [bound[1] if bound[1] > 0 else 1.0 for _, _, bound in columns(i)]
            scaled = [w * r for w, r in zip(weights, rows[:, i], strict=True)]
            if all(bound[1] > 0 for _, _, bound in columns(i)):
                reached = sum(t * beta for (t, _, _), beta in zip(columns(i), scaled, strict=True))
                np.testing.assert_allclose(reached, a[i], atol=1e-12)
            total += best_gain(columns(i), a[i])
        np.testing.assert_allclose(gain, total, atol=1e-9)


@pytest.mark.parametrize("theta", [0.25, 1.0, 0.0, 0.6])
def test_hinges_attain_the_best_gain(theta):
    made = problem(Risk(Hinge()), 2.0 * Neutrality(Hinge(), weights=U))
    check(
        made,
        theta,
        lambda i: [
            (Y[i], 1.0, (0, S[i])),
            (V[i], 1.0, (0, 2 * theta * U[i])),
            (-V[i], 1.0, (0, 2 * (1 - theta) * U[i])),
        ],
    )


def test_pinballs_have_multipliers_of_both_signs():
    made = problem(3.0 * Risk(Pinball(tau=0.5)), 2.0 * Neutrality(Pinball(tau=2.0), weights=U))
    segments = Segments(made, 0.3)
    for share in SHARES:
        a = level(segments, share)
        for i in range(7):
            boxes = [(3 * S[i], 0.5), (0.6 * U[i], 2.0), (1.4 * U[i], 2.0)]
            columns = [
                (t, 1.0, (-tau * w, w))
                for t, (w, tau) in zip((Y[i], V[i], -V[i]), boxes, strict=True)
                if w * t != 0
            ]
            idle = sum(w for t, (w, _) in zip((Y[i], V[i], -V[i]), boxes, strict=True) if t == 0)
            rows = attained(made, segments, a)[0][:, i]
            gain = sum(w * beta for (w, _), beta in zip(boxes, rows, strict=True))
            expected = best_gain(columns, a[i]) if columns else 0.0
            np.testing.assert_allclose(gain, expected + idle, atol=1e-9)


CURVED = {  # by hand
    "squared": (nerm.Squared(), lambda m: (1 - m) ** 2),
    "squared hinge": (nerm.SquaredHinge(), lambda m: max(0.0, 1 - m) ** 2),
    "smooth hinge": (
        nerm.SmoothHinge(),
        lambda m: 0.0 if m >= 1 else 0.5 * (1 - m) ** 2 if m >= 0 else 0.5 - m,
    ),
    "hinge": (Hinge(), lambda m: max(0.0, 1 - m)),
}


@pytest.mark.parametrize("theta", [0.3, 0.0, 1.0])
@pytest.mark.parametrize("surrogate", CURVED)
@pytest.mark.parametrize("loss", CURVED)
def test_curved_atoms_attain_the_conjugate_of_the_sum_of_their_values(loss, surrogate, theta):
    """h_i(a) is the least sum of the weighted values plus a f over scores f, and attained at f = h_i'(a)."""
    (phi, phi_value), (psi, psi_value) = CURVED[loss], CURVED[surrogate]
    made = problem(Risk(phi), 2.0 * Neutrality(psi, weights=U))
    segments = Segments(made, theta)
    low, high = segments.breaks[:, 0], segments.breaks[:, -1]
    for share in (0.001, 0.1, 0.35, 0.5, 0.8, 0.999):
        a = np.where(np.isfinite(low), low, -5.0) * (1 - share) + share * np.where(
            np.isfinite(high), high, 5.0
        )
        total = 0.0
        for i in range(7):

            def value(f, i=i, level=a[i]):
                sides = theta * psi_value(V[i] * f) + (1 - theta) * psi_value(-V[i] * f)
                return S[i] * phi_value(Y[i] * f) + 2 * U[i] * sides + level * f

            kinks = [side / t for t in (Y[i], V[i], -V[i]) if t for side in (0.0, 1.0)]
            smooth = [
                minimize_scalar(value, bounds=ends, method="bounded").x
                for ends in pairwise([-99, *sorted(kinks), 99])
            ]
            total += min(value(f) for f in [*smooth, *kinks])
        np.testing.assert_allclose(attained(made, segments, a)[1], total, atol=1e-6)


def test_curved_levels_are_balanced_within_their_bounds():
    segments = Segments(problem(Risk(nerm.SquaredHinge()), 2.0 * Neutrality(nerm.Squared(), weights=U)), 0.25)
    rng = np.random.default_rng(2)
    for _ in range(20):
        a = segments.feasible(rng.normal(scale=3.0, size=7))
        assert (a >= segments.breaks[:, 0]).all()
        assert (a <= segments.breaks[:, -1]).all()
        assert abs(a.sum()) < 1e-9


def test_the_identity_has_no_width_but_a_force():
    made = problem(Risk(Hinge()), 2.0 * Neutrality(Identity(), weights=U))
    segments = Segments(made, 0.75)
    # alpha y in its box, and 2 u v (1 - 2 theta) beside it
    np.testing.assert_allclose(segments.breaks[:, -1] - segments.breaks[:, 0], S)
    np.testing.assert_allclose(segments.breaks[:, 0], np.where(Y < 0, -S, 0.0) - U * V)
    assert segments.can_balance
    a = segments.feasible(np.zeros(7))
    assert abs(a.sum()) < 1e-12
    assert (a >= segments.breaks[:, 0] - 1e-12).all()
    assert (a <= segments.breaks[:, -1] + 1e-12).all()


def test_every_theta_can_be_balanced_unless_the_slope_of_the_identity_is_too_large():
    plain, hard = (
        problem(Risk(Hinge()), 2.0 * Neutrality(Hinge(), weights=U)),
        problem(Risk(Hinge()), 20.0 * Neutrality(Identity(), weights=U)),
    )
    thetas = (0.0, 0.5, 1.0)
    assert [Segments(plain, theta).can_balance for theta in thetas] == [True, True, True]
    assert [Segments(hard, theta).can_balance for theta in thetas] == [False, True, False]


def test_balancing_stays_in_the_boxes_and_sums_to_zero():
    segments = Segments(problem(Risk(Hinge()), 2.0 * Neutrality(Hinge(), weights=U)), 0.25)
    rng = np.random.default_rng(0)
    for _ in range(20):
        a = segments.feasible(rng.normal(scale=3.0, size=7))
        assert (a >= segments.breaks[:, 0]).all()
        assert (a <= segments.breaks[:, -1]).all()
        assert abs(a.sum()) < 1e-12
