"""Code columns of words as numbers: a recipe, learned on the training rows and saved with the model.

Numbers are centred and scaled; a missing one becomes the median and, where training rows had some, sets a
column of its own. Dates are year, month and days as such numbers. Nominal values get a column each; missing
is a value like the others where training rows had it. A recipe is saved as strings and floats, never as code.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import pandas as pd
import scipy.sparse as sp

from nerm.chunks.pieces import Raw
from nerm.datasets.coding import Levels
from nerm.errors import InvalidInputError
from nerm.tables.reading import PART_CELLS, TextTable, read_parts, table_of
from nerm.tables.roles import NUMBERS, WORDS, kind_of, values_of
from nerm.tables.values import MISSING, missing_in, positive_of, quoted
from nerm.typing import Array, Bools, Floats, Ints, Matrix

MOST_LEVELS = 100  # nominal columns keep this many values and pool the rest
OTHER, MISSING_LEVEL = "(other)", "(missing)"


@dataclass(frozen=True)
class Numeric:
    """Numbers, or one part of dates: (x - mean) / scale, the median for missing.

    Attributes
    ----------
    name
        Of the column.
    mean, scale, median
        Of the numbers of the training rows.
    indicator
        Whether a second column marks missing values.
    holds, part
        What the column holds, as `nerm.tables.roles.kind_of` says, and which part of its dates this is.
    """

    name: str
    mean: float
    scale: float
    median: float
    indicator: bool
    holds: str = NUMBERS
    part: str = ""

    @classmethod
    def learn(cls, name: str, numbers: Floats, indicator: bool, holds: str, part: str) -> Self:
        """Return the coding of a column with these known numbers."""
        unit = float(np.abs(numbers).max()) or 1.0  # against overflow
        mean, scale = unit * float((numbers / unit).mean()), unit * float((numbers / unit).std())
        return cls(name, mean, scale or 1.0, float(np.median(numbers)), indicator, holds, part)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that this one becomes."""
        own = f"{self.name} ({self.part})" if self.part else self.name
        return (own, f"{self.name} {MISSING_LEVEL}") if self.indicator else (own,)

    def code(self, table: TextTable, unknown: Bools) -> tuple[Matrix, int]:
        """Return the (n, features) matrix of a table's column, and how many values were guessed."""
        numbers = values_of(table, self.name, self.holds)[self.part]
        unread = np.flatnonzero(np.isnan(numbers) & ~unknown)
        if len(unread):
            what = f"dates ({self.holds})" if self.part else "numbers"
            must = f"column {self.name!r} of {table.source!r} must hold {what}, as the model was fitted on"
            got = f"{quoted(table[self.name][unread[0]])} in row {table.places[unread[0]]}"
            raise InvalidInputError(must, got, "Correct it, or leave the field empty")
        coded = (np.where(unknown, self.median, numbers) - self.mean) / self.scale
        if self.indicator:
            return np.column_stack([coded, unknown]), 0
        return coded[:, None], int(unknown.sum())

    def said(self, guessed: int) -> str:
        """Return a note on guessed values."""
        return f"{self.features[0]!r}: {guessed} missing values replaced by {self.median:g}"


@dataclass(frozen=True)
class Nominal:
    """A column of words: one column of 0 and 1 per level; two levels get one column.

    Attributes
    ----------
    name
        Of the column.
    levels
        The values that have a column, "(other)" and "(missing)" last where there are such.
    pooled
        Whether "(other)" stands for all values that are no level.
    """

    name: str
    levels: tuple[str, ...]
    pooled: bool

    @classmethod
    def learn(cls, name: str, known: Array, indicator: bool) -> Self:
        """Return the coding of a column with these known words."""
        values, counts = np.unique(known.astype(str), return_counts=True)
        pooled = len(values) > MOST_LEVELS
        if pooled:
            values = values[np.sort(np.argsort(-counts, kind="stable")[: MOST_LEVELS - 1])]
        return cls(name, (*values.tolist(), *[OTHER] * pooled, *[MISSING_LEVEL] * indicator), pooled)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that this one becomes."""
        return tuple(f"{self.name} = {level}" for level in Levels(self.levels).shown)

    def code(self, table: TextTable, unknown: Bools) -> tuple[Matrix, int]:
        """Return the (n, features) matrix of a table's column, and how many values are no level."""
        levels = Levels(self.levels)
        codes = levels.codes(np.where(unknown, MISSING_LEVEL, table[self.name]))
        if self.pooled:
            codes[(codes < 0) & ~unknown] = self.levels.index(OTHER)
        return levels.matrix(codes, unknown=0.5), int((codes < 0).sum())

    def said(self, guessed: int) -> str:
        """Return a note on unknown values."""
        return f"{self.name!r}: {guessed} values not seen in fit, coded as none of the known ones"


CODINGS: dict[str, Any] = {"Numeric": Numeric, "Nominal": Nominal}


#: The orders of dates by their names in files of 0.2.
ORDERS_0_2 = {
    "ymd": "year-month-day",
    "dmy": "day.month.year",
    "mdy": "month/day/year",
    "named": "months by name",
    "ym": "year-month",
    "my": "year-month",
}


def _current(column: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a saved coding; the dates of 0.2 had one for all parts."""
    if column["kind"] != "Dates":
        yield column
        return
    for part, mean, scale, median in column["parts"]:
        last = part == column["parts"][-1][0]
        more = {"holds": ORDERS_0_2[column["order"]], "part": part, "indicator": column["indicator"] and last}
        yield {
            "kind": "Numeric",
            "name": column["name"],
            "mean": mean,
            "scale": scale,
            "median": median,
        } | more


@dataclass(frozen=True)
class Recipe:
    r"""The coding of every input column, in order.

    Attributes
    ----------
    columns
        The codings.
    left_out
        Which columns were dropped, and why.
    missing
        The words for "missing".

    Examples
    --------
    >>> from nerm.tables import parse_table
    >>> table = parse_table("age,job,land\n20,a,NL\n?,b,NL\n40,c,NL\n", "people.csv")
    >>> recipe, notes = learn_recipe(table, table.names)
    >>> recipe.feature_names
    ['age', 'age (missing)', 'job = a', 'job = b', 'job = c']
    >>> recipe.left_out
    {'land': 'the same value in every row'}
    >>> recipe.transform(table)[0].toarray()  # age is centred and scaled, a missing one is the median
    array([[-1.,  0.,  1.,  0.,  0.],
           [ 0.,  1.,  0.,  1.,  0.],
           [ 1.,  0.,  0.,  0.,  1.]])
    >>> Recipe.from_dict(recipe.to_dict()) == recipe
    True
    """

    columns: tuple[Numeric | Nominal, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = MISSING

    @property
    def feature_names(self) -> list[str]:
        """The names of the matrix's columns."""
        return [feature for column in self.columns for feature in column.features]

    def said(self, guessed: Ints) -> tuple[str, ...]:
        """Return notes on how many values of each coding were guessed, (codings,)."""
        return tuple(c.said(int(count)) for c, count in zip(self.columns, guessed, strict=True) if count)

    def transform(self, table: TextTable) -> tuple[Matrix, Ints]:
        """Return the (n, features) matrix, CSR if mostly zeros, and how many values each coding guessed."""
        absent = dict.fromkeys(column.name for column in self.columns if column.name not in table.names)
        if absent:
            must = f"{table.source!r} must have the columns that the model was fitted on"
            more = f" (and {len(absent) - 1} more missing)" if len(absent) > 1 else ""
            do = "Use a table like the one given to fit"
            raise InvalidInputError(must, f"no column {next(iter(absent))!r}{more}", do)
        coded = [column.code(table, missing_in(table[column.name], self.missing)) for column in self.columns]
        matrix = sp.hstack([sp.csr_matrix(block) for block, _ in coded], format="csr")
        sparse = 2 * matrix.nnz < matrix.shape[0] * matrix.shape[1]
        return (matrix if sparse else matrix.toarray()), np.array([guessed for _, guessed in coded])

    def to_dict(self) -> dict[str, Any]:
        """Return plain data: strings, numbers, lists."""
        columns = [{"kind": type(column).__name__, **asdict(column)} for column in self.columns]
        return {"columns": columns, "left_out": dict(self.left_out), "missing": list(self.missing)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the recipe behind `to_dict`."""
        columns = [dict(one) for column in plain["columns"] for one in _current(column)]
        coded = tuple(CODINGS[column.pop("kind")](**column) for column in columns)
        return cls(coded, dict(plain["left_out"]), tuple(plain["missing"]))

    def summary(self) -> str:
        """Return one line: how many columns, and how many features they became."""
        return f"{len({column.name for column in self.columns})} columns, {len(self.feature_names)} features"


def learn_recipe(
    table: TextTable,
    inputs: Sequence[str],
    *,
    missing: Sequence[str] = MISSING,
    kinds: Mapping[str, str] | None = None,
) -> tuple[Recipe, tuple[str, ...]]:
    r"""Learn the coding of these columns, and return it with notes on missing values and columns left out.

    Parameters
    ----------
    table
        The training rows.
    inputs
        The columns to learn from.
    missing
        The words for "missing".
    kinds
        What columns hold, as `survey` found on more rows than these, or "words" for codes that look like
        numbers; the table tells where it does not.

    Examples
    --------
    >>> from nerm.tables import parse_table
    >>> table = parse_table("age,area\n20,1011\n?,1012\n40,1013\n", "people.csv")
    >>> recipe, notes = learn_recipe(table, ["age", "area"], kinds={"area": "words"})
    >>> notes
    ("'age': 1 values missing (33 %)",)
    >>> recipe.summary()
    '2 columns, 5 features'
    """
    columns: list[Numeric | Nominal] = []
    left_out: dict[str, str] = {}
    notes: list[str] = []
    for name in inputs:
        unknown = missing_in(table[name], missing)
        known, some = table[name][~unknown], bool(unknown.any())
        distinct = len(set(known.tolist()))
        if distinct < 2 and not (distinct and some):
            left_out[name] = "the same value in every row" if distinct else "no values"
            continue
        if some:
            notes.append(f"{name!r}: {int(unknown.sum())} values missing ({100 * unknown.mean():.2g} %)")
        kind = (kinds or {}).get(name) or kind_of(name, table, unknown)
        if kind != WORDS:
            *parts, last = values_of(table.rows(~unknown), name, kind).items()
            varying = [(part, numbers) for part, numbers in parts if np.ptp(numbers) > 0]
            columns += [Numeric.learn(name, numbers, False, kind, part) for part, numbers in varying]
            columns.append(Numeric.learn(name, last[1], some, kind, last[0]))
        elif distinct == len(known) > MOST_LEVELS:
            left_out[name] = "another word in every row, so it names rows"
        else:
            columns.append(Nominal.learn(name, known, some))
    if not columns:
        must = f"{table.source!r} must have an input column with more than one value"
        got = "; ".join(f"{name!r}: {why}" for name, why in left_out.items())
        raise InvalidInputError(must, got, "Add columns to learn from")
    notes += [f"{name!r} left out: {why}" for name, why in left_out.items()]
    recipe = Recipe(tuple(columns), left_out, tuple(missing))
    if (features := len(recipe.feature_names)) > max(MOST_LEVELS, len(table) / 2):
        more = "a larger --lam or fewer columns may serve new rows better"
        notes.append(f"{features} features for {len(table)} rows, so a model can overfit them: {more}")
    return recipe, tuple(notes)


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
    """A function from a DataFrame of strings to a CSR matrix of features, coded by `recipe`."""

    recipe: Recipe

    def __call__(self, frame: Any) -> Matrix:
        """Return the features of some rows."""
        return sp.csr_matrix(self.recipe.transform(table_of(frame))[0])

    def in_order(self, classes: list[Any]) -> list[Any]:
        """Return the labels; of a known pair such as no/yes, the positive one last."""
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
