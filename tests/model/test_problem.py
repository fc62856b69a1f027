"""A problem on data: evaluation against loops, all kinds of data, the path's algebra."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier

import nerm
from nerm import Hinge, Neutrality, Risk, SquaredL2, atoms
from tests.conftest import make_data
from tests.oracle import LOSSES, hinge_optimum, naive_objective


@pytest.mark.parametrize("surrogate", LOSSES)
@pytest.mark.parametrize("loss", [name for name in LOSSES if name != "identity"])
def test_evaluate_agrees_with_loops(loss, surrogate):
    X, y, v = make_data(1, n=15, real_viewpoint=True)
    v[3] = 0.0
    rng = np.random.default_rng(2)
    s, u, w, b = rng.random(15), rng.random(15), rng.normal(size=4), 0.3
    s[5] = 0.0
    term = Neutrality(atoms.margin_functions()[surrogate](), weights=u)
    objective = Risk(atoms.margin_functions()[loss]()) + 0.7 * SquaredL2() + 1.3 * term
    value = objective.on(X, y, viewpoint=v, sample_weight=s).evaluate(w, b)
    expected = naive_objective(X, y, v, w, b, loss=loss, surrogate=surrogate, mu=0.7, eta=1.3, s=s, u=u)
    assert float(value) == pytest.approx(expected, rel=1e-12)
    assert value.risk + value.regularization + value.neutrality == pytest.approx(value.total, rel=1e-14)
    assert value.terms[-1].value == max(value.terms[-1].plus, value.terms[-1].minus)


def test_sparse_dense_and_frame_are_one_problem(data):
    pd = pytest.importorskip("pandas")
    X, y, v = data
    objective = Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())
    values = [
        objective.on(Z, y, viewpoint=v).solve().objective.total
        for Z in (X, sp.csr_matrix(X), sp.coo_matrix(X), sp.csc_array(X), pd.DataFrame(X))
    ]
    np.testing.assert_allclose(values, values[0], rtol=1e-7)


@pytest.mark.parametrize("intercept", [True, False])
def test_agrees_with_the_textbook_qp(intercept):
    X, y, v = make_data(4, real_viewpoint=True)
    v[::7] = 0.0
    rng = np.random.default_rng(5)
    s, u = rng.random(60), rng.random(60)
    expected, w, b = hinge_optimum(X, y, v, 0.2, 1.5, s=s, u=u, intercept=intercept)
    objective = Risk(Hinge()) + 0.2 * SquaredL2() + 1.5 * Neutrality(Hinge(), weights=u)
    solution = objective.on(X, y, viewpoint=v, sample_weight=s, intercept=intercept).solve(tol=1e-8)
    assert solution.objective.total == pytest.approx(expected, rel=1e-7)
    np.testing.assert_allclose(solution.coef, w, atol=1e-4)
    assert solution.intercept == pytest.approx(b, abs=1e-3)


@pytest.mark.parametrize(
    "kernel", ["linear", "rbf", "poly", nerm.kernels.RBF(gamma=0.3), lambda A, B: (1 + A @ B.T) ** 2]
)
def test_kernel_at_eta_zero_is_scikit_learns_svc(kernel):
    X, y, _ = make_data(6)
    solution = (Risk(Hinge()) + 0.05 * SquaredL2()).on(X, y, kernel=kernel).solve(tol=1e-7)
    assert solution.status == "optimal"
    gram = solution.problem.hypothesis.gram
    svc = SVC(C=1 / (0.05 * len(y)), kernel="precomputed", tol=1e-8).fit(gram, y)
    np.testing.assert_allclose(solution.decision_function(X), svc.decision_function(gram), atol=2e-3)


def test_precomputed_gram_and_new_points():
    X, y, v = make_data(7)
    kernel = nerm.kernels.RBF(gamma=0.5)
    objective = Risk(Hinge()) + 0.05 * SquaredL2() + Neutrality(Hinge())
    direct = objective.on(X, y, viewpoint=v, kernel=kernel).solve(tol=1e-9)
    given = objective.on(kernel(X, X), y, viewpoint=v, kernel="precomputed").solve(tol=1e-9)
    new = np.random.default_rng(0).normal(size=(9, 4))
    np.testing.assert_allclose(
        direct.decision_function(new), given.decision_function(kernel(new, X)), atol=1e-5
    )


def test_linear_kernel_is_the_linear_problem(data):
    X, y, v = data
    objective = Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())
    linear = objective.on(X, y, viewpoint=v).solve(tol=1e-8)
    kernel = objective.on(X, y, viewpoint=v, kernel="linear").solve(tol=1e-8)
    assert linear.objective.total == pytest.approx(kernel.objective.total, rel=1e-7)
    np.testing.assert_allclose(kernel.decision_function(X), linear.decision_function(X), atol=1e-4)


def test_gram_in_blocks_is_the_gram_matrix(monkeypatch):
    X, y, _ = make_data(8, n=50)
    problem = (Risk(Hinge()) + SquaredL2()).on(X, y, kernel="rbf")
    coef = np.random.default_rng(0).normal(size=50) * (np.arange(50) % 3 > 0)
    whole = problem.hypothesis.scores(coef)
    monkeypatch.setattr("nerm.model.hypothesis.GRAM_LIMIT", 9)
    np.testing.assert_allclose(problem.hypothesis.scores(coef), whole, rtol=1e-12)


def test_labels_of_any_kind_come_back(data):
    X, y, _ = data
    names = np.where(y > 0, "yes", "no")
    solution = (Risk(Hinge()) + 0.1 * SquaredL2()).on(X, names).solve()
    assert set(solution.predict(X)) <= {"yes", "no"}
    np.testing.assert_array_equal(solution.predict(X) == "yes", solution.decision_function(X) > 0)


def test_viewpoint_may_be_a_callable_or_a_fitted_estimator(data):
    X, y, v = data
    objective = Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())
    g = LogisticRegression().fit(X, v)
    np.testing.assert_array_equal(
        objective.on(X, y, viewpoint=g).viewpoints["viewpoint"], g.decision_function(X)
    )
    np.testing.assert_array_equal(
        objective.on(X, y, viewpoint=lambda Z: Z[:, 1]).viewpoints["viewpoint"], X[:, 1]
    )
    tree = DecisionTreeClassifier(max_depth=2).fit(X, v)
    np.testing.assert_allclose(
        objective.on(X, y, viewpoint=tree).viewpoints["viewpoint"], 2 * tree.predict_proba(X)[:, 1] - 1
    )


def test_several_viewpoints_and_their_path(data):
    X, y, v = data
    objective = (
        Risk(Hinge())
        + 0.1 * SquaredL2()
        + Neutrality(Hinge(), to="a")
        + 3 * Neutrality(nerm.Logistic(), to="b")
    )
    problem = objective.on(X, y, viewpoint={"a": v, "b": X[:, 2]})
    assert problem.with_neutrality(8).etas.tolist() == [2.0, 6.0]
    assert problem.with_neutrality(0).with_neutrality(8).etas.tolist() == [4.0, 4.0]
    solutions = problem.path([0, 1, 10])
    assert all(s.status == "optimal" for s in solutions)
    assert solutions[1].multipliers.theta.shape == (2,)
    assert solutions[1].multipliers.beta_plus.shape == (2, 60)


def test_identity_surrogate_is_the_covariance(data):
    X, y, v = data
    problem = (Risk(Hinge()) + 0.1 * SquaredL2() + 2 * Neutrality(nerm.Identity())).on(X, y, viewpoint=v)
    w = np.ones(4)
    assert problem.evaluate(w, 0.5).terms[-1].value == pytest.approx(abs(np.mean(v * (X @ w + 0.5))))


def test_results_print_for_readers(data):
    X, y, v = data
    problem = (Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v)
    solution = problem.solve()
    assert "on 60 rows, 4 coefficients, linear" in repr(problem)
    assert "optimal by clarabel" in repr(solution) or "optimal by" in repr(solution)
    assert "relative gap" in repr(solution)
    assert "C+" in repr(solution.objective)
    assert "certified" in solution.status.sentence


@pytest.mark.parametrize("kind", [np.array, sp.csr_matrix], ids=["dense", "sparse"])
def test_what_was_validated_stays_what_is_solved(kind):
    """Whatever happens to the arrays after `on`, the problem is as it was."""
    X, y, v = make_data(3)
    s, u = np.ones(60), np.ones(60)
    given = kind(X)
    problem = (Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge(), weights=u)).on(
        given, y, viewpoint=v, sample_weight=s
    )
    before = problem.evaluate(np.ones(4), 0.2).total
    (given.data if sp.issparse(given) else given)[...] = 0.0
    for array in (y, v, s, u):
        array[...] = 1.0
    assert problem.evaluate(np.ones(4), 0.2).total == before


@pytest.mark.parametrize("kernel", [None, "rbf"])
@pytest.mark.parametrize("kind", [np.array, sp.csr_matrix], ids=["dense", "sparse"])
def test_equal_rows_count_one_by_one(kind, kernel):
    """Values, models, certificates and solutions are about the given rows, however many are equal."""
    rng = np.random.default_rng(5)
    X = rng.integers(0, 2, size=(120, 3)).astype(float)
    y, v = rng.choice([-1.0, 1.0], size=(2, 120))
    s, u = rng.random((2, 120))
    objective = Risk(Hinge()) + 0.05 * SquaredL2() + 0.7 * Neutrality(nerm.Logistic(), weights=u)
    problem = objective.on(kind(X), y, viewpoint=v, sample_weight=s, kernel=kernel)
    assert problem.hypothesis.n == 120
    assert {x.name(): x.size for x in problem.to_cvxpy().variables()}["scores"] == 120
    coef = rng.normal(size=3 if kernel is None else 120)
    if kernel is None:
        expected = naive_objective(
            X, y, v, coef, 0.1, loss="hinge", surrogate="logistic", mu=0.05, eta=0.7, s=s, u=u
        )
        assert problem.evaluate(coef, 0.1).total == pytest.approx(expected, rel=1e-12)
    solution = problem.solve(tol=1e-8)
    assert solution.status == "optimal"
    assert solution.multipliers.alpha.shape == (120,)
    np.testing.assert_allclose(solution.training_scores(), solution.decision_function(kind(X)), atol=1e-9)
    again = problem.certify(solution.coef, solution.intercept, solution.multipliers)
    assert again.gap == pytest.approx(solution.certificate.gap, abs=1e-12)
    # Multipliers that differ on equal rows give a bound as well.
    rough = nerm.Multipliers(
        np.clip(solution.multipliers.rows + 0.01 * rng.normal(size=(3, 120)), 1e-3, 0.999),
        solution.multipliers.thetas,
    )
    assert (
        problem.certify(solution.coef, solution.intercept, rough).dual <= solution.certificate.primal + 1e-12
    )


def test_blocks_come_as_multipliers_are_read():
    """Risks, then one-sided terms, then pairs, however the objective was written: so alpha is that of the risk."""
    X, y, v = make_data(0, n=20)
    pair, alone = nerm.Neutrality(nerm.Logistic()), nerm.Neutrality(nerm.Squared(), side="agreement")
    written = pair + 0.5 * alone + 0.1 * nerm.SquaredL2() + nerm.Risk(nerm.Hinge())
    problem = written.on(X, y, viewpoint=v)
    atoms = [type(block.atom) for block in problem.blocks]
    assert atoms == [nerm.Hinge, nerm.Squared, nerm.Logistic, nerm.Logistic]
    assert [block.side for block in problem.blocks] == [0, 0, 1, -1]
    multipliers = problem.solve().multipliers
    assert ((multipliers.alpha >= 0) & (multipliers.alpha <= 1)).all()
    assert multipliers.betas.shape == (1, *multipliers.beta_plus.shape) == (1, 20)


def test_a_table_has_one_viewpoint_per_column():
    X, y, v = make_data(0)
    table = np.column_stack([v, -v, X[:, 0]])
    objective = Risk(Hinge()) + Neutrality(Hinge(), to="viewpoint 1")
    assert list(objective.on(X, y, viewpoint=table).viewpoints) == [
        "viewpoint 0",
        "viewpoint 1",
        "viewpoint 2",
    ]
    frame = pd.DataFrame(table, columns=["sex", "age", "score"])
    named = (Risk(Hinge()) + Neutrality(Hinge(), to="age")).on(X, y, viewpoint=frame)
    np.testing.assert_array_equal(named.viewpoints["age"], -v)
    with pytest.raises(nerm.InvalidInputError, match="a neutrality term must name its viewpoint"):
        (Risk(Hinge()) + Neutrality(Hinge())).on(X, y, viewpoint=frame)
