"""Derivatives of solutions against finite differences of tight solves, on random problems of every kind."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
from sklearn.metrics.pairwise import rbf_kernel

import nerm

ATOMS = {
    "hinge": nerm.Hinge(),
    "logistic": nerm.Logistic(),
    "squared-hinge": nerm.SquaredHinge(),
    "smooth-hinge": nerm.SmoothHinge(),
    "squared": nerm.Squared(),
    "two-kinks": nerm.margin_function(lambda m: cp.maximum(0, 1 - m, 0.4 - 2 * m), name="two-kinks"),
    "exp-kink": nerm.margin_function(lambda m: cp.exp(cp.pos(0.3 - m)), name="exp-kink"),
    "huber": nerm.margin_function(lambda m: cp.huber(cp.pos(1 - m), 0.5), name="huber"),
}
RESIDUALS = {
    "squared": nerm.SquaredError(),
    "absolute": nerm.AbsoluteError(),
    "huber": nerm.HuberError(0.7),
    "pinball": nerm.PinballError(0.3),
    "eps": nerm.EpsilonInsensitive(0.3),
    "own": nerm.residual_function(lambda r: cp.maximum(cp.abs(r), cp.square(r)), name="own-residual"),
    "soft": nerm.residual_function(lambda r: cp.logistic(r) + cp.logistic(-r), name="soft"),
}
REGULARIZERS = [nerm.SquaredL2(), nerm.SquaredL2(), nerm.ElasticNet(0.5)]


def drawn(seed):
    """Return X, y, v, weights and an objective as a function of (lam, eta)."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(40, 120)), int(rng.integers(2, 6))
    X = rng.normal(size=(n, d))
    v = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=n) > 0, 1.0, -1.0)
    y[:2], v[:2] = [-1, 1], [-1, 1]
    names = list(ATOMS)
    loss, psi = (
        ATOMS[names[seed % len(names)]],
        [*ATOMS.values(), nerm.Identity()][rng.integers(len(names) + 1)],
    )
    term = nerm.Neutrality(
        psi,
        side=["both", "both", "agreement"][rng.integers(3)],
        weights=["uniform", "balanced"][rng.integers(2)],
    )
    omega = REGULARIZERS[rng.integers(3)]
    given = {"intercept": bool(rng.random() < 0.8), "viewpoint": v}
    kernel = "rbf" if isinstance(omega, nerm.SquaredL2) and rng.random() < 0.25 else None
    values, vectors = np.linalg.eigh(rbf_kernel(X, gamma=1 / (d * X.var())))
    features = vectors * np.sqrt(np.maximum(values, 0.0))  # their inner products are the kernel values
    real = None
    if seed % 5 == 4:  # a regression
        loss = list(RESIDUALS.values())[rng.integers(len(RESIDUALS))]
        real = X[:, 0] + X[:, 1] + rng.normal(size=n)
    lam, eta, weights = 10 ** rng.uniform(-2, 0), 10 ** rng.uniform(-1.5, 0.5), rng.uniform(0.5, 2, n)

    at = {"lam": lam, "eta": eta, "sample_weight": weights, "y": y if real is None else real}

    def problem(linear=False, **changed):
        """Bind the changed problem; with `linear`, a kernel problem is bound to explicit features."""
        now = at | changed
        objective = nerm.Risk(loss) + now["lam"] * omega + now["eta"] * term
        rows, k = (features, None) if kernel and linear else (X, kernel)
        return objective.on(rows, now["y"], sample_weight=now["sample_weight"], kernel=k, **given)

    return problem, at, rng


def check(seed):
    """Return the error of the derivative relative to its size, or None if there is none.

    The differences come from solves of the linear problem, which reach a smaller gap than those with a kernel.
    Between kinks a large step is exact, near kinks only a small one is, and the error of the solves is divided
    by the step: so the derivative is compared with the differences over several steps.
    """
    problem, at, rng = drawn(seed)
    parameter = ["eta", "lam", "sample_weight"][seed % 3]
    if seed % 5 == 4 and seed % 2:
        parameter = "y"
    by_row = parameter in ("sample_weight", "y")
    solution = problem().solve(tol=1e-12)
    if np.isinf(solution.certificate.relative_gap):  # the objective falls for ever
        return None
    try:
        found = solution.sensitivity(parameter)
    except nerm.Degenerate:
        return None
    assert found.residual < 1e-8
    f = solution.training_scores()
    scores, terms, unit = found.scores, found.terms, 1.0 if by_row else at[parameter]
    if by_row:
        row = int(np.argsort(-np.abs(scores).max(axis=0))[rng.integers(5)])
        scores, terms, coef = scores[:, row], terms[:, row], found.coef[:, row]
    else:
        coef = found.coef

    def changed(h):
        if by_row:
            values = at[parameter].copy()
            values[row] += h
            return problem(linear=True, **{parameter: values}).solve(tol=1e-13)
        return problem(linear=True, **{parameter: at[parameter] + h}).solve(tol=1e-13)

    if not solution.problem.is_kernel:
        level = found.intercept[row] if by_row else found.intercept
        assert np.allclose(
            solution.problem.hypothesis.X @ coef + level, scores, atol=1e-9 * (1 + np.abs(scores).max())
        )
    errors = []
    for h in np.array([3e-2, 1e-2, 3e-3, 1e-3, 3e-4, 1e-4]) * unit:
        slopes = []
        for step in (h, h / 2):
            ends = changed(step), changed(-step)
            read = [[s.training_scores(), np.array([t.value for t in s.objective.terms])] for s in ends]
            slopes.append([(a - b) / (2 * step) for a, b in zip(*read, strict=True)])
        slopes.append([(4 * two - one) / 3 for one, two in zip(*slopes, strict=True)])
        for values, parts in slopes:
            size = max(np.abs(values).max(), 0.02 * np.abs(f).max() / unit, 1e-12)
            size_of_parts = max(np.abs(parts).max(), size)
            apart = np.abs(values - scores).max() / size, np.abs(parts - terms).max() / size_of_parts
            errors.append(max(apart))
        if min(errors) < 1e-6:
            break
    return min(errors)


@pytest.mark.long
@pytest.mark.parametrize("seed", [0, 1, 2, 4, 6, 9, 19, 29, 39])
def test_derivatives_match_finite_differences(seed):
    error = check(seed)
    assert error is None or error < 1e-5


@pytest.mark.slow
def test_derivatives_match_finite_differences_on_300_problems():
    errors = [check(seed) for seed in range(100, 400)]
    known = np.array([error for error in errors if error is not None])
    assert len(known) > 250
    # at seed 226 the solves are off by 7e-8, by the same in each: by Newton steps the derivative is right to 1.4e-7
    assert np.sort(known)[-2] < 1e-5
    assert known.max() < 2e-5


def test_a_solution_at_a_corner_has_no_derivative():
    objective = nerm.Risk(nerm.Hinge()) + 1.0 * nerm.SquaredL2()
    solution = objective.on([[1.0], [-1.0]], [1, -1], intercept=False).solve(tol=1e-10)
    with pytest.raises(nerm.Degenerate, match="kink"):
        solution.sensitivity("lam")


def test_the_tie_of_both_sides_is_kept():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(200, 3))
    y, v = np.sign(X[:, 0] + rng.normal(size=200)), np.sign(X[:, 0] + X[:, 2])
    logistic = nerm.Logistic()
    problem = (nerm.Risk(logistic) + 0.05 * nerm.SquaredL2() + nerm.Neutrality(logistic)).on(
        X, y, viewpoint=v
    )
    solution = problem.solve(tol=1e-12)
    assert 0.05 < solution.thetas["viewpoint"] < 0.95
    found = solution.sensitivity("eta")
    f = solution.training_scores()
    sides = [float(np.mean(-s * v / (1 + np.exp(s * v * f)) * found.scores)) for s in (1, -1)]
    assert sides[0] == pytest.approx(sides[1], abs=1e-9)
    assert found.terms[2] == pytest.approx(sides[0], rel=1e-6)
    # the objective has the derivative C by eta: the other terms cancel
    assert found.terms @ [1, 0.05, 1] == pytest.approx(0.0, abs=1e-9)


def test_what_cannot_be_differentiated_is_refused(data):
    X, y, v = data
    hinge = nerm.Hinge()
    limited = (nerm.Risk(hinge) + nerm.SquaredL2()).subject_to(nerm.Neutrality(hinge) <= 1.5)
    with pytest.raises(nerm.UnsupportedProblemError, match="without constraints"):
        limited.on(X, y, viewpoint=v).solve().sensitivity("lam")
    plain = (nerm.Risk(hinge) + nerm.SquaredL2() + 0 * nerm.Neutrality(hinge)).on(X, y, viewpoint=v).solve()
    with pytest.raises(nerm.InvalidInputError, match="positive weight"):
        plain.sensitivity("eta")
    with pytest.raises(nerm.InvalidInputError, match="'parameter' must be one of"):
        plain.sensitivity("gamma")
    norm = (nerm.Risk(hinge) + nerm.LInf() + nerm.SquaredL2()).on(X, y).solve()
    with pytest.raises(nerm.UnsupportedProblemError, match="derivatives need"):
        norm.sensitivity("lam")


def test_ridge_regression_has_its_known_derivative_and_update():
    rng = np.random.default_rng(0)
    X, n = rng.normal(size=(50, 3)), 50
    y = X @ [1.0, -2.0, 0.5] + rng.normal(size=n)
    objective = nerm.Risk(nerm.SquaredError()) + 0.3 * nerm.SquaredL2()
    solution = objective.on(X[:45], y[:45], intercept=False).solve(tol=1e-12)

    def ridge(X, y, lam):
        return np.linalg.solve(2 * X.T @ X / len(y) + lam * np.eye(3), 2 * X.T @ y / len(y))

    known = (ridge(X[:45], y[:45], 0.3 + 1e-5) - ridge(X[:45], y[:45], 0.3 - 1e-5)) / 2e-5
    assert solution.sensitivity("lam").coef == pytest.approx(known, rel=1e-6)
    bound = solution.with_rows(X[45:], y[45:], tol=1e-13)
    assert np.linalg.norm(ridge(X, y, 0.3) - solution.coef) <= bound.coefficients + 1e-9
    assert bound.estimate[0] == pytest.approx(ridge(X, y, 0.3), rel=1e-6)
