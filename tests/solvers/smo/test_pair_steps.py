"""The compiled loop by itself: where rows stand, one step along a pair, steps without curvature, convergence."""

from __future__ import annotations

import numpy as np

from nerm.solvers.linalg.gram_cache import CachedRows
from nerm.solvers.smo import fixed_theta
from nerm.solvers.smo.fixed_theta import Places, pair_step, place, run

#: Two segments each: slope 2 on [0, 1], slope 1 on [1, 3]; the second row is the same, shifted down by 3.
WIDTH = np.array([[1.0, 2.0], [1.0, 2.0]])
SLOPE = np.array([[np.inf, 2.0, 1.0, -np.inf], [np.inf, 2.0, 1.0, -np.inf]])


def levels(a, G):
    low, start = np.array([0.0, -3.0]), np.array([[0.0, 1.0], [0.0, 1.0]])
    zeros = [np.zeros(2) for _ in range(3)]
    at = Places(np.array(a), np.array(G), np.zeros(2, dtype=np.int64), *zeros, low, start, WIDTH, SLOPE)
    place(at)
    return at


def test_slopes_on_both_sides_of_every_place():
    for a, rise, fall in (
        (0.0, 2.0, np.inf),
        (0.5, 2.0, 2.0),
        (1.0, 1.0, 2.0),
        (1.0 + 1e-14, 1.0, 2.0),
        (2.0, 1.0, 1.0),
        (3.0, -np.inf, 1.0),
    ):
        at = levels([a, -3.0], [0.0, 0.0])
        assert (at.rise[0], at.fall[0]) == (rise, fall)
        np.testing.assert_allclose(at.a[0], a, atol=1e-12)


def test_a_step_is_the_best_one_along_the_pair():
    for curvature in (0.0, 0.1, 0.7, 3.0):
        for G in ([0.0, 0.0], [0.0, 0.5], [0.0, 1.3], [0.0, 4.0]):
            at = levels([0.25, -0.5], G)
            step = pair_step(0, 1, curvature, at)

            def gained(t, G=G, curvature=curvature):
                up = 2 * min(t, 0.75) + max(0.0, t - 0.75)  # from 0.25 up, past the break at 1
                down = min(t, 1.5) + 2 * max(0.0, t - 1.5)  # from -0.5 down, past the break at -2
                return up - down - (G[0] - G[1]) * t - 0.5 * curvature * t * t

            best = max(gained(t) for t in np.linspace(0, 2.5, 10_001))
            assert 0 <= step <= 2.5
            np.testing.assert_allclose(gained(step), best, atol=1e-6)


def test_without_curvature_it_goes_to_the_bound():
    at = levels([0.0, 0.0], [0.0, 10.0])  # equal x: lowering the second earns ten a unit
    assert pair_step(0, 1, 0.0, at) == 3.0
    np.testing.assert_allclose([at.x[0], at.x[1]], [2.0, 0.0])
    assert at.rise[0] == -np.inf
    assert at.fall[1] == np.inf


def test_the_loop_asks_for_rows_and_ends_where_no_pair_gains():
    at = levels([1.0, -1.0], [0.0, 0.0])
    K = np.array([[2.0, 0.5], [0.5, 1.0]])
    held = CachedRows(
        np.diag(K).copy(), K, np.array([-1, -1]), np.zeros(2, dtype=np.int64), np.zeros(1, dtype=np.int64)
    )
    active = np.arange(2)
    at.G[:] = K @ at.a
    status, steps, wanted = run(at, held, 1.0, active, 1e-12, 10)
    assert (status, steps, wanted) == (fixed_theta.NEED_ROW, 0, int(np.argmax(at.rise - at.G)))
    held.slot_of[:] = 0, 1
    status, steps, wanted = run(at, held, 1.0, active, 1e-12, 100)
    assert (status, wanted) == (fixed_theta.CONVERGED, -1)
    assert (at.rise - at.G).max() <= (at.fall - at.G).min() + 1e-12
    np.testing.assert_allclose(at.G, K @ at.a, atol=1e-12)
    assert abs(at.a.sum()) < 1e-12
