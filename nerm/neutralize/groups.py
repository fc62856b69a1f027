"""The groups that a measure compares: those of one viewpoint, or the intersections of several."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nerm.signs import sign
from nerm.typing import Floats, Ints


@dataclass(frozen=True, eq=False)
class Groups:
    """Groups of rows that are compared with each other.

    Attributes
    ----------
    names : tuple of str
        The names of the k groups.
    codes : (n,) array of int
        The group of each row, 0 .. k - 1.
    views : dict of (n,) arrays
        The viewpoints of the one-sided terms, by name. Two groups have one: the viewpoint itself. More groups
        have one each, which compares the group with the rest.

    """

    names: tuple[str, ...]
    codes: Ints
    views: Mapping[str, Floats]

    def at(self, rows: Ints) -> "Groups":
        """Return the groups of the rows with the given indices."""
        return Groups(self.names, self.codes[rows], {name: v[rows] for name, v in self.views.items()})


def groups_of(
    views: Mapping[str, Floats], how: str, *, pairs: bool = False, smallest: int = 50
) -> tuple[Groups, ...]:
    """Return the groups of viewpoints that are numbers, by name.

    With ``how="each"`` every viewpoint has its own groups: the two signs of a viewpoint, or the values of a
    viewpoint that is coded as "name=value". With ``how="intersect"`` there is one set of groups, the
    combinations of all viewpoints. Of more than two groups, the two smallest are pooled until each has
    `smallest` rows. With `pairs`, as for C_sgn, each viewpoint has two groups.

    >>> v, w = np.repeat([1.0, -1.0], 100), np.tile([1.0, -1.0], 100)
    >>> [groups.names for groups in groups_of({"sex": v, "old": w}, "each")]
    [('sex -', 'sex +'), ('old -', 'old +')]
    >>> groups_of({"sex": v, "old": w}, "intersect")[0].names
    ('sex - & old -', 'sex - & old +', 'sex + & old -', 'sex + & old +')
    """
    families: dict[str, dict[str, Floats]] = {}
    for name, v in views.items():
        family = "" if how == "intersect" else name.partition("=")[0]
        families.setdefault(name if pairs else family, {})[name] = v
    return tuple(_groups(family, smallest) for family in families.values())


def _groups(family: Mapping[str, Floats], smallest: int) -> Groups:
    """Return one group per combination of the signs of the given viewpoints.

    `family` holds the viewpoints by name. Of more than two groups, the two smallest are pooled until each has
    `smallest` rows.
    """
    signs = np.column_stack([sign(v) for v in family.values()])
    patterns, codes = np.unique(signs, axis=0, return_inverse=True)
    codes = codes.ravel()
    if len(family) == 1:
        (name,) = family
        return Groups(tuple(f"{name} {'+' if p > 0 else '-'}" for p in patterns[:, 0]), codes, family)
    names = [_pattern_name(list(family), pattern.tolist()) for pattern in patterns]
    sizes = np.bincount(codes)
    while len(names) > 2 and sizes.min() < smallest:
        small, other = sorted(np.argsort(sizes, kind="stable")[:2].tolist())
        both = f"{names[small]} or {names.pop(other)}"
        names[small] = f"pooled: {both.replace('pooled: ', '')}"
        codes = np.where(codes == other, small, codes - (codes > other))
        sizes = np.bincount(codes)
    if len(names) == 2:
        return Groups(tuple(names), codes, {names[1]: np.where(codes == 1, 1.0, -1.0)})
    return Groups(
        tuple(names), codes, {name: np.where(codes == k, 1.0, -1.0) for k, name in enumerate(names)}
    )


def _pattern_name(names: list[str], pattern: list[float]) -> str:
    """Return the name of the rows with these signs of the viewpoints.

    A viewpoint "name=value" is part of the name where its sign is +1.
    """
    parts = [
        name if "=" in name else f"{name} {'+' if side > 0 else '-'}"
        for name, side in zip(names, pattern, strict=True)
        if side > 0 or "=" not in name
    ]
    return " & ".join(parts) or "others"
