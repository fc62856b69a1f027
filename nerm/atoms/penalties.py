"""The regularizers: half the squared l2 norm, l1, l-infinity, the elastic net and the group lasso."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nerm.atoms import cvx as cp
from nerm.atoms.regularizer import Norm, Norms, Regularizer
from nerm.errors import InvalidInputError
from nerm.typing import Floats, Ints
from nerm.validation import as_nonnegative, as_positive


@dataclass(frozen=True)
class SquaredL2(Regularizer):
    """Omega(w) = 1/2 ||w||^2, its own conjugate. On a kernel problem it is 1/2 c' K c.

    Examples
    --------
    >>> import numpy as np
    >>> SquaredL2().value(np.array([3.0, 4.0]))
    12.5
    """

    name: ClassVar[str] = "squared-l2"

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

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text."""
        return "½‖w‖²"

    def latex_formula(self) -> str:
        """Return the term as LaTeX."""
        return r"\tfrac12\|w\|_2^2"


@dataclass(frozen=True)
class L1(Norm):
    """Omega(w) = ||w||_1; Omega* is the indicator of ||q||_inf <= 1.

    Examples
    --------
    >>> L1().value(np.array([3.0, -4.0]))
    7.0
    """

    name: ClassVar[str] = "l1"

    def value(self, w: Floats) -> float:
        """Return sum `|w_j|`."""
        return float(np.abs(w).sum())

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return sign(w_j), and [-1, 1] at 0."""
        return np.where(w > 0, 1.0, -1.0), np.where(w < 0, -1.0, 1.0)

    def dual_norm(self, q: Floats) -> float:
        """Return max `|q_j|`."""
        return float(np.abs(q).max(initial=0.0))

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return w, soft-thresholded at step."""
        return w - np.clip(w, -step, step)

    def norms(self, d: int) -> tuple[Norms, ...]:
        """Return a group for each coefficient."""
        return (Norms(2, np.ones(d), np.arange(d)[:, None]),)

    def expression(self, w: Any) -> Any:
        """Return norm1(w)."""
        return cp.norm1(w)

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text."""
        return "‖w‖₁"

    def latex_formula(self) -> str:
        """Return the term as LaTeX."""
        return r"\|w\|_1"


@dataclass(frozen=True)
class LInf(Norm):
    """Omega(w) = max_j `|w_j|`; Omega* is the indicator of ||q||_1 <= 1.

    Examples
    --------
    >>> LInf().value(np.array([3.0, -4.0]))
    4.0
    """

    name: ClassVar[str] = "l-inf"

    def value(self, w: Floats) -> float:
        """Return max `|w_j|`."""
        return float(np.abs(w).max(initial=0.0))

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return sign(w_j) outwards at a largest entry, and inwards if it is the only one; else 0."""
        size = np.abs(w)
        largest = size.max(initial=0.0)
        if largest == 0:
            return -np.ones_like(w), np.ones_like(w)
        at_top = size == largest
        alone = at_top if at_top.sum() == 1 else np.zeros_like(at_top)
        low = np.where(alone | (at_top & (w < 0)), np.sign(w), 0.0)
        high = np.where(alone | (at_top & (w > 0)), np.sign(w), 0.0)
        return low, high

    def dual_norm(self, q: Floats) -> float:
        """Return sum `|q_j|`."""
        return float(np.abs(q).sum())

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return w minus its projection on the l1 ball of radius step."""
        return w - project_l1_ball(w, step)

    def norms(self, d: int) -> tuple[Norms, ...]:
        """Return one group of all coefficients."""
        return (Norms(np.inf, np.ones(1), np.arange(d)[None, :]),)

    def expression(self, w: Any) -> Any:
        """Return norm_inf(w)."""
        return cp.norm_inf(w)

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text."""
        return "‖w‖_∞"

    def latex_formula(self) -> str:
        """Return the term as LaTeX."""
        return r"\|w\|_\infty"


def project_l1_ball(w: Floats, radius: float) -> Floats:
    """Project on { ||z||_1 <= radius }: soft-threshold at the level that attains the radius."""
    size = np.sort(np.abs(w))[::-1]
    if size.sum() <= radius:
        return w
    excess = (np.cumsum(size) - radius) / np.arange(1, len(w) + 1)
    level = excess[np.flatnonzero(size >= excess)[-1]]  # >=, for a radius below the last digit of w
    return np.asarray(np.sign(w) * np.maximum(np.abs(w) - level, 0.0))


@dataclass(frozen=True)
class ElasticNet(Regularizer):
    """Omega(w) = r ||w||_1 + (1 - r)/2 ||w||^2 with r = l1_ratio in [0, 1].

    Omega*(q) = ||soft(q, r)||^2 / (2 (1 - r)) for r < 1.

    Parameters
    ----------
    l1_ratio : float
        r.

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
        r = self.l1_ratio
        return r * float(np.abs(w).sum()) + 0.5 * (1 - r) * float(w @ w)

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return r times that of l1, plus (1 - r) w."""
        low, high = L1().subgradient(w)
        r = self.l1_ratio
        return r * low + (1 - r) * w, r * high + (1 - r) * w

    def conjugate(self, q: Floats) -> float:
        """Return the conjugate; for r = 1 that of l1."""
        r = self.l1_ratio
        if r == 1:
            return L1().conjugate(q)
        soft = L1().prox(q, r)
        return 0.5 * float(soft @ soft) / (1 - r)

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return the soft-thresholded and shrunk w."""
        r = self.l1_ratio
        return L1().prox(w, step * r) / (1 + step * (1 - r))

    def expression(self, w: Any) -> Any:
        """Return the weighted sum of the two cvxpy expressions."""
        r = self.l1_ratio
        return r * cp.norm1(w) + (1 - r) / 2 * cp.sum_squares(w)

    def parts(self) -> tuple[tuple[float, Regularizer], ...]:
        """Return r L1 + (1 - r) SquaredL2."""
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
    groups: Sequence[Any] | None = None
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        # A frozen value must be hashable: lists become tuples.
        if self.groups is not None:
            object.__setattr__(self, "groups", _as_groups(self.groups))
        if self.weights is not None:
            if np.ndim(self.weights) != 1:
                must = "'weights' of the groups must be a list, one number per group"
                raise InvalidInputError(must, repr(self.weights), "Pass [1.0, 2.0], say")
            weights = tuple(as_positive(w, "weights of the groups") for w in self.weights)
            object.__setattr__(self, "weights", weights)

    def indices(self, d: int) -> list[Ints]:
        """Return the columns of each group; refuse groups that do not partition the d columns."""
        if self.groups is None:
            return [np.arange(d)]
        if any(isinstance(g, tuple) for g in self.groups):
            lists = [np.asarray(g, dtype=int).ravel() for g in self.groups]
            members = np.concatenate(lists).tolist()
            if sorted(members) != list(range(d)):
                strange = sorted(set(members) - set(range(d)))
                must = f"'groups' must contain each of the {d} columns exactly once"
                got = f"{len(members)} indices, {len(set(members))} of them different"
                got += f", and the column {strange[0]}" if strange else ""
                do = "List every column in one group (a group of its own if need be)"
                raise InvalidInputError(must, got, do)
            return lists
        if len(self.groups) != d:
            must = f"'groups' must have one label for each of the {d} columns"
            raise InvalidInputError(must, f"{len(self.groups)} labels", "Add the missing labels")
        labels = np.asarray(self.groups)
        return [np.flatnonzero(labels == label) for label in np.unique(labels)]

    def check(self, d: int) -> None:
        """Refuse groups that do not partition the d columns, or weights that do not match the groups."""
        self._pairs(d)

    def _pairs(self, d: int) -> list[tuple[float, Ints]]:
        groups = self.indices(d)
        weights = self.weights or (1.0,) * len(groups)
        if len(weights) != len(groups):
            must = f"'weights' must have one entry for each of the {len(groups)} groups"
            raise InvalidInputError(must, f"{len(weights)} entries", "Match weights and groups")
        return list(zip(weights, groups, strict=True))

    def value(self, w: Floats) -> float:
        """Return sum_g weight_g ||w_g||."""
        return float(sum(weight * np.linalg.norm(w[g]) for weight, g in self._pairs(len(w))))

    def subgradient(self, w: Floats) -> tuple[Floats, Floats]:
        """Return weight_g w_g / ||w_g||, and [-weight_g, weight_g] in each coordinate where w_g = 0."""
        low, high = np.empty_like(w), np.empty_like(w)
        for weight, g in self._pairs(len(w)):
            size = np.linalg.norm(w[g])
            low[g], high[g] = (weight * w[g] / size,) * 2 if size > 0 else (-weight, weight)
        return low, high

    def dual_norm(self, q: Floats) -> float:
        """Return max_g ||q_g|| / weight_g."""
        return float(max(np.linalg.norm(q[g]) / weight for weight, g in self._pairs(len(q))))

    def prox(self, w: Floats, step: float = 1.0) -> Floats:
        """Return w with every group shortened by step weight_g, or set to zero."""
        shrunk = np.zeros_like(w)
        for weight, g in self._pairs(len(w)):
            size = np.linalg.norm(w[g])
            if size > step * weight:
                shrunk[g] = w[g] * (1 - step * weight / size)
        return shrunk

    def norms(self, d: int) -> tuple[Norms, ...]:
        """Return the groups by their size."""
        found = []
        for size in sorted({len(g) for g in self.indices(d)} - {0}):
            weights, groups = zip(*((w, g) for w, g in self._pairs(d) if len(g) == size), strict=True)
            found.append(Norms(2, np.array(weights), np.stack(groups)))
        return tuple(found)

    def expression(self, w: Any) -> Any:
        """Return the sum of cvxpy norms."""
        return cp.sum([weight * cp.norm2(w[g]) for weight, g in self._pairs(w.shape[0])])

    def formula(self, mean: str = "mean") -> str:
        """Return the term as text."""
        return "Σ_g ‖w_g‖₂"

    def latex_formula(self) -> str:
        """Return the term as LaTeX."""
        return r"\textstyle\sum_g \|w_g\|_2"


def _as_groups(groups: Any) -> tuple[Any, ...]:
    """Return lists of whole indices, or labels of one kind, as tuples."""
    if isinstance(groups, str) or not isinstance(groups, Sequence | np.ndarray):
        must = "'groups' must be labels or lists of columns"
        raise InvalidInputError(must, repr(groups), "Pass [0, 0, 1] or [[0, 1], [2]]")
    nested = [isinstance(g, Sequence | np.ndarray) and not isinstance(g, str) for g in groups]
    if any(nested):
        if not all(nested) or not all(isinstance(j, int | np.integer) for g in groups for j in g):
            must = "'groups' must be lists of whole column numbers, or one label per column"
            raise InvalidInputError(must, repr(groups), "Do not mix the two")
        return tuple(tuple(int(j) for j in g) for g in groups)
    if len({isinstance(g, str) for g in groups}) > 1:
        must = "'groups' must be labels of one kind"
        raise InvalidInputError(must, repr(groups), "Use all numbers or all text")
    return tuple(g.item() if isinstance(g, np.generic) else g for g in groups)
