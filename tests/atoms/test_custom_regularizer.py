"""A user's own regularizer: one line, checked, certified alone and in sums."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import nerm
from nerm.testing import check_regularizer
from tests.conftest import make_data


def sorted_l1(w):
    """OWL with equal steps: the largest entry weighs d, the next d - 1, ..., each times 0.1."""
    return 0.1 * cp.sum([cp.sum_largest(cp.abs(w), k) for k in range(1, w.shape[0] + 1)])


def overlapping(w):
    return cp.sum([cp.norm2(w[i : i + 6]) for i in range(0, w.shape[0], 4)])


def nuclear(w):
    return cp.normNuc(cp.reshape(w, (4, w.shape[0] // 4), order="F"))


EXPRESSIONS = {
    "tv": lambda w: cp.tv(w),
    "owl": sorted_l1,
    "nuclear": nuclear,
    "overlapping groups": overlapping,
}
OTHERS = {
    "some columns": lambda w: cp.norm1(w[:3]),
    "rough": lambda w: cp.sum_squares(cp.diff(w)),
    "huber": lambda w: cp.sum(cp.huber(w)),
    "one-sided": lambda w: cp.sum(cp.pos(w)),
}
ALL = {**EXPRESSIONS, **OTHERS}


def made(name):
    return nerm.regularizer(ALL[name], name=name)


@pytest.mark.parametrize(
    "name", ["tv", *(pytest.param(name, marks=pytest.mark.slow) for name in ALL if name != "tv")]
)
def test_contract_with_everything_derived(name):
    check_regularizer(made(name), d=8)


@pytest.mark.long
@pytest.mark.parametrize("with_square", [False, True])
@pytest.mark.parametrize("loss", [nerm.Hinge(), nerm.Logistic()], ids=repr)
@pytest.mark.parametrize("name", EXPRESSIONS)
def test_certified_alone_and_with_a_square(name, loss, with_square):
    """200 rows, 20 columns; the oracle is the same objective written in plain cvxpy."""
    X, y, _ = make_data(4, n=200, d=20)
    objective = (
        nerm.Risk(loss)
        + 0.05 * made(name)
        + (0.05 * nerm.SquaredL2() if with_square else 0 * nerm.SquaredL2())
    )
    solution = objective.on(X, y).solve(tol=1e-5)
    assert solution.status == "optimal"
    w, b = cp.Variable(20), cp.Variable()
    m = cp.multiply(y, X @ w + b)
    risk = cp.sum(cp.logistic(-m) if loss == nerm.Logistic() else cp.pos(1 - m)) / 200
    square = 0.025 * with_square * cp.sum_squares(w)
    optimum = cp.Problem(cp.Minimize(risk + 0.05 * ALL[name](w) + square)).solve(solver="CLARABEL")
    assert solution.certificate.dual <= optimum + 1e-7
    assert solution.objective.total == pytest.approx(optimum, rel=1e-5)


@pytest.mark.long
@pytest.mark.parametrize(
    "omega",
    [
        0.05 * made("tv") + 0.01 * nerm.L1(),
        0.05 * made("tv") + 0.02 * nerm.L1() + 0.05 * nerm.SquaredL2(),
        0.05 * made("some columns") + 0.05 * made("tv"),
        0.05 * made("rough") + 0.02 * nerm.GroupL2(),
        0.05 * made("huber") + 0.05 * made("tv"),
        0.05 * made("some columns"),
        0.05 * made("one-sided") + 0.02 * nerm.LInf(),
        1e-9 * made("tv"),
        0.0 * made("tv") + 0.1 * nerm.SquaredL2(),
    ],
    ids=str,
)
def test_certified_in_sums(omega):
    X, y, v = make_data(5, n=80, d=6)
    solution = (
        (nerm.Risk(nerm.Hinge()) + omega + 0.5 * nerm.Neutrality(nerm.Logistic()))
        .on(X, y, viewpoint=v)
        .solve()
    )
    assert solution.certificate.relative_gap <= 1e-5
    assert solution.certificate.dual <= solution.objective.total


def test_the_pieces_are_those_of_the_built_in_norm():
    own, norm = nerm.regularizer(lambda w: cp.norm1(w), name="mine"), nerm.L1()
    rng = np.random.default_rng(0)
    for w in (rng.normal(size=5), np.zeros(5), np.array([1.0, 0.0, -2.0, 0.0, 0.3])):
        assert own.value(w) == pytest.approx(norm.value(w))
        np.testing.assert_allclose(own.prox(w, 0.4), norm.prox(w, 0.4), atol=1e-6)
        np.testing.assert_allclose(own.subgradient(w), norm.subgradient(w), atol=1e-6)
    q = np.array([0.2, -0.99, 0.5, 0.0, 0.9])
    assert (own.conjugate(q), own.conjugate(1.1 * q)) == (0.0, np.inf)
    assert own.finite_multiple(2 * q) == pytest.approx(0.5 / 0.99, rel=1e-6)
    assert own.free(5).shape == (5, 0)


def test_what_it_does_not_punish():
    constants = made("tv").free(7)
    np.testing.assert_allclose(np.abs(constants), np.full((7, 1), 7**-0.5))
    assert made("tv").conjugate(np.ones(7)) == np.inf
    np.testing.assert_array_equal(made("some columns").free(5), np.eye(5)[:, 3:])
    # sup (w0 - w1) - (w0 - w1)^2 = 1/4
    assert made("rough").conjugate(np.array([1.0, -1.0])) == pytest.approx(0.25, rel=1e-6)


STRUCTURES = {  # squared l2, norms by (order, groups, size, whether of a linear map), whether there are other squares
    "norm1": (lambda w: 2 * cp.norm1(w), 0.0, [(2, 6, 1, False)], False),
    "tv": (lambda w: cp.tv(w), 0.0, [(2, 5, 1, True)], False),
    "fused": (lambda w: cp.tv(w) + cp.norm1(w), 0.0, [(2, 11, 1, True)], False),
    "groups": (lambda w: cp.norm2(w[:3]) + cp.norm2(w[3:]) / 2, 0.0, [(2, 2, 3, False)], False),
    "overlap": (lambda w: cp.norm2(w[:4]) + cp.norm2(w[2:]), 0.0, [(2, 2, 4, True)], False),
    "mixed": (lambda w: cp.mixed_norm(cp.reshape(w, (2, 3), order="F"), 2, 1), 0.0, [(2, 2, 3, False)], False),
    "largest": (lambda w: cp.norm_inf(w[:2]) + cp.norm(w, "inf"), 0.0, [(np.inf, 1, 2, False),
                (np.inf, 1, 6, False)], False),
    "weighted": (lambda w: np.arange(6) @ cp.abs(w), 0.0, [(2, 5, 1, False)], False),
    "divided": (lambda w: cp.sum(cp.abs(w) / np.arange(1.0, 7.0)), 0.0, [(2, 6, 1, False)], False),
    "square": (lambda w: cp.norm(w) ** 2 + cp.sum(w**2) / 2 + cp.quad_form(w, np.eye(6)), 5.0, [], False),
    "rough": (lambda w: cp.sum_squares(cp.diff(w)) + 3 * cp.sum_squares(w), 0.0, [], True),
}  # fmt: skip


@pytest.mark.parametrize("name", STRUCTURES)
def test_the_structure_of_an_expression(name):
    """The norms and squares are read as stated, and they add up to cvxpy's value."""
    expression, mu, norms, others = STRUCTURES[name]
    found = nerm.regularizer(expression, name=name).structure(6)
    assert found.mu == pytest.approx(mu)
    shapes = [(n.order, *n.groups.shape, n.matrix is not None) for n in found.norms]
    assert shapes == norms
    assert (found.quadratic is not None) == others
    w = np.array([1.0, -2.0, 0.0, 3.0, 3.0, -0.5])
    lengths = sum(float(n.weights @ np.linalg.norm(n.of(w), n.order, axis=1)) for n in found.norms)
    square = found.mu * float(w @ w) + (float(w @ (found.quadratic @ w)) if others else 0.0)
    assert lengths + square / 2 == pytest.approx(float(expression(cp.Constant(w)).value))


@pytest.mark.parametrize(
    "expression",
    [
        lambda w: np.array([1.0, 5.0]) @ cp.sum(cp.abs(cp.reshape(w, (3, 2), order="F")), axis=0),
        lambda w: np.array([1.0, 5.0]) @ cp.norm1(cp.reshape(w, (3, 2), order="F"), axis=0),
        lambda w: cp.sum(np.arange(9.0).reshape(3, 3) @ cp.abs(cp.reshape(w, (3, 2), order="F"))),
        lambda w: cp.sum(cp.huber(w)),
        lambda w: cp.sum(cp.pos(w)),
        lambda w: cp.normNuc(cp.reshape(w, (2, 3), order="F")),
        lambda w: cp.norm(w, 3),
        lambda w: cp.power(cp.norm1(w), 2),
        lambda w: cp.sum_largest(cp.abs(w), 2),
        lambda w: cp.maximum(cp.norm1(w), cp.norm2(w)),
        lambda w: cp.sum(cp.abs(w) ** 2) + cp.sum(cp.power(cp.abs(w), 1.5)),
    ],
)
def test_other_expressions_have_no_structure(expression):
    assert nerm.regularizer(expression).structure(6) is None


@pytest.mark.parametrize("weight", [1e-3, 0.05, 3.0])
@pytest.mark.parametrize("name", ["fused", "overlap", "largest", "rough", "weighted"])
def test_the_interior_point_takes_norms_of_linear_maps(name, weight):
    X, y, v = make_data(7, n=120, d=6)
    expression = STRUCTURES[name][0]
    omega = nerm.regularizer(expression, name=name)
    problem = (nerm.Risk(nerm.Hinge()) + weight * omega + 0.3 * nerm.Neutrality(nerm.Logistic())).on(
        X, y, viewpoint=v
    )
    solution = problem.solve("interior-point")
    w, b = cp.Variable(6), cp.Variable()
    f = X @ w + b
    sides = [cp.sum(cp.logistic(-sign * cp.multiply(v, f))) / 120 for sign in (1, -1)]
    value = cp.sum(cp.pos(1 - cp.multiply(y, f))) / 120 + weight * expression(w) + 0.3 * cp.maximum(*sides)
    optimum = float(cp.Problem(cp.Minimize(value)).solve(solver="CLARABEL"))
    assert solution.status == "optimal"
    assert solution.objective.total == pytest.approx(optimum, rel=3e-6)
    assert solution.certificate.dual <= optimum * (1 + 1e-6)


def test_it_is_a_value():
    expression = EXPRESSIONS["tv"]
    first, second = nerm.regularizer(expression, name="tv"), nerm.regularizer(expression, name="tv")
    assert first == second
    assert len({first, second}) == 1
    assert repr(first) == "regularizer(norm1(w[1:6] - (w[0:5])), name='tv')"
    assert repr(nerm.regularizer(nuclear, name="nuclear")) == "regularizer(name='nuclear')"  # not of 6
    assert str(0.1 * first) == "minimise 0.1 tv(w)"
    assert r"\operatorname{tv}(w)" in (0.1 * first)._repr_latex_()
    assert nerm.Regularizer in type(first).__mro__


@pytest.mark.long
def test_a_classifier_takes_it():
    X, y, v = make_data(1)
    model = nerm.NERMClassifier(regularizer=made("tv"), lam=0.1, eta=0.5).fit(X, y, viewpoint=v)
    assert model.certificate_.relative_gap <= 1e-5


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: nerm.regularizer(3), "must be a function of a cvxpy vector. Got 3."),
        (
            lambda: nerm.regularizer(lambda w: -cp.norm1(w), name="r"),
            "'expression' of 'r' must be convex by cvxpy's rules.",
        ),
        (lambda: nerm.regularizer(lambda w: cp.abs(w)), "must be a single number. Got shape (6,)."),
        (
            lambda: nerm.regularizer(lambda w: cp.norm1(w) + 1),
            "must be 0 at w = 0 and nowhere negative or infinite. Got 1 at 0",
        ),
        (lambda: nerm.regularizer(lambda w: cp.sum(w)), "nowhere negative"),
        (lambda: nerm.regularizer(lambda w: -cp.sum(cp.log(w))), "infinite"),
        (
            lambda: (nerm.Risk(nerm.Hinge()) + made("nuclear")).on(np.eye(6), [1, -1, 1, -1, 1, -1]),
            "'expression' of 'nuclear' must map a cvxpy vector of length 6 to a cvxpy expression.",
        ),
    ],
)
def test_bad_ones_are_refused(make, text):
    with pytest.raises(nerm.InvalidInputError) as caught:
        make()
    assert text in str(caught.value)
