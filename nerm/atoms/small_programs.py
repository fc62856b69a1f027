"""Small convex programs for regularizers without closed forms: prox, conjugate, the split of a sum.

Each is compiled by cvxpy once for a length d, with Parameters for what changes, and solved by Clarabel to the
last digits it has. Their values are rounded *up* by more than what such a solve leaves open: a certificate
subtracts them.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nerm.atoms import cvx as cp
from nerm.typing import Floats

Expression: TypeAlias = Callable[[Any], Any]

FINEST = 1e-12  # what Clarabel is asked for
CLOSE = 1e-3  # a shorter step of a second-order model is computed again, in this unit
# relative errors that are allowed for, by cvxpy's status
ERRORS = {"optimal": 1e-9, "optimal_inaccurate": 1e-6}


def value_at(expression: Expression, w: Floats) -> float:
    """Return the number of a cvxpy expression at w; nan outside its domain."""
    made, variable = _written(expression, len(w))
    variable.value = w
    with np.errstate(all="ignore"):
        value = made.value
    return np.nan if value is None else float(np.asarray(value).reshape(()))


def gradient_at(expression: Expression, w: Floats) -> Floats:
    """Return a subgradient of a cvxpy expression at w, by the rules of calculus."""
    made, variable = _written(expression, len(w))
    variable.value = w
    return np.asarray(made.grad[variable].todense(), dtype=float).ravel()


def kind(expression: Expression, d: int) -> tuple[str, tuple[int, ...]]:
    """Return the curvature of a cvxpy expression of d numbers, in cvxpy's words, and its shape."""
    made, _ = _written(expression, d)
    return str(made.curvature), tuple(made.shape)


def prox(expression: Expression, w: Floats, step: float) -> Floats:
    """Return argmin_z  step h(z) + ||z - w||^2 / 2."""
    problem, z, (at, weight) = _prox_program(expression, len(w))
    at.value, weight.value = w, step
    return _solution(problem, z)


def dual_norm(expression: Expression, free: Floats, q: Floats) -> float:
    """Return sup { q.z : h(z) <= 1 } of a homogeneous h, or slightly more.

    q is orthogonal to the free directions of h. The multiplier of h(z) <= 1 is this number too; the
    difference of the two is added.
    """
    problem, z, at, ball = _norm_program(expression, len(q), free.tobytes())
    size = float(np.linalg.norm(q))
    at.value = q / size
    found, slack = _solution(problem, z), _slack(problem)
    if slack == np.inf:
        return np.inf
    top = float(np.asarray(ball.dual_value).reshape(()))
    below = float(at.value @ found) / max(value_at(expression, found), np.finfo(float).tiny)
    return size * (max(top, below) + abs(top - below)) * (1 + slack)


def conjugate(expression: Expression, free: Floats, q: Floats) -> float:
    """Return sup_z q.z - h(z), or slightly more, for q orthogonal to the free directions."""
    problem, z, at = _conjugate_program(expression, len(q), free.tobytes())
    at.value = q
    found, slack = _solution(problem, z), _slack(problem)
    if slack == np.inf:
        return np.inf
    reached, linear = max(0.0, float(q @ found) - value_at(expression, found)), abs(float(q @ found))
    return reached + slack * (1 + linear)


def split(parts: list[tuple[float, Any]], q: Floats, mu: float | None = 0.0) -> list[Floats]:
    """Return shares of q: argmin sum_j weight_j h_j*(q_j / weight_j) + ||q - sum_j q_j||^2 / (2 mu).

    They are the multipliers of z_j = z in  min (mu/2) ||z||^2 - q.z + sum_j weight_j h_j(z_j). With mu None
    the sum must not exceed 1 instead: the shares add up to q, and norms are exceeded by all of them in the
    same proportion.
    """
    z = cp.Variable(len(q))
    copies = [cp.Variable(len(q)) for _ in parts]
    ties = [copy == z for copy in copies]
    omega = cp.sum(
        [weight * atom.expression(copy) for (weight, atom), copy in zip(parts, copies, strict=True)]
    )
    if mu is None:
        problem = cp.Problem(cp.Minimize(-q @ z), [*ties, omega <= 1])
    else:
        problem = cp.Problem(cp.Minimize(mu / 2 * cp.sum_squares(z) - q @ z + omega), ties)
    _solution(problem, z)
    zero = np.zeros_like(q)
    return [
        zero if tie.dual_value is None else np.nan_to_num(-np.asarray(tie.dual_value, dtype=float))
        for tie in ties
    ]


@lru_cache(maxsize=64)
def _written(expression: Expression, d: int) -> tuple[cp.Expression, cp.Variable]:
    z = cp.Variable(d)
    return expression(z), z


@lru_cache(maxsize=64)
def _prox_program(expression: Expression, d: int) -> tuple[cp.Problem, cp.Variable, tuple[cp.Parameter, ...]]:
    z, at, weight = cp.Variable(d), cp.Parameter(d), cp.Parameter(nonneg=True)
    return cp.Problem(cp.Minimize(weight * expression(z) + cp.sum_squares(z - at) / 2)), z, (at, weight)


@lru_cache(maxsize=64)
def _norm_program(expression: Expression, d: int, free: bytes) -> tuple[Any, ...]:
    z, at = cp.Variable(d), cp.Parameter(d)
    ball = expression(z) <= 1
    return cp.Problem(cp.Maximize(at @ z), [ball, *_bound(z, free)]), z, at, ball


@lru_cache(maxsize=64)
def _conjugate_program(expression: Expression, d: int, free: bytes) -> tuple[Any, ...]:
    z, at = cp.Variable(d), cp.Parameter(d)
    return cp.Problem(cp.Maximize(at @ z - expression(z)), _bound(z, free)), z, at


def _bound(z: cp.Variable, free: bytes) -> list[cp.Constraint]:
    """Return that z has nothing of the free directions, in which it could wander for ever."""
    directions = np.frombuffer(free).reshape(z.shape[0], -1)
    return [directions.T @ z == 0] if directions.shape[1] else []


def _solution(problem: cp.Problem, z: cp.Variable) -> Floats:
    """Solve and return z; zeros where there is none."""
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


class QuadraticModel(NamedTuple):
    """The second-order model around (w, b): value, gradient (d + 1,) and Hessian of every block."""

    values: Floats
    gradients: Floats
    hessians: Floats


def model_minimum(
    model: QuadraticModel,
    factors: Floats,
    sides: Floats,
    parts: list[tuple[float, Any]],
    coef: Floats,
    intercept: bool,
    unit: float = 1.0,
) -> tuple[Floats, Floats]:
    """Return the step (d + 1,) that minimises a second-order model, and the theta of each term of two sides.

    ::

        sum_j factor_j q_j(step) + sum_k factor_k max(q_k^+, q_k^-)(step) + sum weight Omega(w + step_w)
        q(step) = value + gradient.step + 1/2 step' Hessian step

    The step is computed in a unit of length: the gain of a short step is small beside the values.
    """
    d = len(coef)
    step, total, larger = cp.Variable(d + 1), 0, []

    def quadratic(value: float, gradient: Floats, hessian: Floats) -> Any:
        roots, vectors = np.linalg.eigh(hessian)
        root = np.sqrt(unit * np.clip(roots, 0.0, None))[:, None] * vectors.T
        return value / unit + gradient @ step + 0.5 * cp.sum_squares(root @ step)

    alone = np.flatnonzero(sides == 0)
    if len(alone):
        _, gradient, hessian = (np.tensordot(factors[alone], part[alone], 1) for part in model)
        total += quadratic(0.0, gradient, hessian)
    for j in np.flatnonzero(sides == 1).tolist():
        top, level = cp.Variable(), model.values[j : j + 2].max()
        pair = [
            top >= quadratic(model.values[i] - level, model.gradients[i], model.hessians[i])
            for i in (j, j + 1)
        ]
        larger.append(pair)
        total += factors[j] * top
    total += sum(weight / unit * atom.expression(coef + unit * step[:d]) for weight, atom in parts)
    fixed = [] if intercept else [step[d] == 0]
    found = _solution(cp.Problem(cp.Minimize(total), [*fixed, *(c for pair in larger for c in pair)]), step)
    if unit > CLOSE and np.abs(found).max() < CLOSE:
        return model_minimum(model, factors, sides, parts, coef, intercept, CLOSE)
    return unit * found, np.array([dual_share(*pair) for pair in larger])


def dual_share(plus: cp.Constraint, minus: cp.Constraint) -> float:
    """Return the share of the first of two scalar inequalities in their multipliers; 1/2 where both are 0."""
    duals = [np.nan_to_num(np.asarray(0.0 if c.dual_value is None else c.dual_value)) for c in (plus, minus)]
    one, other = (max(0.0, float(dual.sum())) for dual in duals)
    return one / (one + other) if one + other > 0 else 0.5
