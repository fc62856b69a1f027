"""Options that several commands share, and the objects that they describe."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from nerm.cli.console import Console
from nerm.defaults import COMMAND_LINE
from nerm.errors import InvalidInputError

if TYPE_CHECKING:
    from nerm.report.settings import Level, Settings
    from nerm.tables import TableTask

F = TypeVar("F", bound=Callable[..., Any])


class Registered(click.Choice[str]):
    """A choice among the names of a registry, which is read when the option is used: help is quick."""

    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self._names = names
        self.case_sensitive = True

    @property
    def choices(self) -> Sequence[str]:  # type: ignore[override]
        """The names."""
        return tuple(self._names())


def measure_options() -> dict[str, str]:
    """Return the names of the measures that can be limited, by their options."""
    from nerm.metrics import limitable

    return {metric.option: metric.name for metric in limitable().values()}


def _weight_names() -> Sequence[str]:
    from nerm.model.weights import NAMES

    return sorted(NAMES)


def all_of(*options: Callable[[F], F]) -> Callable[[F], F]:
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
        if quiet:  # `ended` restores it
            warnings.showwarning = lambda *_, **__: None
        return command(Console(as_json, quiet), *args, **kwargs)

    return all_of(
        click.option("--json", "as_json", is_flag=True, help="Print the result as one JSON object."),
        click.option("--quiet", "-q", is_flag=True, help="Print the result only, no notes."),
    )(run)  # type: ignore[return-value]


def _default(name: str, text: str, **more: Any) -> Callable[[F], F]:
    """Return an option with the default of the command line."""
    value = getattr(COMMAND_LINE, name)
    more = {"type": type(value), "default": value} | more
    return click.option(f"--{name.replace('_', '-')}", show_default=True, help=text, **more)


def _column(name: str, text: str, **more: Any) -> Callable[[F], F]:
    """Return an option that names a column."""
    return click.option(f"--{name}", metavar="COLUMN", help=text, **more)


def file_option(name: str, kind: str, text: str) -> Callable[[F], F]:
    """Return an option that names a file to write."""
    return click.option(f"--{name}", metavar=kind, help=text)


def numbers_option(name: str, text: str, kind: Callable[[str], Any] = float, **more: Any) -> Callable[[F], F]:
    """Return an option of values separated by commas; numbers must be at least 0."""

    def read(ctx: click.Context, param: click.Parameter, value: str | None) -> tuple[Any, ...] | None:
        found = []
        for word in [] if value is None else value.split(","):
            try:
                found.append(kind(word.strip()))
                if kind is not str and not found[-1] >= 0:
                    raise ValueError
            except ValueError:
                must = f"--{name} must be numbers of at least 0, separated by commas"
                raise InvalidInputError(must, repr(word), "Write 0,0.1,1 for instance") from None
        return None if value is None else tuple(found)

    metavar = "NAMES" if kind is str else "NUMBERS"
    return click.option(f"--{name}", metavar=metavar, callback=read, help=text, **more)


OPEN_UNIT = click.FloatRange(0, 1, min_open=True, max_open=True)
seed_option = click.option(
    "--seed", type=click.IntRange(0), default=0, show_default=True, help="Seed of every random choice."
)
report_option = file_option("report", "FILE.html", "Write the report: one page, no network needed.")
delta_option = _default("delta", "Probability with which a bound may fail.", type=OPEN_UNIT)
leave_out_option = _column("leave-out", "Do not learn from this column. Repeatable.", multiple=True)

table_options = all_of(
    click.option("--separator", help="comma, semicolon, tab, space or a character. Default: guessed."),
    click.option(
        "--columns",
        metavar="NAMES",
        help="For a file without a header: names separated by commas, @FILE with one name per line, or "
        "@adult, @german, @bank for the published files.",
    ),
    click.option("--no-header", is_flag=True, help="The first line is data; columns are called c1, c2, …"),
    click.option("--skip-lines", type=click.IntRange(0), default=0, help="Lines to leave out at the top."),
    click.option("--skip-bad-rows", is_flag=True, help="Leave out rows with a wrong number of fields."),
    click.option("--encoding", metavar="NAME", help="Of text that is no UTF-8: cp1252 (Windows), latin-1, …"),
    click.option("--decimal", type=click.Choice(["comma", "point"]), help="Default: guessed by column."),
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
        "--missing", multiple=True, metavar="TEXT", help="A further word for 'missing'. Repeatable."
    ),
)

role_options = all_of(
    _column("target", "What to predict: a column of two values.", required=True),
    _column("viewpoint", "What not to follow: a column of groups, or several: sex,race.", required=True),
    click.option("--intersect", is_flag=True, help="Every combination of several viewpoints is a group."),
    click.option(
        "--positive", metavar="VALUE", help="The target's value to predict. Default: yes of yes/no."
    ),
    click.option(
        "--favoured",
        metavar="VALUE",
        help="The group to set against the rest. Default: each against the rest.",
    ),
)

measure_option = click.option(
    "--measure",
    type=Registered(lambda: list(measure_options())),
    default="parity",
    show_default=True,
    help="What is limited; parity: the difference in positive rates.",
)

fit_options = all_of(
    role_options,
    click.option(
        "--limit",
        type=click.FloatRange(0, 1),
        help=f"How large the measure may be on the training rows.  [default: {COMMAND_LINE.limit:g}]",
    ),
    measure_option,
    click.option(
        "--confidence",
        type=OPEN_UNIT,
        help="The limit must hold on new rows with this probability, or no model.",
    ),
    click.option(
        "--eta",
        type=click.FloatRange(0),
        help="In place of a limit: the weight of neutrality; 0: plain model.",
    ),
    click.option(
        "--test", type=click.FloatRange(0, 0.9), default=0.25, show_default=True, help="Share to hold out."
    ),
    delta_option,
)

study_options = all_of(
    _default("lam", "Weight of the regularizer (mean form)."),
    _default("loss", "Loss; also logistic, squared-hinge, …"),
    _default("surrogate", "Surrogate of the neutrality term: hinge, logistic, ramp, ramp(2), …"),
    _default("regularizer", "Also l1, elastic-net, …"),
    _default("kernel", "Also rbf, poly."),
    _default("weights", "Of the neutrality term, with --eta.", type=Registered(_weight_names)),
    _default(
        "class_weight",
        "balanced: both values of the target count the same; root: the square roots of these weights.",
        type=click.Choice(["root", "balanced", "none"]),
    ),
    _default("solver", "See: nerm solvers."),
    _default("tol", "Relative duality gap to certify."),
    click.option("--keep-viewpoint", is_flag=True, help="Use the viewpoint column as an input too."),
    leave_out_option,
    _column("nominal", "Take numbers as words (codes). Repeatable.", multiple=True),
    _column("numeric", "Keep integers that look like row numbers. Repeatable.", multiple=True),
    table_options,
    seed_option,
    common,
)


def reading_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the `table_options` of a command as `nerm.tables.read_table` takes them."""
    names, layout = _columns(options["columns"])
    same = ("skip_bad_rows", "encoding", "decimal", "sheet", "memory")
    return {
        "separator": options["separator"] or ("space" if layout == "german" else None),
        "columns": names,
        "header": not options["no_header"],
        "skip_lines": options["skip_lines"] + (layout == "bank"),  # this file has a header of its own
        **{name: options[name] for name in same},
    }


def _columns(given: str | None) -> tuple[list[str] | None, str | None]:
    """Return the column names, and the published layout that they came from."""
    if given is None or not given.startswith("@"):
        return (None if given is None else [name.strip() for name in given.split(",")]), None
    from nerm.datasets.uci import TABLES

    name = given[1:]
    if name in TABLES:
        return TABLES[name].about["columns"], name
    try:
        text = Path(name).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        layouts = ", ".join(f"@{layout}" for layout in sorted(TABLES))
        must = f"--columns @NAME must be a UTF-8 file or one of {layouts}"
        raise InvalidInputError(must, f"{name!r} ({error})", "Check its name") from None
    return [line.strip() for line in text.splitlines() if line.strip()], None


def inputs_of(data: str, options: dict[str, Any]) -> dict[str, str | None]:
    """Return the files that a command reads, which it must not overwrite."""
    columns = options["columns"] or ""
    names = columns[1:] if columns.startswith("@") and Path(columns[1:]).is_file() else None
    return {"the data": data, "the file of --columns": names}


def task_of(path: str, options: dict[str, Any]) -> tuple[TableTask, tuple[str, ...]]:
    """Read a table and give its columns their roles; return it with the words for "missing"."""
    from nerm.tables import make_task, read_table
    from nerm.tables.values import MISSING

    missing = (*MISSING, *options["missing"])
    names = ("target", "positive", "favoured", "intersect", "keep_viewpoint", "leave_out")
    roles = {name: options[name] for name in names if name in options}
    table = read_table(path, **reading_of(options))
    given = options["viewpoint"]
    views = [given] if given in table.names else [name.strip() for name in given.split(",")]
    return make_task(table, viewpoint=views, **roles, missing=missing), missing


def request_of(path: str, options: dict[str, Any]) -> tuple[TableTask, Settings]:
    """Return the task and the settings of a study that the options describe."""
    from nerm.report.settings import Settings
    from nerm.tables import survey
    from nerm.validation import as_nonnegative, as_positive

    task, missing = task_of(path, options)
    task = survey(task, nominal=options["nominal"], numeric=options["numeric"], missing=missing)
    nominal = tuple(name for name, kind in task.kinds.items() if kind == "words")
    given = {f.name: options[f.name] for f in fields(Settings) if options.get(f.name) is not None}
    given |= {"nominal": nominal, "missing": missing, "measure": measure_options()[options["measure"]]}
    settings = Settings(**given)
    as_nonnegative(settings.lam, "--lam")
    as_positive(settings.tol, "--tol")
    return task, settings


def level_of(options: dict[str, Any]) -> Level:
    """Return the target of a fit; a limit and a weight exclude each other."""
    from nerm.report.settings import Level

    limit, eta = options["limit"], options["eta"]
    if eta is None:
        return Level(COMMAND_LINE.limit if limit is None else limit)
    for name in ("limit", "confidence"):
        if options[name] is not None:
            do = "Give --limit for a level, or --eta for a weight"
            raise InvalidInputError(f"--{name} and --eta must not both be given", "both", do)
    return Level(eta=eta)
