"""`nerm audit`: how neutral anybody's predictions are.

Examples
--------
  nerm audit scored.csv --target income --viewpoint sex --score score
  nerm audit scored.csv --target income --viewpoint sex --score probability --threshold 0.5 --report
  audit.html nerm audit scored.csv --target income --viewpoint sex,race --prediction decision nerm audit
  people.csv --target income --viewpoint sex --model pipeline.skops --report audit.html
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nerm.cli.console import Console, check_places, write_text
from nerm.cli.options import (
    common,
    delta_option,
    epilog_of,
    inputs_of,
    read,
    report_option,
    role_options,
    seed_option,
    table_options,
    viewpoints_in,
)
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
    "--model", metavar="FILE.skops", help="A fitted scikit-learn classifier or pipeline, saved with skops."
)
@click.option(
    "--trust", multiple=True, metavar="TYPE", help="With --model: a type to trust beyond skops' own list."
)
@click.option(
    "--threshold", type=float, default=0.0, show_default=True, help="A score above it is a positive decision."
)
@click.option(
    "--leave-out", multiple=True, metavar="COLUMN", help="No input of the models beside it. Repeatable."
)
@report_option
@delta_option
@seed_option
@table_options
@common
def audit(
    console: Console, data: str, score: str | None, prediction: str | None, model: str | None, **options: Any
) -> int:
    """Report on the neutrality of predictions, whoever made them.

    Needs a file with the true target, the viewpoint, and a score or a decision a row, or a saved scikit-learn
    model of its columns. With --report, a page shows what group thresholds and, where the file has other
    columns, neutral models reach on the same rows. The bounds hold if the rows are independent and nobody
    used them to make or to choose the predictor.
    """
    if sum(given is not None for given in (score, prediction, model)) != 1:
        raise click.UsageError("Give one of --score, --prediction and --model.")
    report = options["report"]
    check_places({**inputs_of(data, options), "the model": model}, {"--report": report})
    from nerm.bounds.guarantee import Statement
    from nerm.bounds.theorems import HELD_OUT
    from nerm.cli.rendering import measured, statements_json, statements_table
    from nerm.report.decisions import collapse_of

    task = _task(data, [name for name in (score, prediction) if name is not None], options)
    if score is not None:
        scores = _scores(task, score, options["threshold"])
    elif prediction is not None:
        scores = _decisions(task, prediction)
    else:
        from nerm.cli.scikit_learn_model import scores_of_model

        scores = (
            scores_of_model(task, str(model), options["trust"], options["missing"]) - options["threshold"]
        )
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
    shown: list[Any] = [*filter(None, [plain["warning"]]), *tables, statements_table(statements, delta)]
    if report is not None:
        plain["alternatives"], said = _page(console, task, scores, options)
        shown.append(said)
    console.result(plain, *shown, files={"report": report})
    return console.code({}, collapsed=plain["warning"] is not None)


def _task(data: str, own: list[str], options: dict[str, Any]) -> TableTask:
    """Return the rows; what nerm predict writes, and what is audited, are no inputs."""
    from dataclasses import replace

    from nerm.cli.predict import OWN
    from nerm.tables import make_task, survey
    from nerm.tables.values import MISSING

    missing = (*MISSING, *options["missing"])
    roles = {name: options[name] for name in ("target", "positive", "favoured", "intersect", "leave_out")}
    table = read(data, options)
    task = make_task(
        table, viewpoint=viewpoints_in(options["viewpoint"], table.names), **roles, missing=missing
    )
    inputs = tuple(name for name in task.inputs if name not in {*own, *(OWN if own else ())})
    task = replace(task, inputs=inputs)
    return survey(task, missing=missing) if inputs and options["report"] is not None else task


def _page(
    console: Console, task: TableTask, scores: Floats, options: dict[str, Any]
) -> tuple[list[Any], str]:
    """Write the page; return what could stand in place of the scores, and the sentence about it."""
    from nerm.cli.rendering import point_json
    from nerm.report import Settings, audit_study, render_page
    from nerm.tables.values import MISSING

    nominal = tuple(name for name, kind in task.kinds.items() if kind == "words")
    missing = (*MISSING, *options["missing"])
    settings = Settings(seed=options["seed"], delta=options["delta"], nominal=nominal, missing=missing)
    with console.progress("Audit") as progress:
        study = audit_study(task, scores, settings, progress)
    write_text(options["report"], render_page(study, f"nerm audit {task.table.source} …"), "--report")
    return [point_json(point) for point in study.points[1:]], study.sentence()


def _scores(task: TableTask, column: str, threshold: float) -> Floats:
    """Return the scores minus the threshold."""
    import numpy as np

    from nerm.tables.values import quoted

    numbers = task.table.numbers(column)
    if np.isnan(numbers).any():
        i = int(np.flatnonzero(np.isnan(numbers))[0])
        must = f"the score {column!r} must be a number in every row"
        got = f"{quoted(task.table[column][i])} in line {int(task.table.lines[i])}"
        raise InvalidInputError(must, got, "Correct it, or use --prediction for decisions in words")
    return numbers - threshold


def _decisions(task: TableTask, column: str) -> Floats:
    """Return +1 and -1 for decisions in the words of the target."""
    from nerm.tables.values import quoted

    known = {task.target.positive, task.target.negative, *task.table[task.target.column].tolist()}
    for word, line in zip(task.table[column].tolist(), task.table.lines, strict=True):
        if word not in known:
            must = f"the decision {column!r} must be a value of {task.target.column!r}"
            got = f"{quoted(word)} in line {int(line)}"
            raise InvalidInputError(must, got, "Use the words of the target, or --score for numbers")
    return task.target.signs(task.table[column])
