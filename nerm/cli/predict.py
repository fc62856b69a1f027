"""`nerm predict`: scores and labels of new rows."""

from __future__ import annotations

import csv
import io
from typing import Any

import click

from nerm.cli.console import Console, check_writable, write_text
from nerm.cli.options import common, read, table_options

EPILOG = """\b
Examples:
  nerm predict model.nerm new.csv > scored.csv
  nerm predict model.nerm new.csv --keep income,sex --out scored.csv
"""


@click.command(epilog=EPILOG)
@click.argument("model", metavar="MODEL.nerm")
@click.argument("data", metavar="DATA.csv")
@click.option("--out", metavar="FILE.csv", help="Write the predictions here instead of to standard output.")
@click.option("--keep", metavar="NAMES", help="Columns of the data to repeat, separated by commas; 'all' for all.")
@table_options
@common
def predict(console: Console, model: str, data: str, out: str | None, keep: str | None, **options: Any) -> None:
    """Score new rows with a saved model.

    Writes CSV with the columns row, score and prediction, one line a row of the data. A prediction is the target's
    positive value iff the score is above 0.
    """
    check_writable(out, "--out")
    from nerm.tables import load_model

    options.pop("missing")  # the model remembers its own
    fitted, table = load_model(model), read(data, options)
    kept = table.names if keep == "all" else [name.strip() for name in keep.split(",")] if keep else []
    columns = {name: table[name].tolist() for name in kept}
    scores, notes = fitted.scores(table)
    console.notes(notes)
    labels = fitted.labels(scores).tolist()
    if console.as_json and out is None:
        rows = [{"score": s, "prediction": label} for s, label in zip(scores.tolist(), labels, strict=True)]
        for name, values in columns.items():
            for row, value in zip(rows, values, strict=True):
                row.setdefault(name, value)
        console.result({"model": model, "target": fitted.target.column, "predictions": rows})
        return
    text = _csv(["row", *columns, "score", "prediction"], [*columns.values(), map(repr, scores.tolist()), labels])
    if out is None:
        click.echo(text, nl=False)
        return
    write_text(out, text)
    share = sum(label == fitted.target.positive for label in labels) / len(labels)
    said = f"{len(labels):,} predictions, {share:.1%} {fitted.target.column} = {fitted.target.positive}: {out}"
    console.result({"rows": len(labels), "positive": share, "files": {"predictions": out}}, said)


def _csv(header: list[str], columns: list[Any]) -> str:
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([i, *cells] for i, cells in enumerate(zip(*columns, strict=True), start=1))
    return stream.getvalue()
