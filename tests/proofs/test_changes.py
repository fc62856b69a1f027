"""Bounds on the change of a model against a second solve: never violated, and tight after a Newton step or a solve."""

from __future__ import annotations

import numpy as np
import pytest

import nerm
from tests.oracle import hinge_optimum

ATOMS = [nerm.Logistic(), nerm.SquaredHinge(), nerm.Hinge(), nerm.SmoothHinge()]


def rows(seed, n=None):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(150, 500)) if n is None else n
    X = rng.normal(size=(n, 4)) + np.array([0.0, 0.0, 1.0, 0.0])
    v = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, v, rng


def case(seed):
    """Return an objective, its data, and rows to delete: random ones, of one group, or influential ones."""
    X, y, v, rng = rows(seed)
    atom = ATOMS[seed % len(ATOMS)]
    weights = ["uniform", "balanced"][rng.integers(2)]
    eta = [0.0, 0.3, 2.0][rng.integers(3)]
    lam = 10 ** rng.uniform(-3, -0.5)
    objective = nerm.Risk(atom) + lam * nerm.SquaredL2() + eta * nerm.Neutrality(atom, weights=weights)
    k = max(1, int(len(y) * 10 ** rng.uniform(-3, np.log10(0.05))))
    among = np.arange(len(y))
    if seed % 3 == 1:
        among = np.flatnonzero(v > 0)
    elif seed % 3 == 2:  # the rows with the largest loss and the longest x
        among = np.argsort(y * X[:, 0] - np.linalg.norm(X, axis=1))[: 2 * k]
    return objective, X, y, v, rng.choice(among, k, replace=False)


def distance_of_truth(solution, lam):
    """Return how far a solution can be from its own optimum."""
    certificate = solution.certificate
    return np.sqrt(2 * max(certificate.gap + certificate.slack, 0.0) / lam)


def check(seed, tol=None):
    """Return bound / truth of the change of the coefficients; assert that nothing is violated."""
    objective, X, y, v, out = case(seed)
    lam = objective.terms[1].weight
    solution = objective.on(X, y, viewpoint=v).solve()
    bound = solution.without(out, tol=tol)
    keep = np.setdiff1d(np.arange(len(y)), out)
    truth = objective.on(X[keep], y[keep], viewpoint=v[keep]).solve(tol=1e-13)
    error = distance_of_truth(truth, lam)
    change = np.linalg.norm(truth.coef - solution.coef)
    assert change <= bound.coefficients + error
    assert truth.objective.total >= bound.certificate.dual - bound.certificate.slack - 1e-12
    assert bound.certificate.primal >= truth.objective.total - 1e-9
    low, high = bound.scores(X)
    f = truth.decision_function(X)
    assert (low <= f).all()
    assert (f <= high).all()
    assert bound.decisions(X) >= (np.sign(f) != np.sign(solution.decision_function(X))).sum()
    trained = bound.scores()
    assert np.allclose(trained, (low, high), rtol=1e-7, atol=1e-7)
    return bound.coefficients / max(change, error)


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("tol", [None, 1e-8])
def test_deletion_bounds_hold(seed, tol):
    assert check(seed, tol) >= 1 - 1e-6


@pytest.mark.slow
@pytest.mark.parametrize(("tol", "median", "most"), [(None, 10, 200), (1e-8, 1.5, 15)])
def test_deletion_bounds_hold_on_200_cases(tol, median, most):
    looseness = [check(seed, tol) for seed in range(100, 300)]
    assert np.median(looseness) <= median
    assert np.quantile(looseness, 0.9) <= most


def test_the_newton_step_tightens_the_bound_and_a_solve_more(monkeypatch):
    step, solve = (np.array([check(seed, tol) for seed in range(16)]) for tol in (None, 1e-8))
    assert np.median(step) <= 10
    assert np.median(solve) <= 1.2
    assert solve.max() <= 15

    def fail(solution):
        raise nerm.Degenerate("no step")

    monkeypatch.setattr("nerm.proofs.changes.newton_step", fail)
    plain = np.array([check(seed, None) for seed in range(16)])
    assert (step <= 1.01 * plain).all()
    assert np.median(step / plain) < 0.25


@pytest.mark.parametrize("atom", ATOMS[:3])
def test_update_solves_the_changed_problem(atom):
    X, y, v, _ = rows(7)
    objective = nerm.Risk(atom) + 0.05 * nerm.SquaredL2() + nerm.Neutrality(atom)
    bound = objective.on(X, y, viewpoint=v).solve().without([0, 3, 5])
    updated = bound.update(tol=1e-9)
    keep = np.setdiff1d(np.arange(len(y)), [0, 3, 5])
    truth = objective.on(X[keep], y[keep], viewpoint=v[keep]).solve(tol=1e-9)
    assert updated.status.success
    assert updated.objective.total == pytest.approx(truth.objective.total, rel=1e-8)


@pytest.mark.parametrize(("tol", "width"), [(None, 0.2), (1e-8, 0.1)])
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_added_rows_and_other_weights(kernel, tol, width):
    X, y, v, _ = rows(8, 120)
    words, groups = np.where(y > 0, "yes", "no"), np.where(v > 0, "b", "a")
    logistic = nerm.Logistic()
    objective = nerm.Risk(logistic) + 0.1 * nerm.SquaredL2() + nerm.Neutrality(logistic, weights="balanced")
    if kernel == "rbf":
        kernel = nerm.kernels.RBF(gamma=0.3)
    old = objective.on(X[:110], words[:110], viewpoint=groups[:110], kernel=kernel).solve(tol=1e-8)
    bound = old.with_rows(X[110:], words[110:], groups[110:], tol=tol)
    truth = objective.on(X, words, viewpoint=groups, kernel=kernel).solve(tol=1e-11)
    low, high = bound.scores(X)
    f = truth.decision_function(X)
    assert (low - 1e-4 <= f).all()
    assert (f <= high + 1e-4).all()
    assert np.abs(high - low).max() < width
    weights = np.where(v > 0, 1.1, 1.0)
    bound = truth.reweighted(weights, tol=tol)
    other = objective.on(X, words, viewpoint=groups, kernel=kernel, sample_weight=weights).solve(tol=1e-11)
    low, high = bound.scores(X)
    f = other.decision_function(X)
    assert (low - 1e-4 <= f).all()
    assert (f <= high + 1e-4).all()
    with pytest.raises(nerm.InvalidInputError, match="labels of"):
        old.with_rows(X[:1], ["perhaps"], groups[:1])


def test_deleted_rows_of_a_kernel_problem():
    X, y, v, _ = rows(9, 100)
    objective = nerm.Risk(nerm.Logistic()) + 0.1 * nerm.SquaredL2() + nerm.Neutrality(nerm.Logistic())
    rbf = nerm.kernels.RBF(gamma=0.3)
    bound = objective.on(X, y, viewpoint=v, kernel=rbf).solve(tol=1e-9).without([0, 1])
    truth = objective.on(X[2:], y[2:], viewpoint=v[2:], kernel=rbf).solve(tol=1e-12)
    low, high = bound.scores(X)
    f = truth.decision_function(X)
    assert (low - 1e-5 <= f).all()
    assert (f <= high + 1e-5).all()
    assert (high - low).max() < 0.05


def test_what_cannot_be_bounded_is_said():
    X, y, v, _ = rows(3, 60)
    solution = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.L1()).on(X, y).solve()
    bound = solution.without([0], tol=None)
    assert bound.radius == np.inf  # no strong convexity: nothing is claimed about w
    assert bound.decisions(X) == 60
    with pytest.raises(nerm.InvalidInputError, match="but not all"):
        solution.without(np.ones(60, dtype=bool))
    limited = (nerm.Risk(nerm.Hinge()) + nerm.SquaredL2()).subject_to(nerm.Neutrality(nerm.Hinge()) <= 1.5)
    with pytest.raises(nerm.UnsupportedProblemError, match="without constraints"):
        limited.on(X, y, viewpoint=v).solve().without([0])


def newton(X, y, lam, z):
    """Return (w, b) of the logistic risk + lam/2 ||w||^2 by Newton's method, and a bound on its error.

    Within 1 of the optimum the curvature of a loss changes by a factor e at most (`|phi'''| <= phi''`).
    """
    F = np.hstack([X, np.ones((len(y), 1))])
    ridge = lam * np.diag(np.append(np.ones(X.shape[1]), 0.0))
    for _ in range(8):
        p = 1 / (1 + np.exp(y * (F @ z)))
        g = -F.T @ (p * y) / len(y) + ridge @ z
        H = (F.T * (p * (1 - p))) @ F / len(y) + ridge
        last, z = z, z - np.linalg.solve(H, g)
    return last, np.e * np.linalg.norm(g) / np.linalg.eigvalsh(H)[0]


@pytest.mark.parametrize("tol", [None, 1e-4, 1e-6, 1e-8])
def test_bounds_hold_against_a_reference_that_is_far_more_accurate(tol):
    X, y, _, rng = rows(20, 2000)
    solution = (nerm.Risk(nerm.Logistic()) + 0.1 * nerm.SquaredL2()).on(X, y).solve()
    worst = np.argsort(y * solution.decision_function(X))[:20]
    for out in (rng.choice(2000, 20, replace=False), worst):
        bound = solution.without(out, tol=tol)
        keep = np.setdiff1d(np.arange(2000), out)
        z, error = newton(X[keep], y[keep], 0.1, np.append(*bound.estimate))
        assert error < 1e-3 * bound.radius  # so the comparison decides
        assert np.linalg.norm(z[:-1] - bound.centre) <= bound.radius
        low, high = bound.scores(X)
        f = X @ z[:-1] + z[-1]
        assert ((low <= f) & (f <= high)).all()


@pytest.mark.parametrize("seed", range(4))
def test_bounds_after_a_newton_step_hold_against_a_quadratic_program(seed):
    X, y, v, rng = rows(40 + seed, 200)
    objective = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + 0.5 * nerm.Neutrality(nerm.Hinge())
    out = rng.choice(200, 1 + 3 * seed, replace=False)
    bound = objective.on(X, y, viewpoint=v).solve().without(out)
    keep = np.setdiff1d(np.arange(200), out)
    value, w, b = hinge_optimum(X[keep], y[keep], v[keep], 0.05, 0.5)
    assert bound.certificate.dual <= value + 1e-8
    assert np.linalg.norm(w - bound.centre) <= bound.radius + 1e-5
    low, high = bound.scores(X)
    f = X @ w + b
    assert ((low <= f + 1e-5) & (f <= high + 1e-5)).all()


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("atom", [nerm.Hinge(), nerm.Logistic()])
def test_leave_one_out_holds_for_every_row(atom, kernel, intercept):
    X, y, v, _ = rows(31, 24)
    kernel = nerm.kernels.RBF(gamma=0.3) if kernel else None
    objective = nerm.Risk(atom) + 0.2 * nerm.SquaredL2() + 0.5 * nerm.Neutrality(atom)
    solution = objective.on(X, y, viewpoint=v, kernel=kernel, intercept=intercept).solve(tol=1e-9)
    found = solution.leave_one_out()
    changes = np.zeros(24)
    for i in range(24):
        keep = np.delete(np.arange(24), i)
        other = objective.on(X[keep], y[keep], viewpoint=v[keep], kernel=kernel, intercept=intercept)
        truth = other.solve(tol=1e-11)
        moved = (truth.coef if kernel is None else np.insert(truth.coef, i, 0.0)) - solution.coef
        gram = np.eye(4) if kernel is None else np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
        changes[i] = np.sqrt(max(moved @ gram @ moved, 0.0))
        assert changes[i] <= found.coefficients[i] + distance_of_truth(truth, 0.2)
        assert found.low[i] <= truth.decision_function(X[i : i + 1])[0] <= found.high[i]
    assert found.unmoved(0.3) <= (changes <= 0.3).sum()
    assert found.unmoved(found.coefficients.max()) == 24


def test_leave_one_out_is_tight_without_a_tie_and_says_what_it_needs():
    X, y, v, _ = rows(32, 400)
    risk = nerm.Risk(nerm.Logistic()) + 0.1 * nerm.SquaredL2()
    solution = risk.on(X, y).solve(tol=1e-11)
    bounds = [solution.without([i]).coefficients for i in range(10)]
    ratio = solution.leave_one_out().coefficients[:10] / bounds
    assert (ratio >= 0.99).all()
    assert np.median(ratio) <= 15
    named = (risk + nerm.Neutrality(nerm.Logistic(), weights="balanced")).on(X, y, viewpoint=v).solve()
    with pytest.raises(nerm.UnsupportedProblemError, match="uniform weights and no constraints"):
        named.leave_one_out()


def test_nothing_is_claimed_about_a_row_of_zeros_without_a_squared_norm():
    X, y, _, _ = rows(3, 60)
    X[:5] = 0.0
    bound = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.L1()).on(X, y).solve().without([0], tol=None)
    assert (bound.scores()[1] == np.inf).all()
    assert bound.decisions() == bound.decisions(X) == 60
