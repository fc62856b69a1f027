"""`nerm predict`: scores and labels of new rows.

Examples
--------
  nerm predict model.nerm new.csv > scored.csv
  nerm predict model.nerm new.csv --keep income,sex --out scored.csv
"""

import sys
from typing import Any

import click

from nerm.cli.console import Console, check_places, write_text
from nerm.cli.options import common, epilog_of, inputs_of, read, table_options
from nerm.errors import InvalidInputError

OWN = ("row", "score", "prediction")


@click.command(epilog=epilog_of(__doc__))
@click.argument("model", metavar="MODEL.nerm")
@click.argument("data", metavar="DATA.csv")
@click.option("--out", metavar="FILE.csv", help="Write the predictions here instead of to standard output.")
@click.option("--keep", metavar="NAMES", help="Columns of the data to repeat, separated by commas; 'all' for all.")
@table_options
@common
def predict(console: Console, model: str, data: str, out: str | None, keep: str | None, **options: Any) -> None:
    """Score new rows with a saved model.

    Writes CSV with the columns row, score and prediction, one line a row of the data; row is its place in the file,
    counted from 1. A prediction is the target's positive value iff the score is above 0.
    """
    check_places({"the model": model, **inputs_of(data, options)}, {"--out": out})
    import pandas as pd

    from nerm.tables import load_model

    fitted, table = load_model(model), read(data, options)  # the model remembers its own words for missing
    kept = table.names if keep == "all" else [name.strip() for name in keep.split(",")] if keep else []
    for name in kept:
        if name in OWN:
            must = f"--keep must not name a column that predict writes itself ({', '.join(OWN)})"
            raise InvalidInputError(must, repr(name), "Rename it in the data, or name the columns to keep without it")
    columns = {name: table[name] for name in kept}
    scores, notes = fitted.scores(table)
    if table.skipped:
        notes = (f"{table.skipped} rows with a wrong number of fields were left out", *notes)
    console.notes(notes)
    own = {"score": scores, "prediction": fitted.labels(scores)}
    frame = pd.DataFrame({"row": table.places, **columns, **own})
    if console.as_json and out is None:
        rows = frame.to_dict("records")
        console.result({"model": model, "target": fitted.target.column, "predictions": rows, "notes": notes})
        return
    text = frame.to_csv(index=False, lineterminator="\n")
    if out is None:
        try:
            text.encode(sys.stdout.encoding or "utf-8")
        except UnicodeEncodeError:
            console.note("standard output has no way to write some letters, so they are '?'; --out writes them all")
        click.echo(text, nl=False)
        return
    write_text(out, text)
    share = float((scores > 0).mean())
    said = f"{len(frame):,} predictions, {share:.1%} {fitted.target.column} = {fitted.target.positive}: {out}"
    console.result({"rows": len(frame), "positive": share, "files": {"predictions": out}, "notes": notes}, said)
