"""The commands that fit a table: `nerm fit`, `nerm bound`, `nerm tradeoff` and `nerm demo`."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from importlib import resources
from math import isfinite
from pathlib import Path
from typing import Any, cast

import click

import nerm.report
from nerm.cli import options as shared
from nerm.cli.console import NOT_NEUTRAL, Console, check_places, in_words, measured, stated, write_text
from nerm.cli.options import all_of, command, common, numbers_option, option
from nerm.defaults import COMMAND_LINE, ETAS, LIMITS
from nerm.errors import InvalidInputError, NermError, NotNeutralError

SUFFIXES = {"table": "csv", "figure": "svg", "report": "html"}
table_argument = click.argument("data", metavar="DATA.csv")


@command
@all_of(table_argument, shared.fit_options, option("out", "Write the model here.", metavar="MODEL.nerm"))
@option("head", "Fit a last layer on the score of this scikit-learn model.", metavar="MODEL.skops")
@option("unseen", "With --head: the model was fitted on other rows; keep it unchanged.", is_flag=True)
@shared.trust_option
@option("bounds", "Show bounds for new rows.", is_flag=True)
@all_of(shared.report_option, shared.task_option, shared.study_options)
def fit(console: Console, data: str, out: str | None, report: str | None, **options: Any) -> int:
    """Fit a neutral classifier to a table.

    Searches the most accurate model whose measure is within --limit: by default, positive rates that differ
    by at most 0.02. If only constant models are within it, the command says so and exits with 5. Numbers are
    scaled, words are coded as 0/1 columns, and missing values are a value of their own; notes on standard
    error name them. The viewpoint is not an input, unless --keep-viewpoint is given. A quarter of the rows is
    held out; the saved model is the one that was measured on them.

    With --features splines each number has a curve; with trees the score of boosted trees is one more column.
    With --head this column is the score of your own classifier, saved with skops. It is fitted again on the
    rows that are not held out, unless --unseen is given. The last layer is certified to be optimal, the base
    model is not.

    If the target has many numbers, the model is a regression (--task decides). The limit is then on the
    difference of the mean predictions, in units of the target.

    Examples
    --------
      nerm fit census.csv --target income --viewpoint sex --out model.nerm
      nerm fit census.csv --target income --viewpoint sex --positive '>50K' --limit 0.05 --bounds
      nerm fit census.csv --target income --viewpoint sex,race --confidence 0.95 --limit 0.1
      nerm fit census.csv --target income --viewpoint sex --eta 0.5
      nerm fit census.csv --target income --viewpoint sex --features trees --out model.nerm
      nerm fit census.csv --target income --viewpoint sex --head pipeline.skops --out model.nerm
      nerm fit pets.csv --columns age,kind,place,adopted --target adopted --viewpoint kind
      nerm fit bank-full.csv.gz --target y --viewpoint loan --report bank.html
    """
    check_places({"the data": data, "the model": options["head"]}, {"--out": out, "--report": report})
    if options["unseen" if options["head"] is None else "features"] in (True, "trees"):
        raise click.UsageError("--head must not be given with --features trees, and --unseen needs it.")
    study = _study(console, data, options, report is not None)
    point, found = study.points[study.chosen], _fit_json(study)
    if out is not None:
        _save(study, out)
    if report is not None:
        write_text(report, nerm.report.render_page(study, point.command))
    plain, tables = measured(point, study.how_measured)
    found |= {**plain, "task_notes": list(study.task.notes), "bounds": []}
    solved = f"{found['status']} by {found['solver']} in {found['seconds']:.2f} s on {found['rows']:,} rows"
    facts = f"{found['objective']}\n{solved}; {found['certified']}\n{found['recipe']}"
    shown = [found["warning"], facts, found["said"], *tables]
    if options["bounds"]:
        try:
            found["bounds"], bounds = stated(_statements(study), study.settings.delta)
            shown += bounds
        except NermError as error:  # the fit stands without bounds
            found["no_bounds"] = str(error)
            shown.append(f"No bounds: {error}")
    console.result(found, *shown, files={"model": out, "report": report})
    return console.code(study.points, collapsed=point.collapse is not None)


@command
@all_of(table_argument, shared.fit_options, shared.study_options)
def bound(console: Console, data: str, **options: Any) -> int:
    """Fit, and state every bound with its assumptions.

    The theorems bound the relaxed risk C_psi and need --eta, --weights uniform and --class-weight none; only
    held-out rows bound C_sgn and the difference in positive rates. A bound without content is called vacuous.

    Examples
    --------
      nerm bound census.csv --target income --viewpoint sex
      nerm bound census.csv --target income --viewpoint sex --eta 5 --weights uniform --class-weight none
    """
    study = _study(console, data, options)
    found, delta = _fit_json(study), study.settings.delta
    names = ("asked", "objective", "rows", "status", "relative_gap", "eta", "lam", "lam_form", "warning")
    plain = {**{name: found[name] for name in names}, "delta": delta}
    plain["bounds"], shown = stated(_statements(study), delta)
    console.result(plain, found["warning"], found["objective"], *shown)
    return console.code(study.points, collapsed=found["warning"] is not None)


@command
@all_of(table_argument, shared.role_options)
@numbers_option("limits", f"Limits, separated by commas.  [default: {','.join(map(str, LIMITS))}]")
@shared.measure_option
@numbers_option("etas", "Neutrality weights instead of limits, separated by commas.")
@option("methods", "all: also every published method.", type=click.Choice(["few", "all"]), default="few")
@option("budget", "Largest loss of AUC of the recommended model.", type=click.FloatRange(0), default=0.03)
@option("figure", "Write the figure here.", metavar="FILE.svg")
@option("save", "Write the recommended model here.", metavar="MODEL.nerm")
@option("proof", "Add bounds that are proved for every model of this kind.", is_flag=True)
@option("compare-features", "Compare linear, splines and trees at the recommended limit.", is_flag=True)
@all_of(shared.report_option, shared.task_option, shared.study_options)
def tradeoff(console: Console, data: str, report: str | None, **options: Any) -> int:
    """Show the trade-off between quality and neutrality.

    Fits one model per limit, measures each on rows that it has not seen, and recommends the tightest limit
    whose AUC is within the budget of the plain model. Models that are nearly constant are never recommended.
    For comparison it shows logistic regression and one threshold per group, and with --methods all every
    published method. Prints the `nerm fit` command of the recommended model. --save writes this model; if no
    limit is met, it writes nothing and exits with 5.

    Examples
    --------
      nerm tradeoff census.csv --target income --viewpoint sex --report front.html
      nerm tradeoff census.csv --target income --viewpoint sex --limits 0.1,0.02 --save model.nerm
      nerm tradeoff census.csv --target income --viewpoint sex --etas 0,0.1,1,10 --figure front.svg
      nerm tradeoff census.csv --target income --viewpoint sex --compare-features
    """
    figure, save = options["figure"], options["save"]
    check_places({"the data": data}, {"--figure": figure, "--save": save, "--report": report})
    if figure is not None and not figure.endswith(".svg"):
        raise click.UsageError(f"--figure must end in .svg, not {figure!r}.")
    if options["etas"] is not None and options["limits"] is not None:
        raise click.UsageError("--limits and --etas must not both be given.")
    task, settings = shared.request_of(data, options)
    console.notes(task.notes)
    with console.progress("Trade-off") as progress:
        more: dict[str, Any] = {"progress": progress, "command": fit_command(data)}
        study = nerm.report.study.run_study(task, settings, every_method=options["methods"] == "all", **more)
        if options["proof"]:
            progress("solving for the proof")
            study = replace(study, notes=(*study.notes, nerm.report.proof(study)))
        if options["compare_features"]:
            study = replace(study, notes=(*study.notes, *_features_compared(study, progress)))
    console.notes(study.notes[len(task.notes) :])
    saved = save if study.within_limit else None
    if saved is not None:
        _save(study, saved)
    files = {"figure": figure, "report": report, "model": saved}
    code = console.study(study, f"nerm tradeoff {data} …", files)
    if save == saved:
        return code
    do = "allow larger --limits or a larger --budget, or add columns that predict the target"
    console.note(f"nothing is saved, because no model within a limit is recommended: {do}")
    return NOT_NEUTRAL


def _features_compared(study: nerm.report.Study, progress: Callable[[str], None]) -> Iterator[str]:
    """Yield one sentence per kind of features: its measures at the chosen limit, and its time."""
    level, aim = cast(Any, study.points[study.chosen].model).level, study.settings.aim
    for features in shared.FEATURES.choices:
        progress(f"--features {features}, {level.label}")
        given = replace(study.settings, features=features)
        try:
            found = nerm.report.study.run_study(study.task, given, [level], needed=level)
        except NotNeutralError:
            yield f"--features {features}: {level.label} is not met"
            continue
        now = found.points[found.chosen].measures
        quality = f"accuracy {now['accuracy']:.4f}, AUC {now['auc']:.4f}"
        reached = f"{aim.words} {now[aim.name]:+.4f} on {found.how_measured}; {found.seconds:.1f} s"
        yield f"--features {features}, {level.label}: {quality}, {reached}"


@command
@option("folder", "Folder for table, figure and report.", default=".", metavar="FOLDER")
@all_of(shared.seed_option, common)
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
    check_places({}, {f"the {kind} in --folder": path for kind, path in files.items()})
    text = resources.files("nerm.cli").joinpath("demo.csv").read_text(encoding="utf-8")
    table = nerm.tables.parse_table(text, "National Longitudinal Survey, 1988")
    task = nerm.tables.make_task(table, "wage", "race")
    settings = nerm.report.Settings(limits=LIMITS[1:], surrogate="logistic", seed=seed)
    again = f"nerm fit {shlex.quote(files['table'])} --target wage --viewpoint race"
    with console.progress("Fitting") as progress:
        study = nerm.report.study.run_study(task, settings, progress=progress, command=again)
    write_text(files["table"], text)
    return console.study(study, f"nerm demo --seed {seed}", files)


def fit_command(data: str) -> str:
    """Return the `nerm fit` command, without a level, with the options given to the running command.

    Parameters
    ----------
    data
        Path of the table.
    """
    words, given = ["nerm", "fit", data], shared.given_options()
    other = {"data", "as_json", "quiet", "out", "report", "bounds", "test", "delta", "limit", "eta"}
    for parameter in [p for p in fit.params if p.name in given and p.name not in other]:
        value = given[str(parameter.name)]
        for each in value if isinstance(value, tuple) else (value,):
            words += parameter.opts[:1] if each is True else [parameter.opts[0], str(each)]
    return shlex.join(words)


def _study(console: Console, data: str, options: dict[str, Any], several: bool = False) -> nerm.report.Study:
    """Read a table, fit the target level, print notes, and return the study.

    With `several`, the levels of the settings are fitted too.
    """
    limit, eta = options["limit"], options["eta"]
    if eta is not None:
        for name in ("limit", "confidence"):
            if options[name] is not None:
                raise click.UsageError(f"--{name} and --eta must not both be given.")
        options["etas"] = ETAS
    task, settings = shared.request_of(data, options)  # imports what fits only after the roles are clear
    console.notes(task.notes)  # also seen if no model can be fitted
    level = nerm.report.Level(eta=eta)
    if eta is None:
        usual = COMMAND_LINE.limit if task.numbers is None else settings.limits[-1]  # of a regression
        level = nerm.report.Level(usual if limit is None else limit)
    levels: Sequence[nerm.report.Level] = [*settings.levels, level] if several else [level]
    with console.progress("Fitting") as progress:
        more = {"needed": level, "share": options["test"], "progress": progress, "command": fit_command(data)}
        study = nerm.report.study.run_study(task, settings, levels, **more)
    console.notes(study.notes[len(task.notes) :])
    return study


def _fit_json(study: nerm.report.Study) -> dict[str, Any]:
    """Return facts about the chosen model, without its measures, as plain data.

    They are printed, and saved with the model.
    """
    settings, point = study.settings, study.points[study.chosen]
    model: Any = point.model
    solution, promise = model.solution, getattr(model.classifier, "promise_", None)
    stats, gap = solution.stats, solution.certificate.relative_gap
    stationary = "a stationary point, each step certified"
    part = "" if study.recipe.base is None else " of the last layer; the base model is not certified"
    warning = f"{point.collapse} Not recommended: {nerm.report.fitting.ADVICE}."
    return {
        "asked": asdict(model.level),
        "measure": None if model.level.limit is None else settings.measure,
        "reached": getattr(model.classifier, "neutrality_", None),
        "promise": None if promise is None else asdict(promise),
        "said": None if model.level.limit is None else _said(study, model, promise),
        "eta": model.eta,
        "lam": settings.lam,
        "lam_form": "mean",
        "weights": settings.weights,
        "class_weight": settings.class_weight,
        "objective": str(solution.problem.objective),
        "recipe": study.recipe.summary(),
        "rows": len(study.train),
        "seed": settings.seed,
        "solver": stats.solver,
        "status": solution.status.value,
        "relative_gap": gap,
        "certified": (f"certified relative gap {gap:.1e}" if isfinite(gap) else stationary) + part,
        "iterations": stats.iterations or 1,
        "seconds": stats.build_seconds + stats.solve_seconds + stats.certify_seconds,
        "measured_on": study.how_measured,
        "warning": None if point.collapse is None else warning,
        "notes": list(study.notes),
    }


def _said(study: nerm.report.Study, model: Any, promise: Any) -> str:
    """Return a sentence with the target limit and the measured value of the model."""
    aim, value, limit = study.settings.aim, model.classifier.neutrality_, model.level.limit
    beyond = abs(value - aim.best) > aim.allowance(limit) + 1e-9 * (1 + limit)
    name = model.surrogate and nerm.estimators.design.atom_name(model.surrogate)
    given = {"study": study, "model": model, "promise": promise, "beyond": beyond, "surrogate": name}
    return in_words(nerm.report.paragraph("said.txt.j2", **given))


def _statements(study: nerm.report.Study) -> list[Any]:
    """Return every bound on the chosen model; with several terms, only the hold-out bounds."""
    point, delta = study.points[study.chosen], study.settings.delta
    if study.task.numbers is not None:
        must = "bounds are about decisions, so the target must have two values"
        raise InvalidInputError(must, "a number", "Use --task classification or --positive")
    theorems_hold = study.recipe.base is None  # they need columns that do not depend on the labels
    if len(point.task.terms) == 1 and point.model is not None and theorems_hold:
        holdout = (point.scores, point.task.v) if study.held_out else None
        return list(nerm.bounds.guarantee(point.model.facts(), delta=delta, holdout=holdout))
    return nerm.report.held_out_bounds(point.task, point.scores, delta) if study.held_out else []


def _save(study: nerm.report.Study, path: str) -> None:
    """Write the chosen model with the coding of its columns."""
    model: Any = study.points[study.chosen].model
    roles = study.task.target, study.task.viewpoint
    nerm.tables.TableModel(study.recipe, model.classifier, *roles, _fit_json(study)).save(path)
