"""`nerm demo`: real data, the whole trade-off, a figure and a report."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from nerm.cli.console import Console, check_writable, write_text
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
    figure, page = Path(folder) / "nerm-demo.svg", Path(folder) / "nerm-demo.html"
    check_writable(figure, "--folder")
    check_writable(page, "--folder")
    from nerm.cli.showing import front_table, statuses_of, study_json
    from nerm.report import Settings, figure_svg, render_page, run_study

    with console.progress("Fitting") as progress:
        study = run_study(diabetes(), Settings(seed=seed), progress=progress)
    write_text(figure, figure_svg(study), "--folder")
    write_text(page, render_page(study, "nerm demo" + (f" --seed {seed}" if seed else "")), "--folder")
    files = {"figure": str(figure), "report": str(page)}
    where = f"Figure: {figure}\nReport: {page} (open it in a browser and click a point)"
    console.result({**study_json(study), "files": files}, front_table(study), study.sentence(), where)
    return console.code(statuses_of(study))


def diabetes() -> TableTask:
    """Return the diabetes data as a task, read through the same door as any other table."""
    from nerm.datasets import load
    from nerm.tables import make_task, parse_table

    frame = load("diabetes").frame
    progression = ["above median" if above else "below" for above in frame["target"] > frame["target"].median()]
    inputs = frame.drop(columns=["target"]).assign(sex=frame["sex"].astype(int), progression=progression)
    table = parse_table(inputs.to_csv(index=False), "diabetes (scikit-learn)")
    return make_task(table, "progression", "sex", positive="above median")
