"""Every solver against the independent reference `nerm.svm` on small neutral SVMs: values, bounds and scores."""

from __future__ import annotations

import numpy as np
import pytest

import nerm
from nerm.svm import dual_qp, smo, subgradient_method
from tests.conftest import make_data

N, MU, TOL = 24, 0.1, 1e-5


def rbf(A, B):
    """Return exp(-||a - b||^2 / 2), written out."""
    return np.exp(-0.5 * ((A[:, None, :] - B[None, :, :]) ** 2).sum(axis=2))


CASES = {
    "linear": (None, "linear", 1.0, False),
    "weighted": (None, "linear", 0.3, True),
    "plain": (None, "linear", 0.0, False),
    "kernel": (nerm.kernels.RBF(gamma=0.5), rbf, 1.0, False),
    "weighted kernel": (nerm.kernels.RBF(gamma=0.5), rbf, 2.0, True),
}


@pytest.fixture(scope="module", params=CASES)
def pair(request):
    """Return a problem and the reference's result on it, which brackets the optimum to 1e-8."""
    kernel, own_kernel, eta, weighted = CASES[request.param]
    X, y, v = make_data(5, n=N, d=3, real_viewpoint=weighted)
    rng = np.random.default_rng(1)
    s, u = (rng.random(N) + 0.1, rng.random(N)) if weighted else (np.ones(N), np.ones(N))
    objective = nerm.Risk(nerm.Hinge()) + MU * nerm.SquaredL2()
    if eta:
        objective = objective + eta * nerm.Neutrality(nerm.Hinge(), weights=u)
    problem = objective.on(X, y, viewpoint=v if eta else None, kernel=kernel, sample_weight=s)
    arguments = (X, y, v, MU * N, eta)
    weights = {"sample_weight": s, "neutrality_weight": u}
    reference = smo(*arguments, kernel=own_kernel, tol=1e-8, **weights)
    assert reference.status == "optimal"
    other = dual_qp(*arguments, kernel=own_kernel, **weights).solve("clarabel", tol=1e-10).model
    assert other.certificate.primal == pytest.approx(reference.certificate.primal, rel=1e-7)
    if own_kernel == "linear":
        rough = subgradient_method(*arguments, tol=1e-2, **weights)
        assert rough.certificate.dual <= reference.certificate.primal
        assert rough.certificate.primal >= reference.certificate.dual
    return problem, reference


@pytest.mark.parametrize("name", ["auto", *nerm.solvers.available()])
def test_solver_agrees_with_the_reference(name, pair):
    problem, reference = pair
    if name != "auto" and nerm.solvers.known()[name].why_unsupported(problem) is not None:
        pytest.skip("the solver does not take this problem")
    solution = problem.solve(name, tol=TOL)
    low, high = reference.certificate.dual, reference.certificate.primal
    assert solution.certificate.dual <= high * (1 + 1e-9)
    assert solution.certificate.primal >= low * (1 - 1e-9)
    if solution.status != "optimal":
        assert name == "proxqp", solution  # it calls some feasible problems infeasible
        return
    assert solution.certificate.primal <= high * (1 + TOL)
    assert problem.evaluate(reference.coef, reference.intercept).total == pytest.approx(high, rel=1e-12)
    # strong convexity: (MU/2) ||w - w*||^2 <= P - P*
    g = solution.training_scores() - solution.intercept
    expected = reference.training_scores() - reference.intercept
    np.testing.assert_allclose(g, expected, atol=np.sqrt(2 * TOL * high / MU) * 5)
