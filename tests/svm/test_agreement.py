"""Both QPs, the reference SMO, a hand-written model and the solvers of a problem agree on random problems."""

from __future__ import annotations

import numpy as np
import pytest

import nerm
from nerm.kernels import RBF
from nerm.svm import dual_qp, primal_qp, smo

from .naive import (
    assert_dual_feasible,
    best_intercepts,
    dual_value,
    factor,
    objective,
    random_case,
    solve_by_hand,
    sum_form,
)

QUICK = [0, 7, 14, 27, 34, 41, 52, 63, 81, 99]  # every kernel, kind of viewpoint, eta and lambda
ALL = [seed for seed in range(216) if seed not in QUICK]


def check(seed: int) -> None:
    c = random_case(seed)
    kernel = "linear" if c.kernel == "linear" else RBF(c.gamma)
    gram = c.gram
    features = c.X if c.kernel == "linear" else factor(gram)
    optimum, w, _ = solve_by_hand(features, c.y, c.v, c.lam, c.eta)
    truth = features @ w
    models = {
        "smo": smo(c.X, c.y, c.v, c.lam, c.eta, kernel=kernel, tol=1e-8),
        "dual": dual_qp(c.X, c.y, c.v, c.lam, c.eta, kernel=kernel).solve("clarabel", tol=1e-11).model,
        "primal": primal_qp(features, c.y, c.v, c.lam, c.eta).solve("clarabel", tol=1e-11).model,
    }
    for name, solution in models.items():
        assert solution is not None, name
        m = sum_form(solution, c.y, c.v, c.eta)
        g = m.scores - solution.intercept
        w = solution.coef
        norm2 = float(w @ w) if name == "primal" or c.kernel == "linear" else float(w @ gram @ w)
        # Both sides of the certificate, recomputed naively.
        np.testing.assert_allclose(m.primal, objective(m.scores, norm2, c.y, c.v, c.lam, c.eta), rtol=1e-9)
        naive_dual = dual_value(m.alpha, m.beta_plus, m.beta_minus, gram, c.y, c.v, c.lam)
        np.testing.assert_allclose(m.dual, naive_dual, rtol=1e-8, err_msg=name)
        assert_dual_feasible(solution, c.y, c.v, c.eta)
        # Weak duality, and agreement on the optimum.
        assert m.dual <= m.primal * (1 + 1e-12), name
        assert m.dual <= optimum * (1 + 1e-8), name
        np.testing.assert_allclose(m.primal, optimum, rtol=1e-6, err_msg=name)
        assert solution.certificate.relative_gap <= 1e-6, (name, solution.certificate.relative_gap)
        # Agreement on the hypothesis: f minus its intercept is unique, b may be any point of an interval.
        # Relative to the largest score; below 1e-3 the solvers' own accuracy speaks, not the mathematics.
        np.testing.assert_allclose(g, truth, atol=1e-3 * max(1e-3, np.abs(truth).max()), err_msg=name)
        _, left, right = best_intercepts(g, c.y, c.v, c.lam, c.eta, slack=1e-7)
        assert left - 1e-4 <= solution.intercept <= right + 1e-4, name
    assert models["smo"].certificate.relative_gap <= 1e-8
    assert models["smo"].status == "optimal"
    n = len(c.y)
    mean_form = (
        nerm.Risk(nerm.Hinge()) + (c.lam / n) * nerm.SquaredL2() + c.eta * nerm.Neutrality(nerm.Hinge())
    )
    built = mean_form.on(c.X, c.y, viewpoint=c.v, kernel=None if c.kernel == "linear" else kernel)
    for name, tol in (("clarabel", 1e-9), ("smo", 1e-10), ("auto", 1e-9)):
        solution = built.solve(solver=name, tol=tol)
        assert solution.status == "optimal", name
        np.testing.assert_allclose(n * solution.certificate.primal, optimum, rtol=1e-6, err_msg=name)
        g = solution.training_scores() - solution.intercept
        np.testing.assert_allclose(g, truth, atol=1e-3 * max(1e-3, np.abs(truth).max()), err_msg=name)


@pytest.mark.parametrize("seed", QUICK)
def test_methods_agree(seed):
    check(seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", ALL)
def test_methods_agree_on_all_cases(seed):
    check(seed)
