"""Options that several commands share, and what they become."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nerm.cli.console import Console
from nerm.defaults import COMMAND_LINE
from nerm.errors import InvalidInputError

if TYPE_CHECKING:
    from nerm.report import Settings
    from nerm.tables import TableTask, TextTable

F = TypeVar("F", bound=Callable[..., Any])


def _all(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Apply decorators so that help lists them in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def epilog_of(doc: str | None) -> str:
    """Return what stands below a command's options: its module's docstring after the first line, not wrapped."""
    text = str(doc).partition("\n\n")[2].replace("Examples\n--------", "Examples:")
    return "\b\n" + text.replace("\n\n", "\n\n\b\n")


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


def _defaulting(name: str, help_text: str, **more: Any) -> Callable[[F], F]:
    """Return an option whose default is the command line's."""
    more.setdefault("type", type(getattr(COMMAND_LINE, name)))
    return click.option(f"--{name}", default=getattr(COMMAND_LINE, name), show_default=True, help=help_text, **more)


seed_option = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of every random choice."
)
report_option = click.option("--report", metavar="FILE.html", help="Write the report: one page, no network needed.")
delta_option = _defaulting(
    "delta", "Probability with which a bound may fail.", type=click.FloatRange(0, 1, min_open=True, max_open=True)
)

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
    click.option("--encoding", metavar="NAME", help="Of text that is no UTF-8: cp1252 (Windows), latin-1, …"),
    click.option(
        "--decimal", type=click.Choice(["comma", "point"]), help="How numbers are written. Default: by column, guessed."
    ),
    click.option("--sheet", metavar="NAME", help="Of an Excel file. Default: the first."),
    click.option(
        "--memory",
        type=click.FloatRange(0, min_open=True),
        default=2.0,
        show_default=True,
        metavar="GB",
        help="Refuse a table that would take more.",
    ),
    click.option("--missing", multiple=True, metavar="TEXT", help="A further word for 'missing'. Can be repeated."),
)

role_options = _all(
    click.option("--target", required=True, metavar="COLUMN", help="What to predict: a column of two values."),
    click.option("--viewpoint", required=True, metavar="COLUMN", help="What not to follow: a column of two groups."),
    click.option("--positive", metavar="VALUE", help="The target's value to predict. Default: yes of yes and no."),
    click.option("--favoured", metavar="VALUE", help="The group that counts as +1. Default: the last in order."),
)

#: What a single fit needs besides.
fit_options = _all(
    role_options,
    _defaulting("eta", "Weight of neutrality; 0 is the plain model."),
    click.option("--test", type=click.FloatRange(0, 0.9), default=0.25, show_default=True, help="Share to hold out."),
    delta_option,
)

#: What fits to a table share: the model, its inputs, how the file is read, the seed, and how the command speaks.
study_options = _all(
    _defaulting("lam", "Weight of the regularizer (mean form)."),
    _defaulting("loss", "Loss; also logistic, squared-hinge, …"),
    _defaulting("surrogate", "Surrogate of the neutrality term."),
    _defaulting("regularizer", "Also l1, elastic-net, …"),
    _defaulting("kernel", "Also rbf, poly."),
    _defaulting(
        "weights",
        "What neutrality means: equal positive rates, the paper's C_sgn, equal true positive rates.",
        type=click.Choice(["balanced", "uniform", "equal_opportunity"]),
    ),
    click.option(
        "--class-weight",
        type=click.Choice(["balanced"]),
        help="Let both values of the target count the same; for targets that are rare.",
    ),
    _defaulting("solver", "See: nerm solvers."),
    _defaulting("tol", "Relative duality gap to certify."),
    click.option("--keep-viewpoint", is_flag=True, help="Use the viewpoint column as an input too."),
    click.option("--leave-out", multiple=True, metavar="COLUMN", help="Do not learn from this column. Repeatable."),
    click.option("--nominal", multiple=True, metavar="COLUMN", help="Take numbers as words (codes). Repeatable."),
    click.option("--numeric", multiple=True, metavar="COLUMN", help="Keep integers that look like row numbers."),
    table_options,
    seed_option,
    common,
)


def read(path: str, options: dict[str, Any]) -> TextTable:
    """Read the table that the options describe.

    Parameters
    ----------
    path
        Of the file.
    options
        Of the command; those of `table_options` are among them.
    """
    from nerm.tables import read_table

    return read_table(path, **reading_of(options))


def reading_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return what `table_options` say, as `nerm.tables.read_table` takes it.

    Parameters
    ----------
    options
        Of the command.
    """
    names, layout = _columns(options["columns"])
    return {
        "separator": options["separator"] or ("space" if layout == "german" else None),
        "columns": names,
        "header": not options["no_header"],
        "skip_lines": options["skip_lines"] + (layout == "bank"),  # it has a header of its own, which is no data
        **{name: options[name] for name in ("skip_bad_rows", "encoding", "decimal", "sheet", "memory")},
    }


def _columns(given: str | None) -> tuple[list[str] | None, str | None]:
    """Return the column names, and the published layout that they came from."""
    if given is None or not given.startswith("@"):
        return (None if given is None else [name.strip() for name in given.split(",")]), None
    from nerm.datasets.uci import TABLES
    from nerm.tables.reading import read_text

    name = given[1:]
    if name in TABLES:
        return TABLES[name].about["columns"], name
    if not Path(name).is_file():
        layouts = ", ".join(f"@{layout}" for layout in sorted(TABLES))
        must = f"--columns @NAME must be a file or one of {layouts}"
        raise InvalidInputError(must, f"no file {name!r}", "Check its name")
    return [line.strip() for line in read_text(name).splitlines() if line.strip()], None


def inputs_of(data: str, options: dict[str, Any]) -> dict[str, str | None]:
    """Return the files that the options make a command read, by what they are; outputs must be none of them.

    Parameters
    ----------
    data
        The file with the rows.
    options
        Of the command.
    """
    columns = options["columns"] or ""
    names = columns[1:] if columns.startswith("@") and Path(columns[1:]).is_file() else None
    return {"the data": data, "the file of --columns": names}


def request_of(path: str, options: dict[str, Any]) -> tuple[TableTask, Settings]:
    """Return the task and the settings of a study that the options describe, checked.

    Parameters
    ----------
    path
        Of the file.
    options
        Of the command: `role_options`, `study_options`, and whatever else is a field of `Settings`.
    """
    from nerm.report import Settings
    from nerm.tables import make_task, survey
    from nerm.tables.reading import MISSING
    from nerm.validation import as_nonnegative, as_positive

    missing = (*MISSING, *options["missing"])
    roles = ("target", "viewpoint", "positive", "favoured", "keep_viewpoint", "leave_out")
    task = make_task(read(path, options), **{name: options[name] for name in roles}, missing=missing)
    task = survey(task, nominal=options["nominal"], numeric=options["numeric"], missing=missing)
    nominal = tuple(name for name, kind in task.kinds.items() if kind == "words")
    given = {field.name: options[field.name] for field in fields(Settings) if field.name in options}
    settings = Settings(**given | {"nominal": nominal, "missing": missing})
    as_nonnegative(settings.lam, "--lam")
    as_positive(settings.tol, "--tol")
    for eta in settings.etas:
        as_nonnegative(eta, "--eta")
    return task, settings
