"""`nerm reproduce`: the paper's two figures."""

from __future__ import annotations

import os
from typing import Any

import click

from nerm.cli.console import Console, check_places
from nerm.cli.experiments import experiment
from nerm.cli.options import common, seed_option

EPILOG = """\b
Examples:
  nerm reproduce convergence --repetitions 2 --figure figure1.png
  nerm reproduce tradeoff --datasets german --repetitions 1 --results german.csv --figure figure2.png
"""


@click.command(epilog=EPILOG)
@click.argument("which", type=click.Choice(["convergence", "tradeoff"]))
@click.option("--repetitions", type=click.IntRange(1), default=10, show_default=True, help="The paper's are 10.")
@click.option("--jobs", type=int, default=1, show_default=True, help="Worker processes.")
@click.option("--datasets", metavar="NAMES", help="For tradeoff: german,adult,bank by default.")
@click.option("--results", metavar="FILE.csv", help="Every finished fold is kept here; started again, it goes on.")
@click.option("--figure", metavar="FILE", help="Draw the figure here (png, pdf or svg; needs matplotlib).")
@seed_option
@common
def reproduce(
    console: Console,
    which: str,
    repetitions: int,
    jobs: int,
    datasets: str | None,
    results: str | None,
    figure: str | None,
    seed: int,
) -> None:
    """Repeat an experiment of the paper.

    convergence is its figure 1: how the errors of risk and neutrality fall with the number of samples. tradeoff is
    figure 2: AUC against C_sgn on real data, method by method. The full protocol takes some ten minutes on two
    cores, so keep --results.
    """
    check_places({}, {"--results": results, "--figure": figure})
    if datasets is not None and which != "tradeoff":
        raise click.UsageError("--datasets belongs to tradeoff.")
    run, sum_up = experiment(which), experiment("slopes" if which == "convergence" else "front")
    options: dict[str, Any] = {"repetitions": repetitions, "seed": seed, "n_jobs": jobs, "results": results}
    if datasets is not None:
        options["datasets"] = tuple(name.strip() for name in datasets.split(","))
    frame = run(**options, progress=False if console.quiet else None)
    summary = sum_up(frame)
    if "non_dominated" in summary:
        summary = summary[summary["non_dominated"]].drop(columns="non_dominated")
    files = {name: path for name, path in (("results", results), ("figure", figure)) if path is not None}
    if figure is not None:
        _draw(which, frame, figure)
    counts = frame["status"].value_counts().to_dict()
    said = ", ".join(f"{count} {status}" for status, count in counts.items())
    plain = {"experiment": which, "summary": summary.to_dict("records"), "fits": counts, "files": files}
    where = [f"{name.capitalize()}: {path}" for name, path in files.items()]
    console.result(plain, summary.to_string(index=False), said, *where)


def _draw(which: str, frame: Any, path: str) -> None:
    """Draw with nerm.plots into a file beside its place, and move it there."""
    from pathlib import Path

    plot = experiment("figure_1" if which == "convergence" else "figure_2", "nerm.plots")
    import matplotlib

    matplotlib.use("Agg")
    target = Path(path)
    temporary = target.with_name(f".{target.stem}.tmp{target.suffix or '.png'}")
    try:
        plot(frame)[0].figure.savefig(temporary, dpi=150)
        os.replace(temporary, target)
    finally:
        temporary.unlink(missing_ok=True)
