"""Tables as chunks of rows: files read in parts, coded by a recipe that the first pass learns."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import scipy.sparse as sp

from nerm.chunks.pieces import Raw
from nerm.tables.reading import PART_CELLS, TextTable, read_parts, table_of
from nerm.tables.recipe import Recipe, learn_recipe
from nerm.tables.values import missing_in, positive_of
from nerm.typing import Matrix


@dataclass(frozen=True, eq=False)
class TablePiece:
    """A table file, read in parts, or a frame; rows without target or viewpoint are left out.

    Attributes
    ----------
    source : str or DataFrame
        The path of the file, or the frame.
    target : str
        The column with the labels.
    viewpoints : tuple of str
        Those with the viewpoints; neither these nor the target are features.
    sample_weight : str, optional
        The column with the weights.
    name : str
        In errors.
    limit : int
        Bytes that a part of a file may take.

    """

    source: Any
    target: str
    viewpoints: tuple[str, ...]
    sample_weight: str | None
    name: str
    limit: int = 0

    def chunks(self) -> Iterator[Raw]:
        """Yield the parts that have rows."""
        roles = self.target, self.viewpoints, self.sample_weight
        if not isinstance(self.source, str):
            yield from _known_rows(table_of(self.source, self.name), *roles, self.name)
            return
        cells = max(1, min(PART_CELLS, self.limit // sys.getsizeof("")))
        for number, part in enumerate(read_parts(self.source, cells=cells)):
            yield from _known_rows(part, *roles, f"part {number} of {self.name}")


def _known_rows(
    part: TextTable, target: str, viewpoints: tuple[str, ...], weight: str | None, name: str
) -> Iterator[Raw]:
    """Yield the rows of a part whose target, viewpoint and weight are known, if there are any."""
    roles = [target, *viewpoints, *([weight] if weight else [])]
    table = part.rows(~np.any([missing_in(part[role]) for role in roles], axis=0))
    if not len(table):
        return
    columns = {column: table[column] for column in table.names if column not in roles}
    for column in columns.keys() & table.marks.keys():  # a frame does not know how a file writes numbers
        numbers = table.numbers(column)
        written = np.array([repr(x) for x in numbers.tolist()])
        columns[column] = np.where(np.isnan(numbers), table[column], written)
    views = {view: table[view].astype(str) for view in viewpoints}
    weights = table.numbers(weight) if weight else None
    yield Raw(
        pd.DataFrame(columns, dtype=object), table[target].astype(str), views, weights, name, is_table=True
    )


@dataclass(frozen=True)
class TableFeatures:
    """From a frame of words to a sparse matrix, by a recipe."""

    recipe: Recipe

    def __call__(self, frame: Any) -> Matrix:
        """Return the features of some rows."""
        return sp.csr_matrix(self.recipe.transform(table_of(frame))[0])

    def in_order(self, classes: list[Any]) -> list[Any]:
        """Return two labels with the positive one last, where they are words of a known pair."""
        if len(classes) == 2 and positive_of(*map(str, classes)) == str(classes[0]):
            return classes[::-1]
        return classes


def learn_features(sample: Any, levels: Mapping[str, set[str] | None]) -> TableFeatures:
    """Return the features of a table from a sample of its rows and the words that any row has in each column.

    A word that the sample does not have is learned from a copy of a row of it.
    """
    copies = []
    for name, words in levels.items():
        seen = set(sample[name])
        copies += [sample.iloc[[0]].assign(**{name: word}) for word in sorted((words or set()) - seen)]
    recipe, _ = learn_recipe(table_of(pd.concat([sample, *copies], ignore_index=True)), list(sample.columns))
    return TableFeatures(recipe)
