"""`nerm audit`: how neutral given predictions are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nerm.cli.console import Console
from nerm.cli.options import command, common, delta_option, option, role_options, table_options, task_of
from nerm.errors import InvalidInputError

if TYPE_CHECKING:
    from nerm.tables import TableTask
    from nerm.typing import Floats


@command
@click.argument("data", metavar="PREDICTIONS.csv")
@role_options
@option("score", "Column of real scores.", metavar="COLUMN")
@option("prediction", "Column of decisions, in the words of the target.", metavar="COLUMN")
@option("threshold", "A score above it is a positive decision.", type=float, default=0.0)
@delta_option
@table_options
@common
def audit(console: Console, data: str, score: str | None, prediction: str | None, **options: Any) -> int:
    """Report on the neutrality of given predictions.

    Needs a file with the true target, the viewpoint, and a score or a decision per row. The bounds hold if
    the rows are independent and were not used to make or to choose the predictor.

    Examples
    --------
      nerm audit scored.csv --target income --viewpoint sex --score score
      nerm audit scored.csv --target income --viewpoint sex --score probability --threshold 0.5
      nerm audit scored.csv --target income --viewpoint sex,race --prediction decision
    """
    if (score is None) == (prediction is None):
        raise click.UsageError("Give one of --score and --prediction.")
    from nerm.cli.rendering import measured_json, measured_tables, statements_json, statements_table
    from nerm.report.measuring import held_out_bounds, point_of

    task, _ = task_of(data, options)
    scores = _decisions(task, prediction) if prediction else _numbers(task, str(score)) - options["threshold"]
    console.notes(task.notes)
    point = point_of("audited", task, scores)
    statements = held_out_bounds(task, scores, options["delta"])
    plain = {"rows": len(task), **measured_json(point), "warning": point.collapse, "notes": list(task.notes)}
    plain["bounds"] = statements_json(statements)
    tables = [*measured_tables(point, f"{len(task):,} rows"), statements_table(statements, options["delta"])]
    console.result(plain, *filter(None, [point.collapse]), *tables)
    return console.code({}, collapsed=point.collapse is not None)


def _numbers(task: TableTask, column: str) -> Floats:
    """Return a column of scores, (n,)."""
    from numpy import flatnonzero, isnan

    from nerm.tables.values import quoted

    numbers = task.table.numbers(column)
    for i in flatnonzero(isnan(numbers))[:1]:
        must = f"the score {column!r} must be a number in every row"
        got = f"{quoted(task.table[column][i])} in row {task.table.places[i]}"
        raise InvalidInputError(must, got, "Correct it, or use --prediction for decisions in words")
    return numbers


def _decisions(task: TableTask, column: str) -> Floats:
    """Return +1 and -1 for decisions in the words of the target, (n,)."""
    from nerm.tables.values import quoted

    known = {task.target.positive, task.target.negative, *task.table[task.target.column].tolist()}
    for word, place in zip(task.table[column], task.table.places, strict=True):
        if word not in known:
            must = f"the decision {column!r} must be a value of {task.target.column!r}"
            got = f"{quoted(word)} in row {place}"
            raise InvalidInputError(must, got, "Use the words of the target, or --score for numbers")
    return task.target.signs(task.table[column])
