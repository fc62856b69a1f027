"""Problems with losses and surrogates of one's own against the same problem written by hand in cvxpy."""

import time
import warnings

import cvxpy as cp
import numpy as np
import pytest

import nerm
from tests.atoms.test_formula import random_tree

BOUNDED = [
    lambda m: cp.maximum(0, 1 - m, 0.4 - 2 * m),
    lambda m: cp.huber(1 - m, 2.0) + 0.5,
    lambda m: cp.logistic(-m) + cp.pos(1 - m),
    lambda m: cp.exp(cp.pos(0.3 - m)),
    lambda m: cp.power(cp.pos(1 - m), 1.5),
    lambda m: cp.abs(1 - m) + 0.5 * cp.square(cp.pos(-m)),
    lambda m: cp.exp(m / 4) - m / 4,
    lambda m: cp.logistic(2 * (1 - m)) / 2,
]


REGULARIZERS = [
    lambda w: cp.sum_squares(w) / 2,
    lambda w: cp.tv(w) + 0.5 * cp.norm1(w),
    lambda w: cp.tv(w) + 0.1 * cp.sum_squares(w),
    lambda w: cp.norm2(w) + cp.norm_inf(w[1:]) + 0.2 * cp.norm1(w[:2]),
    lambda w: cp.norm2(w[:2]) + 2 * cp.norm2(w[1:]),
    lambda w: cp.sum_squares(cp.diff(w)) + 0.3 * cp.norm1(w),
    lambda w: cp.sum(cp.multiply(np.arange(1.0, w.shape[0] + 1), cp.abs(w))) + cp.norm(w) ** 2 / 10,
    lambda w: cp.norm_inf(cp.diff(w)) + cp.quad_form(w, np.diag(np.arange(1.0, w.shape[0] + 1))) / 4,
    lambda w: cp.sum([0.2 * cp.sum_largest(cp.abs(w), k) for k in range(1, w.shape[0])]),
    lambda w: cp.sum(cp.huber(w)) / 2,
]


def random_problem(rng):
    """Return a problem of nerm and the optimum that cvxpy finds for the same formulas."""
    n, d = int(rng.integers(15, 60)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, d))
    y = np.where(X[:, 0] + rng.normal(size=n) > 0, 1.0, -1.0)
    v = np.where(X[:, -1] + rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2], v[:2] = (1, -1), (1, -1)
    loss = BOUNDED[int(rng.integers(len(BOUNDED)))]
    psi = random_tree(rng, 2)
    if rng.random() < 0.5 or nerm.margin_function(psi).facts.surrogate_only:
        psi = BOUNDED[int(rng.integers(len(BOUNDED)))]
    omega = REGULARIZERS[int(rng.integers(len(REGULARIZERS)))]
    lam, eta = float(10 ** rng.uniform(-2, 0)), float(10 ** rng.uniform(-1, 1))
    side = str(rng.choice(["both", "agreement", "disagreement"]))
    w, b = cp.Variable(d), cp.Variable()
    f = X @ w + b
    plus, minus = (cp.sum(psi(sign * cp.multiply(v, f))) / n for sign in (1, -1))
    term = {"both": cp.maximum(plus, minus), "agreement": minus, "disagreement": plus}[side]
    value = cp.sum(loss(cp.multiply(y, f))) / n + lam * omega(w)
    risk = nerm.Risk(nerm.margin_function(loss, name="loss")) + lam * nerm.regularizer(omega, name="omega")
    neutrality = nerm.Neutrality(nerm.margin_function(psi, name="psi"), side=side)
    kind = rng.integers(3)
    if kind == 0:  # a limit between its least value and that of the unlimited problem
        cp.Problem(cp.Minimize(value)).solve(solver="CLARABEL")
        high = float(term.value)
        least = float(cp.Problem(cp.Minimize(term)).solve(solver="CLARABEL"))
        bound = 0.3 * least + 0.7 * high
        objective, by_hand = (
            risk.subject_to(neutrality <= bound),
            cp.Problem(cp.Minimize(value), [term <= bound]),
        )
    elif kind == 1:
        constraint = nerm.Coefficients() >= -0.1
        objective = (risk + eta * neutrality).subject_to(constraint)
        by_hand = cp.Problem(cp.Minimize(value + eta * term), [w >= -0.1])
    else:
        objective, by_hand = risk + eta * neutrality, cp.Problem(cp.Minimize(value + eta * term))
    finest = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-10)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Clarabel may stop at 1e-8
        optimum = float(by_hand.solve(solver="CLARABEL", **finest))
    return objective.on(X, y, viewpoint=v), optimum


def check(seed):
    problem, optimum = random_problem(np.random.default_rng([seed, 7]))
    started = time.process_time()
    solution = problem.solve()
    certified = solution.status == "optimal"
    if certified:
        assert solution.objective.total == pytest.approx(optimum, rel=3e-6, abs=3e-8)
    assert solution.certificate.dual <= optimum + 3e-6 * abs(optimum) + 3e-8
    return certified, time.process_time() - started


def test_problems_with_own_atoms_agree_with_cvxpy():
    certified = [check(seed)[0] for seed in range(25)]
    assert np.mean(certified) >= 0.95


@pytest.mark.slow
def test_five_hundred_problems_with_own_atoms_agree_with_cvxpy():
    check(999)  # compiles what is compiled once
    certified, seconds = zip(*map(check, range(1000, 1500)), strict=True)
    assert np.mean(certified) >= 0.99
    assert max(seconds) <= 3
