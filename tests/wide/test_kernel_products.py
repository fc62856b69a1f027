"""Products with a kernel and its Newton systems, against dense matrices."""

import numpy as np
import pytest

from nerm import kernels
from nerm.model.hypothesis import KernelHypothesis
from nerm.solvers.newton_alm import kernel_products, kernel_system
from nerm.solvers.newton_alm.kernel_products import KernelProducts


@pytest.fixture(params=["kept", "rows held", "nothing held"])
def hypothesis(request, monkeypatch):
    """Return a kernel on 60 rows: its matrix kept, or 20 rows of it, or 2."""
    if request.param != "kept":
        monkeypatch.setattr("nerm.model.hypothesis.GRAM_LIMIT", 9)
        monkeypatch.setattr(kernel_products, "HELD", 8 * 60 * (20 if request.param == "rows held" else 2))
    monkeypatch.setattr("nerm.model.hypothesis.AT_ONCE", 9)
    monkeypatch.setattr("nerm.model.kernels.CALLED_TILE", 13)
    return KernelHypothesis(kernels.RBF(gamma=0.3), np.random.default_rng(0).normal(size=(60, 3)))


def hypotheses_of(c, b, K):
    return np.concatenate([c, K @ c, [b]])


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("direct", [True, False])
def test_systems(hypothesis, intercept, direct, monkeypatch):
    """H x = g in the coordinates of a factor K = L L', where it is a matrix."""
    monkeypatch.setattr(kernel_system, "DIRECT", 50 if direct else 3)
    monkeypatch.setattr(kernel_system, "FEW", 50 if direct else 3)
    monkeypatch.setattr(kernel_system, "LARGEST", 8 * 100)
    rng = np.random.default_rng(1)
    K = hypothesis.kernel(hypothesis.X, hypothesis.X)
    values, vectors = np.linalg.eigh(K)
    L = vectors * np.sqrt(np.maximum(values, 0.0))
    density = np.maximum(rng.normal(size=60), 0.0)
    (g, *e), (gb, *eb) = rng.normal(size=(3, 60)), rng.normal(size=3) * intercept
    widths, lam, ridge = np.array([0.1, 2.0]), 0.5, 0.01
    A = np.column_stack([L, np.full(60, float(intercept))])
    lines = np.array([np.append(L.T @ c, b) for c, b in zip(e, eb, strict=True)])
    H = np.diag(np.append(np.full(60, lam), ridge if intercept else 1.0))
    H += A.T @ (density[:, None] * A) + lines.T @ (lines / widths[:, None])
    expected = np.linalg.solve(H, np.append(L.T @ g, gb))
    products = KernelProducts(hypothesis, intercept=intercept)
    system = products.system(density, np.append(np.full(120, lam), ridge))
    given = np.array([hypotheses_of(c, b, K) for c, b in zip(e, eb, strict=True)])
    found = system.solve(hypotheses_of(g, gb, K), given, widths, 1e-9, 0)
    assert products.times(found) == pytest.approx(A @ expected, abs=1e-6)
    assert found[60:120] == pytest.approx(K @ found[:60], abs=1e-9)
    alone = np.linalg.solve(H - lines.T @ (lines / widths[:, None]), lines[0])
    assert system.reach(given[0], 1e-9, 0) == pytest.approx(lines[0] @ alone, rel=1e-6)
    assert (system.iterations > 0) != direct
    assert products.system(1.01 * density, np.append(np.full(120, lam), ridge)) is system
    assert products.system(3 * density, np.append(np.full(120, lam), ridge)) is not system


def test_forces_meet_the_kernel_where_they_changed(hypothesis):
    rng = np.random.default_rng(2)
    K = hypothesis.kernel(hypothesis.X, hypothesis.X)
    products, parts, shares = (
        KernelProducts(hypothesis, intercept=True),
        rng.normal(size=(3, 60)),
        rng.random(3),
    )
    for rows in (range(60), range(3), range(40, 50), ()):
        parts = parts.copy()
        parts[:, list(rows)] += 1.0
        before = products.passes
        assert products.pull(parts, shares) == pytest.approx(
            hypotheses_of(shares @ parts, (shares @ parts).sum(), K), abs=1e-9
        )
        assert products.passes - before == pytest.approx(len(rows) / 60)
    one, other = (products.pull(parts, one) for one in np.eye(3)[:2])
    assert products.inner(one, other) == pytest.approx(parts[0] @ K @ parts[1])
    assert products.dot(one, other) == pytest.approx(
        parts[0] @ K @ parts[1] + parts[0].sum() * parts[1].sum()
    )
    assert products.square(one) == pytest.approx(parts[0] @ K @ parts[0])


def test_products_of_a_hypothesis_in_parts(hypothesis):
    rng = np.random.default_rng(3)
    K = hypothesis.kernel(hypothesis.X, hypothesis.X)
    for columns in (np.arange(60), np.array([3, 17, 40])):
        weights = rng.normal(size=(len(columns), 2))
        assert hypothesis.product(columns, weights) == pytest.approx(K[:, columns] @ weights)
        assert hypothesis.gram_of(columns, columns) == pytest.approx(K[np.ix_(columns, columns)])
        assert hypothesis.some(columns).scores(weights[:, 0]) == pytest.approx(
            K[np.ix_(columns, columns)] @ weights[:, 0]
        )
    coef = rng.normal(size=60)
    assert hypothesis.scores(coef) == pytest.approx(K @ coef)
    coef[0] += 1.0  # in place: what was kept belongs to the old one
    assert hypothesis.scores(coef) == pytest.approx(K @ coef)


@pytest.mark.parametrize("held", [60, 20, 2])
def test_rows_in_single_precision(monkeypatch, held):
    """The same sums and systems to six digits, wherever the rows come from, and doubles when they are asked for."""
    monkeypatch.setattr("nerm.model.hypothesis.AT_ONCE", 9)
    monkeypatch.setattr(kernel_products, "HELD", 4 * 60 * held)
    hypothesis = KernelHypothesis(kernels.RBF(gamma=0.3), np.random.default_rng(0).normal(size=(60, 3)))
    K, rng = hypothesis.kernel(hypothesis.X, hypothesis.X), np.random.default_rng(1)
    products = KernelProducts(hypothesis, intercept=True, single=True)
    assert products.held.single
    for rows in (np.array([40, 3]), np.array([3, 17, 40, 41]), np.arange(60), np.array([5, 6])):
        weights = rng.normal(size=(len(rows), 2))
        assert products.product(rows, weights) == pytest.approx(K[:, rows] @ weights, abs=1e-4)
        assert products.held.square(rows) == pytest.approx(K[np.ix_(rows, rows)], abs=1e-6)
    density = np.where(np.arange(60) < 20, 2.0, 0.0)
    g = hypotheses_of(rng.normal(size=60), 0.3, K)
    none = np.zeros((0, 121)), np.zeros(0), 1e-9, 0
    ridge = np.append(np.full(120, 0.5), 0.01)
    doubles = products.in_doubles()
    assert not doubles.held.single
    found, expected = (one.system(density, ridge).solve(g, *none) for one in (products, doubles))
    assert products.times(found) == pytest.approx(doubles.times(expected), abs=1e-3)


def test_a_matrix_is_made_for_the_third_product(monkeypatch):
    monkeypatch.setattr("nerm.model.hypothesis.AT_ONCE", 9)
    hypothesis = KernelHypothesis(kernels.RBF(gamma=0.3), np.random.default_rng(0).normal(size=(60, 3)))
    K = hypothesis.kernel(hypothesis.X, hypothesis.X)
    for i, coef in enumerate(np.random.default_rng(1).normal(size=(4, 60))):
        assert hypothesis.scores(coef) == pytest.approx(K @ coef)
        assert ("gram" in vars(hypothesis)) == (i >= 2)


def test_products_that_were_foreseen_are_not_computed_again(monkeypatch, hypothesis):
    K, coefs = hypothesis.kernel(hypothesis.X, hypothesis.X), np.random.default_rng(1).normal(size=(6, 60))
    hypothesis.foresee(list(coefs))
    monkeypatch.setattr(KernelHypothesis, "product", None)
    for coef in coefs:
        assert hypothesis.scores(coef, 0.5) == pytest.approx(K @ coef + 0.5)
        assert hypothesis.squared_norm(coef) == pytest.approx(coef @ K @ coef)
    assert "gram" not in vars(hypothesis)
    monkeypatch.undo()
    hypothesis.foresee([])
    coefs[0] += 1.0
    assert hypothesis.scores(coefs[0]) == pytest.approx(K @ coefs[0])
