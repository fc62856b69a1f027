"""`nerm fit`: a model from a table, evaluated on rows it has not seen, in one file with the coding of its columns.

Examples
--------
  nerm fit people.csv --target income --viewpoint sex --out model.nerm
  nerm fit people.csv --target income --viewpoint sex --positive '>50K' --limit 0.05 --bounds
  nerm fit people.csv --target income --viewpoint sex,race --confidence 0.95 --limit 0.1
  nerm fit people.csv --target income --viewpoint sex --eta 0.5
  nerm fit adult.test.gz --columns @adult --skip-lines 1 --target class --viewpoint sex
  nerm fit german.data.gz --columns @german --target class --positive 1 --viewpoint foreign_worker
  nerm fit bank-full.csv.gz --target y --viewpoint loan --report bank.html
"""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

import click

from nerm.cli.console import Console, check_places, in_words, refusing_unwritable, write_text
from nerm.cli.options import (
    epilog_of,
    fit_command,
    fit_options,
    inputs_of,
    level_of,
    report_option,
    request_of,
    study_options,
)
from nerm.defaults import ETAS, MEASURES
from nerm.errors import NermError

if TYPE_CHECKING:
    from nerm.report import Settings, TableFit
    from nerm.report.fitting import FittedModel
    from nerm.tables import Recipe, TableTask


@click.command(epilog=epilog_of(__doc__))
@click.argument("data", metavar="DATA.csv")
@fit_options
@click.option("--out", metavar="MODEL.nerm", help="Write the model here.")
@click.option("--bounds", is_flag=True, help="Show what is guaranteed beyond these rows.")
@report_option
@study_options
def fit(
    console: Console, data: str, out: str | None, bounds: bool, report: str | None, **options: Any
) -> int:
    """Fit a neutral classifier to a table.

    The model is the best one found whose measure is within --limit: by default, positive rates that differ by
    at most 0.02. Where that cannot be had without a constant, the command says so and exits with 5. Numbers
    are scaled, words coded as 0/1 columns, missing values kept as a value of their own; what was done is told
    on standard error. The viewpoint is not an input unless you ask. A quarter of the rows is held out to
    measure; the saved model is the one that was measured, and the one that --report shows among its
    neighbours.
    """
    check_places(inputs_of(data, options), {"--out": out, "--report": report})
    level = level_of(options)
    if level.eta is not None:
        options["etas"] = ETAS
    task, settings = request_of(data, options)
    from nerm.cli.rendering import measured, statements_json, statements_table, statuses_of
    from nerm.report import fit_table

    with console.progress("Fitting") as progress:
        fitted = fit_table(task, settings, level, options["test"], progress)
    found = fit_json(fitted)
    console.notes([*task.notes, *found["notes"]])
    statuses = {found["solver"]: found["status"]}
    if out is not None:
        save_model(
            fitted.recipe, fitted.model, task, remembered(fitted.model, settings, len(fitted.train)), out
        )
    if report is not None:
        from nerm.report import render_page, run_study

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
        except NermError as error:  # the fit stands, whatever can be promised about it
            found["no_bounds"] = str(error)
            shown.append(f"No bounds: {error}")
    console.result(found, *shown, files={"model": out, "report": report})
    return console.code(statuses, collapsed=fitted.collapse is not None)


def fit_json(fitted: TableFit) -> dict[str, Any]:
    """Return what there is to say about a fit, but for its measures, as plain data."""
    from nerm.report.decisions import ADVICE

    model, settings, rows = fitted.model, fitted.rows.settings, len(fitted.train)
    stats, facts = model.solution.stats, remembered(model, settings, rows)
    gap, promise = model.relative_gap, getattr(model.classifier, "promise_", None)
    held_out = f"{len(fitted.test):,} held-out rows"
    return {
        **facts,
        "reached": getattr(model.classifier, "neutrality_", None),
        "promise": None if promise is None else asdict(promise),
        "said": _said(fitted, promise),
        "certified": f"certified relative gap {gap:.1e}"
        if isfinite(gap)
        else "a stationary point, each step certified",
        "recipe": fitted.recipe.summary(),
        "status": model.solution.status.value,
        "iterations": stats.iterations or 1,
        "seconds": stats.build_seconds + stats.solve_seconds + stats.certify_seconds,
        "measured_on": f"the {rows:,} training rows" if fitted.holdout is None else held_out,
        "warning": None if fitted.collapse is None else f"{fitted.collapse} Not recommended: {ADVICE}.",
        "notes": list(fitted.notes),
    }


def _said(fitted: TableFit, promise: Any) -> str | None:
    """Say what came of a limit."""
    from nerm.estimators.parameters import atom_name

    model, limit = fitted.model, fitted.model.level.limit
    if limit is None:
        return None
    how = "already without neutrality"
    if model.surrogate is not None:
        how = f"by a neutrality term of weight {model.eta:.3g} ({atom_name(model.surrogate)})"
    reached = f"{model.classifier.neutrality_:+.4f} on the training rows, {how}"
    told = "" if promise is None else f" For new rows: {promise}."
    return in_words(
        f"Asked for: {fitted.rows.settings.aim[1]} of at most {limit:g}. Reached: {reached}.{told}"
    )


def statements_of(fitted: TableFit) -> list[Any]:
    """Return every bound on a model that was just fitted; of several groups, what held-out rows say of all of them."""
    import numpy as np

    from nerm import bounds
    from nerm.report.points import held_out_bounds

    settings, held = fitted.rows.settings, fitted.measured
    if len(held.terms) > 1:
        if fitted.holdout is None:
            return []
        return held_out_bounds(fitted.scores, held, np.zeros(len(held), dtype=int), settings, 1)
    return list(bounds.guarantee(fitted.model.facts(), delta=settings.delta, holdout=fitted.holdout))


def remembered(model: FittedModel, settings: Settings, rows: int) -> dict[str, Any]:
    """Return what a saved model remembers of its fit.

    Parameters
    ----------
    model, settings
        The model, and what it was fitted by.
    rows
        How many it was fitted on.
    """
    return {
        "asked": {"limit": model.level.limit, "eta": model.level.eta},
        "measure": None if model.level.limit is None else MEASURES[settings.measure],
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


def save_model(
    recipe: Recipe,
    model: FittedModel,
    task: TableTask,
    facts: dict[str, Any],
    out: str,
    option: str = "--out",
) -> None:
    """Write a model with the coding of its columns to one file.

    Parameters
    ----------
    recipe, model, task
        The coding, the model, and the table whose roles it has.
    facts
        What is worth knowing of the fit.
    out, option
        Where to, and the option that said so.
    """
    from nerm.tables import TableModel

    with refusing_unwritable(out, option):
        TableModel(recipe, model.classifier, task.target, task.viewpoint, facts).save(out)
