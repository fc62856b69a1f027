"""The certified trade-off: no hypothesis below the outer curve, every refutation and discovery confirmed."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest

import nerm

SHAPES = {
    "hinge": (nerm.Hinge(), lambda m: cp.pos(1 - m)),
    "logistic": (nerm.Logistic(), lambda m: cp.logistic(-m)),
    "squared-hinge": (nerm.SquaredHinge(), lambda m: cp.square(cp.pos(1 - m))),
}


def rows(n=120, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    v = np.where(X[:, 0] + 0.5 * rng.normal(size=n) > 0, 1.0, -1.0)
    y = np.where(X[:, 0] + X[:, 1] + rng.normal(size=n) > 0, 1.0, -1.0)
    return X, y, v


def problem_of(name, mu=0.05, **given):
    X, y, v = rows()
    atom = SHAPES[name][0]
    objective = nerm.Risk(atom) + mu * nerm.SquaredL2() + nerm.Neutrality(atom)
    return objective.on(X, y, viewpoint=v, **given)


def naive(name, w, b, mu=0.05):
    """Return (C, P) of a linear hypothesis, without nerm."""
    X, y, v = rows()
    values = {
        "hinge": lambda m: np.maximum(1 - m, 0),
        "logistic": lambda m: np.logaddexp(0, -m),
        "squared-hinge": lambda m: np.maximum(1 - m, 0) ** 2,
    }[name]
    f = X @ w + b
    risk = values(y * f).mean() + mu / 2 * w @ w
    return max(values(v * f).mean(), values(-v * f).mean()), risk


def least_risk(name, limit, mu=0.05):
    """Return the smallest P with C <= limit, from Clarabel on the constrained problem."""
    X, y, v = rows()
    w, b, f = cp.Variable(4), cp.Variable(), cp.Variable(len(y))
    psi = SHAPES[name][1]
    means = [cp.sum(psi(cp.multiply(t, f))) / len(y) for t in (y, v, -v)]
    constraints = [f == X @ w + b, means[1] <= limit, means[2] <= limit]
    problem = cp.Problem(cp.Minimize(means[0] + mu / 2 * cp.sum_squares(w)), constraints)
    return problem.solve(solver="CLARABEL")


@pytest.fixture(scope="module", params=list(SHAPES))
def named(request):
    return request.param, problem_of(request.param).frontier(1e-3)


def test_band_is_within_the_tolerance_and_solves_are_few(named):
    _, front = named
    assert front.gap <= 1e-3
    assert len(front.solutions) <= 40
    c = np.linspace(*front.inner[[0, -1], 0], 50)
    assert (front.outer(c) <= np.interp(c, *front.inner.T) + 1e-12).all()


def test_no_hypothesis_lies_below_the_outer_curve(named):
    name, front = named
    rng = np.random.default_rng(1)
    near = [one.coef for one in front.solutions]
    for k in range(200):
        w = near[k % len(near)] + 10.0 ** rng.uniform(-6, 0.5) * rng.normal(size=4)
        c, p = naive(name, w, b := 0.1 * rng.normal())
        assert p >= front.outer(c) - 1e-12
        placed = front.place((w, b))
        assert placed.risk == pytest.approx(p, rel=1e-9)
        assert placed.neutrality == pytest.approx(c, rel=1e-9)
        if placed.better is not None:
            found = naive(name, placed.better.coef, placed.better.intercept)
            assert found[0] <= c + 1e-12
            assert found[1] < p


def test_refutations_and_discoveries_agree_with_clarabel(named):
    name, front = named
    rng = np.random.default_rng(2)
    (low, high), extent = front.inner[[0, -1], 0], np.ptp(front.inner[:, 1])
    refuted = 0
    for limit in np.r_[rng.uniform(low, high, 8), low + 1e-3 * (high - low)]:
        optimum = least_risk(name, limit)
        for wish in optimum + extent * np.array([-0.1, -2e-3, -1e-7, 1e-7, 1e-2]):
            if front.refutes(risk=wish, neutrality=limit):
                assert wish < optimum + 1e-7
                refuted += 1
        assert front.refutes(risk=float(front.outer(limit)) - 1e-9, neutrality=limit)
        found = front.find(neutrality=limit)
        c, p = naive(name, found.coef, found.intercept)
        assert c <= limit + 1e-12
        assert float(front.outer(limit)) - 1e-12 <= p
        assert found.certificate.dual <= found.certificate.primal
    assert refuted > 5


def test_planted_better_alternatives_are_found(named):
    name, front = named
    rng = np.random.default_rng(3)
    extents = np.ptp(front.inner, axis=0)
    for k in range(30):  # a solution made worse by more than the band is wide
        solution = front.solutions[rng.integers(len(front.solutions))]
        worse = solution.coef + rng.normal(size=4) * 0.3
        c, p = naive(name, worse, solution.intercept)
        known = naive(name, solution.coef, solution.intercept)
        if c > known[0] + 2e-3 * extents[0] and p > known[1] + 2e-3 * extents[1]:
            assert front.place((worse, solution.intercept)).verdict == "improvable", k


def test_below_the_least_neutrality_everything_is_refuted():
    front = problem_of("hinge").frontier(0.1)
    assert front.refutes(risk=1e9, neutrality=0.999)
    with pytest.raises(nerm.InvalidInputError, match="No hypothesis has less"):
        front.find(neutrality=0.999)


def test_scores_of_any_model_are_placed():
    front = problem_of("hinge").frontier(0.01)
    _, y, _ = rows()
    assert front.place(y).verdict == "refuted"  # a perfect model is outside of the class
    placed = front.place(-y)
    assert placed.verdict == "improvable"
    assert placed.risk == pytest.approx(2.0)
    with pytest.raises(nerm.InvalidInputError, match=r"'model' must be linear. Got Tree. Pass its scores on"):
        front.place(type("Tree", (), {"predict": None})())


def test_kernel_and_chunks_have_a_frontier_too():
    X, y, v = rows()
    hinge = nerm.Hinge()
    objective = nerm.Risk(hinge) + 0.05 * nerm.SquaredL2() + nerm.Neutrality(hinge)
    linear, gram, chunked = (
        objective.on(X, y, viewpoint=v),
        objective.on(X, y, viewpoint=v, kernel="linear"),
        objective.on(nerm.Chunks((X, y, v))),
    )
    fronts = [problem.frontier(0.01) for problem in (linear, gram, chunked)]
    c = np.linspace(1.001, fronts[0].inner[-1, 0], 7)
    curves = [(front.outer(c), np.interp(c, *front.inner.T)) for front in fronts]
    for outer, _ in curves:
        for _, inner in curves:
            assert (outer <= inner + 1e-9).all()
    for front in fronts:
        assert front.gap <= 0.01
        assert front.find(neutrality=1.05).objective.terms[-1].value <= 1.05
    w = fronts[0].solutions[1].coef
    assert fronts[2].place((w, 0.0)).risk == pytest.approx(fronts[0].place((w, 0.0)).risk)


def test_one_sided_terms_need_a_range_of_weights():
    X, y, v = rows()
    term = nerm.Neutrality(nerm.Logistic(), side="agreement")
    problem = (nerm.Risk(nerm.Logistic()) + 0.05 * nerm.SquaredL2() + term).on(X, y, viewpoint=v)
    with pytest.raises(nerm.InvalidInputError, match="eta_range"):
        problem.frontier()
    front = problem.frontier(0.01, eta_range=(0.0, 2.0))
    assert front.gap <= 0.01
    assert front.etas[-1] == 2.0
    with pytest.raises(nerm.InvalidInputError, match="larger eta_range"):
        front.find(neutrality=front.inner[0, 0] - 1e-3)


def test_several_terms_are_one_direction():
    X, y, v = rows()
    odds = nerm.equalized_odds(nerm.Hinge())
    problem = (nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2() + odds).on(X, y, viewpoint=v)
    front = problem.frontier(0.05)
    value = problem.evaluate(front.solutions[0].coef, front.solutions[0].intercept)
    assert front.points[0, 0] == pytest.approx(0.5 * (value.terms[-1].value + value.terms[-2].value))


def test_a_nonconvex_objective_has_no_frontier():
    X, y, v = rows()
    problem = (nerm.Risk(nerm.Hinge()) + 0.1 * nerm.SquaredL2() + nerm.Neutrality(nerm.Ramp())).on(
        X, y, viewpoint=v
    )
    with pytest.raises(nerm.UnsupportedProblemError, match="convex"):
        problem.frontier()


def test_a_hypothesis_outside_of_the_constraints_is_no_contradiction():
    X, y, v = rows()
    hinge = nerm.Hinge()
    objective = nerm.Risk(hinge) + 0.05 * nerm.SquaredL2() + nerm.Neutrality(hinge)
    free = objective.on(X, y, viewpoint=v).with_neutrality(0.0).solve()
    problem = objective.subject_to(nerm.Coefficients() <= 0).on(X, y, viewpoint=v)
    front = problem.frontier(0.05)
    assert front.place(free).verdict == "refuted"  # better than every hypothesis with w <= 0


def test_a_flat_curve_and_a_range_without_zero():
    X, y, v = rows()
    hinge = nerm.Hinge()
    heavy = (nerm.Risk(hinge) + 50 * nerm.SquaredL2() + nerm.Neutrality(hinge)).on(X, y, viewpoint=v)
    front = heavy.frontier(0.01)  # the range of P is far below P itself
    assert front.gap <= 0.01
    assert len(front.solutions) <= 40
    front = problem_of("hinge").frontier(0.01, eta_range=(0.5, 2.0))
    low, high = front.inner[[0, -1], 0]
    found = front.find(neutrality=0.5 * (low + high))
    c, p = naive("hinge", found.coef, found.intercept)
    assert c <= 0.5 * (low + high) + 1e-12
    assert found.problem.etas.sum() >= 0.5
    above = front.find(neutrality=high + 1.0)
    assert naive("hinge", above.coef, above.intercept)[1] <= p + 1e-12
    assert naive("hinge", above.coef, above.intercept)[0] <= high + 1e-12


def test_verbose_prints_one_line_per_solve(capsys):
    front = problem_of("hinge").frontier(0.05, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == len(front.solutions)
    assert "eta" in lines[0]
