"""Regularizers defined by the user: a cvxpy expression, read as squares and norms of linear maps of w."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from nerm.atoms import cvx as cp
from nerm.atoms.formula import as_text, kind, number, require, tree_of, values_of
from nerm.atoms.functions import NoRuleError
from nerm.atoms.regularizer import Norms, Regularizer, Structure
from nerm.errors import InvalidInputError
from nerm.typing import Floats

Function: TypeAlias = Callable[..., Any]


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
    cvxpy_expression: Function

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


def regularizer(expression: Function, *, name: str = "Omega") -> Regularizer:
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


class Terms(NamedTuple):
    """Weighted norms or half squares, each of the same number of consecutive rows of a linear map of w.

    `order` is 2 or inf for a norm, and 0 for half the squared l2 norm.
    """

    order: float
    weights: Floats
    matrix: Any

    @property
    def shape(self) -> tuple[float, int]:
        """The order and the number of rows of each norm."""
        return self.order, self.matrix.shape[0] // len(self.weights)


@lru_cache(maxsize=64)
def read(expression: Function, d: int) -> Structure | None:
    """Return the structure of a cvxpy expression of d coefficients, or None if a part of it has no rule."""
    w = cp.Variable(d)
    try:
        tree = expression(w)
        terms = _terms(tree, np.ones(()), w)
    except NoRuleError:
        return None
    quadratic, norms = sp.csr_array((d, d)), list[Norms]()
    for order, size in sorted({t.shape for t in terms}):
        same = [t for t in terms if t.shape == (order, size)]
        weights = np.concatenate([t.weights for t in same])
        matrix = sp.vstack([t.matrix for t in same]).tocsr()[np.repeat(weights > 0, size)]
        weights = weights[weights > 0]
        if order == 0:
            quadratic = quadratic + matrix.T @ sp.diags_array(np.repeat(weights, size)) @ matrix
        elif len(weights):
            groups = np.arange(matrix.shape[0]).reshape(-1, size)
            norms.append(_plain(Norms(order, weights, groups, matrix)))
    mu = float(quadratic.diagonal().min(initial=np.inf))
    if abs(quadratic - mu * sp.eye_array(d)).max() <= 1e-15 * mu:
        found = Structure(mu, tuple(norms))
    else:
        found = Structure(0.0, tuple(norms), quadratic)
    point = np.random.default_rng(0).normal(size=d)
    return found if np.isclose(found.value(point), float(values_of(tree, w, point)), rtol=1e-9) else None


def _plain(norms: Norms) -> Norms:
    """Return norms of the coefficients themselves, if each row of the map is a multiple of one of them."""
    matrix, shape = norms.matrix, norms.groups.shape
    matrix.eliminate_zeros()
    factors, columns = np.abs(matrix.data), matrix.indices
    alone = np.all(np.diff(matrix.indptr) == 1) and len(np.unique(columns)) == len(columns)
    if not alone or np.ptp(factors.reshape(shape), axis=1).any():
        return norms
    return Norms(norms.order, norms.weights * factors.reshape(shape)[:, 0], columns.reshape(shape))


def _terms(node: Any, weights: Floats, w: Any) -> list[Terms]:
    """Return the terms of the sum of a node's entries times `weights` >= 0, in the shape of the node."""
    if kind(node) not in RULES or weights.shape != node.shape or weights.min() < 0:
        raise NoRuleError
    return RULES[kind(node)](node, weights, w)


def _linear(node: Any, w: Any) -> Any:
    """Return the matrix of a linear function of w, (entries, d)."""
    w.value = np.zeros(w.shape)
    if not node.is_affine() or np.any(node.value):
        raise NoRuleError
    return sp.csr_array(node.grad[w].T)


def _sum(node: Any, weights: Floats, w: Any) -> list[Terms]:
    """Return the terms of a sum over all entries."""
    if node.axis is not None:
        raise NoRuleError
    return _terms(node.args[0], np.full(node.args[0].shape, weights), w)


def _absolute_sum(node: Any, weights: Floats, w: Any) -> list[Terms]:
    """Return the terms of a sum of absolute values; other arguments than linear ones are not negative."""
    return _sum(cp.sum(cp.abs(node.args[0]), node.axis) if node.args[0].is_affine() else node, weights, w)


def _lengths(inner: Any, weights: Floats, w: Any, order: float, axis: int | None = None) -> list[Terms]:
    """Return one norm or half square per weight: of all entries in equal shares, or along an axis."""
    if order not in (0, 2, np.inf):
        raise NoRuleError
    rows = np.arange(inner.size).reshape(inner.shape, order="F")
    rows = rows if axis is None else np.moveaxis(rows, axis, -1)
    return [Terms(order, weights.ravel(), _linear(inner, w)[rows.ravel()])]


def _power(node: Any, weights: Floats, w: Any) -> list[Terms]:
    inner = node.args[0]
    if number(node.p) != 2:
        raise NoRuleError
    if inner.is_affine():
        return _lengths(inner, 2 * weights, w, 0)
    norms = _terms(inner, np.ones(inner.shape), w)  # the square of one Euclidean norm
    if len(norms) != 1 or len(norms[0].weights) != 1 or norms[0].order != 2:
        raise NoRuleError
    return [norms[0]._replace(order=0, weights=2 * weights.ravel() * norms[0].weights ** 2)]


def _product(node: Any, weights: Floats, w: Any) -> list[Terms]:
    """Return the product with a number, one number per entry, or the dot product with a vector."""
    first, second = sorted(node.args, key=lambda factor: not factor.is_constant())
    if not first.is_constant() or (type(node).__name__ == "MulExpression" and first.ndim > 1):
        raise NoRuleError
    return _terms(second, np.asarray(weights * np.asarray(first.value, dtype=float)), w)


def _form(node: Any, weights: Floats, w: Any) -> list[Terms]:
    """Return the quadratic form x'Px as a square: P = R'R."""
    P = node.args[1].value
    values, vectors = np.linalg.eigh(P.toarray() if sp.issparse(P) else P)
    root = np.sqrt(np.maximum(values, 0.0))[:, None] * vectors.T
    return [Terms(0, 2 * weights.ravel(), sp.csr_array(root @ _linear(node.args[0], w)))]


#: How the sum of the entries of each cvxpy atom, by its `kind`, makes norms and squares.
RULES: dict[str, Callable[[Any, Floats, Any], list[Terms]]] = {
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
