"""Chunks that differ from each other, whose rows do not fit into memory: every convex objective is certified."""

from __future__ import annotations

import cvxpy as cp
import numpy as np
import pytest
import scipy.sparse as sp

import nerm

ROWS, SITES, MEMORY = 400, 8, 700_000


def site(number, flat=0.3, base=1.0):
    """Draw the one-hot rows of a site with cut points of its own, and labels that hardly depend on them."""
    rng = np.random.default_rng([3, number])
    z = rng.normal(size=(ROWS, 4)) + 0.5 * rng.normal(size=4)
    cuts = np.sort(rng.normal(size=(4, 4)), axis=1)
    codes = np.stack([np.searchsorted(cuts[j], z[:, j]) for j in range(4)], axis=1) + 5 * np.arange(4)
    X = sp.csr_matrix((np.ones(codes.size), codes.ravel(), np.arange(0, codes.size + 1, 4)), (ROWS, 20))
    y = np.where(flat * z.sum(axis=1) + base + rng.logistic(size=ROWS) > 0, 1.0, -1.0)
    v = np.where(0.5 * z[:, 0] + rng.logistic(size=ROWS) > 0, 1.0, -1.0)
    return X, y, v


SITES_ROWS = [site(number) for number in range(SITES)]
HINGE, LOGISTIC = nerm.Hinge(), nerm.Logistic()
RIDGE = 1 / (ROWS * SITES) * nerm.SquaredL2()
BOTH = nerm.margin_function(lambda m: cp.pos(1 - m) + 0.5 * cp.square(cp.pos(-m)), name="both")
CORNER = nerm.margin_function(lambda m: cp.maximum(cp.exp(-m), 1 - 2 * m), name="corner")

OBJECTIVES = {
    "hinge": nerm.Risk(HINGE) + RIDGE + nerm.Neutrality(HINGE),
    "smooth loss, hinge": nerm.Risk(LOGISTIC) + RIDGE + nerm.Neutrality(HINGE),
    "hinge, smooth surrogate": nerm.Risk(HINGE) + RIDGE + nerm.Neutrality(LOGISTIC, side="agreement"),
    "own, straight and curved": nerm.Risk(BOTH) + RIDGE + nerm.Neutrality(BOTH),
    "own, a kink in a smooth function": nerm.Risk(CORNER) + 0.01 * nerm.SquaredL2() + nerm.Neutrality(HINGE),
    "mixed, l1": nerm.Risk(LOGISTIC) + 0.003 * nerm.L1() + nerm.Neutrality(HINGE),
    "mixed, elastic net": nerm.Risk(nerm.SquaredHinge()) + 0.01 * nerm.ElasticNet(0.5) + nerm.Neutrality(HINGE),
}  # fmt: skip


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Draw a small sample."""
    monkeypatch.setattr("nerm.chunks.source.SAMPLE_ROWS", 200)


def in_memory(rows):
    return sp.vstack([one[0] for one in rows]), *(np.concatenate([one[i] for one in rows]) for i in (1, 2))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_every_objective_is_certified(name):
    X, y, v = in_memory(SITES_ROWS)
    found = OBJECTIVES[name].on(nerm.Chunks(lambda: SITES_ROWS, memory=MEMORY)).solve(tol=1e-5)
    whole = OBJECTIVES[name].on(X, y, viewpoint=v)
    best = whole.solve(tol=1e-8)
    assert found.status == "optimal"
    assert found.objective.total == pytest.approx(whole.evaluate(found.coef, found.intercept).total, rel=1e-9)
    assert found.certificate.dual <= best.objective.total * (1 + 1e-9)
    assert found.objective.total <= best.objective.total * (1 + 2e-5)


@pytest.mark.parametrize(
    "loss", [nerm.AbsoluteError(), nerm.SquaredError(), nerm.PinballError(0.8)], ids=repr
)
def test_regressions_are_certified(loss):
    rng = np.random.default_rng(0)
    rows = [(X.toarray(), 50 + 10 * y + rng.standard_t(2, size=ROWS), v) for X, y, v in SITES_ROWS]
    X, y, v = (np.concatenate([one[i] for one in rows]) for i in range(3))
    objective = nerm.Risk(loss) + 0.01 * nerm.SquaredL2() + 5.0 * nerm.Neutrality(nerm.Identity())
    found = objective.on(nerm.Chunks(lambda: rows, memory=MEMORY)).solve(tol=1e-5)
    best = objective.on(X, y, viewpoint=v).solve(tol=1e-8)
    assert found.status == "optimal"
    assert found.certificate.dual <= best.objective.total * (1 + 1e-9)
    assert found.objective.total <= best.objective.total * (1 + 2e-5)


def test_the_first_method_hands_over():
    """The rows near a kink are too many to be kept; then each pass reads one proximal step."""
    problem = OBJECTIVES["hinge"].on(nerm.Chunks(lambda: SITES_ROWS, memory=MEMORY))
    state, modules = problem._begin(None, 1e-5), []
    while not problem._done(state, 1e-5):
        modules.append(problem.method(state).__name__.rpartition(".")[2])
        state = problem._after_pass(state, 1e-5)
    assert set(modules) == {"kinks", "proximal"}
    assert modules == sorted(modules)  # never back
    assert len(modules) < 40


def test_rows_that_fit_into_memory_are_solved_in_memory():
    problem = OBJECTIVES["smooth loss, hinge"].on(nerm.Chunks(lambda: SITES_ROWS))
    found = problem.solve(tol=1e-6)
    assert found.status == "optimal"
    assert found.stats.details["passes"] == 2
    assert found.stats.details["kept"] == ROWS * SITES


def test_a_checkpoint_inside_the_second_method(tmp_path):
    """A fit that goes on from a checkpoint is the fit that was never stopped, although no multiplier is stored."""
    objective, path = OBJECTIVES["smooth loss, hinge"], tmp_path / "fit.npz"
    chunks = nerm.Chunks(lambda: SITES_ROWS, memory=MEMORY)
    whole = objective.on(chunks).solve(tol=1e-5)
    passes = whole.stats.details["passes"]
    assert passes > 4
    first = objective.on(chunks).solve(tol=1e-5, max_passes=passes // 2, checkpoint=path)
    assert first.status == "inaccurate"
    second = objective.on(chunks).solve(tol=1e-5, checkpoint=path)
    assert second.stats.details["passes"] == passes
    assert np.array_equal(second.coef, whole.coef)


def test_the_bound_holds_at_any_hypothesis():
    objective = OBJECTIVES["own, straight and curved"]
    X, y, v = in_memory(SITES_ROWS)
    best = objective.on(X, y, viewpoint=v).solve(tol=1e-8)
    problem, rng = objective.on(nerm.Chunks(lambda: SITES_ROWS, memory=MEMORY)), np.random.default_rng(1)
    for _ in range(3):
        certificate = problem.certify(0.3 * rng.normal(size=20), float(rng.normal()))
        assert certificate.dual <= best.objective.total * (1 + 1e-9)
