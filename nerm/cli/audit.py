"""`nerm audit`: how neutral anybody's predictions are."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from nerm.cli.console import Console
from nerm.cli.options import common, missing_words, read, role_options, table_options
from nerm.errors import InvalidInputError

if TYPE_CHECKING:
    import numpy as np

    from nerm.tables import TableTask

EPILOG = """\b
Examples:
  nerm audit scored.csv --target income --viewpoint sex --score score
  nerm audit scored.csv --target income --viewpoint sex --score probability --threshold 0.5
  nerm audit scored.csv --target income --viewpoint sex --prediction decision
"""


@click.command(epilog=EPILOG)
@click.argument("data", metavar="PREDICTIONS.csv")
@role_options
@click.option("--score", metavar="COLUMN", help="Column of real scores.")
@click.option("--prediction", metavar="COLUMN", help="Column of decisions, in the words of the target.")
@click.option(
    "--threshold", type=float, default=0.0, show_default=True, help="A score above it is a positive decision."
)
@click.option("--delta", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05, show_default=True)
@table_options
@common
def audit(
    console: Console,
    data: str,
    score: str | None,
    prediction: str | None,
    threshold: float,
    delta: float,
    **options: Any,
) -> None:
    """Report on the neutrality of predictions, whoever made them.

    Needs a file with the true target, the viewpoint, and a score or a decision a row. The bounds hold if the rows are
    independent and nobody used them to make or to choose the predictor.
    """
    if (score is None) == (prediction is None):
        raise click.UsageError("Give either --score or --prediction.")
    from nerm import metrics
    from nerm.bounds import holdout_neutrality_bound, holdout_parity_bound
    from nerm.cli.showing import groups_table, measures_table, promises_table
    from nerm.report.people import groups_of
    from nerm.report.study import Promise
    from nerm.tables import make_task

    table, missing = read(data, options), missing_words(options)
    task = make_task(table, missing=missing, **options)
    scores = _scores(task, score, threshold) if score is not None else _decisions(task, str(prediction))
    console.notes(task.notes)
    measured = metrics.report(task.y, scores, task.v)
    groups = groups_of(task, scores)
    promises = [
        Promise(quantity, "these rows", abs(value), min(bound, 1.0), bound >= 1, "i.i.d. rows, not used before")
        for quantity, value, bound in (
            ("C_sgn", measured.neutrality_risk, holdout_neutrality_bound(scores, task.v, delta=delta)),
            (
                "|difference in positive rates|",
                measured.calders_verwer_score,
                holdout_parity_bound(scores, task.v, delta=delta),
            ),
        )
    ]
    target = f"{task.target.column} = {task.target.positive}"
    plain = {
        "rows": len(task),
        "target": asdict(task.target),
        "viewpoint": asdict(task.viewpoint),
        "measures": measured.as_dict(),
        "undefined": dict(measured.undefined),
        "groups": [asdict(g) for g in groups],
        "bounds": [asdict(p) for p in promises],
        "notes": list(task.notes),
    }
    title = f"{target}, neutral to {task.viewpoint.column}: {len(task):,} rows"
    console.result(
        plain,
        measures_table(title, measured.as_dict(), measured.undefined),
        groups_table(groups, target),
        promises_table(promises, delta),
    )


def _scores(task: TableTask, column: str, threshold: float) -> np.ndarray:
    """Return the scores minus the threshold."""
    import numpy as np

    from nerm.tables.recipe import numbers_in

    numbers = numbers_in(task.table[column])
    if np.isnan(numbers).any():
        i = int(np.flatnonzero(np.isnan(numbers))[0])
        raise InvalidInputError(
            f"the score {column!r} must be a number in every row",
            f"{task.table[column][i]!r} in line {int(task.table.lines[i])}",
            "Correct it, or use --prediction for decisions in words",
        )
    return numbers - threshold


def _decisions(task: TableTask, column: str) -> np.ndarray:
    """Return +1 and -1 for decisions in the words of the target."""
    import numpy as np

    known = {task.target.positive, task.target.negative, *task.table[task.target.column].tolist()}
    for word, line in zip(task.table[column].tolist(), task.table.lines, strict=True):
        if word not in known:
            raise InvalidInputError(
                f"the decision {column!r} must be a value of {task.target.column!r}",
                f"{word!r} in line {int(line)}",
                "Use the words of the target, or --score for numbers",
            )
    return np.asarray(task.target.signs(task.table[column]))
