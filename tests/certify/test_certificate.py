"""The certificate: never above the optimum, tight at it, and never deceived."""

from __future__ import annotations

import ast
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import SVC

import nerm
from nerm import Hinge, Multipliers, Neutrality, Risk, SquaredL2, atoms
from nerm.certify.certificate import dual_bound
from nerm.certify.multipliers import repaired
from tests.conftest import make_data
from tests.oracle import hinge_optimum

REGULARIZERS = [
    0.1 * SquaredL2(),
    0.05 * nerm.L1(),
    0.1 * nerm.ElasticNet(),
    0.05 * nerm.GroupL2([0, 0, 1, 1]),
    0.05 * nerm.LInf(),
    0.03 * nerm.L1() + 0.05 * nerm.GroupL2([0, 0, 1, 1]),
    0.03 * nerm.GroupL2([0, 0, 1, 1]) + 0.03 * nerm.LInf() + 0.02 * SquaredL2(),
    0.02 * nerm.L1() + 0.02 * nerm.LInf(),
    0.02 * nerm.L1() + 0.03 * nerm.GroupL2([0, 0, 1, 1]) + 0.02 * nerm.LInf(),
]
ATOMS = list(atoms.margin_functions())


def random_multipliers(rng, problem):
    """Return multipliers drawn inside (and, before the repair, sometimes outside) their domains."""
    return Multipliers(
        rng.normal(scale=1.5, size=(len(problem.blocks), problem.hypothesis.n)), rng.random(len(problem.etas))
    )


@pytest.mark.long
@given(
    st.integers(0, 10**6),
    st.sampled_from(ATOMS),
    st.sampled_from(ATOMS),
    st.sampled_from(REGULARIZERS),
    st.booleans(),
)
def test_no_multipliers_bound_more_than_the_optimum(seed, loss, surrogate, omega, intercept):
    if loss == "identity":
        loss = "hinge"
    X, y, v = make_data(seed % 7, n=25, real_viewpoint=seed % 2 == 0)
    objective = (
        Risk(atoms.margin_functions()[loss]())
        + omega
        + 0.8 * Neutrality(atoms.margin_functions()[surrogate]())
    )
    problem = objective.on(X, y, viewpoint=v, intercept=intercept)
    best = problem.solve()
    assert best.status == "optimal"
    rng = np.random.default_rng(seed)
    for _ in range(5):
        assert dual_bound(problem, random_multipliers(rng, problem)) <= best.objective.total + 1e-9
    # near the optimal multipliers, where a wrong formula would show
    m = best.multipliers
    for size in (1e-3, 0.1):
        shaken = Multipliers(*(part + size * rng.normal(size=part.shape) for part in (m.rows, m.thetas)))
        assert dual_bound(problem, shaken) <= best.objective.total + 1e-9


@given(st.integers(0, 10**6), st.floats(1e-4, 1.0))
def test_a_perturbed_solution_is_never_called_optimal(seed, size):
    X, y, v = make_data(seed % 11, n=40)
    problem = (Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v)
    best = problem.solve(tol=1e-9)
    rng = np.random.default_rng(seed)
    direction = rng.normal(size=4)
    coef = best.coef + size * direction / np.linalg.norm(direction)
    truly_worse = problem.evaluate(coef, best.intercept).total - best.objective.total
    # by strong convexity every such step costs at least mu/2 size^2
    assert truly_worse >= 0.05 * size**2 - 1e-8
    for multipliers in (None, best.multipliers):
        certificate = problem.certify(coef, best.intercept, multipliers)
        assert certificate.gap >= truly_worse - 1e-9
        assert certificate.dual <= best.objective.total + 1e-9


@given(st.integers(0, 10**6))
def test_repaired_multipliers_are_feasible(seed):
    X, y, v = make_data(seed % 5, n=30, real_viewpoint=True)
    problem = (Risk(Hinge()) + 0.1 * SquaredL2() + 2 * Neutrality(nerm.Pinball(0.5))).on(X, y, viewpoint=v)
    m, reason = repaired(problem, random_multipliers(np.random.default_rng(seed), problem), np.zeros((4, 0)))
    assert reason == ""
    assert ((m.alpha >= 0) & (m.alpha <= 1)).all()
    assert ((m.beta_plus >= -0.5) & (m.beta_plus <= 1)).all()
    c = m.alpha * y + 2 * v * (m.theta * m.beta_plus - (1 - m.theta) * m.beta_minus)
    assert abs(c.sum()) <= 1e-11 * np.abs(c).sum()


def test_the_bound_is_the_textbook_dual(data):
    """At any feasible multipliers the bound equals the SVM dual written out by hand (sum form over n)."""
    X, y, v = data
    n, mu, eta = len(y), 0.3, 1.7
    problem = (Risk(Hinge()) + mu * SquaredL2() + eta * Neutrality(Hinge())).on(X, y, viewpoint=v)
    rng = np.random.default_rng(1)
    m, _ = repaired(problem, Multipliers(rng.random((3, n)), np.array([0.3])), np.zeros((4, 0)))
    nu_plus, nu_minus = eta * m.theta, eta * (1 - m.theta)
    a = m.alpha * y + (nu_plus * m.beta_plus - nu_minus * m.beta_minus) * v
    lam = mu * n
    by_hand = (
        (lam * np.sum(m.alpha + nu_plus * m.beta_plus + nu_minus * m.beta_minus) - 0.5 * a @ (X @ X.T) @ a)
        / lam
        / n
    )
    assert dual_bound(problem, m) == pytest.approx(by_hand, rel=1e-12)


@pytest.mark.parametrize("omega", REGULARIZERS, ids=repr)
def test_tight_for_every_sum_of_regularizers(omega, data):
    X, y, v = data
    solution = (Risk(Hinge()) + omega + 0.5 * Neutrality(nerm.Logistic())).on(X, y, viewpoint=v).solve()
    assert solution.status == "optimal"


@pytest.mark.parametrize("eta", [0.0, 0.3, 1.0, 30.0])
def test_grades_a_hypothesis_that_others_computed(eta):
    """From (w, b) alone, without multipliers: the textbook QP's answer is recognised as optimal."""
    for seed in range(5):
        X, y, v = make_data(seed)
        value, w, b = hinge_optimum(X, y, v, 0.1, eta)
        problem = (Risk(Hinge()) + 0.1 * SquaredL2() + eta * Neutrality(Hinge())).on(X, y, viewpoint=v)
        certificate = problem.certify(w, b)
        assert certificate.primal == pytest.approx(value, rel=1e-7)
        assert certificate.relative_gap <= 1e-6


@pytest.mark.parametrize("eta", [0.0, 1.0])
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_the_bound_of_a_foreign_hypothesis_is_below_the_optimum_and_tight_near_it(kernel, eta):
    """The optimum is that of the textbook QP on X, or on a square root of the Gram matrix."""
    X, y, v = make_data(6, n=50)
    problem = (Risk(Hinge()) + 0.1 * SquaredL2() + eta * Neutrality(Hinge())).on(
        X, y, viewpoint=v, kernel=kernel
    )
    values, vectors = (np.ones(0), X) if kernel is None else np.linalg.eigh(problem.hypothesis.gram)
    root = X if kernel is None else vectors * np.sqrt(np.maximum(values, 0))
    optimum, w, b = hinge_optimum(root, y, v, 0.1, eta)
    w = w if kernel is None else vectors @ (w / np.sqrt(np.maximum(values, 1e-12)))
    noise = np.random.default_rng(0).normal(size=len(w))
    gaps = []
    for size in (0.0, 1e-6, 1e-3, 1e-1, 10.0):
        certificate = problem.certify(w + size * noise, b + size)
        assert certificate.dual <= optimum * (1 + 1e-7)
        gaps.append(certificate.relative_gap)
    assert gaps[0] <= 1e-6
    assert gaps[1] <= 1e-4
    assert max(gaps) <= 1.0 + 1e-9  # f = 0 has a bound, and no hypothesis has a worse one


def test_rows_on_a_kink_do_not_make_the_bound_wrong():
    """Every row of f = 1 is at the kink of a hinge, and so is every multiplier."""
    X, y, v = make_data(1, n=30)
    for eta in (0.0, 0.5):
        problem = (Risk(Hinge()) + 0.2 * SquaredL2() + eta * Neutrality(Hinge())).on(X, y, viewpoint=v)
        certificate = problem.certify(np.zeros(X.shape[1]), 1.0)
        assert 0.0 <= certificate.dual <= hinge_optimum(X, y, v, 0.2, eta)[0] * (1 + 1e-9)


def test_grades_scikit_learn_with_kernel():
    X, y, _ = make_data(2)
    problem = (Risk(Hinge()) + 0.05 * SquaredL2()).on(X, y, kernel=nerm.kernels.RBF(gamma=0.4))
    svc = SVC(C=1 / (0.05 * len(y)), gamma=0.4, tol=1e-7).fit(X, y)
    coef = np.zeros(len(y))
    coef[svc.support_] = svc.dual_coef_[0]
    assert problem.certify(coef, float(svc.intercept_[0])).relative_gap <= 1e-5


def test_wrong_optimal_answers_of_cvxpy_are_refused():
    """Cvxpy 1.9.0 to 1.9.3 call w = 0 optimal on the natural way to write an SVM, with solvers that take bounds."""
    X, y, _ = make_data(0, n=50, d=2)
    w, b = cp.Variable(2), cp.Variable()
    natural = cp.Problem(cp.Minimize(cp.sum(cp.pos(1 - cp.multiply(y, X @ w + b))) + cp.sum_squares(w) / 2))
    problem = (Risk(Hinge()) + 1 / 50 * SquaredL2()).on(X, y)
    right = problem.solve("clarabel")
    for name in ("highs", "piqp"):
        if name not in nerm.solvers.available():
            continue
        with np.errstate(invalid="ignore"):  # inf - inf: the very defect that this test is about
            natural.solve(solver=name.upper())
        certificate = problem.certify(w.value, float(b.value))
        deceived = natural.value > 1.1 * 50 * right.objective.total
        assert natural.status == "optimal"
        # whether or not this version of cvxpy is wrong, the certificate tells which of the two it is
        assert (certificate.relative_gap > 1e-2) == deceived
        ours = problem.solve(name)
        assert ours.status == "optimal"
        assert ours.objective.total == pytest.approx(right.objective.total, rel=1e-5)


def test_zero_hypothesis_gets_an_honest_gap(data):
    X, y, v = data
    problem = (Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v)
    best = problem.solve().objective.total
    certificate = problem.certify(np.zeros(4), 0.0)
    assert certificate.primal == pytest.approx(2.0)
    assert certificate.dual <= best + 1e-12
    assert certificate.gap > 0.01


def test_no_regularizer_is_no_obstacle(data):
    """The oracle is the linear program; a hypothesis that is not optimal is still not called so."""
    X, y, _ = data
    problem = (1.0 * Risk(Hinge())).on(X, y)
    solution = problem.solve()
    optimum, _, _ = hinge_optimum(X, y, y, 0.0, 0.0)
    assert solution.status == "optimal"
    assert solution.objective.total == pytest.approx(optimum, rel=1e-6)
    assert solution.certificate.dual <= optimum + 1e-9
    assert problem.certify(0.9 * solution.coef, solution.intercept, solution.multipliers).relative_gap > 1e-4


def test_relative_gap_at_the_edges():
    from nerm import Certificate

    assert Certificate(0.0, 0.0).relative_gap == 0.0
    assert Certificate(0.0, -1.0).relative_gap == np.inf
    assert Certificate(1.0, -np.inf).relative_gap == np.inf
    assert Certificate(1.0, 1.0 + 1e-15).relative_gap == 0.0
    assert Certificate(2.0, 1.0).relative_gap == 0.5
    # a bound above the primal contradicts itself and certifies nothing
    assert Certificate(1.0, 1.1).relative_gap == np.inf
    # an optimum of 0 is certified relative to the zero hypothesis
    assert Certificate(1e-28, 0.0, scale=1.0).relative_gap < 1e-6
    assert Certificate(1e-10, 0.0, scale=1.0).relative_gap > 1e-6


def test_a_reason_is_shown_and_kept():
    loose = nerm.Certificate(1.0, 0.5, 1.0, "the multipliers are far")
    assert str(loose).endswith("(the multipliers are far)")
    assert loose.times(2.0).reason == loose.reason
    assert (loose + nerm.Certificate(1.0, 1.0)).reason == loose.reason
    assert (loose + loose).reason == loose.reason
    assert (
        loose + nerm.Certificate(1.0, -np.inf, 1.0, "no centre")
    ).reason == "the multipliers are far; no centre"


def test_certify_imports_no_solver():
    for path in (Path(nerm.__file__).parent / "certify").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for name in names:
                assert not name.startswith(("nerm.solvers", "nerm.cvxpy_backend", "nerm.svm", "cvxpy"))


def test_what_was_validated_stays_what_is_solved():
    X, y, v = make_data(2)
    problem = (Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v)
    solution = problem.solve()
    v *= 0.5
    assert problem.certify(solution.coef, solution.intercept).relative_gap <= 1e-5
    with pytest.raises(ValueError, match="read-only"):
        solution.coef[0] = 99.0


def test_nothing_is_returned_that_is_worse_than_nothing(data):
    X, y, _ = data

    class Wild(nerm.solvers.OwnSolver):
        name = "wild"

        def requirements(self):
            return "anything"

        def why_unsupported(self, problem):
            return None

        def answer(self, problem, accuracy, options):
            return nerm.solvers.Answer(np.full(problem.hypothesis.size, 1e12), 0.0, claim="optimal")

    solution = (Risk(Hinge()) + 0.1 * SquaredL2()).on(X, y).solve(Wild())
    assert solution.status == "inaccurate"
    assert not solution.coef.any()
    assert solution.objective.total == 1.0
    assert "no better than f = 0" in solution.certificate.reason
    assert "regularise more" in solution.certificate.reason  # every answer that is not certified has advice
