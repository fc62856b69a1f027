"""Code columns of words as numbers: a recipe, learned on the training rows and saved with the model.

Numbers are centred and scaled; a missing one becomes the median and, where training rows had some, sets a
column of its own. Nominal values get a column each; missing is a value like the others where training rows
had it. A recipe is saved as plain strings and floats, never as code.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import groupby
from typing import Any, Self

import numpy as np
import scipy.sparse as sp

from nerm.datasets.coding import Levels
from nerm.errors import InvalidInputError
from nerm.tables.reading import TextTable
from nerm.tables.roles import NUMBERS, WORDS, kind_of
from nerm.tables.values import MISSING, ORDERS, date_parts, days_in, missing_in, quoted
from nerm.typing import Array, Bools, Floats, Ints, Matrix

MOST_LEVELS = 100  # nominal columns keep this many values and pool the rest
OTHER, MISSING_LEVEL = "(other)", "(missing)"
DENSE_ENTRIES = 20_000  # up to which a matrix is dense; a larger one is sparse if most entries are zero


@dataclass(frozen=True)
class Numeric:
    """A column of numbers: (x - mean) / scale, the median for missing.

    Attributes
    ----------
    name
        Of the column.
    mean, scale, median
        Of the numbers of the training rows.
    indicator
        Whether a second column marks missing numbers.
    """

    name: str
    mean: float
    scale: float
    median: float
    indicator: bool

    @classmethod
    def learn(cls, name: str, numbers: Floats, indicator: bool) -> Self:
        """Return the coding of a column with these known numbers."""
        return cls(name, *_statistics(numbers), indicator)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that this one becomes."""
        return (self.name, f"{self.name} {MISSING_LEVEL}") if self.indicator else (self.name,)

    def code(self, table: TextTable, unknown: Bools) -> tuple[Matrix, int]:
        """Return the (n, features) matrix of a table's column, and how many values were guessed."""
        parts = [(table.numbers(self.name), self.mean, self.scale, self.median)]
        return _scaled(parts, self, table, unknown, "numbers")

    def said(self, guessed: int) -> str:
        """Return a note on guessed values."""
        return f"{self.name!r}: {guessed} missing values replaced by {self.median:g}"


@dataclass(frozen=True)
class Dates:
    """A column of dates: year, month and days as numbers of their own, as far as they vary.

    Attributes
    ----------
    name
        Of the column.
    order
        Of day, month and year in the training file; new rows may have another if it is clear.
    parts
        (name, mean, scale, median) of each, in training rows.
    indicator
        Whether a last column marks missing dates.
    """

    name: str
    order: str
    parts: tuple[tuple[str, float, float, float], ...]
    indicator: bool

    @classmethod
    def learn(cls, name: str, words: Array, order: str, indicator: bool) -> Self:
        """Return the coding of a column with these known words."""
        parts = date_parts(days_in(words, order)).items()
        varying = [(part, *_statistics(n)) for part, n in parts if part == "days" or n.std() > 0]
        return cls(name, order, tuple(varying), indicator)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that this one becomes."""
        names = [part for part, *_ in self.parts] + ["missing"] * self.indicator
        return tuple(f"{self.name} ({part})" for part in names)

    def code(self, table: TextTable, unknown: Bools) -> tuple[Matrix, int]:
        """Return the (n, features) matrix of a table's column, and how many dates were guessed."""
        words = np.where(unknown, "", table[self.name])
        read = [days_in(words, order) for order in (self.order, *ORDERS)]
        numbers = date_parts(min(read, key=lambda days: int(np.isnan(days).sum())))
        parts = [(numbers[part], *statistics) for part, *statistics in self.parts]
        return _scaled(parts, self, table, unknown, "dates")

    def said(self, guessed: int) -> str:
        """Return a note on guessed dates."""
        return f"{self.name!r}: {guessed} missing dates replaced by a middle one"


def _statistics(numbers: Floats) -> tuple[float, float, float]:
    """Return mean, standard deviation (1 for a constant) and median, without overflow or underflow."""
    unit = float(np.abs(numbers).max()) or 1.0
    mean, scale = float((numbers / unit).mean()), float((numbers / unit).std())
    return unit * mean, unit * scale or 1.0, float(np.median(numbers))


def _scaled(
    parts: Sequence[tuple[Any, ...]], column: Numeric | Dates, table: TextTable, unknown: Bools, what: str
) -> tuple[Matrix, int]:
    """Return (x - mean) / scale of each part, medians for missing; words that cannot be read are refused."""
    unread = np.flatnonzero(np.isnan(parts[0][0]) & ~unknown)
    if len(unread):
        must = f"column {column.name!r} of {table.source!r} must hold {what}, as the model was fitted on"
        got = f"{quoted(table[column.name][unread[0]])} in line {int(table.lines[unread[0]])}"
        raise InvalidInputError(must, got, "Correct it, or leave the field empty")
    coded = [(np.where(unknown, median, x) - mean) / scale for x, mean, scale, median in parts]
    if column.indicator:
        return np.column_stack([*coded, unknown]), 0
    return np.column_stack(coded), int(unknown.sum())


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


Coding = Numeric | Nominal | Dates
KINDS: dict[str, Any] = {kind.__name__: kind for kind in (Numeric, Nominal, Dates)}


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

    columns: tuple[Coding, ...]
    left_out: Mapping[str, str] = field(default_factory=dict)
    missing: tuple[str, ...] = MISSING

    @property
    def feature_names(self) -> list[str]:
        """The names of the matrix's columns."""
        return [feature for column in self.columns for feature in column.features]

    def transform(self, table: TextTable) -> tuple[Matrix, tuple[str, ...]]:
        """Return the (n, features) matrix of a table (dense, or CSR if mostly zeros) and notes on guesses."""
        matrix, guessed = self.coded(table)
        return matrix, self.said(guessed)

    def said(self, guessed: Ints) -> tuple[str, ...]:
        """Return notes on how many values of each column were guessed, (columns,)."""
        return tuple(c.said(int(count)) for c, count in zip(self.columns, guessed, strict=True) if count)

    def coded(self, table: TextTable) -> tuple[Matrix, Ints]:
        """Return the (n, features) matrix of a table, and how many values of each column were guessed."""
        absent = [column.name for column in self.columns if column.name not in table.columns]
        if absent:
            must = f"{table.source!r} must have the columns that the model was fitted on"
            more = f" (and {len(absent) - 1} more missing)" if len(absent) > 1 else ""
            do = "Use a table like the one given to fit"
            raise InvalidInputError(must, f"no column {absent[0]!r}{more}", do)
        coded = [column.code(table, missing_in(table[column.name], self.missing)) for column in self.columns]
        runs = groupby((block for block, _ in coded), lambda block: isinstance(block, np.ndarray))
        matrix = sp.hstack(
            [sp.csr_matrix(np.hstack([*run])) if dense else sp.hstack([*run]) for dense, run in runs]
        ).tocsr()
        entries = matrix.shape[0] * matrix.shape[1]
        sparse = entries > DENSE_ENTRIES and 2 * matrix.nnz < entries
        return (matrix if sparse else matrix.toarray()), np.array([guessed for _, guessed in coded])

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists, strings and numbers; `from_dict` reads them."""
        columns = [{"kind": type(column).__name__, **asdict(column)} for column in self.columns]
        return {"columns": columns, "left_out": dict(self.left_out), "missing": list(self.missing)}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Self:
        """Return the recipe behind `to_dict`."""
        columns = [{key: _tupled(value) for key, value in entry.items()} for entry in plain["columns"]]
        coded = tuple(KINDS[column.pop("kind")](**column) for column in columns)
        return cls(coded, dict(plain["left_out"]), tuple(plain["missing"]))

    def summary(self) -> str:
        """Return one line: how many columns of which kind, and how many features they became."""
        numeric, nominal, dates = (
            sum(isinstance(c, kind) for c in self.columns) for kind in (Numeric, Nominal, Dates)
        )
        more = f" and {dates} of dates" if dates else ""
        return f"{numeric} numeric and {nominal} nominal columns{more}, {len(self.feature_names)} features"


def _tupled(value: Any) -> Any:
    return tuple(map(_tupled, value)) if isinstance(value, list | tuple) else value


def learn_recipe(
    table: TextTable,
    inputs: Sequence[str],
    *,
    nominal: Sequence[str] = (),
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
    nominal
        Columns to take as nominal although they look like numbers (codes, postal areas).
    missing
        The words for "missing".
    kinds
        What the columns hold, as `survey` found on more rows than these; the table tells where it does not.

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
    columns: list[Coding] = []
    known_kinds = dict(kinds or {}) | dict.fromkeys(nominal, WORDS)
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
        kind = known_kinds.get(name) or kind_of(name, table, unknown)
        if kind == NUMBERS:
            columns.append(Numeric.learn(name, table.numbers(name)[~unknown], some))
        elif kind in ORDERS:
            columns.append(Dates.learn(name, known, kind, some))
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
