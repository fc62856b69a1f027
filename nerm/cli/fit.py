"""The commands that fit a table: `nerm fit`, `nerm bound`, `nerm tradeoff` and `nerm demo`."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from importlib import resources
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from nerm.cli.console import Console, check_places, check_writable, in_words, refusing_unwritable, write_text
from nerm.cli.options import (
    all_of,
    command,
    common,
    fit_options,
    inputs_of,
    level_of,
    measure_option,
    numbers_option,
    option,
    report_option,
    request_of,
    role_options,
    seed_option,
    study_options,
)
from nerm.defaults import ETAS, LIMITS
from nerm.errors import InvalidInputError, NermError

if TYPE_CHECKING:
    from nerm.report.fitting import FittedModel, TableFit
    from nerm.report.settings import Settings
    from nerm.report.study import Study
    from nerm.tables import Recipe, TableTask

DEMO_LIMITS = (0.05, 0.03, 0.02, 0.01)  # the plain model has 0.08
SUFFIXES = {"table": "csv", "figure": "svg", "report": "html"}
table_argument = click.argument("data", metavar="DATA.csv")


@command
@all_of(table_argument, fit_options, option("out", "Write the model here.", metavar="MODEL.nerm"))
@option("bounds", "Show what is guaranteed beyond these rows.", is_flag=True)
@all_of(report_option, study_options)
def fit(
    console: Console, data: str, out: str | None, bounds: bool, report: str | None, **options: Any
) -> int:
    """Fit a neutral classifier to a table.

    The model is the best one found whose measure is within --limit: by default, positive rates that differ by
    at most 0.02. Where only a constant model is within it, the command says so and exits with 5. Numbers
    are scaled, words coded as 0/1 columns, missing values kept as a value of their own; notes on standard
    error tell it. The viewpoint is not an input unless you ask. A quarter of the rows is held out to
    measure; the saved model is the one that was measured, and the one that --report shows among other levels.

    Examples
    --------
      nerm fit people.csv --target income --viewpoint sex --out model.nerm
      nerm fit people.csv --target income --viewpoint sex --positive '>50K' --limit 0.05 --bounds
      nerm fit people.csv --target income --viewpoint sex,race --confidence 0.95 --limit 0.1
      nerm fit people.csv --target income --viewpoint sex --eta 0.5
      nerm fit adult.data --columns @names.txt --target class --viewpoint sex
      nerm fit bank-full.csv.gz --target y --viewpoint loan --report bank.html
    """
    check_places(inputs_of(data, options), {"--out": out, "--report": report})
    from nerm.cli.rendering import measured, statements_json, statements_table, statuses_of

    level = level_of(options)
    if level.eta is not None:
        options["etas"] = ETAS
    task, settings, fitted = _fitted(console, data, options)
    found = fit_json(fitted)
    statuses = {found["solver"]: found["status"]}
    if out is not None:
        _save(fitted.recipe, fitted.model, task, settings, len(fitted.train), out, "--out")
    if report is not None:
        from nerm.report.page import render_page
        from nerm.report.study import run_study

        with console.progress("Trade-off") as progress:
            study = run_study(task, settings, fit=fitted, progress=progress, command=fit_command(data))
        write_text(report, render_page(study, f"{fit_command(data)} {level.option}"), "--report")
        statuses |= statuses_of(study)
    plain, tables = measured(fitted.measured, fitted.scores, found["measured_on"])
    found |= {**plain, "task_notes": list(task.notes), "bounds": []}
    shown: list[Any] = [
        *filter(None, [found["warning"]]),
        f"{found['objective']}\n{found['status']} by {found['solver']} in {found['seconds']:.2f} s on "
        f"{found['rows']:,} rows; {found['certified']}\n{found['recipe']}",
        *filter(None, [found["said"]]),
        *tables,
    ]
    if bounds:
        try:
            statements = statements_of(fitted)
            found["bounds"] = statements_json(statements)
            shown.append(statements_table(statements, settings.delta))
        except NermError as error:  # the fit stands without bounds
            found["no_bounds"] = str(error)
            shown.append(f"No bounds: {error}")
    console.result(found, *shown, files={"model": out, "report": report})
    return console.code(statuses, collapsed=fitted.collapse is not None)


@command
@all_of(table_argument, fit_options, study_options)
def bound(console: Console, data: str, **options: Any) -> int:
    """Fit, and state every bound with its assumptions.

    The theorems bound the relaxed risk C_psi and need --eta, --weights uniform and --class-weight none; only
    held-out rows bound C_sgn and the difference in positive rates. A bound without content is called vacuous.

    Examples
    --------
      nerm bound people.csv --target income --viewpoint sex
      nerm bound people.csv --target income --viewpoint sex --eta 5 --weights uniform --class-weight none
    """
    from nerm.cli.rendering import statements_json, statements_table

    _, settings, fitted = _fitted(console, data, options)
    found = fit_json(fitted)
    statements = statements_of(fitted)
    names = ("asked", "objective", "rows", "status", "relative_gap", "eta", "lam", "lam_form", "warning")
    plain: dict[str, Any] = {name: found[name] for name in names}
    stated = zip(statements_json(statements), statements, strict=True)
    plain |= {"delta": settings.delta, "bounds": [{**line, "holds": s.holds} for line, s in stated]}
    first = filter(None, [found["warning"]])
    console.result(plain, *first, found["objective"], statements_table(statements, settings.delta))
    return console.code({found["solver"]: found["status"]}, collapsed=fitted.collapse is not None)


@command
@all_of(table_argument, role_options)
@numbers_option("limits", f"Limits, separated by commas.  [default: {','.join(map(str, LIMITS))}]")
@measure_option
@numbers_option("etas", "In place of limits: neutrality weights, separated by commas.")
@option("budget", "AUC the choice may cost.", type=click.FloatRange(0), default=0.03)
@option("methods", "all: with every published method.", type=click.Choice(["few", "all"]), default="few")
@option("figure", "Write the figure here.", metavar="FILE.svg")
@option("save", "Write the recommended model here.", metavar="MODEL.nerm")
@all_of(report_option, study_options)
def tradeoff(
    console: Console, data: str, figure: str | None, save: str | None, report: str | None, **options: Any
) -> int:
    """Show the front between quality and neutrality.

    Fits a model within every limit, measures on rows it has not seen, and recommends the tightest limit whose
    AUC there is within the budget of the plain model's; never a model that is nearly constant. Plain
    logistic regression stands beside it. Prints the `nerm fit` command of the choice.

    Examples
    --------
      nerm tradeoff people.csv --target income --viewpoint sex --report front.html
      nerm tradeoff people.csv --target income --viewpoint sex --limits 0.1,0.02 --save model.nerm
      nerm tradeoff people.csv --target income --viewpoint sex --etas 0,0.1,1,10 --figure front.svg
    """
    check_places(inputs_of(data, options), {"--figure": figure, "--save": save, "--report": report})
    if figure is not None and not figure.endswith(".svg"):
        do = "Rename it; browsers and editors open SVG"
        raise InvalidInputError("--figure must end in .svg", repr(figure), do)
    if options["etas"] is not None and options["limits"] is not None:
        do = "Give --limits for levels, or --etas for weights"
        raise InvalidInputError("--limits and --etas must not both be given", "both", do)
    task, settings = request_of(data, options)
    from nerm.cli.rendering import show_study
    from nerm.report.study import run_study

    every = options["methods"] == "all"
    with console.progress("Trade-off") as progress:
        study = run_study(task, settings, progress=progress, every_method=every, command=fit_command(data))
    console.notes(study.notes)
    if save is not None:
        _save_recommended(console, study, save)
    files = {"figure": figure, "report": report, "model": save if study.recommended is not None else None}
    return show_study(console, study, f"nerm tradeoff {data} …", files)


@command
@option("folder", "Where table, figure and report go.", default=".", metavar="FOLDER")
@all_of(seed_option, common)
def demo(console: Console, folder: str, seed: int) -> int:
    """See it work on real data: table, figure, report.

    Predicts which women of the National Longitudinal Survey of 1988 (2,246 rows) are paid above the median
    without following race, prints the trade-off, and writes a figure, a report to click through, and the
    table itself (nerm-demo.csv), to try the other commands on.

    Examples
    --------
      nerm demo
      nerm demo --folder /tmp --json
    """
    files = {kind: str(Path(folder) / f"nerm-demo.{suffix}") for kind, suffix in SUFFIXES.items()}
    for path in files.values():
        check_writable(path, "--folder")
    from nerm.cli.rendering import show_study
    from nerm.report.settings import Settings
    from nerm.report.study import run_study
    from nerm.tables import make_task, parse_table

    text = resources.files("nerm.cli").joinpath("demo.csv").read_text(encoding="utf-8")
    task = make_task(parse_table(text, "National Longitudinal Survey, 1988"), "wage", "race")
    settings = Settings(limits=DEMO_LIMITS, surrogate="logistic", seed=seed)
    again = f"nerm fit {shlex.quote(files['table'])} --target wage --viewpoint race"
    with console.progress("Fitting") as progress:
        study = run_study(task, settings, progress=progress, command=again)
    write_text(files["table"], text, "--folder")
    return show_study(console, study, "nerm demo" + (f" --seed {seed}" if seed else ""), files, "--folder")


def fit_command(data: str) -> str:
    """Return the `nerm fit` command with the given options of the running one, without a level.

    Parameters
    ----------
    data
        The file with the rows.
    """
    ctx = click.get_current_context()
    words = ["nerm", "fit", data]
    other = {"as_json", "quiet", "out", "report", "bounds", "test", "delta", "limit", "eta"}
    for parameter in fit.params:
        name = str(parameter.name)
        source = ctx.get_parameter_source(name)
        if name in other or source in (None, click.core.ParameterSource.DEFAULT) or name == "data":
            continue
        value = ctx.params[name]
        for each in value if isinstance(value, tuple) else (value,):
            words += parameter.opts[:1] if each is True else [parameter.opts[0], str(each)]
    return shlex.join(words)


def _fitted(console: Console, data: str, options: dict[str, Any]) -> tuple[TableTask, Settings, TableFit]:
    """Read a table, fit it, and print notes."""
    level = level_of(options)
    task, settings = request_of(data, options)
    from nerm.report.fitting import fit_table

    with console.progress("Fitting") as progress:
        fitted = fit_table(task, settings, level, options["test"], progress)
    console.notes([*task.notes, *fitted.notes])
    return task, settings, fitted


def fit_json(fitted: TableFit) -> dict[str, Any]:
    """Return a fit without its measures as plain data."""
    from nerm.report.fitting import ADVICE

    model, settings, rows = fitted.model, fitted.rows.settings, len(fitted.train)
    stats, gap, promise = (
        model.solution.stats,
        model.relative_gap,
        getattr(model.classifier, "promise_", None),
    )
    certified = (
        f"certified relative gap {gap:.1e}" if isfinite(gap) else "a stationary point, each step certified"
    )
    held_out = f"{len(fitted.test):,} held-out rows"
    return {
        **_facts(model, settings, rows),
        "reached": getattr(model.classifier, "neutrality_", None),
        "promise": None if promise is None else asdict(promise),
        "said": _said(fitted, promise),
        "certified": certified,
        "recipe": fitted.recipe.summary(),
        "status": model.solution.status.value,
        "iterations": stats.iterations or 1,
        "seconds": stats.build_seconds + stats.solve_seconds + stats.certify_seconds,
        "measured_on": f"the {rows:,} training rows" if fitted.holdout is None else held_out,
        "warning": None if fitted.collapse is None else f"{fitted.collapse} Not recommended: {ADVICE}.",
        "notes": list(fitted.notes),
    }


def _said(fitted: TableFit, promise: Any) -> str | None:
    """Return what came of a limit, in a sentence."""
    from nerm.estimators.parameters import atom_name

    model, limit = fitted.model, fitted.model.level.limit
    if limit is None:
        return None
    how = "already without neutrality"
    if model.surrogate is not None:
        how = f"by a neutrality term of weight {model.eta:.3g} ({atom_name(model.surrogate)})"
    text = f"Asked for: {fitted.rows.settings.aim.words} of at most {limit:g}. Reached: "
    text += f"{model.classifier.neutrality_:+.4f} on the training rows, {how}."
    return in_words(text if promise is None else f"{text} For new rows: {promise}.")


def statements_of(fitted: TableFit) -> list[Any]:
    """Return every bound on a fitted model; of several groups, the hold-out bounds only."""
    from nerm import bounds
    from nerm.report.measuring import held_out_bounds

    settings, held = fitted.rows.settings, fitted.measured
    if len(held.terms) == 1:
        return list(bounds.guarantee(fitted.model.facts(), delta=settings.delta, holdout=fitted.holdout))
    if fitted.holdout is None:
        return []
    return held_out_bounds(held, fitted.scores, settings.delta)


def _facts(model: FittedModel, settings: Settings, rows: int) -> dict[str, Any]:
    """Return the facts of a fit that are saved with the model."""
    return {
        "asked": {"limit": model.level.limit, "eta": model.level.eta},
        "measure": None if model.level.limit is None else settings.measure,
        "eta": model.eta,
        "lam": settings.lam,
        "lam_form": "mean",
        "weights": settings.weights,
        "class_weight": settings.class_weight,
        "objective": str(model.solution.problem.objective),
        "rows": rows,
        "seed": settings.seed,
        "relative_gap": model.relative_gap,
        "solver": model.solution.stats.solver,
    }


def _save(
    recipe: Recipe, model: FittedModel, task: TableTask, settings: Settings, rows: int, path: str, option: str
) -> None:
    """Write a model with the coding of its columns to the file that an option names."""
    from nerm.tables import TableModel

    facts = _facts(model, settings, rows)
    with refusing_unwritable(path, option):
        TableModel(recipe, model.classifier, task.target, task.viewpoint, facts).save(path)


def _save_recommended(console: Console, study: Study, path: str) -> None:
    """Write the recommended model of a study, if there is one."""
    from nerm.report.fitting import fit_level

    if study.recommended is None or study.fitted is None or study.recipe is None:
        console.note("no model is recommended, so none is saved")
        return
    model, (rows, train) = study.points[study.recommended].model, study.fitted
    if model is not None and model.classifier is None:  # a point of a path
        model = fit_level(rows, train, model.level)
    assert model is not None
    _save(study.recipe, model, study.task, study.settings, len(train), path, "--save")
