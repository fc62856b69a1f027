"""Options that several commands share, and functions that turn them into tasks and settings."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar

import click

import nerm.report
from nerm.cli.console import Console
from nerm.defaults import COMMAND_LINE
from nerm.errors import InvalidInputError

F = TypeVar("F", bound=Callable[..., Any])


class Registered(click.Choice[str]):
    """A choice among the names of a registry, which is read only when the option is used.

    So the registry's modules are not imported at start.
    """

    def __init__(self, names: Callable[[], Sequence[str]]) -> None:
        self._names = names
        self.case_sensitive = True

    @property
    def choices(self) -> Sequence[str]:  # type: ignore[override]
        """The names in the registry."""
        return tuple(self._names())

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return a known name; the default is one, so that it needs no registry."""
        is_default = param is not None and value == param.default
        return str(value) if is_default else super().convert(value, param, ctx)


def measure_options() -> dict[str, str]:
    """Return the measures that can be limited: from the value of --measure to the measure's name."""
    return {metric.option: metric.name for metric in nerm.metrics.limitable().values()}


def all_of(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Combine option decorators into one; the help lists the options in this order."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def command(function: Callable[..., Any]) -> click.Command:
    """Make a click command from a function; its docstring is the help text.

    The section Examples is shown below the options.
    """
    text, _, examples = inspect.cleandoc(str(function.__doc__)).partition("\n\nExamples\n--------\n")
    return click.command(help=text, epilog=f"\b\nExamples:\n{examples}")(function)


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


def option(name: str, text: str, **more: Any) -> Callable[[F], F]:
    """Return the option --name with the help `text`; its default is that in `COMMAND_LINE`, if any."""
    value = getattr(COMMAND_LINE, name.replace("-", "_"), None)
    if value is not None and "default" not in more:
        more = {"type": type(value), "default": value} | more
    return click.option(f"--{name}", help=text, **more)


def numbers_option(name: str, text: str, kind: Callable[[str], Any] = float) -> Callable[[F], F]:
    """Return a click option whose value is a comma-separated list, parsed by `kind`.

    Numbers must be at least 0.
    """

    def values(given: str) -> tuple[Any, ...]:
        with suppress(ValueError):
            found = tuple(kind(word.strip()) for word in given.split(","))
            if kind is str or all(value >= 0 for value in found):
                return found
        raise click.BadParameter(f"{given!r} must be numbers of at least 0, separated by commas.")

    metavar = "NAMES" if kind is str else "NUMBERS"
    return option(name, text, type=values, metavar=metavar, default=None)


#: The options that a regression does not have.
OF_DECISIONS = {"measure", "eta", "etas", "surrogate", "weights", "class_weight", "methods", "nearest"}
OF_DECISIONS |= {"bounds", "proof", "delta", "prediction", "model", "threshold", "head"}
OF_DECISIONS |= {"features", "compare_features"}
OF_BOTH = {("eta", 0), ("features", "linear"), ("features", "splines")}  # but it has these values of them
SHARES = (0.5, 0.2, 0.1)  # limits of a regression, in standard deviations of the target
LIMIT_HELP = f"Largest value of the measure on the training rows.  [default: {COMMAND_LINE.limit:g}]"
PROBABILITY = click.FloatRange(0, 1, min_open=True, max_open=True)
MEASURE = Registered(lambda: list(measure_options()))
WEIGHTS = Registered(lambda: sorted(nerm.weights.NAMES))
FEATURES = click.Choice(["linear", "splines", "trees"])
trust_option = option("trust", "A type that skops may load. Repeatable.", multiple=True, metavar="NAME")
CLASS_WEIGHTS = click.Choice(["root", "balanced", "none"])
seed_option = option("seed", "Seed of every random choice.", type=click.IntRange(0), default=0)
TASKS = click.Choice(["auto", "classification", "regression"])
task_option = option(
    "task", "auto: a target of more than 12 numbers is a regression.", type=TASKS, default="auto"
)
report_option = option("report", "Write the report: one page, no network needed.", metavar="FILE.html")
delta_option = option("delta", "Probability with which a bound may fail.", type=PROBABILITY)
leave_out_option = option("leave-out", "Do not use this column. Repeatable.", multiple=True, metavar="COLUMN")
measure_option = option("measure", "The limited measure: positive rates, …", type=MEASURE, default="parity")

table_options = all_of(
    option("separator", "comma, semicolon, tab, space or a character. Default: guessed."),
    option("columns", "No header: names, @FILE (one per line), @adult, @german, @bank.", metavar="NAMES"),
    option("no-header", "The first line is data; columns are called c1, c2, …", is_flag=True),
    option("skip-lines", "Lines to leave out at the top.", type=click.IntRange(0), default=0),
    option("skip-bad-rows", "Leave out rows with a wrong number of fields.", is_flag=True),
    option("encoding", "Encoding of text that is not UTF-8: cp1252 (Windows), latin-1, …", metavar="NAME"),
    option("decimal", "Decimal mark. Default: guessed per column.", type=click.Choice(["comma", "point"])),
    option("sheet", "Sheet of an Excel file. Default: the first.", metavar="NAME"),
    option("missing", "Another word that means missing. Repeatable.", multiple=True, metavar="TEXT"),
    option("exact", "Read Yes and yes as two values. Default: as one, with a note.", is_flag=True),
)

role_options = all_of(
    option("target", "Column to predict: two values, or numbers.", required=True, metavar="COLUMN"),
    option("viewpoint", "Groups not to follow; several: sex,race.", required=True, metavar="COLUMN"),
    option("intersect", "Use every combination of several viewpoints as a group.", is_flag=True),
    option("favoured", "The group to compare with the rest. Default: each group.", metavar="VALUE"),
    option("positive", "The target's positive value. Default: yes of yes/no, or last.", metavar="VALUE"),
    option("same", "Male=M reads the value Male as M. Repeatable.", multiple=True, metavar="TEXT"),
    numbers_option("bins", "Cut a viewpoint of numbers into groups at these numbers."),
)

fit_options = all_of(
    role_options,
    option("limit", LIMIT_HELP, type=click.FloatRange(0), default=None),
    measure_option,
    option("confidence", "The limit must hold on new rows with this probability.", type=PROBABILITY),
    option("nearest", "If no usable model is within the limit, return the nearest one.", is_flag=True),
    option("eta", "Weight of neutrality, instead of a limit.", type=click.FloatRange(0), default=None),
    option("test", "Share of the rows to hold out.", type=click.FloatRange(0, 0.9), default=0.25),
    delta_option,
)

study_options = all_of(
    option("lam", "Weight of the regularizer (mean form).", type=click.FloatRange(0)),
    option(
        "loss", "Loss: logistic, squared-hinge, …  [default: hinge; regression: squared-error]", default=None
    ),
    option("surrogate", "Surrogate of the neutrality term: hinge, logistic, ramp, ramp(2), …"),
    option("regularizer", "Regularizer: squared-l2, l1, elastic-net, …"),
    option("kernel", "Kernel: linear, rbf or poly."),
    option("features", "splines add curves of numbers, trees a score.", type=FEATURES, default="linear"),
    option("weights", "Weights of the neutrality term, with --eta.", type=WEIGHTS),
    option("class-weight", "balanced: equal classes; root: its square root.", type=CLASS_WEIGHTS),
    option("solver", "Solver; nerm solvers lists them."),
    option("tol", "Relative duality gap to certify.", type=click.FloatRange(0, min_open=True)),
    option("keep-viewpoint", "Use the viewpoint column as an input too.", is_flag=True),
    leave_out_option,
    option("nominal", "Read numbers as categories. Repeatable.", multiple=True, metavar="COLUMN"),
    option("numeric", "Keep this column of row numbers. Repeatable.", multiple=True, metavar="COLUMN"),
    table_options,
    seed_option,
    common,
)


def reading_of(options: dict[str, Any]) -> dict[str, Any]:
    """Return the `table_options` of a command as `nerm.tables.read_table` takes them."""
    pairs = [pair.rpartition("=") for pair in options.get("same", ())]
    if wrong := ["".join(pair) for pair in pairs if not all(pair)]:
        raise click.BadParameter(f"--same must be two values, such as Male=M, not {wrong[0]!r}.")
    names = {field.name for field in fields(nerm.tables.reading.Layout)} & options.keys()
    same = {before.strip(): after.strip() for before, _, after in pairs}
    own = {"columns": _columns(options["columns"]), "header": not options["no_header"], "synonyms": same}
    return {name: options[name] for name in names} | own


def _columns(given: str | None) -> list[str] | None:
    """Return the column names that --columns gives, or None.

    The value is a comma-separated list, @adult and the like for a published file, or @FILE with one per line.
    """
    if given is None or not given.startswith("@"):
        return None if given is None else [name.strip() for name in given.split(",")]
    published = nerm.datasets.loading.PUBLISHED
    if given[1:] in published:
        return published[given[1:]]["columns"]
    try:
        text = Path(given[1:]).read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        must = "--columns @NAME must be a UTF-8 file, or one of @adult, @german, @bank"
        raise InvalidInputError(must, f"{given[1:]!r} ({error})", "Check the name after @") from None
    return [line.strip() for line in text.splitlines() if line.strip()]


def task_of(path: str, options: dict[str, Any]) -> nerm.tables.TableTask:
    """Read a table and assign roles to its columns."""
    names = ("target", "positive", "favoured", "intersect", "bins", "keep_viewpoint", "leave_out", "task")
    roles = {name: options[name] for name in names if options.get(name) is not None}
    table = nerm.tables.read_table(path, **reading_of(options))
    table[options["target"]]  # a mistyped one is told before anything else is imported
    given = options["viewpoint"]
    views = [given] if given in table.names else [name.strip() for name in given.split(",")]
    return nerm.tables.make_task(table, viewpoint=views, **roles)


def request_of(path: str, options: dict[str, Any]) -> tuple[nerm.tables.TableTask, nerm.report.Settings]:
    """Read the table and return the task and the settings of the study that the options describe."""
    task = task_of(path, options)
    task = nerm.tables.survey(task, nominal=options["nominal"], numeric=options["numeric"])
    names = [field.name for field in fields(nerm.report.Settings)]
    given = {name: options[name] for name in names if options.get(name) is not None}
    if task.numbers is not None:
        refuse_given()
        usual = settings_of_numbers(task)
        if "limits" not in given and options.get("limit") is None:
            shown = ", ".join(f"{a:g} ({b:g} SD)" for a, b in zip(usual["limits"], SHARES, strict=True))
            note = f"limits by default, in units and standard deviations of {task.target.column!r}: {shown}"
            task = replace(task, notes=(note, *task.notes))
        return task, nerm.report.Settings(**usual | given | {"measure": usual["measure"], "etas": ()})
    if (options.get("limit") or 0) > 1:
        raise click.BadParameter(f"--limit must be at most 1 for a classification, not {options['limit']:g}.")
    return task, nerm.report.Settings(**given | {"measure": measure_options()[options["measure"]]})


def settings_of_numbers(task: nerm.tables.TableTask) -> dict[str, Any]:
    """Return the default settings of a regression; its limits are in units of the target."""
    assert task.numbers is not None
    limits = tuple(float(f"{share * float(task.numbers.std()):.3g}") for share in SHARES)
    return {"measure": "mean_difference", "loss": "squared-error", "limits": limits}


def refuse_given() -> None:
    """Raise an error if an option is given that a regression does not have."""
    for name, value in given_options().items():
        if name in OF_DECISIONS and (name, value) not in OF_BOTH:
            must = "the options must be those of a regression, because the target is a number"
            do = "Remove this option, or use --task classification or --positive"
            raise InvalidInputError(must, f"--{name.replace('_', '-')}", do)


def given_options() -> dict[str, Any]:
    """Return the values by name that the user gave to the running command, without its defaults."""
    ctx = click.get_current_context()
    default, source = (None, click.core.ParameterSource.DEFAULT), ctx.get_parameter_source
    return {name: value for name, value in ctx.params.items() if source(name) not in default}
