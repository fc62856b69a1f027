"""How columns of words become numbers, learned on the training rows and kept with the model.

Numbers are centred and scaled, a missing one becomes the median (0 after scaling if the column is symmetric) and, where
training rows had some, sets a column of its own. Nominal values get a column each; missing is a value like the others
where training rows had it. Frozen, and made of plain strings and floats: it is saved as data, never as code.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from nerm.datasets.coding import Levels
from nerm.errors import InvalidInputError
from nerm.tables.reading import MISSING, TextTable, missing_in
from nerm.typing import Array, Bools, Floats, Matrix

MOST_LEVELS = 100  # nominal columns keep this many values and pool the rest
NUMERIC_SHARE = 0.5  # from this share of numbers on, words in a column are taken for mistakes
OTHER, MISSING_LEVEL = "(other)", "(missing)"
# With a smaller share of nonzero entries the matrix is sparse, which nerm's engine solves faster: Adult, with
# 12 %, in a sixth of the time. Small tables are dense anyway: nothing is to be gained.
DENSE_SHARE, DENSE_ENTRIES = 0.4, 20_000


def numbers_in(words: Iterable[str]) -> Floats:
    """Return the finite numbers that words spell, nan for a word that spells none.

    >>> numbers_in(["-2.5e3", "1_000", "inf", "A11"]).tolist()
    [-2500.0, nan, nan, nan]
    """
    return np.array([_number(word) for word in words], dtype=float)


def _number(word: str) -> float:
    try:
        number = float(word)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) and "_" not in word else math.nan


@dataclass(frozen=True)
class Numeric:
    """A column of numbers: (x - mean) / scale, the median for missing.

    Attributes
    ----------
    name
        Of the column.
    mean, scale, median
        Of the training rows' numbers.
    indicator
        Whether a second column says where the number is missing.
    """

    name: str
    mean: float
    scale: float
    median: float
    indicator: bool

    @classmethod
    def learn(cls, name: str, known: Array, indicator: bool) -> Self:
        """Return the coding of a column with these known words."""
        numbers = numbers_in(known)
        return cls(name, float(numbers.mean()), float(numbers.std()) or 1.0, float(np.median(numbers)), indicator)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that this one becomes."""
        return (self.name, f"{self.name} {MISSING_LEVEL}") if self.indicator else (self.name,)

    def code(self, table: TextTable, unknown: Bools) -> tuple[Matrix, str | None]:
        """Return the (n, features) matrix of a table's column, and a note on what was guessed."""
        words = table[self.name]
        numbers = np.where(unknown, self.median, numbers_in(words))
        if np.isnan(numbers).any():
            i = int(np.flatnonzero(np.isnan(numbers))[0])
            must = f"column {self.name!r} of {table.source!r} must hold numbers, as the model was fitted on"
            got = f"{words[i]!r} in line {int(table.lines[i])}"
            raise InvalidInputError(must, got, "Correct it, or leave the field empty")
        scaled = (numbers - self.mean) / self.scale
        if self.indicator:
            return sp.csr_matrix(np.column_stack([scaled, unknown])), None
        guessed = f"{self.name!r}: {int(unknown.sum())} missing values replaced by {self.median:g}"
        return sp.csr_matrix(scaled[:, None]), guessed if unknown.any() else None


@dataclass(frozen=True)
class Nominal:
    """A column of words: one column of 0 and 1 a level; two-valued ones get one column.

    Attributes
    ----------
    name
        Of the column.
    levels
        The values that are told apart, "(other)" and "(missing)" last where there are such.
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

    def code(self, table: TextTable, unknown: Bools) -> tuple[Matrix, str | None]:
        """Return the (n, features) matrix of a table's column, and a note on values that are no level."""
        levels = Levels(self.levels)
        codes = levels.codes(np.where(unknown, MISSING_LEVEL, table[self.name]))
        if self.pooled:
            codes[(codes < 0) & ~unknown] = self.levels.index(OTHER)
        strange = int((codes < 0).sum())
        note = f"{self.name!r}: {strange} values not seen in fit, coded as none of the known ones"
        return levels.matrix(codes, unknown=0.5), note if strange else None


KINDS: dict[str, Any] = {"Numeric": Numeric, "Nominal": Nominal}


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

    def transform(self, table: TextTable) -> tuple[Matrix, tuple[str, ...]]:
        """Return the (n, features) matrix of a table (dense, or CSR if mostly zeros) and notes on what was guessed."""
        absent = [column.name for column in self.columns if column.name not in table.columns]
        if absent:
            must = f"{table.source!r} must have the columns that the model was fitted on"
            got = f"no column {absent[0]!r}" + (f" (and {len(absent) - 1} more missing)" if len(absent) > 1 else "")
            raise InvalidInputError(must, got, "Use a table like the one given to fit")
        coded = [column.code(table, missing_in(table[column.name], self.missing)) for column in self.columns]
        matrix = sp.hstack([block for block, _ in coded], format="csr")
        entries = matrix.shape[0] * matrix.shape[1]
        sparse = entries > DENSE_ENTRIES and matrix.nnz < DENSE_SHARE * entries
        return (matrix if sparse else matrix.toarray()), tuple(note for _, note in coded if note)

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, strings and numbers; `from_dict` reads them."""
        columns = [{"kind": type(column).__name__, **asdict(column)} for column in self.columns]
        return {"columns": columns, "left_out": dict(self.left_out), "missing": list(self.missing)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the recipe behind `to_dict`."""
        columns = []
        for entry in plain["columns"]:
            fields = {key: tuple(value) if key == "levels" else value for key, value in entry.items() if key != "kind"}
            columns.append(KINDS[entry["kind"]](**fields))
        return cls(tuple(columns), dict(plain["left_out"]), tuple(plain["missing"]))

    def summary(self) -> str:
        """Return one line: how many columns of which kind, and how many features they became."""
        numeric = sum(isinstance(column, Numeric) for column in self.columns)
        nominal = len(self.columns) - numeric
        return f"{numeric} numeric and {nominal} nominal columns, {len(self.feature_names)} features"


def learn_recipe(
    table: TextTable, inputs: Sequence[str], *, nominal: Sequence[str] = (), missing: Sequence[str] = MISSING
) -> tuple[Recipe, tuple[str, ...]]:
    r"""Learn the coding of these columns, and return it with notes on missing values and columns left out.

    Parameters
    ----------
    table
        The training rows.
    inputs
        The columns to learn from.
    nominal
        Columns to take as nominal although they look like numbers (codes, postal areas).
    missing
        The words for "missing".

    Examples
    --------
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
        unknown = missing_in(table[name], missing)
        known, some = table[name][~unknown], bool(unknown.any())
        distinct = len(set(known.tolist()))
        if distinct < 2 and not (distinct and some):
            left_out[name] = "the same value in every row" if distinct else "no values"
            continue
        if some:
            notes.append(f"{name!r}: {int(unknown.sum())} values missing ({100 * unknown.mean():.2g} %)")
        if name not in nominal and _holds_numbers(name, table, unknown):
            columns.append(Numeric.learn(name, known, some))
        elif distinct == len(known) > MOST_LEVELS:
            left_out[name] = "another word in every row, so it names rows"
        else:
            columns.append(Nominal.learn(name, known, some))
    if not columns:
        must = f"{table.source!r} must have an input column with more than one value"
        got = "; ".join(f"{name!r}: {why}" for name, why in left_out.items())
        raise InvalidInputError(must, got, "Add columns to learn from")
    notes += [f"{name!r} left out: {why}" for name, why in left_out.items()]
    return Recipe(tuple(columns), left_out, tuple(missing)), tuple(notes)


def nominal_columns(
    table: TextTable, inputs: Sequence[str], *, nominal: Sequence[str] = (), missing: Sequence[str] = MISSING
) -> tuple[str, ...]:
    r"""Return which columns hold words: the given ones, and those that the whole table shows to be so.

    Ask this once of all rows, and give the answer to `learn_recipe`: then no part of a split takes a column for
    something else than another part does.

    Parameters
    ----------
    table, inputs, nominal, missing
        As for `learn_recipe`.

    Examples
    --------
    >>> from nerm.tables import parse_table
    >>> table = parse_table("age,area,job\n20,1011,a\n30,1012,b\n", "people.csv")
    >>> nominal_columns(table, table.names, nominal=["area"])
    ('area', 'job')
    """
    for name in nominal:
        table[name]  # a name that is not there must be refused
    return tuple(
        name for name in inputs if name in nominal or not _holds_numbers(name, table, missing_in(table[name], missing))
    )


def _holds_numbers(name: str, table: TextTable, unknown: Bools) -> bool:
    """Say whether a column holds numbers; one that mostly does and sometimes does not is refused."""
    known, lines = table[name][~unknown], table.lines[~unknown]
    strange = np.isnan(numbers_in(known))
    if not strange.any():
        return True
    if strange.mean() > 1 - NUMERIC_SHARE:
        return False
    first, count = int(np.flatnonzero(strange)[0]), int(strange.sum())
    raise InvalidInputError(
        f"column {name!r} must hold numbers only, or words",
        f"{len(known) - count} numbers and {count} other values, first {known[first]!r} in line {int(lines[first])}",
        f"Correct them, declare them missing with --missing {known[first]!r}, or take the column as words with "
        f"--nominal {name!r}",
    )
