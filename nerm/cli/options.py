"""Options that several commands share, and what they become."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nerm.cli.console import Console
from nerm.errors import InvalidInputError

if TYPE_CHECKING:
    from nerm.report.study import Settings
    from nerm.tables import TableTask, TextTable

F = TypeVar("F", bound=Callable[..., Any])
LAYOUTS = ("adult", "bank", "german")


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Apply decorators so that help lists them in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def common(command: F) -> F:
    """Add --json and --quiet; the command gets a `Console` as its first argument."""

    @wraps(command)
    def run(*args: Any, as_json: bool, quiet: bool, **kwargs: Any) -> Any:
        if quiet:  # `ended` puts it back
            warnings.showwarning = lambda *_, **__: None
        return command(Console(as_json, quiet), *args, **kwargs)

    return _all(
        click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object."),
        click.option("--quiet", "-q", is_flag=True, help="Print the result only, no notes."),
    )(run)  # type: ignore[return-value]


seed_option = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of every random choice."
)

report_option = click.option("--report", metavar="FILE.html", help="Write the report: one page, no network needed.")

table_options = _all(
    click.option("--separator", metavar="TEXT", help="comma, semicolon, tab, space or a character. Default: guessed."),
    click.option(
        "--columns",
        metavar="NAMES",
        help="For a file without a header: names separated by commas, @FILE with one name a line, or @adult, @german, "
        "@bank for the published files.",
    ),
    click.option("--no-header", is_flag=True, help="The first line is data; columns are called c1, c2, …"),
    click.option("--skip-lines", type=click.IntRange(0), default=0, help="Leave out this many lines at the top."),
    click.option("--skip-bad-rows", is_flag=True, help="Leave out rows with a wrong number of fields."),
    click.option("--missing", multiple=True, metavar="TEXT", help="A further word for 'missing'. Can be repeated."),
)

role_options = _all(
    click.option("--target", required=True, metavar="COLUMN", help="What to predict: a column of two values."),
    click.option("--viewpoint", required=True, metavar="COLUMN", help="What not to follow: a column of two groups."),
    click.option("--positive", metavar="VALUE", help="The target's value to predict. Default: the last in order."),
    click.option("--favoured", metavar="VALUE", help="The group that counts as +1. Default: the last in order."),
)

input_options = _all(
    click.option("--keep-viewpoint", is_flag=True, help="Use the viewpoint column as an input too."),
    click.option("--leave-out", multiple=True, metavar="COLUMN", help="Do not learn from this column. Repeatable."),
    click.option("--nominal", multiple=True, metavar="COLUMN", help="Take numbers as words (codes). Repeatable."),
)

model_options = _all(
    click.option("--lam", type=float, default=0.01, show_default=True, help="Weight of the regularizer (mean form)."),
    click.option("--loss", default="hinge", show_default=True, help="Loss; also logistic, squared-hinge, …"),
    click.option("--surrogate", default="hinge", show_default=True, help="Surrogate of the neutrality term."),
    click.option("--regularizer", default="squared-l2", show_default=True, help="Also l1, elastic-net, …"),
    click.option("--kernel", default="linear", show_default=True, help="Also rbf, poly."),
    click.option(
        "--weights",
        type=click.Choice(["balanced", "uniform", "equal_opportunity"]),
        default="balanced",
        show_default=True,
        help="What neutrality means: equal positive rates, the paper's C_sgn, equal true positive rates.",
    ),
    click.option(
        "--class-weight",
        type=click.Choice(["balanced"]),
        help="Let both values of the target count the same; for targets that are rare.",
    ),
    click.option("--solver", default="auto", show_default=True, help="See: nerm solvers."),
    click.option("--tol", type=float, default=1e-6, show_default=True, help="Relative duality gap to certify."),
)


def read(path: str, options: dict[str, Any]) -> TextTable:
    """Read the table that the options describe; takes its own options out of the dict."""
    from nerm.tables import read_table

    names, layout = _columns(options.pop("columns"))
    separator, header = options.pop("separator"), not options.pop("no_header")
    skip_lines = options.pop("skip_lines")
    if layout == "bank":  # has a header of its own, which must be left out as data
        skip_lines += 1
    return read_table(
        path,
        separator=separator or ("space" if layout == "german" else None),
        columns=names,
        header=header,
        skip_lines=skip_lines,
        skip_bad_rows=options.pop("skip_bad_rows"),
    )


def _columns(given: str | None) -> tuple[list[str] | None, str | None]:
    """Return the column names, and the published layout that they came from."""
    if given is None or not given.startswith("@"):
        return (None if given is None else [name.strip() for name in given.split(",")]), None
    name = given[1:]
    if name in LAYOUTS:
        from nerm.datasets import uci

        return list({"adult": uci.ADULT_COLUMNS, "bank": uci.BANK_COLUMNS, "german": uci.GERMAN_CODES}[name]), name
    if not Path(name).is_file():
        raise InvalidInputError(
            f"--columns @NAME must be a file or one of @{', @'.join(LAYOUTS)}", f"no file {name!r}", "Check its name"
        )
    from nerm.tables.reading import read_text

    return [line.strip() for line in read_text(name).splitlines() if line.strip()], None


def inputs_of(data: str, options: dict[str, Any]) -> dict[str, str | None]:
    """Return the files that the options make a command read, by what they are; outputs must be none of them."""
    columns = options["columns"] or ""
    names = columns[1:] if columns.startswith("@") and columns[1:] not in LAYOUTS else None
    return {"the data": data, "the file of --columns": names}


def missing_words(options: dict[str, Any]) -> tuple[str, ...]:
    """Return every word for "missing"; takes its option out of the dict."""
    from nerm.tables.reading import MISSING

    return (*MISSING, *options.pop("missing"))


def task_of(path: str, options: dict[str, Any]) -> tuple[TableTask, dict[str, Any]]:
    """Return the task, and what the recipe needs of the options; both leave the dict."""
    from nerm.tables import make_task, nominal_columns

    table, missing = read(path, options), missing_words(options)
    task = make_task(
        table,
        options.pop("target"),
        options.pop("viewpoint"),
        positive=options.pop("positive"),
        favoured=options.pop("favoured"),
        keep_viewpoint=options.pop("keep_viewpoint"),
        leave_out=options.pop("leave_out"),
        missing=missing,
    )
    nominal = nominal_columns(task.table, task.inputs, nominal=options.pop("nominal"), missing=missing)
    return task, {"nominal": nominal, "missing": missing}


def settings_of(options: dict[str, Any], recipe: dict[str, Any], **more: Any) -> Settings:
    """Return the settings of a study from the model's options, checked."""
    from nerm.report.study import Settings
    from nerm.validation import as_nonnegative, as_positive

    names = ("lam", "loss", "surrogate", "regularizer", "kernel", "weights", "class_weight", "solver", "tol")
    settings = Settings(**{name: options.pop(name) for name in names}, **recipe, **more)
    as_nonnegative(settings.lam, "--lam")
    as_positive(settings.tol, "--tol")
    for eta in settings.etas:
        as_nonnegative(eta, "--eta")
    return settings
