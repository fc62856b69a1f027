"""The sums of a pass, against the same sums written out in loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

import nerm
from nerm.atoms.custom_regularizer import model_minimum
from nerm.atoms.regularizer import L1, SquaredL2
from nerm.chunks import proximal
from nerm.chunks.kinks import _estimate, joined, mean_rows
from nerm.chunks.proximal import Progress
from tests.chunks.test_chunks import draw, pieces, small  # noqa: F401

HINGE = (
    nerm.Risk(nerm.Hinge())
    + 0.01 * nerm.SquaredL2()
    + 2.0 * nerm.Neutrality(nerm.Hinge(), weights="balanced")
)
LOGISTIC = nerm.Risk(nerm.Logistic()) + 0.01 * nerm.SquaredL2() + 2.0 * nerm.Neutrality(nerm.Logistic())


def hinge(m):
    return max(0.0, 1.0 - m)


def objective_on(few, n, w, b):
    """Return the objective with hinges on rows with weights and targets of their own."""
    scores, sums = few[0] @ w + b, []
    for weights, targets, _ in few[1]:
        sums.append(weights @ np.maximum(0, 1 - targets * scores))
    return (sums[0] + 2 * max(sums[1:])) / n + 0.005 * w @ w


def one_pass(problem, w, b):
    """Do a pass of the first method at (w, b)."""
    state = problem._state(w, b)
    return problem.sweep(problem.method(state).work(problem, state))


@pytest.fixture(params=[False, True])
def case(request):
    X, y, v = draw(1500, sparse=request.param)
    rng = np.random.default_rng(3)
    return X, y, v, (0.3 * rng.normal(size=X.shape[1]), 0.2)


def test_values_and_decisions_of_a_pass(case):
    X, y, v, (w, b) = case
    problem = HINGE.on(nerm.Chunks(pieces(X, y, v)))
    found = one_pass(problem, w, b)
    Z = X.toarray() if sp.issparse(X) else X
    scores = [float(sum(row * w)) + b for row in Z]
    # u_i = n / (2 n_v): each group has half of the weight
    size = {1.0: sum(v > 0), -1.0: sum(v <= 0)}
    u = [len(y) / (2 * size[one]) for one in v]
    risk = sum(hinge(t * f) for t, f in zip(y, scores, strict=True))
    sides = [sum(c * hinge(way * t * f) for c, t, f in zip(u, v, scores, strict=True)) for way in (1, -1)]
    assert found["values"] == pytest.approx([risk, *sides], rel=1e-12)
    assert found["rows"] == len(y)
    told = {(a, c, e): 0 for a in (0, 1) for c in (0, 1) for e in (0, 1)}
    for t, g, f in zip(y, v, scores, strict=True):
        told[int(t > 0), int(g > 0), int(f > 0)] += 1
    assert found["decisions"][1].ravel().tolist() == [told[key] for key in sorted(told)]


def test_mean_rows_have_the_weight_and_gradient_of_their_members(case):
    X, y, v, at = case
    problem = HINGE.on(nerm.Chunks(pieces(X, y, v)))
    found = one_pass(problem, *at)
    Z, (few, numbers) = (
        X.toarray() if sp.issparse(X) else X,
        joined([*found["kept"], mean_rows(found["settled"], 3)]),
    )
    rows = few.toarray() if sp.issparse(few) else few
    assert 0 < sum(part.shape[0] for part, _ in found["kept"]) < len(y)
    weights = [[1.0] * len(y)] + 2 * [[len(y) / (2 * sum(v == one)) for one in v]]
    for j, (targets, own) in enumerate(zip((y, v, -v), weights, strict=True)):
        for few_sum, all_sum in (
            (numbers[j, 0].sum(), sum(own)),
            (numbers[j, 0] @ numbers[j, 1], sum(c * t for c, t in zip(own, targets, strict=True))),
            (
                (numbers[j, 0] * numbers[j, 1]) @ rows,
                sum(c * t * x for c, t, x in zip(own, targets, Z, strict=True)),
            ),
        ):
            assert few_sum == pytest.approx(all_sum, rel=1e-9, abs=1e-9)


def test_few_rows_bound_all_rows_and_are_exact_at_the_hypothesis(case):
    X, y, v, at = case
    problem, whole = HINGE.on(nerm.Chunks(pieces(X, y, v))), HINGE.on(X, y, viewpoint=v)
    found = one_pass(problem, *at)
    few, rng = joined([*found["kept"], mean_rows(found["settled"], 3)]), np.random.default_rng(0)
    for w, b in [at, *((rng.normal(size=X.shape[1]), rng.normal()) for _ in range(20))]:
        total = objective_on(few, len(y), w, b)
        assert total <= whole.evaluate(w, b).total * (1 + 1e-12)
        if w is at[0]:
            assert total == pytest.approx(whole.evaluate(w, b).total, rel=1e-12)


def test_the_estimate_has_the_values_and_gradients_of_all_rows(case):
    X, y, v, (w, b) = case
    problem, whole = HINGE.on(nerm.Chunks(pieces(X, y, v))), HINGE.on(X, y, viewpoint=v)
    state = problem._state(w, b)
    done = problem.method(state).work(problem, state)
    found = problem.sweep(done)
    model = _estimate(problem, done, joined(found["kept"]), found)
    assert model.n < len(y)
    move = 1e-7 * np.random.default_rng(0).normal(size=len(w) + 1)
    for step in (0 * move, move, -move):
        here = [one.evaluate(w + step[:-1], b + step[-1]) for one in (model, whole)]
        sides = [[one.risk, one.terms[2].plus, one.terms[2].minus] for one in here]
        assert sides[0] == pytest.approx(sides[1], rel=1e-12)


def test_derivatives_of_a_pass(case):
    X, y, v, (w, b) = case
    rows = LOGISTIC.on(nerm.Chunks((X, y, v)))
    state = proximal.begin(Progress(np.append(w, b), np.full(1, 0.5), np.append(w, b)))
    found = rows.sweep(proximal.work(rows, state))
    Z = np.column_stack([X.toarray() if sp.issparse(X) else X, np.ones(len(y))])
    at = np.append(w, b)
    for j, targets in enumerate((y, v, -v)):
        gradient, hessian = np.zeros(len(at)), np.zeros((len(at), len(at)))
        for t, z in zip(targets, Z, strict=True):
            p = 1 / (1 + np.exp(t * (z @ at)))
            gradient -= p * t * z
            hessian += p * (1 - p) * np.outer(z, z)
        assert -found["linear"][j].sum(axis=0) == pytest.approx(gradient, rel=1e-9, abs=1e-9)
        assert found["gradients"][j] == pytest.approx(gradient, rel=1e-9, abs=1e-9)
        assert found["hessians"][j] == pytest.approx(hessian, rel=1e-9, abs=1e-9)


def test_rows_on_a_kink_are_thinned_and_still_bound():
    """Every row lies on a kink at w = 0, b = 1: more than may be kept."""
    X, y, v = draw()
    problem = HINGE.on(nerm.Chunks(pieces(X, y, v)))
    found = one_pass(problem, np.zeros(4), 1.0)
    assert sum(part.shape[0] for part, _ in found["kept"]) <= 400
    certificate = problem.certify(np.zeros(4), 1.0)
    assert certificate.dual <= HINGE.on(X, y, viewpoint=v).solve(tol=1e-8).objective.total * (1 + 1e-9)


def test_smoothed_sums_around_a_centre(case):
    """The derivatives are those of the smoothed blocks, and the centre is that of the hypotheses before."""
    X, y, v, _ = case
    problem = HINGE.on(nerm.Chunks(pieces(X, y, v)))
    first, second, at = np.random.default_rng(5).normal(size=(3, X.shape[1] + 1))
    taus = np.array([0.0, 2.0])
    state = Progress(at, np.full(1, 0.5), at)
    state = replace(state, base=first, centres=np.stack([first, second]), taus=taus, tau=0.7)
    found = problem.sweep(proximal.work(problem, state))
    Z = np.column_stack([X.toarray() if sp.issparse(X) else X, np.ones(len(y))])
    u = [len(y) / (2 * sum(v == one)) for one in v]
    cases = ((y, np.ones(len(y))), (v, u), (-v, u))

    def smoothed(h, centres, tau, targets, weights):
        total = 0.0
        for z, t, weight, centre in zip(Z, targets, weights, centres, strict=True):
            slopes = np.clip((t * (z @ h) - 1) / tau + centre, -1, 0)  # maximises u m - u - tau/2 (u - U)^2
            total += weight * (slopes * (t * (z @ h) - 1) - tau / 2 * (slopes - centre) ** 2)
        return total

    for j, (targets, weights) in enumerate(cases):
        centres = np.clip((targets * (Z @ second) - 1) / 2.0 - 0.5, -1, 0)  # around -1/2, with tau = 2
        value = smoothed(at, centres, 0.7, targets, weights)
        assert found["smoothed"][j] == pytest.approx(value, rel=1e-9)
        step = at - first
        for row, length in zip(found["shorter"], proximal.LENGTHS, strict=True):
            there = smoothed(first + length * step, centres, 0.7, targets, weights)
            assert row[j] == pytest.approx(there, rel=1e-9)
        direction = 1e-5 * np.random.default_rng(j).normal(size=len(at))
        up, down = (smoothed(at + way * direction, centres, 0.7, targets, weights) for way in (1, -1))
        assert found["gradients"][j] @ direction == pytest.approx((up - down) / 2, rel=1e-4, abs=1e-7)


@pytest.mark.parametrize(("intercept", "lam"), [(True, 0.0), (False, 0.0), (True, 0.6)])
def test_a_polished_step_meets_the_conditions_of_its_model(intercept, lam):
    """A conic solver leaves a residual that the dual bound of a weak regularizer magnifies."""
    rng, d, mu = np.random.default_rng(3), 4, 1e-7
    roots = rng.normal(size=(3, d + 1, d + 1)) * np.array([50.0, 1.0, 1.0, 1.0, 1.0])
    values, gradients = np.array([1.0, 2.0, 2.0]), rng.normal(size=(3, d + 1))
    hessians = roots.swapaxes(1, 2) @ roots
    factors, sides, coef = np.array([1.0, 0.7, 0.7]), np.array([0, 1, -1]), rng.normal(size=d)
    coef[1] = 0.0
    omegas = [(mu, SquaredL2()), (lam, L1())] if lam else [(mu, SquaredL2())]
    given = factors, sides, omegas, coef, intercept
    rough = model_minimum((values, gradients, hessians), *given)
    step, thetas = proximal.polished((values, gradients, hessians), given, *rough)
    assert step == pytest.approx(rough[0], abs=1e-4)
    assert 0.01 < thetas[0] < 0.99
    slopes, nu = gradients + hessians @ step, factors * [1.0, thetas[0], 1 - thetas[0]]
    w = coef + step[:-1]
    residual = nu @ slopes + np.append(mu * w + lam * np.sign(w), 0.0)
    assert (w == 0).any() == (lam > 0)
    assert np.abs(residual[: d + intercept][np.append(w != 0, True)[: d + intercept]]).max() < 1e-12
    assert np.abs(residual[:-1]).max() <= max(lam, 1e-12)
    assert intercept or abs(step[-1]) < 1e-15
    plus, minus = (values + gradients @ step + 0.5 * np.einsum("d,jde,e->j", step, hessians, step))[1:]
    assert plus == pytest.approx(minus, rel=1e-13)
