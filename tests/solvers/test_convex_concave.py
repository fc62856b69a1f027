"""The convex-concave procedure: it never rises, by an oracle in plain numpy, and ends where nothing descends."""

from __future__ import annotations

import warnings
from itertools import pairwise

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from tests.conftest import make_data
from tests.datasets.conftest import FOLDER

POINTWISE = {
    "hinge": lambda m: np.maximum(0, 1 - m),
    "logistic": lambda m: np.logaddexp(0, -m),
    "ramp": lambda m: np.minimum(1, np.maximum(0, (1 - m) / 2)),
    "narrow": lambda m: np.minimum(1, np.maximum(0, (1 - m / 0.3) / 2)),
}
ATOMS = {"hinge": nerm.Hinge(), "logistic": nerm.Logistic(), "ramp": nerm.Ramp(), "narrow": nerm.Ramp(0.3)}
SIDES = {"both": (1, -1), "agreement": (-1,), "disagreement": (1,)}


def oracle(X, y, v, u, w, b, loss, psi, eta, side, mu):
    """Return mean phi(y f) + mu/2 ||w||^2 + eta max over sides of mean u psi(+-v f), in plain numpy."""
    f = X @ w + b
    sides = [np.mean(u * POINTWISE[psi](sign * v * f)) for sign in SIDES[side]]
    return np.mean(POINTWISE[loss](y * f)) + mu / 2 * w @ w + eta * max(sides)


def falls(trace):
    values = [step["objective"] for step in trace]
    return all(after <= before for before, after in pairwise(values))


CASES = [
    ("ramp", "hinge", "both"),
    ("logistic", "ramp", "both"),
    ("hinge", "narrow", "both"),
    ("ramp", "ramp", "both"),
    ("hinge", "ramp", "agreement"),
    ("logistic", "narrow", "disagreement"),
]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(("loss", "psi", "side"), CASES)
def test_the_objective_never_rises_and_every_step_is_certified(loss, psi, side, sparse):
    X, y, v = make_data(3, n=120)
    X[:40] = X[40:80]  # equal rows: some merge
    u = np.where(v > 0, len(v) / (2 * (v > 0).sum()), len(v) / (2 * (v < 0).sum()))
    term = nerm.Neutrality(ATOMS[psi], weights="balanced", side=side)
    objective = nerm.Risk(ATOMS[loss]) + 0.02 * nerm.SquaredL2() + 0.7 * term
    problem = objective.on(sp.csr_matrix(X) if sparse else X, y, viewpoint=v)
    solution = problem.solve()
    trace = solution.stats.details["trace"]
    assert solution.status == "stationary"
    assert falls(trace)
    assert len(trace) == solution.stats.iterations <= 60
    assert all(step["relative_gap"] <= 1e-6 and step["solver"] == "interior-point" for step in trace)
    by_hand = oracle(X, y, v, u, solution.coef, solution.intercept, loss, psi, 0.7, side, 0.02)
    assert solution.objective.total == pytest.approx(by_hand, rel=1e-12) == trace[-1]["objective"]
    relaxation = problem.convexified().solve()  # the first step
    first = oracle(X, y, v, u, relaxation.coef, relaxation.intercept, loss, psi, 0.7, side, 0.02)
    assert trace[0]["objective"] == pytest.approx(first, rel=1e-4)
    assert by_hand <= first * (1 + 1e-6)
    # every step falls, seen from outside: one step at a time, each from the last
    start, before = None, np.inf
    for _ in range(4):
        one = problem.solve(max_steps=1, start=start)
        value = oracle(X, y, v, u, one.coef, one.intercept, loss, psi, 0.7, side, 0.02)
        assert value <= before
        start, before = (one.coef, one.intercept), value


@pytest.mark.parametrize(("loss", "psi", "side"), CASES)
def test_a_step_touches_the_objective_and_is_above_it(loss, psi, side):
    X, y, v = make_data(5, n=80)
    term = nerm.Neutrality(ATOMS[psi], side=side)
    problem = (nerm.Risk(ATOMS[loss]) + 0.1 * nerm.SquaredL2() + 0.7 * term).on(X, y, viewpoint=v)
    rng = np.random.default_rng(0)
    u = np.ones(len(y))
    for scale in (0.0, 0.3, 2.0):
        w, b = scale * rng.normal(size=X.shape[1]), scale * rng.normal()
        step = problem.convexified(w, b)
        assert step.is_convex
        here = oracle(X, y, v, u, w, b, loss, psi, 0.7, side, 0.1)
        assert float(step.evaluate(w, b)) == pytest.approx(here, rel=1e-12)
        for _ in range(20):
            at = w + rng.normal(size=X.shape[1]), b + rng.normal()
            assert float(step.evaluate(*at)) >= oracle(X, y, v, u, *at, loss, psi, 0.7, side, 0.1) - 1e-12
        solution, model = step.solve(), step.to_cvxpy()
        model.solve(solver="CLARABEL")
        assert solution.status == "optimal"
        assert solution.objective.total == pytest.approx(model.value, rel=1e-5)


def test_brute_force_knows_the_optimum_of_a_tiny_problem():
    """Two outliers: from the relaxation, which follows them, it rests at a constant, from elsewhere at the optimum."""
    x = np.array([-2.0, -1.5, -1.0, -0.7, 0.6, 1.0, 1.4, 2.2, 9.0, 11.0])
    y = np.where(np.abs(x) < 5, np.sign(x), -1.0)
    problem = (nerm.Risk(nerm.Ramp()) + 0.02 * nerm.SquaredL2()).on(x[:, None], y)
    W, B = np.meshgrid(np.linspace(-3, 3, 241), np.linspace(-3, 3, 241))
    f = W[..., None] * x + B[..., None]
    grid = POINTWISE["ramp"](y * f).mean(axis=-1) + 0.01 * W**2
    solution = problem.solve(start=([0.3], 0.0))
    assert solution.status == "stationary"
    assert grid.min() - 1e-3 <= solution.objective.total <= grid.min() + 1e-9
    assert (solution.predict(x[:, None]) == y).sum() == 8
    other = problem.solve()
    assert other.status == "stationary"
    assert other.objective.total >= grid.min() - 1e-3
    near = (np.abs(W - other.coef[0]) < 0.03) & (np.abs(B - other.intercept) < 0.03)
    assert grid[near].min() >= other.objective.total - 1e-6  # it is a local minimum nevertheless


@pytest.mark.parametrize(("loss", "psi", "side"), CASES)
def test_nothing_descends_from_where_it_ends(loss, psi, side):
    """To first order: no random direction, nor that to the plain model, lowers the objective at a short step."""
    X, y, v = make_data(7, n=60, d=3)
    u = np.ones(len(y))
    term = nerm.Neutrality(ATOMS[psi], side=side)
    problem = (nerm.Risk(ATOMS[loss]) + 0.05 * nerm.SquaredL2() + 0.5 * term).on(X, y, viewpoint=v)
    solution = problem.solve(tol=1e-8)
    w, b = solution.coef, solution.intercept

    def value(w, b):
        return oracle(X, y, v, u, w, b, loss, psi, 0.5, side, 0.05)

    rng, here, step = np.random.default_rng(1), value(w, b), 1e-3
    for _ in range(300):
        direction = rng.normal(size=4)
        direction /= np.linalg.norm(direction)
        slope = (value(w + step * direction[:3], b + step * direction[3]) - here) / step
        assert slope > -2e-3


def test_the_ramp_measures_neutrality_itself():
    X, y, v = make_data(2, n=300)
    objective = nerm.Risk(nerm.Logistic()) + 0.01 * nerm.SquaredL2()
    term = nerm.Neutrality(nerm.Ramp(), weights="balanced")
    plain, neutral = (objective + term).on(X, y, viewpoint=v).path([0.0, 3.0])
    assert (plain.status, neutral.status) == ("optimal", "stationary")
    assert plain.certificate.relative_gap <= 1e-6
    sides = neutral.objective.terms[-1]
    assert sides.plus + sides.minus == pytest.approx(1.0)
    scores = [abs(nerm.metrics.calders_verwer_score(s.training_scores(), v)) for s in (plain, neutral)]
    assert scores[1] < 0.3 * scores[0]
    assert np.unique(neutral.predict(X)).size == 2  # not a constant


def test_a_path_starts_each_problem_at_the_last_solution():
    X, y, v = make_data(4, n=150)
    objective = nerm.Risk(nerm.Hinge()) + 0.02 * nerm.SquaredL2() + nerm.Neutrality(nerm.Ramp())
    problem = objective.on(X, y, viewpoint=v)
    etas = [2.0, 0.0, 0.5]
    path = problem.path(etas)
    assert [s.status.value for s in path] == ["stationary", "optimal", "stationary"]
    again = problem.with_neutrality(2.0).solve(start=(path[2].coef, path[2].intercept))
    assert again.objective.total == pytest.approx(path[0].objective.total, rel=1e-4)
    risks = [s.objective.terms[-1].value for s in path]
    assert risks[1] >= risks[2] - 1e-3 >= risks[0] - 2e-3


@pytest.mark.parametrize("regularizer", [nerm.L1(), nerm.ElasticNet(0.5)])
def test_other_regularizers(regularizer):
    X, y, v = make_data(6, n=80)
    problem = (nerm.Risk(nerm.Hinge()) + 0.02 * regularizer + nerm.Neutrality(nerm.Ramp())).on(
        X, y, viewpoint=v
    )
    solution = problem.solve()
    assert solution.status == "stationary"
    assert falls(solution.stats.details["trace"])


def test_kernels_go_through_the_factor():
    X, y, v = make_data(8, n=80)
    objective = nerm.Risk(nerm.Ramp()) + 0.05 * nerm.SquaredL2() + 0.5 * nerm.Neutrality(nerm.Ramp())
    solution = objective.on(X, y, viewpoint=v, kernel="rbf").solve()
    trace = solution.stats.details["trace"]
    assert solution.status == "stationary"
    assert falls(trace)
    assert {step["solver"] for step in trace} == {"augmented-lagrangian"}
    linear = objective.on(X, y, viewpoint=v).solve()
    gram = objective.on(X @ X.T, y, viewpoint=v, kernel="precomputed").solve(start=(np.zeros(80), 0.0))
    assert gram.objective.total == pytest.approx(
        linear.objective.total, rel=2e-2
    )  # one of several stationary points


def test_a_function_of_ones_own_is_solved_by_nerm():
    X, y, v = make_data(9, n=24)
    later = nerm.margin_function(lambda m: cp.pos(-1 - m))
    mine = nerm.dc_function(convex=nerm.Hinge(), concave=later, name="mine")  # twice the ramp
    objective = nerm.Risk(nerm.Hinge()) + 0.05 * nerm.SquaredL2()
    own = (objective + 0.25 * nerm.Neutrality(mine)).on(X, y, viewpoint=v)
    other = (objective + 0.5 * nerm.Neutrality(nerm.Ramp())).on(X, y, viewpoint=v)
    found = own.solve(max_steps=2)
    assert found.status == "inaccurate"  # not settled yet
    assert "not settled after 2 steps" in found.certificate.reason
    assert {step["solver"] for step in found.stats.details["trace"]} == {"interior-point"}
    assert falls(found.stats.details["trace"])
    first, same = own.solve(max_steps=1), other.solve("clarabel", max_steps=1)
    assert first.objective.total == pytest.approx(same.objective.total, rel=1e-4)


def test_constraints_hold_at_every_step():
    X, y, v = make_data(10, n=80)
    objective = nerm.Risk(nerm.Ramp()) + 0.02 * nerm.SquaredL2()
    problem = objective.subject_to(nerm.Neutrality(nerm.Hinge()) <= 1.05, nerm.Coefficients() >= 0)
    solution = problem.on(X, y, viewpoint=v).solve()
    assert solution.status == "stationary"
    assert solution.coef.min() >= 0
    f = X @ solution.coef + solution.intercept
    assert max(np.maximum(0, 1 - s * v * f).mean() for s in (1, -1)) <= 1.05 + 1e-9
    with pytest.raises(
        nerm.InvalidInputError, match=r"a limit must be convex. Got Neutrality\(Ramp\(width=1.0\)\) <= 0.6"
    ):
        objective.subject_to(nerm.Neutrality(nerm.Ramp()) <= 0.6).on(X, y, viewpoint=v)


def test_constraints_that_nothing_satisfies_are_called_that():
    X, y, v = make_data(10, n=40)
    objective = nerm.Risk(nerm.Ramp()) + 0.02 * nerm.SquaredL2()
    limits = [nerm.Neutrality(nerm.Hinge(), side=side) <= 0.4 for side in ("agreement", "disagreement")]
    solution = objective.subject_to(*limits).on(X, y, viewpoint=v).solve()
    assert solution.status == "infeasible"
    assert solution.stats.iterations == 1


def test_when_time_is_up_the_best_so_far_is_given():
    X, y, v = make_data(13, n=400)
    problem = (nerm.Risk(nerm.Logistic()) + 1e-3 * nerm.SquaredL2() + nerm.Neutrality(nerm.Ramp(0.2))).on(
        X, y, viewpoint=v
    )
    whole, short = problem.solve(), problem.solve(time_limit=1e-3)
    assert (whole.status, short.status) == ("stationary", "time_limit")
    assert short.stats.timed_out
    assert short.stats.iterations < whole.stats.iterations
    assert short.certificate.primal == pytest.approx(float(problem.evaluate(short.coef, short.intercept)))
    path = problem.path([0.5, 1.0], time_limit=1e-3)
    assert [s.status for s in path] == ["time_limit"] * 2


def test_what_is_said_and_what_is_refused():
    X, y, v = make_data(11, n=60)
    problem = (nerm.Risk(nerm.Ramp()) + 0.1 * nerm.SquaredL2() + nerm.Neutrality(nerm.Hinge())).on(
        X, y, viewpoint=v
    )
    solution = problem.solve(strict=True)
    assert "stationary by interior-point" in repr(solution)
    assert "need not be optimal" in solution.status.sentence
    assert solution.certificate.primal == solution.objective.total
    assert solution.certificate.dual == -np.inf
    assert solution.certificate.relative_gap == np.inf
    assert "a stationary point: the objective is not convex" in solution.certificate.reason
    assert solution.multipliers is None
    assert 0 <= solution.thetas["viewpoint"] <= 1
    assert "the objective is not convex" in problem.certify(solution.coef, solution.intercept).reason
    assert "ramp(y f)" in str(problem.objective)
    assert r"\operatorname{ramp}_{1}(y_i f(x_i))" in problem.objective._repr_latex_()
    assert "tangent(f)" in str(problem.convexified().objective)
    assert "Tangent(Risk(Ramp(width=1.0)))" in repr(problem.convexified())
    assert "a_i f(x_i)" in problem.convexified().objective._repr_latex_()
    with pytest.raises(nerm.UnsupportedProblemError, match=r"problem.convexified\(coef, intercept\)"):
        problem.to_cvxpy()
    with pytest.raises(nerm.UnsupportedProblemError, match="solver 'smo' must be given a neutral SVM"):
        problem.solve("smo")
    with pytest.raises(nerm.NotSolvedError, match="not settled after 1 steps"):
        problem.solve(strict=True, max_steps=1)
    for bad in ("zero", ([0.0],), 3):
        with pytest.raises(nerm.InvalidInputError, match=r"'start' must be a hypothesis"):
            problem.solve(start=bad)
    with pytest.raises(nerm.InvalidInputError, match="'coef' must"):
        problem.solve(start=([1.0], 0.0))
    with pytest.raises(nerm.InvalidInputError, match="'max_steps' must be a finite positive number"):
        problem.solve(max_steps=0)
    with pytest.raises(nerm.UnknownNameError, match="an option of 'interior-point'"):
        problem.solve(max_stepz=3)
    facts = solution.fit_facts()
    assert facts.gap == np.inf
    said = {statement.source: statement for statement in nerm.bounds.guarantee(facts, delta=0.05)}
    assert np.isfinite(said["Theorem 1, radius from the data"].bound)
    assert np.isnan(said["corollary, always"].bound)  # it is about optima


def test_classifiers_take_it_without_a_warning(tmp_path):
    X, y, v = make_data(12, n=80)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = nerm.NERMClassifier(loss="logistic", surrogate=nerm.Ramp(0.5), lam=0.02, eta=1.0).fit(
            X, y, viewpoint=v
        )
        named = nerm.NERMClassifier(loss="ramp", kernel="rbf", lam=0.02).fit(X, y)
    assert model.solutions_[0].status == named.solutions_[0].status == "stationary"
    assert "stationary by interior-point" in repr(model.explain())
    assert model.get_params()["surrogate__width"] == 0.5
    assert model.set_params(surrogate__width=2.0).surrogate == nerm.Ramp(2.0)
    model.save(tmp_path / "model.nerm")
    loaded = nerm.load(tmp_path / "model.nerm")
    np.testing.assert_array_equal(loaded.decision_function(X), model.decision_function(X))
    assert loaded.solutions_[0].status is nerm.Status.STATIONARY
    solution = (nerm.Risk(nerm.Ramp()) + 0.1 * nerm.SquaredL2()).on(X, y).solve()
    solution.save(tmp_path / "solution.nerm")
    again = nerm.load(tmp_path / "solution.nerm")
    assert again.problem.objective == solution.problem.objective
    assert again.certificate == solution.certificate
    assert float(again.problem.evaluate(again.coef, again.intercept)) == solution.objective.total
    mine = nerm.dc_function(convex=nerm.Hinge(), concave=lambda m: -cp.pos(-m), name="mine")
    own = (nerm.Risk(mine) + 0.1 * nerm.SquaredL2()).on(X, y).solve(max_steps=1)
    own.save(tmp_path / "mine.nerm")
    same = nerm.load(tmp_path / "mine.nerm", atoms={"mine": mine})
    assert (same.status, same.problem.objective) == (own.status, own.problem.objective)


@pytest.mark.slow
@pytest.mark.parametrize(("loss", "psi"), [("logistic", "ramp"), ("hinge", "ramp"), ("ramp", "hinge")])
@pytest.mark.parametrize("name", ["adult", "bank", "german"])
def test_on_real_data_it_falls_at_every_step_and_ends_soon(name, loss, psi):
    if not (FOLDER / name).is_dir():
        pytest.skip(f"needs the UCI files: none in {FOLDER} (set NERM_DATA)")
    data = nerm.datasets.load(name, coding="one-hot", data_home=FOLDER)
    X, y, v = data.X, data.y, data.viewpoint
    u = np.where(v > 0, len(v) / (2 * (v > 0).sum()), len(v) / (2 * (v < 0).sum()))
    objective = (
        nerm.Risk(ATOMS[loss]) + 1e-3 * nerm.SquaredL2() + nerm.Neutrality(ATOMS[psi], weights="balanced")
    )
    problem = objective.on(X, y, viewpoint=v)
    solution = problem.solve()
    assert solution.status == "stationary"
    assert solution.stats.iterations <= 30
    assert all(step["relative_gap"] <= 1e-6 for step in solution.stats.details["trace"])
    values = [step["objective"] for step in solution.stats.details["trace"]]
    assert values == sorted(values, reverse=True)
    by_hand = oracle(X, y, v, u, solution.coef, solution.intercept, loss, psi, 1, "both", 1e-3)
    assert values[-1] == pytest.approx(by_hand, rel=1e-12)
    start, before = None, np.inf
    for _ in range(6):  # once more, one step at a time, the value of each recomputed in numpy
        one = problem.solve(start=start, max_steps=1)
        value = oracle(X, y, v, u, one.coef, one.intercept, loss, psi, 1, "both", 1e-3)
        assert value <= before
        start, before = (one.coef, one.intercept), value
    f = X @ solution.coef + solution.intercept
    assert loss == "ramp" or 0.005 < (f > 0).mean() < 0.995  # no constant; the ramp loss ignores a rare class
