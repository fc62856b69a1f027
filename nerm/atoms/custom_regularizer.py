"""Regularizers defined by the user: a cvxpy expression, read as squares and norms of linear maps of w.

Regularizers without closed forms have a prox, a conjugate and a conjugate of a sum by small convex programs.
cvxpy compiles the programs of a function once per length d, with Parameters for the changing data; Clarabel
solves them to its finest tolerance. A certificate subtracts their values, so the values are rounded *up* by
more than the error of a solve.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse as sp

from nerm.atoms import cvx as cp
from nerm.atoms.formula import as_text, kind, number, require, tree_of, values_of
from nerm.atoms.functions import NoRuleError
from nerm.atoms.regularizer import Norms, Regularizer, Structure, along_axes
from nerm.errors import InvalidInputError
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
        return float(values_of(self.h, self.z, w).reshape(()))

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
        """Whether q is orthogonal to the free directions, up to rounding.

        h*(q) < inf requires this.
        """
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
    """Return the assumed relative error of the latest solve; infinity if it failed."""
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


@dataclass(frozen=True)
class CustomRegularizer(Regularizer):
    """A regularizer made by `regularizer`. It prints as this call, with the formula for 6 coefficients.

    Examples
    --------
    >>> import cvxpy as cp
    >>> variation = regularizer(lambda w: cp.tv(w), name="tv")
    >>> variation.value(np.array([1.0, 1.0, 4.0])), variation.structure(3).norms[0].weights.tolist()
    (3.0, [1.0, 1.0])
    >>> abs(variation.free(4).T @ [0.5, 0.5, 0.5, 0.5]).round(6).tolist()  # constants cost nothing
    [1.0]
    """

    label: str
    cvxpy_expression: Expression

    def __repr__(self) -> str:
        with suppress(Exception):  # the expression does not accept 6 coefficients
            text = as_text(self.cvxpy_expression, cp.Variable(6, name="w"))
            return f"regularizer({text}, name={self.label!r})"
        return f"regularizer(name={self.label!r})"

    def expression(self, w: Any) -> Any:
        """Return Omega of a cvxpy vector."""
        return self.cvxpy_expression(w)

    def structure(self, d: int) -> Structure | None:
        """Return Omega of d coefficients as squares and norms, or None if a part of it has no rule."""
        return read(self.cvxpy_expression, d)

    def check(self, d: int) -> None:
        """Raise an error if the expression is not a regularizer of d coefficients."""
        z = cp.Variable(d)
        do = "Use cvxpy functions inside it, for instance lambda w: cp.norm1(w)"
        tree = tree_of(self.expression, z, self.label, f"vector of length {d}", do)
        do = "Rewrite it with cvxpy's convex functions (cp.norm1, cp.sum_squares, cp.tv …)"
        got = f"an expression of curvature {tree.curvature}"
        require(tree.is_convex(), self.label, "be convex by cvxpy's rules", got, do)
        do = "Sum over it, or take a norm"
        require(tree.size == 1, self.label, "be a single number", f"shape {tree.shape}", do)
        rng = np.random.default_rng(0)
        points = [np.zeros(d), *(size * rng.normal(size=d) for size in (1e-2, 1.0, 1.0, 1e2))]
        values = np.concatenate([np.ravel(values_of(tree, z, w)) for w in points])
        holds = (np.isfinite(values) & (values >= -1e-9) & (abs(values[0]) <= 1e-9)).all()
        got = f"{values[0]:g} at 0, and {values[1:].tolist()} at random points"
        must = "be 0 at w = 0 and nowhere negative or infinite"
        require(holds, self.label, must, got, "Add or drop a constant")

    def formula(self, mean: str = "mean", latex: bool = False) -> str:
        """Return the name and w as text or LaTeX."""
        return rf"\operatorname{{{self.label}}}(w)" if latex else f"{self.label}(w)"


def regularizer(expression: Expression, *, name: str = "Omega") -> Regularizer:
    """Make a regularizer from one cvxpy expression.

    nerm's own interior-point solver supports weighted sums of l1, l2 and l-infinity norms and of squares of
    linear functions of w. A solver of cvxpy solves all other expressions.

    Parameters
    ----------
    expression : callable
        Maps a cvxpy vector w to Omega(w), a scalar expression. It must be convex by cvxpy's rules, with
        Omega(w) >= 0 and Omega(0) = 0.
    name : str
        The name in formulas and error messages.

    Returns
    -------
    Regularizer
        The expression is checked at once for d = 6, if it accepts that length, and for the number of columns
        when it is bound to data.

    Examples
    --------
    A fused lasso:

    >>> import cvxpy as cp, nerm
    >>> X, y = [[1.0, 0.9, 0.0], [0.2, 1.0, 1.0], [-1.0, 0.1, 0.3], [-0.3, -1.0, -1.0]], [1, 1, -1, -1]
    >>> fused = nerm.regularizer(lambda w: cp.tv(w) + 0.5 * cp.norm1(w), name="fused")
    >>> print(nerm.Risk(nerm.Hinge()) + 0.1 * fused)
    minimise mean hinge(y f) + 0.1 fused(w)
    >>> solution = (nerm.Risk(nerm.Hinge()) + 0.1 * fused).on(X, y).solve()
    >>> str(solution.status), solution.stats.solver
    ('optimal', 'interior-point')
    """
    atom = CustomRegularizer(str(name), expression)
    if not callable(expression):
        must = f"'expression' of {atom.label!r} must be a function of a cvxpy vector"
        raise InvalidInputError(must, repr(expression), "Pass lambda w: cp.norm1(w), for instance")
    try:
        expression(cp.Variable(6))
    except Exception:  # the expression does not accept d = 6: it is checked when d is known
        return atom
    atom.check(6)
    return atom


# ---- the structure of an expression


@lru_cache(maxsize=64)
def read(expression: Expression, d: int) -> Structure | None:
    """Return the structure of a cvxpy expression of d coefficients, or None if a part of it has no rule."""
    w = cp.Variable(d)
    try:
        tree = expression(w)
        terms = _terms(tree, np.ones(()), w)
    except NoRuleError:
        return None
    quadratic, norms = sp.csr_array((d, d)), list[Norms]()
    for order, size in sorted({(t.order, t.groups.shape[1]) for t in terms}):
        same = [t for t in terms if (t.order, t.groups.shape[1]) == (order, size)]
        weights = np.concatenate([t.weights for t in same])
        matrix = sp.vstack([t.matrix for t in same]).tocsr()[np.repeat(weights > 0, size)]
        weights = weights[weights > 0]
        if order == 0:
            quadratic = quadratic + matrix.T @ sp.diags_array(np.repeat(weights, size)) @ matrix
        elif len(weights):
            norms.append(_plain(_in_order(order, weights, matrix)))
    mu = float(quadratic.diagonal().min(initial=np.inf))
    if abs(quadratic - mu * sp.eye_array(d)).max() <= 1e-15 * mu:
        found = Structure(mu, tuple(norms))
    else:
        found = Structure(0.0, tuple(norms), quadratic)
    point = np.random.default_rng(0).normal(size=d)
    return found if np.isclose(found.value(point), float(values_of(tree, w, point)), rtol=1e-9) else None


def _in_order(order: float, weights: Floats, matrix: Any) -> Norms:
    """Return norms of consecutive rows of a linear map, all of the same number of rows.

    If `order` is 0, return half squares of these vectors. `weights` has one entry per norm, (G,).
    """
    return Norms(order, weights, np.arange(matrix.shape[0]).reshape(len(weights), -1), matrix)


def _plain(norms: Norms) -> Norms:
    """Remove the linear map of norms where it only selects and scales coefficients.

    If each row of the map is a multiple of one coefficient, and the factors in a group are equal, the factors
    become part of the weights. Other norms are returned unchanged.
    """
    matrix, shape = norms.matrix, norms.groups.shape
    matrix.eliminate_zeros()
    factors, columns = np.abs(matrix.data), matrix.indices
    alone = np.all(np.diff(matrix.indptr) == 1) and len(np.unique(columns)) == len(columns)
    if not alone or np.ptp(factors.reshape(shape), axis=1).any():
        return norms
    return Norms(norms.order, norms.weights * factors.reshape(shape)[:, 0], columns.reshape(shape))


def _terms(node: Any, weights: Floats, w: Any) -> list[Norms]:
    """Return the terms of the sum over the entries of a node, each times its weight.

    `weights` >= 0 has the shape of the node.
    """
    if kind(node) not in RULES or weights.shape != node.shape or weights.min() < 0:
        raise NoRuleError
    return RULES[kind(node)](node, weights, w)


def _linear(node: Any, w: Any) -> Any:
    """Return the matrix of a linear function of w, (entries, d)."""
    w.value = np.zeros(w.shape)
    if not node.is_affine() or np.any(node.value):
        raise NoRuleError
    return sp.csr_array(node.grad[w].T)


def _sum(node: Any, weights: Floats, w: Any) -> list[Norms]:
    """Return the terms of a weighted sum over all entries."""
    if node.axis is not None:
        raise NoRuleError
    return _terms(node.args[0], np.full(node.args[0].shape, weights), w)


def _absolute_sum(node: Any, weights: Floats, w: Any) -> list[Norms]:
    """Return the terms of a weighted sum of absolute values.

    Other arguments than linear ones are not negative, so the absolute value changes nothing.
    """
    return _sum(cp.sum(cp.abs(node.args[0]), node.axis) if node.args[0].is_affine() else node, weights, w)


def _lengths(inner: Any, weights: Floats, w: Any, order: float, axis: int | None = None) -> list[Norms]:
    """Return one norm (or half square, if `order` is 0) per entry of `weights`.

    The entries of the linear function `inner` are divided among the norms: along the axis `axis`, or, without
    an axis, in equal consecutive parts.
    """
    if order not in (0, 2, np.inf):
        raise NoRuleError
    rows = np.arange(inner.size).reshape(inner.shape, order="F")
    rows = rows if axis is None else np.moveaxis(rows, axis, -1)
    return [_in_order(order, weights.ravel(), _linear(inner, w)[rows.ravel()])]


def _power(node: Any, weights: Floats, w: Any) -> list[Norms]:
    inner = node.args[0]
    if number(node.p) != 2:
        raise NoRuleError
    if inner.is_affine():
        return _lengths(inner, 2 * weights, w, 0)
    norms = _terms(inner, np.ones(inner.shape), w)  # the square of one Euclidean norm
    if len(norms) != 1 or len(norms[0].weights) != 1 or norms[0].order != 2:
        raise NoRuleError
    return [norms[0]._replace(order=0, weights=2 * weights.ravel() * norms[0].weights ** 2)]


def _product(node: Any, weights: Floats, w: Any) -> list[Norms]:
    """Return the terms of a product with a number, with one number per entry, or with a vector."""
    first, second = sorted(node.args, key=lambda factor: not factor.is_constant())
    if not first.is_constant() or (type(node).__name__ == "MulExpression" and first.ndim > 1):
        raise NoRuleError
    return _terms(second, np.asarray(weights * np.asarray(first.value, dtype=float)), w)


def _form(node: Any, weights: Floats, w: Any) -> list[Norms]:
    """Return the quadratic form x'Px as a square: P = R'R."""
    P = node.args[1].value
    values, vectors = np.linalg.eigh(P.toarray() if sp.issparse(P) else P)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return [_in_order(0, 2 * weights.ravel(), sp.csr_array(root @ _linear(node.args[0], w)))]


#: How the sum of the entries of each cvxpy atom, by its `kind`, makes norms and squares.
RULES: dict[str, Callable[[Any, Floats, Any], list[Norms]]] = {
    "addexpression": lambda node, weights, w: [t for part in node.args for t in _terms(part, weights, w)],
    "multiply": _product,
    "mulexpression": _product,
    "divexpression": lambda node, weights, w: _terms(node.args[0], weights / node.args[1].value, w),
    "sum": _sum,
    "abs": lambda node, weights, w: _lengths(node.args[0], weights, w, 2),
    "norm1": _absolute_sum,
    "norm_inf": lambda node, weights, w: _lengths(node.args[0], weights, w, np.inf, node.axis),
    "pnorm": lambda node, weights, w: _lengths(node.args[0], weights, w, float(node.p), node.axis),
    "power": _power,
    "quad_over_lin": lambda node, weights, w: _lengths(node.args[0], 2 * weights / node.args[1].value, w, 0),
    "quadform": _form,
}
