"""Check that an atom, built-in or your own, satisfies the contract of its class.

`check_margin_function(atom)` and `check_regularizer(atom)` raise an AssertionError that names the broken
clause. The clauses are checked from the definitions (values, secants, brute force on a grid), never from
closed forms.
"""

from collections.abc import Iterator
from itertools import chain
from typing import Any, TypeAlias

import cvxpy as cp
import numpy as np

from nerm.atoms.margin import MarginFunction
from nerm.atoms.regularizer import Regularizer
from nerm.typing import Floats

__all__ = ["check_margin_function", "check_regularizer"]

Clauses: TypeAlias = Iterator[tuple[Any, str]]  # what must hold, and in words


def check_margin_function(atom: MarginFunction, *, points: Any = None, tol: float | None = None) -> None:
    """Check a margin function against its contract.

    The function checks convexity, subgradients, curvature, conjugate, prox, cvxpy expression and facts. It
    raises an AssertionError that names the violated condition.

    Parameters
    ----------
    atom : MarginFunction
        A built-in margin function or your own.
    points : array-like, optional
        Margins to test at; by default margins of both signs, every kink and breakpoint of the atom, and
        points close to these.
    tol : float, optional
        Allowed error; by default 1e-9, or 1e-5 for atoms with numerically derived parts.

    Examples
    --------
    >>> from nerm import Hinge
    >>> check_margin_function(Hinge())
    """
    tol = (1e-5 if atom.facts.numeric else 1e-9) if tol is None else tol
    m = _test_points(atom) if points is None else np.asarray(points, dtype=float)
    parts = (_convexity, _subgradient, _curvature, _conjugate, _prox, _expression, _facts)
    _hold(atom, chain.from_iterable(part(atom, m, tol) for part in parts))


def _hold(atom: Any, clauses: Clauses) -> None:
    for holds, clause in clauses:
        assert np.all(holds), f"{atom!r} breaks its contract: {clause}."


def _test_points(atom: MarginFunction) -> Floats:
    """Return test margins of both signs, including every kink and breakpoint and points close to it."""
    special = np.array(sorted({0.0, 1.0, *atom.facts.kinks, *atom.facts.breakpoints}))
    near = np.add.outer(special, [-1e-3, 0.0, 1e-3]).ravel()
    far = np.concatenate([np.linspace(-60, 60, 161), [-3e2, -1e2, 1e2, 3e2]])
    with np.errstate(over="ignore"):  # where values are small enough for their last digits to mean something
        far = far[np.abs(atom.value(far)) < 1e4]
    points = np.concatenate([np.linspace(-6, 6, 41), np.random.default_rng(0).normal(0, 2, 40), far])
    apart = np.abs(points[:, None] - special).min(axis=1) > 1e-5  # differences must not step over a kink
    return np.unique([*points[apart], *near])


def _scale(*values: Floats) -> Floats:
    """Return 1 + the largest absolute value, elementwise; errors are relative to it."""
    return np.asarray(1.0 + np.max([np.abs(v) for v in np.broadcast_arrays(*values)], axis=0))


def _convexity(atom: MarginFunction, m: Floats, tol: float) -> Clauses:
    a, b = m[:, None], m[None, :]
    for t in (0.25, 0.5):
        chord = t * atom.value(a) + (1 - t) * atom.value(b)
        yield atom.value(t * a + (1 - t) * b) <= chord + tol * _scale(chord), "the value must be convex"


def _subgradient(atom: MarginFunction, m: Floats, tol: float) -> Clauses:
    (low, high), value = atom.subgradient(m), atom.value(m)
    yield low <= high + tol * _scale(low), "the interval of subgradients must have low <= high"
    for g in (low, high, 0.5 * (low + high)):
        below = value[:, None] + g[:, None] * (m[None, :] - m[:, None])
        yield below <= value + 10 * tol * _scale(below), "a subgradient must support the function from below"
    missing = list[Floats]()
    for step in (1e-6, 1e-8):
        left, right = (value - atom.value(m - step)) / step, (atom.value(m + step) - value) / step
        slack = 1e-10 / step * _scale(left, right, value)
        between = (low >= left - slack) & (high <= right + slack)
        yield between, "subgradients must lie between the one-sided slopes"
        missing.append(np.maximum(low - left, right - high))
    # secants converge slowly where the curvature is infinite, and not at all to a wrong slope
    reaching = (missing[0] <= 1e-4 * _scale(left, right)) | (missing[1] <= 0.7 * missing[0])
    yield reaching, "at a kink the interval must reach both one-sided slopes"


def _curvature(atom: MarginFunction, m: Floats, tol: float) -> Clauses:
    """Compare the curvature, if defined, with differences of the derivative away from breakpoints."""
    step = 1e-6
    m = m[[all(abs(x - b) > 2 * step for b in atom.facts.breakpoints) for x in m]]
    curvature = atom.curvature(m)
    if curvature is not None:
        bend = (atom.subgradient(m + step)[0] - atom.subgradient(m - step)[0]) / (2 * step)
        slack = (1e-1 if atom.facts.numeric else 1e-6) * _scale(bend)
        yield np.abs(curvature - bend) <= slack, "curvature must be the slope of the derivative"


def _conjugate(atom: MarginFunction, m: Floats, tol: float) -> Clauses:
    (low, high), value = atom.subgradient(m), atom.value(m)
    for u in (low, high, 0.5 * (low + high)):
        inside = np.isfinite(u)
        error = (np.abs(value + atom.conjugate(u) - u * m) / _scale(value, u * m))[inside]
        clause = "phi(m) + phi*(u) = u m must hold at a subgradient u (Fenchel-Young)"
        yield error <= 10 * tol, f"{clause}. Worst {error.max():.1e}"
        gap = value[None, :] + atom.conjugate(u)[:, None] - u[:, None] * m[None, :]
        slack = 10 * tol * _scale(u[inside, None] * m[None, :])
        yield gap[inside] >= -slack, "phi(m) + phi*(u) >= u m must hold everywhere"
    ends = np.array([atom.facts.slopes[0] - 0.1, atom.facts.slopes[1] + 0.1])
    outside = atom.conjugate(ends[np.isfinite(ends)])
    yield np.isposinf(outside), "the conjugate must be +inf outside facts.slopes"


def _prox(atom: MarginFunction, m: Floats, tol: float) -> Clauses:
    grid = np.linspace(-1.0, 1.0, 2001)
    for step in (0.1, 1.0, 5.0):
        z = atom.prox(m, step)
        best = step * atom.value(z) + 0.5 * (z - m) ** 2
        for radius in (10.0 * (1 + step), 0.1, 1e-4):
            others = z[:, None] + radius * grid
            values = step * atom.value(others) + 0.5 * (others - m[:, None]) ** 2
            least = values.min(axis=1) + 10 * tol * _scale(best)
            yield best <= least, f"prox must minimise step phi(z) + (z - m)^2 / 2. Step {step:g}"


def _expression(atom: MarginFunction | Regularizer, m: Floats, tol: float) -> Clauses:
    convex = atom.expression(cp.Variable(len(m))).is_convex()
    yield convex, "the cvxpy expression must be convex by cvxpy's rules"
    values = np.asarray(atom.expression(cp.Constant(m)).value, dtype=float)
    error = np.abs(values - atom.value(m)) / _scale(values)
    yield error <= tol, f"the cvxpy expression must equal the value. Worst {error.max():.1e}"


def _facts(atom: MarginFunction, m: Floats, tol: float) -> Clauses:
    facts, (low, high), values = atom.facts, atom.subgradient(m), atom.value(m)
    apart = np.abs(m[:, None] - m[None, :])
    yield abs(facts.at_zero - float(atom.value(0.0))) <= tol, "facts.at_zero must be the value at 0"
    inside = (low >= facts.slopes[0] - tol) & (high <= facts.slopes[1] + tol)
    yield inside, "facts.slopes must contain every subgradient"
    least = -float(atom.conjugate(0.0))
    attained = facts.minimum == least or abs(facts.minimum - least) <= 10 * tol
    yield attained, f"facts.minimum must be the infimum -phi*(0) = {least:g}"
    bounded = facts.minimum > -np.inf
    yield facts.surrogate_only != bounded, "facts.surrogate_only must be True where phi is unbounded below"
    yield set(facts.kinks) <= set(facts.breakpoints), "facts.breakpoints must include the kinks"
    if np.isfinite(facts.lipschitz):
        rise = np.abs(values[:, None] - values[None, :])
        yield rise <= (facts.lipschitz + tol) * apart + tol, "facts.lipschitz must bound the slope"
    if np.isfinite(facts.smoothness):
        rise = np.abs(low[:, None] - low[None, :])
        close = rise <= facts.smoothness * apart + tol * _scale(low)
        yield close, "facts.smoothness must bound the curvature"
        yield np.abs(high - low) <= tol * _scale(low), "a smooth function must have one derivative"
    if facts.kinks:
        below, above = atom.subgradient(np.array(facts.kinks))
        yield above > below, "facts.kinks must be points with more than one subgradient"
    if not facts.numeric:  # of these the kinks are not known
        wide = m[high - low > 1e-6 * _scale(low, high)]
        yield np.isin(wide, facts.kinks), "facts.kinks must list every point with several subgradients"
    if facts.quadratic is not None:
        a, q = facts.quadratic
        first, last = np.clip(facts.slopes, -5.0, 5.0)
        u = np.linspace(first, last, 11)
        error = np.abs(atom.conjugate(u) - a * u - 0.5 * q * u**2)
        yield error <= tol * _scale(u**2), "facts.quadratic must be the conjugate"


def check_regularizer(atom: Regularizer, *, d: int = 6, tol: float | None = None) -> None:
    """Check a regularizer against its contract.

    The function checks convexity, subgradients, conjugate, prox, cvxpy expression, parts, structure and free
    directions. It raises an AssertionError that names the violated condition.

    Parameters
    ----------
    atom : Regularizer
        A built-in regularizer or your own.
    d : int
        The length of the vectors to test with.
    tol : float, optional
        Allowed error; by default 1e-9, or 1e-6 for atoms with numerically derived parts.

    Examples
    --------
    >>> from nerm import L1
    >>> check_regularizer(L1())
    """
    atom.check(d)
    tol = (1e-6 if atom.at(d).numeric else 1e-9) if tol is None else tol
    parts = [_expression, _values_of_regularizer, _axes, _prox_of_regularizer]
    parts += [_dual_norm] if atom.is_norm(d) else []
    W = _test_vectors(d)
    clauses = chain.from_iterable(part(atom, w, tol) for w in W for part in parts)
    _hold(atom, chain(_free_directions(atom, W, tol), clauses))


def _test_vectors(d: int) -> list[Floats]:
    """Return test vectors of length d, some with zero or tied entries, where norms have kinks."""
    rng = np.random.default_rng(0)
    sparse = rng.normal(size=d) * (rng.random(d) < 0.5)
    tied = np.resize([2.0, -2.0, 1.0], d)
    axis = np.eye(d)[0] * 3.0
    half = np.concatenate([np.zeros(d // 2), rng.normal(size=d - d // 2)])
    spread = [scale * rng.normal(size=d) for scale in (0.1, 1.0, 1.0, 5.0)]
    return [np.zeros(d), sparse, tied, axis, -axis, half, *spread]


def _values_of_regularizer(atom: Regularizer, w: Floats, tol: float) -> Clauses:
    yield abs(atom.value(0 * w)) <= tol, "Omega(0) must be 0"
    value, q = atom.value(w), np.random.default_rng(1).normal(size=len(w))
    yield value >= -tol, "Omega must not be negative"
    yield value + atom.conjugate(q) >= w @ q - 10 * tol, "Omega(w) + Omega*(q) >= w.q must hold"
    parts = sum(share * part.value(w) for share, part in atom.parts(len(w)))
    yield abs(parts - value) <= tol * (1 + value), "the parts must add up"
    structure = atom.structure(len(w))
    same = structure is None or abs(structure.value(w) - value) <= tol * (1 + value)
    yield same, "the structure must add up to the value"


def _free_directions(atom: Regularizer, W: list[Floats], tol: float) -> Clauses:
    """Check that Omega is constant along `free`, and positive on simple vectors orthogonal to it."""
    d, rng = len(W[0]), np.random.default_rng(2)
    basis = atom.free(d)
    yield basis.shape[0] == d, "free must return vectors of length d"
    yield np.abs(basis.T @ basis - np.eye(basis.shape[1])) <= 1e-9, "free must return an orthonormal basis"
    for w in W:
        moved = atom.value(w + basis @ rng.normal(size=basis.shape[1]))
        close = abs(moved - atom.value(w)) <= 100 * tol * (1 + moved)
        yield close, "Omega must be constant along the directions of free"
    simple = np.vstack([np.eye(d), np.ones(d), np.diff(np.eye(d), axis=0), rng.normal(size=(d, d))])
    for w in simple - simple @ basis @ basis.T:
        holds = np.linalg.norm(w) <= 1e-6 or atom.value(w) > tol * np.linalg.norm(w)
        yield holds, "free must span every direction along which Omega is 0"


def _axes(atom: Regularizer, w: Floats, tol: float) -> Clauses:
    (low, high), value, step = atom.subgradient(w), atom.value(w), 1e-7
    for j, move in enumerate(step * np.eye(len(w))):
        right, left = (atom.value(w + move) - value) / step, (value - atom.value(w - move)) / step
        slack = 1e-5 * (1 + abs(right) + abs(left))
        close = abs(high[j] - right) <= slack and abs(low[j] - left) <= slack
        clause = "subgradient must give the one-sided derivatives along each axis"
        yield close, f"{clause}. Coordinate {j} of {w.tolist()}"


def _prox_of_regularizer(atom: Regularizer, w: Floats, tol: float) -> Clauses:
    """Check that the prox has the smallest cost among random points near it.

    Check also the Fenchel-Young equality at z = prox(w), where w - z is a subgradient.
    """

    def cost(z: Floats, step: float) -> float:
        return step * atom.value(z) + 0.5 * float((z - w) @ (z - w))

    rng = np.random.default_rng(3)
    for step in (0.3, 1.0, 4.0):
        z = atom.prox(w, step)
        moves = rng.normal(size=(60, len(w))) * (rng.random((60, len(w))) < 0.6)
        moves *= np.resize([1.0, 1e-2, 1e-4], 60)[:, None]
        best, least = cost(z, step), min(cost(z + move, step) for move in moves)
        clause = f"prox must minimise step Omega(z) + ||z - w||^2 / 2. Step {step:g}"
        yield best <= least + tol * (1 + best), clause
    z = atom.prox(w)
    gap = atom.value(z) + atom.conjugate(w - z) - z @ (w - z)
    yield abs(gap) <= 100 * tol, f"Omega(z) + Omega*(q) = z.q must hold at q = w - prox(w). Gap {gap:.1e}"


def _dual_norm(atom: Regularizer, w: Floats, tol: float) -> Clauses:
    value, others = atom.value(w), [z for z in _test_vectors(len(w)) if z.any()]
    size = atom.at(len(w)).dual_norm(w)
    ratio = max(float(w @ z) / atom.value(z) for z in others)
    yield ratio <= size + 10 * tol, "the dual norm must bound q.w / Omega(w)"
    outside = size == 0 or np.isinf(atom.conjugate(1.01 * w / size))
    yield outside, "the conjugate must be +inf outside the unit ball of the dual norm"
    yield abs(atom.value(2 * w) - 2 * value) <= tol * (1 + value), "a norm must be homogeneous"
