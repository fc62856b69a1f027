"""`nerm tradeoff`: what neutrality costs on a table, for a grid of weights."""

from __future__ import annotations

from typing import Any

import click

from nerm.cli.console import Console, check_places, write_text
from nerm.cli.options import (
    common,
    input_options,
    inputs_of,
    model_options,
    report_option,
    role_options,
    seed_option,
    settings_of,
    table_options,
    task_of,
)
from nerm.errors import InvalidInputError

EPILOG = """\b
Examples:
  nerm tradeoff people.csv --target income --viewpoint sex --report front.html
  nerm tradeoff people.csv --target income --viewpoint sex --etas 0,0.1,1,10 --figure front.svg
"""


@click.command(epilog=EPILOG)
@click.argument("data", metavar="DATA.csv")
@role_options
@click.option("--etas", metavar="NUMBERS", help="Neutrality weights, separated by commas. Default: eleven up to 10.")
@click.option("--budget", type=click.FloatRange(0), default=0.03, show_default=True, help="AUC the choice may cost.")
@click.option(
    "--methods",
    type=click.Choice(["few", "all"]),
    default="few",
    show_default=True,
    help="few: the neutral SVM and logistic regression; all: every published method of nerm.baselines too.",
)
@click.option("--figure", metavar="FILE.svg", help="Write the figure here.")
@report_option
@model_options
@input_options
@table_options
@seed_option
@common
def tradeoff(
    console: Console,
    data: str,
    etas: str | None,
    budget: float,
    methods: str,
    figure: str | None,
    report: str | None,
    **options: Any,
) -> int:
    """Show the front between quality and neutrality.

    Fits the model for every weight, measures on rows it has not seen, and points at the most neutral one (judged on
    training rows) whose AUC is within the budget. Plain logistic regression stands beside it.
    """
    check_places(inputs_of(data, options), {"--figure": figure, "--report": report})
    if figure is not None and not figure.endswith(".svg"):
        raise InvalidInputError("--figure must end in .svg", repr(figure), "Rename it; browsers and editors open SVG")
    grid = {} if etas is None else {"etas": tuple(_number(word) for word in etas.split(","))}
    task, recipe = task_of(data, options)
    seed = options.pop("seed")
    from nerm.cli.showing import front_table, statuses_of, study_json
    from nerm.report import figure_svg, render_page, run_study

    settings = settings_of(options, recipe, seed=seed, budget=budget, **grid)
    with console.progress("Trade-off") as progress:
        study = run_study(task, settings, progress=progress, every_method=methods == "all")
    console.notes(study.notes)
    files = {}
    if figure is not None:
        write_text(figure, figure_svg(study), "--figure")
        files["figure"] = figure
    if report is not None:
        write_text(report, render_page(study, f"nerm tradeoff {data} …"), "--report")
        files["report"] = report
    where = [f"{name.capitalize()}: {path}" for name, path in files.items()]
    console.result({**study_json(study), "files": files}, front_table(study), study.sentence(), *where)
    return console.code(statuses_of(study))


def _number(word: str) -> float:
    from nerm.tables.recipe import numbers_in

    value = float(numbers_in([word.strip()])[0])
    if not value >= 0:
        raise InvalidInputError("--etas must be numbers of at least 0", repr(word), "Write 0,0.1,1 for instance")
    return value
