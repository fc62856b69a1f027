"""`nerm predict` scores new rows; `nerm audit` measures the neutrality of given predictions."""

from __future__ import annotations

from collections import Counter
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import click

import nerm.report
from nerm.cli import options as shared
from nerm.cli.console import Console, check_places, impact_table, measured, point_json, stated, write_text
from nerm.cli.options import all_of, command, common, option, table_options
from nerm.defaults import LIMITS
from nerm.errors import InvalidInputError
from nerm.files import write_atomically

WRITTEN = ("row", "score", "prediction")


@command
@click.argument("model", metavar="MODEL.nerm")
@click.argument("data", metavar="DATA.csv")
@option("out", "Write the predictions here instead of to standard output.", metavar="FILE.csv")
@option("keep", "Columns to copy, separated by commas, or 'all'.", default=None, metavar="NAMES")
@option("safe-cells", "Put ' before words that a spreadsheet would run as formulas.", is_flag=True)
@shared.trust_option
@all_of(table_options, common)
def predict(console: Console, model: str, data: str, out: str | None, **options: Any) -> None:
    """Score new rows with a saved model.

    Writes CSV with the columns row, score and prediction, one line per row of the data; row is the number of
    the row in the file, from 1. The prediction is the target's positive value if the score is above 0, else
    the negative one. The data are read in parts, so a long file needs no more memory than a short one.

    Examples
    --------
      nerm predict model.nerm new.csv > scored.csv
      nerm predict model.nerm new.csv --keep income,sex --out scored.csv
      zcat huge.csv.gz | nerm predict model.nerm - --out scored.csv
    """
    check_places({"the model": model, "the data": data}, {"--out": out})
    fitted = nerm.tables.load_model(model, options["trust"])
    rows: list[dict[str, Any]] = []
    notes: tuple[str, ...] = ()
    count = positive = 0
    guessed: Any = Counter()
    target = write_atomically(out, "w", encoding="utf-8", newline="") if out else nullcontext()
    with console.progress("Scoring") as progress, target as file:
        write = file.write if file else console.text
        reading = {"training_decimal": fitted.recipe.usual, **shared.reading_of(options)}
        for table in nerm.tables.read_parts(data, progress=lambda share: progress(f"{share:.0%}"), **reading):
            scores, more = fitted.scores(table)
            part = _part(table, scores, fitted.labels(scores), options["keep"], options["safe_cells"])
            if console.as_json and out is None:
                rows += part.to_dict("records")
            else:
                write(part.to_csv(index=False, header=not count, lineterminator="\n"))
            notes += table.notes
            count += len(table)
            positive += int((scores > 0).sum())
            guessed.update(more)
    notes += fitted.recipe.imputation_notes(guessed)
    console.notes(notes)
    if console.as_json or out is not None:
        share, column = positive / count, fitted.target.column
        plain = {"model": model, "target": column, "rows": count, "positive": share, "notes": notes}
        plain |= {"predictions": rows} if out is None else {}
        text = f"{count:,} predictions"
        text += "" if fitted.is_regression else f", {share:.1%} {fitted.target.group(1)}"
        console.result(plain, text, files={"predictions": out})


def _part(table: nerm.tables.TextTable, scores: Any, labels: Any, keep: str | None, safe_cells: bool) -> Any:
    """Return the output for the rows of one part of the data.

    Its columns are row, the kept columns, score and prediction.
    """
    given = [name.strip() for name in keep.split(",")] if keep else []
    kept = list(table.names) if keep == "all" else given
    for name in kept:
        table[name]  # a name that is not there must be refused
        if name in WRITTEN:
            must = f"--keep must not name a column that predict writes itself ({', '.join(WRITTEN)})"
            do = "Rename it in the data, or name the columns to keep without it"
            raise InvalidInputError(must, repr(name), do)
    frame = table.frame[kept].assign(prediction=labels)
    if safe_cells:
        safe = nerm.tables.values.safe_words
        frame = frame.apply(safe).set_axis(safe(frame.columns.to_series()), axis=1)
    frame.insert(0, "row", table.places)
    frame.insert(len(kept) + 1, "score", scores)
    return frame


@command
@click.argument("data", metavar="PREDICTIONS.csv")
@shared.role_options
@option("score", "Column of scores.", metavar="COLUMN")
@option("prediction", "Column of decisions, in the words of the target.", metavar="COLUMN")
@option("model", "A fitted scikit-learn classifier or pipeline, saved with skops.", metavar="FILE.skops")
@shared.trust_option
@option("threshold", "Scores above it are positive decisions.  [default: 0]", type=float, default=None)
@all_of(shared.leave_out_option, shared.report_option, shared.task_option, shared.delta_option)
@shared.seed_option
@all_of(table_options, common)
def audit(console: Console, data: str, report: str | None, **options: Any) -> int:
    """Report on the neutrality of given predictions.

    The file must have the true target, the viewpoint, and a score or a decision per row. Instead of scores,
    a saved scikit-learn model of its columns can be given. With --report, a page compares group thresholds
    and, if the file has other columns, neutral models on these rows. The bounds hold if the rows are
    independent and were not used to make or to choose the predictor.

    Examples
    --------
      nerm audit scored.csv --target income --viewpoint sex --score score
      nerm audit scored.csv --target income --viewpoint sex --score probability --threshold 0.5
      nerm audit scored.csv --target income --viewpoint sex,race --prediction decision
      nerm audit census.csv --target income --viewpoint sex --model pipeline.skops --report audit.html
    """
    score, prediction, model, delta = (options[name] for name in ("score", "prediction", "model", "delta"))
    if [score, prediction, model].count(None) != 2:
        raise click.UsageError("Give one of --score, --prediction and --model.")
    check_places({"the data": data, "the model": model}, {"--report": report})
    task = shared.task_of(data, options)
    if model is None:  # neutral models must not learn from what is audited
        own = (score, prediction, *WRITTEN)
        task = replace(task, inputs=tuple(name for name in task.inputs if name not in own))
    usual: dict[str, Any] = {"limits": LIMITS[1:3]}
    if task.numbers is not None:
        shared.refuse_given()
        usual = shared.settings_of_numbers(task)
    if prediction is not None:
        scores = nerm.tables.table_model.decision_column(task, prediction)
    elif score is not None:
        scores = nerm.tables.table_model.score_column(task, score, options["threshold"])
    else:
        saved = nerm.tables.recipe.SavedModel.read(model, task, options["trust"])
        scores = saved.score(task.table) - (options["threshold"] or 0.0)
    console.notes(task.notes)
    point = nerm.report.point_of("audited", task, scores)
    statements = [] if task.numbers is not None else nerm.report.held_out_bounds(task, scores, delta)
    plain, tables = measured(point, f"{len(task):,} rows")
    bounds, told = stated(statements, delta)
    plain = {"rows": len(task), **plain, "warning": point.collapse}
    plain |= {"notes": list(task.notes), "bounds": bounds}
    if task.numbers is None:
        plain["impact_ratios"] = ratios = nerm.report.measuring.impact_ratios(task, scores)
        tables.append(impact_table(ratios))
    shown = [point.collapse, *tables, *told]
    if report is not None:
        settings = nerm.report.Settings(seed=options["seed"], delta=delta, **usual)
        task = nerm.tables.survey(task) if task.inputs else task
        with console.progress("Audit") as progress:
            study = nerm.report.study.audit_study(task, scores, settings, progress)
        write_text(report, nerm.report.render_page(study, f"nerm audit {task.table.source} …"))
        plain["alternatives"] = [point_json(study, point) for point in study.points[1:]]
        shown.append(nerm.report.sentence(study))
    console.result(plain, *shown, files={"report": report})
    return console.code([], collapsed=point.collapse is not None)
