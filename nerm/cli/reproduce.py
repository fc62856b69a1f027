"""`nerm reproduce`: the paper's two figures.

Examples
--------
  nerm reproduce convergence --repetitions 2 --figure figure1.png
  nerm reproduce convergence --n 100,1000,10000 --etas 0.1,1 --redraw --jobs 2
  nerm reproduce tradeoff --datasets german --repetitions 1 --results german.csv --figure figure2.png
  nerm reproduce tradeoff --methods neutral-svm,lr --lam 1,10 --backend dask --client tcp://10.0.0.1:8786
"""

from collections.abc import Callable
from typing import Any

import click

from nerm.cli.console import Console, check_places
from nerm.cli.experiment_options import counted, experiment, figure_option, jobs_option, results_option, save_figure
from nerm.cli.options import common, epilog_of, seed_option
from nerm.errors import InvalidInputError

#: Whose options these are; the others belong to both.
OWN = {
    "convergence": ("n", "etas", "redraw"),
    "tradeoff": ("datasets", "methods", "lam", "discretize", "data_home"),
}


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
@click.option("--etas", metavar="NUMBERS", callback=_several(float), help="For convergence: neutrality weights.")
@click.option("--redraw", is_flag=True, default=None, help="For convergence: every repetition draws a new sample.")
@click.option("--datasets", metavar="NAMES", callback=_several(str), help="For tradeoff: german,adult,bank by default.")
@click.option(
    "--methods", metavar="NAMES", callback=_several(str), help="For tradeoff: neutral-svm,cv2nb,pr,eta-lr,svm,lr."
)
@click.option(
    "--lam", metavar="NUMBERS", callback=_several(float), help="For tradeoff: lambda, or those to choose from."
)
@click.option("--discretize", metavar="WHERE", help="For tradeoff: 'all rows' or 'training folds'.")
@click.option("--data-home", metavar="FOLDER", help="For tradeoff: where the UCI files are.")
@click.option("--repetitions", type=click.IntRange(1), default=10, show_default=True, help="The paper's are 10.")
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

    convergence is its figure 1: how the errors of risk and neutrality fall with the number of samples. tradeoff is
    figure 2: AUC against C_sgn on real data, method by method. The full protocol takes some ten minutes on two
    cores, so keep --results.
    """
    check_places({}, {"--results": results, "--figure": figure})
    given = {name: value for name, value in options.items() if value is not None}
    for owner, names in OWN.items():
        for name in names:
            if name in given and owner != which:
                raise click.UsageError(f"--{name.replace('_', '-')} belongs to {owner}.")
    frame = experiment(which)(**given, results=results, progress=False if console.quiet else None)
    if which == "convergence":
        summary = experiment("slopes")(frame)
    else:
        summary = experiment("front")(frame).query("non_dominated").drop(columns="non_dominated")
    if figure is not None:
        plot = experiment("figure_1" if which == "convergence" else "figure_2", "nerm.plots")
        save_figure(lambda: plot(frame), figure)
    counts, seconds = frame["status"].value_counts().to_dict(), float(frame["seconds"].sum())
    plain = {"experiment": which, "summary": summary.to_dict("records"), "fits": counts, "seconds": seconds}
    said = f"{counted(counts)}; the fits took {seconds:.0f} s on one core"
    console.result(plain, summary.to_string(index=False), said, files={"results": results, "figure": figure})
