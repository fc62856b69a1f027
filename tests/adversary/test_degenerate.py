"""Degenerate data: kernels of rank 0, no features, one row, one class, a constant viewpoint, equal rows."""

from __future__ import annotations

import numpy as np
import pytest

import nerm

N = 12
RNG = np.random.default_rng(0)
X, V = RNG.normal(size=(N, 2)), np.where(np.arange(N) % 3 == 0, 1.0, -1.0)
Y = np.where(X[:, 0] > 0, 1.0, -1.0)
ZERO = np.zeros((N, 2))
DATA = {
    "precomputed kernel of rank 0": (np.zeros((N, N)), Y, V, "precomputed"),
    "linear kernel of rank 0": (ZERO, Y, V, "linear"),
    "own kernel of rank 0": (X, Y, V, lambda A, B: np.zeros((A.shape[0], B.shape[0]))),
    "all-zero X": (ZERO, Y, V, None),
    "all-zero X, rbf": (ZERO, Y, V, "rbf"),
    "two rows": (X[:2], np.array([1.0, -1.0]), V[:2], None),
    "constant viewpoint": (X, Y, np.ones(N), None),
    "constant viewpoint, rbf": (X, Y, np.ones(N), "rbf"),
    "duplicated rows": (np.repeat(X[:3], 4, axis=0), np.repeat([1.0, -1.0, 1.0], 4), V, None),
    "duplicated rows, rbf": (np.repeat(X[:3], 4, axis=0), np.repeat([1.0, -1.0, 1.0], 4), V, "rbf"),
    "one row many times, two labels": (np.ones((N, 2)), Y, V, "rbf"),
}


def optimum(problem, objective):
    """Return the optimum by cvxpy and Clarabel on features that give the kernel values."""
    if problem.is_kernel:
        values, vectors = np.linalg.eigh(problem.hypothesis.gram)
        features = vectors * np.sqrt(np.maximum(values, 0.0))
    else:
        features = np.asarray(problem.hypothesis.X)
    linear = objective.on(features, problem.y, viewpoint=problem.viewpoints, intercept=problem.intercept)
    return linear.to_cvxpy().solve(solver="CLARABEL")


@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("atom", [nerm.Hinge(), nerm.Logistic()], ids=repr)
@pytest.mark.parametrize("name", DATA)
def test_degenerate_data_are_solved_and_proved(name, atom, intercept):
    rows, y, v, kernel = DATA[name]
    objective = nerm.Risk(atom) + 0.1 * nerm.SquaredL2() + 0.5 * nerm.Neutrality(atom)
    problem = objective.on(rows, y, viewpoint=v, kernel=kernel, intercept=intercept)
    for solver in ("auto", "augmented-lagrangian", "smo", "clarabel"):
        try:
            solution = problem.solve(solver)
        except nerm.UnsupportedProblemError:
            continue
        assert solution.status == "optimal", (solver, solution)
    solution = problem.solve()
    assert solution.objective.total == pytest.approx(optimum(problem, objective), rel=2e-6, abs=1e-7)
    for tol in (None, 1e-8):
        bound = solution.without([0], tol=tol)
        low, high = bound.scores()
        truth = bound.update(tol=1e-9).training_scores()
        assert (low <= truth + 1e-3).all()
        assert (truth - 1e-3 <= high).all()
        assert "decisions change" in repr(bound)
    assert f"{len(y)} rows" in repr(solution.leave_one_out())
    for parameter in ("eta", "lam", "sample_weight"):
        try:
            found = solution.sensitivity(parameter)
        except nerm.Degenerate:
            continue
        assert np.isfinite(found.scores).all()
    front = problem.frontier(0.05)
    assert front.place(solution).verdict in ("undecided", "improvable")


@pytest.mark.parametrize("rows", [1, N])
def test_one_class_is_refused(rows):
    with pytest.raises(nerm.InvalidInputError, match=r"exactly two classes\. Got a single class: 1"):
        nerm.Risk(nerm.Hinge()).on(X[:rows], np.ones(rows))


@pytest.mark.parametrize("atom", [nerm.SquaredError(), nerm.AbsoluteError()], ids=repr)
@pytest.mark.parametrize("kernel", [None, "rbf"])
def test_a_regression_on_one_row_passes_through_it(atom, kernel):
    solution = (nerm.Risk(atom) + 0.1 * nerm.SquaredL2()).on(X[:1], [2.5], kernel=kernel).solve()
    assert solution.training_scores() == pytest.approx([2.5], abs=1e-3)
    with pytest.raises(nerm.InvalidInputError, match="but not all"):
        solution.without([0])
    with pytest.raises(nerm.UnsupportedProblemError, match="leave_one_out needs"):
        solution.leave_one_out()
