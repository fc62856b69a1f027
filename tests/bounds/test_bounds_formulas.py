"""Complexities, slopes, theorems and radii against enumeration and hand-written formulas; bad input."""

import itertools
import math

import numpy as np
import pytest

from nerm import bounds
from nerm.atoms import Hinge, Identity, Logistic, Squared, margin_functions
from nerm.bounds.theorems import slope_and_range
from nerm.errors import InvalidInputError, UnknownNameError


def enumerated_complexity(X, v, B, beta):
    """E_sigma sup over ||w|| <= B, |b| <= beta of (1/n) sum sigma_i v_i (w.x_i + b), over all 2^n signs."""
    n, total = len(v), 0.0
    for signs in itertools.product([-1, 1], repeat=n):
        direction = [sum(s * v[i] * X[i][j] for i, s in enumerate(signs)) for j in range(len(X[0]))]
        norm = math.sqrt(sum(d * d for d in direction))
        total += (B * norm + beta * abs(sum(s * v[i] for i, s in enumerate(signs)))) / n
    return total / 2**n


@pytest.mark.parametrize(("B", "beta"), [(1.0, 0.0), (2.5, 0.7), (0.0, 1.0)])
def test_closed_form_and_monte_carlo_against_all_signs(B, beta):
    rng = np.random.default_rng(3)
    X, v = rng.normal(size=(8, 2)), rng.choice([-1.0, 0.5, 2.0], size=8)
    exact = enumerated_complexity(X.tolist(), v.tolist(), B, beta)
    closed = bounds.rademacher_linear(X, B, intercept_radius=beta, viewpoint=v)
    assert exact <= closed <= 1.35 * exact
    for rows, kernel in ((X, "linear"), (X @ X.T, "precomputed")):
        estimate = bounds.rademacher_monte_carlo(
            rows, B, kernel=kernel, intercept_radius=beta, viewpoint=v, draws=4000
        )
        assert estimate.estimate == pytest.approx(exact, abs=5 * estimate.standard_error)
        assert estimate.upper(0.01) >= exact
        assert estimate.upper(0.01) - estimate.estimate < 0.1 * exact


def test_complexities_agree_across_representations():
    from scipy import sparse

    rng = np.random.default_rng(4)
    X, v = rng.normal(size=(30, 3)), rng.choice([-1.0, 1.0], size=30)
    by_hand = (2 * math.sqrt(sum(float(x @ x) for x in X)) + 3 * math.sqrt(30)) / 30
    assert bounds.rademacher_linear(X, 2, intercept_radius=3, viewpoint=v) == pytest.approx(
        by_hand, rel=1e-12
    )
    assert bounds.rademacher_linear(sparse.csr_matrix(X), 2, intercept_radius=3) == pytest.approx(
        by_hand, rel=1e-12
    )
    assert bounds.rademacher_kernel(X @ X.T, 2, intercept_radius=3) == pytest.approx(by_hand, rel=1e-12)
    largest = max(float(np.linalg.norm(x)) for x in X)
    population = bounds.rademacher_population(30, 2, largest, intercept_radius=3)
    assert population == pytest.approx((2 * largest + 3) / math.sqrt(30), rel=1e-12)
    assert population >= by_hand
    dense = bounds.rademacher_monte_carlo(X, 2, viewpoint=v, draws=200)
    thin = bounds.rademacher_monte_carlo(sparse.csr_matrix(X), 2, viewpoint=v, draws=200)
    assert dense.estimate == pytest.approx(thin.estimate, rel=1e-12)


def test_monte_carlo_upper_bound_is_the_sub_gaussian_one():
    """The estimate plus tau sqrt(2 ln(1/delta) / draws), by hand: a looser one would cover too."""
    made = bounds.rademacher_monte_carlo([[3.0], [4.0]], 1.0, draws=50)
    assert made.scale == pytest.approx(np.sqrt(9 + 16) / 2)
    assert made.upper(0.05) == pytest.approx(made.estimate + 2.5 * np.sqrt(2 * np.log(20) / 50))


def test_monte_carlo_upper_bound_covers():
    X, v = np.ones((6, 1)), np.ones(6)
    exact = enumerated_complexity(X.tolist(), v.tolist(), 1.0, 0.0)
    uppers = [bounds.rademacher_monte_carlo(X, 1.0, draws=20, random_state=s).upper(0.1) for s in range(300)]
    assert np.mean(np.array(uppers) >= exact) >= 0.9


@pytest.mark.parametrize("name", sorted(margin_functions()))
@pytest.mark.parametrize("bound", [0.0, 0.4, 1.0, 3.7])
def test_slope_and_range_on_the_class_by_a_fine_grid(name, bound):
    function = margin_functions()[name]()
    grid = [-bound + 2 * bound * i / 4000 for i in range(4001)]
    values = [float(function.value(m)) for m in grid]
    slopes = [abs(b - a) * 4000 / (2 * bound) for a, b in itertools.pairwise(values)] if bound else [0.0]
    slope, width = slope_and_range(function, bound, "surrogate")
    lowest = min(values + [float(function.value(m)) for m in (0.0, 1.0) if m <= bound])  # the usual kinks
    assert width == pytest.approx(max(values) - lowest, rel=1e-5, abs=1e-9)
    assert slope >= max(slopes) * (1 - 1e-9)
    assert slope <= function.facts.lipschitz
    if bound:
        assert slope == pytest.approx(max(slopes), rel=2e-2) or bound in np.abs(function.facts.breakpoints)


def test_hinge_constants_are_the_papers():
    assert slope_and_range(Hinge(), 4.0, "surrogate") == (1.0, 5.0)  # L = 1, c = 1 + GM


def test_theorems_by_hand():
    n, v = 200, np.array([1.0, -1.0] * 100)
    f = np.linspace(-2.0, 2.0, n)
    up = sum(max(0.0, 1 - a * b) for a, b in zip(v, f, strict=True)) / n
    down = sum(max(0.0, 1 + a * b) for a, b in zip(v, f, strict=True)) / n
    common = {"complexity": 0.3, "margin_bound": 2.0, "delta": 0.1}
    tail = 3.0 * math.sqrt(math.log(2 / 0.1) / (2 * n))
    assert bounds.neutrality_bound(f, v, Hinge(), **common) == pytest.approx(max(up, down) + 0.6 + tail)
    assert bounds.risk_bound(v, f, Hinge(), **common) == pytest.approx(up + 0.6 + tail)
    triple = 9.0 * math.sqrt(math.log(4 / 0.1) / (2 * n))
    empirical = bounds.neutrality_bound(f, v, Hinge(), **common, kind="empirical")
    assert empirical == pytest.approx(max(up, down) + 0.6 + triple)
    double = 9.0 * math.sqrt(math.log(2 / 0.1) / (2 * n))
    assert bounds.risk_bound(v, f, Hinge(), **common, kind="empirical") == pytest.approx(up + 0.6 + double)
    third = bounds.optimal_neutrality_bound(Logistic(), Hinge(), 5.0, gap=0.01, n=n, **common)
    assert third == pytest.approx(1 + (math.log(2) + 0.01) / 5 + 0.6 + tail)
    assert bounds.optimal_neutrality_bound(Logistic(), Hinge(), 5.0) == pytest.approx(1 + math.log(2) / 5)


def test_radii_by_hand():
    assert bounds.norm_radius(5.0, 100) == pytest.approx(math.sqrt(100 / 5))  # hinge: sqrt(n / lam)
    assert bounds.norm_radius(5.0, 100, 1.0, gap=2.0) == pytest.approx(
        math.sqrt(2 * 3 * 100 / 5)
    )  # far from optimal
    small = math.sqrt(20) + math.sqrt(2 * 1e-4 * 20)
    assert bounds.norm_radius(5.0, 100, 1.0, gap=1e-4) == pytest.approx(small)
    assert bounds.intercept_radius(2.0, 3.0, smallest_viewpoint=0.5) == 8.0
    shares = [bounds.radius_from_data(0.5 * 2.0**k, 0.05, base=0.5)[1] for k in range(60)]
    assert 0.04 < sum(shares) <= 0.05
    for norm in (0.0, 0.3, 0.5, 0.51, 7.0, 8.0, 1e9):
        radius, _ = bounds.radius_from_data(norm, 0.05, base=0.5)
        assert radius >= norm
        assert radius == 0.5 or radius / 2 < norm


COMMON = {"complexity": 0.1, "margin_bound": 2.0}


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: bounds.holdout_neutrality_bound([1], [1], delta=0),
            r"'delta' must be strictly between 0 and 1\. Got 0\.",
        ),
        (
            lambda: bounds.holdout_parity_bound([1, 1], [1, -1], delta=1.0),
            r"'delta' must be strictly .* Got 1\.0",
        ),
        (lambda: bounds.neutrality_bound([1], [1], Hinge(), **COMMON, delta="x"), r"'delta' must .* Got 'x'"),
        (
            lambda: bounds.radius_from_data(1.0, math.nan),
            r"'delta' must be strictly between 0 and 1\. Got nan",
        ),
        (lambda: bounds.holdout_neutrality_bound([], []), r"'scores' must have at least one entry"),
        (
            lambda: bounds.neutrality_bound([], [], Hinge(), **COMMON),
            r"'scores' must have at least one entry",
        ),
        (lambda: bounds.norm_radius(1.0, 0), r"'n' must be a whole number, at least 1\. Got 0"),
        (lambda: bounds.norm_radius(1.0, 2.5), r"'n' must be a whole number, at least 1\. Got 2\.5"),
        (
            lambda: bounds.norm_radius(0.0, 5),
            r"'lam' must be a finite positive number\. Got 0\.0\. The norm is bounded only",
        ),
        (
            lambda: bounds.rademacher_linear([[1.0]], math.inf),
            r"'radius' must be a finite number.*finite complexity",
        ),
        (
            lambda: bounds.rademacher_linear([[1.0]], 1.0, intercept_radius=math.inf),
            r"'intercept_radius' must be a finite .* Got inf\. The class must have finite complexity",
        ),
        (lambda: bounds.rademacher_kernel([1.0, math.inf], 1.0), r"'gram' must be finite.*finite complexity"),
        (
            lambda: bounds.rademacher_kernel([1.0, -1.0], 1.0),
            r"k\(x, x\) must be nonnegative\. Got -1 at index 1",
        ),
        (lambda: bounds.rademacher_kernel(1.0, 1.0), r"'gram' must be a square matrix or its diagonal"),
        (lambda: bounds.rademacher_population(10, 1.0, math.inf), r"'input_radius' must be a finite number"),
        (
            lambda: bounds.rademacher_monte_carlo([[1.0]], 1.0, draws=0),
            r"'draws' must be a whole number, at least 1",
        ),
        (
            lambda: bounds.neutrality_bound([1.0], [1.0], Hinge(), complexity=math.inf, margin_bound=2.0),
            r"'complexity' must be a finite number, at least 0\. Got inf\. The class must have finite",
        ),
        (
            lambda: bounds.neutrality_bound([3.0], [1.0], Hinge(), **COMMON),
            r"\|v_i f_i\| must not exceed 'margin_bound', 2, for f to be in the class\. Got 3 at index 0",
        ),
        (
            lambda: bounds.neutrality_bound([1.0], [1.0], Hinge(), complexity=0.1, margin_bound=math.inf),
            r"'margin_bound'",
        ),
        (
            lambda: bounds.neutrality_bound([1.0], [1.0], Hinge(), **COMMON, kind="x"),
            r"'kind' must be one of",
        ),
        (lambda: bounds.risk_bound([0], [1.0], Hinge(), **COMMON), r"'y' must hold -1 and \+1 only"),
        (
            lambda: bounds.optimal_neutrality_bound(Hinge(), Hinge(), 0.0),
            r"'eta' must be a finite positive number",
        ),
        (lambda: bounds.optimal_neutrality_bound(Identity(), Hinge(), 1.0), r"'loss' must be nonnegative"),
        (
            lambda: bounds.optimal_neutrality_bound(Hinge(), Hinge(), 1.0, n=5),
            r"Theorem 3 must have all .* Got 1 of 3",
        ),
        (
            lambda: bounds.intercept_radius(1.0, 1.0, smallest_viewpoint=0.0),
            r"A viewpoint of 0 leaves the intercept",
        ),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()


def test_a_function_without_a_lipschitz_constant_uses_its_range_and_overflow_is_refused():
    bound = bounds.neutrality_bound([0.0], [1.0], Squared(), complexity=0.5, margin_bound=2.0)
    expected = 1 + 2 * 6 * 0.5 + 9 * math.sqrt(math.log(40) / 2)  # |psi'(-2)| = 6, psi on [-2, 2] is [0, 9]
    assert bound == pytest.approx(expected, rel=1e-5)
    assert bound >= expected * (1 - 1e-12)
    exponential = margin_functions()["exponential"]()
    with (
        np.errstate(over="ignore"),
        pytest.raises(InvalidInputError, match=r"must be finite on the values of the class"),
    ):
        bounds.neutrality_bound([0.0], [1.0], exponential, complexity=0.5, margin_bound=1e4)


def test_unknown_kind_is_an_unknown_name():
    with pytest.raises(UnknownNameError, match=r"'empirical', 'population'"):
        bounds.risk_bound([1], [1.0], Hinge(), **COMMON, kind="both")
