"""What the columns mean: a target of two values, a viewpoint of two groups, the rest are inputs."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from nerm.errors import InvalidInputError
from nerm.intervals import FEW
from nerm.splitting import assign_folds, hold_out
from nerm.tables.labels import positive_of
from nerm.tables.numbers import numbers_in
from nerm.tables.opening import quoted
from nerm.tables.reading import MISSING, TextTable, missing_in
from nerm.typing import Array, Bools, Floats, Ints

MOST_GROUPS = 12  # in one viewpoint


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
        return np.where(values.astype(str) == self.positive, 1.0, -1.0)

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
    positive, favoured
        The value that counts as +1 for the target and for the viewpoint, and with more than two the one to be
        set against the rest; of two values by default the positive one of a known pair (yes and no), else the
        last in order. Without it, every group of a viewpoint of more than two is set against the rest.
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
     ("1 rows without a value of 'income' were left out", 'there are only 3 rows: what is found may be
     chance'))
    """
    views = (viewpoint,) if isinstance(viewpoint, str) else tuple(dict.fromkeys(viewpoint))
    if target in views:
        got = f"{target!r} for both"
        raise InvalidInputError(
            "target and viewpoint must be two columns", got, "Name another column as viewpoint"
        )
    notes = list(table.notes)
    if table.skipped:
        notes.append(f"{table.skipped} rows with a wrong number of fields were left out")
    for name in (target, *views):
        unknown = missing_in(table[name], missing)
        if unknown.all():
            raise InvalidInputError(
                f"column {name!r} must hold values", "missing values only", "Use another column"
            )
        if unknown.any():
            notes.append(f"{int(unknown.sum())} rows without a value of {name!r} were left out")
            table = table.rows(~unknown)
    aim = role_of(table, target, positive, "target", "--positive")
    if positive is None and positive_of(aim.positive, aim.negative) is None:
        notes.append(
            f"{aim.group(1)} counts as positive, the last in order; --positive takes {aim.negative!r} instead"
        )
    view, groups, terms = _compared(table, views, favoured, intersect)
    y, v = aim.signs(table[target]), next(iter(terms.values()))
    if any((y == sides).all() or (y == -sides).all() for sides in terms.values()):
        must = "the target must not be the viewpoint in other words"
        do = "Nothing can be learned that is neutral to it: use another viewpoint or target"
        raise InvalidInputError(must, f"{target!r} and {view.column!r} with the same two groups of rows", do)
    for name in leave_out:
        table[name]  # a name that is not there must be refused
    out = {target, *leave_out} | (set() if keep_viewpoint else set(views))
    inputs = tuple(name for name in table.names if name not in out)
    if not inputs:
        raise InvalidInputError(
            "the table must have a column besides target and viewpoint",
            "no other",
            "Add the columns to learn from",
        )
    notes += _few_notes(aim, y, groups)
    return TableTask(table, aim, view, y, v, inputs, tuple(notes), groups=groups, terms=terms)


def _few_notes(aim: Role, y: Floats, groups: Mapping[str, Bools]) -> list[str]:
    """Say where rows are too few for what is found to be more than chance."""
    if len(y) < FEW:
        return [f"there are only {len(y)} rows: what is found may be chance"]
    counts = {aim.group(side): int((y == side).sum()) for side in (1, -1)}
    counts |= {name: int(among.sum()) for name, among in groups.items()}
    return [
        f"{name} in only {n} rows: what is said of it may be chance"
        for name, n in counts.items()
        if 0 < n < FEW
    ]


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
    column, named = " and ".join(views), {name: table[name].astype(str) for name in views}
    if intersect:
        rows = zip(*named.values(), strict=True)
        named = {column: np.array([", ".join(row) for row in rows], dtype=object).astype(str)}
    roles, groups, terms = [], dict[str, Bools](), dict[str, Floats]()
    for name, words in named.items():
        values, counts = np.unique(words, return_counts=True)
        if len(values) > MOST_GROUPS and favoured is None:
            must = f"a viewpoint must have at most {MOST_GROUPS} groups"
            do = "Use a column with fewer values, or name one with --favoured to set it against the rest"
            raise InvalidInputError(must, f"{len(values)} different values of {name!r}", do)
        if len(values) <= 2 or favoured is not None:
            role = _role(name, values.tolist(), favoured, "viewpoint", "--favoured")
            terms[role.group(1)] = signs = role.signs(words)
            groups |= {role.group(side): signs == side for side in (1, -1)}
        else:
            largest = str(values[counts.argmax()])
            role = Role(name, largest, "the rest")
            groups |= {f"{name} = {value}": words == value for value in values}
            several = sorted(values[counts >= FEW].tolist() or [largest], key=lambda value: value != largest)
            terms |= {f"{name} = {value}": np.where(words == value, 1.0, -1.0) for value in several}
        roles.append(role)
    return replace(roles[0], column=column), groups, terms


def role_of(table: TextTable, name: str, positive: str | None, role: str, option: str) -> Role:
    """Return the role of a two-valued column, or of one value against the rest when that value was named."""
    return _role(name, {str(value) for value in table[name]}, positive, role, option)


def _role(name: str, seen: Iterable[str], positive: str | None, role: str, option: str) -> Role:
    values = sorted(seen, key=_order)
    shown = ", ".join(map(quoted, values[:5])) + (", …" if len(values) > 5 else "")
    if len(values) == 1:
        must = f"the {role} must have two values"
        raise InvalidInputError(must, f"{shown} in every row of {name!r}", f"Use another column as {role}")
    if positive is not None and positive not in values:
        raise InvalidInputError(
            f"{option} must be a value of {name!r} ({shown})", repr(positive), "Use one of these"
        )
    if positive is None and len(values) > 2:
        do = f"Name one of them with {option} to set it against the rest"
        if len(values) > MOST_GROUPS and not np.isnan(numbers_in(values)).any():
            do = "Make a column of two values of it, such as whether it is above some number"
        raise InvalidInputError(f"the {role} must have two values", f"{len(values)} in {name!r}: {shown}", do)
    chosen = positive if positive is not None else positive_of(*values[:2]) or values[-1]
    others = [value for value in values if value != chosen]
    return Role(name, chosen, others[0] if len(others) == 1 else f"not {chosen}")


def _order(value: str) -> tuple[bool, float, str]:
    """Sort numbers as numbers, before words."""
    number = float(numbers_in([value])[0])
    return (True, 0.0, value) if np.isnan(number) else (False, number, value)


def split(task: TableTask, share: float, seed: int) -> tuple[Ints, Ints]:
    """Return (training rows, held-out rows): this share of every combination of target and viewpoint is held out.

    Parameters
    ----------
    task
        The rows.
    share
        Between 0 and 1.
    seed
        Of the draw.
    """
    held = hold_out(task.strata, share, seed)
    train, test = np.flatnonzero(~held), np.flatnonzero(held)
    _check_both_seen(task, train, "training")
    _check_both_seen(task, test, "held-out")
    return train, test


def folds(task: TableTask, count: int, seed: int) -> list[tuple[Ints, Ints]]:
    """Return (training rows, held-out rows) of each fold; every fold has its share of every combination.

    Parameters
    ----------
    task
        The rows.
    count
        How many folds; no more than there are rows.
    seed
        Of the draw.
    """
    count = min(count, len(task))
    fold = assign_folds(task.strata, count, seed)
    pairs = [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(count)]
    for train, _ in pairs:
        _check_both_seen(task, train, "training")
    return pairs


def _check_both_seen(task: TableTask, rows: Ints, name: str) -> None:
    """Refuse a split in which a class or a group is not seen at all."""
    seen = [(task.target.column, task.target.positive, task.y)]
    seen += [(task.viewpoint.column, term, signs) for term, signs in task.terms.items()]
    for column, value, signs in seen:
        if len(set(signs[rows].tolist())) < 2:
            must = f"the {name} rows must hold both values of {column!r}"
            got = f"{len(task)} rows, of them {int((signs > 0).sum())} with {value!r}"
            raise InvalidInputError(must, got, "Use more rows, or another share with --test")
