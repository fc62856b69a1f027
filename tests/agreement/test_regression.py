"""Regression: nerm's solvers against plain cvxpy written by hand, and against scikit-learn at their common problems."""

from __future__ import annotations

import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.linear_model import QuantileRegressor, Ridge

import nerm

#: Each residual function, with the same formula written by hand.
LOSSES = [
    (nerm.SquaredError(), cp.square),
    (nerm.AbsoluteError(), cp.abs),
    (nerm.HuberError(0.7), lambda r: cp.huber(r, 0.7)),
    (nerm.PinballError(0.2), lambda r: cp.maximum(0.2 * r, -0.8 * r)),
    (nerm.EpsilonInsensitive(0.3), lambda r: cp.pos(cp.abs(r) - 0.3)),
    (
        nerm.residual_function(lambda r: cp.maximum(2 * r, -r) + 0.1 * cp.square(r), name="late"),
        lambda r: cp.maximum(2 * r, -r) + 0.1 * cp.square(r),
    ),
]
SURROGATES = [
    (nerm.Identity(), lambda m: m),
    (nerm.Hinge(), lambda m: cp.pos(1 - m)),
    (nerm.Logistic(), lambda m: cp.logistic(-m)),
]


def draw(seed):
    """Return the rows of a random regression: ties, duplicates, offsets and scales are drawn on purpose."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(20, 70)), int(rng.integers(1, 8))
    X = rng.normal(size=(n, d)) if seed % 3 else rng.integers(0, 2, size=(n, d)).astype(float)
    v = np.where(rng.random(n) < 0.4, 1.0, -1.0)
    v[:2] = [1, -1]
    y = X @ rng.normal(size=d) + 0.5 * v + rng.standard_t(3, size=n)
    y = np.round(y) if seed % 4 == 0 else y  # equal residuals
    scale, level = [(1.0, 0.0), (30.0, 1000.0), (0.01, 0.0)][seed % 3 if seed % 2 else 0]
    return rng, X, scale * y + level, v


def random_problem(seed):
    """Return a problem of nerm and the optimum by plain cvxpy."""
    rng, X, y, v = draw(seed)
    n, d = X.shape
    loss, written = LOSSES[seed % len(LOSSES)]
    psi, of = SURROGATES[seed // 3 % len(SURROGATES)]
    mu, eta = float(10 ** rng.uniform(-3, 0)), float(rng.choice([0.0, 0.1, 1.0, 10.0]))
    s, u = (rng.random(n), rng.random(n)) if seed % 5 == 0 else (np.ones(n), np.ones(n))
    intercept = seed % 7 != 0
    l1 = float(10 ** rng.uniform(-3, -1)) if seed % 4 == 1 else 0.0
    w, b = cp.Variable(d), cp.Variable()
    f = X @ w + (b if intercept else 0.0)
    sides = [u @ of(side * cp.multiply(v, f)) / n for side in (1, -1)]
    value = s @ written(y - f) / n + mu / 2 * cp.sum_squares(w) + l1 * cp.norm1(w)
    limits, constraints = [], []
    if seed % 6 == 4:  # a limit instead of a weight
        least = float(of(cp.Constant(0.0)).value) * float(u.mean())
        limits, constraints = [max(sides_at(X, y, v, u, of)) * 0.3 + 0.7 * least], []
        limits[0] = max(limits[0], least + 1e-3)
        constraints = [side <= limits[0] for side in sides]
    else:
        value = value + eta * cp.maximum(*sides)
    if seed % 11 == 5:
        constraints.append(w >= 0)
    by_hand = cp.Problem(cp.Minimize(value), constraints)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the last digits of 1e-11 may not be reached
        by_hand.solve(solver="CLARABEL", tol_gap_abs=1e-11, tol_gap_rel=1e-11, tol_feas=1e-11)
    objective = nerm.Risk(loss) + mu * nerm.SquaredL2() + l1 * nerm.L1()
    term = nerm.Neutrality(psi, weights=u)
    objective = objective.subject_to(term <= limits[0]) if limits else objective + eta * term
    if seed % 11 == 5:
        objective = objective.subject_to(nerm.Coefficients() >= 0)
    given = sp.csr_matrix(X) if seed % 2 else X
    problem = objective.on(given, y, viewpoint=v, sample_weight=s, intercept=intercept)
    return problem, float(by_hand.value)


def sides_at(X, y, v, u, of):
    """Return C+ and C- of a least squares fit."""
    design = np.column_stack([X, np.ones(len(y))])
    f = design @ np.linalg.lstsq(design, y, rcond=None)[0]
    return [float((u @ of(cp.Constant(side * v * f)) / len(y)).value) for side in (1, -1)]


def check(seed):
    problem, optimum = random_problem(seed)
    solution = problem.solve(tol=1e-7)
    assert solution.status == "optimal", (seed, solution)
    assert solution.objective.total == pytest.approx(optimum, rel=1e-6, abs=1e-9), seed
    assert solution.certificate.dual <= optimum * (1 + 1e-7) + 1e-9, seed


@pytest.mark.long
def test_random_problems():
    for seed in range(25):
        check(seed)


@pytest.mark.slow
def test_many_random_problems():
    for seed in range(25, 325):
        check(seed)


@pytest.mark.parametrize(
    ("name", "scale"),
    [(name, 1.0) for name in ("interior-point", "augmented-lagrangian", "smo", "clarabel")]
    + [("interior-point", 1e4), ("smo", 1e4), ("auto", 1e-3)],
)
@pytest.mark.parametrize(("loss", "written"), LOSSES, ids=lambda x: type(x).__name__)
def test_every_solver_with_and_without_a_kernel(name, scale, loss, written):
    _, X, y, v = draw(1)
    y = scale * (y - y.mean()) / y.std()
    loss = nerm.HuberError(0.7 * scale) if isinstance(loss, nerm.HuberError) else loss
    objective = nerm.Risk(loss) + 0.1 * nerm.SquaredL2() + 0.5 * nerm.Neutrality(nerm.Identity())
    linear = objective.on(X, y, viewpoint=v).solve(name)
    solver = name if name != "interior-point" else "auto"
    kernel = objective.on(X, y, viewpoint=v, kernel="linear").solve(solver)
    assert linear.status == kernel.status == "optimal"
    assert linear.objective.total == pytest.approx(kernel.objective.total, rel=3e-6)
    np.testing.assert_allclose(linear.predict(X), X @ linear.coef + linear.intercept, rtol=1e-12)


def test_squared_error_is_ridge():
    _, X, y, _ = draw(2)
    solution = (nerm.Risk(nerm.SquaredError()) + 0.2 * nerm.SquaredL2()).on(X, y).solve(tol=1e-10)
    ridge = Ridge(alpha=0.1 * len(y), tol=1e-14, solver="cholesky").fit(X, y)  # 1/n and 1/2 ||w||^2 are ours
    np.testing.assert_allclose(solution.coef, ridge.coef_, atol=1e-6)
    assert solution.intercept == pytest.approx(ridge.intercept_, abs=1e-6)


@pytest.mark.parametrize("tau", [0.2, 0.5])
def test_pinball_and_absolute_are_quantile_regression(tau):
    _, X, y, _ = draw(2)
    theirs = QuantileRegressor(quantile=tau, alpha=0.05, solver="highs").fit(X, y)  # mean pinball + alpha l1
    loss, factor = (nerm.PinballError(tau), 1.0) if tau != 0.5 else (nerm.AbsoluteError(), 2.0)
    problem = (nerm.Risk(loss) + factor * 0.05 * nerm.L1()).on(X, y)
    ours, rival = problem.solve(tol=1e-9), problem.evaluate(theirs.coef_, float(theirs.intercept_))
    assert ours.status == "optimal"
    assert ours.objective.total == pytest.approx(rival.total, rel=1e-6)


def test_epsilon_insensitive_is_support_vector_regression():
    """LinearSVR penalises its intercept: a column of ones without an intercept is the same problem."""
    from sklearn.svm import LinearSVR

    _, X, y, _ = draw(2)
    C = 0.1
    theirs = LinearSVR(C=C, epsilon=0.2, tol=1e-10, max_iter=1_000_000, dual=True, random_state=0).fit(X, y)
    design = np.column_stack([X, np.ones(len(y))])
    objective = nerm.Risk(nerm.EpsilonInsensitive(0.2)) + 1 / (C * len(y)) * nerm.SquaredL2()
    problem = objective.on(design, y, intercept=False)
    ours = problem.solve(tol=1e-9)
    rival = problem.evaluate(np.append(theirs.coef_, theirs.intercept_))
    assert ours.objective.total == pytest.approx(rival.total, rel=1e-6)
    assert ours.status == "optimal"


def test_equal_rows_with_different_targets_stay_apart():
    """Ten copies of each row with two values of y: the solver may merge equal pairs only."""
    X, y = np.tile([[0.0], [1.0]], (20, 1)), np.repeat([0.0, 3.0], 20)
    solution = (nerm.Risk(nerm.AbsoluteError()) + 0.01 * nerm.SquaredL2()).on(X, y).solve()
    assert solution.objective.total == pytest.approx(1.5, rel=1e-6)
    doubled = (nerm.Risk(nerm.SquaredError()) + 0.01 * nerm.SquaredL2()).on(X, y + X[:, 0]).solve(tol=1e-9)
    once = (nerm.Risk(nerm.SquaredError()) + 0.01 * nerm.SquaredL2()).on(
        np.vstack([X, X]), np.append(y + X[:, 0], y + X[:, 0])
    )
    np.testing.assert_allclose(doubled.coef, once.solve(tol=1e-9).coef, atol=1e-8)


@pytest.mark.parametrize(
    ("loss", "psi"), [(nerm.SquaredError(), nerm.Logistic()), (nerm.AbsoluteError(), nerm.Identity())]
)
def test_chunks_paths_and_frontier_agree_with_memory(loss, psi):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(4000, 3))
    v, y = np.sign(X[:, 0]), 5 + X @ [1.0, 2.0, 0.0] + rng.normal(size=4000)
    objective = nerm.Risk(loss) + 0.1 * nerm.SquaredL2() + 1.0 * nerm.Neutrality(psi, weights="balanced")
    pieces = [(X[part], y[part], v[part]) for part in np.array_split(np.arange(4000), 5)]
    chunked = objective.on(nerm.Chunks(lambda: iter(pieces)))
    memory = objective.on(X, y, viewpoint=v)
    for one, other in zip(chunked.path([0.0, 1.0]), memory.path([0.0, 1.0]), strict=True):
        assert one.status == other.status == "optimal"
        assert one.objective.total == pytest.approx(other.objective.total, rel=3e-6)
        np.testing.assert_allclose(one.predict(X[:5]), X[:5] @ one.coef + one.intercept)
    frontier = memory.frontier(tol=0.05)
    assert frontier.gap <= 0.05
    assert frontier.refutes(risk=0.5 * memory.with_neutrality(0.0).solve().objective.total, neutrality=10.0)


def test_a_limit_of_the_covariance_is_an_exact_constraint():
    _, X, y, v = draw(4)
    term = nerm.Neutrality(nerm.Identity(), weights="balanced")
    objective = nerm.Risk(nerm.SquaredError()) + 0.01 * nerm.SquaredL2()
    solution = objective.subject_to(term <= 0.01).on(X, y, viewpoint=v).solve()
    f = solution.predict(X)
    assert solution.status == "optimal"
    assert abs(f[v > 0].mean() - f[v < 0].mean()) / 2 == pytest.approx(0.01, abs=1e-6)


def test_a_saved_regression_is_certified_again(tmp_path):
    _, X, y, v = draw(4)
    objective = nerm.Risk(nerm.HuberError(0.4)) + 0.1 * nerm.SquaredL2() + nerm.Neutrality(nerm.Identity())
    solution = objective.on(X, y, viewpoint=v).solve()
    solution.save(tmp_path / "model.nerm")
    loaded = nerm.load(tmp_path / "model.nerm")
    np.testing.assert_array_equal(loaded.predict(X), solution.predict(X))
    assert loaded.status == "optimal"


def test_what_cannot_be_combined_is_said():
    X, y = [[0.0], [1.0], [2.0]], [0.1, 0.5, 2.0]
    mixed = nerm.Risk(nerm.SquaredError()) + nerm.Risk(nerm.Hinge())
    with pytest.raises(nerm.InvalidInputError, match=r"residuals cannot be added to a risk of margins"):
        mixed.on(X, y)
    with pytest.raises(nerm.InvalidInputError, match=r"not of a residual\. Got AbsoluteError\(\)"):
        nerm.Neutrality(nerm.AbsoluteError())
    with pytest.raises(nerm.InvalidInputError, match=r"a regression has no classes"):
        nerm.Risk(nerm.AbsoluteError(), positive=2.0)
    with pytest.raises(nerm.InvalidInputError, match=r"must not be combined with residual functions"):
        nerm.Risk(nerm.Hinge() + nerm.AbsoluteError())
    with pytest.raises(nerm.InvalidInputError, match=r"'y' must hold real numbers\. Got text"):
        nerm.Risk(nerm.AbsoluteError()).on(X, ["a", "b", "c"])
    with pytest.raises(nerm.InvalidInputError, match=r"records with time, event"):
        nerm.Risk(nerm.AbsoluteError()).on(X, np.zeros(3, dtype=[("time", float), ("event", bool)]))
    with pytest.raises(nerm.InvalidInputError, match=r"'y' must have one number for each of the 3 rows"):
        nerm.Risk(nerm.AbsoluteError()).on(X, np.zeros((3, 2)))
    with pytest.raises(nerm.InvalidInputError, match=r"'tau' must be between 0 and 1"):
        nerm.PinballError(1.0)
    assert str(1.0 * nerm.Risk(nerm.PinballError(0.3))) == "minimise mean pinball-error(y - f)"
