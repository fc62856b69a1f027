"""The conjugate of a sum of regularizers: never below the truth, and close to it; the truth is asked of plain cvxpy."""

from __future__ import annotations

from dataclasses import dataclass

import cvxpy as cp
import numpy as np
import pytest

import nerm
from nerm.certify.conjugates import conjugate_of_sum, free_directions, parts_of

TV = nerm.regularizer(lambda w: cp.tv(w), name="tv")
SOME = nerm.regularizer(lambda w: cp.norm1(w[2:]), name="some")
HUBER = nerm.regularizer(lambda w: cp.sum(cp.huber(w)), name="huber")
SUMS = [
    0.3 * nerm.L1(),
    0.3 * nerm.L1() + 0.2 * nerm.L1() + 0.1 * nerm.SquaredL2(),
    0.3 * nerm.LInf() + 0.2 * nerm.GroupL2([0, 0, 1, 1, 2]),
    0.3 * nerm.LInf() + 0.2 * nerm.GroupL2() + 0.5 * nerm.SquaredL2(),
    0.4 * TV,
    0.4 * TV + 0.7 * nerm.SquaredL2(),
    0.4 * TV + 0.3 * nerm.L1(),
    0.4 * TV + 0.3 * SOME + 0.2 * nerm.SquaredL2(),
    0.3 * HUBER + 0.2 * TV,
    0.3 * HUBER + 0.2 * nerm.ElasticNet(0.5),
]


def conjugate(objective, q):
    """Return sup_w q.w - Omega(w) by plain cvxpy; infinite where that has no bound."""
    w = cp.Variable(len(q))
    omega = sum(t.weight * t.term.expression(w) for t in objective.terms)
    problem = cp.Problem(cp.Maximize(q @ w - omega), [cp.norm_inf(w) <= 1e4])
    # a hundredth of what is compared; more the oldest Clarabel cannot promise
    accuracy = dict.fromkeys(("tol_gap_abs", "tol_gap_rel", "tol_feas"), 1e-9)
    problem.solve(solver="CLARABEL", **accuracy)
    return np.inf if np.abs(w.value).max() > 9e3 and problem.value > 1e-2 else problem.value


def parts(objective):
    return parts_of((t.weight * share, part) for t in objective.terms for share, part in t.term.parts(5))


@pytest.mark.parametrize("objective", SUMS, ids=str)
@pytest.mark.parametrize("size", [0.05, 0.3, 1.0])
def test_never_below_the_truth_and_close_to_it(objective, size):
    rng = np.random.default_rng(int(100 * size))
    q = size * rng.normal(size=5)
    free = free_directions(parts(objective), 5)
    q = q - free @ (free.T @ q)
    found = conjugate_of_sum(parts(objective), q, lambda w: float(w @ w))
    truth = conjugate(objective, q)
    if np.isfinite(truth):
        assert found.shrink > 1 - 1e-6
        assert found.value == pytest.approx(truth, rel=1e-5, abs=1e-6)
    assert found.value >= conjugate(objective, found.shrink * q) - 1e-7
    if found.nearest is not None:
        assert found.nearest_value >= conjugate(objective, found.nearest) - 1e-7
        assert np.linalg.norm(q - found.nearest) <= np.linalg.norm(q) * (1 + 1e-9)


@dataclass(frozen=True)
class Sloppy(nerm.L1):
    """An l1 norm whose prox is wrong in the third digit."""

    def prox(self, w, step=1.0):
        return 1.003 * super().prox(w, 0.997 * step)


@pytest.mark.parametrize("others", [(), (nerm.LInf(),)])
def test_a_prox_that_is_wrong_makes_a_bound_loose_and_not_wrong(others):
    q = np.array([0.9, -0.2, 0.5])
    rest = [*((0.1, other) for other in others), (0.2, nerm.SquaredL2())]
    exact, sloppy = (conjugate_of_sum([(0.3, l1), *rest], q, lambda w: w @ w) for l1 in (nerm.L1(), Sloppy()))
    assert exact.value - 1e-9 <= sloppy.value <= 1.1 * exact.value


def test_effort_is_bounded():
    """Norms whose balls add up badly: some hundred proximal steps, not hundreds of thousands."""
    calls = []

    @dataclass(frozen=True)
    class Counted(nerm.LInf):
        def prox(self, w, step=1.0):
            calls.append(1)
            return super().prox(w, step)

    rng = np.random.default_rng(0)
    for _ in range(5):
        conjugate_of_sum([(0.1, Counted()), (0.1, nerm.GroupL2())], rng.normal(size=5), lambda w: w @ w)
    assert len(calls) <= 5 * 600


def test_free_directions_are_those_of_all_parts():
    assert free_directions([], 3).tolist() == np.eye(3).tolist()
    assert free_directions([(1.0, nerm.SquaredL2())], 3).shape == (3, 0)
    np.testing.assert_allclose(np.abs(free_directions([(1.0, TV)], 4)), np.full((4, 1), 0.5))
    np.testing.assert_allclose(free_directions([(1.0, SOME)], 4), np.eye(4)[:, :2])
    assert free_directions([(1.0, SOME), (0.1, TV)], 4).shape == (4, 0)
    one, pair = nerm.regularizer(lambda w: cp.abs(w[1])), nerm.regularizer(lambda w: cp.abs(w[2] - w[3]))
    both = free_directions([(1.0, one), (1.0, pair)], 4)
    np.testing.assert_allclose(np.abs(both), [[1, 0], [0, 0], [0, 0.5**0.5], [0, 0.5**0.5]], atol=1e-12)
