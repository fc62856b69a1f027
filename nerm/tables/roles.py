"""Give columns their roles, target, viewpoint and inputs, and find out what the inputs hold.

An identifier (another value in nearly every row) cannot help on new rows and is left out. A column that alone
tells the target or the viewpoint of nearly every row is pointed out: it may be the answer in other words.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
import pandas as pd

from nerm.errors import InvalidInputError
from nerm.tables.reading import TextTable
from nerm.tables.values import (
    MISSING,
    ORDERS,
    date_orders,
    date_parts,
    dates_in,
    listed,
    missing_in,
    numbers_in,
    positive_of,
    quoted,
)
from nerm.typing import Array, Bools, Floats, Ints

MOST_SHOWN = 12  # groups of one viewpoint, and entries of lists
FEW_ROWS = 30  # below which a rate is marked as uncertain
NEARLY_ALL = 0.95  # of the rows: distinct values of an identifier, and rows whose target a leak tells
NUMBERS, WORDS, UNCLEAR = "numbers", "words", "dates of unclear order"


@dataclass(frozen=True)
class Role:
    """A column read as -1 and +1.

    Attributes
    ----------
    column
        Its name.
    positive, negative
        The value that counts as +1, and what the others are called.

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
        """Return +1 where the value is the positive one, -1 elsewhere, in the shape of the values."""
        return np.where(values == self.positive, 1.0, -1.0)

    def group(self, sign: int) -> str:
        """Return the name of a group, as in "sex = f"."""
        return f"{self.column} = {self.positive if sign > 0 else self.negative}"


@dataclass(frozen=True, eq=False)
class TableTask:
    r"""A table with its roles: the rows where target and viewpoint are known, and what was left out.

    Attributes
    ----------
    table
        The rows.
    target, viewpoint
        The two columns that are read as -1 and +1; of a viewpoint of more groups, the largest against the
        rest.
    y, v
        Their signs, (n,).
    inputs
        The columns to learn from.
    notes
        What was left out.
    kinds
        What each input holds, where `nerm.tables.survey` has looked.
    groups
        By name, as in "sex = f", who belongs to a group, (n,) each; the groups of one viewpoint column stand
        together.
    terms
        By name, a group set against the rest: +1 in it and -1 elsewhere, (n,) each. Of two groups there is
        one term.

    Examples
    --------
    >>> from nerm.tables import parse_table
    >>> table = parse_table("age,sex,income\n31,f,low\n52,m,low\n47,f,high\n33,m,?\n", "people.csv")
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
    v: Floats
    inputs: tuple[str, ...]
    notes: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    groups: dict[str, Bools] = field(default_factory=dict)
    terms: dict[str, Floats] = field(default_factory=dict)

    def rows(self, kept: Bools | Ints) -> Self:
        """Return the task on these rows: a mask (n,), or their numbers."""
        groups = {name: among[kept] for name, among in self.groups.items()}
        terms = {name: signs[kept] for name, signs in self.terms.items()}
        return replace(
            self, table=self.table.rows(kept), y=self.y[kept], v=self.v[kept], groups=groups, terms=terms
        )

    @property
    def strata(self) -> list[Floats]:
        """What splits keep the shares of: the target and every term, (n,) each."""
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
    intersect: bool = False,
    keep_viewpoint: bool = False,
    leave_out: Sequence[str] = (),
    missing: Sequence[str] = MISSING,
) -> TableTask:
    r"""Give the columns their roles, leaving out rows whose target or viewpoint is missing.

    Parameters
    ----------
    table
        As read.
    target, viewpoint
        Names of columns; of the viewpoint there can be several.
    positive
        The value of the target that counts as +1, and with more than two the one to be set against the rest;
        of two values by default the positive one of a known pair (yes and no), else the last in order.
    favoured
        The group that is set against the rest; by default each group of more than two is.
    intersect
        Whether every combination of the viewpoints' values is a group, instead of every value.
    keep_viewpoint
        Whether the viewpoint is an input too.
    leave_out
        Columns that are no inputs.
    missing
        The words for "missing".

    Examples
    --------
    >>> from nerm.tables import parse_table
    >>> table = parse_table("age,sex,income\n31,f,low\n52,m,low\n47,f,high\n33,m,?\n", "people.csv")
    >>> task = make_task(table, "income", "sex", keep_viewpoint=True)
    >>> task.target, task.inputs, task.notes
    (Role(column='income', positive='high', negative='low'), ('age', 'sex'),
     ("1 rows without a value of 'income' were left out", "fewer than 30 rows have 'income = high', ...))
    """
    views = (viewpoint,) if isinstance(viewpoint, str) else tuple(dict.fromkeys(viewpoint))
    if target in views:
        do = "Name another column as viewpoint"
        raise InvalidInputError("target and viewpoint must be two columns", f"{target!r} for both", do)
    for name in leave_out:
        table[name]  # a name that is not there must be refused
    notes = list(table.notes)
    for name in (target, *views):
        unknown = missing_in(table[name], missing)
        if unknown.all():
            must = f"column {name!r} must hold values"
            raise InvalidInputError(must, "missing values only", "Use another column")
        if unknown.any():
            notes.append(f"{int(unknown.sum())} rows without a value of {name!r} were left out")
            table = table.rows(~unknown)
    role = _role(target, set(table[target].tolist()), positive)
    if positive is None and positive_of(role.positive, role.negative) is None:
        takes = f"--positive takes {role.negative!r} instead"
        notes.append(f"{role.group(1)} counts as positive, the last in order; {takes}")
    view, groups, terms = _compared(table, views, favoured, intersect)
    y, v = role.signs(table[target]), next(iter(terms.values()))
    if any(abs((y * sides).mean()) == 1 for sides in terms.values()):
        must = "the target must not be the viewpoint in other words"
        do = "Nothing can be learned that is neutral to it: use another viewpoint or target"
        raise InvalidInputError(must, f"{target!r} and {view.column!r} with the same two groups of rows", do)
    out = {target, *leave_out} | (set() if keep_viewpoint else set(views))
    inputs = tuple(name for name in table.names if name not in out)
    if not inputs:
        must = "the table must have a column besides target and viewpoint"
        raise InvalidInputError(must, "no other", "Add the columns to learn from")
    every = {role.group(1): y > 0, role.group(-1): y < 0, **groups}
    if few := [name for name, among in every.items() if 0 < among.sum() < FEW_ROWS]:
        notes.append(f"fewer than {FEW_ROWS} rows have {listed(few)}: what is said of them may be chance")
    return TableTask(table, role, view, y, v, inputs, tuple(notes), groups=groups, terms=terms)


def _compared(
    table: TextTable, views: Sequence[str], favoured: str | None, intersect: bool
) -> tuple[Role, dict[str, Bools], dict[str, Floats]]:
    """Return the viewpoint's role, its groups, and each group against the rest.

    Groups of few rows get no term of their own: nothing can be said about them, and they count among the
    rest.
    """
    if favoured is not None and len(views) > 1:
        do = "Leave --favoured out: every group is set against the rest"
        raise InvalidInputError("--favoured must come with one viewpoint", f"{len(views)} of them", do)
    column, named = " and ".join(views), {name: table[name] for name in views}
    if intersect:
        named = {column: table.frame[list(views)].agg(", ".join, axis=1).to_numpy()}
    roles, groups, terms = [], dict[str, Bools](), dict[str, Floats]()
    for name, words in named.items():
        counts = pd.Series(words).value_counts()
        values = sorted(counts.index)
        if len(values) < 2:
            must, got = "the viewpoint must have two values", f"{quoted(values[0])} in every row of {name!r}"
            raise InvalidInputError(must, got, "Use another column as viewpoint")
        if len(values) > MOST_SHOWN and favoured is None:
            must = f"a viewpoint must have at most {MOST_SHOWN} groups"
            got = f"{len(values)} different values of {name!r}"
            do = "Use a column with fewer values, or name one with --favoured to set it against the rest"
            raise InvalidInputError(must, got, do)
        if len(values) == 2 or favoured is not None:
            role = _role(name, values, favoured, "--favoured")
            terms[role.group(1)] = signs = role.signs(words)
            groups |= {role.group(side): signs == side for side in (1, -1)}
        else:
            role = Role(name, counts.index[0], "the rest")
            groups |= {f"{name} = {value}": words == value for value in values}
            several = [role.positive, *(v for v in values if v != role.positive and counts[v] >= FEW_ROWS)]
            terms |= {f"{name} = {value}": np.where(words == value, 1.0, -1.0) for value in several}
        roles.append(role)
    return replace(roles[0], column=column), groups, terms


def _role(name: str, seen: Collection[str], positive: str | None = None, option: str = "--positive") -> Role:
    """Return the role of a column: the given value, or of two the positive one, against the others."""
    values = sorted(seen, key=_order)
    shown = ", ".join(map(quoted, values[:5])) + (", …" if len(values) > 5 else "")
    if len(values) == 1:
        must = "the target must have two values"
        raise InvalidInputError(must, f"{shown} in every row of {name!r}", "Use another column as target")
    if positive is not None and positive not in values:
        must = f"{option} must be a value of {name!r} ({shown})"
        raise InvalidInputError(must, repr(positive), "Use one of these")
    if positive is None and len(values) > 2:
        do = "Name one of them with --positive to set it against the rest"
        if len(values) > MOST_SHOWN and not np.isnan(numbers_in(values)).any():
            do = "Make a column of two values of it, such as whether it is above some number"
        raise InvalidInputError("the target must have two values", f"{len(values)} in {name!r}: {shown}", do)
    chosen = positive if positive is not None else positive_of(*values[:2]) or values[-1]
    others = [value for value in values if value != chosen]
    return Role(name, chosen, others[0] if len(others) == 1 else f"not {chosen}")


def _order(value: str) -> tuple[bool, float, str]:
    """Sort numbers as numbers, before words."""
    number = float(numbers_in([value])[0])
    return (True, 0.0, value) if np.isnan(number) else (False, number, value)


def kind_of(name: str, table: TextTable, unknown: Bools) -> str:
    """Return what a column holds: numbers, words, or dates in one of `values.ORDERS`.

    A column of which most values are numbers (or dates), but not all, is refused.

    Parameters
    ----------
    name, table
        The column.
    unknown
        Where it is missing, (n,).
    """
    known = table[name][~unknown]
    kind, what, strange = NUMBERS, "numbers", np.isnan(table.numbers(name)[~unknown])
    if strange.mean() > 0.5:
        orders = date_orders(dict.fromkeys(known.tolist()))
        if not orders:
            return WORDS
        kind, what = orders[0] if len(orders) == 1 else UNCLEAR, "dates"
        strange = dates_in(known, orders[0]).isna()
    if strange.mean() > 0.5:
        return WORDS
    if not strange.any():
        return kind
    first, count = int(np.flatnonzero(strange)[0]), int(strange.sum())
    place = table.places[~unknown][first]
    raise InvalidInputError(
        f"column {name!r} must hold {what} only, or words",
        f"{len(known) - count} {what} and {count} other values, first {quoted(known[first])} in row {place}",
        f"Correct them, declare them missing with --missing {quoted(known[first])}, or take the column as "
        f"words with --nominal {name!r}",
    )


def survey(
    task: TableTask,
    *,
    nominal: Sequence[str] = (),
    numeric: Sequence[str] = (),
    missing: Sequence[str] = MISSING,
) -> TableTask:
    r"""Return the task with the kinds of its inputs and without identifiers; notes name these and leaks.

    Parameters
    ----------
    task
        All rows.
    nominal, numeric
        Columns to take as words, and as numbers, whatever they look like.
    missing
        The words for "missing".

    Examples
    --------
    >>> from nerm.tables import make_task, parse_table
    >>> days = [f"{i % 28 + 1}.{i % 12 + 1}.2023" for i in range(90)]
    >>> rows = [f"{i},{i % 7},{i % 3 % 2},{i % 2},{days[i]},{'ab'[i % 3 % 2]}" for i in range(90)]
    >>> task = survey(make_task(parse_table("\n".join(["id,x,y,v,day,copy", *rows]), "t"), "y", "v"))
    >>> task.inputs, dict(task.kinds)
    (('x', 'day', 'copy'), {'x': 'numbers', 'day': 'day.month.year', 'copy': 'words'})
    >>> print("\n".join(task.notes))
    'copy' nearly repeats the target 'y': if that is not known when decisions are made, leave it out with
    --leave-out 'id' left out: another value in nearly every row, so it names rows; --numeric keeps integers,
    --nominal words 'day' read as dates (day.month.year), coded as year, month and days; --nominal takes them
    as words
    """
    table = task.table
    kinds: dict[str, str] = {}
    identifiers = []
    for name in (*nominal, *numeric):
        table[name]  # a name that is not there must be refused
    for name in task.inputs:
        unknown = missing_in(table[name], missing)
        kind = WORDS if name in nominal else kind_of(name, table, unknown)
        if name in numeric and kind != NUMBERS:
            must = f"--numeric {name!r} must hold numbers"
            raise InvalidInputError(must, kind, "Correct it, or use --nominal")
        if name not in (*nominal, *numeric) and _is_identifier(table, name, kind, unknown, task.y):
            identifiers.append(name)
        else:
            kinds[name] = kind
    unclear = [name for name, kind in kinds.items() if kind == UNCLEAR]
    kinds = {name: kind for name, kind in kinds.items() if kind != UNCLEAR}
    notes = _leak_notes(task, kinds, missing)
    if identifiers:
        why = "another value in nearly every row, so it names rows; --numeric keeps integers, --nominal words"
        notes.append(f"{listed(identifiers)} left out: {why}")
    if unclear:
        why = "dates whose day and month cannot be told apart; write them as 2024-12-31"
        notes.append(f"{listed(unclear)} left out: {why}")
    for order in ORDERS:
        if found := [name for name, kind in kinds.items() if kind == order]:
            coded = "coded as year, month and days; --nominal takes them as words"
            notes.append(f"{listed(found)} read as dates ({order}), {coded}")
    if not kinds:
        must = "the table must have a column to learn from"
        raise InvalidInputError(must, "; ".join(notes), "Keep one of them, or add others")
    return replace(task, inputs=tuple(kinds), kinds=kinds, notes=(*notes, *task.notes))


def values_of(table: TextTable, name: str, kind: str) -> dict[str, Floats]:
    """Return the numbers of a column by "", or the parts of its dates by their names, (n,) each."""
    return date_parts(dates_in(table[name], kind)) if kind in ORDERS else {"": table.numbers(name)}


def _is_identifier(table: TextTable, name: str, kind: str, unknown: Bools, y: Floats) -> bool:
    """Whether words differ in most rows, or integers in nearly all.

    Integers that are ordered with y (a salary) stay, unless they count the rows of a file sorted by y.
    """
    known, positive = table[name][~unknown], y[~unknown] > 0
    distinct = len(set(known.tolist()))
    if len(known) < FEW_ROWS or kind not in (WORDS, NUMBERS):
        return False
    if kind == WORDS:
        return distinct > max(FEW_ROWS, len(known) / 2)
    numbers = table.numbers(name)[~unknown]
    if distinct < NEARLY_ALL * len(known) or not (numbers == np.round(numbers)).all():
        return False
    if (np.diff(numbers) == 1).mean() >= NEARLY_ALL or positive.all() or not positive.any():
        return True
    from scipy.stats import mannwhitneyu

    return bool(mannwhitneyu(numbers[positive], numbers[~positive]).pvalue > 1 / len(known))


def _leak_notes(task: TableTask, kinds: Mapping[str, str], missing: Sequence[str]) -> list[str]:
    """Return notes on columns that are the target, or the viewpoint, in other words."""
    advice = {
        "target": "if that is not known when decisions are made, leave it out with --leave-out",
        "viewpoint": "the model can follow it through that; --leave-out leaves a column out",
    }
    notes = []
    views = {term.partition(" = ")[0] for term in (task.viewpoint.column, *task.terms)}  # may be inputs too
    for role, sides in (("target", [task.y]), ("viewpoint", list(task.terms.values()))):
        others = [name for name in kinds if name not in views]
        leaks = [n for n in others if any(_repeats(task.table, n, kinds[n], missing, s) for s in sides)]
        if leaks:
            verb = "repeats" if len(leaks) == 1 else "repeat"
            column = getattr(task, role).column
            notes.append(f"{listed(leaks)} nearly {verb} the {role} {column!r}: {advice[role]}")
    return notes


def _repeats(table: TextTable, name: str, kind: str, missing: Sequence[str], signs: Floats) -> bool:
    """Whether a column's values, or one threshold on its numbers, tell -1 from +1 in nearly every row."""
    words, positive = table[name], signs > 0
    allowed = (1 - NEARLY_ALL) * min(positive.sum(), (~positive).sum())
    counts = pd.crosstab(words, positive)
    if len(words) < FEW_ROWS or min(counts.shape) < 2:
        return False
    if len(counts) <= len(words) / 2:
        return bool(counts.min(axis=1).sum() <= allowed)
    known = ~missing_in(words, missing)
    if kind == WORDS or known.mean() < 0.5:
        return False
    *_, numbers = values_of(table, name, kind).values()
    above = positive[known][np.argsort(numbers[known], kind="stable")]
    errors = np.cumsum(np.where(above, 1, -1)) + (~above).sum()  # of "positive above" at each threshold
    return bool(min(errors.min(), (len(above) - errors).min()) <= allowed)
