"""The remaining errata that can be computed (docs/errata.md, errata 9 and 11 to 16)."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from nerm.svm import smo
from nerm.svm.subgradient import hinge_subgradient
from tests.svm.naive import hinge, solve_by_hand, synthetic


def printed_subgradient(t, f):
    """Return the intercept's component as printed: 1 if f < 1, else 0."""
    return 1.0 if f < 1 else 0.0


@pytest.mark.parametrize(("t", "f"), [(1.0, 0.0), (-1.0, -2.0)])
def test_printed_hinge_subgradient_breaks_its_inequality(t, f):
    """A subgradient c must satisfy hinge(t f') >= hinge(t f) + c (f' - f): the print's does not, ours does."""
    others = np.linspace(-4, 4, 81)

    def worst(c):
        return min(hinge(t * other) - hinge(t * f) - c * (other - f) for other in others)

    assert worst(printed_subgradient(t, f)) < -0.5
    assert worst(-t * float(hinge_subgradient(np.array([t]), np.array([f]))[0])) >= -1e-12


def test_printed_label_noise_flips_almost_everything():
    """1 / (1 + exp(-100 |w.x|)) is at least one half; the sign in the exponent must be +."""
    rng = np.random.default_rng(0)
    X, w = rng.uniform(-1, 1, (20_000, 10)), rng.uniform(-1, 1, 10)
    distance = np.minimum(100 * np.abs(X @ w), 500)
    printed, meant = 1 / (1 + np.exp(-distance)), 1 / (1 + np.exp(distance))
    assert printed.min() >= 0.5
    assert printed.mean() > 0.99
    assert meant.mean() < 0.01
    far = np.abs(X @ w) > 0.5
    assert meant[far].max() < 1e-20  # "small if the input is distant from the plane"


def test_a_sum_of_losses_with_a_mean_of_neutrality_divides_eta_by_n():
    """The definition of C_n is a mean, the SVM's a sum. Mixed, (sum, mean) with eta is (sum, sum) with eta / n."""
    X, y, v = synthetic(40, d=3)
    n, lam, eta = 40, 2.0, 4.0
    mixed, _, _ = solve_by_hand(X, y, v, lam, eta, u=np.full(n, 1 / n))
    np.testing.assert_allclose(mixed, solve_by_hand(X, y, v, lam, eta / n)[0], rtol=1e-7)
    assert abs(mixed - solve_by_hand(X, y, v, lam, eta)[0]) > 1.0
    # One form throughout: n times the mean form, (lambda / 2n) ||w||^2 included, is the sum form.
    total, w, b = solve_by_hand(X, y, v, lam, eta)
    f = X @ w + b
    risk = np.mean([hinge(m) for m in y * f])
    neutrality = max(np.mean([hinge(m) for m in v * f]), np.mean([hinge(-m) for m in v * f]))
    np.testing.assert_allclose(n * (risk + lam / (2 * n) * w @ w + eta * neutrality), total, rtol=1e-7)


def test_xi_plus_measures_inverse_correlation():
    """xi^+ = (1 - v f)_+ is large where f opposes v; under the maximum the names do not matter."""
    assert hinge(1.0 * -1.0) > hinge(0.0) > hinge(1.0 * 1.0)
    X, y, v = synthetic(40, d=3)
    values = [smo(X, y, sign * v, 1.0, 2.0, kernel="linear", tol=1e-9).certificate.primal for sign in (1, -1)]
    np.testing.assert_allclose(values[0], values[1], rtol=1e-8)


def test_a_surrogate_bounded_on_the_whole_line_is_constant():
    """The hinge leaves every [0, c]; on the range |g f| <= M of a bounded class it stays in [0, 1 + M]."""
    for c in (1.0, 10.0, 1e6):
        assert hinge(-c) > c
    M = 3.0
    assert max(hinge(m) for m in np.linspace(-M, M, 101)) == 1 + M


def test_lipschitz_step_before_the_signs_is_false_and_the_theorem_stands():
    """Two functions, two inputs, n = 1, hinge: every expectation is a finite sum.

    f1 = (1, 0) and f2 = (3, 2) have equal differences, so sup_f (f(x) - f(x')) averages to 0, while
    hinge o f1 = (0, 1) and hinge o f2 = (0, 0) do not.
    """
    functions = np.array([[1.0, 0.0], [3.0, 2.0]])
    composed = np.maximum(0.0, 1.0 - functions)
    pairs = list(itertools.product((0, 1), repeat=2))

    def ghost(F):
        return np.mean([max(F[:, p] - F[:, q]) for p, q in pairs])

    assert ghost(composed) > ghost(functions) + 0.1  # the printed inequality, violated

    def rademacher(F):
        return np.mean([max(s * F[:, p]) for p in (0, 1) for s in (1, -1)])

    assert ghost(composed) <= 2 * rademacher(composed) + 1e-12  # symmetrisation
    assert rademacher(composed) <= rademacher(functions) + 1e-12  # contraction, after the signs


def test_section_5_3_needs_the_regularizer():
    """Neutralising can *lower* the empirical risk; with Omega added the paper's chain of inequalities holds.

    Two groups on their own features: v = y on the first, v = -y on the second, whose feature is weak. To undo
    the first group's correlation the second is pushed harder, which its labels like and its norm pays for.
    """
    X = np.array([[1.0, 0.0], [-1.0, 0.0], [0.0, 0.4], [0.0, -0.4]])
    y = np.array([1.0, -1.0, 1.0, -1.0])
    v = np.array([1.0, -1.0, -1.0, 1.0])
    lam, eta = 0.5, 0.3
    plain = smo(X, y, v, lam, 0.0, kernel="linear", tol=1e-10)
    neutral = smo(X, y, v, lam, eta, kernel="linear", tol=1e-10)

    def risk(m):
        return sum(hinge(y[i] * m.training_scores()[i]) for i in range(4))

    def regularized(m):
        return risk(m) + lam / 2 * m.coef @ m.coef

    def neutrality(m):
        return max(
            sum(hinge(v[i] * m.training_scores()[i]) for i in range(4)),
            sum(hinge(-v[i] * m.training_scores()[i]) for i in range(4)),
        )

    assert risk(neutral) < risk(plain) - 0.01  # the printed inequality, violated
    difference = regularized(neutral) - regularized(plain)
    assert -1e-8 <= difference <= eta * (neutrality(plain) - neutrality(neutral)) + 1e-8
