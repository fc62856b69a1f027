"""What input columns hold, decided once on all rows: numbers, words or dates; and which of them name rows or leak.

A column that names rows (an identifier) cannot help on new rows and is left out. One that alone tells the
target, or the viewpoint, for nearly every row is pointed out: it may be the answer in other words.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from nerm.errors import InvalidInputError
from nerm.tables.dates import ORDERS, date_orders, days_in, disguised_order
from nerm.tables.opening import listed, quoted
from nerm.tables.reading import MISSING, TextTable, missing_in
from nerm.tables.roles import TableTask
from nerm.typing import Bools, Floats

NUMBERS, WORDS, UNCLEAR = "numbers", "words", "dates of unclear order"
SHARE = 0.5  # from this share of numbers (or dates) on, words in a column are taken for mistakes
ROWS = 20  # with fewer, nothing is said about identifiers and leaks
NAMES, NUMBERED = 0.5, 0.95  # shares of distinct values from which on words, and integers, name rows
BY_CHANCE = 3.0  # standard errors
LEAK, WRONG = 0.99, 0.05  # near-copies: area under the ROC curve; errors a row of the smaller class


def kind_of(name: str, table: TextTable, unknown: Bools) -> str:
    """Return what a column holds: numbers, words, or dates in one of the orders of `dates.ORDERS`.

    A column that mostly holds numbers (or dates) and sometimes does not is refused.

    Parameters
    ----------
    name, table
        The column.
    unknown
        Where it is missing, (n,).
    """
    known, numbers = table[name][~unknown], table.numbers(name)[~unknown]
    strange, what = np.isnan(numbers), NUMBERS
    if not strange.any():
        return disguised_order(dict.fromkeys(known.tolist())) or NUMBERS
    if strange.mean() > 1 - SHARE:
        orders = date_orders(dict.fromkeys(known.tolist()), SHARE)
        if not orders:
            return WORDS
        strange, what = np.isnan(days_in(known, orders[0])), "dates"
        if not strange.any():
            return orders[0] if len(orders) == 1 else UNCLEAR
        if strange.mean() > 1 - SHARE:
            return WORDS
    first, count = int(np.flatnonzero(strange)[0]), int(strange.sum())
    line = int(table.lines[~unknown][first])
    raise InvalidInputError(
        f"column {name!r} must hold {what} only, or words",
        f"{len(known) - count} {what} and {count} other values, first {quoted(known[first])} in line {line}",
        f"Correct them, declare them missing with --missing {quoted(known[first])}, or take the column as words with "
        f"--nominal {name!r}",
    )


def survey(
    task: TableTask,
    *,
    nominal: Sequence[str] = (),
    numeric: Sequence[str] = (),
    missing: Sequence[str] = MISSING,
) -> TableTask:
    r"""Return the task with the kinds of its inputs, without those that name rows, and with notes on both and on leaks.

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
    >>> rows = [f"{i},{i % 7},{i % 3 % 2},{i % 2},{i % 28 + 1}.{i % 12 + 1}.2023,{'ab'[i % 3 % 2]}" for i in range(90)]
    >>> task = survey(make_task(parse_table("\n".join(["id,x,y,v,day,copy", *rows]), "t"), "y", "v"))
    >>> task.inputs, dict(task.kinds)
    (('x', 'day', 'copy'), {'x': 'numbers', 'day': 'dmy', 'copy': 'words'})
    >>> print("\n".join(task.notes))
    'copy' nearly repeats the target 'y': if that is not known when decisions are made, leave it out with
    --leave-out 'id' left out: another value in nearly every row, so it names rows; --numeric keeps integers,
    --nominal words 'day' read as dates (day.month.year), coded as year, month and days; --nominal takes them
    as words
    """
    table, kinds, names = task.table, {}, []
    for name in (*nominal, *numeric):
        table[name]  # a name that is not there must be refused
    for name in task.inputs:
        unknown = missing_in(table[name], missing)
        kind = WORDS if name in nominal else kind_of(name, table, unknown)
        if name in numeric and kind in ORDERS and not np.isnan(table.numbers(name)[~unknown]).any():
            kind = NUMBERS  # dates that look like numbers
        if name in numeric and kind != NUMBERS:
            raise InvalidInputError(
                f"--numeric {name!r} must hold numbers", kind, "Correct it, or use --nominal"
            )
        if name not in (*nominal, *numeric) and names_rows(table, name, kind, unknown, task.y):
            names.append(name)
        else:
            kinds[name] = kind
    unclear = [name for name, kind in kinds.items() if kind == UNCLEAR]
    inputs = tuple(name for name in kinds if name not in unclear)
    notes = _leak_notes(task, inputs, kinds, missing)
    if names:
        why = "another value in nearly every row, so it names rows; --numeric keeps integers, --nominal words"
        notes.append(f"{listed(names)} left out: {why}")
    if unclear:
        why = "dates whose day and month cannot be told apart; write them as 2024-12-31"
        notes.append(f"{listed(unclear)} left out: {why}")
    for order, shown in ORDERS.items():
        if found := [name for name in inputs if kinds[name] == order]:
            coded = "coded as year, month and days; --nominal takes them as words"
            notes.append(f"{listed(found)} read as dates ({shown}), {coded}")
    if not inputs:
        got = "; ".join(notes)
        raise InvalidInputError(
            "the table must have a column to learn from", got, "Keep one of them, or add others"
        )
    return replace(
        task, inputs=inputs, kinds={name: kinds[name] for name in inputs}, notes=(*notes, *task.notes)
    )


def _leak_notes(
    task: TableTask, inputs: Sequence[str], kinds: Mapping[str, str], missing: Sequence[str]
) -> list[str]:
    """Point out columns that are the target, or the viewpoint, in other words."""
    advice = {
        "target": "if that is not known when decisions are made, leave it out with --leave-out",
        "viewpoint": "the model can follow it through that; --leave-out leaves a column out",
    }
    notes = []
    views = {term.partition(" = ")[0] for term in (task.viewpoint.column, *task.terms)}  # may be inputs too
    sides = list(task.terms.values()) or [task.v]
    for role, told in (("target", [task.y]), ("viewpoint", sides)):
        column = getattr(task, role).column
        others = [name for name in inputs if name not in views]
        leaks = [n for n in others if any(repeats(task.table, n, kinds[n], missing, signs) for signs in told)]
        if leaks:
            verb = "repeats" if len(leaks) == 1 else "repeat"
            notes.append(f"{listed(leaks)} nearly {verb} the {role} {column!r}: {advice[role]}")
    return notes


def values_of(table: TextTable, name: str, kind: str) -> Floats:
    """Return the numbers, or the days, of a column, (n,)."""
    return days_in(table[name], kind) if kind in ORDERS else table.numbers(name)


def names_rows(table: TextTable, name: str, kind: str, unknown: Bools, y: Floats) -> bool:
    """Whether a column names rows: words or integers, (nearly) another in every row.

    Integers that are ordered with y may mean something, unless they count the rows of the file: then it is
    sorted by y.
    """
    known = table[name][~unknown]
    distinct = len(set(known.tolist()))
    if len(known) < ROWS or kind not in (WORDS, NUMBERS):
        return False
    if kind == WORDS:
        return distinct > max(ROWS, NAMES * len(known))
    numbers = table.numbers(name)[~unknown]
    if distinct < NUMBERED * len(known) or not (numbers == np.round(numbers)).all():
        return False
    if (np.diff(numbers) == 1).mean() >= NUMBERED:
        return True
    area, error = _area(numbers, y[~unknown] > 0)
    return abs(area - 0.5) < BY_CHANCE * error


def repeats(table: TextTable, name: str, kind: str, missing: Sequence[str], signs: Floats) -> bool:
    """Whether a column alone tells -1 from +1 in nearly every row, by its values or by its order."""
    from pandas import factorize

    words, positive = table[name], signs > 0
    codes, values = factorize(words)
    if len(words) < ROWS or len(values) < 2 or positive.all() or not positive.any():
        return False
    if len(values) <= len(words) / 5:
        among, ups = np.bincount(codes), np.bincount(codes, weights=positive)
        return bool(np.minimum(ups, among - ups).sum() <= WRONG * min(positive.sum(), (~positive).sum()))
    unknown = missing_in(words, missing)
    if kind == WORDS or unknown.mean() > SHARE:
        return False
    area = _area(values_of(table, name, kind)[~unknown], positive[~unknown])[0]
    return max(area, 1 - area) >= LEAK


def _area(values: Floats, positive: Bools) -> tuple[float, float]:
    """Return the area under the ROC curve and its standard error by chance; (1/2, inf) for one class."""
    above, below = values[positive], np.sort(values[~positive])
    if not len(above) or not len(below):
        return 0.5, np.inf
    beaten = np.searchsorted(below, above, "left") + np.searchsorted(below, above, "right")
    error = np.sqrt((len(values) + 1) / (12 * len(above) * len(below)))
    return float(beaten.mean() / (2 * len(below))), float(error)
