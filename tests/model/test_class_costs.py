"""A cost per class, `Risk(loss, positive=..., negative=...)`, against the same problem written by hand."""

import cvxpy as cp
import numpy as np
import pytest

import nerm
from tests.conftest import make_data


def optimum(features, y, v, losses, lam, psi, eta=0.5):
    """Return the optimum of mean(loss of the row's class) + lam/2 |w|^2 + eta max(C+, C-)."""
    w, b, n = cp.Variable(features.shape[1]), cp.Variable(), len(y)
    f = features @ w + b
    risk = sum(
        cost * cp.sum(loss(label * f[y == label]))
        for label, (cost, loss) in zip((1, -1), losses, strict=True)
    )
    plus, minus = (cp.sum(psi(sign * cp.multiply(v, f))) for sign in (1, -1))
    value = risk / n + lam / 2 * cp.sum_squares(w) + eta * cp.maximum(plus, minus) / n
    tight = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-9)
    return float(cp.Problem(cp.Minimize(value)).solve(solver="CLARABEL", **tight))


def hinge(m):
    return cp.pos(1 - m)


def logistic(m):
    return cp.logistic(-m)


def own(m):
    return cp.maximum(0, 1 - m, 0.4 - 2 * m)


ATOMS = {hinge: nerm.Hinge(), logistic: nerm.Logistic(), own: nerm.margin_function(own, name="own")}
REST = 0.1 * nerm.SquaredL2() + 0.5 * nerm.Neutrality(nerm.Hinge())


@pytest.mark.parametrize("solver", ["auto", "clarabel"])
@pytest.mark.parametrize("loss", ATOMS)
def test_costs_agree_with_cvxpy(loss, solver):
    X, y, v = make_data(3)
    problem = (nerm.Risk(ATOMS[loss], positive=2.0, negative=0.5) + REST).on(X, y, viewpoint=v)
    solution = problem.solve(solver)
    expected = optimum(X, y, v, [(2.0, loss), (0.5, loss)], 0.1, hinge)
    assert solution.status == "optimal"
    assert solution.objective.total == pytest.approx(expected, rel=3e-6)
    assert float(problem.to_cvxpy().solve(solver="CLARABEL")) == pytest.approx(expected, rel=1e-5)


def test_a_loss_of_its_own_for_each_class():
    X, y, v = make_data(4)
    risk = nerm.Risk(nerm.Hinge(), positive=3.0, negative=0.0) + nerm.Risk(nerm.Logistic(), positive=0.0)
    solution = (risk + REST).on(X, y, viewpoint=v).solve()
    expected = optimum(X, y, v, [(3.0, hinge), (1.0, logistic)], 0.1, hinge)
    assert solution.objective.total == pytest.approx(expected, rel=3e-6)


def test_costs_with_a_kernel():
    X, y, v = make_data(5)
    squared = ((X[:, None] - X) ** 2).sum(axis=2)
    values, vectors = np.linalg.eigh(np.exp(-0.5 * squared))
    features = vectors * np.sqrt(np.maximum(values, 0))
    kernel = nerm.kernels.RBF(gamma=0.5)
    problem = (nerm.Risk(nerm.Hinge(), positive=2.0) + REST).on(X, y, viewpoint=v, kernel=kernel)
    expected = optimum(features, y, v, [(2.0, hinge), (1.0, hinge)], 0.1, hinge)
    assert problem.solve().objective.total == pytest.approx(expected, rel=3e-6)


def test_a_cost_is_a_sample_weight_of_the_risk():
    X, y, v = make_data(6)
    s, at = np.linspace(0.5, 1.5, len(y)), np.ones(X.shape[1])
    costs = (nerm.Risk(nerm.Hinge(), positive=4.0) + REST).on(X, y, viewpoint=v, sample_weight=s)
    weights = (nerm.Risk(nerm.Hinge()) + REST).on(
        X, y, viewpoint=v, sample_weight=s * np.where(y > 0, 4.0, 1.0)
    )
    assert costs.evaluate(at, 0.3).total == pytest.approx(weights.evaluate(at, 0.3).total, rel=1e-14)
    by_hand = np.mean(s * np.where(y > 0, 4.0, 1.0) * np.maximum(0, 1 - y * (X @ at + 0.3)))
    assert costs.evaluate(at, 0.3).terms[0].value == pytest.approx(by_hand, rel=1e-14)


def test_costs_on_chunks_and_in_a_file(tmp_path):
    X, y, v = make_data(7)
    objective = nerm.Risk(nerm.Hinge(), positive=2.0) + REST
    whole = objective.on(X, y, viewpoint=v).solve()
    parts = [(X[rows], y[rows], v[rows]) for rows in np.array_split(np.arange(len(y)), 3)]
    assert objective.on(nerm.Chunks(lambda: iter(parts))).solve().objective.total == pytest.approx(
        whole.objective.total, rel=3e-6
    )
    whole.save(tmp_path / "costs.nerm")
    loaded = nerm.load(tmp_path / "costs.nerm")
    assert loaded.problem.objective == objective
    assert loaded.certificate.relative_gap < 1e-6


def test_costs_with_a_ramp_and_a_target():
    X, y, v = make_data(8)
    ramp = (nerm.Risk(nerm.Ramp(), positive=2.0) + REST).on(X, y, viewpoint=v)
    hinge_there = ramp.convexified().objective.terms[0].term
    assert (hinge_there.positive, hinge_there.negative) == (2.0, 1.0)
    problem = (nerm.Risk(nerm.Hinge(), positive=2.0) + 0.1 * nerm.SquaredL2()).on(X, y, viewpoint=v)
    found = problem.neutralize(0.2, surrogate=nerm.Identity())
    assert found.solution.problem.objective.terms[0].term.positive == 2.0


@pytest.mark.parametrize(
    ("costs", "text"),
    [
        ({"positive": -1.0}, "positive"),
        ({"negative": np.nan}, "negative"),
        ({"positive": 0, "negative": 0}, "0 for both"),
    ],
)
def test_wrong_costs_get_one_sentence(costs, text):
    with pytest.raises(nerm.InvalidInputError, match=text):
        nerm.Risk(nerm.Hinge(), **costs)


def test_formula_and_latex_show_the_costs():
    risk = nerm.Risk(nerm.Hinge(), positive=2.0)
    assert repr(risk) == "Risk(Hinge(), positive=2)"
    assert risk.formula() == "mean (2 if y > 0 else 1) hinge(y f)"
    assert r"\begin{cases} 2 & y_i = +1 \\ 1 & y_i = -1 \end{cases}" in risk.formula(latex=True)
    assert risk != nerm.Risk(nerm.Hinge())
