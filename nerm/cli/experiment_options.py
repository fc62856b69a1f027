"""What the commands that run experiments share: options, the functions behind them, and figures."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import click

from nerm.cli.console import refusing_unwritable
from nerm.errors import InvalidInputError, MissingPackageError
from nerm.files import write_atomically

FIGURES = (".png", ".pdf", ".svg")
jobs_option = click.option(
    "--jobs",
    "n_jobs",
    type=int,
    default=1,
    show_default=True,
    help="Runs at a time, each a process; -1: every core.",
)
results_option = click.option(
    "--results", metavar="FILE.csv", help="Every finished run is kept here; started again, it goes on."
)


def _check_kind(ctx: click.Context, param: click.Parameter, path: str | None) -> str | None:
    """Refuse a figure that could not be drawn, before any work is done for it."""
    if path is not None and Path(path).suffix not in FIGURES:
        raise InvalidInputError(f"--figure must end in {', '.join(FIGURES)}", repr(path), "Rename it")
    if path is not None:
        from nerm.plots.style import pyplot

        pyplot().switch_backend("Agg")  # to files, on machines without a screen
    return path


figure_option = click.option("--figure", metavar="FILE", callback=_check_kind, help="Draw the figure here.")


def experiment(name: str, module: str = "nerm.experiments") -> Callable[..., Any]:
    """Return a function of nerm.experiments (or nerm.plots); where this installation has none, say so."""
    try:
        found: Callable[..., Any] | None = getattr(import_module(module), name, None)
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"{module} needs the package {error.name!r}. It is not installed. Install it and try again."
        ) from None
    if found is None:
        raise MissingPackageError(
            f"this command needs {module}.{name}. This installation has none. Install a nerm that has it."
        )
    return found


def save_figure(draw: Callable[[], Any], path: str) -> None:
    """Draw Axes and write their figure, all of it or nothing."""
    with refusing_unwritable(path, "--figure"), write_atomically(path) as file:
        draw()[0].figure.savefig(file, dpi=150, format=Path(path).suffix[1:])


def counted(counts: Mapping[str, int]) -> str:
    """Say how often each status came."""
    return ", ".join(f"{count} {status}" for status, count in counts.items())
