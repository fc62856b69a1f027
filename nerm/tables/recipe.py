"""How columns of words become numbers, learned on the training rows and kept with the model.

Numbers are centred and scaled, a missing one becomes the median (0 after scaling if the column is symmetric)
and, where training rows had some, sets a column of its own. Nominal values get a column each; missing is a
value like the others where training rows had it. Frozen, and made of plain strings and floats: it is saved as
data, never as code.
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
    def learn(cls, name: str, numbers: Floats, indicator: bool) -> Self:
        """Return the coding of a column with these known numbers."""
        mean, scale = centre_and_scale(numbers)
        return cls(name, mean, scale, float(np.median(numbers)), indicator)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that this one becomes."""
        return (self.name, f"{self.name} {MISSING_LEVEL}") if self.indicator else (self.name,)

    def code(self, table: TextTable, unknown: Bools) -> tuple[Matrix, int]:
        """Return the (n, features) matrix of a table's column, and how many values were guessed."""
        numbers = np.where(unknown, self.median, table.numbers(self.name))
        _check_read(numbers, self.name, table, "numbers")
        scaled = (numbers - self.mean) / self.scale
        if self.indicator:
            return np.column_stack([scaled, unknown]), 0
        return scaled[:, None], int(unknown.sum())

    def said(self, guessed: int) -> str:
        """Say what was guessed."""
        return f"{self.name!r}: {guessed} missing values replaced by {self.median:g}"


def centre_and_scale(numbers: Floats) -> tuple[float, float]:
    """Return mean and standard deviation (1 for a constant), without overflow or underflow.

    >>> [round(x / 1e300, 9) for x in centre_and_scale(np.array([1e300, 3e300]))]
    [2.0, 1.0]
    """
    unit = float(np.abs(numbers).max()) or 1.0
    return unit * float((numbers / unit).mean()), unit * float((numbers / unit).std()) or 1.0


def _check_read(numbers: Floats, name: str, table: TextTable, what: str) -> None:
    """Refuse words where the model knows numbers or dates."""
    if np.isnan(numbers).any():
        i = int(np.flatnonzero(np.isnan(numbers))[0])
        must = f"column {name!r} of {table.source!r} must hold {what}, as the model was fitted on"
        got = f"{quoted(table[name][i])} in line {int(table.lines[i])}"
        raise InvalidInputError(must, got, "Correct it, or leave the field empty")


@dataclass(frozen=True)
class Dates:
    """A column of dates: year, month and days as numbers of their own, as far as they vary.

    Attributes
    ----------
    name
        Of the column.
    order
        Of day, month and year in the training file; new rows may be written otherwise if that is clear.
    parts
        (name, mean, scale, median) of each, in training rows.
    indicator
        Whether a last column says where the date is missing.
    """

    name: str
    order: str
    parts: tuple[tuple[str, float, float, float], ...]
    indicator: bool

    @classmethod
    def learn(cls, name: str, words: Array, order: str, indicator: bool) -> Self:
        """Return the coding of a column with these known words."""
        found = []
        for part, numbers in date_parts(days_in(words, order)).items():
            if numbers.std() > 0 or part == "days":
                found.append((part, *centre_and_scale(numbers), float(np.median(numbers))))
        return cls(name, order, tuple(found), indicator)

    @property
    def features(self) -> tuple[str, ...]:
        """The columns that this one becomes."""
        return tuple(
            f"{self.name} ({part})" for part in (*(p for p, *_ in self.parts), *["missing"] * self.indicator)
        )

    def code(self, table: TextTable, unknown: Bools) -> tuple[Matrix, int]:
        """Return the (n, features) matrix of a table's column, and how many dates were guessed."""
        words = np.where(unknown, "", table[self.name])
        best = max((self.order, *ORDERS), key=lambda order: int((~np.isnan(days_in(words, order))).sum()))
        days = days_in(words, best)
        _check_read(np.where(unknown, 0.0, days), self.name, table, "dates")
        numbers = date_parts(days)
        coded = [
            (np.where(unknown, median, numbers[p]) - mean) / scale for p, mean, scale, median in self.parts
        ]
        return np.column_stack([*coded, *[unknown] * self.indicator]), 0 if self.indicator else int(
            unknown.sum()
        )

    def said(self, guessed: int) -> str:
        """Say what was guessed."""
        return f"{self.name!r}: {guessed} missing dates replaced by a middle one"


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

    def code(self, table: TextTable, unknown: Bools) -> tuple[Matrix, int]:
        """Return the (n, features) matrix of a table's column, and how many values are no level."""
        levels = Levels(self.levels)
        codes = levels.codes(np.where(unknown, MISSING_LEVEL, table[self.name]))
        if self.pooled:
            codes[(codes < 0) & ~unknown] = self.levels.index(OTHER)
        return levels.matrix(codes, unknown=0.5), int((codes < 0).sum())

    def said(self, guessed: int) -> str:
        """Say what was guessed."""
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
            got = f"no column {absent[0]!r}" + (
                f" (and {len(absent) - 1} more missing)" if len(absent) > 1 else ""
            )
            raise InvalidInputError(must, got, "Use a table like the one given to fit")
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
        columns = []
        for entry in plain["columns"]:
            columns.append(
                KINDS[entry["kind"]](**{key: _tupled(v) for key, v in entry.items() if key != "kind"})
            )
        return cls(tuple(columns), dict(plain["left_out"]), tuple(plain["missing"]))

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
        notes.append(
            f"{features} features for {len(table)} rows, by which a model can learn them by heart: {more}"
        )
    return recipe, tuple(notes)
