"""`nerm demo`: real data, the whole trade-off, a figure and a report."""

from __future__ import annotations

import shlex
from importlib import resources
from pathlib import Path

import click

from nerm.cli.console import Console, check_writable, write_text
from nerm.cli.options import common, seed_option

LIMITS = (0.05, 0.03, 0.02, 0.01)  # the plain model has 0.08
SUFFIXES = {"table": "csv", "figure": "svg", "report": "html"}


@click.command(
    short_help="See it work on real data: table, figure, report.",
    epilog="\b\nExample:\n  nerm demo\n  nerm demo --folder /tmp --json",
)
@click.option(
    "--folder", default=".", show_default=True, metavar="FOLDER", help="Where table, figure and report go."
)
@seed_option
@common
def demo(console: Console, folder: str, seed: int) -> int:
    """See it work: predict who is paid above the median without following race.

    Measures the trade-off on 2,246 women of the National Longitudinal Survey of 1988, prints it, and writes a
    figure, a report to click through, and the table itself (nerm-demo.csv), to try the other commands on.
    """
    files = {kind: str(Path(folder) / f"nerm-demo.{suffix}") for kind, suffix in SUFFIXES.items()}
    for path in files.values():
        check_writable(path, "--folder")
    from nerm.cli.rendering import show_study
    from nerm.report import Settings, run_study
    from nerm.tables import make_task, parse_table

    text = resources.files("nerm.cli").joinpath("demo.csv").read_text(encoding="utf-8")
    task = make_task(parse_table(text, "National Longitudinal Survey, 1988"), "wage", "race")
    settings = Settings(limits=LIMITS, surrogate="logistic", seed=seed)
    fit = f"nerm fit {shlex.quote(files['table'])} --target wage --viewpoint race"
    with console.progress("Fitting") as progress:
        study = run_study(task, settings, progress=progress, command=fit)
    write_text(files["table"], text, "--folder")
    return show_study(console, study, "nerm demo" + (f" --seed {seed}" if seed else ""), files, "--folder")
