"""`nerm solvers` lists and compares solvers; `nerm reproduce` repeats the paper's experiments."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

import nerm
from nerm.cli.console import Console, check_places, make_table
from nerm.cli.options import all_of, command, common, given_options, numbers_option, option, seed_option
from nerm.errors import InvalidInputError
from nerm.files import write_atomically

ON_DATA = ("datasets", "methods", "lam", "discretize", "data_home")
#: By experiment: the options that not all experiments take, and the functions that summarize and draw it.
EXPERIMENTS = {
    "convergence": (("n", "etas", "redraw"), "slopes", "figure_1"),
    "tradeoff": (ON_DATA, "front", "figure_2"),
    "levels": ((*ON_DATA, "measures", "limits"), "level_means", "figure_levels"),
    "acs": ((*ON_DATA, "measures", "limits"), "level_means", "figure_levels"),
}
FIGURES = (".png", ".pdf", ".svg")


def _check_figure(ctx: click.Context, param: click.Parameter, path: str | None) -> str | None:
    """Raise an error, before the work starts, if the format is unknown or matplotlib is missing."""
    if path is not None:
        if Path(path).suffix not in FIGURES:
            raise InvalidInputError(f"--figure must end in {', '.join(FIGURES)}", repr(path), "Rename it")
        nerm.plots.pyplot().switch_backend("Agg")  # to files, on machines without a screen
    return path


run_options = all_of(
    click.option("--jobs", "n_jobs", type=int, default=1, help="Processes at a time; -1: every core."),
    option("results", "Every finished run is kept here; started again, it goes on.", metavar="FILE.csv"),
    option("figure", "Draw the figure here.", metavar="FILE", callback=_check_figure),
)


@command
@option("compare", "Run the comparison on this machine: half an hour or so on 2 cores.", is_flag=True)
@option("quick", "With --compare: ten small problems, a few minutes.", is_flag=True)
@option("time-limit", "With --compare: seconds for one run.", type=float, default=10.0)
@all_of(run_options, common)
def solvers(console: Console, results: str | None, figure: str | None, **options: Any) -> None:
    """List the solvers: which are installed, and which problems each can take.

    With --compare, every installed solver runs on a set of problems at three accuracies, each run in a
    process of its own with a time limit; nerm certifies every answer, whatever the solver reports.

    Examples
    --------
      nerm solvers
      nerm solvers --compare --quick --figure solvers.png
      nerm solvers --compare --jobs 2 --results solvers.csv
    """
    compare, quick = options.pop("compare"), options.pop("quick")
    if compare:
        check_places({}, {"--results": results, "--figure": figure})
        options |= {"problems": "quick" if quick else "default", "results": results}
        run = nerm.experiments.compare
        frame = run.compare_solvers(**options, progress=False if console.quiet else None)
        tols, counts = sorted(frame["tol"].unique()), frame["status"].value_counts().to_dict()
        _save_figure(lambda: run.figure(frame, tols[len(tols) // 2]), figure)
        summary = run.summarize(frame)
        plain = {"summary": summary.to_dict("records"), "runs": counts, "rows": frame.to_dict("records")}
        shown = summary.to_string(index=False, float_format="{:.3g}".format), _counted(counts)
        console.result(plain, *shown, files={"results": results, "figure": figure})
        return
    for name in ("quick", "results", "figure"):
        if name in given_options():
            raise click.UsageError(f"--{name} belongs to --compare.")
    rows = list[dict[str, Any]]()
    for solver in sorted(nerm.solvers.known().values(), key=lambda s: (not s.installed(), s.name)):
        row = {"name": solver.name, "package": solver.package, "installed": solver.installed()}
        version = solver.version() if solver.installed() else ""
        rows.append({**row, "version": version, "takes": solver.requirements()})
    cells = [[row["name"], row["version"] or "not installed", row["takes"]] for row in rows]
    title = "Solvers (every answer is certified by nerm itself)"
    console.result({"solvers": rows}, make_table(title, ["name", "version", "takes"], cells, left=3))


@command
@click.argument("which", type=click.Choice(list(EXPERIMENTS)))
@numbers_option("n", "For convergence: numbers of samples.", int)
@numbers_option("etas", "For convergence: neutrality weights.")
@option("redraw", "For convergence: every repetition draws a new sample.", is_flag=True, default=None)
@numbers_option("measures", "For levels and acs: the measures that are limited.", str)
@numbers_option("limits", "For levels and acs: the limits.")
@numbers_option("datasets", "On data: german,adult,bank by default.", str)
@numbers_option("methods", "On data: all of the experiment's by default.", str)
@numbers_option("lam", "On data: lambda, or those to choose from.")
@option("discretize", "On data: 'all rows' or 'training folds'.", metavar="WHERE")
@option("data-home", "On data: where the UCI files are.", metavar="FOLDER")
@option("repetitions", "The paper has 10.", type=click.IntRange(1), default=10)
@option("folds", "The paper has 5.", type=click.IntRange(2), default=5)
@all_of(run_options, seed_option, common)
def reproduce(console: Console, which: str, results: str | None, figure: str | None, **options: Any) -> None:
    """Repeat an experiment of the paper.

    convergence is its figure 1: how the errors of risk and neutrality fall with the number of samples.
    tradeoff is figure 2: AUC against C_sgn on real data, method by method. levels is figure 2 again, with
    limits on measured neutrality; acs is the same on ACSIncome, with neutral heads. The full protocol takes
    some ten minutes on two cores, levels and acs hours, so keep --results.

    Examples
    --------
      nerm reproduce convergence --repetitions 2 --figure figure1.png
      nerm reproduce convergence --n 100,1000,10000 --etas 0.1,1 --redraw --jobs 2
      nerm reproduce tradeoff --datasets german --repetitions 1 --results german.csv --figure figure2.png
      nerm reproduce tradeoff --methods neutral-svm,lr --lam 1,10 --jobs 2
      nerm reproduce acs --methods nerm,head --repetitions 1 --folds 3 --results acs.csv
      nerm reproduce levels --datasets german --limits 0.05,0.01 --repetitions 1 --figure levels.png
    """
    check_places({}, {"--results": results, "--figure": figure})
    given = {name: value for name, value in options.items() if value is not None}
    for name in given:
        owners = [owner for owner, (names, _, _) in EXPERIMENTS.items() if name in names]
        if owners and which not in owners:
            raise click.UsageError(f"--{name.replace('_', '-')} belongs to {' and '.join(owners)}.")
    _, summarize, draw = EXPERIMENTS[which]
    run = getattr(nerm.experiments, which)
    frame = run(**given, results=results, progress=False if console.quiet else None)
    summary = getattr(nerm.experiments, summarize)(frame)
    if which == "tradeoff":
        summary = summary.query("non_dominated").drop(columns="non_dominated")
    _save_figure(lambda: getattr(nerm.plots, draw)(frame), figure)
    counts, seconds = frame["status"].value_counts().to_dict(), float(frame["seconds"].sum())
    plain = {"experiment": which, "summary": summary.to_dict("records"), "fits": counts, "seconds": seconds}
    text = f"{_counted(counts)}; the fits took {seconds:.0f} s on one core"
    console.result(plain, summary.to_string(index=False), text, files={"results": results, "figure": figure})


def _save_figure(draw: Callable[[], Any], path: str | None) -> None:
    """If `path` is given, write the figure of the first Axes that `draw` returns.

    After an error no incomplete file is left.
    """
    if path is not None:
        with write_atomically(path) as file:
            draw()[0].figure.savefig(file, dpi=150, format=Path(path).suffix[1:])


def _counted(counts: Mapping[str, int]) -> str:
    """Return a phrase with the number of runs per status."""
    return ", ".join(f"{count} {status}" for status, count in counts.items())
