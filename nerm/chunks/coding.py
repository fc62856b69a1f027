"""The coding of chunks: the map from their values to numbers.

It maps labels, viewpoints and weights in the same way in every pass.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from nerm import weights as neutrality_weights
from nerm.chunks.census import Census, checked, fingerprint
from nerm.chunks.pieces import ChunkRows
from nerm.errors import InvalidInputError
from nerm.model.blocks import Block, make_blocks
from nerm.model.expressions import Neutrality, Objective, viewpoint_of
from nerm.model.problem import Problem
from nerm.typing import Array, Floats
from nerm.validation import as_labels, as_vector
from nerm.viewpoint import positive_values

# The label and the sign of the viewpoint of the four kinds of rows (-, -), (-, +), (+, -), (+, +).
LABELS = np.array([-1.0, -1.0, 1.0, 1.0])
VIEWS = np.array([-1.0, 1.0, -1.0, 1.0])


@dataclass(frozen=True, eq=False)
class Coding:
    """The map from the values of a chunk to numbers.

    Attributes
    ----------
    n : int
        The number of all rows.
    total : float
        The sum of the sample weights of all rows.
    classes : (2,) array
        The labels; the second is +1. Empty for a regression.
    groups : dict
        For each viewpoint, by name, the pair (column it is read from, value that is +1); the value is None if
        the numbers of the column are used unchanged.
    kinds : dict of DataFrame
        For each viewpoint, the number of rows and the sample weight of each of the four kinds of rows.
    fingerprints : dict
        The fingerprint of each chunk in the first pass, by name.
    recipe : Recipe, optional
        The map from the columns of a table to features.

    """

    n: int
    total: float
    classes: Array
    groups: Mapping[str, tuple[str, Any]]
    kinds: Mapping[str, pd.DataFrame]
    fingerprints: Mapping[str, str]
    recipe: Any = None

    def read(self, raw: ChunkRows) -> ChunkRows:
        """Return a raw chunk coded as numbers.

        Raise an error if the chunk changed since the first pass.
        """
        rows, before = checked(raw), self.fingerprints.get(raw.name)
        if before != fingerprint(rows):
            new = f"{raw.name} with {rows.n} rows, which was not there"
            got = new if before is None else f"other values in {raw.name}"
            do = "Read from files that nobody writes to, and run again"
            raise InvalidInputError("chunks must not change between passes", got, do)
        return self.coded(rows)

    def coded(self, chunk: ChunkRows) -> ChunkRows:
        """Return a validated chunk coded as numbers."""
        X = chunk.X if self.recipe is None else self.recipe(chunk.X)
        real = not len(self.classes)
        y = as_vector(chunk.y, chunk.n, "y") if real else np.where(chunk.y == self.classes[1], 1.0, -1.0)
        views = {}
        for name, (column, value) in self.groups.items():
            v = chunk.viewpoints[column]
            views[name] = as_vector(v, chunk.n, name) if value is None else np.where(v == value, 1.0, -1.0)
        return replace(chunk, X=X, y=y, viewpoints=views, is_table=False)


def learn(census: Census, recipe: Any = None, *, groups: bool, real: bool = False) -> Coding:
    """Return the coding of all chunks, computed from the counts of the first pass.

    Parameters
    ----------
    census : Census
        The result of the first pass over all chunks.
    recipe : callable, optional
        Maps a DataFrame to a matrix; its method `in_order` sorts two labels so that the positive one is last.
    groups : bool
        Whether a viewpoint of more than two strings or integers has one term per value, as in the estimators.
    real : bool
        Whether y is the real target of a regression.

    """
    labels = census.counts[""].index.levels[0].tolist()
    classes = np.zeros(0) if real else as_labels(np.array(labels), len(labels))[1]
    classes = classes if recipe is None or real else np.array(recipe.in_order(classes.tolist()))
    positive = None if real else classes[1]
    total = float(census.counts[""]["weight"].sum())
    if total <= 0:
        must = "'sample_weight' must have a positive entry"
        raise InvalidInputError(must, "only zeros in all chunks", "Give some row a positive weight")
    views: dict[str, tuple[str, Any]] = {}
    for name in census.form["viewpoints"]:
        views |= _viewpoints(name, census.counts[name].index.levels[1].tolist(), groups=groups)
    kinds = {name: _kinds(census.counts[at], value, positive) for name, (at, value) in views.items()}
    return Coding(census.n, total, classes, views, kinds, census.fingerprints, recipe)


def _viewpoints(name: str, values: list[Any], *, groups: bool) -> dict[str, tuple[str, Any]]:
    """Return the viewpoints of a column: name -> (column, value that is +1).

    `values` are the distinct values of the column. Numbers are one viewpoint, with None in place of a value.
    Two groups are one viewpoint of -1 and +1. More groups are one viewpoint per value.
    """
    real = isinstance(values[0], float) and np.isinf(values[0])  # the signs of very many numbers
    terms = {name: None} if real else positive_values(name, np.array(values), name, several=groups)
    return {term: (name, value) for term, value in terms.items()}


def _kinds(counts: pd.DataFrame, value: Any, positive: Any) -> pd.DataFrame:
    """Return the number and the weight of the rows of each of the four kinds.

    The kinds are the signs of (label, viewpoint), in the order of `LABELS` and `VIEWS`. `value` is the value
    of the viewpoint that is +1, or None for numbers; `positive` is the label that is +1 (None: no row).
    """
    labels, values = (counts.index.get_level_values(level) for level in (0, 1))
    kind = 2 * (labels == positive) + (values > 0 if value is None else values == value)
    return counts.groupby(kind).sum().reindex(range(4), fill_value=0.0)


@dataclass(frozen=True, eq=False)
class Terms:
    """An objective and a coding, which make the blocks of any chunk.

    Attributes
    ----------
    objective : Objective
        Its neutrality weights must be names, not arrays.
    coding : Coding
        The map from the values of a chunk to numbers.
    weighted : bool
        Whether sample weights apply to neutrality too (a row of weight 2 counts as two rows), as in the
        estimators.
    class_weight : (2,) array, optional
        The factors of the risk of the classes -1 and +1.

    """

    objective: Objective
    coding: Coding
    weighted: bool = False
    class_weight: tuple[float, float] = (1.0, 1.0)

    @property
    def divisor(self) -> float:
        """The divisor of the sums in the objective.

        It is the total sample weight if `weighted`, else the number of rows.
        """
        return self.coding.total if self.weighted else float(self.coding.n)

    def kinds_weights(self, term: Neutrality, name: str) -> Floats:
        """Return the neutrality weight of each of the four kinds of rows, (4,)."""
        sizes = self.coding.kinds[name]["weight" if self.weighted else "rows"].to_numpy(dtype=float)
        if not isinstance(term.weights, str):
            must = "the neutrality weights of a problem on chunks must have a name"
            raise InvalidInputError(must, "an array", f"Use one of {', '.join(neutrality_weights.NAMES)}")
        if term.weights == "conditional" and not len(self.coding.classes):
            must = "a regression on chunks cannot have weights within bins of y"
            raise InvalidInputError(must, "'conditional'", "Use 'balanced', or rows in memory")
        return neutrality_weights.resolve(term.weights, LABELS, VIEWS, sizes)

    def blocks(self, rows: ChunkRows | Problem) -> tuple[Block, ...]:
        """Return the blocks of the objective on a coded chunk or on a problem."""
        terms = []
        for t in self.objective.terms:
            if isinstance(t.term, Neutrality):
                name = viewpoint_of(t.term, rows.viewpoints)
                label = rows.y > 0 if len(self.coding.classes) else 0
                kind = (2 * label + (rows.viewpoints[name] > 0)).astype(int)
                u = self.kinds_weights(t.term, name)[kind]
                t = replace(t, term=replace(t.term, weights=u * rows.sample_weight if self.weighted else u))
            terms.append(t)
        risk = rows.sample_weight * np.where(rows.y > 0, self.class_weight[1], self.class_weight[0])
        objective = replace(self.objective, terms=tuple(terms))
        return make_blocks(objective, rows.y, rows.viewpoints, risk)
