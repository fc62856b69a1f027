"""The printed SMO (docs/errata.md, errata 3 to 8), written out naively in 3n variables."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.svm import dual_qp, smo
from tests.svm.naive import sum_form, synthetic


def setting(n=8, seed=0):
    """Return gamma's ingredients: t, Q and the data, for real viewpoints."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    y = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    v = rng.normal(size=n)
    sigma = np.vstack([np.diag(y), np.diag(v), -np.diag(v)])
    return X, y, v, sigma @ np.ones(n), sigma @ (X @ X.T) @ sigma.T


def dual_objective(gamma, X, y, v, lam):
    """Return the objective to be minimised, 1/2 a'Ka - lambda sum gamma, from the definition of a."""
    n = len(y)
    a = gamma[:n] * y + (gamma[n : 2 * n] - gamma[2 * n :]) * v
    return 0.5 * np.sum((X.T @ a) ** 2) - lam * gamma.sum()


def test_gradient_has_minus_lambda():
    """Printed: Q gamma + lambda 1. Differences say Q gamma - lambda 1."""
    X, y, v, _, Q = setting()
    gamma, lam, step = np.random.default_rng(1).random(24), 0.7, 1e-6
    differences = np.array(
        [
            (dual_objective(gamma + step * e, X, y, v, lam) - dual_objective(gamma - step * e, X, y, v, lam))
            / (2 * step)
            for e in np.eye(24)
        ]
    )
    np.testing.assert_allclose(Q @ gamma - lam, differences, atol=1e-6)
    assert np.abs(Q @ gamma + lam - differences).min() > 1.3


def test_t_ends_in_minus_v_n():
    """Printed: t = (y, v, -v_1, ..., v_n). Only with -v_n is t'gamma the sum of the a_i."""
    _, y, v, t, _ = setting()
    gamma = np.random.default_rng(2).random(24)
    a = gamma[:8] * y + (gamma[8:16] - gamma[16:]) * v
    printed = t.copy()
    printed[-1] = v[-1]
    np.testing.assert_allclose(t @ gamma, a.sum(), atol=1e-12)
    assert abs(printed @ gamma - a.sum()) > 1e-3


def test_sums_run_to_3n():
    """Printed: sum over l = 1..n of Q_il gamma_l. The derivative of the objective needs all 3n terms."""
    X, y, v, _, Q = setting()
    gamma, step = np.random.default_rng(3).random(24), 1e-6
    e = np.eye(24)[3]
    derivative = (
        dual_objective(gamma + step * e, X, y, v, 0.0) - dual_objective(gamma - step * e, X, y, v, 0.0)
    ) / (2 * step)
    np.testing.assert_allclose(Q[3] @ gamma, derivative, atol=1e-6)
    assert abs(Q[3, :8] @ gamma[:8] - derivative) > 1e-2


def test_curvature_vanishes_inside_a_sample():
    """A_ij = Q_ii - 2 tau Q_ij + tau^2 Q_jj is 0 for two multipliers of one sample: the step divides by it."""
    _, _, _, t, Q = setting()
    for i in range(8):
        for p, q in ((i, i + 8), (i, i + 16), (i + 8, i + 16)):
            tau = t[p] / t[q]
            assert abs(Q[p, p] - 2 * tau * Q[p, q] + tau**2 * Q[q, q]) < 1e-10
    # Equal rows do the same, and the SMO solves both: it moves to the bound where the objective is linear.
    X, y, v = synthetic(20, d=2, seed=1)
    twice = smo(np.vstack([X, X]), np.append(y, y), np.append(v, v), 1.0, 1.0, kernel="linear", tol=1e-9)
    assert twice.status == "optimal"
    once = smo(X, y, v, 0.5, 1.0, kernel="linear", tol=1e-9)
    np.testing.assert_allclose(twice.certificate.primal, once.certificate.primal, rtol=1e-7)
    # Rows that are equal in x alone have no curvature between them.
    apart = smo(np.vstack([X, X]), np.append(y, -y), np.append(v, v), 1.0, 1.0, kernel="linear", tol=1e-9)
    assert apart.status == "optimal"


def test_complementarity_is_with_zeta():
    """Printed: lambda_i gamma_i = 0. What holds is zeta_i gamma_i = 0 and xi_i (bound_i - gamma_i) = 0."""
    X, y, v = synthetic(40, d=3, seed=2)
    lam = 1.5
    model = smo(X, y, v, lam, 1.0, kernel="linear", tol=1e-11)
    m = sum_form(model, y, v, 1.0)
    gamma = np.concatenate([m.alpha, m.beta_plus, m.beta_minus])
    bound = np.repeat([1.0, m.nu_plus, m.nu_minus], 40)
    t = np.concatenate([y, v, -v])
    gradient = t * np.tile(X @ (X.T @ m.a), 3) - lam
    residual = gradient + lam * model.intercept * t
    zeta, xi = np.maximum(residual, 0), np.maximum(-residual, 0)
    np.testing.assert_allclose(zeta * gamma, 0.0, atol=1e-4)
    np.testing.assert_allclose(xi * (bound - gamma), 0.0, atol=1e-4)
    assert lam * gamma.max() > 0.5


def feasible_interval(gamma, i, j, t, n, eta):
    """Return the interval of delta_i (with delta_j = -t_i delta_i / t_j) that the printed constraints allow."""
    d = np.zeros_like(gamma)
    d[i], d[j] = 1.0, -t[i] / t[j]
    rows = [(-d[k], gamma[k]) for k in (i, j)]
    rows += [(d[k], 1.0 - gamma[k]) for k in (i, j) if k < n]
    for k in {i, j} - set(range(n)):
        first = n + (k % n)
        rows.append((d[first] + d[first + n], eta - gamma[first] - gamma[first + n]))
    low, high = -np.inf, np.inf
    for slope, slack in rows:
        slack = max(slack, 0.0)
        if slope > 1e-14:
            high = min(high, slack / slope)
        elif slope < -1e-14:
            low = max(low, slack / slope)
    return low, high, d


def best_pairs(X, y, v, t, Q, lam, eta, sweeps=3000):
    """Take exact steps over *all* pairs of the 3n variables under the printed constraints, until none improves."""
    n = len(y)
    gamma = np.zeros(3 * n)
    for _ in range(sweeps):
        improved = 0.0
        for i in range(3 * n):
            for j in range(i + 1, 3 * n):
                low, high, d = feasible_interval(gamma, i, j, t, n, eta)
                gradient = Q @ gamma - lam
                slope = gradient[i] * d[i] + gradient[j] * d[j]
                curvature = d[i] ** 2 * Q[i, i] + 2 * d[i] * d[j] * Q[i, j] + d[j] ** 2 * Q[j, j]
                if curvature > 1e-12:
                    step = float(np.clip(-slope / curvature, low, high))
                else:
                    step = 0.0 if slope == 0 else (high if slope < 0 else low)
                gain = -(slope * step + 0.5 * curvature * step**2)
                if gain > 1e-13:
                    gamma = np.maximum(gamma + step * d, 0.0)
                    improved = max(improved, gain)
        if improved < 1e-12:
            break
    return gamma


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_pair_steps_stall_on_the_printed_dual(seed):
    """No pair improves, and the printed test m <= M is met, below the printed dual's maximum."""
    rng = np.random.default_rng(seed)
    n, lam, eta = 4, 0.3, 0.5
    X = rng.normal(size=(n, 2))
    y = np.array([1.0, -1.0, 1.0, -1.0])
    v = np.where(rng.random(n) < 0.5, 1.0, -1.0)
    v[:2] = 1.0, -1.0
    t = np.concatenate([y, v, -v])
    sigma = np.vstack([np.diag(y), np.diag(v), -np.diag(v)])
    Q = sigma @ (X @ X.T) @ sigma.T
    gamma = best_pairs(X, y, v, t, Q, lam, eta)
    stalled = -dual_objective(gamma, X, y, v, lam) / lam
    optimum = -dual_qp(X, y, v, lam, eta, variant="published").solve("clarabel", tol=1e-11).value
    # The stalled point is feasible, and stationary by the printed criterion.
    coupling = gamma[n : 2 * n] + gamma[2 * n :]
    assert (coupling <= eta + 1e-9).all()
    gradient = Q @ gamma - lam
    can_rise = np.concatenate([gamma[:n] < 1 - 1e-9, np.tile(coupling < eta - 1e-9, 2)])
    can_fall = gamma > 1e-9
    up = np.where(t > 0, can_rise, can_fall)
    down = np.where(t > 0, can_fall, can_rise)
    m, M = (-gradient / t)[up].max(initial=-np.inf), (-gradient / t)[down].min(initial=np.inf)
    assert m <= M + 1e-4
    # The (alpha, r) form does not stall.
    free = smo(X, y, v, lam, eta, kernel="linear", variant="published", tol=1e-9)
    np.testing.assert_allclose(n * free.certificate.dual, optimum, rtol=1e-6)
    assert stalled < optimum * (1 - 1e-3)
