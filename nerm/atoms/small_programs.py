"""Small convex programs for regularizers without closed forms: prox, conjugate, the split of a sum.

Those of one function are compiled by cvxpy once for a length d, with Parameters for what changes, and solved
by Clarabel to the last digits it has. Their values are rounded *up* by more than what such a solve leaves
open: a certificate subtracts them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np

from nerm.atoms import cvx as cp
from nerm.atoms.regularizer import along_axes
from nerm.typing import Floats

Expression: TypeAlias = Callable[[Any], Any]

FINEST = 1e-12  # what Clarabel is asked for
# relative errors that are allowed for, by cvxpy's status
ERRORS = {"optimal": 1e-9, "optimal_inaccurate": 1e-6}
HALF_DIGITS = np.sqrt(np.finfo(float).eps)  # relative: above the error of a value or of a small program


class Derived:
    """What follows from the cvxpy expression of a convex h >= 0 with h(0) = 0, for vectors of length d.

    Where h is homogeneous (a norm, a seminorm, a gauge) its conjugate is the indicator of
    { q : q.w <= h(w) for all w }.
    """

    def __init__(self, expression: Expression, d: int) -> None:
        self.z, self.at, self.step = cp.Variable(d), cp.Parameter(d), cp.Parameter(nonneg=True)
        self.h = expression(self.z)

    def value(self, w: Floats) -> float:
        """Return h(w); nan outside its domain."""
        self.z.value = w
        with np.errstate(all="ignore"):
            value = self.h.value
        return np.nan if value is None else float(np.asarray(value).reshape(()))

    def slopes(self, w: Floats) -> tuple[Floats, Floats]:
        """Return the one-sided derivatives along the axes, by differences."""
        step = HALF_DIGITS * max(1.0, float(np.abs(w).max(initial=0.0)))
        here, moves = self.value(w), step * np.eye(len(w))
        low = np.array([(here - self.value(w - move)) / step for move in moves])
        return low, np.maximum(low, [(self.value(w + move) - here) / step for move in moves])

    @cached_property
    def homogeneous(self) -> bool:
        """Whether h(t w) = t h(w) for t > 0, at random points."""
        d = self.z.size
        pairs = zip(np.random.default_rng(d).normal(size=(8, d)), 10.0 ** np.arange(-3, 5), strict=True)
        values = [(self.value(t * w), t * self.value(w)) for w, t in pairs]
        return all(abs(a - b) <= 1e-9 * max(abs(a), abs(b)) for a, b in values)

    @cached_property
    def free(self) -> Floats:
        """An orthonormal basis of the directions that h does not punish.

        It is the orthogonal complement of the gradients at random points of all sizes.
        """
        d, gradients = self.z.size, []
        points = np.random.default_rng(d).normal(size=(d + 12, d))
        for self.z.value in points * np.resize([1e-2, 1.0, 1e2, 1e4], d + 12)[:, None]:
            try:
                gradients.append(np.asarray(self.h.grad[self.z].todense(), dtype=float).ravel())
            except Exception:  # cvxpy has no gradient of this expression: then none is known to be free
                return np.zeros((d, 0))
        lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
        _, values, vectors = np.linalg.svd(gradients / np.where(lengths > 0, lengths, 1.0))
        return along_axes(vectors[int((values > 1e-10 * max(values[0], 1e-300)).sum()) :].T)

    @cached_property
    def _programs(self) -> tuple[Any, Any, Any]:
        """The programs of the prox, the conjugate and the dual norm, whose first constraint is h <= 1."""
        z, at, h = self.z, self.at, self.h
        bound = [self.free.T @ z == 0] if self.free.shape[1] else []  # or z could wander for ever
        prox = cp.Problem(cp.Minimize(self.step * h + cp.sum_squares(z - at) / 2))
        conjugate = cp.Problem(cp.Maximize(at @ z - h), bound)
        return prox, conjugate, cp.Problem(cp.Maximize(at @ z), [h <= 1, *bound])

    def prox(self, w: Floats, step: float) -> Floats:
        """Return argmin_z  step h(z) + ||z - w||^2 / 2; the conjugate is finite at (w - prox) / step."""
        self.at.value, self.step.value = w, step
        share = w - _solution(self._programs[0], self.z)
        share = share - self.free @ (self.free.T @ share)
        if self.homogeneous:
            return w - self.finite_multiple(share / step) * share
        return w - share

    def conjugate(self, q: Floats) -> float:
        """Return sup_z q.z - h(z), or slightly more."""
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
        """Return the largest t in [0, 1] with h*(t q) finite, or slightly less, for a homogeneous h."""
        gauge = self._gauge(q)
        return 1.0 if gauge <= 1 else (1 - HALF_DIGITS) / gauge

    def _is_punished(self, q: Floats) -> bool:
        """Whether q has nothing but rounding in the free directions."""
        return bool(np.linalg.norm(self.free.T @ q) <= 1e-12 * np.linalg.norm(q))

    def _gauge(self, q: Floats) -> float:
        """Return sup { q.z : h(z) <= 1 } of a homogeneous h, or slightly more.

        The multiplier of h(z) <= 1 is this number too; the difference of the two is added.
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


@lru_cache(maxsize=64)
def derived(expression: Expression, d: int) -> Derived:
    """Return what follows from an expression for vectors of length d."""
    return Derived(expression, d)


def split(parts: list[tuple[float, Any]], q: Floats, mu: float | None = 0.0) -> list[Floats]:
    """Return shares of q: argmin sum_j weight_j h_j*(q_j / weight_j) + ||q - sum_j q_j||^2 / (2 mu).

    They are the multipliers of z_j = z in  min (mu/2) ||z||^2 - q.z + sum_j weight_j h_j(z_j). With mu None
    the sum must not exceed 1 instead: the shares add up to q, and norms are exceeded by all of them in the
    same proportion.
    """
    z = cp.Variable(len(q))
    copies = [cp.Variable(len(q)) for _ in parts]
    ties = [copy == z for copy in copies]
    terms = zip(parts, copies, strict=True)
    omega = cp.sum([weight * atom.expression(copy) for (weight, atom), copy in terms])
    if mu is None:
        problem = cp.Problem(cp.Minimize(-q @ z), [*ties, omega <= 1])
    else:
        problem = cp.Problem(cp.Minimize(mu / 2 * cp.sum_squares(z) - q @ z + omega), ties)
    _solution(problem, z)
    duals = [np.zeros_like(q) if tie.dual_value is None else tie.dual_value for tie in ties]
    return [np.nan_to_num(-np.asarray(dual, dtype=float)) for dual in duals]


def _solution(problem: cp.Problem, z: cp.Variable) -> Floats:
    """Solve and return z; zeros where there is none."""
    z.value = None  # with a value, cvxpy fails to compile some atoms
    names = ("tol_gap_abs", "tol_gap_rel", "tol_feas")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that a solution may be inaccurate is read from the status
        try:
            problem.solve(solver="CLARABEL", max_iter=200, **dict.fromkeys(names, FINEST))
        except cp.error.SolverError:
            return np.zeros(z.shape)
    return np.zeros(z.shape) if z.value is None else np.asarray(z.value, dtype=float)


def _slack(problem: cp.Problem) -> float:
    """Return the relative error that the last solve may have left; infinite where it gave no value."""
    return ERRORS.get(str(problem.status), np.inf)


def model_minimum(
    model: tuple[Floats, Floats, Floats],
    factors: Floats,
    sides: Floats,
    parts: list[tuple[float, Any]],
    coef: Floats,
    intercept: bool,
) -> tuple[Floats, Floats]:
    """Return the step (d + 1,) that minimises a second-order model, and the theta of each term of two sides.

    The model has the value, the gradient (d + 1,) and the Hessian of every block at (w, b).

    ::

        sum_j factor_j q_j(step) + sum_k factor_k max(q_k^+, q_k^-)(step) + sum weight Omega(w + step_w)
        q(step) = value + gradient.step + 1/2 step' Hessian step
    """
    d = len(coef)
    step, total, larger = cp.Variable(d + 1), 0, []
    values, gradients, hessians = model

    def quadratic(value: float, gradient: Floats, hessian: Floats) -> Any:
        roots, vectors = np.linalg.eigh(hessian)
        root = np.sqrt(np.clip(roots, 0.0, None))[:, None] * vectors.T
        return value + gradient @ step + 0.5 * cp.sum_squares(root @ step)

    alone = np.flatnonzero(sides == 0)
    if len(alone):
        _, gradient, hessian = (np.tensordot(factors[alone], part[alone], 1) for part in model)
        total += quadratic(0.0, gradient, hessian)
    for j in np.flatnonzero(sides == 1).tolist():
        top, level = cp.Variable(), values[j : j + 2].max()
        larger.append([top >= quadratic(values[i] - level, gradients[i], hessians[i]) for i in (j, j + 1)])
        total += factors[j] * top
    total += sum(weight * atom.expression(coef + step[:d]) for weight, atom in parts)
    fixed = [] if intercept else [step[d] == 0]
    found = _solution(cp.Problem(cp.Minimize(total), [*fixed, *(c for pair in larger for c in pair)]), step)
    return found, np.array([dual_share(*pair) for pair in larger])


def dual_share(plus: cp.Constraint, minus: cp.Constraint) -> float:
    """Return the share of the first of two scalar inequalities in their multipliers; 1/2 where both are 0."""
    duals = [np.nan_to_num(np.asarray(0.0 if c.dual_value is None else c.dual_value)) for c in (plus, minus)]
    one, other = (max(0.0, float(dual.sum())) for dual in duals)
    return one / (one + other) if one + other > 0 else 0.5
