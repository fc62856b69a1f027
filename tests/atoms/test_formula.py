"""The calculus of formulas against cvxpy's evaluation, finite differences and fine grids."""

import copy
import pickle
import warnings

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import expit, xlogy

import nerm
from nerm.atoms.formula import derive, evaluated
from tests.conftest import make_data

LEAVES = [
    lambda m, a, b: a * m + b,
    lambda m, a, b: b - m,
    lambda m, a, b: a * (m - b),
]
CONVEX = [
    lambda x, a: cp.abs(x),
    lambda x, a: cp.pos(x),
    lambda x, a: cp.neg(x),
    lambda x, a: cp.square(x),
    lambda x, a: cp.huber(x, a),
    lambda x, a: cp.scalene(x, a, 0.4),
    lambda x, a: cp.logistic(x),
    lambda x, a: cp.exp(x / 4),
    lambda x, a: cp.power(cp.pos(x), 1.5),
    lambda x, a: cp.power(cp.abs(x), 3),
]
RISING = [
    lambda x, a: cp.pos(x),
    lambda x, a: cp.maximum(x, a),
    lambda x, a: cp.logistic(x / 3),
    lambda x, a: cp.exp(x / 20 - 2),
    lambda x, a: cp.square(cp.pos(x)),
]


def random_tree(rng, depth):
    """Return a convex formula by cvxpy's rules, and its depth is at most `depth`."""
    a, b = rng.choice([0.2, 0.5, 1.0, 2.0]), rng.choice([-1.0, 0.0, 0.3, 1.0, 2.5])
    if depth <= 1:
        leaf, outer = rng.choice(LEAVES), rng.choice(CONVEX)
        return lambda m: outer(leaf(m, a, b), a)
    one, two = random_tree(rng, depth - 1), random_tree(rng, int(rng.integers(1, depth)))
    kind = rng.integers(4)
    if kind == 0:
        return lambda m: a * one(m) + two(m)
    if kind == 1:
        return lambda m: cp.maximum(one(m), two(m))
    if kind == 2:
        rising = rng.choice(RISING)
        return lambda m: rising(one(m), a)
    return lambda m: one(m) - a * m + b


def check(formula, rng):
    if not np.isfinite(evaluated(formula, np.array([-2.0, 2.0]))).all():
        with pytest.raises(nerm.InvalidInputError, match="finite on all real numbers"):
            derive(formula, "random")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        f = derive(formula, "random")
    points = np.concatenate([rng.normal(0, 3, 30), f.breaks, f.breaks + 1e-3, [-20.0, 0.0, 1.0, 15.0]])
    points = points[np.abs(points) < 50]
    values = f.jet(points).value
    usual = np.abs(values) < 1e6
    points, values = points[usual], values[usual]
    scale = 1 + np.abs(values)
    h = 1e-6
    before, here, after = evaluated(formula, np.stack([points - h, points, points + h]))
    assert np.all(np.abs(values - here) <= 1e-9 * scale)
    low, high = f.slopes_at(points)
    left, right = (values - before) / h, (after - values) / h
    slack = 1e-4 * (1 + np.abs(left) + np.abs(right) + scale)
    assert np.all(low <= high + 1e-9 * scale)
    assert np.all((low <= right + slack) & (high >= left - slack))
    far = np.min(np.abs(points[:, None] - f.breaks), axis=1, initial=9.0) > 1e-5
    assert np.all(np.abs(low - left)[far] <= 3e-2 * slack[far] * 1e3)
    # the conjugate is never below u m - phi(m), and equal to it at a subgradient
    u = np.concatenate([low, high, 0.5 * (low + high)])
    at, value = np.tile(points, 3), np.tile(values, 3)
    star = f.conjugate(u)
    size = 1 + np.abs(u * at) + np.abs(value)
    assert np.all(np.abs(star - (u * at - value)) <= 1e-9 * size)
    grid = np.linspace(-30, 30, 401)
    reached = u[:, None] * grid - f.jet(grid).value
    assert np.all(star[:, None] >= reached - 1e-9 * (1 + np.abs(reached)))
    for step in (0.1, 3.0):
        z = f.prox(points, step)
        below, above = f.slopes_at(z)
        slope = (points - z) / step
        slack = 1e-7 * (1 + np.abs(points) + np.abs(slope) + np.abs(below)) / min(step, 1.0)
        held = np.abs(z[:, None] - f.breaks).min(axis=1, initial=9.0) <= 1e-9 * (1 + np.abs(z))
        near = np.maximum(below - slope, slope - above) <= slack
        assert np.all(near | held)


def test_random_formulas():
    rng = np.random.default_rng(0)
    for _ in range(150):
        check(random_tree(rng, int(rng.integers(1, 4))), rng)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(100))
def test_many_random_formulas(seed):
    rng = np.random.default_rng([seed, 28])
    for _ in range(1000):
        check(random_tree(rng, int(rng.integers(1, 6))), rng)


@pytest.mark.parametrize(
    ("formula", "kinks"),
    [  # the curves cross where one of them has a kink: two breakpoints are equal up to rounding
        (lambda m: cp.maximum(cp.neg(0.4 * m + 0.4) + cp.square(2 * m), 1.3 - 2.7 * m), (-1.0, 0.325)),
        (lambda m: cp.maximum(0.5, cp.pos(m - 1), cp.maximum(cp.huber(m), 0.5)), (-(0.5**0.5), 0.5**0.5)),
        # they cross twice next to a kink
        (lambda m: cp.maximum(cp.abs(0.2 * m + 2.5), cp.logistic(m + 1)), (-12.50005, -12.49995, 1.80130)),
        (lambda m: cp.maximum(cp.power(cp.pos(2 * m), 1.5), 0.25 * cp.abs(m)), (0.0, 1 / 128)),
        # lines that are parallel up to rounding do not cross far away
        (
            lambda m: cp.maximum(
                cp.huber(m + 0.3) - 0.2 * m - 0.2 * m - 0.5 * m + 3.8,
                cp.abs(0.2 * m - 1) - 0.2 * m - 2 * m - 0.5 * m + 2.3,
            ),
            (-0.251191,),
        ),
    ],
)
def test_curves_that_cross_at_or_next_to_a_kink(formula, kinks):
    atom = nerm.margin_function(formula)
    np.testing.assert_allclose(atom.facts.kinks, kinks, rtol=1e-5, atol=1e-9)
    m = np.linspace(-14, 3, 1701)
    np.testing.assert_allclose(atom.value(m), evaluated(formula, m), rtol=1e-12, atol=1e-12)


HAND = {  # value and conjugate by hand
    nerm.Hinge(): (lambda m: np.maximum(0, 1 - m), lambda u: u, (-1, 0)),
    nerm.SquaredHinge(): (lambda m: np.maximum(0, 1 - m) ** 2, lambda u: u + u**2 / 4, (-9, 0)),
    nerm.SmoothHinge(0.5): (None, lambda u: u + 0.25 * u**2, (-1, 0)),
    nerm.HuberizedHinge(0.5): (None, lambda u: 1.5 * u + 0.5 * u**2, (-1, 0)),
    nerm.ModifiedHuber(): (None, lambda u: u + u**2 / 4, (-4, 0)),
    nerm.Pinball(0.3): (lambda m: np.maximum(1 - m, 0.3 * (m - 1)), lambda u: u, (-1, 0.3)),
    nerm.Squared(): (lambda m: (1 - m) ** 2, lambda u: u + u**2 / 4, (-9, 9)),
    nerm.Logistic(): (
        lambda m: np.log1p(np.exp(-m)),
        lambda u: xlogy(-u, -u) + xlogy(1 + u, 1 + u),
        (-1, 0),
    ),
    nerm.Exponential(): (lambda m: np.exp(-m), lambda u: xlogy(-u, -u) + u, (-9, 0)),
}


@pytest.mark.parametrize("atom", HAND, ids=repr)
def test_built_in_atoms_have_the_conjugates_of_the_textbook(atom):
    value, conjugate, ends = HAND[atom]
    m, u = np.linspace(-5, 5, 41), np.linspace(*ends, 31)
    if value is not None:
        np.testing.assert_allclose(atom.value(m), value(m), atol=1e-12)
    np.testing.assert_allclose(atom.conjugate(u), conjugate(u), atol=1e-12)
    np.testing.assert_allclose(atom.value(m), evaluated(atom.expression, m), atol=1e-12)


def test_logistic_derivatives_by_hand():
    m = np.linspace(-40, 40, 17)
    np.testing.assert_allclose(nerm.Logistic().subgradient(m)[0], -expit(-m), rtol=1e-14)
    np.testing.assert_allclose(nerm.Logistic().curvature(m), expit(m) * expit(-m), rtol=1e-14)


@pytest.mark.parametrize(
    ("formula", "breaks", "slopes", "parts"),
    [
        (lambda m: cp.maximum(0, 1 - m, 0.4 - 2 * m), [-0.6, 1.0], (-2, 0), 2),
        (lambda m: cp.abs(1 - m) + cp.abs(m), [0.0, 1.0], (-2, 2), 2),
        (lambda m: cp.maximum(cp.square(m), 1), [-1.0, 1.0], (-np.inf, np.inf), 4),
        (lambda m: cp.square(cp.pos(1 - m)) + 2 * m, [1.0], (-np.inf, 2), 1),
        (lambda m: 3 * m + 1, [], (3, 3), 1),
    ],
)
def test_pieces_of_piecewise_quadratics(formula, breaks, slopes, parts):
    atom = nerm.margin_function(formula)
    np.testing.assert_allclose(atom.facts.breakpoints, breaks, atol=1e-14)
    assert atom.facts.slopes == slopes
    assert atom.derived.is_quadratic
    assert len(atom.parts) == parts
    nerm.testing.check_margin_function(atom)


def test_parts_add_up_to_the_function():
    m = np.linspace(-4, 4, 101)
    for formula in (
        lambda m: cp.exp(cp.pos(0.3 - m)),
        lambda m: cp.logistic(-m) + cp.pos(1 - m),
        lambda m: cp.maximum(cp.exp(-m), 2 - m, cp.square(m)),
        lambda m: cp.maximum(0, 1 - m, 0.4 - 2 * m) + 5,
    ):
        atom = nerm.margin_function(formula)
        rest = atom.value(m) - sum(part.value(m) for part in atom.parts)
        np.testing.assert_allclose(rest, rest[0], atol=1e-9)
        for part in atom.parts:
            assert part.facts.quadratic is not None or not part.facts.kinks


def test_a_formula_that_only_nerm_proves_convex():
    """|m| - 0.5 max(|m|, 1) is convex, and cvxpy's rules do not see it."""
    formula = lambda m: cp.abs(m) + cp.pos(1 - m) - 0.5 * cp.abs(m)  # noqa: E731
    assert not formula(cp.Variable(2)).is_convex()
    atom = nerm.margin_function(formula, name="mine")
    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.resize([1, -1], 40)
    problem = (nerm.Risk(atom) + 0.1 * nerm.SquaredL2()).on(X, y)
    assert problem.to_cvxpy().is_dcp()
    found, other = problem.solve(), problem.solve("clarabel")
    assert found.objective.total == pytest.approx(other.objective.total, rel=1e-6)


@pytest.mark.parametrize(
    ("formula", "message"),
    [
        (lambda m: cp.minimum(m, 1), "must be convex"),
        (lambda m: -cp.square(m), "must be convex"),
        (lambda m: -cp.log(m), "finite on all real numbers"),
        (lambda m: cp.inv_pos(m), "finite on all real numbers"),
        (lambda m: cp.power(m, 1.5), "finite on all real numbers"),
        (lambda m: 0 * m + 2, "must depend on its argument. Got a constant"),
        (lambda m: cp.pos(m) - cp.pos(m) + 1, "must depend on its argument"),
        (lambda m: cp.inv_pos(m + 100), "finite on all real numbers. Got"),
        (lambda m: -cp.entr(m + 5), "finite on all real numbers"),
        (lambda m: cp.kl_div(m + 40, 1), "finite on all real numbers"),
        (lambda m: cp.power(m - 100, -2), "finite on all real numbers"),
        (lambda m: cp.power(m, 3), "finite on all real numbers"),
        (
            lambda m: cp.Parameter(nonneg=True, value=1.0) * cp.pos(m),
            "have no parameter and no other variable",
        ),
        (lambda m: cp.pos(m - cp.Variable()), "have no parameter and no other variable"),
        (lambda m: np.nan * m, "finite on all real numbers. Got nan"),
        (lambda m: cp.hstack([m, m]), "work elementwise. Got shape"),
        (lambda m: [m], "must map a cvxpy expression to a cvxpy expression"),
        (lambda m: cp.norm(m), "work elementwise"),
        (lambda m: cp.multiply(np.linspace(1, 2, m.size), cp.pos(m)), "work elementwise"),
        (lambda m: cp.pos(m[::-1]), "work elementwise"),
        (lambda m: cp.cumsum(cp.pos(m)), "work elementwise"),
        (lambda m: cp.vstack([m, m]), "work elementwise"),
        (lambda m: cp.abs(m) - 2 * cp.pos(cp.abs(m) - 1), "must be convex"),
        (lambda m: cp.exp(m) - cp.exp(2 * m), "must be convex"),
        (lambda m: m >= 1, "must map a cvxpy expression to a cvxpy expression"),
        (lambda m: 3.0, "must map a cvxpy expression to a cvxpy expression"),
        (lambda m: np.maximum(m, 0), "must map a cvxpy expression to a cvxpy expression"),
    ],
)
def test_wrong_formulas_get_one_sentence(formula, message):
    with pytest.raises(nerm.InvalidInputError, match=message):
        nerm.margin_function(formula)


def test_an_atom_without_a_rule_warns_and_works():
    def total(m):
        return cp.cumsum(cp.vstack([cp.pos(1 - m), cp.square(m)]), axis=0)[1]

    with pytest.warns(UserWarning, match="no rule for cvxpy.index"):
        atom = nerm.margin_function(total, name="total")
    assert atom.facts.numeric
    assert atom.parts == ()
    m = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(atom.value(m), np.maximum(1 - m, 0) + m**2)
    X, y = np.random.default_rng(0).normal(size=(30, 2)), np.resize([1, -1], 30)
    assert (nerm.Risk(atom) + 0.1 * nerm.SquaredL2()).on(X, y).solve().status == "optimal"


def test_the_conjugate_of_a_numeric_function_is_not_below_the_truth():
    with pytest.warns(UserWarning, match="no rule"):
        atom = nerm.margin_function(lambda m: cp.cumsum(cp.vstack([cp.abs(m), 0 * m]), axis=0)[1])
    u = np.linspace(-0.9, 0.9, 7)
    found = atom.conjugate(u)
    assert np.all(found >= 0)
    np.testing.assert_allclose(found, 0, atol=1e-5)


@pytest.mark.parametrize(
    "formula",
    [
        lambda m: cp.sum(cp.vstack([cp.pos(1 - m), cp.square(m)]), axis=0),
        lambda m: cp.max(cp.vstack([1 - m, cp.square(m)]), axis=0),
        lambda m: cp.log_sum_exp(cp.vstack([-m, 0.5 * m, np.zeros(m.shape)]), axis=0),
        lambda m: cp.norm1(cp.vstack([1 - m, m + 2]), axis=0),
        lambda m: cp.norm_inf(cp.vstack([1 - m, 2 * m]), axis=0),
        lambda m: cp.huber(cp.exp(-m), 1.5),
        lambda m: cp.huber(cp.square(m), 0.7),
        lambda m: cp.abs(m) ** 3,
        lambda m: cp.xexp(cp.pos(1 - m)),
        lambda m: cp.scalene(1 - m, 2, 0.3),
        lambda m: cp.maximum(cp.exp(-m), cp.exp(2 * m - 3)),
        lambda m: cp.maximum(cp.square(m), 2 * m - 1),  # they touch
        lambda m: -cp.minimum(m, 1 - m, 0),
        lambda m: cp.abs(m - 1e6),
        lambda m: (
            cp.abs(-85 * (m + 3.458) - 0.3) + 85 * (m + 3.458)
        ),  # a constant for m < -3.46, up to rounding
        lambda m: cp.power(cp.pos(1 - m), 1.5),
        lambda m: cp.square(cp.pos(m)) + cp.power(cp.pos(1 - m), 1.2),
        lambda m: cp.maximum(cp.exp(m), cp.square(m), 1),
        lambda m: -cp.log_normcdf(m),  # cvxpy writes the probit loss with matrices
        lambda m: cp.max(
            np.array([[1.0], [-2.0], [0.5]]) @ cp.reshape(1 - m, (1, m.size), order="F"), axis=0
        ),
        lambda m: cp.sum(cp.square(cp.pos(sp.eye_array(2) @ cp.vstack([m, 1 - m]) - 0.5)), axis=0),
    ],
)
def test_rules_for_less_usual_atoms(formula):
    atom = nerm.margin_function(formula)  # no warning, which would be an error
    nerm.testing.check_margin_function(atom)
    m = np.linspace(-4, 4, 81)
    np.testing.assert_allclose(atom.value(m), evaluated(formula, m), rtol=1e-12, atol=1e-12)


def test_tiny_functions_keep_their_kinks_and_constants():
    tiny = nerm.margin_function(lambda m: 1e-10 * cp.abs(m - 1))
    assert (tiny.facts.kinks, tiny.facts.quadratic) == ((1.0,), (1.0, 0.0))
    raised = nerm.margin_function(lambda m: 1e-12 * (cp.pos(1 - m) + 0.05))
    assert raised.facts.quadratic is None
    with pytest.raises(nerm.InvalidInputError, match="must be convex"):
        nerm.margin_function(lambda m: -1e-14 * cp.abs(m))


@pytest.mark.parametrize("constant", [7.0, -0.5])
def test_a_hinge_and_a_constant_is_solved_as_a_hinge(constant):
    atom = nerm.margin_function(lambda m: cp.pos(1 - m) + constant, name="raised")
    X, y, _ = make_data(2)
    raised, plain = (
        (nerm.Risk(loss) + 0.1 * nerm.SquaredL2()).on(X, y).solve("interior-point")
        for loss in (atom, nerm.Hinge())
    )
    assert raised.status == "optimal"
    assert raised.objective.total == pytest.approx(plain.objective.total + constant, rel=2e-6)


def test_a_length_is_a_smooth_formula():
    """The pseudo-Huber loss sqrt(1 + (1 - m)^2)."""

    def pseudo_huber(m):
        return cp.norm(cp.vstack([1 - m, np.ones(m.shape)]), 2, axis=0)

    atom = nerm.margin_function(pseudo_huber, name="pseudo-huber")
    m = np.linspace(-3, 3, 7)
    np.testing.assert_allclose(atom.value(m), np.hypot(1 - m, 1))
    np.testing.assert_allclose(atom.curvature(m), np.hypot(1 - m, 1) ** -3.0)
    nerm.testing.check_margin_function(atom)
    assert atom.parts == (atom,)


def test_the_description_and_the_picture():
    atom = nerm.margin_function(lambda m: cp.exp(cp.pos(0.3 - m)), name="exp-pos")
    text = atom.describe()
    assert "exp-pos: smooth with kinks" in text
    assert "kinks         0.3" in text
    for shown in (atom, nerm.Hinge(), nerm.Logistic()):
        axes = nerm.plots.atom(shown)
        assert [ax.get_xlabel() for ax in axes] == ["m", "m", "u"]
        axes[0].figure.clear()


def test_algebra_of_margin_functions():
    m = np.linspace(-3, 3, 13)
    both = nerm.Hinge() + 0.3 * nerm.Logistic()
    np.testing.assert_allclose(both.value(m), nerm.Hinge().value(m) + 0.3 * nerm.Logistic().value(m))
    larger = nerm.maximum(nerm.Hinge(), nerm.Squared())
    np.testing.assert_allclose(larger.value(m), np.maximum(nerm.Hinge().value(m), nerm.Squared().value(m)))
    moved = nerm.Hinge().scaled(2.0).shifted(0.5)
    np.testing.assert_allclose(moved.value(m), nerm.Hinge().value(2 * (m - 0.5)))
    for atom in (both, larger, moved, both + moved):
        nerm.testing.check_margin_function(atom)
        assert "\\" in atom.latex("m", "-m")
    assert repr(both) == "Hinge() + 0.3 * Logistic()"
    assert repr(moved) == "Hinge().scaled(2).shifted(0.5)"
    assert both == nerm.Hinge() + 0.3 * nerm.Logistic()
    with pytest.raises(nerm.InvalidInputError, match="non-convex"):
        -1.0 * nerm.Hinge()


@pytest.mark.parametrize("atom", [*HAND, nerm.Hinge() + 0.3 * nerm.Logistic(), nerm.Ramp()], ids=repr)
def test_atoms_pickle_after_use(atom):
    atom.value([0.0])
    assert atom.facts.at_zero == pickle.loads(pickle.dumps(atom)).facts.at_zero
    assert copy.deepcopy(atom) == atom


def test_own_and_built_in_members_combine():
    own = nerm.margin_function(lambda m: cp.pos(0.5 - m), name="own")
    both = nerm.Logistic() + 2 * own
    np.testing.assert_allclose(both.value([0.0]), np.log(2) + 1.0)
    nerm.testing.check_margin_function(both)


COMBINED = [
    (nerm.Hinge() + 0.3 * nerm.Logistic(), lambda m: cp.pos(1 - m) + 0.3 * cp.logistic(-m)),
    (nerm.maximum(nerm.Hinge(), nerm.Squared()), lambda m: cp.maximum(cp.pos(1 - m), cp.square(1 - m))),
    (nerm.Hinge().scaled(2.0).shifted(0.5), lambda m: cp.pos(1 - 2 * (m - 0.5))),
    (
        nerm.Exponential().scaled(0.5) + nerm.Pinball(0.2),
        lambda m: cp.exp(-m / 2) + cp.maximum(1 - m, 0.2 * (m - 1)),
    ),
]


@pytest.mark.parametrize("role", ["loss", "surrogate"])
@pytest.mark.parametrize(("atom", "formula"), COMBINED, ids=lambda x: repr(x) if hasattr(x, "facts") else "")
def test_algebra_as_loss_and_as_surrogate(atom, formula, role, tmp_path):
    X, y, v = make_data(2)
    hinge = nerm.Hinge()
    loss, psi = (atom, hinge) if role == "loss" else (hinge, atom)
    objective = nerm.Risk(loss) + 0.1 * nerm.SquaredL2() + 0.5 * nerm.Neutrality(psi)
    solution = objective.on(X, y, viewpoint=v).solve()
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    f = X @ w + b
    first, second = (
        (formula, lambda m: cp.pos(1 - m)) if role == "loss" else (lambda m: cp.pos(1 - m), formula)
    )
    sides = [cp.mean(second(sign * cp.multiply(v, f))) for sign in (1, -1)]
    value = cp.mean(first(cp.multiply(y, f))) + 0.05 * cp.sum_squares(w) + 0.5 * cp.maximum(*sides)
    expected = cp.Problem(cp.Minimize(value)).solve(solver="CLARABEL")
    assert solution.status == "optimal"
    assert solution.objective.total == pytest.approx(float(expected), rel=3e-6)
    solution.save(tmp_path / "combined.nerm")
    assert nerm.load(tmp_path / "combined.nerm").problem.objective == objective


@pytest.mark.parametrize(
    ("formula", "expected"),
    [
        (lambda m: cp.maximum(0, 1 - m, 2 * (0.2 - m)), r"\max(0,\ 1 - m,\ 2\,\left(0.2 - m\right))"),
        (lambda m: cp.exp(1 - m) + m - 2, r"\left(e^{1 - m} + m - 2\right)"),
        (lambda m: cp.logistic(-2 * m) / 2, r"\frac{\log\left(1 + e^{-2\,m}\right)}{2}"),
        (lambda m: cp.power(cp.pos(1 - m), 1.5), r"\max(0,\ 1 - m)^{1.5}"),
        (lambda m: cp.square(m) + 0.5 * cp.abs(m), r"\left(m^{2} + 0.5\,\left|m\right|\right)"),
        (
            lambda m: cp.norm(cp.vstack([1 - m, np.ones(m.shape)]), 2, axis=0),
            r"\sqrt{\left(1 - m\right)^{2} + 1^{2}}",
        ),
        (lambda m: cp.xexp(cp.pos(m)), r"\operatorname{mine}(m)"),  # no LaTeX rule: the name
    ],
)
def test_latex_of_the_formula(formula, expected):
    assert nerm.margin_function(formula, name="mine").latex("m", "- m") == expected


def test_a_moved_margin_in_latex():
    moved = nerm.Hinge().scaled(2.0).shifted(0.5)
    assert moved.latex("m", "- m") == r"\max(0,\ 1 - 2\,\left(m - 0.5\right))"


def test_notebooks_show_tables_and_formulas():
    html = nerm.Hinge()._repr_html_()
    assert r"$\phi(m) = \max(0,\ 1 - m)$" in html
    assert "<tr><th>kinks</th><td>1</td></tr>" in html
    assert nerm.Hinge().describe()._repr_html_() in html
    assert nerm.Ramp()._repr_html_() is None
    objective = nerm.Risk(nerm.margin_function(lambda m: cp.pos(1 - m), name="<b>")) + nerm.SquaredL2()
    assert "<b>" not in objective._repr_html_()
    assert r"\max(0,\ 1 - y_i f(x_i))" in objective._repr_html_()


def test_a_limit_may_be_negative_where_the_surrogate_is():
    X, y, v = make_data(2)
    low = nerm.margin_function(lambda m: cp.pos(1 - m) - 3, name="low")
    problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2()).subject_to(nerm.Neutrality(low) <= -1.95)
    w, b = cp.Variable(X.shape[1]), cp.Variable()
    f = X @ w + b
    limits = [cp.mean(cp.pos(1 - sign * cp.multiply(v, f))) - 3 <= -1.95 for sign in (1, -1)]
    value = cp.mean(cp.pos(1 - cp.multiply(y, f))) + 0.05 * cp.sum_squares(w)
    expected = cp.Problem(cp.Minimize(value), limits).solve(solver="CLARABEL")
    solution = problem.on(X, y, viewpoint=v).solve()
    assert solution.status == "optimal"
    assert solution.objective.total == pytest.approx(float(expected), rel=3e-6)
    with pytest.raises(nerm.InvalidInputError, match="at least 0"):
        nerm.Neutrality(nerm.Hinge()) <= -1.0  # noqa: B015
