"""`nerm demo`: real data, the whole trade-off, a figure and a report."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

import click

from nerm.cli.console import Console, check_writable, write_text
from nerm.cli.options import common, seed_option

SUFFIXES = {"table": "csv", "figure": "svg", "report": "html"}


@click.command(
    short_help="See it work on real data: table, figure, report.",
    epilog="\b\nExample:\n  nerm demo\n  nerm demo --folder /tmp --json",
)
@click.option("--folder", default=".", show_default=True, metavar="FOLDER", help="Where table, figure and report go.")
@seed_option
@common
def demo(console: Console, folder: str, seed: int) -> int:
    """See it work: predict who earns more than 30,000 dollars without following sex.

    Measures the trade-off on 787 people of the American Community Survey of 2012, prints it, and writes a figure, a
    report to click through, and the table itself (nerm-demo.csv), to try the other commands on.
    """
    files = {kind: str(Path(folder) / f"nerm-demo.{suffix}") for kind, suffix in SUFFIXES.items()}
    for path in files.values():
        check_writable(path, "--folder")
    from nerm.cli.rendering import show_study
    from nerm.report import Settings, run_study
    from nerm.tables import make_task, parse_table

    text = resources.files("nerm.cli").joinpath("demo.csv").read_text(encoding="utf-8")
    task = make_task(parse_table(text, "American Community Survey 2012"), "income", "sex")
    with console.progress("Fitting") as progress:
        study = run_study(task, Settings(seed=seed, surrogate="ramp"), progress=progress)
    write_text(files["table"], text, "--folder")
    return show_study(console, study, "nerm demo" + (f" --seed {seed}" if seed else ""), files, "--folder")
