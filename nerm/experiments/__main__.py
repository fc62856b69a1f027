"""`python -m nerm.experiments convergence | tradeoff`: run an experiment of the paper and draw its figure."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from nerm.errors import NermError


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line."""
    main = argparse.ArgumentParser(prog="python -m nerm.experiments", description=__doc__)
    kinds = main.add_subparsers(dest="experiment", required=True)
    first = kinds.add_parser("convergence", help="figure 1: errors of risk and neutrality risk against n")
    first.add_argument("--n", type=int, nargs="+", help="numbers of samples")
    first.add_argument("--etas", type=float, nargs="+", help="neutrality weights")
    first.add_argument("--redraw", action="store_true", help="draw a new sample in every repetition")
    second = kinds.add_parser("tradeoff", help="figure 2: AUC against C_sgn on real data")
    second.add_argument("--datasets", nargs="+", help="german adult bank ...")
    second.add_argument("--methods", nargs="+", help="neutral-svm cv2nb pr eta-lr svm lr")
    second.add_argument("--lam", type=float, nargs="+", help="lambda, or the values among which it is tuned")
    second.add_argument("--discretize", help="'all rows' or 'training folds'")
    second.add_argument("--data-home", help="folder with the UCI files")
    for one in (first, second):
        one.add_argument("--repetitions", type=int)
        one.add_argument("--folds", type=int)
        one.add_argument("--seed", type=int)
        one.add_argument("--n-jobs", type=int, help="worker processes")
        one.add_argument("--backend", help="joblib or dask")
        one.add_argument("--client", help="address of a dask scheduler")
        one.add_argument("--results", help="a .csv file: appended to as results come, and resumed")
        one.add_argument("--figure", help="where to save the figure")
    return main


def main(arguments: Sequence[str] | None = None) -> int:
    """Run, print the summary, save the figure; return the exit code."""
    given = {name: value for name, value in vars(parser().parse_args(arguments)).items() if value is not None}
    experiment, figure = given.pop("experiment"), given.pop("figure", None)
    started = time.perf_counter()
    try:
        table, summary = _convergence(given) if experiment == "convergence" else _tradeoff(given)
        if figure is not None:
            _draw(experiment, table, figure)
    except NermError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 2
    print(summary.to_string(index=False))
    counts = table["status"].value_counts().to_dict()
    print("\n" + ", ".join(f"{number} {status}" for status, number in counts.items()), end="")
    print(f"; {time.perf_counter() - started:.0f} s, of which fits took {table['seconds'].sum():.0f} s on one core")
    return 0


def _convergence(options: dict[str, Any]) -> tuple[Any, Any]:
    from nerm.experiments import convergence, slopes

    table = convergence(**options)
    return table, slopes(table)


def _tradeoff(options: dict[str, Any]) -> tuple[Any, Any]:
    from nerm.experiments import front, tradeoff

    table = tradeoff(**options)
    means = front(table)
    return table, means[means["non_dominated"]].drop(columns="non_dominated")


def _draw(experiment: str, table: Any, path: str) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from nerm import plots

    axes = plots.figure_1(table) if experiment == "convergence" else plots.figure_2(table)
    Path(path).parent.mkdir(parents=True, exist_ok=True)
    axes[0].figure.savefig(path, dpi=150)


if __name__ == "__main__":
    sys.exit(main())
