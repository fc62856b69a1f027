"""`nerm reproduce`: the paper's two figures, and the second one again with levels of neutrality that are asked for.

Examples
--------
  nerm reproduce convergence --repetitions 2 --figure figure1.png
  nerm reproduce convergence --n 100,1000,10000 --etas 0.1,1 --redraw --jobs 2
  nerm reproduce tradeoff --datasets german --repetitions 1 --results german.csv --figure figure2.png
  nerm reproduce tradeoff --methods neutral-svm,lr --lam 1,10 --backend dask --client tcp://10.0.0.1:8786
  nerm reproduce levels --datasets german --limits 0.05,0.01 --repetitions 1 --results levels.csv --figure
  levels.png
"""

from collections.abc import Callable
from typing import Any

import click

from nerm.cli.console import Console, check_places
from nerm.cli.experiment_options import (
    counted,
    experiment,
    figure_option,
    jobs_option,
    results_option,
    save_figure,
)
from nerm.cli.options import common, epilog_of, seed_option
from nerm.errors import InvalidInputError

ON_DATA = ("datasets", "methods", "lam", "discretize", "data_home")
#: Whose options these are; the others belong to all.
OWN = {
    "convergence": ("n", "etas", "redraw"),
    "tradeoff": ON_DATA,
    "levels": (*ON_DATA, "measures", "limits"),
}
FIGURES = {"convergence": "figure_1", "tradeoff": "figure_2", "levels": "figure_levels"}


def _several(kind: Callable[[str], Any]) -> Callable[[click.Context, click.Parameter, str | None], Any]:
    """Return what reads an option of values separated by commas."""

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[Any, ...] | None:
        try:
            return None if value is None else tuple(kind(word.strip()) for word in value.split(","))
        except ValueError:
            must = f"{param.opts[0]} must be numbers separated by commas"
            raise InvalidInputError(must, repr(value), "Write 1,10 for instance") from None

    return read


@click.command(epilog=epilog_of(__doc__))
@click.argument("which", type=click.Choice(list(OWN)))
@click.option("--n", metavar="NUMBERS", callback=_several(int), help="For convergence: numbers of samples.")
@click.option(
    "--etas", metavar="NUMBERS", callback=_several(float), help="For convergence: neutrality weights."
)
@click.option(
    "--redraw", is_flag=True, default=None, help="For convergence: every repetition draws a new sample."
)
@click.option("--measures", metavar="NAMES", callback=_several(str), help="For levels: what is limited.")
@click.option(
    "--limits", metavar="NUMBERS", callback=_several(float), help="For levels: the levels asked for."
)
@click.option(
    "--datasets", metavar="NAMES", callback=_several(str), help="On data: german,adult,bank by default."
)
@click.option(
    "--methods", metavar="NAMES", callback=_several(str), help="On data: all of the experiment's by default."
)
@click.option(
    "--lam", metavar="NUMBERS", callback=_several(float), help="On data: lambda, or those to choose from."
)
@click.option("--discretize", metavar="WHERE", help="On data: 'all rows' or 'training folds'.")
@click.option("--data-home", metavar="FOLDER", help="On data: where the UCI files are.")
@click.option(
    "--repetitions", type=click.IntRange(1), default=10, show_default=True, help="The paper's are 10."
)
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True, help="The paper's are 5.")
@jobs_option
@click.option("--backend", metavar="NAME", help="joblib (the default) or dask.")
@click.option("--client", metavar="ADDRESS", help="With --backend dask: the scheduler of a running cluster.")
@results_option
@figure_option
@seed_option
@common
def reproduce(console: Console, which: str, results: str | None, figure: str | None, **options: Any) -> None:
    """Repeat an experiment of the paper.

    convergence is its figure 1: how the errors of risk and neutrality fall with the number of samples.
    tradeoff is figure 2: AUC against C_sgn on real data, method by method. levels is figure 2 again, with
    levels of measured neutrality that are asked for. The full protocol takes some ten minutes on two cores,
    levels hours, so keep
    --results.
    """
    check_places({}, {"--results": results, "--figure": figure})
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        owners = [owner for owner, names in OWN.items() if name in names]
        if owners and which not in owners:
            raise click.UsageError(f"--{name.replace('_', '-')} belongs to {' and '.join(owners)}.")
    frame = experiment(which)(**given, results=results, progress=False if console.quiet else None)
    if which == "convergence":
        summary = experiment("slopes")(frame)
    elif which == "tradeoff":
        summary = experiment("front")(frame).query("non_dominated").drop(columns="non_dominated")
    else:
        summary = experiment("level_means")(frame)
    if figure is not None:
        save_figure(lambda: experiment(FIGURES[which], "nerm.plots")(frame), figure)
    counts, seconds = frame["status"].value_counts().to_dict(), float(frame["seconds"].sum())
    plain = {"experiment": which, "summary": summary.to_dict("records"), "fits": counts, "seconds": seconds}
    said = f"{counted(counts)}; the fits took {seconds:.0f} s on one core"
    console.result(plain, summary.to_string(index=False), said, files={"results": results, "figure": figure})
