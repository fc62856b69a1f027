"""Linear constraints on the coefficients w.

::

    minimise  R_n(f) + Omega(f)   subject to   C_psi(f) <= t,   A w <= b,   E w = e

Write ``Neutrality(...) <= t`` for a limit on neutrality, and compare ``Coefficients()``, which stands for w,
by ``>=``, ``<=`` or ``==`` for a linear constraint. All these constraints are convex, and the certificate
uses their multipliers (`nerm.certify.certificate`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from nerm.errors import InvalidInputError
from nerm.model.expressions import Constraint
from nerm.typing import Bools, Floats, Ints
from nerm.validation import as_floats, check_finite, column_position

ROUNDING = 1e-12  # relative violations up to this size are treated as rounding errors
Sense = Literal["<=", ">=", "=="]
SIGNS: dict[Sense, tuple[str, str]] = {"<=": ("≤", r"\le"), ">=": ("≥", r"\ge"), "==": ("=", "=")}


class Coefficients:
    """The coefficients w of a linear hypothesis, without the intercept, to write constraints.

    Parameters
    ----------
    columns : str or int
        The columns whose coefficients are meant, by name (if X is a DataFrame) or by number. Without any, all
        columns are meant.

    A comparison with a number or an array makes a constraint:

    >>> import nerm
    >>> nerm.Coefficients() >= 0
    Coefficients() >= 0
    >>> nerm.Coefficients("age", 3).apply([[1.0, -1.0]]) == 0  # both weigh the same
    Coefficients('age', 3).apply(A) == 0
    >>> objective = nerm.Risk(nerm.Hinge()) + 0.5 * nerm.SquaredL2()
    >>> problem = objective.subject_to(nerm.Coefficients() <= 0.25).on([[1.0], [-1.0]], [1, -1])
    >>> problem.solve().coef.round(6)
    array([0.25])
    """

    def __init__(self, *columns: str | int) -> None:
        for column in columns:
            if isinstance(column, bool) or not isinstance(column, str | int | np.integer):
                must = "a column must be given by its name or its number"
                raise InvalidInputError(must, repr(column), 'Write Coefficients("age", 3)')
        self.columns = columns
        self.matrix: Floats | None = None

    def apply(self, matrix: Any) -> Coefficients:
        """Return A w, to be compared with bounds; A is a matrix with one column per coefficient, or a row."""
        if self.matrix is not None:
            do = "Multiply the matrices first"
            raise InvalidInputError("'apply' must be called once", "a second matrix", do)
        A = np.atleast_2d(as_floats(matrix, "A", "Pass a matrix of numbers"))
        check_finite(A, "A", "Pass finite numbers")
        if A.ndim != 2 or 0 in A.shape:
            must = "'A' must be a matrix with one column for each coefficient"
            raise InvalidInputError(must, f"shape {A.shape}", "Pass an (m, d) matrix")
        applied = Coefficients(*self.columns)
        applied.matrix = A
        return applied

    def __repr__(self) -> str:
        return _left(self.columns, self.matrix)

    def _compare(self, sense: Sense, bound: Any) -> LinearConstraint:
        values = as_floats(bound, "bound", "Compare with numbers; for a difference write apply([[1, -1]])")
        never_binds = {"<=": np.inf, ">=": -np.inf, "==": None}[sense]
        check_finite(values[values != never_binds], "bound", "Pass finite numbers")
        if values.ndim > 1:
            must = "'bound' must be a number or a vector"
            raise InvalidInputError(must, f"shape {values.shape}", "Pass one number per row of A")
        return LinearConstraint(self.columns, self.matrix, sense, values.copy())

    def __le__(self, bound: Any) -> LinearConstraint:
        return self._compare("<=", bound)

    def __ge__(self, bound: Any) -> LinearConstraint:
        return self._compare(">=", bound)

    def __eq__(self, bound: object) -> LinearConstraint:  # type: ignore[override]
        return self._compare("==", bound)

    __hash__ = None  # type: ignore[assignment]
    __array_ufunc__ = None  # numpy arrays leave comparisons to this class


def _left(columns: tuple[str | int, ...], matrix: Floats | None) -> str:
    """Return the left side of a constraint as Python code, such as Coefficients('age')."""
    return f"Coefficients({', '.join(map(repr, columns))})" + ("" if matrix is None else ".apply(A)")


@dataclass(frozen=True, eq=False, repr=False)
class LinearConstraint(Constraint):
    """A w <= b, A w >= b or A w = b for coefficients w (see `Coefficients`)."""

    columns: tuple[str | int, ...]
    matrix: Floats | None
    sense: Sense
    bound: Floats

    @property
    def _right(self) -> str:
        return f"{self.bound:g}" if self.bound.ndim == 0 else "b"

    def __repr__(self) -> str:
        return f"{_left(self.columns, self.matrix)} {self.sense} {self._right}"

    def formula(self, mean: str = "mean", latex: bool = False) -> str:
        """Return the constraint as text or LaTeX."""
        names = [r"\mathrm{" + str(c).replace("_", r"\_") + "}" if latex else str(c) for c in self.columns]
        index = (f"_{{{', '.join(names)}}}" if latex else f"[{', '.join(names)}]") if names else ""
        return f"{'' if self.matrix is None else 'A '}w{index} {SIGNS[self.sense][latex]} {self._right}"

    def rows(self, d: int, names: Any) -> tuple[Floats, Floats]:
        """Return (A, b), (m, d) and (m,), of the constraint A w <= b or A w = b on all d coefficients.

        `names` are the column names of X or None. Rows with an infinite bound are left out.
        """
        columns = [column_position(c, names, d) for c in self.columns] or list(range(d))
        A = np.eye(len(columns)) if self.matrix is None else self.matrix
        if A.shape[1] != len(columns):
            must = f"'A' must have one column for each of the {len(columns)} coefficients"
            do = "Transpose A, or choose the coefficients with Coefficients(...)"
            raise InvalidInputError(must, f"shape {A.shape}", do)
        if self.bound.ndim and len(self.bound) != len(A):
            rows = f"{len(A)} rows of {_left(self.columns, self.matrix)}"
            must = f"'bound' must have one entry for each of the {rows}"
            do = "Pass a number, or a vector of that length"
            raise InvalidInputError(must, f"{len(self.bound)} entries", do)
        matrix, bound = np.zeros((len(A), d)), np.broadcast_to(self.bound, len(A))
        np.add.at(matrix.T, columns, A.T)
        sign = -1.0 if self.sense == ">=" else 1.0
        binding = np.isfinite(bound)
        return sign * matrix[binding], sign * bound[binding]


@dataclass(frozen=True, eq=False)
class Polyhedron:
    """The linear constraints of a problem: { w : A w <= b, with equality in the rows `equal` }.

    Attributes
    ----------
    matrix, bound : (m, d) and (m,) arrays
        A and b.
    equal : (m,) array of bool
        The constraints that must hold with equality; their multipliers may have any sign.

    """

    matrix: Floats
    bound: Floats
    equal: Bools

    @cached_property
    def size(self) -> Floats:
        """The Euclidean norm of each row of A, (m,)."""
        return np.asarray(np.linalg.norm(self.matrix, axis=1))

    def signed(self, z: Floats) -> Floats:
        """Return the multipliers z, (m,), with nan and the negative entries of inequality rows set to 0."""
        z = np.nan_to_num(z)
        return np.where(self.equal, z, np.maximum(z, 0.0))

    def violation(self, w: Floats) -> float:
        """Return the largest violation of a constraint at w.

        It is divided by the norm of its row of A; rounding errors count as 0.
        """
        excess = self.matrix @ w - self.bound
        excess = np.where(self.equal, np.abs(excess), np.maximum(excess, 0.0))
        rounding = ROUNDING * (self.size * np.linalg.norm(w) + np.abs(self.bound))
        relative = excess / np.maximum(self.size, 1e-300)
        return float(np.max(np.where(excess <= rounding, 0.0, relative), initial=0.0))

    def project(self, w: Floats) -> Floats:
        """Return the point of the polyhedron that is nearest to w, (d,).

        If all rows bound a single coefficient, w is clipped. Otherwise the least distance program of Lawson
        and Hanson is solved by nonnegative least squares: the result is w - A'z with z >= 0. A result no
        larger than rounding errors is replaced by 0 if 0 is feasible.
        """
        if not self.violation(w):
            return w
        start, zero = np.linalg.norm(w), np.zeros_like(w)
        if not self.equal.any() and len(self._bounds[0]) == len(self.bound):
            return self._clipped(w)
        for _ in range(3):  # the second and third iteration remove rounding errors
            G, h = -self.matrix / self.size[:, None], (self.matrix @ w - self.bound) / self.size
            unit = max(float(np.abs(h).max()), 1e-300)
            system, target = np.vstack([G.T, h / unit]), np.append(np.zeros(len(w)), 1.0)
            rest = system @ nonnegative_least_squares(system, target, self.equal) - target
            if not abs(rest[-1]) > 0:
                break
            w = w - unit * rest[:-1] / rest[-1]
            if not self.violation(w):
                break
        return zero if np.linalg.norm(w) <= ROUNDING * start and not self.violation(zero) else w

    @cached_property
    def _bounds(self) -> tuple[Ints, Ints, Floats]:
        """The constraints on one coefficient: their indices, columns and factors."""
        rows = np.flatnonzero(np.count_nonzero(self.matrix, axis=1) == 1)
        columns = np.argmax(self.matrix[rows] != 0, axis=1)
        return rows, columns, self.matrix[rows, columns]

    def _clipped(self, w: Floats) -> Floats:
        rows, columns, factors = self._bounds
        low, high, values = np.full(len(w), -np.inf), np.full(len(w), np.inf), self.bound[rows] / factors
        np.maximum.at(low, columns[factors < 0], values[factors < 0])
        np.minimum.at(high, columns[factors > 0], values[factors > 0])
        return np.clip(w, low, high)

    def _tight(self, w: Floats) -> Bools:
        """Return a mask, (m,), of the constraints that are tight at w.

        A constraint is tight if it holds with equality, up to a relative 1e-6.
        """
        near = 1e-6 * (np.abs(self.matrix) @ np.abs(w) + np.abs(self.bound) + 1e-300)
        return self.equal | (self.bound - self.matrix @ w <= near)

    def extended(self, w: Floats, low: Floats, high: Floats) -> tuple[Floats, Floats]:
        """Extend the intervals [low, high] of subgradients at w by the normal cone of the tight bounds.

        A tight bound on a single coefficient makes its interval infinite on one side; an equality makes it
        infinite on both sides. Return the new (low, high), both (d,).
        """
        rows, columns, factors = self._bounds
        tight, equal, low, high = self._tight(w)[rows], self.equal[rows], low.copy(), high.copy()
        high[columns[tight & (equal | (factors > 0))]] = np.inf
        low[columns[tight & (equal | (factors < 0))]] = -np.inf
        return low, high

    def multipliers(self, w: Floats, rest: Floats) -> Floats:
        """Return multipliers z, (m,), for which `||A'z - rest||` is smallest.

        There is one z_j per constraint. z_j = 0 for constraints that are not tight at w, and z_j >= 0 for
        tight inequalities. `rest`, (d,), is the target gradient, which A'z should equal.
        """
        tight, z = self._tight(w), np.zeros(len(self.bound))
        if tight.any():
            z[tight] = nonnegative_least_squares(self.matrix[tight].T, rest, self.equal[tight])
        return z


def nonnegative_least_squares(system: Floats, target: Floats, free: Bools | None = None) -> Floats:
    """Return the z that minimizes ||system z - target|| subject to z_j >= 0 for all j that are not `free`."""
    from scipy.optimize import nnls

    count = system.shape[1]
    either = np.flatnonzero(np.zeros(count) if free is None else free)
    z = np.asarray(nnls(np.hstack([system, -system[:, either]]), target, maxiter=30 * count)[0])
    z[either] -= z[count:]
    return z[:count]


def polyhedron(constraints: Sequence[LinearConstraint], d: int, columns: Any) -> Polyhedron:
    """Combine linear constraints on d coefficients into one `Polyhedron`; raise an error if it is empty.

    `columns` are the column names of X, or None.
    """
    parts = [(*c.rows(d, columns), c.sense == "==") for c in constraints]
    matrix, bound = np.vstack([A for A, _, _ in parts]), np.concatenate([b for _, b, _ in parts])
    equal = np.concatenate([np.full(len(b), e) for _, b, e in parts])
    trivial = ~matrix.any(axis=1) & np.where(equal, bound == 0, bound >= 0)  # 0 = 0 and 0 <= b
    found = Polyhedron(matrix[~trivial], bound[~trivial], equal[~trivial])
    if found.violation(found.project(np.zeros(d))) and _is_empty(found):
        must, do = "some coefficients must satisfy all constraints", "Drop or loosen one of them"
        raise InvalidInputError(must, f"{', '.join(map(repr, constraints))}, which contradict each other", do)
    return found


def _is_empty(region: Polyhedron) -> bool:
    """Return whether the polyhedron is empty, decided by a linear program."""
    from scipy.optimize import linprog

    A, b, equal = region.matrix, region.bound, region.equal
    rows = {"A_ub": A[~equal], "b_ub": b[~equal], "A_eq": A[equal], "b_eq": b[equal]}
    return bool(linprog(np.zeros(A.shape[1]), **rows, bounds=(None, None)).status == 2)
