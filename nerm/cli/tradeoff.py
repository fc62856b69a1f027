"""`nerm tradeoff`: what neutrality costs on a table, for a grid of weights.

Examples
--------
  nerm tradeoff people.csv --target income --viewpoint sex --report front.html
  nerm tradeoff people.csv --target income --viewpoint sex --etas 0,0.1,1,10 --figure front.svg
"""

from typing import Any

import click

from nerm.cli.console import Console, check_places
from nerm.cli.options import epilog_of, inputs_of, report_option, request_of, role_options, study_options
from nerm.errors import InvalidInputError


@click.command(epilog=epilog_of(__doc__))
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
@study_options
def tradeoff(console: Console, data: str, figure: str | None, report: str | None, **options: Any) -> int:
    """Show the front between quality and neutrality.

    Fits the model for every weight, measures on rows it has not seen, and points at the most neutral one (judged on
    training rows) whose AUC is within the budget. Plain logistic regression stands beside it.
    """
    check_places(inputs_of(data, options), {"--figure": figure, "--report": report})
    if figure is not None and not figure.endswith(".svg"):
        raise InvalidInputError("--figure must end in .svg", repr(figure), "Rename it; browsers and editors open SVG")
    etas = options.pop("etas")
    if etas is not None:
        options["etas"] = _grid(etas)
    task, settings = request_of(data, options)
    from nerm.cli.rendering import show_study
    from nerm.report import run_study

    with console.progress("Trade-off") as progress:
        study = run_study(task, settings, progress=progress, every_method=options["methods"] == "all")
    console.notes(study.notes)
    return show_study(console, study, f"nerm tradeoff {data} …", {"figure": figure, "report": report})


def _grid(etas: str) -> tuple[float, ...]:
    from nerm.tables.numbers import numbers_in

    words = etas.split(",")
    numbers = [float(value) for value in numbers_in(word.strip() for word in words)]
    for word, value in zip(words, numbers, strict=True):
        if not value >= 0:
            raise InvalidInputError("--etas must be numbers of at least 0", repr(word), "Write 0,0.1,1 for instance")
    return tuple(numbers)
