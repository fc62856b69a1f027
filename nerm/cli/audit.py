"""`nerm audit`: how neutral anybody's predictions are.

Examples
--------
  nerm audit scored.csv --target income --viewpoint sex --score score
  nerm audit scored.csv --target income --viewpoint sex --score probability --threshold 0.5
  nerm audit scored.csv --target income --viewpoint sex --prediction decision
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nerm.cli.console import Console
from nerm.cli.options import common, delta_option, epilog_of, read, role_options, table_options, viewpoints_in
from nerm.errors import InvalidInputError

if TYPE_CHECKING:
    from nerm.tables import TableTask
    from nerm.typing import Floats


@click.command(epilog=epilog_of(__doc__))
@click.argument("data", metavar="PREDICTIONS.csv")
@role_options
@click.option("--score", metavar="COLUMN", help="Column of real scores.")
@click.option("--prediction", metavar="COLUMN", help="Column of decisions, in the words of the target.")
@click.option(
    "--threshold", type=float, default=0.0, show_default=True, help="A score above it is a positive decision."
)
@delta_option
@table_options
@common
def audit(console: Console, data: str, score: str | None, prediction: str | None, **options: Any) -> None:
    """Report on the neutrality of predictions, whoever made them.

    Needs a file with the true target, the viewpoint, and a score or a decision a row. The bounds hold if the rows are
    independent and nobody used them to make or to choose the predictor.
    """
    if (score is None) == (prediction is None):
        raise click.UsageError("Give either --score or --prediction.")
    from nerm.bounds.guarantee import Statement
    from nerm.bounds.theorems import HELD_OUT
    from nerm.cli.rendering import measured, statements_json, statements_table
    from nerm.report.decisions import collapse_of
    from nerm.tables import make_task
    from nerm.tables.reading import MISSING

    roles = {name: options[name] for name in ("target", "positive", "favoured", "intersect")}
    table = read(data, options)
    views = viewpoints_in(options["viewpoint"], table.names)
    task = make_task(table, viewpoint=views, **roles, missing=(*MISSING, *options["missing"]))
    scores = _scores(task, score, options["threshold"]) if score is not None else _decisions(task, str(prediction))
    console.notes(task.notes)
    plain, tables = measured(task, scores, f"{len(task):,} rows")
    plain["warning"] = collapse_of(task, scores)
    statements, delta = [], options["delta"]
    for quantity, measure, bound in HELD_OUT:
        value = max(abs(measure(scores, v)) for v in task.terms.values())
        most = max(bound(scores, v, delta=delta / len(task.terms)) for v in task.terms.values())
        note = "i.i.d. rows, not used before"
        statements.append(Statement(quantity, "these rows", value, min(most, 1.0), note, most >= 1, note))
    plain = {"rows": len(task), **plain, "bounds": statements_json(statements), "notes": list(task.notes)}
    console.result(plain, *filter(None, [plain["warning"]]), *tables, statements_table(statements, delta))


def _scores(task: TableTask, column: str, threshold: float) -> Floats:
    """Return the scores minus the threshold."""
    import numpy as np

    numbers = task.table.numbers(column)
    if np.isnan(numbers).any():
        i = int(np.flatnonzero(np.isnan(numbers))[0])
        must = f"the score {column!r} must be a number in every row"
        got = f"{task.table[column][i]!r} in line {int(task.table.lines[i])}"
        raise InvalidInputError(must, got, "Correct it, or use --prediction for decisions in words")
    return numbers - threshold


def _decisions(task: TableTask, column: str) -> Floats:
    """Return +1 and -1 for decisions in the words of the target."""
    known = {task.target.positive, task.target.negative, *task.table[task.target.column].tolist()}
    for word, line in zip(task.table[column].tolist(), task.table.lines, strict=True):
        if word not in known:
            must = f"the decision {column!r} must be a value of {task.target.column!r}"
            got = f"{word!r} in line {int(line)}"
            raise InvalidInputError(must, got, "Use the words of the target, or --score for numbers")
    return task.target.signs(task.table[column])
