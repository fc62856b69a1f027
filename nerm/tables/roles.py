"""Assign roles to columns (target, viewpoint, inputs) and find the kind of values in each input.

An identifier, a column with a different value in nearly every row, does not generalize to new rows and is
left out. A note names each column that by itself determines the target or the viewpoint in nearly every row,
because such a column may be a leak.
"""

import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from itertools import pairwise
from typing import Any, Self

import numpy as np
import pandas as pd

from nerm.errors import InvalidInputError
from nerm.tables import values as cells
from nerm.tables.reading import TextTable
from nerm.typing import Array, Bools, Floats, Ints
from nerm.viewpoint import MOST_CODES

MOST_SHOWN = MOST_CODES  # largest number of groups per viewpoint, and of entries in printed lists
FEW_ROWS = 30  # rates of fewer rows are marked as uncertain
NEARLY_ALL = 0.95  # least share of distinct values in an identifier, and of rows that a leak determines
THE_REST = "the rest"
_COMPARED = re.compile(r"(.+?)\s*(>=|<=|>|<)\s*([+-]?\d+(?:\.\d+)?)")
NUMBERS, WORDS, UNCLEAR, IDENTIFIER = "numbers", "words", "dates of unclear order", "identifier"
#: By kind of an input, the note about columns of this kind.
KIND_NOTES = {
    IDENTIFIER: "left out: another value in nearly every row, so it was treated as a row identifier; "
    "to use it, pass --numeric (as a number) or --nominal (as categories)",
    UNCLEAR: "left out: dates whose day and month cannot be told apart; write them as 2024-12-31",
} | {
    order: f"read as dates ({order}), coded as year, month and days; --nominal takes them as words"
    for order in cells.ORDERS
}


@dataclass(frozen=True)
class Role:
    """A column whose values are coded as -1 and +1.

    Attributes
    ----------
    column
        Name of the column.
    positive, negative
        The value that is coded as +1, and the name for all other values.

    Examples
    --------
    >>> role = Role("sex", "f", "m")
    >>> role.signs(np.array(["f", "m", "f"], dtype=object)), role.group(-1)
    (array([ 1., -1.,  1.]), 'sex = m')
    """

    column: str
    positive: str
    negative: str

    def signs(self, values: Array) -> Floats:
        """Return +1 for the positive value and -1 for all others, in the shape of `values`."""
        return np.where(values == self.positive, 1.0, -1.0)

    def group(self, sign: int) -> str:
        """Return the name of the group with this sign, such as "sex = f"."""
        return f"{self.column} = {self.positive if sign > 0 else self.negative}"


@dataclass(frozen=True, eq=False)
class TableTask:
    r"""A table with the roles of its columns; it has the rows whose target and viewpoint are known.

    Attributes
    ----------
    table
        The rows.
    target, viewpoint
        The columns that are coded as -1 and +1. A viewpoint with more than two groups is coded as its largest
        group against the rest.
    y
        Labels, (n,), in -1/+1.
    groups
        By name such as "sex = f", a mask of the rows in the group, (n,); grouped by viewpoint column.
    compared
        The names of the groups that are compared with the rest; of two groups, only one is.
    inputs
        Names of the columns to learn from.
    notes
        Messages for the user, such as which rows and columns were left out.
    kinds
        By input column, the kind of its values; empty before `nerm.tables.survey`.
    numbers
        The target of a regression, (n,); None for a classification. The labels y then say whether the number
        is above the median; they only serve to split the rows evenly and to find leaks.

    Examples
    --------
    >>> from nerm.tables import parse_table
    >>> table = parse_table("age,sex,income\n31,f,low\n52,m,low\n47,f,high\n33,m,?\n", "census.csv")
    >>> task = make_task(table, "income", "sex", positive="high")
    >>> len(task), task.y.tolist(), task.v.tolist(), task.inputs
    (3, [-1.0, -1.0, 1.0], [-1.0, 1.0, -1.0], ('age',))
    >>> len(task.rows(task.v < 0))
    2
    """

    table: TextTable
    target: Role
    viewpoint: Role
    y: Floats
    groups: dict[str, Bools]
    compared: tuple[str, ...]
    inputs: tuple[str, ...]
    notes: tuple[str, ...]
    kinds: Mapping[str, str]
    numbers: Floats | None

    def rows(self, kept: Bools | Ints) -> Self:
        """Return the task on the selected rows.

        `kept` is a mask, (n,), or an array of row indices.
        """
        groups = {name: among[kept] for name, among in self.groups.items()}
        numbers = None if self.numbers is None else self.numbers[kept]
        return replace(self, table=self.table.rows(kept), y=self.y[kept], groups=groups, numbers=numbers)

    @cached_property
    def terms(self) -> dict[str, Floats]:
        """One array, (n,), per compared group, by its name: +1 in the group and -1 elsewhere."""
        return {name: np.where(self.groups[name], 1.0, -1.0) for name in self.compared}

    @property
    def v(self) -> Floats:
        """The viewpoint, (n,): the first of the terms."""
        return next(iter(self.terms.values()))

    @property
    def outcome(self) -> str:
        """The positive value of the target, such as "income = high"; for a regression, the target column."""
        return self.target.group(1) if self.numbers is None else self.target.column

    @property
    def words(self) -> pd.DataFrame:
        """The name of each row's group, one column per column of the viewpoint."""
        found = pd.DataFrame(index=range(len(self)), dtype=object)
        for name, among in self.groups.items():
            found.loc[among, name.partition(" = ")[0]] = name
        return found

    @property
    def crossed(self) -> Any:
        """The names of each row's groups of all viewpoints, joined."""
        return reduce(lambda one, other: one + ", " + other, (words for _, words in self.words.items()))

    @property
    def strata(self) -> list[Floats]:
        """The arrays whose combinations of values are the strata of a split.

        They are the target and every term, (n,) each.
        """
        return [self.y, *self.terms.values()]

    def __len__(self) -> int:
        return len(self.y)


def make_task(
    table: TextTable,
    target: str,
    viewpoint: str | Sequence[str],
    *,
    positive: str | None = None,
    favoured: str | None = None,
    task: str = "auto",
    intersect: bool = False,
    bins: Sequence[float] = (),
    keep_viewpoint: bool = False,
    leave_out: Sequence[str] = (),
) -> TableTask:
    r"""Assign roles to the columns of a table; leave out rows whose target or viewpoint is missing.

    Parameters
    ----------
    table
        The table as read.
    target
        Name of the column to predict.
    viewpoint
        Name of the viewpoint column, or several names. A comparison such as "age>=40" makes two groups of a
        column of numbers.
    positive
        The value of the target that is coded as +1; all others are -1. It may be omitted if there are two
        values: the default is the positive one of a known pair (yes of yes/no), else the last in order.
    favoured
        The group that is compared with all others. By default, if there are more than two groups, each is
        compared with all others.
    task
        "regression" takes the target as a number, "classification" does not; "auto" does if it has more than
        MOST_SHOWN different numbers and `positive` is not given.
    intersect
        With several viewpoints: whether each combination of their values is a group, instead of each value.
    bins
        The numbers at which viewpoints that hold numbers are cut into groups.
    keep_viewpoint
        Whether the viewpoint columns are inputs too.
    leave_out
        Columns that are not used as inputs.

    Examples
    --------
    >>> from nerm.tables import parse_table
    >>> table = parse_table("age,sex,income\n31,f,low\n52,m,low\n47,f,high\n33,m,?\n", "census.csv")
    >>> task = make_task(table, "income", "sex", keep_viewpoint=True)
    >>> task.target, task.inputs, task.notes
    (Role(column='income', positive='high', negative='low'), ('age', 'sex'),
     ("1 rows without a value of 'income' were left out, written '?'", "fewer than 30 rows have ...))
    """
    given = (viewpoint,) if isinstance(viewpoint, str) else tuple(dict.fromkeys(viewpoint))
    table, views = _with_groups(table, given, bins)
    if target in views:
        do = "Name another column as viewpoint"
        raise InvalidInputError("target and viewpoint must be two columns", f"{target!r} for both", do)
    for name in leave_out:
        table[name]  # a name that is not there must be refused
    notes, left_out = list[str](), list[str]()
    for name in (target, *views):
        unknown = table.unknown(name)
        if unknown.all():
            must = f"column {name!r} must hold values"
            raise InvalidInputError(must, "missing values only", "Use another column")
        if count := int(unknown.sum()):
            how = cells.written(table[name][unknown])
            left_out.append(f"{count} rows without a value of {name!r} were left out{how}")
            table = table.rows(~unknown)
    numbers = None if task == "classification" else _numbers_of(table, target, positive, task)
    values = dict[str, Array]()
    if numbers is not None:
        middle = float(np.median(numbers))
        middle = middle if middle < numbers.max() else float(numbers.mean())
        positive, below = f"above {middle:g}", f"at most {middle:g}"
        values[target] = np.where(numbers > middle, positive, below).astype(object)
        notes.append(f"{target!r} is read as a number: a regression; --task classification takes its values")
    for name in (target, *views)[numbers is not None :]:
        values[name], merged = table.categories(name, role=True)
        counts = pd.Series(values[name]).value_counts()
        doubts = cells.doubtful(name, counts.to_dict(), FEW_ROWS) if len(counts) <= MOST_SHOWN else ()
        notes += [*merged, *doubts]
    role, advice = _role(target, values[target], positive, "target")
    view, groups, compared, formed = _compared({name: values[name] for name in views}, favoured, intersect)
    notes = [*advice, *formed, *notes, *table.notes, *left_out]
    if positive is None and cells.positive_of(role.positive, role.negative) is None:
        takes = f"--positive takes {role.negative!r} instead"
        notes.append(f"{role.group(1)} counts as positive, the last in order; {takes}")
    y = role.signs(values[target])
    if any(abs((y * np.where(groups[name], 1, -1)).mean()) == 1 for name in compared):
        must = "target and viewpoint must not divide the rows into the same groups"
        do = "No model can predict one and not follow the other: use another viewpoint or target"
        raise InvalidInputError(must, f"{target!r} and {view.column!r} with the same two groups of rows", do)
    out = {target, *leave_out} | (set() if keep_viewpoint else set(views))
    inputs = tuple(name for name in table.names if name not in out)
    if not inputs:
        must = "the table must have a column besides target and viewpoint"
        raise InvalidInputError(must, "no other", "Add the columns to learn from")
    every = {role.group(1): y > 0, role.group(-1): y < 0, **groups}
    if few := cells.listed([name for name, among in every.items() if 0 < among.sum() < FEW_ROWS]):
        notes.append(f"fewer than {FEW_ROWS} rows have {few}: what is said of them may be chance")
    for name, among in groups.items() if numbers is None else ():
        if among.sum() >= FEW_ROWS and abs(y[among].sum()) == among.sum():
            notes.append(f"every row with {name!r} has {role.group(int(y[among][0]))!r}")
    return TableTask(table, role, view, y, groups, compared, inputs, tuple(notes), {}, numbers)


def _numbers_of(table: TextTable, target: str, positive: str | None, task: str) -> Floats | None:
    """Return the target of a regression, (n,), or None.

    The arguments are those of `make_task`.
    """
    numbers = table.numbers(target)
    strange = np.isnan(numbers)
    count = len(np.unique(numbers[~strange]))
    if task == "auto" and (positive is not None or strange.mean() > 0.5 or count <= MOST_SHOWN):
        return None
    must, do = "the target of a regression must be a number in every row", "use --task classification"
    advice = f"Correct it, declare it missing with --missing {{}}, or {do}"
    table.refuse(target, strange, must, advice, f"{{}} of {target!r}")
    if count < 2:
        must = f"the target {target!r} must have two values or more"
        raise InvalidInputError(must, "one value only", "Choose another column")
    if positive is not None:
        got = f"it, and {target!r} is read as numbers"
        raise InvalidInputError("--positive is for classification only", got, f"Remove it, or {do}")
    return numbers


def _with_groups(
    table: TextTable, viewpoints: Sequence[str], bins: Sequence[float]
) -> tuple[TextTable, tuple[str, ...]]:
    """Replace the numbers of viewpoints by words for their groups; return the table and the column names.

    The groups are the two sides of a comparison such as "age>=40", or the intervals between the `bins`.
    """
    views, frame = list[str](), table.frame
    for given in viewpoints:
        found = None if given in table.names else _COMPARED.fullmatch(given)
        name = given if found is None else found[1].strip()
        views.append(name)
        edges = sorted(bins) if found is None else [float(found[3])]
        unknown, numbers = table.unknown(name), table.numbers(name)
        strange = np.isnan(numbers) & ~unknown
        if not edges or (found is None and strange.any()):
            continue
        must, do = f"{given!r} must compare a column of numbers", "Name a group with --favoured instead"
        table.refuse(name, strange, must, do)
        inner = [f"{low:g} to below {high:g}" for low, high in pairwise(edges)]
        words, above = [f"below {edges[0]:g}", *inner, f"{edges[-1]:g} or more"], False
        if found is not None and found[2] in (">", "<="):
            words, above = [f"{edges[0]:g} or less", f"above {edges[0]:g}"], True
        groups = np.array([*words, ""], dtype=object)
        frame = frame.assign(
            **{name: groups[np.where(unknown, -1, np.digitize(numbers, edges, right=above))]}
        )
    if bins and frame is table.frame:
        must = "--bins must come with a viewpoint of numbers"
        raise InvalidInputError(must, f"words in {cells.listed(viewpoints)}", "Remove --bins")
    return replace(table, frame=frame), tuple(dict.fromkeys(views))


def _compared(
    named: Mapping[str, Array], favoured: str | None, intersect: bool
) -> tuple[Role, dict[str, Bools], tuple[str, ...], list[str]]:
    """Return role, groups and compared groups of the viewpoint, and notes.

    The first three are as in `TableTask`. Of more than two groups, those of fewer than FEW_ROWS rows are not
    compared, because their rates are too uncertain: they are pooled if that makes a group of FEW_ROWS rows.
    They belong to the rest with which other groups are compared. The notes say what was pooled.

    Parameters
    ----------
    named
        The values of each viewpoint, (n,), by name.
    favoured, intersect
        As for `make_task`.
    """
    if favoured is not None and len(named) > 1:
        do = "Remove --favoured: each group is compared with the rest"
        raise InvalidInputError("--favoured must come with one viewpoint", f"{len(named)} of them", do)
    column = " and ".join(named)
    if intersect:
        named = {column: pd.DataFrame(named).agg(", ".join, axis=1).to_numpy()}
    roles, groups, compared, notes = [], dict[str, Bools](), list[str](), list[str]()
    for name, given in named.items():
        role, found = _role(name, given, favoured, "viewpoint")
        words, pooled = (given, []) if role.negative != THE_REST else _pooled(name, given)
        counts = pd.Series(words).value_counts()
        if len(counts) == 2 or favoured is not None:
            role = role if role.negative != THE_REST else Role(name, *counts.index)
            groups |= {role.group(side): role.signs(words) == side for side in (1, -1)}
            compared.append(role.group(1))
        else:
            groups |= {f"{name} = {value}": words == value for value in sorted(counts.index)}
            first, *others = counts.index[counts >= FEW_ROWS]
            role = Role(name, first, THE_REST)
            compared += [f"{name} = {value}" for value in (first, *sorted(others))]
            shown = cells.counted(counts.to_dict(), MOST_SHOWN)
            found = [f"the groups of {name!r} are compared each with the rest: {shown}"]
        notes += [*found, *pooled]
        roles.append(role)
    return replace(roles[0], column=column), groups, tuple(compared), notes


def _pooled(name: str, words: Array) -> tuple[Array, list[str]]:
    """Return the values of a viewpoint, (n,), with the groups of few rows pooled, and notes on these.

    They are pooled if together they have FEW_ROWS rows; otherwise they are set aside by the caller.
    """
    counts = pd.Series(words).value_counts()
    small = counts[counts < FEW_ROWS].sort_index()
    if len(small) == len(counts):
        must = f"a group of {name!r} must have at least {FEW_ROWS} rows"
        do = "set one group against the rest with --favoured"
        do = f"Read values as one with --same, use more rows, or {do}"
        raise InvalidInputError(must, cells.counted(counts.to_dict(), MOST_SHOWN), do)
    if small.empty:
        return words, []
    shown = cells.counted(small.to_dict(), MOST_SHOWN)
    few = f"groups of {name!r} below {FEW_ROWS} rows are"
    if len(small) == 1 or small.sum() < FEW_ROWS:
        return words, [f"{few} set aside, and only counted in the rest of other groups: {shown}"]
    others = " or ".join(small.index)
    return np.where(pd.Series(words).isin(small.index), others, words), [f"{few} pooled as one: {shown}"]


def _role(name: str, words: Array, positive: str | None, what: str) -> tuple[Role, list[str]]:
    """Return the role of a column with the values `words`, (n,), and notes on its other values.

    The value +1 is `positive`, in any spelling, or, if that is None and there are two values, the default of
    `make_task`. `what` is "target" or "viewpoint". A viewpoint may have more values; then the most frequent
    one is +1.
    """
    counts = pd.Series(words).value_counts()
    values = sorted(counts.index, key=_order)
    shown = cells.counted({value: counts[value] for value in values})
    must, option = f"the {what} must have two values", "--positive" if what == "target" else "--favoured"
    if len(values) == 1:
        got, do = f"{cells.quoted(values[0])} in every row of {name!r}", f"Use another column as {what}"
        raise InvalidInputError(must, got, do)
    alike = [value for value in values if positive == value]
    alike = alike or [value for value in values if cells.key_of(value) == cells.key_of(positive or "")]
    if positive is not None and len(alike) != 1:
        must = f"{option} must be a value of {name!r} ({shown})"
        raise InvalidInputError(must, repr(positive), "Use one of these")
    if positive is None and len(values) > 2:
        do = f"Name one of them with {option} to set it against the rest"
        numeric = not np.isnan(cells.numbers_in(values)).any()
        do += ", or take it as a number with --task regression" if numeric and what == "target" else ""
        if what == "viewpoint":
            if len(values) <= MOST_SHOWN:
                return Role(name, counts.index[0], THE_REST), []
            must = f"a viewpoint must have at most {MOST_SHOWN} groups"
            if numeric:
                middle = f"{np.median(cells.numbers_in(words)):g}"
                do = f"Use --viewpoint '{name}>={middle}', --bins {middle}, or --favoured"
        raise InvalidInputError(must, f"{len(values)} in {name!r}: {shown}", do)
    chosen = cells.positive_of(*values[:2]) or values[-1] if positive is None else alike[0]
    others = {value: counts[value] for value in values if value != chosen}
    if len(others) == 1:
        return Role(name, chosen, *others), []
    against = cells.counted({chosen: counts[chosen]}), cells.counted(others, MOST_SHOWN)
    note = f"the {what} {name!r} is {against[0]} against the rest: {against[1]}"
    return Role(name, chosen, f"not {chosen}"), [note]


def _order(value: str) -> tuple[bool, float, str]:
    """Return a sort key: numbers first, by size, then other strings in alphabetical order."""
    number = float(cells.numbers_in([value])[0])
    return (True, 0.0, value) if np.isnan(number) else (False, number, value)


def kind_of(name: str, table: TextTable) -> str:
    """Return the kind of a column's values: numbers, words, or dates in one of `values.ORDERS`.

    If most known values (or most of the different ones) are numbers or dates, but not all, the column is
    ambiguous, and an error is raised.
    """
    words, unknown = table[name], table.unknown(name)
    known, kind, what = int((~unknown).sum()), NUMBERS, "numbers"
    strange = np.isnan(table.numbers(name)) & ~unknown
    if strange.sum() > known / 2 and len(set(words[strange])) >= len(table.known(name)) / 2:
        orders = cells.date_orders(table.known(name))
        if not orders:
            return WORDS
        kind, what = orders[0] if len(orders) == 1 else UNCLEAR, f"dates ({orders[0]})"
        strange = cells.dates_in(words, orders[0]).isna() & ~unknown
    must = f"column {name!r} must hold {what.partition(' ')[0]} only, or words"
    got = f"{known - strange.sum()} {what} and {strange.sum()} other values, first {{}}"
    do = "Correct them, declare them missing with --missing {}, or take the column as words with "
    table.refuse(name, strange, must, f"{do}--nominal {name!r}", got)
    return kind


def survey(task: TableTask, *, nominal: Sequence[str] = (), numeric: Sequence[str] = ()) -> TableTask:
    r"""Find the kind of each input, and leave out identifiers; return the completed task.

    Its notes name the identifiers, dates of unclear order, and columns that may leak the target.

    Parameters
    ----------
    task
        The task with all rows.
    nominal
        Columns to treat as words, even if they look like numbers.
    numeric
        Columns of numbers to keep, even if they look like identifiers.

    Examples
    --------
    >>> from nerm.tables import make_task, parse_table
    >>> days = [f"{i % 28 + 1}.{i % 12 + 1}.2023" for i in range(90)]
    >>> rows = [f"{i},{i % 7},{i % 3 % 2},{i % 2},{days[i]},{'ab'[i % 3 % 2]}" for i in range(90)]
    >>> task = survey(make_task(parse_table("\n".join(["id,x,y,v,day,copy", *rows]), "t"), "y", "v"))
    >>> task.inputs, dict(task.kinds)
    (('x', 'day', 'copy'), {'x': 'numbers', 'day': 'day.month.year', 'copy': 'words'})
    >>> print("\n".join(task.notes))
    'copy' nearly repeats the target 'y' (its value tells it in 90 of 90 rows): if that is not known when
    decisions are made, leave it out with --leave-out 'id' left out: another value in nearly every row, so it
    was treated as a row identifier; to use it, pass --numeric (as a number) or --nominal (as categories)
    'day' read as dates (day.month.year), coded as year, month and days; --nominal takes them as words
    """
    table = task.table
    kinds: dict[str, str] = {}
    for name in (*nominal, *numeric):
        table[name]  # a name that is not there must be refused
    for name in task.inputs:
        kind = WORDS if name in nominal else kind_of(name, table)
        if name in numeric and kind != NUMBERS:
            must = f"--numeric {name!r} must hold numbers"
            raise InvalidInputError(must, kind, "Correct it, or use --nominal")
        if name not in (*nominal, *numeric) and _is_identifier(table, name, kind, task.y):
            kind = IDENTIFIER
        kinds[name] = kind
    notes = []
    for kind, text in KIND_NOTES.items():
        if found := [name for name, its in kinds.items() if its == kind]:
            notes.append(f"{cells.listed(found)} {text}")
    for name, kind in kinds.items():
        known = table.known(name)
        if kind == NUMBERS:
            notes += cells.number_notes(name, known, table.marks.get(name))
        elif kind in cells.ORDERS and (short := sorted(filter(cells.TWO_DIGITS.search, known))):
            year = cells.dates_in(short, kind).year.max()
            notes.append(f"years of two digits in {name!r} are read as 1969 to 2068, at most {year:.0f}")
    kinds = {name: kind for name, kind in kinds.items() if kind not in (IDENTIFIER, UNCLEAR)}
    notes = [*_leak_notes(task, kinds), *notes]
    if not kinds:
        must = "the table must have a column to learn from"
        raise InvalidInputError(must, "; ".join(notes), "Keep one of them, or add others")
    return replace(task, inputs=tuple(kinds), kinds=kinds, notes=(*notes, *task.notes))


def values_of(table: TextTable, name: str, kind: str) -> dict[str, Floats]:
    r"""Return the numeric values of a column, (n,) each, by name of the component.

    For numbers the only name is ""; for dates the names are "year", "month" and "days" (since 1970).

    >>> from nerm.tables import parse_table
    >>> table = parse_table("day,x\n1970-03-01,7\n", "t")
    >>> values_of(table, "x", "numbers"), values_of(table, "day", "year-month-day")
    ({'': array([7.])}, {'year': array([1970.]), 'month': array([3.]), 'days': array([59.])})
    """
    if kind not in cells.ORDERS:
        return {"": table.numbers(name)}
    dates = cells.dates_in(table[name], kind)
    parts = {"year": dates.year, "month": dates.month, "days": (dates - pd.Timestamp(0)).days}
    return {part: np.asarray(values, dtype=float) for part, values in parts.items()}


def _is_identifier(table: TextTable, name: str, kind: str, y: Floats) -> bool:
    """Whether a column is an identifier: most words, or nearly all integers, are distinct.

    Distinct integers are no identifier if they are related to y (such as a salary), by a Mann-Whitney test.
    Consecutive integers are an identifier in any case, because they may number rows sorted by y.
    """
    known = ~table.unknown(name)
    rows, distinct, positive = known.sum(), len(table.known(name)), y[known] > 0
    if rows < FEW_ROWS or kind not in (WORDS, NUMBERS):
        return False
    if kind == WORDS:
        return bool(distinct > max(FEW_ROWS, rows / 2))
    numbers = table.numbers(name)[known]
    if distinct < NEARLY_ALL * rows or not (numbers == np.round(numbers)).all():
        return False
    if (np.diff(numbers) == 1).mean() >= NEARLY_ALL or positive.all() or not positive.any():
        return True
    from scipy.stats import mannwhitneyu

    return bool(mannwhitneyu(numbers[positive], numbers[~positive]).pvalue > 1 / rows)


def _leak_notes(task: TableTask, kinds: Mapping[str, str]) -> list[str]:
    """Return notes on columns that nearly determine the target or a term of the viewpoint."""
    unknown = "if that is not known when decisions are made, leave it out with --leave-out"
    follows = "the model can follow it through that; --leave-out leaves a column out"
    roles = (
        (f"the target {task.target.column!r}", [task.y], unknown),
        (f"the viewpoint {task.viewpoint.column!r}", task.terms.values(), follows),
    )
    notes = []
    views = {term.partition(" = ")[0] for term in (task.viewpoint.column, *task.terms)}  # may be inputs too
    for role, sides, advice in roles:
        leaks = defaultdict[str, list[str]](list)
        for name in [name for name in kinds if name not in views]:
            found = (_told_by(task.table, name, kinds[name], signs) for signs in sides)
            leaks[next(filter(None, found), "")].append(name)
        for how, names in leaks.items():
            if how:
                verb = "repeats" if len(names) == 1 else "repeat"
                notes.append(f"{cells.listed(names)} nearly {verb} {role} ({how}): {advice}")
    return notes


def _told_by(table: TextTable, name: str, kind: str, signs: Floats) -> str:
    """Return how a column alone determines nearly all signs, as text; "" if it does not.

    A value determines the sign of a row if most other rows with this value have that sign. So a value that
    occurs once determines nothing, and a column of 60 different values does not determine the signs by
    chance.
    """
    unknown, positive = table.unknown(name), signs > 0
    rows = len(positive)
    allowed = (1 - NEARLY_ALL) * min(positive.sum(), (~positive).sum())
    if rows < FEW_ROWS or not allowed:
        return ""

    def errors(values: Array) -> pd.Series:
        """Return for each value the number of rows whose sign it does not determine."""
        counts = pd.crosstab(values, positive).reindex(columns=[False, True], fill_value=0)
        down, up = counts[False], counts[True]
        return down.where(down <= up + 1, 0) + up.where(up <= down + 1, 0)

    missing, value = errors(unknown), errors(np.where(unknown, "", table[name]))
    found = {"whether it is missing": missing.sum(), "its value": value.sum()}
    if kind != WORDS and not unknown.all():
        *_, numbers = values_of(table, name, kind).values()
        above = positive[~unknown][np.argsort(numbers[~unknown], kind="stable")]
        wrong = np.cumsum(np.where(above, 1, -1)) + (~above).sum()  # of "positive above the threshold"
        least = min(wrong.min(), (len(above) - wrong).min())
        found["one threshold on it"] = missing.get(True, 0) + least
    how, least = min(found.items(), key=lambda pair: pair[1])
    return f"{how} tells it in {rows - least:,} of {rows:,} rows" if least <= allowed else ""
