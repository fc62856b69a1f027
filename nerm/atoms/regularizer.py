"""Regularizers: convex functions of the coefficients with value 0 at 0.

The module defines the base class, half the squared l2 norm, l1, l-infinity, the elastic net and the group
lasso. Each of them is a `Structure`: a quadratic form and norms of groups of linear functions of w.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nerm.atoms import cvx as cp
from nerm.errors import InvalidInputError
from nerm.model.expressions import Term
from nerm.typing import Floats, Ints
from nerm.validation import as_nonnegative, as_positive


class Norms(NamedTuple):
    """The sum over G groups g of weights_g ||z_g||, where all groups have the same size k and the same norm.

    Attributes
    ----------
    order : {2, inf}
        2 for the Euclidean norm, inf for the largest absolute entry.
    weights : (G,) array
        One positive weight per group.
    groups : (G, k) array
        The indices of the entries of each group in z; no index occurs twice.
    matrix : (m, d) sparse array or None
        The linear map of z = matrix w; None if z = w.
    """

    order: float
    weights: Floats
    groups: Ints
    matrix: Any = None

    def of(self, w: Floats) -> Floats:
        """Return the groups of z, (G, k)."""
        return np.asarray((w if self.matrix is None else self.matrix @ w)[self.groups])

    def lengths(self, z: Floats, *, dual: bool = False) -> Floats:
        """Return the norm of each group of z, or its dual norm, (G,)."""
        return np.asarray(np.linalg.norm(z, 1 if dual and self.order > 2 else self.order, axis=1))


class Structure(NamedTuple):
    """(mu/2) ||w||^2 + (1/2) w'Q w + a sum of norms.

    Attributes
    ----------
    mu : float
        The weight of the squared l2 norm.
    norms : tuple of Norms
        The norms.
    quadratic : (d, d) sparse array or None
        Q; None for 0.
    """

    mu: float
    norms: tuple[Norms, ...] = ()
    quadratic: Any = None

    def value(self, w: Floats) -> float:
        """Return the sum, for w of shape (d,)."""
        norms = sum(float(n.weights @ n.lengths(n.of(w))) for n in self.norms)
        square = self.mu * float(w @ w) + (0.0 if self.quadratic is None else float(w @ (self.quadratic @ w)))
        return norms + 0.5 * square

    @property
    def is_separable(self) -> bool:
        """Whether every coefficient is in at most one group, and there are no linear maps."""
        columns = np.concatenate([np.zeros(0, int), *(n.groups.ravel() for n in self.norms)])
        plain = self.quadratic is None and all(n.matrix is None for n in self.norms)
        return plain and len(np.unique(columns)) == len(columns)


class Regularizer(Term):
    """A convex Omega(w) >= 0 with Omega(0) = 0; the intercept is never part of w.

    A regularizer is a term that can be added and weighted: ``0.1 * L1()``. Vectors w and q have shape (d,). A
    subclass defines `structure`, or `expression` alone. Value, subgradients, conjugate and prox follow: in
    closed form if the groups of the structure are disjoint, else by small convex programs.

    For z = prox(w), the vector q = w - z is a subgradient of Omega at z, so the Fenchel-Young inequality is
    an equality, Omega(z) + Omega*(q) = q.z:

    Examples
    --------
    >>> from nerm import ElasticNet
    >>> omega, w = ElasticNet(l1_ratio=0.5), np.array([3.0, -0.2, 1.0])
    >>> z = omega.prox(w)
    >>> bool(np.isclose(omega.value(z) + omega.conjugate(w - z), (w - z) @ z))
    True
    >>> print(0.1 * omega)
    minimise 0.1 (0.5 ‖w‖₁ + 0.5 ½‖w‖²)
    """

    name: ClassVar[str] = ""
    kind: ClassVar[str] = "regularizer"
    text: ClassVar[str] = "Omega(w)"
    tex: ClassVar[str] = r"\Omega(w)"

    def structure(self, d: int) -> Structure | None:
        """Return Omega of d coefficients as squares and norms, or None if it is not such a sum."""
        return None

    def expression(self, w: Any) -> Any:
        """Return Omega of a cvxpy vector of length d: a convex scalar expression."""
        found = self.structure(w.shape[0])
        if found is None:
            raise NotImplementedError
        terms = [found.mu / 2 * cp.sum_squares(w)] if found.mu else []
        if found.quadratic is not None:
            terms.append(cp.quad_form(w, found.quadratic, assume_PSD=True) / 2)
        for n in found.norms:
            z = (w if n.matrix is None else n.matrix @ w)[n.groups.ravel()]
            groups = cp.reshape(z, n.groups.shape, order="C")
            terms.append(n.weights @ (cp.norm(groups, n.order, axis=1) if groups.shape[1] > 1 else cp.abs(z)))
        return cp.sum(terms)

    def at(self, d: int) -> Any:
        """Return the functions of d coefficients: value, subgradient, conjugate, finite_multiple, prox, free.

        They are closed forms (`Separable`), or computed numerically (`Derived` in
        `nerm.atoms.custom_regularizer`).
        """
        return _at(self, d)

    def value(self, w: Floats) -> float:
        """Return Omega(w), a number, for w of shape (d,)."""
        return float(self.at(len(w)).value(w))

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return (low, high), both (d,), the range of each coordinate of the subgradients at w.

        These are the one-sided derivatives of Omega along the coordinate axes. For a separable regularizer
        the box is the subdifferential itself, otherwise the smallest box around it.
        """
        low, high = self.at(len(w)).subgradient(w)
        return low, high

    def conjugate(self, q: Floats) -> float:
        """Return Omega*(q) = sup_w q.w - Omega(w), a number, for q of shape (d,)."""
        return float(self.at(len(q)).conjugate(q))

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return argmin_z  step Omega(z) + ||z - w||^2 / 2, (d,)."""
        return np.asarray(self.at(len(w)).prox(w, step))

    def free(self, d: int) -> Floats:
        """Return an orthonormal basis, (d, k), of the directions along which Omega is constant."""
        return np.asarray(self.at(d).free)

    def finite_multiple(self, q: Floats) -> float:
        """Return a number t in [0, 1] for which Omega*(t q) is finite; 1 if possible."""
        return float(self.at(len(q)).finite_multiple(q))

    def is_norm(self, d: int) -> bool:
        """Whether Omega of d coefficients is a norm with a closed form."""
        found = self.at(d)
        return isinstance(found, Separable) and not found.mu

    def formula(self, mean: str = "mean", latex: bool = False) -> str:
        """Return the term as text or LaTeX; by default `text` and `tex`."""
        return self.tex if latex else self.text

    def parts(self, d: int) -> tuple[tuple[float, Regularizer], ...]:
        """Return pairs (weight, regularizer) whose weighted sum is Omega.

        A squared l2 norm is a pair of its own.
        """
        return _parts(self, d)

    def check(self, d: int) -> None:
        """Raise an error if the regularizer, for instance its groups, does not fit d coefficients."""
        self.structure(d)


@lru_cache(maxsize=256)
def _at(atom: Regularizer, d: int) -> Any:
    found = atom.structure(d)
    if found is not None and found.is_separable:
        return Separable(found, d)
    from nerm.atoms.custom_regularizer import Derived

    return Derived(atom.expression, d)


@lru_cache(maxsize=256)
def _parts(atom: Regularizer, d: int) -> tuple[tuple[float, Regularizer], ...]:
    found = atom.structure(d)
    if found is None or not found.mu:
        return ((1.0, atom),)
    plain = not found.norms and found.quadratic is None
    rest = () if plain else ((1.0, Given(found._replace(mu=0.0))),)
    return (*rest, (found.mu, SquaredL2()))


class Separable:
    """Closed forms of (mu/2) ||w||^2 + a sum of norms of disjoint groups of the d coefficients.

    The conjugate of a norm is the indicator of the unit ball of its dual norm.

    >>> from nerm import L1
    >>> q = np.array([0.5, -2.0])
    >>> L1().at(2).dual_norm(q), L1().conjugate(q), L1().conjugate(q / 2)
    (2.0, inf, 0.0)
    """

    numeric = False

    def __init__(self, structure: Structure, d: int) -> None:
        self.mu, self.norms, _ = structure
        self.value = structure.value
        alone = np.ones(d, dtype=bool)
        for n in self.norms:
            alone[n.groups] = False
        self.free = np.eye(d)[:, alone] if not self.mu and alone.any() else np.zeros((d, 0))

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return the one-sided derivatives along the axes, (d,) each.

        A group z with Euclidean length `|z|` > 0 has the derivatives z / `|z|`, and -1 and 1 at z = 0. In a
        max norm a single largest entry has its sign; several largest entries have the interval between 0 and
        their sign, or [-1, 1] at z = 0; all other entries have 0.
        """
        low, high = self.mu * w, self.mu * w
        for n in self.norms:
            z = w[n.groups]
            size = n.lengths(z)[:, None]
            if n.order == 2:
                below = above = z / np.where(size > 0, size, 1.0)
                below, above = below - (size == 0), above + (size == 0)
            else:
                top = np.abs(z) == size
                alone = top & (top.sum(axis=1, keepdims=True) == 1)
                below = np.where(alone | (top & (z <= 0)), np.where(z > 0, 1.0, -1.0), 0.0)
                above = np.where(alone | (top & (z >= 0)), np.where(z < 0, -1.0, 1.0), 0.0)
            low[n.groups] += n.weights[:, None] * below
            high[n.groups] += n.weights[:, None] * above
        return low, high

    def dual_norm(self, q: Floats) -> float:
        """Return sup { q.w : sum of the norms of w <= 1 }; infinite if q is not 0 in a free direction."""
        if np.linalg.norm(self.free.T @ q) > 1e-12 * np.linalg.norm(q):
            return np.inf
        sizes = (n.lengths(q[n.groups], dual=True) / n.weights for n in self.norms)
        return max((float(size.max()) for size in sizes), default=0.0)

    def conjugate(self, q: Floats) -> float:
        """Return the conjugate at q, for mu > 0 the number ||r||^2 / (2 mu).

        r is q minus its projection on the unit ball of the dual norm. For mu = 0 the conjugate is 0 if r = 0
        (up to rounding), else +inf.
        """
        if self.mu:
            rest = self._shrunk(q, 1.0)
            return 0.5 * float(rest @ rest) / self.mu
        return 0.0 if self.dual_norm(q) <= 1.0 + 1e-12 else np.inf

    def finite_multiple(self, q: Floats) -> float:
        """Return the largest t in [0, 1] for which Omega*(t q) is finite."""
        return 1.0 if self.mu else min(1.0, 1.0 / max(self.dual_norm(q), np.finfo(float).tiny))

    def prox(self, w: Floats, step: float) -> Floats:
        """Return the prox at w: that of the norms, divided by 1 + step mu."""
        return self._shrunk(w, step) / (1.0 + step * self.mu)

    def _shrunk(self, w: Floats, step: float) -> Floats:
        """Return the prox of the norms: w minus its projection on the dual ball.

        The ball is that of the dual norm with radius `step`.
        """
        out = w.copy()
        for n in self.norms:
            z, most = w[n.groups], step * n.weights
            if n.order == 2:
                size = n.lengths(z)
                kept = np.maximum(size - most, 0.0) / np.where(size > 0, size, 1.0)
                out[n.groups] = kept[:, None] * z
            else:
                out[n.groups] -= [project_l1_ball(x, radius) for x, radius in zip(z, most, strict=True)]
        return out


def project_l1_ball(w: Floats, radius: float) -> Floats:
    """Return the projection of w on { ||z||_1 <= radius }, (d,).

    A w outside of the ball is soft-thresholded at the level for which the l1 norm equals the radius.
    """
    size = np.sort(np.abs(w))[::-1]
    if size.sum() <= radius:
        return w
    excess = (np.cumsum(size) - radius) / np.arange(1, len(w) + 1)
    level = excess[np.flatnonzero(size >= excess)[-1]]  # >=, for a radius below the last digit of w
    return np.asarray(np.sign(w) * np.maximum(np.abs(w) - level, 0.0))


def along_axes(basis: Floats) -> Floats:
    """Return another orthonormal basis of the span of `basis`, (d, k).

    Every coordinate axis that lies in the span is one of the new basis vectors.
    """
    axes = np.linalg.norm(basis, axis=1) > 1 - 1e-12
    rest = np.where(axes[:, None], 0.0, basis)
    left, values, _ = np.linalg.svd(rest, full_matrices=False)
    return np.hstack([np.eye(len(basis))[:, axes], left[:, values > 0.5]])


@dataclass(frozen=True, eq=False)
class Given(Regularizer):
    """A regularizer of d coefficients that is given by its structure; solvers and certificates use it.

    >>> Given(Structure(0.0, (Norms(2, np.ones(1), np.array([[0, 1]])),))).value(np.array([3.0, 4.0]))
    5.0
    """

    given: Structure

    def structure(self, d: int) -> Structure:
        """Return the given structure, for the d coefficients."""
        return self.given


@dataclass(frozen=True)
class SquaredL2(Regularizer):
    """Omega(w) = 1/2 ||w||^2; Omega*(q) = 1/2 ||q||^2. On a kernel problem it is 1/2 c' K c.

    Examples
    --------
    >>> SquaredL2().value(np.array([3.0, 4.0]))
    12.5
    """

    name: ClassVar[str] = "squared-l2"
    text: ClassVar[str] = "½‖w‖²"
    tex: ClassVar[str] = r"\tfrac12\|w\|_2^2"

    def structure(self, d: int) -> Structure:
        """Return the squared l2 norm."""
        return Structure(1.0)


@dataclass(frozen=True)
class L1(Regularizer):
    """Omega(w) = ||w||_1; Omega* is the indicator of ||q||_inf <= 1.

    Examples
    --------
    >>> L1().value(np.array([3.0, -4.0]))
    7.0
    """

    name: ClassVar[str] = "l1"
    text: ClassVar[str] = "‖w‖₁"
    tex: ClassVar[str] = r"\|w\|_1"

    def structure(self, d: int) -> Structure:
        """Return one group per coefficient."""
        return Structure(0.0, (Norms(2, np.ones(d), np.arange(d)[:, None]),))


@dataclass(frozen=True)
class LInf(Regularizer):
    """Omega(w) = max_j `|w_j|`; Omega* is the indicator of ||q||_1 <= 1.

    Examples
    --------
    >>> LInf().value(np.array([3.0, -4.0]))
    4.0
    """

    name: ClassVar[str] = "l-inf"
    text: ClassVar[str] = "‖w‖_∞"
    tex: ClassVar[str] = r"\|w\|_\infty"

    def structure(self, d: int) -> Structure:
        """Return one group of all coefficients."""
        return Structure(0.0, (Norms(np.inf, np.ones(1), np.arange(d)[None, :]),))


@dataclass(frozen=True)
class ElasticNet(Regularizer):
    """Omega(w) = r ||w||_1 + (1 - r)/2 ||w||^2 with r = l1_ratio in [0, 1].

    Omega*(q) = ||soft(q, r)||^2 / (2 (1 - r)) for r < 1, where soft(q, r) is q soft-thresholded at r.

    Parameters
    ----------
    l1_ratio : float
        r, the weight of the l1 norm.

    Examples
    --------
    >>> ElasticNet(l1_ratio=0.5).value(np.array([3.0, -4.0]))
    9.75
    """

    name: ClassVar[str] = "elastic-net"
    l1_ratio: float = 0.5

    def __post_init__(self) -> None:
        object.__setattr__(self, "l1_ratio", as_nonnegative(self.l1_ratio, "l1_ratio"))
        if self.l1_ratio > 1:
            must = "'l1_ratio' must lie between 0 and 1"
            raise InvalidInputError(must, repr(self.l1_ratio), "Use 1 for pure l1, 0 for pure squared l2")

    def structure(self, d: int) -> Structure:
        """Return the squared l2 norm and one group per coefficient."""
        weights = np.full(d, self.l1_ratio)
        norms = (Norms(2, weights, np.arange(d)[:, None]),) if self.l1_ratio else ()
        return Structure(1 - self.l1_ratio, norms)

    def parts(self, d: int) -> tuple[tuple[float, Regularizer], ...]:
        """Return ((r, L1()), (1 - r, SquaredL2())) without a part of weight 0."""
        both = ((self.l1_ratio, L1()), (1 - self.l1_ratio, SquaredL2()))
        return tuple((weight, atom) for weight, atom in both if weight)

    def formula(self, mean: str = "mean", latex: bool = False) -> str:
        """Return the weighted sum as text or LaTeX."""
        r, rest = f"{self.l1_ratio:g}", f"{1 - self.l1_ratio:g}"
        tex = rf"\left({r}\|w\|_1 + {rest}\,\tfrac12\|w\|_2^2\right)"
        return tex if latex else f"({r} ‖w‖₁ + {rest} ½‖w‖²)"


@dataclass(frozen=True)
class GroupL2(Regularizer):
    """Omega(w) = sum over groups g of weight_g ||w_g||_2; dual norm max_g ||q_g||_2 / weight_g.

    Parameters
    ----------
    groups : sequence, optional
        Either one label per coefficient (``[0, 0, 1]``) or lists of column indices (``[[0, 1], [2]]``). Every
        coefficient belongs to exactly one group. None: a single group, so Omega(w) = ||w||_2.
    weights : sequence of float, optional
        One positive number per group, in sorted order of the labels or in the order of the lists. None: ones.

    Examples
    --------
    >>> GroupL2([[0, 1], [2]]).value(np.array([3.0, 4.0, 2.0]))
    7.0
    """

    name: ClassVar[str] = "group-l2"
    text: ClassVar[str] = "Σ_g ‖w_g‖₂"
    tex: ClassVar[str] = r"\textstyle\sum_g \|w_g\|_2"
    groups: Sequence[Any] | None = None
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        if self.groups is not None:
            object.__setattr__(self, "groups", _as_labels(self.groups))
        if self.weights is not None:
            if np.ndim(self.weights) != 1:
                must = "'weights' of the groups must be a list, one number per group"
                raise InvalidInputError(must, repr(self.weights), "Pass [1.0, 2.0], say")
            weights = tuple(as_positive(w, "weights of the groups") for w in self.weights)
            object.__setattr__(self, "weights", weights)

    def structure(self, d: int) -> Structure:
        """Return one `Norms` for each group size, with all groups of that size.

        It is an error if the labels do not match the d columns or the weights do not match the groups.
        """
        labels = np.zeros(d) if self.groups is None else np.asarray(self.groups)
        if len(labels) != d:
            must = f"'groups' must have one label for each of the {d} columns"
            raise InvalidInputError(must, f"{len(labels)} labels", "Pass one label per column")
        found, group = np.unique(labels, return_inverse=True)
        weights = np.ones(len(found)) if self.weights is None else np.array(self.weights)
        if len(weights) != len(found):
            must = f"'weights' must have one entry for each of the {len(found)} groups"
            raise InvalidInputError(must, f"{len(weights)} entries", "Pass one weight per group")
        sizes, columns = np.bincount(group), np.argsort(group, kind="stable")
        members = np.split(columns, np.cumsum(sizes)[:-1])
        alike = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]
        norms = (Norms(2, weights[some], np.stack([members[g] for g in some])) for some in alike)
        return Structure(0.0, tuple(norms))


def _as_labels(groups: Any) -> tuple[Any, ...]:
    """Convert `groups` to a tuple with one label per column.

    `groups` is already such a list of labels, or one list of column numbers per group.
    """
    if isinstance(groups, Sequence | np.ndarray) and not isinstance(groups, str):
        if all(np.ndim(g) == 1 for g in groups):
            label = {j: number for number, g in enumerate(groups) for j in g}
            if set(label) == set(range(sum(map(len, groups)))):
                return tuple(label[j] for j in range(len(label)))
        elif len({(np.ndim(g), isinstance(g, str)) for g in groups}) == 1:
            return tuple(np.asarray(groups).tolist())
    must = "'groups' must be one label per column, or lists that hold the number of each column once"
    raise InvalidInputError(must, repr(groups), "Pass [0, 0, 1] or [[0, 1], [2]], for instance")
