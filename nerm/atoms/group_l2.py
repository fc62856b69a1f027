"""The group lasso norm."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from nerm.atoms.regularizer import Norm, Norms
from nerm.errors import InvalidInputError
from nerm.typing import Floats, Ints
from nerm.validation import as_positive


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
                must = "'weights' of the groups must be a list, one number a group"
                raise InvalidInputError(must, repr(self.weights), "Pass [1.0, 2.0], say")
            weights = tuple(as_positive(w, "weights of the groups") for w in self.weights)
            object.__setattr__(self, "weights", weights)

    def indices(self, d: int) -> list[Ints]:
        """Return the column indices of each group, for d columns; refuse groups that do not partition them."""
        if self.groups is None:
            return [np.arange(d)]
        if any(isinstance(g, tuple) for g in self.groups):
            lists = [np.asarray(g, dtype=int).ravel() for g in self.groups]
            members = np.concatenate(lists).tolist()
            if sorted(members) != list(range(d)):
                strange = sorted(set(members) - set(range(d)))
                raise InvalidInputError(
                    f"'groups' must contain each of the {d} columns exactly once",
                    f"{len(members)} indices, {len(set(members))} of them different"
                    + (f", and the column {strange[0]}" if strange else ""),
                    "List every column in one group (a group of its own if need be)",
                )
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
        pairs = self._pairs(d)
        sizes = sorted({len(g) for _, g in pairs} - {0})
        alike = [[(weight, g) for weight, g in pairs if len(g) == size] for size in sizes]
        return tuple(
            Norms(2, np.array([w for w, _ in some]), np.stack([g for _, g in some])) for some in alike
        )

    def expression(self, w: Any) -> Any:
        """Return the sum of cvxpy norms."""
        import cvxpy as cp

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
            must = "'groups' must be lists of whole column numbers, or one label a column"
            raise InvalidInputError(must, repr(groups), "Do not mix the two")
        return tuple(tuple(int(j) for j in g) for g in groups)
    if len({isinstance(g, str) for g in groups}) > 1:
        raise InvalidInputError(
            "'groups' must be labels of one kind", repr(groups), "Use all numbers or all text"
        )
    return tuple(g.item() if isinstance(g, np.generic) else g for g in groups)
