"""`nerm solvers`: what can solve here.

Examples
--------
  nerm solvers
  nerm solvers --compare --quick --figure solvers.png
  nerm solvers --compare --jobs 2 --results solvers.csv
"""

from typing import Any

import click

from nerm.cli.console import Console, check_places, make_table, number
from nerm.cli.experiment_options import (
    counted,
    experiment,
    figure_option,
    jobs_option,
    results_option,
    save_figure,
)
from nerm.cli.options import common, epilog_of


@click.command(epilog=epilog_of(__doc__))
@click.option(
    "--compare", is_flag=True, help="Run the comparison on this machine: half an hour or so on 2 cores."
)
@click.option("--quick", is_flag=True, help="With --compare: ten small problems, a few minutes.")
@click.option(
    "--time-limit", type=float, default=10.0, show_default=True, help="With --compare: seconds for one run."
)
@jobs_option
@results_option
@figure_option
@common
def solvers(
    console: Console, compare: bool, quick: bool, results: str | None, figure: str | None, **options: Any
) -> None:
    """List the solvers: which are installed, and what each can take.

    With --compare, every installed solver meets a set of problems at three accuracies, each run in a process
    of its own with a time limit; nerm's certificate judges, not the solver.
    """
    if compare:
        check_places({}, {"--results": results, "--figure": figure})
        _compare(
            console, {"problems": "quick" if quick else "default", "results": results, **options}, figure
        )
        return
    for option, given in (("--quick", quick), ("--results", results), ("--figure", figure)):
        if given:
            raise click.UsageError(f"{option} belongs to --compare.")
    from nerm import solvers as registry

    rows = [
        {
            "name": s.name,
            "package": s.package,
            "installed": s.installed(),
            "version": s.version() if s.installed() else "",
            "takes": s.requirements(),
        }
        for s in registry.known().values()
    ]
    rows.sort(key=lambda row: (not row["installed"], str(row["name"])))
    cells = [
        [str(r["name"]), str(r["version"]) if r["installed"] else "not installed", str(r["takes"])]
        for r in rows
    ]
    table = make_table(
        "Solvers (every answer is certified by nerm itself)", ["name", "version", "takes"], cells, left=3
    )
    console.result({"solvers": rows}, table)


def _compare(console: Console, options: dict[str, Any], figure: str | None) -> None:
    frame = experiment("compare_solvers")(**options, progress=False if console.quiet else None)
    summary = experiment("summarize", "nerm.experiments.compare")(frame)
    if figure is not None:
        tols = sorted(frame["tol"].unique())
        draw = experiment("figure", "nerm.experiments.compare")
        save_figure(lambda: draw(frame, tols[len(tols) // 2]), figure)
    counts = frame["status"].value_counts().to_dict()
    plain = {"summary": summary.to_dict("records"), "runs": counts, "rows": frame.to_dict("records")}
    files = {"results": options["results"], "figure": figure}
    console.result(plain, *_tables(summary), counted(counts), files=files)


def _tables(summary: Any) -> list[Any]:
    """Return one table an accuracy."""
    columns = ["solver", "taken", "solved", "claims right", "seconds", "times best", "median gap", "MB"]
    tables = []
    for tol, rows in summary.groupby("tol", sort=False):
        cells = [
            [
                r.solver,
                str(r.taken),
                f"{r.solved:.0%}",
                "–" if r.correct != r.correct else f"{r.correct:.0%} of {r.claims}",
                number(r.mean_seconds),
                number(r.times_best, 1),
                "–" if r.median_gap != r.median_gap else f"{r.median_gap:.0e}",
                number(r.peak_mb, 0),
            ]
            for r in rows.itertuples()
        ]
        tables.append(make_table(f"Certified relative gap {tol:g}", columns, cells))
    return tables
