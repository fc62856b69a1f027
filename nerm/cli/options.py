"""Options that several commands share, and what they become."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nerm.cli.console import Console
from nerm.defaults import COMMAND_LINE, MEASURES
from nerm.errors import InvalidInputError

if TYPE_CHECKING:
    from nerm.report import Level, Settings
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
    return click.option(
        f"--{name}", default=getattr(COMMAND_LINE, name), show_default=True, help=help_text, **more
    )


seed_option = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of every random choice."
)
report_option = click.option(
    "--report", metavar="FILE.html", help="Write the report: one page, no network needed."
)
delta_option = _defaulting(
    "delta",
    "Probability with which a bound may fail.",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
)

table_options = _all(
    click.option(
        "--separator", metavar="TEXT", help="comma, semicolon, tab, space or a character. Default: guessed."
    ),
    click.option(
        "--columns",
        metavar="NAMES",
        help="For a file without a header: names separated by commas, @FILE with one name a line, or @adult, @german, "
        "@bank for the published files.",
    ),
    click.option("--no-header", is_flag=True, help="The first line is data; columns are called c1, c2, …"),
    click.option(
        "--skip-lines", type=click.IntRange(0), default=0, help="Leave out this many lines at the top."
    ),
    click.option("--skip-bad-rows", is_flag=True, help="Leave out rows with a wrong number of fields."),
    click.option("--encoding", metavar="NAME", help="Of text that is no UTF-8: cp1252 (Windows), latin-1, …"),
    click.option(
        "--decimal",
        type=click.Choice(["comma", "point"]),
        help="How numbers are written. Default: by column, guessed.",
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
    click.option(
        "--missing", multiple=True, metavar="TEXT", help="A further word for 'missing'. Can be repeated."
    ),
)

role_options = _all(
    click.option(
        "--target", required=True, metavar="COLUMN", help="What to predict: a column of two values."
    ),
    click.option(
        "--viewpoint",
        required=True,
        metavar="COLUMN",
        help="What not to follow: a column of groups, or several: sex,race.",
    ),
    click.option(
        "--intersect", is_flag=True, help="With several viewpoints: every combination of them is a group."
    ),
    click.option(
        "--positive", metavar="VALUE", help="The target's value to predict. Default: yes of yes and no."
    ),
    click.option(
        "--favoured",
        metavar="VALUE",
        help="The group to set against the rest. Default: each against the rest.",
    ),
)

#: What a limit is about.
measure_option = _defaulting(
    "measure",
    "What a limit is about: positive rates, the paper's C_sgn, true positive rates, both error rates, information.",
    type=click.Choice(list(MEASURES)),
)

#: What a single fit needs besides.
fit_options = _all(
    role_options,
    click.option(
        "--limit",
        type=click.FloatRange(0, 1),
        help=f"How large the measure may be on the training rows.  [default: {COMMAND_LINE.limit:g}]",
    ),
    measure_option,
    click.option(
        "--confidence",
        type=click.FloatRange(0, 1, min_open=True, max_open=True),
        help="Have the limit hold on new rows with this probability, or refuse.",
    ),
    click.option(
        "--eta",
        type=click.FloatRange(0),
        help="In place of a limit: the weight of neutrality; 0 is the plain model.",
    ),
    click.option(
        "--test", type=click.FloatRange(0, 0.9), default=0.25, show_default=True, help="Share to hold out."
    ),
    delta_option,
)

#: What fits to a table share: the model, its inputs, how the file is read, the seed, and how the command speaks.
study_options = _all(
    _defaulting("lam", "Weight of the regularizer (mean form)."),
    _defaulting("loss", "Loss; also logistic, squared-hinge, …"),
    _defaulting("surrogate", "Surrogate of the neutrality term: hinge, logistic, ramp, ramp(2), …"),
    _defaulting("regularizer", "Also l1, elastic-net, …"),
    _defaulting("kernel", "Also rbf, poly."),
    _defaulting(
        "weights",
        "With a weight: equal positive rates, the paper's C_sgn, equal true positive rates.",
        type=click.Choice(["balanced", "uniform", "equal_opportunity"]),
    ),
    click.option(
        "--class-weight",
        type=click.Choice(["root", "balanced", "none"]),
        default=COMMAND_LINE.class_weight,
        show_default=True,
        help="balanced: both values of the target count the same; root: the square roots of these weights.",
    ),
    _defaulting("solver", "See: nerm solvers."),
    _defaulting("tol", "Relative duality gap to certify."),
    click.option("--keep-viewpoint", is_flag=True, help="Use the viewpoint column as an input too."),
    click.option(
        "--leave-out", multiple=True, metavar="COLUMN", help="Do not learn from this column. Repeatable."
    ),
    click.option(
        "--nominal", multiple=True, metavar="COLUMN", help="Take numbers as words (codes). Repeatable."
    ),
    click.option(
        "--numeric", multiple=True, metavar="COLUMN", help="Keep integers that look like row numbers."
    ),
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
        "skip_lines": options["skip_lines"]
        + (layout == "bank"),  # it has a header of its own, which is no data
        **{name: options[name] for name in ("skip_bad_rows", "encoding", "decimal", "sheet", "memory")},
    }


def _columns(given: str | None) -> tuple[list[str] | None, str | None]:
    """Return the column names, and the published layout that they came from."""
    if given is None or not given.startswith("@"):
        return (None if given is None else [name.strip() for name in given.split(",")]), None
    from nerm.datasets.uci import TABLES

    name = given[1:]
    if name in TABLES:
        return TABLES[name].about["columns"], name
    if not Path(name).is_file():
        layouts = ", ".join(f"@{layout}" for layout in sorted(TABLES))
        must = f"--columns @NAME must be a file or one of {layouts}"
        raise InvalidInputError(must, f"no file {name!r}", "Check its name")
    try:
        text = Path(name).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise InvalidInputError(
            "the file of --columns must be UTF-8 text", str(error), "Convert it"
        ) from None
    return [line.strip() for line in text.splitlines() if line.strip()], None


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
    from nerm.tables.values import MISSING
    from nerm.validation import as_nonnegative, as_positive

    missing = (*MISSING, *options["missing"])
    roles = {
        name: options[name]
        for name in ("target", "positive", "favoured", "intersect", "keep_viewpoint", "leave_out")
    }
    table = read(path, options)
    task = make_task(
        table, viewpoint=viewpoints_in(options["viewpoint"], table.names), **roles, missing=missing
    )
    task = survey(task, nominal=options["nominal"], numeric=options["numeric"], missing=missing)
    nominal = tuple(name for name, kind in task.kinds.items() if kind == "words")
    given = {field.name: options[field.name] for field in fields(Settings) if field.name in options}
    settings = Settings(**given | {"nominal": nominal, "missing": missing})
    as_nonnegative(settings.lam, "--lam")
    as_positive(settings.tol, "--tol")
    return task, settings


def viewpoints_in(given: str, names: Sequence[str]) -> list[str]:
    """Return the columns that --viewpoint names, separated by commas unless a column has this very name.

    >>> viewpoints_in("sex, race", ["sex", "race"]), viewpoints_in("a,b", ["a,b"])
    (['sex', 'race'], ['a,b'])
    """
    return [given] if given in names else [name.strip() for name in given.split(",")]


def level_of(options: dict[str, Any]) -> Level:
    """Return what is asked of a fit; a limit and a weight exclude each other.

    Parameters
    ----------
    options
        Of the command: `fit_options`.
    """
    from nerm.report import Level

    limit, eta, confidence = options["limit"], options["eta"], options["confidence"]
    if eta is not None and limit is not None:
        do = "Give --limit for a level, or --eta for a weight"
        raise InvalidInputError("--limit and --eta must not both be given", f"{limit:g} and {eta:g}", do)
    if eta is not None and confidence is not None:
        raise InvalidInputError(
            "--confidence must come with a limit", "--eta", "Give --limit in place of --eta"
        )
    return Level(eta=eta) if eta is not None else Level(COMMAND_LINE.limit if limit is None else limit)


#: Options that name no model: a command that makes the same model again leaves them out.
NOT_OF_THE_MODEL = {
    "as_json", "quiet", "report", "figure", "out", "save", "etas", "limits", "budget", "methods", "limit", "eta",
    "bounds", "test", "delta",
}  # fmt: skip


def fit_command(data: str) -> str:
    """Return the `nerm fit` command with the options of the running one as far as they were given, without a level.

    Parameters
    ----------
    data
        The file with the rows.
    """
    ctx = click.get_current_context()
    words = ["nerm", "fit", data]
    for parameter in ctx.command.params:
        name = str(parameter.name)
        given = ctx.get_parameter_source(name) is not click.core.ParameterSource.DEFAULT
        if not given or name in NOT_OF_THE_MODEL or not isinstance(parameter, click.Option):
            continue
        value = ctx.params[name]
        for each in value if isinstance(value, tuple) else (value,):
            words += [parameter.opts[0]] if parameter.is_flag else [parameter.opts[0], str(each)]
    return shlex.join(words)
