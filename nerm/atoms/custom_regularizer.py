"""Regularizers defined by the user: a cvxpy expression and optional numpy functions."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np

from nerm.atoms.custom import as_interval, require
from nerm.atoms.regularizer import Regularizer
from nerm.atoms.small_programs import Derived, derived
from nerm.errors import InvalidInputError
from nerm.typing import Floats

Function: TypeAlias = Callable[..., Any]


@dataclass(frozen=True)
class CustomRegularizer(Regularizer):
    """A regularizer made by `regularizer`; functions that were not given are computed numerically.

    Subgradients are computed from one-sided differences. Prox and conjugate are computed by small convex
    programs (`nerm.atoms.small_programs`) and rounded so that an error can only make a certificate looser.
    The directions along which Omega is constant are the orthogonal complement of its gradients.

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
        """Whether the conjugate or the prox is computed numerically."""
        return self.numpy_conjugate is None or self.numpy_prox is None

    def _derived(self, d: int) -> Derived:
        return derived(self.cvxpy_expression, d)

    def value(self, w: Floats) -> float:
        """Return Omega(w), by the numpy function if one was given, else by the cvxpy expression."""
        return float((self.numpy_value or self._derived(len(w)).value)(w))

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return (low, high), both (d,): the one-sided derivatives of Omega along the coordinate axes.

        They are computed by differences if no function was given.
        """
        return as_interval((self.numpy_subgradient or self._derived(len(w)).slopes)(w))

    def conjugate(self, q: Floats) -> float:
        """Return Omega*(q) or slightly more, by a small convex program if no function was given."""
        return float((self.numpy_conjugate or self._derived(len(q)).conjugate)(q))

    def finite_multiple(self, q: Floats) -> float:
        """Return a number t in [0, 1] for which Omega*(t q) is finite."""
        derived = self._derived(len(q))
        return (
            derived.finite_multiple(q)
            if self.numpy_conjugate is None and derived.homogeneous
            else super().finite_multiple(q)
        )

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return argmin_z  step Omega(z) + ||z - w||^2 / 2, by a small program if no function was given."""
        return np.asarray((self.numpy_prox or self._derived(len(w)).prox)(w, step), dtype=float)

    def free(self, d: int) -> Floats:
        """Return an orthonormal basis, (d, k), of the directions along which Omega is constant."""
        return self._derived(d).free

    def expression(self, w: Any) -> Any:
        """Return Omega of a cvxpy vector."""
        return self.cvxpy_expression(w)

    def check(self, d: int) -> None:
        """Raise an error if the expression is not a regularizer of d coefficients.

        The given numpy functions are compared with the expression, too.
        """
        what = f"'expression' of {self.label!r} must"
        try:
            made = self._derived(d).h
            convex, size = made.is_convex(), made.size
        except Exception as error:
            must = f"{what} map a cvxpy vector of length {d} to a cvxpy expression"
            do = "Use cvxpy functions inside it, for instance lambda w: cp.norm1(w)"
            raise InvalidInputError(must, f"{type(error).__name__}: {error}", do) from error
        got = f"an expression of curvature {made.curvature}"
        do = "Rewrite it with cvxpy's convex functions (cp.norm1, cp.sum_squares, cp.tv …)"
        require(convex, f"{what} be convex by cvxpy's rules", got, do)
        must = f"{what} be a single number"
        require(size == 1, must, f"shape {made.shape}", "Sum over it, or take a norm")
        rng = np.random.default_rng(0)
        points = [np.zeros(d), *(size * rng.normal(size=d) for size in (1e-2, 1.0, 1.0, 1e2))]
        values = np.array([self._derived(d).value(w) for w in points])
        must = f"{what} be 0 at w = 0 and nowhere negative or infinite"
        good = np.isfinite(values) & (values >= -1e-9) & (abs(values[0]) <= 1e-9)
        got = f"{values[0]:g} at 0, and {values[1:].tolist()} at random points"
        require(good, must, got, "Add or drop a constant")
        _check_given(self, points[1:])

    def formula(self, mean: str = "mean") -> str:
        """Return name(w) as text; the formula itself is not known."""
        return f"{self.label}(w)"

    def latex_formula(self) -> str:
        """Return name(w) as LaTeX; the formula itself is not known."""
        return rf"\operatorname{{{self.label}}}(w)"


def regularizer(
    expression: Function,
    *,
    name: str = "Omega",
    value: Function | None = None,
    conjugate: Function | None = None,
    prox: Function | None = None,
    subgradient: Function | None = None,
) -> Regularizer:
    """Make a regularizer from one cvxpy expression.

    Parameters
    ----------
    expression : callable
        Maps a cvxpy vector w to Omega(w), a scalar expression. It must be convex by cvxpy's rules, with
        Omega(w) >= 0 and Omega(0) = 0.
    name : str
        The name in formulas and error messages.
    value, conjugate : callable, optional
        Omega(w) and Omega*(q) in numpy.
    prox : callable, optional
        ``prox(w, step)``, the minimiser of step Omega(z) + ||z - w||^2 / 2.
    subgradient : callable, optional
        The gradient (d,), or the pair (low, high) of one-sided derivatives along the axes.

    Returns
    -------
    Regularizer
        The expression is checked here for d = 6 if it accepts that length, and for the number of columns when
        it is bound to data. Each check compares the numpy functions with the expression.

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
        derived(expression, 6)
    except Exception:  # the expression does not accept d = 6: it is checked when d is known
        return atom
    atom.check(6)
    return atom


def _check_given(atom: CustomRegularizer, points: list[Floats]) -> None:
    """Compare the given numpy functions with those derived from the expression; raise if they differ."""
    plain = CustomRegularizer(atom.label, atom.cvxpy_expression)
    same = {
        "value": (atom.numpy_value, "be the same function as 'expression'"),
        "subgradient": (atom.numpy_subgradient, "give the one-sided derivatives of 'expression'"),
        "prox": (atom.numpy_prox, "minimise step Omega(z) + ||z - w||^2 / 2"),
    }
    for w in points:
        size = 1 + plain.value(w) + float(np.abs(w).max())
        for name, (given, must) in same.items():
            if given is not None:
                got, expected = (np.asarray(getattr(one, name)(w)) for one in (atom, plain))
                close = np.abs(got - expected) <= (1e-6 if name == "value" else 1e-4) * size
                shown = f"{got.tolist()} against {expected.tolist()}"
                require(close, f"{name!r} of {atom.label!r} must {must}", shown)
        if atom.numpy_conjugate is not None:
            z = plain.prox(w)
            gap = plain.value(z) + atom.conjugate((w - z) * (1 - 1e-6)) - float(z @ (w - z))
            must = f"'conjugate' of {atom.label!r} must satisfy Omega(z) + Omega*(q) = q.z at a subgradient q"
            require(abs(gap) <= 1e-4 * size**2, must, f"an error of {gap:.1e}")
