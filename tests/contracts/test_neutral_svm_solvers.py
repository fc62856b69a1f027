"""The neutral SVM's own algorithms as solvers of a problem: the same optimum, all weights, kernels, clear refusals."""

from __future__ import annotations

import numpy as np
import pytest

import nerm
from nerm import Hinge, Neutrality, Risk, SquaredL2
from tests.conftest import make_data

pytestmark = pytest.mark.long


@pytest.mark.parametrize("kernel", [None, "rbf", "precomputed"])
def test_the_same_optimum_with_all_weights(kernel):
    X, y, v = make_data(3, n=70, real_viewpoint=True)
    rng = np.random.default_rng(0)
    s, u = rng.random(70), rng.random(70)
    s[3] = u[5] = v[7] = 0.0
    if kernel == "precomputed":
        X = X @ X.T + 1
    objective = 2 * Risk(Hinge()) + 0.1 * SquaredL2() + 1.5 * Neutrality(Hinge(), weights=u)
    problem = objective.on(X, y, viewpoint=v, kernel=kernel, sample_weight=s)
    ours, reference = problem.solve("smo", tol=1e-7), problem.solve("clarabel", tol=1e-8)
    assert ours.status == "optimal"
    assert ours.objective.total == pytest.approx(reference.objective.total, rel=2e-7)
    np.testing.assert_allclose(ours.decision_function(X), reference.decision_function(X), atol=5e-3)


def test_without_a_neutrality_term():
    X, y, _ = make_data(4)
    assert (Risk(Hinge()) + 0.1 * SquaredL2()).on(X, y).solve("smo").status == "optimal"


@pytest.mark.parametrize(
    ("objective", "text"),
    [
        (Risk(nerm.Logistic()) + SquaredL2() + Neutrality(Hinge()), "Got a problem with Logistic()."),
        (Risk(Hinge()) + SquaredL2() + Neutrality(nerm.Exponential()), "Got a problem with Exponential()."),
        (Risk(Hinge()) + nerm.L1() + Neutrality(Hinge()), "Got a problem with L1()."),
        (
            Risk(Hinge()) + SquaredL2() + Neutrality(Hinge()) + Neutrality(Hinge()),
            "Got a problem with 2 neutrality terms.",
        ),
        (
            Risk(Hinge()) + Neutrality(Hinge()),
            "Got a problem with no squared l2 regularizer of positive weight.",
        ),
    ],
)
def test_a_mismatch_is_named(objective, text):
    X, y, v = make_data(0)
    with pytest.raises(nerm.UnsupportedProblemError) as caught:
        objective.on(X, y, viewpoint=v).solve("smo")
    assert text in str(caught.value)
    assert (
        "solver 'smo' must be given a neutral SVM: piecewise quadratic atoms (hinge, pinball, squared hinge), squared"
        in (str(caught.value))
    )


def test_an_unknown_option_is_named():
    X, y, v = make_data(0)
    problem = (Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v)
    with pytest.raises(nerm.UnknownNameError, match=r"an option of 'smo' must be one of .* Got 'cache_size'"):
        problem.solve("smo", cache_size=3)
    with pytest.raises(nerm.UnsupportedProblemError, match=r"Got a problem with no intercept"):
        (Risk(Hinge()) + SquaredL2()).on(X, y, intercept=False).solve("smo")
