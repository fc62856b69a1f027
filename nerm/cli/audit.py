"""`nerm audit`: how neutral given predictions are, or those of a saved scikit-learn model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nerm.cli.console import Console, check_places, write_text
from nerm.cli.options import (
    command,
    common,
    delta_option,
    inputs_of,
    leave_out_option,
    option,
    report_option,
    role_options,
    seed_option,
    table_options,
    task_of,
)
from nerm.cli.predict import WRITTEN
from nerm.defaults import LIMITS
from nerm.errors import InvalidInputError, MissingPackageError

if TYPE_CHECKING:
    from nerm.tables import TableTask
    from nerm.typing import Floats


@command
@click.argument("data", metavar="PREDICTIONS.csv")
@role_options
@option("score", "Column of real scores.", metavar="COLUMN")
@option("prediction", "Column of decisions, in the words of the target.", metavar="COLUMN")
@option("model", "A fitted scikit-learn classifier or pipeline, saved with skops.", metavar="FILE.skops")
@option("trust", "With --model: a further type to trust.", multiple=True, metavar="TYPE")
@option("threshold", "A score above it is a positive decision.", type=float, default=0.0)
@leave_out_option
@report_option
@delta_option
@seed_option
@table_options
@common
def audit(
    console: Console, data: str, score: str | None, prediction: str | None, model: str | None, **options: Any
) -> int:
    """Report on the neutrality of given predictions.

    Needs a file with the true target, the viewpoint, and a score or a decision per row, or a saved
    scikit-learn model of its columns. With --report, a page shows what group thresholds and, where the file
    has other columns, neutral models reach on the same rows. The bounds hold if the rows are independent and
    were not used to make or to choose the predictor.

    Examples
    --------
      nerm audit scored.csv --target income --viewpoint sex --score score
      nerm audit scored.csv --target income --viewpoint sex --score probability --threshold 0.5
      nerm audit scored.csv --target income --viewpoint sex,race --prediction decision
      nerm audit people.csv --target income --viewpoint sex --model pipeline.skops --report audit.html
    """
    if sum(given is not None for given in (score, prediction, model)) != 1:
        raise click.UsageError("Give one of --score, --prediction and --model.")
    report = options["report"]
    check_places({**inputs_of(data, options), "the model": model}, {"--report": report})
    from nerm.bounds.guarantee import Statement
    from nerm.bounds.theorems import HELD_OUT
    from nerm.cli.rendering import measured, statements_json, statements_table
    from nerm.report.fitting import collapse_of

    task, missing = task_of(data, options)
    own = {name for name in (score, prediction) if name is not None}
    task = replace(task, inputs=tuple(n for n in task.inputs if n not in own.union(WRITTEN if own else ())))
    if prediction is not None:
        scores = _decisions(task, prediction)
    else:
        values = (
            _numbers(task, score) if score else _model_scores(task, str(model), options["trust"], missing)
        )
        scores = values - options["threshold"]
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
        plain["alternatives"], sentence = _page(console, task, scores, missing, options)
        shown.append(sentence)
    console.result(plain, *shown, files={"report": report})
    return console.code({}, collapsed=plain["warning"] is not None)


def _page(
    console: Console, task: TableTask, scores: Floats, missing: tuple[str, ...], options: dict[str, Any]
) -> tuple[list[Any], str]:
    """Write the page; return the alternatives to the scores, and the sentence about them."""
    from nerm.cli.rendering import point_json
    from nerm.report.page import render_page
    from nerm.report.settings import Settings
    from nerm.report.study import audit_study
    from nerm.tables import survey

    if task.inputs:
        task = survey(task, missing=missing)
    nominal = tuple(name for name, kind in task.kinds.items() if kind == "words")
    given = {name: options[name] for name in ("seed", "delta")}
    settings = Settings(limits=LIMITS[1:3], nominal=nominal, missing=missing, **given)
    with console.progress("Audit") as progress:
        study = audit_study(task, scores, settings, progress)
    write_text(options["report"], render_page(study, f"nerm audit {task.table.source} …"), "--report")
    return [point_json(point) for point in study.points[1:]], study.sentence()


def _numbers(task: TableTask, column: str) -> Floats:
    """Return a column of scores, (n,)."""
    import numpy as np

    from nerm.tables.values import quoted

    numbers = task.table.numbers(column)
    if np.isnan(numbers).any():
        i = int(np.flatnonzero(np.isnan(numbers))[0])
        must = f"the score {column!r} must be a number in every row"
        got = f"{quoted(task.table[column][i])} in line {int(task.table.lines[i])}"
        raise InvalidInputError(must, got, "Correct it, or use --prediction for decisions in words")
    return numbers


def _decisions(task: TableTask, column: str) -> Floats:
    """Return +1 and -1 for decisions in the words of the target, (n,)."""
    from nerm.tables.values import quoted

    known = {task.target.positive, task.target.negative, *task.table[task.target.column].tolist()}
    for word, line in zip(task.table[column].tolist(), task.table.lines, strict=True):
        if word not in known:
            must = f"the decision {column!r} must be a value of {task.target.column!r}"
            got = f"{quoted(word)} in line {int(line)}"
            raise InvalidInputError(must, got, "Use the words of the target, or --score for numbers")
    return task.target.signs(task.table[column])


def _model_scores(task: TableTask, path: str, trusted: Sequence[str], missing: Sequence[str]) -> Floats:
    """Return a model's score of each row, (n,): its decision function, or the probability minus 1/2.

    The model gets the columns that it saw in fit, numbers as numbers.
    """
    import numpy as np
    import pandas as pd

    from nerm.tables.values import missing_in

    model = _loaded(path, trusted)
    columns = {}
    for name in map(str, getattr(model, "feature_names_in_", task.inputs)):
        absent = missing_in(task.table[name], missing)
        words, numbers = task.table[name].astype(object), task.table.numbers(name)
        words[absent] = None
        columns[name] = words if np.isnan(numbers[~absent]).any() else numbers
    frame = pd.DataFrame(columns)
    known = [str(label) for label in getattr(model, "classes_", ())]
    if len(known) != 2 or task.target.positive not in known:
        must = f"the model must tell {task.target.positive!r} from another class"
        got = f"a model of {', '.join(known) or 'no classes'}"
        raise InvalidInputError(must, got, "Use --positive, or another model")
    if hasattr(model, "decision_function"):
        scores = np.asarray(model.decision_function(frame), dtype=float)
    else:
        scores = np.asarray(model.predict_proba(frame), dtype=float)[:, 1] - 0.5
    return scores if known[1] == task.target.positive else -scores


def _loaded(path: str, trusted: Sequence[str]) -> Any:
    """Load a model with skops, which runs nothing that is not trusted."""
    try:
        from skops import io
    except ImportError:
        text = "--model needs the package skops. Install it: pip install 'nerm-learn[skops]'."
        raise MissingPackageError(text) from None
    if not Path(path).is_file():
        do = "Write one with skops.io.dump"
        raise InvalidInputError("--model must name a file", f"no file {path!r}", do)
    try:
        unknown = sorted(set(io.get_untrusted_types(file=path)) - set(trusted))
    except Exception as error:  # a file of another kind can make skops raise anything
        got = f"{path!r}, which skops cannot read ({error})"
        raise InvalidInputError(
            "--model must be a file written by skops.io.dump", got, "Save it again"
        ) from None
    if unknown:
        do = f"If you trust its author, add --trust {unknown[0]}"
        raise InvalidInputError("a saved model must be made of trusted types", ", ".join(unknown), do)
    return io.load(path, trusted=list(trusted))
