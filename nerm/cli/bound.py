"""`nerm bound`: what is guaranteed about a model beyond the rows at hand."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import click

from nerm.cli.console import Console
from nerm.cli.options import (
    common,
    input_options,
    model_options,
    role_options,
    seed_option,
    settings_of,
    table_options,
    task_of,
)

EPILOG = """\b
Examples:
  nerm bound people.csv --target income --viewpoint sex --eta 5
  nerm bound people.csv --target income --viewpoint sex --weights uniform --delta 0.01
"""


@click.command(epilog=EPILOG)
@click.argument("data", metavar="DATA.csv")
@role_options
@click.option("--eta", type=float, default=1.0, show_default=True, help="Weight of neutrality.")
@click.option("--test", type=click.FloatRange(0, 0.9), default=0.25, show_default=True, help="Share to hold out.")
@click.option("--delta", type=click.FloatRange(0, 1, min_open=True, max_open=True), default=0.05, show_default=True)
@model_options
@input_options
@table_options
@seed_option
@common
def bound(console: Console, data: str, eta: float, test: float, delta: float, **options: Any) -> int:
    """Fit, and state every bound with what it assumes.

    The theorems bound the relaxed risk C_psi and need --weights uniform; only held-out rows bound C_sgn and the
    difference in positive rates. A bound that promises nothing is called vacuous.
    """
    task, recipe = task_of(data, options)
    seed = options.pop("seed")
    settings = settings_of(options, recipe, seed=seed, delta=delta)
    from nerm.cli.fit import fitted, promises_of
    from nerm.cli.showing import promises_table

    with console.progress("Fitting"):
        found = fitted(task, settings, eta, test)
    console.notes([*task.notes, *found["notes"]])
    promises = promises_of(found["model"], found["holdout"], delta)
    plain = {name: found[name] for name in ("objective", "rows", "status", "relative_gap", "eta", "lam")}
    plain["delta"] = delta
    plain["bounds"] = [{**asdict(p), "holds": p.bound == p.bound} for p in promises]
    console.result(plain, found["objective"], promises_table(promises, delta))
    return console.code({found["solver"]: found["status"]})
