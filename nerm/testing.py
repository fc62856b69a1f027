"""The contract that every atom must keep, for people's own atoms too.

`check_margin_function(atom)` and `check_regularizer(atom)` raise an AssertionError that names the broken clause. The
clauses are checked from the definitions (values, secants, brute force on a grid), never from closed forms.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Norm, Regularizer

__all__ = ["check_margin_function", "check_regularizer"]


def check_margin_function(atom: MarginFunction, *, points: Any = None, tol: float | None = None) -> None:
    """Check a margin function against its contract: convexity, subgradients, conjugate, prox, cvxpy expression, facts.

    points
        Margins to test at; by default a spread of them, and the kinks and breakpoints of the atom with neighbours.
    tol
        Allowed error; by default 1e-9, or 1e-5 for atoms with numerically derived parts.

    >>> from nerm import Hinge
    >>> check_margin_function(Hinge())
    """
    tol = (1e-5 if atom.facts.numeric else 1e-9) if tol is None else tol
    m = _test_points(atom) if points is None else np.asarray(points, dtype=float)
    _check_convex(atom, m, tol)
    _check_subgradient(atom, m, tol)
    _check_curvature(atom, m)
    _check_conjugate(atom, m, tol)
    _check_prox(atom, m, tol)
    _check_expression(atom, m, tol)
    _check_facts(atom, m, tol)


def _test_points(atom: MarginFunction) -> np.ndarray:
    """Return margins on both sides, and on every kink and breakpoint and just beside it."""
    special = np.array(sorted({0.0, 1.0, *atom.facts.kinks, *atom.facts.breakpoints}))
    near = np.concatenate([special + shift for shift in (-1e-3, 0.0, 1e-3)])
    rng = np.random.default_rng(0)
    return np.unique(np.concatenate([np.linspace(-6, 6, 41), near, rng.normal(scale=2.0, size=40)]))


def _scale(*values: np.ndarray) -> np.ndarray:
    """Return 1 + the largest size among values: errors are judged relative to it."""
    return 1.0 + np.max([np.abs(v) for v in np.broadcast_arrays(*values)], axis=0)


def _hold(condition: Any, clause: str, atom: Any, detail: str = "") -> None:
    assert np.all(condition), f"{atom!r} breaks its contract: {clause}. {detail}".rstrip()


def _check_convex(atom: MarginFunction, m: np.ndarray, tol: float) -> None:
    a, b = m[:, None], m[None, :]
    for t in (0.25, 0.5):
        chord = t * atom.value(a) + (1 - t) * atom.value(b)
        middle = atom.value(t * a + (1 - t) * b)
        _hold(middle <= chord + tol * _scale(chord), "the value must be convex", atom)


def _check_subgradient(atom: MarginFunction, m: np.ndarray, tol: float) -> None:
    low, high = atom.subgradient(m)
    _hold(low <= high + tol * _scale(low), "the interval of subgradients must have low <= high", atom)
    for g in (low, high, 0.5 * (low + high)):
        below = atom.value(m)[:, None] + g[:, None] * (m[None, :] - m[:, None])
        _hold(
            below <= atom.value(m)[None, :] + tol * _scale(below) * 10,
            "a subgradient must support the function from below",
            atom,
        )
    step = 1e-6
    left = (atom.value(m) - atom.value(m - step)) / step
    right = (atom.value(m + step) - atom.value(m)) / step
    slack = 1e-4 * _scale(left, right)
    _hold(
        (low >= left - slack) & (high <= right + slack),
        "subgradients must lie between the one-sided slopes",
        atom,
    )
    _hold(
        (low <= left + slack) & (high >= right - slack),
        "at a kink the interval must reach both one-sided slopes",
        atom,
    )


def _check_curvature(atom: MarginFunction, m: np.ndarray) -> None:
    """Hold the curvature, if there is one, against differences of the derivative, away from breakpoints."""
    step = 1e-5
    smooth = np.all([np.abs(m - b) > 2 * step for b in atom.facts.breakpoints] or [np.isfinite(m)], axis=0)
    m = m[smooth]
    curvature = atom.curvature(m)
    if curvature is None:
        return
    (after, _), (before, _) = atom.subgradient(m + step), atom.subgradient(m - step)
    bend = (after - before) / (2 * step)
    slack = (1e-1 if atom.facts.numeric else 1e-6) * _scale(bend)
    _hold(np.abs(curvature - bend) <= slack, "curvature must be the slope of the derivative", atom)


def _check_conjugate(atom: MarginFunction, m: np.ndarray, tol: float) -> None:
    low, high = atom.subgradient(m)
    for u in (low, high, 0.5 * (low + high)):
        inside = np.isfinite(u)
        equality = atom.value(m) + atom.conjugate(u) - u * m
        error = np.abs(equality) / _scale(atom.value(m), u * m)
        _hold(
            error[inside] <= 10 * tol,
            "phi(m) + phi*(u) = u m must hold at a subgradient u (Fenchel-Young)",
            atom,
            f"Worst {error[inside].max():.1e}.",
        )
        gap = atom.value(m)[None, :] + atom.conjugate(u)[:, None] - u[:, None] * m[None, :]
        _hold(
            gap[inside] >= -10 * tol * _scale(u[inside, None] * m[None, :]),
            "phi(m) + phi*(u) >= u m must hold everywhere",
            atom,
        )
    slope_low, slope_high = atom.facts.slopes
    for outside in (slope_low - 0.1, slope_high + 0.1):
        if np.isfinite(outside):
            _hold(
                np.isposinf(atom.conjugate(np.array([outside]))),
                "the conjugate must be +inf outside facts.slopes",
                atom,
            )


def _check_prox(atom: MarginFunction, m: np.ndarray, tol: float) -> None:
    for step in (0.1, 1.0, 5.0):
        z = atom.prox(m, step)
        best = step * atom.value(z) + 0.5 * (z - m) ** 2
        grid = np.linspace(-1.0, 1.0, 2001)
        for reach in (10.0 * (1 + step), 0.1, 1e-4):
            others = z[:, None] + reach * grid[None, :]
            values = step * atom.value(others) + 0.5 * (others - m[:, None]) ** 2
            better = best[:, None] > values + 10 * tol * _scale(best)[:, None]
            _hold(~better, "prox must minimise step phi(z) + (z - m)^2 / 2", atom, f"Step {step:g}.")


def _check_expression(atom: MarginFunction, m: np.ndarray, tol: float) -> None:
    import cvxpy as cp

    expression = atom.expression(cp.Variable(len(m)))
    _hold(expression.is_convex(), "the cvxpy expression must be convex by cvxpy's rules", atom)
    values = np.asarray(atom.expression(cp.Constant(m)).value, dtype=float)
    error = np.abs(values - atom.value(m)) / _scale(values)
    _hold(error <= tol, "the cvxpy expression must equal the value", atom, f"Worst {error.max():.1e}.")


def _check_facts(atom: MarginFunction, m: np.ndarray, tol: float) -> None:
    facts = atom.facts
    _hold(abs(facts.at_zero - float(atom.value(0.0))) <= tol, "facts.at_zero must be the value at 0", atom)
    low, high = atom.subgradient(m)
    _hold(
        (low >= facts.slopes[0] - tol) & (high <= facts.slopes[1] + tol),
        "facts.slopes must contain every subgradient",
        atom,
    )
    values = atom.value(m)
    _hold(values >= facts.minimum - tol, "facts.minimum must be a lower bound", atom)
    if np.isfinite(facts.lipschitz):
        rise = np.abs(values[:, None] - values[None, :])
        _hold(
            rise <= (facts.lipschitz + tol) * np.abs(m[:, None] - m[None, :]) + tol,
            "facts.lipschitz must bound the slope",
            atom,
        )
    if np.isfinite(facts.smoothness):
        rise = np.abs(low[:, None] - low[None, :])
        _hold(
            rise <= facts.smoothness * np.abs(m[:, None] - m[None, :]) + tol * _scale(low),
            "facts.smoothness must bound the curvature",
            atom,
        )
        _hold(np.abs(high - low) <= tol * _scale(low), "a smooth function must have one derivative", atom)
    for kink in facts.kinks:
        below, above = atom.subgradient(np.array([kink]))
        _hold(above > below, "facts.kinks must be points with more than one subgradient", atom)
    if facts.quadratic is not None:
        a, q = facts.quadratic
        low_end, high_end = np.clip(facts.slopes, -5.0, 5.0)
        u = np.linspace(low_end, high_end, 11)
        _hold(
            np.abs(atom.conjugate(u) - a * u - 0.5 * q * u**2) <= tol * _scale(u**2),
            "facts.quadratic must be the conjugate",
            atom,
        )


def check_regularizer(atom: Regularizer, *, d: int = 6, tol: float = 1e-9) -> None:
    """Check a regularizer on vectors of length d: convexity, subgradients, conjugate, prox, cvxpy expression, parts.

    >>> from nerm import L1
    >>> check_regularizer(L1())
    """
    import cvxpy as cp

    atom.check(d)
    rng = np.random.default_rng(0)
    W = _test_vectors(rng, d)
    values = np.array([atom.value(w) for w in W])
    _hold(abs(atom.value(np.zeros(d))) <= tol, "Omega(0) must be 0", atom)
    _hold(values >= -tol, "Omega must not be negative", atom)
    for w, value in zip(W, values, strict=True):
        _hold(
            abs(float(atom.expression(cp.Constant(w)).value) - value) <= tol * (1 + value),
            "the cvxpy expression must equal the value",
            atom,
        )
        _check_regularizer_subgradient(atom, w, value)
        _check_regularizer_prox(atom, w, rng, tol)
        q = rng.normal(size=d)
        _hold(value + atom.conjugate(q) >= w @ q - tol * 10, "Omega(w) + Omega*(q) >= w.q must hold", atom)
        parts = sum(share * part.value(w) for share, part in atom.parts())
        _hold(abs(parts - value) <= tol * (1 + value), "the parts must add up", atom)
    for w in W:
        # The prox condition: w - prox(w) is a subgradient at prox(w), where Fenchel-Young is an equality.
        z = atom.prox(w)
        gap = atom.value(z) + atom.conjugate(w - z) - z @ (w - z)
        _hold(
            abs(gap) <= 100 * tol,
            "Omega(z) + Omega*(q) = z.q must hold at q = w - prox(w)",
            atom,
            f"Gap {gap:.1e}.",
        )
    if isinstance(atom, Norm):
        for w, value in zip(W, values, strict=True):
            ratio = max(float(w @ z) / atom.value(z) for z in W if z.any())
            _hold(ratio <= atom.dual_norm(w) + tol * 10, "the dual norm must bound q.w / Omega(w)", atom)
            _hold(abs(atom.value(2 * w) - 2 * value) <= tol * (1 + value), "a norm must be homogeneous", atom)
    _hold(
        atom.expression(cp.Variable(d)).is_convex(),
        "the cvxpy expression must be convex by cvxpy's rules",
        atom,
    )


def _test_vectors(rng: np.random.Generator, d: int) -> list[np.ndarray]:
    """Return vectors with zeros, ties and a zero among them: the kinks of norms."""
    sparse = rng.normal(size=d) * (rng.random(d) < 0.5)
    tied = np.resize([2.0, -2.0, 1.0], d)
    axis = np.eye(d)[0] * 3.0
    half = np.concatenate([np.zeros(d // 2), rng.normal(size=d - d // 2)])
    return [
        np.zeros(d),
        sparse,
        tied,
        axis,
        -axis,
        half,
        *(scale * rng.normal(size=d) for scale in (0.1, 1.0, 1.0, 5.0)),
    ]


def _check_regularizer_subgradient(atom: Regularizer, w: np.ndarray, value: float) -> None:
    low, high = atom.subgradient(w)
    step = 1e-7
    for j in range(len(w)):
        move = np.zeros_like(w)
        move[j] = step
        right, left = (atom.value(w + move) - value) / step, (value - atom.value(w - move)) / step
        slack = 1e-5 * (1 + abs(right) + abs(left))
        close = abs(high[j] - right) <= slack and abs(low[j] - left) <= slack
        _hold(
            close,
            "subgradient must give the one-sided derivatives along each axis",
            atom,
            f"Coordinate {j} of {w.tolist()}.",
        )


def _check_regularizer_prox(atom: Regularizer, w: np.ndarray, rng: np.random.Generator, tol: float) -> None:
    for step in (0.3, 1.0, 4.0):
        z = atom.prox(w, step)
        best = step * atom.value(z) + 0.5 * float((z - w) @ (z - w))
        for size in (1.0, 1e-2, 1e-4):
            for _ in range(20):
                other = z + size * rng.normal(size=len(w)) * (rng.random(len(w)) < 0.6)
                trial = step * atom.value(other) + 0.5 * float((other - w) @ (other - w))
                _hold(
                    best <= trial + tol * (1 + best),
                    "prox must minimise step Omega(z) + ||z - w||^2 / 2",
                    atom,
                    f"Step {step:g}.",
                )
