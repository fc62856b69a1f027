"""The classifiers solve the problem they state: against SVC, a hand-written QP, and themselves in other words."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_iris, load_wine
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

import nerm
from nerm import NERMClassifier, NeutralSVC
from tests.conftest import make_data
from tests.oracle import hinge_optimum, naive_objective


def bundled(name):
    """Return three bundled data sets as binary problems with scaled features."""
    loader = {"breast_cancer": load_breast_cancer, "iris": load_iris, "wine": load_wine}[name]
    X, y = loader(return_X_y=True)
    if name == "iris":  # the two classes that a line cannot separate
        X, y = X[y > 0], y[y > 0]
    return StandardScaler().fit_transform(X), y if name != "wine" else (y == 1).astype(int)


def svm_objective(X, y, w, b, lam):
    sign = np.where(y == np.unique(y)[1], 1.0, -1.0)
    return np.maximum(0, 1 - sign * (X @ w + b)).sum() + lam / 2 * w @ w


@pytest.mark.parametrize("name", ["breast_cancer", "iris", "wine"])
@pytest.mark.parametrize("lam", [1.0, 20.0])
def test_eta_zero_is_the_svm_with_a_free_intercept(name, lam):
    X, y = bundled(name)
    ours = NeutralSVC(lam=lam, tol=1e-9).fit(X, y)
    theirs = SVC(kernel="linear", C=1 / lam, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=2e-4)
    value = svm_objective(X, y, ours.coef_[0], ours.intercept_[0], lam)
    assert value <= svm_objective(X, y, theirs.coef_[0], theirs.intercept_[0], lam) * (1 + 1e-8)
    assert value == pytest.approx(ours.certificate_.primal, rel=1e-10)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))


@pytest.mark.parametrize("name", ["breast_cancer", "iris", "wine"])
def test_eta_zero_is_the_svm_with_a_kernel(name):
    X, y = bundled(name)
    X, y = X[::2], y[::2]
    ours = NeutralSVC(lam=0.5, kernel="rbf", tol=1e-8).fit(X, y)
    theirs = SVC(kernel="rbf", C=2.0, gamma="scale", tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    # f = sum_i dual_coef_i k(x_i, x) + b in both; libsvm keeps every coefficient, nerm those that matter
    ours_dense, theirs_dense = np.zeros(len(X)), np.zeros(len(X))
    ours_dense[ours.support_], theirs_dense[theirs.support_] = ours.dual_coef_[0], theirs.dual_coef_[0]
    np.testing.assert_allclose(ours_dense, theirs_dense, atol=5e-3)
    assert len(ours.support_) < 0.95 * len(X)


def test_more_classes_are_one_against_the_rest():
    X, y = load_iris(return_X_y=True)
    ours = NeutralSVC(lam=2.0, tol=1e-9).fit(X, y)
    theirs = OneVsRestClassifier(SVC(kernel="linear", C=0.5, tol=1e-8)).fit(X, y)
    assert ours.coef_.shape == (3, 4)
    assert ours.intercept_.shape == (3,)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    np.testing.assert_array_equal(ours.predict(X), theirs.predict(X))
    assert ours.certificate_.primal == pytest.approx(sum(150 * s.certificate.primal for s in ours.solutions_))
    assert ours.certificate_.relative_gap < 1e-8


@pytest.mark.parametrize("weights", ["uniform", "balanced"])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_neutral_svm_is_the_hand_written_qp(weights, weighted):
    X, y, v = make_data(3, n=50)
    s = np.random.default_rng(0).integers(1, 4, size=50).astype(float) if weighted else np.ones(50)
    u = s.copy()
    if weights == "balanced":
        for side in (-1, 1):
            u[v == side] *= s.sum() / (2 * s[v == side].sum())
    lam, eta = 3.0, 0.7
    model = NeutralSVC(lam=lam, eta=eta, weights=weights, tol=1e-8).fit(X, y, viewpoint=v, sample_weight=s)
    value, w, _ = hinge_optimum(X, y, v, lam / 50, eta, s=s, u=u)
    np.testing.assert_allclose(model.coef_[0], w, atol=1e-4)
    assert model.certificate_.primal == pytest.approx(50 * value, rel=1e-6)
    naive = naive_objective(X, y, v, model.coef_[0], model.intercept_[0], mu=lam / 50, eta=eta, s=s, u=u)
    assert model.certificate_.primal == pytest.approx(50 * naive, rel=1e-9)
    assert s.sum() * model.solutions_[0].objective.total == pytest.approx(50 * naive, rel=1e-9)


def test_the_mean_form_is_the_sum_form_divided_by_the_weights():
    X, y, v = make_data(4)
    s = np.linspace(0.5, 2, len(y))
    mean = NERMClassifier(lam=0.1, eta=0.5, tol=1e-9).fit(X, y, viewpoint=v, sample_weight=s)
    total = NeutralSVC(lam=0.1 * s.sum(), eta=0.5, tol=1e-9).fit(X, y, viewpoint=v, sample_weight=s)
    np.testing.assert_allclose(mean.decision_function(X), total.decision_function(X), atol=1e-5)
    assert mean.certificate_.primal == pytest.approx(total.certificate_.primal / s.sum(), rel=1e-8)


@pytest.mark.parametrize("atoms", [("logistic", "squared-l2", "logistic"), ("hinge", "l1", "identity")])
def test_any_atoms_are_the_objective_they_name(atoms):
    X, y, v = make_data(5)
    model = NERMClassifier(*atoms, lam=0.03, eta=0.8, tol=1e-7).fit(X, y, viewpoint=v)
    loss, surrogate = nerm.atoms.margin_functions()[atoms[0]](), nerm.atoms.margin_functions()[atoms[2]]()
    objective = (
        nerm.Risk(loss) + 0.03 * nerm.atoms.regularizers()[atoms[1]]() + 0.8 * nerm.Neutrality(surrogate)
    )
    problem = objective.on(X, y, viewpoint=v)
    assert model.certificate_.primal == pytest.approx(
        problem.evaluate(model.coef_[0], model.intercept_[0]).total, rel=1e-9
    )
    assert model.certificate_.primal == pytest.approx(problem.solve("clarabel").certificate.primal, rel=2e-6)


def test_equal_opportunity_is_the_problem_with_these_weights():
    X, y, v = make_data(15, n=80)
    model = NERMClassifier(lam=0.05, eta=2.0, weights="equal_opportunity", tol=1e-8).fit(X, y, viewpoint=v)
    term = nerm.Neutrality(nerm.Hinge(), weights="equal_opportunity")
    solution = (
        (nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + 2.0 * term).on(X, y, viewpoint=v).solve(tol=1e-8)
    )
    np.testing.assert_allclose(model.coef_[0], solution.coef, atol=1e-3)
    assert model.certificate_.primal == pytest.approx(solution.certificate.primal, rel=1e-7)


@pytest.mark.parametrize("Model", [NeutralSVC, NERMClassifier])
@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_a_row_of_weight_two_is_two_rows_and_of_zero_none(Model, kernel):
    X, y, v = make_data(6, n=40)
    s = np.random.default_rng(1).integers(0, 4, size=40)
    model = Model(eta=0.6, kernel=kernel, weights="balanced", class_weight="balanced")
    weighted = clone(model).fit(X, y, viewpoint=v, sample_weight=s)
    repeated = clone(model).fit(X.repeat(s, axis=0), y.repeat(s), viewpoint=v.repeat(s))
    # Rows without duplicates are solved in the given order by kernel solvers, so that rounding differs.
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), rtol=0, atol=1e-4
    )
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=2e-6)


@pytest.mark.parametrize("sparse", [False, True])
def test_the_order_of_rows_does_not_matter(sparse):
    X, y, v = make_data(7)
    order = np.random.default_rng(2).permutation(len(y))
    Z = sp.csr_matrix(X * (X > 0)) if sparse else X
    model = NeutralSVC(eta=1.0)
    one, two = clone(model).fit(Z, y, viewpoint=v), clone(model).fit(Z[order], y[order], viewpoint=v[order])
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=0, atol=1e-6)


def test_sparse_and_dense_agree():
    X, y, v = make_data(8)
    X = X * (np.abs(X) > 0.5)
    for kernel in ("linear", "rbf"):
        model = NeutralSVC(eta=0.5, kernel=kernel, tol=1e-9)
        dense, sparse = clone(model).fit(X, y, viewpoint=v), clone(model).fit(sp.csr_array(X), y, viewpoint=v)
        np.testing.assert_allclose(
            dense.decision_function(X), sparse.decision_function(sp.csr_matrix(X)), atol=1e-4
        )


def test_a_precomputed_kernel_is_the_kernel():
    X, y, v = make_data(9)
    kernel = nerm.kernels.RBF(0.3)
    s = np.r_[np.zeros(5), np.ones(len(y) - 5)]
    named = NeutralSVC(eta=0.5, kernel=kernel, tol=1e-9).fit(X, y, viewpoint=v, sample_weight=s)
    gram = NeutralSVC(eta=0.5, kernel="precomputed", tol=1e-9).fit(
        kernel(X, X), y, viewpoint=v, sample_weight=s
    )
    np.testing.assert_allclose(named.decision_function(X), gram.decision_function(kernel(X, X)), atol=1e-4)
    assert set(gram.support_) <= set(range(5, len(y)))
    np.testing.assert_array_equal(named.support_vectors_, X[named.support_])


def test_kernels_by_name_take_the_parameters_of_svc():
    X, y, _ = make_data(10)
    ours = NeutralSVC(kernel="poly", degree=2, coef0=1.0, gamma=0.5, tol=1e-9).fit(X, y)
    assert ours.kernel_ == nerm.kernels.Polynomial(gamma=0.5, degree=2, coef0=1.0)
    theirs = SVC(kernel="poly", degree=2, coef0=1.0, gamma=0.5, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.decision_function(X), theirs.decision_function(X), atol=1e-3)
    assert NeutralSVC(kernel="rbf", gamma="auto").fit(X, y).kernel_ == nerm.kernels.RBF(1 / X.shape[1])
    callable_kernel = NeutralSVC(kernel=lambda A, B: A @ B.T, tol=1e-9).fit(X, y)
    linear = NeutralSVC(tol=1e-9).fit(X, y)
    np.testing.assert_allclose(callable_kernel.decision_function(X), linear.decision_function(X), atol=1e-4)


def test_class_weights_multiply_the_risk():
    X, y, _ = make_data(11)
    ours = NeutralSVC(class_weight={-1.0: 3.0, 1.0: 0.5}, tol=1e-9).fit(X, y)
    theirs = SVC(kernel="linear", class_weight={-1.0: 3.0, 1.0: 0.5}, tol=1e-8).fit(X, y)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-4)
    balanced = NeutralSVC(class_weight="balanced", tol=1e-9).fit(X, y)
    np.testing.assert_allclose(
        balanced.coef_, SVC(kernel="linear", class_weight="balanced", tol=1e-8).fit(X, y).coef_, atol=1e-4
    )


def test_feature_names_are_kept_and_checked():
    X, y, v = make_data(12)
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = NeutralSVC(eta=1.0).fit(frame, pd.Series(y).map({-1: "no", 1: "yes"}), viewpoint=pd.Series(v))
    assert model.feature_names_in_.tolist() == list("abcd")
    assert set(model.predict(frame)) <= {"no", "yes"}
    with pytest.raises(ValueError, match="feature names should match"):
        model.predict(frame.rename(columns={"a": "z"}))


def test_a_score_of_zero_is_the_smaller_class():
    X, y = np.array([[-1.0], [1.0], [-1.0], [1.0]]), np.array([0, 1, 1, 0])
    model = NeutralSVC(fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.decision_function([[0.0]]), 0.0)
    assert model.predict([[0.0]]) == [0]


def test_a_kernel_can_be_changed_between_fits():
    X, y, _ = make_data(13)
    model = NeutralSVC(kernel="rbf").fit(X, y)
    assert hasattr(model, "dual_coef_")
    model.set_params(kernel="linear").fit(X, y)
    assert hasattr(model, "coef_")
    assert not hasattr(model, "dual_coef_")


def test_a_gap_above_the_tolerance_is_a_warning():
    from sklearn.exceptions import ConvergenceWarning

    X, y, v = make_data(14)
    with pytest.warns(ConvergenceWarning, match="exceeds the tolerance. Certified relative gap"):
        NeutralSVC(eta=1.0, tol=1e-30, solver="clarabel").fit(X, y, viewpoint=v)


def test_no_support_vector_is_dropped_at_the_price_of_the_certificate():
    """Small coefficients go as long as the objective rises by a tenth of tol at most, and the gap stays within tol."""
    from dataclasses import replace

    from nerm.estimators.design import pruned

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2))
    y = np.where(X[:, 0] + 0.5 * rng.normal(size=60) > 0, 1, -1)
    clean = (nerm.Risk(nerm.Hinge()) + 1e-2 * nerm.SquaredL2()).on(X, y, kernel="rbf").solve("smo")
    dust = np.where(clean.coef == 0, 1e-8 * np.abs(clean.coef).max(), 0.0)
    value = clean.problem.evaluate(clean.coef + dust, clean.intercept)
    certificate = replace(clean.certificate, primal=value.total)
    solution = replace(clean, coef=clean.coef + dust, objective=value, certificate=certificate)
    short, primal = pruned(solution), certificate.primal
    assert dust.any()
    assert not short.coef[dust > 0].any()
    assert short.objective.total <= primal * (1 + 0.1 * solution.tol)
    assert short.certificate.primal == short.objective.total
    assert short.certificate.relative_gap <= solution.tol
    assert (np.abs(short.coef[short.coef != 0]) > 1e-8 * np.abs(short.coef).max()).all()
    assert pruned(replace(solution, tol=1e-30)).objective.total <= primal  # where nothing may be lost
    without = solution.problem.evaluate(np.where(dust > 0, 0.0, solution.coef), solution.intercept).total
    for share in (0.95, 1.05):  # of the tenth of tol that may be lost
        before = without / (1 + share * 0.1 * solution.tol)
        given = replace(solution.certificate, primal=before, dual=before * (1 - 0.5 * solution.tol))
        gone = pruned(replace(solution, certificate=given)).coef[dust > 0] == 0
        assert gone.all() == (share < 1)
        assert gone.any() == (share < 1)
    edge = replace(
        solution, certificate=replace(solution.certificate, dual=primal * (1 - 0.999999 * solution.tol))
    )
    kept = pruned(edge)  # the gap is at the tolerance: the status must stay optimal
    assert kept.certificate.relative_gap <= max(solution.tol, edge.certificate.relative_gap)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("noise", [0.0, 1.0])
def test_status_and_certificate_agree_without_regularization_to_speak_of(kernel, noise):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 3))
    y = np.where(X[:, 0] + noise * rng.normal(size=40) > 0, 1, -1)
    model = NeutralSVC(lam=1e-20, kernel=kernel).fit(X, y)
    (solution,) = model.solutions_
    assert solution.status == "optimal"
    assert solution.certificate.relative_gap <= solution.tol
    assert model.certificate_.relative_gap == pytest.approx(solution.certificate.relative_gap)
