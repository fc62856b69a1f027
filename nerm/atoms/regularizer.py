"""Regularizers: convex functions of the coefficients with value 0 at 0.

The module defines the base classes, half the squared l2 norm, l1, l-infinity, the elastic net and the group
lasso.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np

from nerm.atoms import cvx as cp
from nerm.errors import InvalidInputError
from nerm.model.expressions import Term
from nerm.typing import Floats, Ints
from nerm.validation import as_nonnegative, as_positive


class Norms(NamedTuple):
    """The sum over G groups g of weights_g ||w_g||, where all groups have the same size k and the same norm.

    Attributes
    ----------
    order : {2, inf}
        2 for the Euclidean norm, inf for the largest absolute entry.
    weights : (G,) array
        One positive weight per group.
    groups : (G, k) array
        The indices of the coefficients of each group.
    """

    order: float
    weights: Floats
    groups: Ints


class Regularizer(Term):
    """A convex Omega(w) >= 0 with Omega(0) = 0; the intercept is never part of w.

    A regularizer is a term that can be added and weighted: ``0.1 * L1()``. Vectors w and q have shape (d,).

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
    numeric: bool = False  # whether the conjugate or the prox is computed numerically, with an error

    @abstractmethod
    def value(self, w: Floats) -> float:
        """Return Omega(w), a number, for w of shape (d,)."""

    @abstractmethod
    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return (low, high), both (d,), the range of each coordinate of the subgradients at w.

        These are the one-sided derivatives of Omega along the coordinate axes. For a separable regularizer
        the box is the subdifferential itself, otherwise the smallest box around it.
        """

    @abstractmethod
    def conjugate(self, q: Floats) -> float:
        """Return Omega*(q) = sup_w q.w - Omega(w), a number, for q of shape (d,)."""

    @abstractmethod
    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return argmin_z  step Omega(z) + ||z - w||^2 / 2, (d,)."""

    @abstractmethod
    def expression(self, w: Any) -> Any:
        """Return Omega of a cvxpy vector of length d: a convex scalar expression."""

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text; by default `text`."""
        return self.text

    def latex_formula(self) -> str:
        """Return the term as LaTeX; by default `tex`."""
        return self.tex

    def parts(self) -> tuple[tuple[float, Regularizer], ...]:
        """Return pairs (weight, regularizer) whose weighted sum is Omega; by default ((1, self),)."""
        return ((1.0, self),)

    def norms(self, d: int) -> tuple[Norms, ...] | None:
        """Return Omega as a sum of norms of groups of the d coefficients, or None if it is no such sum."""
        return None

    def free(self, d: int) -> Floats:
        """Return an orthonormal basis, (d, k), of the directions along which Omega is constant."""
        return np.zeros((d, 0))

    def finite_multiple(self, q: Floats) -> float:
        """Return a number t in [0, 1] for which Omega*(t q) is finite.

        Try 1, numbers close to 1, then 1/2, 1/4, ... and return the first with a finite conjugate, or else 0.
        """
        for t in (*(1 - 10.0**-k for k in (20, 12, 9, 6, 3)), *(0.5**k for k in range(1, 40))):
            if np.isfinite(self.conjugate(t * q)):
                return t
        return 0.0

    def check(self, d: int) -> None:
        """Raise an error if the regularizer, for instance its groups, does not fit d coefficients."""


class Norm(Regularizer):
    """A regularizer that is a norm; its conjugate is the indicator of the dual norm's unit ball.

    Examples
    --------
    >>> from nerm import L1
    >>> q = np.array([0.5, -2.0])
    >>> L1().dual_norm(q), L1().conjugate(q), L1().conjugate(q / 2)
    (2.0, inf, 0.0)
    """

    @abstractmethod
    def dual_norm(self, q: Floats) -> float:
        """Return sup { q.w : Omega(w) <= 1 }."""

    def conjugate(self, q: Floats) -> float:
        """Return 0 inside the dual unit ball (up to rounding) and +inf outside."""
        return 0.0 if self.dual_norm(q) <= 1.0 + 1e-12 else np.inf

    def finite_multiple(self, q: Floats) -> float:
        """Return the largest t in [0, 1] for which t q lies in the unit ball of the dual norm."""
        return min(1.0, 1.0 / max(self.dual_norm(q), np.finfo(float).tiny))


def along_axes(basis: Floats) -> Floats:
    """Return another orthonormal basis of the span of `basis`, (d, k).

    Every coordinate axis that lies in the span is one of the new basis vectors.
    """
    axes = np.linalg.norm(basis, axis=1) > 1 - 1e-12
    rest = np.where(axes[:, None], 0.0, basis)
    left, values, _ = np.linalg.svd(rest, full_matrices=False)
    return np.hstack([np.eye(len(basis))[:, axes], left[:, values > 0.5]])


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

    def value(self, w: Floats) -> float:
        """Return 1/2 ||w||^2."""
        return 0.5 * float(w @ w)

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return w."""
        return w, w

    def conjugate(self, q: Floats) -> float:
        """Return 1/2 ||q||^2."""
        return 0.5 * float(q @ q)

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return w / (1 + step)."""
        return w / (1.0 + step)

    def expression(self, w: Any) -> Any:
        """Return sum_squares(w) / 2."""
        return cp.sum_squares(w) / 2


@dataclass(frozen=True)
class L1(Norm):
    """Omega(w) = ||w||_1; Omega* is the indicator of ||q||_inf <= 1.

    Examples
    --------
    >>> L1().value(np.array([3.0, -4.0]))
    7.0
    """

    name: ClassVar[str] = "l1"
    text: ClassVar[str] = "‖w‖₁"
    tex: ClassVar[str] = r"\|w\|_1"

    def value(self, w: Floats) -> float:
        """Return sum `|w_j|`."""
        return float(np.abs(w).sum())

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return (low, high), both (d,): sign(w_j) twice where w_j is not 0, else -1 and 1."""
        return np.where(w > 0, 1.0, -1.0), np.where(w < 0, -1.0, 1.0)

    def dual_norm(self, q: Floats) -> float:
        """Return max `|q_j|`."""
        return float(np.abs(q).max(initial=0.0))

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return w soft-thresholded at `step`, (d,)."""
        return w - np.clip(w, -step, step)

    def norms(self, d: int) -> tuple[Norms, ...]:
        """Return the l1 norm as a sum of norms with one group per coefficient."""
        return (Norms(2, np.ones(d), np.arange(d)[:, None]),)

    def expression(self, w: Any) -> Any:
        """Return norm1(w)."""
        return cp.norm1(w)


@dataclass(frozen=True)
class LInf(Norm):
    """Omega(w) = max_j `|w_j|`; Omega* is the indicator of ||q||_1 <= 1.

    Examples
    --------
    >>> LInf().value(np.array([3.0, -4.0]))
    4.0
    """

    name: ClassVar[str] = "l-inf"
    text: ClassVar[str] = "‖w‖_∞"
    tex: ClassVar[str] = r"\|w\|_\infty"

    def value(self, w: Floats) -> float:
        """Return max `|w_j|`."""
        return float(np.abs(w).max(initial=0.0))

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return (low, high), both (d,), the one-sided derivatives along the coordinate axes.

        Both are sign(w_j) if `|w_j|` is the only largest entry. If several entries are largest, each of them
        has the interval between 0 and sign(w_j), or [-1, 1] at w = 0. All other entries have 0.
        """
        size = np.abs(w)
        top = size == size.max(initial=0.0)
        alone = top & (top.sum() == 1)
        low = np.where(alone | (top & (w <= 0)), np.where(w > 0, 1.0, -1.0), 0.0)
        high = np.where(alone | (top & (w >= 0)), np.where(w < 0, -1.0, 1.0), 0.0)
        return low, high

    def dual_norm(self, q: Floats) -> float:
        """Return sum `|q_j|`."""
        return float(np.abs(q).sum())

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return w minus its projection on the l1 ball of radius `step`, (d,)."""
        return w - project_l1_ball(w, step)

    def norms(self, d: int) -> tuple[Norms, ...]:
        """Return the l-infinity norm as one group of all coefficients."""
        return (Norms(np.inf, np.ones(1), np.arange(d)[None, :]),)

    def expression(self, w: Any) -> Any:
        """Return norm_inf(w)."""
        return cp.norm_inf(w)


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

    def value(self, w: Floats) -> float:
        """Return r ||w||_1 + (1 - r)/2 ||w||^2."""
        return self.l1_ratio * L1().value(w) + (1 - self.l1_ratio) * SquaredL2().value(w)

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return (low, high), both (d,): r times the subgradients of the l1 norm, plus (1 - r) w."""
        low, high = L1().subgradient(w)
        r = self.l1_ratio
        return r * low + (1 - r) * w, r * high + (1 - r) * w

    def conjugate(self, q: Floats) -> float:
        """Return ||soft(q, r)||^2 / (2 (1 - r)); for r = 1 the conjugate of the l1 norm."""
        r = self.l1_ratio
        if r == 1:
            return L1().conjugate(q)
        soft = L1().prox(q, r)
        return 0.5 * float(soft @ soft) / (1 - r)

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return w soft-thresholded at step r and divided by 1 + step (1 - r), (d,)."""
        r = self.l1_ratio
        return L1().prox(w, step * r) / (1 + step * (1 - r))

    def expression(self, w: Any) -> Any:
        """Return r norm1(w) + (1 - r) sum_squares(w) / 2."""
        return self.l1_ratio * L1().expression(w) + (1 - self.l1_ratio) * SquaredL2().expression(w)

    def parts(self) -> tuple[tuple[float, Regularizer], ...]:
        """Return ((r, L1()), (1 - r, SquaredL2())) without a part of weight 0."""
        both = ((self.l1_ratio, L1()), (1 - self.l1_ratio, SquaredL2()))
        return tuple((weight, atom) for weight, atom in both if weight)

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text."""
        return f"({self.l1_ratio:g} ‖w‖₁ + {1 - self.l1_ratio:g} ½‖w‖²)"

    def latex_formula(self) -> str:
        """Return the term as LaTeX."""
        return rf"\left({self.l1_ratio:g}\|w\|_1 + {1 - self.l1_ratio:g}\,\tfrac12\|w\|_2^2\right)"


@dataclass(frozen=True)
class GroupL2(Norm):
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

    def check(self, d: int) -> None:
        """Raise an error if the labels do not match the d columns or the weights do not match the groups."""
        self._layout(d)

    def _layout(self, d: int) -> tuple[Ints, Floats]:
        """Return the group number of each column, (d,), and the weight of each group, (G,)."""
        labels = np.zeros(d) if self.groups is None else np.asarray(self.groups)
        if len(labels) != d:
            must = f"'groups' must have one label for each of the {d} columns"
            raise InvalidInputError(must, f"{len(labels)} labels", "Add the missing labels")
        found, group = np.unique(labels, return_inverse=True)
        weights = np.ones(len(found)) if self.weights is None else np.array(self.weights)
        if len(weights) != len(found):
            must = f"'weights' must have one entry for each of the {len(found)} groups"
            raise InvalidInputError(must, f"{len(weights)} entries", "Match weights and groups")
        return group, weights

    def _lengths(self, w: Floats) -> tuple[Ints, Floats, Floats]:
        """Return the group number of each column, (d,), and weight and norm of each group, both (G,)."""
        group, weights = self._layout(len(w))
        return group, weights, np.sqrt(np.bincount(group, w * w, len(weights)))

    def value(self, w: Floats) -> float:
        """Return sum_g weight_g ||w_g||."""
        _, weights, lengths = self._lengths(w)
        return float(weights @ lengths)

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return (low, high), both (d,): twice weight_g w_g / ||w_g||, or -+weight_g where w_g = 0."""
        group, weights, lengths = self._lengths(w)
        slope, at_zero = (weights / np.where(lengths > 0, lengths, 1.0))[group] * w, (lengths == 0)[group]
        return slope - (at_zero * weights[group]), slope + (at_zero * weights[group])

    def dual_norm(self, q: Floats) -> float:
        """Return max_g ||q_g|| / weight_g."""
        _, weights, lengths = self._lengths(q)
        return float(np.max(lengths / weights))

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return w, (d,), with the norm of each group reduced by step weight_g, but not below 0."""
        group, weights, lengths = self._lengths(w)
        kept = np.maximum(lengths - step * weights, 0.0) / np.where(lengths > 0, lengths, 1.0)
        return kept[group] * w

    def norms(self, d: int) -> tuple[Norms, ...]:
        """Return one `Norms` for each group size, with all groups of that size."""
        group, weights = self._layout(d)
        sizes, columns = np.bincount(group), np.argsort(group, kind="stable")
        members = np.split(columns, np.cumsum(sizes)[:-1])
        alike = [np.flatnonzero(sizes == size) for size in np.unique(sizes)]
        return tuple(Norms(2, weights[some], np.stack([members[g] for g in some])) for some in alike)

    def expression(self, w: Any) -> Any:
        """Return the sum over groups of weight_g norm2(w_g)."""
        group, weights = self._layout(w.shape[0])
        columns = [np.flatnonzero(group == g) for g in range(len(weights))]
        return cp.sum([weight * cp.norm2(w[g]) for weight, g in zip(weights, columns, strict=True)])


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
