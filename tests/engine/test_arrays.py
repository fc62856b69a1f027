"""A problem as arrays: the table of blocks, and the Newton system against derivatives by differences."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.solvers.interior_point import passes
from nerm.solvers.interior_point.arrays import fours, table
from nerm.solvers.interior_point.condense import condense
from tests.engine.problems import Case, many


def drawn(names=("hinge", "logistic"), seed=0, **kind):
    X, y, v = many(300, seed, **kind)
    rng = np.random.default_rng(seed)
    weights = rng.exponential(size=(3, 300)) * (rng.random((3, 300)) < 0.9)
    terms = [("smooth_hinge", 1.0, v, weights[1]), ("identity", 0.5, rng.normal(size=300), weights[2])]
    return Case(X, y, [(name, weights[0]) for name in names], 0.1, terms)


def test_the_table_says_what_the_blocks_are():
    lines = table(drawn().blocks)
    assert lines.shape == (6, 7)
    assert lines[:, passes.KIND].tolist() == [0, 2, 0, 0, 1, 1]
    assert lines[:, passes.SIGN].tolist() == [0, 0, 1, -1, 1, -1]
    assert lines[2:, passes.LINE].tolist() == [2, 2, 3, 3]
    assert lines[0, :4].tolist() == [1, 0, -1, 0]
    assert lines[4, [passes.LOW, passes.HIGH]].tolist() == [1, 1]


def test_rows_without_weight_have_no_target():
    case = drawn()
    arrays = case.method(case.engine()).arrays
    assert (arrays.data.targets[arrays.data.weights == 0] == 0).all()
    assert arrays.mass == pytest.approx([block.weights.sum() for block in case.blocks])
    assert (arrays.singles, arrays.terms) == (2, 2)
    assert (arrays.ends / arrays.total).tolist() == [2, 0, 2, 2, 0, 0]


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("condensed", [False, True])
def test_the_forces_are_the_gradient_of_the_lagrangian_in_the_hypothesis(sparse, condensed):
    """At u = phi'(m) of smooth blocks and the multipliers as they are, c is what moves the value."""
    case = drawn(("logistic",), 1, sparse=sparse) if not condensed else drawn(("hinge",), 1, sparse=sparse)
    method = case.method(case.engine())
    if condensed:
        method = method.on(condense(method.arrays, method.scores(np.ones(5), 0.1), 0.3, 1.0).arrays)
    arrays = method.arrays
    state = method.start(np.full(5, 0.3), 0.2, 1e-9)  # so small a barrier that u is a subgradient
    nu = method.each(state.nu)
    lin = arrays.linearise(state, nu)

    def lagrangian(z):
        return nu @ arrays.values(method.scores(z[:-1], z[-1]), z[:-1], z[-1])

    here, eps = np.append(state.coef, state.intercept), 1e-6
    gradient = [(lagrangian(here + eps * e) - lagrangian(here - eps * e)) / (2 * eps) for e in np.eye(6)]
    np.testing.assert_allclose(lin.columns[:, 0], gradient, rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(
        lin.primal, arrays.values(state.scores, state.coef, state.intercept), rtol=1e-9
    )
    np.testing.assert_allclose(
        lin.value, lin.primal, rtol=1e-5
    )  # the multipliers see the same at so small a barrier
    shifted = state.nu[0] + eps * np.array([1.0, -1.0])
    more = method.each(np.vstack([shifted, state.nu[1:]])) - nu
    for z, derivative in zip(np.eye(6), lin.columns[:, 2], strict=True):  # e_1: how c changes with nu
        assert derivative == pytest.approx((more @ _forces(arrays, state)) @ z / eps, rel=1e-6, abs=1e-6)


def _forces(arrays, state):
    """Return (X, 1)' (B t u) of each block, settled rows included."""
    X = arrays.features.X.toarray() if arrays.features.sparse else arrays.features.X
    rows = arrays.data.weights * arrays.data.targets * state.duals.u
    return rows @ np.column_stack([X, np.ones(len(X))]) + arrays.pull


@pytest.mark.parametrize("name", ["logistic", "exponential"])
def test_smooth_blocks_have_their_curvature(name):
    case = drawn((name,), 2)
    method = case.method(case.engine())
    state = method.start(np.full(5, 0.2), 0.1, 0.1)
    method.arrays.linearise(state, method.each(state.nu))
    block, m = case.blocks[0], method.arrays.data.targets[0] * state.scores
    eps = 1e-5
    slope = (block.atom.value(m + eps) - block.atom.value(m - eps)) / (2 * eps)
    curve = (block.atom.value(m + eps) - 2 * block.atom.value(m) + block.atom.value(m - eps)) / eps**2
    np.testing.assert_allclose(state.duals.u[0], slope, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(method.arrays.move.kappa[0], curve, rtol=1e-3, atol=1e-4)


def test_vectors_come_in_fours():
    assert [fours(count, 3).shape for count in (1, 4, 5)] == [(4, 3), (4, 3), (8, 3)]
