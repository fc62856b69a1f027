"""Compiled passes against their formulas in numpy, row by row."""

from __future__ import annotations

import numpy as np
import pytest

from nerm.solvers.interior_point import passes as compiled
from nerm.solvers.interior_point.arrays import Data, Duals, Move
from tests.engine.problems import ATOMS

INF = np.inf


class Plain:
    """The passes as they are, given tuples without names."""

    def __getattr__(self, name):
        found = getattr(compiled, name)
        return (
            (lambda *args: found(*(tuple(a) if isinstance(a, tuple) else a for a in args)))
            if callable(found)
            else found
        )


passes = Plain()
#: name: linear, quadratic, low, high
FORMS = {
    "hinge": (1.0, 0.0, -1.0, 0.0),
    "squared_hinge": (1.0, 0.5, -INF, 0.0),
    "smooth_hinge": (1.0, 0.5, -1.0, 0.0),
    "modified_huber": (1.0, 0.5, -4.0, 0.0),
    "squared": (1.0, 0.5, -INF, INF),
    "pinball": (1.0, 0.0, -1.0, 0.3),
}
N = 2500  # more than two chunks


def problem(seed: int, names=tuple(FORMS)):
    rng = np.random.default_rng(seed)
    J = len(names)
    table = np.array([(*FORMS[name], passes.MOVING, 0, 0) for name in names], dtype=float)
    table[-2:, passes.SIGN], table[-2:, passes.LINE] = (1, -1), 2
    targets = rng.normal(size=(J, N)) * (rng.random((J, N)) < 0.95)
    data = Data(targets, rng.exponential(size=(J, N)), table)
    duals = Duals(*np.zeros((3, J, N)))
    scores = 2.0 * rng.normal(size=N)
    passes.centre(data, duals, scores, 0.3, 0, N)
    return rng, data, duals, Move(*np.zeros((4, J, N))), scores, rng.exponential(size=J)


def columns(data):
    return (data.table[:, k, None] for k in range(4))


def distances(data, duals):
    """Return A = high - u and C = u - low, 1 where there is no bound."""
    _, _, low, high = columns(data)
    with np.errstate(invalid="ignore"):
        A, C = (
            np.where(np.isfinite(high), high - duals.u, 1.0),
            np.where(np.isfinite(low), duals.u - low, 1.0),
        )
    return A, C


@pytest.mark.parametrize("barrier", [1.0, 0.01, 1e-6])
def test_centre_puts_rows_on_the_central_path_of_their_scores(barrier):
    _, data, duals, _, scores, _ = problem(0)
    passes.centre(data, duals, scores, barrier, 0, N)
    a, q, low, high = columns(data)
    A, C = distances(data, duals)
    assert (A > 0).all()
    assert (C > 0).all()
    np.testing.assert_allclose(data.targets * scores - a - q * duals.u, duals.upper - duals.lower, atol=1e-8)
    for p, distance, end in ((duals.upper, A, high), (duals.lower, C, low)):
        products = np.where(np.isfinite(end), p * distance, barrier)
        flat = np.broadcast_to(q == 0, products.shape)
        # what rounding leaves of m - linear = p^+ - p^- is added to p, and may be something beside the least
        # barrier
        np.testing.assert_allclose(products[flat], barrier, rtol=1e-6 if barrier > 1e-3 else 0.05)
        assert (products >= 0.49 * barrier).all()
        assert np.median(products) < 2.1 * barrier


def test_values_are_those_of_the_functions():
    _, data, _, _, scores, _ = problem(1)
    naive = [(B * ATOMS[name][1](t * scores)).sum() for name, t, B in zip(FORMS, *data[:2], strict=True)]
    parts = [passes.values(data, scores, start, stop) for start, stop in ((0, 700), (700, N))]
    np.testing.assert_allclose(sum(parts), naive, rtol=1e-12)


def test_linearise_sums_what_it_says():
    _, data, duals, move, scores, nu = problem(2)
    vectors, density = np.full((4, N), 7.0), np.full(N, 7.0)  # whatever was there is gone
    sums = sum(
        passes.linearise(data, duals, move, nu, scores, vectors, density, start, stop)
        for start, stop in ((0, 1300), (1300, N))
    )
    _, q, _, _ = columns(data)
    A, C = distances(data, duals)
    u, p = duals.u, duals.upper - duals.lower
    kappa = 1 / (q + duals.upper / A + duals.lower / C)
    t, B, w = data.targets, data.weights, nu[:, None]
    np.testing.assert_allclose(move.kappa, kappa, rtol=1e-12)
    np.testing.assert_allclose(density, (w * B * t * t * kappa).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(vectors[0], (w * B * t * u).sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(vectors[1], (w * B * t * kappa * p).sum(axis=0), atol=1e-12)
    np.testing.assert_allclose(
        vectors[2], (data.table[:, passes.SIGN, None] * B * t * u).sum(axis=0), atol=1e-12
    )
    naive = [
        (B * (duals.upper * A + duals.lower * C)).sum(axis=1),
        (B * u * t * scores).sum(axis=1),
        [(b * ATOMS[name][1](m * scores)).sum() for name, m, b in zip(FORMS, t, B, strict=True)],
        [(b * ATOMS[name][2][0](x)).sum() for name, x, b in zip(FORMS, u, B, strict=True)],
        (B * kappa * p**2).sum(axis=1),
    ]
    np.testing.assert_allclose(sums.T, naive, rtol=1e-10)


def equations(data, point, f, target):
    """Return the residuals of m - linear - quadratic u = p^+ - p^- and of the products, 0 where there is no bound."""
    a, q, low, high = columns(data)
    u, upper, lower = point
    first = data.targets * f - a - q * u - upper + lower
    with np.errstate(invalid="ignore"):
        above = np.where(np.isfinite(high), upper * (high - u) - target, 0.0)
        below = np.where(np.isfinite(low), lower * (u - low) - target, 0.0)
    return np.array([first, above, below])


def steps(data, duals, move, corrected):
    """Return dp^+ and dp^- that belong to du."""
    A, C = distances(data, duals)
    over, under = (move.over, move.under) if corrected else (0.0, 0.0)
    _, _, low, high = columns(data)
    dp = np.where(np.isfinite(high), over - duals.upper + duals.upper * move.du / A, 0.0)
    return dp, np.where(np.isfinite(low), under - duals.lower - duals.lower * move.du / C, 0.0)


@pytest.mark.parametrize("corrected", [False, True])
def test_the_direction_solves_the_linearised_equations(corrected):
    rng, data, duals, move, f, nu = problem(3)
    passes.linearise(data, duals, move, nu, f, np.zeros((4, N)), np.zeros(N), 0, N)
    df, dnu, target = rng.normal(size=N), rng.normal(size=len(nu)), 0.1
    passes.direct(data, duals, move, nu, df, False, 0, N)
    affine = move.du.copy()
    dp, dm = steps(data, duals, move, corrected=False)
    h = np.full(N, 7.0)
    changes = passes.correct(data, duals, move, nu, dnu, target, INF, h, 0, N)
    if not corrected:
        target, du, second = 0.0, affine, [0.0, 0.0]
    else:
        # Mehrotra: A p - target - du dp of the affine step takes the place of A p
        second = [affine * dp, -affine * dm]
        passes.direct(data, duals, move, nu, df, True, 0, N)
        du = move.du
        dp, dm = steps(data, duals, move, corrected=True)
    here, eps = equations(data, duals, f, target), 1e-6
    moved = [x + eps * dx for x, dx in zip(duals, (du, dp, dm), strict=True)]
    slope = (equations(data, moved, f + eps * df, target) - here) / eps
    scale = 1.0 + np.abs(here) + np.abs(slope)
    np.testing.assert_allclose((here + slope)[0] / scale[0], 0.0, atol=1e-4)
    low, high = data.table[:, passes.LOW, None], data.table[:, passes.HIGH, None]
    for k, end in ((1, high), (2, low)):
        left = np.where(np.isfinite(end), here[k] + slope[k] - second[k - 1], 0.0)
        np.testing.assert_allclose(left / scale[k], 0.0, atol=1e-4)
    if corrected:  # h and the changes of value are what the part of du that does not depend on df makes of c
        rho = duals.upper - duals.lower - move.over + move.under
        want = (data.weights * data.targets * (nu[:, None] * move.kappa * rho + dnu[:, None] * affine)).sum(
            axis=0
        )
        np.testing.assert_allclose(h, want, atol=1e-8)
        A, C = distances(data, duals)
        more = A * (move.over - duals.upper) * np.isfinite(high) + C * (
            move.under - duals.lower
        ) * np.isfinite(low)
        p = duals.upper - duals.lower
        np.testing.assert_allclose(
            changes, (data.weights * (p * move.kappa * rho + more)).sum(axis=1), rtol=1e-8
        )


def test_second_order_terms_are_held():
    rng, data, duals, move, f, nu = problem(4)
    passes.linearise(data, duals, move, nu, f, np.zeros((4, N)), np.zeros(N), 0, N)
    passes.direct(data, duals, move, nu, 10.0 * rng.normal(size=N), False, 0, N)
    passes.correct(data, duals, move, nu, 0.0 * nu, 0.2, 0.05, np.zeros(N), 0, N)
    A, C = distances(data, duals)
    for product, end in ((move.over * A, passes.HIGH), (move.under * C, passes.LOW)):
        held = product[np.isfinite(data.table[:, end])]
        assert (held >= 0.15 - 1e-12).all()
        assert (held <= 0.25 + 1e-12).all()


def direction(seed: int, length: float):
    rng, data, duals, move, f, nu = problem(seed)
    passes.linearise(data, duals, move, nu, f, np.zeros((4, N)), np.zeros(N), 0, N)
    df = length * rng.normal(size=N)
    passes.direct(data, duals, move, nu, df, False, 0, N)
    passes.correct(data, duals, move, nu, 0.0 * nu, 0.1, INF, np.zeros(N), 0, N)
    histogram = passes.direct(data, duals, move, nu, df, True, 0, N)
    return data, duals, move, nu, f, df, histogram


def test_the_histogram_counts_rows_by_the_step_that_takes_them_to_a_bound():
    data, duals, move, nu, _, _, histogram = direction(5, 3.0)
    low, high = data.table[:, passes.LOW, None], data.table[:, passes.HIGH, None]
    with np.errstate(divide="ignore"):
        step = np.where(move.du > 0, high - duals.u, duals.u - low) / np.abs(move.du)
    weight = nu[:, None] * data.weights
    for k in (1, 8, 32, 63, 64):
        assert histogram[:k].sum() == pytest.approx(weight[step < k / 64].sum(), rel=1e-9)


def test_the_longest_step_is_the_longest():
    data, duals, move, nu, _, _, _ = direction(6, 3.0)
    longest = min(
        passes.longest_step(data, duals, move, nu, start, stop) for start, stop in ((0, 900), (900, N))
    )
    dp, dm = steps(data, duals, move, corrected=True)
    low, high = data.table[:, passes.LOW, None], data.table[:, passes.HIGH, None]

    def inside(step: float) -> bool:
        u = duals.u + step * move.du
        return bool(
            ((u <= high) & (u >= low) & (duals.upper + step * dp >= 0) & (duals.lower + step * dm >= 0)).all()
        )

    assert inside((1 - 1e-9) * longest)
    assert not inside((1 + 1e-6) * longest)


def test_the_longest_step_of_every_row():
    """Whatever binds it: u at either end, or p^+ or p^- at 0."""
    data, duals, move, nu, _, _, _ = direction(6, 1.0)
    low, high = data.table[:, passes.LOW, None], data.table[:, passes.HIGH, None]
    dp, dm = steps(data, duals, move, corrected=True)
    ways = [(high - duals.u, -move.du), (duals.u - low, move.du), (duals.upper, dp), (duals.lower, dm)]
    with np.errstate(divide="ignore", invalid="ignore"):
        limits = np.array([np.where(dx < 0, x / -dx, INF) for x, dx in ways]).min(axis=1)
    assert (np.argmin(limits, axis=0)[:100, None] == np.arange(4)).any(axis=0).all()
    for i in range(100):
        assert passes.longest_step(data, duals, move, nu, i, i + 1) == pytest.approx(
            limits[:, i].min(), rel=1e-9
        )


def test_a_direction_that_moves_nothing_allows_any_step():
    data, duals, move, nu, _, _, _ = direction(6, 3.0)
    move.du[:], move.over[:], move.under[:] = 0.0, duals.upper, duals.lower
    assert passes.longest_step(data, duals, move, nu, 0, N) == INF


@pytest.mark.parametrize("keep", [0.2, 0.01])
def test_an_advance_keeps_the_first_equation_and_a_share_of_every_distance(keep):
    data, duals, move, _, f, df, _ = direction(7, 5.0)
    A, C = distances(data, duals)
    u, upper, lower = (part.copy() for part in duals)
    du, (dp, dm) = move.du.copy(), steps(data, duals, move, corrected=True)
    passes.advance(data, duals, move, f + 0.7 * df, 0.7, np.full(len(u), keep), 0, N)
    a, q, low, high = columns(data)
    np.testing.assert_allclose(
        data.targets * (f + 0.7 * df) - a - q * duals.u, duals.upper - duals.lower, atol=1e-8
    )
    new_A, new_C = distances(data, duals)
    two = (np.isfinite(low) & np.isfinite(high)).ravel()
    for new, old in ((new_A, A), (new_C, C)):
        assert (new[two] >= keep * old[two] * (1 - 1e-9)).all()
    assert (duals.upper[two] >= keep * upper[two] * (1 - 1e-9)).all()
    assert (duals.lower[two] >= keep * lower[two] * (1 - 1e-9)).all()
    free = two[:, None] & (u + 0.7 * du < high - keep * A) & (u + 0.7 * du > low + keep * C)
    free &= (upper + 0.7 * dp > keep * upper) & (lower + 0.7 * dm > keep * lower)
    assert free.mean() > 0.1
    np.testing.assert_allclose(duals.u[free], (u + 0.7 * du)[free], atol=1e-12)  # nobody else is held


def test_smooth_and_affine_blocks_take_u_and_kappa_as_they_are():
    rng, data, duals, move, f, nu = problem(8, ("hinge", "hinge"))
    data.table[:, passes.KIND] = passes.SMOOTH, passes.AFFINE
    data.table[1, :4] = 0.5, 0.0, 2.0, 2.0  # phi(m) = 2 m - 1
    duals = Duals(rng.normal(size=(2, N)), np.zeros((2, N)), np.zeros((2, N)))
    duals.u[1] = 2.0
    move.kappa[0] = rng.exponential(size=N)
    kappa, u = move.kappa.copy(), duals.u.copy()
    vectors, density = np.zeros((4, N)), np.zeros(N)
    sums = passes.linearise(data, duals, move, nu, f, vectors, density, 0, N)
    w, t, B = nu[:, None], data.targets, data.weights
    np.testing.assert_allclose(density, (w * B * t * t * kappa).sum(axis=0), rtol=1e-12)
    np.testing.assert_allclose(vectors[0], (w * B * t * u).sum(axis=0), atol=1e-10)
    np.testing.assert_allclose(sums[:, 1], (B * u * t * f).sum(axis=1), rtol=1e-9)
    assert sums[1, 2] == pytest.approx((B[1] * (2 * t[1] * f - 1)).sum(), rel=1e-9)
    df = rng.normal(size=N)
    assert passes.direct(data, duals, move, nu, df, False, 0, N).sum() == 0
    np.testing.assert_allclose(move.du, kappa * t * df, atol=1e-12)
    passes.advance(data, duals, move, f + df, 1.0, np.full(2, 0.2), 0, N)
    np.testing.assert_array_equal(duals.u, u)
