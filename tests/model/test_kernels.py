"""Kernels against loops over pairs of rows, and widths against scikit-learn's own."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.svm import SVC

import nerm
from nerm import kernels
from nerm.kernels import RBF, Linear, Polynomial

X = np.random.default_rng(0).normal(size=(6, 3)) + 0.5
Z = np.random.default_rng(1).normal(size=(4, 3))
FORMULAS = {
    kernels.Linear(): lambda dot, distance: dot,
    kernels.RBF(gamma=0.3): lambda dot, distance: math.exp(-0.3 * distance),
    kernels.Polynomial(gamma=0.5, degree=3, coef0=1.0): lambda dot, distance: (0.5 * dot + 1.0) ** 3,
    kernels.Sigmoid(gamma=0.2, coef0=-0.1): lambda dot, distance: math.tanh(0.2 * dot - 0.1),
}


@pytest.mark.parametrize("kernel", FORMULAS, ids=repr)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_values_and_diagonal_by_loops(kernel, form):
    def k(x, z):
        dot = sum(a * b for a, b in zip(x, z, strict=True))
        return FORMULAS[kernel](dot, sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))

    np.testing.assert_allclose(kernel(form(X), form(Z)), [[k(x, z) for z in Z] for x in X], rtol=1e-12)
    np.testing.assert_allclose(kernel.diagonal(form(X)), [k(x, x) for x in X], rtol=1e-12)


def test_a_gram_matrix_loses_its_rounding_and_nothing_else():
    rng = np.random.default_rng(2)
    K = kernels.RBF(gamma=0.3)(X, X)
    noise = 1e-10 * rng.normal(size=K.shape)
    checked = kernels.check_gram(K + noise, psd=True)
    np.testing.assert_array_equal(checked, checked.T)
    np.testing.assert_allclose(checked, K, atol=1e-9)
    low = X @ X.T - 1e-9 * np.eye(
        6
    )  # of rank 3: three eigenvalues are below 0 by no more than rounding explains
    checked = kernels.check_gram(low, psd=True)
    assert np.linalg.eigvalsh(checked).min() >= -1e-14
    np.testing.assert_allclose(checked, X @ X.T, atol=1e-8)
    np.testing.assert_array_equal(kernels.check_gram(low), low)  # nobody asked


def test_the_diagonal_of_a_function_of_ones_own():
    own = kernels.Custom(lambda X, Z: (X @ Z.T) ** 2 + 1.0)
    np.testing.assert_allclose(own.diagonal(X), np.diag(own(X, X)), rtol=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
@pytest.mark.parametrize("gamma", ["scale", "auto"])
def test_widths_are_those_of_scikit_learn(form, gamma):
    here = kernels.RBF(gamma).fitted(form(X))
    y = [-1, 1] * 3
    named, numbered = (SVC(gamma=g).fit(form(X), y).decision_function(form(Z)) for g in (gamma, here.gamma))
    np.testing.assert_allclose(named, numbered, rtol=1e-9)
    expected = 1 / 3 if gamma == "auto" else 1 / (3 * X.var())
    assert here.gamma == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_a_row_of_weight_two_is_two_rows(form):
    weight = np.array([2, 1, 3, 1, 1, 0])
    once = kernels.RBF().fitted(form(X), weight.astype(float))
    spelled_out = kernels.RBF().fitted(np.repeat(X, weight, axis=0))
    assert once.gamma == pytest.approx(spelled_out.gamma, rel=1e-12)


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_constant_data_have_the_width_one(form):
    assert kernels.RBF().fitted(form(np.full((4, 2), 0.1))).gamma == 1.0


def test_far_from_zero_the_width_keeps_its_digits():
    assert kernels.RBF().fitted(X + 1e7).gamma == pytest.approx(1 / (3 * X.var()), rel=1e-6)


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: kernels.RBF(-1),
            "'gamma' must be a finite positive number. Got -1. Use a positive number or \"scale\".",
        ),
        (
            lambda: kernels.RBF()(X, Z),
            'gamma="scale" must be computed from data before use. Got no data. Call kernel.fitted(X) first.',
        ),
        (lambda: kernels.Polynomial(degree=1.5), "'degree' must be a positive integer. Got 1.5."),
        (lambda: kernels.Polynomial(coef0=-1), "'coef0' must be a finite number, at least 0. Got -1."),
        (
            lambda: kernels.resolve("gauss"),
            "'kernel' must be one of 'linear', 'poly', 'polynomial', 'precomputed', 'rbf',",
        ),
        (
            lambda: kernels.resolve(kernels.RBF),
            "'kernel' must be an instance. Got the class RBF. Write RBF().",
        ),
        (
            lambda: kernels.resolve(3),
            "'kernel' must be a name, a callable, a nerm.kernels.Kernel, or None. Got int.",
        ),
        (
            lambda: kernels.Custom(lambda A, B: A)(X, Z),
            "a kernel must return one value for each pair of rows",
        ),
        (lambda: kernels.check_gram(np.ones((2, 3))), "a Gram matrix must be square. Got shape (2, 3)."),
        (
            lambda: kernels.check_gram(-np.eye(2), psd=True),
            "must be positive semidefinite for the problem to be convex",
        ),
    ],
)
def test_bad_kernels(make, text):
    with pytest.raises(nerm.InvalidInputError) as caught:
        make()
    assert text in str(caught.value)


def test_rbf_is_exact_wherever_the_rows_are():
    """Two clusters far apart and far from 0: distances within each must survive. The oracle is exact arithmetic."""
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(9, 3)) * 64) / 64 + 2.0**24 * np.array([[1.0], [1.0], [-3.0]] * 3)
    K = RBF(gamma=0.5)(X, X)
    for i, j in np.ndindex(9, 9):
        square = sum((Fraction(a) - Fraction(b)) ** 2 for a, b in zip(X[i], X[j], strict=True))
        assert K[i, j] == pytest.approx(math.exp(-0.5 * float(square)), rel=1e-14)
    assert (K == K.T).all()
    assert np.allclose(RBF(gamma=0.5)(X[:2], X[3:]), K[:2, 3:], rtol=1e-14)
    assert np.linalg.eigvalsh(K)[0] > -1e-14


@pytest.mark.parametrize(
    "kernel",
    [Linear(), RBF(gamma=0.5), RBF(gamma=50.0), Polynomial(gamma=1.0, degree=3, coef0=1.0)],
    ids=repr,
)
@pytest.mark.parametrize("offset", [0.0, 100.0, 2.0**20])
def test_rounding_covers_what_a_kernel_gets_wrong(kernel, offset):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(20, 5)) + offset
    L = X.astype(np.longdouble)
    products, square = L @ L.T, ((L[:, None] - L[None]) ** 2).sum(axis=2)
    exact = {
        "linear": products,
        "polynomial": (products + 1) ** 3,
        "rbf": np.exp(-getattr(kernel, "gamma", 1) * square),
    }
    size = np.sqrt(np.outer(kernel.diagonal(X), kernel.diagonal(X)))
    worst = float((np.abs(kernel(X, X) - exact[kernel.name]) / size).max())
    assert worst <= kernel.rounding(X) <= 1e-11


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_scale_with_sample_weights_against_scikit_learn(form):
    """Decision 13: the weighted variance, which is SVC's on rows that are written out, and not SVC's on weights."""
    rng = np.random.default_rng(3)
    rows, weight = rng.normal(size=(30, 3)) * [1.0, 2.0, 5.0] + 1.0, rng.integers(0, 4, size=30)
    y = np.where(rows[:, 0] + rng.normal(size=30) > 1, 1, -1)
    ours = nerm.NeutralSVC(kernel="rbf", gamma="scale", tol=1e-9).fit(form(rows), y, sample_weight=weight)
    repeated = np.repeat(np.arange(30), weight)
    written_out = SVC(gamma="scale", tol=1e-9).fit(form(rows[repeated]), y[repeated])
    np.testing.assert_allclose(
        ours.decision_function(form(rows)), written_out.decision_function(form(rows)), atol=1e-4
    )
    assert ours.kernel_.gamma == pytest.approx(1 / (3 * rows[repeated].var()))
    plain = 1 / (3 * rows.var())
    assert abs(ours.kernel_.gamma / plain - 1) > 1e-3
    theirs = SVC(gamma="scale", tol=1e-9).fit(form(rows), y, sample_weight=weight)
    numbered = nerm.NeutralSVC(kernel="rbf", gamma=plain, tol=1e-9).fit(form(rows), y, sample_weight=weight)
    np.testing.assert_allclose(
        numbered.decision_function(form(rows)), theirs.decision_function(form(rows)), atol=1e-4
    )
    equal = nerm.NeutralSVC(kernel="rbf").fit(form(rows), y, sample_weight=np.full(30, 2.0))
    assert equal.kernel_.gamma == pytest.approx(plain)


def test_the_smallest_degree_is_one():
    np.testing.assert_allclose(Polynomial(gamma=1.0, degree=1)(X, Z), X @ Z.T)
    with pytest.raises(nerm.InvalidInputError, match="'degree' must be a positive integer"):
        Polynomial(gamma=1.0, degree=0)


@pytest.mark.parametrize("offset", [0.0, 5.0, 1e6])
@pytest.mark.parametrize(
    "kernel", [RBF(gamma=0.5), RBF(gamma=100.0), Polynomial(gamma=0.5, coef0=1.0)], ids=repr
)
def test_products_a_tile_at_a_time(kernel, offset, monkeypatch):
    monkeypatch.setattr("nerm.model.kernels.CALLED_TILE", 70)
    rng = np.random.default_rng(3)
    X, Z = rng.normal(size=(300, 4)) + offset, rng.normal(size=(500, 4)) + offset
    for left, right in ((X, Z), (X, X)):
        K, weights = kernel(left, right), rng.normal(size=(len(right), 2))
        scale = float(np.abs(K).max())
        np.testing.assert_allclose(
            kernel.product(left, right, weights), K @ weights, atol=1e-11 * scale * len(right)
        )
