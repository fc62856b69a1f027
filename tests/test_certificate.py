"""The certificate: never above the optimum, tight at it, and never deceived."""

from __future__ import annotations

import ast
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path

import cvxpy as cp
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.svm import SVC

import nerm
from nerm import Hinge, Multipliers, Neutrality, Risk, SquaredL2, atoms, kernels
from nerm.certificate import dual_bound
from nerm.feasibility import repaired
from nerm.rounding import EPS, LONG_EPS
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
    objective = Risk(atoms.margin_functions()[loss]()) + omega + 0.8 * Neutrality(atoms.margin_functions()[surrogate]())
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
        (lam * np.sum(m.alpha + nu_plus * m.beta_plus + nu_minus * m.beta_minus) - 0.5 * a @ (X @ X.T) @ a) / lam / n
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
    assert (loose + nerm.Certificate(1.0, -np.inf, 1.0, "no centre")).reason == "the multipliers are far; no centre"


def test_the_certificate_imports_no_solver():
    allowed = {"numpy", "nerm", "__future__", "dataclasses", "functools", "itertools", "typing", "collections"}
    for module in ("certificate", "feasibility", "conjugates", "recovery", "blocks", "multipliers"):
        tree = ast.parse((Path(nerm.__file__).parent / f"{module}.py").read_text())
        for node in ast.walk(tree):
            names = (
                [a.name for a in node.names]
                if isinstance(node, ast.Import)
                else [node.module]
                if isinstance(node, ast.ImportFrom)
                else []
            )
            for name in names:
                assert name.split(".")[0] in allowed
                assert "solvers" not in name
                assert "modelling" not in name


@pytest.mark.long
@pytest.mark.parametrize("weight", [1.0, 0.7, 2 / 3, 1e-2, 1e-5])
def test_numeric_conjugates_never_lift_the_bound(weight):
    """A scaled hinge as a user writes it: the bound stays below the optimum of the textbook QP."""
    X, y, v = make_data(1)
    atom = nerm.margin_function(lambda m: weight * cp.pos(1 - m))
    problem = (1 / weight * Risk(atom) + 0.1 * SquaredL2() + 1 / weight * Neutrality(atom)).on(X, y, viewpoint=v)
    optimum, _, _ = hinge_optimum(X, y, v, 0.1, 1.0)
    solution = problem.solve()
    assert solution.status == "optimal"
    assert solution.certificate.dual <= optimum * (1 + 1e-9)
    assert problem.certify(0.3 * solution.coef, solution.intercept, solution.multipliers).relative_gap > 1e-3
    u = np.linspace(-weight, 0, 101)
    assert (atom.conjugate(u) >= u - 1e-12).all()


@pytest.mark.long
@pytest.mark.parametrize("eta", [1e9, 1e12, 1e20, 1e200])
def test_forces_that_drown_the_risk_certify_nothing(eta):
    """With |mean v f| the term can be 0 at any weight: the optimum stays, and so must the bound stay below it."""
    X, y, v = make_data(3, 50, 3)
    covariance = nerm.Neutrality(nerm.Identity())
    optimum = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + 100 * covariance).on(X, y, viewpoint=v).solve()
    large = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + eta * covariance).on(X, y, viewpoint=v)
    known = replace(optimum.multipliers, rows=np.ones_like(optimum.multipliers.rows))
    for thetas in (known.thetas, np.array([0.5])):
        bound = large.certify([0.0, 0.0, 0.0], 0.0, replace(known, thetas=thetas)).dual
        assert bound <= optimum.certificate.primal * (1 + 1e-8)
    solution = large.solve()
    assert solution.status != "optimal" or solution.objective.total <= optimum.objective.total * (1 + 1e-5)


def test_a_wrong_conjugate_certifies_nothing(data):
    X, y, _ = data
    with pytest.raises(nerm.InvalidInputError, match=r"'conjugate' of 'phi' must satisfy"):
        nerm.margin_function(lambda m: cp.pos(1 - m), conjugate=lambda u: u - 1.0)
    with pytest.raises(nerm.InvalidInputError, match=r"'subgradient' of 'phi' must be the slope"):
        nerm.margin_function(lambda m: cp.pos(1 - m), subgradient=lambda m: 0 * m)

    @dataclass(frozen=True)
    class Lying(Hinge):
        def conjugate(self, u):
            return super().conjugate(u) - 1.0

    solution = (Risk(Lying()) + 0.1 * SquaredL2()).on(X, y).solve("clarabel")
    assert solution.status == "inaccurate"


def test_an_almost_semidefinite_gram_matrix_is_made_semidefinite():
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(60, 60)))
    values = np.r_[np.ones(30), np.full(30, -1e-9)]
    K = (Q * values) @ Q.T
    y = np.sign(rng.normal(size=60))
    problem = (Risk(Hinge()) + 0.1 * SquaredL2()).on((K + K.T) / 2, y, kernel="precomputed")
    assert np.linalg.eigvalsh(problem.hypothesis.gram)[0] >= -1e-14
    bound = problem.solve().certificate.dual
    negative = Q[:, 30:]
    c = negative @ np.linalg.lstsq(negative * values[30:], 10 * y, rcond=None)[0]
    assert problem.evaluate(c, 0.0).total >= bound


def test_what_was_validated_stays_what_is_solved():
    X, y, v = make_data(2)
    problem = (Risk(Hinge()) + 0.1 * SquaredL2() + Neutrality(Hinge())).on(X, y, viewpoint=v)
    solution = problem.solve()
    v *= 0.5
    assert problem.certify(solution.coef, solution.intercept).relative_gap <= 1e-5
    with pytest.raises(ValueError, match="read-only"):
        solution.coef[0] = 99.0


def far_rows(offset, n=60):
    """Return the same rows twice, at the origin and far from it, with labels that they do not separate."""
    rng = np.random.default_rng(0)
    Z = np.round(rng.normal(size=(n, 2)) * 2**10) / 2**10  # exact at any offset below
    return Z, Z + offset, np.sign(Z[:, 0] + 0.5 * rng.normal(size=n))


@pytest.mark.parametrize("solver", ["smo", "low-rank", "augmented-lagrangian", "dual-qp", "clarabel"])
def test_an_rbf_kernel_far_from_the_origin_gives_the_same_optimum(solver):
    """Squared distances from products of rows cancel there, and an indefinite Gram matrix has no optimum at all.

    Sixteen offsets of the report that found it, 1e5 to 3e6, and 2 ** 23.
    """
    near, _, y = far_rows(0.0)
    objective, kernel = Risk(Hinge()) + 1e-3 * SquaredL2(), nerm.kernels.RBF(gamma=0.5)
    here = objective.on(near, y, kernel=kernel).solve(solver)
    for offset in (*np.geomspace(1e5, 3e6, 16), 2.0**23):
        there = objective.on(near + np.round(offset), y, kernel=kernel).solve(solver)
        assert there.status == "optimal", offset
        assert there.objective.total == pytest.approx(here.objective.total, rel=2e-6), offset
        evaluated = there.problem.evaluate(there.coef, there.intercept).total
        assert evaluated >= here.certificate.dual * (1 - 1e-9), offset


def test_a_kernel_that_loses_its_digits_is_not_believed():
    """A polynomial of raw columns: solvers lose it, and the certificate says why and what to do."""
    _, X, y = far_rows(100.0)
    problem = (Risk(Hinge()) + SquaredL2()).on(X, y, kernel=nerm.kernels.Polynomial(gamma=1.0, degree=3, coef0=1.0))
    solution = problem.solve()
    assert solution.status == "inaccurate"
    assert "digits" in solution.certificate.reason or "rounding may hide" in solution.certificate.reason
    assert "scale the columns" in str(solution.certificate)


@pytest.mark.skipif(LONG_EPS == EPS, reason="the platform has no long doubles")
@pytest.mark.parametrize("kernel", [kernels.RBF(gamma=0.02), kernels.RBF(gamma=0.1)], ids=repr)
def test_kernel_coefficients_that_cancel_are_judged_in_long_doubles(kernel):
    """With little regularization coefficients are near 1e8 and scores near 1: the last digits of K count."""
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(12, 2)), np.where(rng.random(12) < 0.5, 1, -1)
    solution = (Risk(nerm.SquaredHinge()) + 1e-9 * SquaredL2()).on(X, y, kernel=kernel).solve()
    assert solution.status == "optimal"
    assert np.abs(solution.coef).max() > 1e4
    exact = kernel.long_gram(X) @ solution.coef.astype(np.longdouble)
    np.testing.assert_allclose(solution.training_scores(), (exact + solution.intercept).astype(float), atol=1e-12)


@pytest.mark.parametrize("offset", [2.0**27, 2.0**33, 2.0**40])
def test_linear_rows_far_from_the_origin_are_judged_by_their_differences(offset):
    near, far, y = far_rows(offset)
    objective = Risk(Hinge()) + 1e-3 * SquaredL2()
    here, there = (objective.on(X, y).solve() for X in (near, far))
    gap = there.certificate.relative_gap
    assert there.certificate.primal >= here.certificate.dual * (1 - 1e-9)
    assert there.certificate.dual <= here.certificate.primal + there.certificate.slack
    assert there.objective.total <= here.objective.total * (1 + 2 * max(gap, 1e-6))
    w, b = [Fraction(c) for c in there.coef], Fraction(there.intercept) + Fraction(there.intercept.rest)
    scores = [sum(c * Fraction(x) for c, x in zip(w, row, strict=True)) + b for row in far]
    risk = sum(max(Fraction(0), 1 - int(t) * f) for t, f in zip(y, scores, strict=True)) / len(y)
    exact = risk + Fraction(1e-3) / 2 * sum(c * c for c in w)
    assert abs(float(exact - Fraction(there.objective.total))) <= there.certificate.slack


def test_slack_counts_and_adds_up():
    one = nerm.Certificate(1.0, 1.0, slack=1e-3)
    assert one.relative_gap == pytest.approx(1e-3)
    assert (one + one).slack == one.times(2.0).slack == 2e-3
    # an optimum of nothing is relative to 1e-8 of the zero hypothesis
    assert nerm.Certificate(0.0, 0.0, scale=1.0, slack=1e-9).relative_gap == pytest.approx(0.1)


def dipped(m):
    return np.maximum(1 - m, 0) - 5 * np.maximum(0, 0.05 - np.abs(m - 30.1))


def test_a_value_that_is_not_its_expression_is_found_at_the_solution(data):
    """A dip too narrow for any probe but the margins themselves."""
    atom = nerm.margin_function(lambda m: cp.pos(1 - m), value=dipped, name="dip")
    X, y = np.array([[30.1], [1.0], [-1.0], [-30.1]]), [1, 1, -1, -1]
    problem = (Risk(atom) + 1e-3 * SquaredL2()).on(X, y, intercept=False)
    assert problem.certify([1.0]).slack > 0.1
    assert problem.certify([1.0]).relative_gap > 1e-2
    with pytest.raises(nerm.InvalidInputError, match=r"'value' of 'dip' must be the same function as 'expression'"):
        nerm.margin_function(lambda m: cp.pos(1 - m), value=lambda m: dipped(m + 0.1), name="dip")


def test_a_conjugate_that_is_a_little_too_low_takes_from_the_claim(data):
    """9e-5 passes the check of what was given; a hypothesis that is off by as much is not called optimal for it."""
    X, y, _ = data
    parts = {"value": lambda m: (1 - m) ** 2, "subgradient": lambda m: 2 * (m - 1), "curvature": lambda m: 2 + 0 * m}
    low = nerm.margin_function(lambda m: cp.square(1 - m), conjugate=lambda u: u + u * u / 4 - 9e-5, **parts)
    objective = Risk(nerm.Squared()) + 1e-2 * SquaredL2()
    best = objective.on(X, y).solve(tol=1e-9)
    problem = (Risk(low) + 1e-2 * SquaredL2()).on(X, y)
    for shift in (0.0, 0.005, 0.01):
        certificate = problem.certify(best.coef + shift, best.intercept, best.multipliers)
        worse = certificate.primal / best.objective.total - 1
        assert certificate.relative_gap >= 0.99 * worse
        assert certificate.slack >= 8e-5


def test_nothing_is_returned_that_is_worse_than_nothing(data):
    X, y, _ = data

    class Wild(nerm.solvers.OwnSolver):
        name = "wild"

        def needs(self):
            return "anything"

        def obstacle(self, problem):
            return None

        def answer(self, problem, accuracy, options):
            return nerm.solvers.Answer(np.full(problem.hypothesis.size, 1e12), 0.0, claim="optimal")

    solution = (Risk(Hinge()) + 0.1 * SquaredL2()).on(X, y).solve(Wild())
    assert solution.status == "inaccurate"
    assert not solution.coef.any()
    assert solution.objective.total == 1.0
    assert "worse than f = 0" in solution.certificate.reason


@pytest.mark.parametrize("omega", [nerm.L1(), nerm.LInf(), nerm.GroupL2([0, 0])], ids=repr)
def test_integers_near_the_last_digit_certify_no_zero(omega):
    """Near 2^60 sums of x cancel to nothing in floats: f = 0 was called optimal where a slope pays."""
    rng = np.random.default_rng(0)
    near = rng.integers(-3, 4, size=(24, 2)) * 512.0
    far, y = near + 2.0**60, np.where(near[:, 0] + 700 * rng.normal(size=24) > 0, 1, -1)
    objective = Risk(nerm.SquaredHinge()) + omega
    here = objective.on(near, y).solve()
    assert here.status == "optimal"
    problem = objective.on(far, y)
    nothing = problem.certify(np.zeros(2), 0.0)
    assert nothing.primal - nothing.dual + nothing.slack >= 0.99 * (1.0 - here.objective.total)
    found = problem.solve()
    assert found.certificate.dual <= here.objective.total + found.certificate.slack + 1e-9
    assert found.status == "optimal"
    assert found.objective.total == pytest.approx(here.objective.total, rel=2e-6)


def test_an_intercept_has_the_digits_that_far_columns_need():
    """Near 2^60 the last digit of b is worth more than scores differ by: `intercept.rest` is what follows it."""
    rng = np.random.default_rng(1)
    near = rng.integers(-3, 4, size=(30, 2)) * 512.0
    far, y = near + 2.0**60, np.where(near[:, 0] + 700 * rng.normal(size=30) > 0, 1, -1)
    objective = Risk(Hinge()) + 1e-3 * SquaredL2()
    here, there = objective.on(near, y).solve(), objective.on(far, y).solve()
    assert there.status == "optimal"
    rounded = there.problem.evaluate(there.coef, float(there.intercept))  # judged as it is given
    assert rounded.total > there.objective.total * (1 + 1e-5)
    assert there.problem.evaluate(there.coef, there.intercept).total == there.objective.total
    np.testing.assert_allclose(there.decision_function(far), here.decision_function(near), atol=1e-2)
    np.testing.assert_allclose(there.decision_function(far[:1]), there.training_scores()[:1], atol=1e-9)


def test_multipliers_at_scores_are_the_middles_of_their_intervals():
    """Minus the slope where there is one, the middle at a kink, and a finite number where the slope overflows."""
    from nerm.recovery import multipliers_at

    X, y = np.array([[0.0], [1.0], [-800.0]]), np.array([1.0, -1.0, 1.0])
    objective = Risk(Hinge()) + Risk(nerm.Logistic()) + Risk(nerm.Exponential()) + SquaredL2()
    problem = objective.on(X, y, intercept=False)
    hinge, logistic, exponential = multipliers_at(problem.blocks, np.array([1.0, 0.5, -800.0]))
    assert hinge.tolist() == [0.5, 1.0, 1.0]
    np.testing.assert_allclose(logistic, 1 / (1 + np.exp([1.0, -0.5, -800.0])))
    np.testing.assert_allclose(exponential[:2], np.exp([-1.0, 0.5]))
    assert 1e100 < exponential[2] < np.inf


def test_the_lines_of_a_ramp_are_no_atoms_of_ones_own(monkeypatch):
    """They keep the atoms' contract: holding them against cvxpy in every step took most of a fit's time."""
    from nerm import slack

    monkeypatch.setattr(slack, "expressed", None)
    rng = np.random.default_rng(0)
    X, v = rng.normal(size=(60, 3)), rng.choice([-1.0, 1.0], 60)
    y = np.where(X[:, 0] + 0.5 * v > 0, 1.0, -1.0)
    objective = nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + nerm.Neutrality(nerm.Ramp())
    assert objective.on(X, y, viewpoint=v).solve().status is nerm.Status.STATIONARY
