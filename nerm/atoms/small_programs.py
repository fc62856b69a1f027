"""Small convex programs for regularizers without closed forms: prox, conjugate, and conjugate of a sum.

cvxpy compiles the programs of a function once per length d, with Parameters for the changing data; Clarabel
solves them to its finest tolerance. A certificate subtracts their values, so the values are rounded *up* by
more than the error of a solve.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from nerm.atoms import cvx as cp
from nerm.atoms.regularizer import along_axes
from nerm.typing import Floats

Expression: TypeAlias = Callable[[Any], Any]

FINEST = 1e-12  # the tolerance for Clarabel
# assumed bounds on the relative error of a solve, by cvxpy's status
ERRORS = {"optimal": 1e-9, "optimal_inaccurate": 1e-6}
HALF_DIGITS = np.sqrt(np.finfo(float).eps)  # larger than the relative error of a value or of a small program


class Derived:
    """Value, prox and conjugate of a convex h >= 0 with h(0) = 0, derived from its cvxpy expression.

    The argument of h has length d. If h is positively homogeneous (a norm, a seminorm, a gauge), its
    conjugate is the indicator of { q : q.w <= h(w) for all w }.
    """

    numeric = True

    def __init__(self, expression: Expression, d: int) -> None:
        self.z, self.at, self.step = cp.Variable(d), cp.Parameter(d), cp.Parameter(nonneg=True)
        self.h = expression(self.z)

    def value(self, w: Floats) -> float:
        """Return h(w), or nan if w is outside the domain of h."""
        self.z.value = w
        with np.errstate(all="ignore"):
            value = self.h.value
        return np.nan if value is None else float(np.asarray(value).reshape(()))

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return (low, high), both (d,): one-sided derivatives along the coordinate axes, by differences."""
        step = HALF_DIGITS * max(1.0, float(np.abs(w).max(initial=0.0)))
        here, moves = self.value(w), step * np.eye(len(w))
        low = np.array([(here - self.value(w - move)) / step for move in moves])
        return low, np.maximum(low, [(self.value(w + move) - here) / step for move in moves])

    @cached_property
    def homogeneous(self) -> bool:
        """Whether h(t w) = t h(w) for t > 0, tested at random points."""
        d = self.z.size
        pairs = zip(np.random.default_rng(d).normal(size=(8, d)), 10.0 ** np.arange(-3, 5), strict=True)
        values = [(self.value(t * w), t * self.value(w)) for w, t in pairs]
        return all(abs(a - b) <= 1e-9 * max(abs(a), abs(b)) for a, b in values)

    @cached_property
    def free(self) -> Floats:
        """An orthonormal basis, (d, k), of the directions along which h is constant.

        It spans the orthogonal complement of the gradients of h at random points of different norms.
        """
        d, gradients = self.z.size, []
        points = np.random.default_rng(d).normal(size=(d + 12, d))
        for self.z.value in points * np.resize([1e-2, 1.0, 1e2, 1e4], d + 12)[:, None]:
            try:
                gradients.append(np.asarray(self.h.grad[self.z].todense(), dtype=float).ravel())
            except Exception:  # cvxpy has no gradient for this expression: no free direction is known
                return np.zeros((d, 0))
        lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
        _, values, vectors = np.linalg.svd(gradients / np.where(lengths > 0, lengths, 1.0))
        return along_axes(vectors[int((values > 1e-10 * max(values[0], 1e-300)).sum()) :].T)

    @cached_property
    def _programs(self) -> tuple[Any, Any, Any]:
        """The cvxpy problems of the prox, the conjugate and the dual norm.

        The first constraint of the dual-norm problem is h <= 1; `_gauge` reads its multiplier.
        """
        z, at, h = self.z, self.at, self.h
        bound = [self.free.T @ z == 0] if self.free.shape[1] else []  # else the maximizer is not bounded
        prox = cp.Problem(cp.Minimize(self.step * h + cp.sum_squares(z - at) / 2))
        conjugate = cp.Problem(cp.Maximize(at @ z - h), bound)
        return prox, conjugate, cp.Problem(cp.Maximize(at @ z), [h <= 1, *bound])

    def prox(self, w: Floats, step: float) -> Floats:
        """Return argmin_z  step h(z) + ||z - w||^2 / 2, (d,).

        The result is corrected for solver errors so that the conjugate is finite at (w - prox) / step.
        """
        self.at.value, self.step.value = w, step
        share = w - _solution(self._programs[0], self.z)
        share = share - self.free @ (self.free.T @ share)
        if self.homogeneous:
            return w - self.finite_multiple(share / step) * share
        return w - share

    def conjugate(self, q: Floats) -> float:
        """Return h*(q) = sup_z q.z - h(z), or slightly more."""
        if self.homogeneous:
            return 0.0 if self._gauge(q) <= 1.0 + 1e-12 else np.inf
        if not self._is_punished(q):
            return np.inf
        program = self._programs[1]
        self.at.value = q - self.free @ (self.free.T @ q)
        found = _solution(program, self.z)
        linear = float(self.at.value @ found)
        return max(0.0, linear - self.value(found)) + _slack(program) * (1 + abs(linear))

    def finite_multiple(self, q: Floats) -> float:
        """Return a number t in [0, 1] with h*(t q) finite.

        It is the largest, or slightly less, if h is homogeneous. Else try 1,
        numbers close to 1, then 1/2, 1/4, ... and return the first with a finite conjugate, or 0.
        """
        if self.homogeneous:
            gauge = self._gauge(q)
            return 1.0 if gauge <= 1 else (1 - HALF_DIGITS) / gauge
        tried = (*(1 - 10.0**-k for k in (20, 12, 9, 6, 3)), *(0.5**k for k in range(1, 40)))
        return next((t for t in tried if np.isfinite(self.conjugate(t * q))), 0.0)

    def _is_punished(self, q: Floats) -> bool:
        """Whether q is orthogonal to the free directions, up to rounding, as h*(q) < inf requires."""
        return bool(np.linalg.norm(self.free.T @ q) <= 1e-12 * np.linalg.norm(q))

    def _gauge(self, q: Floats) -> float:
        """Return sup { q.z : h(z) <= 1 } or slightly more; h must be homogeneous.

        The multiplier of h(z) <= 1 equals this supremum. The difference between the two computed values is
        added to the result, because it estimates the error of the solve.
        """
        size = float(np.linalg.norm(q))
        if not self._is_punished(q) or size == 0:
            return np.inf if size else 0.0
        program = self._programs[2]
        self.at.value = (q - self.free @ (self.free.T @ q)) / size
        found = _solution(program, self.z)
        if _slack(program) == np.inf:
            return np.inf
        top = float(np.asarray(program.constraints[0].dual_value).reshape(()))
        below = float(self.at.value @ found) / max(self.value(found), np.finfo(float).tiny)
        return size * (max(top, below) + abs(top - below)) * (1 + _slack(program))


def split(parts: list[tuple[float, Any]], q: Floats, mu: float = 0.0) -> list[Floats]:
    """Split q into one vector q_j, (d,), per regularizer h_j, to evaluate the conjugate of their sum.

    `parts` are the pairs (weight_j, h_j). The vectors minimize sum_j weight_j h_j*(q_j / weight_j) + ||q -
    sum_j q_j||^2 / (2 mu). They are the multipliers of z_j = z in min (mu/2) ||z||^2 - q.z + sum_j weight_j
    h_j(z_j).
    """
    z = cp.Variable(len(q))
    copies = [cp.Variable(len(q)) for _ in parts]
    ties = [copy == z for copy in copies]
    terms = zip(parts, copies, strict=True)
    omega = cp.sum([weight * atom.expression(copy) for (weight, atom), copy in terms])
    problem = cp.Problem(cp.Minimize(mu / 2 * cp.sum_squares(z) - q @ z + omega), ties)
    _solution(problem, z)
    duals = [np.zeros_like(q) if tie.dual_value is None else tie.dual_value for tie in ties]
    return [np.nan_to_num(-np.asarray(dual, dtype=float)) for dual in duals]


def _solution(problem: cp.Problem, z: cp.Variable) -> Floats:
    """Solve the problem and return the value of z, or zeros if the solver returns none."""
    z.value = None  # cvxpy fails to compile some atoms if z has a value
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `_slack` reads from the status whether a solution is inaccurate
        try:
            problem.solve(solver="CLARABEL", max_iter=200, **dict.fromkeys(names, FINEST))
        except cp.error.SolverError:
            return np.zeros(z.shape)
    return np.zeros(z.shape) if z.value is None else np.asarray(z.value, dtype=float)


def _slack(problem: cp.Problem) -> float:
    """Return the assumed relative error of the latest solve; infinite if the solve failed."""
    return ERRORS.get(str(problem.status), np.inf)


def model_minimum(
    model: tuple[Floats, Floats, Floats],
    factors: Floats,
    sides: Floats,
    parts: list[tuple[float, Any]],
    coef: Floats,
    intercept: bool,
    unit: float = 1.0,
) -> tuple[Floats, Floats]:
    """Minimise a second-order model of the objective around (w, b) = (`coef`, b).

    `model` holds the value, the gradient, (d + 1,), and the Hessian of each block; `factors` and `sides` hold
    the weight and the side (0, 1 or -1) of each block; `parts` are the weighted regularizers, and `unit` is
    the scale of the scores. Return the step, (d + 1,), and theta, the weight of C+, of each two-sided term.

    ::

        sum_j factor_j q_j(step) + sum_k factor_k max(q_k^+, q_k^-)(step) + sum weight Omega(w + step_w)
        q(step) = value + gradient.step + 1/2 step' Hessian step
    """
    d = len(coef)
    share, total, larger = cp.Variable(d + 1), 0, []
    step = unit * share
    values, gradients, hessians = model
    size = 1.0 if unit == 1.0 else float(np.abs(factors) @ np.abs(values)) or 1.0

    def quadratic(value: float, gradient: Floats, hessian: Floats) -> Any:
        roots, vectors = np.linalg.eigh(hessian)
        root = np.sqrt(np.clip(roots, 0.0, None))[:, None] * vectors.T
        return value + gradient @ step + 0.5 * cp.sum_squares(root @ step)

    alone = np.flatnonzero(sides == 0)
    if len(alone):
        _, gradient, hessian = (np.tensordot(factors[alone], part[alone], 1) for part in model)
        total += quadratic(0.0, gradient, hessian)
    for j in np.flatnonzero(sides == 1).tolist():
        top, level = size * cp.Variable(), values[j : j + 2].max()
        larger.append([top >= quadratic(values[i] - level, gradients[i], hessians[i]) for i in (j, j + 1)])
        total += factors[j] * top
    total += sum(weight * atom.expression(coef + step[:d]) for weight, atom in parts)
    fixed = [] if intercept else [step[d] == 0]
    constraints = [*fixed, *(c for pair in larger for c in pair)]
    found = unit * _solution(cp.Problem(cp.Minimize(total / size), constraints), share)
    return found, np.array([dual_share(*pair) for pair in larger])


def dual_share(plus: cp.Constraint, minus: cp.Constraint) -> float:
    """Return plus / (plus + minus) for the multipliers of two scalar inequalities; 1/2 if both are 0."""
    one, other = dual_number(plus), dual_number(minus)
    return one / (one + other) if one + other > 0 else 0.5


def dual_number(constraint: cp.Constraint) -> float:
    """Return the multiplier of a scalar inequality, at least 0; 0 if there is none."""
    return max(0.0, float(np.nan_to_num(np.array(constraint.dual_value, dtype=float)).sum()))
