"""`nerm tradeoff`: what neutrality costs on a table, for several limits or weights.

Examples
--------
  nerm tradeoff people.csv --target income --viewpoint sex --report front.html
  nerm tradeoff people.csv --target income --viewpoint sex --limits 0.1,0.02 --save model.nerm
  nerm tradeoff people.csv --target income --viewpoint sex --etas 0,0.1,1,10 --figure front.svg
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from nerm.cli.console import Console, check_places
from nerm.cli.options import (
    epilog_of,
    fit_command,
    inputs_of,
    measure_option,
    report_option,
    request_of,
    role_options,
    study_options,
)
from nerm.defaults import LIMITS
from nerm.errors import InvalidInputError

if TYPE_CHECKING:
    from nerm.report import Study


@click.command(epilog=epilog_of(__doc__))
@click.argument("data", metavar="DATA.csv")
@role_options
@click.option(
    "--limits",
    metavar="NUMBERS",
    help=f"Limits, separated by commas.  [default: {','.join(map(str, LIMITS))}]",
)
@measure_option
@click.option(
    "--etas", metavar="NUMBERS", help="In place of limits: neutrality weights, separated by commas."
)
@click.option(
    "--budget", type=click.FloatRange(0), default=0.03, show_default=True, help="AUC the choice may cost."
)
@click.option(
    "--methods",
    type=click.Choice(["few", "all"]),
    default="few",
    show_default=True,
    help="few: the neutral model and logistic regression; all: every published method of nerm.baselines too.",
)
@click.option("--figure", metavar="FILE.svg", help="Write the figure here.")
@click.option("--save", metavar="MODEL.nerm", help="Write the recommended model here.")
@report_option
@study_options
def tradeoff(
    console: Console, data: str, figure: str | None, save: str | None, report: str | None, **options: Any
) -> int:
    """Show the front between quality and neutrality.

    Fits a model within every limit, measures on rows it has not seen, and points at the tightest limit whose
    AUC there is within the budget of the plain model's; never at a model that is nearly constant. Plain
    logistic regression stands beside it. Prints the `nerm fit` command of the choice.
    """
    check_places(inputs_of(data, options), {"--figure": figure, "--save": save, "--report": report})
    if figure is not None and not figure.endswith(".svg"):
        raise InvalidInputError(
            "--figure must end in .svg", repr(figure), "Rename it; browsers and editors open SVG"
        )
    if options["etas"] is not None and options["limits"] is not None:
        do = "Give --limits for levels, or --etas for weights"
        raise InvalidInputError("--limits and --etas must not both be given", "both", do)
    for name in ("etas", "limits"):
        given = options.pop(name)
        if given is not None:
            options[name] = _grid(given, f"--{name}")
    task, settings = request_of(data, options)
    from nerm.cli.rendering import show_study
    from nerm.report import run_study

    with console.progress("Trade-off") as progress:
        study = run_study(
            task,
            settings,
            progress=progress,
            every_method=options["methods"] == "all",
            command=fit_command(data),
        )
    console.notes(study.notes)
    if save is not None:
        _save(console, study, save)
    files = {"figure": figure, "report": report, "model": save if study.recommended is not None else None}
    return show_study(console, study, f"nerm tradeoff {data} …", files)


def _save(console: Console, study: Study, save: str) -> None:
    """Write the recommended model, or say that there is none."""
    from nerm.cli.fit import remembered, save_model
    from nerm.report.fitting import fit_level

    if study.recommended is None or study.fitted is None:
        console.note("no model is recommended, so none is saved")
        return
    model, (rows, train) = study.points[study.recommended].model, study.fitted
    assert model is not None
    assert study.recipe is not None
    if model.classifier is None:  # a point of a path
        model = fit_level(rows, train, model.level)
    save_model(study.recipe, model, study.task, remembered(model, study.settings, len(train)), save, "--save")


def _grid(given: str, option: str) -> tuple[float, ...]:
    from nerm.tables.values import numbers_in

    words = given.split(",")
    numbers = [float(value) for value in numbers_in(word.strip() for word in words)]
    for word, value in zip(words, numbers, strict=True):
        if not value >= 0:
            raise InvalidInputError(
                f"{option} must be numbers of at least 0", repr(word), "Write 0,0.1,1 for instance"
            )
    return tuple(numbers)
