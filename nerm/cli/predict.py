"""`nerm predict`: scores and labels of new rows."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from nerm.cli.console import Console, check_places, refusing_unwritable
from nerm.cli.options import command, common, inputs_of, option, reading_of, table_options
from nerm.errors import InvalidInputError
from nerm.files import write_atomically

if TYPE_CHECKING:
    from nerm.tables import TableModel, TextTable

WRITTEN = ("row", "score", "prediction")
FORMULA = ("=", "+", "-", "@", "\t", "\r")  # first letters of cells that spreadsheets run


@command
@click.argument("model", metavar="MODEL.nerm")
@click.argument("data", metavar="DATA.csv")
@option("out", "Write the predictions here instead of to standard output.", metavar="FILE.csv")
@option("keep", "Columns to repeat, separated by commas, or 'all'.", default=None, metavar="NAMES")
@option("safe-cells", "Put ' before words that a spreadsheet would run as formulas.", is_flag=True)
@table_options
@common
def predict(
    console: Console,
    model: str,
    data: str,
    out: str | None,
    keep: str | None,
    safe_cells: bool,
    **options: Any,
) -> None:
    """Score new rows with a saved model.

    Writes CSV with the columns row, score and prediction, one line per row of the data; row is its place in
    the file, counted from 1. A prediction is the target's positive value iff the score is above 0. The data
    are read in parts: a long file needs no more memory than a short one.

    Examples
    --------
      nerm predict model.nerm new.csv > scored.csv
      nerm predict model.nerm new.csv --keep income,sex --out scored.csv
      zcat huge.csv.gz | nerm predict model.nerm - --out scored.csv
    """
    check_places({"the model": model, **inputs_of(data, options)}, {"--out": out})
    from nerm.tables import load_model

    scoring = Scoring(load_model(model), keep, safe_cells)  # the model keeps its own words for missing
    rows = None
    with console.progress("Scoring") as progress:
        parts = scoring.parts(data, reading_of(options), progress)
        if console.as_json and out is None:
            rows = [dict(zip(scoring.header, row, strict=True)) for part in parts for row in part]
        elif out is None:
            for text in scoring.csv(parts):
                console.text(text)
        else:
            with (
                refusing_unwritable(out, "--out"),
                write_atomically(out, "w", encoding="utf-8", newline="") as file,
            ):
                file.writelines(scoring.csv(parts))
    console.notes(scoring.notes)
    if console.as_json or out is not None:
        share, target = scoring.positive / scoring.count, scoring.model.target
        plain = {"model": model, "target": target.column, "rows": scoring.count, "positive": share}
        plain |= {"notes": scoring.notes} | ({} if rows is None else {"predictions": rows})
        text = f"{scoring.count:,} predictions, {share:.1%} {target.column} = {target.positive}"
        console.result(plain, text, files={"predictions": out})


class Scoring:
    """The predictions of a table that is read in parts; counts and notes add up as parts are read."""

    def __init__(self, model: TableModel, keep: str | None, safe_cells: bool) -> None:
        self.model, self.keep, self.safe_cells = model, keep, safe_cells
        self.header: tuple[str, ...] = ()
        self.count = self.positive = self.skipped = 0
        self.guessed: Any = 0
        self.read: tuple[str, ...] = ()

    @property
    def notes(self) -> list[str]:
        """On values that were guessed and rows that were left out."""
        skipped = [f"{self.skipped} rows with a wrong number of fields were left out"] if self.skipped else []
        return [*self.read, *skipped, *self.model.recipe.said(self.guessed)]

    def parts(
        self, data: str, reading: dict[str, Any], progress: Callable[[str], None]
    ) -> Iterator[list[Any]]:
        """Yield the fields of the rows of each part of the file."""
        from nerm.tables import read_parts

        def tell(share: float) -> None:
            progress(f"{self.count:,} rows" + (f", {share:.0%} of the file" if share else ""))

        for table in read_parts(data, progress=tell, **reading):
            kept = self._kept(table)
            scores, guessed = self.model.scored(table)
            self.header = ("row", *kept, *WRITTEN[1:])
            self.read = self.read or table.notes
            self.count += len(table)
            self.skipped += table.skipped
            self.guessed = self.guessed + guessed
            self.positive += int((scores > 0).sum())
            words = [table[name].tolist() for name in kept]
            labels = self.model.labels(scores).tolist()
            yield list(zip(table.places.tolist(), *words, scores.tolist(), labels, strict=True))

    def _kept(self, table: TextTable) -> Sequence[str]:
        """Return the columns to repeat."""
        given = [name.strip() for name in self.keep.split(",")] if self.keep else []
        kept = table.names if self.keep == "all" else given
        for name in kept:
            table[name]  # a name that is not there must be refused
            if name in WRITTEN:
                must = f"--keep must not name a column that predict writes itself ({', '.join(WRITTEN)})"
                do = "Rename it in the data, or name the columns to keep without it"
                raise InvalidInputError(must, repr(name), do)
        return kept

    def csv(self, parts: Iterable[list[Any]]) -> Iterator[str]:
        """Yield CSV, a part at a time."""
        for number, rows in enumerate(parts):
            text = io.StringIO()
            writer = csv.writer(text, lineterminator="\n")
            for row in ([] if number else [self.header]) + rows:
                writer.writerow([_safe(cell) for cell in row] if self.safe_cells else row)
            yield text.getvalue()


def _safe(cell: Any) -> Any:
    """Return a cell that no spreadsheet takes for a formula; numbers stay."""
    from nerm.tables.values import numbers_in

    if (
        not isinstance(cell, str)
        or not cell.startswith(FORMULA)
        or numbers_in([cell])[0] == numbers_in([cell])[0]
    ):
        return cell
    return f"'{cell}"
