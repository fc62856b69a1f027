"""A user's own regularizer, from one cvxpy expression."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

from nerm.atoms import small_programs
from nerm.atoms.custom import as_interval, require
from nerm.atoms.regularizer import Regularizer, along_axes
from nerm.errors import InvalidInputError
from nerm.typing import Floats

Function: TypeAlias = Callable[..., Any]

STEP = 1e-7  # of one-sided derivatives, relative to the size of w
INSIDE = 1e-8  # relative distance from the dual ball's boundary, above the error of a small program


@dataclass(frozen=True)
class CustomRegularizer(Regularizer):
    """A regularizer made by `regularizer`; what was not given is computed.

    Subgradients come from one-sided differences, prox and conjugate from small convex programs
    (`nerm.atoms.small_programs`), rounded so that a certificate can only get looser. Where Omega is
    homogeneous (a norm, a seminorm, a gauge) its conjugate is the indicator of { q : q.w <= Omega(w) };
    directions that it does not punish are found from the span of its gradients.

    Examples
    --------
    >>> import cvxpy as cp
    >>> variation = regularizer(lambda w: cp.tv(w), name="tv")
    >>> variation.value(np.array([1.0, 1.0, 4.0])), variation.numeric
    (3.0, True)
    >>> abs(variation.free(4).T @ [0.5, 0.5, 0.5, 0.5]).round(6).tolist()  # constants cost nothing
    [1.0]
    """

    label: str
    cvxpy_expression: Function = field(repr=False)
    numpy_value: Function | None = field(default=None, repr=False)
    numpy_conjugate: Function | None = field(default=None, repr=False)
    numpy_prox: Function | None = field(default=None, repr=False)
    numpy_subgradient: Function | None = field(default=None, repr=False)

    @property
    def numeric(self) -> bool:  # type: ignore[override]
        """Whether conjugate or prox are computed."""
        return self.numpy_conjugate is None or self.numpy_prox is None

    def value(self, w: Floats) -> float:
        """Return Omega(w), by the numpy function if one was given, else by the cvxpy expression."""
        given = self.numpy_value
        return small_programs.value_at(self.cvxpy_expression, w) if given is None else float(given(w))

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return the one-sided derivatives along the axes, by differences if no function was given."""
        if self.numpy_subgradient is not None:
            return as_interval(self.numpy_subgradient(w))
        here, step = self.value(w), STEP * max(1.0, float(np.abs(w).max(initial=0.0)))
        moves = step * np.eye(len(w))
        low = np.array([(here - self.value(w - move)) / step for move in moves])
        return low, np.maximum(low, [(self.value(w + move) - here) / step for move in moves])

    def conjugate(self, q: Floats) -> float:
        """Return Omega*(q) or slightly more, by a small convex program if no function was given."""
        if self.numpy_conjugate is not None:
            return float(self.numpy_conjugate(q))
        if _homogeneous(self, len(q)):
            return 0.0 if self._gauge(q) <= 1.0 + 1e-12 else np.inf
        punished = self._punished(q)
        free = self.free(len(q))
        return np.inf if punished is None else small_programs.conjugate(self.cvxpy_expression, free, punished)

    def reach(self, q: Floats) -> float:
        """Return a t in [0, 1] with Omega*(t q) finite."""
        if self.numpy_conjugate is None and _homogeneous(self, len(q)):
            gauge = self._gauge(q)
            return 1.0 if gauge <= 1 else (1 - INSIDE) / gauge
        return super().reach(q)

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return argmin_z  step Omega(z) + ||z - w||^2 / 2; the conjugate is finite at w - prox(w)."""
        if self.numpy_prox is not None:
            return np.asarray(self.numpy_prox(w, step), dtype=float)
        share = w - small_programs.prox(self.cvxpy_expression, w, step)
        free = self.free(len(w))
        share = share - free @ (free.T @ share)
        return w - self.reach(share / step) * share

    def free(self, d: int) -> Floats:
        """Return an orthonormal basis of the directions that Omega does not punish."""
        return _free(self, d)

    def expression(self, w: Any) -> Any:
        """Return Omega of a cvxpy vector."""
        return self.cvxpy_expression(w)

    def check(self, d: int) -> None:
        """Refuse an expression that is no regularizer of d coefficients, or not what was given in numpy."""
        what = f"'expression' of {self.label!r} must"
        try:
            curvature, shape = small_programs.kind(self.cvxpy_expression, d)
        except Exception as error:
            must = f"{what} map a cvxpy vector of length {d} to a cvxpy expression"
            do = "Use cvxpy functions inside it, for instance lambda w: cp.norm1(w)"
            raise InvalidInputError(must, f"{type(error).__name__}: {error}", do) from error
        convex = curvature in ("CONVEX", "AFFINE", "CONSTANT")
        got = f"an expression of curvature {curvature}"
        do = "Rewrite it with cvxpy's convex functions (cp.norm1, cp.sum_squares, cp.tv …)"
        require(convex, f"{what} be convex by cvxpy's rules", got, do)
        must = f"{what} be a single number"
        require(np.prod(shape) == 1, must, f"shape {shape}", "Sum over it, or take a norm")
        rng = np.random.default_rng(0)
        points = [np.zeros(d), *(size * rng.normal(size=d) for size in (1e-2, 1.0, 1.0, 1e2))]
        values = np.array([small_programs.value_at(self.cvxpy_expression, w) for w in points])
        must = f"{what} be 0 at w = 0 and nowhere negative or infinite"
        good = np.isfinite(values) & (values >= -1e-9) & (abs(values[0]) <= 1e-9)
        got = f"{values[0]:g} at 0, and {values[1:].tolist()} at random points"
        require(good, must, got, "Add or drop a constant")
        _check_given(self, points[1:], values[1:])

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text: only the name is known."""
        return f"{self.label}(w)"

    def latex_formula(self) -> str:
        """Return the term as LaTeX: only the name is known."""
        return rf"\operatorname{{{self.label}}}(w)"

    def _punished(self, q: Floats) -> Floats | None:
        """Return q without the rounding in free directions; None if there is more than that."""
        free = self.free(len(q))
        inside = q - free @ (free.T @ q)
        return inside if np.linalg.norm(q - inside) <= 1e-12 * np.linalg.norm(q) else None

    def _gauge(self, q: Floats) -> float:
        """Return the smallest r with q.w <= r Omega(w) for all w, or slightly more."""
        punished = self._punished(q)
        if punished is None:
            return np.inf
        if not punished.any():
            return 0.0
        return small_programs.dual_norm(self.cvxpy_expression, self.free(len(q)), punished)


def regularizer(
    expression: Function,
    *,
    name: str = "Omega",
    value: Function | None = None,
    conjugate: Function | None = None,
    prox: Function | None = None,
    subgradient: Function | None = None,
) -> Regularizer:
    """Return a regularizer from one cvxpy expression, convex by cvxpy's rules, at least 0, and 0 at 0.

    Parameters
    ----------
    expression : callable
        Maps a cvxpy vector w to Omega(w), a scalar expression.
    name : str
        How it is called in formulas and messages.
    value, conjugate : callable, optional
        Omega(w) and Omega*(q) in numpy.
    prox : callable, optional
        ``prox(w, step)``, the minimiser of step Omega(z) + ||z - w||^2 / 2.
    subgradient : callable, optional
        The gradient (d,), or the pair (low, high) of one-sided derivatives along the axes.

    Returns
    -------
    Regularizer
        Checked for the length of w as soon as that is known; numpy functions are compared with the
        expression then.

    Examples
    --------
    A fused lasso, alone and in a sum:

    >>> import cvxpy as cp, nerm
    >>> X, y = [[1.0, 0.9, 0.0], [0.2, 1.0, 1.0], [-1.0, 0.1, 0.3], [-0.3, -1.0, -1.0]], [1, 1, -1, -1]
    >>> smooth = nerm.regularizer(lambda w: cp.tv(w), name="tv")
    >>> print(nerm.Risk(nerm.Hinge()) + 0.1 * smooth)
    minimise mean hinge(y f) + 0.1 tv(w)
    >>> str((nerm.Risk(nerm.Hinge()) + 0.1 * smooth + 0.1 * nerm.L1()).on(X, y).solve(tol=1e-5).status)
    'optimal'
    """
    atom = CustomRegularizer(str(name), expression, value, conjugate, prox, subgradient)
    must = f"'expression' of {atom.label!r} must be a function of a cvxpy vector"
    require(callable(expression), must, repr(expression), "Pass lambda w: cp.norm1(w), for instance")
    try:
        small_programs.kind(expression, 6)
    except Exception:  # an expression of some other length only is checked when that is known
        return atom
    atom.check(6)
    return atom


@lru_cache(maxsize=64)
def _homogeneous(atom: CustomRegularizer, d: int) -> bool:
    """Whether Omega(t w) = t Omega(w) for t > 0, at random points."""
    rng = np.random.default_rng(d)
    points, factors = rng.normal(size=(8, d)), (1e-3, 0.1, 0.5, 3.0, 50.0, 1e4, 2.0, 7.0)
    values = [(atom.value(t * w), t * atom.value(w)) for w, t in zip(points, factors, strict=True)]
    return all(abs(a - b) <= 1e-9 * max(abs(a), abs(b)) for a, b in values)


@lru_cache(maxsize=64)
def _free(atom: CustomRegularizer, d: int) -> Floats:
    """Return the orthogonal complement of the gradients at random points of all sizes."""
    rng = np.random.default_rng(d)
    points = rng.normal(size=(d + 12, d)) * np.resize([1e-2, 1.0, 1e2, 1e4], d + 12)[:, None]
    try:
        gradients = np.stack([small_programs.gradient_at(atom.cvxpy_expression, w) for w in points])
    except Exception:  # cvxpy has no gradient of this expression: then none is known to be free
        return np.zeros((d, 0))
    lengths = np.linalg.norm(gradients, axis=1, keepdims=True)
    _, values, vectors = np.linalg.svd(gradients / np.where(lengths > 0, lengths, 1.0))
    return along_axes(vectors[int((values > 1e-10 * max(values[0], 1e-300)).sum()) :].T)


def _check_given(atom: CustomRegularizer, points: list[Floats], values: Floats) -> None:
    """Compare numpy functions with the expression, which has these values at these points."""
    plain = CustomRegularizer(atom.label, atom.cvxpy_expression)
    for w, value in zip(points, values, strict=True):
        size = 1 + value + float(np.abs(w).max())
        if atom.numpy_value is not None:
            must = f"'value' of {atom.label!r} must be the same function as 'expression'"
            require(abs(atom.value(w) - value) <= 1e-6 * size, must, f"{atom.value(w):g} against {value:g}")
        if atom.numpy_subgradient is not None:
            pairs = zip(atom.subgradient(w), plain.subgradient(w), strict=True)
            must = f"'subgradient' of {atom.label!r} must give the one-sided derivatives of 'expression'"
            close = [np.abs(a - b) <= 1e-4 * size for a, b in pairs]
            require(close, must, f"{atom.subgradient(w)[0].tolist()}")
        if atom.numpy_prox is not None:
            z, best = atom.prox(w, 0.5), plain.prox(w, 0.5)
            must = f"'prox' of {atom.label!r} must minimise step Omega(z) + ||z - w||^2 / 2"
            require(np.abs(z - best) <= 1e-4 * size, must, f"{z.tolist()} against {best.tolist()}")
        if atom.numpy_conjugate is not None:
            z = plain.prox(w)
            gap = plain.value(z) + atom.conjugate((w - z) * (1 - 1e-6)) - float(z @ (w - z))
            must = f"'conjugate' of {atom.label!r} must satisfy Omega(z) + Omega*(q) = q.z at a subgradient q"
            require(abs(gap) <= 1e-4 * size**2, must, f"an error of {gap:.1e}")
