"""The compiled loop by itself: slopes, steps along a pair, steps without curvature, convergence."""

from __future__ import annotations

import numpy as np

from nerm.solvers.smo.fixed_theta import Levels, pair_step, run, set_slopes

#: Two segments each: slope 2 on [0, 1], slope 1 on [1, 3]; the second row is the same, shifted down by 3.
BREAKS = np.array([[0.0, 1.0, 3.0], [-3.0, -2.0, 0.0]])
SLOPES = np.array([[np.inf, 2.0, 1.0, -np.inf], [np.inf, 2.0, 1.0, -np.inf]])


def levels(a, G):
    straight = np.zeros_like(SLOPES)
    at = Levels(np.array(a), np.array(G), *np.zeros((4, 2)), BREAKS, straight, SLOPES, straight)
    for i in range(2):
        set_slopes(i, at)
    return at


def test_slopes_on_both_sides_of_every_level():
    for a, rise, fall in (
        (0.0, 2.0, np.inf),
        (0.5, 2.0, 2.0),
        (1.0, 1.0, 2.0),
        (2.0, 1.0, 1.0),
        (3.0, -np.inf, 1.0),
    ):
        at = levels([a, -3.0], [0.0, 0.0])
        assert (at.rise[0], at.fall[0]) == (rise, fall)


def test_steps_end_at_the_best_point_along_the_pair():
    for curvature in (0.0, 0.1, 0.7, 3.0):
        for G in ([0.0, 0.0], [0.0, 0.5], [0.0, 1.3], [0.0, 4.0]):
            at = levels([0.25, -0.5], G)
            total = pair_step(0, 1, curvature, at)

            def gained(t, G=G, curvature=curvature):
                up = 2 * min(t, 0.75) + max(0.0, t - 0.75)  # from 0.25 up, past the break at 1
                down = min(t, 1.5) + 2 * max(0.0, t - 1.5)  # from -0.5 down, past the break at -2
                return up - down - (G[0] - G[1]) * t - 0.5 * curvature * t * t

            best = max(gained(t) for t in np.linspace(0, 2.5, 10_001))
            assert 0 <= total <= 2.5
            np.testing.assert_allclose(gained(total), best, atol=1e-6)


def test_without_curvature_it_goes_to_the_break_after_which_nothing_is_gained():
    at = levels([0.0, 0.0], [0.0, 10.0])  # equal x: lowering the second earns ten a unit
    assert pair_step(0, 1, 0.0, at) == 3.0
    assert at.a.tolist() == [3.0, -3.0]
    assert (at.rise[0], at.fall[1]) == (-np.inf, np.inf)
    at = levels([0.0, 0.0], [0.0, -0.5])  # after the breaks at 1 and -1 it would lose a half a unit
    assert pair_step(0, 1, 0.0, at) == 1.0
    assert at.a.tolist() == [1.0, -1.0]
    assert (at.rise[0], at.fall[1]) == (1.0, 1.0)


def test_the_loop_ends_where_no_pair_gains():
    at = levels([1.0, -1.0], [0.0, 0.0])
    K = np.array([[2.0, 0.5], [0.5, 1.0]])
    at.G[:] = K @ at.a
    assert run(at, K, 1.0, 1e-12, 100) < 100
    assert (at.rise - at.G).max() <= (at.fall - at.G).min() + 1e-12
    np.testing.assert_allclose(at.G, K @ at.a, atol=1e-12)
    assert abs(at.a.sum()) < 1e-12
