"""`nerm demo`: real data, the whole trade-off, a figure and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nerm.cli.console import Console, check_writable
from nerm.cli.options import common, seed_option

if TYPE_CHECKING:
    from nerm.tables import TableTask


@click.command(
    short_help="See it work on real data: table, figure, report.",
    epilog="\b\nExample:\n  nerm demo\n  nerm demo --folder /tmp --json",
)
@click.option("--folder", default=".", show_default=True, metavar="FOLDER", help="Where figure and report go.")
@seed_option
@common
def demo(console: Console, folder: str, seed: int) -> int:
    """See it work: predict how diabetes progresses without following sex.

    Sweeps the neutrality weight on real data that come with scikit-learn, prints the trade-off, and writes a figure
    and a report to click through.
    """
    files = {"figure": str(Path(folder) / "nerm-demo.svg"), "report": str(Path(folder) / "nerm-demo.html")}
    for path in files.values():
        check_writable(path, "--folder")
    from nerm.cli.rendering import show_study
    from nerm.report import Settings, run_study

    with console.progress("Fitting") as progress:
        study = run_study(diabetes(), Settings(seed=seed), progress=progress)
    return show_study(console, study, "nerm demo" + (f" --seed {seed}" if seed else ""), files, "--folder")


def diabetes() -> TableTask:
    """Return the diabetes data as a task, read as any other table is."""
    from nerm.datasets import load
    from nerm.tables import make_task, parse_table

    data = load("diabetes")
    progression = ["above median" if above else "below" for above in data.y > 0]
    inputs = data.frame.drop(columns=["target"]).assign(sex=data.frame["sex"].astype(int), progression=progression)
    table = parse_table(inputs.to_csv(index=False), "diabetes (scikit-learn)")
    return make_task(table, "progression", "sex", positive="above median")
