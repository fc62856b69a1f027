"""How columns of words become numbers, learned on the training rows and kept with the model.

Numbers are centred and scaled, a missing one becomes the median (0 after scaling if the column is symmetric) and, where
training rows had some, sets a column of its own. Nominal values get a column each; missing is a value like the others
where training rows had it. Frozen, and made of plain strings and floats: it is saved as data, never as code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

from nerm.errors import InvalidInputError
from nerm.tables.reading import MISSING, Table, missing_in

MOST_LEVELS = 100  # nominal columns keep this many values and pool the rest
NUMERIC_SHARE = 0.5  # from this share of numbers on, words in a column are taken for mistakes
OTHER, MISSING_LEVEL = "(other)", "(missing)"
# With a smaller share of nonzero entries the matrix is sparse, which nerm's engine solves faster: Adult, with
# 12 %, in a sixth of the time. Small tables are dense anyway: nothing is to be gained.
DENSE_SHARE, DENSE_ENTRIES = 0.4, 20_000


@dataclass(frozen=True)
class Numeric:
    """A column of numbers: (x - mean) / scale, median for missing."""

    name: str
    mean: float
    scale: float
    median: float
    indicator: bool

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that this one becomes."""
        return (self.name, f"{self.name} {MISSING_LEVEL}") if self.indicator else (self.name,)


@dataclass(frozen=True)
class Nominal:
    """A column of words: one column of 0 and 1 a level; two-valued ones get one column."""

    name: str
    levels: tuple[str, ...]
    pooled: bool

    @property
    def shown(self) -> tuple[str, ...]:
        """The levels that get a column: of two only the second, since the first says the same."""
        return self.levels[1:] if len(self.levels) == 2 else self.levels

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that this one becomes."""
        return tuple(f"{self.name} = {level}" for level in self.shown)


@dataclass(frozen=True)
class Recipe:
    r"""The coding of every input column, in order; `left_out` says which were dropped and why.

    >>> from nerm.tables import parse_table
    >>> table = parse_table("age,job,land\n20,a,NL\n?,b,NL\n40,c,NL\n", "people.csv")
    >>> recipe, notes = learn_recipe(table, table.names)
    >>> recipe.feature_names
    ['age', 'age (missing)', 'job = a', 'job = b', 'job = c']
    >>> recipe.left_out
    {'land': 'the same value in every row'}
    >>> recipe.transform(table)[0]  # age is centred and scaled, a missing one is the median
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

    def transform(self, table: Table) -> tuple[Any, tuple[str, ...]]:
        """Return the (n, features) matrix of a table (dense, or CSR if mostly zeros) and notes on what was guessed."""
        absent = [column.name for column in self.columns if column.name not in table.columns]
        if absent:
            raise InvalidInputError(
                f"{table.source!r} must have the columns that the model was fitted on",
                f"no column {absent[0]!r}" + (f" (and {len(absent) - 1} more missing)" if len(absent) > 1 else ""),
                "Use a table like the one given to fit",
            )
        notes: list[str] = []
        blocks = [
            _numbers(column, table, self.missing, notes)
            if isinstance(column, Numeric)
            else _dummies(column, table, self.missing, notes)
            for column in self.columns
        ]
        matrix = sp.hstack(blocks, format="csr")
        entries = matrix.shape[0] * matrix.shape[1]
        sparse = entries > DENSE_ENTRIES and matrix.nnz < DENSE_SHARE * entries
        return (matrix if sparse else matrix.toarray()), tuple(notes)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, strings and numbers; `from_dict` reads them."""
        columns = [{"kind": type(column).__name__, **asdict(column)} for column in self.columns]
        return {"columns": columns, "left_out": dict(self.left_out), "missing": list(self.missing)}

    @staticmethod
    def from_dict(plain: Mapping[str, Any]) -> Recipe:
        """Return the recipe behind `to_dict`."""
        columns: list[Numeric | Nominal] = []
        for entry in plain["columns"]:
            fields = {key: value for key, value in entry.items() if key != "kind"}
            if entry["kind"] == "Numeric":
                columns.append(Numeric(**fields))
            else:
                columns.append(Nominal(fields["name"], tuple(fields["levels"]), bool(fields["pooled"])))
        return Recipe(tuple(columns), dict(plain["left_out"]), tuple(plain["missing"]))

    def summary(self) -> str:
        """Return one line: how many columns of which kind, and how many features they became."""
        numeric = sum(isinstance(column, Numeric) for column in self.columns)
        return (
            f"{numeric} numeric and {len(self.columns) - numeric} nominal columns, {len(self.feature_names)} features"
        )


def learn_recipe(
    table: Table, inputs: Sequence[str], *, nominal: Sequence[str] = (), missing: Sequence[str] = MISSING
) -> tuple[Recipe, tuple[str, ...]]:
    r"""Learn the coding of these columns, and return it with notes on missing values and columns left out.

    nominal
        Columns to take as nominal although they look like numbers (codes, postal areas).

    >>> from nerm.tables import parse_table
    >>> table = parse_table("age,area\n20,1011\n?,1012\n40,1013\n", "people.csv")
    >>> recipe, notes = learn_recipe(table, ["age", "area"], nominal=["area"])
    >>> notes
    ("'age': 1 values missing (33 %)",)
    >>> recipe.summary()
    '1 numeric and 1 nominal columns, 5 features'
    """
    columns: list[Numeric | Nominal] = []
    left_out: dict[str, str] = {}
    notes: list[str] = []
    for name in inputs:
        values = table[name]
        unknown = missing_in(values, missing)
        known = values[~unknown]
        distinct = set(known.tolist())
        if len(distinct) < 2 and not (distinct and unknown.any()):
            left_out[name] = "the same value in every row" if distinct else "no values"
            continue
        if unknown.any():
            share = 100 * unknown.mean()
            notes.append(f"{name!r}: {int(unknown.sum())} values missing ({share:.2g} %)")
        if name not in nominal and _looks_numeric(name, known, table, unknown):
            columns.append(_learn_numeric(name, known.astype(float), bool(unknown.any())))
        elif len(distinct) == len(known) and len(known) > MOST_LEVELS:
            left_out[name] = "another word in every row, so it names rows"
        else:
            columns.append(_learn_nominal(name, known, bool(unknown.any())))
    if not columns:
        raise InvalidInputError(
            f"{table.source!r} must have an input column with more than one value",
            "; ".join(f"{name!r}: {why}" for name, why in left_out.items()),
            "Add columns to learn from",
        )
    notes += [f"{name!r} left out: {why}" for name, why in left_out.items()]
    return Recipe(tuple(columns), left_out, tuple(missing)), tuple(notes)


def as_number(word: str) -> float | None:
    """Return the finite number that a word spells, None if it is none.

    >>> as_number("-2.5e3"), as_number("1_000"), as_number("inf"), as_number("A11")
    (-2500.0, None, None, None)
    """
    try:
        number = float(word)
    except ValueError:
        return None
    return number if np.isfinite(number) and "_" not in word else None


def nominal_columns(
    table: Table, inputs: Sequence[str], *, nominal: Sequence[str] = (), missing: Sequence[str] = MISSING
) -> tuple[str, ...]:
    r"""Return which columns hold words: the given ones, and those that the whole table shows to be so.

    Ask this once of all rows, and give the answer to `learn_recipe`: then no part of a split takes a column for
    something else than another part does.

    >>> from nerm.tables import parse_table
    >>> table = parse_table("age,area,job\n20,1011,a\n30,1012,b\n", "people.csv")
    >>> nominal_columns(table, table.names, nominal=["area"])
    ('area', 'job')
    """
    for name in nominal:
        table[name]
    found = []
    for name in inputs:
        unknown = missing_in(table[name], missing)
        known = table[name][~unknown]
        if name in nominal or (len(known) and not _looks_numeric(name, known, table, unknown)):
            found.append(name)
    return tuple(found)


def _looks_numeric(name: str, known: np.ndarray, table: Table, unknown: np.ndarray) -> bool:
    """Say whether a column holds numbers; one that mostly does and sometimes does not is refused."""
    words = {word for word in known.tolist() if as_number(word) is None}
    if not words:
        return True
    strange = np.array([word in words for word in known.tolist()])
    if strange.mean() > 1 - NUMERIC_SHARE:
        return False
    first, count = int(np.flatnonzero(strange)[0]), int(strange.sum())
    line = int(table.lines[~unknown][first])
    raise InvalidInputError(
        f"column {name!r} must hold numbers only, or words",
        f"{len(known) - count} numbers and {count} other values, first {known[first]!r} in line {line}",
        f"Correct them, declare them missing with --missing {known[first]!r}, or take the column as words with "
        f"--nominal {name!r}",
    )


def _learn_numeric(name: str, numbers: np.ndarray, indicator: bool) -> Numeric:
    scale = float(numbers.std())
    return Numeric(name, float(numbers.mean()), scale if scale > 0 else 1.0, float(np.median(numbers)), indicator)


def _learn_nominal(name: str, known: np.ndarray, indicator: bool) -> Nominal:
    values, counts = np.unique(known.astype(str), return_counts=True)
    pooled = len(values) > MOST_LEVELS
    if pooled:
        values = values[np.sort(np.argsort(-counts, kind="stable")[: MOST_LEVELS - 1])]
    levels = [str(value) for value in values] + [OTHER] * pooled + [MISSING_LEVEL] * indicator
    return Nominal(name, tuple(levels), pooled)


def _numbers(column: Numeric, table: Table, missing: Sequence[str], notes: list[str]) -> Any:
    values = table[column.name]
    unknown = missing_in(values, missing)
    spelled = [column.median if gone else as_number(word) for word, gone in zip(values, unknown, strict=True)]
    if None in spelled:
        i = spelled.index(None)
        raise InvalidInputError(
            f"column {column.name!r} of {table.source!r} must hold numbers, as the model was fitted on",
            f"{values[i]!r} in line {int(table.lines[i])}",
            "Correct it, or leave the field empty",
        )
    if unknown.any() and not column.indicator:
        notes.append(f"{column.name!r}: {int(unknown.sum())} missing values replaced by {column.median:g}")
    block = [(np.array(spelled, dtype=float) - column.mean) / column.scale]
    if column.indicator:
        block.append(unknown.astype(float))
    return sp.csr_matrix(np.column_stack(block))


def _dummies(column: Nominal, table: Table, missing: Sequence[str], notes: list[str]) -> Any:
    values = table[column.name]
    unknown = missing_in(values, missing)
    code = {level: k for k, level in enumerate(column.levels)}
    other, none = (code[OTHER] if column.pooled else -1), code.get(MISSING_LEVEL, -1)
    codes = np.array([none if gone else code.get(word, other) for word, gone in zip(values, unknown, strict=True)])
    strange = codes < 0
    if strange.any():
        notes.append(f"{column.name!r}: {int(strange.sum())} values not seen in fit, coded as none of the known ones")
    rows = np.arange(len(codes))
    if len(column.levels) == 2:  # one column: 1 for the second level, 0 for the first, between them for neither
        return sp.csr_matrix(np.where(strange, 0.5, codes.astype(float))[:, None])
    seen = ~strange
    return sp.csr_matrix((np.ones(int(seen.sum())), (rows[seen], codes[seen])), shape=(len(codes), len(column.levels)))
