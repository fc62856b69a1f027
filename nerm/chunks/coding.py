"""The coding of chunks: labels, viewpoints and weights as numbers, the same in every pass."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from nerm import weights as neutrality_weights
from nerm.chunks.census import Census, ChunkRows, Fingerprint, checked, labels_of, values_of
from nerm.chunks.pieces import Raw
from nerm.errors import InvalidInputError
from nerm.model.blocks import Block, make_blocks
from nerm.model.expressions import Neutrality, Objective, viewpoint_of
from nerm.signs import sign
from nerm.typing import Array, Floats
from nerm.validation import as_labels, as_vector
from nerm.viewpoint import MOST_VALUES

# Label and viewpoint of the four kinds of rows.
LABELS = np.array([-1.0, -1.0, 1.0, 1.0])
VIEWS = np.array([-1.0, 1.0, -1.0, 1.0])


@dataclass(frozen=True, eq=False)
class Coding:
    """How chunks become numbers.

    Attributes
    ----------
    n : int
        The number of all rows.
    total : float
        Their sample weight.
    classes : (2,) array
        The labels; the second is +1.
    groups : dict
        Viewpoints by name: (the one they were read from, the value that is +1); None for numbers used as they
        are.
    kinds : dict of DataFrame
        By viewpoint, the rows of each of the four kinds, and their sample weight.
    fingerprints : dict
        By chunk, as the first pass saw it.
    recipe : Recipe, optional
        How the columns of a table become features.

    """

    n: int
    total: float
    classes: Array
    groups: Mapping[str, tuple[str, Any] | None]
    kinds: Mapping[str, pd.DataFrame]
    fingerprints: Mapping[str, Fingerprint]
    recipe: Any = None

    def read(self, raw: Raw) -> ChunkRows:
        """Return a chunk in numbers, after it was compared with what the first pass saw of it."""
        chunk = checked(raw)
        before, now = self.fingerprints.get(raw.name), chunk.fingerprint
        if before != now:
            told = f"{before.rows} before" if before else "which was not there"
            counted = before is None or before.rows != now.rows
            changed = f"{raw.name} with {now.rows} rows, {told}" if counted else f"other values in {raw.name}"
            do = "Read from files that nobody writes to, and run again"
            raise InvalidInputError("chunks must not change between passes", changed, do)
        return self.coded(chunk)

    def coded(self, chunk: ChunkRows) -> ChunkRows:
        """Return a chunk in numbers."""
        X = chunk.X if self.recipe is None else self.recipe(chunk.X)
        y = np.where(chunk.y == self.classes[1], 1.0, -1.0)
        views = {}
        for name, group in self.groups.items():
            if group is None:
                views[name] = as_vector(chunk.viewpoints[name], chunk.n, name)
            else:
                views[name] = np.where(chunk.viewpoints[group[0]] == group[1], 1.0, -1.0)
        return replace(chunk, X=X, y=y, viewpoints=views)


def learn(census: Census, recipe: Any = None, *, groups: bool) -> Coding:
    """Return the coding that a census asks for.

    Parameters
    ----------
    census : Census
        Of all chunks.
    recipe : callable, optional
        From a frame to a matrix; its method `in_order` puts the positive one of two labels last.
    groups : bool
        Whether viewpoints of two values, or of words or integers, are groups (as estimators read them).

    """
    labels = labels_of(census.counts[""])
    _, classes = as_labels(np.array(labels), len(labels))
    classes = classes if recipe is None else np.array(recipe.in_order(classes.tolist()))
    total = float(census.counts[""]["weight"].sum())
    if total <= 0:
        must = "'sample_weight' must have a positive entry"
        raise InvalidInputError(must, "only zeros in all chunks", "Give some row a positive weight")
    views: dict[str, tuple[str, Any] | None] = {}
    for name in census.form["viewpoints"]:
        views |= _viewpoints(name, values_of(census.counts[name]), groups=groups)
    kinds = {name: _kinds(census, name, group, classes) for name, group in views.items()}
    return Coding(census.n, total, classes, views, kinds, census.fingerprints, recipe)


def _viewpoints(name: str, values: list[Any], *, groups: bool) -> dict[str, tuple[str, Any] | None]:
    """Return the viewpoints of a column: numbers, two groups as -1/+1, or one viewpoint per value."""
    words = any(isinstance(value, str) for value in values)
    if not groups and not words:
        return {name: None}
    if len(values) == 1:
        must = f"{name!r} must take at least two values"
        do = "Choose another viewpoint, or fit without one"
        raise InvalidInputError(must, f"{values[0]!r} in every row", do)
    numbers = isinstance(values[0], float)
    if len(values) == 2 and not (numbers and np.isinf(values[0])):  # the signs of very many numbers
        return {name: (name, values[1])}
    if numbers:
        return {name: None}
    if len(values) > MOST_VALUES:
        must = f"{name!r} must have at most {MOST_VALUES} different values to be read as groups"
        do = "Convert it to float to use it as a real-valued viewpoint, or merge values"
        raise InvalidInputError(must, f"{len(values)}", do)
    return {f"{name}={value}": (name, value) for value in values}


def _kinds(census: Census, name: str, group: tuple[str, Any] | None, classes: Array) -> pd.DataFrame:
    """Return rows and weight of each kind (-, -), (-, +), (+, -), (+, +) of label and viewpoint."""
    counts = census.counts[name if group is None else group[0]]
    labels, values = (counts.index.get_level_values(level) for level in (0, 1))
    kind = 2 * (labels == classes[1]) + (values > 0 if group is None else values == group[1])
    return counts.groupby(kind).sum().reindex(range(4), fill_value=0.0)


@dataclass(frozen=True, eq=False)
class Terms:
    """The blocks of an objective on any chunk.

    Attributes
    ----------
    objective : Objective
        Its neutrality weights have names.
    coding : Coding
    weighted : bool
        Whether sample weights weigh neutrality too (a row of weight 2 is two rows), as estimators have it.
    class_weight : (2,) array, optional
        What multiplies the risk of either class.

    """

    objective: Objective
    coding: Coding
    weighted: bool = False
    class_weight: tuple[float, float] = (1.0, 1.0)

    @property
    def divisor(self) -> float:
        """The divisor of the sums: the weight or the number of rows."""
        return self.coding.total if self.weighted else float(self.coding.n)

    def kinds_weights(self, term: Neutrality, name: str) -> Floats:
        """Return the neutrality weight of each of the four kinds of rows."""
        sizes = self.coding.kinds[name]["weight" if self.weighted else "rows"].to_numpy(dtype=float)
        if isinstance(term.weights, str):
            return neutrality_weights.resolve(term.weights, LABELS, VIEWS, sizes)
        must = "the neutrality weights of a problem on chunks must have a name"
        names = ", ".join(map(repr, neutrality_weights.NAMES))
        raise InvalidInputError(must, "an array", f"Use one of {names}")

    def blocks(self, rows: ChunkRows) -> tuple[Block, ...]:
        """Return the blocks of a chunk, each row for itself."""
        terms = []
        for t in self.objective.terms:
            if isinstance(t.term, Neutrality):
                name = viewpoint_of(t.term, rows.viewpoints)
                kind = (2 * (rows.y > 0) + (sign(rows.viewpoints[name]) > 0)).astype(int)
                u = self.kinds_weights(t.term, name)[kind]
                t = replace(t, term=replace(t.term, weights=u * rows.sample_weight if self.weighted else u))
            terms.append(t)
        risk = rows.sample_weight * np.where(rows.y > 0, self.class_weight[1], self.class_weight[0])
        objective = replace(self.objective, terms=tuple(terms))
        return make_blocks(objective, rows.y, rows.viewpoints, risk)
