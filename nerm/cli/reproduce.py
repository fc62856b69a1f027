"""`nerm reproduce`: the paper's two figures."""

from __future__ import annotations

import click

from nerm.cli.console import Console, check_writable
from nerm.cli.experiments import experiment
from nerm.cli.options import common, seed_option


@click.command(epilog="\b\nExample:\n  nerm reproduce convergence\n  nerm reproduce tradeoff --out tradeoff.csv")
@click.argument("figure", type=click.Choice(["convergence", "tradeoff"]))
@click.option("--out", metavar="FILE.csv", help="Write the numbers behind the figure here.")
@seed_option
@common
def reproduce(console: Console, figure: str, out: str | None, seed: int) -> None:
    """Repeat an experiment of the paper."""
    check_writable(out, "--out")
    experiment(figure)
